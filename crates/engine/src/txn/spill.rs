//! Large write sets: when changes move from memory into private segments (`write_set`), and which may share one.
//!
//! Moved changes stay as visible as they were. A segment has one command number, so changes of several commands share one only if
//! no reader needs to tell them apart: no savepoint and no view in use lies between them. The newest commands stay in memory as
//! long as they are small, because their statements may still read what others of them wrote.

use melba_store::{Held, Result};

use super::{Transaction, TransactionState};

/// The budget is checked after this many changes, or this many bytes of rows and keys.
const CHANGES_PER_LOOK: usize = 64;
const BYTES_PER_LOOK: usize = 64 << 10;
/// So many commands up to the running one are kept apart: their views may be in use without being pinned.
const RECENT_COMMANDS: u32 = 8;

/// Keeps the write set within its memory. Called after every change.
#[inline]
pub fn limit_writes(txn: &Transaction, state: &mut TransactionState) -> Result<()> {
    let bytes = BYTES_PER_LOOK.min(txn.shared().options.write_set_bytes / 8);
    let look = state.writes.changes.len().is_multiple_of(CHANGES_PER_LOOK) || state.writes.bytes > state.looked_at_bytes + bytes;
    if look { account_writes(txn, state) } else { Ok(()) }
}

fn account_writes(txn: &Transaction, state: &mut TransactionState) -> Result<()> {
    let bytes = state.writes.memory_bytes();
    state.looked_at_bytes = state.writes.bytes;
    let limit = txn.shared().options.write_set_bytes;
    let held = state.held.get_or_insert_with(|| Held::new(&txn.session.query_memory()));
    if bytes <= limit && held.try_set(bytes) {
        return Ok(());
    }
    // Without space in the budget everything is moved.
    spill(txn, state, if bytes > limit { limit / 4 } else { 0 })?;
    // Changes that cannot be moved: memory tables' rows, and those of the newest commands.
    let left = state.writes.memory_bytes();
    state.looked_at_bytes = state.writes.bytes;
    state.held.as_mut().map_or(Ok(()), |held| held.set(left))
}

/// Moves the oldest commands' changes into segments until there are no more than `enough` bytes of them in memory.
fn spill(txn: &Transaction, state: &mut TransactionState, enough: usize) -> Result<()> {
    let cuts = cuts(txn, state);
    while state.writes.memory_bytes() > enough {
        let Some(first) = state.writes.first_movable() else { break };
        // All commands up to the next cut.
        let end = cuts.iter().copied().find(|cut| *cut > first).unwrap_or(u32::MAX);
        state.end_epoch();
        state.writes.move_changes(end, &txn.shared().store.files)?;
    }
    state.writes.merge_links(&cuts, &txn.shared().store.files)
}

/// Commands that must not be mixed with those before them.
fn cuts(txn: &Transaction, state: &TransactionState) -> Vec<u32> {
    let mut cuts = state.savepoints.clone();
    cuts.extend(txn.session.pins.lock().held.iter().map(|view| view.command));
    let recent = state.command.saturating_sub(RECENT_COMMANDS)..=state.command.saturating_add(1);
    cuts.extend(recent);
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}
