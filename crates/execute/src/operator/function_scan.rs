//! Functions in FROM: ROWS FROM (...) WITH ORDINALITY.

use std::sync::Arc;

use melba_catalog::{Catalog, classes};
use melba_types::{Batch, Column, Datum, DbError, Kind, Oid, Record, Result, err};

use super::partial::passing;
use crate::{ExecContext, Operator};
use melba_expression::{CallTarget, Weight};
use melba_plan::node::{FunctionScanNode, RowShape, SetCall, SetSource};
use melba_types::BATCH_ROWS;

/// The rows of one function call.
pub(super) struct RowIter {
    rows: Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>,
    kinds: Vec<Kind>,
    types: Vec<Oid>,
    catalog: Arc<Catalog>,
    spread: bool,
    /// The row type of several columns as one value.
    shape: Option<RowShape>,
}

impl RowIter {
    pub fn start(call: &SetCall, ctx: &ExecContext, row: &[Datum]) -> Result<RowIter> {
        let rows: Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send> = match &call.source {
            SetSource::Set { function, call } => {
                let args = call.args.iter().map(|a| a.eval_row(ctx, row)).collect::<Result<Vec<_>>>()?;
                if call.strict && args.iter().any(Datum::is_null) {
                    Box::new(std::iter::empty())
                } else {
                    function(&call.info(ctx), &args)?
                }
            }
            SetSource::System { call } => {
                let args = call.args.iter().map(|a| a.eval_row(ctx, row)).collect::<Result<Vec<_>>>()?;
                match &call.target {
                    CallTarget::Scalar(_) | CallTarget::Routine(_) => {
                        let value = call.invoke(&call.info(ctx), &args)?;
                        Box::new(std::iter::once(Ok(vec![value])))
                    }
                    CallTarget::System(_) if call.strict && args.iter().any(Datum::is_null) => Box::new(std::iter::empty()),
                    CallTarget::System(source) => {
                        Box::new(ctx.session.system_rows(source, &call.info(ctx), &args)?.into_iter().map(Ok))
                    }
                }
            }
            SetSource::Routine(routine) => Box::new(routine.rows(ctx, row)?.map(|value| Ok(vec![value?]))),
            SetSource::Transition(name) => {
                let rows = ctx.session.transition_table(name);
                let rows = rows.ok_or_else(|| DbError::internal(format!("the rows of \"{name}\" are not there")))?;
                Box::new(rows.rows()?.map(|value| Ok(vec![value?])))
            }
            SetSource::Scalar(e) => {
                let value = e.eval_row(ctx, row)?;
                Box::new(std::iter::once(Ok(vec![value])))
            }
        };
        let (kinds, types) = match call.spread {
            true => (call.kinds.clone(), call.types.clone()),
            false => (Vec::new(), Vec::new()),
        };
        Ok(RowIter { rows, kinds, types, catalog: ctx.catalog().clone(), spread: call.spread, shape: call.row.clone() })
    }

    /// The next row as one value.
    pub fn next_value(&mut self) -> Result<Option<Datum>> {
        let Some(mut row) = self.next().transpose()? else { return Ok(None) };
        match &self.shape {
            // Functions return their rows column by column, or as records.
            Some(shape) if !matches!(row[..], [Datum::Record(_) | Datum::Null]) => {
                let (field_types, field_names) = (shape.types.clone(), Some(shape.names.clone()));
                Ok(Some(Datum::Record(Arc::new(Record { type_oid: shape.type_oid, field_types, field_names, fields: row }))))
            }
            _ if row.len() == 1 => Ok(row.pop()),
            _ => Err(DbError::internal(format!("{} columns as one value of unknown type", row.len()))),
        }
    }

    /// The fields of a row, which must be those that the query was planned for.
    fn fields(&self, record: &Record) -> Result<Vec<Datum>> {
        let mismatch =
            |detail| err!(DATATYPE_MISMATCH, "function return row and query-specified return row do not match").detail(detail);
        let (given, wanted) = (record.fields.len(), self.kinds.len());
        if given != wanted {
            let plural = if given == 1 { "" } else { "s" };
            return Err(mismatch(format!("Returned row contains {given} attribute{plural}, but query expects {wanted}.")));
        }
        let differs = |i: &usize| record.fields[*i].kind().is_some_and(|kind| kind != self.kinds[*i]);
        if let Some(i) = (0..given).find(differs) {
            let name = |ty: Option<&Oid>| self.catalog.type_name(ty.copied().unwrap_or_default(), &[classes::PG_CATALOG]);
            let (is, expected) = (name(record.field_types.get(i)), name(self.types.get(i)));
            let detail = format!("Returned type {is} at ordinal position {}, but query expects {expected}.", i + 1);
            return Err(mismatch(detail));
        }
        Ok(record.fields.clone())
    }
}

impl Iterator for RowIter {
    type Item = Result<Vec<Datum>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut row = match self.rows.next()? {
            Ok(row) => row,
            Err(e) => return Some(Err(e)),
        };
        if self.spread && row.len() == 1 {
            match row.swap_remove(0) {
                Datum::Record(record) => match self.fields(&record) {
                    Ok(fields) => row = fields,
                    Err(e) => return Some(Err(e)),
                },
                Datum::Null => row = vec![Datum::Null; self.kinds.len()],
                value => row = vec![value],
            }
        }
        Some(Ok(row))
    }
}

pub(super) struct FunctionScanOp {
    id: usize,
    node: Arc<FunctionScanNode>,
    kinds: Arc<[Kind]>,
    running: Option<Vec<Option<RowIter>>>,
    ordinal: i64,
    /// A row after those returned has failed.
    failed: Option<DbError>,
    done: bool,
}

impl FunctionScanOp {
    pub fn new(id: usize, node: Arc<FunctionScanNode>, kinds: Arc<[Kind]>) -> FunctionScanOp {
        FunctionScanOp { id, node, kinds, running: None, ordinal: 0, failed: None, done: false }
    }

    /// The next row over all functions; ended ones return NULLs.
    fn row(&mut self, ctx: &ExecContext) -> Result<Option<Vec<Datum>>> {
        if self.running.is_none() {
            let mut running = Vec::with_capacity(self.node.functions.len());
            for function in &self.node.functions {
                running.push(Some(RowIter::start(function, ctx, &[])?));
            }
            self.running = Some(running);
        }
        let Some(running) = &mut self.running else { return Ok(None) };
        let mut out = Vec::with_capacity(self.kinds.len());
        let mut any = false;
        for (function, running) in self.node.functions.iter().zip(running) {
            let next = match running {
                Some(iter) => iter.next().transpose()?,
                None => None,
            };
            let width = function.kinds.len();
            match next {
                Some(mut row) => {
                    any = true;
                    row.resize(width, Datum::Null);
                    out.extend(row);
                }
                None => {
                    *running = None;
                    out.extend(std::iter::repeat_n(Datum::Null, width));
                }
            }
        }
        if self.node.ordinality {
            self.ordinal += 1;
            out.push(Datum::Int8(self.ordinal));
        }
        Ok(any.then_some(out))
    }
}

impl Operator for FunctionScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let limit = limit.min(BATCH_ROWS);
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while !self.done {
            let mut columns: Vec<Column> = self.kinds.iter().map(|k| Column::with_capacity(*k, 16)).collect();
            let mut rows = 0;
            let mut weight = Weight::default();
            while rows < limit && !weight.is_much() {
                let mut row = match self.row(ctx) {
                    Ok(Some(row)) => row,
                    Ok(None) => {
                        self.done = true;
                        break;
                    }
                    Err(error) if rows > 0 => {
                        self.failed = Some(error);
                        break;
                    }
                    Err(error) => return Err(error),
                };
                weight.add(&row);
                for (column, &output) in columns.iter_mut().zip(&self.node.outputs) {
                    column.push(std::mem::take(&mut row[output]));
                }
                rows += 1;
            }
            ctx.check_interrupt()?;
            let (passing, failed) = passing(&self.node.filter, ctx, Batch { columns, rows })?;
            ctx.note_removed(self.id, rows, passing.as_ref().map_or(0, |batch| batch.rows));
            self.failed = failed.or(self.failed.take());
            if passing.is_some() {
                return Ok(passing);
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.running = None;
        self.ordinal = 0;
        self.done = false;
        self.failed = None;
        Ok(())
    }
}
