//! The bytes that PostgreSQL takes for a value: pg_column_size shows them, and they decide when a row is too long.

use melba_types::{Array, Datum, Numeric, Range};

/// The header of a value of varying length, as in memory; stored short ones have one byte instead.
pub const HEADER_BYTES: usize = 4;
/// The headers of a compressed one.
pub const COMPRESSED_HEADER_BYTES: usize = 8;
/// The longest value, header included, that is stored with a one-byte header.
pub const SHORT_BYTES_MAX: usize = 127;

/// Bytes of a value without its header.
pub fn data_bytes(value: &Datum) -> usize {
    match value {
        Datum::Null => 0,
        Datum::Bool(_) | Datum::Char(_) => 1,
        Datum::Int2(_) => 2,
        Datum::Int4(_) | Datum::Float4(_) | Datum::Oid(_) => 4,
        Datum::Int8(_) | Datum::Float8(_) => 8,
        Datum::TimeTz(_) => 12,
        Datum::Interval(_) | Datum::Uuid(_) => 16,
        Datum::Text(v) => v.len(),
        Datum::Bytes(v) | Datum::Stored(v) => v.len(),
        Datum::Numeric(v) => numeric_bytes(v),
        Datum::Array(v) => array_bytes(v),
        Datum::Record(v) => {
            // A tuple's header, without the header of a varying value.
            let header = 23 + if v.fields.iter().any(Datum::is_null) { v.fields.len().div_ceil(8) } else { 0 };
            v.fields.iter().fold(header.next_multiple_of(8), packed) - HEADER_BYTES
        }
        Datum::Range(v) => range_bytes(v),
        Datum::Multirange(v) => v.ranges.iter().fold(8 + 4 * v.ranges.len(), |n, r| n.next_multiple_of(8) + range_bytes(r)),
    }
}

/// Where a value that follows others in a row ends: short ones of varying length are packed.
fn packed(at: usize, value: &Datum) -> usize {
    let varying = value.kind().is_some_and(|k| k.width().is_none());
    match data_bytes(value) {
        bytes if varying && bytes < SHORT_BYTES_MAX => at + bytes + 1,
        _ => aligned(at, value),
    }
}

/// Where a value that follows others in an array or range ends.
fn aligned(at: usize, value: &Datum) -> usize {
    let bytes = data_bytes(value);
    match value {
        Datum::Null => at,
        Datum::Bool(_) | Datum::Char(_) | Datum::Uuid(_) => at + bytes,
        Datum::Int2(_) => at.next_multiple_of(2) + bytes,
        Datum::Int8(_) | Datum::Float8(_) | Datum::TimeTz(_) | Datum::Interval(_) => at.next_multiple_of(8) + bytes,
        Datum::Int4(_) | Datum::Float4(_) | Datum::Oid(_) => at.next_multiple_of(4) + bytes,
        _ => at.next_multiple_of(4) + bytes + HEADER_BYTES,
    }
}

/// A header of 2 bytes, or 4 when scale or weight need more, and 2 bytes for each four decimal digits.
fn numeric_bytes(value: &Numeric) -> usize {
    let mut wire = Vec::new();
    value.write_wire(&mut wire);
    let number = |at: usize| i16::from_be_bytes([wire[at], wire[at + 1]]);
    if wire.len() < 8 || !value.is_finite() {
        return 2;
    }
    // A value has up to 32768 of them before its point.
    let digits = usize::from(u16::from_be_bytes([wire[0], wire[1]]));
    let (weight, scale) = (number(2), number(6));
    let short = scale <= 63 && (-64..=63).contains(&weight);
    digits * 2 + if short { 2 } else { 4 }
}

fn array_bytes(value: &Array) -> usize {
    let dimensions = 12 + 8 * value.dims.len();
    let nulls = value.elements.iter().any(Datum::is_null);
    let header = if nulls { (4 + dimensions + value.elements.len().div_ceil(8)).next_multiple_of(8) } else { 4 + dimensions };
    // Room behind an element belongs to it.
    let element = |at: usize, element: &Datum| match element {
        Datum::Null | Datum::Bool(_) | Datum::Char(_) | Datum::Uuid(_) => aligned(at, element),
        Datum::Int2(_) => aligned(at, element).next_multiple_of(2),
        Datum::TimeTz(_) => aligned(at, element).next_multiple_of(8),
        _ => aligned(at, element).next_multiple_of(4),
    };
    value.elements.iter().fold(header, element) - HEADER_BYTES
}

/// The range's type, its bounds, a byte of flags.
fn range_bytes(value: &Range) -> usize {
    [&value.lower, &value.upper].into_iter().flatten().fold(8, aligned) + 1 - HEADER_BYTES
}

#[cfg(test)]
mod tests {
    use melba_types::{ArrayDim, Record, oids};

    use super::*;

    #[test]
    fn sizes_are_those_of_postgresql() {
        let numeric = |text: &str| Datum::Numeric(Numeric::parse(text).expect("a number"));
        let ints = |n: i32| {
            let elements: Vec<Datum> = (0..n).map(Datum::Int4).collect();
            let dims = vec![ArrayDim { length: n, lower_bound: 1 }];
            Datum::Array(std::sync::Arc::new(Array { element_type: oids::INT4, dims, elements }))
        };
        let row = |fields: Vec<Datum>| {
            let field_types = vec![oids::INT4; fields.len()].into();
            Datum::Record(std::sync::Arc::new(Record { type_oid: oids::RECORD, field_types, field_names: None, fields }))
        };
        // The results of pg_column_size(literal) in PostgreSQL 18.
        for (value, bytes) in [
            (Datum::text("abc"), 7),
            (numeric("0"), 6),
            (numeric("1.5"), 10),
            (numeric("123456789.123"), 14),
            (numeric("1e200"), 8),
            (ints(3), 36),
            (row(vec![Datum::Int4(1), Datum::text("a")]), 30),
        ] {
            assert_eq!(data_bytes(&value) + HEADER_BYTES, bytes, "{value:?}");
        }
    }
}
