//! TLS over one socket: bytes in both directions, encrypted and decrypted in memory. The connection reads and sends.

use std::io::{BufRead, Error, ErrorKind, Result, Write};
use std::os::fd::RawFd;

use rustls::{ProtocolVersion, ServerConnection};

use super::certificate::Certificate;
use super::ciphers;
use super::configuration::{PROTOCOL, TlsConfiguration};

/// One end of a TLS connection, the server's.
pub(crate) struct Channel {
    tls: ServerConnection,
    /// Where encrypted bytes are read to.
    raw: Vec<u8>,
    /// Encrypted bytes; those before `sent` were sent.
    sealed: Vec<u8>,
    sent: usize,
    /// The client has announced that it sends no more.
    is_closed: bool,
}

/// Bytes encrypted at a time, so that a long answer is not in memory twice.
pub(crate) const SEALED_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 32 << 10;

/// Reads available bytes, or waits for some, by `flags`.
fn receive(socket: RawFd, buffer: &mut [u8], flags: i32) -> Result<usize> {
    // SAFETY: the pointer and the length are those of `buffer`, which lives through the call.
    let n = unsafe { libc::recv(socket, buffer.as_mut_ptr().cast(), buffer.len(), flags) };
    usize::try_from(n).map_err(|_| Error::last_os_error())
}

impl Channel {
    pub fn new(configuration: &TlsConfiguration) -> Result<Channel> {
        let mut tls = ServerConnection::new(configuration.config.clone()).map_err(Error::other)?;
        // Sealed bytes are sent before more are sealed, so they are bounded by `SEALED_BYTES_MAX`.
        tls.set_buffer_limit(None);
        Ok(Channel { tls, raw: vec![0; READ_BYTES], sealed: Vec::new(), sent: 0, is_closed: false })
    }

    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// The client has requested PostgreSQL's protocol by its name.
    pub fn has_protocol(&self) -> bool {
        self.tls.alpn_protocol() == Some(PROTOCOL)
    }

    /// Reads once from the socket and appends the decrypted bytes to `out`: how many, and whether the socket may have had no
    /// more. No decrypted bytes stay here. By `flags` as recv(2).
    ///
    /// # Errors
    /// `WouldBlock`: there are no bytes now. `Interrupted`: the bytes were no whole record, and there may be more. Other errors
    /// end the connection.
    pub fn receive(&mut self, socket: RawFd, out: &mut Vec<u8>, flags: i32) -> Result<(usize, bool)> {
        if self.is_closed {
            return Ok((0, true));
        }
        let mut raw = std::mem::take(&mut self.raw);
        let received = receive(socket, &mut raw, flags);
        let before = out.len();
        let opened = match received {
            Ok(n) => self.open(&raw[..n], out).map(|()| n),
            Err(e) => Err(e),
        };
        let room = raw.len();
        self.raw = raw;
        let n = opened?;
        if n == 0 {
            self.is_closed = true;
        }
        match out.len() - before {
            0 if self.is_closed => Ok((0, true)),
            0 if n < room && flags & libc::MSG_DONTWAIT != 0 => Err(ErrorKind::WouldBlock.into()),
            0 => Err(ErrorKind::Interrupted.into()),
            // The end is found by reading again.
            made => Ok((made, n < room && !self.is_closed)),
        }
    }

    /// Decrypts all of the bytes, and appends the plain text to `out`.
    pub fn open(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        while !bytes.is_empty() && !self.is_closed {
            let taken = self.tls.read_tls(&mut bytes)?;
            let processed = self.tls.process_new_packets();
            // Answers of the handshake, and the alert that reports an error to the client.
            self.collect()?;
            processed.map_err(|e| Error::new(ErrorKind::InvalidData, e))?;
            let mut reader = self.tls.reader();
            loop {
                let length = match reader.fill_buf() {
                    Ok(&[]) => {
                        self.is_closed = true;
                        break;
                    }
                    Ok(chunk) => {
                        out.extend_from_slice(chunk);
                        chunk.len()
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => return Err(e),
                };
                reader.consume(length);
            }
            if taken == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Encrypts bytes; they are to be sent.
    pub fn seal(&mut self, bytes: &[u8]) -> Result<()> {
        for some in bytes.chunks(SEALED_BYTES_MAX) {
            self.tls.writer().write_all(some)?;
            self.collect()?;
        }
        Ok(())
    }

    /// Tells the client that nothing more comes.
    pub fn seal_end(&mut self) {
        self.tls.send_close_notify();
        // Into memory, which does not fail.
        let _ = self.collect();
    }

    /// Takes the protocol's pending output.
    fn collect(&mut self) -> Result<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.sealed)?;
        }
        Ok(())
    }

    /// Encrypted bytes that are to be sent.
    pub fn sealed(&self) -> &[u8] {
        &self.sealed[self.sent..]
    }

    /// So many of them were sent.
    pub fn note_sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.sealed.len() {
            self.sent = 0;
            self.sealed.clear();
            if self.sealed.capacity() > 2 * SEALED_BYTES_MAX {
                self.sealed = Vec::new();
            }
        }
    }

    /// Version, cipher and the bits of its key, by the names that OpenSSL has for them.
    pub fn parameters(&self) -> (&'static str, &'static str, i32) {
        let version = match self.tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "unknown",
        };
        let (cipher, bits) = self.tls.negotiated_cipher_suite().map_or(("unknown", 0), |suite| ciphers::name(suite.suite()));
        (version, cipher, bits)
    }

    /// The client's certificate, which one of our authorities has signed. `Some(None)`: it cannot be parsed.
    pub fn certificate(&self) -> Option<Option<Certificate>> {
        let chain = self.tls.peer_certificates()?;
        chain.first().map(|certificate| Certificate::parse(certificate))
    }
}
