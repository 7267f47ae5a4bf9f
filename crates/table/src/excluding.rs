//! Exclusion constraints: of two rows whose values the constraint's operators all hold for, there may be one.
//!
//! The index is an ordered tree like any other. Its key begins with the columns that are compared by equality: rows that agree in
//! those are a group, and only rows of one group can exclude each other. How a group is searched depends on its other columns.
//!
//! Invariants:
//! 1. A writer claims its values (`ClaimedValues::claim`) before it searches, and waits for the owners of earlier claims that
//!    exclude them. So of two concurrent transactions with such values, one sees the other's row.
//! 2. Ranges of rows that obey a constraint by `&&` do not overlap: in a group, their order by lower bounds is that by upper
//!    bounds. So the search goes back from the last range that begins before the new one ends, up to the first that ends before the
//!    new one begins. Where rows may disobey for a time (deferrable constraints, new constraints over old rows) each of them is
//!    checked later: of all that overlap, some pair are neighbours in that order, and the search from either finds the other.

use std::ops::Bound;
use std::sync::Arc;

use melba_engine::{ClaimNumber, ReadView, Transaction, Wait};
use melba_expression::Evaluation;
use melba_expression::key::KeyPart;
use melba_types::{Datum, DbError, Range, Result, RowId, TreeId};

use super::error;
use super::exclusion::{Exclusion, GroupSearch};
use super::target::{IndexTarget, TableTarget};

/// The key of a new row, or of a period that others must contain.
pub(super) struct ExclusiveKey<'a> {
    index: &'a IndexTarget,
    exclusion: &'a Exclusion,
    key: &'a [u8],
    group: Vec<u8>,
    values: Arc<[Datum]>,
    /// The row itself.
    row: Option<RowId>,
}

/// In the way of a new row.
enum Excluding {
    Row(RowId),
    Claim(melba_engine::Claim),
}

/// Claims a row's values, and finds a row that excludes them; `None`: the row may be written. `key`: its key in the index.
pub fn claim(
    ctx: &Evaluation,
    txn: &Arc<Transaction>,
    (target, index): (&TableTarget, &IndexTarget),
    (key, values): (&[u8], Vec<Datum>),
    row: Option<RowId>,
) -> Result<Option<RowId>> {
    let Some(wanted) = ExclusiveKey::new(index, key, values, row) else { return Ok(None) };
    loop {
        let number = txn.claims(index.tree).claim(&wanted.group, &wanted.values, row)?;
        let found = wanted.obstacle(ctx, txn, target, number);
        if !matches!(found, Ok(None)) {
            // Others must not wait for values that are not written, nor while we wait for them.
            txn.claims(index.tree).unclaim(number);
        }
        if let Some(result) = await_obstacle(txn, target.tree, index.tree, found?)? {
            return Ok(result);
        }
    }
}

/// Claims a row's values without a search, which comes later.
pub fn claim_unchecked(
    txn: &Arc<Transaction>,
    index: &IndexTarget,
    (key, values): (&[u8], Vec<Datum>),
    row: RowId,
) -> Result<bool> {
    let Some(wanted) = ExclusiveKey::new(index, key, values, Some(row)) else { return Ok(false) };
    txn.claims(index.tree).claim(&wanted.group, &wanted.values, Some(row))?;
    Ok(true)
}

/// A row that another one excludes: its values in the index.
pub struct ExcludedRow {
    pub values: Vec<Datum>,
    /// Those of the row that excludes it, as long as that is there.
    pub existing: Option<Vec<Datum>>,
}

/// Checks a row that has been written.
pub fn check(
    ctx: &Evaluation,
    txn: &Arc<Transaction>,
    (target, index): (&TableTarget, &IndexTarget),
    row: &[Datum],
    id: RowId,
) -> Result<Option<ExcludedRow>> {
    let mut key = Vec::new();
    if !index.key(ctx, row, &mut key)? {
        return Ok(None);
    }
    let values = index.values(ctx, row)?;
    error::check_period(target, index, &values)?;
    match find(ctx, txn, (target, index), (&key, values.clone()), id)? {
        Some(found) => Ok(Some(ExcludedRow { values, existing: index.values_of_row(ctx, txn, target, found)? })),
        None => Ok(None),
    }
}

/// A row that excludes one that has been written.
fn find(
    ctx: &Evaluation,
    txn: &Arc<Transaction>,
    (target, index): (&TableTarget, &IndexTarget),
    (key, values): (&[u8], Vec<Datum>),
    row: RowId,
) -> Result<Option<RowId>> {
    let Some(wanted) = ExclusiveKey::new(index, key, values, Some(row)) else { return Ok(None) };
    loop {
        let number = txn.claims(index.tree).of_row(&wanted.group, row);
        let found = wanted.obstacle(ctx, txn, target, number)?;
        if let Some(result) = await_obstacle(txn, target.tree, index.tree, found)? {
            return Ok(result);
        }
    }
}

/// The answer, or after a wait none: it must be looked for again.
fn await_obstacle(
    txn: &Arc<Transaction>,
    table: TreeId,
    index: TreeId,
    found: Option<Excluding>,
) -> Result<Option<Option<RowId>>> {
    match found {
        None => Ok(Some(None)),
        Some(Excluding::Row(row)) if txn.await_change(table, row, Wait::NoWait)? => Ok(Some(Some(row))),
        Some(Excluding::Row(row)) => txn.await_change(table, row, Wait::Block).map(|_| None).map_err(DbError::from),
        Some(Excluding::Claim(claim)) => txn.claims(index).wait(&claim, Wait::Block).map(|_| None).map_err(DbError::from),
    }
}

impl<'a> ExclusiveKey<'a> {
    /// `None`: there is no constraint, or the row excludes none.
    pub(super) fn new(index: &'a IndexTarget, key: &'a [u8], values: Vec<Datum>, row: Option<RowId>) -> Option<ExclusiveKey<'a>> {
        let exclusion = index.exclusion.as_ref().filter(|exclusion| !exclusion.is_free(&values))?;
        let mut group = Vec::new();
        for (part, value) in index.parts[..exclusion.equal].iter().zip(&values) {
            part.key.encode(value, &mut group);
        }
        Some(ExclusiveKey { index, exclusion, key, group, values: values.into(), row })
    }

    fn obstacle(
        &self,
        ctx: &Evaluation,
        txn: &Arc<Transaction>,
        target: &TableTarget,
        number: ClaimNumber,
    ) -> Result<Option<Excluding>> {
        for claim in txn.claims(self.index.tree).before(&self.group, number) {
            ctx.check_interrupt()?;
            let excludes = match &claim.values {
                Some(values) => self.exclusion.excludes(ctx, values, &self.values)?,
                None => true,
            };
            if excludes && !txn.claims(self.index.tree).wait(&claim, Wait::NoWait)? {
                return Ok(Some(Excluding::Claim(claim)));
            }
        }
        // Only now: the changes of transactions whose claims are gone are visible.
        let (view, _pin) = txn.latest_view();
        Ok(self.existing(ctx, txn, target, view)?.map(Excluding::Row))
    }

    /// A row of the index, in the newest state, that excludes the new one.
    fn existing(&self, ctx: &Evaluation, txn: &Arc<Transaction>, target: &TableTarget, view: ReadView) -> Result<Option<RowId>> {
        let (not_null, after) = KeyPart::not_null_marker();
        let within = |marker: u8| [&self.group[..], &[marker]].concat();
        let group = Bound::Included(&self.group[..]);
        match self.exclusion.search {
            GroupSearch::Any => self.first(txn, view, (group, group)),
            GroupSearch::Overlap => self.overlapping(ctx, txn, target, view),
            GroupSearch::Different => {
                let (lower, upper) = (within(not_null), within(after));
                match self.first(txn, view, (Bound::Included(&lower), Bound::Excluded(self.key)))? {
                    None => self.first(txn, view, (Bound::Excluded(self.key), Bound::Excluded(&upper))),
                    found => Ok(found),
                }
            }
            GroupSearch::All => self.any(ctx, txn, target, view),
        }
    }

    fn first(&self, txn: &Arc<Transaction>, view: ReadView, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Option<RowId>> {
        let mut scan = txn.index(self.index.tree).scan(view, bounds.0, bounds.1, false)?;
        while let Some((_, row)) = scan.next()? {
            if Some(row) != self.row {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Invariant 2: of several the first one, which PostgreSQL's message often names.
    fn overlapping(
        &self,
        ctx: &Evaluation,
        txn: &Arc<Transaction>,
        target: &TableTarget,
        view: ReadView,
    ) -> Result<Option<RowId>> {
        let mut found = None;
        self.each_overlapping(ctx, txn, target, view, &mut |_, row| {
            found = Some(row);
            Ok(())
        })?;
        Ok(found)
    }

    /// All rows of the group that exclude the key, by descending keys where they are compared by `&&`.
    pub(super) fn each(
        &self,
        ctx: &Evaluation,
        txn: &Arc<Transaction>,
        target: &TableTarget,
        view: ReadView,
        visit: &mut dyn FnMut(&[u8], RowId) -> Result<()>,
    ) -> Result<()> {
        if self.exclusion.search == GroupSearch::Overlap {
            return self.each_overlapping(ctx, txn, target, view, visit);
        }
        let group = Bound::Included(&self.group[..]);
        let mut scan = txn.index(self.index.tree).scan(view, group, group, false)?;
        while let Some((key, row)) = scan.next()? {
            ctx.check_interrupt()?;
            if Some(row) != self.row
                && let Some(existing) = self.index.values_of_row(ctx, txn, target, row)?
                && self.exclusion.excludes(ctx, &existing, &self.values)?
            {
                visit(key, row)?;
            }
        }
        Ok(())
    }

    fn each_overlapping(
        &self,
        ctx: &Evaluation,
        txn: &Arc<Transaction>,
        target: &TableTarget,
        view: ReadView,
        visit: &mut dyn FnMut(&[u8], RowId) -> Result<()>,
    ) -> Result<()> {
        let Datum::Range(range) = &self.values[self.exclusion.equal] else { return Ok(()) };
        // The last range that can begin where the new one ends.
        let last = match &range.upper {
            Some(upper) => {
                let last = Range { lower: Some(upper.clone()), upper: None, lower_inclusive: true, ..(**range).clone() };
                let mut key = self.group.clone();
                self.index.parts[self.exclusion.equal].key.encode(&Datum::Range(last.into()), &mut key);
                Bound::Included(key)
            }
            None => Bound::Excluded([&self.group[..], &[KeyPart::not_null_marker().1]].concat()),
        };
        let last = last.as_ref().map(|key| &key[..]);
        let mut scan = txn.index(self.index.tree).scan(view, Bound::Included(&self.group), last, true)?;
        while let Some((key, row)) = scan.next()? {
            ctx.check_interrupt()?;
            if Some(row) == self.row {
                continue;
            }
            let is_before = key < self.key;
            let Some(existing) = self.index.values_of_row(ctx, txn, target, row)? else { continue };
            if self.exclusion.excludes(ctx, &existing, &self.values)? {
                visit(key, row)?;
            } else if is_before {
                break;
            }
        }
        Ok(())
    }

    fn any(&self, ctx: &Evaluation, txn: &Arc<Transaction>, target: &TableTarget, view: ReadView) -> Result<Option<RowId>> {
        let group = Bound::Included(&self.group[..]);
        let mut scan = txn.index(self.index.tree).scan(view, group, group, false)?;
        while let Some((_, row)) = scan.next()? {
            ctx.check_interrupt()?;
            if Some(row) != self.row
                && let Some(existing) = self.index.values_of_row(ctx, txn, target, row)?
                && self.exclusion.excludes(ctx, &existing, &self.values)?
            {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
