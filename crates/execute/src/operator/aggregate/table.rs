//! The groups of a grouping set by their key.

use std::hash::Hash;

use hashbrown::HashMap;
use melba_expression::Vector;
use melba_plan::node::AggregateNode;
use melba_types::{Column, ColumnData, Datum, DbError, Kind, Result};

/// About what a group's entry in a table by key takes, beside the key.
pub(super) const GROUP_ENTRY_BYTES: usize = 96;

/// The numbers of groups.
pub(super) enum GroupTable {
    /// All keys are integers, or held as these, and fit a word together.
    Words(HashMap<u128, u32>),
    Bytes(HashMap<Box<[u8]>, u32>),
}

/// Keys of the rows of a batch, made as they are asked for.
pub(super) struct BatchKeys<'a> {
    node: &'a AggregateNode,
    columns: &'a [usize],
    keys: &'a [Vector<'a>],
    /// Of a table by words.
    words: Vec<u128>,
    /// The key of the row asked for last, of a table by bytes.
    bytes: Vec<u8>,
}

fn bits(kind: Kind) -> Option<u32> {
    match kind {
        Kind::Int2 => Some(16),
        Kind::Int4 => Some(32),
        Kind::Int8 => Some(64),
        _ => None,
    }
}

impl GroupTable {
    pub fn new(node: &AggregateNode, set: usize) -> GroupTable {
        // Each has a bit more, which says that it is not null.
        let width = |c: &usize| bits(node.groups[*c].kind).filter(|_| node.parts[*c].is_plain()).map(|bits| bits + 1);
        let width = node.sets[set].iter().map(width).sum::<Option<u32>>();
        match width {
            Some(width) if width <= u128::BITS => GroupTable::Words(HashMap::new()),
            _ => GroupTable::Bytes(HashMap::new()),
        }
    }

    pub fn keys<'a>(&self, node: &'a AggregateNode, set: usize, keys: &'a [Vector<'a>], rows: usize) -> BatchKeys<'a> {
        let columns = &node.sets[set][..];
        let mut words = Vec::new();
        if matches!(self, GroupTable::Words(_)) {
            words.resize(rows, 0);
            columns.iter().for_each(|c| append_words(&keys[*c], bits(node.groups[*c].kind).unwrap_or(0), &mut words));
        }
        BatchKeys { node, columns, keys, words, bytes: Vec::new() }
    }

    /// The group of row `i`.
    #[inline]
    pub fn get(&self, keys: &mut BatchKeys<'_>, i: usize) -> Option<u32> {
        match self {
            GroupTable::Words(table) => table.get(&keys.words[i]).copied(),
            GroupTable::Bytes(table) => table.get(keys.encode(i)).copied(),
        }
    }

    /// Adds the group of row `i`; about how many bytes that takes.
    pub fn insert(&mut self, keys: &mut BatchKeys<'_>, i: usize, group: u32) -> usize {
        match self {
            GroupTable::Words(table) => {
                table.insert(keys.words[i], group);
                2 * (size_of::<u128>() + size_of::<u128>())
            }
            GroupTable::Bytes(table) => {
                let key = keys.encode(i);
                table.insert(key.into(), group);
                GROUP_ENTRY_BYTES + key.len()
            }
        }
    }

    /// Adds the groups of another table of the same set: those with new keys get numbers from `next` on, in their order. The number
    /// here of each group there.
    ///
    /// # Errors
    /// XX000 when the other table is of another set.
    pub fn absorb(&mut self, other: GroupTable, next: u32) -> Result<Vec<u32>> {
        match (self, other) {
            (GroupTable::Words(own), GroupTable::Words(other)) => Ok(absorb(own, other, next)),
            (GroupTable::Bytes(own), GroupTable::Bytes(other)) => Ok(absorb(own, other, next)),
            _ => Err(DbError::internal("groups by words and by bytes are not of one set")),
        }
    }

    /// The group of the set that has no columns.
    pub fn insert_only(&mut self, group: u32) {
        match self {
            GroupTable::Words(table) => table.insert(0, group),
            GroupTable::Bytes(table) => table.insert(Box::default(), group),
        };
    }

    pub fn only(&self) -> u32 {
        let group = match self {
            GroupTable::Words(table) => table.get(&0),
            GroupTable::Bytes(table) => table.get(&[][..]),
        };
        group.copied().unwrap_or(0)
    }
}

impl BatchKeys<'_> {
    /// The key of row `i` as bytes.
    pub fn encode(&mut self, i: usize) -> &[u8] {
        self.bytes.clear();
        for &c in self.columns {
            self.keys[c].encode_key(&self.node.parts[c], i, &mut self.bytes);
        }
        &self.bytes
    }
}

fn absorb<K: Hash + Eq>(own: &mut HashMap<K, u32>, other: HashMap<K, u32>, mut next: u32) -> Vec<u32> {
    let mut keys: Vec<(u32, K)> = other.into_iter().map(|(key, group)| (group, key)).collect();
    keys.sort_unstable_by_key(|(group, _)| *group);
    let mut place = |key| {
        *own.entry(key).or_insert_with(|| {
            next += 1;
            next - 1
        })
    };
    keys.into_iter().map(|(_, key)| place(key)).collect()
}

/// Appends a value of so many bits, and one that says that it is not null, to the word of each row.
fn append_words(values: &Vector<'_>, bits: u32, words: &mut [u128]) {
    let mask = (1u128 << bits) - 1;
    let not_null = 1u128 << bits;
    let append = |word: &mut u128, value: Option<i64>| {
        *word = *word << (bits + 1) | value.map_or(0, |value| not_null | value as u128 & mask);
    };
    let column: &Column = match values {
        Vector::Borrowed(column) => column,
        Vector::Owned(column) => column,
        Vector::Scalar(value) => return words.iter_mut().for_each(|word| append(word, integer(value))),
    };
    let valid = |i: usize| column.validity.as_ref().is_none_or(|v| v.get(i));
    let rows = words.iter_mut().enumerate();
    match &column.data {
        ColumnData::Int2(v) => rows.for_each(|(i, word)| append(word, valid(i).then_some(i64::from(v[i])))),
        ColumnData::Int4(v) => rows.for_each(|(i, word)| append(word, valid(i).then_some(i64::from(v[i])))),
        ColumnData::Int8(v) => rows.for_each(|(i, word)| append(word, valid(i).then_some(v[i]))),
        _ => rows.for_each(|(i, word)| append(word, integer(&column.get(i)))),
    }
}

fn integer(value: &Datum) -> Option<i64> {
    match value {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_two_tables_get_one_number_each() {
        let table = |keys: &[u128]| GroupTable::Words((0..).zip(keys).map(|(group, key)| (*key, group)).collect());
        let mut own = table(&[10, 11]);
        assert_eq!(own.absorb(table(&[12, 11, 13]), 2).expect("of one set"), [2, 1, 3]);
        let refused = own.absorb(GroupTable::Bytes(HashMap::new()), 4).expect_err("of another set");
        assert_eq!(refused.sqlstate(), melba_types::SqlState::INTERNAL_ERROR);
    }

    #[test]
    fn words_tell_values_and_nulls_apart() {
        let mut column = Column::with_capacity(Kind::Int4, 0);
        for value in [Datum::Int4(0), Datum::Null, Datum::Int4(-1), Datum::Int4(i32::MIN), Datum::Int4(i32::MAX)] {
            column.push(value);
        }
        let mut words = vec![0; column.len() * 2];
        for (i, word) in words.iter_mut().enumerate() {
            let other = Datum::Int8([i64::MIN, -1][i % 2]);
            let mut both = [0];
            append_words(&Vector::Owned(column.take(&[i as u32 / 2])), 32, &mut both);
            append_words(&Vector::Scalar(other), 64, &mut both);
            *word = both[0];
        }
        let all = words.clone();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all.len(), "{all:x?}");
    }
}
