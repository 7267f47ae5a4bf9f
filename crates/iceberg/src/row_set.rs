//! Sets of row ids, and of positions in files: a bit each, in chunks of those that lie close together.

use std::collections::BTreeMap;

const CHUNK_WORDS: usize = 1024;
const CHUNK_BITS: u64 = CHUNK_WORDS as u64 * 64;

/// See the module.
#[derive(Clone, Default)]
pub struct RowSet {
    chunks: BTreeMap<u64, Box<[u64; CHUNK_WORDS]>>,
    rows: u64,
}

impl RowSet {
    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn memory_bytes(&self) -> usize {
        self.chunks.len() * (CHUNK_WORDS * 8 + 48)
    }

    pub fn contains(&self, row: u64) -> bool {
        self.word(row) >> (row % 64) & 1 == 1
    }

    /// The 64 rows around one.
    pub fn word(&self, row: u64) -> u64 {
        self.chunks.get(&(row / CHUNK_BITS)).map_or(0, |chunk| chunk[(row % CHUNK_BITS / 64) as usize])
    }

    pub fn insert(&mut self, row: u64) {
        self.insert_run(row, 1);
    }

    /// Adds rows that follow each other.
    pub fn insert_run(&mut self, first: u64, rows: u64) {
        self.change_run(first, rows, |word, mask| word | mask);
    }

    pub fn remove_run(&mut self, first: u64, rows: u64) {
        self.change_run(first, rows, |word, mask| word & !mask);
    }

    fn change_run(&mut self, first: u64, rows: u64, change: impl Fn(u64, u64) -> u64) {
        let (mut row, end) = (first, first + rows);
        while row < end {
            let chunk = self.chunks.entry(row / CHUNK_BITS).or_insert_with(|| Box::new([0; CHUNK_WORDS]));
            let until = end.min((row / CHUNK_BITS + 1) * CHUNK_BITS);
            while row < until {
                let stop = until.min((row / 64 + 1) * 64);
                let word = &mut chunk[(row % CHUNK_BITS / 64) as usize];
                let next = change(*word, mask(row, stop - row));
                self.rows = self.rows + u64::from(next.count_ones()) - u64::from(word.count_ones());
                *word = next;
                row = stop;
            }
        }
    }

    /// All rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.chunks.iter().flat_map(|(chunk, words)| {
            words.iter().enumerate().flat_map(move |(at, word)| {
                let first = chunk * CHUNK_BITS + at as u64 * 64;
                bits(*word).map(move |bit| first + bit)
            })
        })
    }
}

/// Bits of a word: from `row`, so many, all within it.
pub fn mask(row: u64, rows: u64) -> u64 {
    (u64::MAX >> (64 - rows)) << (row % 64)
}

/// The numbers of a word's bits.
pub fn bits(mut word: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        (word != 0).then(|| {
            word &= word - 1;
            u64::from(bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_added_and_removed() {
        let mut set = RowSet::default();
        set.insert_run(60, 200_000);
        set.insert(60);
        set.insert(u64::MAX / 2);
        assert_eq!(set.rows(), 200_001);
        assert!(!set.contains(59) && set.contains(60) && set.contains(200_059) && !set.contains(200_060));
        set.remove_run(61, 199_998);
        set.remove_run(0, 10);
        assert_eq!(set.iter().collect::<Vec<_>>(), [60, 200_059, u64::MAX / 2]);
        assert_eq!((mask(3, 2), mask(64, 64), mask(63, 1)), (0b11000, u64::MAX, 1 << 63));
    }
}
