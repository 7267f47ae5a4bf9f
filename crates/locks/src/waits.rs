//! How requests wait, and what is told of long waits.

use std::time::Duration;

use melba_store::Interrupt;

/// How a request waits.
pub struct WaitPolicy<'a> {
    pub block: bool,
    pub interrupt: &'a Interrupt,
    /// `None`: for ever.
    pub lock_timeout: Option<Duration>,
    pub deadlock_timeout: Duration,
    /// Hears of the wait when it lasts longer than deadlock_timeout.
    pub watch: Option<&'a WaitWatch>,
}

/// Called for long waits (log_lock_waits).
pub type WaitWatch = dyn Fn(&LongWait) + Send + Sync;

/// A wait for a lock that has lasted for deadlock_timeout.
#[derive(Debug)]
pub struct LongWait {
    pub pid: i32,
    /// Mode and object, as `ShareLock on transaction 7`.
    pub lock: String,
    pub waited: Duration,
    pub phase: WaitPhase,
    /// The sessions that hold the lock in a conflicting mode, and those that wait for it; empty when the wait is over.
    pub holders: Vec<i32>,
    pub queue: Vec<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPhase {
    Waiting,
    Acquired,
    Failed,
}
