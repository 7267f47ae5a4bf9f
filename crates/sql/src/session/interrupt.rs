//! Stopping a session from outside: cancel requests, termination, timeouts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use melba_engine::InterruptReason;
use melba_types::{DbError, Result, Severity, SqlState};

/// The engine's flag, which ends waits for locks, and the deadline of the running statement.
pub struct Interrupt {
    pub engine: Arc<melba_engine::Interrupt>,
    /// When the running statement has used up its statement_timeout, in nanoseconds after `origin`; 0: never.
    deadline: AtomicU64,
    origin: Instant,
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt { engine: melba_engine::Interrupt::new(), deadline: AtomicU64::new(0), origin: Instant::now() }
    }
}

impl Interrupt {
    /// CancelRequest, pg_cancel_backend.
    pub fn cancel(&self) {
        self.engine.raise(InterruptReason::Cancel);
    }

    /// pg_terminate_backend, or the server stops.
    pub fn terminate(&self) {
        self.engine.raise(InterruptReason::Terminate);
    }

    /// The session must end, whatever it does.
    pub fn must_end(&self) -> Option<DbError> {
        (self.engine.raised() == Some(InterruptReason::Terminate)).then(|| error(InterruptReason::Terminate))
    }

    /// The session gets to work: a cancel request that came too late for what it did before is forgotten.
    pub fn start_work(&self) {
        self.engine.clear();
    }

    /// A statement starts, or the first message about one. True when a deadline was set.
    pub fn start_statement(&self, timeout: Duration) -> bool {
        if timeout.is_zero() || self.deadline.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.deadline.store((self.origin.elapsed() + timeout).as_nanos() as u64, Ordering::Relaxed);
        true
    }

    pub fn end_statement(&self) {
        self.deadline.store(0, Ordering::Relaxed);
    }

    /// Raises the timeout when the deadline has passed; false when there is none.
    pub fn look_at_deadline(&self) -> bool {
        match self.deadline.load(Ordering::Relaxed) {
            0 => false,
            deadline => {
                if self.origin.elapsed().as_nanos() as u64 >= deadline {
                    self.deadline.store(0, Ordering::Relaxed);
                    self.engine.raise(InterruptReason::StatementTimeout);
                }
                true
            }
        }
    }

    /// The error to stop with, if any. A cancel request is used up by this.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.engine.raised() {
            None => Ok(()),
            Some(reason) => {
                self.engine.clear();
                Err(error(reason))
            }
        }
    }
}

fn error(reason: InterruptReason) -> DbError {
    match reason {
        InterruptReason::Terminate => DbError::new(SqlState::ADMIN_SHUTDOWN, reason.message()).severity(Severity::Fatal),
        _ => DbError::new(SqlState::QUERY_CANCELED, reason.message()),
    }
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Interrupt({:?})", self.engine.raised())
    }
}
