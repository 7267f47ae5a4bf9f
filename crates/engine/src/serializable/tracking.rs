//! The state of a SERIALIZABLE transaction in this module.

use melba_threads::Mutex;
use melba_threads::atomic::{AtomicBool, Ordering};
use melba_types::Csn;

use super::Id;

/// State that a SERIALIZABLE transaction carries.
#[derive(Default)]
pub(crate) struct Tracking {
    pub read_only: AtomicBool,
    pub deferrable: AtomicBool,
    registered: Mutex<Option<(Id, Csn)>>,
    /// Lets operations pass that have nothing to announce.
    active: AtomicBool,
}

impl Tracking {
    pub fn registered(&self) -> Option<(Id, Csn)> {
        if self.active.load(Ordering::Acquire) { *self.registered.lock() } else { None }
    }

    pub fn set(&self, registered: Option<(Id, Csn)>) {
        *self.registered.lock() = registered;
        self.active.store(registered.is_some(), Ordering::Release);
    }

    pub fn take(&self) -> Option<(Id, Csn)> {
        self.active.store(false, Ordering::Release);
        self.registered.lock().take()
    }
}
