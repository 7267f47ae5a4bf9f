//! One client's socket: a read buffer, a write buffer, and the loop that feeds messages to the session.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use melba_protocol::frame::Next;
use melba_protocol::{Frontend, Output, next_frame};
use melba_sql::session::client::Client;
use melba_sql::session::{Flow, Session};
use melba_types::{DbError, Result, Severity, SqlState, err};

/// Bytes read and not used yet.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

const READ_BYTES: usize = 32 << 10;
/// A buffer that one large message has grown beyond this is given back.
const KEPT_BYTES_MAX: usize = 1 << 20;

impl Input {
    fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn consume(&mut self, n: usize) {
        self.start += n;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > KEPT_BYTES_MAX {
                self.bytes = vec![0; READ_BYTES];
            }
        }
    }

    /// Reads once, after making room for a message of `need` bytes.
    fn fill(&mut self, stream: &mut TcpStream, need: usize) -> std::io::Result<usize> {
        if self.start > 0 && self.bytes.len() - self.start < need.max(READ_BYTES / 2) {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.bytes.len() < self.end + 1 || self.bytes.len() - self.start < need {
            // Grow by what has arrived, not by what the length field promises: a client must send a gigabyte to have one allocated.
            let wanted = need.min(self.bytes.len().saturating_mul(2)).max(self.end + READ_BYTES);
            self.bytes.resize(wanted, 0);
        }
        let n = stream.read(&mut self.bytes[self.end..])?;
        self.end += n;
        Ok(n)
    }
}

/// A connection as the session sees it.
pub(crate) struct Connection {
    stream: TcpStream,
    input: Input,
    output: Output,
    /// Bytes of the message that `copy_read` gave out last.
    lent: usize,
    read_timeout: Option<Duration>,
}

/// Why reading stopped.
pub(crate) enum ReadEnd {
    /// The client closed the connection, or it broke.
    Closed,
    /// Nothing came for as long as the read timeout.
    Timeout,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Connection {
        Connection { stream, input: Input::default(), output: Output::new(), lent: 0, read_timeout: None }
    }

    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        if self.read_timeout != timeout && self.stream.set_read_timeout(timeout).is_ok() {
            self.read_timeout = timeout;
        }
    }

    pub fn data(&self) -> &[u8] {
        self.input.data()
    }

    pub fn consume(&mut self, n: usize) {
        self.input.consume(n);
    }

    /// Waits until at least `need` unused bytes are there.
    pub fn read_until(&mut self, need: usize) -> Result<(), ReadEnd> {
        while self.input.data().len() < need {
            match self.input.fill(&mut self.stream, need) {
                Ok(0) => return Err(ReadEnd::Closed),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Err(ReadEnd::Timeout),
                Err(_) => return Err(ReadEnd::Closed),
            }
        }
        Ok(())
    }

    /// Sends bytes that are no message (the answer to SSLRequest).
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).map_err(connection_lost)
    }

    /// The next message in `message`, with its tag.
    pub fn read_message(&mut self, message: &mut Vec<u8>) -> Result<Result<u8>, ReadEnd> {
        // What a COPY that failed was looking at.
        self.input.consume(std::mem::take(&mut self.lent));
        loop {
            match next_frame(self.input.data()) {
                Err(e) => return Ok(Err(e)),
                Ok(Next::Need(n)) => self.read_until(n)?,
                Ok(Next::Frame(frame)) => {
                    message.clear();
                    message.extend_from_slice(&self.input.data()[frame.body..frame.end]);
                    self.input.consume(frame.end);
                    return Ok(Ok(frame.tag));
                }
            }
        }
    }

    /// Reports an error that ends the connection.
    pub fn fail(&mut self, error: DbError) {
        let error = if error.fields().severity < Severity::Fatal { error.severity(Severity::Fatal) } else { error };
        self.output.report(&error);
        // The client may be gone already, which is as well.
        let _ = self.flush();
    }
}

impl Client for Connection {
    fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn flush(&mut self) -> Result<()> {
        let result = self.stream.write_all(self.output.bytes()).map_err(connection_lost);
        self.output.clear();
        result
    }

    fn copy_read(&mut self) -> Result<Option<&[u8]>> {
        self.input.consume(std::mem::take(&mut self.lent));
        loop {
            match next_frame(self.input.data())? {
                Next::Need(n) => self.read_until(n).map_err(|_| {
                    err!(CONNECTION_FAILURE, "unexpected EOF on client connection with an open transaction")
                        .severity(Severity::Fatal)
                })?,
                Next::Frame(frame) if frame.tag == b'd' => {
                    self.lent = frame.end;
                    return Ok(Some(&self.input.data()[frame.body..frame.end]));
                }
                Next::Frame(frame) => {
                    let message = self.input.data()[frame.body..frame.end].to_vec();
                    self.input.consume(frame.end);
                    match Frontend::decode(frame.tag, &message)? {
                        Frontend::CopyDone => return Ok(None),
                        Frontend::CopyFail(reason) => return Err(err!(QUERY_CANCELED, "COPY from stdin failed: {reason}")),
                        // Allowed so that clients can send them blindly.
                        Frontend::Flush | Frontend::Sync => {}
                        _ => {
                            return Err(err!(
                                PROTOCOL_VIOLATION,
                                "unexpected message type 0x{:02X} during COPY from stdin",
                                frame.tag
                            ));
                        }
                    }
                }
            }
        }
    }
}

fn connection_lost(e: std::io::Error) -> DbError {
    DbError::new(SqlState::CONNECTION_FAILURE, format!("could not send data to client: {e}")).severity(Severity::Fatal)
}

/// Feeds the session until the client leaves, the connection breaks or the session must end.
pub(crate) fn serve(connection: &mut Connection, session: &mut Session) {
    let mut message = Vec::new();
    loop {
        connection.set_read_timeout(session.idle_timeout());
        let tag = match connection.read_message(&mut message) {
            Ok(Ok(tag)) => tag,
            Ok(Err(error)) => return connection.fail(error),
            Err(end) => {
                // A session that must end is woken by closing the reading side.
                let error = session.state().interrupt.must_end().or(match end {
                    ReadEnd::Timeout => Some(session.idle_timeout_error()),
                    ReadEnd::Closed => None,
                });
                if let Some(error) = error {
                    connection.fail(error);
                }
                return;
            }
        };
        if let Some(error) = session.state().interrupt.must_end() {
            return connection.fail(error);
        }
        let flow = match Frontend::decode(tag, &message) {
            Ok(frontend) => session.handle(frontend, connection),
            Err(error) => session.reject(tag, error, connection),
        };
        if message.capacity() > KEPT_BYTES_MAX {
            message = Vec::new();
        }
        match flow {
            Ok(Flow::Continue) => {
                if connection.flush_when_large().is_err() {
                    return;
                }
            }
            Ok(Flow::Flush) => {
                if connection.flush().is_err() {
                    return;
                }
            }
            Ok(Flow::End) => return,
            Err(_) => {
                let _ = connection.flush();
                return;
            }
        }
    }
}
