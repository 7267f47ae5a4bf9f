//! One client's socket: a read buffer, a write buffer, and the loop that feeds messages to the session.
//!
//! The socket is a blocking one; each call that must not wait passes a flag.
//!
//! Over TLS the same bytes are encrypted when they are sent and not before: until then an answer may be withdrawn, for a commit
//! that fails.

use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use melba_protocol::frame::{MessageFrame, NextFrame};
use melba_protocol::{Frontend, Output, next_frame};
use melba_sql::session::{Flow, Session};
use melba_statement::client::Client;
use melba_types::{DbError, Result, Severity, SqlState, err};

use crate::scheduler::before_wait;
use crate::sending::{Patience, send, send_some};
use crate::stream::Stream;
use crate::tls::{Channel, SEALED_BYTES_MAX, TlsConfiguration};
use crate::turns::world::Turn;

/// Bytes read; those from `start` on are not used yet.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    start: usize,
}

const READ_BYTES: usize = 32 << 10;
/// What a buffer has at least, and what it keeps while the client is waited for: there may be thousands of clients that do nothing.
const RESTING_BYTES: usize = 4 << 10;
/// A buffer that one large message has grown beyond this is freed.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Room for messages up to this length is reserved at once.
const PROMISED_BYTES_MAX: usize = 16 << 20;
/// Longer messages are handled where they were read, when little follows them.
const COPIED_BYTES_MAX: usize = 4 << 10;

impl Input {
    fn data(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn consume(&mut self, n: usize) {
        self.start += n;
        if self.start == self.bytes.len() {
            self.start = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES_MAX {
                self.bytes = Vec::new();
            }
        }
    }

    fn rest(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > RESTING_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Makes room for a message of `need` bytes.
    fn reserve(&mut self, need: usize) {
        let room = self.bytes.capacity() - self.start;
        if self.start > 0 && room < need.max(READ_BYTES / 2) {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let (have, room) = (self.bytes.len(), self.bytes.capacity());
        if room == have || room - self.start < need {
            let more = if have == 0 { RESTING_BYTES } else { READ_BYTES };
            // Beyond some megabytes, capacity grows with the bytes received, not with the length field: a client must send a
            // gigabyte to have one allocated.
            let wanted = need.min(room.saturating_mul(4).max(PROMISED_BYTES_MAX)).max(have + more);
            self.bytes.reserve_exact(wanted - have);
        }
    }

    /// Reads once the bytes that have arrived, `WouldBlock` when there are none. Returns whether they may have been all.
    fn receive(&mut self, wire: &mut Wire, need: usize) -> std::io::Result<(usize, bool)> {
        self.receive_by(wire, need, libc::MSG_DONTWAIT)
    }

    fn receive_by(&mut self, wire: &mut Wire, need: usize, flags: i32) -> std::io::Result<(usize, bool)> {
        self.reserve(need);
        let stream = &wire.stream;
        if let Some(tls) = &mut wire.tls {
            return tls.receive(stream.as_raw_fd(), &mut self.bytes, flags);
        }
        let room = self.bytes.spare_capacity_mut();
        // SAFETY: the pointer and the length are those of `room`, which lives through the call.
        let n = unsafe { libc::recv(stream.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), flags) };
        let n = usize::try_from(n).map_err(|_| Error::last_os_error())?;
        let all = n < room.len();
        // SAFETY: the call has written the first `n` bytes of the room.
        unsafe { self.bytes.set_len(self.bytes.len() + n) };
        Ok((n, all))
    }

    /// Reads once, waiting for bytes.
    fn fill(&mut self, wire: &mut Wire, need: usize) -> std::io::Result<usize> {
        let received = match self.receive(wire, need) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                before_wait();
                self.receive_by(wire, need, 0)
            }
            received => received,
        };
        received.map(|(n, _)| n)
    }

    /// Moves the first message, which is whole, to the end of `message`; where its body begins there.
    fn take(&mut self, frame: &MessageFrame, message: &mut Vec<u8>) -> usize {
        message.clear();
        let data = self.data();
        if frame.end > COPIED_BYTES_MAX && data.len() - frame.end <= COPIED_BYTES_MAX {
            message.extend_from_slice(&data[frame.end..]);
            std::mem::swap(message, &mut self.bytes);
            let start = std::mem::take(&mut self.start);
            message.truncate(start + frame.end);
            return start + frame.body;
        }
        message.extend_from_slice(&self.data()[frame.body..frame.end]);
        self.consume(frame.end);
        0
    }
}

/// The socket, and its encryption.
struct Wire {
    stream: Arc<Stream>,
    tls: Option<Box<Channel>>,
    patience: Patience,
}

impl Wire {
    /// Sends everything, waiting for the client if it must.
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let Some(tls) = &mut self.tls else { return send(&self.stream, bytes, &mut self.patience) };
        // Bytes encrypted before are sent first, even when nothing is added.
        let mut pieces = bytes.chunks(SEALED_BYTES_MAX);
        let mut piece = pieces.next();
        loop {
            tls.seal(piece.unwrap_or_default())?;
            let sealed = tls.sealed();
            let count = sealed.len();
            send(&self.stream, sealed, &mut self.patience)?;
            tls.note_sent(count);
            piece = pieces.next();
            if piece.is_none() {
                return Ok(());
            }
        }
    }
}

/// A connection as the session sees it.
pub(crate) struct Connection {
    wire: Wire,
    input: Input,
    output: Output,
    /// The output is an answer that the client waits for.
    has_answer: bool,
    /// How much of the output was sent.
    sent: usize,
    /// Bytes of the message that `copy_read` returned last.
    lent: usize,
    /// The message being handled: its body begins at `body`.
    message: Vec<u8>,
    body: usize,
    /// The socket had nothing left when it was last read.
    drained: bool,
    /// When the client is waited for no longer, of one that is to authenticate.
    deadline: Option<Instant>,
}

/// The client closed the connection, or it broke, or nothing came for as long as the read timeout.
pub(crate) struct ReadEnd;

impl Connection {
    pub fn new(stream: Arc<Stream>) -> Connection {
        Connection {
            wire: Wire { stream, tls: None, patience: Patience::default() },
            input: Input::default(),
            output: Output::new(),
            has_answer: false,
            sent: 0,
            lent: 0,
            message: Vec::new(),
            body: 0,
            drained: false,
            deadline: None,
        }
    }

    /// How long to wait for the client from now on, whether it is to send or to read, even if it sends meanwhile.
    ///
    /// # Errors
    /// The system's.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) -> std::io::Result<()> {
        self.wire.patience.limit(timeout);
        self.deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.wire.stream.set_read_timeout(timeout)
    }

    /// The time of `set_timeout` is over.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    pub fn data(&self) -> &[u8] {
        self.input.data()
    }

    pub fn consume(&mut self, n: usize) {
        self.input.consume(n);
    }

    /// Waits until there are at least `need` unused bytes.
    pub fn read_until(&mut self, need: usize) -> Result<(), ReadEnd> {
        while self.input.data().len() < need {
            self.limit_read()?;
            match self.input.fill(&mut self.wire, need) {
                Ok(n) if n > 0 => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                _ => return Err(ReadEnd),
            }
        }
        Ok(())
    }

    /// The next read waits until the deadline, if there is one.
    fn limit_read(&self) -> Result<(), ReadEnd> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let left = deadline.saturating_duration_since(Instant::now());
        match left.is_zero() || self.wire.stream.set_read_timeout(Some(left)).is_err() {
            true => Err(ReadEnd),
            false => Ok(()),
        }
    }

    /// Sends bytes that are no message (the answer to SSLRequest).
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<()> {
        self.wire.send(bytes).map_err(connection_lost)
    }

    /// Negotiates TLS with the client; bytes read already are the beginning of it.
    ///
    /// # Errors
    /// Why TLS was not negotiated; the client was told by an alert, if at all.
    pub fn start_tls(&mut self, configuration: &TlsConfiguration) -> std::io::Result<()> {
        let mut tls = Channel::new(configuration)?;
        let beginning = std::mem::take(&mut self.input);
        let mut result = tls.open(beginning.data(), &mut self.input.bytes);
        while result.is_ok() && tls.is_handshaking() {
            let sealed = tls.sealed();
            let count = sealed.len();
            send(&self.wire.stream, sealed, &mut self.wire.patience)?;
            tls.note_sent(count);
            self.limit_read().map_err(|_| ErrorKind::TimedOut)?;
            result = match tls.receive(self.wire.stream.as_raw_fd(), &mut self.input.bytes, 0) {
                Ok((0, _)) => Err(ErrorKind::UnexpectedEof.into()),
                Err(e) if e.kind() != ErrorKind::Interrupted => Err(e),
                _ => Ok(()),
            };
        }
        // The end of the handshake, or the alert.
        let sealed = tls.sealed();
        let count = sealed.len();
        let sent = send(&self.wire.stream, sealed, &mut self.wire.patience);
        tls.note_sent(count);
        self.wire.tls = Some(Box::new(tls));
        result.and(sent)
    }

    /// The channel that encrypts, if one does.
    pub fn tls(&self) -> Option<&Channel> {
        self.wire.tls.as_deref()
    }

    /// The next message in `message`, with its tag; waits for it.
    pub fn read_message(&mut self, message: &mut Vec<u8>) -> Result<Result<u8>, ReadEnd> {
        loop {
            match next_frame(self.input.data()) {
                Err(e) => return Ok(Err(e)),
                Ok(NextFrame::Need(n)) => self.read_until(n)?,
                Ok(NextFrame::Lost) => return Err(ReadEnd),
                Ok(NextFrame::Frame(frame)) => {
                    message.clear();
                    message.extend_from_slice(&self.input.data()[frame.body..frame.end]);
                    self.input.consume(frame.end);
                    return Ok(Ok(frame.tag));
                }
            }
        }
    }

    /// The events that may end the waits for a client that does not read.
    pub fn patience(&mut self) -> &mut Patience {
        &mut self.wire.patience
    }

    pub fn descriptor(&self) -> RawFd {
        self.wire.stream.as_raw_fd()
    }

    /// Forgets unsent output.
    pub fn discard_output(&mut self) {
        self.output.clear();
        self.has_answer = false;
        self.sent = 0;
    }

    /// An answer is to be sent before the client is waited for.
    pub fn has_answer(&self) -> bool {
        self.has_answer && (self.output.bytes().len() > self.sent || self.tls().is_some_and(|tls| !tls.sealed().is_empty()))
    }

    /// Encrypts the answer, if it must be. After this it cannot be taken back.
    pub fn prepare_answer(&mut self) -> std::io::Result<()> {
        if let Some(tls) = &mut self.wire.tls {
            tls.seal(self.output.bytes())?;
            self.output.clear();
        }
        Ok(())
    }

    /// The prepared answer as it is sent over the wire, or empty.
    pub fn prepared_answer(&self) -> &[u8] {
        match &self.wire.tls {
            _ if !self.has_answer => &[],
            Some(tls) => tls.sealed(),
            None => &self.output.bytes()[self.sent..],
        }
    }

    /// `count` bytes of `prepared_answer` were sent.
    pub fn note_sent(&mut self, count: usize) {
        match &mut self.wire.tls {
            Some(tls) => tls.note_sent(count),
            None => self.sent += count,
        }
        if !self.has_answer() {
            self.discard_output();
            self.output.rest();
        }
    }

    /// Sends the answer, waiting for the client if it must.
    pub fn send_answer(&mut self) -> Result<()> {
        let sent = self.flush();
        self.output.rest();
        sent
    }

    /// Tells the client that nothing more comes, as far as that needs no waiting.
    pub fn say_end(&mut self) {
        let Some(tls) = &mut self.wire.tls else { return };
        tls.seal_end();
        // The client may have disconnected already, which is no error here.
        let _ = send_some(self.wire.stream.as_raw_fd(), tls.sealed());
    }

    /// Feeds the session the client's messages, until they are used up, and before and after that sends the client the
    /// notifications of other sessions; the last answer is then in `prepared_answer`. `news`: the socket may have bytes. `hung_up`: its end
    /// may have come.
    pub fn turn(&mut self, session: &mut Session, news: bool, hung_up: bool) -> Turn {
        self.notify(session);
        let turn = self.feed(session, news, hung_up);
        if turn == Turn::Waits {
            self.notify(session);
            self.input.rest();
            if self.message.capacity() > RESTING_BYTES {
                self.message = Vec::new();
            }
        }
        turn
    }

    fn notify(&mut self, session: &mut Session) {
        if session.has_notifications() {
            session.send_notifications(self);
            self.has_answer |= !self.output.is_empty();
        }
    }

    fn feed(&mut self, session: &mut Session, news: bool, hung_up: bool) -> Turn {
        self.drained &= !news;
        loop {
            self.input.consume(std::mem::take(&mut self.lent));
            let frame = match next_frame(self.input.data()) {
                Ok(NextFrame::Frame(frame)) => frame,
                Ok(NextFrame::Lost) => return Turn::Ends,
                Ok(NextFrame::Need(_)) if self.drained && !hung_up => return Turn::Waits,
                Ok(NextFrame::Need(need)) => match self.read_news(need) {
                    Ok(true) => continue,
                    Ok(false) => return Turn::Waits,
                    Err(ReadEnd) => {
                        // A session that must end is woken by closing the reading side.
                        if let Some(error) = session.state().interrupt.must_end() {
                            session.log_error(&error);
                            self.fail(error);
                        }
                        return Turn::Ends;
                    }
                },
                Err(error) => {
                    session.log_error(&error.clone().severity(Severity::Fatal));
                    self.fail(error);
                    return Turn::Ends;
                }
            };
            self.body = self.input.take(&frame, &mut self.message);
            if let Some(turn) = self.serve(session, frame.tag) {
                return turn;
            }
        }
    }

    /// A turn would have work without further news of the socket.
    pub fn wants_turn(&self) -> bool {
        !self.drained || !matches!(next_frame(self.input.data()), Ok(NextFrame::Need(_)))
    }

    /// Reads once without waiting; false when there is nothing.
    fn read_news(&mut self, need: usize) -> Result<bool, ReadEnd> {
        match self.input.receive(&mut self.wire, need) {
            Ok((0, _)) => Err(ReadEnd),
            Ok((_, all)) => {
                self.drained = all;
                Ok(true)
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(true),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                self.drained = true;
                Ok(false)
            }
            Err(_) => Err(ReadEnd),
        }
    }

    /// Handles the message in `self.message`; returns the end of the turn, if it ends it.
    fn serve(&mut self, session: &mut Session, tag: u8) -> Option<Turn> {
        if let Some(error) = session.state().interrupt.must_end() {
            session.log_error(&error);
            self.fail(error);
            return Some(Turn::Ends);
        }
        if self.has_answer {
            self.wire.patience.limit(session.idle_timeout());
            let sent = self.flush();
            self.wire.patience.limit(None);
            if sent.is_err() {
                return Some(Turn::Ends);
            }
        }
        let mut message = std::mem::take(&mut self.message);
        let mut recoded = Vec::new();
        let flow = match Frontend::decode_from(session.client_encoding(), tag, &message[self.body..], &mut recoded) {
            Ok(frontend) => session.handle(frontend, self),
            Err(error) => session.reject(tag, error, self),
        };
        if message.capacity() > KEPT_BYTES_MAX {
            message = Vec::new();
        }
        self.message = message;
        let sent = match flow {
            Ok(Flow::Continue) if session.is_committing() => Ok(()),
            Ok(Flow::Continue) => self.flush_when_large(),
            Ok(Flow::Flush) => {
                self.has_answer = !self.output.is_empty();
                if session.is_committing() {
                    return Some(Turn::Commits);
                }
                self.flush_when_large()
            }
            Ok(Flow::End) => return Some(Turn::Ends),
            Err(error) => {
                self.wire.patience.expect_end();
                self.flush().and(Err(error))
            }
        };
        sent.is_err().then_some(Turn::Ends)
    }

    /// Reports an error that ends the connection.
    pub fn fail(&mut self, error: DbError) {
        self.prepare_end(error);
        // The client may have disconnected already, which is no error here.
        let _ = self.flush();
        self.say_end();
    }

    /// The same, but leaves the error to be sent as an answer.
    pub fn prepare_end(&mut self, error: DbError) {
        let error = if error.fields().severity < Severity::Fatal { error.severity(Severity::Fatal) } else { error };
        self.output.report(&error);
        self.has_answer = true;
        self.wire.patience.expect_end();
    }
}

impl Client for Connection {
    fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn flush(&mut self) -> Result<()> {
        self.flush_around(&[])
    }

    fn flush_around(&mut self, values: &[(usize, &[u8])]) -> Result<()> {
        let bytes = self.output.bytes();
        let mut from = self.sent;
        let mut result = Ok(());
        for (at, value) in values {
            for piece in [&bytes[from..*at], value] {
                result = result.and_then(|()| self.wire.send(piece));
            }
            from = *at;
        }
        let result = result.and_then(|()| self.wire.send(&bytes[from..]));
        self.discard_output();
        result.map_err(connection_lost)
    }

    fn copy_stalls(&mut self) -> Result<bool> {
        /// Shorter pauses are normal for a working client.
        const PAUSE_MILLISECONDS: i32 = 20;
        self.input.consume(std::mem::take(&mut self.lent));
        let NextFrame::Need(need) = next_frame(self.input.data())? else { return Ok(false) };
        match self.read_news(need) {
            Ok(false) => {}
            // The next reader finds the end of the stream again.
            Ok(true) | Err(ReadEnd) => return Ok(false),
        }
        before_wait();
        let mut wanted = libc::pollfd { fd: self.wire.stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor, which lives through the call.
        Ok(unsafe { libc::poll(&mut wanted, 1, PAUSE_MILLISECONDS) } == 0)
    }

    fn copy_read(&mut self) -> Result<Option<&[u8]>> {
        self.input.consume(std::mem::take(&mut self.lent));
        let gone = |_| err!(CONNECTION_FAILURE, "unexpected EOF on client connection with an open transaction");
        loop {
            match next_frame(self.input.data())? {
                NextFrame::Need(n) => {
                    // This read does not check whether that was all.
                    self.drained = false;
                    self.read_until(n).map_err(gone)?;
                }
                NextFrame::Lost => return Err(gone(ReadEnd)),
                NextFrame::Frame(frame) if frame.tag == b'd' => {
                    self.lent = frame.end;
                    return Ok(Some(&self.input.data()[frame.body..frame.end]));
                }
                NextFrame::Frame(frame) => {
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
