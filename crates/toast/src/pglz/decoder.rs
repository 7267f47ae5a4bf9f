//! Decompression.

use super::MATCH_MIN;
use crate::CodecError;

/// Bytes copied at a time, where there is room for them.
const STRIDE: usize = 16;
/// The longest match: a nibble of 15, and a byte.
const MATCH_MAX: usize = 18 + 255;
/// The most that a control byte's items can read of the source and write to the target, with the bytes that copies write beyond their end.
const SOURCE_MARGIN: usize = 1 + 8 * 3 + STRIDE;
const TARGET_MARGIN: usize = 8 * MATCH_MAX + STRIDE;

/// Decompresses `source` into `target`, stopping when the target is full (a prefix of a value is decoded by a shorter target);
/// returns the bytes written.
pub fn decompress(source: &[u8], target: &mut [u8]) -> Result<usize, CodecError> {
    let (mut from, mut at) = decompress_inner(source, target)?;
    while from < source.len() {
        let control = source[from];
        from += 1;
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

/// Decompresses as long as a control byte's items surely stay within both buffers, without looking at every byte; returns where
/// it stopped in each.
fn decompress_inner(source: &[u8], target: &mut [u8]) -> Result<(usize, usize), CodecError> {
    let (mut from, mut at) = (0, 0);
    let source_end = source.len().saturating_sub(SOURCE_MARGIN);
    let target_end = target.len().saturating_sub(TARGET_MARGIN);
    let (input, output) = (source.as_ptr(), target.as_mut_ptr());
    while from < source_end && at < target_end {
        // SAFETY: `from` is at least SOURCE_MARGIN and `at` at least TARGET_MARGIN before the end of their buffers, and the eight
        // items of one control byte advance them by less (1 + 8 * 3 bytes read; 8 * MATCH_MAX bytes written), a copy going at
        // most STRIDE beyond. Matches begin at or behind the target's start, since `offset` is checked against `at`.
        unsafe {
            // A flag behind the eight marks the end.
            let mut flags = u32::from(*input.add(from)) | 0x100;
            from += 1;
            loop {
                // Literals up to the next match, all eight at once.
                let literals = flags.trailing_zeros() as usize;
                std::ptr::copy_nonoverlapping(input.add(from), output.add(at), 8);
                from += literals;
                at += literals;
                flags >>= literals;
                if flags == 1 {
                    break;
                }
                flags >>= 1;
                let first = *input.add(from);
                let offset = usize::from(first & 0xF0) << 4 | usize::from(*input.add(from + 1));
                let mut length = usize::from(first & 0x0F) + MATCH_MIN;
                from += 2;
                if length == 18 {
                    length += usize::from(*input.add(from));
                    from += 1;
                }
                if offset == 0 || offset > at {
                    return Err(CodecError::Malformed);
                }
                copy_match(output.add(at), offset, length);
                at += length;
                if flags == 1 {
                    break;
                }
            }
        }
    }
    Ok((from, at))
}

/// Writes `length` bytes at `to`, each the one `offset` before it, and up to STRIDE bytes of anything behind them.
///
/// # Safety
/// There are `offset` bytes before `to`, and room for `length + STRIDE` bytes at it.
#[inline(always)]
unsafe fn copy_match(to: *mut u8, offset: usize, length: usize) {
    // SAFETY: as the caller promises; no stride is longer than its distance, so that source and target do not overlap. A
    // distance is at most 14, for an offset of 7, and then begins 6 bytes before `to`: behind `from`, as all others.
    unsafe {
        let from = to.sub(offset);
        if offset >= STRIDE {
            let mut done = 0;
            while done < length {
                std::ptr::copy_nonoverlapping(from.add(done), to.add(done), STRIDE);
                done += STRIDE;
            }
        } else if offset >= 8 {
            let mut done = 0;
            while done < length {
                std::ptr::copy_nonoverlapping(from.add(done), to.add(done), 8);
                done += 8;
            }
        } else {
            for i in 0..8 {
                *to.add(i) = *from.add(i);
            }
            // A multiple of the offset that is not less than a stride of 8 leads to the same bytes.
            let distance = offset * 8usize.div_ceil(offset);
            let mut done = 8;
            while done < length {
                std::ptr::copy_nonoverlapping(to.add(done).sub(distance), to.add(done), 8);
                done += 8;
            }
        }
    }
}

/// Writes `length` bytes at `at`, each the one `offset` before it.
fn repeat(target: &mut [u8], at: usize, offset: usize, length: usize) {
    let end = at + length;
    // The match may repeat the bytes it has just written: the copied part doubles each time.
    let start = at - offset;
    let mut to = at;
    while to < end {
        let n = (to - start).min(end - to);
        target.copy_within(start..start + n, to);
        to += n;
    }
}
