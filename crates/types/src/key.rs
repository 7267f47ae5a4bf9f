//! Order of values: comparison, hashing, and memcomparable keys for indexes.
//!
//! A key is a string of bytes whose bytewise order is PostgreSQL's btree order of the values (text by bytes, the C
//! collation), and values that are equal have equal keys. Each column of a key:
//!
//! ```text
//! u8 0 null (NULLS FIRST) | 1 a value follows | 2 null (NULLS LAST)
//! value, every byte complemented when the column is descending:
//!   integers                as int8, big-endian, sign bit flipped; oids, bools: big-endian
//!   floats                  as float8, big-endian IEEE, sign bit flipped (negative: all bits); one NaN, one zero
//!   text                    the bytes, 0; by a collation: its sort key as bytes, then, if it is deterministic, the text
//!   bytes                   the bytes with 0 as 0 255, then 0 0
//!   numeric                 class byte, 3 bytes of exponent, digit pairs + 1, 0 (negative: complemented after the class)
//!   interval                i128 of microseconds, 30-day months; timetz: UTC micros, zone
//!   array                   element columns, 0xff ... see `encode_array`; record: field columns
//! ```
//!
//! Equal values may differ in ways that a key does not keep (1.0 and 1.00, char padding, 1 month and 30 days): `decode` returns
//! the original where the key is lossless, or the plainest of the equal values when `KeyType::is_lossless` is false.

pub(crate) mod bytes;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::encode_bytes;

use crate::array::{Array, ArrayDim};
use crate::collate::Collate;
use crate::column::{Column, ColumnData};
use crate::datum::{Datum, Interval, Multirange, Range, Record, TimeTz};
use crate::float::{compare_f32, compare_f64};
use crate::ids::Oid;
use crate::numeric::Numeric;
use crate::oids::{self, Kind};

/// The properties of a type that decide its order. Made from a type's OID with the catalog; see `KeyType::of_builtin`.
#[derive(Clone, Debug)]
pub enum KeyType {
    /// The natural order of the kind.
    Plain(Kind),
    /// Text whose trailing blanks do not count.
    Bpchar,
    /// Text by a collation other than that of its bytes.
    Collated(Collated),
    /// Int8 that holds unsigned 64 bits (xid8, pg_lsn, tid).
    Unsigned,
    /// An enum by the OIDs of its labels in sort order.
    Enum(Arc<[u32]>),
    /// Bytes or text whose order is that of another byte string made from them.
    Mapped(fn(&[u8], &mut Vec<u8>)),
    Array(Oid, Box<KeyType>),
    Record(Oid, Arc<[(Oid, KeyType)]>),
    Range(Oid, Box<KeyType>),
    Multirange(Oid, Box<KeyType>),
}

/// Text by a collation.
#[derive(Clone, Debug)]
pub struct Collated {
    pub collation: Arc<dyn Collate>,
    /// Trailing blanks do not count.
    pub padded: bool,
}

impl Collated {
    fn text<'t>(&self, value: &'t str) -> &'t str {
        if self.padded { value.trim_end_matches(' ') } else { value }
    }

    fn compare(&self, a: &str, b: &str) -> Ordering {
        self.collation.compare(self.text(a), self.text(b))
    }

    fn encode(&self, value: &str, out: &mut Vec<u8>) {
        let text = self.text(value);
        let mut key = Vec::new();
        self.collation.sort_key(text, &mut key);
        encode_bytes(&key, out);
        if self.collation.is_deterministic() {
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
    }
}

/// A column of a key.
#[derive(Clone, Debug)]
pub struct KeyColumn {
    pub ty: KeyType,
    pub descending: bool,
    pub nulls_first: bool,
}

impl KeyType {
    /// Whether no change of the catalog can change the order: no enum gets labels, and no composite type attributes.
    pub fn is_fixed(&self) -> bool {
        match self {
            KeyType::Enum(_) | KeyType::Record(..) => false,
            KeyType::Array(_, of) | KeyType::Range(_, of) | KeyType::Multirange(_, of) => of.is_fixed(),
            KeyType::Plain(_) | KeyType::Bpchar | KeyType::Unsigned | KeyType::Mapped(_) | KeyType::Collated(_) => true,
        }
    }

    /// The order of a built-in type that is no array, composite or range.
    pub fn of_builtin(ty: Oid) -> Option<KeyType> {
        match ty {
            oids::BPCHAR => Some(KeyType::Bpchar),
            oids::CITEXT => Some(KeyType::Mapped(crate::case::sort_key)),
            oids::JSONB => Some(KeyType::Mapped(crate::jsonb::sort_key)),
            oids::HSTORE => Some(KeyType::Mapped(crate::hstore::sort_key)),
            oids::TSVECTOR => Some(KeyType::Mapped(crate::tsvector::sort_key)),
            oids::TSQUERY => Some(KeyType::Mapped(crate::tsquery::sort_key)),
            oids::BIT | oids::VARBIT => Some(KeyType::Mapped(crate::bits::sort_key)),
            oids::INET | oids::CIDR => Some(KeyType::Mapped(crate::inet::sort_key)),
            oids::XID8 | oids::PG_LSN | oids::TID => Some(KeyType::Unsigned),
            oids::INT4RANGE | oids::DATERANGE => Some(KeyType::Range(ty, Box::new(KeyType::Plain(Kind::Int4)))),
            oids::INT8RANGE | oids::TSRANGE | oids::TSTZRANGE => Some(KeyType::Range(ty, Box::new(KeyType::Plain(Kind::Int8)))),
            oids::NUMRANGE => Some(KeyType::Range(ty, Box::new(KeyType::Plain(Kind::Numeric)))),
            oids::OIDVECTOR => Some(KeyType::Array(oids::OID, Box::new(KeyType::Plain(Kind::Oid)))),
            oids::INT2VECTOR => Some(KeyType::Array(oids::INT2, Box::new(KeyType::Plain(Kind::Int2)))),
            _ => match Kind::of_builtin(ty)? {
                Kind::Array | Kind::Record | Kind::Range | Kind::Multirange => None,
                kind => Some(KeyType::Plain(kind)),
            },
        }
    }

    /// The order of arrays of a built-in type.
    pub fn array_of_builtin(element: Oid) -> Option<KeyType> {
        Some(KeyType::Array(element, Box::new(KeyType::of_builtin(element)?)))
    }

    /// Whether `decode` returns exactly the encoded value.
    pub fn is_lossless(&self) -> bool {
        match self {
            KeyType::Plain(kind) => !matches!(kind, Kind::Numeric | Kind::Interval | Kind::Float4 | Kind::Float8),
            KeyType::Unsigned | KeyType::Enum(_) => true,
            KeyType::Bpchar | KeyType::Mapped(_) | KeyType::Collated(_) | KeyType::Multirange(..) => false,
            KeyType::Array(_, element) | KeyType::Range(_, element) => element.is_lossless(),
            KeyType::Record(_, fields) => fields.iter().all(|(_, f)| f.is_lossless()),
        }
    }
}

/// Appends the key of one column.
pub fn encode(column: &KeyColumn, value: &Datum, out: &mut Vec<u8>) {
    if value.is_null() {
        out.push(if column.nulls_first { 0 } else { 2 });
        return;
    }
    out.push(1);
    let start = out.len();
    encode_value(&column.ty, value, out);
    if column.descending {
        complement(&mut out[start..]);
    }
}

/// Appends the key of row `i` of a column of values: the same as `encode` for its datum.
#[inline]
pub fn encode_at(column: &KeyColumn, values: &Column, i: usize, out: &mut Vec<u8>) {
    let start = out.len() + 1;
    match &values.data {
        ColumnData::Coded(v) if !values.is_null(i) => return encode_at(column, v.entries(), v.codes()[i] as usize, out),
        ColumnData::Text(v) if matches!(column.ty, KeyType::Bpchar) && !values.is_null(i) => {
            let value = v.get(i);
            out.push(1);
            out.extend_from_slice(without_padding(value));
            out.push(0);
        }
        _ if !matches!(column.ty, KeyType::Plain(_)) || values.is_null(i) => return encode(column, &values.get(i), out),
        ColumnData::Int2(v) => put_integer(i64::from(v[i]), out),
        ColumnData::Int4(v) => put_integer(i64::from(v[i]), out),
        ColumnData::Int8(v) => put_integer(v[i], out),
        ColumnData::Text(v) => {
            out.push(1);
            out.extend_from_slice(v.get(i));
            out.push(0);
        }
        _ => return encode(column, &values.get(i), out),
    }
    if column.descending {
        complement(&mut out[start..]);
    }
}

/// A char(n) value without its trailing blanks.
#[inline]
pub(crate) fn without_padding(mut value: &[u8]) -> &[u8] {
    const BLANKS: [u8; 8] = [b' '; 8];
    while let Some((rest, &BLANKS)) = value.split_last_chunk() {
        value = rest;
    }
    &value[..value.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1)]
}

fn put_integer(v: i64, out: &mut Vec<u8>) {
    let mut key = [1; 9];
    key[1..].copy_from_slice(&(v as u64 ^ 1 << 63).to_be_bytes());
    out.extend_from_slice(&key);
}

fn complement(bytes: &mut [u8]) {
    for b in bytes {
        *b = !*b;
    }
}

/// Appends the ascending key of a value that is not null.
fn encode_value(ty: &KeyType, value: &Datum, out: &mut Vec<u8>) {
    match (ty, value) {
        (KeyType::Bpchar, Datum::Text(v)) => {
            out.extend_from_slice(v.trim_end_matches(' ').as_bytes());
            out.push(0);
        }
        (KeyType::Collated(collated), Datum::Text(v)) => collated.encode(v, out),
        (KeyType::Unsigned, Datum::Int8(v)) => out.extend_from_slice(&v.to_be_bytes()),
        (KeyType::Enum(order), Datum::Oid(v)) => {
            let place = order.iter().position(|o| o == v).unwrap_or(order.len()) as u32;
            out.extend_from_slice(&place.to_be_bytes());
        }
        (KeyType::Mapped(map), Datum::Bytes(v)) => {
            let mut mapped = Vec::new();
            map(v, &mut mapped);
            encode_bytes(&mapped, out);
        }
        (KeyType::Mapped(map), Datum::Text(v)) => {
            let mut mapped = Vec::new();
            map(v.as_bytes(), &mut mapped);
            encode_bytes(&mapped, out);
        }
        (KeyType::Array(_, element), Datum::Array(v)) => encode_array(element, v, out),
        (KeyType::Record(_, fields), Datum::Record(v)) => {
            for ((_, field), value) in fields.iter().zip(&v.fields) {
                encode_nested(field, value, out);
            }
        }
        (KeyType::Range(_, bound), Datum::Range(v)) => encode_range(bound, v, out),
        (KeyType::Multirange(_, bound), Datum::Multirange(v)) => encode_multirange(bound, v, out),
        _ => encode_plain(value, out),
    }
}

fn encode_nested(ty: &KeyType, value: &Datum, out: &mut Vec<u8>) {
    if value.is_null() {
        out.push(2);
    } else {
        out.push(1);
        encode_value(ty, value, out);
    }
}

/// The order of parts of a value without a declared type, an anonymous record: of built-in types as always, of others the natural
/// one.
fn part_type(ty: Oid) -> KeyType {
    KeyType::of_builtin(ty).unwrap_or(NATURAL)
}

fn encode_plain(value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Bool(v) => out.push(u8::from(*v)),
        // Integers of all widths have one form, and so do floats: keys of values that compare equal across types are equal.
        Datum::Int2(v) => encode_integer(i64::from(*v), out),
        Datum::Int4(v) => encode_integer(i64::from(*v), out),
        Datum::Int8(v) => encode_integer(*v, out),
        Datum::Float4(v) => encode_float(f64::from(*v), out),
        Datum::Float8(v) => encode_float(*v, out),
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Char(v) => out.push(*v),
        Datum::Text(v) => {
            out.extend_from_slice(v.as_bytes());
            out.push(0);
        }
        Datum::Bytes(v) => encode_bytes(v, out),
        Datum::Numeric(v) => encode_numeric(v, out),
        Datum::Interval(v) => out.extend_from_slice(&(interval_micros(v) as u128 ^ 1 << 127).to_be_bytes()),
        Datum::Uuid(v) => out.extend_from_slice(v),
        Datum::TimeTz(v) => {
            out.extend_from_slice(&(timetz_utc(v) as u64 ^ 1 << 63).to_be_bytes());
            out.extend_from_slice(&({ v.zone_seconds_west } as u32 ^ 1 << 31).to_be_bytes());
        }
        Datum::Array(v) => encode_array(&part_type(v.element_type), v, out),
        Datum::Record(v) => {
            let types = v.field_types.iter().copied().chain(std::iter::repeat(Oid::INVALID));
            v.fields.iter().zip(types).for_each(|(field, ty)| encode_nested(&part_type(ty), field, out));
        }
        Datum::Range(v) => encode_range(&NATURAL, v, out),
        Datum::Multirange(v) => encode_multirange(&NATURAL, v, out),
        Datum::Null => unreachable!("a NULL has no key"),
        Datum::Stored(_) => panic!("a key of a value in stored form"),
    }
}

fn encode_integer(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(v as u64 ^ 1 << 63).to_be_bytes());
}

fn encode_float(v: f64, out: &mut Vec<u8>) {
    // One zero, one NaN above everything.
    let v = if v.is_nan() { f64::NAN.abs() } else { v + 0.0 };
    let bits = v.to_bits();
    out.extend_from_slice(&(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes());
}

/// Elements first, each as a column with nulls last; then the end, the number of dimensions, and their lengths and lower
/// bounds, which decide between arrays of equal elements.
fn encode_array(element: &KeyType, v: &Array, out: &mut Vec<u8>) {
    for value in &v.elements {
        encode_nested(element, value, out);
    }
    out.push(0);
    out.push(v.dims.len() as u8);
    for dim in &v.dims {
        out.extend_from_slice(&(dim.length as u32).to_be_bytes());
    }
    for dim in &v.dims {
        out.extend_from_slice(&(dim.lower_bound as u32 ^ 1 << 31).to_be_bytes());
    }
}

/// For values whose type is not given.
const NATURAL: KeyType = KeyType::Plain(Kind::Text);

fn encode_multirange(bound: &KeyType, v: &Multirange, out: &mut Vec<u8>) {
    for range in &v.ranges {
        out.push(1);
        encode_range(bound, range, out);
    }
    out.push(0);
}

/// Empty ranges first; then the lower bound, then the upper. A bound: -infinity 0, value 1, +infinity 2.
fn encode_range(bound: &KeyType, v: &Range, out: &mut Vec<u8>) {
    if v.empty {
        out.push(0);
        return;
    }
    out.push(1);
    match &v.lower {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            encode_value(bound, value, out);
            out.push(u8::from(!v.lower_inclusive));
        }
    }
    match &v.upper {
        None => out.push(2),
        Some(value) => {
            out.push(1);
            encode_value(bound, value, out);
            out.push(u8::from(v.upper_inclusive));
        }
    }
}

const NUMERIC_NEGATIVE_INFINITY: u8 = 0;
const NUMERIC_NEGATIVE: u8 = 1;
const NUMERIC_ZERO: u8 = 2;
const NUMERIC_POSITIVE: u8 = 3;
const NUMERIC_INFINITY: u8 = 4;
const NUMERIC_NAN: u8 = 5;
/// Makes exponents of the format unsigned in three bytes.
const EXPONENT_BIAS: i32 = 1 << 23;

pub(crate) fn encode_numeric(v: &Numeric, out: &mut Vec<u8>) {
    let class = match (v.is_nan(), v.is_infinite(), v.signum()) {
        (true, ..) => NUMERIC_NAN,
        (_, true, 1) => NUMERIC_INFINITY,
        (_, true, _) => NUMERIC_NEGATIVE_INFINITY,
        (_, _, 0) => NUMERIC_ZERO,
        (_, _, 1) => NUMERIC_POSITIVE,
        _ => NUMERIC_NEGATIVE,
    };
    out.push(class);
    let start = out.len();
    if let Some((mantissa, scale)) = v.small_parts() {
        encode_mantissa(mantissa.unsigned_abs(), i32::from(scale), out);
        if class == NUMERIC_NEGATIVE {
            complement(&mut out[start..]);
        }
        return;
    }
    let Some((exponent, digits)) = v.scientific() else { return };
    out.extend_from_slice(&((exponent + EXPONENT_BIAS) as u32).to_be_bytes()[1..]);
    out.extend(digits.chunks(2).map(|pair| pair[0] * 10 + pair.get(1).copied().unwrap_or(0) + 1));
    out.push(0);
    if class == NUMERIC_NEGATIVE {
        complement(&mut out[start..]);
    }
}

/// Exponent and digits of a number that is not zero, as `scientific` has them, of a mantissa in a word; nothing for zero.
fn encode_mantissa(mantissa: u64, scale: i32, out: &mut Vec<u8>) {
    let Some(last) = mantissa.checked_ilog10() else { return };
    let exponent = last as i32 + 1 - scale;
    out.extend_from_slice(&((exponent + EXPONENT_BIAS) as u32).to_be_bytes()[1..]);
    let (mut rest, mut count) = (mantissa, last + 1);
    while rest.is_multiple_of(10) {
        (rest, count) = (rest / 10, count - 1);
    }
    // From the last pair to the first: the last one of an odd number of digits has a zero behind its digit.
    let (mut pairs, mut at) = ([0; PAIRS_MAX], PAIRS_MAX);
    if !count.is_multiple_of(2) {
        at -= 1;
        pairs[at] = (rest % 10) as u8 * 10 + 1;
        rest /= 10;
    }
    while rest > 0 {
        at -= 1;
        pairs[at] = (rest % 100) as u8 + 1;
        rest /= 100;
    }
    out.extend_from_slice(&pairs[at..]);
    out.push(0);
}

/// Pairs of digits of a word.
const PAIRS_MAX: usize = 10;

/// Microseconds of an interval, a month being 30 days.
pub fn interval_micros(v: &Interval) -> i128 {
    const DAY: i128 = 86_400_000_000;
    (i128::from(v.months) * 30 + i128::from(v.days)) * DAY + i128::from(v.micros)
}

fn timetz_utc(v: &TimeTz) -> i64 {
    let (micros, west) = (v.micros, v.zone_seconds_west);
    micros + i64::from(west) * 1_000_000
}

/// Reads one column of a key and how many bytes it took; `None` when the bytes are no such key.
pub fn decode(column: &KeyColumn, key: &[u8]) -> Option<(Datum, usize)> {
    let (&marker, rest) = key.split_first()?;
    if marker != 1 {
        return Some((Datum::Null, 1));
    }
    let flipped;
    let rest = if column.descending {
        flipped = rest.iter().map(|b| !b).collect::<Vec<u8>>();
        &flipped[..]
    } else {
        rest
    };
    let mut reader = KeyReader(rest);
    let value = reader.value(&column.ty)?;
    Some((value, 1 + rest.len() - reader.0.len()))
}

struct KeyReader<'a>(&'a [u8]);

impl KeyReader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|b| b[0])
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn value(&mut self, ty: &KeyType) -> Option<Datum> {
        Some(match ty {
            KeyType::Plain(kind) => self.plain(*kind)?,
            KeyType::Bpchar => self.plain(Kind::Text)?,
            KeyType::Unsigned => Datum::Int8(i64::from_be_bytes(self.array()?)),
            KeyType::Enum(order) => Datum::Oid(*order.get(self.u32()? as usize)?),
            KeyType::Mapped(_) | KeyType::Collated(_) | KeyType::Multirange(..) => return None,
            KeyType::Array(element_type, element) => self.array_value(*element_type, element)?,
            KeyType::Record(type_oid, fields) => Datum::Record(Arc::new(Record {
                type_oid: *type_oid,
                field_types: fields.iter().map(|(ty, _)| *ty).collect(),
                field_names: None,
                fields: fields.iter().map(|(_, field)| self.nested(field)).collect::<Option<Vec<_>>>()?,
            })),
            KeyType::Range(type_oid, bound) => self.range(*type_oid, bound)?,
        })
    }

    fn nested(&mut self, ty: &KeyType) -> Option<Datum> {
        if self.byte()? == 2 { Some(Datum::Null) } else { self.value(ty) }
    }

    fn array_value(&mut self, element_type: Oid, element: &KeyType) -> Option<Datum> {
        let mut elements = Vec::new();
        while *self.0.first()? != 0 {
            elements.push(self.nested(element)?);
        }
        self.byte()?;
        let count = self.byte()?;
        let lengths = (0..count).map(|_| self.u32()).collect::<Option<Vec<_>>>()?;
        let bounds = (0..count).map(|_| self.u32()).collect::<Option<Vec<_>>>()?;
        let dims = lengths.iter().zip(bounds).map(|(l, b)| ArrayDim { length: *l as i32, lower_bound: (b ^ 1 << 31) as i32 });
        Some(Datum::Array(Arc::new(Array { element_type, dims: dims.collect(), elements })))
    }

    fn range(&mut self, type_oid: Oid, bound: &KeyType) -> Option<Datum> {
        let empty = self.byte()? == 0;
        let mut range = Range { type_oid, empty, lower: None, upper: None, lower_inclusive: false, upper_inclusive: false };
        if !empty {
            if self.byte()? == 1 {
                range.lower = Some(self.value(bound)?);
                range.lower_inclusive = self.byte()? == 0;
            }
            if self.byte()? == 1 {
                range.upper = Some(self.value(bound)?);
                range.upper_inclusive = self.byte()? == 1;
            }
        }
        Some(Datum::Range(Arc::new(range)))
    }

    fn integer(&mut self) -> Option<i64> {
        Some((u64::from_be_bytes(self.array()?) ^ 1 << 63) as i64)
    }

    fn float(&mut self) -> Option<f64> {
        let bits = u64::from_be_bytes(self.array()?);
        Some(f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits }))
    }

    fn plain(&mut self, kind: Kind) -> Option<Datum> {
        Some(match kind {
            Kind::Bool => Datum::Bool(self.byte()? != 0),
            Kind::Int2 => Datum::Int2(i16::try_from(self.integer()?).ok()?),
            Kind::Int4 => Datum::Int4(i32::try_from(self.integer()?).ok()?),
            Kind::Int8 => Datum::Int8(self.integer()?),
            Kind::Float4 => Datum::Float4(self.float()? as f32),
            Kind::Float8 => Datum::Float8(self.float()?),
            Kind::Oid => Datum::Oid(self.u32()?),
            Kind::Char => Datum::Char(self.byte()?),
            Kind::Text => {
                let end = memchr::memchr(0, self.0)?;
                let text = std::str::from_utf8(&self.0[..end]).ok()?;
                self.0 = &self.0[end + 1..];
                Datum::text(text)
            }
            Kind::Bytes => {
                let mut bytes = Vec::new();
                loop {
                    match self.byte()? {
                        0 if self.byte()? == 0 => break,
                        b => bytes.push(b),
                    }
                }
                Datum::bytes(bytes)
            }
            Kind::Numeric => Datum::Numeric(self.numeric()?),
            Kind::Interval => {
                let micros = (u128::from_be_bytes(self.array()?) ^ 1 << 127) as i128;
                const DAY: i128 = 86_400_000_000;
                Datum::Interval(Interval { months: 0, days: (micros / DAY) as i32, micros: (micros % DAY) as i64 })
            }
            Kind::Uuid => Datum::Uuid(self.array()?),
            Kind::TimeTz => {
                let utc = (u64::from_be_bytes(self.array()?) ^ 1 << 63) as i64;
                let zone_seconds_west = (self.u32()? ^ 1 << 31) as i32;
                Datum::TimeTz(TimeTz { micros: utc - i64::from(zone_seconds_west) * 1_000_000, zone_seconds_west })
            }
            Kind::Array | Kind::Record | Kind::Range | Kind::Multirange | Kind::Frame => return None,
        })
    }

    fn numeric(&mut self) -> Option<Numeric> {
        let class = self.byte()?;
        Some(match class {
            NUMERIC_NEGATIVE_INFINITY => Numeric::NEGATIVE_INFINITY,
            NUMERIC_ZERO => Numeric::ZERO,
            NUMERIC_INFINITY => Numeric::INFINITY,
            NUMERIC_NAN => Numeric::NAN,
            NUMERIC_NEGATIVE | NUMERIC_POSITIVE => {
                let negative = class == NUMERIC_NEGATIVE;
                let mask = if negative { 0xff } else { 0 };
                let [a, b, c] = self.array::<3>()?.map(|b| b ^ mask);
                let exponent = u32::from_be_bytes([0, a, b, c]) as i32 - EXPONENT_BIAS;
                let mut digits = Vec::new();
                loop {
                    match self.byte()? ^ mask {
                        0 => break,
                        pair => digits.extend([(pair - 1) / 10, (pair - 1) % 10]),
                    }
                }
                while digits.last() == Some(&0) {
                    digits.pop();
                }
                Numeric::from_scientific(negative, exponent, &digits)?
            }
            _ => return None,
        })
    }
}

/// PostgreSQL's btree comparison of two values that are not null.
pub fn compare(ty: &KeyType, a: &Datum, b: &Datum) -> Ordering {
    match (ty, a, b) {
        (KeyType::Bpchar, Datum::Text(a), Datum::Text(b)) => a.trim_end_matches(' ').cmp(b.trim_end_matches(' ')),
        (KeyType::Collated(collated), Datum::Text(a), Datum::Text(b)) => collated.compare(a, b),
        (KeyType::Unsigned, Datum::Int8(a), Datum::Int8(b)) => (*a as u64).cmp(&(*b as u64)),
        (KeyType::Array(_, element), Datum::Array(a), Datum::Array(b)) => compare_arrays(element, a, b),
        (KeyType::Record(_, fields), Datum::Record(a), Datum::Record(b)) => {
            let by_fields = fields.iter().zip(a.fields.iter().zip(&b.fields)).map(|((_, f), (a, b))| compare_nested(f, a, b));
            by_fields.into_iter().find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        }
        (KeyType::Plain(_), ..) => compare_plain(a, b),
        _ => {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            encode_value(ty, a, &mut x);
            encode_value(ty, b, &mut y);
            x.cmp(&y)
        }
    }
}

/// `compare` with nulls after everything and equal to each other.
fn compare_nested(ty: &KeyType, a: &Datum, b: &Datum) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (false, false) => compare(ty, a, b),
        (a, b) => a.cmp(&b),
    }
}

fn compare_arrays(element: &KeyType, a: &Array, b: &Array) -> Ordering {
    let by_elements = a.elements.iter().zip(&b.elements).map(|(x, y)| compare_nested(element, x, y)).find(|o| o.is_ne());
    by_elements.unwrap_or_else(|| compare_array_shapes(a, b))
}

/// The order of two arrays whose elements are equal as far as both have them.
pub fn compare_array_shapes(a: &Array, b: &Array) -> Ordering {
    let shape = |v: &Array| {
        let lengths: Vec<i32> = v.dims.iter().map(|d| d.length).collect();
        let bounds: Vec<i32> = v.dims.iter().map(|d| d.lower_bound).collect();
        (v.elements.len(), v.dims.len(), lengths, bounds)
    };
    shape(a).cmp(&shape(b))
}

/// Comparison of two values of a kind in its natural order.
pub fn compare_plain(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::Int2(a), Datum::Int2(b)) => a.cmp(b),
        (Datum::Int4(a), Datum::Int4(b)) => a.cmp(b),
        (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
        (Datum::Float4(a), Datum::Float4(b)) => compare_f32(*a, *b),
        (Datum::Float8(a), Datum::Float8(b)) => compare_f64(*a, *b),
        (Datum::Oid(a), Datum::Oid(b)) => a.cmp(b),
        (Datum::Char(a), Datum::Char(b)) => a.cmp(b),
        (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        (Datum::Numeric(a), Datum::Numeric(b)) => a.cmp(b),
        (Datum::Interval(a), Datum::Interval(b)) => interval_micros(a).cmp(&interval_micros(b)),
        (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
        (Datum::TimeTz(a), Datum::TimeTz(b)) => {
            timetz_utc(a).cmp(&timetz_utc(b)).then({ a.zone_seconds_west }.cmp(&{ b.zone_seconds_west }))
        }
        (Datum::Array(_), Datum::Array(_)) | (Datum::Record(_), Datum::Record(_)) => {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            encode_plain(a, &mut x);
            encode_plain(b, &mut y);
            x.cmp(&y)
        }
        _ => panic!("compared {a:?} with {b:?}"),
    }
}

/// Hashes a value so that equal values have equal hashes. Nulls have equal hashes too.
pub fn hash<H: Hasher>(ty: &KeyType, value: &Datum, state: &mut H) {
    match (ty, value) {
        (_, Datum::Null) => state.write_u8(0xfe),
        (KeyType::Bpchar, Datum::Text(v)) => v.trim_end_matches(' ').as_bytes().hash(state),
        (_, Datum::Bool(v)) => v.hash(state),
        (_, Datum::Int2(v)) => v.hash(state),
        (_, Datum::Int4(v)) => v.hash(state),
        (_, Datum::Int8(v)) => v.hash(state),
        (_, Datum::Oid(v)) => v.hash(state),
        (_, Datum::Char(v)) => v.hash(state),
        (KeyType::Mapped(map), Datum::Text(v)) => {
            let mut mapped = Vec::new();
            map(v.as_bytes(), &mut mapped);
            mapped.hash(state);
        }
        (KeyType::Collated(collated), Datum::Text(v)) => {
            let mut key = Vec::new();
            collated.encode(v, &mut key);
            key.hash(state);
        }
        (_, Datum::Text(v)) => v.as_bytes().hash(state),
        (KeyType::Plain(_), Datum::Bytes(v)) => v.hash(state),
        (_, Datum::Numeric(v)) => v.hash(state),
        (_, Datum::Uuid(v)) => v.hash(state),
        _ => {
            let mut key = Vec::new();
            encode_value(ty, value, &mut key);
            key.hash(state);
        }
    }
}

/// The smallest byte string greater than every one that begins with `prefix`; `None` when there is none (all 0xff).
/// Bounds of the keys of one ascending text column for LIKE 'prefix%': from `[1] + prefix` to this of it.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

/// Half-open range of the key bytes of text column values that start with `prefix`, `(from, to)`, for either direction.
pub fn prefix_range(column: &KeyColumn, prefix: &str) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut from = vec![1];
    from.extend_from_slice(prefix.as_bytes());
    if column.descending {
        complement(&mut from[1..]);
    }
    let to = prefix_end(&from);
    (from, to)
}

#[cfg(test)]
mod tests;
