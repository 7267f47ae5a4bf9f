//! MERGE, row by row.
//!
//! A joined row is matched, or has no row of the source, or none of the target; the first action of that kind whose condition holds
//! is taken. When another transaction has changed the target row meanwhile, the actions are tried again on its newest version. If
//! the two rows do not match any more, the target row is one without a source, and then the source row one without a target
//! (PostgreSQL's ExecMergeMatched in nodeModifyTable.c).

use melba_engine::RowLockMode;
use melba_expression::Expression;
use melba_plan::modify_node::{Existing, MergeActionNode, MergeNode, ModifyNode};
use melba_plan::node::TableSource;
use melba_tree::{MergeMatch, RowCheckKind};
use melba_types::{Datum, Result, RowId};

use super::{Changed, ModifyOp, Place, new_row, place_of, row_id};
use crate::ExecContext;
use crate::operator::{Purpose, Relock, lock_and_recheck, replace};

/// MERGE may change a row once only.
fn refuse_second_change(ctx: &ExecContext, source: &TableSource, id: RowId) -> Result<()> {
    let own = ctx.transaction().get_latest(source.tree, id)?.own_command;
    if own.is_some_and(|c| c >= ctx.view().command) {
        return Err(melba_types::err!(CARDINALITY_VIOLATION, "MERGE command cannot affect row a second time")
            .hint("Ensure that not more than one source row matches any one target row."));
    }
    Ok(())
}

/// Locks MERGE's target row. Once it is locked it cannot change any more, but another action than the one it was locked for
/// may need the stronger lock.
fn lock_matched(ctx: &ExecContext, source: &TableSource, id: RowId, mode: RowLockMode, locked: bool) -> Result<Relock> {
    if !locked {
        return lock_and_recheck(ctx, source, id, mode, Purpose::Change("updated or deleted"));
    }
    ctx.transaction().lock_row_to_change(source.tree, id, mode)?;
    Ok(Relock::Unchanged)
}

fn kind_of(row: &[Datum], existing: &Existing, source_marker: Option<usize>) -> MergeMatch {
    if row[existing.row_id].is_null() {
        MergeMatch::NotMatchedByTarget
    } else if source_marker.is_some_and(|marker| row[marker].is_null()) {
        MergeMatch::NotMatchedBySource
    } else {
        MergeMatch::Matched
    }
}

fn all_hold(ctx: &ExecContext, conditions: &[Expression], row: &[Datum]) -> Result<bool> {
    for condition in conditions {
        if !condition.holds(ctx, row)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// No action applies to the newest version of the target row.
fn keep_locked(ctx: &ExecContext, node: &ModifyNode, existing: &Existing, row: &[Datum]) -> Result<Option<Changed>> {
    if let Some(id) = row_id(row, existing) {
        ctx.transaction().give_up_change(place_of(node, existing, row)?.source.tree, id, true)?;
    }
    Ok(None)
}

impl ModifyOp {
    /// One row of the join of target and source.
    pub(super) fn merge(
        &mut self,
        ctx: &ExecContext,
        existing: &Existing,
        actions: &[MergeNode],
        condition: &[Expression],
        source_marker: Option<usize>,
        row: &mut [Datum],
    ) -> Result<Option<Changed>> {
        let node = self.node.clone();
        let mut matched = kind_of(row, existing, source_marker);
        // Once locked, the row cannot change any more.
        let mut locked = false;
        'again: loop {
            for action in actions.iter().filter(|a| a.matched == matched) {
                if let Some(condition) = &action.condition
                    && !condition.holds(ctx, row)?
                {
                    continue;
                }
                if let MergeActionNode::Insert(values) = &action.command {
                    ctx.set_merge_action(Some("INSERT"));
                    let new = new_row(values, ctx, row)?;
                    return self.insert(ctx, new);
                }
                if self.is_computed() {
                    return self.merge_computed(ctx, existing, &action.command, row);
                }
                let Some(id) = row_id(row, existing).filter(|_| !matches!(action.command, MergeActionNode::Nothing)) else {
                    break;
                };
                let place = place_of(&node, existing, row)?;
                let (mode, computed) = match &action.command {
                    MergeActionNode::Update(assignments) => self.update_mode(ctx, existing, &place, assignments, row)?,
                    _ => (RowLockMode::ForUpdate, None),
                };
                match lock_matched(ctx, place.source, id, mode, locked)? {
                    Relock::Unchanged => {}
                    Relock::Skip => {
                        refuse_second_change(ctx, place.source, id)?;
                        row[existing.row_id] = Datum::Null;
                        matched = MergeMatch::NotMatchedByTarget;
                        continue 'again;
                    }
                    Relock::Changed(outputs) => {
                        replace(row, &existing.replace, &outputs);
                        locked = true;
                        if matched == MergeMatch::Matched && !all_hold(ctx, condition, row)? {
                            // The two rows are apart now: first the target row is handled without a source, then the source row.
                            matched = MergeMatch::NotMatchedBySource;
                            self.source_is_left = true;
                        }
                        continue 'again;
                    }
                }
                let old = self.old_row(ctx, existing, &place, id, row)?;
                self.begin_merged(ctx, &place, &action.command, &old)?;
                let MergeActionNode::Update(assignments) = &action.command else {
                    return self.delete(ctx, &place, id, old);
                };
                let new = match computed {
                    Some(new) => new,
                    None => self.assign(ctx, &place, assignments, &old, row)?,
                };
                return self.update(ctx, &place, id, old, new);
            }
            return if locked { keep_locked(ctx, &node, existing, row) } else { Ok(None) };
        }
    }

    /// A row of a view, which its triggers change.
    fn merge_computed(
        &mut self,
        ctx: &ExecContext,
        existing: &Existing,
        command: &MergeActionNode,
        row: &[Datum],
    ) -> Result<Option<Changed>> {
        match command {
            MergeActionNode::Update(assignments) => {
                ctx.set_merge_action(Some("UPDATE"));
                self.update_computed(ctx, existing, assignments, row)
            }
            MergeActionNode::Delete => {
                ctx.set_merge_action(Some("DELETE"));
                self.delete_computed(ctx, existing, row)
            }
            _ => Ok(None),
        }
    }

    /// MERGE is about to update or delete a row that it has locked.
    fn begin_merged(&mut self, ctx: &ExecContext, place: &Place<'_>, command: &MergeActionNode, old: &[Datum]) -> Result<()> {
        let (kind, action) = match command {
            MergeActionNode::Update(_) => (RowCheckKind::MergeUpdate, "UPDATE"),
            _ => (RowCheckKind::MergeDelete, "DELETE"),
        };
        self.writer(place).check_row(ctx, kind, old)?;
        ctx.set_merge_action(Some(action));
        Ok(())
    }
}
