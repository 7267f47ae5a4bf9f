//! A transaction's way into the pipeline: the checks that may refuse its commit, and its effects.

use melba_store::{EngineError, Result};

use crate::commit::{Apply, CommitRecord, Durability, EarlyRelease, Needs, Started, encode};
use crate::shared::Shared;
use crate::step::step;
use crate::write_set::WriteSet;

/// A log record's length is a u32.
const PAYLOAD_BYTES_MAX: usize = 3 << 30;

/// Gives a write set, whose session still holds its locks, its place in the order, and applies it. On an error nothing has
/// changed.
pub(super) fn start_commit(
    shared: &Shared,
    writes: &mut WriteSet,
    needs: Needs,
    durability: Durability,
    locks: Option<EarlyRelease>,
) -> Result<Started> {
    let Shared { runtime, store, pipeline, .. } = shared;
    runtime.check_poison()?;
    if writes.is_empty() {
        return Ok(pipeline.commit_nothing(needs, durability));
    }
    shared.background.stall()?;
    shared.check_memory_tables(writes, 0)?;
    if writes.replaces() {
        shared.flusher.flush_committed()?;
    }
    // The names of segments that the commit links must be durable before its record can be.
    if writes.links.iter().any(|l| l.tree.is_synced()) {
        store.files.sync_names().map_err(|e| runtime.poison(e))?;
    }
    step();
    let mut payload = std::mem::take(&mut writes.encoded);
    payload.clear();
    encode(writes, &mut payload);
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(EngineError::OutOfMemory { what: "a transaction's changes exceed the log's record size" });
    }
    // The last step that may fail: from here on the commit has its place in the order. A commit that frees space finds room in
    // the log on a full disk, too.
    let bytes = payload.len();
    let reservation = match (bytes > 0, writes.frees()) {
        (false, _) => None,
        (true, true) => Some(store.reserve.with(runtime.clock.monotonic(), || pipeline.log.reserve(bytes))?),
        (true, false) => Some(store.reserve.check().and_then(|()| pipeline.log.reserve(bytes))?),
    };
    step();
    let is_sync = durability == Durability::Sync;
    let record = CommitRecord { payload: &mut payload, reservation, needs, is_sync, locks };
    let started = pipeline.commit(record, |csn| {
        shared.moves.note(&writes.moved, csn, shared.snapshots.oldest_lagging());
        step();
        let apply = Apply { store, snapshots: &shared.snapshots, runtime };
        apply.apply(writes, csn);
        step();
        // Before others may assume that the commit is over: a flush keeps the state of then, and forgets the record.
        apply.forget_dropped(writes, |tree| shared.serializable.tree_dropped(tree));
    })?;
    writes.encoded = payload;
    Ok(started)
}
