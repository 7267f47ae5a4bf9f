//! Splits the byte stream after startup into messages: a type byte, an `Int32` length that counts itself, a body.

use melba_types::{DbError, Result, Severity, err};

/// One message as it lies in the read buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MessageFrame {
    pub tag: u8,
    /// Where the body starts, from the start of the frame.
    pub body: usize,
    /// Where the next frame starts.
    pub end: usize,
}

const HEADER_BYTES: usize = 5;
/// Messages of unbounded size (queries, values): PostgreSQL's limit of 1 GB less one byte.
const LARGE_BYTES_MAX: usize = 0x3fff_fffe;
/// Messages that hold a name or nothing.
const SMALL_BYTES_MAX: usize = 10_000;

fn body_bytes_max(tag: u8) -> Option<usize> {
    match tag {
        b'Q' | b'P' | b'B' | b'F' | b'd' => Some(LARGE_BYTES_MAX),
        b'p' => Some(65_535),
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' => Some(SMALL_BYTES_MAX),
        _ => None,
    }
}

/// The result of `next_frame`.
#[derive(Debug, PartialEq)]
pub enum NextFrame {
    Frame(MessageFrame),
    /// The buffer must hold at least this many bytes before there is a frame.
    Need(usize),
    /// A length that no message has: the start of the next one is unknown. PostgreSQL ends such a connection without a message.
    Lost,
}

/// The first frame of `buffer`. An unknown type byte is a FATAL error.
pub fn next_frame(buffer: &[u8]) -> Result<NextFrame> {
    let Some(&tag) = buffer.first() else { return Ok(NextFrame::Need(HEADER_BYTES)) };
    let Some(max) = body_bytes_max(tag) else {
        return Err(fatal(err!(PROTOCOL_VIOLATION, "invalid frontend message type {tag}")));
    };
    let Some(length) = buffer.get(1..HEADER_BYTES) else { return Ok(NextFrame::Need(HEADER_BYTES)) };
    let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if length < 4 || length - 4 > max {
        return Ok(NextFrame::Lost);
    }
    let end = length + 1;
    if buffer.len() < end {
        Ok(NextFrame::Need(end))
    } else {
        Ok(NextFrame::Frame(MessageFrame { tag, body: HEADER_BYTES, end }))
    }
}

pub(crate) fn fatal(error: DbError) -> DbError {
    error.severity(Severity::Fatal)
}
