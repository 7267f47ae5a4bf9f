//! A group of connections: their sockets, and their pending work.
//!
//! A seat is a value that moves, so it is in exactly one place: parked in its group's table, in one of the group's queues, or
//! held by one thread. Its holder sends its answer.
//!
//! Invariants, all under the group's one lock:
//! 1. A parked seat has no unsent answer, and its socket was read until it was empty. Its next news move it to `ready`.
//! 2. News of a held seat are noted in its place in the table; it is not parked before they were handled. The same holds for a seat
//!    with something left by another session, which calls the seat afterwards; the call does nothing unless the seat is parked.
//! 3. Only the owner polls. `is_polling` is set while the queues are empty, and a thread that fills one meanwhile wakes the poller.
//! 4. The group changes its owner only while the owner does not poll, and while it is certain that the owner exists.

use std::collections::VecDeque;
use std::io::Result;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::preference::GroupPreference;
use super::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use super::sync::{Mutex, MutexGuard};
use super::workers::Worker;
use super::world::{News, PlantedBug, Poll, SendTogether, Served, Watch, World};
use crate::sender::ANSWERS_MAX;

/// A connection and the turns' knowledge of it.
pub(super) struct Seat<S> {
    pub id: u64,
    /// The group it belongs to.
    pub group: usize,
    pub served: S,
    pub preference: GroupPreference,
    /// Its last measured turn took long.
    pub has_long_turns: bool,
    /// Its socket may have bytes.
    pub has_news: bool,
    /// The client has closed its side.
    pub hung_up: bool,
    /// The connection is over when its answer was sent.
    pub ends: bool,
    /// When the session has waited too long for its client; `None`, too, when the client was not waited for yet.
    pub idle_until: Option<Duration>,
    /// Finds it wherever it is.
    pub whereabouts: Arc<Whereabouts>,
}

/// The group that a seat was last taken into: written before the seat is parked there.
pub(super) struct Whereabouts {
    pub seat: u64,
    pub group: AtomicUsize,
}

type SeatsOf<W> = Vec<Box<Seat<<W as World>::Served>>>;

/// The number of a thread that may own a group; other threads have none.
pub(super) type WorkerId = NonZeroU64;

/// A seat in its group's table.
struct SeatEntry<S> {
    /// `None`: it is held, which is to say in a queue or in a thread's hands.
    parked: Option<Box<Seat<S>>>,
    /// Its socket has news that came while it was held.
    has_news: bool,
    /// When the client was found to have closed its side.
    hung_up: Option<Duration>,
    watch: Arc<dyn Watch>,
}

pub(super) struct Group<W: World> {
    /// Its place in `Turns::groups`, and the processor of its owner.
    pub index: usize,
    pub poller: W::Poller,
    pub sender: Mutex<W::Sender>,
    pub state: Mutex<GroupState<W::Served>>,
    /// Its threads.
    pub workers: Mutex<Vec<Arc<Worker>>>,
}

pub(super) struct GroupState<S> {
    seats: hashbrown::HashMap<u64, SeatEntry<S>>,
    /// The thread that polls and serves.
    pub owner: Option<WorkerId>,
    is_polling: bool,
    /// The owner is a new thread that does not run yet, and perhaps cannot be started.
    pub is_starting: bool,
    /// The monitor's tick at which the owner began its current work.
    pub busy_since: u64,
    /// Turns since the monitor has last asked for them.
    turns: usize,
    /// Threads that wait to be called; the last one is the warmest.
    pub spares: Vec<Arc<Worker>>,
    pub is_stopped: bool,
    /// Seats to be served.
    ready: VecDeque<Box<Seat<S>>>,
    /// Seats whose answers are sent together.
    answering: Vec<Box<Seat<S>>>,
    committing: Vec<Box<Seat<S>>>,
    /// Seats whose commits were written by another thread.
    committed: Vec<Box<Seat<S>>>,
    /// Polls of the sockets since the first of those.
    commit_rounds: usize,
    /// Seats whose answers were deferred but not handed over (`PlantedBug::ForgetHeldAnswer`).
    #[cfg(test)]
    pub planted: Vec<u64>,
}

/// The owner's next step.
pub(super) enum Next<S> {
    Serve(Box<Seat<S>>),
    Answer(Vec<Box<Seat<S>>>),
    Commit(Vec<Box<Seat<S>>>),
    /// The log was written for these.
    Committed(Vec<Box<Seat<S>>>),
    Poll,
    /// Another thread owns the group now, or everything has stopped.
    Leave,
}

pub(super) const EVENTS_MAX: usize = 64;
/// Commits wait for others while there is other work, but not longer than this many polls of the sockets.
const COMMIT_ROUNDS_MAX: usize = 2;

impl<W: World> Group<W> {
    pub fn new(index: usize) -> Result<Arc<Group<W>>> {
        Ok(Arc::new(Group {
            index,
            poller: W::Poller::new()?,
            sender: Mutex::new(W::Sender::new()),
            state: Mutex::new(GroupState {
                seats: Default::default(),
                owner: None,
                is_polling: false,
                is_starting: false,
                busy_since: 0,
                turns: 0,
                spares: Vec::new(),
                is_stopped: false,
                ready: VecDeque::new(),
                answering: Vec::new(),
                committing: Vec::new(),
                committed: Vec::new(),
                commit_rounds: 0,
                #[cfg(test)]
                planted: Vec::new(),
            }),
            workers: Mutex::new(Vec::new()),
        }))
    }

    /// How many connections it has.
    pub fn len(&self) -> usize {
        self.state.lock().seats.len()
    }

    /// A seat that its caller holds becomes one of this group, whose owner watches its socket from now on.
    pub fn take_in(&self, seat: &mut Seat<W::Served>) -> Result<()> {
        seat.group = self.index;
        seat.whereabouts.group.store(self.index, Ordering::SeqCst);
        let place = SeatEntry { parked: None, has_news: false, hung_up: None, watch: seat.served.watch() };
        self.state.lock().seats.insert(seat.id, place);
        // Bytes in the socket are news again, even if the former group has reported them.
        self.poller.add(&seat.served.socket(), seat.id)
    }

    /// A seat that its caller holds leaves the group.
    pub fn let_go(&self, seat: &Seat<W::Served>) {
        self.poller.remove(&seat.served.socket());
        self.state.lock().seats.remove(&seat.id);
    }

    /// The next step of `worker`. Polls the sockets when there is nothing else to do. `tick`: the monitor's; `hands_over`:
    /// commits are left to another thread, and wait only for short turns.
    pub fn next(&self, world: &W, worker: WorkerId, tick: &AtomicU64, hands_over: bool, news: &mut Vec<News>) -> Next<W::Served> {
        let mut state = self.state.lock();
        if state.owner != Some(worker) || state.is_stopped {
            return Next::Leave;
        }
        state.busy_since = tick.load(Ordering::Relaxed);
        if !state.committed.is_empty() {
            return Next::Committed(std::mem::take(&mut state.committed));
        }
        let commits = !state.committing.is_empty();
        let next_is_short = state.ready.front().is_some_and(|next| !next.has_long_turns);
        let commits_now = commits && if hands_over { !next_is_short } else { state.commit_rounds >= COMMIT_ROUNDS_MAX };
        let answers_wait = next_is_short && !commits_now && state.answering.len() < ANSWERS_MAX;
        if state.has_answers() && !answers_wait {
            return Next::Answer(std::mem::take(&mut state.answering));
        }
        if commits_now {
            return Next::Commit(state.take_committing());
        }
        if let Some(seat) = state.ready.pop_front() {
            state.turns += 1;
            return Next::Serve(seat);
        }
        if commits && state.committing.len() == state.seats.len() {
            // No other connection's commit could join them.
            return Next::Commit(state.take_committing());
        }
        state.commit_rounds += usize::from(commits);
        state.is_polling = true;
        drop(state);
        self.poller.wait(!commits, EVENTS_MAX, news);
        let mut state = self.state.lock();
        state.is_polling = false;
        state.busy_since = tick.load(Ordering::Relaxed);
        for one in news.drain(..) {
            state.note_news(world, &one);
        }
        // The monitor has not given the group away meanwhile: it does not as long as the owner polls.
        match state.ready.is_empty() && commits {
            true => Next::Commit(state.take_committing()),
            false => Next::Poll,
        }
    }

    /// Takes seats back whose commits were written.
    pub fn give_back(&self, world: &W, seats: SeatsOf<W>) {
        let mut state = self.state.lock();
        state.committed.extend(seats);
        if !world.is_planted(PlantedBug::NoWake) {
            self.wake(&state);
        }
    }

    /// Leaves a seat's answer to be sent with those of others, if this thread is the owner and there are others.
    pub fn put_off_answer(
        &self,
        world: &W,
        worker: Option<WorkerId>,
        seat: Box<Seat<W::Served>>,
    ) -> Option<Box<Seat<W::Served>>> {
        let mut state = self.state.lock();
        if !state.is_owner(worker) || state.ready.is_empty() && !state.has_answers() {
            return Some(seat);
        }
        #[cfg(test)]
        if world.is_planted(PlantedBug::ForgetHeldAnswer) {
            state.planted.push(seat.id);
            return Some(seat);
        }
        let _ = world;
        state.answering.push(seat);
        None
    }

    /// Leaves a seat's commit to be ended with those of others, if this thread is the owner.
    pub fn put_off_commit(&self, worker: Option<WorkerId>, seat: Box<Seat<W::Served>>) -> Option<Box<Seat<W::Served>>> {
        let mut state = self.state.lock();
        if !state.is_owner(worker) {
            return Some(seat);
        }
        state.committing.push(seat);
        None
    }

    /// Parks a seat whose turn has ended, unless there were news meanwhile: then the seat is returned.
    pub fn park(&self, world: &W, seat: Box<Seat<W::Served>>) -> Option<Box<Seat<W::Served>>> {
        self.state.lock().park(world, seat)
    }

    /// Parks seats whose answers were sent. Those that have more to do are queued for the owner of the group.
    pub fn park_all(&self, world: &W, seats: impl IntoIterator<Item = Box<Seat<W::Served>>>) {
        let mut state = self.state.lock();
        for seat in seats {
            let goes_on = seat.ends || seat.hung_up || seat.served.has_answer() || seat.served.wants_turn();
            let goes_on = if goes_on { Some(seat) } else { state.park(world, seat) };
            state.ready.extend(goes_on);
        }
        self.wake_for_ready(world, &state);
    }

    /// The owner's deferred work, to be done at once.
    pub fn take_all(&self, worker: WorkerId) -> Option<(SeatsOf<W>, SeatsOf<W>)> {
        let mut state = self.state.lock();
        (state.owner == Some(worker)).then(|| {
            let mut committing = state.take_committing();
            committing.append(&mut state.committed);
            (std::mem::take(&mut state.answering), committing)
        })
    }

    /// Queues the seats whose sessions have waited too long for their clients, and tells the served ones of clients that have
    /// disconnected.
    pub fn end_idle(&self, world: &W) {
        let now = world.now();
        let mut state = self.state.lock();
        let GroupState { seats, ready, .. } = &mut *state;
        for place in seats.values_mut() {
            let is_late = |seat: &mut Box<Seat<W::Served>>| seat.idle_until.is_some_and(|until| until <= now);
            if let Some(mut seat) = place.parked.take_if(is_late) {
                seat.served.time_out();
                seat.ends = true;
                ready.push_back(seat);
            } else if let Some(when) = place.hung_up.filter(|_| place.parked.is_none()) {
                place.watch.client_is_gone(now.saturating_sub(when));
            }
        }
        self.wake_for_ready(world, &state);
    }

    /// Another session has left something for a seat: it gets a turn, if it is parked. The holder of a seat checks before it parks it.
    pub fn call(&self, world: &W, seat: u64) {
        let mut state = self.state.lock();
        if let Some(seat) = state.seats.get_mut(&seat).and_then(|place| place.parked.take()) {
            state.ready.push_back(seat);
            self.wake_for_ready(world, &state);
        }
    }

    /// Ends the threads.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopped = true;
        self.poller.wake();
        state.spares.drain(..).for_each(|spare| spare.wake.notify_one());
    }

    fn wake_for_ready(&self, world: &W, state: &MutexGuard<'_, GroupState<W::Served>>) {
        if !state.ready.is_empty() && !world.is_planted(PlantedBug::NoWake) {
            self.wake(state);
        }
    }

    /// Wakes a polling owner after another thread has put something into a queue.
    fn wake(&self, state: &MutexGuard<'_, GroupState<W::Served>>) {
        if state.is_polling {
            self.poller.wake();
        }
    }
}

impl<S: Served> GroupState<S> {
    fn is_owner(&self, worker: Option<WorkerId>) -> bool {
        worker.is_some() && self.owner == worker
    }

    fn has_answers(&self) -> bool {
        #[cfg(test)]
        if !self.planted.is_empty() {
            return true;
        }
        !self.answering.is_empty()
    }

    fn take_committing(&mut self) -> Vec<Box<Seat<S>>> {
        self.commit_rounds = 0;
        std::mem::take(&mut self.committing)
    }

    /// The turns that were begun since the last call.
    pub fn take_turns(&mut self) -> usize {
        std::mem::take(&mut self.turns)
    }

    /// The group's owner may be another from now on.
    pub fn may_be_given(&self, from: Option<WorkerId>) -> bool {
        self.owner == from && !self.is_polling && !self.is_starting
    }

    fn note_news<W: World<Served = S>>(&mut self, world: &W, news: &News) {
        // A seat that has just moved to another group has news there.
        let Some(place) = self.seats.get_mut(&news.id) else { return };
        if news.hung_up {
            place.hung_up.get_or_insert_with(|| world.now());
        }
        match place.parked.take() {
            Some(mut seat) => {
                seat.has_news = true;
                seat.hung_up = place.hung_up.is_some();
                self.ready.push_back(seat);
            }
            None => place.has_news = !world.is_planted(PlantedBug::DropNews),
        }
    }

    fn park<W: World<Served = S>>(&mut self, world: &W, mut seat: Box<Seat<S>>) -> Option<Box<Seat<S>>> {
        assert!(!seat.served.has_answer() || world.is_planted(PlantedBug::ForgetHeldAnswer), "parked with an answer");
        let place = self.seats.get_mut(&seat.id).expect("a seat that is held is in its group's table");
        if std::mem::take(&mut place.has_news) {
            seat.has_news = true;
            seat.hung_up = place.hung_up.is_some();
            return Some(seat);
        }
        if seat.served.has_call() && !world.is_planted(PlantedBug::ParkWithCall) {
            return Some(seat);
        }
        if seat.idle_until.is_none() {
            seat.idle_until = seat.served.idle_timeout().map(|timeout| world.now() + timeout);
        }
        place.parked = Some(seat);
        None
    }

    /// Takes a parked seat out of its place, if it is there.
    #[cfg(test)]
    pub fn take_parked(&mut self, id: u64) -> Option<Box<Seat<S>>> {
        self.seats.get_mut(&id)?.parked.take()
    }
}
