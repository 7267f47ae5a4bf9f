//! encode and decode, message digests, checksums, conversions between character sets.

use md5::{Digest, Md5};
use melba_types::limits::{self, VALUE_BYTES_MAX};
use melba_types::{Datum, Result, err};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use crate::bytea::{decode_hex, write_hex};
use crate::{CallContext, ScalarFn};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("binary_encode", encode),
    ("binary_decode", decode),
    ("md5_text", |_, a| Ok(Datum::text(hex(&digest::<Md5>(a[0].as_str().as_bytes())?)))),
    ("md5_bytea", |_, a| Ok(Datum::text(hex(&digest::<Md5>(a[0].as_bytes())?)))),
    ("sha224_bytea", |_, a| digest::<Sha224>(a[0].as_bytes()).map(Datum::bytes)),
    ("sha256_bytea", |_, a| digest::<Sha256>(a[0].as_bytes()).map(Datum::bytes)),
    ("sha384_bytea", |_, a| digest::<Sha384>(a[0].as_bytes()).map(Datum::bytes)),
    ("sha512_bytea", |_, a| digest::<Sha512>(a[0].as_bytes()).map(Datum::bytes)),
    ("crc32_bytea", |_, a| Ok(Datum::Int8(i64::from(crc32(a[0].as_bytes(), 0xedb8_8320))))),
    ("crc32c_bytea", |_, a| Ok(Datum::Int8(i64::from(crc32(a[0].as_bytes(), 0x82f6_3b78))))),
    ("pg_convert", |_, a| {
        let text = to_utf8(a[0].as_bytes(), a[1].as_str(), "source")?;
        from_utf8(&text, a[2].as_str(), "destination").map(Datum::bytes)
    }),
    ("pg_convert_from", |_, a| to_utf8(a[0].as_bytes(), a[1].as_str(), "source").map(Datum::text)),
    ("pg_convert_to", |_, a| from_utf8(a[0].as_str(), a[1].as_str(), "destination").map(Datum::bytes)),
    ("length_in_encoding", |_, a| {
        let text = to_utf8(a[0].as_bytes(), a[1].as_str(), "")?;
        Ok(Datum::Int4(text.chars().count() as i32))
    }),
    ("to_ascii_default", |_, _| Err(err!(FEATURE_NOT_SUPPORTED, "encoding conversion from UTF8 to ASCII not supported"))),
];

/// A message's digest, with looks at the statement's end while it is computed.
fn digest<D: Digest>(message: &[u8]) -> Result<Vec<u8>> {
    let mut digest = D::new();
    for piece in message.chunks(1 << 20) {
        limits::check_interrupt()?;
        digest.update(piece);
    }
    Ok(digest.finalize().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_hex(bytes, &mut out);
    out.iter().map(|&c| c as char).collect()
}

fn unrecognized(name: &str) -> melba_types::DbError {
    err!(INVALID_PARAMETER_VALUE, "unrecognized encoding: \"{name}\"")
}

fn encode(_: &CallContext<'_>, a: &[Datum]) -> Result<Datum> {
    let (bytes, format) = (a[0].as_bytes(), a[1].as_str());
    // The longest form of each byte is two digits; `escape` is looked at afterwards.
    if bytes.len() > VALUE_BYTES_MAX / 2 {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "result of encoding conversion is too large"));
    }
    limits::check_request(2 * bytes.len())?;
    let mut out = Vec::new();
    match format.to_ascii_lowercase().as_str() {
        "hex" => write_hex(bytes, &mut out),
        "base64" => encode_base64(bytes, &mut out),
        "escape" => encode_escape(bytes, &mut out),
        _ => return Err(unrecognized(format)),
    }
    Ok(Datum::text(crate::io::into_string(out)?))
}

fn decode(_: &CallContext<'_>, a: &[Datum]) -> Result<Datum> {
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
    for c in text.chars() {
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
fn crc32(bytes: &[u8], polynomial: u32) -> u32 {
    let step = |crc: u32, b: &u8| (0..8).fold(crc ^ u32::from(*b), |c, _| if c & 1 == 1 { c >> 1 ^ polynomial } else { c >> 1 });
    !bytes.iter().fold(u32::MAX, step)
}

/// An encoding's name without punctuation, in lower case.
fn canonical(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

enum Charset {
    Utf8,
    Latin1,
    Ascii,
}

fn charset(name: &str, role: &str) -> Result<Charset> {
    match canonical(name).as_str() {
        "utf8" | "unicode" => Ok(Charset::Utf8),
        "latin1" | "iso88591" => Ok(Charset::Latin1),
        "sqlascii" => Ok(Charset::Ascii),
        "latin2" | "latin3" | "latin4" | "latin5" | "latin6" | "latin7" | "latin8" | "latin9" | "latin10" | "win1250"
        | "win1251" | "win1252" | "win1253" | "win1254" | "win1255" | "win1256" | "win1257" | "win1258" | "win866" | "win874"
        | "koi8r" | "koi8u" | "eucjp" | "euccn" | "euckr" | "euctw" | "sjis" | "big5" | "gbk" | "gb18030" | "johab" | "uhc"
        | "iso88595" | "iso88596" | "iso88597" | "iso88598" | "eucjis2004" | "shiftjis2004" | "muleinternal" => {
            Err(melba_types::DbError::unsupported(format!("conversion with encoding {}", name.to_ascii_uppercase())))
        }
        _ if role.is_empty() => Err(err!(INVALID_PARAMETER_VALUE, "invalid encoding name \"{name}\"")),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "invalid {role} encoding name \"{name}\"")),
    }
}

fn to_utf8(bytes: &[u8], encoding: &str, role: &str) -> Result<String> {
    match charset(encoding, role)? {
        Charset::Latin1 => Ok(bytes.iter().map(|&b| b as char).collect()),
        Charset::Utf8 | Charset::Ascii => super::io::utf8(bytes).map(str::to_owned),
    }
}

fn from_utf8(text: &str, encoding: &str, role: &str) -> Result<Vec<u8>> {
    match charset(encoding, role)? {
        Charset::Utf8 | Charset::Ascii => Ok(text.as_bytes().to_vec()),
        Charset::Latin1 => text.chars().map(|c| u8::try_from(c).map_err(|_| untranslatable(c, "LATIN1"))).collect(),
    }
}

fn untranslatable(c: char, encoding: &str) -> melba_types::DbError {
    let bytes: Vec<String> = c.to_string().bytes().map(|b| format!("0x{b:02x}")).collect();
    let sequence = bytes.join(" ");
    err!(
        UNTRANSLATABLE_CHARACTER,
        "character with byte sequence {sequence} in encoding \"UTF8\" has no equivalent in encoding \"{encoding}\""
    )
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
    fn checksums_are_the_standard_ones() {
        assert_eq!(crc32(b"123456789", 0xedb8_8320), 0xcbf4_3926);
        assert_eq!(crc32(b"123456789", 0x82f6_3b78), 0xe306_9283);
    }
}
