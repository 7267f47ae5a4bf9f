//! The flag that tells a session to stop its current work.

use std::sync::Arc;

use crate::error::{EngineError, InterruptReason, Result};
use melba_threads::atomic::{AtomicU8, Ordering};
use melba_threads::{Mutex, WaitCell, thread_local};

/// Raised by other threads. The session checks it at every batch, and it ends every wait.
#[derive(Default)]
pub struct Interrupt {
    reason: AtomicU8,
    sleeper: Mutex<Option<Arc<WaitCell>>>,
}

impl Interrupt {
    /// An interrupt that is not raised.
    pub fn new() -> Arc<Interrupt> {
        Arc::default()
    }

    /// Raises it and wakes the session if it waits for a lock. A termination is never weakened to a cancellation.
    pub fn raise(&self, reason: InterruptReason) {
        self.reason.fetch_max(reason as u8, Ordering::SeqCst);
        if let Some(cell) = &*self.sleeper.lock() {
            cell.notify();
        }
    }

    /// Forgets a cancellation that came too late (between statements). A request to end the session stays.
    pub fn clear(&self) {
        while let Some(reason @ (InterruptReason::Cancel | InterruptReason::StatementTimeout)) = self.raised() {
            let _ = self.reason.compare_exchange(reason as u8, 0, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// The reason, when raised.
    #[inline]
    pub fn raised(&self) -> Option<InterruptReason> {
        match self.reason.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(InterruptReason::Cancel),
            2 => Some(InterruptReason::StatementTimeout),
            3 => Some(InterruptReason::TransactionTimeout),
            4 => Some(InterruptReason::Terminate),
            _ => Some(InterruptReason::ClientGone),
        }
    }

    /// An error when raised.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.raised() {
            None => Ok(()),
            Some(reason) => Err(EngineError::Interrupted(reason)),
        }
    }

    /// Sets the cell that `raise` wakes; `None` after the wait.
    pub fn set_sleeper(&self, cell: Option<Arc<WaitCell>>) {
        *self.sleeper.lock() = cell;
    }
}

thread_local! {
    /// For requests that do not wait.
    pub static NEVER: Interrupt = Interrupt::default();
}
