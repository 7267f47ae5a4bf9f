//! The kernel's priority of threads, and their processor time.
//!
//! A thread without privileges can lower its priority, and never raise it again.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::time::Duration;

use parking_lot::Mutex;

/// The nice value of threads that compute for long: such a thread gets about a tenth of a processor that others keep busy.
const LOW: i32 = 10;

/// The threads that help statements to compute.
static HELPERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The calling thread helps a statement to compute, for as long as this lives.
pub(crate) struct Helper(i32);

impl Helper {
    pub fn new() -> Helper {
        // SAFETY: the call has no arguments and cannot fail.
        let thread = unsafe { libc::gettid() };
        HELPERS.lock().insert(thread);
        Helper(thread)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        HELPERS.lock().remove(&self.0);
    }
}

/// Lowers the priority of all threads that help statements.
pub fn lower_helpers() {
    // Locked meanwhile: the number of a thread that has ended may soon be another's.
    HELPERS.lock().iter().for_each(|thread| lower(*thread));
}

/// Lets the kernel prefer other threads to this one of the process (0: the calling thread), for good. Nothing happens where its
/// priority is that low already, or where the thread has ended.
pub fn lower(thread: i32) {
    let who = thread.unsigned_abs();
    // SAFETY: the calls have no other effects than on the priority of a thread. The result of the first, which may be -1, is below LOW.
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, who) < LOW {
            libc::setpriority(libc::PRIO_PROCESS, who, LOW);
        }
    }
}

/// The processor time of a thread of this process; zero when it has ended.
pub fn processor_time(thread: i32) -> Duration {
    // The number that the kernel gives to the clock of a thread's processor time (MAKE_THREAD_CPUCLOCK in linux/posix-timers.h).
    const THREAD_CLOCK: i32 = 6;
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call writes a time, for which there is room; a time of zeros is a valid one.
    let (result, time) = unsafe { (libc::clock_gettime(!thread << 3 | THREAD_CLOCK, time.as_mut_ptr()), time.assume_init()) };
    match result {
        0 => Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_thread() -> i32 {
        // SAFETY: the call has no arguments and cannot fail.
        unsafe { libc::gettid() }
    }

    #[test]
    fn priority_of_a_thread_is_lowered_once() {
        let of = |thread: i32| {
            // SAFETY: the call only reads.
            unsafe { libc::getpriority(libc::PRIO_PROCESS, thread.unsigned_abs()) }
        };
        let before = of(this_thread());
        let lowered = std::thread::spawn(move || {
            lower(this_thread());
            lower(0);
            of(0)
        });
        assert_eq!(lowered.join().ok(), Some(before.max(LOW)));
        assert_eq!(of(0), before, "the other threads keep theirs");
        let helper = std::thread::spawn(move || {
            let helper = Helper::new();
            lower_helpers();
            drop(helper);
            of(0)
        });
        assert_eq!(helper.join().ok(), Some(before.max(LOW)));
    }

    #[test]
    fn processor_time_grows_with_work() {
        let thread = this_thread();
        let before = processor_time(thread);
        assert!((0..u32::MAX).any(|_| processor_time(thread) >= before + Duration::from_millis(5)), "time does not grow");
        assert_eq!(processor_time(i32::MAX >> 4), Duration::ZERO);
    }
}
