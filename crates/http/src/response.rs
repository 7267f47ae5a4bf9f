//! Answers: a status, headers, and a body in one piece or in many.

use std::borrow::Cow;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// Bytes read and dropped from a client that continues to send, so that it receives its answer.
const DRAINED_BYTES_MAX: usize = 64 << 10;
/// A client that takes fewer is too slow.
const BYTES_PER_SECOND_MIN: u64 = 64 << 10;

/// An answer.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    kind: &'static str,
    headers: Vec<(&'static str, Cow<'static, str>)>,
    body: Cow<'static, [u8]>,
    has_body: bool,
}

impl Response {
    /// A body of a media type.
    pub fn new(status: u16, kind: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Response {
        Response { status, kind, headers: Vec::new(), body: body.into(), has_body: true }
    }

    pub fn text(status: u16, body: &str) -> Response {
        Response::new(status, "text/plain; charset=utf-8", body.as_bytes().to_vec())
    }

    pub fn with_header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Response {
        let value = value.into();
        debug_assert!(!value.contains(['\r', '\n']), "a header is one line");
        self.headers.push((name, value));
        self
    }

    /// To HEAD.
    pub fn without_body(self) -> Response {
        Response { has_body: false, ..self }
    }

    /// The head; `length` is `None` for a body in pieces.
    pub(crate) fn head(&self, length: Option<usize>) -> String {
        let reason = match self.status {
            200 => "OK",
            204 => "No Content",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            409 => "Conflict",
            411 => "Length Required",
            413 => "Content Too Large",
            421 => "Misdirected Request",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            502 => "Bad Gateway",
            505 => "HTTP Version Not Supported",
            _ => "Service Unavailable",
        };
        let length = length.map_or_else(|| "Transfer-Encoding: chunked".to_owned(), |bytes| format!("Content-Length: {bytes}"));
        let mut head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\n{length}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\n",
            self.status, self.kind,
        );
        self.headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str("\r\n");
        head
    }
}

/// Writes an answer, as far as the client takes it in time, and ends the connection.
pub fn write(stream: &TcpStream, response: &Response) {
    let mut bytes = response.head(Some(response.body.len())).into_bytes();
    if response.has_body {
        bytes.extend_from_slice(&response.body);
    }
    if send(stream, &bytes).is_ok() {
        end(stream);
    }
}

/// # Errors
/// The client is gone, or too slow.
pub(crate) fn send(stream: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    let until = Instant::now() + PATIENCE + Duration::from_secs(bytes.len() as u64 / BYTES_PER_SECOND_MIN);
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match (&*stream).write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => continue,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Ends a connection whose answer is sent: one that is closed with bytes unread is reset, and the answer may be lost.
pub(crate) fn end(stream: &TcpStream) {
    let until = Instant::now() + PATIENCE;
    let _ = stream.shutdown(Shutdown::Write);
    let mut piece = [0; 1024];
    let mut drained = 0;
    while drained < DRAINED_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return;
        }
        match (&*stream).read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(n) => drained += n,
        }
    }
}
