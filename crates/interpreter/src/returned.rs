//! The rows that a function returns.

use std::sync::Arc;

use melba_fmgr::RoutineRows;
use melba_spill::{Place, Resources, Store};
use melba_statement::context::StatementContext;
use melba_types::{BATCH_ROWS, Batch, Column, Datum, DbError, Kind, Result};

use super::frame::Typed;
use super::program::Program;

/// The rows a function has returned so far.
pub(super) struct Returned {
    pub value: Option<Typed>,
    /// Of a set-returning function.
    rows: Option<Store>,
    waiting: Vec<Datum>,
    kind: Kind,
}

impl Returned {
    pub fn new(context: &StatementContext, program: &Program) -> Returned {
        let rows = program.returns_set.then(|| {
            let resources = Arc::new(Resources::new(context, &context.session.engine()));
            Store::new(&resources)
        });
        let kind = context.catalog.kind_of(program.result.ty).unwrap_or(Kind::Record);
        Returned { value: None, rows, waiting: Vec::new(), kind }
    }

    pub fn push(&mut self, value: Datum) -> Result<()> {
        self.waiting.push(value);
        if self.waiting.len() >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// All of them, of a set-returning function.
    pub fn take_rows(&mut self) -> Result<RoutineRows> {
        self.flush()?;
        let rows = self.rows.take().ok_or_else(|| DbError::internal("a set without rows"))?;
        Ok(Box::new(ReturnedRows { rows, place: 0, batch: None }))
    }

    fn flush(&mut self) -> Result<()> {
        let values = std::mem::take(&mut self.waiting);
        let Some(rows) = self.rows.as_mut().filter(|_| !values.is_empty()) else { return Ok(()) };
        let count = values.len();
        let mut column = Column::with_capacity(self.kind, count);
        values.into_iter().for_each(|value| column.push(value));
        rows.push(Batch::new(vec![column], count))
    }
}

struct ReturnedRows {
    rows: Store,
    place: Place,
    batch: Option<(Batch, usize)>,
}

impl Iterator for ReturnedRows {
    type Item = Result<Datum>;

    fn next(&mut self) -> Option<Result<Datum>> {
        loop {
            if let Some((batch, at)) = &mut self.batch
                && *at < batch.rows
            {
                *at += 1;
                return Some(Ok(batch.columns[0].get(*at - 1)));
            }
            match self.rows.read(&mut self.place, BATCH_ROWS) {
                Ok(Some(batch)) => self.batch = Some((batch, 0)),
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}
