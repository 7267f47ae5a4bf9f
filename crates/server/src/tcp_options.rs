//! The options of a client's socket that settings determine.

use std::io::{Error, Result};
use std::mem::size_of;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use melba_settings::socket_options::{SocketOption, SocketOptions};
use parking_lot::Mutex;

use crate::stream::Stream;

/// The options of a TCP connection; those of others do not exist.
#[derive(Debug)]
pub(crate) struct TcpOptions {
    stream: Arc<Stream>,
    options: Mutex<[Chosen; 4]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Chosen {
    /// The system's default.
    default: i64,
    /// The value requested last; 0: the default.
    wanted: i64,
    in_force: i64,
}

impl TcpOptions {
    pub fn of(stream: &Arc<Stream>) -> TcpOptions {
        let mut options = [Chosen::default(); 4];
        for option in [
            SocketOption::KeepalivesIdle,
            SocketOption::KeepalivesInterval,
            SocketOption::KeepalivesCount,
            SocketOption::UserTimeout,
        ] {
            let default = match **stream {
                Stream::Tcp(_) => get(stream.as_raw_fd(), option).unwrap_or(0),
                Stream::Unix(_) => 0,
            };
            options[option as usize] = Chosen { default, wanted: 0, in_force: default };
        }
        TcpOptions { stream: Arc::clone(stream), options: Mutex::new(options) }
    }
}

impl SocketOptions for TcpOptions {
    fn set(&self, option: SocketOption, value: i64) {
        let mut options = self.options.lock();
        let known = &mut options[option as usize];
        if known.wanted == value || !matches!(*self.stream, Stream::Tcp(_)) {
            return;
        }
        known.wanted = value;
        let value = if value == 0 { known.default } else { value };
        if set(self.stream.as_raw_fd(), option, value).is_ok() {
            known.in_force = value;
        }
    }

    fn get(&self, option: SocketOption) -> i64 {
        self.options.lock()[option as usize].in_force
    }
}

fn number(option: SocketOption) -> libc::c_int {
    match option {
        SocketOption::KeepalivesIdle => libc::TCP_KEEPIDLE,
        SocketOption::KeepalivesInterval => libc::TCP_KEEPINTVL,
        SocketOption::KeepalivesCount => libc::TCP_KEEPCNT,
        SocketOption::UserTimeout => libc::TCP_USER_TIMEOUT,
    }
}

fn get(socket: RawFd, option: SocketOption) -> Result<i64> {
    let (mut value, mut length) = (0i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the option is an int, for which there is room.
    let result = unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, number(option), (&raw mut value).cast(), &raw mut length) };
    if result == 0 { Ok(value.into()) } else { Err(Error::last_os_error()) }
}

fn set(socket: RawFd, option: SocketOption, value: i64) -> Result<()> {
    set_int(socket, libc::IPPROTO_TCP, number(option), i32::try_from(value).map_err(Error::other)?)
}

/// Dead clients are found in the end.
pub(crate) fn keep_alive(stream: &Stream) -> Result<()> {
    match stream {
        Stream::Tcp(_) => set_int(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        Stream::Unix(_) => Ok(()),
    }
}

fn set_int(socket: RawFd, level: libc::c_int, option: libc::c_int, value: i32) -> Result<()> {
    // SAFETY: the option is an int, which lives through the call.
    let result =
        unsafe { libc::setsockopt(socket, level, option, (&raw const value).cast(), size_of::<i32>() as libc::socklen_t) };
    if result == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}
