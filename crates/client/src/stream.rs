//! Sockets of all kinds.

use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{ClientConnection, StreamOwned};

pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Socket {
    /// Whether reading would not wait, as far as is known.
    pub fn is_readable(&mut self) -> bool {
        let fd = match &*self {
            Socket::Tcp(tcp) => tcp.as_fd(),
            Socket::Unix(unix) => unix.as_fd(),
            Socket::Tls(tls) => tls.sock.as_fd(),
        };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let has_bytes = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0);
        match self {
            // Bytes may be a record of TLS itself.
            Socket::Tls(tls) if has_bytes => {
                let read = tls.conn.read_tls(&mut tls.sock);
                let processed = tls.conn.process_new_packets();
                !read.is_ok_and(|read| read > 0) || processed.map_or(true, |state| state.plaintext_bytes_to_read() > 0)
            }
            _ => has_bytes,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Socket::Tcp(tcp) => tcp.read(buffer),
            Socket::Unix(unix) => unix.read(buffer),
            Socket::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, data: &[u8]) -> Result<usize> {
        match self {
            Socket::Tcp(tcp) => tcp.write(data),
            Socket::Unix(unix) => unix.write(data),
            Socket::Tls(tls) => tls.write(data),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Socket::Tcp(tcp) => tcp.flush(),
            Socket::Unix(unix) => unix.flush(),
            Socket::Tls(tls) => tls.flush(),
        }
    }
}
