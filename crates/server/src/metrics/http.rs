//! The part of HTTP/1.1 that three pages need: one request per connection, its head bounded in bytes and time, no body.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long a client may take for its request, and for the answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 8192;
const HEADERS_MAX: usize = 64;
/// Bytes read and dropped from a client that continues to send, so that it receives its answer.
const DRAINED_BYTES_MAX: usize = 64 << 10;

/// The parsed request.
pub struct Request {
    pub method: String,
    /// Without the part after `?`.
    pub path: String,
    pub authorization: Option<String>,
}

/// An answer.
pub struct Response {
    status: u16,
    kind: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
    has_body: bool,
}

impl Response {
    pub fn text(status: u16, body: &str) -> Response {
        Response { status, kind: "text/plain; charset=utf-8", headers: Vec::new(), body: body.to_owned(), has_body: true }
    }

    /// Prometheus' text format.
    pub fn metrics(body: String) -> Response {
        Response { kind: "text/plain; version=0.0.4; charset=utf-8", body, ..Response::text(200, "") }
    }

    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Response {
        self.headers.push((name, value));
        self
    }

    /// To HEAD.
    pub fn without_body(self) -> Response {
        Response { has_body: false, ..self }
    }

    fn bytes(&self) -> Vec<u8> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            505 => "HTTP Version Not Supported",
            _ => "Service Unavailable",
        };
        let mut head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\n",
            self.status,
            self.kind,
            self.body.len()
        );
        self.headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        head.push_str("\r\n");
        if self.has_body {
            head.push_str(&self.body);
        }
        head.into_bytes()
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
fn parse(head: &[u8]) -> Result<Option<Request>, Response> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Response::text(431, "the request has too many headers\n")),
        Err(httparse::Error::Version) => return Err(Response::text(505, "HTTP/1.1 is spoken here\n")),
        Err(_) => return Err(Response::text(400, "the request is malformed\n")),
    }
    let header = |name: &str| request.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
    let has_body = header("content-length").is_some_and(|value| value != b"0") || header("transfer-encoding").is_some();
    if has_body {
        return Err(Response::text(413, "a request has no body here\n"));
    }
    let path = request.path.unwrap_or_default();
    Ok(Some(Request {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.split(['?', '#']).next().unwrap_or_default().to_owned(),
        authorization: header("authorization").map(|value| String::from_utf8_lossy(value).into_owned()),
    }))
}

/// Writes an answer, as far as the client takes it in time, and ends the connection.
pub fn write(stream: &TcpStream, response: &Response) {
    let until = Instant::now() + PATIENCE;
    let bytes = response.bytes();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_write_timeout(Some(left)).is_err() {
            return;
        }
        match (&*stream).write(rest) {
            Ok(0) => return,
            Ok(n) => rest = &rest[n..],
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => continue,
            Err(_) => return,
        }
    }
    // A connection that is closed with bytes unread is reset, and the answer may be lost.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> Option<u16> {
        match parse(head.as_bytes()) {
            Ok(None) => None,
            Ok(Some(_)) => Some(200),
            Err(response) => Some(response.status),
        }
    }

    #[test]
    fn only_whole_requests_without_a_body_are_taken() {
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), Some(200));
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
        assert_eq!(status("GET /metrics HTTP/1.0\n\n"), Some(200));
        assert_eq!(status("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n"), Some(413));
        assert_eq!(status("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), Some(413));
        assert_eq!(status("GET / HTTP/2.0\r\n\r\n"), Some(505));
        assert_eq!(status("\u{16}\u{3}\u{1}garbage\r\n\r\n"), Some(400), "TLS to a port without it");
        let many = "X: y\r\n".repeat(HEADERS_MAX + 1);
        assert_eq!(status(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Some(431));
    }

    #[test]
    fn a_path_ends_before_its_query() {
        let request = parse(b"GET /metrics?name[]=pg_up HTTP/1.1\r\nAuthorization: Bearer x\r\n\r\n").ok().flatten();
        let request = request.expect("it is whole");
        assert_eq!((request.path.as_str(), request.authorization.as_deref()), ("/metrics", Some("Bearer x")));
    }
}
