//! Events that background work reports to the program that runs the engine.

use std::sync::OnceLock;
use std::time::Duration;

/// Something that background work has done, or failed to do.
#[derive(Clone, Debug)]
pub enum BackgroundEvent {
    /// The row store's versions became segments.
    Flushed { trees: usize, segments: usize, bytes: u64, took: Duration },
    /// Segments of a tree were rewritten.
    Merged { tree: u64, inputs: usize, outputs: usize, bytes_before: u64, bytes_after: u64, took: Duration },
    /// A step failed, and is tried again; reported once for several equal failures in a row.
    Failed { step: &'static str, error: String },
    /// Nothing more is accepted.
    Poisoned { cause: String },
}

/// Hears of events on the thread where they happen.
pub type EventWatch = dyn Fn(&BackgroundEvent) + Send + Sync;

/// The receiver of events; none at first.
#[derive(Default)]
pub(crate) struct Events(OnceLock<Box<EventWatch>>);

impl Events {
    /// The first watch stays.
    pub fn set(&self, watch: Box<EventWatch>) {
        let _ = self.0.set(watch);
    }

    pub fn tell(&self, event: impl FnOnce() -> BackgroundEvent) {
        if let Some(watch) = self.0.get() {
            watch(&event());
        }
    }
}
