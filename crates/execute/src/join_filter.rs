//! The keys of a hash join's built rows, as a filter for scans of its left side.

use std::cell::RefCell;
use std::sync::Arc;

use melba_types::{Column, ColumnData};

/// Bytes that a filter may take with any number of keys, and per key.
const SMALL_BYTES: usize = 64 << 10;
const KEY_BYTES: usize = 32;

/// A set of integers: a bit for each one between the least and the greatest.
#[derive(Debug)]
pub(crate) struct JoinFilter {
    least: i64,
    greatest: i64,
    bits: Vec<u64>,
    count: usize,
}

/// The filters of a running plan, by number; those whose join is not built yet, or not as a whole, are missing.
pub(crate) type JoinFilters = Vec<RefCell<Option<Arc<JoinFilter>>>>;

impl JoinFilter {
    /// The set of some keys; `None` when they lie so far from each other that it would be large.
    pub fn new(keys: impl Iterator<Item = i64> + Clone) -> Option<JoinFilter> {
        let (mut least, mut greatest, mut count) = (i64::MAX, i64::MIN, 0_usize);
        for key in keys.clone() {
            (least, greatest, count) = (least.min(key), greatest.max(key), count + 1);
        }
        if count == 0 {
            return Some(JoinFilter { least: 0, greatest: -1, bits: Vec::new(), count: 0 });
        }
        let words = usize::try_from(greatest.abs_diff(least) / 64).ok()?.checked_add(1)?;
        if words > SMALL_BYTES.max(count.saturating_mul(KEY_BYTES)) / 8 {
            return None;
        }
        let mut bits = vec![0; words];
        for key in keys {
            let at = key.abs_diff(least);
            bits[(at / 64) as usize] |= 1 << (at % 64);
        }
        let count = bits.iter().map(|word: &u64| word.count_ones() as usize).sum();
        Some(JoinFilter { least, greatest, bits, count })
    }

    pub fn bytes(&self) -> usize {
        self.bits.len() * 8
    }

    /// The least and the greatest key; the least is greater when there is none.
    pub fn bounds(&self) -> (i64, i64) {
        (self.least, self.greatest)
    }

    fn contains(&self, key: i64) -> bool {
        // Keys below the least become large.
        let at = key.wrapping_sub(self.least) as u64;
        let word = self.bits.get((at / 64) as usize).copied().unwrap_or(0);
        word >> (at % 64) & 1 != 0
    }

    /// How many keys there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// In ascending order.
    pub fn keys(&self) -> impl Iterator<Item = i64> {
        let of_word = |word: u64| (0..64).filter(move |bit| word >> bit & 1 != 0);
        let places = self.bits.iter().zip(0..).flat_map(move |(word, at)| of_word(*word).map(move |bit| at * 64 + bit));
        places.map(|place| self.least + place)
    }

    /// Leaves those of some rows whose value is in the set.
    pub fn retain(&self, column: &Column, rows: &mut Vec<u32>) {
        if let Some(passing) = self.passing(&column.take(rows)) {
            *rows = passing.iter().map(|at| rows[*at as usize]).collect();
        }
    }

    /// The rows whose value is in the set; `None` for a column that does not hold integers.
    pub fn passing(&self, column: &Column) -> Option<Vec<u32>> {
        fn rows<T: Copy + Into<i64>>(filter: &JoinFilter, values: &[T]) -> Vec<u32> {
            let mut rows = vec![0; values.len()];
            let mut count = 0;
            for (i, value) in values.iter().enumerate() {
                rows[count] = i as u32;
                count += usize::from(filter.contains((*value).into()));
            }
            rows.truncate(count);
            rows
        }
        let mut rows = match &column.data {
            ColumnData::Int2(values) => rows(self, values),
            ColumnData::Int4(values) => rows(self, values),
            ColumnData::Int8(values) => rows(self, values),
            ColumnData::Oid(values) => rows(self, values),
            _ => return None,
        };
        if column.validity.is_some() {
            rows.retain(|row| !column.is_null(*row as usize));
        }
        Some(rows)
    }
}

#[cfg(test)]
mod tests {
    use melba_types::Bitmap;

    use super::*;

    #[test]
    fn rows_whose_key_is_in_the_set_pass() {
        let filter = JoinFilter::new([7, -3, 60, 61].into_iter()).expect("small");
        let column = Column::new(ColumnData::Int4(vec![-4, -3, 6, 7, 60, 62, i32::MAX, i32::MIN]));
        assert_eq!(filter.passing(&column), Some(vec![1, 3, 4]));
        let mut nulls = Bitmap::filled(3, true);
        nulls.set(1, false);
        let column = Column { data: ColumnData::Int8(vec![7, 7, 61]), validity: Some(nulls) };
        assert_eq!(filter.passing(&column), Some(vec![0, 2]));
        assert_eq!(filter.bounds(), (-3, 61));
        assert_eq!((filter.count(), filter.keys().collect::<Vec<_>>()), (4, vec![-3, 7, 60, 61]));
        let mut rows = vec![1, 2];
        filter.retain(&column, &mut rows);
        assert_eq!(rows, [2]);
        assert_eq!(filter.passing(&Column::new(ColumnData::Float8(vec![7.0]))), None);
    }

    #[test]
    fn no_keys_and_keys_at_the_ends() {
        let none = JoinFilter::new(std::iter::empty()).expect("small");
        assert_eq!(none.passing(&Column::new(ColumnData::Int8(vec![0, -1, i64::MIN]))), Some(vec![]));
        assert!(JoinFilter::new([i64::MIN, i64::MAX].into_iter()).is_none());
        let one = JoinFilter::new([i64::MAX].into_iter()).expect("small");
        assert_eq!(one.passing(&Column::new(ColumnData::Int8(vec![i64::MAX, i64::MIN, -1]))), Some(vec![0]));
    }
}
