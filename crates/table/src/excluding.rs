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

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use melba_engine::{ClaimNumber, ReadView, Transaction, Wait};
use melba_expression::Evaluation;
use melba_expression::key::KeyPart;
use melba_types::{Datum, DbError, Range, Result, RowId};

use super::error;
use super::exclusion::{Exclusion, GroupSearch};
use super::target::{IndexTarget, TableTarget};

/// Takes a key and its row; breaks off when it has seen enough.
type Visit<'a> = dyn FnMut(&[u8], RowId) -> Result<ControlFlow<()>> + 'a;

/// The index of a constraint, read by one transaction.
#[derive(Clone, Copy)]
pub(super) struct SearchedIndex<'a> {
    pub ctx: &'a Evaluation,
    pub txn: &'a Arc<Transaction>,
    /// The table of the index.
    pub target: &'a TableTarget,
    pub index: &'a IndexTarget,
}

/// The key of a new row, or of a period that others must contain.
pub(super) struct ExclusiveKey<'a> {
    searched: SearchedIndex<'a>,
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
pub(super) fn claim(
    searched: SearchedIndex<'_>,
    (key, values): (&[u8], Vec<Datum>),
    row: Option<RowId>,
) -> Result<Option<RowId>> {
    let Some(wanted) = ExclusiveKey::new(searched, key, values, row) else { return Ok(None) };
    let claims = searched.txn.claims(searched.index.tree);
    loop {
        let number = claims.claim(&wanted.group, &wanted.values, row)?;
        let found = wanted.obstacle(number);
        if !matches!(found, Ok(None)) {
            // Others must not wait for values that are not written, nor while we wait for them.
            claims.unclaim(number);
        }
        if let Some(result) = searched.await_obstacle(found?)? {
            return Ok(result);
        }
    }
}

/// Claims a row's values without a search, which comes later.
pub(super) fn claim_unchecked(searched: SearchedIndex<'_>, (key, values): (&[u8], Vec<Datum>), row: RowId) -> Result<bool> {
    let Some(wanted) = ExclusiveKey::new(searched, key, values, Some(row)) else { return Ok(false) };
    searched.txn.claims(searched.index.tree).claim(&wanted.group, &wanted.values, Some(row))?;
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
    match find(SearchedIndex { ctx, txn, target, index }, (&key, values.clone()), id)? {
        Some(found) => Ok(Some(ExcludedRow { values, existing: index.values_of_row(ctx, txn, target, found)? })),
        None => Ok(None),
    }
}

/// A row that excludes one that has been written.
fn find(searched: SearchedIndex<'_>, (key, values): (&[u8], Vec<Datum>), row: RowId) -> Result<Option<RowId>> {
    let Some(wanted) = ExclusiveKey::new(searched, key, values, Some(row)) else { return Ok(None) };
    loop {
        let number = searched.txn.claims(searched.index.tree).of_row(&wanted.group, row);
        let found = wanted.obstacle(number)?;
        if let Some(result) = searched.await_obstacle(found)? {
            return Ok(result);
        }
    }
}

impl SearchedIndex<'_> {
    /// The answer, or after a wait none: it must be looked for again.
    fn await_obstacle(&self, found: Option<Excluding>) -> Result<Option<Option<RowId>>> {
        let (txn, table) = (self.txn, self.target.tree);
        match found {
            None => Ok(Some(None)),
            Some(Excluding::Row(row)) if txn.await_change(table, row, Wait::NoWait)? => Ok(Some(Some(row))),
            Some(Excluding::Row(row)) => txn.await_change(table, row, Wait::Block).map(|_| None).map_err(DbError::from),
            Some(Excluding::Claim(claim)) => {
                txn.claims(self.index.tree).wait(&claim, Wait::Block).map(|_| None).map_err(DbError::from)
            }
        }
    }
}

impl<'a> ExclusiveKey<'a> {
    /// `None`: there is no constraint, or the row excludes none.
    pub(super) fn new(
        searched: SearchedIndex<'a>,
        key: &'a [u8],
        values: Vec<Datum>,
        row: Option<RowId>,
    ) -> Option<ExclusiveKey<'a>> {
        let index = searched.index;
        let exclusion = index.exclusion.as_ref().filter(|exclusion| !exclusion.is_free(&values))?;
        let mut group = Vec::new();
        for (part, value) in index.parts[..exclusion.equal].iter().zip(&values) {
            part.key.encode(value, &mut group);
        }
        Some(ExclusiveKey { searched, exclusion, key, group, values: values.into(), row })
    }

    fn obstacle(&self, number: ClaimNumber) -> Result<Option<Excluding>> {
        let SearchedIndex { ctx, txn, index, .. } = self.searched;
        for claim in txn.claims(index.tree).before(&self.group, number) {
            ctx.check_interrupt()?;
            let excludes = match &claim.values {
                Some(values) => self.exclusion.excludes(ctx, values, &self.values)?,
                None => true,
            };
            if excludes && !txn.claims(index.tree).wait(&claim, Wait::NoWait)? {
                return Ok(Some(Excluding::Claim(claim)));
            }
        }
        // Only now: the changes of transactions whose claims are gone are visible.
        let (view, _pin) = txn.latest_view();
        Ok(self.existing(view)?.map(Excluding::Row))
    }

    /// A row of the index, in the newest state, that excludes the new one.
    fn existing(&self, view: ReadView) -> Result<Option<RowId>> {
        let (not_null, after) = KeyPart::not_null_marker();
        let within = |marker: u8| [&self.group[..], &[marker]].concat();
        let group = Bound::Included(&self.group[..]);
        match self.exclusion.search {
            GroupSearch::Any => self.first(view, (group, group)),
            GroupSearch::Different => {
                let (lower, upper) = (within(not_null), within(after));
                match self.first(view, (Bound::Included(&lower), Bound::Excluded(self.key)))? {
                    None => self.first(view, (Bound::Excluded(self.key), Bound::Excluded(&upper))),
                    found => Ok(found),
                }
            }
            GroupSearch::Overlap | GroupSearch::All => self.least(view),
        }
    }

    fn first(&self, view: ReadView, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<Option<RowId>> {
        let mut scan = self.searched.txn.index(self.searched.index.tree).scan(view, bounds.0, bounds.1, false)?;
        while let Some((_, row)) = scan.next()? {
            if Some(row) != self.row {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Of several rows that exclude the key the one with the least key, which PostgreSQL's message often names.
    fn least(&self, view: ReadView) -> Result<Option<RowId>> {
        let mut found = None;
        self.each(view, &mut |_, row| {
            found = Some(row);
            Ok(if self.descends() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(found)
    }

    /// Whether the group is searched by descending keys: ranges that are compared by `&&`.
    fn descends(&self) -> bool {
        self.exclusion.search == GroupSearch::Overlap
    }

    /// Visits the rows of the group that exclude the key, in the order of `descends`, until the visitor breaks off.
    pub(super) fn each(&self, view: ReadView, visit: &mut Visit<'_>) -> Result<()> {
        let SearchedIndex { ctx, txn, target, index } = self.searched;
        let last = if self.descends() { self.last_overlapping() } else { Bound::Included(self.group.clone()) };
        let last = last.as_ref().map(|key| &key[..]);
        let mut scan = txn.index(index.tree).scan(view, Bound::Included(&self.group), last, self.descends())?;
        while let Some((key, row)) = scan.next()? {
            ctx.check_interrupt()?;
            if Some(row) == self.row {
                continue;
            }
            let is_before = key < self.key;
            let Some(existing) = index.values_of_row(ctx, txn, target, row)? else { continue };
            let is_last = match self.exclusion.excludes(ctx, &existing, &self.values)? {
                true => visit(key, row)?.is_break(),
                // Invariant 2.
                false => self.descends() && is_before,
            };
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// The last range of the group that can begin where the new one ends.
    fn last_overlapping(&self) -> Bound<Vec<u8>> {
        let at = self.exclusion.equal;
        match &self.values[at] {
            Datum::Range(range) if range.upper.is_some() => {
                let last = Range { lower: range.upper.clone(), upper: None, lower_inclusive: true, ..(**range).clone() };
                let mut key = self.group.clone();
                self.searched.index.parts[at].key.encode(&Datum::Range(last.into()), &mut key);
                Bound::Included(key)
            }
            _ => Bound::Excluded([&self.group[..], &[KeyPart::not_null_marker().1]].concat()),
        }
    }
}
