//! A blocked Bloom filter: one 32-byte block a key, one bit in each of its eight words.

use crate::hash::hash_bytes;

const WORDS: usize = 8;
pub(crate) const FILTER_BLOCK_BYTES: usize = WORDS * 4;
/// About one false answer in a hundred.
const BITS_A_KEY: usize = 10;
/// Odd multipliers, one a word, that turn a hash into bit numbers.
const MULTIPLIERS: [u32; WORDS] =
    [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1, 0xD3A2_646D, 0xFD70_46C5, 0xB55A_4F09];

/// Collects hashes.
#[derive(Default)]
pub(crate) struct FilterBuilder {
    hashes: Vec<u64>,
}

impl FilterBuilder {
    /// Adds a key; equal ones in a row count once.
    pub fn add(&mut self, key: &[u8]) {
        let hash = hash_bytes(key);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// The filter's bytes; empties the builder.
    pub fn finish(&mut self) -> Vec<u8> {
        let blocks = (self.hashes.len() * BITS_A_KEY).div_ceil(FILTER_BLOCK_BYTES * 8).max(1);
        let mut bytes = vec![0; blocks * FILTER_BLOCK_BYTES];
        for hash in self.hashes.drain(..) {
            let block = block_of(hash, blocks);
            for (word, bit) in bits_of(hash).into_iter().enumerate() {
                bytes[block + word * 4 + bit / 8] |= 1 << (bit % 8);
            }
        }
        bytes
    }
}

fn block_of(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize * FILTER_BLOCK_BYTES
}

fn bits_of(hash: u64) -> [usize; WORDS] {
    MULTIPLIERS.map(|multiplier| ((hash as u32).wrapping_mul(multiplier) >> 27) as usize)
}

/// Whether the key may have been added; true for bytes that are no filter.
pub(crate) fn may_contain(filter: &[u8], key: &[u8]) -> bool {
    let blocks = filter.len() / FILTER_BLOCK_BYTES;
    if blocks == 0 {
        return true;
    }
    let hash = hash_bytes(key);
    let block = block_of(hash, blocks);
    bits_of(hash).into_iter().enumerate().all(|(word, bit)| filter[block + word * 4 + bit / 8] >> (bit % 8) & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_false_negatives_and_few_false_positives() {
        let mut builder = FilterBuilder::default();
        (0..20_000u64).for_each(|i| builder.add(&i.to_be_bytes()));
        let filter = builder.finish();
        assert!((0..20_000u64).all(|i| may_contain(&filter, &i.to_be_bytes())));
        let wrong = (20_000..40_000u64).filter(|i| may_contain(&filter, &i.to_be_bytes())).count();
        assert!(wrong < 500, "{wrong} of 20000");
    }
}
