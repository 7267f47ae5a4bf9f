//! Connections served in turns by a few threads, so that statements that do not wait cost no thread switch.
//!
//! Connections belong to groups, as many as there are processors. A group has one owner at a time: a thread that polls the
//! group's sockets and serves whichever has sent something. Before a statement waits (for a lock, the disk, its client), the
//! owner gives the group to a spare thread and goes on with that one connection; a monitor does the same for an owner whose
//! statement runs long. So statements block and compute as if each connection had its thread, but only those that do need one.
//!
//! Each group has a processor, to which its threads are bound unless what they do takes long, and serves clients that run there
//! (`processors`).
//!
//! Commits are put off until the group has nothing else to do: then one write of the log serves all, and their answers go out.
//! On a disk that takes its time somebody else owns the group meanwhile, and the next commits gather until that write has ended.
//!
//! Invariants:
//! 1. A connection is served by one thread at a time: whoever moved its seat from `IDLE` to `BUSY`.
//! 2. Sockets are watched edge-triggered. A seat gets `IDLE` only when its socket had nothing left, and news that came
//!    meanwhile (`NEWS`) brings it back into the queue.
//! 3. Nothing is sent to a client as long as its session `is_committing`.
//! 4. An answer that is owed is sent before its connection's next message is handled, and before the owner polls or does what may
//!    take long.

mod group;
mod workers;

use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use melba_sql::session::Session;
use melba_sql::session::backends::Backends;
use melba_sql::session::client::Client as _;
use parking_lot::Mutex;

use crate::connection::{Connection, Turn};
use crate::processors::Processors;
use crate::sender::Answer;
use group::{BUSY, EVENTS_MAX, Group, IDLE, Next, Seat};
use workers::Worker;

/// A connection and its session.
pub(crate) struct Served {
    pub connection: Connection,
    pub session: Session,
    pub pid: i32,
    pub preference: Preference,
}

/// Which group would serve a connection best.
#[derive(Default)]
pub(crate) struct Preference {
    /// Turns until that is looked at again.
    until_look: u32,
    /// The answer of the last look: another group than its own.
    other: Option<usize>,
}

/// All connections of a server.
pub(crate) struct Turns {
    groups: Vec<Arc<Group>>,
    processors: Processors,
    backends: Arc<Backends>,
    next_worker: AtomicU64,
    next_seat: AtomicU64,
    /// Seats taken.
    connections: AtomicUsize,
    tick: AtomicU64,
    /// How long writing the log takes, in microseconds: a moving average.
    log_micros: AtomicU64,
    started: Instant,
    stopped: AtomicBool,
}

/// Statements that run longer give the group away.
const TICK: Duration = Duration::from_millis(5);
/// Giving the group to another thread costs about as much as waiting so long for the log.
const LOG_MICROS_MAX: u64 = 200;
/// Turns of a connection between two looks at which group would serve it best.
const LOOK_TURNS: u32 = 32;
/// Turns that take longer gain little from being near their client.
const SHORT_TURN: Duration = Duration::from_micros(100);

impl Turns {
    pub fn start(backends: &Arc<Backends>) -> std::io::Result<Arc<Turns>> {
        let count = std::thread::available_parallelism().map_or(1, |n| n.get());
        let turns = Arc::new(Turns {
            groups: (0..count).map(Group::new).collect::<std::io::Result<_>>()?,
            processors: Processors::of_this_process(count),
            backends: Arc::clone(backends),
            next_worker: AtomicU64::new(1),
            next_seat: AtomicU64::new(1),
            connections: AtomicUsize::new(0),
            tick: AtomicU64::new(1),
            log_micros: AtomicU64::new(0),
            started: Instant::now(),
            stopped: AtomicBool::new(false),
        });
        for group in &turns.groups {
            turns.start_group(group);
        }
        let monitor = Arc::clone(&turns);
        std::thread::Builder::new().name("turns".into()).spawn(move || monitor.monitor())?;
        Ok(turns)
    }

    /// Connections that are served.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Ends the threads; the connections have ended.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        for group in &self.groups {
            group.poller.wake();
            self.wake_spares(group);
        }
    }

    /// Takes over a connection whose session has greeted its client.
    pub fn add(self: &Arc<Self>, mut served: Box<Served>) {
        served.session.defer_commits();
        let group = self.groups.iter().min_by_key(|g| g.len()).expect("there is a group");
        let descriptor = served.connection.descriptor();
        let seat = Arc::new(Seat {
            id: self.next_seat.fetch_add(1, Ordering::Relaxed),
            group: AtomicUsize::new(group.index),
            state: AtomicU8::new(BUSY),
            has_long_turns: AtomicBool::new(false),
            hung_up: AtomicBool::new(false),
            idle_until: AtomicU64::new(0),
            served: Mutex::new(Some(served)),
        });
        self.connections.fetch_add(1, Ordering::SeqCst);
        group.take_in(&seat, descriptor);
        // The first turn looks for what came before the socket was watched.
        self.serve(group, &seat, 0, true);
    }

    fn own(self: &Arc<Self>, group: &Arc<Group>, worker: &Worker) {
        let mut news = Vec::with_capacity(EVENTS_MAX);
        while !self.stopped.load(Ordering::Relaxed) {
            match group.next(worker.id, &mut news) {
                Next::Serve(seat) => {
                    group.busy_since.store(self.tick.load(Ordering::Relaxed), Ordering::Relaxed);
                    self.serve(group, &seat, worker.id, true);
                }
                Next::Answer(seats) => self.answer(group, &seats),
                Next::Commit(seats) => {
                    group.busy_since.store(self.tick.load(Ordering::Relaxed), Ordering::Relaxed);
                    if self.log_micros.load(Ordering::Relaxed) > LOG_MICROS_MAX {
                        group.state.lock().is_flushing = true;
                        self.give(group, worker);
                    }
                    self.finish_commits(group, &seats);
                    // Only now what else they have in their buffers, which may take its time.
                    for seat in seats {
                        self.serve(group, &seat, worker.id, false);
                    }
                }
                Next::Poll => {}
                Next::Leave => return,
            }
        }
    }

    /// Serves a seat that this thread has made busy, until its client is waited for. `news`: its socket may have something.
    fn serve(&self, group: &Arc<Group>, seat: &Arc<Seat>, worker: u64, mut news: bool) {
        let mut held = seat.served.lock();
        let Some(served) = &mut *held else { return };
        let mut group = group;
        loop {
            let looked = served.preference.is_due().then(Instant::now);
            let hung_up = seat.hung_up.load(Ordering::Acquire);
            let Served { connection, session, .. } = &mut **served;
            let turn = catch_unwind(AssertUnwindSafe(|| connection.turn(session, news, hung_up)));
            news = false;
            let looked = looked.map(|began| began.elapsed());
            if let Some(took) = looked {
                seat.has_long_turns.store(took >= SHORT_TURN, Ordering::Relaxed);
            }
            match turn {
                Ok(Turn::Waits) => {
                    let timeout = served.session.idle_timeout();
                    let until = timeout.map_or(0, |t| (self.started.elapsed() + t).as_millis().max(1) as u64);
                    seat.idle_until.store(until, Ordering::Relaxed);
                    if !served.connection.owed().is_empty()
                        && !group.defer_answer(worker, seat)
                        && served.connection.flush().is_err()
                    {
                        break;
                    }
                    if let Some(took) = looked
                        && let Some(better) = self.better_group(served, group, took)
                    {
                        self.move_seat(seat, served.connection.descriptor(), group, better);
                        group = better;
                    }
                    if seat.state.compare_exchange(BUSY, IDLE, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                        return;
                    }
                    seat.state.store(BUSY, Ordering::SeqCst);
                    news = true;
                }
                Ok(Turn::Commits) => {
                    let mut state = group.state.lock();
                    if state.owner == worker {
                        state.committing.push(Arc::clone(seat));
                        return;
                    }
                    drop(state);
                    if !served.finish_commit() || served.connection.flush().is_err() {
                        break;
                    }
                }
                Ok(Turn::Ends) | Err(_) => break,
            }
        }
        self.end(seat, held.take());
    }

    /// The group to which a connection is to be moved after a turn that took so long, if two looks agree on it.
    ///
    /// Short turns are served on the client's processor (`Processors`), as long as that leaves the groups about even. Where turns
    /// are long, even groups count for more.
    fn better_group(&self, served: &mut Served, group: &Group, turn: Duration) -> Option<&Arc<Group>> {
        let even = self.connections().div_ceil(self.groups.len());
        let best = match turn < SHORT_TURN {
            true => {
                let of_client = self.processors.of_client(served.connection.descriptor());
                of_client.filter(|index| self.groups[*index].len() <= even + even / 4)
            }
            false if group.len() > even => self.groups.iter().min_by_key(|group| group.len()).map(|group| group.index),
            false => None,
        };
        let other = best.filter(|index| *index != group.index);
        let agreed = std::mem::replace(&mut served.preference.other, other) == other;
        other.filter(|_| agreed).map(|index| &self.groups[index])
    }

    /// For who has the seat busy.
    fn move_seat(&self, seat: &Arc<Seat>, socket: RawFd, from: &Group, to: &Group) {
        from.poller.remove(socket);
        from.state.lock().seats.remove(&seat.id);
        seat.group.store(to.index, Ordering::Relaxed);
        to.take_in(seat, socket);
    }

    /// Sends what they owe their clients.
    fn answer(&self, group: &Group, seats: &[Arc<Seat>]) {
        let mut late = Vec::new();
        {
            // Who serves one of them meanwhile sends its answer, too.
            let locked = seats.iter().filter_map(|seat| Some((seat, seat.served.try_lock()?)));
            let mut owing: Vec<_> =
                locked.filter(|(_, held)| held.as_ref().is_some_and(|s| !s.connection.owed().is_empty())).collect();
            let connections = owing.iter().filter_map(|(_, held)| held.as_ref()).map(|served| &served.connection);
            let answers: Vec<Answer<'_>> = connections.map(|c| (c.descriptor(), c.owed())).collect();
            let sent = group.sender.lock().send(&answers);
            for ((seat, held), sent) in owing.iter_mut().zip(sent) {
                if held.as_mut().is_some_and(|served| !served.connection.note_sent(sent)) {
                    late.push(*seat);
                }
            }
        }
        // The sockets of these are full or broken. Waiting for one of them gives the group away.
        for seat in late {
            if let Some(mut held) = seat.served.try_lock()
                && held.as_mut().is_some_and(|served| served.connection.flush().is_err())
            {
                self.end(seat, held.take());
            }
        }
    }

    /// One write of the log for all of them.
    fn finish_commits(&self, group: &Group, seats: &[Arc<Seat>]) {
        if let Some(session) = seats.first().and_then(|s| s.served.lock().as_ref().map(|s| Arc::clone(s.session.state()))) {
            let began = Instant::now();
            // One that fails is reported by each commit.
            let _ = session.engine.flush_log();
            let average = self.log_micros.load(Ordering::Relaxed);
            self.log_micros.store((average * 7 + began.elapsed().as_micros() as u64) / 8, Ordering::Relaxed);
        }
        group.end_flush();
        for seat in seats {
            let mut held = seat.served.lock();
            if held.as_mut().is_some_and(|served| !served.finish_commit()) {
                self.end(seat, held.take());
            }
        }
        self.answer(group, seats);
    }

    fn end(&self, seat: &Seat, served: Option<Box<Served>>) {
        let group = &self.groups[seat.group.load(Ordering::Relaxed)];
        group.state.lock().seats.remove(&seat.id);
        if let Some(mut served) = served {
            group.poller.remove(served.connection.descriptor());
            let _ = catch_unwind(AssertUnwindSafe(|| served.session.close_all()));
            self.backends.remove(served.pid);
        }
        self.connections.fetch_sub(1, Ordering::SeqCst);
    }

    /// Looks after the groups, and ends sessions that wait too long for their client.
    fn monitor(self: &Arc<Self>) {
        while !self.stopped.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
            let now = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
            self.groups.iter().for_each(|group| self.help(group, now));
            if now.is_multiple_of(8) {
                self.end_idle();
            }
        }
    }

    fn end_idle(&self) {
        let now = self.started.elapsed().as_millis() as u64;
        for group in &self.groups {
            let late = |s: &Seat| {
                let until = s.idle_until.load(Ordering::Relaxed);
                until != 0 && until <= now && s.state.load(Ordering::Relaxed) == IDLE
            };
            let found: Vec<Arc<Seat>> = group.state.lock().seats.values().filter(|s| late(s)).cloned().collect();
            for seat in found {
                if seat.state.compare_exchange(IDLE, BUSY, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                    let mut served = seat.served.lock().take();
                    if let Some(served) = &mut served {
                        served.connection.fail(served.session.idle_timeout_error());
                    }
                    self.end(&seat, served);
                }
            }
        }
    }
}

impl Preference {
    /// Counts a turn; true when it is time to look.
    fn is_due(&mut self) -> bool {
        let due = self.until_look == 0;
        self.until_look = if due { LOOK_TURNS } else { self.until_look - 1 };
        due
    }
}

impl Served {
    /// Waits for the commit, so that its answer can be sent; false when the connection has ended.
    fn finish_commit(&mut self) -> bool {
        match self.session.finish_commit() {
            Ok(()) => true,
            Err(error) => {
                self.connection.discard_output();
                self.connection.fail(error);
                false
            }
        }
    }
}
