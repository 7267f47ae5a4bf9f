//! System calls, past the functions that this library replaces.

/// A system call as the C library makes it: -1 and errno.
macro_rules! system {
    ($number:ident $(, $argument:expr)*) => {
        // SAFETY: the arguments are those that the caller vouched for.
        unsafe { libc::syscall(libc::$number $(, $argument)*) }
    };
}
pub(crate) use system;

/// Ends the process: without a record of its operation, the recorded rest proves nothing.
pub fn refuse(what: &str) -> ! {
    let text = format!("powercut: {what} is not recorded\n");
    let _ = system!(SYS_write, 2, text.as_ptr(), text.len());
    std::process::abort()
}
