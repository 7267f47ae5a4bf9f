//! The checks and actions of a statement after its own changes: foreign keys, and unique keys of deferrable constraints.
//!
//! Rows are recorded by their ids, and read again when they are checked, in their newest version if they still exist.

mod deferred;
mod log;
mod runner;
use std::sync::Arc;

use melba_catalog::Constraint;
use melba_catalog::foreign_keys::is_referenced_part;
use melba_engine::Transaction;
use melba_types::{Batch, Datum, Result, RowId};

pub use deferred::{DeferredEvents, DeferredPosition};
use log::{EventChange, EventLog, Subject};
pub(super) use log::{Fired, RowRange};
pub(super) use runner::Runner;

use super::changes::StatementChanges;
use super::period::shrinks;
use super::target::{IndexTarget, TableTarget};
use melba_expression::Evaluation;
use melba_expression::key::{identical, same};

/// The events of one statement, in order.
#[derive(Default)]
pub struct Events {
    log: EventLog,
}

fn values_of(columns: &[i16], row: &[Datum]) -> Vec<Datum> {
    columns.iter().map(|c| row[*c as usize - 1].clone()).collect()
}

/// Whether a row refers to another, or must not have nulls beside values.
fn refers(constraint: &Constraint, is_null: impl Fn(usize) -> bool) -> bool {
    refers_with(constraint, constraint.columns.iter().filter(|c| is_null(**c as usize - 1)).count())
}

/// The same for a row with `nulls` nulls among the key's columns.
pub(super) fn refers_with(constraint: &Constraint, nulls: usize) -> bool {
    let full = constraint.foreign_key.as_ref().is_some_and(|f| f.match_type == b'f');
    nulls == 0 || (full && nulls < constraint.columns.len())
}

impl Events {
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    /// Takes over the events that another writer of the statement has left.
    pub fn append(&mut self, ctx: &Evaluation, other: Events) -> Result<()> {
        self.log.append(ctx, other.log)
    }

    pub(super) fn inserted(&mut self, ctx: &Evaluation, target: &Arc<TableTarget>, row: &[Datum], id: RowId) -> Result<()> {
        if !target.references.iter().any(|constraint| refers(constraint, |column| row[column].is_null())) {
            return Ok(());
        }
        self.log.push(ctx, &Subject::References(target.clone(), None), EventChange::row(id))
    }

    /// The rows of a batch were inserted, with ids that follow `first`.
    pub(super) fn inserted_batch(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        batch: &Batch,
        first: RowId,
    ) -> Result<()> {
        let refers =
            |constraint: &Arc<Constraint>| (0..batch.rows).any(|i| refers(constraint, |column| batch.columns[column].is_null(i)));
        if !target.references.iter().any(refers) {
            return Ok(());
        }
        let rows = RowRange { first, count: batch.rows as u64 };
        self.log.push(ctx, &Subject::References(target.clone(), None), EventChange::Rows(rows))
    }

    pub(super) fn updated(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        old: &[Datum],
        new: &[Datum],
        id: RowId,
    ) -> Result<()> {
        // Referencing rows are updated before the row's own references are checked: of two tables that refer to each other, the
        // other one has the new key then.
        self.key_changed(ctx, target, old, Some(new))?;
        let mut changed = Vec::new();
        for (at, constraint) in target.references.iter().enumerate() {
            let (old, new) = (values_of(&constraint.columns, old), values_of(&constraint.columns, new));
            let nulls = new.iter().filter(|value| value.is_null()).count();
            if refers_with(constraint, nulls) && !same(&old, &new) && !shrinks(ctx, constraint, &old, &new)? {
                changed.push(at);
            }
        }
        if !changed.is_empty() {
            self.log.push(ctx, &Subject::References(target.clone(), Some(changed)), EventChange::row(id))?;
        }
        Ok(())
    }

    pub(super) fn deleted(&mut self, ctx: &Evaluation, target: &Arc<TableTarget>, old: &[Datum]) -> Result<()> {
        self.key_changed(ctx, target, old, None)
    }

    /// A row moves from a partition to another one: keys that refer to tables above the partition are handled by `key_changed`.
    pub(super) fn left(&mut self, ctx: &Evaluation, target: &Arc<TableTarget>, old: &[Datum]) -> Result<()> {
        let is_part =
            |key: &Constraint| ctx.catalog().constraint(key.oid).is_some_and(|key| is_referenced_part(ctx.catalog(), key));
        for constraint in target.referenced_by.iter().filter(|key| !is_part(key)) {
            let Some(key) = &constraint.foreign_key else { continue };
            self.referenced(ctx, target, constraint, values_of(&key.referenced_columns, old), None)?;
        }
        Ok(())
    }

    /// A row has another key, or none any more, that others may refer to.
    pub(super) fn key_changed(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        old: &[Datum],
        new: Option<&[Datum]>,
    ) -> Result<()> {
        for constraint in &target.referenced_by {
            let Some(key) = &constraint.foreign_key else { continue };
            let of = |row: &[Datum]| values_of(&key.referenced_columns, row);
            let (old, new) = (of(old), new.map(of));
            // Rows that refer to the key follow it to another form of the same value.
            if !new.as_ref().is_some_and(|new| identical(&old, new)) {
                self.referenced(ctx, target, constraint, old, new)?;
            }
        }
        Ok(())
    }

    /// A row was written whose key in a deferrable index another row has.
    pub(super) fn unique_later(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        index: &IndexTarget,
        id: RowId,
    ) -> Result<()> {
        self.log.push(ctx, &Subject::Unique(target.clone(), index.oid), EventChange::row(id))
    }

    /// Triggers fire later, for a row or the whole statement.
    pub(super) fn triggered(&mut self, ctx: &Evaluation, fired: Fired, old: Option<Datum>, new: Option<Datum>) -> Result<()> {
        if fired.which.is_empty() {
            return Ok(());
        }
        self.log.push(ctx, &Subject::Triggers(fired), EventChange::Change { old, new })
    }

    fn referenced(
        &mut self,
        ctx: &Evaluation,
        target: &Arc<TableTarget>,
        constraint: &Arc<Constraint>,
        old: Vec<Datum>,
        new: Option<Vec<Datum>>,
    ) -> Result<()> {
        if old.iter().any(Datum::is_null) {
            return Ok(());
        }
        self.log.push(ctx, &Subject::Referenced(target.clone(), constraint.clone()), EventChange::Key { old, new })
    }

    /// Runs the events at the end of the statement; those of deferred constraints move to the transaction.
    pub fn finish(
        &mut self,
        ctx: &Evaluation,
        txn: &Arc<Transaction>,
        deferred: &DeferredEvents,
        changes: &Arc<StatementChanges>,
    ) -> Result<()> {
        runner::run(ctx, txn, &mut std::mem::take(&mut self.log), Some(deferred), changes)
    }
}

/// Raises 23503 when one of the rows that a table has refers to nothing.
pub fn check_existing(
    ctx: &Evaluation,
    txn: &Arc<Transaction>,
    target: &Arc<TableTarget>,
    constraint: &Constraint,
) -> Result<()> {
    let which = target.references.iter().position(|c| c.oid == constraint.oid).into_iter().collect();
    let mut log = EventLog::default();
    let all = RowRange { first: RowId(0), count: u64::MAX };
    log.push(ctx, &Subject::References(target.clone(), Some(which)), EventChange::Rows(all))?;
    runner::run(ctx, txn, &mut log, None, &Arc::default())
}
