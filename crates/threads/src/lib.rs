//! What the storage engine's threads share state by, and how they wait: locks and atomic numbers that a model checker may stand in
//! for, places to sleep, and the scheduler that hears of a wait before it begins.
//!
//! Invariant: whoever may block for longer than a mutex is held needs a `Scheduler`. There is no other way to sleep, to wait for
//! another thread or to start one (`cargo xtask tidy` looks for those of the standard library).

#[cfg(feature = "shuttle")]
pub mod checker;
pub mod planted;
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
