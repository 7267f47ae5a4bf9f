//! The threads of the groups: who owns one, who serves a connection whose statement waits or runs long, and spare ones.
//!
//! A thread stays with its group, and is bound to the group's processor except while it does something that takes long.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use melba_sql::session::{STACK_BYTES, set_thread_hooks};
use parking_lot::{Condvar, Mutex};

use super::Turns;
use super::group::Group;

/// A thread of a group.
pub(super) struct Worker {
    /// Never 0.
    pub id: u64,
    /// The kernel's number; 0 before the thread runs.
    thread: AtomicI32,
    /// The monitor's tick at which it gave its group away, while it still serves a connection; 0: it has nothing to do with one.
    away_since: AtomicU64,
    /// It may run on any processor.
    is_unbound: AtomicBool,
    /// It owns its group now.
    called: Mutex<bool>,
    wake: Condvar,
}

/// The threads of a group.
#[derive(Default)]
pub(super) struct Workers {
    all: Vec<Arc<Worker>>,
    /// Those that wait to be called; the last one is the warmest.
    spare: Vec<Arc<Worker>>,
}

/// What a thread owns, or has owned a moment ago.
type Owned = (Arc<Turns>, Arc<Group>, Arc<Worker>);

/// Spare threads kept beyond those that the connections could need at once.
const SPARES_EXTRA: usize = 4;

thread_local! {
    static OWNED: RefCell<Option<Owned>> = const { RefCell::new(None) };
}

impl Worker {
    fn new(id: u64) -> Arc<Worker> {
        Arc::new(Worker {
            id,
            thread: AtomicI32::new(0),
            away_since: AtomicU64::new(0),
            is_unbound: AtomicBool::new(false),
            called: Mutex::new(false),
            wake: Condvar::new(),
        })
    }

    /// Makes it look whether it is called, or everything has stopped.
    fn wake(&self, called: bool) {
        *self.called.lock() |= called;
        self.wake.notify_one();
    }
}

impl Group {
    /// The thread has ended.
    fn forget(&self, worker: &Arc<Worker>) {
        self.workers.lock().all.retain(|other| !Arc::ptr_eq(other, worker));
    }
}

impl Turns {
    /// Gives a group without an owner its first one.
    pub(super) fn start_group(self: &Arc<Self>, group: &Arc<Group>) {
        self.give_from(group, 0);
    }

    /// Makes a spare thread the owner, if `from` still is; false when there can be no further thread.
    pub(super) fn give(self: &Arc<Self>, group: &Arc<Group>, from: &Worker) -> bool {
        let given = self.give_from(group, from.id);
        if given && from.away_since.load(Ordering::Relaxed) == 0 {
            from.away_since.store(self.tick.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        given
    }

    fn give_from(self: &Arc<Self>, group: &Arc<Group>, from: u64) -> bool {
        if group.state.lock().owner != from {
            return true;
        }
        let spare = group.workers.lock().spare.pop();
        let worker = spare.clone().unwrap_or_else(|| Worker::new(self.next_worker.fetch_add(1, Ordering::Relaxed)));
        {
            let mut state = group.state.lock();
            if state.owner != from {
                group.workers.lock().spare.extend(spare);
                return true;
            }
            state.owner = worker.id;
            group.busy_since.store(0, Ordering::Relaxed);
        }
        if spare.is_some() {
            worker.wake(true);
            return true;
        }
        let (turns, of, started) = (Arc::clone(self), Arc::clone(group), Arc::clone(&worker));
        let thread = std::thread::Builder::new().name(format!("sessions {}", worker.id)).stack_size(STACK_BYTES);
        group.workers.lock().all.push(Arc::clone(&worker));
        let spawned = thread.spawn(move || turns.work(of, started)).is_ok();
        if !spawned {
            // Too many threads: this one goes on as the owner after its wait.
            group.state.lock().owner = from;
            group.forget(&worker);
        }
        spawned
    }

    /// A thread's life.
    fn work(self: &Arc<Self>, group: Arc<Group>, worker: Arc<Worker>) {
        set_thread_hooks(before_wait, before_thread);
        // SAFETY: the call has no arguments and cannot fail.
        worker.thread.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        self.processors.bind(group.index);
        OWNED.set(Some((Arc::clone(self), Arc::clone(&group), Arc::clone(&worker))));
        loop {
            self.own(&group, &worker);
            worker.away_since.store(0, Ordering::Relaxed);
            if worker.is_unbound.swap(false, Ordering::Relaxed) {
                self.processors.bind(group.index);
            }
            if !self.is_called(&group, &worker) {
                group.forget(&worker);
                OWNED.set(None);
                return;
            }
        }
    }

    /// Waits until the thread is to own its group again; false when it is not needed any more.
    fn is_called(&self, group: &Group, worker: &Arc<Worker>) -> bool {
        {
            let seats = group.len();
            let mut workers = group.workers.lock();
            if workers.spare.len() >= seats + SPARES_EXTRA {
                return false;
            }
            workers.spare.push(Arc::clone(worker));
        }
        let mut called = worker.called.lock();
        while !*called {
            if self.stopped.load(Ordering::SeqCst) {
                return false;
            }
            worker.wake.wait(&mut called);
        }
        *called = false;
        true
    }

    /// Wakes the spare threads, which end when everything has stopped.
    pub(super) fn wake_spares(&self, group: &Group) {
        group.workers.lock().spare.iter().for_each(|worker| worker.wake(false));
    }

    /// Gives a group away whose owner has been busy for long, and lets those threads run anywhere whose statements take long.
    /// `now`: the monitor's tick.
    pub(super) fn help(self: &Arc<Self>, group: &Arc<Group>, now: u64) {
        let is_long = |since: u64| since != 0 && now >= since + 2;
        let workers = group.workers.lock().all.clone();
        if is_long(group.busy_since.load(Ordering::Relaxed)) {
            let owner = group.state.lock().owner;
            if let Some(owner) = workers.iter().find(|worker| worker.id == owner) {
                self.give(group, owner);
            }
        }
        for worker in workers.iter().filter(|worker| is_long(worker.away_since.load(Ordering::Relaxed))) {
            if !worker.is_unbound.swap(true, Ordering::Relaxed) {
                self.processors.release(worker.thread.load(Ordering::Relaxed));
            }
        }
    }
}

/// Before one of these threads waits: what it owns is served by another thread, its commits included. When there can be none,
/// the commits come first, as this thread may be about to wait for one of them (true: it may have happened).
fn before_wait() -> bool {
    let Some((turns, group, worker)) = OWNED.with_borrow(Clone::clone) else { return false };
    if turns.give(&group, &worker) {
        return false;
    }
    let (answering, committing) = {
        let mut state = group.state.lock();
        if state.owner != worker.id {
            return false;
        }
        (std::mem::take(&mut state.answering), state.take_committing())
    };
    turns.answer(&group, &answering);
    if committing.is_empty() {
        return false;
    }
    turns.finish_commits(&group, &committing);
    // They are not served here: they could wait for the statement below them on this thread's stack.
    let mut state = group.state.lock();
    state.ready.extend(committing);
    if state.owner != worker.id {
        group.wake_for(&state);
    }
    true
}

/// Before one of these threads starts another, which inherits the processors that it may use: it may use all.
fn before_thread() {
    let Some((turns, _, worker)) = OWNED.with_borrow(Clone::clone) else { return };
    worker.is_unbound.store(true, Ordering::Relaxed);
    turns.processors.release(0);
}
