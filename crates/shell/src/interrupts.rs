//! Ctrl-C: it ends the statement that runs, not the shell.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, raise};

use crate::{Result, terminal};
use melba_client::CancelKey;

#[derive(Default)]
pub struct Interrupts {
    running: Mutex<Option<CancelKey>>,
    pressed: AtomicBool,
}

/// The code that ends the process on a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    ThisShell,
    /// This process serves a database, which its server ends with SIGTERM and SIGHUP.
    ItsServer,
}

impl Interrupts {
    /// Catches signals from now on. Without a statement that runs, Ctrl-C ends a shell that is not interactive.
    pub fn watch(ends: Ends, is_interactive: bool) -> Result<Arc<Interrupts>> {
        let interrupts = Arc::<Interrupts>::default();
        let caught = match ends {
            Ends::ThisShell => vec![SIGINT, SIGTERM, SIGHUP],
            Ends::ItsServer => vec![SIGINT],
        };
        let mut signals = Signals::new(caught).map_err(|e| format!("could not catch signals: {e}"))?;
        let watched = Arc::clone(&interrupts);
        let watcher = move || {
            for signal in signals.forever() {
                if signal == SIGINT && (watched.press() || is_interactive) {
                    continue;
                }
                terminal::restore();
                // Neither fails for a signal that exists.
                let _ = match ends {
                    Ends::ThisShell => emulate_default_handler(signal),
                    Ends::ItsServer => raise(SIGTERM),
                };
            }
        };
        let spawned = std::thread::Builder::new().name("interrupts".into()).spawn(watcher);
        spawned.map_err(|e| format!("could not start a thread: {e}"))?;
        Ok(interrupts)
    }

    /// Whether there was a statement to interrupt.
    fn press(&self) -> bool {
        self.pressed.store(true, Ordering::SeqCst);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(key) = running else { return false };
        match key.cancel() {
            Ok(()) => eprintln!("Cancel request sent"),
            Err(e) => eprintln!("Could not send cancel request: {e}"),
        }
        true
    }

    /// A statement begins that can be interrupted.
    pub fn begin(&self, key: &CancelKey) {
        self.pressed.store(false, Ordering::SeqCst);
        self.set(Some(key.clone()));
    }

    pub fn end(&self) {
        self.set(None);
    }

    /// Since the last statement began.
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::SeqCst)
    }

    fn set(&self, key: Option<CancelKey>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }
}
