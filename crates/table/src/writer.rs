//! Writes rows: constraints, the table's tree, its indexes.

use std::borrow::Cow;
use std::sync::Arc;

use melba_catalog::Relation;
use melba_engine::{ClaimedKeys, Transaction};
use melba_types::{Batch, Datum, DbError, Result, RowId};

use super::batch::BatchedRows;
use super::changes::StatementChanges;
use super::error;
use super::events::Events;
use super::excluding::{self, SearchedIndex};
use super::gin;
use super::part_source::PartSource;
use super::router::{Routed, Router};
use super::routing::ColumnMap;
use super::row_check::RowChecks;
use super::target::{IndexTarget, PlainParts, TableTarget};
use super::toast::RowFormer;
use super::transition::Transitions;
use melba_expression::Evaluation;
use melba_tree::RowCheckKind;

/// A row that ON CONFLICT found as an obstacle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Position in `TableTarget::indexes`.
    pub index: usize,
    pub row: RowId,
}

/// One statement's writes to one table. Buffers are reused from row to row.
pub struct TableWriter {
    pub target: Arc<TableTarget>,
    pub(super) txn: Arc<Transaction>,
    pub(super) former: RowFormer,
    pub(super) row: Vec<u8>,
    pub(super) key: Vec<u8>,
    old_key: Vec<u8>,
    /// By the search for a conflict.
    claimed: ClaimedKeys,
    pub(super) rows: BatchedRows,
    /// Checks and actions that follow the statement's own changes.
    pub events: Events,
    /// Of a partition whose rows come from a table above, and so are known to be in its bounds.
    pub routed: bool,
    /// Of a table that a statement reaches by another one above it.
    pub above: Option<Above>,
    /// Of a partitioned table.
    pub(super) router: Option<Box<Router>>,
    /// `TableTarget::updated` of the statement's table, by this table's columns.
    pub updated: Vec<i16>,
    /// Rows that a trigger has kept from being inserted, of those handed in.
    pub skipped: u64,
    /// The stores for rows that triggers of the statement's table read.
    pub transitions: Option<Arc<Transitions>>,
    /// The statement's conditions on rows.
    pub row_checks: Arc<RowChecks>,
    /// The kind of check for new rows: an UPDATE moves rows between partitions.
    pub new_rows: RowCheckKind,
    /// Of the statement, once triggers need it.
    pub changes: Option<Arc<StatementChanges>>,
    /// The statement is MERGE.
    pub merges: bool,
    /// `Session::is_replica`, once it was read.
    pub(super) replica: Option<bool>,
}

/// The table that a statement names, of one below it that it writes to.
#[derive(Clone)]
pub struct Above {
    pub relation: Arc<Relation>,
    pub columns: ColumnMap,
    /// As `TableTarget::written`.
    pub written: Vec<i16>,
}

impl TableWriter {
    pub fn new(target: Arc<TableTarget>, txn: Arc<Transaction>) -> TableWriter {
        let router = target.routing.as_ref().map(|routing| Box::new(Router::new(routing.clone(), txn.clone(), &target)));
        TableWriter {
            updated: target.updated.clone(),
            skipped: 0,
            row_checks: Arc::default(),
            new_rows: RowCheckKind::Insert,
            transitions: None,
            changes: None,
            merges: false,
            replica: None,
            target,
            txn,
            routed: false,
            above: None,
            router,
            former: RowFormer::default(),
            row: Vec::new(),
            key: Vec::new(),
            old_key: Vec::new(),
            claimed: ClaimedKeys::default(),
            rows: BatchedRows::default(),
            events: Events::default(),
        }
    }

    /// Demands more of rows than the constraints of the table.
    pub fn with_checks(mut self, checks: Arc<RowChecks>) -> TableWriter {
        if let Some(router) = &mut self.router {
            router.row_checks = checks.clone();
        }
        self.row_checks = checks;
        self
    }

    /// `insert` of a partitioned table: the row as it is in its partition.
    pub fn insert_routed(&mut self, ctx: &Evaluation, row: Vec<Datum>) -> Result<Option<Routed>> {
        self.check_in_partition(ctx, &row)?;
        match &mut self.router {
            Some(router) => {
                router.new_rows = self.new_rows;
                router.insert(ctx, row, &mut self.events)
            }
            None => Err(DbError::internal("a table without partitions")),
        }
    }

    /// The writer for a row: this one, or that of a partition. With the partition's columns.
    pub fn site(&mut self, ctx: &Evaluation, row: &[Datum]) -> Result<(&mut TableWriter, ColumnMap)> {
        if self.router.is_none() {
            return Ok((self, ColumnMap::same()));
        }
        self.check_in_partition(ctx, row)?;
        match &mut self.router {
            Some(router) => router.site(ctx, row),
            None => Err(DbError::internal("a table without partitions")),
        }
    }

    /// Whether a row with these columns, of which generated ones are filled in, is in the partition's bounds.
    pub fn accepts(&self, ctx: &Evaluation, row: &mut [Datum]) -> Result<bool> {
        self.generate(ctx, &self.target.clone(), row)?;
        self.is_in_partition(ctx, &self.target, row)
    }

    /// 23514 for a row that is not in the bounds of the partition it is written to by name.
    pub(super) fn check_in_partition(&self, ctx: &Evaluation, row: &[Datum]) -> Result<()> {
        if self.routed || self.is_in_partition(ctx, &self.target, row)? {
            return Ok(());
        }
        Err(error::partition(&*ctx.session, &self.target, self.row_detail(ctx, &self.target, row)?))
    }

    fn is_in_partition(&self, ctx: &Evaluation, target: &TableTarget, row: &[Datum]) -> Result<bool> {
        for check in &target.partition {
            if !check.holds(ctx, row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts the row in stored form into `self.row`. Values that `old` has and the row lacks are forgotten.
    pub(super) fn encode(&mut self, ctx: &Evaluation, target: &TableTarget, row: &[Datum], old: Option<&[Datum]>) -> Result<()> {
        self.former.encode(ctx, &target.toast, &target.layout, row, old, &mut self.row)
    }

    /// Enters a new row into an index.
    pub(super) fn enter(&mut self, ctx: &Evaluation, index: &IndexTarget, row: &[Datum], id: RowId) -> Result<()> {
        if !index.gin.is_empty() {
            return gin::enter(ctx, &self.txn, index, row, id);
        }
        if self.index_key(ctx, index, row)? {
            let must_be_unique = index.unique && index.must_be_unique(ctx, row)?;
            self.add_entry(ctx, index, must_be_unique, || Cow::Borrowed(row), id)?;
        }
        Ok(())
    }

    /// The same for a row of a batch and an index whose keys consist of columns: no row is put together.
    pub(super) fn enter_plain(
        &mut self,
        ctx: &Evaluation,
        index: &IndexTarget,
        parts: &PlainParts<'_>,
        batch: &Batch,
        i: usize,
        id: RowId,
    ) -> Result<()> {
        let has_null = self.plain_key(parts, batch, i);
        let must_be_unique = index.unique && (index.nulls_not_distinct || !has_null);
        self.add_entry(ctx, index, must_be_unique, || Cow::Owned(batch.row(i)), id)
    }

    /// Puts a key of columns into `self.key`; whether there is a null in it.
    pub(super) fn plain_key(&mut self, parts: &PlainParts<'_>, batch: &Batch, i: usize) -> bool {
        self.key.clear();
        let mut has_null = false;
        for (column, part) in parts {
            part.encode_at(&batch.columns[*column], i, &mut self.key);
            has_null |= batch.columns[*column].is_null(i);
        }
        has_null
    }

    /// Replaces a row's entry in an index, if its key has changed.
    pub(super) fn reenter(
        &mut self,
        ctx: &Evaluation,
        index: &IndexTarget,
        old: &[Datum],
        new: &[Datum],
        id: RowId,
    ) -> Result<()> {
        if !index.gin.is_empty() {
            return gin::reenter(ctx, &self.txn, index, (old, new), id);
        }
        let had = self.index_key(ctx, index, old)?;
        std::mem::swap(&mut self.key, &mut self.old_key);
        let has = self.index_key(ctx, index, new)?;
        if had && has && self.key == self.old_key {
            return Ok(());
        }
        if had {
            self.txn.index(index.tree).delete(&self.old_key, id)?;
        }
        if has {
            let must_be_unique = index.unique && index.must_be_unique(ctx, new)?;
            self.add_entry(ctx, index, must_be_unique, || Cow::Borrowed(new), id)?;
        }
        Ok(())
    }

    /// The first row that conflicts with `row` in the indexes `arbiters` accepts (by position). The keys of a row without a conflict stay
    /// locked, so it can be inserted. Otherwise none does: the caller leaves the row that was found alone, or waits for its lock,
    /// whose holder may want the key.
    ///
    /// # Errors
    /// 55000 when one of them is deferrable.
    pub fn find_conflict(
        &mut self,
        ctx: &Evaluation,
        row: &[Datum],
        arbiters: impl Fn(&IndexTarget) -> bool,
    ) -> Result<Option<Conflict>> {
        self.claimed.begin(&self.txn);
        let found = self.claim_or_find(ctx, row, arbiters)?;
        if found.is_some() {
            self.claimed.release(&self.txn);
        }
        Ok(found)
    }

    fn claim_or_find(
        &mut self,
        ctx: &Evaluation,
        row: &[Datum],
        arbiters: impl Fn(&IndexTarget) -> bool,
    ) -> Result<Option<Conflict>> {
        let target = self.target.clone();
        let row = &*target.with_plain_keys(ctx, row)?;
        let arbitrates = |i: &IndexTarget| (i.unique || i.exclusion.is_some()) && arbiters(i);
        for (at, index) in target.indexes.iter().enumerate().filter(|(_, i)| arbitrates(i)) {
            if index.deferrable {
                return Err(error::deferrable_arbiter(&*ctx.session, &target, index));
            }
            if !self.index_key(ctx, index, row)? {
                continue;
            }
            if index.exclusion.is_some() {
                let values = index.values(ctx, row)?;
                error::check_period(&target, index, &values)?;
                let searched = SearchedIndex { ctx, txn: &self.txn, target: &target, index };
                match excluding::claim(searched, (&self.key, values), None)? {
                    Some(found) => return Ok(Some(Conflict { index: at, row: found })),
                    None => continue,
                }
            }
            if !index.must_be_unique(ctx, row)? {
                continue;
            }
            if let Some(found) = self.txn.index(index.tree).claim_key_into(&self.key, None, &mut self.claimed)? {
                return Ok(Some(Conflict { index: at, row: found }));
            }
        }
        Ok(None)
    }

    /// Whether a row that conflicted with `new` still does, being `now`.
    pub fn still_conflicts(&mut self, ctx: &Evaluation, found: Conflict, now: &[Datum], new: &[Datum]) -> Result<bool> {
        let target = self.target.clone();
        let index = &target.indexes[found.index];
        let (now, new) = (&*target.with_plain_keys(ctx, now)?, &*target.with_plain_keys(ctx, new)?);
        let has_key = self.index_key(ctx, index, now)?;
        std::mem::swap(&mut self.key, &mut self.old_key);
        self.index_key(ctx, index, new)?;
        Ok(has_key && self.key == self.old_key)
    }

    /// Whether an update from `old` to `new` changes a key that a foreign key may refer to: decides the row lock's strength.
    pub fn changes_key(&mut self, ctx: &Evaluation, old: &[Datum], new: &[Datum]) -> Result<bool> {
        let target = self.target.clone();
        let mut new = new.to_vec();
        self.generate(ctx, &target, &mut new)?;
        let (old, new) = (&*target.with_plain_keys(ctx, old)?, &*target.with_plain_keys(ctx, &new)?);
        let plain = |i: &&IndexTarget| i.parts.iter().all(|p| matches!(p.source, PartSource::Column(_)));
        for index in target.indexes.iter().filter(|i| i.unique && i.predicate.is_none()).filter(plain) {
            self.index_key(ctx, index, old)?;
            std::mem::swap(&mut self.key, &mut self.old_key);
            self.index_key(ctx, index, new)?;
            if self.key != self.old_key {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The row of an error, as one of the table that the statement names.
    pub(super) fn row_detail(&self, ctx: &Evaluation, target: &TableTarget, row: &[Datum]) -> Result<Option<String>> {
        let row = self.shown(ctx, target, row)?;
        Ok(match &self.above {
            Some(above) => error::failing_row(&*ctx.session, &above.relation, &above.written, &above.columns.up(row)),
            None => error::failing_row(&*ctx.session, &target.relation, &target.written, &row),
        })
    }

    /// The row as messages show it.
    fn shown(&self, ctx: &Evaluation, target: &TableTarget, row: &[Datum]) -> Result<Vec<Datum>> {
        ctx.expand_row(row, target.toast.kinds())
    }

    /// Puts the row's key into `self.key`; false when the index leaves the row out.
    pub(super) fn index_key(&mut self, ctx: &Evaluation, index: &IndexTarget, row: &[Datum]) -> Result<bool> {
        self.key.clear();
        index.key(ctx, row, &mut self.key)
    }

    /// Claims the values of a row, whose key is in `self.key`, checking the index's exclusion constraint likewise.
    fn claim_values(&mut self, ctx: &Evaluation, index: &IndexTarget, row: &[Datum], id: RowId) -> Result<()> {
        let values = index.values(ctx, row)?;
        let target = self.target.clone();
        error::check_period(&target, index, &values)?;
        let searched = SearchedIndex { ctx, txn: &self.txn, target: &target, index };
        if index.deferrable {
            if excluding::claim_unchecked(searched, (&self.key, values), id)? {
                self.events.unique_later(ctx, &target, index, id)?;
            }
            return Ok(());
        }
        let found = excluding::claim(searched, (&self.key, values.clone()), Some(id))?;
        let Some(found) = found else { return Ok(()) };
        self.txn.index(index.tree).check_serializable(&self.key)?;
        let existing = index.values_of_row(ctx, &self.txn, &target, found)?;
        Err(error::exclusion(&*ctx.session, &target, index, &values, existing.as_deref()))
    }

    /// Adds the entry with `self.key` of a row, checking uniqueness (deferrable indexes: once the statement is over).
    fn add_entry<'a>(
        &mut self,
        ctx: &Evaluation,
        index: &IndexTarget,
        must_be_unique: bool,
        row: impl FnOnce() -> Cow<'a, [Datum]>,
        id: RowId,
    ) -> Result<()> {
        if index.exclusion.is_some() {
            self.claim_values(ctx, index, &row(), id)?;
        } else if must_be_unique {
            let found = self.txn.index(index.tree).claim_key(&self.key, Some(id))?;
            if found.is_some() && index.deferrable {
                self.events.unique_later(ctx, &self.target, index, id)?;
            } else if found.is_some() {
                self.txn.index(index.tree).check_serializable(&self.key)?;
                let values = index.values(ctx, &row())?;
                return Err(error::unique(&*ctx.session, &self.target, index, &values));
            }
        }
        Ok(self.txn.index(index.tree).insert(&self.key, id)?)
    }
}
