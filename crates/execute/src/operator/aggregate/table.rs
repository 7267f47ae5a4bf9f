//! The groups of a grouping set by their key.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::super::integers::each_int;
use super::super::long_keys::LongKeys;
use super::by_codes::ByCodes;
use super::word_map::{NONE, WordMap};
use melba_expression::Vector;
use melba_plan::node::AggregateNode;
use melba_types::Kind;
use melba_types::key_words::{KeyWords, word_of};

/// The numbers of groups. Integers, and values with their physical form, that fit a word together are a key in a separate form;
/// other keys are encoded.
#[derive(Default)]
pub(super) struct GroupTable {
    /// The key is an integer, and its values lie close together so far: `words` is empty.
    near: Option<Near>,
    /// It is an integer, and its values did not lie close together.
    far: Option<Far>,
    words: WordMap,
    /// Encoded keys that do not fit a word.
    long: LongKeys,
    pub by_codes: ByCodes,
}

/// Keys of the rows of a batch, computed on demand.
pub(super) struct BatchKeys<'a> {
    node: &'a AggregateNode,
    columns: &'a [usize],
    keys: &'a [Vector<'a>],
    words: Words,
    /// The encoded key of the last requested row.
    bytes: Vec<u8>,
}

/// The keys that fit words, by row.
enum Words {
    Integers(Vec<u128>),
    Encoded(KeyWords),
    /// Each is encoded on demand: most do not fit, or are not needed.
    Few,
}

/// A key, whose bytes are held as `B` if they do not fit a word.
#[derive(Clone, Copy)]
pub(super) enum Key<B> {
    Word(u128),
    Long(B),
}

fn bits(kind: Kind) -> Option<u32> {
    match kind {
        Kind::Int2 => Some(16),
        Kind::Int4 => Some(32),
        Kind::Int8 => Some(64),
        _ => None,
    }
}

/// The bits of a key of integers, if it is one that fits a word. Each has a bit more, which says that it is not null.
fn integer_bits(node: &AggregateNode, set: usize) -> Option<u32> {
    let width = |c: &usize| bits(node.groups[*c].kind).filter(|_| node.parts[*c].is_plain()).map(|bits| bits + 1);
    node.keys[set].iter().map(width).sum::<Option<u32>>().filter(|width| *width <= u128::BITS)
}

impl GroupTable {
    pub fn new(node: &AggregateNode, set: usize) -> GroupTable {
        let near = integer_bits(node, set).filter(|_| node.keys[set].len() == 1).map(|width| Near::new(width - 1));
        GroupTable { near, ..GroupTable::default() }
    }

    /// Reserves capacity for `groups` groups, if they are hashed.
    pub fn reserve(&mut self, groups: usize) {
        if self.near.is_none() {
            self.words.reserve(groups);
        }
    }

    /// The keys of a batch; `are_few`: hardly any will be used.
    pub fn keys<'a>(
        &self,
        node: &'a AggregateNode,
        set: usize,
        keys: &'a [Vector<'a>],
        rows: usize,
        are_few: bool,
    ) -> BatchKeys<'a> {
        let columns = &node.keys[set][..];
        let words = match integer_bits(node, set) {
            _ if are_few => Words::Few,
            Some(_) => {
                let mut words = vec![0; rows];
                columns.iter().for_each(|c| append_words(&keys[*c], bits(node.groups[*c].kind).unwrap_or(0), &mut words));
                Words::Integers(words)
            }
            None if self.long.len() > self.words.len() => Words::Few,
            None => {
                let mut words = KeyWords::new(rows);
                columns.iter().for_each(|c| keys[*c].append_words(&node.parts[*c], &mut words));
                Words::Encoded(words)
            }
        };
        BatchKeys { node, columns, keys, words, bytes: Vec::new() }
    }

    /// The group of row `i`.
    #[inline]
    pub fn get(&self, keys: &mut BatchKeys<'_>, i: usize) -> Option<u32> {
        match keys.key(i) {
            Key::Word(word) => self.get_word(word),
            Key::Long(key) => self.long.get(key),
        }
    }

    /// The group of each row of a batch, as far as it is known by the word of its key; `NONE` for others.
    pub fn get_all(&self, keys: &BatchKeys<'_>, rows: usize) -> Vec<u32> {
        let mut groups = match (&self.near, &keys.words) {
            (Some(_), _) | (None, Words::Few) => vec![NONE; rows],
            (None, Words::Integers(words)) => self.words.get_all(words),
            (None, Words::Encoded(words)) => self.words.get_all(words.words()),
        };
        if let Words::Encoded(words) = &keys.words {
            groups.iter_mut().enumerate().filter(|(row, _)| words.get(*row).is_none()).for_each(|(_, group)| *group = NONE);
        }
        groups
    }

    #[inline]
    fn get_word(&self, word: u128) -> Option<u32> {
        match &self.near {
            Some(near) => near.get(word),
            None => self.words.get(word),
        }
    }

    /// Adds the group of a word, which is new; about how many bytes that takes.
    fn insert_word(&mut self, word: u128, group: u32) -> usize {
        if let Some(near) = &mut self.near {
            if let Some(bytes) = near.insert(word, group) {
                return bytes;
            }
            self.words = near.words().collect();
            let far = Far { bits: near.bits, least: i64::MAX, greatest: i64::MIN };
            self.far = Some(self.words.iter().fold(far, |far, (word, _)| far.with(word)));
            self.near = None;
        }
        self.words.insert(word, group);
        let hashed_bytes = 2 * WordMap::SLOT_BYTES;
        let count = self.words.len();
        let Some(far) = self.far.take().map(|far| far.with(word)) else { return hashed_bytes };
        // Values of any order lie close once there are many.
        if count >= FAR_GROUPS_MIN && count.is_power_of_two() && far.places() <= count * PLACES_A_GROUP / 2 {
            let near = self.near.insert(Near::of(&far, std::mem::take(&mut self.words)));
            return hashed_bytes + near.places.capacity() * size_of::<u32>();
        }
        self.far = Some(far);
        hashed_bytes
    }

    /// Adds the group of row `i`; about how many bytes that takes.
    pub fn insert(&mut self, keys: &mut BatchKeys<'_>, i: usize, group: u32) -> usize {
        match keys.key(i) {
            Key::Word(word) => self.insert_word(word, group),
            Key::Long(key) => self.long.insert(key, group),
        }
    }

    /// Adds groups of another table of the same set: those with new keys get numbers from `next` on, in their order. The number
    /// here of each group there, and about how many bytes the new ones take.
    pub fn absorb<'k>(&mut self, keys: impl Iterator<Item = Key<&'k [u8]>>, mut next: u32) -> (Vec<u32>, usize) {
        let mut bytes = 0;
        let place = |key: Key<&[u8]>| {
            let known = match key {
                Key::Word(word) => self.get_word(word),
                Key::Long(key) => self.long.get(key),
            };
            known.unwrap_or_else(|| {
                bytes += match key {
                    Key::Word(word) => self.insert_word(word, next),
                    Key::Long(key) => self.long.insert(key, next),
                };
                next += 1;
                next - 1
            })
        };
        let places = keys.map(place).collect();
        (places, bytes)
    }

    /// The keys in the order of their groups' numbers, which are all those from 0 on.
    pub fn by_number(&self) -> Vec<Key<&[u8]>> {
        let near = self.near.as_ref();
        let mut out = vec![Key::Word(0); near.map_or(0, |near| near.groups) + self.words.len() + self.long.len()];
        let words = near.into_iter().flat_map(Near::words).chain(self.words.iter());
        words.for_each(|(word, group)| out[group as usize] = Key::Word(word));
        self.long.iter().for_each(|(key, group)| out[group as usize] = Key::Long(key));
        out
    }

    /// The group of the set that has no columns.
    pub fn insert_only(&mut self, group: u32) {
        self.insert_word(0, group);
    }

    pub fn only(&self) -> u32 {
        self.get_word(0).unwrap_or(0)
    }
}

/// How groups of several tables are split into parts by the hash of their keys, so that those of one key are in the same.
pub(super) struct Splitter {
    hasher: DefaultHashBuilder,
    count: u64,
}

impl Splitter {
    pub fn new(count: usize) -> Splitter {
        Splitter { hasher: DefaultHashBuilder::default(), count: count as u64 }
    }

    #[inline]
    pub fn part_of(&self, key: &Key<&[u8]>) -> u32 {
        let hash = match key {
            Key::Word(word) => self.hasher.hash_one(word),
            Key::Long(key) => self.hasher.hash_one(key),
        };
        (hash % self.count) as u32
    }
}

/// Tables whose groups are found by distance, in parts by ranges of their keys.
pub(super) struct Ranges<'a> {
    nears: Vec<&'a Near>,
    first: i64,
    /// Of a part.
    width: usize,
}

/// The groups of one range, to which those of each table are added.
pub(super) struct RangePart<'a> {
    ranges: &'a Ranges<'a>,
    /// NULL is in the first one.
    is_first: bool,
    from: i128,
    /// As in `Near`.
    places: Vec<u32>,
    null: u32,
    groups: u32,
}

impl<'a> Ranges<'a> {
    /// `count` parts; `None` when some groups are found in another way, or the tables lie too far from each other.
    pub fn new(tables: impl Iterator<Item = &'a GroupTable>, count: usize) -> Option<Ranges<'a>> {
        let nears: Vec<&Near> = tables.map(|table| table.near.as_ref()).collect::<Option<_>>()?;
        let filled = || nears.iter().filter(|near| !near.places.is_empty());
        let first = filled().map(|near| near.first).min()?;
        let last = filled().map(|near| near.first.saturating_add(near.places.len() as i64 - 1)).max()?;
        let span = usize::try_from(last.abs_diff(first)).ok()?;
        // Tables that lie far from each other would leave most places of the parts free.
        let held: usize = nears.iter().map(|near| near.places.len()).sum();
        (span / 2 <= held).then_some(Ranges { nears, first, width: span / count + 1 })
    }

    pub fn part(&'a self, part: usize) -> RangePart<'a> {
        let from = i128::from(self.first) + part as i128 * self.width as i128;
        RangePart { ranges: self, is_first: part == 0, from, places: vec![0; self.width], null: 0, groups: 0 }
    }
}

impl RangePart<'_> {
    /// Adds the groups of a table: their numbers there, and their numbers here. New ones get the next numbers.
    pub fn absorb(&mut self, table: usize) -> (Vec<u32>, Vec<u32>) {
        let near = self.ranges.nears[table];
        let (mut theirs, mut own) = (Vec::new(), Vec::new());
        let groups = &mut self.groups;
        let mut put = |number: u32, place: &mut u32| {
            if *place == 0 {
                *groups += 1;
                *place = *groups;
            }
            theirs.push(number - 1);
            own.push(*place - 1);
        };
        let first = i128::from(near.first);
        let start = first.max(self.from);
        let end = (first + near.places.len() as i128).min(self.from + self.places.len() as i128);
        if start < end {
            let of_table = &near.places[(start - first) as usize..(end - first) as usize];
            let of_part = &mut self.places[(start - self.from) as usize..(end - self.from) as usize];
            of_table.iter().zip(of_part).filter(|(number, _)| **number > 0).for_each(|(number, place)| put(*number, place));
        }
        if self.is_first && near.null > 0 {
            put(near.null, &mut self.null);
        }
        (theirs, own)
    }

    pub fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }
}

impl BatchKeys<'_> {
    /// The key of row `i`.
    #[inline]
    fn key(&mut self, i: usize) -> Key<&[u8]> {
        let word = match &self.words {
            Words::Integers(words) => Some(words[i]),
            Words::Encoded(words) => words.get(i),
            Words::Few => None,
        };
        if let Some(word) = word {
            return Key::Word(word);
        }
        let key = self.encode(i);
        word_of(key).map_or(Key::Long(key), Key::Word)
    }

    /// Hands on bytes that are the same for equal keys of any batch, and differ for others.
    pub fn with_bytes<T>(&mut self, i: usize, f: impl FnOnce(&[u8]) -> T) -> T {
        match self.key(i) {
            Key::Word(word) => f(&word.to_le_bytes()),
            Key::Long(key) => f(key),
        }
    }

    /// The key of row `i` as bytes.
    pub fn encode(&mut self, i: usize) -> &[u8] {
        self.bytes.clear();
        encode(self.node, self.columns, self.keys, i, &mut self.bytes);
        &self.bytes
    }
}

/// Appends the encoded key of row `i` in some of the grouping columns.
fn encode(node: &AggregateNode, columns: &[usize], keys: &[Vector<'_>], i: usize, out: &mut Vec<u8>) {
    columns.iter().for_each(|&c| keys[c].encode_key(&node.parts[c], i, out));
}

/// Groups of one integer that are hashed: between which values they lie.
struct Far {
    /// Of a value, in the word of a key.
    bits: u32,
    least: i64,
    greatest: i64,
}

/// With fewer groups it is not looked whether they lie close.
const FAR_GROUPS_MIN: usize = 1 << 10;

impl Far {
    /// With one more key.
    fn with(self, word: u128) -> Far {
        if word == 0 {
            return self;
        }
        let value = word_value(word, self.bits);
        Far { least: self.least.min(value), greatest: self.greatest.max(value), ..self }
    }

    /// How many values there may be.
    fn places(&self) -> usize {
        usize::try_from(self.greatest.abs_diff(self.least)).map_or(usize::MAX, |span| span.saturating_add(1))
    }
}

/// Groups of one integer, by its distance from the first.
pub(super) struct Near {
    /// Of a value, in the word of a key.
    bits: u32,
    first: i64,
    /// The number of a value's group and 1; 0: there is none.
    places: Vec<u32>,
    /// The same of NULL.
    null: u32,
    groups: usize,
}

/// Places a group, and in any case, beyond which keys are hashed.
const PLACES_A_GROUP: usize = 16;
const PLACES_LEAST: usize = 1 << 14;

impl Near {
    fn new(bits: u32) -> Near {
        Near { bits, first: 0, places: Vec::new(), null: 0, groups: 0 }
    }

    /// The groups of some keys that lie as `far` says.
    fn of(far: &Far, words: WordMap) -> Near {
        let places = vec![0; far.places()];
        let mut near = Near { first: far.least, places, groups: words.len(), ..Near::new(far.bits) };
        for (word, group) in words.iter() {
            match word {
                0 => near.null = group + 1,
                _ => near.places[word_value(word, far.bits).wrapping_sub(far.least) as usize] = group + 1,
            }
        }
        near
    }

    /// The value in a key that is not NULL.
    #[inline]
    fn value(&self, word: u128) -> i64 {
        word_value(word, self.bits)
    }

    #[inline]
    fn get(&self, word: u128) -> Option<u32> {
        let place = match word {
            0 => self.null,
            // Values below the first become large.
            _ => *self.places.get(usize::try_from(self.value(word).wrapping_sub(self.first) as u64).ok()?)?,
        };
        place.checked_sub(1)
    }

    /// Adds a group, and says how many more bytes are held; `None` when its key is too far from the others.
    fn insert(&mut self, word: u128, group: u32) -> Option<usize> {
        let before = self.places.capacity();
        if word == 0 {
            self.null = group + 1;
        } else {
            let value = self.value(word);
            self.reach(value)?;
            self.places[value.wrapping_sub(self.first) as usize] = group + 1;
        }
        self.groups += 1;
        Some((self.places.capacity() - before) * size_of::<u32>())
    }

    /// Makes a place for a value, if the values are not too far from each other then.
    fn reach(&mut self, value: i64) -> Option<()> {
        if self.places.is_empty() {
            self.first = value;
        }
        let most = PLACES_LEAST.max(self.groups * PLACES_A_GROUP);
        let last = self.first.saturating_add(self.places.len() as i64 - 1);
        let span = usize::try_from(last.max(value).abs_diff(self.first.min(value))).ok()?.checked_add(1)?;
        if span > most {
            return None;
        }
        if value < self.first {
            // With room for more below, so that keys that descend do not move the others each time.
            let below = (span - self.places.len()).max((most - self.places.len()).min(self.places.len()));
            let first = self.first.saturating_sub(below as i64);
            let below = self.first.abs_diff(first) as usize;
            self.places.splice(0..0, std::iter::repeat_n(0, below));
            self.first = first;
        } else if span > self.places.len() {
            self.places.resize(span, 0);
        }
        Some(())
    }

    /// The keys and their groups.
    fn words(&self) -> impl Iterator<Item = (u128, u32)> {
        let word = |at: usize| 1 << self.bits | self.first.wrapping_add(at as i64) as u128 & ((1 << self.bits) - 1);
        let values = self.places.iter().enumerate().filter(|(_, place)| **place > 0);
        values.map(move |(at, place)| (word(at), *place - 1)).chain(self.null.checked_sub(1).map(|group| (0, group)))
    }
}

/// The value of `bits` bits in a key that is not NULL.
#[inline]
fn word_value(word: u128, bits: u32) -> i64 {
    let above = u128::BITS - bits;
    ((word << above) as i128 >> above) as i64
}

/// Appends a value of `bits` bits, and a bit that says that it is not null, to the word of each row.
fn append_words(values: &Vector<'_>, bits: u32, words: &mut [u128]) {
    let mask = (1u128 << bits) - 1;
    let not_null = 1u128 << bits;
    each_int(values, 0..words.len(), |row, value| {
        words[row] = words[row] << (bits + 1) | value.map_or(0, |value| not_null | value as u128 & mask);
    });
}

#[cfg(test)]
mod tests {
    use melba_types::{Column, Datum};

    use super::*;

    #[test]
    fn groups_of_two_tables_get_one_number_each() {
        let words = |keys: &[u128]| (0..).zip(keys).map(|(group, key)| (*key, group)).collect();
        let table = |keys: &[u128]| GroupTable { words: words(keys), ..GroupTable::default() };
        let mut own = table(&[10, 11]);
        assert_eq!(own.absorb(table(&[12, 11, 13]).by_number().into_iter(), 2).0, [2, 1, 3]);
        let mut near = Near::new(32);
        for (group, value) in (0..).zip([11, 7]) {
            near.insert(1 << 32 | value, group);
        }
        let mut own_near = GroupTable { near: Some(Near::new(32)), ..GroupTable::default() };
        own_near.insert_word(1 << 32 | 7, 0);
        assert_eq!(
            own_near.absorb(GroupTable { near: Some(near), ..GroupTable::default() }.by_number().into_iter(), 1).0,
            [1, 0]
        );
        let long = |keys: &[(&str, u32)]| {
            let mut out = LongKeys::default();
            for (key, group) in keys {
                out.insert(key.as_bytes(), *group);
            }
            out
        };
        let mut own = GroupTable { words: words(&[10]), long: long(&[("a", 1)]), ..GroupTable::default() };
        let other = GroupTable { words: words(&[11, 10]), long: long(&[("b", 2), ("a", 3)]), ..GroupTable::default() };
        assert_eq!(own.absorb(other.by_number().into_iter(), 2).0, [2, 0, 3, 1]);
    }

    #[test]
    fn ranges_of_tables_have_each_group_once() {
        let table = |values: &[i64]| {
            let mut near = Near::new(64);
            for (group, value) in (0..).zip(values) {
                let word = if *value == 0 { 0 } else { 1 << 64 | *value as u128 & u128::from(u64::MAX) };
                near.insert(word, group).unwrap();
            }
            GroupTable { near: Some(near), ..GroupTable::default() }
        };
        // 0 stands for NULL.
        let lists: [&[i64]; 4] = [&[7, 0, 12, -5], &[], &[100, 7, 13, -90], &[0, 12]];
        let tables = lists.map(table);
        for count in [1, 2, 7, 1000] {
            let ranges = Ranges::new(tables.iter(), count).unwrap();
            let mut found = Vec::new();
            for part in 0..count {
                let mut of_part = ranges.part(part);
                let mut groups: Vec<(i64, u32)> = Vec::new();
                for (at, list) in lists.iter().enumerate() {
                    let (theirs, own) = of_part.absorb(at);
                    groups.extend(theirs.iter().zip(own).map(|(number, own)| (list[*number as usize], own)));
                }
                groups.sort_unstable();
                groups.dedup();
                assert!((0..groups.len() as u32).all(|number| groups.iter().filter(|(_, own)| *own == number).count() == 1));
                found.extend(groups.into_iter().map(|(value, _)| value));
            }
            found.sort_unstable();
            assert_eq!(found, [-90, -5, 0, 7, 12, 13, 100], "{count} parts");
        }
        let hashed = GroupTable::default();
        assert!(Ranges::new(tables.iter().chain([&hashed]), 2).is_none());
        let (least, greatest) = (table(&[i64::MIN]), table(&[i64::MAX]));
        assert!(Ranges::new([&least, &greatest].into_iter(), 3).is_none(), "places for all integers");
    }

    #[test]
    fn keys_that_lie_close_are_found_until_one_lies_far() {
        let word = |value: i32| 1 << 32 | value as u128 & u128::from(u32::MAX);
        let values = [5, -3, 100, i32::from(i16::MIN) / 4, 7000, 4, -8193];
        let mut table = GroupTable { near: Some(Near::new(32)), ..GroupTable::default() };
        table.insert_word(0, 0);
        for (group, value) in (1..).zip(values) {
            assert_eq!(table.get_word(word(value)), None);
            table.insert_word(word(value), group);
        }
        assert!(table.near.is_some());
        let found = |table: &GroupTable| -> Vec<_> { values.iter().map(|v| table.get_word(word(*v))).collect() };
        let all: Vec<_> = (1..=7).map(Some).collect();
        assert_eq!((found(&table), table.get_word(0), table.get_word(word(6))), (all.clone(), Some(0), None));
        for far in [i32::MAX, i32::MIN] {
            table.insert_word(word(far), 8);
            assert!(table.near.is_none());
            assert_eq!((found(&table), table.get_word(0), table.get_word(word(far))), (all.clone(), Some(0), Some(8)));
        }
        let mut ends = GroupTable { near: Some(Near::new(64)), ..GroupTable::default() };
        for (group, value) in [i64::MAX, i64::MAX - 1, i64::MIN, 0].into_iter().enumerate() {
            ends.insert_word(1 << 64 | value as u128 & u128::from(u64::MAX), group as u32);
        }
        assert_eq!(ends.get_word(1 << 64 | i64::MIN as u128 & u128::from(u64::MAX)), Some(2));
    }

    #[test]
    fn keys_in_any_order_are_found_by_their_distance_once_there_are_many() {
        let word = |value: i64| 1 << 64 | value as u128 & u128::from(u64::MAX);
        // Each of the values once, and the first ones far from each other.
        let values: Vec<i64> = (0..65_537).map(|i| i * 40_503 % 65_537 - 30_000).collect();
        let mut table = GroupTable { near: Some(Near::new(64)), ..GroupTable::default() };
        let mut was_far = false;
        for (group, value) in (0..).zip(&values) {
            assert_eq!(table.get_word(word(*value)), None);
            table.insert_word(word(*value), group);
            was_far |= table.near.is_none();
            if group == 100 {
                table.insert_word(0, 1_000_000);
            }
        }
        assert!(was_far && table.near.is_some() && table.words.len() == 0);
        assert!((0..).zip(&values).all(|(group, value)| table.get_word(word(*value)) == Some(group)));
        assert_eq!((table.get_word(0), table.get_word(word(50_000))), (Some(1_000_000), None));
        // One that lies far away, and then no more.
        for value in [i64::MIN, i64::MAX] {
            table.insert_word(word(value), 7);
            assert!(table.near.is_none());
            assert_eq!((table.get_word(word(value)), table.get_word(0)), (Some(7), Some(1_000_000)));
        }
        assert!((0..).zip(&values).all(|(group, value)| table.get_word(word(*value)) == Some(group)));
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
