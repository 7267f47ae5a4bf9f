//! Row locks, and the behaviour of READ COMMITTED when a row changed during the wait for its lock.

use std::sync::Arc;

use melba_engine::{Isolation, RowLockMode, RowLockResult, Wait};
use melba_types::{Batch, Datum, Result, RowId, bail};

use super::pending::{Pending, batch_of, give};
use super::table_scan::source_row;
use crate::{ExecContext, Operator};
use melba_expression::Expression;
use melba_expression::key::same;
use melba_plan::node::{LockRowsNode, LockedTable, Recheck, RowLock, TableSource};
use melba_tree::{LockStrength, LockWait};

/// The state of a row whose lock was taken.
pub(crate) enum Relock {
    /// As the statement's view shows it.
    Unchanged,
    /// Changed by a transaction that committed meanwhile: the scan's outputs of the newest version.
    Changed(Vec<Datum>),
    /// Deleted meanwhile, changed by this very statement, or locked by others under SKIP LOCKED.
    Skip,
}

pub(crate) fn mode_of(strength: LockStrength) -> RowLockMode {
    match strength {
        LockStrength::KeyShare => RowLockMode::ForKeyShare,
        LockStrength::Share => RowLockMode::ForShare,
        LockStrength::NoKeyUpdate => RowLockMode::ForNoKeyUpdate,
        LockStrength::Update => RowLockMode::ForUpdate,
    }
}

/// The purpose of row locks.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// They will be changed: the verb that errors use for the change.
    Change(&'static str),
    /// FOR UPDATE and similar clauses: how to wait, and the columns of the table's unique keys.
    Lock(LockWait, &'a [usize]),
}

/// Locks a row and compares it with the view.
pub(crate) fn lock_and_recheck(
    ctx: &ExecContext,
    source: &TableSource,
    id: RowId,
    mode: RowLockMode,
    purpose: Purpose<'_>,
) -> Result<Relock> {
    let transaction = ctx.transaction();
    // The columns that must be the same for the old version to suffice.
    let mut keys = None;
    match purpose {
        Purpose::Change(_) => transaction.lock_row_to_change(source.tree, id, mode)?,
        Purpose::Lock(wait, columns) => {
            // FOR KEY SHARE is compatible with changes that leave the keys alone, also with those made since. After a wait, the newest
            // version is returned, as in PostgreSQL.
            let at_once = mode == RowLockMode::ForKeyShare
                && transaction.lock_row(source.tree, id, mode, Wait::NoWait)? == RowLockResult::Granted;
            if !at_once && !lock_row(ctx, source, id, mode, wait)? {
                return Ok(Relock::Skip);
            }
            keys = at_once.then_some(columns);
        }
    }
    let view = ctx.view();
    if transaction.is_latest(view, source.tree, id)? {
        return Ok(Relock::Unchanged);
    }
    let latest = transaction.get_latest(source.tree, id)?;
    if let Some(command) = latest.own_command {
        if let Purpose::Change(done) = purpose
            && ctx.is_nested(command)
        {
            return Err(melba_table::error::changed_by_trigger(done));
        }
        // Our own earlier change, which the view shows, or one of this statement, which it does not.
        return Ok(if command >= view.command { Relock::Skip } else { Relock::Unchanged });
    }
    // Nothing is kept locked of a row that is gone.
    let gone = |ctx: &ExecContext| -> Result<Relock> {
        if let Purpose::Change(_) = purpose {
            ctx.transaction().give_up_change(source.tree, id, false)?;
        }
        Ok(Relock::Skip)
    };
    if latest.csn <= view.csn {
        return if latest.row.is_some() { Ok(Relock::Unchanged) } else { gone(ctx) };
    }
    if let Some(keys) = keys
        && let Some(new) = &latest.row
        && let Some(old) = transaction.get(view, source.tree, id)?
        && same_values(ctx, source, keys, &old, new)?
    {
        return Ok(Relock::Unchanged);
    }
    let has_moved = transaction.has_moved(source.tree, id, &latest);
    if transaction.isolation() != Isolation::ReadCommitted {
        let is_deleted = latest.row.is_none() && !has_moved && matches!(purpose, Purpose::Change(_));
        let what = if is_deleted { "delete" } else { "update" };
        bail!(T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent {what}");
    }
    if has_moved {
        return Err(melba_table::error::moved());
    }
    let Some(bytes) = latest.row else { return gone(ctx) };
    let projected = values(ctx, source, &source.projection, &bytes)?;
    Ok(Relock::Changed(source_row(ctx, source, projected, id, Some(latest.csn))?))
}

/// FOR UPDATE and similar clauses; false: the row is to be skipped.
fn lock_row(ctx: &ExecContext, source: &TableSource, id: RowId, mode: RowLockMode, wait: LockWait) -> Result<bool> {
    let engine_wait = match wait {
        LockWait::Block => Wait::Block,
        LockWait::NoWait => Wait::NoWait,
        LockWait::SkipLocked => Wait::SkipLocked,
    };
    match (ctx.transaction().lock_row(source.tree, id, mode, engine_wait)?, wait) {
        (RowLockResult::Granted, _) => Ok(true),
        (RowLockResult::WouldBlock, LockWait::SkipLocked) => Ok(false),
        _ => bail!(LOCK_NOT_AVAILABLE, "could not obtain lock on row in relation \"{}\"", source.name),
    }
}

/// Some columns of a stored row, by position in the table.
fn values(ctx: &ExecContext, source: &TableSource, columns: &[usize], bytes: &[u8]) -> Result<Vec<Datum>> {
    let layout = ctx.transaction().table_layout(source.tree)?;
    let Some(row) = layout.view(bytes) else {
        bail!(DATA_CORRUPTED, "a stored row of relation \"{}\" is malformed", source.name);
    };
    Ok(columns.iter().map(|&c| row.datum(c, source.missing.get(c).unwrap_or(&Datum::Null))).collect())
}

fn same_values(ctx: &ExecContext, source: &TableSource, columns: &[usize], old: &[u8], new: &[u8]) -> Result<bool> {
    let layout = ctx.transaction().table_layout(source.tree)?;
    let plain = |bytes: &[u8]| -> Result<Vec<Datum>> {
        let values = values(ctx, source, columns, bytes)?;
        values.into_iter().zip(columns).map(|(value, &c)| ctx.expand(value, layout.kinds()[c])).collect()
    };
    Ok(same(&plain(old)?, &plain(new)?))
}

/// Puts a newer version's values in place of the old ones.
pub(crate) fn replace(row: &mut [Datum], columns: &[(usize, usize)], outputs: &[Datum]) {
    for (column, output) in columns {
        row[*column] = outputs[*output].clone();
    }
}

/// Looks again at a row of which a part was replaced; false: it is no row of the result any more.
pub(crate) fn still_holds(ctx: &ExecContext, steps: &[Recheck], row: &mut [Datum]) -> Result<bool> {
    let holds = |condition: &Expression, row: &[Datum]| condition.holds(ctx, row);
    for step in steps {
        match step {
            Recheck::Condition(condition) if !holds(condition, row)? => return Ok(false),
            Recheck::Condition(_) => {}
            Recheck::Outer { conditions, columns } => {
                let mut matches = true;
                for condition in conditions {
                    matches = matches && holds(condition, row)?;
                }
                if !matches {
                    columns.iter().for_each(|c| row[*c] = Datum::Null);
                }
            }
        }
    }
    Ok(true)
}

pub(super) struct LockRowsOp {
    node: Arc<LockRowsNode>,
    input: Box<dyn Operator>,
    /// A row is locked before the conditions of the next one are evaluated.
    one_by_one: bool,
    pending: Pending,
}

impl LockRowsOp {
    pub fn new(node: Arc<LockRowsNode>, ctx: &ExecContext) -> Result<LockRowsOp> {
        let input = ctx.build(&node.input)?;
        let one_by_one = node.has_effects();
        Ok(LockRowsOp { node, input, one_by_one, pending: Pending::default() })
    }

    /// Locks the table rows of a row; returns the row in its present state, or `None` when it is not to be returned.
    fn lock(&self, ctx: &ExecContext, batch: &Batch, i: usize) -> Result<Option<Option<Vec<Datum>>>> {
        let mut changed: Option<Vec<Datum>> = None;
        for lock in &self.node.locks {
            let Datum::Int8(id) = batch.columns[lock.row_id].get(i) else { continue };
            let Some(table) = locked_table(lock, batch, i) else { continue };
            match lock_one(ctx, lock, table, RowId(id as u64))? {
                Relock::Unchanged => {}
                Relock::Skip => return Ok(None),
                Relock::Changed(outputs) => {
                    replace(changed.get_or_insert_with(|| batch.row(i)), &lock.columns, &outputs);
                }
            }
        }
        if let Some(row) = &mut changed
            && !still_holds(ctx, &self.node.recheck, row)?
        {
            return Ok(None);
        }
        Ok(Some(changed))
    }
}

fn lock_one(ctx: &ExecContext, lock: &RowLock, table: &LockedTable, id: RowId) -> Result<Relock> {
    lock_and_recheck(ctx, &table.source, id, mode_of(lock.strength), Purpose::Lock(lock.wait, &table.keys))
}

/// The table that a row is of.
fn locked_table<'l>(lock: &'l RowLock, batch: &Batch, i: usize) -> Option<&'l LockedTable> {
    match lock.table {
        None => lock.tables.first(),
        Some(column) => {
            let Datum::Oid(oid) = batch.columns[column].get(i) else { return None };
            lock.tables.iter().find(|t| t.source.relation.0 == oid)
        }
    }
}

impl Operator for LockRowsOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        let limit = if self.one_by_one { 1 } else { limit };
        while let Some(batch) = self.input.next(ctx, limit)? {
            let mut kept: Vec<u32> = Vec::with_capacity(batch.rows);
            let mut replaced: Vec<(usize, Vec<Datum>)> = Vec::new();
            for i in 0..batch.rows {
                if let Some(changed) = self.lock(ctx, &batch, i)? {
                    if let Some(row) = changed {
                        replaced.push((kept.len(), row));
                    }
                    kept.push(i as u32);
                }
            }
            if kept.is_empty() {
                continue;
            }
            if replaced.is_empty() {
                return Ok(give(&mut self.pending, batch.take(&kept), limit));
            }
            let mut rows: Vec<Vec<Datum>> = kept.iter().map(|&i| batch.row(i as usize)).collect();
            for (at, row) in replaced {
                rows[at] = row;
            }
            return Ok(give(&mut self.pending, batch_of(&self.node.input.kinds, &rows), limit));
        }
        Ok(None)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.pending.clear();
        self.input.rescan(ctx)
    }
}
