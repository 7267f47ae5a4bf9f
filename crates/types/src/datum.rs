//! One SQL value, physically typed.

use std::sync::Arc;

use crate::array::Array;
use crate::ids::Oid;
use crate::numeric::Numeric;
use crate::oids::Kind;

/// A value. Cloning never copies payload bytes.
///
/// 24 bytes, so that a row of them stays in cache lines; a test holds it to that.
#[derive(Clone, Debug, Default)]
pub enum Datum {
    #[default]
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    Float4(f32),
    Float8(f64),
    Oid(u32),
    Char(u8),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Numeric(Numeric),
    Interval(Interval),
    Uuid([u8; 16]),
    TimeTz(TimeTz),
    Array(Arc<Array>),
    Record(Arc<Record>),
    Range(Arc<Range>),
    Multirange(Arc<Multirange>),
    /// A value of a varying-width kind as rows store it: compressed, or a pointer to where it is kept (docs/design/toast.md).
    /// Only columns of rows hold one, never arrays, records or ranges; functions get it expanded.
    Stored(Arc<[u8]>),
}

/// Months, days and microseconds, kept apart as PostgreSQL keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub micros: i64,
}

/// `time with time zone`: microseconds since local midnight and the zone as seconds west of Greenwich.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, packed(4))]
pub struct TimeTz {
    pub micros: i64,
    pub zone_seconds_west: i32,
}

/// A composite value. `type_oid` is RECORD for an anonymous one.
#[derive(Clone, Debug)]
pub struct Record {
    pub type_oid: Oid,
    pub field_types: Arc<[Oid]>,
    /// Names where the source knew them (row_to_json and the like use them).
    pub field_names: Option<Arc<[Arc<str>]>>,
    pub fields: Vec<Datum>,
}

/// A range value. An infinite bound has no datum.
#[derive(Clone, Debug)]
pub struct Range {
    pub type_oid: Oid,
    pub empty: bool,
    pub lower: Option<Datum>,
    pub upper: Option<Datum>,
    pub lower_inclusive: bool,
    pub upper_inclusive: bool,
}

/// A multirange: ordered, disjoint, non-adjacent ranges.
#[derive(Clone, Debug)]
pub struct Multirange {
    pub type_oid: Oid,
    pub ranges: Vec<Range>,
}

impl Datum {
    pub fn text(s: impl Into<Arc<str>>) -> Datum {
        Datum::Text(s.into())
    }

    pub fn bytes(b: impl Into<Arc<[u8]>>) -> Datum {
        Datum::Bytes(b.into())
    }

    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// Memory that the value points to, about.
    pub fn heap_bytes(&self) -> usize {
        const ARC: usize = 32;
        let all = |values: &[Datum]| values.iter().map(|v| size_of::<Datum>() + v.heap_bytes()).sum::<usize>();
        let range =
            |r: &Range| size_of::<Range>() + [&r.lower, &r.upper].into_iter().flatten().map(Datum::heap_bytes).sum::<usize>();
        match self {
            Datum::Text(v) => v.len() + ARC,
            Datum::Bytes(v) | Datum::Stored(v) => v.len() + ARC,
            Datum::Numeric(v) => v.heap_bytes(),
            Datum::Array(v) => all(&v.elements) + size_of::<Array>() + ARC,
            Datum::Record(v) => all(&v.fields) + size_of::<Record>() + ARC,
            Datum::Range(v) => range(v) + ARC,
            Datum::Multirange(v) => v.ranges.iter().map(range).sum::<usize>() + ARC,
            _ => 0,
        }
    }

    /// The physical kind, `None` for NULL and for values in stored form, which do not know it.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Datum::Null | Datum::Stored(_) => return None,
            Datum::Bool(_) => Kind::Bool,
            Datum::Int2(_) => Kind::Int2,
            Datum::Int4(_) => Kind::Int4,
            Datum::Int8(_) => Kind::Int8,
            Datum::Float4(_) => Kind::Float4,
            Datum::Float8(_) => Kind::Float8,
            Datum::Oid(_) => Kind::Oid,
            Datum::Char(_) => Kind::Char,
            Datum::Text(_) => Kind::Text,
            Datum::Bytes(_) => Kind::Bytes,
            Datum::Numeric(_) => Kind::Numeric,
            Datum::Interval(_) => Kind::Interval,
            Datum::Uuid(_) => Kind::Uuid,
            Datum::TimeTz(_) => Kind::TimeTz,
            Datum::Array(_) => Kind::Array,
            Datum::Record(_) => Kind::Record,
            Datum::Range(_) => Kind::Range,
            Datum::Multirange(_) => Kind::Multirange,
        })
    }
}

/// Accessors for values whose kind the caller knows from the expression's type. A mismatch is a bug of ours, hence a panic
/// (caught at the statement boundary and reported as XX000).
macro_rules! accessor {
    ($name:ident, $variant:ident, $ty:ty) => {
        #[inline]
        #[track_caller]
        pub fn $name(&self) -> $ty {
            match self {
                Datum::$variant(v) => *v,
                other => panic!("expected {} datum, found {:?}", stringify!($variant), other),
            }
        }
    };
    (ref $name:ident, $variant:ident, $ty:ty) => {
        #[inline]
        #[track_caller]
        pub fn $name(&self) -> &$ty {
            match self {
                Datum::$variant(v) => v,
                other => panic!("expected {} datum, found {:?}", stringify!($variant), other),
            }
        }
    };
}

impl Datum {
    accessor!(as_bool, Bool, bool);
    accessor!(as_i16, Int2, i16);
    accessor!(as_i32, Int4, i32);
    accessor!(as_i64, Int8, i64);
    accessor!(as_f32, Float4, f32);
    accessor!(as_f64, Float8, f64);
    accessor!(as_oid, Oid, u32);
    accessor!(as_char, Char, u8);
    accessor!(as_interval, Interval, Interval);
    accessor!(as_uuid, Uuid, [u8; 16]);
    accessor!(as_timetz, TimeTz, TimeTz);
    accessor!(ref as_str, Text, str);
    accessor!(ref as_bytes, Bytes, [u8]);
    accessor!(ref as_numeric, Numeric, Numeric);
    accessor!(ref as_array, Array, Array);
    accessor!(ref as_record, Record, Record);
    accessor!(ref as_range, Range, Range);
    accessor!(ref as_multirange, Multirange, Multirange);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datum_is_24_bytes() {
        assert_eq!(std::mem::size_of::<Datum>(), 24);
    }
}
