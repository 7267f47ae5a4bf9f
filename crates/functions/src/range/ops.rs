//! Functions and operators of ranges.

use std::cmp::Ordering;
use std::sync::Arc;

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Oid, Range, Result, err};

use super::types::{Bound, RangeType, lower, not_contiguous, upper};
use crate::hash::{hash_word, hash_word_extended, part_hash, rotate_halves};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("range_constructor2", |c, a| construct(c, a, "[)")),
    ("range_constructor3", |c, a| {
        if a[2].is_null() {
            return Err(err!(DATA_EXCEPTION, "range constructor flags argument must not be null"));
        }
        construct(c, a, a[2].as_str())
    }),
    ("range_lower", |_, a| Ok(a[0].as_range().lower.clone().unwrap_or(Datum::Null))),
    ("range_upper", |_, a| Ok(a[0].as_range().upper.clone().unwrap_or(Datum::Null))),
    ("range_empty", |_, a| Ok(Datum::Bool(a[0].as_range().empty))),
    ("range_lower_inc", |_, a| Ok(Datum::Bool(a[0].as_range().lower_inclusive))),
    ("range_upper_inc", |_, a| Ok(Datum::Bool(a[0].as_range().upper_inclusive))),
    ("range_lower_inf", |_, a| Ok(Datum::Bool(!a[0].as_range().empty && a[0].as_range().lower.is_none()))),
    ("range_upper_inf", |_, a| Ok(Datum::Bool(!a[0].as_range().empty && a[0].as_range().upper.is_none()))),
    ("range_eq", |c, a| compared(c, a, Ordering::is_eq)),
    ("range_ne", |c, a| compared(c, a, Ordering::is_ne)),
    ("range_lt", |c, a| compared(c, a, Ordering::is_lt)),
    ("range_le", |c, a| compared(c, a, Ordering::is_le)),
    ("range_gt", |c, a| compared(c, a, Ordering::is_gt)),
    ("range_ge", |c, a| compared(c, a, Ordering::is_ge)),
    ("range_cmp", |c, a| Ok(Datum::Int4(type_of(c, &a[0])?.compare(a[0].as_range(), a[1].as_range()) as i32))),
    ("range_contains_elem", |c, a| Ok(Datum::Bool(type_of(c, &a[0])?.contains_value(a[0].as_range(), &a[1])))),
    ("elem_contained_by_range", |c, a| Ok(Datum::Bool(type_of(c, &a[1])?.contains_value(a[1].as_range(), &a[0])))),
    ("range_contains", |c, a| related(c, a, RangeType::contains)),
    ("range_contained_by", |c, a| related(c, a, |ty, x, y| ty.contains(y, x))),
    ("range_overlaps", |c, a| related(c, a, RangeType::overlaps)),
    ("range_before", |c, a| related(c, a, RangeType::before)),
    ("range_after", |c, a| related(c, a, |ty, x, y| ty.before(y, x))),
    ("range_adjacent", |c, a| related(c, a, RangeType::adjacent)),
    ("range_overleft", |c, a| related(c, a, |ty, x, y| !x.empty && !y.empty && ty.bounds(&upper(x), &upper(y)).is_le())),
    ("range_overright", |c, a| related(c, a, |ty, x, y| !x.empty && !y.empty && ty.bounds(&lower(x), &lower(y)).is_ge())),
    ("range_union", |c, a| combined(c, a, |ty, x, y| ty.union(x, y, true))),
    ("range_merge", |c, a| combined(c, a, |ty, x, y| ty.union(x, y, false))),
    ("range_intersect", |c, a| combined(c, a, RangeType::intersect)),
    ("range_minus", |c, a| {
        combined(c, a, |ty, x, y| match &ty.minus(x, y)?[..] {
            [] => Ok(ty.empty()),
            [one] => Ok(one.clone()),
            _ => Err(not_contiguous("difference")),
        })
    }),
    // Stored values are canonical already.
    ("int4range_canonical", |_, a| Ok(a[0].clone())),
    ("int8range_canonical", |_, a| Ok(a[0].clone())),
    ("daterange_canonical", |_, a| Ok(a[0].clone())),
    ("int4range_subdiff", |_, a| Ok(Datum::Float8(f64::from(a[0].as_i32()) - f64::from(a[1].as_i32())))),
    ("int8range_subdiff", |_, a| Ok(Datum::Float8(a[0].as_i64() as f64 - a[1].as_i64() as f64))),
    ("numrange_subdiff", |_, a| Ok(Datum::Float8(a[0].as_numeric().sub(a[1].as_numeric())?.to_f64()))),
    ("hash_range", |c, a| Ok(Datum::Int4(range_hash(c, type_of(c, &a[0])?.subtype, a[0].as_range(), None)? as i32))),
    ("hash_range_extended", |c, a| {
        let hash = range_hash(c, type_of(c, &a[0])?.subtype, a[0].as_range(), Some(a[1].as_i64() as u64))?;
        Ok(Datum::Int8(hash as i64))
    }),
];

pub fn type_of(call: &CallInfo<'_>, value: &Datum) -> Result<RangeType> {
    RangeType::of(call.session, value.as_range().type_oid)
}

pub fn datum(range: Range) -> Datum {
    Datum::Range(Arc::new(range))
}

/// The hash of a range as PostgreSQL combines it, of its flags and bounds. Without a seed it is the plain hash, in the low 32 bits.
pub fn range_hash(call: &CallInfo<'_>, subtype: Oid, range: &Range, seed: Option<u64>) -> Result<u64> {
    let flag = |bit: u32, is_set: bool| u32::from(is_set) << bit;
    let is_infinite = |bound: &Option<Datum>| !range.empty && bound.is_none();
    let flags = flag(0, range.empty)
        | flag(1, range.lower_inclusive)
        | flag(2, range.upper_inclusive)
        | flag(3, is_infinite(&range.lower))
        | flag(4, is_infinite(&range.upper));
    let bound = |bound: &Option<Datum>| bound.as_ref().map_or(Ok(0), |value| part_hash(call, subtype, value, seed));
    let (lower, upper) = (bound(&range.lower)?, bound(&range.upper)?);
    let start = match seed {
        None => u64::from(hash_word(flags)),
        Some(seed) => hash_word_extended(flags, seed),
    };
    Ok(rotate_halves(start ^ lower) ^ upper)
}

fn construct(call: &CallInfo<'_>, a: &[Datum], flags: &str) -> Result<Datum> {
    let (lower_inclusive, upper_inclusive) = match flags {
        "[]" => (true, true),
        "[)" => (true, false),
        "(]" => (false, true),
        "()" => (false, false),
        _ => {
            return Err(
                err!(SYNTAX_ERROR, "invalid range bound flags").hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".")
            );
        }
    };
    let ty = RangeType::of(call.session, call.return_type)?;
    let value = |d: &Datum| (!d.is_null()).then(|| d.clone());
    let lower = Bound { value: value(&a[0]), inclusive: lower_inclusive, lower: true };
    let upper = Bound { value: value(&a[1]), inclusive: upper_inclusive, lower: false };
    ty.make(lower, upper).map(datum)
}

fn compared(call: &CallInfo<'_>, a: &[Datum], test: fn(Ordering) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(test(type_of(call, &a[0])?.compare(a[0].as_range(), a[1].as_range()))))
}

fn related(call: &CallInfo<'_>, a: &[Datum], test: impl Fn(&RangeType, &Range, &Range) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(test(&type_of(call, &a[0])?, a[0].as_range(), a[1].as_range())))
}

fn combined(call: &CallInfo<'_>, a: &[Datum], combine: impl Fn(&RangeType, &Range, &Range) -> Result<Range>) -> Result<Datum> {
    combine(&type_of(call, &a[0])?, a[0].as_range(), a[1].as_range()).map(datum)
}
