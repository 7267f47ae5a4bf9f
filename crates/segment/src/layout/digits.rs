//! Patterns of strings that differ in decimal digits only: phone numbers, padded numbers, dates, codes with a number.
//!
//! All strings of a pattern have one length. The digits of a string, read as one number, are its word: a pattern's strings have the
//! order of their words.
//!
//! ```text
//! tag u8 (7) | length u8 | the strings' bytes, 0 in place of a digit
//! ```

use std::ops::Range;

use melba_types::bytes::ByteReader;
use melba_types::{Bitmap, ByteStrings};

use crate::statistics::ZoneOp;

const TAG_DIGITS: u8 = 7;
const LENGTH_MAX: usize = 64;
/// The numbers of more digits may be no words.
const DIGITS_MAX: usize = 18;
/// Digits that are written by one multiplication.
const GROUP_DIGITS: usize = 8;
/// Strings between two looks whether they have a pattern still.
const LOOK_STRINGS: usize = 256;

/// What the strings of a chunk have in common.
#[derive(Debug, PartialEq)]
pub(crate) struct DigitPattern {
    /// 0 in place of a digit.
    bytes: Box<[u8]>,
    digits: usize,
    /// Adjacent digits, the last ones first.
    groups: Vec<DigitGroup>,
}

/// Some adjacent digits of a pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DigitGroup {
    at: usize,
    /// 1 to `GROUP_DIGITS`.
    digits: usize,
}

/// 10 to this power.
fn power(digits: usize) -> u64 {
    10u64.pow(digits as u32)
}

impl DigitPattern {
    /// `None` when the bytes are no pattern.
    fn new(bytes: &[u8]) -> Option<DigitPattern> {
        let digits = bytes.iter().filter(|byte| **byte == 0).count();
        if bytes.len() > LENGTH_MAX || !(1..=DIGITS_MAX).contains(&digits) {
            return None;
        }
        let mut groups: Vec<DigitGroup> = Vec::new();
        for at in (0..bytes.len()).rev().filter(|at| bytes[*at] == 0) {
            match groups.last_mut() {
                Some(group) if group.at == at + 1 && group.digits < GROUP_DIGITS => {
                    *group = DigitGroup { at, digits: group.digits + 1 };
                }
                _ => groups.push(DigitGroup { at, digits: 1 }),
            }
        }
        Some(DigitPattern { bytes: bytes.into(), digits, groups })
    }

    /// The pattern of those values that are not null; `None` when they have none.
    pub fn of(values: &ByteStrings, validity: Option<&Bitmap>) -> Option<DigitPattern> {
        let is_valid = |i: &usize| validity.is_none_or(|validity| validity.get(*i));
        let mut valid = (0..values.len()).filter(is_valid).map(|i| values.get(i)).peekable();
        let first = *valid.peek()?;
        if first.is_empty() || first.len() > LENGTH_MAX {
            return None;
        }
        let (mut least, mut greatest) = (first.to_vec(), first.to_vec());
        while valid.peek().is_some() {
            for value in valid.by_ref().take(LOOK_STRINGS) {
                if value.len() != first.len() {
                    return None;
                }
                for ((byte, least), greatest) in value.iter().zip(&mut least).zip(&mut greatest) {
                    *least = (*least).min(*byte);
                    *greatest = (*greatest).max(*byte);
                }
            }
            let suits = |(least, greatest): (&u8, &u8)| least == greatest || *least >= b'0' && *greatest <= b'9';
            if !least.iter().zip(&greatest).all(suits) {
                return None;
            }
        }
        if least.contains(&0) {
            return None;
        }
        let byte = |(least, greatest): (&u8, &u8)| if least == greatest { *least } else { 0 };
        DigitPattern::new(&least.iter().zip(&greatest).map(byte).collect::<Vec<u8>>())
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[TAG_DIGITS, self.bytes.len() as u8]);
        out.extend_from_slice(&self.bytes);
    }

    pub fn parse(bytes: &[u8]) -> Option<DigitPattern> {
        let mut reader = ByteReader::new(bytes);
        if reader.u8()? != TAG_DIGITS {
            return None;
        }
        let length = reader.u8()? as usize;
        let pattern = DigitPattern::new(reader.take(length)?)?;
        (reader.remaining() == 0).then_some(pattern)
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<DigitPattern>() + self.bytes.len() + self.groups.capacity() * size_of::<DigitGroup>()
    }

    /// The word of a string of this pattern.
    pub fn word(&self, string: &[u8]) -> i64 {
        let mut word = 0;
        for group in self.groups.iter().rev() {
            for digit in &string[group.at..group.at + group.digits] {
                word = word * 10 + i64::from(digit - b'0');
            }
        }
        word
    }

    /// Appends the strings of words, which are used up; false when a word has too many digits, or `out` would pass 4 GB.
    #[must_use]
    pub fn decode_all(&self, words: &mut [u64], out: &mut ByteStrings) -> bool {
        let (length, start) = (self.bytes.len(), out.bytes.len());
        let end = start + words.len() * length;
        let limit = power(self.digits);
        if end > u32::MAX as usize || !words.iter().fold(true, |all, word| all & (*word < limit)) {
            return false;
        }
        // The last string is followed by as many bytes as a group is written with.
        out.bytes.resize(end + GROUP_DIGITS, 0);
        fill(&mut out.bytes[start..end], &self.bytes);
        for group in &self.groups {
            group.write_all(words, &mut out.bytes[start..], length);
        }
        out.bytes.truncate(end);
        out.ends.extend((1..=words.len()).map(|strings| (start + strings * length) as u32));
        true
    }

    /// The string of a word, in `scratch`; `None` for a word of too many digits.
    pub fn decode<'a>(&self, word: i64, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let mut word = u64::try_from(word).ok().filter(|word| *word < power(self.digits))?;
        scratch.clear();
        scratch.extend_from_slice(&self.bytes);
        for group in &self.groups {
            for digit in scratch[group.at..group.at + group.digits].iter_mut().rev() {
                *digit = b'0' + (word % 10) as u8;
                word /= 10;
            }
        }
        Some(scratch)
    }

    /// The words of the strings for which a comparison holds; `None` for one that is no comparison of bytes.
    pub fn words_where(&self, op: ZoneOp, value: &[u8]) -> Option<Range<u64>> {
        let (below, is_string) = self.words_below(value);
        let with = below + u64::from(is_string);
        Some(match op {
            ZoneOp::Equal => below..with,
            ZoneOp::Less => 0..below,
            ZoneOp::LessOrEqual => 0..with,
            ZoneOp::GreaterOrEqual => below..power(self.digits),
            ZoneOp::Greater => with..power(self.digits),
            ZoneOp::StartsWith => self.words_with(value),
            ZoneOp::NotEqual | ZoneOp::IsNull | ZoneOp::IsNotNull => return None,
        })
    }

    /// The words of the strings that start with a value.
    fn words_with(&self, start: &[u8]) -> Range<u64> {
        let (mut word, mut left) = (0, self.digits);
        for (at, other) in start.iter().enumerate() {
            match self.bytes.get(at) {
                Some(0) if other.is_ascii_digit() => {
                    word = word * 10 + u64::from(other - b'0');
                    left -= 1;
                }
                Some(byte) if byte == other => {}
                _ => return 0..0,
            }
        }
        word * power(left)..(word + 1) * power(left)
    }

    /// How many strings of the pattern are less than a value, and whether the value is one of them itself.
    fn words_below(&self, value: &[u8]) -> (u64, bool) {
        let (mut word, mut left) = (0, self.digits);
        for (at, byte) in self.bytes.iter().enumerate() {
            let Some(&other) = value.get(at) else { return (word * power(left), false) };
            let (least, greatest) = if *byte == 0 { (b'0', b'9') } else { (*byte, *byte) };
            if other < least {
                return (word * power(left), false);
            }
            if other > greatest {
                return ((word + 1) * power(left), false);
            }
            if *byte == 0 {
                word = word * 10 + u64::from(other - b'0');
                left -= 1;
            }
        }
        let is_string = value.len() == self.bytes.len();
        (word + u64::from(!is_string), is_string)
    }
}

impl DigitGroup {
    /// Writes the words' last digits into strings of `length` bytes, which are followed by `GROUP_DIGITS` more, and takes them from
    /// the words.
    fn write_all(self, words: &mut [u64], strings: &mut [u8], length: usize) {
        // Divisions by constants take a fraction of the time of others.
        match self.digits {
            1 => self.write_digits::<1>(words, strings, length),
            2 => self.write_digits::<2>(words, strings, length),
            3 => self.write_digits::<3>(words, strings, length),
            4 => self.write_digits::<4>(words, strings, length),
            5 => self.write_digits::<5>(words, strings, length),
            6 => self.write_digits::<6>(words, strings, length),
            7 => self.write_digits::<7>(words, strings, length),
            _ => self.write_digits::<GROUP_DIGITS>(words, strings, length),
        }
    }

    fn write_digits<const DIGITS: usize>(self, words: &mut [u64], strings: &mut [u8], length: usize) {
        let divisor = const { 10u64.pow(DIGITS as u32) };
        let keep = const { u64::MAX.unbounded_shl(8 * DIGITS as u32) };
        let mut at = self.at;
        for word in words {
            let text = eight_digits(*word % divisor) >> (8 * (GROUP_DIGITS - DIGITS));
            *word /= divisor;
            if let Some(target) = strings[at..].first_chunk_mut::<GROUP_DIGITS>() {
                *target = (u64::from_le_bytes(*target) & keep | text).to_le_bytes();
            }
            at += length;
        }
    }
}

/// The decimal digits of a number below 10^8, the first in the lowest byte.
#[inline(always)]
fn eight_digits(number: u64) -> u64 {
    // Four digits in each half, then two in each quarter, then one in each byte. Quotients are products with a rounded reciprocal.
    let halves = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((halves * 5243) >> 19) & 0x0000_007F_0000_007F;
    let quarters = hundreds | ((halves - 100 * hundreds) << 16);
    let tens = ((quarters * 103) >> 10) & 0x000F_000F_000F_000F;
    (tens | ((quarters - 10 * tens) << 8)) + 0x3030_3030_3030_3030
}

/// Fills bytes with copies of some, which divide them.
fn fill(bytes: &mut [u8], copy: &[u8]) {
    let Some(first) = bytes.get_mut(..copy.len()) else { return };
    first.copy_from_slice(copy);
    let mut filled = copy.len();
    while filled < bytes.len() {
        let (done, rest) = bytes.split_at_mut(filled);
        let length = done.len().min(rest.len());
        rest[..length].copy_from_slice(&done[..length]);
        filled += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(values: &[&str]) -> ByteStrings {
        let mut out = ByteStrings::default();
        values.iter().for_each(|value| out.push(value.as_bytes()));
        out
    }

    #[test]
    fn digits_are_written_by_multiplication() {
        for number in (0..100_000_000).step_by(9973).chain([0, 1, 9_999, 10_000, 99_999_999]) {
            assert_eq!(eight_digits(number).to_le_bytes(), *format!("{number:08}").as_bytes());
        }
        // Each half and each quarter takes every value.
        for part in 0..10_000 {
            assert_eq!(eight_digits(part * 10_000 + part).to_le_bytes(), *format!("{part:04}{part:04}").as_bytes());
        }
    }

    #[test]
    fn strings_of_a_pattern_come_back() {
        let phones: Vec<String> = (0..2000u64).map(|i| format!("13{:09}", i * 499_979 % 1_000_000_000)).collect();
        let dates: Vec<String> = (0..2000).map(|i| format!("{:04}-{:02}-{:02}", 1900 + i, 1 + i % 12, 1 + i % 31)).collect();
        let long: Vec<String> =
            (0..2000u64).map(|i| format!("x{:018}y", i * 499_979_123_456_789 % 1_000_000_000_000_000_000)).collect();
        let codes: Vec<String> = (0..10).map(|i| format!("order-{i}")).collect();
        for (values, digits) in [(phones, 9), (dates, 8), (long, 18), (codes, 1)] {
            let values = strings(&values.iter().map(String::as_str).collect::<Vec<_>>());
            let pattern = DigitPattern::of(&values, None).unwrap();
            assert_eq!(pattern.digits, digits);
            let mut bytes = Vec::new();
            pattern.encode(&mut bytes);
            let parsed = DigitPattern::parse(&bytes).unwrap();
            assert_eq!(parsed, pattern);
            let mut words: Vec<u64> = (0..values.len()).map(|i| pattern.word(values.get(i)) as u64).collect();
            let mut scratch = Vec::new();
            for (i, word) in words.iter().enumerate() {
                assert_eq!(parsed.decode(*word as i64, &mut scratch).unwrap(), values.get(i));
            }
            let mut out = strings(&["before"]);
            assert!(parsed.decode_all(&mut words, &mut out));
            assert_eq!(out.len(), values.len() + 1);
            assert!((0..values.len()).all(|i| out.get(i + 1) == values.get(i)));
        }
    }

    #[test]
    fn other_strings_have_no_pattern() {
        for values in [
            &["a1", "b2"][..],
            &["1", "22"],
            &["same", "same"],
            &["", ""],
            &["1\0", "2\0"],
            &["1234567890123456789", "0987654321098765432"],
            &["1", ":"],
            &["1", "/"],
        ] {
            assert_eq!(DigitPattern::of(&strings(values), None), None, "{values:?}");
        }
        assert_eq!(DigitPattern::of(&strings(&[&"1".repeat(65), &"2".repeat(65)]), None), None);
        let mut validity = Bitmap::default();
        [true, false, true].iter().for_each(|valid| validity.push(*valid));
        let pattern = DigitPattern::of(&strings(&["a1", "", "a2"]), Some(&validity)).unwrap();
        assert_eq!(&*pattern.bytes, b"a\0");
    }

    #[test]
    fn damaged_patterns_and_words_are_refused() {
        for bytes in [&[][..], &[7], &[7, 1], &[6, 1, 0], &[7, 1, b'a'], &[7, 1, 0, 0], &[7, 0]] {
            assert_eq!(DigitPattern::parse(bytes), None, "{bytes:?}");
        }
        let long = [&[7, 19][..], &[0; 19]].concat();
        assert_eq!(DigitPattern::parse(&long), None);
        let pattern = DigitPattern::new(b"a\0\0").unwrap();
        assert!(!pattern.decode_all(&mut [99, 100], &mut ByteStrings::default()));
        assert_eq!((pattern.decode(100, &mut Vec::new()), pattern.decode(-1, &mut Vec::new())), (None, None));
    }

    #[test]
    fn comparisons_of_strings_are_those_of_words() {
        for template in ["\0", "a\0", "\0b\0", "ab\0c"] {
            let pattern = DigitPattern::new(template.as_bytes()).unwrap();
            let mut scratch = Vec::new();
            let all: Vec<Vec<u8>> =
                (0..power(pattern.digits) as i64).map(|word| pattern.decode(word, &mut scratch).unwrap().to_vec()).collect();
            assert!(all.is_sorted());
            let parts = ["", "a", "ab", "0", "5", "9", "b", "/", ":", "\u{7F}", "a5", "ab5c"];
            let values = parts.iter().flat_map(|a| parts.iter().map(move |b| format!("{a}{b}")));
            for value in values.map(String::into_bytes) {
                let expect = |op, holds: fn(&[u8], &[u8]) -> bool| {
                    let words = pattern.words_where(op, &value).unwrap();
                    for (word, string) in (0..).zip(&all) {
                        assert_eq!(words.contains(&word), holds(string, &value), "{op:?} {string:?} {value:?}");
                    }
                };
                expect(ZoneOp::Equal, |a, b| a == b);
                expect(ZoneOp::Less, |a, b| a < b);
                expect(ZoneOp::LessOrEqual, |a, b| a <= b);
                expect(ZoneOp::Greater, |a, b| a > b);
                expect(ZoneOp::GreaterOrEqual, |a, b| a >= b);
                expect(ZoneOp::StartsWith, |a, b| a.starts_with(b));
            }
        }
    }
}
