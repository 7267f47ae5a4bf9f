//! The server log: the server's messages to its operator, in PostgreSQL's formats (stderr, csvlog, jsonlog), or for syslog.
//!
//! Invariants:
//! 1. A thread that logs waits for the disk or for a reader of standard error at most `queue::PATIENCE`, and not again before the
//!    writer has made progress: messages are lost instead, and the log says how many.
//! 2. A password of CREATE ROLE and similar statements never reaches the log (`redaction`).
//! 3. A server without a log (an embedded one, a test, a simulation) starts no thread and writes nothing.
//!
//! Files are opened below log_directory and beside the data directory's own: none of them is a database file.

#![allow(clippy::disallowed_methods, reason = "the log's files are not the database's")]

mod configuration;
mod csv;
mod entry;
mod files;
mod json;
mod level;
mod policy;
mod prefix;
mod queue;
mod redaction;
mod source;
mod stderr;
mod syslog;
mod time;
mod writer;

pub use entry::{Entry, MessageOrigin, TransactionIds};
pub use level::Level;
pub use policy::{ConnectionAspects, Policy, Statements, Verbosity};
pub use redaction::without_passwords;
pub use source::{SessionClient, Source};

use std::sync::Arc;
use std::time::Duration;

use melba_settings::Settings;
use melba_vfs::Clock;
use parking_lot::RwLock;

use configuration::{Configuration, Destinations};
use queue::{Destination, Queue};
use time::Stamp;

/// The log of one server.
pub struct ServerLog {
    configuration: RwLock<Arc<Configuration>>,
    /// `None`: there is no log.
    queue: Option<Arc<Queue>>,
    clock: Option<Arc<dyn Clock>>,
    /// The server itself, as opposed to a session.
    server: Source,
}

impl std::fmt::Debug for ServerLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerLog").field("silent", &self.queue.is_none()).finish_non_exhaustive()
    }
}

impl Default for ServerLog {
    fn default() -> ServerLog {
        ServerLog::silent()
    }
}

impl ServerLog {
    /// A log of which nothing is written.
    pub fn silent() -> ServerLog {
        ServerLog {
            configuration: RwLock::default(),
            queue: None,
            clock: None,
            server: Source::server("postmaster", std::process::id() as i32, 0),
        }
    }

    /// Starts the log's thread. Files are opened here, so that a log_directory that cannot be used is known.
    ///
    /// # Errors
    /// A log file could not be opened, or the system has no more threads; in the words of PostgreSQL.
    pub fn start(settings: &Settings, clock: Arc<dyn Clock>) -> Result<ServerLog, String> {
        let configuration = Arc::new(Configuration::of(settings));
        if configuration.files.is_none() {
            files::forget_current(std::path::Path::new(settings.get("data_directory").as_text()));
        }
        let queue = Arc::new(Queue::default());
        writer::start(Arc::clone(&queue), Arc::clone(&configuration), Arc::clone(&clock))?;
        let now = clock.now_micros();
        Ok(ServerLog {
            configuration: RwLock::new(configuration),
            queue: Some(queue),
            clock: Some(clock),
            server: Source::server("postmaster", std::process::id() as i32, now),
        })
    }

    /// Whether nothing is ever written.
    pub fn is_silent(&self) -> bool {
        self.queue.is_none()
    }

    /// Takes over the present settings; automatic rotation that was given up is tried again.
    pub fn configure(&self, settings: &Settings) {
        let configuration = Arc::new(Configuration::of(settings));
        *self.configuration.write() = Arc::clone(&configuration);
        if let Some(queue) = &self.queue {
            queue.reconfigure(configuration);
        }
    }

    /// Writes a session's message, which its `Policy` has selected.
    pub fn emit(&self, source: &Source, verbosity: Verbosity, entry: &Entry<'_>) {
        let (Some(queue), Some(clock)) = (&self.queue, &self.clock) else { return };
        let configuration = self.configuration.read().clone();
        let entry = entry.without_passwords();
        let record = LogRecord {
            source,
            entry: &entry,
            verbosity,
            stamp: Stamp::at(clock.now_micros(), &configuration.zone),
            started: Stamp::at(source.started, &configuration.zone),
        };
        for (destination, piece) in pieces(&record, &configuration) {
            queue.push(destination, piece);
        }
    }

    /// Writes a message of the server itself, if log_min_messages of the configuration lets it pass.
    pub fn server(&self, level: Level, message: impl Into<String>) {
        let message = message.into();
        self.server_entry(&Entry::new(level, &message));
    }

    /// The same, of a whole entry.
    pub fn server_entry(&self, entry: &Entry<'_>) {
        let (least, verbosity) = {
            let configuration = self.configuration.read();
            (configuration.min_messages, configuration.verbosity)
        };
        if entry.level >= least {
            self.emit(&self.server, verbosity, entry);
        }
    }

    /// The same as a background worker of the server says it.
    pub fn background(&self, kind: &'static str, level: Level, message: &str) {
        if level >= self.configuration.read().min_messages {
            let source = Source::server(kind, self.server.pid, self.server.started);
            self.emit(&source, Verbosity::Default, &Entry::new(level, message));
        }
    }

    /// Begins new files, as pg_rotate_logfile() and SIGUSR1 have it. False: there is no collector.
    pub fn rotate(&self) -> bool {
        let collected = self.configuration.read().files.is_some();
        match &self.queue {
            Some(queue) if collected => {
                queue.request_rotation();
                true
            }
            _ => false,
        }
    }

    /// Waits until everything so far is written, at most `patience`.
    pub fn flush(&self, patience: Duration) {
        if let Some(queue) = &self.queue {
            queue.flush(patience);
        }
    }
}

/// The data that a format prints.
struct LogRecord<'a> {
    source: &'a Source,
    entry: &'a Entry<'a>,
    verbosity: Verbosity,
    stamp: Stamp,
    started: Stamp,
}

/// A message in the forms that its destinations want.
fn pieces(record: &LogRecord<'_>, configuration: &Configuration) -> Vec<(Destination, Vec<u8>)> {
    let number = record.source.next_record();
    let Destinations { stderr, csv, json, syslog } = configuration.destinations;
    let collected = configuration.files.is_some();
    let mut out = Vec::new();
    if csv && collected {
        out.push((Destination::Csv, csv::line(record, number)));
    }
    if json && collected {
        out.push((Destination::Json, json::line(record, number)));
    }
    // As in PostgreSQL: the structured formats are the collector's.
    let on_stderr = stderr || !collected && (csv || json || !syslog);
    if on_stderr || syslog {
        let lines = stderr::lines(record, &configuration.prefix);
        if syslog {
            let (level, pid) = (record.entry.level, record.source.pid);
            let datagrams = configuration.syslog.datagrams(level, pid, number, &record.stamp, &lines);
            out.extend(datagrams.into_iter().map(|datagram| (Destination::Syslog, datagram)));
        }
        if on_stderr {
            out.push((Destination::Stderr, lines.into_bytes()));
        }
    }
    out
}

/// Where the current file of a format (`stderr`, `csvlog`, `jsonlog`, or whichever comes first) is, by the data directory's
/// current_logfiles.
pub fn current_file(data_directory: &std::path::Path, format: Option<&str>) -> std::io::Result<Option<String>> {
    files::current(data_directory, format)
}
