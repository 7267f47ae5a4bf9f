//! The binary format.
//!
//! ```text
//! file   "PGCOPY\n\377\r\n\0" | i32 flags | i32 length of the extension | extension | tuple* | (i16 -1)?
//! tuple  i16 fields | (i32 length (-1: null) | bytes)*
//! ```

use melba_types::{Result, bail, err};

pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// A step of reading.
pub(super) enum Step {
    /// More input is needed.
    Wait,
    /// A tuple of this many bytes begins the buffer, whole or up to its first field without a valid length.
    Tuple(usize),
    /// The trailer.
    End,
}

fn i32_at(buffer: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(buffer.get(at..at + 4)?.try_into().ok()?))
}

/// Bytes of the header, once they are all there. `at_end`: there is no more input.
///
/// # Errors
/// 22P04 for anything but a COPY file without OIDs.
pub(super) fn header(buffer: &[u8], at_end: bool) -> Result<Option<usize>> {
    let known = buffer.len().min(SIGNATURE.len());
    if buffer[..known] != SIGNATURE[..known] || at_end && known < SIGNATURE.len() {
        bail!(BAD_COPY_FILE_FORMAT, "COPY file signature not recognized");
    }
    let missing = |what: &str| match at_end {
        true => Err(err!(BAD_COPY_FILE_FORMAT, "invalid COPY file header ({what})")),
        false => Ok(None),
    };
    let Some(flags) = i32_at(buffer, SIGNATURE.len()) else { return missing("missing flags") };
    if flags & (1 << 16) != 0 {
        bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (WITH OIDS)");
    }
    if flags & !0xffff != 0 {
        bail!(BAD_COPY_FILE_FORMAT, "unrecognized critical flags in COPY file header");
    }
    let Some(extension) = i32_at(buffer, SIGNATURE.len() + 4) else { return missing("missing length") };
    let Ok(extension) = usize::try_from(extension) else {
        bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (missing length)");
    };
    let length = SIGNATURE.len() + 8 + extension;
    if buffer.len() >= length { Ok(Some(length)) } else { missing("wrong length") }
}

/// The first bytes of the buffer. At the end of the input, a tuple that is cut off is taken as far as it is there, and a rest too
/// short for the number of fields is none.
pub(super) fn step(buffer: &[u8], columns: usize, at_end: bool) -> Result<Step> {
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
        let cut_off = if at_end { Step::Tuple(buffer.len()) } else { Step::Wait };
        let Some(length) = i32_at(buffer, at) else { return Ok(cut_off) };
        at += 4;
        match length {
            -1 => {}
            0.. => at += length as usize,
            _ => return Ok(Step::Tuple(at)),
        }
        if at > buffer.len() {
            return Ok(cut_off);
        }
    }
    Ok(Step::Tuple(at))
}

/// Where the fields of a tuple begin.
pub(super) const FIELDS: usize = 2;

/// The tuple's field that begins at `at`, which moves behind it; `None` for NULL.
///
/// # Errors
/// 22P04 for a field that is cut off, or has no valid length.
pub(super) fn field<'t>(tuple: &'t [u8], at: &mut usize) -> Result<Option<&'t [u8]>> {
    let cut_off = || err!(BAD_COPY_FILE_FORMAT, "unexpected EOF in COPY data");
    let length = i32_at(tuple, *at).ok_or_else(cut_off)?;
    *at += 4;
    if length == -1 {
        return Ok(None);
    }
    let Ok(length) = usize::try_from(length) else {
        bail!(BAD_COPY_FILE_FORMAT, "invalid field size");
    };
    let field = tuple.get(*at..*at + length).ok_or_else(cut_off)?;
    *at += length;
    Ok(Some(field))
}
