//! encode and decode, message digests, checksums, conversions between character sets.

use md5::{Digest, Md5};
use melba_encoding::{Encoding, UTF8};
use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::limits::{self, Ticker, VALUE_BYTES_MAX};
use melba_types::{Datum, Result, err};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use crate::bytea::{decode_hex, write_hex};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("binary_encode", encode),
    ("binary_decode", decode),
    ("md5_text", |_, a| Ok(Datum::text(hex(&digest::<Md5>(a[0].as_str().as_bytes())?)))),
    ("md5_bytea", |_, a| Ok(Datum::text(hex(&digest::<Md5>(a[0].as_bytes())?)))),
    ("sha224_bytea", |_, a| digest::<Sha224>(a[0].as_bytes()).map(Datum::bytes)),
    ("sha256_bytea", |_, a| digest::<Sha256>(a[0].as_bytes()).map(Datum::bytes)),
    ("sha384_bytea", |_, a| digest::<Sha384>(a[0].as_bytes()).map(Datum::bytes)),
    ("sha512_bytea", |_, a| digest::<Sha512>(a[0].as_bytes()).map(Datum::bytes)),
    ("crc32_bytea", |_, a| crc32(a[0].as_bytes(), 0xedb8_8320).map(|crc| Datum::Int8(i64::from(crc)))),
    ("crc32c_bytea", |_, a| crc32(a[0].as_bytes(), 0x82f6_3b78).map(|crc| Datum::Int8(i64::from(crc)))),
    ("pg_convert", |_, a| {
        let (from, to) = (encoding(&a[1], "source ")?, encoding(&a[2], "destination ")?);
        convert(a[0].as_bytes(), from, to).map(Datum::bytes)
    }),
    ("pg_convert_from", |_, a| {
        let bytes = convert(a[0].as_bytes(), encoding(&a[1], "source ")?, UTF8)?;
        Ok(Datum::text(melba_fmgr::io::into_string(bytes)?))
    }),
    ("pg_convert_to", |_, a| convert(a[0].as_str().as_bytes(), UTF8, encoding(&a[1], "destination ")?).map(Datum::bytes)),
    ("length_in_encoding", |_, a| {
        let encoding = encoding(&a[1], "")?;
        Ok(Datum::Int4(encoding.characters(a[0].as_bytes())? as i32))
    }),
    ("to_ascii_default", |_, _| Err(err!(FEATURE_NOT_SUPPORTED, "encoding conversion from UTF8 to ASCII not supported"))),
];

/// Bytes written between two checks for the statement's end: whole lines of base64.
const PIECE_BYTES: usize = 57 << 12;

/// A message's digest, with checks for the statement's end while it is computed.
///
/// # Errors
/// Those of `limits::check_interrupt`.
pub fn digest<D: Digest>(message: &[u8]) -> Result<Vec<u8>> {
    let mut digest = D::new();
    each_piece(message, |piece| digest.update(piece))?;
    Ok(digest.finalize().to_vec())
}

/// Calls `f` for the pieces of a message, with checks for the statement's end.
///
/// # Errors
/// Those of `limits::check_interrupt`.
pub fn each_piece(message: &[u8], mut f: impl FnMut(&[u8])) -> Result<()> {
    for piece in message.chunks(PIECE_BYTES) {
        limits::check_interrupt()?;
        f(piece);
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_hex(bytes, &mut out);
    out.iter().map(|&c| c as char).collect()
}

fn unrecognized(name: &str) -> melba_types::DbError {
    err!(INVALID_PARAMETER_VALUE, "unrecognized encoding: \"{name}\"")
}

fn encode(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (bytes, format) = (a[0].as_bytes(), a[1].as_str());
    // The longest form of each byte is two digits; the result of `escape` is checked afterwards.
    if bytes.len() > VALUE_BYTES_MAX / 2 {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "result of encoding conversion is too large"));
    }
    limits::check_request(2 * bytes.len())?;
    let mut out = Vec::new();
    let write = match format.to_ascii_lowercase().as_str() {
        "hex" => write_hex,
        "base64" => encode_base64,
        "escape" => encode_escape,
        _ => return Err(unrecognized(format)),
    };
    for piece in bytes.chunks(PIECE_BYTES) {
        limits::check_interrupt()?;
        // A piece is as many whole lines.
        if !out.is_empty() && format.eq_ignore_ascii_case("base64") {
            out.push(b'\n');
        }
        write(piece, &mut out);
    }
    Ok(Datum::text(melba_fmgr::io::into_string(out)?))
}

fn decode(_: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let (text, format) = (a[0].as_str(), a[1].as_str());
    Ok(Datum::bytes(match format.to_ascii_lowercase().as_str() {
        "hex" => decode_hex(text)?,
        "base64" => decode_base64(text)?,
        "escape" => decode_escape(text)?,
        _ => return Err(unrecognized(format)),
    }))
}

/// Unlike bytea output, only NUL and bytes beyond ASCII are escaped.
fn encode_escape(bytes: &[u8], out: &mut Vec<u8>) {
    for &b in bytes {
        match b {
            0 | 0x80.. => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
            b'\\' => out.extend_from_slice(b"\\\\"),
            _ => out.push(b),
        }
    }
}

fn decode_escape(text: &str) -> Result<Vec<u8>> {
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    loop {
        rest = match rest {
            [] => return Ok(out),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                tail
            }
            [b'\\', b'\\', tail @ ..] => {
                out.push(b'\\');
                tail
            }
            [b'\\', ..] => return Err(err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type bytea")),
            [b, tail @ ..] => {
                out.push(*b);
                tail
            }
        };
    }
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Lines of 76 characters, without an end of line after the last.
fn encode_base64(bytes: &[u8], out: &mut Vec<u8>) {
    let mut column = 0;
    for chunk in bytes.chunks(3) {
        if column == 76 {
            out.push(b'\n');
            column = 0;
        }
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let symbol = BASE64[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { symbol } else { b'=' });
        }
        column += 4;
    }
}

fn decode_base64(text: &str) -> Result<Vec<u8>> {
    let hint = "Input data is missing padding, is truncated, or is otherwise corrupted.";
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut symbols, mut padding) = (0u32, 0, 0);
    let mut ticker = Ticker::new();
    for c in text.chars() {
        ticker.step()?;
        let value = match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '=' => {
                // Padding stands for the last one or two symbols.
                if padding == 0 {
                    padding = match symbols {
                        2 => 1,
                        3 => 2,
                        _ => return Err(err!(INVALID_PARAMETER_VALUE, "unexpected \"=\" while decoding base64 sequence")),
                    };
                }
                0
            }
            c => {
                let value = u8::try_from(c).ok().and_then(|c| BASE64.iter().position(|b| *b == c));
                let message = format!("invalid symbol \"{c}\" found while decoding base64 sequence");
                value.ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "{message}"))? as u32
            }
        };
        word = word << 6 | value;
        symbols += 1;
        if symbols == 4 {
            let bytes = word.to_be_bytes();
            let kept = if padding == 0 { 3 } else { padding };
            out.extend_from_slice(&bytes[1..1 + kept]);
            (word, symbols) = (0, 0);
        }
    }
    if symbols != 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "invalid base64 end sequence").hint(hint));
    }
    Ok(out)
}

/// Reflected CRC-32 by a polynomial.
fn crc32(bytes: &[u8], polynomial: u32) -> Result<u32> {
    let step = |crc: u32, b: &u8| (0..8).fold(crc ^ u32::from(*b), |c, _| if c & 1 == 1 { c >> 1 ^ polynomial } else { c >> 1 });
    let piece = |crc: u32, piece: &[u8]| limits::check_interrupt().map(|()| piece.iter().fold(crc, step));
    bytes.chunks(PIECE_BYTES).try_fold(u32::MAX, piece).map(|crc| !crc)
}

/// The encoding that an argument names. `role`: its name in the message.
fn encoding(name: &Datum, role: &str) -> Result<Encoding> {
    let name = name.as_str();
    Encoding::by_name(name).ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "invalid {role}encoding name \"{name}\""))
}

fn convert(bytes: &[u8], from: Encoding, to: Encoding) -> Result<Vec<u8>> {
    limits::check_request(2 * bytes.len())?;
    from.convert(bytes, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trips() {
        for length in [0, 1, 2, 3, 56, 57, 58, 120] {
            let bytes: Vec<u8> = (0..length).collect();
            let mut text = Vec::new();
            encode_base64(&bytes, &mut text);
            assert_eq!(decode_base64(std::str::from_utf8(&text).expect("ascii")).expect("valid"), bytes);
        }
        assert_eq!(decode_base64("YQ").expect_err("truncated").message(), "invalid base64 end sequence");
    }

    #[test]
    fn long_values_are_encoded_as_if_at_once() {
        let bytes: Vec<u8> = (0..2 * PIECE_BYTES + 5).map(|i| i as u8).collect();
        let session = crate::testing::session();
        let call = session.call(&[], melba_types::oids::TEXT);
        let encoded = encode(&call, &[Datum::bytes(&bytes[..]), Datum::text("base64")]).expect("encodes");
        let mut expected = Vec::new();
        encode_base64(&bytes, &mut expected);
        assert_eq!(encoded.as_str().as_bytes(), expected);
    }

    #[test]
    fn checksums_are_the_standard_ones() {
        assert_eq!(crc32(b"123456789", 0xedb8_8320).expect("uninterrupted"), 0xcbf4_3926);
        assert_eq!(crc32(b"123456789", 0x82f6_3b78).expect("uninterrupted"), 0xe306_9283);
    }
}
