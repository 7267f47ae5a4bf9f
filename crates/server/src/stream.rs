//! Sockets of both kinds, TCP and Unix-domain: one type for listeners, one for accepted sockets.

use std::io::Result;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use melba_statement::backends::Addresses;

use crate::unix_socket::UnixSocket;

/// A client's socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Where its ends are, of a TCP connection.
    pub fn addresses(&self) -> Result<Option<Addresses>> {
        match self {
            Stream::Tcp(tcp) => Ok(Some(Addresses { client: tcp.peer_addr()?, server: tcp.local_addr()? })),
            Stream::Unix(_) => Ok(None),
        }
    }

    /// Answers are sent at once, however short.
    pub fn send_at_once(&self) -> Result<()> {
        match self {
            Stream::Tcp(tcp) => tcp.set_nodelay(true),
            Stream::Unix(_) => Ok(()),
        }
    }

    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        match self {
            Stream::Tcp(tcp) => tcp.set_read_timeout(timeout),
            Stream::Unix(unix) => unix.set_read_timeout(timeout),
        }
    }

    /// Ends the reads of this socket, those that wait included.
    pub fn shut_reading(&self) -> Result<()> {
        match self {
            Stream::Tcp(tcp) => tcp.shutdown(Shutdown::Read),
            Stream::Unix(unix) => unix.shutdown(Shutdown::Read),
        }
    }

    /// Ends both directions: nothing more can be read or sent.
    pub fn shut_down(&self) -> Result<()> {
        match self {
            Stream::Tcp(tcp) => tcp.shutdown(Shutdown::Both),
            Stream::Unix(unix) => unix.shutdown(Shutdown::Both),
        }
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Stream::Tcp(tcp) => tcp.as_raw_fd(),
            Stream::Unix(unix) => unix.as_raw_fd(),
        }
    }
}

/// A socket that clients connect to; accepting does not wait.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

impl Listener {
    pub fn tcp(listener: TcpListener) -> Result<Listener> {
        listener.set_nonblocking(true)?;
        Ok(Listener::Tcp(listener))
    }

    /// The address, of one of TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(tcp) => tcp.local_addr().ok(),
            Listener::Unix(_) => None,
        }
    }

    /// Where clients find it, of one with files.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Listener::Tcp(_) => None,
            Listener::Unix(socket) => socket.directory(),
        }
    }

    pub fn accept(&self) -> Result<Stream> {
        match self {
            Listener::Tcp(tcp) => tcp.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Listener::Unix(socket) => socket.listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Listener::Tcp(tcp) => tcp.as_raw_fd(),
            Listener::Unix(socket) => socket.listener.as_raw_fd(),
        }
    }
}
