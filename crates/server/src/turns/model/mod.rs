//! The turns under a model checker for threads (shuttle): sockets, sessions, the log and a lock of a few lines each, and clients
//! that count their answers (`tests`).
//!
//! Each run checks, for any order of the threads' steps: every message of a client that stays is answered, once and in order; things that
//! sessions leave for others' clients arrive without a request; nothing is sent while the session's commit waits for the log; every session
//! ends, and then every thread. A client that waits for ever is a deadlock, which the checker finds: no thread of the model waits for time.

mod mail;
mod session;
mod socket;
mod tests;

use std::cell::RefCell;
use std::io::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

use super::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use super::sync::{Condvar, Mutex};
use melba_threads::Scheduler;

use super::world::{PlantedBug, World};

pub(super) use mail::Mailbox;
pub(super) use session::ModelSession;
pub(super) use socket::{Message, ModelPoller, ModelSender, Reply, Socket};

/// The world of a run.
#[derive(Clone)]
pub(super) struct Model(pub Arc<ModelState>);

pub(super) struct ModelState {
    pub options: ModelOptions,
    pub log: Log,
    pub lock: RowLock,
    pub mailboxes: Mutex<Vec<Arc<Mailbox>>>,
    clock_micros: AtomicU64,
    monitor: Mutex<MonitorTicks>,
    may_tick: Condvar,
    threads: Mutex<Vec<shuttle::thread::JoinHandle<()>>>,
    threads_started: AtomicUsize,
    ended: Mutex<usize>,
    all_ended: Condvar,
    violations: std::sync::Mutex<Vec<String>>,
}

#[derive(Clone)]
pub(super) struct ModelOptions {
    pub plant: Option<PlantedBug>,
    pub groups: usize,
    /// Threads that can be started in all.
    pub threads_max: usize,
    /// How often the monitor checks on its own.
    pub ticks: usize,
    /// The log takes so long that its writer gives its group away.
    pub slow_log: bool,
    /// So many writes of the log succeed.
    pub log_writes_max: usize,
    /// Answers that a socket takes before the client reads.
    pub room: usize,
    pub idle_timeout: Option<Duration>,
    /// Few let connections move.
    pub look_turns: u32,
}

impl Default for ModelOptions {
    fn default() -> ModelOptions {
        ModelOptions {
            plant: None,
            groups: 2,
            threads_max: 100,
            ticks: 4,
            slow_log: false,
            log_writes_max: usize::MAX,
            room: usize::MAX,
            idle_timeout: None,
            look_turns: 32,
        }
    }
}

struct MonitorTicks {
    left: usize,
    stopped: bool,
}

shuttle::thread_local! {
    static SCHEDULER: RefCell<Option<Arc<dyn Scheduler>>> = RefCell::new(None);
}

/// To be called before a thread of the model waits for another session or a client.
pub(super) fn about_to_wait() -> bool {
    let scheduler = SCHEDULER.with(|scheduler| scheduler.borrow().clone());
    scheduler.is_some_and(|scheduler| scheduler.before_wait())
}

pub(super) fn random(below: usize) -> usize {
    use shuttle::rand::Rng as _;
    shuttle::rand::thread_rng().gen_range(0..below)
}

impl Model {
    pub fn new(options: ModelOptions) -> Model {
        Model(Arc::new(ModelState {
            monitor: Mutex::new(MonitorTicks { left: options.ticks, stopped: false }),
            options,
            log: Log::new(),
            lock: RowLock { is_held: Mutex::new(false), freed: Condvar::new() },
            mailboxes: Mutex::new(Vec::new()),
            clock_micros: AtomicU64::new(1),
            may_tick: Condvar::new(),
            threads: Mutex::new(Vec::new()),
            threads_started: AtomicUsize::new(0),
            ended: Mutex::new(0),
            all_ended: Condvar::new(),
            violations: Default::default(),
        }))
    }
}

impl ModelState {
    /// Something happened that must not.
    pub fn violation(&self, what: impl Into<String>) {
        self.violations.lock().expect("no panic holds it").push(what.into());
    }

    pub fn check(&self) {
        let violations = self.violations.lock().expect("no panic holds it");
        assert!(violations.is_empty(), "{violations:?}");
    }

    /// Time passes.
    pub fn pass(&self, time: Duration) {
        self.clock_micros.fetch_add(time.as_micros() as u64, Ordering::SeqCst);
    }

    /// Lets the monitor check `count` more times.
    pub fn allow_ticks(&self, count: usize) {
        self.monitor.lock().left += count;
        self.may_tick.notify_all();
    }

    pub fn stop_monitor(&self) {
        self.monitor.lock().stopped = true;
        self.may_tick.notify_all();
    }

    pub fn note_end(&self) {
        *self.ended.lock() += 1;
        self.all_ended.notify_all();
    }

    /// Waits until `count` sessions have ended.
    pub fn await_ends(&self, count: usize) {
        let mut ended = self.ended.lock();
        while *ended < count {
            ended = self.all_ended.wait(ended);
        }
        assert_eq!(*ended, count, "each session ends once");
    }

    /// Waits for all threads that the turns have started.
    pub fn join_threads(&self) {
        loop {
            let thread = self.threads.lock().pop();
            match thread {
                Some(thread) => thread.join().expect("threads of the turns do not panic"),
                None => return,
            }
        }
    }
}

impl World for Model {
    type Socket = Arc<Socket>;
    type Served = ModelSession;
    type Poller = ModelPoller;
    type Sender = ModelSender;

    fn start_thread(&self, _: String, run: Box<dyn FnOnce() + Send>) -> Result<()> {
        if self.0.threads_started.fetch_add(1, Ordering::SeqCst) >= self.0.options.threads_max {
            return Err(Error::other("too many threads"));
        }
        let thread = shuttle::thread::spawn(run);
        self.0.threads.lock().push(thread);
        Ok(())
    }

    fn set_scheduler(&self, scheduler: Option<Arc<dyn Scheduler>>) {
        SCHEDULER.with(|slot| *slot.borrow_mut() = scheduler);
    }

    fn thread_number(&self) -> i32 {
        1
    }

    fn bind(&self, _: usize) {}

    fn release(&self, _: i32) {}

    fn lower_priority(&self, _: i32) {}

    fn lower_helpers(&self) {}

    fn processor_time(&self, _: i32) -> Duration {
        Duration::from_millis(random(50) as u64)
    }

    fn processor_of(&self, _: &Arc<Socket>) -> Option<usize> {
        Some(random(self.0.options.groups))
    }

    fn look_turns(&self) -> u32 {
        self.0.options.look_turns
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.0.clock_micros.load(Ordering::SeqCst))
    }

    fn sleep(&self, time: Duration) {
        let mut ticks = self.0.monitor.lock();
        while ticks.left == 0 && !ticks.stopped {
            ticks = self.0.may_tick.wait(ticks);
        }
        ticks.left = ticks.left.saturating_sub(1);
        drop(ticks);
        self.0.pass(time);
    }

    fn note_panic(&self) {
        self.0.violation("a thread of the turns panicked");
    }

    fn is_planted(&self, plant: PlantedBug) -> bool {
        self.0.options.plant == Some(plant)
    }
}

/// The log: commits are numbered, and durable when it was written up to them.
pub(super) struct Log {
    state: Mutex<LogState>,
    written: Condvar,
}

#[derive(Default)]
struct LogState {
    started: u64,
    durable: u64,
    is_written: bool,
    writes: usize,
    failed: bool,
}

impl Log {
    fn new() -> Log {
        Log { state: Mutex::default(), written: Condvar::new() }
    }

    /// Begins a commit.
    pub fn start(&self) -> u64 {
        let mut state = self.state.lock();
        state.started += 1;
        state.started
    }

    /// Writes everything that has begun.
    pub fn flush(&self, shared: &ModelState) {
        let upto = {
            let mut state = self.state.lock();
            let wanted = state.started;
            while state.is_written {
                state = self.written.wait(state);
            }
            if state.durable >= wanted {
                return;
            }
            state.is_written = true;
            state.started
        };
        if shared.options.slow_log {
            shared.pass(Duration::from_millis(10));
        }
        shuttle::thread::yield_now();
        let mut state = self.state.lock();
        state.is_written = false;
        state.writes += 1;
        state.failed |= state.writes > shared.options.log_writes_max;
        if !state.failed {
            state.durable = upto;
        }
        self.written.notify_all();
    }

    /// Waits for a commit; false when the log has failed.
    pub fn wait(&self, commit: u64, shared: &ModelState) -> bool {
        loop {
            let state = self.state.lock();
            if state.durable >= commit || state.failed {
                return state.durable >= commit;
            }
            drop(state);
            while about_to_wait() {}
            self.flush(shared);
        }
    }
}

/// The one lock that sessions wait for.
pub(super) struct RowLock {
    is_held: Mutex<bool>,
    freed: Condvar,
}

impl RowLock {
    /// False when the session must end first.
    pub fn take(&self, must_end: impl Fn() -> bool) -> bool {
        if !std::mem::replace(&mut *self.is_held.lock(), true) {
            return true;
        }
        while about_to_wait() {}
        let mut is_held = self.is_held.lock();
        while *is_held && !must_end() {
            is_held = self.freed.wait(is_held);
        }
        !must_end() && !std::mem::replace(&mut *is_held, true)
    }

    pub fn free(&self) {
        *self.is_held.lock() = false;
        self.freed.notify_all();
    }

    /// Waiting threads check for other reasons to end.
    pub fn wake(&self) {
        let _is_held = self.is_held.lock();
        self.freed.notify_all();
    }
}
