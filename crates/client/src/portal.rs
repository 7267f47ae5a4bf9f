//! One statement with parameters, whose rows are fetched in pieces: its portal stays open, without a `Sync`, until the rows end or
//! the caller stops. So every statement that returns rows can be paged through, not only those that a cursor may be declared for.

use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use crate::Result;
use crate::session::Connection;

impl Connection {
    /// Sends a statement with the texts of its parameters, whose types the server finds; `next` returns the description of its
    /// rows, at most `rows_max` of them (0: all), and `Event::Suspended` when there may be more. After `Event::Complete`,
    /// `Event::Empty` or `Event::Error` the caller sends `end_portal`.
    pub fn send_portal(&mut self, sql: &str, parameters: &[Option<String>], rows_max: i32) -> Result<()> {
        let failed = |e: &dyn std::fmt::Display| format!("the statement cannot be sent: {e}");
        let out = &mut self.outgoing;
        frontend::parse("", sql, [], out).map_err(|e| failed(&e))?;
        let write = |value: &Option<String>, out: &mut bytes::BytesMut| {
            let Some(text) = value else { return Ok(IsNull::Yes) };
            out.extend_from_slice(text.as_bytes());
            Ok(IsNull::No)
        };
        let bound = frontend::bind("", "", [], parameters, write, [], out);
        bound.map_err(|e| match e {
            frontend::BindError::Conversion(e) => failed(&e),
            frontend::BindError::Serialization(e) => failed(&e),
        })?;
        frontend::describe(b'P', "", out).map_err(|e| failed(&e))?;
        self.send_more(rows_max)
    }

    /// Asks for the next rows of a suspended portal.
    pub fn send_more(&mut self, rows_max: i32) -> Result<()> {
        frontend::execute("", rows_max, &mut self.outgoing).map_err(|e| e.to_string())?;
        frontend::flush(&mut self.outgoing);
        self.flush()
    }

    /// Ends the portal, and outside of a block its transaction; `next` returns `Event::Ready` in the end.
    pub fn end_portal(&mut self) -> Result<()> {
        frontend::sync(&mut self.outgoing);
        self.flush()
    }
}
