//! Arithmetic and comparisons of numeric.

use std::cmp::Ordering;

use melba_types::{Bitmap, Column, ColumnData, Datum, Kind, Numeric, Result};

use super::fallback;
use crate::{Operand, VectorFn};

/// Numerics of an operand; a row without one is null.
#[derive(Clone, Copy)]
enum Numbers<'a> {
    Many(&'a [Datum]),
    One(&'a Numeric),
}

impl<'a> Numbers<'a> {
    /// `None` for a null constant, and for columns that are not of datums.
    fn of(operand: &'a Operand<'a>) -> Option<Numbers<'a>> {
        match operand {
            Operand::Column(Column { data: ColumnData::Datum(values), validity: None }) => Some(Numbers::Many(values)),
            Operand::Scalar(Datum::Numeric(value)) => Some(Numbers::One(value)),
            _ => None,
        }
    }

    #[inline]
    fn get(self, row: usize) -> Option<&'a Numeric> {
        match self {
            Numbers::One(value) => Some(value),
            Numbers::Many(values) => match &values[row] {
                Datum::Numeric(value) => Some(value),
                _ => None,
            },
        }
    }
}

fn arithmetic(
    left: Numbers<'_>,
    right: Numbers<'_>,
    rows: usize,
    operation: impl Fn(&Numeric, &Numeric) -> Result<Numeric>,
) -> Result<Column> {
    let mut out = Vec::with_capacity(rows);
    for row in 0..rows {
        out.push(match (left.get(row), right.get(row)) {
            (Some(a), Some(b)) => Datum::Numeric(operation(a, b)?),
            _ => Datum::Null,
        });
    }
    Ok(Column::new(ColumnData::Datum(out)))
}

fn comparison(left: Numbers<'_>, right: Numbers<'_>, rows: usize, test: impl Fn(Ordering) -> bool) -> Column {
    let mut out = vec![false; rows];
    let mut validity: Option<Bitmap> = None;
    for (row, holds) in out.iter_mut().enumerate() {
        match (left.get(row), right.get(row)) {
            (Some(a), Some(b)) => *holds = test(a.cmp(b)),
            _ => validity.get_or_insert_with(|| Bitmap::filled(rows, true)).set(row, false),
        }
    }
    Column { data: ColumnData::Bool(out), validity }
}

macro_rules! arithmetic {
    ($name:literal, $operation:path) => {
        ($name, |call, operands, rows| match (Numbers::of(&operands[0]), Numbers::of(&operands[1])) {
            (Some(left), Some(right)) => arithmetic(left, right, rows, $operation),
            _ => fallback(call, $name, operands, rows, Kind::Numeric),
        })
    };
}

macro_rules! comparison {
    ($name:literal, $test:path) => {
        ($name, |call, operands, rows| match (Numbers::of(&operands[0]), Numbers::of(&operands[1])) {
            (Some(left), Some(right)) => Ok(comparison(left, right, rows, $test)),
            _ => fallback(call, $name, operands, rows, Kind::Bool),
        })
    };
}

pub const VECTORS: &[(&str, VectorFn)] = &[
    arithmetic!("numeric_add", Numeric::add),
    arithmetic!("numeric_sub", Numeric::sub),
    arithmetic!("numeric_mul", Numeric::mul),
    comparison!("numeric_eq", Ordering::is_eq),
    comparison!("numeric_ne", Ordering::is_ne),
    comparison!("numeric_lt", Ordering::is_lt),
    comparison!("numeric_le", Ordering::is_le),
    comparison!("numeric_gt", Ordering::is_gt),
    comparison!("numeric_ge", Ordering::is_ge),
];
