//! Decompression.

use super::MATCH_MIN;
use crate::CodecError;

/// Bytes copied at a time, where there is room for so many.
const STRIDE: usize = 16;

/// Decompresses `source` into `target`, stopping when the target is full (a prefix of a value is decoded by a shorter target);
/// returns the bytes written.
pub fn decompress(source: &[u8], target: &mut [u8]) -> Result<usize, CodecError> {
    let mut from = 0;
    let mut at = 0;
    while from < source.len() {
        let control = source[from];
        from += 1;
        if control == 0
            && let (Some(literals), Some(room)) = (source.get(from..from + 8), target.get_mut(at..at + 8))
        {
            room.copy_from_slice(literals);
            from += 8;
            at += 8;
            continue;
        }
        for bit in 0..8 {
            if at == target.len() {
                return Ok(at);
            }
            let Some(&first) = source.get(from) else {
                return if bit > 0 { Ok(at) } else { Err(CodecError::Malformed) };
            };
            from += 1;
            if control >> bit & 1 == 0 {
                target[at] = first;
                at += 1;
                continue;
            }
            let &low = source.get(from).ok_or(CodecError::Malformed)?;
            from += 1;
            let offset = usize::from(first & 0xF0) << 4 | usize::from(low);
            let mut length = usize::from(first & 0x0F) + MATCH_MIN;
            if length == 18 {
                length += usize::from(*source.get(from).ok_or(CodecError::Malformed)?);
                from += 1;
            }
            if offset == 0 || offset > at {
                return Err(CodecError::Malformed);
            }
            let length = length.min(target.len() - at);
            repeat(target, at, offset, length);
            at += length;
        }
    }
    Ok(at)
}

/// Writes `length` bytes at `at`, each the one `offset` before it.
#[inline(always)]
fn repeat(target: &mut [u8], at: usize, offset: usize, length: usize) {
    let end = at + length;
    if offset >= STRIDE && end + STRIDE <= target.len() {
        // Whole strides, the last of which may write beyond the match: what follows overwrites it.
        let mut to = at;
        while to < end {
            let mut stride = [0; STRIDE];
            stride.copy_from_slice(&target[to - offset..to - offset + STRIDE]);
            target[to..to + STRIDE].copy_from_slice(&stride);
            to += STRIDE;
        }
        return;
    }
    if offset == 1 {
        let byte = target[at - 1];
        target[at..end].fill(byte);
        return;
    }
    // The match may repeat what it has just written: what is there doubles with each copy.
    let start = at - offset;
    let mut to = at;
    while to < end {
        let n = (to - start).min(end - to);
        target.copy_within(start..start + n, to);
        to += n;
    }
}
