//! Messages of the server, written directly into the output buffer.

use melba_encoding::{Encoding, UTF8};
use melba_types::{DbError, Oid, Severity};

use crate::startup::ProtocolVersion;

/// The format of one value on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Text,
    Binary,
    /// Any other code: an error as soon as a value is to be read or written by it.
    Unknown(i16),
}

impl Format {
    pub fn code(self) -> i16 {
        match self {
            Format::Text => 0,
            Format::Binary => 1,
            Format::Unknown(code) => code,
        }
    }

    pub fn of_code(code: i16) -> Format {
        match code {
            0 => Format::Text,
            1 => Format::Binary,
            other => Format::Unknown(other),
        }
    }
}

/// The transaction block's state in ReadyForQuery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    InBlock,
    Failed,
}

/// One column of a RowDescription.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldDescription<'a> {
    pub name: &'a str,
    /// The table and attribute number the column comes from, 0 and 0 for an expression.
    pub table: Oid,
    pub attribute: i16,
    pub type_oid: Oid,
    /// Bytes of a fixed-size type, -1 for varying, -2 for zero-terminated.
    pub type_size: i16,
    pub type_modifier: i32,
    pub format: Format,
}

/// Backend messages on their way to a client. Each method appends one whole message, except for the pairs named `begin_...`
/// and `end`.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    /// Where the length of the open message stands.
    open: usize,
    /// Bytes of whole messages.
    complete: usize,
    /// Bytes of the messages that were sent and forgotten.
    forgotten: usize,
    /// Bytes of the open message that are sent from elsewhere.
    elsewhere: usize,
    /// The encoding that the client reads.
    encoding: Encoding,
}

impl Default for Output {
    fn default() -> Output {
        Output { bytes: Vec::new(), open: 0, complete: 0, forgotten: 0, elsewhere: 0, encoding: UTF8 }
    }
}

impl Output {
    pub fn new() -> Output {
        Output::default()
    }

    /// From now on strings of messages are sent in this encoding, with question marks for characters it lacks.
    #[inline]
    pub fn set_encoding(&mut self, encoding: Encoding) {
        self.encoding = encoding;
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Forgets sent bytes; keeps the memory unless one huge result has grown it.
    pub fn clear(&mut self) {
        const KEPT_BYTES_MAX: usize = 1 << 20;
        self.bytes.clear();
        self.forgotten += std::mem::take(&mut self.complete);
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes.shrink_to(KEPT_BYTES_MAX / 4);
        }
    }

    /// Frees the memory of an answer that was sent, if it is more than most answers need.
    pub fn rest(&mut self) {
        const RESTING_BYTES_MAX: usize = 16 << 10;
        if self.bytes.is_empty() && self.bytes.capacity() > RESTING_BYTES_MAX {
            self.bytes = Vec::new();
        }
    }

    /// Takes back a message that was begun and not ended, because a value of it could not be written.
    pub fn abandon_open(&mut self) {
        self.bytes.truncate(self.complete);
    }

    fn begin(&mut self, tag: u8) {
        self.bytes.push(tag);
        self.open = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.elsewhere = 0;
    }

    /// Closes the message opened last.
    pub fn end(&mut self) {
        let length = (self.bytes.len() - self.open + self.elsewhere) as u32;
        self.bytes[self.open..self.open + 4].copy_from_slice(&length.to_be_bytes());
        self.complete = self.bytes.len();
    }

    /// Where the next message begins, counted from the connection's first.
    pub fn mark(&self) -> usize {
        self.forgotten + self.complete
    }

    /// Takes back the messages behind a mark, of which nothing was sent.
    pub fn take_back(&mut self, mark: usize) {
        self.complete = mark - self.forgotten;
        self.bytes.truncate(self.complete);
    }

    fn i16(&mut self, v: i16) {
        self.bytes.extend_from_slice(&v.to_be_bytes());
    }

    fn i32(&mut self, v: i32) {
        self.bytes.extend_from_slice(&v.to_be_bytes());
    }

    /// A zero-terminated string; zero bytes inside would shift every later field, so they end it.
    fn string(&mut self, s: &str) {
        let s = &*if self.encoding.is_plain() { s.as_bytes().into() } else { self.encoding.encode_lossy(s) };
        let end = s.iter().position(|&b| b == 0).unwrap_or(s.len());
        self.bytes.extend_from_slice(&s[..end]);
        self.bytes.push(0);
    }

    fn empty(&mut self, tag: u8) {
        self.bytes.extend_from_slice(&[tag, 0, 0, 0, 4]);
        self.complete = self.bytes.len();
    }

    pub fn authentication_ok(&mut self) {
        self.authentication(0, &[]);
    }

    pub fn authentication_cleartext_password(&mut self) {
        self.authentication(3, &[]);
    }

    pub fn authentication_md5_password(&mut self, salt: &[u8; 4]) {
        self.authentication(5, salt);
    }

    pub fn authentication_sasl(&mut self, mechanisms: &[&str]) {
        self.begin(b'R');
        self.i32(10);
        for mechanism in mechanisms {
            self.string(mechanism);
        }
        self.bytes.push(0);
        self.end();
    }

    pub fn authentication_sasl_continue(&mut self, data: &[u8]) {
        self.authentication(11, data);
    }

    pub fn authentication_sasl_final(&mut self, data: &[u8]) {
        self.authentication(12, data);
    }

    fn authentication(&mut self, code: i32, data: &[u8]) {
        self.begin(b'R');
        self.i32(code);
        self.bytes.extend_from_slice(data);
        self.end();
    }

    pub fn negotiate_protocol_version(&mut self, version: ProtocolVersion, unknown_options: &[&str]) {
        self.begin(b'v');
        self.i32(version.code() as i32);
        self.i32(unknown_options.len() as i32);
        for option in unknown_options {
            self.string(option);
        }
        self.end();
    }

    pub fn backend_key_data(&mut self, pid: i32, secret: &[u8]) {
        self.begin(b'K');
        self.i32(pid);
        self.bytes.extend_from_slice(secret);
        self.end();
    }

    pub fn parameter_status(&mut self, name: &str, value: &str) {
        self.begin(b'S');
        self.string(name);
        self.string(value);
        self.end();
    }

    pub fn ready_for_query(&mut self, status: TransactionStatus) {
        let status = match status {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InBlock => b'T',
            TransactionStatus::Failed => b'E',
        };
        self.bytes.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
        self.complete = self.bytes.len();
    }

    pub fn row_description<'a>(&mut self, fields: impl ExactSizeIterator<Item = FieldDescription<'a>>) {
        self.begin(b'T');
        self.i16(fields.len() as i16);
        for field in fields {
            self.string(field.name);
            self.i32(field.table.0 as i32);
            self.i16(field.attribute);
            self.i32(field.type_oid.0 as i32);
            self.i16(field.type_size);
            self.i32(field.type_modifier);
            self.i16(field.format.code());
        }
        self.end();
    }

    pub fn parameter_description(&mut self, types: &[Oid]) {
        self.begin(b't');
        self.i16(types.len() as i16);
        for ty in types {
            self.i32(ty.0 as i32);
        }
        self.end();
    }

    /// Opens a DataRow; the caller appends `columns` values and calls `end`.
    pub fn begin_data_row(&mut self, columns: usize) {
        self.begin(b'D');
        self.i16(columns as i16);
    }

    pub fn null(&mut self) {
        self.i32(-1);
    }

    #[inline]
    pub fn value(&mut self, bytes: &[u8]) {
        self.i32(bytes.len() as i32);
        self.bytes.extend_from_slice(bytes);
    }

    /// A long value that the sender of the bytes inserts at the position returned, so that it need not be copied.
    pub fn value_elsewhere(&mut self, length: usize) -> usize {
        self.i32(length as i32);
        self.elsewhere += length;
        self.bytes.len()
    }

    /// A value that `write` appends; its length is filled in afterwards.
    #[inline]
    pub fn value_with<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        write(&mut self.bytes)?;
        let length = (self.bytes.len() - at - 4) as u32;
        self.bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    pub fn command_complete(&mut self, tag: &str) {
        self.begin(b'C');
        self.string(tag);
        self.end();
    }

    pub fn empty_query_response(&mut self) {
        self.empty(b'I');
    }

    pub fn parse_complete(&mut self) {
        self.empty(b'1');
    }

    pub fn bind_complete(&mut self) {
        self.empty(b'2');
    }

    pub fn close_complete(&mut self) {
        self.empty(b'3');
    }

    pub fn no_data(&mut self) {
        self.empty(b'n');
    }

    pub fn portal_suspended(&mut self) {
        self.empty(b's');
    }

    pub fn copy_in_response(&mut self, overall: Format, columns: usize) {
        self.copy_response(b'G', overall, columns);
    }

    pub fn copy_out_response(&mut self, overall: Format, columns: usize) {
        self.copy_response(b'H', overall, columns);
    }

    fn copy_response(&mut self, tag: u8, overall: Format, columns: usize) {
        self.begin(tag);
        self.bytes.push(overall.code() as u8);
        self.i16(columns as i16);
        for _ in 0..columns {
            self.i16(overall.code());
        }
        self.end();
    }

    pub fn copy_data(&mut self, data: &[u8]) {
        self.begin(b'd');
        self.bytes.extend_from_slice(data);
        self.end();
    }

    pub fn copy_done(&mut self) {
        self.empty(b'c');
    }

    pub fn function_call_response(&mut self, value: Option<&[u8]>) {
        self.begin(b'V');
        match value {
            Some(v) => self.value(v),
            None => self.null(),
        }
        self.end();
    }

    pub fn notification(&mut self, pid: i32, channel: &str, payload: &str) {
        self.begin(b'A');
        self.i32(pid);
        self.string(channel);
        self.string(payload);
        self.end();
    }

    /// ErrorResponse for ERROR and worse, NoticeResponse below; the fields in PostgreSQL's order.
    pub fn report(&mut self, error: &DbError) {
        let fields = error.fields();
        self.begin(if fields.severity >= Severity::Error { b'E' } else { b'N' });
        self.report_field(b'S', Some(fields.severity.name()));
        self.report_field(b'V', Some(fields.severity.name()));
        self.report_field(b'C', Some(fields.sqlstate.as_str()));
        self.report_field(b'M', Some(&fields.message));
        self.report_field(b'D', fields.detail.as_deref());
        self.report_field(b'H', fields.hint.as_deref());
        self.report_field(b'W', fields.context.as_deref());
        self.report_field(b's', fields.schema.as_deref());
        self.report_field(b't', fields.table.as_deref());
        self.report_field(b'c', fields.column.as_deref());
        self.report_field(b'd', fields.data_type.as_deref());
        self.report_field(b'n', fields.constraint.as_deref());
        if let Some(position) = fields.position {
            self.report_field(b'P', Some(&position.to_string()));
        }
        if let Some((position, query)) = &fields.internal {
            self.report_field(b'p', Some(&position.to_string()));
            self.report_field(b'q', Some(query));
        }
        self.report_field(b'F', Some(fields.origin.file()));
        self.report_field(b'L', Some(&fields.origin.line().to_string()));
        self.report_field(b'R', Some(fields.origin.routine()));
        self.bytes.push(0);
        self.end();
    }

    fn report_field(&mut self, code: u8, text: Option<&str>) {
        if let Some(text) = text {
            self.bytes.push(code);
            self.string(text);
        }
    }
}
