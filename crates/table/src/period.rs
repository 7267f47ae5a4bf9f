//! Foreign keys with PERIOD: the periods of the referenced rows with a referencing row's key together contain its period.
//!
//! As in PostgreSQL (ri_triggers.c): a referencing row needs the whole of its period, and a referenced row that goes away or changes
//! must be replaced in what it shared with each referencing row. Referenced rows that count are locked FOR KEY SHARE. Such rows do not
//! overlap, for their key is WITHOUT OVERLAPS, so that their ranges in order join into runs; a period is contained if one run contains
//! it. Multiranges have no such order, and are joined into one.

use std::ops::ControlFlow;
use std::sync::Arc;

use melba_catalog::foreign_keys::MULTIRANGES_OVERLAP;
use melba_catalog::{Catalog, Constraint};
use melba_engine::{Isolation, ReadView, RowLockMode, Transaction, Wait};
use melba_expression::compile::call_of;
use melba_expression::key::same;
use melba_expression::{Call, Evaluation};
use melba_types::{Datum, DbError, Oid, Result, RowId};

use super::error;
use super::excluding::{ExclusiveKey, SearchedIndex};
use super::referenced_key::{ReferencedIndex, key_of, refuse_newer};
use super::target::TableTarget;

/// Functions of pg_proc: overlaps, intersect, contained by, adjacent, and the one that joins two periods.
const OF_RANGES: [Oid; 5] = [Oid(3857), Oid(3868), Oid(3861), Oid(3862), Oid(4057)];
const OF_MULTIRANGES: [Oid; 5] = [Oid(4248), Oid(4272), Oid(4254), Oid(4256), Oid(4270)];

/// The functions of a period's type.
struct Period {
    overlaps: Call,
    intersect: Call,
    contained: Call,
    adjacent: Call,
    join: Call,
    is_range: bool,
}

/// A referenced row, and its key in the index.
type Referenced = (Vec<u8>, RowId);

impl Period {
    fn of(catalog: &Catalog, constraint: &Constraint) -> Result<Period> {
        let key = key_of(constraint)?;
        let is_range = key.operators.last() != Some(&MULTIRANGES_OVERLAP);
        let lost = || DbError::internal(format!("foreign key \"{}\" has lost its period", constraint.name));
        let table = catalog.relation(key.referenced_table).ok_or_else(lost)?;
        let column = key.referenced_columns.last().ok_or_else(lost)?;
        let ty = catalog.base_type(table.columns[*column as usize - 1].ty);
        let call = |function: Oid| {
            let call = call_of(catalog, function, vec![], ty, Oid::INVALID, false, -1)?;
            Ok::<_, DbError>(Call { arg_types: [ty, ty].into(), ..call })
        };
        let [overlaps, intersect, contained, adjacent, join] = if is_range { OF_RANGES } else { OF_MULTIRANGES };
        Ok(Period {
            overlaps: call(overlaps)?,
            intersect: call(intersect)?,
            contained: call(contained)?,
            adjacent: call(adjacent)?,
            join: call(join)?,
            is_range,
        })
    }

    /// Whether periods, those of ranges in order, together contain one.
    fn contain(&self, ctx: &Evaluation, periods: &[Datum], wanted: &Datum) -> Result<bool> {
        let mut run: Option<Datum> = None;
        for period in periods {
            ctx.check_interrupt()?;
            let next = match &run {
                Some(run) if !self.is_range || holds(ctx, &self.adjacent, run, period)? => of_two(ctx, &self.join, run, period)?,
                _ => period.clone(),
            };
            if holds(ctx, &self.contained, wanted, &next)? {
                return Ok(true);
            }
            run = Some(next);
        }
        Ok(false)
    }
}

fn holds(ctx: &Evaluation, relation: &Call, a: &Datum, b: &Datum) -> Result<bool> {
    Ok(relation.compare(ctx, a.clone(), b.clone())? == Some(true))
}

fn of_two(ctx: &Evaluation, function: &Call, a: &Datum, b: &Datum) -> Result<Datum> {
    function.invoke(&function.info(ctx), &[a.clone(), b.clone()])
}

/// Where the referenced rows of a constraint are that have the key of certain values.
pub(super) struct Periods<'a> {
    pub ctx: &'a Evaluation,
    pub txn: &'a Arc<Transaction>,
    pub constraint: &'a Constraint,
    /// Those of the referenced columns.
    pub values: &'a [Datum],
    /// `None`: no partition has such a key.
    pub place: Option<ReferencedIndex>,
}

impl Periods<'_> {
    /// Whether the referenced rows contain the period. Locks them.
    ///
    /// # Errors
    /// 40001 in a transaction that keeps a snapshot, when one of the rows is newer.
    pub fn contain(&self) -> Result<bool> {
        let period = Period::of(self.ctx.catalog(), self.constraint)?;
        let periods = self.lock(true)?;
        let Some(wanted) = self.values.last() else { return Ok(false) };
        period.contain(self.ctx, &periods, wanted)
    }

    /// Whether any referenced row shares a part of the period.
    pub fn overlap(&self) -> Result<bool> {
        let (view, _pin) = self.txn.latest_view();
        Ok(!self.overlapping(view)?.is_empty())
    }

    /// Raises 23503 when a row of `child` with the key, one of `rows`, needs what a deleted or changed row of `referenced` contained,
    /// whose values these were, and what no other row contains.
    pub fn check_referencing(&self, child: &TableTarget, rows: Vec<RowId>, referenced: &TableTarget) -> Result<()> {
        let ctx = self.ctx;
        let period = Period::of(ctx.catalog(), self.constraint)?;
        let Some(gone) = self.values.last() else { return Ok(()) };
        let at = self.constraint.columns.last().map_or(0, |column| *column as usize - 1);
        let mut replacing = None;
        for row in rows {
            let Some(bytes) = self.txn.get_latest(child.tree, row)?.row else { continue };
            let values = child.decode(&bytes);
            let own = child.with_plain_keys(ctx, &values)?[at].clone();
            if own.is_null() || !holds(ctx, &period.overlaps, gone, &own)? {
                continue;
            }
            if replacing.is_none() {
                replacing = Some(self.lock(false)?);
            }
            let shared = of_two(ctx, &period.intersect, &own, gone)?;
            if !period.contain(ctx, replacing.as_deref().unwrap_or_default(), &shared)? {
                let (session, columns) = (&*ctx.session, &key_of(self.constraint)?.referenced_columns);
                let (table, constraint) = (&referenced.relation, self.constraint);
                return Err(error::still_referenced(session, constraint, table, columns, self.values, false));
            }
        }
        Ok(())
    }

    /// Locks the referenced rows that share a part of the period: their periods, in the order of the index. `snapshot`: those that the
    /// transaction's snapshot has.
    fn lock(&self, snapshot: bool) -> Result<Vec<Datum>> {
        let Some(place) = &self.place else { return Ok(Vec::new()) };
        loop {
            let (latest, _pin) = self.txn.latest_view();
            let is_kept = snapshot && self.txn.isolation() != Isolation::ReadCommitted;
            let view = if is_kept { ReadView { csn: self.ctx.view().csn, ..latest } } else { latest };
            let rows = self.overlapping(view)?;
            for (_, row) in &rows {
                self.txn.lock_row(place.table.tree, *row, RowLockMode::ForKeyShare, Wait::Block)?;
            }
            // During the wait, a row may have been deleted or changed its key.
            if let Some(periods) = self.locked(place, &rows)? {
                return Ok(periods);
            }
            rows.iter().try_for_each(|(_, row)| refuse_newer(self.txn, place.table.tree, *row))?;
        }
    }

    /// The periods of locked rows; `None`: one of them has another key by now.
    fn locked(&self, place: &ReferencedIndex, rows: &[Referenced]) -> Result<Option<Vec<Datum>>> {
        let index = &place.table.indexes[place.index];
        let mut periods = Vec::with_capacity(rows.len());
        for (key, row) in rows {
            if self.txn.index(index.tree).find_latest(key)? != Some(*row) {
                return Ok(None);
            }
            let values = index.values_of_row(self.ctx, self.txn, &place.table, *row)?;
            let Some(period) = values.and_then(|mut values| values.pop()) else { return Ok(None) };
            periods.push(period);
        }
        Ok(Some(periods))
    }

    fn overlapping(&self, view: ReadView) -> Result<Vec<Referenced>> {
        let mut rows = Vec::new();
        let Some(place) = &self.place else { return Ok(rows) };
        let index = &place.table.indexes[place.index];
        let ordered: Vec<Datum> = place.order.iter().map(|at| self.values[*at].clone()).collect();
        let mut bytes = Vec::new();
        index.parts.iter().zip(&ordered).for_each(|(part, value)| part.key.encode(value, &mut bytes));
        let searched = SearchedIndex { ctx: self.ctx, txn: self.txn, target: &place.table, index };
        let Some(key) = ExclusiveKey::new(searched, &bytes, ordered, None) else { return Ok(rows) };
        let mut held = self.ctx.resources().held();
        let mut kept_bytes = 0;
        key.each(view, &mut |key, row| {
            kept_bytes += key.len() + size_of::<Referenced>();
            rows.push((key.to_vec(), row));
            held.set(kept_bytes)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }
}

/// Whether a referencing row has the key that it had, and a part of its period: that needs no check (ri_KeysEqual), even if the
/// period is empty by now, which no referenced row contains.
pub(super) fn shrinks(ctx: &Evaluation, constraint: &Constraint, old: &[Datum], new: &[Datum]) -> Result<bool> {
    let (Some((old_period, old)), Some((new_period, new))) = (old.split_last(), new.split_last()) else { return Ok(false) };
    // Long ones, which are in stored form, are checked.
    let is_plain = |period: &Datum| matches!(period, Datum::Range(_) | Datum::Multirange(_));
    if !key_of(constraint)?.has_period() || !is_plain(old_period) || !is_plain(new_period) || !same(old, new) {
        return Ok(false);
    }
    holds(ctx, &Period::of(ctx.catalog(), constraint)?.contained, new_period, old_period)
}

/// A constraint but for its period.
pub(super) fn without_period(constraint: &Constraint) -> Result<Constraint> {
    let mut key = (**key_of(constraint)?).clone();
    key.referenced_columns.pop();
    key.operators.pop();
    let mut columns = constraint.columns.clone();
    columns.pop();
    Ok(Constraint { columns, foreign_key: Some(key.into()), ..constraint.clone() })
}
