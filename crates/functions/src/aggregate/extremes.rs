//! min and max.

use std::cmp::Ordering;

use melba_catalog::TypeKind;
use melba_fmgr::value_order::{Comparer, ValueOrder};
use melba_fmgr::{Aggregate, AggregateFn, CallInfo, GroupedAggregate, TakenRows, order};
use melba_types::float::compare_f64;
use melba_types::key::{self, KeyType};
use melba_types::{Column, ColumnData, Datum, Kind, Oid, Result, oids};

use super::grouped::GroupedExtreme;
use super::{any, for_each_valid, same};

macro_rules! extremes {
    ($(($larger:literal, $smaller:literal)),+ $(,)?) => {
        /// By the btree order of the argument's type.
        pub const AGGREGATES: &[(&str, &str, AggregateFn)] = &[$(
            ($larger, "", |c| Extreme::make(c, Ordering::Greater)),
            ($smaller, "", |c| Extreme::make(c, Ordering::Less)),
        )+];
    };
}

extremes! {
    ("int2larger", "int2smaller"), ("int4larger", "int4smaller"), ("int8larger", "int8smaller"),
    ("float4larger", "float4smaller"), ("float8larger", "float8smaller"), ("numeric_larger", "numeric_smaller"),
    ("oidlarger", "oidsmaller"), ("text_larger", "text_smaller"), ("citext_larger", "citext_smaller"), ("bpchar_larger", "bpchar_smaller"),
    ("bytea_larger", "bytea_smaller"), ("date_larger", "date_smaller"), ("time_larger", "time_smaller"),
    ("timetz_larger", "timetz_smaller"), ("timestamp_larger", "timestamp_smaller"),
    ("timestamptz_larger", "timestamptz_smaller"), ("interval_larger", "interval_smaller"),
    ("cashlarger", "cashsmaller"), ("tidlarger", "tidsmaller"), ("pg_lsn_larger", "pg_lsn_smaller"),
    ("xid8_larger", "xid8_smaller"), ("enum_larger", "enum_smaller"), ("array_larger", "array_smaller"),
    ("record_larger", "record_smaller"), ("network_larger", "network_smaller"),
}

struct Extreme {
    best: Datum,
    /// How a value compares with the best one when it is better.
    better: Ordering,
    /// Of equal values the last one is kept, as PostgreSQL's functions do (`numeric_larger`); of bpchar the first (`bpchar_larger`).
    keeps_first: bool,
    /// `None`: a record's, known with the first value; or `function` has the order.
    key: Option<KeyType>,
    /// The order that functions of users give the values.
    function: Option<ValueOrder>,
}

/// Enums are compared in the order of their labels, whatever class is their default.
fn is_enum(call: &CallInfo<'_>, ty: Oid) -> bool {
    let catalog = call.session.catalog();
    catalog.type_(catalog.base_type(ty)).is_some_and(|t| t.type_kind == TypeKind::Enum)
}

fn extreme_key(call: &CallInfo<'_>, ty: Oid) -> Result<KeyType> {
    match is_enum(call, ty) {
        true => order::own_key_type(call.session.catalog(), ty, call.collation),
        false => order::key_type(call.session, ty, call.collation),
    }
}

impl Extreme {
    fn make(call: &CallInfo<'_>, better: Ordering) -> Result<Box<dyn Aggregate>> {
        let ty = call.arg_types.first().copied().unwrap_or(call.return_type);
        let function = match is_enum(call, ty) {
            true => None,
            false => ValueOrder::of_type(call.session.catalog(), ty, call.collation)?,
        };
        let key = if ty == oids::RECORD || function.is_some() { None } else { Some(extreme_key(call, ty)?) };
        let keeps_first = call.session.catalog().base_type(ty) == oids::BPCHAR;
        Ok(Box::new(Extreme { best: Datum::Null, better, keeps_first, key, function }))
    }

    /// Whether a value that compares so with the best one replaces it.
    fn replaces(&self, ordering: Ordering) -> bool {
        ordering == self.better || ordering == Ordering::Equal && !self.keeps_first
    }

    fn take(&mut self, v: Datum) {
        if v.is_null() {
            return;
        }
        let ordering = match (&self.best, &self.key) {
            (Datum::Null, _) => self.better,
            (best, Some(key)) => key::compare(key, &v, best),
            (best, None) => key::compare_plain(&v, best),
        };
        if self.replaces(ordering) {
            self.best = v;
        }
    }

    /// A value that functions of users compare with the best one.
    fn take_by(&mut self, call: &CallInfo<'_>, v: &Datum) -> Result<()> {
        let is_better = match (&self.best, &self.function) {
            _ if v.is_null() => false,
            (Datum::Null, _) | (_, None) => true,
            (best, Some(order)) => self.replaces(order.compare(Comparer::of_call(call), v, best)?),
        };
        if is_better {
            self.best = v.clone();
        }
        Ok(())
    }

    fn learn_record(&mut self, call: &CallInfo<'_>, v: &Datum) -> Result<()> {
        if let (None, Datum::Record(record)) = (&self.key, v) {
            self.key = Some(order::record_key_type(call.session, &record.field_types)?);
        }
        Ok(())
    }
}

/// The row of the best value among `rows`.
fn best_row<T: Copy>(column: &Column, values: &[T], rows: &[u32], better: impl Fn(T, T) -> bool) -> Option<usize> {
    let mut best: Option<usize> = None;
    for_each_valid(column.validity.as_ref(), TakenRows::These(rows), |i| {
        if best.is_none_or(|b| better(values[i], values[b])) {
            best = Some(i);
        }
    });
    best
}

impl Aggregate for Extreme {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if self.function.is_some() {
            return self.take_by(call, &args[0]);
        }
        self.learn_record(call, &args[0])?;
        self.take(args[0].clone());
        Ok(())
    }

    fn add_batch(&mut self, call: &CallInfo<'_>, args: &[&Column], rows: &[u32]) -> Result<()> {
        let column = args[0];
        let greater = self.better == Ordering::Greater;
        let plain = matches!(self.key, Some(KeyType::Plain(_)));
        let row = match &column.data {
            ColumnData::Int2(v) if plain => best_row(column, v, rows, |a, b| if greater { a > b } else { a < b }),
            ColumnData::Int4(v) if plain => best_row(column, v, rows, |a, b| if greater { a > b } else { a < b }),
            ColumnData::Int8(v) if plain => best_row(column, v, rows, |a, b| if greater { a > b } else { a < b }),
            ColumnData::Numeric(v) if plain => best_row(column, &v.values, rows, |a, b| if greater { a > b } else { a < b }),
            ColumnData::Float8(v) if plain => best_row(column, v, rows, |a, b| self.replaces(compare_f64(a, b))),
            ColumnData::Text(v) | ColumnData::Bytes(v) if plain => {
                let mut best: Option<usize> = None;
                for_each_valid(column.validity.as_ref(), TakenRows::These(rows), |i| {
                    if best.is_none_or(|b| v.get(i).cmp(v.get(b)) == self.better) {
                        best = Some(i);
                    }
                });
                best
            }
            _ => {
                return rows.iter().try_for_each(|&row| self.add(call, &[column.get(row as usize)]));
            }
        };
        if let Some(row) = row {
            self.take(column.get(row));
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<Extreme>(other)?;
        if self.key.is_none() {
            self.key = other.key;
        }
        self.take(other.best);
        Ok(())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        Ok(self.best.clone())
    }

    fn grouped(&self) -> Option<Box<dyn GroupedAggregate>> {
        let value: fn(i64) -> Datum = match self.key {
            Some(KeyType::Plain(Kind::Int2)) => |word| Datum::Int2(word as i16),
            Some(KeyType::Plain(Kind::Int4)) => |word| Datum::Int4(word as i32),
            Some(KeyType::Plain(Kind::Int8)) => Datum::Int8,
            _ => return None,
        };
        Some(Box::new(GroupedExtreme::new(self.better == Ordering::Greater, value)))
    }

    fn combines(&self) -> bool {
        self.function.is_none()
    }

    any!();
}
