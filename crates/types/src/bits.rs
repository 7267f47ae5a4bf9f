//! Bit strings: `u32` number of bits (little-endian), then the bits, the first in the highest bit of the first byte; unused
//! bits are 0.

use std::ops::Range;

use crate::Result;
use crate::key::bytes::encode_bytes;
use crate::limits::{self, Ticker};

const HEADER_BYTES: usize = 4;

/// Bits in a stored bit string.
pub fn len(stored: &[u8]) -> usize {
    stored.first_chunk().map_or(0, |n| u32::from_le_bytes(*n) as usize).min(octets(stored).len() * 8)
}

/// The bits of a stored bit string, eight in a byte.
pub fn octets(stored: &[u8]) -> &[u8] {
    stored.get(HEADER_BYTES..).unwrap_or(&[])
}

/// One bit, which there is.
pub fn bit(stored: &[u8], at: usize) -> bool {
    octets(stored)[at / 8] >> (7 - at % 8) & 1 != 0
}

/// Each bit as one of two bytes.
///
/// # Errors
/// Those of `limits`.
pub fn spelled(stored: &[u8], zero: u8, one: u8) -> Result<Vec<u8>> {
    let count = len(stored);
    limits::check_request(count)?;
    let (mut out, mut ticker) = (Vec::with_capacity(count + 7), Ticker::new());
    for octet in &octets(stored)[..count.div_ceil(8)] {
        ticker.step()?;
        out.extend((0..8).rev().map(|i| if octet >> i & 1 != 0 { one } else { zero }));
    }
    out.truncate(count);
    Ok(out)
}

/// A bit string in the making.
pub struct BitStringBuilder {
    bits: usize,
    /// In stored form, without the number of bits.
    stored: Vec<u8>,
}

impl BitStringBuilder {
    /// Capacity for about `bits` bits.
    ///
    /// # Errors
    /// Those of `limits::check_request`.
    pub fn with_capacity(bits: usize) -> Result<BitStringBuilder> {
        let bytes = HEADER_BYTES + bits.div_ceil(8);
        limits::check_request(bytes)?;
        let mut stored = Vec::with_capacity(bytes);
        stored.resize(HEADER_BYTES, 0);
        Ok(BitStringBuilder { bits: 0, stored })
    }

    /// The first `count` bits of a byte, of at most eight.
    pub fn push(&mut self, octet: u8, count: usize) {
        let octet = octet & !(0xff_u16 >> count) as u8;
        let used = self.bits % 8;
        match self.stored.last_mut() {
            Some(last) if used != 0 => {
                *last |= octet >> used;
                if used + count > 8 {
                    self.stored.push(octet << (8 - used));
                }
            }
            _ if count > 0 => self.stored.push(octet),
            _ => {}
        }
        self.bits += count;
    }

    /// Bits of a stored bit string, which it has.
    ///
    /// # Errors
    /// Those of `limits`.
    pub fn append(&mut self, stored: &[u8], range: Range<usize>) -> Result<()> {
        let from = octets(stored);
        let mut ticker = Ticker::new();
        for at in range.clone().step_by(8) {
            ticker.step()?;
            let (byte, shift) = (at / 8, at % 8);
            let next = from.get(byte + 1).copied().unwrap_or(0);
            let octet = (u16::from_be_bytes([from[byte], next]) >> (8 - shift)) as u8;
            self.push(octet, (range.end - at).min(8));
        }
        Ok(())
    }

    /// # Errors
    /// Those of `limits::check_request`.
    pub fn append_zeros(&mut self, count: usize) -> Result<()> {
        self.bits += count;
        let bytes = HEADER_BYTES + self.bits.div_ceil(8);
        limits::check_request(bytes)?;
        self.stored.resize(bytes, 0);
        Ok(())
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.stored[..HEADER_BYTES].copy_from_slice(&(self.bits as u32).to_le_bytes());
        self.stored
    }
}

/// Appends a byte string with the order of bit strings: by bits, then by length.
pub fn sort_key(stored: &[u8], out: &mut Vec<u8>) {
    encode_bytes(octets(stored), out);
    out.extend_from_slice(&(len(stored) as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Vec<u8> {
        let mut out = BitStringBuilder::with_capacity(text.len()).expect("is short");
        text.bytes().for_each(|c| out.push(if c == b'1' { 0x80 } else { 0x7f }, 1));
        out.finish()
    }

    fn show(stored: &[u8]) -> String {
        String::from_utf8(spelled(stored, b'0', b'1').expect("is short")).expect("is ascii")
    }

    #[test]
    fn bits_come_back_and_sort() {
        assert_eq!(parse("1010000001"), [10, 0, 0, 0, 0b1010_0000, 0b0100_0000]);
        assert_eq!(show(&parse("1010000001")), "1010000001");
        let ordered = ["", "0", "00", "0000000001", "1", "10", "100000000", "11"];
        let keys: Vec<Vec<u8>> = ordered
            .iter()
            .map(|text| {
                let mut key = Vec::new();
                sort_key(&parse(text), &mut key);
                key
            })
            .collect();
        assert!(keys.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(len(&[255, 255, 255, 255, 1]), 8);
    }

    #[test]
    fn parts_are_put_together_at_any_place() {
        let text = "110100111000101101110100011";
        let all = parse(text);
        for before in 0..10 {
            for start in 0..text.len() {
                for end in start..=text.len() {
                    let mut out = BitStringBuilder::with_capacity(0).expect("is short");
                    out.append_zeros(before).expect("is short");
                    out.append(&all, start..end).expect("is short");
                    out.append_zeros(3).expect("is short");
                    let expected = format!("{}{}000", "0".repeat(before), &text[start..end]);
                    let stored = out.finish();
                    assert_eq!(show(&stored), expected);
                    assert_eq!(stored, parse(&expected), "unused bits are 0");
                }
            }
        }
        assert!(bit(&all, 0) && !bit(&all, 2) && bit(&all, 26));
    }
}
