//! Integer keys, read by the type of their column.

use melba_expression::Vector;
use melba_types::{Column, ColumnData, Datum};

/// The integers of some rows of a key, in their order; `None` for NULL.
pub(super) fn each_int(key: &Vector<'_>, rows: impl Iterator<Item = usize>, mut f: impl FnMut(usize, Option<i64>)) {
    fn typed<T: Copy + Into<i64>>(
        column: &Column,
        values: &[T],
        rows: impl Iterator<Item = usize>,
        mut f: impl FnMut(usize, Option<i64>),
    ) {
        match &column.validity {
            None => rows.for_each(|row| f(row, Some(values[row].into()))),
            Some(valid) => rows.for_each(|row| f(row, valid.get(row).then(|| values[row].into()))),
        }
    }
    let column = match key {
        Vector::Borrowed(column) => *column,
        Vector::Owned(column) => column,
        Vector::Scalar(value) => return rows.for_each(|row| f(row, int_datum(value))),
    };
    match &column.data {
        ColumnData::Int2(values) => typed(column, values, rows, f),
        ColumnData::Int4(values) => typed(column, values, rows, f),
        ColumnData::Int8(values) => typed(column, values, rows, f),
        ColumnData::Oid(values) => typed(column, values, rows, f),
        _ => rows.for_each(|row| f(row, int_datum(&column.get(row)))),
    }
}

pub(super) fn int_datum(d: &Datum) -> Option<i64> {
    match d {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        Datum::Oid(v) => Some(i64::from(*v)),
        _ => None,
    }
}
