//! Sending to many sockets by one call: io_uring.
//!
//! A client that waits for several answers, as those do that serve many connections by one thread, is woken by the first of them,
//! often at once and on the processor of who sends. By calls of their own each answer then costs two changes of threads and the
//! client's look at all of its sockets; by one call, all of them cost that once.

use std::io::{ErrorKind, Result};
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, types};

use crate::sending::send_some;

/// What is to be sent to a socket.
pub(crate) type Answer<'a> = (RawFd, &'a [u8]);

/// Answers that are sent by one call, at most.
pub(crate) const ANSWERS_MAX: usize = 64;

/// Sends answers, by calls of their own where the system has no io_uring for us.
pub(crate) struct Sender {
    ring: Option<IoUring>,
}

impl Sender {
    pub fn new() -> Sender {
        Sender { ring: IoUring::new(ANSWERS_MAX as u32).ok() }
    }

    /// Sends without waiting; how many bytes of each answer were taken. Why others were not, another attempt tells.
    pub fn send(&mut self, answers: &[Answer<'_>]) -> Vec<usize> {
        match &mut self.ring {
            Some(ring) if answers.len() > 1 => {
                let mut sent = vec![0; answers.len()];
                if send_by_ring(ring, answers, &mut sent).is_err() {
                    self.ring = None;
                }
                sent
            }
            _ => answers.iter().map(|(socket, bytes)| send_some(*socket, bytes).unwrap_or(0)).collect(),
        }
    }
}

/// Sends up to `ANSWERS_MAX` answers. After an error none is under way: what the kernel had taken has ended and is in `sent`.
fn send_by_ring(ring: &mut IoUring, answers: &[Answer<'_>], sent: &mut [usize]) -> Result<()> {
    let mut left = 0;
    for (number, (socket, bytes)) in answers.iter().enumerate() {
        let send = opcode::Send::new(types::Fd(*socket), bytes.as_ptr(), bytes.len() as u32);
        // What would have to wait ends at once.
        let send = send.flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL).build().user_data(number as u64);
        // SAFETY: the bytes live until the send has ended, for which the loop below waits.
        if unsafe { ring.submission().push(&send) }.is_err() {
            break;
        }
        left += 1;
    }
    while left > 0 {
        match ring.submit_and_wait(left) {
            Err(e) if e.kind() != ErrorKind::Interrupted => return Err(e),
            _ => {}
        }
        for end in ring.completion() {
            sent[end.user_data() as usize] = usize::try_from(end.result()).unwrap_or(0);
            left -= 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn is_told_what_was_taken(sender: &mut Sender) {
        let pairs: Vec<(UnixStream, UnixStream)> = (0..5).map(|_| UnixStream::pair().expect("sockets")).collect();
        drop(pairs[1].1.shutdown(std::net::Shutdown::Both));
        let large = vec![7; 64 << 20];
        let bytes: [&[u8]; 5] = [b"one", b"gone", b"three", &large, b"five"];
        let answers: Vec<Answer<'_>> = pairs.iter().zip(bytes).map(|((ours, _), bytes)| (ours.as_raw_fd(), bytes)).collect();
        let sent = sender.send(&answers);
        assert_eq!((sent[0], sent[1], sent[2], sent[4]), (3, 0, 5, 4));
        assert!(sent[3] < large.len(), "the socket was full");
        let mut received = [0; 8];
        assert_eq!((&pairs[2].1).read(&mut received).expect("there"), 5);
        assert_eq!(&received[..5], b"three");
    }

    #[test]
    fn answers_are_sent_with_and_without_a_ring() {
        is_told_what_was_taken(&mut Sender::new());
        is_told_what_was_taken(&mut Sender { ring: None });
    }
}
