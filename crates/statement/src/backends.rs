//! The sessions of the server, for cancel requests, pg_stat_activity and the shutdown.

use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use hashbrown::HashMap;
use melba_types::Oid;
use parking_lot::Mutex;

pub use super::activity::{Activity, Addresses, BackendState, ClientCertificate, Counter, Encryption, Peer};
use super::interrupt::Interrupt;

/// One session as others see it.
#[derive(Debug)]
pub struct Backend {
    pub pid: i32,
    /// The role that logged in, and the database.
    pub role: Oid,
    pub database: Oid,
    /// The key that a CancelRequest must present.
    pub secret: Vec<u8>,
    pub interrupt: Arc<Interrupt>,
    /// Wakes the session when it waits for its client.
    pub wake: Box<dyn Wake>,
    pub activity: Arc<Activity>,
}

/// Wakes a session that waits for its client, so that it checks its interrupts.
pub trait Wake: Send + Sync + std::fmt::Debug {
    fn wake(&self);
}

#[derive(Debug, Default)]
pub struct Backends {
    by_pid: Mutex<HashMap<i32, Arc<Backend>>>,
    /// Of the sessions that have ended, by database.
    ended: Mutex<HashMap<Oid, SessionCounts>>,
    /// The thread that watches deadlines; it sleeps while there are none.
    watchdog: OnceLock<Thread>,
}

/// The counts of the sessions of a database since the server's start, or since a reset.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionCounts {
    pub sessions: u64,
    counts: [u64; Counter::COUNT],
    /// Microseconds that sessions which have ended were connected.
    pub session_time: u64,
}

impl SessionCounts {
    pub fn get(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// Those of one session.
    pub fn of_session(backend: &Backend) -> SessionCounts {
        let mut counts = SessionCounts::default();
        counts.add(backend);
        counts
    }

    fn add(&mut self, backend: &Backend) {
        self.sessions += 1;
        for (sum, counter) in self.counts.iter_mut().zip(Counter::ALL) {
            *sum += backend.activity.count(counter);
        }
    }

    /// The increase since other counts.
    pub fn since(mut self, before: &SessionCounts) -> SessionCounts {
        self.sessions = self.sessions.saturating_sub(before.sessions);
        self.session_time = self.session_time.saturating_sub(before.session_time);
        for (count, before) in self.counts.iter_mut().zip(before.counts) {
            *count = count.saturating_sub(before);
        }
        self
    }
}

/// How late a statement timeout may be noticed in a wait.
const WATCHDOG_PERIOD: Duration = Duration::from_millis(10);

/// How many sessions there may be at once; `None`: as many as the server may have.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub server: usize,
    pub of_role: Option<usize>,
    pub of_database: Option<usize>,
}

/// The limit that one more session would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    Server,
    Role,
    Database,
}

impl Backends {
    /// # Errors
    /// The limit that is reached already.
    pub fn add(&self, backend: Arc<Backend>, limits: &Limits) -> Result<(), Exceeded> {
        let mut by_pid = self.by_pid.lock();
        let count = |like: &dyn Fn(&Backend) -> bool| by_pid.values().filter(|b| like(b)).count();
        if by_pid.len() >= limits.server {
            return Err(Exceeded::Server);
        }
        if limits.of_role.is_some_and(|limit| count(&|b| b.role == backend.role) >= limit) {
            return Err(Exceeded::Role);
        }
        if limits.of_database.is_some_and(|limit| count(&|b| b.database == backend.database) >= limit) {
            return Err(Exceeded::Database);
        }
        by_pid.insert(backend.pid, backend);
        Ok(())
    }

    /// The session has ended, at that time.
    pub fn remove(&self, pid: i32, now: i64) {
        // Both under one lock, or a reader might count it twice or not at all.
        let mut by_pid = self.by_pid.lock();
        if let Some(backend) = by_pid.remove(&pid) {
            let mut ended = self.ended.lock();
            let counts = ended.entry(backend.database).or_default();
            counts.add(&backend);
            counts.session_time += (now - backend.activity.peer.lock().started).max(0) as u64;
        }
    }

    /// The number of sessions of a database, and the counts of all its sessions up to now.
    pub fn of_database(&self, database: Oid, now: i64) -> (usize, SessionCounts) {
        let by_pid = self.by_pid.lock();
        let mut counts = self.ended.lock().get(&database).copied().unwrap_or_default();
        let present = by_pid.values().filter(|b| b.database == database);
        let present = present.inspect(|backend| {
            counts.add(backend);
            counts.session_time += (now - backend.activity.peer.lock().started).max(0) as u64;
        });
        (present.count(), counts)
    }

    /// The counts of all sessions since the server's start.
    pub fn of_all(&self) -> SessionCounts {
        let by_pid = self.by_pid.lock();
        let mut sum = SessionCounts::default();
        for ended in self.ended.lock().values() {
            sum.sessions += ended.sessions;
            sum.counts.iter_mut().zip(ended.counts).for_each(|(sum, count)| *sum += count);
        }
        by_pid.values().for_each(|backend| sum.add(backend));
        sum
    }

    pub fn get(&self, pid: i32) -> Option<Arc<Backend>> {
        self.by_pid.lock().get(&pid).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Backend>> {
        self.by_pid.lock().values().cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.by_pid.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A CancelRequest; a wrong secret is ignored, as the protocol wants it. Compared in constant time.
    pub fn cancel(&self, pid: i32, secret: &[u8]) {
        if let Some(backend) = self.get(pid)
            && backend.secret.len() == secret.len()
            && backend.secret.iter().zip(secret).fold(0, |d, (a, b)| d | (a ^ b)) == 0
        {
            backend.interrupt.cancel();
        }
    }

    /// pg_terminate_backend: false when there is no such session.
    pub fn terminate(&self, pid: i32) -> bool {
        self.get(pid).is_some_and(|b| {
            b.interrupt.terminate();
            b.wake.wake();
            true
        })
    }

    /// Starts the thread that ends waits of statements whose timeout has run out. It lives as long as the process.
    pub fn start_watchdog(self: &Arc<Self>) -> std::io::Result<()> {
        let backends = self.clone();
        let thread = std::thread::Builder::new().name("timeouts".into()).spawn(move || {
            loop {
                let mut armed = false;
                for backend in backends.all() {
                    let (is_armed, must_end) = backend.interrupt.look_at_deadlines();
                    armed |= is_armed;
                    if must_end {
                        backend.wake.wake();
                    }
                }
                if armed { std::thread::sleep(WATCHDOG_PERIOD) } else { std::thread::park() }
            }
        })?;
        let _ = self.watchdog.set(thread.thread().clone());
        Ok(())
    }

    /// A deadline was set.
    pub fn wake_watchdog(&self) {
        if let Some(thread) = self.watchdog.get() {
            thread.unpark();
        }
    }

    /// The server stops: every session ends at its next look.
    pub fn shut_down(&self) {
        for backend in self.all() {
            backend.interrupt.terminate();
            backend.wake.wake();
        }
    }
}
