//! A group of connections: their sockets, and what they wait for.

use std::collections::VecDeque;
use std::io::Result;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::Served;
use super::workers::Workers;
use crate::poller::{News, Poller};
use crate::sender::{ANSWERS_MAX, Sender};

/// A connection's place in its group.
pub(super) struct Seat {
    pub id: u64,
    /// The group it belongs to; changed by who has it busy.
    pub group: AtomicUsize,
    pub state: AtomicU8,
    /// Its last turn that was looked at took long.
    pub has_long_turns: AtomicBool,
    /// The client has closed its side.
    pub hung_up: AtomicBool,
    /// When the session has waited too long for its client, in milliseconds after the start; 0: never.
    pub idle_until: AtomicU64,
    pub served: Mutex<Option<Box<Served>>>,
}

pub(super) const IDLE: u8 = 0;
pub(super) const BUSY: u8 = 1;
const NEWS: u8 = 2;

pub(super) struct Group {
    /// Its place in `Turns::groups`, and the processor of its owner.
    pub index: usize,
    pub poller: Poller,
    pub sender: Mutex<Sender>,
    pub state: Mutex<GroupState>,
    /// Its threads.
    pub workers: Mutex<Workers>,
    /// The monitor's tick at which the owner began what it does; 0 while it polls.
    pub busy_since: AtomicU64,
}

#[derive(Default)]
pub(super) struct GroupState {
    pub seats: hashbrown::HashMap<u64, Arc<Seat>>,
    /// Who polls and serves; 0: nobody.
    pub owner: u64,
    pub ready: VecDeque<Arc<Seat>>,
    /// Seats that owe their clients answers, which are sent together.
    pub answering: Vec<Arc<Seat>>,
    pub committing: Vec<Arc<Seat>>,
    /// A thread without the group writes the log for earlier commits; these wait for it and go together then.
    pub is_flushing: bool,
    /// Times the sockets were looked at since the first of those.
    pub commit_rounds: usize,
}

/// What an owner does next.
pub(super) enum Next {
    Serve(Arc<Seat>),
    Answer(Vec<Arc<Seat>>),
    Commit(Vec<Arc<Seat>>),
    Poll,
    /// Somebody else owns the group now.
    Leave,
}

pub(super) const EVENTS_MAX: usize = 64;
/// Commits wait for others while there is other work, but not longer than this many looks at the sockets.
const COMMIT_ROUNDS_MAX: usize = 2;

impl Group {
    pub fn new(index: usize) -> Result<Arc<Group>> {
        Ok(Arc::new(Group {
            index,
            poller: Poller::new()?,
            sender: Mutex::new(Sender::new()),
            state: Mutex::default(),
            workers: Mutex::default(),
            busy_since: AtomicU64::new(0),
        }))
    }

    /// How many connections it has.
    pub fn len(&self) -> usize {
        self.state.lock().seats.len()
    }

    /// A seat that its caller has busy becomes one of this group, whose owner watches its socket from now on.
    pub fn take_in(&self, seat: &Arc<Seat>, socket: RawFd) {
        self.state.lock().seats.insert(seat.id, Arc::clone(seat));
        if self.poller.add(socket, seat.id).is_err() {
            seat.hung_up.store(true, Ordering::SeqCst);
        }
    }

    pub fn next(&self, worker: u64, news: &mut Vec<News>) -> Next {
        let commits = {
            let mut state = self.state.lock();
            if state.owner != worker {
                return Next::Leave;
            }
            let commits = !state.committing.is_empty() && !state.is_flushing;
            let commits_now = commits && state.commit_rounds >= COMMIT_ROUNDS_MAX;
            let next_is_short = state.ready.front().is_some_and(|next| !next.has_long_turns.load(Ordering::Relaxed));
            let answers_wait = next_is_short && !commits_now && state.answering.len() < ANSWERS_MAX;
            if !state.answering.is_empty() && !answers_wait {
                return Next::Answer(std::mem::take(&mut state.answering));
            }
            if commits_now {
                return Next::Commit(state.take_committing());
            }
            if let Some(seat) = state.ready.pop_front() {
                return Next::Serve(seat);
            }
            if commits && state.committing.len() == state.seats.len() {
                // There is nobody whose commit could join them.
                return Next::Commit(state.take_committing());
            }
            state.commit_rounds += usize::from(commits);
            commits
        };
        self.busy_since.store(0, Ordering::Relaxed);
        self.poller.wait(!commits, EVENTS_MAX, news);
        let mut state = self.state.lock();
        for one in news.drain(..) {
            let Some(seat) = state.seats.get(&one.id).cloned() else { continue };
            if one.hung_up {
                seat.hung_up.store(true, Ordering::Release);
            }
            if seat.notify() {
                state.ready.push_back(seat);
            }
        }
        if state.owner != worker {
            // The monitor was late: the new owner may be polling already.
            self.wake_for(&state);
            return Next::Leave;
        }
        match state.ready.is_empty() && commits {
            true => Next::Commit(state.take_committing()),
            false => Next::Poll,
        }
    }

    /// The log was written for the earlier commits.
    pub fn end_flush(&self) {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.is_flushing) && !state.committing.is_empty() {
            self.poller.wake();
        }
    }

    /// Leaves a seat's answer to be sent with those of others, if this thread is the owner and there are others.
    pub fn defer_answer(&self, worker: u64, seat: &Arc<Seat>) -> bool {
        let mut state = self.state.lock();
        let defers = state.owner == worker && (!state.ready.is_empty() || !state.answering.is_empty());
        if defers {
            state.answering.push(Arc::clone(seat));
        }
        defers
    }

    /// Tells an owner that polls of what somebody else has put into its queue.
    pub fn wake_for(&self, state: &GroupState) {
        if !state.ready.is_empty() {
            self.poller.wake();
        }
    }
}

impl GroupState {
    pub fn take_committing(&mut self) -> Vec<Arc<Seat>> {
        self.commit_rounds = 0;
        std::mem::take(&mut self.committing)
    }
}

impl Seat {
    /// News of its socket: true when it is to be queued.
    pub fn notify(&self) -> bool {
        loop {
            let next = if self.state.load(Ordering::SeqCst) == IDLE { (IDLE, BUSY) } else { (BUSY, NEWS) };
            match self.state.compare_exchange(next.0, next.1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return next.1 == BUSY,
                Err(NEWS) => return false,
                Err(_) => {}
            }
        }
    }
}
