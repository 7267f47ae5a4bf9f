//! A statement's limits for its thread's stack, the process's memory, and time.
//!
//! Code that recurses, loops for long or makes large values lies everywhere below a statement, also where nothing of its session
//! is at hand: a comparison of json values, a product of numerics. So the limits belong to the thread that runs the statement.
//! The starter of a statement calls `run`; code that recurses over a user's input calls `check_stack` at each level; loops that
//! may take longer than some milliseconds `step` a `Ticker`; values that may become large are announced (`check_request`) before
//! they are made, or checked as they grow (`check_length`).
//!
//! Invariants:
//! 1. A thread that is in no `run` has a stack of at least `SMALL_STACK_BYTES` more, and neither interrupts nor a memory limit.
//! 2. The checks leave a quarter of a session's stack to code that does not check: leaf functions, and destructors, whose frames
//!    are smaller than those of the code that built the tree.
//! 3. Memory is counted by the allocator (`Counting`), for the process and for each thread. A statement is refused memory only
//!    when the process is over its limit and the statement's own thread has grown by a notable share of it: the memory of tables,
//!    caches and other statements is bounded elsewhere, and a small statement does not pay for a large one.
//! 4. When the system refuses memory (`ulimit -v`, strict overcommit), a server that keeps a reserve continues: a small
//!    allocation is served from it, and the statement that made it ends with 53200 at its next check; a large one that was
//!    announced is tried before it is relied on. The allocator itself cannot refuse: to unwind out of it is undefined, so a large
//!    one that was not announced still ends the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering};

use crate::{DbError, Result, SqlState, err};

/// Stack of threads that run sessions.
pub const SESSION_STACK_BYTES: usize = 128 << 20;
/// Bytes of it that may be used before recursion is refused. Frames of optimized code are about a quarter of the others.
const STACK_BYTES_MAX: usize = if cfg!(debug_assertions) { 96 << 20 } else { 32 << 20 };
/// Bytes of stack for a thread outside of `run`, such as those of tests.
const SMALL_STACK_BYTES: usize = 1 << 20;

/// The longest value, as in PostgreSQL: the most that its allocator gives at once.
pub const VALUE_BYTES_MAX: usize = (1 << 30) - 1;
/// Part of the limit by which a statement must have grown before it is refused more.
const STATEMENT_SHARE: i64 = 16;
/// Values shorter than this are not checked.
const LARGE_BYTES: usize = 64 << 10;
/// A thread reports its allocations and frees to the process in steps of this size.
const TELL_BYTES: i64 = 256 << 10;

/// Stops a statement from outside.
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
    /// The values of both when the statement started.
    start: Cell<i64>,
    /// Steps since the last look, of those who keep no `Ticker`.
    ticks: Cell<u32>,
    /// It is in a `run`.
    is_running: Cell<bool>,
    /// An allocation was served from the reserve in it.
    is_short: Cell<bool>,
    /// How long a growing text may become before it is tried again whether there is memory for it.
    tried: Cell<usize>,
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
        is_running: Cell::new(false),
        is_short: Cell::new(false),
        tried: Cell::new(RESERVE_BYTES / 2),
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
/// The most bytes it should have; 0: there is no limit.
static LIMIT: AtomicI64 = AtomicI64::new(0);

/// Released when the system refuses memory. Address space only, as long as nothing is written to it.
const RESERVE_BYTES: usize = 256 << 20;
/// How often a failed allocation is tried again.
const ATTEMPTS: usize = 16;
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static KEEPS_RESERVE: AtomicBool = AtomicBool::new(false);

const fn reserve_layout() -> Layout {
    match Layout::from_size_align(RESERVE_BYTES, 16) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    }
}

/// Has this process keep a reserve from now on.
pub fn keep_reserve() {
    KEEPS_RESERVE.store(true, Ordering::Relaxed);
    fill_reserve();
}

/// Takes the reserve again when it was used and the system has memory again.
fn fill_reserve() {
    if !KEEPS_RESERVE.load(Ordering::Relaxed) || !RESERVE.load(Ordering::Relaxed).is_null() {
        return;
    }
    // SAFETY: the layout's size is not 0.
    let block = unsafe { System.alloc(reserve_layout()) };
    let kept = RESERVE.compare_exchange(std::ptr::null_mut(), block, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if !kept && !block.is_null() {
        // SAFETY: it was allocated above with this layout, and nothing else refers to it.
        unsafe { System.dealloc(block, reserve_layout()) };
    }
}

/// Releases the reserve, if it exists, for a small allocation that failed.
#[cold]
fn release_reserve() {
    let block = RESERVE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !block.is_null() {
        // SAFETY: `fill_reserve` allocated it with this layout, and the thread that swaps it out owns it.
        unsafe { System.dealloc(block, reserve_layout()) };
    }
    let _ = THREAD.try_with(|thread| thread.is_short.set(thread.is_running.get()));
}

/// The calling thread was made with a stack of `SESSION_STACK_BYTES` and has used little of it.
pub fn start_session_thread() {
    THREAD.with(|thread| thread.set_stack(stack_position(), STACK_BYTES_MAX));
}

/// Memory at which large statements are refused more.
pub fn set_memory_limit(bytes: u64) {
    LIMIT.store(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
}

/// Bytes that the process has from its allocator, about; 0 where `Counting` is not the allocator. And the limit at which large
/// statements are refused more, if there is one.
pub fn process_memory() -> (u64, Option<u64>) {
    let limit = u64::try_from(LIMIT.load(Ordering::Relaxed)).ok().filter(|limit| *limit > 0);
    (u64::try_from(PROCESS.load(Ordering::Relaxed)).unwrap_or(0), limit)
}

/// Bytes that this thread has from its allocator more than it gave back; only differences mean something.
pub fn thread_memory() -> i64 {
    THREAD.with(|thread| thread.told.get() + thread.untold.get())
}

/// Runs `f` with an interrupt that `check` reads. Calls nest; the memory is counted from the outermost.
pub fn run<T>(interrupt: Arc<dyn Interruptible>, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Arc<dyn Interruptible>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let outer = self.0.take();
            if outer.is_none() {
                THREAD.with(|thread| {
                    thread.is_running.set(false);
                    thread.is_short.set(false);
                });
            }
            INTERRUPT.replace(outer);
        }
    }
    let restore = Restore(INTERRUPT.replace(Some(interrupt)));
    if restore.0.is_none() {
        THREAD.with(|thread| {
            thread.start.set(thread.told.get() + thread.untold.get());
            thread.is_running.set(true);
            thread.is_short.set(false);
            thread.tried.set(RESERVE_BYTES / 2);
        });
        fill_reserve();
    }
    f()
}

/// Runs `f` in a thread that works for the statement which `interrupt` can stop, until the thread's end: the stack is a session's.
pub fn run_member<T>(interrupt: Option<Arc<dyn Interruptible>>, f: impl FnOnce() -> T) -> T {
    start_session_thread();
    let result = match interrupt {
        Some(interrupt) => run(interrupt, f),
        None => f(),
    };
    THREAD.with(|thread| tell(thread, thread.untold.get()));
    result
}

/// Stops the statement that this thread runs.
pub fn interrupt() -> Option<Arc<dyn Interruptible>> {
    INTERRUPT.with_borrow(Clone::clone)
}

/// Roughly where the thread's stack ends now.
#[inline]
fn stack_position() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here).addr()
}

/// Called by code that recurses as deep as a user's input.
///
/// # Errors
/// 54001 when the stack is used up.
#[inline]
pub fn check_stack() -> Result<()> {
    if is_stack_left() { Ok(()) } else { Err(stack_error()) }
}

/// Called at each level by code that makes nested values (json, jsonb, paths, rows in rows).
///
/// It allows a quarter of the depth of `check_stack`, so that code which reads, writes, compares or drops such a value later has
/// stack enough without checking: its frames would have to be several times as large.
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

/// `check_stack` for code that cannot fail.
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

/// `check_interrupt` before `bytes` bytes are read or copied, when they are many.
///
/// # Errors
/// Those of `check_interrupt`.
#[inline]
pub fn check_long(bytes: usize) -> Result<()> {
    if bytes < LARGE_BYTES { Ok(()) } else { check_interrupt() }
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
    check_memory(bytes)?;
    try_memory(bytes)
}

/// Whether the system would supply this much at once: allocated, and freed.
fn try_memory(bytes: usize) -> Result<()> {
    // Less comes from the reserve.
    if bytes <= RESERVE_BYTES / 2 || Vec::<u8>::new().try_reserve_exact(bytes).is_ok() {
        return Ok(());
    }
    Err(out_of_memory(bytes))
}

fn out_of_memory(bytes: usize) -> DbError {
    err!(OUT_OF_MEMORY, "out of memory").detail(format!("Failed on request of size {bytes}."))
}

/// The error to end with when an allocation of this statement could only be served from the reserve.
#[inline]
pub fn check_reserve() -> Result<()> {
    if THREAD.with(|thread| thread.is_short.get()) { Err(out_of_memory(RESERVE_BYTES)) } else { Ok(()) }
}

/// Checks a text that has `length` bytes, or is about to.
///
/// # Errors
/// 54000 when it is too long for a value, 53200 when memory is short, and those of `check_interrupt`.
#[inline]
pub fn check_length(length: usize) -> Result<()> {
    if length < LARGE_BYTES { Ok(()) } else { check_large_length(length) }
}

/// Checks a value that was made and has `length` bytes.
///
/// # Errors
/// PostgreSQL's when the value is too long for any, 53200 when memory is short, and those of `check_interrupt`.
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
    check_memory(length)?;
    THREAD.with(|thread| {
        if length <= thread.tried.get() {
            return Ok(());
        }
        // A text that grows takes twice as much at once, and has the old part beside it for a while.
        let next = length + length / 4;
        try_memory(2 * next)?;
        thread.tried.set(next);
        Ok(())
    })
}

/// The error to end with when the process needs `more` bytes and is short of memory.
pub fn check_memory(more: usize) -> Result<()> {
    check_reserve()?;
    let limit = LIMIT.load(Ordering::Relaxed);
    let more = more as i64;
    if limit == 0 || PROCESS.load(Ordering::Relaxed) + more <= limit {
        return Ok(());
    }
    let grown = THREAD.with(|thread| thread.told.get() + thread.untold.get() - thread.start.get());
    if grown + more <= limit / STATEMENT_SHARE {
        return Ok(());
    }
    Err(out_of_memory(more.max(grown) as usize))
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

/// The items of an iterator, with checks of the limits now and then: each item is a step, and may take as long as one.
///
/// The items are `Err` with the errors of `check`.
pub fn ticked<I: IntoIterator>(items: I) -> impl Iterator<Item = Result<I::Item>> {
    let mut ticker = Ticker::new();
    items.into_iter().map(move |item| ticker.step().map(|()| item))
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

/// An allocator that counts its allocations and frees.
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
        tell(thread, untold);
    });
}

/// Reports the unreported bytes to the process.
fn tell(thread: &Thread, untold: i64) {
    thread.untold.set(0);
    thread.told.set(thread.told.get() + untold);
    PROCESS.fetch_add(untold, Ordering::Relaxed);
}

impl<A> Counting<A> {
    /// Further attempts, after releasing the reserve. Other threads may release it or take it again at any time between the two.
    #[cold]
    fn again(bytes: usize, change: i64, mut attempt: impl FnMut() -> *mut u8) -> *mut u8 {
        if bytes <= RESERVE_BYTES / 2 && KEEPS_RESERVE.load(Ordering::Relaxed) {
            for _ in 0..ATTEMPTS {
                release_reserve();
                let block = attempt();
                if !block.is_null() {
                    return block;
                }
            }
        }
        count(-change);
        std::ptr::null_mut()
    }
}

// SAFETY: every call is passed unchanged to the inner allocator, a failed one perhaps again; counting neither allocates nor unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise is ours.
        let block = unsafe { self.0.alloc(layout) };
        if block.is_null() {
            // SAFETY: the same.
            return Self::again(layout.size(), layout.size() as i64, || unsafe { self.0.alloc(layout) });
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise is ours.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        if block.is_null() {
            // SAFETY: the same.
            return Self::again(layout.size(), layout.size() as i64, || unsafe { self.0.alloc_zeroed(layout) });
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise is ours.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let change = size as i64 - layout.size() as i64;
        count(change);
        // SAFETY: the caller's promise is ours.
        let block = unsafe { self.0.realloc(pointer, layout, size) };
        if block.is_null() {
            // SAFETY: the same: a failed attempt has left the old block as it was.
            return Self::again(size, change, || unsafe { self.0.realloc(pointer, layout, size) });
        }
        block
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
    fn an_interrupt_lasts_as_long_as_the_call_under_it() {
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

    /// Returns nothing until the reserve is released, and lets another statement take the reserve again before the first attempt.
    struct Stingy(AtomicBool);

    // SAFETY: its blocks are the system's.
    unsafe impl GlobalAlloc for Stingy {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if RESERVE.load(Ordering::Relaxed).is_null() && !self.0.swap(true, Ordering::Relaxed) {
                fill_reserve();
            }
            if !RESERVE.load(Ordering::Relaxed).is_null() {
                return std::ptr::null_mut();
            }
            // SAFETY: the caller's promise is ours.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            // SAFETY: the caller's promise is ours.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    #[test]
    fn a_failed_allocation_is_served_from_the_reserve_and_ends_the_statement() {
        struct Calm;
        impl Interruptible for Calm {
            fn check(&self) -> Result<()> {
                Ok(())
            }
        }
        keep_reserve();
        let (small, large) = (Layout::new::<[u8; 100]>(), Layout::new::<[u8; RESERVE_BYTES]>());
        run(Arc::new(Calm), || {
            assert!(check().is_ok());
            // SAFETY: the layouts' sizes are not 0, and each block is freed with its layout.
            unsafe {
                let stingy = Counting(Stingy(AtomicBool::new(false)));
                assert!(stingy.alloc(large).is_null(), "it would not help");
                assert!(check().is_ok());
                let block = stingy.alloc(small);
                assert!(!block.is_null());
                stingy.dealloc(block, small);
            }
            assert_eq!(check().expect_err("short").sqlstate(), SqlState::OUT_OF_MEMORY);
        });
        run(Arc::new(Calm), || assert!(check().is_ok(), "the next statement"));
        assert!(!RESERVE.load(Ordering::Relaxed).is_null(), "the reserve is there again");
        let error = run(Arc::new(Calm), || try_memory(1 << 60)).expect_err("nobody has so much");
        assert_eq!(error.sqlstate(), SqlState::OUT_OF_MEMORY);
    }

    #[test]
    fn values_have_a_largest_length() {
        assert!(check_request(VALUE_BYTES_MAX).is_ok() && check_length(VALUE_BYTES_MAX).is_ok());
        let error = check_request(VALUE_BYTES_MAX + 1).expect_err("too large");
        assert_eq!(error.message(), "invalid memory alloc request size 1073741824");
        assert_eq!(check_length(VALUE_BYTES_MAX + 1).expect_err("too long").sqlstate(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
