//! Blocked Bloom filters over hashes: one 32-byte block per key, one bit in each of its eight words.
//!
//! Key segments have one for every few key blocks, table segments one for a chunk of many different values. A filter always
//! answers "may be there" for a key that was added, and for another key about once in a hundred times.

use crate::hash::hash_bytes;

const WORDS: usize = 8;
pub(crate) const FILTER_BLOCK_BYTES: usize = WORDS * 4;
/// About one false answer in a hundred.
const BITS_A_KEY: usize = 10;
/// Odd multipliers, one a word, that turn a hash into bit numbers.
const MULTIPLIERS: [u32; WORDS] =
    [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1, 0xD3A2_646D, 0xFD70_46C5, 0xB55A_4F09];

/// How many blocks a filter of `keys` keys has.
pub(crate) fn blocks_for(keys: usize) -> usize {
    (keys * BITS_A_KEY).div_ceil(FILTER_BLOCK_BYTES * 8).max(1)
}

/// The bytes of a filter of `blocks` blocks.
pub(crate) fn build(hashes: impl IntoIterator<Item = u64>, blocks: usize) -> Vec<u8> {
    let mut words = vec![[0_u32; WORDS]; blocks];
    for hash in hashes {
        let block = &mut words[block_of(hash, blocks)];
        for (word, bit) in block.iter_mut().zip(bits_of(hash)) {
            *word |= 1 << bit;
        }
    }
    words.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Which block of a filter has a hash's bits.
pub(crate) fn block_of(hash: u64, blocks: usize) -> usize {
    (((hash >> 32) * blocks as u64) >> 32) as usize
}

fn bits_of(hash: u64) -> [u32; WORDS] {
    MULTIPLIERS.map(|multiplier| (hash as u32).wrapping_mul(multiplier) >> 27)
}

/// Whether a block has all of a hash's bits.
pub(crate) fn block_has(block: &[u8; FILTER_BLOCK_BYTES], hash: u64) -> bool {
    let (words, _) = block.as_chunks::<4>();
    words.iter().zip(bits_of(hash)).all(|(word, bit)| u32::from_le_bytes(*word) >> bit & 1 != 0)
}

/// Collects keys of byte strings.
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
        let blocks = blocks_for(self.hashes.len());
        build(self.hashes.drain(..), blocks)
    }
}

/// Whether the key may have been added; true for bytes that are no filter.
pub(crate) fn may_contain(filter: &[u8], key: &[u8]) -> bool {
    let (blocks, _) = filter.as_chunks::<FILTER_BLOCK_BYTES>();
    let hash = hash_bytes(key);
    blocks.get(block_of(hash, blocks.len())).is_none_or(|block| block_has(block, hash))
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
