//! Vector forms of the hot scalar functions: comparisons and arithmetic of numbers, comparisons, LIKE and parts of text.
//!
//! Invariant: a vector function gives exactly what its scalar function gives row by row, errors included; rows where an operand
//! is null are null and raise nothing. A property test checks every entry.

mod arithmetic;
mod compare;
mod numeric;
mod substring;
mod text;

use melba_fmgr::{CallInfo, Operand, VectorFn};
use melba_types::{Bitmap, Column, Datum, DbError, Kind, Result};

pub const TABLES: &[&[(&str, VectorFn)]] =
    &[arithmetic::VECTORS, compare::VECTORS, numeric::VECTORS, substring::VECTORS, text::VECTORS];

/// An operand's values of one physical type.
#[derive(Clone, Copy)]
enum Values<'a, T> {
    Many(&'a [T]),
    One(T),
}

/// `Some(Values)` of an operand whose column or scalar has the given variant; `None` for any other shape.
macro_rules! values {
    ($operand:expr, $variant:ident) => {
        match $operand {
            melba_fmgr::Operand::Column(column) => match &column.data {
                melba_types::ColumnData::$variant(v) => Some(crate::vector::Values::Many(&v[..])),
                _ => None,
            },
            melba_fmgr::Operand::Scalar(melba_types::Datum::$variant(v)) => Some(crate::vector::Values::One(*v)),
            melba_fmgr::Operand::Scalar(_) => None,
        }
    };
}
use values;

/// Calls `f` for every row and collects its results. The loops have no branches but `f`'s.
#[inline]
fn zip<T: Copy, U: Copy, R>(left: Values<'_, T>, right: Values<'_, U>, rows: usize, mut f: impl FnMut(T, U) -> R) -> Vec<R> {
    match (left, right) {
        (Values::Many(l), Values::Many(r)) => l[..rows].iter().zip(&r[..rows]).map(|(&a, &b)| f(a, b)).collect(),
        (Values::Many(l), Values::One(b)) => l[..rows].iter().map(|&a| f(a, b)).collect(),
        (Values::One(a), Values::Many(r)) => r[..rows].iter().map(|&b| f(a, b)).collect(),
        (Values::One(a), Values::One(b)) => (0..rows).map(|_| f(a, b)).collect(),
    }
}

/// Which rows have no null operand; `None`: all. Scalars are not null here.
fn validity(operands: &[Operand<'_>], rows: usize) -> Option<Bitmap> {
    let mut maps = operands.iter().filter_map(|operand| match operand {
        Operand::Column(column) => column.validity.as_ref(),
        Operand::Scalar(_) => None,
    });
    let mut all = maps.next()?.clone();
    for map in maps {
        for row in 0..rows {
            if !map.get(row) {
                all.set(row, false);
            }
        }
    }
    Some(all)
}

/// A column of nulls, when an operand is a null constant.
fn null_operand(operands: &[Operand<'_>], rows: usize, kind: Kind) -> Option<Column> {
    let null = operands.iter().any(|operand| matches!(operand, Operand::Scalar(Datum::Null)));
    null.then(|| {
        let mut column = Column::with_capacity(kind, rows);
        (0..rows).for_each(|_| column.push_null());
        column
    })
}

/// Row by row, through the scalar function: for operands of a shape that no loop here expects.
fn fallback(call: &CallInfo<'_>, name: &str, operands: &[Operand<'_>], rows: usize, kind: Kind) -> Result<Column> {
    if let Some(nulls) = null_operand(operands, rows, kind) {
        return Ok(nulls);
    }
    let function = melba_fmgr::registry::scalar(name)
        .ok_or_else(|| DbError::internal(format!("vector function {name} has no scalar form")))?;
    let mut out = Column::with_capacity(kind, rows);
    let mut args = Vec::with_capacity(operands.len());
    for row in 0..rows {
        args.clear();
        args.extend(operands.iter().map(|operand| match operand {
            Operand::Column(column) => column.get(row),
            Operand::Scalar(value) => (*value).clone(),
        }));
        if args.iter().any(Datum::is_null) {
            out.push_null();
        } else {
            out.push(function(call, &args)?);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
