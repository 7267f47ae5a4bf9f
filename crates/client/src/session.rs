//! An open connection: statements sent, messages received.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read as _, Write as _};

use bytes::{Bytes, BytesMut};
use postgres::fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::{DataRowBody, Message};
use postgres_protocol::message::frontend;

use crate::Result;
use crate::cancel::CancelKey;
use crate::report::{Report, lost};
use crate::stream::Socket;

/// Data of COPY are sent in pieces of this size, about.
const COPY_BYTES: usize = 256 << 10;

pub struct Connection {
    pub(crate) stream: Socket,
    pub(crate) incoming: BytesMut,
    pub(crate) outgoing: BytesMut,
    /// Received, but not processed.
    pub(crate) kept: VecDeque<Message>,
    /// The settings that the server reports.
    pub(crate) parameters: HashMap<String, String>,
    /// `I`: no transaction, `T`: in one, `E`: in a failed one.
    pub transaction: u8,
    pub process_id: i32,
    pub cancel_key: CancelKey,
    pub is_encrypted: bool,
    /// The server has disconnected, or ends.
    pub is_lost: bool,
}

/// A message of the server.
pub enum Event {
    Columns(Vec<ResultColumn>),
    Row(Row),
    /// With the command's tag.
    Complete(String),
    /// There was no statement.
    Empty,
    /// A portal has given as many rows as were asked for.
    Suspended,
    Error(Report),
    Notice(Report),
    Notification {
        process_id: i32,
        channel: String,
        payload: String,
    },
    /// It waits for data.
    CopyIn,
    CopyOut,
    CopyData(Bytes),
    CopyDone,
    Ready,
}

#[derive(Clone, Debug)]
pub struct ResultColumn {
    pub name: String,
    pub type_oid: u32,
}

pub struct Row(DataRowBody);

impl Row {
    /// The values' texts.
    pub fn values(&self) -> Result<Vec<Option<&[u8]>>> {
        let data = self.0.buffer();
        let ranges = self.0.ranges().map(|range| Ok(range.map(|range| &data[range])));
        ranges.collect().map_err(|e| e.to_string())
    }
}

/// Columns, and rows of values as text; `None` for NULL.
pub type Table = (Vec<ResultColumn>, Vec<Vec<Option<String>>>);

impl Connection {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Sends statements unchanged; `next` returns their answers, up to `Event::Ready`.
    pub fn send_query(&mut self, sql: &str) -> Result<()> {
        frontend::query(sql, &mut self.outgoing).map_err(|e| format!("the statement cannot be sent: {e}"))?;
        self.flush()
    }

    /// The next message; waits for it.
    ///
    /// # Errors
    /// The connection is lost.
    #[expect(clippy::should_implement_trait, reason = "messages have no end, and each may fail")]
    pub fn next(&mut self) -> Result<Event> {
        loop {
            let event = match self.message().map_err(|e| lost(&e))? {
                Message::RowDescription(body) => {
                    let columns = body.fields().map(|f| Ok(ResultColumn { name: f.name().to_owned(), type_oid: f.type_oid() }));
                    Event::Columns(columns.collect().map_err(|e| e.to_string())?)
                }
                Message::DataRow(body) => Event::Row(Row(body)),
                Message::CommandComplete(body) => Event::Complete(body.tag().map_err(|e| e.to_string())?.to_owned()),
                Message::EmptyQueryResponse => Event::Empty,
                Message::ErrorResponse(body) => Event::Error(Report::of(body.fields())),
                Message::NoticeResponse(body) => Event::Notice(Report::of(body.fields())),
                Message::NotificationResponse(body) => Event::Notification {
                    process_id: body.process_id(),
                    channel: body.channel().unwrap_or_default().to_owned(),
                    payload: body.message().unwrap_or_default().to_owned(),
                },
                Message::CopyInResponse(_) => Event::CopyIn,
                Message::CopyOutResponse(_) => Event::CopyOut,
                Message::CopyData(body) => Event::CopyData(body.into_bytes()),
                Message::CopyDone => Event::CopyDone,
                Message::ReadyForQuery(body) => {
                    self.transaction = body.status();
                    Event::Ready
                }
                Message::ParameterStatus(body) => {
                    let (name, value) = (body.name().unwrap_or_default(), body.value().unwrap_or_default());
                    self.parameters.insert(name.to_owned(), value.to_owned());
                    continue;
                }
                Message::PortalSuspended => Event::Suspended,
                Message::ParseComplete | Message::BindComplete | Message::NoData => continue,
                _ => return Err("the server sent a message that does not belong here".to_owned()),
            };
            return Ok(event);
        }
    }

    /// Whether the server has refused a COPY, whose data it does not want any more. Other messages are kept.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn is_refused(&mut self) -> Result<bool> {
        while !self.incoming.is_empty() || self.stream.is_readable() {
            let message = self.receive().map_err(|e| lost(&e))?;
            let is_error = matches!(message, Message::ErrorResponse(_));
            self.kept.push_back(message);
            if is_error {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends some data of a COPY, when there are enough of them.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        self.outgoing.extend_from_slice(b"d");
        let length = u32::try_from(data.len() + 4).map_err(|_| "a value is too large".to_owned())?;
        self.outgoing.extend_from_slice(&length.to_be_bytes());
        self.outgoing.extend_from_slice(data);
        if self.outgoing.len() >= COPY_BYTES { self.flush() } else { Ok(()) }
    }

    pub fn copy_done(&mut self) -> Result<()> {
        frontend::copy_done(&mut self.outgoing);
        self.flush()
    }

    pub fn copy_fail(&mut self, reason: &str) -> Result<()> {
        frontend::copy_fail(reason, &mut self.outgoing).map_err(|e| e.to_string())?;
        self.flush()
    }

    /// An internal query: its columns and rows.
    ///
    /// # Errors
    /// The server's message, or that the connection is lost.
    pub fn table(&mut self, sql: &str) -> Result<Table> {
        self.send_query(sql)?;
        let (mut columns, mut rows) = (Vec::new(), Vec::new());
        let mut result = Ok(());
        loop {
            match self.next()? {
                Event::Columns(found) => columns = found,
                Event::Row(row) => {
                    let texts = row.values()?.into_iter().map(|v| v.map(|v| String::from_utf8_lossy(v).into_owned()));
                    rows.push(texts.collect());
                }
                Event::Error(report) => {
                    self.is_lost |= report.is_fatal();
                    result = result.and(Err(report.brief()));
                }
                Event::CopyIn => self.copy_fail("nobody has data")?,
                Event::Ready => return result.map(|()| (columns, rows)),
                _ => {}
            }
        }
    }

    /// The rows of an internal query.
    ///
    /// # Errors
    /// As `table`.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>> {
        Ok(self.table(sql)?.1)
    }

    /// Runs internal statements whose rows do not matter.
    ///
    /// # Errors
    /// As `table`.
    pub fn execute(&mut self, sql: &str) -> Result<()> {
        self.table(sql).map(drop)
    }

    pub(crate) fn message(&mut self) -> std::io::Result<Message> {
        match self.kept.pop_front() {
            Some(message) => Ok(message),
            None => self.receive(),
        }
    }

    fn receive(&mut self) -> std::io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.incoming)? {
                return Ok(message);
            }
            let mut piece = [0; 32 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.incoming.extend_from_slice(&piece[..read]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let sent = self.stream.write_all(&self.outgoing).and_then(|()| self.stream.flush());
        self.outgoing.clear();
        sent.map_err(|e| lost(&e))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        frontend::terminate(&mut self.outgoing);
        // The server notices the end of the connection, too.
        let _ = self.flush();
    }
}
