//! The threads of the groups: owners, threads that serve a connection whose statement waits or runs long, and spare ones.
//!
//! A thread stays with its group, and is bound to the group's processor except during long work. Beside many
//! short turns one that has computed for long gets a low priority, so that those have the processors first. It ends with its work, because a
//! priority cannot be raised.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use melba_threads::Scheduler;

use super::Turns;
use super::group::{Group, GroupState, WorkerId};
use super::sync::atomic::{AtomicI32, Ordering};
use super::sync::{Condvar, Mutex};
use super::world::World;

/// A thread of a group.
pub(super) struct Worker {
    pub id: WorkerId,
    /// The kernel's number; 0 before the thread runs.
    thread: AtomicI32,
    away: Mutex<Away>,
    /// It is no longer a spare thread, or everything has stopped.
    pub wake: Condvar,
}

/// What a thread does that has given its group away.
#[derive(Default)]
struct Away {
    /// The monitor's tick at which it gave it away, while it still serves a connection; 0: it has nothing to do with one.
    since: u64,
    /// It may run on any processor.
    is_unbound: bool,
    /// Its processor time when the monitor found it to be away for long.
    time: Option<Duration>,
    has_low_priority: bool,
}

/// The group that a thread owns, or has just owned.
struct Owned<W: World> {
    turns: Arc<Turns<W>>,
    group: Arc<Group<W>>,
    worker: Arc<Worker>,
}

/// The result of an attempt to give a group away.
#[derive(PartialEq, Eq)]
enum Given {
    Yes,
    /// Another thread already owns it.
    NotMine,
    /// There can be no further thread.
    NoThread,
}

/// Spare threads that a group keeps however long they wait.
const SPARES_KEPT: usize = 4;
/// Others end when they were not needed for this long.
const SPARE_TIME: Duration = Duration::from_secs(10);
/// The processor time of a statement, after its first ticks, from which on it leaves the processors to others.
const LONG_WORK: Duration = Duration::from_millis(10);
/// Threads of a group that the monitor looks after in one tick. A look takes a system call, and a thousand sessions may wait for locks:
/// with a look at each of their threads in each tick the monitor took 80 ms of a second.
const LOOKED_AFTER_MAX: usize = 32;

impl Worker {
    fn new(id: WorkerId) -> Arc<Worker> {
        Arc::new(Worker { id, thread: AtomicI32::new(0), away: Mutex::new(Away::default()), wake: Condvar::new() })
    }
}

impl<W: World> Turns<W> {
    /// Starts the first owner of a group.
    pub(super) fn start_group(self: &Arc<Self>, group: &Arc<Group<W>>) -> std::io::Result<()> {
        match self.give_if(group, |state| state.may_be_given(None), None) {
            Given::NoThread => Err(std::io::Error::other("no thread can be started")),
            _ => Ok(()),
        }
    }

    /// Makes a spare thread the owner, if `from` still is; false when there can be no further thread.
    pub(super) fn give(self: &Arc<Self>, group: &Arc<Group<W>>, from: &Worker) -> bool {
        let given = self.give_if(group, |state| state.may_be_given(Some(from.id)), Some(from.id));
        if given == Given::Yes {
            from.away.lock().since = self.tick.load(Ordering::Relaxed);
        }
        given != Given::NoThread
    }

    fn give_if(
        self: &Arc<Self>,
        group: &Arc<Group<W>>,
        may: impl Fn(&GroupState<W::Served>) -> bool,
        from: Option<WorkerId>,
    ) -> Given {
        let worker = {
            let mut state = group.state.lock();
            if !may(&state) {
                return Given::NotMine;
            }
            state.busy_since = self.tick.load(Ordering::Relaxed);
            if let Some(spare) = state.spares.pop() {
                state.owner = Some(spare.id);
                drop(state);
                spare.wake.notify_one();
                return Given::Yes;
            }
            let id = self.next_worker.fetch_add(1, Ordering::Relaxed);
            let worker = Worker::new(WorkerId::new(id).expect("they are counted from 1"));
            state.owner = Some(worker.id);
            state.is_starting = true;
            worker
        };
        let (turns, of, started) = (Arc::clone(self), Arc::clone(group), Arc::clone(&worker));
        group.workers.lock().push(Arc::clone(&worker));
        let spawned = self.world.start_thread(format!("sessions {}", worker.id), Box::new(move || turns.work(of, started)));
        if spawned.is_ok() {
            return Given::Yes;
        }
        let mut state = group.state.lock();
        state.is_starting = false;
        // Too many threads. The thread that was to give the group away may itself be spare by now.
        let spare = state.spares.pop();
        state.owner = spare.as_ref().map(|spare| spare.id).or(from);
        drop(state);
        group.forget(&worker);
        match spare {
            Some(spare) => spare.wake.notify_one(),
            // It continues as the owner after its wait.
            None => return Given::NoThread,
        }
        Given::Yes
    }

    /// A thread's life.
    fn work(self: &Arc<Self>, group: Arc<Group<W>>, worker: Arc<Worker>) {
        worker.thread.store(self.world.thread_number(), Ordering::Relaxed);
        self.world.bind(group.index);
        let owned = Owned { turns: Arc::clone(self), group: Arc::clone(&group), worker: Arc::clone(&worker) };
        self.world.set_scheduler(Some(Arc::new(owned)));
        group.state.lock().is_starting = false;
        loop {
            // Errors of clients do not come here; after any panic the group continues.
            if catch_unwind(AssertUnwindSafe(|| self.own(&group, &worker))).is_err() {
                self.world.note_panic();
            }
            let away = std::mem::take(&mut *worker.away.lock());
            if away.is_unbound {
                self.world.bind(group.index);
            }
            if !group.is_called(&worker, away.has_low_priority) {
                group.forget(&worker);
                self.world.set_scheduler(None);
                return;
            }
        }
    }

    /// Gives a group away whose owner has been busy for long, and looks after the threads whose statements take long.
    /// `now`: the monitor's tick; `is_crowded`: the server has many short turns.
    pub(super) fn help(self: &Arc<Self>, group: &Arc<Group<W>>, now: u64, is_crowded: bool) {
        let busy = {
            let state = group.state.lock();
            state.owner.filter(|_| state.is_busy_for_long(now))
        };
        if let Some(owner) = busy.and_then(|id| group.worker(id)) {
            // It may have come back, and continued with other work, meanwhile.
            let may = |state: &GroupState<W::Served>| state.may_be_given(busy) && state.is_busy_for_long(now);
            if self.give_if(group, may, busy) == Given::Yes {
                owner.away.lock().since = now;
            }
        }
        group.due_workers(now).iter().for_each(|worker| self.look_after(group, worker, now, is_crowded));
    }

    /// Lets a thread run anywhere whose statement takes long, and with low priority if it computes for long where others need the
    /// processors.
    fn look_after(&self, group: &Group<W>, worker: &Worker, now: u64, is_crowded: bool) {
        if !is_long(worker.away.lock().since, now) {
            return;
        }
        // The thread may have come back meanwhile. It waits for these locks before it becomes a spare one, or an owner.
        let state = group.state.lock();
        if state.owner == Some(worker.id) || state.spares.iter().any(|spare| spare.id == worker.id) {
            return;
        }
        let mut away = worker.away.lock();
        if !is_long(away.since, now) {
            return;
        }
        let thread = worker.thread.load(Ordering::Relaxed);
        if !away.is_unbound {
            away.is_unbound = true;
            self.world.release(thread);
        }
        if is_crowded && !away.has_low_priority {
            let time = self.world.processor_time(thread);
            let before = *away.time.get_or_insert(time);
            if time >= before + LONG_WORK {
                away.has_low_priority = true;
                self.world.lower_priority(thread);
            }
        }
    }
}

/// The places, of `count` threads, of those that are looked after at a tick: all of a few, some in turn of many.
fn due(count: usize, tick: u64) -> impl Iterator<Item = usize> {
    let first = (tick as usize).wrapping_mul(LOOKED_AFTER_MAX);
    (0..count.min(LOOKED_AFTER_MAX)).map(move |i| first.wrapping_add(i) % count)
}

fn is_long(since: u64, now: u64) -> bool {
    since != 0 && now >= since + 2
}

impl<S: super::Served> GroupState<S> {
    fn is_busy_for_long(&self, now: u64) -> bool {
        self.may_be_given(self.owner) && is_long(self.busy_since, now)
    }
}

impl<W: World> Group<W> {
    fn worker(&self, id: WorkerId) -> Option<Arc<Worker>> {
        self.workers.lock().iter().find(|worker| worker.id == id).cloned()
    }

    /// The threads that are looked after at a tick.
    fn due_workers(&self, tick: u64) -> Vec<Arc<Worker>> {
        let workers = self.workers.lock();
        due(workers.len(), tick).map(|at| Arc::clone(&workers[at])).collect()
    }

    /// The thread has ended.
    fn forget(&self, worker: &Arc<Worker>) {
        self.workers.lock().retain(|other| !Arc::ptr_eq(other, worker));
    }

    /// Waits until the thread is to own its group again; false when it is not needed any more, or `ends` with its work.
    fn is_called(&self, worker: &Arc<Worker>, ends: bool) -> bool {
        let is_spare = |state: &GroupState<W::Served>| state.spares.iter().any(|spare| Arc::ptr_eq(spare, worker));
        let mut state = self.state.lock();
        if !state.is_stopped && state.owner != Some(worker.id) {
            if ends {
                return false;
            }
            state.spares.push(Arc::clone(worker));
        }
        while is_spare(&state) {
            let late;
            (state, late) = worker.wake.wait_for(state, SPARE_TIME);
            if late && state.spares.len() > SPARES_KEPT && is_spare(&state) {
                state.spares.retain(|spare| !Arc::ptr_eq(spare, worker));
                return false;
            }
        }
        !state.is_stopped
    }
}

impl<W: World> Scheduler for Owned<W> {
    /// Another thread takes over the group that this thread owns, its commits included. When there can be no other thread, the
    /// commits come first, because this thread may be about to wait for one of them (true: it may have happened).
    fn before_wait(&self) -> bool {
        let Owned { turns, group, worker } = self;
        if turns.give(group, worker) {
            return false;
        }
        let Some((answering, committing)) = group.take_all(worker.id) else { return false };
        turns.answer(group, answering);
        if committing.is_empty() {
            return false;
        }
        // They are not served here: they could wait for the statement below them on this thread's stack.
        turns.write_and_finish(group, committing);
        true
    }

    /// A thread that starts another, which inherits the processors that it may use, may use all.
    fn before_thread(&self) {
        self.worker.away.lock().is_unbound = true;
        self.turns.world.release(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_is_looked_after_in_turn() {
        for count in [0, 1, LOOKED_AFTER_MAX, LOOKED_AFTER_MAX + 1, 1000] {
            let ticks = count.div_ceil(LOOKED_AFTER_MAX) as u64;
            let mut seen = vec![0; count];
            for tick in 7..7 + ticks {
                let places: Vec<usize> = due(count, tick).collect();
                assert_eq!(places.len(), count.min(LOOKED_AFTER_MAX));
                places.iter().for_each(|at| seen[*at] += 1);
            }
            assert!(seen.iter().all(|times| *times >= 1), "{count} threads: {seen:?}");
        }
    }
}
