//! Many new rows of one statement, column by column.
//!
//! Rows wait until it is known whether they are many. Few rows are entered into the indexes one by one. Of many, a separate load
//! collects each index's entries; it sorts them, locks the keys and searches for equal ones when the statement ends.
//!
//! Invariant: of all rows whose key already exists, the first one's error is raised, as if they had been entered one by one; also
//! where the statement fails because of a later row (`earlier`).
//!
//! Triggers before the rows run ahead, for the rows of a batch, if all of them are pure (`PureTrigger`): nothing that they compute depends on
//! whether the rows before have been written. With other triggers each row is written before the next one's run.

use std::borrow::Cow;
use std::sync::Arc;

use melba_catalog::trigger_events::INSERT;
use melba_engine::{Duplicate, IndexLoad};
use melba_types::{Batch, Column, Datum, DbError, Result, RowId, SqlState};

use super::error;
use super::gin::gin_entries;
use super::target::{IndexTarget, PlainParts, TableTarget, plain_parts};
use super::trigger::{Moment, Triggers};
use super::writer::TableWriter;
use melba_expression::repeat;
use melba_expression::{Evaluation, Expression};
use melba_tree::RowCheckKind;

/// Bytes of rows that are many, however few rows they are.
const WAITING_BYTES_MAX: usize = 4 << 20;

/// The number of a row among those that a statement has handed in, and its error.
pub type RowError = (u64, DbError);

/// Instead of a row's number: the error is not about one row.
const NO_ROW: u64 = u64::MAX;

/// A statement's rows on their way.
#[derive(Default)]
pub(super) struct BatchedRows {
    /// How many have been handed in.
    count: u64,
    /// Rows that may be few.
    waiting: Vec<(Batch, RowNumbers)>,
    waiting_rows: usize,
    waiting_bytes: usize,
    /// There are many: the loads that collect the entries of each index. Those of deferrable ones are entered one by one.
    loads: Option<Vec<Option<IndexLoad>>>,
    /// Ids and numbers of rows from which on both ascend by one.
    ids: Vec<(RowId, u64)>,
}

/// The numbers of a batch's rows: from these places on, they ascend by one.
struct RowNumbers(Vec<(usize, u64)>);

impl RowNumbers {
    fn from(first: u64) -> RowNumbers {
        RowNumbers(vec![(0, first)])
    }

    /// Adds the row behind the last one, of which `rows` is the number of rows before.
    fn push(&mut self, rows: usize, number: u64) {
        if self.0.is_empty() || self.of(rows) != number {
            self.0.push((rows, number));
        }
    }

    fn of(&self, row: usize) -> u64 {
        let at = self.0.partition_point(|(first, _)| *first <= row);
        self.0[..at].last().map_or(0, |(first, number)| number + (row - first) as u64)
    }
}

impl BatchedRows {
    /// The number of a row of the load.
    fn number(&self, id: RowId) -> u64 {
        let at = self.ids.partition_point(|(first, _)| *first <= id);
        self.ids[..at].last().map_or(0, |(first, number)| number + (id.0 - first.0))
    }

    fn note_ids(&mut self, id: RowId, number: u64) {
        if self.ids.is_empty() || self.number(id) != number {
            self.ids.push((id, number));
        }
    }
}

impl TableWriter {
    /// Whether rows have been handed in that may not be in the table yet.
    pub fn has_rows(&self) -> bool {
        self.rows.loads.is_some() || !self.rows.waiting.is_empty() || self.router.as_ref().is_some_and(|router| router.has_rows())
    }

    /// Inserts a batch of rows (a column for every column of the table); generated columns are filled in.
    ///
    /// # Errors
    /// Those of `insert`; about keys they may come with a later batch, or with `finish`.
    pub fn insert_batch(&mut self, ctx: &Evaluation, batch: Batch) -> Result<(), RowError> {
        if self.checks_each_row() {
            return self.insert_one_by_one(ctx, &batch);
        }
        if let Some(triggers) = self.before_insert_triggers(ctx) {
            return self.insert_fired(ctx, &triggers, batch);
        }
        if let Some(router) = self.router.as_ref().filter(|_| !self.target.partition.is_empty()) {
            let first = router.count;
            let check = |i: usize| self.check_in_partition(ctx, &batch.row(i)).map_err(|e| (first + i as u64, e));
            (0..batch.rows).try_for_each(check)?;
        }
        if let Some(router) = &mut self.router {
            return router.insert_batch(ctx, batch);
        }
        let numbers = RowNumbers::from(self.rows.count);
        self.rows.count += batch.rows as u64;
        self.insert_plain(ctx, batch, numbers)
    }

    /// Inserts rows of which only the table's constraints are to be checked.
    fn insert_plain(&mut self, ctx: &Evaluation, mut batch: Batch, numbers: RowNumbers) -> Result<(), RowError> {
        let target = self.target.clone();
        if let Err((i, error)) = self.prepare_batch(ctx, &target, &mut batch) {
            let number = numbers.of(i);
            // One of the rows before it may have a key that is taken.
            let before: Vec<u32> = (0..i as u32).collect();
            self.take_batch(ctx, &target, batch.take(&before), numbers)?;
            return Err((number, error));
        }
        self.take_batch(ctx, &target, batch, numbers)
    }

    /// Inserts rows that triggers may change before: pure ones run for all rows ahead.
    fn insert_fired(&mut self, ctx: &Evaluation, triggers: &Triggers, batch: Batch) -> Result<(), RowError> {
        let is_plain = !self.routed && self.router.is_none() && !batch.columns.iter().any(Column::is_stored);
        let pure = if is_plain { self.pure_triggers(ctx, triggers).map_err(|e| (self.rows.count, e))? } else { None };
        let Some(mut pure) = pure else {
            // A trigger reads the rows before.
            self.finish(ctx)?;
            return self.insert_one_by_one(ctx, &batch);
        };
        let first = self.rows.count;
        let mut fired: Vec<Column> =
            self.target.relation.columns.iter().map(|c| Column::with_capacity(c.kind, batch.rows)).collect();
        let (mut rows, mut numbers, mut failed) = (0, RowNumbers(vec![]), None);
        for (i, number) in (0..batch.rows).zip(first..) {
            self.rows.count += 1;
            match pure.fire(&batch, i, &mut fired) {
                Ok(true) => {
                    numbers.push(rows, number);
                    rows += 1;
                }
                Ok(false) => self.skipped += 1,
                Err(e) => {
                    failed = Some((number, e));
                    break;
                }
            }
        }
        // The rows before an error come first, with their own.
        self.insert_plain(ctx, Batch { columns: fired, rows }, numbers)?;
        failed.map_or(Ok(()), Err)
    }

    /// Whether each row must be processed before the next one comes.
    pub fn takes_rows_one_by_one(&mut self, ctx: &Evaluation) -> Result<bool> {
        if self.checks_each_row() {
            return Ok(true);
        }
        match self.before_insert_triggers(ctx) {
            Some(triggers) => Ok(self.pure_triggers(ctx, &triggers)?.is_none()),
            None => Ok(false),
        }
    }

    /// Whether a trigger stands for the write of a row, or a check follows it.
    fn checks_each_row(&self) -> bool {
        self.target.triggers.as_ref().is_some_and(|triggers| triggers.has(Moment::InsteadOf, INSERT))
            || self.target.routing.as_ref().is_some_and(|routing| routing.has_triggers)
            // The rows of a load cannot be read before it ends, and a row may exclude a later one.
            || self.target.indexes.iter().any(|index| index.exclusion.is_some())
            || !self.row_checks.of(RowCheckKind::View).is_empty()
            || self.target.routing.is_some() && !self.row_checks.of(RowCheckKind::Insert).is_empty()
    }

    fn insert_one_by_one(&mut self, ctx: &Evaluation, batch: &Batch) -> Result<(), RowError> {
        for i in 0..batch.rows {
            let number = self.rows.count;
            self.rows.count += 1;
            let mut row = batch.row(i);
            let inserted = match self.target.routing.is_some() {
                true => self.insert_routed(ctx, row).map(|routed| routed.is_some()),
                false => self.insert(ctx, &mut row).map(|id| id.is_some()),
            };
            let inserted = inserted.map_err(|e| (number, e))?;
            // Rows of a view count, whatever its triggers return.
            self.skipped += u64::from(!inserted && !self.is_view());
        }
        Ok(())
    }

    /// Takes rows that are valid except for their keys.
    fn take_batch(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        batch: Batch,
        numbers: RowNumbers,
    ) -> Result<(), RowError> {
        if batch.rows == 0 {
            return Ok(());
        }
        if self.rows.loads.is_some() {
            return self.write_batch(ctx, target, &batch, &numbers);
        }
        self.rows.waiting_rows += batch.rows;
        self.rows.waiting_bytes += batch.string_bytes();
        self.rows.waiting.push((batch, numbers));
        if self.rows.waiting_rows < self.txn.bulk_rows_min() && self.rows.waiting_bytes < WAITING_BYTES_MAX {
            return Ok(());
        }
        self.begin_load(target).map_err(|e| (NO_ROW, e))?;
        self.write_waiting(ctx, target)
    }

    /// Inserts waiting rows and enters them into the indexes. To be called after the last row.
    pub fn finish(&mut self, ctx: &Evaluation) -> Result<(), RowError> {
        if let Some(router) = &mut self.router {
            let finished = router.finish(ctx);
            for events in router.take_events() {
                self.events.append(ctx, events).map_err(|e| (NO_ROW, e))?;
            }
            return finished;
        }
        let target = self.target.clone();
        self.write_waiting(ctx, &target)?;
        let mut first: Option<(Duplicate, usize)> = None;
        for (at, load) in self.rows.loads.take().into_iter().flatten().enumerate() {
            let found = load.map_or(Ok(None), IndexLoad::finish).map_err(|e| (NO_ROW, e.into()))?;
            if let Some(found) = found
                && first.as_ref().is_none_or(|(first, _)| found.rows.1 < first.rows.1)
            {
                first = Some((found, at));
            }
        }
        let Some((duplicate, at)) = first else { return Ok(()) };
        let error = self.duplicate(ctx, &target, &target.indexes[at], &duplicate);
        Err((self.rows.number(duplicate.rows.1), error.unwrap_or_else(|e| e)))
    }

    /// The error of a statement that fails: a duplicate key, when an earlier row has one.
    pub fn earlier(&mut self, ctx: &Evaluation, error: DbError) -> (Option<u64>, DbError) {
        match self.finish(ctx) {
            Err((row, earlier)) if earlier.sqlstate() == SqlState::UNIQUE_VIOLATION => (Some(row), earlier),
            _ => (None, error),
        }
    }

    /// Begins to collect entries, where the table is one that has segments.
    fn begin_load(&mut self, target: &TableTarget) -> Result<()> {
        let mut loads = Vec::new();
        if self.txn.has_segments(target.tree)? {
            self.txn.bulk(target.tree).expect_rows()?;
            for index in &target.indexes {
                let load = (!index.deferrable).then(|| IndexLoad::begin(&self.txn, index.tree, index.unique));
                loads.push(load.transpose()?);
            }
        } else {
            loads.resize_with(target.indexes.len(), || None);
        }
        self.rows.loads = Some(loads);
        Ok(())
    }

    fn write_waiting(&mut self, ctx: &Evaluation, target: &Arc<TableTarget>) -> Result<(), RowError> {
        self.rows.waiting_rows = 0;
        for (batch, numbers) in std::mem::take(&mut self.rows.waiting) {
            self.write_batch(ctx, target, &batch, &numbers)?;
        }
        Ok(())
    }

    fn write_batch(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        batch: &Batch,
        numbers: &RowNumbers,
    ) -> Result<(), RowError> {
        self.write_rows(ctx, target, batch, numbers).map_err(|(i, e)| (numbers.of(i), e))
    }

    fn write_rows(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        batch: &Batch,
        numbers: &RowNumbers,
    ) -> Result<(), (usize, DbError)> {
        let formed = self.former.form_batch(ctx, &target.toast, batch)?;
        let ids = self.txn.bulk(target.tree).insert(formed.as_ref().unwrap_or(batch)).map_err(|e| (0, e.into()))?;
        if target.indexes.is_empty() && target.references.is_empty() && target.triggers.is_none() && self.transitions.is_none() {
            return Ok(());
        }
        for (row, number) in &numbers.0 {
            self.rows.note_ids(RowId(ids.start.0 + *row as u64), *number);
        }
        let mut loads = self.rows.loads.take();
        let entered = self.enter_batch(ctx, target, loads.as_deref_mut(), batch, ids.start);
        self.rows.loads = loads;
        entered
    }

    /// Enters rows into the indexes, and notes the checks that must follow.
    fn enter_batch(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        mut loads: Option<&mut [Option<IndexLoad>]>,
        batch: &Batch,
        first: RowId,
    ) -> Result<(), (usize, DbError)> {
        let stored = target.key_columns.iter().any(|column| batch.columns[*column].is_stored());
        let mut by_row = Vec::new();
        for (at, index) in target.indexes.iter().enumerate() {
            let parts = plain_parts(index).filter(|_| !stored);
            match (loads.as_mut().and_then(|loads| loads[at].as_mut()), parts) {
                (None, parts) => by_row.push((index, parts)),
                (Some(load), Some(parts)) => self.load_plain(index, &parts, load, batch, first).map_err(|e| (0, e))?,
                (Some(load), None) => self.load_computed(ctx, target, index, load, batch, first)?,
            }
        }
        if !by_row.is_empty() {
            for i in 0..batch.rows {
                self.enter_row(ctx, target, &by_row, batch, i, RowId(first.0 + i as u64)).map_err(|e| (i, e))?;
            }
        }
        self.events.inserted_batch(ctx, target, batch, first).map_err(|e| (0, e))?;
        self.after_batch(ctx, batch).map_err(|e| (0, e))
    }

    /// Enters a row into some indexes.
    fn enter_row(
        &mut self,
        ctx: &Evaluation,
        target: &TableTarget,
        indexes: &[(&IndexTarget, Option<PlainParts<'_>>)],
        batch: &Batch,
        i: usize,
        id: RowId,
    ) -> Result<()> {
        let whole = indexes.iter().any(|(_, parts)| parts.is_none());
        let row = if whole { batch.row(i) } else { Vec::new() };
        let row = if whole { target.with_plain_keys(ctx, &row)? } else { Cow::Borrowed(&row[..]) };
        for (index, parts) in indexes {
            match parts {
                Some(parts) => self.enter_plain(ctx, index, parts, batch, i, id)?,
                None => self.enter(ctx, index, &row, id)?,
            }
        }
        Ok(())
    }

    /// Adds the entries of an index whose keys consist of columns: no row is put together.
    fn load_plain(
        &mut self,
        index: &IndexTarget,
        parts: &PlainParts<'_>,
        load: &mut IndexLoad,
        batch: &Batch,
        first: RowId,
    ) -> Result<()> {
        for i in 0..batch.rows {
            let has_null = self.plain_key(parts, batch, i);
            load.add(&self.key, RowId(first.0 + i as u64), has_null && !index.nulls_not_distinct)?;
        }
        Ok(())
    }

    /// The same for keys with expressions, of long values, or of only some rows, and for GIN indexes.
    fn load_computed(
        &mut self,
        ctx: &Evaluation,
        target: &TableTarget,
        index: &IndexTarget,
        load: &mut IndexLoad,
        batch: &Batch,
        first: RowId,
    ) -> Result<(), (usize, DbError)> {
        for i in 0..batch.rows {
            let row = batch.row(i);
            let mut add = || {
                let row = &*target.with_plain_keys(ctx, &row)?;
                let id = RowId(first.0 + i as u64);
                if !index.gin.is_empty() {
                    return gin_entries(ctx, index, row)?.iter().try_for_each(|entry| Ok(load.add(entry, id, true)?));
                }
                if self.index_key(ctx, index, row)? {
                    let may_repeat = index.unique && !index.must_be_unique(ctx, row)?;
                    load.add(&self.key, id, may_repeat)?;
                }
                Ok(())
            };
            add().map_err(|e| (i, e))?;
        }
        Ok(())
    }

    /// 23505 of a row of the load.
    fn duplicate(&mut self, ctx: &Evaluation, target: &TableTarget, index: &IndexTarget, found: &Duplicate) -> Result<DbError> {
        self.txn.index(index.tree).check_serializable(&found.key)?;
        // Makes the command's changes readable.
        self.txn.current_view(ctx.view());
        let row = self.txn.get_latest(target.tree, found.rows.1)?.row;
        let row = row.map(|row| target.decode(&row)).unwrap_or_default();
        let values = index.values(ctx, &target.with_plain_keys(ctx, &row)?)?;
        Ok(error::unique(&*ctx.session, target, index, &values))
    }

    /// Fills in stored generated columns and checks every single row. The error names the row's place in the batch. Virtual
    /// columns are null afterwards.
    fn prepare_batch(&mut self, ctx: &Evaluation, target: &TableTarget, batch: &mut Batch) -> Result<(), (usize, DbError)> {
        let result = self.check_batch(ctx, target, batch);
        for v in target.virtuals.iter().filter(|v| v.checked) {
            batch.columns[v.column] = repeat(&Datum::Null, v.expression.kind, batch.rows);
        }
        result
    }

    fn check_batch(&mut self, ctx: &Evaluation, target: &TableTarget, batch: &mut Batch) -> Result<(), (usize, DbError)> {
        let expressions = target.generated.iter().map(|(_, e)| e).chain(target.checks.iter().map(|check| &check.condition));
        let is_volatile = expressions.into_iter().any(Expression::is_volatile) || self.has_volatile_policies();
        let is_routed = self.routed || target.partition.is_empty();
        let is_accepted = |batch: &mut Batch| Ok(is_accepted(ctx, target, batch)? && self.passes_policies(ctx, batch)?);
        if !is_volatile && is_routed && matches!(is_accepted(batch), Ok::<bool, DbError>(true)) {
            return Ok(());
        }
        // Which row is refused, and why, if any is.
        let kinds = target.generated.iter().map(|(at, _)| target.relation.columns[*at].kind);
        let mut generated: Vec<Column> = kinds.map(|kind| Column::with_capacity(kind, batch.rows)).collect();
        for i in 0..batch.rows {
            let mut row = batch.row(i);
            self.prepare(ctx, target, &mut row, RowCheckKind::Insert).map_err(|e| (i, e))?;
            for (column, (at, _)) in generated.iter_mut().zip(&target.generated) {
                column.push(std::mem::replace(&mut row[*at], Datum::Null));
            }
        }
        for (column, (at, _)) in generated.into_iter().zip(&target.generated) {
            batch.columns[*at] = column;
        }
        Ok(())
    }
}

/// Fills in generated columns, virtual ones as far as they are checked; whether no row violates a table constraint.
fn is_accepted(ctx: &Evaluation, target: &TableTarget, batch: &mut Batch) -> Result<bool> {
    for (at, expression) in &target.generated {
        batch.columns[*at] = expression.eval_batch(ctx, batch)?;
    }
    for v in target.virtuals.iter().filter(|v| v.checked) {
        batch.columns[v.column] = v.expression.eval_batch(ctx, batch)?;
    }
    let has_null = |at: &usize| (0..batch.rows).any(|i| batch.columns[*at].is_null(i));
    if target.not_null.iter().any(has_null) {
        return Ok(false);
    }
    for check in &target.checks {
        let holds = check.condition.eval_batch(ctx, batch)?;
        if (0..batch.rows).any(|i| matches!(holds.get(i), Datum::Bool(false))) {
            return Ok(false);
        }
    }
    Ok(true)
}
