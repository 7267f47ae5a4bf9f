//! The sessions' attempts, and the answers they got.

use crate::generate::Transaction;
use crate::state::State;

/// A transaction that may have committed: its COMMIT was sent.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub transaction: Transaction,
    /// When COMMIT was sent, by a clock that all sessions share.
    pub sent: u64,
    /// When it was told to have committed, by that clock. `None`: it was not told so.
    pub acknowledged: Option<u64>,
    /// How far the disk was then; a cut of the power at this place or later comes after the acknowledgement.
    pub place: u64,
}

/// A session's transactions since the state that is known.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub number: u32,
    /// Its initial state, and the transactions that led to it.
    pub base: State,
    pub done: Vec<i32>,
    pub attempts: Vec<Attempt>,
    /// The next transaction's number.
    pub next: i32,
}

impl Session {
    pub fn new(number: u32) -> Session {
        Session { number, ..Session::default() }
    }

    /// Its state when the first `attempts` attempts have committed.
    pub fn state_after(&self, attempts: usize) -> State {
        let mut state = self.base.clone();
        self.attempts[..attempts].iter().for_each(|a| a.transaction.apply(&mut state));
        state
    }

    /// Starts again from the remaining state: the first `attempts` attempts.
    pub fn rebase(&mut self, attempts: usize) {
        self.base = self.state_after(attempts);
        self.done.extend(self.attempts[..attempts].iter().map(|a| a.transaction.n));
        self.attempts.clear();
    }
}
