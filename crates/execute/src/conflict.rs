//! Rows that conflict with a proposed row (ON CONFLICT): locked, or left alone.

use melba_engine::{Isolation, RowLockMode};
use melba_table::TableTarget;
use melba_types::{Datum, Oid, Result, RowId, TreeId, bail};

use super::ExecContext;

/// DO NOTHING because of a row that the transaction's snapshot does not show would be an answer from elsewhere.
pub fn check_conflict_visible(ctx: &ExecContext, tree: TreeId, id: RowId) -> Result<()> {
    if ctx.transaction().isolation() == Isolation::ReadCommitted {
        return Ok(());
    }
    let view = ctx.view();
    // Read as by the statement itself, so that SERIALIZABLE knows that it relies on the row.
    ctx.transaction().get(view, tree, id)?;
    let latest = ctx.transaction().get_latest(tree, id)?;
    if latest.own_command.is_none() && latest.csn > view.csn {
        bail!(T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent update");
    }
    Ok(())
}

/// Locks the row that conflicts with a proposed one, for DO UPDATE; `None` when it was deleted.
pub fn lock_conflicting(ctx: &ExecContext, target: &TableTarget, id: RowId, mode: RowLockMode) -> Result<Option<Vec<Datum>>> {
    let transaction = ctx.transaction();
    transaction.lock_row_to_change(target.tree, id, mode)?;
    let latest = transaction.get_latest(target.tree, id)?;
    // Deleted meanwhile: the key is free now, or another row has taken it.
    let Some(bytes) = latest.row else {
        transaction.give_up_change(target.tree, id, false)?;
        return Ok(None);
    };
    let view = ctx.view();
    match latest.own_command {
        Some(command) if command >= view.command => {
            Err(melba_types::err!(CARDINALITY_VIOLATION, "ON CONFLICT DO UPDATE command cannot affect row a second time")
                .hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values."))
        }
        None if latest.csn > view.csn && transaction.isolation() != Isolation::ReadCommitted => {
            bail!(T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent update");
        }
        _ => Ok(Some(target.decode(&bytes))),
    }
}

/// Whether an index is another, or the part of it that a partition has.
pub fn is_part(ctx: &ExecContext, index: Oid, whole: Oid) -> bool {
    let parents = || ctx.catalog().relation(index).map_or(&[][..], |r| &r.parents);
    index == whole || parents().iter().any(|parent| is_part(ctx, *parent, whole))
}
