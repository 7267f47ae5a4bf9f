//! Sends to many sockets with one call: io_uring.
//!
//! A client that waits for several answers, such as one that serves many connections with one thread, is woken by the first of
//! them, often at once and on the sender's processor. With separate calls each answer then costs two thread switches and the
//! client's poll of all its sockets; with one call, all of them cost that once.

use std::io::{ErrorKind, Result};
use std::os::fd::RawFd;

use io_uring::{IoUring, opcode, types};

use crate::sending::send_some;

/// The bytes to send to a socket.
pub(crate) type Answer<'a> = (RawFd, &'a [u8]);

/// The most answers that are sent with one call.
pub(crate) const ANSWERS_MAX: usize = 64;

/// Sends answers, with separate calls where the system has no io_uring.
pub(crate) struct Sender<R = IoUring> {
    ring: Option<R>,
}

impl Sender {
    pub fn new() -> Sender {
        Sender { ring: IoUring::new(ANSWERS_MAX as u32).ok() }
    }
}

impl<R: Ring> Sender<R> {
    /// Sends without waiting; returns how many bytes of each answer were taken. Another attempt shows why others were not.
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

/// The system's ring, or a test's.
pub(crate) trait Ring {
    /// Queues a send that ends at once where it would have to wait; false when the queue is full.
    ///
    /// # Safety
    /// The bytes live until the send has ended or the ring is dropped.
    unsafe fn push(&mut self, number: u64, answer: &Answer<'_>) -> bool;

    /// Submits the queue, and waits for `ends` completions.
    fn submit_and_wait(&mut self, ends: usize) -> Result<()>;

    /// The end of a send: its number, and how many bytes were taken, or an error below 0.
    fn ended(&mut self) -> Option<(u64, i32)>;
}

impl Ring for IoUring {
    unsafe fn push(&mut self, number: u64, (socket, bytes): &Answer<'_>) -> bool {
        let send = opcode::Send::new(types::Fd(*socket), bytes.as_ptr(), bytes.len() as u32);
        let send = send.flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL).build().user_data(number);
        // SAFETY: the caller's promise.
        unsafe { self.submission().push(&send) }.is_ok()
    }

    fn submit_and_wait(&mut self, ends: usize) -> Result<()> {
        IoUring::submit_and_wait(self, ends).map(drop)
    }

    fn ended(&mut self) -> Option<(u64, i32)> {
        self.completion().next().map(|end| (end.user_data(), end.result()))
    }
}

/// Sends up to `ANSWERS_MAX` answers. After an error none is under way: sends that the kernel had taken have ended and are in `sent`.
fn send_by_ring(ring: &mut impl Ring, answers: &[Answer<'_>], sent: &mut [usize]) -> Result<()> {
    let mut left = 0;
    for (number, answer) in answers.iter().enumerate() {
        // SAFETY: the bytes live until the send has ended, for which the loop below waits.
        if !unsafe { ring.push(number as u64, answer) } {
            break;
        }
        left += 1;
    }
    while left > 0 {
        let submitted = ring.submit_and_wait(left);
        // Also after an error: completed sends must not be sent again.
        while let Some((number, taken)) = ring.ended() {
            sent[number as usize] = usize::try_from(taken).unwrap_or(0);
            left -= 1;
        }
        match submitted {
            Err(e) if e.kind() != ErrorKind::Interrupted => return Err(e),
            _ => {}
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

    fn sends_to_several_sockets(sender: &mut Sender) {
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
        sends_to_several_sockets(&mut Sender::new());
        sends_to_several_sockets(&mut Sender::<IoUring> { ring: None });
    }

    /// The result of a ring's call.
    #[derive(Clone, Copy)]
    enum Turn {
        /// All that is queued ends.
        All,
        /// One send ends, after at most this many bytes.
        One(usize),
        /// One ends with this error.
        Fails(i32),
        /// The call fails with this error, and nothing has ended.
        Refused(i32),
        /// The call fails with this error when one has ended.
        OneThenRefused(i32),
    }

    /// A ring that sends with separate calls, as its turns say.
    struct Scripted {
        turns: Vec<Turn>,
        room: usize,
        queued: Vec<(u64, RawFd, *const u8, usize)>,
        ended: Vec<(u64, i32)>,
    }

    impl Scripted {
        fn end_one(&mut self, bytes_max: usize) {
            let (number, socket, bytes, length) = self.queued.remove(0);
            // SAFETY: the caller that queued it keeps the bytes until the end reported now.
            let bytes = unsafe { std::slice::from_raw_parts(bytes, length.min(bytes_max)) };
            self.ended.push((number, send_some(socket, bytes).map_or(-libc::EPIPE, |n| n as i32)));
        }
    }

    impl Ring for Scripted {
        unsafe fn push(&mut self, number: u64, (socket, bytes): &Answer<'_>) -> bool {
            let has_room = self.queued.len() < self.room;
            if has_room {
                self.queued.push((number, *socket, bytes.as_ptr(), bytes.len()));
            }
            has_room
        }

        fn submit_and_wait(&mut self, _: usize) -> Result<()> {
            let error = |errno| Err(std::io::Error::from_raw_os_error(errno));
            match self.turns.pop().unwrap_or(Turn::All) {
                Turn::All => {
                    while !self.queued.is_empty() {
                        self.end_one(usize::MAX);
                    }
                    Ok(())
                }
                Turn::One(bytes_max) => {
                    self.end_one(bytes_max);
                    Ok(())
                }
                Turn::Fails(errno) => {
                    let (number, ..) = self.queued.remove(0);
                    self.ended.push((number, -errno));
                    Ok(())
                }
                Turn::Refused(errno) => error(errno),
                Turn::OneThenRefused(errno) => {
                    self.end_one(usize::MAX);
                    error(errno)
                }
            }
        }

        fn ended(&mut self) -> Option<(u64, i32)> {
            self.ended.pop()
        }
    }

    /// Sends three answers in as many attempts as needed; returns whether the ring is still used.
    fn all_arrive(turns: &[Turn], room: usize) -> bool {
        let pairs: Vec<(UnixStream, UnixStream)> = (0..3).map(|_| UnixStream::pair().expect("sockets")).collect();
        let answers: Vec<Vec<u8>> = (1..4u8).map(|n| vec![n; 100 * usize::from(n)]).collect();
        let turns = turns.iter().rev().copied().collect();
        let mut sender = Sender { ring: Some(Scripted { turns, room, queued: Vec::new(), ended: Vec::new() }) };
        let mut taken = vec![0; answers.len()];
        for _ in 0..20 {
            let left: Vec<usize> = (0..answers.len()).filter(|n| taken[*n] < answers[*n].len()).collect();
            let rest: Vec<Answer<'_>> = left.iter().map(|n| (pairs[*n].0.as_raw_fd(), &answers[*n][taken[*n]..])).collect();
            left.iter().zip(sender.send(&rest)).for_each(|(n, sent)| taken[*n] += sent);
        }
        for ((ours, mut theirs), answer) in pairs.into_iter().zip(&answers) {
            drop(ours);
            let mut received = Vec::new();
            theirs.read_to_end(&mut received).expect("reads");
            assert_eq!(received, *answer);
        }
        sender.ring.is_some()
    }

    #[test]
    fn every_answer_arrives_once_and_whole_in_any_order_of_the_ring() {
        use Turn::*;
        for errno in [libc::EAGAIN, libc::EINTR, libc::ECANCELED, libc::ENOBUFS] {
            assert!(all_arrive(&[Fails(errno), One(30), Fails(errno), One(0), All], 64), "a send that ends with {errno}");
        }
        assert!(all_arrive(&[Refused(libc::EINTR), One(7), Refused(libc::EINTR), All], 64), "interrupted calls");
        assert!(all_arrive(&[], 2), "a queue with less room");
        for errno in [libc::ENOSYS, libc::EPERM, libc::EAGAIN, libc::EBUSY, libc::EBADF] {
            assert!(!all_arrive(&[Refused(errno)], 64), "a ring that is refused with {errno}");
            assert!(!all_arrive(&[One(5), OneThenRefused(errno)], 64), "one that is refused late with {errno}");
        }
    }
}
