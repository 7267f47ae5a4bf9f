//! Symbol tables for short strings, after FSST (Boncz, Neumann, Leis: "FSST: Fast Random Access String Compression", VLDB 2020): the up to
//! 255 most rewarding byte sequences of 1 to 8 bytes get a code of one byte, so that every string is coded alone.
//!
//! ```text
//! tag u8 (5) | symbols u8 | length u8, bytes (for each symbol)
//! ```
//!
//! A coded string is a sequence of codes; code 255 is followed by a byte that stands for itself.

use hashbrown::HashMap;
use melba_types::ByteStrings;

use crate::bytes::ByteReader;

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
/// How much a decoder's output grows at a time, beyond what the next string needs.
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

/// Up to eight bytes at `at`, and how many there are.
#[inline]
fn load(bytes: &[u8], at: usize) -> (u64, usize) {
    let rest = &bytes[at..];
    match rest.first_chunk::<8>() {
        Some(word) => (u64::from_le_bytes(*word), 8),
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            (u64::from_le_bytes(word), rest.len())
        }
    }
}

/// Codes strings.
pub(crate) struct SymbolEncoder {
    symbols: Vec<Symbol>,
    /// Code of the long symbol with this hash of its first three bytes.
    slots: Vec<Option<u8>>,
    pairs: Vec<Option<u8>>,
    singles: [Option<u8>; 256],
}

fn slot_of(word: u64) -> usize {
    crate::hash::hash_word(word & 0xFF_FFFF) as usize % SLOTS
}

impl SymbolEncoder {
    /// A table of the first 255 of `ranked` that can be found again: of long symbols with one hash, the first.
    fn new(ranked: impl Iterator<Item = Symbol>) -> SymbolEncoder {
        let mut encoder =
            SymbolEncoder { symbols: Vec::new(), slots: vec![None; SLOTS], pairs: vec![None; 1 << 16], singles: [None; 256] };
        for symbol in ranked {
            if encoder.symbols.len() == ESCAPE as usize {
                break;
            }
            let target = match symbol.length {
                1 => &mut encoder.singles[symbol.word as usize],
                2 => &mut encoder.pairs[symbol.word as usize],
                _ => &mut encoder.slots[slot_of(symbol.word)],
            };
            if target.is_none() {
                *target = Some(encoder.symbols.len() as u8);
                encoder.symbols.push(symbol);
            }
        }
        encoder
    }

    /// Learns a table from a sample of the values.
    pub fn train(values: &ByteStrings) -> SymbolEncoder {
        let sample = sample(values);
        let mut encoder = SymbolEncoder::new(std::iter::empty());
        for _ in 0..ROUNDS {
            encoder = encoder.improved(&sample);
        }
        encoder
    }

    /// The code of the longest symbol found at `at`, or the byte's own among `LITERALS`; and its length.
    #[inline]
    fn find(&self, bytes: &[u8], at: usize) -> (usize, usize) {
        let (word, available) = load(bytes, at);
        if let Some(code) = self.slots[slot_of(word)] {
            let symbol = self.symbols[code as usize];
            if available >= symbol.length as usize && word & mask(symbol.length) == symbol.word {
                return (code as usize, symbol.length as usize);
            }
        }
        if available >= 2
            && let Some(code) = self.pairs[word as usize & 0xFFFF]
        {
            return (code as usize, 2);
        }
        match self.singles[word as usize & 0xFF] {
            Some(code) => (code as usize, 1),
            None => (LITERALS + (word as usize & 0xFF), 1),
        }
    }

    fn symbol(&self, code: usize) -> Symbol {
        if code < LITERALS { self.symbols[code] } else { Symbol::byte((code - LITERALS) as u8) }
    }

    /// One round: counts what this table finds in the sample, and what follows what, and ranks symbols and their joins by the
    /// bytes that they would cover.
    fn improved(&self, sample: &[&[u8]]) -> SymbolEncoder {
        let mut gains: HashMap<Symbol, u64> = HashMap::new();
        let mut followers = vec![0u32; TRAINING_CODES * TRAINING_CODES];
        let mut counts = [0u32; TRAINING_CODES];
        for bytes in sample {
            let (mut at, mut before) = (0, None);
            while at < bytes.len() {
                let (code, length) = self.find(bytes, at);
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
            // An escaped byte costs two, so a symbol for it is worth more than its length.
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
        // Ties by content: the same values give the same file.
        ranked.sort_unstable_by_key(|&(gain, symbol)| (std::cmp::Reverse(gain), symbol.length, symbol.word));
        SymbolEncoder::new(ranked.into_iter().map(|(_, symbol)| symbol))
    }

    /// Appends the codes of a string.
    pub fn encode(&self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        while at < bytes.len() {
            let (code, length) = self.find(bytes, at);
            if code < LITERALS {
                out.push(code as u8);
            } else {
                out.extend_from_slice(&[ESCAPE, bytes[at]]);
            }
            at += length;
        }
    }

    /// All strings coded.
    pub fn encode_all(&self, values: &ByteStrings) -> ByteStrings {
        let mut out = ByteStrings { ends: Vec::with_capacity(values.len()), bytes: Vec::with_capacity(values.bytes.len() / 2) };
        for i in 0..values.len() {
            self.encode(values.get(i), &mut out.bytes);
            out.ends.push(out.bytes.len() as u32);
        }
        out
    }

    /// Raw and coded bytes of a sample, the table left out.
    pub fn measure(&self, values: &ByteStrings) -> (usize, usize) {
        let mut out = Vec::new();
        let sample = sample(values);
        sample.iter().for_each(|bytes| self.encode(bytes, &mut out));
        (sample.iter().map(|bytes| bytes.len()).sum(), out.len())
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

/// Values spread over all, up to `SAMPLE_BYTES` of them.
fn sample(values: &ByteStrings) -> Vec<&[u8]> {
    let stride = (values.bytes.len() / SAMPLE_BYTES).max(1);
    let mut left = SAMPLE_BYTES;
    let mut out = Vec::new();
    for i in (0..values.len()).step_by(stride) {
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
            let (word, _) = load(reader.take(length as usize)?, 0);
            (table.words[code], table.lengths[code]) = (word, length);
        }
        (reader.remaining() == 0).then_some(table)
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<SymbolTable>()
    }

    /// Decodes into `target` from `to` on and returns where it ended; `None` when the codes end in an escape. The target must have
    /// `room(codes)` bytes from there.
    #[inline]
    fn decode_to(&self, mut codes: &[u8], target: &mut [u8], to: usize) -> Option<usize> {
        let target = &mut target[to..to + room(codes)];
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
        if scratch.len() < room(codes) {
            scratch.resize(room(codes), 0);
        }
        let length = self.decode_to(codes, scratch, 0)?;
        scratch.get(..length)
    }

    /// Appends the strings that `coded` yields; false when one is damaged or `out` would pass 4 GB.
    #[must_use]
    pub fn decode_all<'a>(&self, coded: impl Iterator<Item = &'a [u8]>, out: &mut ByteStrings) -> bool {
        let mut to = out.bytes.len();
        for codes in coded {
            let room = room(codes);
            if out.bytes.len() - to < room {
                out.bytes.resize(to + room + GROWTH_BYTES, 0);
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

/// The most bytes that decoding touches: eight a code, whatever its symbol's length.
fn room(codes: &[u8]) -> usize {
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
        for (values, percent) in [(urls, 35), (phones, 65)] {
            let encoder = SymbolEncoder::train(&values);
            let coded = encoder.encode_all(&values);
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
        let mut coded = Vec::new();
        encoder.encode(b"x\0aaaay", &mut coded);
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
