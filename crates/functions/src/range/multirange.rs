//! Functions, operators and aggregates of multiranges.
//!
//! A range operand counts as a multirange of one range, so that one implementation serves every mix of operands.

use std::any::Any;
use std::cmp::Ordering;

use melba_fmgr::{Aggregate, AggregateFn, CallInfo, ScalarFn, SetFn};
use melba_types::limits::{tick, ticked};
use melba_types::{Datum, DbError, Oid, Range, Result, err};

use super::io::multirange;
use super::ops;
use super::types::{RangeType, lower, upper};
use crate::hash::combine;

/// The ranges of a multirange.
fn members(array: &Datum) -> Result<Vec<Range>> {
    let Datum::Array(array) = array else { return Ok(Vec::new()) };
    if array.dims.len() > 1 {
        return Err(err!(CARDINALITY_VIOLATION, "multiranges cannot be constructed from multidimensional arrays"));
    }
    if array.elements.iter().any(Datum::is_null) {
        return Err(err!(NULL_VALUE_NOT_ALLOWED, "multirange values cannot contain null members"));
    }
    Ok(array.elements.iter().map(|d| d.as_range().clone()).collect())
}

/// Rows for an operator over multirange and multirange, multirange and range, range and multirange.
macro_rules! mixed {
    ($name:literal, $test:expr) => {
        [
            (concat!("multirange_", $name, "_multirange"), |c, a| tested(c, a, $test)),
            (concat!("multirange_", $name, "_range"), |c, a| tested(c, a, $test)),
            (concat!("range_", $name, "_multirange"), |c, a| tested(c, a, $test)),
        ]
    };
}

type Row = (&'static str, ScalarFn);

pub const OVERLAPS: [Row; 3] = mixed!("overlaps", overlaps);
pub const CONTAINS: [Row; 3] = mixed!("contains", contains);
pub const CONTAINED_BY: [Row; 3] = mixed!("contained_by", |ty, x, y| contains(ty, y, x));
pub const BEFORE: [Row; 3] = mixed!("before", before);
pub const AFTER: [Row; 3] = mixed!("after", |ty, x, y| before(ty, y, x));
pub const ADJACENT: [Row; 3] = mixed!("adjacent", |ty, x, y| {
    let touch = |a: Option<&Range>, b: Option<&Range>| {
        a.zip(b).is_some_and(|(a, b)| ty.adjacent(a, b) && ty.bounds(&lower(a), &lower(b)).is_le())
    };
    touch(x.last(), y.first()) || touch(y.last(), x.first())
});
pub const OVERLEFT: [Row; 3] = mixed!("overleft", |ty, x, y| match (x.last(), y.last()) {
    (Some(a), Some(b)) => ty.bounds(&upper(a), &upper(b)).is_le(),
    _ => false,
});
pub const OVERRIGHT: [Row; 3] = mixed!("overright", |ty, x, y| match (x.first(), y.first()) {
    (Some(a), Some(b)) => ty.bounds(&lower(a), &lower(b)).is_ge(),
    _ => false,
});

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("multirange_constructor0", |c, _| multirange(c.return_type, Vec::new())),
    ("multirange_constructor1", |c, a| {
        let (ty, ranges) = operand(c, &a[0])?;
        multirange(ty.multirange(c.session), ranges)
    }),
    ("multirange_constructor2", |c, a| {
        let ty = RangeType::of_multirange(c.session, c.return_type)?;
        multirange(c.return_type, ty.normalize(members(&a[0])?)?)
    }),
    ("multirange_empty", |_, a| Ok(Datum::Bool(a[0].as_multirange().ranges.is_empty()))),
    ("multirange_lower", |_, a| Ok(first(&a[0]).and_then(|r| r.lower.clone()).unwrap_or(Datum::Null))),
    ("multirange_upper", |_, a| Ok(last(&a[0]).and_then(|r| r.upper.clone()).unwrap_or(Datum::Null))),
    ("multirange_lower_inc", |_, a| Ok(Datum::Bool(first(&a[0]).is_some_and(|r| r.lower_inclusive)))),
    ("multirange_upper_inc", |_, a| Ok(Datum::Bool(last(&a[0]).is_some_and(|r| r.upper_inclusive)))),
    ("multirange_lower_inf", |_, a| Ok(Datum::Bool(first(&a[0]).is_some_and(|r| r.lower.is_none())))),
    ("multirange_upper_inf", |_, a| Ok(Datum::Bool(last(&a[0]).is_some_and(|r| r.upper.is_none())))),
    ("multirange_eq", |c, a| compared(c, a, Ordering::is_eq)),
    ("multirange_ne", |c, a| compared(c, a, Ordering::is_ne)),
    ("multirange_lt", |c, a| compared(c, a, Ordering::is_lt)),
    ("multirange_le", |c, a| compared(c, a, Ordering::is_le)),
    ("multirange_gt", |c, a| compared(c, a, Ordering::is_gt)),
    ("multirange_ge", |c, a| compared(c, a, Ordering::is_ge)),
    ("multirange_cmp", |c, a| Ok(Datum::Int4(compare(c, a)? as i32))),
    ("multirange_contains_elem", |c, a| contains_value(c, &a[0], &a[1])),
    ("elem_contained_by_multirange", |c, a| contains_value(c, &a[1], &a[0])),
    ("multirange_union", |c, a| {
        combined(c, a, |ty, mut x, y| {
            x.extend(y);
            ty.normalize(x)
        })
    }),
    ("multirange_intersect", |c, a| combined(c, a, |ty, x, y| intersect(ty, &x, &y))),
    ("multirange_minus", |c, a| {
        combined(c, a, |ty, x, y| {
            let rest = minus(ty, x, &y)?;
            ty.normalize(rest)
        })
    }),
    ("range_merge_from_multirange", |c, a| {
        let (ty, ranges) = operand(c, &a[0])?;
        let merged = match (ranges.first(), ranges.last()) {
            (Some(first), Some(last)) => ty.union(first, last, false)?,
            _ => ty.empty(),
        };
        Ok(ops::datum(merged))
    }),
    ("hash_multirange", |c, a| Ok(Datum::Int4(hash(c, &a[0], None)? as i32))),
    ("hash_multirange_extended", |c, a| Ok(Datum::Int8(hash(c, &a[0], Some(a[1].as_i64() as u64))? as i64))),
];

pub const SETS: &[(&str, SetFn)] = &[("multirange_unnest", |_, a| {
    let ranges = a[0].as_multirange().ranges.clone();
    Ok(Box::new(ranges.into_iter().map(|range| Ok(vec![ops::datum(range)]))))
})];

fn first(value: &Datum) -> Option<&Range> {
    value.as_multirange().ranges.first()
}

fn last(value: &Datum) -> Option<&Range> {
    value.as_multirange().ranges.last()
}

/// The range type and the ranges of an operand.
fn operand(call: &CallInfo<'_>, value: &Datum) -> Result<(RangeType, Vec<Range>)> {
    match value {
        Datum::Range(range) => {
            let ranges = if range.empty { Vec::new() } else { vec![(**range).clone()] };
            Ok((RangeType::of(call.session, range.type_oid)?, ranges))
        }
        _ => {
            let multirange = value.as_multirange();
            Ok((RangeType::of_multirange(call.session, multirange.type_oid)?, multirange.ranges.clone()))
        }
    }
}

fn tested(call: &CallInfo<'_>, a: &[Datum], test: fn(&RangeType, &[Range], &[Range]) -> bool) -> Result<Datum> {
    let (ty, x) = operand(call, &a[0])?;
    let (_, y) = operand(call, &a[1])?;
    Ok(Datum::Bool(test(&ty, &x, &y)))
}

fn contains(ty: &RangeType, x: &[Range], y: &[Range]) -> bool {
    let mut outer = x.iter().peekable();
    y.iter().all(|inner| {
        while outer.next_if(|outer| ty.before(outer, inner)).is_some() {}
        outer.peek().is_some_and(|outer| ty.contains(outer, inner))
    })
}

/// Pairs of ranges of both, of which one ends where the other one continues: overlapping ones are among them.
fn pairs<'a>(ty: &'a RangeType, x: &'a [Range], y: &'a [Range]) -> impl Iterator<Item = (&'a Range, &'a Range)> {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        let pair = (x.get(i)?, y.get(j)?);
        match ty.bounds(&upper(pair.0), &upper(pair.1)).is_le() {
            true => i += 1,
            false => j += 1,
        }
        Some(pair)
    })
}

fn overlaps(ty: &RangeType, x: &[Range], y: &[Range]) -> bool {
    pairs(ty, x, y).any(|(range, other)| ty.overlaps(range, other))
}

fn before(ty: &RangeType, x: &[Range], y: &[Range]) -> bool {
    x.last().zip(y.first()).is_some_and(|(a, b)| ty.before(a, b))
}

fn contains_value(call: &CallInfo<'_>, ranges: &Datum, value: &Datum) -> Result<Datum> {
    let (ty, ranges) = operand(call, ranges)?;
    Ok(Datum::Bool(ranges.iter().any(|range| ty.contains_value(range, value))))
}

fn compare(call: &CallInfo<'_>, a: &[Datum]) -> Result<Ordering> {
    let (ty, x) = operand(call, &a[0])?;
    let (_, y) = operand(call, &a[1])?;
    let by_range = x.iter().zip(&y).map(|(r, s)| ty.compare(r, s)).find(|order| order.is_ne());
    Ok(by_range.unwrap_or_else(|| x.len().cmp(&y.len())))
}

fn compared(call: &CallInfo<'_>, a: &[Datum], test: fn(Ordering) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(test(compare(call, a)?)))
}

fn combined(
    call: &CallInfo<'_>,
    a: &[Datum],
    combine: impl Fn(&RangeType, Vec<Range>, Vec<Range>) -> Result<Vec<Range>>,
) -> Result<Datum> {
    let (ty, x) = operand(call, &a[0])?;
    let (_, y) = operand(call, &a[1])?;
    multirange(a[0].as_multirange().type_oid, combine(&ty, x, y)?)
}

fn intersect(ty: &RangeType, x: &[Range], y: &[Range]) -> Result<Vec<Range>> {
    let mut parts = Vec::new();
    for pair in ticked(pairs(ty, x, y)) {
        let (range, other) = pair?;
        let part = ty.intersect(range, other)?;
        if !part.empty {
            parts.push(part);
        }
    }
    ty.normalize(parts)
}

/// The rest of `x`.
fn minus(ty: &RangeType, x: Vec<Range>, mut y: &[Range]) -> Result<Vec<Range>> {
    let mut left = Vec::new();
    for range in ticked(x) {
        let range = range?;
        while let [first, behind @ ..] = y
            && ty.before(first, &range)
        {
            tick()?;
            y = behind;
        }
        let mut rest = Some(range);
        for taken in y {
            let Some(current) = rest.take_if(|current| ty.overlaps(current, taken)) else { break };
            tick()?;
            let mut parts = ty.minus(&current, taken)?;
            // The part behind the subtracted range may be subtracted from again.
            rest = parts.pop_if(|part| ty.bounds(&upper(part), &upper(&current)).is_eq());
            left.append(&mut parts);
        }
        left.extend(rest);
    }
    Ok(left)
}

/// Without a seed it is the plain hash, in the low 32 bits.
fn hash(call: &CallInfo<'_>, value: &Datum, seed: Option<u64>) -> Result<u64> {
    let multirange = value.as_multirange();
    let subtype = RangeType::of_multirange(call.session, multirange.type_oid)?.subtype;
    combine(multirange.ranges.iter().map(|range| ops::range_hash(call, subtype, range, seed)), 1)
}

pub const AGGREGATES: &[(&str, &str, AggregateFn)] = &[
    ("range_agg_transfn", "range_agg_finalfn", |_| Ok(Box::new(Union { ranges: None }))),
    ("multirange_agg_transfn", "range_agg_finalfn", |_| Ok(Box::new(Union { ranges: None }))),
    ("range_intersect_agg_transfn", "", |_| Ok(Box::new(Intersection { value: None }))),
    ("multirange_intersect_agg_transfn", "", |_| Ok(Box::new(Intersection { value: None }))),
];

/// range_agg.
struct Union {
    ranges: Option<Vec<Range>>,
}

impl Aggregate for Union {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if !args[0].is_null() {
            self.ranges.get_or_insert_default().extend(operand(call, &args[0])?.1);
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        match other.as_any().downcast::<Union>() {
            Ok(other) => {
                if let Some(ranges) = other.ranges {
                    self.ranges.get_or_insert_default().extend(ranges);
                }
                Ok(())
            }
            Err(_) => Err(DbError::internal("merged with another aggregate")),
        }
    }

    fn finish(&self, call: &CallInfo<'_>) -> Result<Datum> {
        let Some(ranges) = &self.ranges else { return Ok(Datum::Null) };
        let ty = match ranges.first() {
            Some(range) => RangeType::of(call.session, range.type_oid)?,
            None => return multirange(call.return_type, Vec::new()),
        };
        multirange(ty.multirange(call.session), ty.normalize(ranges.clone())?)
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// range_intersect_agg.
struct Intersection {
    value: Option<(Oid, Datum)>,
}

impl Aggregate for Intersection {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        let (ty, ranges) = operand(call, &args[0])?;
        let value = match &self.value {
            None => args[0].clone(),
            Some((_, before)) => {
                let common = intersect(&ty, &operand(call, before)?.1, &ranges)?;
                match &args[0] {
                    Datum::Range(_) => ops::datum(common.into_iter().next().unwrap_or_else(|| ty.empty())),
                    other => multirange(other.as_multirange().type_oid, common)?,
                }
            }
        };
        self.value = Some((ty.oid, value));
        Ok(())
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        Err(DbError::internal("range_intersect_agg is not merged"))
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        Ok(self.value.as_ref().map_or(Datum::Null, |(_, value)| value.clone()))
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
