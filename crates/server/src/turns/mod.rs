//! Connections served in turns by a few threads, so that statements that do not wait cost no thread switch.
//!
//! Connections belong to groups, as many as there are processors. A group has one owner at a time: a thread that polls the
//! group's sockets and serves those that have sent something. Before a statement waits (for a lock, the disk, its client), the
//! owner gives the group to a spare thread and continues with that one connection; a monitor does the same for an owner whose
//! statement runs long. So statements block and compute as if each connection had its thread, but only such statements need one.
//!
//! Each group has a processor, to which its threads are bound unless their work takes long, and serves clients that run there
//! (`processors`).
//!
//! Commits are deferred until the group has nothing else to do: then one write of the log serves all, and their answers are sent.
//! On a slow disk one thread writes the log for the commits of all groups (`commits`).
//!
//! Invariants (those of a group's seats are in `group`):
//! 1. A connection is in one place, which serves it and sends its answers: a seat is a value that moves. No thread reads a seat
//!    that another thread holds.
//! 2. Sockets are watched edge-triggered. A seat is parked only when its socket had nothing left and no news came meanwhile.
//! 3. Nothing is sent to a client as long as its session's commit has not ended.
//! 4. An answer is sent before its connection's next message is handled, and before the owner polls or does work that may take long.
//! 5. A thread that may have to wait for a lock or a client holds one seat. It holds several only while it sends without waiting,
//!    or waits for the log.
//!
//! 6. A seat for which another session has left something gets a turn, wherever it is: the thing is stored before the seat is
//!    called, the seat's group is known before it is parked, and parking checks for such things.
//!
//! `model` runs all of this under a checker that chooses the order of the threads' steps.

mod commits;
mod group;
#[cfg(test)]
mod model;
mod preference;
mod sync;
mod workers;
pub(crate) mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::sender::ANSWERS_MAX;
use commits::Commits;
use group::{EVENTS_MAX, Group, Next, Seat, Whereabouts, WorkerId};
use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use workers::Worker;
use world::{PlantedBug, SendTogether, Served, Turn, World};

/// All connections of a server.
pub(crate) struct Turns<W: World> {
    /// Itself, for callers of its seats.
    this: Weak<Turns<W>>,
    world: W,
    groups: Vec<Arc<Group<W>>>,
    next_worker: AtomicU64,
    next_seat: AtomicU64,
    /// Seats taken.
    connections: AtomicUsize,
    tick: AtomicU64,
    commits: Commits<SeatOf<W>>,
    stopped: AtomicBool,
}

type SeatOf<W> = Box<Seat<<W as World>::Served>>;

/// Statements that run longer give the group away.
const TICK: Duration = Duration::from_millis(5);
/// With as many turns a tick the connections need the processors that long statements have: a thousand a second.
const MANY_TURNS: usize = 5;
/// Ticks between two checks for sessions that wait too long.
const IDLE_TICKS: u64 = 8;
/// Turns that take longer gain little from being near their client.
const SHORT_TURN: Duration = Duration::from_micros(100);

impl<W: World> Turns<W> {
    /// As many groups as `count` says, each with its first thread, and the monitor.
    pub fn start(world: W, count: usize) -> std::io::Result<Arc<Turns<W>>> {
        let groups = (0..count).map(Group::new).collect::<std::io::Result<_>>()?;
        let turns = Arc::new_cyclic(|this| Turns {
            this: Weak::clone(this),
            world,
            groups,
            next_worker: AtomicU64::new(1),
            next_seat: AtomicU64::new(1),
            connections: AtomicUsize::new(0),
            tick: AtomicU64::new(1),
            commits: Commits::new(),
            stopped: AtomicBool::new(false),
        });
        for group in &turns.groups {
            turns.start_group(group)?;
        }
        let writer = Arc::clone(&turns);
        turns.world.start_thread("commits".into(), Box::new(move || writer.write_commits()))?;
        let monitor = Arc::clone(&turns);
        turns.world.start_thread("turns".into(), Box::new(move || monitor.monitor()))?;
        Ok(turns)
    }

    /// Connections that are served.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Ends the threads; the connections have ended.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.groups.iter().for_each(|group| group.stop());
        self.commits.stop();
    }

    /// Takes over a connection whose session has greeted its client.
    pub fn add(&self, mut served: W::Served) {
        let group = self.groups.iter().min_by_key(|g| g.len()).expect("there is a group");
        let id = self.next_seat.fetch_add(1, Ordering::Relaxed);
        let whereabouts = Arc::new(Whereabouts { seat: id, group: AtomicUsize::new(group.index) });
        served.set_call(self.call(&whereabouts));
        let mut seat = Box::new(Seat {
            id,
            group: group.index,
            served,
            preference: Default::default(),
            has_long_turns: false,
            // The first turn reads bytes that came before the socket was watched.
            has_news: true,
            hung_up: false,
            ends: false,
            idle_until: None,
            whereabouts,
        });
        self.connections.fetch_add(1, Ordering::SeqCst);
        match group.take_in(&mut seat) {
            Ok(()) => self.serve(seat, None),
            Err(_) => self.end(seat),
        }
    }

    /// Gives a seat a turn after something was left for it.
    fn call(&self, whereabouts: &Arc<Whereabouts>) -> Box<dyn Fn() + Send + Sync> {
        let (turns, whereabouts) = (Weak::clone(&self.this), Arc::clone(whereabouts));
        let first = whereabouts.group.load(Ordering::SeqCst);
        Box::new(move || {
            let Some(turns) = turns.upgrade() else { return };
            let group = match turns.world.is_planted(PlantedBug::CallFirstGroup) {
                true => first,
                false => whereabouts.group.load(Ordering::SeqCst),
            };
            turns.groups[group].call(&turns.world, whereabouts.seat);
        })
    }

    fn own(self: &Arc<Self>, group: &Arc<Group<W>>, worker: &Worker) {
        let mut news = Vec::with_capacity(EVENTS_MAX);
        loop {
            match group.next(&self.world, worker.id, &self.tick, self.commits.is_log_slow(), &mut news) {
                Next::Serve(seat) => self.serve(seat, Some(worker.id)),
                Next::Answer(seats) => self.answer(group, seats),
                Next::Commit(seats) if self.commits.is_log_slow() => self.commits.put(&self.world, seats),
                Next::Commit(seats) => self.write_and_finish(group, seats),
                Next::Committed(seats) => self.finish_commits(group, seats),
                Next::Poll => {}
                Next::Leave => return,
            }
        }
    }

    /// Serves a seat until its client is waited for.
    fn serve(&self, mut seat: SeatOf<W>, worker: Option<WorkerId>) {
        loop {
            // An answer that could not be sent at once, with the answers of others.
            if seat.served.has_answer() && !self.send_answer(&mut seat) || seat.ends {
                return self.end(seat);
            }
            let looked = seat.preference.is_due(self.world.look_turns()).then(|| self.world.now());
            let (news, hung_up) = (std::mem::take(&mut seat.has_news), seat.hung_up);
            if news {
                seat.idle_until = None;
            }
            let turn = catch_unwind(AssertUnwindSafe(|| seat.served.turn(news, hung_up)));
            let took = looked.map(|began| self.world.now().saturating_sub(began));
            if let Some(took) = took {
                seat.has_long_turns = took >= SHORT_TURN;
            }
            let given_back = match turn {
                Ok(Turn::Waits) => {
                    if let Some(took) = took
                        && let Some(better) = self.better_group(&mut seat, took)
                        && !self.move_seat(&mut seat, better)
                    {
                        return self.end(seat);
                    }
                    self.end_turn(seat, worker)
                }
                Ok(Turn::Commits) => match self.groups[seat.group].put_off_commit(worker, seat) {
                    None => return,
                    Some(seat) if self.commits.is_log_slow() => return self.commits.put(&self.world, vec![seat]),
                    Some(mut seat) => {
                        seat.ends = !self.finish_commit(&mut seat);
                        Some(seat)
                    }
                },
                Ok(Turn::Ends) | Err(_) => return self.end(seat),
            };
            match given_back {
                Some(again) => seat = again,
                None => return,
            }
        }
    }

    /// The client is waited for: sends the answer, or leaves it to be sent with others', and parks the seat. Returns it if there
    /// is more to do.
    fn end_turn(&self, mut seat: SeatOf<W>, worker: Option<WorkerId>) -> Option<SeatOf<W>> {
        let group = &self.groups[seat.group];
        if seat.served.has_answer() {
            seat = group.put_off_answer(&self.world, worker, seat)?;
            if self.must_send(&seat) && !self.send_answer(&mut seat) {
                self.end(seat);
                return None;
            }
        }
        group.park(&self.world, seat)
    }

    /// Always, except for a planted bug.
    fn must_send(&self, seat: &Seat<W::Served>) -> bool {
        #[cfg(test)]
        if self.world.is_planted(PlantedBug::ForgetHeldAnswer) {
            // Between the two, the thread did other work.
            self.groups.iter().for_each(|group| group.end_idle(&self.world));
            return !self.groups[seat.group].state.lock().planted.contains(&seat.id);
        }
        let _ = seat;
        true
    }

    /// False when the connection is over.
    fn send_answer(&self, seat: &mut Seat<W::Served>) -> bool {
        catch_unwind(AssertUnwindSafe(|| seat.served.send_answer())).unwrap_or(false)
    }

    /// False when it has failed.
    fn finish_commit(&self, seat: &mut Seat<W::Served>) -> bool {
        catch_unwind(AssertUnwindSafe(|| seat.served.finish_commit())).unwrap_or(false)
    }

    /// The group to which a connection is to be moved after a turn of this duration, if two checks agree on it.
    ///
    /// Short turns are served on the client's processor (`Processors`), as long as that leaves the groups about even. A client that
    /// sends its next message without waiting for an answer computes while it is served, and needs that processor itself. Where
    /// turns are long, even groups count for more.
    fn better_group(&self, seat: &mut Seat<W::Served>, turn: Duration) -> Option<usize> {
        let group = &self.groups[seat.group];
        let even = self.connections().div_ceil(self.groups.len());
        let smallest = |but: Option<usize>| {
            let others = self.groups.iter().filter(|group| Some(group.index) != but);
            others.min_by_key(|group| group.len()).map(|group| group.index)
        };
        let best = if turn < SHORT_TURN {
            let of_client = self.world.processor_of(&seat.served.socket());
            let near = match seat.served.has_answer() {
                true => of_client,
                false if of_client == Some(seat.group) => smallest(of_client),
                false => None,
            };
            near.filter(|index| self.groups[*index].len() <= even + even / 4)
        } else if group.len() > even {
            smallest(None)
        } else {
            None
        };
        seat.preference.agree(best.filter(|index| *index != seat.group))
    }

    /// False when its socket cannot be watched any more.
    fn move_seat(&self, seat: &mut Seat<W::Served>, to: usize) -> bool {
        self.groups[seat.group].let_go(seat);
        self.groups[to].take_in(seat).is_ok()
    }

    /// Sends the answers that can be sent without waiting. Seats whose sockets are full or broken are served alone.
    fn answer(&self, group: &Group<W>, mut seats: Vec<SeatOf<W>>) {
        #[cfg(test)]
        self.answer_planted(group);
        for some in seats.chunks_mut(ANSWERS_MAX) {
            let answering = some.iter_mut().map(|seat| &mut seat.served).filter(|served| served.has_answer());
            group.sender.lock().send(answering.collect());
        }
        group.park_all(&self.world, seats);
    }

    /// The answers that `PlantedBug::ForgetHeldAnswer` has left: only of seats that are not held.
    #[cfg(test)]
    fn answer_planted(&self, group: &Group<W>) {
        let put_off = std::mem::take(&mut group.state.lock().planted);
        for id in put_off {
            let seat = group.state.lock().take_parked(id);
            if let Some(mut seat) = seat {
                group.sender.lock().send(vec![&mut seat.served]);
                group.park_all(&self.world, [seat]);
            }
        }
    }

    /// Writes the log for all commits that have begun. A panic is one of each commit, which checks for itself.
    fn write_log(&self, of: &Seat<W::Served>) {
        let began = self.world.now();
        let _ = catch_unwind(AssertUnwindSafe(|| of.served.flush_log()));
        self.commits.note_write(self.world.now().saturating_sub(began));
    }

    /// One write of the log for all of them.
    fn write_and_finish(&self, group: &Group<W>, mut seats: Vec<SeatOf<W>>) {
        if self.world.is_planted(PlantedBug::AnswerBeforeCommit) {
            group.sender.lock().send(seats.iter_mut().map(|seat| &mut seat.served).collect());
        }
        if let Some(seat) = seats.first() {
            self.write_log(seat);
        }
        self.finish_commits(group, seats);
    }

    /// Ends commits for which the log was written.
    fn finish_commits(&self, group: &Group<W>, mut seats: Vec<SeatOf<W>>) {
        for seat in &mut seats {
            seat.ends = !self.finish_commit(seat);
        }
        if self.world.is_planted(PlantedBug::ServeWhileHolding) {
            return seats.into_iter().for_each(|seat| self.serve(seat, None));
        }
        self.answer(group, seats);
    }

    /// The life of the thread that writes the log for all groups (`commits`).
    fn write_commits(&self) {
        while let Some(mut seats) = self.commits.take(&self.world) {
            if self.world.is_planted(PlantedBug::AnswerBeforeCommit) {
                seats.iter_mut().for_each(|seat| assert!(seat.served.send_answer()));
            }
            if let Some(seat) = seats.first() {
                self.write_log(seat);
            }
            let others_wait = self.commits.note_written(&self.world, seats.len());
            for group in &self.groups {
                let (own, others) = seats.into_iter().partition::<Vec<SeatOf<W>>, _>(|seat| seat.group == group.index);
                seats = others;
                match others_wait {
                    _ if own.is_empty() => {}
                    true => group.give_back(&self.world, own),
                    // Nothing else is to be done here, and to wake another thread takes longer.
                    false => self.finish_commits(group, own),
                }
            }
        }
    }

    fn end(&self, mut seat: SeatOf<W>) {
        self.groups[seat.group].let_go(&seat);
        let _ = catch_unwind(AssertUnwindSafe(|| seat.served.close()));
        self.connections.fetch_sub(1, Ordering::SeqCst);
    }

    /// Looks after the groups, and ends sessions that wait too long for their client.
    fn monitor(self: &Arc<Self>) {
        while !self.stopped.load(Ordering::SeqCst) {
            self.world.sleep(TICK);
            let now = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
            let turns: usize = self.groups.iter().map(|group| group.state.lock().take_turns()).sum();
            let is_crowded = turns >= MANY_TURNS;
            if is_crowded {
                self.world.lower_helpers();
            }
            self.groups.iter().for_each(|group| self.help(group, now, is_crowded));
            if now.is_multiple_of(IDLE_TICKS) {
                self.groups.iter().for_each(|group| group.end_idle(&self.world));
            }
        }
    }
}
