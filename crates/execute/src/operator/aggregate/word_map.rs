//! Numbers of groups by keys that are words: a hash table that is asked for many keys at a time.
//!
//! A table of a million groups is in no cache: each question waits for memory. `get_all` reads the slots of many keys first, one read
//! after the other, none of which waits for another; a map that is asked key by key takes 1.5 to 3 times as long.

use std::hash::BuildHasher;
use std::hint::black_box;

use hashbrown::DefaultHashBuilder;

/// Not the number of a group.
pub(super) const NONE: u32 = u32::MAX;
const SLOTS_LEAST: usize = 16;
/// Keys whose slots are read before they are looked at.
const AHEAD: usize = 64;
/// A smaller table is in a cache of the processor.
const FAR_BYTES: usize = 256 << 10;

/// The number of each word's group.
#[derive(Default)]
pub(super) struct WordMap {
    /// A power of two, at least half of them free; those of words that have the same first slot follow each other. Or none.
    slots: Vec<WordSlot>,
    len: usize,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Copy)]
struct WordSlot {
    /// In two halves, so that a slot is aligned to eight bytes only.
    word: [u64; 2],
    /// `NONE`: the slot is free.
    group: u32,
}

const FREE: WordSlot = WordSlot { word: [0; 2], group: NONE };

fn halves(word: u128) -> [u64; 2] {
    [word as u64, (word >> 64) as u64]
}

impl WordSlot {
    fn word(&self) -> u128 {
        u128::from(self.word[0]) | u128::from(self.word[1]) << 64
    }
}

impl WordMap {
    pub const SLOT_BYTES: usize = size_of::<WordSlot>();

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn iter(&self) -> impl Iterator<Item = (u128, u32)> {
        let used = self.slots.iter().filter(|slot| slot.group != NONE);
        used.map(|slot| (slot.word(), slot.group))
    }

    /// Makes room for more words.
    pub fn reserve(&mut self, words: usize) {
        let slots = ((self.len + words) * 2).next_power_of_two().max(SLOTS_LEAST);
        if slots <= self.slots.len() {
            return;
        }
        let before = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        for slot in before.into_iter().filter(|slot| slot.group != NONE) {
            let at = self.find(slot.word());
            self.slots[at] = slot;
        }
    }

    /// The slot of a word, or the free one where it would be. There are slots.
    #[inline]
    fn find(&self, word: u128) -> usize {
        self.find_from(self.first(word), halves(word))
    }

    #[inline(always)]
    fn first(&self, word: u128) -> usize {
        self.hasher.hash_one(word) as usize & (self.slots.len() - 1)
    }

    #[inline(always)]
    fn find_from(&self, mut at: usize, word: [u64; 2]) -> usize {
        loop {
            let slot = &self.slots[at];
            if slot.group == NONE || slot.word == word {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    pub fn get(&self, word: u128) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        Some(self.slots[self.find(word)].group).filter(|group| *group != NONE)
    }

    /// The number of each word's group, or `NONE`.
    pub fn get_all(&self, words: &[u128]) -> Vec<u32> {
        if self.slots.is_empty() {
            return vec![NONE; words.len()];
        }
        let is_far = self.slots.len() * WordMap::SLOT_BYTES > FAR_BYTES;
        let mut groups = Vec::with_capacity(words.len());
        let mut first = [0; AHEAD];
        for some in words.chunks(AHEAD) {
            for (at, word) in first.iter_mut().zip(some) {
                *at = self.first(*word);
            }
            if is_far {
                black_box(first[..some.len()].iter().fold(0, |all, at| all ^ self.slots[*at].group));
            }
            groups.extend(first.iter().zip(some).map(|(at, word)| self.slots[self.find_from(*at, halves(*word))].group));
        }
        groups
    }

    /// Adds a word, which is new, or changes its group.
    pub fn insert(&mut self, word: u128, group: u32) {
        debug_assert_ne!(group, NONE, "a group's number");
        self.reserve(1);
        let at = self.find(word);
        self.len += usize::from(self.slots[at].group == NONE);
        self.slots[at] = WordSlot { word: halves(word), group };
    }
}

impl FromIterator<(u128, u32)> for WordMap {
    fn from_iter<I: IntoIterator<Item = (u128, u32)>>(words: I) -> WordMap {
        let mut map = WordMap::default();
        words.into_iter().for_each(|(word, group)| map.insert(word, group));
        map
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn words_have_the_groups_that_they_were_given() {
        let (mut map, mut expected) = (WordMap::default(), HashMap::new());
        let word = |i: u32| u128::from(i % 7) << 64 | u128::from(i).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        assert_eq!((map.get(0), map.get_all(&[0, 1])), (None, vec![NONE; 2]));
        for i in 0..30_000 {
            assert_eq!(map.get(word(i)), None);
            map.insert(word(i), i);
            expected.insert(word(i), i);
            if i.is_power_of_two() || i == 29_999 {
                let asked: Vec<u128> = (0..2 * i).map(word).collect();
                let found = asked.iter().map(|word| expected.get(word).copied().unwrap_or(NONE));
                assert_eq!(map.get_all(&asked), found.collect::<Vec<_>>());
                assert_eq!(map.iter().collect::<HashMap<_, _>>(), expected);
            }
        }
        map.insert(word(3), 9);
        assert_eq!((map.len(), map.get(word(3))), (30_000, Some(9)));
        map.reserve(100_000);
        assert_eq!((map.len(), map.get(word(3)), map.get(word(29_999))), (30_000, Some(9), Some(29_999)));
    }
}
