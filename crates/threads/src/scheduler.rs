//! The scheduler to notify when a thread is about to block or to start another.
//!
//! A scheduler that serves several sessions by one thread gives its other sessions away before the thread waits. One that binds
//! its threads to processors unbinds this one before another inherits that. It is passed to the engine when it is opened, and
//! every place where a thread may sleep asks for it.

use std::io::Result;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::Duration;

use crate::priority;
use crate::sync::sleep;

/// Serves threads that wait.
pub trait Scheduler: Send + Sync {
    /// The calling thread is about to wait for another transaction, the disk, the client or a clock, with no locks held that the scheduler
    /// could want. True: it may have caused the event for which the thread is about to wait, so the thread checks again first.
    fn before_wait(&self) -> bool;

    /// The calling thread is about to start another.
    fn before_thread(&self);
}

/// No threads are shared.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnThreads;

impl Scheduler for OwnThreads {
    fn before_wait(&self) -> bool {
        false
    }

    fn before_thread(&self) {}
}

impl dyn Scheduler + '_ {
    /// Sleeps.
    pub fn sleep(&self, time: Duration) {
        while self.before_wait() {}
        sleep(time);
    }

    /// Sleeps for a moment and keeps the thread's sessions: for commit_delay, where others wait for this very thread, and for
    /// threads without sessions.
    pub fn pause(&self, time: Duration) {
        sleep(time);
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// Of the operating system, which has no more threads.
    pub fn spawn<T: Send + 'static>(&self, name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<Running<T>> {
        self.before_thread();
        Builder::new().name(name.into()).spawn(body).map(Running)
    }
}

/// A thread that was started.
pub struct Running<T>(JoinHandle<T>);

impl<T> Running<T> {
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the thread's end; the error is its panic.
    pub fn join(self, scheduler: &dyn Scheduler) -> std::thread::Result<T> {
        while !self.0.is_finished() && scheduler.before_wait() {}
        self.0.join()
    }
}

/// Threads of a scope, which help one statement to compute, with the scheduler to notify of them.
pub struct Threads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    scheduler: &'env dyn Scheduler,
}

/// A thread of a scope.
pub struct Scoped<'scope, 'env, T> {
    handle: ScopedJoinHandle<'scope, T>,
    scheduler: &'env dyn Scheduler,
}

/// Runs `f`, which may start threads that end with it.
pub fn scope<'env, T>(scheduler: &'env dyn Scheduler, f: impl for<'scope> FnOnce(&Threads<'scope, 'env>) -> T) -> T {
    scheduler.before_thread();
    std::thread::scope(|scope| f(&Threads { scope, scheduler }))
}

impl<'scope, 'env> Threads<'scope, 'env> {
    pub fn spawn<T: Send + 'scope>(&self, body: impl FnOnce() -> T + Send + 'scope) -> Scoped<'scope, 'env, T> {
        Scoped { handle: self.scope.spawn(as_helper(body)), scheduler: self.scheduler }
    }

    /// Starts a thread with a stack of `bytes`.
    ///
    /// # Errors
    /// Of the operating system, which has no more threads.
    pub fn spawn_large<T: Send + 'scope>(
        &self,
        stack_bytes: usize,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> Result<Scoped<'scope, 'env, T>> {
        let handle = Builder::new().stack_size(stack_bytes).spawn_scoped(self.scope, as_helper(body))?;
        Ok(Scoped { handle, scheduler: self.scheduler })
    }
}

fn as_helper<T>(body: impl FnOnce() -> T) -> impl FnOnce() -> T {
    move || {
        let _helper = priority::Helper::new();
        body()
    }
}

impl<T> Scoped<'_, '_, T> {
    /// Waits for the thread's end; the error is its panic.
    pub fn join(self) -> std::thread::Result<T> {
        while !self.handle.is_finished() && self.scheduler.before_wait() {}
        self.handle.join()
    }
}
