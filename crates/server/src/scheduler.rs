//! The engine's scheduler in a server: the steps of a thread that serves sessions in turns before it waits (`turns`). Other
//! threads have nothing to do.

use std::cell::RefCell;
use std::sync::Arc;

use melba_threads::Scheduler;

thread_local! {
    static OF_THREAD: RefCell<Option<Arc<dyn Scheduler>>> = const { RefCell::new(None) };
}

/// Finds the scheduler of the calling thread.
struct OfThread;

impl Scheduler for OfThread {
    fn before_wait(&self) -> bool {
        of_thread().is_some_and(|scheduler| scheduler.before_wait())
    }

    fn before_thread(&self) {
        if let Some(scheduler) = of_thread() {
            scheduler.before_thread();
        }
    }
}

fn of_thread() -> Option<Arc<dyn Scheduler>> {
    OF_THREAD.with_borrow(Clone::clone)
}

/// Sets or removes the calling thread's scheduler.
pub(crate) fn set_of_thread(scheduler: Option<Arc<dyn Scheduler>>) {
    OF_THREAD.set(scheduler);
}

/// To be called before waiting for a client. True: check again before waiting.
pub(crate) fn before_wait() -> bool {
    OfThread.before_wait()
}

/// The scheduler to open an engine with whose sessions a server serves.
pub fn scheduler() -> Arc<dyn Scheduler> {
    Arc::new(OfThread)
}
