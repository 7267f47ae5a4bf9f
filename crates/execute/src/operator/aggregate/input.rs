//! The columns of a batch that aggregates read.

use std::borrow::Cow;

use melba_types::{Batch, ByteStrings, Column, ColumnData, Datum, Kind, Result};

use crate::ExecContext;
use melba_expression::{Expression, filter};
use melba_plan::node::AggregateSpec;

/// The columns an aggregate reads from a batch.
pub(super) struct Arguments<'a> {
    pub columns: Vec<Cow<'a, Column>>,
    keep: Option<Vec<bool>>,
    order: Vec<Cow<'a, Column>>,
}

impl<'a> Arguments<'a> {
    pub fn new(spec: &AggregateSpec, ctx: &ExecContext, batch: &'a Batch) -> Result<Arguments<'a>> {
        let keep = match &spec.filter {
            None => None,
            Some(condition) => {
                let mut keep = vec![false; batch.rows];
                match filter(std::slice::from_ref(condition), ctx, batch)? {
                    None => keep.fill(true),
                    Some(rows) => rows.iter().for_each(|&r| keep[r as usize] = true),
                }
                Some(keep)
            }
        };
        // FILTER comes first: arguments of rows it leaves out are not evaluated.
        let rows = keep.as_ref().map(|k| k.iter().enumerate().filter(|(_, k)| **k).map(|(i, _)| i as u32).collect::<Vec<u32>>());
        let part = rows.filter(|rows| rows.len() < batch.rows).map(|rows| (batch.take(&rows), rows));
        let evaluate = |e: &Expression| match &part {
            None => e.eval_vector(ctx, batch)?.into_cow(e.kind, batch.rows),
            Some((input, rows)) => Ok(Cow::Owned(spread(e.eval_batch(ctx, input)?, rows, batch.rows))),
        };
        let columns = spec.call.args.iter().map(evaluate).collect::<Result<_>>()?;
        let order = spec.order.iter().map(|(e, _)| evaluate(e)).collect::<Result<_>>()?;
        Ok(Arguments { columns, keep, order })
    }

    /// Whether the aggregate takes every row.
    pub fn takes_all(&self, spec: &AggregateSpec) -> bool {
        self.keep.is_none() && !(spec.strict && self.columns.iter().any(|c| may_have_nulls(c)))
    }

    /// Whether the aggregate takes a row.
    pub fn takes(&self, spec: &AggregateSpec, row: u32) -> bool {
        let row = row as usize;
        self.keep.as_ref().is_none_or(|k| k[row]) && !(spec.strict && self.columns.iter().any(|c| c.is_null(row)))
    }

    /// For DISTINCT and ordered aggregates: the rows to sort, and their keys: group, sort key, equality key.
    pub fn to_sort(&self, spec: &AggregateSpec, rows: &[u32], places: &[u32]) -> (Batch, ByteStrings) {
        let mut keys = ByteStrings::default();
        for &row in rows {
            let at = row as usize;
            keys.bytes.extend_from_slice(&places[at].to_be_bytes());
            for (column, (_, part)) in self.order.iter().zip(&spec.order) {
                part.encode_at(column, at, &mut keys.bytes);
            }
            for (part, arg) in spec.distinct.iter().flatten().zip(&self.columns) {
                part.encode_at(arg, at, &mut keys.bytes);
            }
            keys.ends.push(keys.bytes.len() as u32);
        }
        let columns = self.columns.iter().map(|c| c.take(rows)).collect();
        (Batch { columns, rows: rows.len() }, keys)
    }
}

/// Values of some rows in the places of these; the rows between may hold anything.
fn spread(column: Column, rows: &[u32], all: usize) -> Column {
    let mut at = vec![0; all];
    rows.iter().enumerate().for_each(|(i, &r)| at[r as usize] = i as u32);
    if column.is_empty() { column } else { column.take(&at) }
}

/// Does not search for nulls among datums.
fn may_have_nulls(column: &Column) -> bool {
    column.validity.is_some() || matches!(column.data, ColumnData::Datum(_) | ColumnData::Stored(_))
}

/// About the size of a value in a column.
pub(super) fn value_bytes(kind: Kind, value: &Datum) -> usize {
    kind.width().unwrap_or(size_of::<Datum>()) + value.heap_bytes()
}
