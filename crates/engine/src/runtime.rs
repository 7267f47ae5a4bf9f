//! Services that all parts of an engine share: the clock, the scheduler of the threads, and whether the engine still works.

use std::sync::Arc;

use melba_store::{EngineError, Result};
use melba_threads::atomic::{AtomicBool, Ordering};
use melba_threads::{Mutex, Scheduler};
use melba_vfs::Clock;

use crate::events::{BackgroundEvent, Events};

/// See the module.
pub(crate) struct Runtime {
    pub clock: Arc<dyn Clock>,
    pub scheduler: Arc<dyn Scheduler>,
    /// How many this process could use when the engine was opened. A thread that is bound to one counts only that one.
    pub processors: usize,
    has_threads: AtomicBool,
    stopping: AtomicBool,
    poisoned: AtomicBool,
    /// Why it is poisoned: there before `poisoned` says so.
    cause: Mutex<Option<String>>,
    pub events: Events,
}

impl Runtime {
    pub fn new(clock: Arc<dyn Clock>, scheduler: Arc<dyn Scheduler>) -> Arc<Runtime> {
        Arc::new(Runtime {
            clock,
            scheduler,
            processors: std::thread::available_parallelism().map_or(1, |n| n.get()),
            has_threads: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            cause: Mutex::default(),
            events: Events::default(),
        })
    }

    /// Whether background work is done by threads.
    pub fn has_threads(&self) -> bool {
        self.has_threads.load(Ordering::Relaxed)
    }

    pub fn set_threads(&self, has_threads: bool) {
        self.has_threads.store(has_threads, Ordering::SeqCst);
    }

    /// How many threads may do one statement's work: elsewhere than in a server everything happens in the caller's order.
    pub fn statement_threads(&self) -> usize {
        if self.has_threads() { self.processors } else { 1 }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.set_threads(false);
    }

    /// Refuses all further work; returns the error for the caller to hand on.
    pub fn poison(&self, e: EngineError) -> EngineError {
        if !matches!(e, EngineError::Poisoned { .. }) {
            let is_first = !self.is_poisoned();
            self.refuse_all(e.to_string());
            if is_first {
                self.events.tell(|| BackgroundEvent::Poisoned { cause: e.to_string() });
            }
        }
        e
    }

    /// Refuses all further work; of several causes the first one stays.
    fn refuse_all(&self, cause: String) {
        self.cause.lock().get_or_insert(cause);
        self.poisoned.store(true, Ordering::Release);
    }

    /// Refuses all further work after a clean stop.
    pub fn shut_down(&self) {
        self.refuse_all("the database system is shut down".to_owned());
    }

    /// Why all work is refused, if it is.
    pub fn failure(&self) -> Option<String> {
        self.cause.lock().clone()
    }

    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    #[inline]
    pub fn check_poison(&self) -> Result<()> {
        match self.is_poisoned() {
            false => Ok(()),
            true => Err(EngineError::Poisoned { cause: self.failure().unwrap_or_default() }),
        }
    }

    /// Runs a step of background work, unless the engine is poisoned; a panic in it poisons the engine.
    pub fn guarded(&self, step: impl FnOnce() -> bool) -> bool {
        if self.is_poisoned() {
            return false;
        }
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)) {
            Ok(did_work) => did_work,
            Err(_) => {
                self.poison(EngineError::Misuse("a background step panicked"));
                false
            }
        }
    }
}
