//! A number for each key that does not fit a word: of its group, or of the first row that has it. The keys lie end to end, not in
//! separate boxes.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The size of a key beside its bytes: its hash, its end, its number, and its place in the table with the table's free places.
const KEY_BYTES: usize = 32;

#[derive(Default)]
pub(super) struct LongKeys {
    hasher: DefaultHashBuilder,
    /// Numbers of keys, by their hashes.
    table: HashTable<u32>,
    keys: Vec<LongKey>,
    bytes: Vec<u8>,
}

struct LongKey {
    hash: u64,
    /// Where its bytes end.
    end: u32,
    value: u32,
}

impl LongKeys {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// What all keys take.
    pub fn bytes(&self) -> usize {
        self.table.capacity() * (size_of::<u32>() + 1) + self.keys.capacity() * size_of::<LongKey>() + self.bytes.capacity()
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.keys[before].end as usize);
        &self.bytes[start..self.keys[number].end as usize]
    }

    pub fn get(&self, key: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let is_same = |number: &u32| self.keys[*number as usize].hash == hash && self.key(*number as usize) == key;
        self.table.find(hash, is_same).map(|number| self.keys[*number as usize].value)
    }

    /// Adds a key that is not there; about how many bytes that takes.
    ///
    /// # Panics
    /// When all keys take 4 GB: an operator holds less than that.
    pub fn insert(&mut self, key: &[u8], value: u32) -> usize {
        let hash = self.hasher.hash_one(key);
        let number = self.append(key, hash, value);
        let keys = &self.keys;
        self.table.insert_unique(hash, number, |number| keys[*number as usize].hash);
        KEY_BYTES + key.len()
    }

    /// Sets the number of a key, which may exist already; returns the one it had.
    ///
    /// # Panics
    /// As `insert`.
    pub fn put(&mut self, key: &[u8], value: u32) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        let keys = &self.keys;
        let is_same = |number: &u32| keys[*number as usize].hash == hash && self.key(*number as usize) == key;
        match self.table.find(hash, is_same) {
            Some(number) => Some(std::mem::replace(&mut self.keys[*number as usize].value, value)),
            None => {
                self.insert(key, value);
                None
            }
        }
    }

    fn append(&mut self, key: &[u8], hash: u64, value: u32) -> u32 {
        self.bytes.extend_from_slice(key);
        let end = u32::try_from(self.bytes.len()).expect("an operator holds at most 1 GB");
        self.keys.push(LongKey { hash, end, value });
        self.keys.len() as u32 - 1
    }

    /// The keys and their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        (0..self.keys.len()).map(|number| (self.key(number), self.keys[number].value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_again() {
        let mut keys = LongKeys::default();
        let key = |n: u32| format!("a key that fits no word {n}").into_bytes();
        for n in 0..1000 {
            assert_eq!(keys.get(&key(n)), None);
            keys.insert(&key(n), n * 2);
        }
        assert!((0..1000).all(|n| keys.get(&key(n)) == Some(n * 2)));
        assert_eq!((keys.get(b""), keys.len()), (None, 1000));
        assert!(keys.iter().zip(0..).all(|((bytes, group), n)| bytes == key(n) && group == n * 2));
        assert_eq!((keys.put(&key(7), 3), keys.put(&key(7), 5), keys.put(b"another", 1)), (Some(14), Some(3), None));
        assert_eq!((keys.get(&key(7)), keys.get(b"another"), keys.len()), (Some(5), Some(1), 1001));
    }
}
