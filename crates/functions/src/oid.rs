//! oid, xid, xid8, pg_snapshot, cid, tid, pg_lsn and the oid and smallint vectors.

use std::cmp::Ordering;
use std::sync::Arc;

use melba_fmgr::{ScalarFn, SetFn, TypeIo, comparison_table, type_io};
use melba_types::{Array, ArrayDim, Datum, Oid, Result, err, oids};

use crate::snapshot;

macro_rules! unsigned_io {
    ($name:literal) => {
        TypeIo {
            input: |_, s| oid_in(s, $name).map(Datum::Oid),
            output: |_, v, out| crate::int::write_integer(out, v.as_oid()),
            receive: |_, b| Ok(Datum::Oid(u32::from_be_bytes(type_io::fixed(b)?))),
            send: |_, v, out| {
                out.extend_from_slice(&v.as_oid().to_be_bytes());
                Ok(())
            },
        }
    };
}

const SNAPSHOT: TypeIo = TypeIo {
    input: |_, s| snapshot::parse(s).ok_or_else(|| type_io::invalid_text("pg_snapshot", s)),
    output: |_, v, out| {
        out.extend_from_slice(snapshot::print(v).as_bytes());
        Ok(())
    },
    receive: |_, b| snapshot::received(b),
    send: |_, v, out| {
        out.extend_from_slice(v.as_bytes());
        Ok(())
    },
};

pub const TYPES: &[(Oid, TypeIo)] = &[
    (oids::PG_SNAPSHOT, SNAPSHOT),
    (oids::TXID_SNAPSHOT, SNAPSHOT),
    (oids::OID, unsigned_io!("oid")),
    (oids::XID, unsigned_io!("xid")),
    (oids::CID, unsigned_io!("cid")),
    (
        oids::XID8,
        TypeIo {
            input: |_, s| unsigned_in(s, "xid8", u64::MAX).map(|v| Datum::Int8(v as i64)),
            output: |_, v, out| crate::int::write_integer(out, v.as_i64() as u64),
            receive: |_, b| Ok(Datum::Int8(i64::from_be_bytes(type_io::fixed(b)?))),
            send: send_i64,
        },
    ),
    (
        oids::TID,
        TypeIo { input: |_, s| tid_in(s), output: |_, v, out| tid_out(v, out), receive: |_, b| tid_receive(b), send: tid_send },
    ),
    (
        oids::PG_LSN,
        TypeIo {
            input: |_, s| lsn_in(s),
            output: |_, v, out| {
                out.extend_from_slice(lsn_text(v.as_i64()).as_bytes());
                Ok(())
            },
            receive: |_, b| Ok(Datum::Int8(i64::from_be_bytes(type_io::fixed(b)?))),
            send: send_i64,
        },
    ),
    (
        oids::OIDVECTOR,
        TypeIo {
            input: |_, s| vector_in(s, oids::OID, |s| oid_in(s, "oid").map(Datum::Oid)),
            output: |_, v, out| vector_out(v, out),
            receive: |c, b| vector_receive(c, b, "oidvector"),
            send: crate::array::io::send,
        },
    ),
    (
        oids::INT2VECTOR,
        TypeIo {
            input: |_, s| vector_in(s, oids::INT2, |s| melba_fmgr::integer::int2_in(s).map(Datum::Int2)),
            output: |_, v, out| vector_out(v, out),
            receive: |c, b| vector_receive(c, b, "int2vector"),
            send: crate::array::io::send,
        },
    ),
];

fn send_i64(_: &melba_fmgr::TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&v.as_i64().to_be_bytes());
    Ok(())
}

/// An unsigned number as C's strtoul reads it: a minus sign wraps around; octal and hexadecimal by prefix.
fn unsigned_in(text: &str, type_name: &str, max: u64) -> Result<u64> {
    let invalid = || type_io::invalid_text(type_name, text);
    let out_of_range = || err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type {type_name}");
    let trimmed = type_io::trim(text);
    let negative = trimmed.starts_with('-');
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(invalid());
    }
    let value = u64::from_str_radix(digits, radix).map_err(|_| out_of_range())?;
    let value = if negative { value.wrapping_neg() } else { value };
    // Of 32 bits, what is a negative number of 64 bits down to -2^31 is taken as the same bits.
    match i32::try_from(value as i64) {
        _ if value <= max => Ok(value),
        Ok(signed) => Ok(u64::from(signed as u32)),
        Err(_) => Err(out_of_range()),
    }
}

/// The text of an oid, xid or cid.
pub fn oid_in(text: &str, type_name: &str) -> Result<u32> {
    unsigned_in(text, type_name, u64::from(u32::MAX)).map(|v| v as u32)
}

fn vector_in(text: &str, element_type: Oid, read: impl Fn(&str) -> Result<Datum>) -> Result<Datum> {
    let elements = text.split(|c: char| c.is_ascii() && type_io::is_space(c as u8)).filter(|s| !s.is_empty());
    Ok(vector(element_type, elements.map(read).collect::<Result<Vec<_>>>()?))
}

/// An oidvector or int2vector: an array that starts at 0.
pub fn vector(element_type: Oid, elements: Vec<Datum>) -> Datum {
    let dims = vec![ArrayDim { length: elements.len() as i32, lower_bound: 0 }];
    Datum::Array(Arc::new(Array { element_type, dims, elements }))
}

/// An array of one dimension that starts at 0, without NULLs.
fn vector_receive(c: &melba_fmgr::TypeContext<'_>, bytes: &[u8], name: &str) -> Result<Datum> {
    let value = crate::array::io::receive(c, bytes)?;
    let array = value.as_array();
    match &array.dims[..] {
        [dim] if dim.lower_bound == 0 && !array.elements.iter().any(Datum::is_null) => Ok(value),
        _ => Err(err!(INVALID_BINARY_REPRESENTATION, "invalid {name} data")),
    }
}

fn vector_out(v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    for (i, element) in v.as_array().elements.iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        match element {
            Datum::Oid(v) => crate::int::write_integer(out, *v)?,
            other => crate::int::write_integer(out, other.as_i16())?,
        }
    }
    Ok(())
}

/// A tid is held as block << 16 | offset.
fn tid_in(text: &str) -> Result<Datum> {
    let parse = || {
        let (block, offset) = type_io::trim(text).strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
        let (block, offset) = (block.trim().parse::<i64>().ok()?, offset.trim().parse::<u16>().ok()?);
        // Negative block numbers wrap around, as unsigned ones of C do.
        (-(1i64 << 31)..1i64 << 32).contains(&block).then(|| i64::from(block as u32) << 16 | i64::from(offset))
    };
    parse().map(Datum::Int8).ok_or_else(|| type_io::invalid_text("tid", text))
}

fn tid_parts(v: &Datum) -> (u32, u16) {
    ((v.as_i64() >> 16) as u32, v.as_i64() as u16)
}

fn tid_out(v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let (block, offset) = tid_parts(v);
    out.extend_from_slice(format!("({block},{offset})").as_bytes());
    Ok(())
}

fn tid_receive(b: &[u8]) -> Result<Datum> {
    let b: [u8; 6] = type_io::fixed(b)?;
    let block = u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
    Ok(Datum::Int8(i64::from(block) << 16 | i64::from(u16::from_be_bytes([b[4], b[5]]))))
}

fn tid_send(_: &melba_fmgr::TypeContext<'_>, v: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let (block, offset) = tid_parts(v);
    out.extend_from_slice(&block.to_be_bytes());
    out.extend_from_slice(&offset.to_be_bytes());
    Ok(())
}

fn lsn_in(text: &str) -> Result<Datum> {
    let part = |s: &str| (1..=8).contains(&s.len()).then(|| u32::from_str_radix(s, 16).ok()).flatten();
    let parse = || {
        let (high, low) = text.split_once('/')?;
        Some((u64::from(part(high)?) << 32 | u64::from(part(low)?)) as i64)
    };
    parse().map(Datum::Int8).ok_or_else(|| type_io::invalid_text("pg_lsn", text))
}

/// `X/X` as pg_lsn prints.
pub fn lsn_text(v: i64) -> String {
    format!("{:X}/{:X}", (v as u64) >> 32, v as u32)
}

fn compare_oid(a: &Datum, b: &Datum) -> Ordering {
    a.as_oid().cmp(&b.as_oid())
}

/// tid, xid8 and pg_lsn are unsigned in a bigint.
fn compare_unsigned(a: &Datum, b: &Datum) -> Ordering {
    (a.as_i64() as u64).cmp(&(b.as_i64() as u64))
}

fn compare_vector(a: &Datum, b: &Datum) -> Ordering {
    let (a, b) = (&a.as_array().elements, &b.as_array().elements);
    let by_elements = || a.iter().zip(b).map(|(x, y)| compare_oid(x, y)).find(|o| o.is_ne());
    a.len().cmp(&b.len()).then_with(|| by_elements().unwrap_or(Ordering::Equal))
}

comparison_table! {
    /// Comparisons of the unsigned types.
    COMPARISONS:
    compare_oid => "oideq", "oidne", "oidlt", "oidle", "oidgt", "oidge", "btoidcmp";
    compare_vector => "oidvectoreq", "oidvectorne", "oidvectorlt", "oidvectorle", "oidvectorgt", "oidvectorge", "btoidvectorcmp";
    compare_unsigned => "tideq", "tidne", "tidlt", "tidle", "tidgt", "tidge", "bttidcmp";
    compare_unsigned => "xid8eq", "xid8ne", "xid8lt", "xid8le", "xid8gt", "xid8ge", "xid8cmp";
    compare_unsigned => "pg_lsn_eq", "pg_lsn_ne", "pg_lsn_lt", "pg_lsn_le", "pg_lsn_gt", "pg_lsn_ge", "pg_lsn_cmp";
}

fn larger(a: &[Datum], compare: fn(&Datum, &Datum) -> Ordering) -> Result<Datum> {
    Ok(a[usize::from(compare(&a[0], &a[1]).is_le())].clone())
}

fn smaller(a: &[Datum], compare: fn(&Datum, &Datum) -> Ordering) -> Result<Datum> {
    Ok(a[usize::from(compare(&a[0], &a[1]).is_ge())].clone())
}

pub const SETS: &[(&str, SetFn)] = &[("pg_snapshot_xip", |_, a| {
    Ok(crate::setreturning::rows(snapshot::parts(&a[0]).2.into_iter().map(|xid| Datum::Int8(xid as i64))))
})];

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("oidlarger", |_, a| larger(a, compare_oid)),
    ("oidsmaller", |_, a| smaller(a, compare_oid)),
    ("tidlarger", |_, a| larger(a, compare_unsigned)),
    ("tidsmaller", |_, a| smaller(a, compare_unsigned)),
    ("xid8_larger", |_, a| larger(a, compare_unsigned)),
    ("xid8_smaller", |_, a| smaller(a, compare_unsigned)),
    ("pg_lsn_larger", |_, a| larger(a, compare_unsigned)),
    ("pg_lsn_smaller", |_, a| smaller(a, compare_unsigned)),
    ("xideq", |_, a| Ok(Datum::Bool(a[0].as_oid() == xid_of(&a[1])))),
    ("xidneq", |_, a| Ok(Datum::Bool(a[0].as_oid() != xid_of(&a[1])))),
    ("cideq", |_, a| Ok(Datum::Bool(a[0].as_oid() == a[1].as_oid()))),
    ("pg_snapshot_xmin", |_, a| Ok(Datum::Int8(snapshot::parts(&a[0]).0 as i64))),
    ("pg_snapshot_xmax", |_, a| Ok(Datum::Int8(snapshot::parts(&a[0]).1 as i64))),
    ("pg_visible_in_snapshot", |_, a| Ok(Datum::Bool(snapshot::shows(&a[1], a[0].as_i64() as u64)))),
    ("xid8toxid", |_, a| Ok(Datum::Oid(a[0].as_i64() as u32))),
];

/// xid = integer compares the bits.
fn xid_of(v: &Datum) -> u32 {
    match v {
        Datum::Int4(v) => *v as u32,
        v => v.as_oid(),
    }
}
