//! Sending to one client, which may not read.
//!
//! A wait for a client ends when the client reads, when the session must end, or when its timeout has passed. A statement's
//! timeout and a cancellation do not end it, as in PostgreSQL: the message that is being sent could not be finished.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use melba_statement::interrupt::Interrupt;

use crate::scheduler::before_wait;
use crate::stream::Stream;

/// How long a client is waited for that does not read.
#[derive(Default)]
pub(crate) struct Patience {
    interrupt: Option<Arc<Interrupt>>,
    until: Option<Instant>,
    /// When the connection was found to be ending.
    ending: Option<Instant>,
    /// A message was sent in part: nothing can follow it.
    is_broken: bool,
}

/// Time between two checks whether the session must end.
const LOOK: Duration = Duration::from_millis(50);
/// Time for the last messages of a connection that ends.
const ENDING_TIME: Duration = Duration::from_secs(1);

impl Patience {
    /// A session's connection.
    pub fn watch(&mut self, interrupt: Arc<Interrupt>) {
        self.interrupt = Some(interrupt);
    }

    /// From now on.
    pub fn limit(&mut self, time: Option<Duration>) {
        self.until = time.and_then(|time| Instant::now().checked_add(time));
    }

    /// The connection ends when the present output was sent.
    pub fn expect_end(&mut self) {
        self.ending.get_or_insert_with(Instant::now);
    }

    fn is_over(&self) -> bool {
        match self.ending {
            Some(since) => since.elapsed() >= ENDING_TIME,
            None => {
                self.interrupt.as_ref().is_some_and(|interrupt| interrupt.must_end().is_some())
                    || self.until.is_some_and(|until| until <= Instant::now())
            }
        }
    }
}

/// Sends as many bytes as the socket takes at once.
pub(crate) fn send_some(socket: RawFd, bytes: &[u8]) -> Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the pointer and the length are those of `bytes`, which lives through the call.
    let n = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(n).map_err(|_| Error::last_os_error())
}

/// Sends everything, waiting for the socket if it must. After an error nothing more is sent.
pub(crate) fn send(stream: &Stream, bytes: &[u8], patience: &mut Patience) -> Result<()> {
    if patience.is_broken {
        return Err(ErrorKind::BrokenPipe.into());
    }
    let sent = send_all(stream, bytes, patience);
    patience.is_broken = sent.is_err();
    sent
}

fn send_all(stream: &Stream, mut bytes: &[u8], patience: &Patience) -> Result<()> {
    let mut waits = false;
    loop {
        match send_some(stream.as_raw_fd(), bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
        if bytes.is_empty() {
            return Ok(());
        }
        if patience.is_over() {
            return Err(Error::new(ErrorKind::TimedOut, "the client does not read"));
        }
        if !std::mem::replace(&mut waits, true) {
            before_wait();
        }
        wait_to_send(stream.as_raw_fd());
    }
}

/// Waits until the socket takes bytes, or for `LOOK`.
fn wait_to_send(socket: RawFd) {
    let mut poll = libc::pollfd { fd: socket, events: libc::POLLOUT, revents: 0 };
    // SAFETY: there is one entry, which lives through the call. Whatever the result, the caller tries to send.
    unsafe { libc::poll(&raw mut poll, 1, LOOK.as_millis() as i32) };
}
