//! A statement's answer as the page receives it: columns, a page of rows, notices, the error with its position.

use std::time::Instant;

use melba_client::{Connection, Event, Report};
use serde::{Deserialize, Serialize};

/// Rows in one answer.
const ROWS_MAX: usize = 10_000;
/// Rows asked of the server at a time, so that an answer can end between them.
const STEP_ROWS: usize = 100;
/// An answer ends with the step in which it passes this size.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Longer values are cut, unless the page asks for more.
const VALUE_BYTES: usize = 64 << 10;
const VALUE_BYTES_MAX: usize = 8 << 20;
const NOTICES_MAX: usize = 100;

/// How much of a result is asked for.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Room {
    #[serde(rename = "limit")]
    rows_max: usize,
    #[serde(default)]
    value_bytes: Option<usize>,
}

impl Room {
    fn rows_max(self) -> usize {
        self.rows_max.clamp(1, ROWS_MAX)
    }

    fn value_bytes(self) -> usize {
        self.value_bytes.unwrap_or(VALUE_BYTES).min(VALUE_BYTES_MAX)
    }

    /// Rows of a step, when some are there.
    fn step(self, rows: usize) -> i32 {
        i32::try_from(self.rows_max().saturating_sub(rows).min(STEP_ROWS)).unwrap_or(1)
    }
}

/// A portal with rows that are not fetched.
pub struct Held {
    pub used: Instant,
}

/// An open connection, and the portal whose rows are not all fetched.
pub struct Open {
    pub connection: Connection,
    pub held: Option<Held>,
}

#[derive(Serialize)]
pub struct ColumnOut {
    pub name: String,
    /// OID of its type.
    #[serde(rename = "type")]
    pub type_oid: u32,
}

/// A value whose beginning is shown: row and column in the answer, and all its bytes.
#[derive(Serialize)]
pub struct Cut {
    row: usize,
    column: usize,
    bytes: usize,
}

#[derive(Serialize)]
pub struct Message {
    severity: String,
    code: String,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    context: Option<String>,
    /// In the statement, in characters from 1.
    position: Option<usize>,
}

impl From<Report> for Message {
    fn from(report: Report) -> Message {
        Message {
            severity: report.severity,
            code: report.code,
            message: report.message,
            detail: report.detail,
            hint: report.hint,
            context: report.context,
            position: report.position,
        }
    }
}

impl Message {
    /// Of the console's own.
    pub fn own(message: String) -> Message {
        Message { message, severity: "ERROR".to_owned(), ..Message::from(Report::default()) }
    }
}

#[derive(Default, Serialize)]
pub struct Answer {
    /// `None`: the statement has no rows.
    columns: Option<Vec<ColumnOut>>,
    rows: Vec<Vec<Option<String>>>,
    cut: Vec<Cut>,
    /// There may be more rows.
    more: bool,
    tag: Option<String>,
    notices: Vec<Message>,
    error: Option<Message>,
    milliseconds: f64,
    /// `I`: no transaction, `T`: in one, `E`: in a failed one.
    transaction: char,
    #[serde(skip)]
    bytes: usize,
}

impl Answer {
    pub fn failed(message: String) -> Answer {
        Answer::refused(Message::own(message))
    }

    pub fn refused(message: Message) -> Answer {
        Answer { error: Some(message), transaction: 'I', ..Answer::default() }
    }

    /// Of a statement without rows.
    pub fn done(tag: String) -> Answer {
        Answer { tag: Some(tag), transaction: 'I', ..Answer::default() }
    }

    fn add_row(&mut self, values: Vec<Option<&[u8]>>, room: Room) {
        let row = self.rows.len();
        let texts = values.into_iter().enumerate().map(|(column, value)| {
            let value = value?;
            let shown = &value[..value.len().min(room.value_bytes())];
            if shown.len() < value.len() {
                self.cut.push(Cut { row, column, bytes: value.len() });
            }
            self.bytes += shown.len() + 3;
            let text = String::from_utf8_lossy(shown);
            // A cut in the middle of a character leaves a part of it.
            let text = if shown.len() < value.len() { text.trim_end_matches('\u{fffd}') } else { &text };
            Some(text.to_owned())
        });
        let texts = texts.collect();
        self.rows.push(texts);
    }
}

impl Open {
    /// Runs a statement, and fetches its first rows.
    pub fn query(&mut self, sql: &str, parameters: &[Option<String>], room: Room) -> Answer {
        self.end_held();
        let began = Instant::now();
        let sent = self.connection.send_portal(sql, parameters, room.step(0));
        let answer = sent.and_then(|()| self.receive(room));
        self.finish(answer, began)
    }

    /// The next rows of the statement.
    pub fn fetch(&mut self, room: Room) -> Answer {
        if self.held.take().is_none() {
            return Answer::failed("the remaining rows are no longer held; run the statement again".to_owned());
        }
        let began = Instant::now();
        let sent = self.connection.send_more(room.step(0));
        let answer = sent.and_then(|()| self.receive(room));
        self.finish(answer, began)
    }

    /// Forgets rows that were not fetched.
    pub fn end_held(&mut self) {
        if self.held.take().is_some() && self.connection.end_portal().and_then(|()| self.until_ready()).is_err() {
            self.connection.is_lost = true;
        }
    }

    fn finish(&mut self, answer: Result<Answer, String>, began: Instant) -> Answer {
        let mut answer = answer.unwrap_or_else(|e| {
            self.connection.is_lost = true;
            Answer::failed(e)
        });
        answer.milliseconds = began.elapsed().as_secs_f64() * 1000.0;
        answer.transaction = self.connection.transaction.into();
        answer
    }

    /// As many rows as there is room for, or the end.
    fn receive(&mut self, room: Room) -> Result<Answer, String> {
        let mut answer = Answer::default();
        loop {
            match self.connection.next()? {
                Event::Columns(columns) => {
                    let columns = columns.into_iter().map(|c| ColumnOut { name: c.name, type_oid: c.type_oid });
                    answer.columns = Some(columns.collect());
                }
                Event::Row(row) => answer.add_row(row.values()?, room),
                Event::Suspended => {
                    let step = room.step(answer.rows.len());
                    if step == 0 || answer.bytes > ANSWER_BYTES_MAX {
                        answer.more = true;
                        self.held = Some(Held { used: Instant::now() });
                        return Ok(answer);
                    }
                    self.connection.send_more(step)?;
                }
                Event::Complete(tag) => {
                    answer.tag = Some(tag);
                    self.connection.end_portal()?;
                }
                Event::Empty => self.connection.end_portal()?,
                Event::Error(report) => {
                    self.connection.is_lost |= report.is_fatal();
                    answer.error = Some(report.into());
                    if self.connection.is_lost {
                        return Ok(answer);
                    }
                    self.connection.end_portal()?;
                }
                Event::Notice(report) if answer.notices.len() < NOTICES_MAX => answer.notices.push(report.into()),
                Event::CopyIn => self.connection.copy_fail("data come by the import of files")?,
                Event::CopyData(line) if answer.rows.len() < ROWS_MAX && answer.bytes < ANSWER_BYTES_MAX => {
                    let column = ColumnOut { name: "copy".to_owned(), type_oid: 25 };
                    answer.columns.get_or_insert_with(|| vec![column]);
                    answer.add_row(vec![Some(line.trim_ascii_end())], room);
                }
                Event::Ready => return Ok(answer),
                _ => {}
            }
        }
    }

    pub(crate) fn until_ready(&mut self) -> Result<(), String> {
        while !matches!(self.connection.next()?, Event::Ready) {}
        Ok(())
    }
}
