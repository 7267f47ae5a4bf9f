//! Watches sockets: epoll.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::turns::world::News;

/// A set of watched sockets, edge-triggered.
pub(crate) struct Poller {
    epoll: OwnedFd,
    waker: OwnedFd,
}

/// The waker's id; no socket has it.
const WAKER: u64 = 0;

impl Poller {
    pub fn new() -> Result<Poller> {
        // SAFETY: no pointers are passed; the results are checked before they become descriptors that we own.
        let (epoll, waker) =
            unsafe { (libc::epoll_create1(libc::EPOLL_CLOEXEC), libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) };
        if epoll < 0 || waker < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: both are open descriptors that nothing else owns.
        let poller = unsafe { Poller { epoll: OwnedFd::from_raw_fd(epoll), waker: OwnedFd::from_raw_fd(waker) } };
        poller.add(poller.waker.as_raw_fd(), WAKER)?;
        Ok(poller)
    }

    /// Watches a socket; bytes that it already has are news.
    pub fn add(&self, socket: RawFd, id: u64) -> Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: id };
        // SAFETY: `event` lives through the call, which copies it.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, socket, &mut event) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    pub fn remove(&self, socket: RawFd) {
        // SAFETY: removing takes no event. A socket that is not watched is an error without consequence.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, socket, std::ptr::null_mut()) };
    }

    /// Appends news, at most `max`; waits for some if there are none and `block` is true.
    pub fn wait(&self, block: bool, max: usize, news: &mut Vec<News>) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let max = max.min(events.len()) as i32;
        // SAFETY: `events` has room for `max` entries, which the call fills from the front.
        let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), max, if block { -1 } else { 0 }) };
        // An interrupted wait has no news; the caller comes again.
        for event in &events[..count.max(0) as usize] {
            let (id, flags) = (event.u64, event.events as i32);
            if id != WAKER {
                news.push(News { id, hung_up: flags & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0 });
            }
        }
    }

    /// Ends a `wait` of another thread.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes are read from `one`.
        unsafe { libc::write(self.waker.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }
}
