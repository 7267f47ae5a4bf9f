//! The subtype of a range type, and the algebra of its values.

use std::cmp::Ordering;

use melba_fmgr::{Session, lookup, order};
use melba_types::key::{KeyType, compare};
use melba_types::limits::Ticker;
use melba_types::{Datum, DbError, Oid, Range, Result, err, oids, sort_by};

/// A range type.
pub struct RangeType {
    pub oid: Oid,
    pub subtype: Oid,
    pub key: KeyType,
}

/// One end of a range.
#[derive(Clone, Debug)]
pub struct Bound {
    /// `None`: infinite.
    pub value: Option<Datum>,
    pub inclusive: bool,
    pub lower: bool,
}

impl Bound {
    /// The bound that ends where this one begins, or begins where it ends.
    pub fn flipped(&self) -> Bound {
        Bound { value: self.value.clone(), inclusive: !self.inclusive, lower: !self.lower }
    }
}

pub fn lower(range: &Range) -> Bound {
    Bound { value: range.lower.clone(), inclusive: range.lower_inclusive, lower: true }
}

pub fn upper(range: &Range) -> Bound {
    Bound { value: range.upper.clone(), inclusive: range.upper_inclusive, lower: false }
}

/// The last date, 5874897-12-31.
const DATE_MAX: i32 = 2_145_031_948;

fn next_value(value: &Datum, subtype: Oid) -> Result<Datum> {
    match value {
        // Infinite dates have no successor.
        Datum::Int4(v) if subtype == oids::DATE && (*v == i32::MIN || *v == i32::MAX) => Ok(value.clone()),
        Datum::Int4(v) if subtype == oids::DATE && *v >= DATE_MAX => Err(err!(DATETIME_FIELD_OVERFLOW, "date out of range")),
        Datum::Int4(v) => v.checked_add(1).map(Datum::Int4).ok_or_else(|| match subtype {
            oids::DATE => err!(DATETIME_FIELD_OVERFLOW, "date out of range"),
            _ => err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"),
        }),
        Datum::Int8(v) => {
            v.checked_add(1).map(Datum::Int8).ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))
        }
        other => Ok(other.clone()),
    }
}

fn is_infinite_date(value: &Datum, subtype: Oid) -> bool {
    subtype == oids::DATE && matches!(value, Datum::Int4(i32::MIN | i32::MAX))
}

impl RangeType {
    /// The range type with this OID.
    pub fn of(session: &dyn Session, oid: Oid) -> Result<RangeType> {
        let oid = lookup::base_type(session, oid);
        let builtin = match oid {
            oids::INT4RANGE => Some(oids::INT4),
            oids::INT8RANGE => Some(oids::INT8),
            oids::NUMRANGE => Some(oids::NUMERIC),
            oids::TSRANGE => Some(oids::TIMESTAMP),
            oids::TSTZRANGE => Some(oids::TIMESTAMPTZ),
            oids::DATERANGE => Some(oids::DATE),
            _ => None,
        };
        let (subtype, collation) = match builtin {
            Some(subtype) => (subtype, Oid::INVALID),
            None => {
                let entry = session.catalog().type_(oid);
                let range = entry.and_then(|ty| ty.range.clone());
                let range = range.ok_or_else(|| err!(UNDEFINED_OBJECT, "type {oid} is not a range type"))?;
                (range.subtype, range.collation)
            }
        };
        Ok(RangeType { oid, subtype, key: order::key_type(session, subtype, collation)? })
    }

    /// The range type of a multirange type.
    pub fn of_multirange(session: &dyn Session, oid: Oid) -> Result<RangeType> {
        let oid = lookup::base_type(session, oid);
        let range = match oid {
            oids::INT4MULTIRANGE => oids::INT4RANGE,
            oids::INT8MULTIRANGE => oids::INT8RANGE,
            oids::NUMMULTIRANGE => oids::NUMRANGE,
            oids::TSMULTIRANGE => oids::TSRANGE,
            oids::TSTZMULTIRANGE => oids::TSTZRANGE,
            oids::DATEMULTIRANGE => oids::DATERANGE,
            _ => {
                let range = session.catalog().type_(oid).and_then(|ty| Some(ty.range.as_ref()?.range));
                range.ok_or_else(|| err!(UNDEFINED_OBJECT, "type {oid} is not a multirange type"))?
            }
        };
        RangeType::of(session, range)
    }

    /// The multirange type over a range type.
    pub fn multirange(&self, session: &dyn Session) -> Oid {
        match self.oid {
            oids::INT4RANGE => oids::INT4MULTIRANGE,
            oids::INT8RANGE => oids::INT8MULTIRANGE,
            oids::NUMRANGE => oids::NUMMULTIRANGE,
            oids::TSRANGE => oids::TSMULTIRANGE,
            oids::TSTZRANGE => oids::TSTZMULTIRANGE,
            oids::DATERANGE => oids::DATEMULTIRANGE,
            oid => session.catalog().type_(oid).and_then(|ty| ty.range.as_ref().map(|r| r.multirange)).unwrap_or_default(),
        }
    }

    fn is_discrete(&self) -> bool {
        matches!(self.oid, oids::INT4RANGE | oids::INT8RANGE | oids::DATERANGE)
    }

    pub fn empty(&self) -> Range {
        Range { type_oid: self.oid, empty: true, lower: None, upper: None, lower_inclusive: false, upper_inclusive: false }
    }

    fn values(&self, a: &Datum, b: &Datum) -> Ordering {
        compare(&self.key, a, b)
    }

    /// The order of two bounds on the line.
    pub fn bounds(&self, a: &Bound, b: &Bound) -> Ordering {
        let end = |lower: bool| if lower { Ordering::Less } else { Ordering::Greater };
        match (&a.value, &b.value) {
            (None, None) if a.lower == b.lower => Ordering::Equal,
            (None, _) => end(a.lower),
            (_, None) => end(b.lower).reverse(),
            (Some(x), Some(y)) => self.values(x, y).then_with(|| match (a.inclusive, b.inclusive) {
                (true, true) => Ordering::Equal,
                (false, false) if a.lower == b.lower => Ordering::Equal,
                (false, _) => end(a.lower).reverse(),
                (true, false) => end(b.lower),
            }),
        }
    }

    /// A range from its bounds, canonical.
    pub fn make(&self, lower: Bound, upper: Bound) -> Result<Range> {
        let (mut lower, mut upper) = (lower, upper);
        if self.is_empty_between(&lower, &upper)? {
            return Ok(self.empty());
        }
        if self.is_discrete() {
            if let Some(value) = lower.value.as_ref().filter(|v| !lower.inclusive && !is_infinite_date(v, self.subtype)) {
                lower = Bound { value: Some(next_value(value, self.subtype)?), inclusive: true, lower: true };
            }
            if let Some(value) = upper.value.as_ref().filter(|v| upper.inclusive && !is_infinite_date(v, self.subtype)) {
                upper = Bound { value: Some(next_value(value, self.subtype)?), inclusive: false, lower: false };
            }
            if self.is_empty_between(&lower, &upper)? {
                return Ok(self.empty());
            }
        }
        Ok(Range {
            type_oid: self.oid,
            empty: false,
            lower_inclusive: lower.inclusive && lower.value.is_some(),
            upper_inclusive: upper.inclusive && upper.value.is_some(),
            lower: lower.value,
            upper: upper.value,
        })
    }

    fn is_empty_between(&self, lower: &Bound, upper: &Bound) -> Result<bool> {
        let (Some(x), Some(y)) = (&lower.value, &upper.value) else { return Ok(false) };
        match self.values(x, y) {
            Ordering::Greater => Err(err!(DATA_EXCEPTION, "range lower bound must be less than or equal to range upper bound")),
            Ordering::Equal => Ok(!(lower.inclusive && upper.inclusive)),
            Ordering::Less => Ok(false),
        }
    }

    /// Empty ranges first, then by lower and upper bound.
    pub fn compare(&self, a: &Range, b: &Range) -> Ordering {
        match (a.empty, b.empty) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => self.bounds(&lower(a), &lower(b)).then_with(|| self.bounds(&upper(a), &upper(b))),
        }
    }

    pub fn contains_value(&self, range: &Range, value: &Datum) -> bool {
        let point = |lower: bool| Bound { value: Some(value.clone()), inclusive: true, lower };
        !range.empty && self.bounds(&lower(range), &point(true)).is_le() && self.bounds(&upper(range), &point(false)).is_ge()
    }

    pub fn contains(&self, a: &Range, b: &Range) -> bool {
        b.empty || (!a.empty && self.bounds(&lower(a), &lower(b)).is_le() && self.bounds(&upper(a), &upper(b)).is_ge())
    }

    pub fn overlaps(&self, a: &Range, b: &Range) -> bool {
        !a.empty && !b.empty && self.bounds(&lower(a), &upper(b)).is_le() && self.bounds(&lower(b), &upper(a)).is_le()
    }

    /// Whether `a` ends before `b` begins.
    pub fn before(&self, a: &Range, b: &Range) -> bool {
        !a.empty && !b.empty && self.bounds(&upper(a), &lower(b)).is_lt()
    }

    fn touches(&self, end: &Bound, start: &Bound) -> bool {
        match (&end.value, &start.value) {
            (Some(x), Some(y)) => self.values(x, y).is_eq() && end.inclusive != start.inclusive,
            _ => false,
        }
    }

    pub fn adjacent(&self, a: &Range, b: &Range) -> bool {
        !a.empty && !b.empty && (self.touches(&upper(a), &lower(b)) || self.touches(&upper(b), &lower(a)))
    }

    fn smaller(&self, a: Bound, b: Bound) -> Bound {
        if self.bounds(&a, &b).is_le() { a } else { b }
    }

    fn larger(&self, a: Bound, b: Bound) -> Bound {
        if self.bounds(&a, &b).is_ge() { a } else { b }
    }

    /// The union; `strict`: of ranges that touch or overlap, else of everything between them too.
    pub fn union(&self, a: &Range, b: &Range, strict: bool) -> Result<Range> {
        if a.empty {
            return Ok(b.clone());
        }
        if b.empty {
            return Ok(a.clone());
        }
        if strict && !self.overlaps(a, b) && !self.adjacent(a, b) {
            return Err(err!(DATA_EXCEPTION, "result of range union would not be contiguous"));
        }
        self.make(self.smaller(lower(a), lower(b)), self.larger(upper(a), upper(b)))
    }

    pub fn intersect(&self, a: &Range, b: &Range) -> Result<Range> {
        if !self.overlaps(a, b) {
            return Ok(self.empty());
        }
        self.make(self.larger(lower(a), lower(b)), self.smaller(upper(a), upper(b)))
    }

    /// The part of `a` that is not in `b`: up to two ranges.
    pub fn minus(&self, a: &Range, b: &Range) -> Result<Vec<Range>> {
        if !self.overlaps(a, b) {
            return Ok(if a.empty { Vec::new() } else { vec![a.clone()] });
        }
        let mut rest = Vec::new();
        if self.bounds(&lower(a), &lower(b)).is_lt() {
            rest.push(self.make(lower(a), lower(b).flipped())?);
        }
        if self.bounds(&upper(a), &upper(b)).is_gt() {
            rest.push(self.make(upper(b).flipped(), upper(a))?);
        }
        rest.retain(|range| !range.empty);
        Ok(rest)
    }

    /// Ranges ordered and merged: the ranges of a multirange.
    pub fn normalize(&self, mut ranges: Vec<Range>) -> Result<Vec<Range>> {
        ranges.retain(|range| !range.empty);
        sort_by(&mut ranges, |a, b| self.compare(a, b))?;
        let mut merged: Vec<Range> = Vec::with_capacity(ranges.len());
        let mut ticker = Ticker::new();
        for range in ranges {
            ticker.step()?;
            match merged.last_mut() {
                Some(last) if self.overlaps(last, &range) || self.adjacent(last, &range) => {
                    *last = self.union(last, &range, false)?;
                }
                _ => merged.push(range),
            }
        }
        Ok(merged)
    }
}

/// 22000 for results that are no single range.
pub fn not_contiguous(what: &str) -> DbError {
    err!(DATA_EXCEPTION, "result of range {what} would not be contiguous")
}
