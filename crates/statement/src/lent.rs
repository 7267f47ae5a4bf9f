//! Notices go out where they are raised: while a session runs something it lends its client to the thread that runs it.
//!
//! A notice is raised deep below the frame that has the client, under operators and functions that know no client. What runs between two
//! messages runs inside of `Session::lend`, which keeps the client at hand for `SessionState::notice`: rows and other messages that are
//! there already go out before the notice, and all of it at once, as in PostgreSQL. A client that does not read is waited for as when rows
//! fill the output. Notices of other threads that work for a statement, and those raised outside of any loan, wait in
//! `SessionState::notices` for the next loan or message.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

use melba_encoding::Encoding;
use melba_types::{DbError, RarelyUsed};

use super::client::Client;

/// A client that this thread may send notices to.
#[derive(Clone, Copy)]
struct Loan {
    client: NonNull<dyn Client>,
    /// Where the notices that wait are: those of its session, as the same thread may run statements of another session below this one's.
    waiting: *const RarelyUsed<Vec<DbError>>,
    /// What positions refer to.
    source: NonNull<Arc<str>>,
}

thread_local! {
    static LOAN: Cell<Option<Loan>> = const { Cell::new(None) };
    static SENT: Cell<u64> = const { Cell::new(0) };
}

/// Puts back what was lent before, also when what ran has panicked.
struct Restore(Option<Loan>);

impl Drop for Restore {
    fn drop(&mut self) {
        LOAN.set(self.0.take());
    }
}

/// How many notices this thread has sent where they were raised.
pub(super) fn notices_sent() -> u64 {
    SENT.get()
}

/// Runs what may raise notices of the session whose notices wait there; positions in them refer to the source.
pub fn lend<R>(client: &mut dyn Client, waiting: &RarelyUsed<Vec<DbError>>, source: &Arc<str>, run: impl FnOnce() -> R) -> R {
    let client: NonNull<dyn Client + '_> = NonNull::from(client);
    // SAFETY: the types differ in a lifetime only. The pointer is in `LOAN` no longer than `_restore` lives, that is within the borrow.
    let client = unsafe { std::mem::transmute::<NonNull<dyn Client + '_>, NonNull<dyn Client>>(client) };
    let _restore = Restore(LOAN.replace(Some(Loan { client, waiting, source: NonNull::from(source) })));
    run()
}

/// Sends a notice if this thread has the client of the session whose notices wait there; gives it back otherwise. What waits goes first.
/// False when the client has gone.
pub fn send(notice: DbError, waiting: &RarelyUsed<Vec<DbError>>, encoding: Encoding) -> Result<bool, DbError> {
    // Taken while it is in use: what sends raises nothing that would be sent.
    let lent = LOAN.take();
    let _restore = Restore(lent);
    let Some(mut loan) = lent.filter(|loan| std::ptr::eq(loan.waiting, waiting)) else { return Err(notice) };
    // SAFETY: `lend` is a frame of this thread further up, which has the client and the source borrowed until its `Restore` is dropped and
    // touches neither meanwhile: what it runs cannot name the client. Nobody else has the pointer, which is out of `LOAN` now.
    let (client, source) = unsafe { (loan.client.as_mut(), loan.source.as_ref()) };
    client.output().set_encoding(encoding);
    for notice in waiting.take().into_iter().chain([notice]) {
        client.output().report(&melba_parse::position_in_characters(notice, source));
    }
    SENT.set(SENT.get() + 1);
    Ok(client.flush().is_ok())
}
