//! A frame: bytes that are compressed and read as one. Large values are cut into frames, so that a part of one is read without
//! the rest.
//!
//! ```text
//! frame   method u8 (0 none, 1 pglz, 2 lz4, 3 zstd) | raw length varint | stream
//! waiting method u8 4 | 0xDE 0xDE | raw length varint | lz4 stream
//! dense   method u8 5 | 0xDE 0xDE | raw bytes
//! ```
//!
//! A frame of a dense column waits, compressed by lz4, until a merge puts it into a block with others (`dense`), and is read from there as a
//! dense frame. Both are known by their first three bytes: no frame of another method begins so, nor does a `Characters` row, whose third
//! byte is at most 4 (of a count of characters in a frame).

use melba_types::bytes::put_varint;

use crate::{CodecError, Method, compress, decompress, decompress_onto, is_incompressible, pglz};

/// Raw bytes of a frame, except the last one of a value.
pub const FRAME_BYTES: usize = 256 << 10;
/// The bytes after the method of a waiting or dense frame.
const DENSE_MARK: [u8; 2] = [0xDE, 0xDE];
/// The first byte of a frame that was read from a dense block.
const DENSE: u8 = 5;
/// No frame is longer: a reader accepts no greater length.
const FRAME_BYTES_MAX: usize = 16 << 20;

/// Appends the frame of `raw`: compressed by the method if that makes it smaller.
///
/// # Panics
/// When `raw` is longer than 16 MB: a bug of ours.
pub fn encode(method: Option<Method>, level: i32, raw: &[u8], out: &mut Vec<u8>) {
    if !encode_unless_raw(method, level, raw, out) {
        out.extend_from_slice(raw);
    }
}

/// The frame of `raw` in two parts: the second is `raw` itself when it is not compressed, which spares a copy, and else empty.
/// `buffer` has the first.
///
/// # Panics
/// As `encode`.
pub fn encode_parts<'a>(method: Option<Method>, level: i32, raw: &'a [u8], buffer: &'a mut Vec<u8>) -> [&'a [u8]; 2] {
    buffer.clear();
    let compressed = encode_unless_raw(method, level, raw, buffer);
    [buffer, if compressed { &[] } else { raw }]
}

/// Appends the frame, or its header only: false when `raw` must follow.
fn encode_unless_raw(method: Option<Method>, level: i32, raw: &[u8], out: &mut Vec<u8>) -> bool {
    assert!(raw.len() <= FRAME_BYTES_MAX, "a frame of {} bytes", raw.len());
    let start = out.len();
    if let Some(method) = method
        && !is_incompressible(raw)
    {
        put_header(method as u8, raw.len(), out);
        let compressed = match method {
            // Whether a value shrinks enough is decided for the whole of it, not for its frames.
            Method::Pglz => pglz::compress_always(raw, out),
            Method::Lz4 | Method::Zstd | Method::Dense => compress(method, level, raw, out),
        };
        if compressed {
            return true;
        }
        out.truncate(start);
    }
    put_header(0, raw.len(), out);
    false
}

/// Appends the start of a frame whose stream exists already; it follows.
pub fn begin(method: Method, raw_bytes: usize, out: &mut Vec<u8>) {
    put_header(method as u8, raw_bytes, out);
}

/// How a frame stands to dense storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    /// It is to become dense.
    Waiting,
    /// It was read from a dense block.
    Dense,
    /// It is of another method, or no frame.
    Foreign,
}

/// How a row of a toast tree stands to dense storage.
pub fn density(row: &[u8]) -> Density {
    match row {
        [method, mark @ ..] if mark.starts_with(&DENSE_MARK) => match *method {
            DENSE => Density::Dense,
            method if method == Method::Dense as u8 => Density::Waiting,
            _ => Density::Foreign,
        },
        _ => Density::Foreign,
    }
}

/// Appends a waiting frame as a dense one.
///
/// # Errors
/// `Malformed` when it is not one.
pub fn densify(frame: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    out.push(DENSE);
    out.extend_from_slice(&DENSE_MARK);
    decode(frame, out)
}

fn put_header(method: u8, raw_bytes: usize, out: &mut Vec<u8>) {
    out.push(method);
    if method == Method::Dense as u8 {
        out.extend_from_slice(&DENSE_MARK);
    }
    put_varint(raw_bytes as u64, out);
}

/// Appends the bytes of a frame to `out`.
///
/// # Errors
/// `Malformed` when it is not one.
pub fn decode(frame: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
    let (method, raw_bytes, stream) = parse(frame)?;
    match method {
        None => out.extend_from_slice(stream),
        Some(method) => decompress_onto(method, stream, raw_bytes, out)?,
    }
    Ok(())
}

/// Writes the bytes of a frame to the start of `target`; returns how many they are.
///
/// # Errors
/// `Malformed` when it is not one, or has more.
pub fn decode_into(frame: &[u8], target: &mut [u8]) -> Result<usize, CodecError> {
    let (method, raw_bytes, stream) = parse(frame)?;
    let target = target.get_mut(..raw_bytes).ok_or(CodecError::Malformed)?;
    match method {
        None => target.copy_from_slice(stream),
        Some(method) => decompress(method, stream, target)?,
    }
    Ok(raw_bytes)
}

/// Method, raw length and stream of a frame.
fn parse(frame: &[u8]) -> Result<(Option<Method>, usize, &[u8]), CodecError> {
    let mut rest = frame;
    let method = take_u8(&mut rest)?;
    if method >= Method::Dense as u8 {
        rest = rest.strip_prefix(&DENSE_MARK).ok_or(CodecError::Malformed)?;
    }
    if method == DENSE {
        return Ok((None, rest.len(), rest));
    }
    let raw_bytes = take_varint(&mut rest)? as usize;
    if method == 0 {
        return if rest.len() == raw_bytes { Ok((None, raw_bytes, rest)) } else { Err(CodecError::Malformed) };
    }
    let method = Method::from_u8(method).ok_or(CodecError::Malformed)?;
    if raw_bytes > FRAME_BYTES_MAX { Err(CodecError::Malformed) } else { Ok((Some(method), raw_bytes, rest)) }
}

/// Appends a row of a toast tree in the form in which its value was stored: a dense frame becomes a waiting one.
pub fn copy_as_written(row: &[u8], out: &mut Vec<u8>) {
    match density(row) {
        Density::Dense => encode(Some(Method::Dense), 0, &row[1 + DENSE_MARK.len()..], out),
        Density::Waiting | Density::Foreign => out.extend_from_slice(row),
    }
}

/// Appends a frame's stream in the form in which its value was stored: a dense frame's is recompressed by lz4.
pub fn stream_as_written(frame: &[u8], out: &mut Vec<u8>) {
    let stream = &frame[frame.len() - stream_bytes(&[frame])..];
    if density(frame) != Density::Dense || !compress(Method::Dense, 0, stream, out) {
        out.extend_from_slice(stream);
    }
}

/// Bytes of a frame's stream: without its header, which the first part has.
pub fn stream_bytes(parts: &[&[u8]]) -> usize {
    let Some((first, others)) = parts.split_first() else { return 0 };
    let mut stream = *first;
    let density = density(first);
    let method_bytes = if density == Density::Foreign { 1 } else { 1 + DENSE_MARK.len() };
    stream = stream.get(method_bytes..).unwrap_or_default();
    let has_length = density != Density::Dense;
    if !first.is_empty() && (!has_length || take_varint(&mut stream).is_ok()) {
        stream.len() + others.iter().map(|part| part.len()).sum::<usize>()
    } else {
        0
    }
}

pub(crate) fn take_u8(bytes: &mut &[u8]) -> Result<u8, CodecError> {
    let (first, rest) = bytes.split_first().ok_or(CodecError::Malformed)?;
    *bytes = rest;
    Ok(*first)
}

pub(crate) fn take_varint(bytes: &mut &[u8]) -> Result<u64, CodecError> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = take_u8(bytes)?;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(CodecError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_read_back_with_every_method() {
        let text = b"melba toast, sliced thin; ".repeat(500);
        let noise: Vec<u8> =
            (0..5000u64).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8 ^ ((i * i) >> 5) as u8).collect();
        for raw in [&text[..], &noise, b"", b"x"] {
            for method in Method::ALL.into_iter().map(Some).chain([None]) {
                let mut frame = Vec::new();
                encode(method, 3, raw, &mut frame);
                assert!(frame.len() <= raw.len() + 6);
                let mut back = b"before".to_vec();
                decode(&frame, &mut back).unwrap();
                assert_eq!(&back[6..], raw);
                let mut target = vec![9; raw.len() + 1];
                assert_eq!(decode_into(&frame, &mut target), Ok(raw.len()));
                assert!(target[..raw.len()] == *raw && target[raw.len()] == 9);
                assert!(raw.is_empty() || decode_into(&frame, &mut target[1..raw.len()]).is_err());
                assert_eq!(stream_bytes(&[&frame]) == raw.len(), frame[0] == 0);
                let mut buffer = Vec::new();
                assert_eq!(encode_parts(method, 3, raw, &mut buffer).concat(), frame);
            }
        }
    }

    #[test]
    fn waiting_frames_become_dense_ones() {
        let raw = b"melba toast, sliced thin; ".repeat(50);
        let (mut waiting, mut dense, mut back) = (Vec::new(), Vec::new(), Vec::new());
        encode(Some(Method::Dense), 0, &raw, &mut waiting);
        assert_eq!(density(&waiting), Density::Waiting);
        densify(&waiting, &mut dense).unwrap();
        assert_eq!((density(&dense), stream_bytes(&[&dense]), dense.len()), (Density::Dense, raw.len(), raw.len() + 3));
        decode(&dense, &mut back).unwrap();
        assert_eq!(back, raw);
        for frame in [&waiting, &dense] {
            let mut stream = Vec::new();
            stream_as_written(frame, &mut stream);
            assert!(waiting.ends_with(&stream) && stream.len() == stream_bytes(&[&waiting]));
            let mut copy = Vec::new();
            copy_as_written(frame, &mut copy);
            assert_eq!(copy, waiting);
        }
        for method in [None, Some(Method::Pglz), Some(Method::Lz4), Some(Method::Zstd)] {
            let mut frame = Vec::new();
            encode(method, 3, &raw, &mut frame);
            assert_eq!(density(&frame), Density::Foreign);
        }
        // Characters rows: numbers up to those of a frame.
        for characters in [4, 5, 0xDE04, 0xDE05, FRAME_BYTES as u32] {
            assert_eq!(density(&characters.to_le_bytes()), Density::Foreign);
        }
        assert_eq!(density(b""), Density::Foreign);
    }

    #[test]
    fn damaged_frames_are_errors() {
        let mut frame = Vec::new();
        for method in Method::ALL {
            frame.clear();
            encode(Some(method), 3, &b"melba toast, sliced thin; ".repeat(500), &mut frame);
            for cut in 0..frame.len() {
                assert!(decode(&frame[..cut], &mut Vec::new()).is_err(), "cut at {cut}");
                assert!(decode_into(&frame[..cut], &mut vec![0; 20_000]).is_err(), "cut at {cut}");
            }
        }
        frame[0] = 9;
        assert!(decode(&frame, &mut Vec::new()).is_err());
        assert!(decode(&[3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], &mut Vec::new()).is_err());
    }
}
