//! The things that sessions leave for each other's clients.

use std::sync::Arc;

use super::ModelState;
use crate::turns::sync::Mutex;
use crate::turns::sync::atomic::{AtomicBool, Ordering};

type Call = Arc<dyn Fn() + Send + Sync>;

/// The things that others have left for a session.
pub(in crate::turns) struct Mailbox {
    letters: Mutex<usize>,
    is_filled: AtomicBool,
    call: Mutex<Option<Call>>,
}

impl Mailbox {
    pub fn new() -> Arc<Mailbox> {
        Arc::new(Mailbox { letters: Mutex::new(0), is_filled: AtomicBool::new(false), call: Mutex::new(None) })
    }

    pub(super) fn set_call(&self, call: Box<dyn Fn() + Send + Sync>) {
        *self.call.lock() = Some(call.into());
    }

    pub(super) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::SeqCst)
    }

    pub(super) fn take(&self) -> usize {
        let mut letters = self.letters.lock();
        self.is_filled.store(false, Ordering::SeqCst);
        std::mem::take(&mut *letters)
    }

    /// Calls the session if it was not called for an earlier letter that it has not taken.
    fn put(&self) {
        let mut letters = self.letters.lock();
        *letters += 1;
        let was_filled = self.is_filled.swap(true, Ordering::SeqCst);
        drop(letters);
        let call = self.call.lock().clone();
        if let Some(call) = call.filter(|_| !was_filled) {
            call();
        }
    }
}

impl ModelState {
    pub(super) fn tell_others(&self, own: &Arc<Mailbox>) {
        let all = self.mailboxes.lock().clone();
        all.iter().filter(|mailbox| !Arc::ptr_eq(mailbox, own)).for_each(|mailbox| mailbox.put());
    }
}
