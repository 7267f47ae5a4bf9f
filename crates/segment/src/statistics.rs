//! Statistics of a column chunk, for zone maps and the planner.

use std::borrow::Cow;

use melba_types::bytes::{ByteReader, put_bytes, put_signed, put_varint};
use melba_types::key::{self, KeyColumn, KeyType};
use melba_types::{ByteStrings, Datum, Kind};

use crate::hash::{hash_bytes, hash_word, load_short};

/// Bounds of byte strings are cut to this length.
const BOUND_BYTES_MAX: usize = 32;
/// Bits of the linear counting sketch behind `distinct`: exact to a few percent up to a row group's rows.
const SKETCH_BITS: usize = 1 << 16;
const TAG_NONE: u8 = 0;
const TAG_WORDS: u8 = 1;
const TAG_BYTES: u8 = 2;
const TAG_BYTES_CUT: u8 = 3;

/// A comparison with a constant that zone maps can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneOp {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// Byte strings that begin with the constant.
    StartsWith,
    IsNull,
    IsNotNull,
}

/// The statistics of a chunk's values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    pub nulls: u64,
    /// Distinct values, an estimate.
    pub distinct: u64,
    pub(crate) bounds: Bounds,
}

/// Least and greatest non-null value in the order of `Kind`: numbers by value (NaN greatest, as PostgreSQL orders), byte strings by bytes,
/// numeric, interval and timetz by their keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Bounds {
    /// No values, or a kind without an order here.
    #[default]
    None,
    /// As order keys.
    Words { min: i64, max: i64 },
    /// `cut`: the greatest value begins with `max` but may be longer.
    Bytes { min: Box<[u8]>, max: Box<[u8]>, cut: bool },
}

/// Whether byte order is an order of this kind's storage format.
fn ordered_by_bytes(kind: Kind) -> bool {
    matches!(kind, Kind::Text | Kind::Bytes | Kind::Uuid)
}

/// Whether bounds of this kind are those of its memcomparable keys.
pub(crate) fn ordered_by_key(kind: Kind) -> bool {
    matches!(kind, Kind::Numeric | Kind::Interval | Kind::TimeTz)
}

fn key_of(kind: Kind, value: &Datum) -> Vec<u8> {
    let column = KeyColumn { ty: KeyType::Plain(kind), descending: false, nulls_first: false };
    let mut key = Vec::new();
    key::encode(&column, value, &mut key);
    key
}

/// Maps a word of `kind` to a number of the same order.
pub(crate) fn order_key(kind: Kind, word: i64) -> i64 {
    match kind {
        Kind::Float4 => float_key(f64::from(f32::from_bits(word as u32))),
        Kind::Float8 => float_key(f64::from_bits(word as u64)),
        _ => word,
    }
}

fn float_key(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    // Adding zero turns -0 into 0, which compares equal to it.
    let bits = (value + 0.0).to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The number whose order key this is.
pub(crate) fn number_of(kind: Kind, key: i64) -> f64 {
    match kind {
        Kind::Float4 | Kind::Float8 => f64::from_bits((key ^ ((key >> 63) as u64 >> 1) as i64) as u64),
        _ => key as f64,
    }
}

/// The order key of a constant compared with a column of `kind`; `None` when their orders are not the same thing.
pub(crate) fn datum_key(kind: Kind, value: &Datum) -> Option<i64> {
    let integer = matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8);
    let float = matches!(kind, Kind::Float4 | Kind::Float8);
    Some(match value {
        Datum::Int2(v) if integer => i64::from(*v),
        Datum::Int4(v) if integer => i64::from(*v),
        Datum::Int8(v) if integer => *v,
        Datum::Float4(v) if float => float_key(f64::from(*v)),
        Datum::Float8(v) if float => float_key(*v),
        Datum::Bool(v) if kind == Kind::Bool => i64::from(*v),
        Datum::Oid(v) if kind == Kind::Oid => i64::from(*v),
        Datum::Char(v) if kind == Kind::Char => i64::from(*v),
        _ => return None,
    })
}

pub(crate) fn datum_bytes(kind: Kind, value: &Datum) -> Option<Cow<'_, [u8]>> {
    match (kind, value) {
        (Kind::Text, Datum::Text(v)) => Some(v.as_bytes().into()),
        (Kind::Bytes, Datum::Bytes(v)) => Some((&**v).into()),
        (Kind::Uuid, Datum::Uuid(v)) => Some(v.as_slice().into()),
        _ if ordered_by_key(kind) && value.kind() == Some(kind) => Some(key_of(kind, value).into()),
        _ => None,
    }
}

impl Bounds {
    pub fn of_bytes(min: &[u8], max: &[u8]) -> Bounds {
        let cut = |bound: &[u8]| -> Box<[u8]> { bound[..bound.len().min(BOUND_BYTES_MAX)].into() };
        Bounds::Bytes { min: cut(min), max: cut(max), cut: max.len() > BOUND_BYTES_MAX }
    }

    /// Of the least and greatest value of a kind that is `ordered_by_key`.
    pub fn of_datums(kind: Kind, min: &Datum, max: &Datum) -> Bounds {
        Bounds::of_bytes(&key_of(kind, min), &key_of(kind, max))
    }
}

impl Statistics {
    /// Of the words of a chunk whose null slots were given the value of another row. Leaves the values' hashes in `hashes`, or none
    /// when the words ascend.
    pub(crate) fn of_words(kind: Kind, words: &[i64], nulls: u64, hashes: &mut Vec<u64>) -> Statistics {
        let ascending = words.windows(2).all(|pair| pair[0] < pair[1]);
        // Ascending values are all different; a sketch is for the rest.
        let distinct = if ascending && nulls == 0 {
            words.len() as u64
        } else {
            let mut sketch = Sketch::new();
            hashes.extend(words.iter().map(|&word| hash_word(word as u64)));
            hashes.iter().for_each(|hash| sketch.add(*hash));
            if words.is_sorted() {
                hashes.clear();
            }
            sketch.estimate(words.len() as u64 - nulls)
        };
        let widen = |(min, max): (i64, i64), key: i64| (min.min(key), max.max(key));
        let (min, max) = match kind {
            Kind::Float4 | Kind::Float8 => words.iter().map(|&word| order_key(kind, word)).fold((i64::MAX, i64::MIN), widen),
            _ if let ([first, .., last], true) = (words, ascending) => (*first, *last),
            // Their own order, without a question for each.
            _ => words.iter().copied().fold((i64::MAX, i64::MIN), widen),
        };
        let bounds = if nulls < words.len() as u64 { Bounds::Words { min, max } } else { Bounds::None };
        Statistics { nulls, distinct, bounds }
    }

    /// Of a chunk whose rows all hold one word.
    pub(crate) fn of_constant(kind: Kind, word: i64) -> Statistics {
        let key = order_key(kind, word);
        Statistics { nulls: 0, distinct: 1, bounds: Bounds::Words { min: key, max: key } }
    }

    /// Of the strings of a chunk; `valid` has the rows that are not null. Leaves the values' hashes in `hashes`, or none when the
    /// strings ascend.
    pub(crate) fn of_strings(
        kind: Kind,
        values: &ByteStrings,
        valid: impl Fn(usize) -> bool,
        nulls: u64,
        hashes: &mut Vec<u64>,
    ) -> Statistics {
        let mut sketch = Sketch::new();
        let (mut min, mut max): (Option<Headed<'_>>, Option<Headed<'_>>) = (None, None);
        let (mut last, mut ascending) = (None, true);
        for i in (0..values.len()).filter(|&i| valid(i)) {
            let value = values.get(i);
            let hash = sketch_hash(value);
            sketch.add(hash);
            hashes.push(hash);
            let value = (head_of(value), value);
            ascending = ascending && last.replace(value).is_none_or(|last| last <= value);
            if min.is_none_or(|min| value < min) {
                min = Some(value);
            }
            if max.is_none_or(|max| value > max) {
                max = Some(value);
            }
        }
        if ascending {
            hashes.clear();
        }
        let (min, max) = (min.map(|(_, min)| min), max.map(|(_, max)| max));
        let bounds = match (min, max) {
            (Some(min), Some(max)) if ordered_by_bytes(kind) => Bounds::of_bytes(min, max),
            _ => Bounds::None,
        };
        Statistics { nulls, distinct: sketch.estimate(values.len() as u64 - nulls), bounds }
    }

    /// The least and the greatest value of a chunk of `rows` rows as they are, both NULL when it has no other; `None` when they are not
    /// known to the last bit.
    pub fn extremes(&self, kind: Kind, rows: u64) -> Option<(Datum, Datum)> {
        if self.nulls == rows {
            return Some((Datum::Null, Datum::Null));
        }
        let integer = |key: i64| match kind {
            Kind::Int2 => i16::try_from(key).ok().map(Datum::Int2),
            Kind::Int4 => i32::try_from(key).ok().map(Datum::Int4),
            Kind::Int8 => Some(Datum::Int8(key)),
            _ => None,
        };
        let text = |bound: &[u8]| std::str::from_utf8(bound).ok().filter(|_| bound.len() < BOUND_BYTES_MAX).map(Datum::text);
        match &self.bounds {
            Bounds::Words { min, max } => Some((integer(*min)?, integer(*max)?)),
            Bounds::Bytes { min, max, .. } if kind == Kind::Text => Some((text(min)?, text(max)?)),
            Bounds::Bytes { .. } | Bounds::None => None,
        }
    }

    /// The least and the greatest integer.
    pub fn integer_bounds(&self, kind: Kind) -> Option<(i64, i64)> {
        match (kind, &self.bounds) {
            (Kind::Int2 | Kind::Int4 | Kind::Int8, Bounds::Words { min, max }) => Some((*min, *max)),
            _ => None,
        }
    }

    /// The same of numerics, multiplied by 10^scale, if they are integers then.
    pub fn mantissa_bounds(&self, scale: u16) -> Option<(i64, i64)> {
        let Bounds::Bytes { min, max, cut: false } = &self.bounds else { return None };
        let column = KeyColumn { ty: KeyType::Plain(Kind::Numeric), descending: false, nulls_first: false };
        let mantissa = |bound: &[u8]| {
            let (Datum::Numeric(value), _) = key::decode(&column, bound)? else { return None };
            // A key has no zeros behind the value's last digit.
            let (mantissa, shorter) = value.small_parts()?;
            mantissa.checked_mul(10i64.checked_pow(u32::from(scale.checked_sub(shorter)?))?)
        };
        Some((mantissa(min)?, mantissa(max)?))
    }

    /// Whether no row of a chunk of `rows` rows can satisfy `column op value`. A null constant satisfies nothing.
    pub fn excludes(&self, kind: Kind, rows: u64, op: ZoneOp, value: &Datum) -> bool {
        match op {
            ZoneOp::IsNull => return self.nulls == 0,
            ZoneOp::IsNotNull => return self.nulls == rows,
            _ if value.is_null() || self.nulls == rows => return true,
            _ => {}
        }
        match &self.bounds {
            Bounds::None => false,
            Bounds::Words { min, max } => datum_key(kind, value).is_some_and(|key| match op {
                ZoneOp::Equal => key < *min || key > *max,
                ZoneOp::NotEqual => key == *min && key == *max,
                ZoneOp::Less => *min >= key,
                ZoneOp::LessOrEqual => *min > key,
                ZoneOp::Greater => *max <= key,
                ZoneOp::GreaterOrEqual => *max < key,
                ZoneOp::StartsWith | ZoneOp::IsNull | ZoneOp::IsNotNull => false,
            }),
            Bounds::Bytes { min, max, cut } => {
                datum_bytes(kind, value).is_some_and(|value| excludes_bytes(min, max, *cut, op, &value))
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(self.nulls, out);
        put_varint(self.distinct, out);
        match &self.bounds {
            Bounds::None => out.push(TAG_NONE),
            Bounds::Words { min, max } => {
                out.push(TAG_WORDS);
                put_signed(*min, out);
                put_signed(*max, out);
            }
            Bounds::Bytes { min, max, cut } => {
                out.push(if *cut { TAG_BYTES_CUT } else { TAG_BYTES });
                put_bytes(min, out);
                put_bytes(max, out);
            }
        }
    }

    pub(crate) fn decode(reader: &mut ByteReader<'_>) -> Option<Statistics> {
        let nulls = reader.varint()?;
        let distinct = reader.varint()?;
        let bounds = match reader.u8()? {
            TAG_NONE => Bounds::None,
            TAG_WORDS => Bounds::Words { min: reader.signed()?, max: reader.signed()? },
            tag @ (TAG_BYTES | TAG_BYTES_CUT) => {
                Bounds::Bytes { min: reader.bytes()?.into(), max: reader.bytes()?.into(), cut: tag == TAG_BYTES_CUT }
            }
            _ => return None,
        };
        Some(Statistics { nulls, distinct, bounds })
    }
}

/// `min` may be a prefix of the least value, and `max` one of the greatest when `cut`.
fn excludes_bytes(min: &[u8], max: &[u8], cut: bool, op: ZoneOp, value: &[u8]) -> bool {
    // Whether every value is below `value`, or at it.
    let all_below = max < value && !(cut && value.starts_with(max));
    let all_at_or_below = all_below || (!cut && max == value);
    match op {
        ZoneOp::Equal => value < min || all_below,
        ZoneOp::NotEqual => !cut && min == max && min == value,
        ZoneOp::Less => min >= value,
        ZoneOp::LessOrEqual => min > value,
        ZoneOp::Greater => all_at_or_below,
        ZoneOp::GreaterOrEqual => all_below,
        ZoneOp::StartsWith => (min > value && !min.starts_with(value)) || all_below,
        ZoneOp::IsNull | ZoneOp::IsNotNull => false,
    }
}

/// A string behind the bytes that most comparisons need.
type Headed<'a> = (u64, &'a [u8]);

/// A string's place among most others: its first eight bytes, with zeros after its end.
#[inline]
fn head_of(value: &[u8]) -> u64 {
    match value.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => load_short(value).swap_bytes(),
    }
}

/// The hash by which a filter knows a value of a chunk of some kind; `None` when it knows none of its like.
pub(crate) fn lookup_hash(kind: Kind, value: &Datum) -> Option<u64> {
    match kind {
        Kind::Int4 | Kind::Int8 => datum_key(kind, value).map(|word| hash_word(word as u64)),
        _ if ordered_by_bytes(kind) => datum_bytes(kind, value).map(|bytes| sketch_hash(&bytes)),
        _ => None,
    }
}

/// Long values that agree in length, head and end count as one: distinct values are an estimate, and filters may take one for another.
/// Part of the on-disk format, as the hash is.
#[inline]
fn sketch_hash(value: &[u8]) -> u64 {
    const HEAD_BYTES: usize = 256;
    const END_BYTES: usize = 32;
    if value.len() <= HEAD_BYTES {
        return hash_bytes(value);
    }
    let (head, end) = (&value[..HEAD_BYTES], &value[value.len() - END_BYTES..]);
    hash_bytes(head) ^ hash_bytes(end).rotate_left(1) ^ value.len() as u64
}

/// Linear counting: the share of bits that stay unset gives the number of distinct hashes added.
struct Sketch(Vec<u64>);

impl Sketch {
    fn new() -> Sketch {
        Sketch(vec![0; SKETCH_BITS / 64])
    }

    #[inline]
    fn add(&mut self, hash: u64) {
        let bit = hash as usize % SKETCH_BITS;
        self.0[bit >> 6] |= 1 << (bit & 63);
    }

    fn estimate(&self, rows: u64) -> u64 {
        let unset = self.0.iter().map(|word| word.count_zeros() as usize).sum::<usize>();
        if unset == 0 {
            return rows;
        }
        let bits = SKETCH_BITS as f64;
        ((bits * (bits / unset as f64).ln()).round() as u64).min(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float_keys_follow_postgresql_order() {
        let ordered = [f64::NEG_INFINITY, -1.5, -1e-300, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN];
        assert!(ordered.windows(2).all(|w| float_key(w[0]) < float_key(w[1])));
        assert_eq!(float_key(0.0), float_key(-0.0));
        assert!([-1.5, -1e-300, 0.0, 2.0].iter().all(|&v| number_of(Kind::Float8, float_key(v)) == v));
    }

    #[test]
    fn zones_of_numbers() {
        let s = Statistics::of_words(Kind::Int4, &[10, 20, 20], 0, &mut Vec::new());
        let excludes = |op, v| s.excludes(Kind::Int4, 3, op, &Datum::Int8(v));
        assert_eq!(s.distinct, 2);
        assert!(excludes(ZoneOp::Equal, 9) && !excludes(ZoneOp::Equal, 10) && !excludes(ZoneOp::Equal, 15));
        assert!(excludes(ZoneOp::Less, 10) && !excludes(ZoneOp::LessOrEqual, 10));
        assert!(excludes(ZoneOp::Greater, 20) && !excludes(ZoneOp::GreaterOrEqual, 20));
        assert!(
            s.excludes(Kind::Int4, 3, ZoneOp::Equal, &Datum::Null) && s.excludes(Kind::Int4, 3, ZoneOp::IsNull, &Datum::Null)
        );
        assert!(!s.excludes(Kind::Int4, 3, ZoneOp::Equal, &Datum::Float8(99.0)), "another kind's order");
    }

    #[test]
    fn extremes_are_known_of_integers_and_short_texts() {
        let show = |s: &Statistics, kind, rows| s.extremes(kind, rows).map(|both| format!("{both:?}"));
        let s = Statistics::of_words(Kind::Int4, &[10, 20, -20], 0, &mut Vec::new());
        assert_eq!(show(&s, Kind::Int4, 3).as_deref(), Some("(Int4(-20), Int4(20))"));
        let floats = Statistics::of_words(Kind::Float8, &[0], 0, &mut Vec::new());
        assert_eq!(show(&floats, Kind::Float8, 1), None, "0 may be -0");
        let nulls = Statistics { nulls: 3, distinct: 0, bounds: Bounds::None };
        assert_eq!(show(&nulls, Kind::Text, 3).as_deref(), Some("(Null, Null)"));
        let mut values = ByteStrings::default();
        ["b", "", "melba"].iter().for_each(|value| values.push(value.as_bytes()));
        let s = Statistics::of_strings(Kind::Text, &values, |_| true, 0, &mut Vec::new());
        assert_eq!(show(&s, Kind::Text, 3).as_deref(), Some("(Text(\"\"), Text(\"melba\"))"));
        values.push("m".repeat(BOUND_BYTES_MAX).as_bytes());
        let s = Statistics::of_strings(Kind::Text, &values, |_| true, 0, &mut Vec::new());
        assert_eq!(show(&s, Kind::Text, 4), None, "what follows is not known");
    }

    #[test]
    fn zones_of_cut_strings() {
        let mut values = ByteStrings::default();
        let long = "m".repeat(40);
        values.push(b"melba");
        values.push(long.as_bytes());
        let s = Statistics::of_strings(Kind::Text, &values, |_| true, 0, &mut Vec::new());
        let excludes = |op, v: &str| s.excludes(Kind::Text, 2, op, &Datum::text(v));
        assert!(!excludes(ZoneOp::Equal, &long) && !excludes(ZoneOp::Greater, &"m".repeat(36)));
        assert!(excludes(ZoneOp::Equal, "n") && excludes(ZoneOp::Equal, "me") && excludes(ZoneOp::Greater, "n"));
        assert!(!excludes(ZoneOp::StartsWith, "me") && !excludes(ZoneOp::StartsWith, "mm"));
        assert!(excludes(ZoneOp::StartsWith, "ma") && excludes(ZoneOp::StartsWith, "n"));
    }
}
