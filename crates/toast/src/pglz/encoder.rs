//! Compression by PostgreSQL's default strategy.

use std::cell::RefCell;
use std::ops::Range;

use super::MATCH_MIN;

/// Shorter inputs are refused.
const INPUT_BYTES_MIN: usize = 32;
/// The stream must be smaller than this share of the input.
const RESULT_PERCENT_MAX: usize = 75;
/// Give up when this much was emitted without any match.
const FIRST_SUCCESS_BY: usize = 1024;
/// A match this long ends the search; each candidate lowers the bar by a tenth.
const GOOD_MATCH: usize = 128;
const GOOD_DROP_PERCENT: usize = 10;
const MATCH_MAX: usize = 273;
/// Exclusive.
const OFFSET_MAX: usize = 0x0FFF;
/// Positions remembered; a power of two, at least `OFFSET_MAX`.
const HISTORY: usize = 4096;
const HASHES_MAX: usize = 8192;

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
    HISTORIES.with_borrow_mut(|history| run(source, out, result_max, FIRST_SUCCESS_BY, history))
}

/// The same without the strategy's demands: refuses only values that would not become smaller.
#[must_use]
pub fn compress_always(source: &[u8], out: &mut Vec<u8>) -> bool {
    if source.len() > i32::MAX as usize {
        return false;
    }
    HISTORIES.with_borrow_mut(|history| run(source, out, source.len(), usize::MAX, history))
}

thread_local! {
    static HISTORIES: RefCell<History> = RefCell::new(History::new());
}

fn run(source: &[u8], out: &mut Vec<u8>, result_max: usize, first_success_by: usize, history: &mut History) -> bool {
    history.reset(source.len());
    let start = out.len();
    // The last items before giving up may pass the limit by a control byte and a match.
    out.reserve(result_max + 8);
    let mut stream = Stream { out, control_at: 0, control_bit: 0 };
    let mut found = false;
    let mut at = 0;
    while at < source.len() {
        let written = stream.out.len() - start;
        if written >= result_max || (!found && written >= first_success_by) {
            out.truncate(start);
            return false;
        }
        let hash = history.hash(source, at);
        match history.find(source, at, hash) {
            Some((length, offset)) => {
                stream.tag(length, offset);
                history.add(at, hash);
                history.add_all(source, at + 1..at + length);
                at += length;
                found = true;
            }
            None => {
                stream.literal(source[at]);
                history.add(at, hash);
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

/// The bytes written so far and the place of the next items' flags.
struct Stream<'a> {
    out: &'a mut Vec<u8>,
    control_at: usize,
    /// 0: the next item begins another control byte.
    control_bit: u8,
}

impl Stream<'_> {
    #[inline]
    fn flag(&mut self, on: bool) {
        if self.control_bit == 0 {
            self.control_at = self.out.len();
            self.control_bit = 1;
            self.out.push(0);
        }
        if on {
            self.out[self.control_at] |= self.control_bit;
        }
        self.control_bit <<= 1;
    }

    #[inline]
    fn literal(&mut self, byte: u8) {
        self.flag(false);
        self.out.push(byte);
    }

    #[inline]
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
struct History {
    mask: usize,
    /// Position + 1; 0 is none.
    newest: Box<[u32; HASHES_MAX]>,
    older: Box<[u32; HISTORY]>,
}

impl History {
    fn new() -> History {
        History { mask: 0, newest: Box::new([0; HASHES_MAX]), older: Box::new([0; HISTORY]) }
    }

    fn reset(&mut self, source_bytes: usize) {
        let hashes = match source_bytes {
            ..128 => 512,
            128..256 => 1024,
            256..512 => 2048,
            512..1024 => 4096,
            _ => HASHES_MAX,
        };
        self.mask = hashes - 1;
        self.newest[..hashes].fill(0);
        // `older` is only read through a link of `newest`, so it needs no reset: a chain ends where it was begun.
    }

    #[inline]
    fn hash(&self, source: &[u8], at: usize) -> usize {
        let hash = match source[at..] {
            [a, b, c, d, ..] => usize::from(a) << 6 ^ usize::from(b) << 4 ^ usize::from(c) << 2 ^ usize::from(d),
            [a, ..] => usize::from(a),
            [] => 0,
        };
        hash & self.mask & (HASHES_MAX - 1)
    }

    #[inline]
    fn add_all(&mut self, source: &[u8], range: Range<usize>) {
        let mut at = range.start;
        if let Some(bytes) = source.get(range.start..range.end + 3) {
            for window in bytes.windows(4) {
                let [a, b, c, d] = [window[0], window[1], window[2], window[3]].map(usize::from);
                self.add(at, (a << 6 ^ b << 4 ^ c << 2 ^ d) & self.mask & (HASHES_MAX - 1));
                at += 1;
            }
        }
        for at in at..range.end {
            self.add(at, self.hash(source, at));
        }
    }

    #[inline]
    fn add(&mut self, at: usize, hash: usize) {
        self.older[at % HISTORY] = self.newest[hash];
        self.newest[hash] = at as u32 + 1;
    }

    /// The match that PostgreSQL would take for the bytes at `at`: (length, offset).
    #[inline]
    fn find(&self, source: &[u8], at: usize, hash: usize) -> Option<(usize, usize)> {
        let mut good_match = GOOD_MATCH;
        let (mut length, mut offset) = (0, 0);
        let limit = (source.len() - at).min(MATCH_MAX);
        let here = &source[at..at + limit];
        let mut candidate = self.newest[hash];
        while candidate != 0 {
            let from = candidate as usize - 1;
            let back = at - from;
            if back >= OFFSET_MAX {
                break;
            }
            // Only a longer match counts, and it agrees in the byte after the best one's end.
            if length < limit && source[from + length] == here[length] {
                let this = common(&source[from..], here);
                if this > length {
                    length = this;
                    offset = back;
                }
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
}

/// Length of the run that both begin with.
#[inline]
fn common(a: &[u8], b: &[u8]) -> usize {
    let mut length = 0;
    for (x, y) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        let word =
            |bytes: &[u8]| u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]);
        let different = word(x) ^ word(y);
        if different != 0 {
            return length + (different.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    length + a[length..].iter().zip(&b[length..]).take_while(|(x, y)| x == y).count()
}
