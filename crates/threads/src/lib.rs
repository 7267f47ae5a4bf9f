//! How the storage engine's threads share state and wait: locks and atomics that a model checker can replace, wait
//! cells and queues, and the scheduler that is notified before a thread waits.
//!
//! Invariant: code that may block for longer than a mutex is held needs a `Scheduler`. There is no other way to sleep, to wait
//! for another thread or to start one (`cargo xtask tidy` searches for those of the standard library).

#[cfg(feature = "shuttle")]
pub mod checker;
pub mod planted;
pub mod priority;
mod scheduler;
mod sync;
mod wait;

pub use scheduler::{OwnThreads, Running, Scheduler, scope};
pub use sync::{ArcSwap, ArcSwapOption, Guard, Mutex, MutexGuard, RwLock, atomic, sized};
pub use wait::{WaitCell, WaitQueue};

#[cfg(feature = "shuttle")]
pub use shuttle::thread_local;
#[cfg(not(feature = "shuttle"))]
pub use std::thread_local;
