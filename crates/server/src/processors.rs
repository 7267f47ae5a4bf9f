//! The processors on which a thread may run, and the one on which a connection's client runs.
//!
//! A client of the same machine and the server hand each other a socket's memory with every message. On one processor that stays in
//! its caches, and waking the other side is a change of threads; between two it is moved, and waking is an interrupt, which a virtual
//! machine pays dearly. Measured with `pgbench -S` on two processors: two to four times the throughput.

use std::mem::{MaybeUninit, size_of};
use std::os::fd::RawFd;

/// The processors that this process may use.
pub(crate) struct Processors {
    permitted: libc::cpu_set_t,
    /// Their numbers. Empty where threads stay where the kernel puts them.
    numbers: Vec<usize>,
}

impl Processors {
    /// Threads are bound to processors only if the process may use all that it sees: a share of the time of many (a container's
    /// quota) does not say which.
    pub fn of_this_process(count: usize) -> Processors {
        let mut permitted = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: the call writes at most the size it is given; a set of zeros is a valid one.
        let (known, permitted) = unsafe {
            let result = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), permitted.as_mut_ptr());
            (result == 0, permitted.assume_init())
        };
        // SAFETY: the numbers are within the set.
        let isset = |n: &usize| known && unsafe { libc::CPU_ISSET(*n, &permitted) };
        let mut numbers: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(isset).collect();
        if numbers.len() != count || count < 2 {
            numbers.clear();
        }
        Processors { permitted, numbers }
    }

    /// Binds this thread to the `index`th processor.
    pub fn bind(&self, index: usize) {
        let Some(&number) = self.numbers.get(index) else { return };
        // SAFETY: a set of zeros is a valid one, and the number is within it.
        let one = unsafe {
            let mut one: libc::cpu_set_t = MaybeUninit::zeroed().assume_init();
            libc::CPU_SET(number, &mut one);
            one
        };
        set_affinity(0, &one);
    }

    /// Lets a thread (0: this one) run anywhere.
    pub fn release(&self, thread: libc::pid_t) {
        if !self.numbers.is_empty() {
            set_affinity(thread, &self.permitted);
        }
    }

    /// The index of the processor on which the last packet of a socket came in; on the same machine that is its sender's.
    pub fn of_client(&self, socket: RawFd) -> Option<usize> {
        if self.numbers.is_empty() {
            return None;
        }
        let (mut number, mut length) = (-1i32, size_of::<i32>() as libc::socklen_t);
        // SAFETY: the option is an int, for which there is room.
        let result =
            unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU, (&raw mut number).cast(), &mut length) };
        let number = usize::try_from(number).ok().filter(|_| result == 0)?;
        self.numbers.iter().position(|n| *n == number)
    }
}

/// A thread that cannot be bound runs where the kernel puts it, which is right but slower.
fn set_affinity(thread: libc::pid_t, set: &libc::cpu_set_t) {
    // SAFETY: the set lives through the call.
    unsafe { libc::sched_setaffinity(thread, size_of::<libc::cpu_set_t>(), set) };
}
