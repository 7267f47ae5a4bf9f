//! Symbol tables for short strings, after FSST (Boncz, Neumann, Leis: "FSST: Fast Random Access String Compression", VLDB 2020): the up to
//! 255 most rewarding byte sequences of 1 to 8 bytes get a code of one byte, so that every string is coded alone.
//!
//! ```text
//! tag u8 (5) | symbols u8 | length u8, bytes (for each symbol)
//! ```
//!
//! A coded string is a sequence of codes; code 255 is followed by a literal byte.

use hashbrown::HashMap;
use melba_types::ByteStrings;

use crate::hash::load_short;
use melba_types::bytes::ByteReader;

const TAG_SYMBOLS: u8 = 5;
const ESCAPE: u8 = 255;
const SYMBOL_BYTES_MAX: usize = 8;
/// Rounds of training: each lets symbols grow to twice their length.
const ROUNDS: usize = 5;
const SAMPLE_BYTES: usize = 16 << 10;
/// Slots for symbols of three bytes and more, each found by its first three; a power of two.
const SLOTS: usize = 2048;
/// Codes of training: symbols from 0, bytes without a symbol from here.
const LITERALS: usize = 256;
const TRAINING_CODES: usize = 512;
/// A decoder's output grows by this much at a time, beyond the needs of the next string.
const GROWTH_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Symbol {
    /// The bytes, first lowest, the rest zero.
    word: u64,
    length: u8,
}

impl Symbol {
    fn byte(byte: u8) -> Symbol {
        Symbol { word: u64::from(byte), length: 1 }
    }

    /// As much of both, one after the other, as a symbol holds.
    fn join(self, next: Symbol) -> Symbol {
        let length = (self.length + next.length).min(SYMBOL_BYTES_MAX as u8);
        if self.length as usize == SYMBOL_BYTES_MAX {
            return self;
        }
        Symbol { word: (self.word | next.word << (8 * self.length)) & mask(length), length }
    }
}

fn mask(length: u8) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(length))
}

/// The bytes from `at` to `end`, up to eight, and how many there are.
#[inline]
fn load(bytes: &[u8], at: usize, end: usize) -> (u64, usize) {
    let available = (end - at).min(8);
    match bytes.get(at..at + 8).and_then(|word| word.first_chunk::<8>()) {
        Some(word) if available > 0 => (u64::from_le_bytes(*word) & mask(available as u8), available),
        _ => (load_short(&bytes[at..at + available]), available),
    }
}

/// The code of some bytes, and how many bytes it covers: the one or two bytes that are written, the first lowest; from bit 16 on
/// the length covered; from bit 24 on how many bytes are written.
#[derive(Clone, Copy, Debug)]
struct Found(u32);

impl Found {
    fn new(code: usize, length: usize) -> Found {
        let (out, bytes) = if code < LITERALS { (code, 1) } else { (ESCAPE as usize | (code - LITERALS) << 8, 2) };
        Found((out | length << 16 | bytes << 24) as u32)
    }

    /// A code, or a byte's own among `LITERALS`.
    fn code(self) -> usize {
        let out = self.0 as usize & 0xFFFF;
        if self.coded() == 1 { out } else { LITERALS + (out >> 8) }
    }

    #[inline(always)]
    fn out(self) -> u16 {
        self.0 as u16
    }

    #[inline(always)]
    fn length(self) -> usize {
        (self.0 >> 16) as usize & 0xFF
    }

    #[inline(always)]
    fn coded(self) -> usize {
        (self.0 >> 24) as usize
    }
}

/// A long symbol where its hash puts it.
#[derive(Clone, Copy)]
struct SymbolSlot {
    word: u64,
    mask: u64,
    found: Found,
}

/// Equal to nothing.
const EMPTY: SymbolSlot = SymbolSlot { word: 1, mask: 0, found: Found(0) };

/// Codes strings.
pub(crate) struct SymbolEncoder {
    symbols: Vec<Symbol>,
    slots: Box<[SymbolSlot; SLOTS]>,
    /// By two bytes, the first lowest: the pair's symbol, else the first byte's; behind them, by a byte that is the last.
    shorts: Box<[Found; SHORTS]>,
}

/// Where `SymbolEncoder::shorts` has the codes of the last byte.
const LAST_BYTES: usize = 1 << 16;
const SHORTS: usize = LAST_BYTES + 256;

#[inline(always)]
fn slot_of(word: u64) -> usize {
    ((word & 0xFF_FFFF).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % SLOTS
}

impl SymbolEncoder {
    /// A table of the first 255 of `ranked`, all different, that can be found again: of long symbols with one hash, the first.
    fn new(ranked: impl Iterator<Item = Symbol>) -> SymbolEncoder {
        let mut symbols = Vec::new();
        let mut slots = Box::new([EMPTY; SLOTS]);
        let mut singles: [Found; 256] = std::array::from_fn(|byte| Found::new(LITERALS + byte, 1));
        let mut pairs: Vec<(usize, Found)> = Vec::new();
        for symbol in ranked {
            if symbols.len() == ESCAPE as usize {
                break;
            }
            let found = Found::new(symbols.len(), symbol.length as usize);
            match symbol.length {
                1 => singles[symbol.word as usize] = found,
                2 => pairs.push((symbol.word as usize, found)),
                _ => {
                    let slot = &mut slots[slot_of(symbol.word)];
                    if slot.mask != 0 {
                        continue;
                    }
                    *slot = SymbolSlot { word: symbol.word, mask: mask(symbol.length), found };
                }
            }
            symbols.push(symbol);
        }
        let mut shorts: Box<[Found; SHORTS]> = singles.repeat(SHORTS / 256).try_into().expect("as many as fit");
        pairs.into_iter().for_each(|(word, found)| shorts[word] = found);
        SymbolEncoder { symbols, slots, shorts }
    }

    /// Learns a table from a sample of the values.
    pub fn train(values: &ByteStrings) -> SymbolEncoder {
        let sample = sample(values, Sample::Trained);
        let mut encoder = SymbolEncoder::new(std::iter::empty());
        for _ in 0..ROUNDS {
            encoder = encoder.improved(&sample);
        }
        encoder
    }

    /// The match at `at` of bytes that end at `end`: the longest symbol, or a byte's own code.
    fn find(&self, bytes: &[u8], at: usize, end: usize) -> Found {
        let (word, available) = load(bytes, at, end);
        self.find_word(word, available)
    }

    /// The same for the next eight bytes, of which some, at least one, are the string's. Without branches, which could not be foretold.
    #[inline(always)]
    fn find_word(&self, word: u64, available: usize) -> Found {
        let slot = &self.slots[slot_of(word)];
        let is_long = (word & slot.mask == slot.word) & (slot.found.length() <= available);
        let short = if available > 1 { word as usize & 0xFFFF } else { LAST_BYTES + (word as usize & 0xFF) };
        let short = self.shorts[short];
        if is_long { slot.found } else { short }
    }

    fn symbol(&self, code: usize) -> Symbol {
        if code < LITERALS { self.symbols[code] } else { Symbol::byte((code - LITERALS) as u8) }
    }

    /// One round: counts the symbols that this table finds in the sample, and their pairs, and ranks symbols and joined pairs by
    /// the bytes that they would cover.
    fn improved(&self, sample: &[&[u8]]) -> SymbolEncoder {
        let mut gains: HashMap<Symbol, u64> = HashMap::new();
        let mut followers = vec![0u32; TRAINING_CODES * TRAINING_CODES];
        let mut counts = [0u32; TRAINING_CODES];
        for bytes in sample {
            let (mut at, mut before) = (0, None);
            while at < bytes.len() {
                let found = self.find(bytes, at, bytes.len());
                let (code, length) = (found.code(), found.length());
                counts[code] += 1;
                if length > 1 {
                    // Its first byte alone stays a candidate, or it could never come back.
                    counts[LITERALS + bytes[at] as usize] += 1;
                }
                if let Some(before) = before {
                    followers[before * TRAINING_CODES + code] += 1;
                }
                before = Some(code);
                at += length;
            }
        }
        let used: Vec<usize> = (0..TRAINING_CODES).filter(|&code| counts[code] > 0).collect();
        for &first in &used {
            let symbol = self.symbol(first);
            // An escaped byte costs two, so a symbol for it saves more than its length.
            let weight = if symbol.length == 1 { 8 } else { u64::from(symbol.length) };
            *gains.entry(symbol).or_default() += weight * u64::from(counts[first]);
            for &second in &used {
                let count = followers[first * TRAINING_CODES + second];
                if count > 1 && (symbol.length as usize) < SYMBOL_BYTES_MAX {
                    let joined = symbol.join(self.symbol(second));
                    *gains.entry(joined).or_default() += u64::from(joined.length) * u64::from(count);
                }
            }
        }
        let mut ranked: Vec<(u64, Symbol)> = gains.into_iter().map(|(symbol, gain)| (gain, symbol)).collect();
        // Ties by content: the same values result in the same file.
        ranked.sort_unstable_by_key(|&(gain, symbol)| (std::cmp::Reverse(gain), symbol.length, symbol.word));
        SymbolEncoder::new(ranked.into_iter().map(|(_, symbol)| symbol))
    }

    /// Codes all strings, replacing the content of `out`.
    pub fn encode_all(&self, values: &ByteStrings, out: &mut ByteStrings) {
        out.ends.resize(values.len(), 0);
        // A byte takes two at most.
        out.bytes.resize(values.bytes.len() * 2, 0);
        let mut lanes: [Lane; LANES] = std::array::from_fn(|i| Lane::new(values, i));
        // Side by side: a lane's match decides where it continues, and while it waits for that the others work.
        loop {
            let steps = lanes.iter().map(|lane| lane.steps(values)).min().unwrap_or(0);
            if steps == 0 {
                break;
            }
            for _ in 0..steps {
                for lane in &mut lanes {
                    // SAFETY: every lane allows at least `steps` steps.
                    unsafe { lane.step(self, values, out) };
                }
            }
        }
        let mut coded = 0;
        for (lane, first_row) in lanes.iter_mut().zip((0..LANES).map(|i| first_row(values, i))) {
            lane.finish(self, values, out);
            let first = start_of(values, first_row) * 2;
            out.bytes.copy_within(first..lane.coded, coded);
            let gap = first - coded;
            out.ends[first_row..lane.row].iter_mut().for_each(|end| *end -= gap as u32);
            coded = lane.coded - gap;
        }
        out.bytes.truncate(coded);
    }

    /// The coded size of a sample of the values, in thousandths of their size, without the table.
    pub fn measure(&self, values: &ByteStrings) -> usize {
        let (mut raw, mut coded) = (0, 0);
        for bytes in sample(values, Sample::Measured) {
            let mut at = 0;
            while at < bytes.len() {
                let found = self.find(bytes, at, bytes.len());
                coded += found.coded();
                at += found.length();
            }
            raw += bytes.len();
        }
        coded * 1000 / raw.max(1)
    }

    /// Appends the table's content.
    pub fn encode_table(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[TAG_SYMBOLS, self.symbols.len() as u8]);
        for symbol in &self.symbols {
            out.push(symbol.length);
            out.extend_from_slice(&symbol.word.to_le_bytes()[..symbol.length as usize]);
        }
    }
}

/// Strings that are coded side by side.
const LANES: usize = 4;

/// The first row of a lane.
fn first_row(values: &ByteStrings, lane: usize) -> usize {
    values.len() * lane / LANES
}

/// Where a row's bytes begin.
fn start_of(values: &ByteStrings, row: usize) -> usize {
    if row == 0 { 0 } else { values.ends[row - 1] as usize }
}

/// Some of the strings on their way through the encoder.
///
/// Invariant: at most two bytes have been written for each byte that was read, so a lane writes only where no other does.
struct Lane {
    /// The string that is being coded, and where the lane's end.
    row: usize,
    row_end: usize,
    /// Where the lane is in the strings' bytes, and where these end.
    at: usize,
    end: usize,
    /// Where the next code is written.
    coded: usize,
}

impl Lane {
    fn new(values: &ByteStrings, lane: usize) -> Lane {
        let (row, row_end) = (first_row(values, lane), first_row(values, lane + 1));
        let at = start_of(values, row);
        Lane { row, row_end, at, end: start_of(values, row_end), coded: at * 2 }
    }

    /// How many steps may be taken at least before the lane's last bytes, which are for `finish`.
    fn steps(&self, values: &ByteStrings) -> usize {
        let end = self.end.min(values.bytes.len().saturating_sub(SYMBOL_BYTES_MAX));
        end.saturating_sub(self.at + 1) / SYMBOL_BYTES_MAX
    }

    /// Codes the next bytes of a string, or skips an empty one.
    ///
    /// # Safety
    /// At most as many steps as `steps` answered.
    #[inline(always)]
    unsafe fn step(&mut self, encoder: &SymbolEncoder, values: &ByteStrings, out: &mut ByteStrings) {
        // SAFETY: a step covers eight bytes at most, so `at` stays below `end` and eight bytes below the end of all. The lane's last
        // row ends at `end`, so `row` does not pass it. Where `coded` is, there is room for two bytes for each one from `at` on.
        unsafe {
            let word = values.bytes.as_ptr().add(self.at).cast::<u64>().read_unaligned().to_le();
            let available = *values.ends.get_unchecked(self.row) as usize - self.at;
            let found = encoder.find_word(word, available);
            let found = if available == 0 { Found(0) } else { found };
            out.bytes.as_mut_ptr().add(self.coded).cast::<u16>().write_unaligned(found.out().to_le());
            self.coded += found.coded();
            self.at += found.length();
            *out.ends.get_unchecked_mut(self.row) = self.coded as u32;
            self.row += usize::from(found.length() == available);
        }
    }

    /// Codes the rest.
    fn finish(&mut self, encoder: &SymbolEncoder, values: &ByteStrings, out: &mut ByteStrings) {
        while self.row < self.row_end {
            let end = values.ends[self.row] as usize;
            while self.at < end {
                let found = encoder.find(&values.bytes, self.at, end);
                out.bytes[self.coded..self.coded + 2].copy_from_slice(&found.out().to_le_bytes());
                self.coded += found.coded();
                self.at += found.length();
            }
            out.ends[self.row] = self.coded as u32;
            self.row += 1;
        }
    }
}

/// The values to sample.
#[derive(Clone, Copy)]
enum Sample {
    Trained,
    /// Other values: a table codes the values that it was trained on better than others.
    Measured,
}

/// Values spread over all, up to `SAMPLE_BYTES` of them.
fn sample(values: &ByteStrings, which: Sample) -> Vec<&[u8]> {
    let stride = (values.bytes.len() / SAMPLE_BYTES).max(1);
    let first = match which {
        Sample::Trained => 0,
        Sample::Measured => stride / 2,
    };
    let mut left = SAMPLE_BYTES;
    let mut out = Vec::new();
    for i in (first..values.len()).step_by(stride) {
        let value = values.get(i);
        let value = &value[..value.len().min(left)];
        left -= value.len();
        out.push(value);
        if left == 0 {
            break;
        }
    }
    out
}

/// A parsed table: decodes strings.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    words: [u64; 256],
    lengths: [u8; 256],
}

impl SymbolTable {
    pub fn parse(bytes: &[u8]) -> Option<SymbolTable> {
        let mut reader = ByteReader::new(bytes);
        if reader.u8()? != TAG_SYMBOLS {
            return None;
        }
        let count = reader.u8()? as usize;
        // Codes without a symbol decode to nothing; only a damaged file has any.
        let mut table = SymbolTable { words: [0; 256], lengths: [0; 256] };
        for code in 0..count {
            let length = reader.u8().filter(|&length| (1..=SYMBOL_BYTES_MAX as u8).contains(&length))?;
            let bytes = reader.take(length as usize)?;
            let (word, _) = load(bytes, 0, bytes.len());
            (table.words[code], table.lengths[code]) = (word, length);
        }
        (reader.remaining() == 0).then_some(table)
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<SymbolTable>()
    }

    /// Decodes into `target` from `to` on and returns where it ended; `None` when the codes end in an escape. The target must have
    /// `decoded_bytes_max(codes)` bytes from there.
    #[inline]
    fn decode_to(&self, mut codes: &[u8], target: &mut [u8], to: usize) -> Option<usize> {
        let target = &mut target[to..to + decoded_bytes_max(codes)];
        let mut at = 0;
        loop {
            while let Some((four, rest)) = codes.split_first_chunk::<4>() {
                if four.contains(&ESCAPE) {
                    break;
                }
                for &code in four {
                    // SAFETY: `at` is at most eight times the number of codes before this one, as no length is more than eight, so
                    // that eight bytes from there are within the room for all of them.
                    unsafe { target.as_mut_ptr().add(at).cast::<u64>().write_unaligned(self.words[code as usize].to_le()) };
                    at += self.lengths[code as usize] as usize;
                }
                codes = rest;
            }
            let Some((&code, rest)) = codes.split_first() else { return Some(to + at) };
            if code == ESCAPE {
                let (&byte, rest) = rest.split_first()?;
                target[at] = byte;
                at += 1;
                codes = rest;
            } else {
                target[at..at + 8].copy_from_slice(&self.words[code as usize].to_le_bytes());
                at += self.lengths[code as usize] as usize;
                codes = rest;
            }
        }
    }

    /// The string that `codes` stand for, decoded into `scratch`, which only grows.
    pub fn decode<'a>(&self, codes: &[u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if scratch.len() < decoded_bytes_max(codes) {
            scratch.resize(decoded_bytes_max(codes), 0);
        }
        let length = self.decode_to(codes, scratch, 0)?;
        scratch.get(..length)
    }

    /// Appends the strings that `coded` yields; false when one is damaged or `out` would pass 4 GB.
    #[must_use]
    pub fn decode_all<'a>(&self, coded: impl Iterator<Item = &'a [u8]>, out: &mut ByteStrings) -> bool {
        let mut to = out.bytes.len();
        let mut left = coded.size_hint().0;
        for codes in coded {
            let bytes_max = decoded_bytes_max(codes);
            left = left.saturating_sub(1);
            if out.bytes.len() - to < bytes_max {
                out.bytes.resize(to + bytes_max + (bytes_max * left).min(GROWTH_BYTES), 0);
            }
            let Some(end) = self.decode_to(codes, &mut out.bytes, to).filter(|&end| end <= u32::MAX as usize) else {
                return false;
            };
            to = end;
            out.ends.push(to as u32);
        }
        out.bytes.truncate(to);
        true
    }
}

/// The most bytes that decoding touches: eight per code, whatever its symbol's length.
fn decoded_bytes_max(codes: &[u8]) -> usize {
    codes.len() * SYMBOL_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(make: impl Fn(usize) -> String) -> ByteStrings {
        let mut out = ByteStrings::default();
        (0..2000).for_each(|i| out.push(make(i).as_bytes()));
        out
    }

    #[test]
    fn strings_come_back_smaller() {
        let urls = strings(|i| format!("https://example.org/products/{}/reviews?page={}", i * 7919 % 10_007, i % 13));
        let phones = strings(|i| format!("+49{:011}", (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 28));
        let some_empty = strings(|i| if i % 3 == 1 { "some text".repeat(i % 5) } else { String::new() });
        for (values, percent) in [(urls, 35), (phones, 65), (some_empty, 30)] {
            let encoder = SymbolEncoder::train(&values);
            let mut coded = strings(|i| i.to_string());
            encoder.encode_all(&values, &mut coded);
            assert!(coded.bytes.len() * 100 < values.bytes.len() * percent, "{} of {}", coded.bytes.len(), values.bytes.len());
            let mut table = Vec::new();
            encoder.encode_table(&mut table);
            let table = SymbolTable::parse(&table).unwrap();
            let (mut out, mut scratch) = (ByteStrings::default(), Vec::new());
            out.push(b"before");
            assert!(table.decode_all((0..coded.len()).map(|i| coded.get(i)), &mut out));
            for i in 0..values.len() {
                assert_eq!(out.get(i + 1), values.get(i));
                assert_eq!(table.decode(coded.get(i), &mut scratch).unwrap(), values.get(i));
            }
        }
    }

    #[test]
    fn bytes_without_symbols_and_damage() {
        let encoder = SymbolEncoder::train(&strings(|_| "aaaa".into()));
        let mut coded = ByteStrings::default();
        encoder.encode_all(&ByteStrings { ends: vec![7], bytes: b"x\0aaaay".to_vec() }, &mut coded);
        let coded = coded.bytes;
        let mut table = Vec::new();
        encoder.encode_table(&mut table);
        let parsed = SymbolTable::parse(&table).unwrap();
        let mut scratch = Vec::new();
        assert_eq!(parsed.decode(&coded, &mut scratch).unwrap(), b"x\0aaaay");
        assert_eq!(parsed.decode(&[ESCAPE], &mut scratch), None);
        assert_eq!(parsed.decode(&[254; 5], &mut scratch).unwrap(), b"", "codes without a symbol");
        for at in 0..table.len() {
            for value in [0, 1, 8, 9, 255] {
                let mut bad = table.clone();
                bad[at] = value;
                let _ = SymbolTable::parse(&bad).map(|bad| bad.decode(&coded, &mut scratch).is_some());
            }
        }
        table.pop();
        assert!(SymbolTable::parse(&table).is_none());
    }
}
