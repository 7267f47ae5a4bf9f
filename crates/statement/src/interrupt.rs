//! Stopping a session from outside: cancel requests, termination, timeouts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use melba_engine::InterruptReason;
use melba_types::limits::Interruptible;
use melba_types::{DbError, Result, Severity, SqlState};
use melba_vfs::Clock;

/// The engine's flag, which ends waits for locks, and the deadline of the running statement.
pub struct Interrupt {
    pub engine: Arc<melba_engine::Interrupt>,
    /// When the running statement has used up its statement_timeout, by the clock in nanoseconds; 0: never.
    deadline: AtomicU64,
    /// The same of the transaction and transaction_timeout.
    transaction_deadline: AtomicU64,
    clock: Arc<dyn Clock>,
}

impl Interrupt {
    pub fn new(clock: Arc<dyn Clock>) -> Interrupt {
        Interrupt {
            engine: melba_engine::Interrupt::new(),
            deadline: AtomicU64::new(0),
            transaction_deadline: AtomicU64::new(0),
            clock,
        }
    }

    fn after(&self, timeout: Duration) -> u64 {
        (self.clock.monotonic() + timeout).as_nanos() as u64
    }

    /// CancelRequest, pg_cancel_backend.
    pub fn cancel(&self) {
        self.engine.raise(InterruptReason::Cancel);
    }

    /// pg_terminate_backend, or the server stops.
    pub fn terminate(&self) {
        self.engine.raise(InterruptReason::Terminate);
    }

    /// The client has disconnected while a statement runs.
    pub fn lose_client(&self) {
        self.engine.raise(InterruptReason::ClientGone);
    }

    /// The session must end, whatever it is doing.
    pub fn must_end(&self) -> Option<DbError> {
        let ends = |reason: &InterruptReason| *reason >= InterruptReason::TransactionTimeout;
        self.engine.raised().filter(ends).map(error)
    }

    /// The statement's time ran out while the session waited for the client's next message about it.
    pub fn timed_out(&self) -> Option<DbError> {
        let reason = self.engine.raised().filter(|reason| *reason == InterruptReason::StatementTimeout)?;
        self.engine.clear();
        Some(error(reason))
    }

    /// The session starts work, or an error is reported: a cancel request that came too late for the work before it, or that was
    /// the error, is forgotten.
    pub fn start_work(&self) {
        self.engine.clear();
    }

    /// A statement starts, or the first message about one. True when a deadline was set.
    pub fn start_statement(&self, timeout: Duration) -> bool {
        if timeout.is_zero() || self.deadline.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.deadline.store(self.after(timeout), Ordering::Relaxed);
        true
    }

    pub fn end_statement(&self) {
        self.deadline.store(0, Ordering::Relaxed);
    }

    /// A transaction begins, or its timeout was changed: a deadline that is set already stays. True when one was set.
    pub fn start_transaction(&self, timeout: Duration) -> bool {
        if timeout.is_zero() {
            self.end_transaction();
        }
        let sets = !timeout.is_zero() && self.transaction_deadline.load(Ordering::Relaxed) == 0;
        if sets {
            self.transaction_deadline.store(self.after(timeout), Ordering::Relaxed);
        }
        sets
    }

    pub fn end_transaction(&self) {
        self.transaction_deadline.store(0, Ordering::Relaxed);
    }

    /// Raises deadlines that have passed; returns whether a deadline is set, and whether the session must end now, for which it
    /// must be woken.
    pub fn look_at_deadlines(&self) -> (bool, bool) {
        let (statement, transaction) = (self.deadline.load(Ordering::Relaxed), self.transaction_deadline.load(Ordering::Relaxed));
        if statement == 0 && transaction == 0 {
            return (false, false);
        }
        let now = self.after(Duration::ZERO);
        if statement != 0 && now >= statement {
            self.deadline.store(0, Ordering::Relaxed);
            self.engine.raise(InterruptReason::StatementTimeout);
        }
        let ends = transaction != 0 && now >= transaction;
        // A transaction that has ended meanwhile has taken its deadline away.
        let taken = || self.transaction_deadline.compare_exchange(transaction, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let ends = ends && taken();
        if ends {
            self.engine.raise(InterruptReason::TransactionTimeout);
        }
        (true, ends)
    }

    /// The error to stop with, if any. Every check returns it again, until the statement's error is reported: some callers
    /// continue after an error without the result (a constant is computed when it is needed), and must not ignore this one.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.engine.raised().map_or(Ok(()), |reason| Err(error(reason)))
    }
}

impl Interruptible for Interrupt {
    fn check(&self) -> Result<()> {
        Interrupt::check(self)
    }
}

fn error(reason: InterruptReason) -> DbError {
    match reason {
        InterruptReason::Terminate => DbError::new(SqlState::ADMIN_SHUTDOWN, reason.message()).severity(Severity::Fatal),
        InterruptReason::TransactionTimeout => {
            DbError::new(SqlState::TRANSACTION_TIMEOUT, reason.message()).severity(Severity::Fatal)
        }
        InterruptReason::ClientGone => DbError::new(SqlState::CONNECTION_FAILURE, reason.message()).severity(Severity::Fatal),
        _ => DbError::new(SqlState::QUERY_CANCELED, reason.message()),
    }
}

impl std::fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Interrupt({:?})", self.engine.raised())
    }
}

#[cfg(test)]
mod tests {
    use melba_vfs::ManualClock;

    use super::*;

    #[test]
    fn timeouts_follow_the_clock_that_is_given() {
        let clock = Arc::new(ManualClock::new());
        let interrupt = Interrupt::new(Arc::clone(&clock) as Arc<dyn Clock>);
        assert!(interrupt.start_statement(Duration::from_secs(1)));
        assert!(interrupt.start_transaction(Duration::from_secs(3)));
        clock.advance(Duration::from_millis(999));
        assert_eq!(interrupt.look_at_deadlines(), (true, false));
        assert!(interrupt.check().is_ok());
        clock.advance(Duration::from_millis(1));
        assert_eq!(interrupt.look_at_deadlines(), (true, false));
        assert_eq!(interrupt.timed_out().map(|e| e.sqlstate()), Some(SqlState::QUERY_CANCELED));
        clock.advance(Duration::from_secs(2));
        assert_eq!(interrupt.look_at_deadlines(), (true, true));
        assert_eq!(interrupt.must_end().map(|e| e.sqlstate()), Some(SqlState::TRANSACTION_TIMEOUT));
    }
}
