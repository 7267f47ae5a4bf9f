//! The source of a message: the server, or a session with its client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// A session or a part of the server.
#[derive(Debug)]
pub struct Source {
    pub pid: i32,
    /// As pg_stat_activity.backend_type has it.
    pub kind: &'static str,
    /// Microseconds since 2000-01-01.
    pub started: i64,
    /// `None` for the server.
    pub client: Option<SessionClient>,
    /// Lines of the stderr format so far, and messages.
    lines: AtomicU64,
    records: AtomicU64,
}

/// The client of a session.
#[derive(Debug, Default)]
pub struct SessionClient {
    /// An address or name, `[local]` for a Unix-domain socket.
    pub host: String,
    pub port: Option<u16>,
    /// Where the client has connected to.
    pub local_host: String,
    /// Role and database, once they are known.
    login: Mutex<Option<(Arc<str>, Arc<str>)>>,
    application_name: Mutex<Arc<str>>,
}

impl SessionClient {
    pub fn new(host: String, port: Option<u16>, local_host: String) -> SessionClient {
        SessionClient { host, port, local_host, ..SessionClient::default() }
    }

    /// Role and database.
    pub fn login(&self) -> Option<(Arc<str>, Arc<str>)> {
        self.login.lock().clone()
    }

    pub fn set_login(&self, user: &str, database: &str) {
        *self.login.lock() = Some((user.into(), database.into()));
    }

    pub fn application_name(&self) -> Arc<str> {
        self.application_name.lock().clone()
    }

    pub fn set_application_name(&self, name: &str) {
        let mut current = self.application_name.lock();
        if **current != *name {
            *current = name.into();
        }
    }
}

impl Source {
    pub fn server(kind: &'static str, pid: i32, started: i64) -> Source {
        Source { pid, kind, started, client: None, lines: AtomicU64::new(0), records: AtomicU64::new(0) }
    }

    pub fn session(pid: i32, started: i64, client: SessionClient) -> Source {
        Source { client: Some(client), ..Source::server("client backend", pid, started) }
    }

    pub(crate) fn next_line(&self) -> u64 {
        self.lines.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn next_record(&self) -> u64 {
        self.records.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The start time in seconds of the Unix epoch, and the process: the value of `%c`.
    pub(crate) fn session_id(&self) -> String {
        format!("{:x}.{:x}", crate::time::unix_seconds(self.started), self.pid)
    }
}
