//! The steps around the write of a row: the same, in one order, for INSERT, COPY, UPDATE,
//! DELETE, MERGE, ON CONFLICT, moves between partitions and the actions of foreign keys.
//!
//! ```text
//!               INSERT                UPDATE                DELETE
//! begin         BEFORE STATEMENT triggers
//! before_...    BEFORE ROW triggers, which may change the row, or prevent the write
//! prepare       generated columns     generated columns
//!               policies              policies
//!               NOT NULL, checks,     NOT NULL, checks,
//!               bounds of partitions  bounds of partitions
//! encode        long values: compressed, or moved out of the row; those of the old row are forgotten
//! the tree      insert                update                delete
//! the indexes   enter                 reenter               index_delete
//! events        checks at the end of the statement: foreign keys, deferrable unique keys
//! after_row     transition tables, AFTER ROW triggers
//! check_row     WITH CHECK OPTION     WITH CHECK OPTION
//! end           AFTER STATEMENT triggers are noted
//! ```
//!
//! The order is PostgreSQL's (ExecInsert, ExecUpdate and ExecDelete in nodeModifyTable.c): a trigger may still correct a row that a check
//! would refuse, generated columns see its changes, and a row that violates a check is reported before one
//! whose key exists. `batch` takes the steps of INSERT for many rows at once, column by column. Triggers are fired by
//! `row_triggers`; a table without them has no additional step.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_catalog::trigger_events::{DELETE, INSERT, UPDATE};
use melba_types::{Datum, Result, RowId};

use super::error;
use super::gin;
use super::referencing::check_movable;
use super::target::TableTarget;
use super::toast::forget;
use super::writer::TableWriter;
use melba_expression::Evaluation;
use melba_tree::RowCheckKind;

impl TableWriter {
    /// Inserts a row (a value for every column, dropped ones null); generated columns are filled in. `None`: a trigger has
    /// prevented that.
    ///
    /// # Errors
    /// 23502, 23514, 23505 as PostgreSQL raises them. Foreign keys are checked by `finish`.
    pub fn insert(&mut self, ctx: &Evaluation, row: &mut [Datum]) -> Result<Option<RowId>> {
        if self.is_view() {
            return Ok(self.instead(ctx, INSERT, None, Some(row))?.then_some(RowId(0)));
        }
        if !self.before_insert(ctx, row)? {
            return Ok(None);
        }
        self.check_new(ctx, row)?;
        self.insert_checked(ctx, row).map(Some)
    }

    /// Fills in the generated columns of a row from `before_insert`, and checks that row.
    ///
    /// # Errors
    /// 23502, 23514.
    pub fn check_new(&self, ctx: &Evaluation, row: &mut [Datum]) -> Result<()> {
        self.prepare(ctx, &self.target.clone(), row, self.new_rows)
    }

    /// Inserts a row that `check_new` has checked.
    ///
    /// # Errors
    /// 23505.
    pub fn insert_checked(&mut self, ctx: &Evaluation, row: &[Datum]) -> Result<RowId> {
        let target = self.target.clone();
        self.encode(ctx, &target, row, None)?;
        let id = self.txn.insert(target.tree, &self.row)?;
        self.inserted(ctx, &target, row, id)?;
        Ok(id)
    }

    /// Enters a new row into the indexes, and notes the checks that must follow.
    fn inserted(&mut self, ctx: &Evaluation, target: &Arc<TableTarget>, row: &[Datum], id: RowId) -> Result<()> {
        let row = &*target.with_plain_keys(ctx, row)?;
        for index in &target.indexes {
            self.enter(ctx, index, row, id)?;
        }
        self.events.inserted(ctx, target, row, id)?;
        self.after_row(ctx, INSERT, None, Some(row))?;
        self.check_row(ctx, RowCheckKind::View, row)
    }

    /// Replaces a row whose lock the caller holds, and which comes after `before_update`.
    pub fn update(&mut self, ctx: &Evaluation, id: RowId, old: &[Datum], new: &mut [Datum]) -> Result<()> {
        let target = self.target.clone();
        self.prepare(ctx, &target, new, RowCheckKind::Update)?;
        self.encode(ctx, &target, new, Some(old))?;
        self.txn.update(target.tree, id, &self.row)?;
        let (old, new) = (&*target.with_plain_keys(ctx, old)?, &*target.with_plain_keys(ctx, new)?);
        for index in target.indexes.iter().filter(|index| !index.is_untouched(old, new)) {
            self.reenter(ctx, index, old, new, id)?;
        }
        self.events.updated(ctx, &target, old, new, id)?;
        self.after_row(ctx, UPDATE, Some(old), Some(new))?;
        self.check_row(ctx, RowCheckKind::View, new)
    }

    /// Deletes a row whose lock the caller holds, and which comes after `before_delete`.
    pub fn delete(&mut self, ctx: &Evaluation, id: RowId, old: &[Datum]) -> Result<()> {
        self.txn.delete(self.target.tree, id)?;
        self.forget_row(ctx, id, old)?;
        let target = self.target.clone();
        let old = &*target.with_plain_keys(ctx, old)?;
        self.events.deleted(ctx, &target, old)?;
        self.after_row(ctx, DELETE, Some(old), None)
    }

    /// The same for a row that moves to another partition of `root`; the caller also calls `moved` of the root's writer.
    ///
    /// # Errors
    /// 0A000 when a foreign key refers to a table in between.
    pub fn delete_to_move(&mut self, ctx: &Evaluation, id: RowId, old: &[Datum], root: &Relation) -> Result<()> {
        let target = self.target.clone();
        check_movable(ctx.catalog(), &target.relation, root)?;
        self.txn.delete_to_move(target.tree, id)?;
        self.forget_row(ctx, id, old)?;
        let old = &*target.with_plain_keys(ctx, old)?;
        self.events.left(ctx, &target, old)?;
        self.after_row(ctx, DELETE, Some(old), None)
    }

    /// A row of this partitioned table has moved to another partition, or a trigger has prevented that.
    pub fn moved(&mut self, ctx: &Evaluation, old: &[Datum], new: Option<&[Datum]>) -> Result<()> {
        let target = self.target.clone();
        if target.referenced_by.is_empty() {
            return Ok(());
        }
        let old = target.with_plain_keys(ctx, old)?;
        let new = new.map(|new| target.with_plain_keys(ctx, new)).transpose()?;
        self.events.key_changed(ctx, &target, &old, new.as_deref())
    }

    /// The long values and the index entries of a deleted row.
    fn forget_row(&mut self, ctx: &Evaluation, id: RowId, old: &[Datum]) -> Result<()> {
        let target = self.target.clone();
        forget(&self.txn, &target.toast, old)?;
        let old = &*target.with_plain_keys(ctx, old)?;
        for index in &target.indexes {
            if !index.gin.is_empty() {
                gin::remove(ctx, &self.txn, index, old, id)?;
            } else if self.index_key(ctx, index, old)? {
                self.txn.index(index.tree).delete(&self.key, id)?;
            }
        }
        Ok(())
    }

    pub(super) fn generate(&self, ctx: &Evaluation, target: &TableTarget, row: &mut [Datum]) -> Result<()> {
        for (column, expression) in &target.generated {
            row[*column] = expression.eval_row(ctx, row)?;
        }
        Ok(())
    }

    /// Fills in stored generated columns and checks the row. Virtual columns are null afterwards.
    pub(super) fn prepare(&self, ctx: &Evaluation, target: &TableTarget, row: &mut [Datum], kind: RowCheckKind) -> Result<()> {
        self.generate(ctx, target, row)?;
        self.check_row(ctx, kind, row)?;
        for v in target.virtuals.iter().filter(|v| v.checked) {
            row[v.column] = v.expression.eval_row(ctx, row)?;
        }
        self.check(ctx, target, row)?;
        target.virtuals.iter().for_each(|v| row[v.column] = Datum::Null);
        Ok(())
    }

    fn check(&self, ctx: &Evaluation, target: &TableTarget, row: &[Datum]) -> Result<()> {
        for &column in &target.not_null {
            if row[column].is_null() {
                return Err(error::not_null(&*ctx.session, target, column, self.row_detail(ctx, target, row)?));
            }
        }
        for check in &target.checks {
            if matches!(check.condition.eval_row(ctx, row)?, Datum::Bool(false)) {
                return Err(error::check(&*ctx.session, target, &check.name, self.row_detail(ctx, target, row)?));
            }
        }
        self.check_in_partition(ctx, row)
    }
}
