//! The end of a command whose output nobody reads any more, as in `melba advise DIR | head`.
//!
//! A write to a pipe without a reader raises SIGPIPE and fails with EPIPE. SIGPIPE would end the process at once, and leave behind the
//! servers and directories that the command has made; so it is only noted. The failed write ends the command as any error or panic
//! does, and everything is cleaned up, but nothing is reported. The process ends by SIGPIPE then, as other Unix programs do.
//!
//! The server is no such command: it serves its clients, with or without a reader of its messages.

use std::io::{stderr, stdout};
use std::os::fd::{AsRawFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGPIPE;

/// Exit code of a program that a panic ended, Rust's own.
const PANICKED: u8 = 101;

/// Whether a write of this process has found no reader.
#[derive(Clone, Default)]
struct Broken(Arc<AtomicBool>);

impl Broken {
    /// The write was to standard output or standard error. A socket whose peer has gone raises the signal, too.
    fn is_output(&self) -> bool {
        self.0.load(Ordering::SeqCst) && [stdout().as_raw_fd(), stderr().as_raw_fd()].into_iter().any(has_no_reader)
    }
}

fn has_no_reader(fd: RawFd) -> bool {
    let mut polled = libc::pollfd { fd, events: 0, revents: 0 };
    // SAFETY: one element, which lives as long as the call; no time is waited.
    let ready = unsafe { libc::poll(&raw mut polled, 1, 0) };
    ready == 1 && polled.revents & (libc::POLLERR | libc::POLLHUP) != 0
}

/// Runs a command to its exit code, and reports its error, unless it ends because nobody reads its output.
pub fn run(command: impl FnOnce() -> Result<u8, String>) -> ExitCode {
    let broken = Broken::default();
    if let Err(e) = signal_hook::flag::register(SIGPIPE, Arc::clone(&broken.0)) {
        eprintln!("melba: could not catch signals: {e}");
        return ExitCode::FAILURE;
    }
    silence(broken.clone());
    let ended = catch_unwind(AssertUnwindSafe(command));
    if !matches!(ended, Ok(Ok(0))) && broken.is_output() {
        // It returns only if the signal ends no process.
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
    ExitCode::from(ended.map_or(PANICKED, crate::report))
}

/// Panics that a failed write has caused say nothing.
fn silence(broken: Broken) {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !broken.is_output() {
            report(panic);
        }
    }));
}
