//! The effects of signals, like those of PostgreSQL's server where it has them.
//!
//! | signal | effect |
//! |---|---|
//! | SIGINT, SIGTERM | a fast shutdown: transactions end, what is committed is kept in order |
//! | SIGQUIT | an immediate shutdown: the next start recovers |
//! | SIGHUP | the configuration files are read again |
//! | SIGUSR1 | new log files begin, as for PostgreSQL's logger |
//! | SIGUSR2 | nothing |

use std::sync::Arc;
use std::time::Duration;

use melba_server::ServerHandle;
use melba_serverlog::{Level, ServerLog};
use melba_statement::context::Instance;
use parking_lot::Mutex;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// Stops and reloads an opened server; `None` while it recovers.
#[derive(Clone, Default)]
pub struct RunningServer(Arc<Mutex<Option<Opened>>>);

#[derive(Clone)]
struct Opened {
    handle: ServerHandle,
    instance: Arc<Instance>,
}

/// Exit code of a server that ends at once.
const IMMEDIATE: i32 = 2;
/// How long the log may keep a server from ending.
const LOG_PATIENCE: Duration = Duration::from_secs(1);

impl RunningServer {
    pub fn set(&self, handle: ServerHandle, instance: Arc<Instance>) {
        *self.0.lock() = Some(Opened { handle, instance });
    }
}

/// Catches signals from now on, for as long as the process lives.
pub fn watch(log: &Arc<ServerLog>, running: &RunningServer) -> Result<(), String> {
    let caught = [SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2];
    let mut signals = Signals::new(caught).map_err(|e| format!("could not catch signals: {e}"))?;
    let (log, running) = (Arc::clone(log), running.clone());
    let watcher = move || {
        for signal in signals.forever() {
            serve(signal, &log, &running);
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(watcher)
        .map(drop)
        .map_err(|e| format!("could not start a thread: {e}"))
}

fn serve(signal: i32, log: &ServerLog, running: &RunningServer) {
    let current = running.0.lock().clone();
    match (signal, current) {
        (SIGINT | SIGTERM, Some(Opened { handle, .. })) => {
            log.server(Level::Log, "received fast shutdown request");
            handle.stop();
        }
        (SIGINT | SIGTERM, None) => {
            log.server(Level::Log, "received fast shutdown request");
            // Nothing is acknowledged yet, and recovery begins again next time.
            end(log);
        }
        (SIGQUIT, _) => {
            log.server(Level::Log, "received immediate shutdown request");
            end(log);
        }
        (SIGHUP, Some(Opened { instance, .. })) => instance.reload_logged("received SIGHUP, reloading configuration files"),
        (SIGUSR1, _) => _ = log.rotate(),
        _ => {}
    }
}

fn end(log: &ServerLog) {
    log.flush(LOG_PATIENCE);
    // SAFETY: the process ends; other threads are not waited for, as after kill -9, which recovery is made for.
    unsafe { libc::_exit(IMMEDIATE) }
}
