//! Bit strings: `u32` number of bits (little-endian), then the bits, the first in the highest bit of the first byte; unused
//! bits are 0.

use crate::key::encode_bytes;

/// Bits in a stored bit string.
pub fn len(stored: &[u8]) -> usize {
    stored.first_chunk::<4>().map_or(0, |n| u32::from_le_bytes(*n) as usize).min(stored.len().saturating_sub(4) * 8)
}

/// The bits of a stored bit string.
pub fn bits(stored: &[u8]) -> Vec<bool> {
    let bytes = stored.get(4..).unwrap_or(&[]);
    (0..len(stored)).map(|i| bytes[i / 8] >> (7 - i % 8) & 1 != 0).collect()
}

/// The stored form of bits.
pub fn store(bits: &[bool]) -> Vec<u8> {
    let mut out = (bits.len() as u32).to_le_bytes().to_vec();
    out.resize(4 + bits.len().div_ceil(8), 0);
    for (i, _) in bits.iter().enumerate().filter(|(_, bit)| **bit) {
        out[4 + i / 8] |= 1 << (7 - i % 8);
    }
    out
}

/// Appends a byte string with the order of bit strings: by bits, then by length.
pub fn sort_key(stored: &[u8], out: &mut Vec<u8>) {
    encode_bytes(stored.get(4..).unwrap_or(&[]), out);
    out.extend_from_slice(&(len(stored) as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_and_sort() {
        let parse = |text: &str| store(&text.bytes().map(|c| c == b'1').collect::<Vec<_>>());
        assert_eq!(parse("1010000001"), [10, 0, 0, 0, 0b1010_0000, 0b0100_0000]);
        assert_eq!(store(&bits(&parse("1010000001"))), parse("1010000001"));
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
}
