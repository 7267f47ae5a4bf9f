//! A session's activity as others see it: pg_stat_activity, and the sums of pg_stat_database.
//!
//! Only the session itself writes; each figure is a separate word, so that a statement pays a few plain stores and no thread waits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

use melba_engine::IoCounts;
use parking_lot::Mutex;

use super::progress::Progress;

/// pg_stat_activity.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendState {
    Idle,
    Active,
    InTransaction,
    /// In a transaction that has failed.
    Aborted,
}

impl BackendState {
    pub fn name(self) -> &'static str {
        match self {
            BackendState::Idle => "idle",
            BackendState::Active => "active",
            BackendState::InTransaction => "idle in transaction",
            BackendState::Aborted => "idle in transaction (aborted)",
        }
    }

    fn of(number: u8) -> BackendState {
        [BackendState::Idle, BackendState::Active, BackendState::InTransaction, BackendState::Aborted][usize::from(number) & 3]
    }
}

/// See the module. Times are microseconds since 2000-01-01, 0 for none.
#[derive(Debug, Default)]
pub struct Activity {
    pub peer: Mutex<Peer>,
    query: Mutex<Arc<str>>,
    query_start: AtomicI64,
    query_id: AtomicI64,
    transaction_start: AtomicI64,
    state: AtomicU8,
    state_change: AtomicI64,
    /// It waits in pg_sleep().
    sleeps: AtomicU8,
    counters: [AtomicU64; Counter::COUNT],
    /// How far its command is, if that is a long one.
    pub progress: Progress,
}

/// The events that a session counts.
#[derive(Clone, Copy, Debug)]
pub enum Counter {
    Commits,
    Rollbacks,
    Deadlocks,
    TempFiles,
    TempBytes,
    /// Microseconds in which it worked, and in which it kept a transaction open and did not.
    ActiveTime,
    IdleInTransactionTime,
    /// Blocks of segments, their bytes, and nanoseconds.
    BlocksHit,
    BlocksRead,
    BlockReadBytes,
    BlockReadNanos,
    BlocksWritten,
    BlockWriteBytes,
    BlockWriteNanos,
    LogRecords,
    LogBytes,
}

impl Counter {
    pub const COUNT: usize = 16;
    pub const ALL: [Counter; Counter::COUNT] = [
        Counter::Commits,
        Counter::Rollbacks,
        Counter::Deadlocks,
        Counter::TempFiles,
        Counter::TempBytes,
        Counter::ActiveTime,
        Counter::IdleInTransactionTime,
        Counter::BlocksHit,
        Counter::BlocksRead,
        Counter::BlockReadBytes,
        Counter::BlockReadNanos,
        Counter::BlocksWritten,
        Counter::BlockWriteBytes,
        Counter::BlockWriteNanos,
        Counter::LogRecords,
        Counter::LogBytes,
    ];
}

/// The client of a session.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    pub user: Arc<str>,
    pub database: Arc<str>,
    pub application_name: Arc<str>,
    /// `None`: the client has come by a Unix-domain socket.
    pub addresses: Option<Addresses>,
    pub encryption: Option<Arc<Encryption>>,
    /// `method:identity` of the authentication; `None` where the method established no identity.
    pub identity: Option<Arc<str>>,
    /// Microseconds since 2000-01-01.
    pub started: i64,
}

/// The ends of a TCP connection.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub client: SocketAddr,
    pub server: SocketAddr,
}

/// The encryption of a connection, with OpenSSL's names.
#[derive(Clone, Debug)]
pub struct Encryption {
    pub version: &'static str,
    pub cipher: &'static str,
    /// Of the cipher's key.
    pub bits: i32,
    pub client: Option<ClientCertificate>,
}

/// The certificate that a client has shown.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    pub subject: String,
    /// In decimal.
    pub serial: String,
    pub issuer: String,
}

impl Activity {
    pub fn set_query(&self, query: Arc<str>) {
        *self.query.lock() = query;
    }

    /// The query runs, again if it is the same.
    pub fn start(&self, query_start: i64) {
        self.query_start.store(query_start, Relaxed);
        self.enter(BackendState::Active, query_start);
    }

    /// The client is waited for.
    pub fn end(&self, state: BackendState, now: i64) {
        self.enter(state, now);
    }

    fn enter(&self, state: BackendState, now: i64) {
        let before = BackendState::of(self.state.load(Relaxed));
        let since = now - self.state_change.load(Relaxed);
        match before {
            BackendState::Active => self.add(Counter::ActiveTime, since.max(0) as u64),
            BackendState::InTransaction | BackendState::Aborted => self.add(Counter::IdleInTransactionTime, since.max(0) as u64),
            BackendState::Idle => {}
        }
        if before != state || state != BackendState::Active {
            self.state.store(state as u8, Relaxed);
        }
        self.state_change.store(now, Relaxed);
    }

    /// A transaction begins; 0: it has ended.
    pub fn set_transaction_start(&self, start: i64) {
        self.transaction_start.store(start, Relaxed);
    }

    pub fn set_query_id(&self, id: i64) {
        self.query_id.store(id, Relaxed);
    }

    pub fn set_sleeping(&self, sleeps: bool) {
        self.sleeps.store(u8::from(sleeps), Relaxed);
    }

    /// A transaction has ended.
    pub fn note_end(&self, is_commit: bool) {
        self.add(if is_commit { Counter::Commits } else { Counter::Rollbacks }, 1);
    }

    pub fn add(&self, counter: Counter, count: u64) {
        let counter = &self.counters[counter as usize];
        // No other thread writes, except threads of one statement that drop temporary files.
        counter.store(counter.load(Relaxed) + count, Relaxed);
    }

    /// Adds what the session has read and written.
    pub fn add_io(&self, io: &IoCounts) {
        let counts = [
            (Counter::BlocksHit, io.block_hits),
            (Counter::BlocksRead, io.block_reads),
            (Counter::BlockReadBytes, io.block_read_bytes),
            (Counter::BlockReadNanos, io.block_read_nanos),
            (Counter::BlocksWritten, io.block_writes),
            (Counter::BlockWriteBytes, io.block_write_bytes),
            (Counter::BlockWriteNanos, io.block_write_nanos),
            (Counter::LogRecords, io.log_records),
            (Counter::LogBytes, io.log_bytes),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0).for_each(|(counter, count)| self.add(counter, count));
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Relaxed)
    }

    /// The text of the query that runs or ran last.
    pub fn query(&self) -> Arc<str> {
        self.query.lock().clone()
    }

    pub fn query_start(&self) -> i64 {
        self.query_start.load(Relaxed)
    }

    pub fn query_id(&self) -> i64 {
        self.query_id.load(Relaxed)
    }

    pub fn transaction_start(&self) -> i64 {
        self.transaction_start.load(Relaxed)
    }

    pub fn state(&self) -> BackendState {
        BackendState::of(self.state.load(Relaxed))
    }

    pub fn state_change(&self) -> i64 {
        self.state_change.load(Relaxed)
    }

    pub fn is_active(&self) -> bool {
        self.state() == BackendState::Active
    }

    /// pg_stat_activity.wait_event_type and wait_event, except waits for locks.
    pub fn wait_event(&self) -> Option<(&'static str, &'static str)> {
        match self.state() {
            BackendState::Active if self.sleeps.load(Relaxed) != 0 => Some(("Timeout", "PgSleep")),
            BackendState::Active => None,
            _ => Some(("Client", "ClientRead")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_by_the_state_of_the_session() {
        let activity = Activity::default();
        activity.start(100);
        assert_eq!((activity.state(), activity.wait_event()), (BackendState::Active, None));
        activity.end(BackendState::InTransaction, 150);
        assert_eq!(activity.wait_event(), Some(("Client", "ClientRead")));
        activity.start(350);
        activity.end(BackendState::Idle, 360);
        activity.start(1000);
        assert_eq!(activity.count(Counter::ActiveTime), 60);
        assert_eq!(activity.count(Counter::IdleInTransactionTime), 200);
        assert_eq!((activity.query_start(), activity.state_change()), (1000, 1000));
    }
}
