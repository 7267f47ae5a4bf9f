//! Memcomparable keys: bytes that order as the values do. What indexes store, and what sorting, grouping and hashing compare.
//!
//! ```text
//! key    part*                     part   marker [value]
//! marker 0 NULL (nulls first), 1 value, 2 NULL (nulls last); never inverted
//! value  for a descending part every byte is inverted
//!        int2, int4, int8   i64 big-endian, sign flipped      oid         u32 big-endian
//!        float4, float8     f64 bits, ordered, NaN last       text        bytes, 0
//!        bytes              0 escaped as 0 255, ended by 0 0  numeric     see `numeric`
//!        array              (1 value | 2 null)*, 0, u8 dims, (i32 length, i32 lower bound)*
//! ```
//!
//! Invariants:
//! 1. Two values have the same bytes exactly when the type's default equality holds; integers of all widths, and floats of
//!    both, share one form, so that cross-type comparisons find each other.
//! 2. The order of the bytes is the type's default B-tree order (text: byte order).

use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::{Catalog, TypeKind};
use melba_types::{Array, Datum, Interval, Numeric, Oid, Range, TimeTz, oids};

const NULL_FIRST: u8 = 0;
const VALUE: u8 = 1;
const NULL_LAST: u8 = 2;

/// What of a type's order its values do not show.
#[derive(Clone, Debug, Default)]
pub enum KeyClass {
    #[default]
    Plain,
    /// char(n): trailing blanks do not count.
    Blank,
    /// Places of the labels, by label OID.
    Enum(Arc<HashMap<u32, u32>>),
    Array(Box<KeyClass>),
}

impl KeyClass {
    pub fn of(catalog: &Catalog, ty: Oid) -> KeyClass {
        let ty = catalog.base_type(ty);
        if ty == oids::BPCHAR {
            return KeyClass::Blank;
        }
        if let Some(element) = catalog.array_element(ty) {
            return match KeyClass::of(catalog, element) {
                KeyClass::Plain => KeyClass::Plain,
                class => KeyClass::Array(Box::new(class)),
            };
        }
        match catalog.type_(ty) {
            Some(t) if t.type_kind == TypeKind::Enum => {
                KeyClass::Enum(Arc::new(t.labels.iter().enumerate().map(|(i, l)| (l.0.0, i as u32)).collect()))
            }
            _ => KeyClass::Plain,
        }
    }
}

/// One column of a key.
#[derive(Clone, Debug, Default)]
pub struct KeyPart {
    pub class: KeyClass,
    pub descending: bool,
    pub nulls_first: bool,
}

impl KeyPart {
    /// For grouping and hashing: the direction does not matter.
    pub fn equality(catalog: &Catalog, ty: Oid) -> KeyPart {
        KeyPart { class: KeyClass::of(catalog, ty), descending: false, nulls_first: false }
    }

    pub fn encode(&self, datum: &Datum, out: &mut Vec<u8>) {
        if datum.is_null() {
            out.push(if self.nulls_first { NULL_FIRST } else { NULL_LAST });
            return;
        }
        out.push(VALUE);
        let start = out.len();
        encode_value(&self.class, datum, out);
        if self.descending {
            for byte in &mut out[start..] {
                *byte = !*byte;
            }
        }
    }

    /// Bounds of all non-null values of the part, given the key before it: `[prefix, 1]` to `[prefix, 2)`.
    pub fn not_null_marker() -> (u8, u8) {
        (VALUE, NULL_LAST)
    }
}

/// Appends the equality key of a plain value.
pub fn equality_key(datum: &Datum, out: &mut Vec<u8>) -> bool {
    encode_value(&KeyClass::Plain, datum, out);
    true
}

fn ordered_f64(v: f64) -> u64 {
    let v = if v == 0.0 { 0.0 } else { v };
    let bits = if v.is_nan() { f64::NAN.to_bits() & !(1 << 63) | 1 << 51 } else { v.to_bits() };
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn put_i64(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&((v as u64) ^ (1 << 63)).to_be_bytes());
}

/// Appends the value form.
pub fn encode_value(class: &KeyClass, datum: &Datum, out: &mut Vec<u8>) {
    match datum {
        Datum::Null => {}
        Datum::Bool(v) => out.push(u8::from(*v)),
        Datum::Int2(v) => put_i64(i64::from(*v), out),
        Datum::Int4(v) => put_i64(i64::from(*v), out),
        Datum::Int8(v) => put_i64(*v, out),
        Datum::Float4(v) => out.extend_from_slice(&ordered_f64(f64::from(*v)).to_be_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&ordered_f64(*v).to_be_bytes()),
        Datum::Oid(v) => {
            let v = match class {
                KeyClass::Enum(places) => places.get(v).copied().unwrap_or(u32::MAX),
                _ => *v,
            };
            out.extend_from_slice(&v.to_be_bytes());
        }
        Datum::Char(v) => out.push(*v),
        Datum::Text(v) => {
            let text = if matches!(class, KeyClass::Blank) { v.trim_end_matches(' ') } else { v };
            out.extend_from_slice(text.as_bytes());
            out.push(0);
        }
        Datum::Bytes(v) => put_bytes(v, out),
        Datum::Numeric(v) => put_numeric(v, out),
        Datum::Interval(v) => {
            let micros = interval_micros(*v);
            out.extend_from_slice(&((micros as u128) ^ (1 << 127)).to_be_bytes());
        }
        Datum::Uuid(v) => out.extend_from_slice(v),
        Datum::TimeTz(v) => put_timetz(*v, out),
        Datum::Array(v) => put_array(class, v, out),
        Datum::Record(v) => {
            for field in &v.fields {
                KeyPart::default().encode(field, out);
            }
        }
        Datum::Range(v) => put_range(v, out),
        Datum::Multirange(v) => {
            for range in &v.ranges {
                out.push(1);
                put_range(range, out);
            }
            out.push(0);
        }
    }
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for &b in bytes {
        out.push(b);
        if b == 0 {
            out.push(255);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

/// A month counts as 30 days, a day as 24 hours, as PostgreSQL compares intervals.
fn interval_micros(v: Interval) -> i128 {
    const DAY: i128 = 86_400_000_000;
    (i128::from(v.months) * 30 + i128::from(v.days)) * DAY + i128::from(v.micros)
}

fn put_timetz(v: TimeTz, out: &mut Vec<u8>) {
    let zone = v.zone_seconds_west;
    put_i64({ v.micros } + i64::from(zone) * 1_000_000, out);
    put_i64(i64::from(zone), out);
}

fn put_array(class: &KeyClass, array: &Array, out: &mut Vec<u8>) {
    let element_class = match class {
        KeyClass::Array(class) => class,
        _ => &KeyClass::Plain,
    };
    for element in &array.elements {
        if element.is_null() {
            out.push(NULL_LAST);
        } else {
            out.push(VALUE);
            encode_value(element_class, element, out);
        }
    }
    out.push(0);
    out.push(array.dims.len() as u8);
    for dim in &array.dims {
        out.extend_from_slice(&dim.length.to_be_bytes());
        put_i64(i64::from(dim.lower_bound), out);
    }
}

fn put_range(range: &Range, out: &mut Vec<u8>) {
    if range.empty {
        out.push(0);
        return;
    }
    out.push(1);
    match &range.lower {
        None => out.push(0),
        Some(lower) => {
            out.push(1);
            encode_value(&KeyClass::Plain, lower, out);
            out.push(u8::from(!range.lower_inclusive));
        }
    }
    match &range.upper {
        None => out.push(1),
        Some(upper) => {
            out.push(0);
            encode_value(&KeyClass::Plain, upper, out);
            out.push(u8::from(range.upper_inclusive));
        }
    }
}

/// Class (−∞, negative, zero, positive, ∞, NaN), then the decimal exponent and digits, inverted for negative numbers.
fn put_numeric(v: &Numeric, out: &mut Vec<u8>) {
    let text = v.to_string();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, &text[..]),
    };
    match (digits, negative) {
        ("Infinity", true) => return out.push(0),
        ("Infinity", false) => return out.push(4),
        ("NaN", _) => return out.push(5),
        _ => {}
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let mut exponent = whole.len() as i32;
    let mut significant: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    let leading = significant.iter().take_while(|d| **d == 0).count();
    significant.drain(..leading);
    exponent -= leading as i32;
    while significant.last() == Some(&0) {
        significant.pop();
    }
    if significant.is_empty() {
        return out.push(2);
    }
    out.push(if negative { 1 } else { 3 });
    let start = out.len();
    out.extend_from_slice(&((exponent as u32) ^ (1 << 31)).to_be_bytes());
    for pair in significant.chunks(2) {
        out.push(pair[0] * 10 + pair.get(1).copied().unwrap_or(0) + 1);
    }
    out.push(0);
    if negative {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(part: &KeyPart, datum: Datum) -> Vec<u8> {
        let mut out = Vec::new();
        part.encode(&datum, &mut out);
        out
    }

    #[test]
    fn keys_order_as_the_values_do() {
        let up = KeyPart::default();
        let down = KeyPart { descending: true, nulls_first: true, ..KeyPart::default() };
        let lists: Vec<Vec<Datum>> = vec![
            vec![Datum::Int2(-5), Datum::Int8(-1), Datum::Int4(0), Datum::Int8(1 << 40), Datum::Null],
            vec![
                Datum::Float8(f64::NEG_INFINITY),
                Datum::Float4(-1.5),
                Datum::Float8(0.0),
                Datum::Float8(2.0),
                Datum::Float8(f64::NAN),
            ],
            vec![Datum::text(""), Datum::text("a"), Datum::text("ab"), Datum::text("b"), Datum::Null],
            vec![Datum::bytes(&b""[..]), Datum::bytes(&b"\0"[..]), Datum::bytes(&b"\0\0"[..]), Datum::bytes(&b"\x01"[..])],
        ];
        for list in lists {
            for pair in list.windows(2) {
                assert!(key(&up, pair[0].clone()) < key(&up, pair[1].clone()), "{pair:?}");
                assert!(key(&down, pair[0].clone()) > key(&down, pair[1].clone()), "{pair:?} descending");
            }
        }
        assert_eq!(key(&up, Datum::Int2(7)), key(&up, Datum::Int8(7)));
        assert_eq!(key(&up, Datum::Float4(-0.0)), key(&up, Datum::Float8(0.0)));
    }
}
