//! What one statement may use of its thread's stack, of the process's memory, and of time.
//!
//! Code that recurses, loops for long or makes large values lies everywhere below a statement, also where nothing of its session
//! is at hand: a comparison of json values, a product of numerics. So the bounds belong to the thread that runs the statement.
//! Whoever starts one calls `run`; whoever recurses over what a user gave calls `check_stack` at each level; loops that may
//! take longer than some milliseconds `step` a `Ticker`; values that may become large are announced (`check_request`) before
//! they are made, or looked at as they grow (`check_length`).
//!
//! Invariants:
//! 1. A thread that is in no `run` has a stack of at least `SMALL_STACK_BYTES` more, and neither interrupts nor a memory limit.
//! 2. What the checks allow leaves a quarter of a session's stack to what does not check: leaf functions, and destructors, whose
//!    frames are smaller than those of the code that built the tree.
//! 3. Memory is counted by the allocator (`Counting`), for the process and for each thread. A statement is refused memory only
//!    when the process is over its limit and the statement's own thread has grown by a share of it worth mentioning: what
//!    tables, caches and other statements hold is bounded elsewhere, and a small statement does not pay for a large one.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::{DbError, Result, SqlState, err};

/// Stack of threads that run sessions.
pub const SESSION_STACK_BYTES: usize = 128 << 20;
/// What may be used of it before recursion is refused. Frames of optimized code are about a quarter of the others.
const STACK_BYTES_MAX: usize = if cfg!(debug_assertions) { 96 << 20 } else { 32 << 20 };
/// What a thread may use that nobody announced, as those of tests.
const SMALL_STACK_BYTES: usize = 1 << 20;

/// The longest value, as in PostgreSQL: what its allocator gives at once.
pub const VALUE_BYTES_MAX: usize = (1 << 30) - 1;
/// Part of the limit that a statement must have grown by before it is refused more.
const STATEMENT_SHARE: i64 = 16;
/// Values shorter than this are not worth a look.
const LARGE_BYTES: usize = 64 << 10;
/// A thread tells the process what it allocated and freed when it is this much.
const TELL_BYTES: i64 = 256 << 10;

/// What can stop a statement from outside.
pub trait Interruptible: Send + Sync {
    /// The error to end with, if any.
    fn check(&self) -> Result<()>;
}

struct Thread {
    /// Addresses below this one are too deep; 0: not known yet.
    stack_end: Cell<usize>,
    /// The same for values that nest.
    nesting_end: Cell<usize>,
    /// Bytes allocated less bytes freed, not told to the process yet.
    untold: Cell<i64>,
    /// The same, told.
    told: Cell<i64>,
    /// What both were when the statement started.
    start: Cell<i64>,
    /// Steps since the last look, of those who keep no `Ticker`.
    ticks: Cell<u32>,
}

impl Thread {
    #[expect(clippy::declare_interior_mutable_const, reason = "only the initial value of a thread-local")]
    const NEW: Thread = Thread {
        stack_end: Cell::new(0),
        nesting_end: Cell::new(0),
        untold: Cell::new(0),
        told: Cell::new(0),
        start: Cell::new(0),
        ticks: Cell::new(0),
    };

    fn set_stack(&self, here: usize, bytes: usize) {
        self.stack_end.set(here.saturating_sub(bytes));
        self.nesting_end.set(here.saturating_sub(bytes / 4));
    }
}

thread_local! {
    static THREAD: Thread = const { Thread::NEW };
    static INTERRUPT: RefCell<Option<Arc<dyn Interruptible>>> = const { RefCell::new(None) };
}

/// Bytes that the process has from its allocator, about.
static PROCESS: AtomicI64 = AtomicI64::new(0);
/// What it should have at most; 0: there is no limit.
static LIMIT: AtomicI64 = AtomicI64::new(0);

/// The calling thread was made with a stack of `SESSION_STACK_BYTES` and has used little of it.
pub fn start_session_thread() {
    THREAD.with(|thread| thread.set_stack(stack_position(), STACK_BYTES_MAX));
}

/// Memory at which large statements are refused more.
pub fn set_memory_limit(bytes: u64) {
    LIMIT.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
}

/// Runs `f` with an interrupt that `check` looks at. Calls nest; the memory is counted from the outermost.
pub fn run<T>(interrupt: Arc<dyn Interruptible>, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<dyn Interruptible>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            INTERRUPT.replace(self.0.take());
        }
    }
    let restore = Restore(INTERRUPT.replace(Some(interrupt)));
    if restore.0.is_none() {
        THREAD.with(|thread| thread.start.set(thread.told.get() + thread.untold.get()));
    }
    f()
}

/// Roughly where the thread's stack ends now.
#[inline]
fn stack_position() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here).addr()
}

/// Called by whatever recurses as deep as a user's input says.
///
/// # Errors
/// 54001 when the stack is used up.
#[inline]
pub fn check_stack() -> Result<()> {
    if is_stack_left() { Ok(()) } else { Err(stack_error()) }
}

/// Called by whatever makes values that nest (json, jsonb, paths, rows in rows), at each level.
///
/// It allows a quarter of what `check_stack` does, so that whatever reads, writes, compares or drops such a value later has
/// stack enough without looking: its frames would have to be several times as large.
///
/// # Errors
/// 54001 when that is used up.
#[inline]
pub fn check_nesting() -> Result<()> {
    let here = stack_position();
    let end = THREAD.with(|thread| {
        known_end(thread, here);
        thread.nesting_end.get()
    });
    if here > end { Ok(()) } else { Err(stack_error()) }
}

#[inline]
fn known_end(thread: &Thread, here: usize) {
    if thread.stack_end.get() == 0 {
        thread.set_stack(here, SMALL_STACK_BYTES);
    }
}

/// `check_stack` for code that has no way to fail by itself.
#[inline]
pub fn is_stack_left() -> bool {
    let here = stack_position();
    THREAD.with(|thread| {
        known_end(thread, here);
        here > thread.stack_end.get()
    })
}

#[cold]
pub fn stack_error() -> DbError {
    err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").hint(
        "Increase the configuration parameter \"max_stack_depth\" (currently 2048kB), after ensuring the platform's stack depth \
         limit is adequate.",
    )
}

/// The error to end with when the statement was cancelled, its time is over, or memory is short.
pub fn check() -> Result<()> {
    check_interrupt()?;
    check_memory(0)
}

/// The error to end with when the statement was cancelled or its time is over.
pub fn check_interrupt() -> Result<()> {
    INTERRUPT.with_borrow(|interrupt| interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check()))
}

/// So many more bytes are about to be taken at once, for one value.
///
/// # Errors
/// XX000, as PostgreSQL's, when no value may be so large; 53200 when memory is short.
#[inline]
pub fn check_request(bytes: usize) -> Result<()> {
    if bytes < LARGE_BYTES {
        return Ok(());
    }
    if bytes > VALUE_BYTES_MAX {
        return Err(DbError::new(SqlState::INTERNAL_ERROR, format!("invalid memory alloc request size {bytes}")));
    }
    check_interrupt()?;
    check_memory(bytes)
}

/// Looks at a text that has `length` bytes, or is about to.
///
/// # Errors
/// 54000 when it is too long for a value, 53200 when memory is short, and those of `check_interrupt`.
#[inline]
pub fn check_length(length: usize) -> Result<()> {
    if length < LARGE_BYTES { Ok(()) } else { check_large_length(length) }
}

/// Looks at a value that was made and has `length` bytes.
///
/// # Errors
/// As PostgreSQL's when no value may be so long, 53200 when memory is short, and those of `check_interrupt`.
#[inline]
pub fn check_value(length: usize) -> Result<()> {
    if length < LARGE_BYTES { Ok(()) } else { check_large_value(length) }
}

#[cold]
fn check_large_value(length: usize) -> Result<()> {
    if length > VALUE_BYTES_MAX { check_request(length) } else { check() }
}

#[cold]
fn check_large_length(length: usize) -> Result<()> {
    if length > VALUE_BYTES_MAX {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "string buffer exceeds maximum allowed length (1073741823 bytes)").detail(
            format!(
                "Cannot enlarge string buffer containing {VALUE_BYTES_MAX} bytes by {} more bytes.",
                length - VALUE_BYTES_MAX
            ),
        ));
    }
    check_interrupt()?;
    check_memory(length)
}

/// The error to end with when the process is to take so many more bytes and is short of memory.
pub fn check_memory(more: usize) -> Result<()> {
    let limit = LIMIT.load(Ordering::Relaxed);
    let more = more as i64;
    if limit == 0 || PROCESS.load(Ordering::Relaxed) + more <= limit {
        return Ok(());
    }
    let grown = THREAD.with(|thread| thread.told.get() + thread.untold.get() - thread.start.get());
    if grown + more <= limit / STATEMENT_SHARE {
        return Ok(());
    }
    Err(err!(OUT_OF_MEMORY, "out of memory").detail(format!("Failed on request of size {}.", more.max(grown))))
}

/// Counts the steps of a loop, and checks now and then.
#[derive(Clone, Debug, Default)]
pub struct Ticker(u32);

/// Steps between two looks: some microseconds to a millisecond, for steps that are small.
const STEPS: u32 = 1024;

impl Ticker {
    pub fn new() -> Ticker {
        Ticker(0)
    }

    /// One more step.
    ///
    /// # Errors
    /// Those of `check`, now and then.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.work(1)
    }

    /// As many steps, when one takes long.
    #[inline]
    pub fn work(&mut self, steps: usize) -> Result<()> {
        self.0 = self.0.saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        if self.0 < STEPS {
            return Ok(());
        }
        self.0 = 0;
        check()
    }
}

/// One more step of a recursion that has no place for a `Ticker`.
///
/// # Errors
/// Those of `check`, now and then.
#[inline]
pub fn tick() -> Result<()> {
    let ticks = THREAD.with(|thread| {
        thread.ticks.set(thread.ticks.get().wrapping_add(1));
        thread.ticks.get()
    });
    if ticks.is_multiple_of(STEPS) { check() } else { Ok(()) }
}

/// An allocator that counts what it gives and takes back.
pub struct Counting<A>(pub A);

#[inline]
fn count(bytes: i64) {
    // A thread that ends frees its last memory uncounted.
    let _ = THREAD.try_with(|thread| {
        let untold = thread.untold.get() + bytes;
        if untold.abs() < TELL_BYTES {
            thread.untold.set(untold);
            return;
        }
        thread.untold.set(0);
        thread.told.set(thread.told.get() + untold);
        PROCESS.fetch_add(untold, Ordering::Relaxed);
    });
}

// SAFETY: every call goes to the inner allocator as it came; counting neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise is ours.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise is ours.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise is ours.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise is ours.
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nest(levels: u64) -> Result<u64> {
        check_stack()?;
        Ok(if levels == 0 { 0 } else { 1 + nest(levels - 1)? })
    }

    #[test]
    fn recursion_ends_before_the_stack_does() {
        assert_eq!(nest(100).expect("is shallow"), 100);
        assert_eq!(nest(1_000_000_000).expect_err("is deep").sqlstate(), SqlState::STATEMENT_TOO_COMPLEX);
        let thread = std::thread::Builder::new().stack_size(SESSION_STACK_BYTES).spawn(|| {
            start_session_thread();
            assert_eq!(nest(20_000).expect("fits a session's stack"), 20_000);
            assert_eq!(nest(1_000_000_000).expect_err("is deep").sqlstate().as_str(), "54001");
        });
        thread.expect("starts").join().expect("does not overflow");
    }

    #[test]
    fn an_interrupt_lasts_as_long_as_what_runs_under_it() {
        struct Raised;
        impl Interruptible for Raised {
            fn check(&self) -> Result<()> {
                Err(err!(QUERY_CANCELED, "canceling statement due to user request"))
            }
        }
        let mut ticker = Ticker::new();
        run(Arc::new(Raised), || {
            assert!((0..STEPS).any(|_| ticker.step().is_err()));
            assert_eq!(check_request(1 << 20).expect_err("raised").sqlstate(), SqlState::QUERY_CANCELED);
        });
        assert!(check().is_ok());
    }

    #[test]
    fn values_have_a_largest_length() {
        assert!(check_request(VALUE_BYTES_MAX).is_ok() && check_length(VALUE_BYTES_MAX).is_ok());
        let error = check_request(VALUE_BYTES_MAX + 1).expect_err("too large");
        assert_eq!(error.message(), "invalid memory alloc request size 1073741824");
        assert_eq!(check_length(VALUE_BYTES_MAX + 1).expect_err("too long").sqlstate(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
