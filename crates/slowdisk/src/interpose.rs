//! The C library's functions that this library replaces: system calls past it, slowed where they sync.

use libc::{c_int, c_void, iovec, off_t, size_t, ssize_t};

use crate::delay::{is_on, slowed};

/// A system call as the C library makes it: -1 and errno.
macro_rules! system {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: the arguments are those that the caller vouched for.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}

/// Defines functions under the names by which programs call the C library's.
macro_rules! interpose {
    ($(fn [$($name:ident),+] $arguments:tt -> $result:ty $body:block)+) => {
        $($(
            #[doc = "The C library's function of this name."]
            ///
            /// # Safety
            /// As for the C library's.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name $arguments -> $result $body
        )+)+
    };
}

/// Flags of pwritev2 (linux/fs.h).
const RWF_DSYNC: c_int = 2;
const RWF_SYNC: c_int = 4;

/// Whether a write to this descriptor is synchronous. O_SYNC contains O_DSYNC.
fn is_synchronous(fd: c_int) -> bool {
    // SAFETY: reads flags.
    is_on() && unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_DSYNC != 0
}

fn written(syncs: bool, call: impl FnOnce() -> libc::c_long) -> ssize_t {
    (if syncs { slowed(call) } else { call() }) as ssize_t
}

interpose! {
    fn [fsync](fd: c_int) -> c_int {
        slowed(|| system!(SYS_fsync, fd)) as c_int
    }
    fn [fdatasync](fd: c_int) -> c_int {
        slowed(|| system!(SYS_fdatasync, fd)) as c_int
    }
    fn [syncfs](fd: c_int) -> c_int {
        slowed(|| system!(SYS_syncfs, fd)) as c_int
    }
    fn [msync](address: *mut c_void, bytes: size_t, flags: c_int) -> c_int {
        let call = || system!(SYS_msync, address, bytes, flags);
        (if flags & libc::MS_SYNC != 0 { slowed(call) } else { call() }) as c_int
    }
    fn [write](fd: c_int, data: *const c_void, bytes: size_t) -> ssize_t {
        written(is_synchronous(fd), || system!(SYS_write, fd, data, bytes))
    }
    fn [pwrite, pwrite64](fd: c_int, data: *const c_void, bytes: size_t, offset: off_t) -> ssize_t {
        written(is_synchronous(fd), || system!(SYS_pwrite64, fd, data, bytes, offset))
    }
    fn [writev](fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
        written(is_synchronous(fd), || system!(SYS_writev, fd, parts, count))
    }
    fn [pwritev, pwritev64](fd: c_int, parts: *const iovec, count: c_int, offset: off_t) -> ssize_t {
        written(is_synchronous(fd), || system!(SYS_pwritev, fd, parts, count, offset, 0))
    }
    fn [pwritev2, pwritev64v2](fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t {
        let syncs = flags & (RWF_DSYNC | RWF_SYNC) != 0 || is_synchronous(fd);
        written(syncs, || system!(SYS_pwritev2, fd, parts, count, offset, 0, flags))
    }
}
