//! The binary format.
//!
//! ```text
//! file   "PGCOPY\n\377\r\n\0" | i32 flags | i32 length of the extension | extension | tuple* | i16 -1
//! tuple  i16 fields | (i32 length (-1: null) | bytes)*
//! ```

use melba_types::{Result, bail};

pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// A step of reading.
pub(super) enum Step {
    /// More input is needed.
    Wait,
    /// A tuple of this many bytes begins the buffer.
    Tuple(usize),
    /// The trailer.
    End,
}

fn i32_at(buffer: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(buffer.get(at..at + 4)?.try_into().ok()?))
}

/// Bytes of the header, once they are all there.
///
/// # Errors
/// 22P04 for anything but a COPY file without OIDs.
pub(super) fn header(buffer: &[u8]) -> Result<Option<usize>> {
    let known = buffer.len().min(SIGNATURE.len());
    if buffer[..known] != SIGNATURE[..known] {
        bail!(BAD_COPY_FILE_FORMAT, "COPY file signature not recognized");
    }
    let (Some(flags), Some(extension)) = (i32_at(buffer, 11), i32_at(buffer, 15)) else { return Ok(None) };
    if flags & (1 << 16) != 0 {
        bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (WITH OIDS)");
    }
    if flags & !0xffff != 0 {
        bail!(BAD_COPY_FILE_FORMAT, "unrecognized critical flags in COPY file header");
    }
    let Ok(extension) = usize::try_from(extension) else {
        bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (missing length)");
    };
    let length = SIGNATURE.len() + 8 + extension;
    Ok((buffer.len() >= length).then_some(length))
}

/// The first bytes of the buffer.
pub(super) fn step(buffer: &[u8], columns: usize) -> Result<Step> {
    let Some(count) = buffer.get(0..2) else { return Ok(Step::Wait) };
    let count = i16::from_be_bytes([count[0], count[1]]);
    if count == -1 {
        return Ok(Step::End);
    }
    if count as usize != columns {
        bail!(BAD_COPY_FILE_FORMAT, "row field count is {count}, expected {columns}");
    }
    let mut at = 2;
    for _ in 0..columns {
        let Some(length) = i32_at(buffer, at) else { return Ok(Step::Wait) };
        at += 4;
        match length {
            -1 => {}
            0.. => at += length as usize,
            _ => bail!(BAD_COPY_FILE_FORMAT, "invalid field size"),
        }
    }
    Ok(if buffer.len() >= at { Step::Tuple(at) } else { Step::Wait })
}

/// The fields of a whole tuple.
pub(super) fn fields(tuple: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut at = 2;
    std::iter::from_fn(move || {
        let length = i32_at(tuple, at)?;
        at += 4;
        if length < 0 {
            return Some(None);
        }
        let field = tuple.get(at..at + length as usize)?;
        at += length as usize;
        Some(Some(field))
    })
}
