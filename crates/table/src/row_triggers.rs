//! The triggers of a writer's table: when they fire, and with which rows.

use std::sync::Arc;

use melba_catalog::RelationKind;
use melba_catalog::trigger_events::{DELETE, INSERT, TRUNCATE, UPDATE};
use melba_engine::RowLockMode;
use melba_types::{Batch, Datum, DbError, Oid, Result, RowId, err};

use super::changes::{StatementChanges, Turn};
use super::events::Fired;
use super::transition::Transitions;
use super::trigger::{Change, Moment, PureTriggers, Triggers};
use super::writer::TableWriter;
use melba_expression::Evaluation;
use melba_tree::RowCheckKind;

impl TableWriter {
    /// The state that all changes of the statement share.
    pub fn changes(&mut self) -> Arc<StatementChanges> {
        self.changes.get_or_insert_default().clone()
    }

    fn change<'a>(&'a self, event: i16, old: Option<&'a [Datum]>, new: Option<&'a [Datum]>) -> Change<'a> {
        Change { event, old, new, updated: &self.updated, replica: self.replica.unwrap_or_default() }
    }

    /// The triggers for an event, where there are any.
    fn triggers(&mut self, ctx: &Evaluation, moment: Moment, event: i16) -> Option<Arc<Triggers>> {
        let triggers = self.target.triggers.as_ref().filter(|t| t.has(moment, event))?.clone();
        self.replica.get_or_insert_with(|| ctx.session.is_replica());
        Some(triggers)
    }

    /// Fires the triggers before the statement. `events`: its possible kinds of change.
    pub fn begin(&mut self, ctx: &Evaluation, events: i16) -> Result<()> {
        let mut begun = Vec::new();
        if let Some(triggers) = self.target.triggers.clone() {
            let replica = *self.replica.get_or_insert_with(|| ctx.session.is_replica());
            let changes = self.changes();
            let table = self.target.relation.oid;
            begun = [INSERT, UPDATE, DELETE, TRUNCATE]
                .into_iter()
                .filter(|event| events & event != 0 && changes.begin(table, *event))
                .collect();
            self.transitions = Transitions::of(ctx, &changes, &triggers, events, replica);
            if let Some(router) = &mut self.router {
                router.transitions = self.transitions.clone();
            }
        }
        for event in begun {
            let Some(triggers) = self.triggers(ctx, Moment::BeforeStatement, event) else { continue };
            for at in triggers.firing(ctx, Moment::BeforeStatement, &self.change(event, None, None))? {
                triggers.call(ctx, at, (event, &[]), (None, None), None, ctx.session.user())?;
            }
        }
        Ok(())
    }

    /// Notes the triggers after the statement.
    pub fn end(&mut self, ctx: &Evaluation, events: i16) -> Result<()> {
        for event in [TRUNCATE, DELETE, UPDATE, INSERT].into_iter().filter(|event| events & event != 0) {
            if self.target.triggers.is_some() {
                let turn = self.changes().end(self.target.relation.oid, event);
                self.note_end(ctx, event, turn)?;
            }
        }
        Ok(())
    }

    /// Notes the triggers after a part of a statement that has ended.
    pub(super) fn note_end(&mut self, ctx: &Evaluation, event: i16, turn: Turn) -> Result<()> {
        let Some(triggers) = self.triggers(ctx, Moment::AfterStatement, event) else { return Ok(()) };
        let which = triggers.firing(ctx, Moment::AfterStatement, &self.change(event, None, None))?;
        let (transitions, role) = (self.transitions.clone(), ctx.session.user());
        self.events.triggered(ctx, Fired { triggers, event, which, transitions, turn: Some(turn), role }, None, None)
    }

    /// The statement changes a view by its triggers.
    pub fn is_view(&self) -> bool {
        self.target.relation.kind == RelationKind::View
    }

    /// Fires the triggers that change a row of a view. False: one of them reports that nothing was changed.
    pub fn instead(
        &mut self,
        ctx: &Evaluation,
        event: i16,
        old: Option<&[Datum]>,
        mut new: Option<&mut [Datum]>,
    ) -> Result<bool> {
        let Some(triggers) = self.triggers(ctx, Moment::InsteadOf, event) else {
            return Err(DbError::internal("a change of a view without its trigger"));
        };
        let is_changed = triggers.on_row(ctx, Moment::InsteadOf, &self.change(event, old, None), new.as_deref_mut())?;
        match new {
            // A view over this one may have WITH CHECK OPTION.
            Some(new) if is_changed => self.check_row(ctx, RowCheckKind::View, new)?,
            _ => {}
        }
        Ok(is_changed)
    }

    /// Whether the row, in its present state, is to be inserted.
    pub fn before_insert(&mut self, ctx: &Evaluation, row: &mut [Datum]) -> Result<bool> {
        let Some(triggers) = self.triggers(ctx, Moment::BeforeRow, INSERT) else { return Ok(true) };
        let target = self.target.clone();
        if !triggers.on_row(ctx, Moment::BeforeRow, &self.change(INSERT, None, None), Some(&mut *row))? {
            return Ok(false);
        }
        if self.routed && !self.accepts(ctx, row)? {
            let schema = ctx.catalog().namespace(target.relation.namespace).map_or("", |n| &n.name);
            let table = &target.relation.name;
            let before = triggers.firing(ctx, Moment::BeforeRow, &self.change(INSERT, None, Some(&*row)))?;
            let name = before.last().map_or("", |at| &triggers.trigger(*at).name);
            let message = "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported";
            return Err(err!(FEATURE_NOT_SUPPORTED, "{message}")
                .detail(format!("Before executing trigger \"{name}\", the row was to be in partition \"{schema}.{table}\".")));
        }
        Ok(true)
    }

    /// The triggers before the insertion of a row, where there are any.
    pub(super) fn before_insert_triggers(&mut self, ctx: &Evaluation) -> Option<Arc<Triggers>> {
        self.triggers(ctx, Moment::BeforeRow, INSERT)
    }

    /// Of these, those that may run for rows ahead of their writes.
    pub(super) fn pure_triggers<'t>(&self, ctx: &Evaluation, triggers: &'t Triggers) -> Result<Option<PureTriggers<'t>>> {
        triggers.pure_before_insert(ctx, self.replica.unwrap_or_default())
    }

    /// Fires the triggers before an UPDATE of a row that the caller has locked; whether its present state is to be updated. The
    /// lock is the stronger one then if they have changed a key that a foreign key may refer to.
    pub fn before_update(&mut self, ctx: &Evaluation, id: RowId, old: &[Datum], new: &mut [Datum]) -> Result<bool> {
        let Some(triggers) = self.triggers(ctx, Moment::BeforeRow, UPDATE) else { return Ok(true) };
        let shown = self.target.with_virtuals(ctx, old)?;
        let change = self.change(UPDATE, Some(&shown), None);
        let doing = if self.merges { "updated or deleted" } else { "updated" };
        if !self.before_change(ctx, &triggers, &change, Some(&mut *new), id, doing)? {
            return Ok(false);
        }
        if self.changes_key(ctx, old, new)? {
            self.txn.lock_row_to_change(self.target.tree, id, RowLockMode::ForUpdate)?;
        }
        Ok(true)
    }

    /// Fires the triggers before a DELETE of a row that the caller has locked; whether it is to be deleted.
    pub fn before_delete(&mut self, ctx: &Evaluation, id: RowId, old: &[Datum]) -> Result<bool> {
        let Some(triggers) = self.triggers(ctx, Moment::BeforeRow, DELETE) else { return Ok(true) };
        let old = self.target.with_virtuals(ctx, old)?;
        let change = self.change(DELETE, Some(&old), None);
        self.before_change(ctx, &triggers, &change, None, id, if self.merges { "updated or deleted" } else { "deleted" })
    }

    fn before_change(
        &self,
        ctx: &Evaluation,
        triggers: &Triggers,
        change: &Change<'_>,
        new: Option<&mut [Datum]>,
        id: RowId,
        doing: &str,
    ) -> Result<bool> {
        let before = self.txn.command();
        if !triggers.on_row(ctx, Moment::BeforeRow, change, new)? {
            return Ok(false);
        }
        match self.txn.get_latest(self.target.tree, id)?.own_command {
            Some(command) if command > before => Err(super::error::changed_by_trigger(doing)),
            _ => Ok(true),
        }
    }

    /// Notes the triggers after a row's change.
    pub(super) fn after_row(&mut self, ctx: &Evaluation, event: i16, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<()> {
        let triggers = self.triggers(ctx, Moment::AfterRow, event);
        if triggers.is_none() && self.transitions.is_none() {
            return Ok(());
        }
        let target = self.target.clone();
        let old = old.map(|row| target.with_virtuals(ctx, row)).transpose()?;
        let new = new.map(|row| target.with_virtuals(ctx, row)).transpose()?;
        if let Some(transitions) = &self.transitions {
            let (before, after) = transitions.tables(event);
            for (rows, row) in [(before, &old), (after, &new)] {
                match (rows, row, &self.above) {
                    (Some(rows), Some(row), None) => rows.push(ctx, row)?,
                    (Some(rows), Some(row), Some(above)) => rows.push(ctx, &above.columns.up(row.to_vec()))?,
                    _ => {}
                }
            }
        }
        let Some(triggers) = triggers else { return Ok(()) };
        let which = triggers.firing(ctx, Moment::AfterRow, &self.change(event, old.as_deref(), new.as_deref()))?;
        if which.is_empty() {
            return Ok(());
        }
        let old = old.map(|row| triggers.record(ctx, &row)).transpose()?;
        let new = new.map(|row| triggers.record(ctx, &row)).transpose()?;
        let (transitions, role) = (self.transitions.clone(), ctx.session.user());
        let fired = Fired { triggers, event, which, transitions, turn: None, role };
        self.events.triggered(ctx, fired, old, new)
    }

    /// Takes over the events of the writer of a table below: those of all tables are in the order of the rows.
    pub fn gather_events(&mut self, ctx: &Evaluation, from: &mut TableWriter) -> Result<()> {
        self.events.append(ctx, std::mem::take(&mut from.events))
    }

    /// The same for a partition that a row was routed to.
    pub fn gather_routed(&mut self, ctx: &Evaluation, partition: Oid) -> Result<()> {
        let events = self.router.as_mut().and_then(|router| router.take_triggered(partition));
        events.map_or(Ok(()), |events| self.events.append(ctx, events))
    }

    /// Notes the triggers after the insertion of many rows.
    pub(super) fn after_batch(&mut self, ctx: &Evaluation, batch: &Batch) -> Result<()> {
        if self.transitions.is_some() || self.triggers(ctx, Moment::AfterRow, INSERT).is_some() {
            for i in 0..batch.rows {
                self.after_row(ctx, INSERT, None, Some(&batch.row(i)))?;
            }
        }
        Ok(())
    }
}
