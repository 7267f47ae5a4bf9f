//! The end of CREATE INDEX CONCURRENTLY. The index is filled from a view while others write: they do not know it yet. Then the rows that
//! differ between that view and a newer one are entered again, and again, until few do; the last time no writer is let in, and the
//! commit shows the index to all.
//!
//! Invariant: after `enter_changes(since, until)` the transaction's entries are those of the rows that `until` shows, if they were
//! those of `since` before. Both views are pinned, so each row that differs can be read as it was and as it is.

use melba_definition::context::Ddl;
use melba_definition::progress::{ProgressReport, create_index as figures};
use melba_engine::{DifferingRows, ReadView, RelationLockMode, ViewPin};
use melba_expression::Evaluation;
use melba_table::{IndexTarget, TableTarget, error, gin_entries};
use melba_types::{Datum, DbError, Result, RowId};

/// With fewer changed rows writers may be kept out for the rest.
const FEW_ROWS: usize = 2_000;
/// Rounds beside writers; more do not help where rows change as fast as they are entered.
const ROUNDS_MAX: usize = 8;
/// An index that is being built.
pub struct Building<'a> {
    pub ddl: &'a Ddl<'a>,
    pub ctx: &'a Evaluation,
    pub target: &'a TableTarget,
    pub index: &'a IndexTarget,
    pub progress: &'a dyn ProgressReport,
}

impl Building<'_> {
    /// Enters what has changed since the index was filled, and keeps writers out from then on.
    ///
    /// # Errors
    /// 23505 when the index is unique and the rows have become equal; those of waits.
    pub fn catch_up(&self, filled: ReadView, pin: ViewPin) -> Result<()> {
        self.progress.set(figures::PHASE, figures::VALIDATING);
        let mut shown = (filled, pin);
        for _ in 0..ROUNDS_MAX {
            let newest = self.ddl.tx().engine.latest_view();
            let changed = self.enter_changes(shown.0, newest.0)?;
            shown = newest;
            if changed < FEW_ROWS {
                break;
            }
        }
        self.progress.set(figures::PHASE, figures::AWAITING_WRITERS);
        self.ddl.lock_relation_patiently(self.target.relation.oid, RelationLockMode::Share)?;
        self.progress.set(figures::PHASE, figures::VALIDATING);
        let newest = self.ddl.tx().engine.latest_view();
        self.enter_changes(shown.0, newest.0).map(drop)
    }

    /// Makes the entries of changed rows those of the newer view. Returns how many rows have changed.
    fn enter_changes(&self, since: ReadView, until: ReadView) -> Result<usize> {
        let engine = &self.ddl.tx().engine;
        // Later than the entries that are there, which it may delete.
        engine.current_view(until);
        let changed = DifferingRows::find(engine, self.target.tree, since, until)?;
        // Another row may have got the unique key that one has lost: then all are removed before any is entered.
        let enters_later = self.index.unique;
        for id in &changed.ids {
            self.ctx.check_interrupt()?;
            let (before, now) = (self.entries(since, *id)?, self.entries(until, *id)?);
            for entry in before.iter().filter(|entry| !now.contains(entry)) {
                engine.index(self.index.tree).delete(&entry.key, *id)?;
            }
            if !enters_later {
                self.enter(until, (&before, &now), *id)?;
            }
        }
        for id in changed.ids.iter().filter(|_| enters_later) {
            self.ctx.check_interrupt()?;
            self.enter(until, (&self.entries(since, *id)?, &self.entries(until, *id)?), *id)?;
        }
        Ok(changed.ids.len())
    }

    /// Inserts the entries that a row did not have before.
    fn enter(&self, view: ReadView, (before, now): (&[Entry], &[Entry]), id: RowId) -> Result<()> {
        let index = self.ddl.tx().engine.index(self.index.tree);
        for entry in now.iter().filter(|entry| !before.contains(entry)) {
            if entry.is_unique && index.probe_latest(&entry.key, Some(id))?.is_some() {
                return Err(self.not_unique(view, id)?);
            }
            index.insert(&entry.key, id)?;
        }
        Ok(())
    }

    /// The entries of a row as a view shows it; none when there is no such row.
    fn entries(&self, view: ReadView, id: RowId) -> Result<Vec<Entry>> {
        let Some(row) = self.row(view, id)? else { return Ok(Vec::new()) };
        if !self.index.gin.is_empty() {
            let keys = gin_entries(self.ctx, self.index, &row)?;
            return Ok(keys.into_iter().map(|key| Entry { key, is_unique: false }).collect());
        }
        let mut key = Vec::new();
        if !self.index.key(self.ctx, &row, &mut key)? {
            return Ok(Vec::new());
        }
        let has_null = self.index.unique && self.index.values(self.ctx, &row)?.iter().any(Datum::is_null);
        let is_unique = self.index.unique && (!has_null || self.index.nulls_not_distinct);
        Ok(vec![Entry { key, is_unique }])
    }

    /// 23505 for a row whose key another one has.
    pub fn not_unique(&self, view: ReadView, id: RowId) -> Result<DbError> {
        let row = self.row(view, id)?.unwrap_or_default();
        let values = self.index.values(self.ctx, &row)?;
        Ok(error::not_unique(&*self.ctx.session, self.target, self.index, &values))
    }

    fn row(&self, view: ReadView, id: RowId) -> Result<Option<Vec<Datum>>> {
        // Values that are stored out of the row are read by the same view.
        self.ctx.set_view(view);
        let Some(bytes) = self.ddl.tx().engine.get(view, self.target.tree, id)? else { return Ok(None) };
        let row = self.target.decode(&bytes);
        Ok(Some(self.target.with_plain_keys(self.ctx, &row)?.into_owned()))
    }
}

#[derive(PartialEq, Eq)]
struct Entry {
    key: Vec<u8>,
    /// No other row may have the key.
    is_unique: bool,
}
