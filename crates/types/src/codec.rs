//! The storage format of one value, in row-store rows, WAL records and varying-width segment columns.
//!
//! Fixed-width kinds are little-endian. Varying-width kinds:
//!
//! ```text
//! Text, Bytes   the bytes
//! Numeric       see `numeric`
//! Array         u32 element type, u8 dims, dims x (i32 length, i32 lower bound), elements
//! Record        u32 type, u16 fields, fields x u32 type, elements
//! Range         u32 type, u8 flags, [element lower], [element upper]
//! Multirange    u32 type, u32 ranges, ranges x Range
//! element       u8 kind (255: null), [u32 length when the kind has no width], value
//! ```

use std::sync::Arc;

use crate::array::{Array, ArrayDim};
use crate::bytes::ByteReader;
use crate::datum::{Datum, Interval, Multirange, Range, Record, TimeTz};
use crate::ids::Oid;
use crate::numeric::Numeric;
use crate::oids::Kind;

const NULL_ELEMENT: u8 = 255;
const RANGE_EMPTY: u8 = 1;
const RANGE_LOWER: u8 = 2;
const RANGE_UPPER: u8 = 4;
const RANGE_LOWER_INCLUSIVE: u8 = 8;
const RANGE_UPPER_INCLUSIVE: u8 = 16;

/// Appends the storage format of a non-null value.
pub fn encode(datum: &Datum, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => unreachable!("nulls are encoded by their container"),
        Datum::Bool(v) => out.push(u8::from(*v)),
        Datum::Int2(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Int4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Int8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Float4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Oid(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Char(v) => out.push(*v),
        Datum::Text(v) => out.extend_from_slice(v.as_bytes()),
        Datum::Bytes(v) | Datum::Stored(v) => out.extend_from_slice(v),
        Datum::Numeric(v) => v.encode(out),
        Datum::Interval(v) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.months.to_le_bytes());
        }
        Datum::Uuid(v) => out.extend_from_slice(v),
        Datum::TimeTz(v) => {
            out.extend_from_slice(&{ v.micros }.to_le_bytes());
            out.extend_from_slice(&{ v.zone_seconds_west }.to_le_bytes());
        }
        Datum::Array(v) => {
            out.extend_from_slice(&v.element_type.0.to_le_bytes());
            out.push(v.dims.len() as u8);
            for dim in &v.dims {
                out.extend_from_slice(&dim.length.to_le_bytes());
                out.extend_from_slice(&dim.lower_bound.to_le_bytes());
            }
            for element in &v.elements {
                encode_element(element, out);
            }
        }
        Datum::Record(v) => {
            out.extend_from_slice(&v.type_oid.0.to_le_bytes());
            out.extend_from_slice(&(v.fields.len() as u16).to_le_bytes());
            for ty in v.field_types.iter() {
                out.extend_from_slice(&ty.0.to_le_bytes());
            }
            for field in &v.fields {
                encode_element(field, out);
            }
        }
        Datum::Range(v) => encode_range(v, out),
        Datum::Multirange(v) => {
            out.extend_from_slice(&v.type_oid.0.to_le_bytes());
            out.extend_from_slice(&(v.ranges.len() as u32).to_le_bytes());
            for range in &v.ranges {
                encode_range(range, out);
            }
        }
    }
}

fn encode_range(v: &Range, out: &mut Vec<u8>) {
    out.extend_from_slice(&v.type_oid.0.to_le_bytes());
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    out.push(
        flag(v.empty, RANGE_EMPTY)
            | flag(v.lower.is_some(), RANGE_LOWER)
            | flag(v.upper.is_some(), RANGE_UPPER)
            | flag(v.lower_inclusive, RANGE_LOWER_INCLUSIVE)
            | flag(v.upper_inclusive, RANGE_UPPER_INCLUSIVE),
    );
    for bound in [&v.lower, &v.upper].into_iter().flatten() {
        encode_element(bound, out);
    }
}

fn encode_element(datum: &Datum, out: &mut Vec<u8>) {
    let Some(kind) = datum.kind() else {
        out.push(NULL_ELEMENT);
        return;
    };
    out.push(kind as u8);
    if kind.width().is_some() {
        encode(datum, out);
    } else {
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        encode(datum, out);
        let length = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Reads the storage format of a value of `kind`; `None` when the bytes are not one (corruption, never asserted).
pub fn decode(kind: Kind, bytes: &[u8]) -> Option<Datum> {
    Some(match kind {
        Kind::Bool => Datum::Bool(*bytes.first()? != 0),
        Kind::Int2 => Datum::Int2(i16::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Int4 => Datum::Int4(i32::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Int8 => Datum::Int8(i64::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Float4 => Datum::Float4(f32::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Float8 => Datum::Float8(f64::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Oid => Datum::Oid(u32::from_le_bytes(bytes.try_into().ok()?)),
        Kind::Char => Datum::Char(*bytes.first()?),
        Kind::Text => Datum::Text(std::str::from_utf8(bytes).ok()?.into()),
        Kind::Bytes | Kind::Frame => Datum::Bytes(bytes.into()),
        Kind::Numeric => Datum::Numeric(Numeric::decode(bytes)?),
        Kind::Interval => Datum::Interval(Interval {
            micros: i64::from_le_bytes(bytes.get(0..8)?.try_into().ok()?),
            days: i32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?),
            months: i32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?),
        }),
        Kind::Uuid => Datum::Uuid(bytes.try_into().ok()?),
        Kind::TimeTz => Datum::TimeTz(TimeTz {
            micros: i64::from_le_bytes(bytes.get(0..8)?.try_into().ok()?),
            zone_seconds_west: i32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?),
        }),
        Kind::Array => {
            let mut r = ByteReader::new(bytes);
            let element_type = Oid(r.u32()?);
            let dims = r.u8()?;
            let dims = (0..dims)
                .map(|_| Some(ArrayDim { length: r.u32()? as i32, lower_bound: r.u32()? as i32 }))
                .collect::<Option<Vec<_>>>()?;
            let mut elements = Vec::new();
            while !r.is_empty() {
                elements.push(r.element()?);
            }
            Datum::Array(Arc::new(Array { element_type, dims, elements }))
        }
        Kind::Record => {
            let mut r = ByteReader::new(bytes);
            let type_oid = Oid(r.u32()?);
            let count = r.u16()?;
            let field_types = (0..count).map(|_| r.u32().map(Oid)).collect::<Option<Arc<[Oid]>>>()?;
            let fields = (0..count).map(|_| r.element()).collect::<Option<Vec<_>>>()?;
            Datum::Record(Arc::new(Record { type_oid, field_types, field_names: None, fields }))
        }
        Kind::Range => Datum::Range(Arc::new(ByteReader::new(bytes).range()?)),
        Kind::Multirange => {
            let mut r = ByteReader::new(bytes);
            let type_oid = Oid(r.u32()?);
            let count = r.u32()?;
            let ranges = (0..count).map(|_| r.range()).collect::<Option<Vec<_>>>()?;
            Datum::Multirange(Arc::new(Multirange { type_oid, ranges }))
        }
    })
}

impl ByteReader<'_> {
    fn element(&mut self) -> Option<Datum> {
        let tag = self.u8()?;
        if tag == NULL_ELEMENT {
            return Some(Datum::Null);
        }
        let kind = Kind::from_u8(tag)?;
        let length = match kind.width() {
            Some(width) => width,
            None => self.u32()? as usize,
        };
        decode(kind, self.take(length)?)
    }

    fn range(&mut self) -> Option<Range> {
        let type_oid = Oid(self.u32()?);
        let flags = self.u8()?;
        let lower = if flags & RANGE_LOWER != 0 { Some(self.element()?) } else { None };
        let upper = if flags & RANGE_UPPER != 0 { Some(self.element()?) } else { None };
        Some(Range {
            type_oid,
            empty: flags & RANGE_EMPTY != 0,
            lower,
            upper,
            lower_inclusive: flags & RANGE_LOWER_INCLUSIVE != 0,
            upper_inclusive: flags & RANGE_UPPER_INCLUSIVE != 0,
        })
    }
}
