//! The transaction's side of `serializable`: when to announce, and the wait for a safe snapshot.

use std::sync::Arc;

use melba_store::Result;
use melba_threads::atomic::Ordering;
use melba_types::{Csn, TreeId};

use super::Transaction;
use crate::serializable::{Id, Read, Safety, Tracking, Write};
use crate::view::{Isolation, ReadView};

pub fn wait_for_safety(txn: &Transaction, id: Id) -> Result<Safety> {
    let (shared, session) = (txn.shared(), txn.session());
    let (cell, interrupt) = (Arc::clone(&shared.locks.sessions[session.slot as usize].cell), session.interrupt());
    interrupt.set_sleeper(Some(Arc::clone(&cell)));
    let safety = loop {
        match shared.serializable.safety(id) {
            Safety::Unknown => {}
            decided => break Ok(decided),
        }
        if let Err(e) = interrupt.check() {
            break Err(e);
        }
        cell.wait(&*shared.runtime.scheduler);
    };
    interrupt.set_sleeper(None);
    safety
}

/// Takes the snapshot of a transaction that keeps one; SERIALIZABLE registers in the same step.
pub fn register_snapshot(txn: &Transaction, acquire: impl FnOnce() -> Csn) -> Csn {
    let Some(tracking) = &txn.tracking else { return acquire() };
    let read_only = tracking.read_only.load(Ordering::Relaxed);
    let (csn, id) = txn.shared().serializable.register(txn.id(), txn.session().slot, read_only, acquire);
    tracking.set(id.map(|id| (id, csn)));
    csn
}

/// Whether a view's reads must be announced: the snapshot's reads, not those of constraint checks, which see the newest state
/// and hold locks on what they rely on.
#[inline]
pub fn tracks(txn: &Transaction, view: ReadView) -> bool {
    view.command != ReadView::LATEST_COMMAND
        && txn.tracking.as_deref().and_then(Tracking::registered).is_some_and(|(_, snapshot)| snapshot == view.csn)
}

/// Announces reads; the caller has checked `tracks`.
pub fn reads<'a>(txn: &Transaction, reads: impl Iterator<Item = Read<'a>>) -> Result<()> {
    let Some((id, _)) = txn.tracking.as_deref().and_then(Tracking::registered) else { return Ok(()) };
    if txn.shared().serializable.read(id, reads)? == Safety::Safe {
        stop(txn);
    }
    Ok(())
}

/// Announces a write, before it is made.
#[inline]
pub fn write(txn: &Transaction, write: impl FnOnce() -> Write<'static>) -> Result<()> {
    match txn.tracking.as_deref().and_then(Tracking::registered) {
        None => Ok(()),
        Some((id, _)) => txn.shared().serializable.write(id, write()),
    }
}

/// Announces that an index entry will be added or removed, before that happens.
#[inline]
pub fn entry(txn: &Transaction, tree: TreeId, entry: &[u8]) -> Result<()> {
    match txn.tracking.as_deref().and_then(Tracking::registered) {
        None => Ok(()),
        Some((id, _)) => txn.shared().serializable.write(id, Write::Entry(tree, entry)),
    }
}

/// Decides whether a SERIALIZABLE transaction may commit.
pub fn prepare(txn: &Transaction) -> Result<()> {
    match txn.tracking.as_deref().and_then(Tracking::registered) {
        None => Ok(()),
        Some((id, _)) => txn.shared().serializable.prepare(id),
    }
}

/// The commit is visible, and its locks are still held.
pub fn commit(txn: &Transaction, csn: Csn) {
    if let Some((id, _)) = txn.tracking.as_deref().and_then(Tracking::take) {
        let woken = txn.shared().serializable.commit(id, csn);
        wake(txn, &woken);
    }
}

/// Rolled back, or found safe.
pub fn stop(txn: &Transaction) {
    if let Some((id, _)) = txn.tracking.as_deref().and_then(Tracking::take) {
        let woken = txn.shared().serializable.forget(id);
        wake(txn, &woken);
    }
}

fn wake(txn: &Transaction, slots: &[u32]) {
    slots.iter().for_each(|slot| txn.shared().locks.sessions[*slot as usize].cell.notify());
}

pub fn new_tracking(isolation: Isolation) -> Option<Box<Tracking>> {
    (isolation == Isolation::Serializable).then(Box::default)
}
