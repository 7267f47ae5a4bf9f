//! A server for this process alone: a socket that no other account reaches, and a clean end when a signal comes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use melba_engine::Engine;
use melba_server::ServerHandle;
use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, String>;

const PORT: u16 = 5432;
/// Of a directory in which there can be a socket: the path of a socket has 107 bytes at most.
const DIRECTORY_BYTES_MAX: usize = 80;

/// The effect of SIGINT.
pub enum SigintEffect {
    Ends,
    /// It ends, and nothing is left of the database.
    EndsAndRemoves(TempDir),
    IsTheBodys,
}

/// A directory with a socket, which its owner alone may look into.
pub struct PrivateSocket(TempDir);

impl PrivateSocket {
    pub fn new() -> Result<PrivateSocket> {
        let temporary = std::env::temp_dir();
        let parent = if temporary.as_os_str().len() > DIRECTORY_BYTES_MAX { Path::new("/tmp") } else { &temporary };
        // Made with the mode 0700.
        let made = tempfile::Builder::new().prefix("melba-").tempdir_in(parent);
        made.map(PrivateSocket).map_err(|e| format!("could not make a temporary directory in {}: {e}", parent.display()))
    }

    /// Of a server that listens there and nowhere else.
    pub fn settings(&self) -> Vec<(String, String)> {
        let directory = format!("\"{}\"", self.0.path().display().to_string().replace('"', "\"\""));
        let settings = [
            ("listen_addresses", String::new()),
            ("port", PORT.to_string()),
            ("unix_socket_directories", directory),
            ("unix_socket_group", String::new()),
        ];
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Connection parameters as libpq's keywords, without the database.
    pub fn keywords(&self) -> String {
        format!("host={} port={PORT} user=postgres", quoted(&self.0.path().display().to_string()))
    }
}

/// A value among libpq's keywords.
pub fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Ends the server once: when its work is done, or when a signal ends the process.
pub struct Ending {
    parts: Arc<Mutex<Option<Parts>>>,
    is_over: Arc<AtomicBool>,
    signals: Handle,
}

struct Parts {
    handle: ServerHandle,
    /// The listener and all sessions have ended.
    is_over: Arc<AtomicBool>,
    engine: Arc<Engine>,
    /// Removed when they are dropped.
    _socket: PrivateSocket,
    _database: Option<TempDir>,
}

impl Parts {
    fn shut_down(self) -> Result<()> {
        self.handle.stop();
        while !self.is_over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.engine.shutdown().map_err(|e| e.to_string())
    }
}

impl Ending {
    /// Catches signals from now on.
    pub fn watch(interrupt: SigintEffect, socket: PrivateSocket, handle: ServerHandle, engine: Arc<Engine>) -> Result<Ending> {
        let mut caught = vec![SIGHUP, SIGTERM];
        if !matches!(interrupt, SigintEffect::IsTheBodys) {
            caught.push(SIGINT);
        }
        let database = match interrupt {
            SigintEffect::EndsAndRemoves(directory) => Some(directory),
            SigintEffect::Ends | SigintEffect::IsTheBodys => None,
        };
        let is_over = Arc::<AtomicBool>::default();
        let parts = Parts { handle, is_over: Arc::clone(&is_over), engine, _socket: socket, _database: database };
        let parts = Arc::new(Mutex::new(Some(parts)));
        let mut signals = Signals::new(caught).map_err(|e| format!("could not catch signals: {e}"))?;
        let ending = Ending { parts: Arc::clone(&parts), is_over, signals: signals.handle() };
        let watcher = move || {
            for signal in signals.forever() {
                // The lock is kept, so that the process does not end before the database has.
                let mut parts = parts.lock();
                if let Some(parts) = parts.take() {
                    // Commits are on disk; the next start does the remaining work.
                    let _ = parts.shut_down();
                    melba_shell::restore_terminal();
                    std::process::exit(128 + signal);
                }
            }
        };
        let spawned = std::thread::Builder::new().name("signals".into()).spawn(watcher);
        spawned.map_err(|e| format!("could not start a thread: {e}"))?;
        Ok(ending)
    }

    /// Is called when the server has ended.
    pub fn over(&self) -> impl FnOnce() + Send + use<> {
        let is_over = Arc::clone(&self.is_over);
        move || is_over.store(true, Ordering::SeqCst)
    }

    pub fn shut_down(self) -> Result<()> {
        let parts = self.parts.lock().take();
        self.signals.close();
        parts.map_or(Ok(()), Parts::shut_down)
    }
}
