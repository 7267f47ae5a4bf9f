//! Stopping a session from outside: cancel requests, termination, timeouts.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use melba_types::{DbError, Result, Severity, SqlState};

const NONE: u8 = 0;
const CANCEL: u8 = 1;
const TERMINATE: u8 = 2;
const SHUTDOWN: u8 = 3;

/// Flags that long-running code looks at now and then.
#[derive(Debug)]
pub struct Interrupt {
    request: AtomicU8,
    /// When the running statement has used up its statement_timeout, in nanoseconds after `origin`; 0: never.
    deadline: AtomicU64,
    origin: Instant,
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt { request: AtomicU8::new(NONE), deadline: AtomicU64::new(0), origin: Instant::now() }
    }
}

impl Interrupt {
    /// CancelRequest, pg_cancel_backend.
    pub fn cancel(&self) {
        self.request.fetch_max(CANCEL, Ordering::Relaxed);
    }

    /// pg_terminate_backend.
    pub fn terminate(&self) {
        self.request.fetch_max(TERMINATE, Ordering::Relaxed);
    }

    /// The server stops.
    pub fn shut_down(&self) {
        self.request.fetch_max(SHUTDOWN, Ordering::Relaxed);
    }

    /// The session must end, whatever it does.
    pub fn must_end(&self) -> Option<DbError> {
        (self.request.load(Ordering::Relaxed) >= TERMINATE).then(|| {
            DbError::new(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
                .severity(Severity::Fatal)
        })
    }

    /// A statement starts: a cancel request that came too late for the one before is forgotten.
    pub fn start_statement(&self, timeout: Duration) {
        let _ = self.request.compare_exchange(CANCEL, NONE, Ordering::Relaxed, Ordering::Relaxed);
        let deadline = if timeout.is_zero() { 0 } else { (self.origin.elapsed() + timeout).as_nanos() as u64 };
        self.deadline.store(deadline, Ordering::Relaxed);
    }

    pub fn end_statement(&self) {
        self.deadline.store(0, Ordering::Relaxed);
    }

    /// Time left until the statement's deadline, for waits; `None`: no limit.
    pub fn remaining(&self) -> Option<Duration> {
        match self.deadline.load(Ordering::Relaxed) {
            0 => None,
            deadline => Some(Duration::from_nanos(deadline).saturating_sub(self.origin.elapsed())),
        }
    }

    /// The error to stop with, if any. A cancel request is used up by this.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.request.load(Ordering::Relaxed) == NONE && self.deadline.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.check_slowly()
    }

    #[cold]
    fn check_slowly(&self) -> Result<()> {
        if let Some(error) = self.must_end() {
            return Err(error);
        }
        if self.request.compare_exchange(CANCEL, NONE, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return Err(DbError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request"));
        }
        if self.remaining() == Some(Duration::ZERO) {
            self.end_statement();
            return Err(DbError::new(SqlState::QUERY_CANCELED, "canceling statement due to statement timeout"));
        }
        Ok(())
    }
}
