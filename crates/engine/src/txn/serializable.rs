//! The transaction's side of `serializable`: when to announce, and the wait for a safe snapshot.

use std::sync::Arc;

use melba_store::Result;
use melba_threads::atomic::Ordering;
use melba_types::{Csn, TreeId};

use super::Transaction;
use crate::serializable::{Id, Read, Safety, Tracking, Write};
use crate::view::{Isolation, ReadView};

impl Transaction {
    /// Declares whether the transaction may write, and whether it would rather wait than be tracked. Counts when the snapshot
    /// is taken, and only for SERIALIZABLE. The caller keeps a READ ONLY transaction from writing.
    pub fn set_access(&self, read_only: bool, deferrable: bool) {
        if let Some(tracking) = &self.tracking {
            tracking.read_only.store(read_only, Ordering::Relaxed);
            tracking.deferrable.store(deferrable, Ordering::Relaxed);
        }
    }

    /// Before the first `statement_view` of a SERIALIZABLE READ ONLY DEFERRABLE transaction: waits for a snapshot that no
    /// running transaction can make unsafe. Does nothing for others.
    ///
    /// # Errors
    /// `Interrupted` while it waits.
    pub fn await_safe_snapshot(&self) -> Result<()> {
        let Some(tracking) = &self.tracking else { return Ok(()) };
        if !(tracking.read_only.load(Ordering::Relaxed) && tracking.deferrable.load(Ordering::Relaxed)) || self.has_snapshot() {
            return Ok(());
        }
        loop {
            self.take_snapshot();
            let Some((id, _)) = tracking.registered() else { return Ok(()) };
            let waited = self.wait_for_safety(id);
            let safe = matches!(waited, Ok(Safety::Safe));
            self.stop_tracking();
            if safe {
                return Ok(());
            }
            self.drop_snapshot();
            waited?;
        }
    }

    fn wait_for_safety(&self, id: Id) -> Result<Safety> {
        let (shared, session) = (self.shared(), self.session());
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
    pub(crate) fn register_snapshot(&self, acquire: impl FnOnce() -> Csn) -> Csn {
        let Some(tracking) = &self.tracking else { return acquire() };
        let read_only = tracking.read_only.load(Ordering::Relaxed);
        let (csn, id) = self.shared().serializable.register(self.id(), self.session().slot, read_only, acquire);
        tracking.set(id.map(|id| (id, csn)));
        csn
    }

    /// Whether a view's reads must be announced: the snapshot's reads, not those of constraint checks, which see the newest state
    /// and hold locks on what they rely on.
    #[inline]
    pub(crate) fn tracks(&self, view: ReadView) -> bool {
        view.command != ReadView::LATEST_COMMAND
            && self.tracking.as_deref().and_then(Tracking::registered).is_some_and(|(_, snapshot)| snapshot == view.csn)
    }

    /// Announces reads; the caller has checked `tracks`.
    pub(crate) fn note_reads<'a>(&self, reads: impl Iterator<Item = Read<'a>>) -> Result<()> {
        let Some((id, _)) = self.tracking.as_deref().and_then(Tracking::registered) else { return Ok(()) };
        if self.shared().serializable.read(id, reads)? == Safety::Safe {
            self.stop_tracking();
        }
        Ok(())
    }

    /// Announces a write, before it is made.
    #[inline]
    pub(crate) fn note_write(&self, write: impl FnOnce() -> Write<'static>) -> Result<()> {
        match self.tracking.as_deref().and_then(Tracking::registered) {
            None => Ok(()),
            Some((id, _)) => self.shared().serializable.write(id, write()),
        }
    }

    /// Announces that an index entry will be added or removed, before that happens.
    #[inline]
    pub(crate) fn note_entry(&self, tree: TreeId, entry: &[u8]) -> Result<()> {
        match self.tracking.as_deref().and_then(Tracking::registered) {
            None => Ok(()),
            Some((id, _)) => self.shared().serializable.write(id, Write::Entry(tree, entry)),
        }
    }

    /// Before a duplicate key is reported: fails if the transaction would otherwise have to fail with a serialization failure,
    /// which says that trying again may help.
    ///
    /// # Errors
    /// `SerializationConflict`.
    pub fn check_serializable_insert(&self, tree: TreeId, key: &[u8]) -> Result<()> {
        match self.tracking.as_deref().and_then(Tracking::registered) {
            None => Ok(()),
            Some((id, _)) => self.shared().serializable.attempt(id, Write::Entry(tree, key)),
        }
    }

    /// Decides whether a SERIALIZABLE transaction may commit.
    pub(crate) fn prepare_serializable(&self) -> Result<()> {
        match self.tracking.as_deref().and_then(Tracking::registered) {
            None => Ok(()),
            Some((id, _)) => self.shared().serializable.prepare(id),
        }
    }

    /// The commit is visible, and its locks are still held.
    pub(crate) fn commit_serializable(&self, csn: Csn) {
        if let Some((id, _)) = self.tracking.as_deref().and_then(Tracking::take) {
            let woken = self.shared().serializable.commit(id, csn);
            self.wake(&woken);
        }
    }

    /// Rolled back, or found safe.
    pub(crate) fn stop_tracking(&self) {
        if let Some((id, _)) = self.tracking.as_deref().and_then(Tracking::take) {
            let woken = self.shared().serializable.forget(id);
            self.wake(&woken);
        }
    }

    fn wake(&self, slots: &[u32]) {
        slots.iter().for_each(|slot| self.shared().locks.sessions[*slot as usize].cell.notify());
    }

    pub(crate) fn new_tracking(isolation: Isolation) -> Option<Box<Tracking>> {
        (isolation == Isolation::Serializable).then(Box::default)
    }
}
