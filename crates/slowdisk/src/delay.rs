//! The duration of a call.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt as _;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The file's numbers.
struct Control([AtomicU64; 4]);

/// The parsed numbers; nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Disk {
    delay: u64,
    jitter: u64,
    pause: u64,
    period: u64,
}

impl Control {
    fn read(&self) -> Disk {
        let [delay, jitter, pause, period] = [0, 1, 2, 3].map(|n: usize| u64::from_le(self.0[n].load(Ordering::Relaxed)));
        Disk { delay, jitter, pause, period }
    }
}

impl Disk {
    /// When a call ends that began at `begin`; `random`: any number.
    fn end(self, begin: u64, random: u64) -> u64 {
        let jitter = if self.jitter == 0 { 0 } else { random % self.jitter };
        let end = begin.saturating_add(self.delay).saturating_add(jitter);
        match end.checked_rem(self.period) {
            Some(within) if within < self.pause => end - within + self.pause,
            _ => end,
        }
    }
}

/// `None`: nothing is slowed.
fn control() -> Option<&'static Control> {
    static CONTROL: OnceLock<Option<&'static Control>> = OnceLock::new();
    *CONTROL.get_or_init(|| {
        let name = CString::new(std::env::var_os("SLOWDISK")?.into_vec()).ok()?;
        let bytes = size_of::<Control>();
        // SAFETY: a C string; the mapping is the library's own, stays for ever, and is as large as the bytes read from it.
        unsafe {
            let file = libc::open(name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if file < 0 || libc::lseek(file, 0, libc::SEEK_END) < bytes as libc::off_t {
                refuse();
            }
            let mapping = libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file, 0);
            if mapping == libc::MAP_FAILED {
                refuse();
            }
            libc::close(file);
            Some(&*mapping.cast::<Control>())
        }
    })
}

/// Ends the process: a disk that is believed to be slow and is not would be worse.
fn refuse() -> ! {
    let text = "slowdisk: the file that SLOWDISK names cannot be used\n";
    // SAFETY: the text and its length.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    std::process::abort()
}

fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until a moment of the monotonic clock, without the kernel's usual grace of 50 us.
fn sleep_until(end: u64) {
    let time = libc::timespec { tv_sec: (end / 1_000_000_000) as _, tv_nsec: (end % 1_000_000_000) as _ };
    // SAFETY: the first and the last call are about this thread's timers only; the second has a time that it reads.
    unsafe {
        let slack = libc::prctl(libc::PR_GET_TIMERSLACK);
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, null_mut()) == libc::EINTR {}
        libc::prctl(libc::PR_SET_TIMERSLACK, slack.max(1));
    }
}

/// A number that differs from call to call (splitmix64).
fn random() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut x = NEXT.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed) ^ u64::from(std::process::id());
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Makes a call that syncs, in the disk's time. errno is the call's.
pub(crate) fn slowed<T>(call: impl FnOnce() -> T) -> T {
    let Some(control) = control() else { return call() };
    let begin = now();
    let result = call();
    // SAFETY: the address of this thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    let end = control.read().end(begin, random());
    if end > now() {
        sleep_until(end);
    }
    // SAFETY: the same.
    unsafe { *libc::__errno_location() = errno };
    result
}

/// Whether any call is slowed.
pub(crate) fn is_on() -> bool {
    control().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Disk = Disk { delay: 5, jitter: 0, pause: 0, period: 0 };

    #[test]
    fn a_call_takes_the_delay_and_a_part_of_the_jitter() {
        assert_eq!(DISK.end(100, 77), 105);
        let jittery = Disk { jitter: 10, ..DISK };
        assert_eq!((jittery.end(100, 77), jittery.end(100, 70)), (112, 105));
    }

    #[test]
    fn a_call_that_would_end_in_a_pause_ends_with_it() {
        let pausing = Disk { pause: 100, period: 1000, ..DISK };
        assert_eq!([900, 994, 995, 1000, 1094, 1095].map(|begin| pausing.end(begin, 0)), [905, 999, 1100, 1100, 1100, 1100]);
        assert_eq!(pausing.end(1096, 0), 1101);
    }

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random(), random());
    }
}
