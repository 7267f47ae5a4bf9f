//! The part of HTTP/1.1 that a few pages and a JSON interface need: one request per connection, no proxying, no compression.
//!
//! 1. A request's head is bounded in bytes and time, its body is read by the caller up to a size that it chose.
//! 2. A client that does not read its answer, or does not send its body, is disconnected.
//! 3. Bytes of a client are never asserted: what is malformed gets an answer that says so.

#![allow(clippy::disallowed_methods, reason = "sockets and their timeouts")]

mod body;
mod response;

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub use body::{Pieces, RequestBody};
pub use response::{Response, write};

/// How long a client may take for its request's head, for the answer, and between two pieces of a body.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;

/// The parsed head of a request.
#[derive(Debug, Default)]
pub struct Request {
    pub method: String,
    /// Without the part after `?`.
    pub path: String,
    /// After the `?`, as sent.
    pub query: String,
    headers: Vec<(String, String)>,
    /// Bytes that follow the head.
    pub body_bytes: u64,
    /// Those of them that have been read.
    begun: Vec<u8>,
}

impl Request {
    /// The value of a header that stands there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let (_, value) = found.next()?;
        found.next().is_none().then_some(value)
    }

    /// The response to a request with a body where none is taken.
    pub fn refused_body(&self) -> Option<Response> {
        (self.body_bytes > 0).then(|| Response::text(413, "a request has no body here\n"))
    }
}

/// Reads a request's head.
///
/// # Errors
/// The response to an invalid request; `None` when the client has disconnected.
pub fn read(stream: &TcpStream) -> Result<Request, Option<Response>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Some(Response::text(408, "the request took too long\n")));
        }
        stream.set_read_timeout(Some(left)).map_err(|_| None)?;
        match (&*stream).read(&mut piece) {
            Ok(0) => return Err(None),
            Ok(n) => head.extend_from_slice(&piece[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => continue,
            Err(_) => return Err(None),
        }
        match parse(&head) {
            Ok(Some(request)) => return Ok(request),
            Ok(None) if head.len() >= HEAD_BYTES_MAX => return Err(Some(Response::text(431, "the request is too long\n"))),
            Ok(None) => {}
            Err(response) => return Err(Some(response)),
        }
    }
}

/// `None`: there is more to come.
fn parse(bytes: &[u8]) -> Result<Option<Request>, Response> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let head_bytes = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Response::text(431, "the request has too many headers\n")),
        Err(httparse::Error::Version) => return Err(Response::text(505, "HTTP/1.1 is spoken here\n")),
        Err(_) => return Err(Response::text(400, "the request is malformed\n")),
    };
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let target = parsed.path.unwrap_or_default().split('#').next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: parsed.headers.iter().map(|h| (h.name.to_owned(), text(h.value))).collect(),
        body_bytes: 0,
        begun: Vec::new(),
    };
    let has = |name: &str| request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    // Two opinions on where a body ends are how requests are smuggled; so there is one, and it stands in the head.
    if has("transfer-encoding") {
        return Err(Response::text(411, "the length of a body is needed\n"));
    }
    if has("content-length") {
        let bytes = request.header("content-length").filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let bytes = bytes.and_then(|text| text.parse().ok());
        request.body_bytes = bytes.ok_or_else(|| Response::text(400, "the length of the body is malformed\n"))?;
    }
    let begun = &bytes[head_bytes..];
    let taken = begun.len().min(usize::try_from(request.body_bytes).unwrap_or(usize::MAX));
    request.begun = begun[..taken].to_vec();
    Ok(Some(request))
}

#[cfg(test)]
mod tests;
