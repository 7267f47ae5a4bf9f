//! The first row of each key of a fixed width.
//!
//! Most places of a large table are not in a cache. So rows are entered and looked up in groups: first the place of each is read,
//! which the processor does for many at once, and then the contents are compared.

use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;

use super::table::END;

/// Rows whose places are read before the first of them is compared.
const BLOCK: usize = 256;

/// A row, and a part of its key's hash that its place does not give.
#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    row: u32,
}

const FREE: Slot = Slot { tag: 0, row: END };

pub(super) struct RowTable<K> {
    /// A power of two of them, at most two thirds of which are taken; none when there are no rows. A row is in the first free one from its
    /// place on.
    slots: Vec<Slot>,
    /// By row.
    keys: Vec<K>,
    hasher: DefaultHashBuilder,
}

impl<K: Copy + Eq + Hash> RowTable<K> {
    /// For the rows that are `taken`, with their keys by row; the others' keys are not read. `chain` is called with the rows,
    /// from the last to the first, and the row that was the first with the key before, or `END`.
    pub fn new(keys: Vec<K>, taken: impl Fn(usize) -> bool, mut chain: impl FnMut(usize, u32)) -> RowTable<K> {
        let count = (0..keys.len()).filter(|row| taken(*row)).count();
        if count == 0 {
            return RowTable { slots: Vec::new(), keys: Vec::new(), hasher: DefaultHashBuilder::default() };
        }
        let slots = vec![FREE; (count + count / 2 + 1).next_power_of_two()];
        let mut table = RowTable { slots, keys, hasher: DefaultHashBuilder::default() };
        let mut rows = (0..table.keys.len()).rev().filter(|row| taken(*row));
        let mut block: Vec<(u32, u64)> = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            block.extend(rows.by_ref().take(BLOCK).map(|row| (row as u32, table.hasher.hash_one(table.keys[row]))));
            if block.is_empty() {
                drop(rows);
                return table;
            }
            let read = block.iter().fold(0, |read, (_, hash)| read ^ table.slots[table.place(*hash)].row);
            std::hint::black_box(read);
            for (row, hash) in &block {
                chain(*row as usize, table.insert(*row, *hash));
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.keys.capacity() * size_of::<K>()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    fn is_of(&self, slot: Slot, tag: u32, key: K) -> bool {
        slot.tag == tag && self.keys[slot.row as usize] == key
    }

    /// Makes a row the first of its key; the one that had been it.
    fn insert(&mut self, row: u32, hash: u64) -> u32 {
        let (mut at, tag) = (self.place(hash), tag(hash));
        loop {
            let slot = self.slots[at];
            if slot.row == END || self.is_of(slot, tag, self.keys[row as usize]) {
                self.slots[at] = Slot { tag, row };
                return slot.row;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Appends the first row of each key, `END` for those that have none.
    pub fn find_all(&self, mut keys: impl Iterator<Item = Option<K>>, out: &mut Vec<u32>) {
        if self.is_empty() {
            return out.extend(keys.map(|_| END));
        }
        let look = |key: Option<K>| match key {
            Some(key) => {
                let hash = self.hasher.hash_one(key);
                (Some((key, hash)), self.slots[self.place(hash)])
            }
            None => (None, FREE),
        };
        let mut block: Vec<(Option<(K, u64)>, Slot)> = Vec::with_capacity(keys.size_hint().0.min(BLOCK));
        loop {
            block.clear();
            block.extend(keys.by_ref().take(BLOCK).map(look));
            if block.is_empty() {
                return;
            }
            out.extend(block.iter().map(|(key, first)| key.map_or(END, |(key, hash)| self.find(key, hash, *first))));
        }
    }

    #[inline]
    fn find(&self, key: K, hash: u64, first: Slot) -> u32 {
        let (mut at, mut slot, tag) = (self.place(hash), first, tag(hash));
        while slot.row != END && !self.is_of(slot, tag, key) {
            at = (at + 1) & (self.slots.len() - 1);
            slot = self.slots[at];
        }
        slot.row
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_of_each_key_is_found_and_the_next_ones_are_told() {
        // As many rows of one key as there are slots, and of many, also a multiple of a block.
        for (rows, distinct) in [(0, 1), (1, 1), (2, 2), (BLOCK, 7), (3 * BLOCK, 1), (3000, 3000), (5000, 1999)] {
            let keys: Vec<u128> = (0..rows).map(|row| (row * 7919 % distinct) as u128).collect();
            let taken = |row: usize| row % 5 != 3;
            let mut next = vec![END; rows];
            let table = RowTable::new(keys.clone(), taken, |row, before| next[row] = before);
            let asked: Vec<Option<u128>> = (0..distinct as u128 + 3).map(Some).chain([None]).collect();
            let mut found = vec![7];
            table.find_all(asked.iter().copied(), &mut found);
            assert_eq!(found.remove(0), 7);
            for (key, first) in asked.into_iter().zip(found) {
                let expected: Vec<u32> =
                    (0..rows).filter(|row| taken(*row) && Some(keys[*row]) == key).map(|row| row as u32).collect();
                let chain = std::iter::successors(Some(first), |row| next.get(*row as usize).copied());
                assert_eq!(chain.take_while(|row| *row != END).collect::<Vec<u32>>(), expected, "{key:?} of {rows} rows");
            }
        }
    }
}
