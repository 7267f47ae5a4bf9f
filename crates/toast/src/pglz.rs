//! PostgreSQL's own compression method, byte for byte.
//!
//! The stream, as PostgreSQL documents it:
//!
//! ```text
//! control byte   8 flags, lowest bit first, one an item that follows
//! item, flag 0   one literal byte
//! item, flag 1   oooollll oooooooo [eeeeeeee]
//!                offset back (12 bits), length - 3; a length nibble of 15 adds one byte: length - 18
//! ```
//!
//! The compressor reproduces the choices of PostgreSQL's default strategy (which match is taken, when it gives up), so that sizes
//! shown to users are the same.

use crate::CodecError;

/// Shorter inputs are refused.
const INPUT_BYTES_MIN: usize = 32;
/// The stream must be smaller than this share of the input.
const RESULT_PERCENT_MAX: usize = 75;
/// Give up when this much was emitted without any match.
const FIRST_SUCCESS_BY: usize = 1024;
/// A match this long ends the search; each candidate lowers the bar by a tenth.
const GOOD_MATCH: usize = 128;
const GOOD_DROP_PERCENT: usize = 10;
const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 273;
/// Exclusive.
const OFFSET_MAX: usize = 0x0FFF;
/// Positions remembered; a power of two, at least `OFFSET_MAX`.
const HISTORY: usize = 4096;

/// Appends the compressed form of `source` to `out`. False, with `out` as it was, when the strategy refuses: the input is
/// shorter than 32 bytes, shrinks by less than a quarter, or shows no repetition in its first kilobyte.
#[must_use]
pub fn compress(source: &[u8], out: &mut Vec<u8>) -> bool {
    // PostgreSQL's lengths are signed 32-bit numbers.
    if source.len() < INPUT_BYTES_MIN || source.len() > i32::MAX as usize {
        return false;
    }
    let result_max = match source.len() {
        large if large > i32::MAX as usize / 100 => large / 100 * RESULT_PERCENT_MAX,
        small => small * RESULT_PERCENT_MAX / 100,
    };
    let start = out.len();
    let mut stream = Stream { out, control_at: None, control_bit: 0 };
    let mut history = History::new(source);
    let mut found = false;
    let mut at = 0;
    while at < source.len() {
        let written = stream.out.len() - start;
        if written >= result_max || (!found && written >= FIRST_SUCCESS_BY) {
            stream.out.truncate(start);
            return false;
        }
        match history.find(at) {
            Some((length, offset)) => {
                stream.tag(length, offset);
                for _ in 0..length {
                    history.add(at);
                    at += 1;
                }
                found = true;
            }
            None => {
                stream.literal(source[at]);
                history.add(at);
                at += 1;
            }
        }
    }
    if out.len() - start >= result_max {
        out.truncate(start);
        return false;
    }
    true
}

/// The bytes written so far and where the flags of the next items go.
struct Stream<'a> {
    out: &'a mut Vec<u8>,
    control_at: Option<usize>,
    control_bit: u8,
}

impl Stream<'_> {
    fn flag(&mut self, on: bool) {
        let at = match self.control_at {
            Some(at) if self.control_bit != 0 => at,
            _ => {
                self.out.push(0);
                self.control_bit = 1;
                self.out.len() - 1
            }
        };
        self.control_at = Some(at);
        if on {
            self.out[at] |= self.control_bit;
        }
        self.control_bit <<= 1;
    }

    fn literal(&mut self, byte: u8) {
        self.flag(false);
        self.out.push(byte);
    }

    fn tag(&mut self, length: usize, offset: usize) {
        self.flag(true);
        let high = ((offset & 0xF00) >> 4) as u8;
        let low = (offset & 0xFF) as u8;
        if length > 17 {
            self.out.extend_from_slice(&[high | 0x0F, low, (length - 18) as u8]);
        } else {
            self.out.extend_from_slice(&[high | (length - MATCH_MIN) as u8, low]);
        }
    }
}

/// Where each hash of four bytes was last seen, and from each position the one before it with the same hash.
struct History<'a> {
    source: &'a [u8],
    mask: usize,
    /// Position + 1; 0 is none.
    newest: Vec<u32>,
    older: Vec<u32>,
}

impl<'a> History<'a> {
    fn new(source: &'a [u8]) -> History<'a> {
        let hashes = match source.len() {
            ..128 => 512,
            128..256 => 1024,
            256..512 => 2048,
            512..1024 => 4096,
            _ => 8192,
        };
        History { source, mask: hashes - 1, newest: vec![0; hashes], older: vec![0; HISTORY] }
    }

    fn hash(&self, at: usize) -> usize {
        let byte = |i: usize| self.source[at + i] as usize;
        let hash = if self.source.len() - at < 4 { byte(0) } else { byte(0) << 6 ^ byte(1) << 4 ^ byte(2) << 2 ^ byte(3) };
        hash & self.mask
    }

    fn add(&mut self, at: usize) {
        let hash = self.hash(at);
        self.older[at % HISTORY] = self.newest[hash];
        self.newest[hash] = at as u32 + 1;
    }

    /// The match that PostgreSQL would take for the bytes at `at`: (length, offset).
    fn find(&self, at: usize) -> Option<(usize, usize)> {
        let mut good_match = GOOD_MATCH;
        let (mut length, mut offset) = (0, 0);
        let mut candidate = self.newest[self.hash(at)];
        while candidate != 0 {
            let from = candidate as usize - 1;
            let back = at - from;
            if back >= OFFSET_MAX {
                break;
            }
            let this = self.common(from, at, length);
            if this > length {
                length = this;
                offset = back;
            }
            candidate = self.older[from % HISTORY];
            // An entry whose slot was reused points forward; PostgreSQL has unlinked it by then.
            if candidate as usize > from {
                break;
            }
            if candidate != 0 {
                if length >= good_match {
                    break;
                }
                good_match -= good_match * GOOD_DROP_PERCENT / 100;
            }
        }
        (length >= MATCH_MIN).then_some((length, offset))
    }

    /// Length of the common run, 0 when it cannot beat `best`.
    fn common(&self, from: usize, at: usize, best: usize) -> usize {
        let limit = (self.source.len() - at).min(MATCH_MAX);
        if best >= 16 && (best > limit || self.source[from..from + best] != self.source[at..at + best]) {
            return 0;
        }
        let pairs = self.source[from..].iter().zip(&self.source[at..at + limit]);
        pairs.take_while(|(a, b)| a == b).count()
    }
}

/// Decompresses `source` into `target`, stopping when the target is full (a prefix of a value is decoded by a shorter target);
/// returns the bytes written.
pub fn decompress(source: &[u8], target: &mut [u8]) -> Result<usize, CodecError> {
    let mut bytes = source.iter().copied();
    let mut at = 0;
    while let Some(control) = bytes.next() {
        for bit in 0..8 {
            if at == target.len() {
                return Ok(at);
            }
            let Some(first) = bytes.next() else {
                return if bit > 0 { Ok(at) } else { Err(CodecError::Malformed) };
            };
            if control >> bit & 1 == 0 {
                target[at] = first;
                at += 1;
                continue;
            }
            let low = bytes.next().ok_or(CodecError::Malformed)?;
            let offset = usize::from(first & 0xF0) << 4 | usize::from(low);
            let mut length = usize::from(first & 0x0F) + MATCH_MIN;
            if length == 18 {
                length += usize::from(bytes.next().ok_or(CodecError::Malformed)?);
            }
            if offset == 0 || offset > at {
                return Err(CodecError::Malformed);
            }
            let length = length.min(target.len() - at);
            // Overlapping on purpose: a match may repeat what it has just written.
            for _ in 0..length {
                target[at] = target[at - offset];
                at += 1;
            }
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests;
