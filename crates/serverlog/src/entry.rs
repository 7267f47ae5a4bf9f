//! One message of the log, before it has a format.

use std::borrow::Cow;

use melba_types::{DbError, SqlState};

use crate::level::Level;
use crate::redaction::without_passwords;

/// The place in the source that raised a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageOrigin {
    pub routine: &'static str,
    pub file: &'static str,
    pub line: u32,
}

/// The transaction that a session is in.
#[derive(Clone, Copy, Debug, Default)]
pub struct TransactionIds {
    /// Process number and count of pg_locks.virtualtransaction.
    pub virtual_id: Option<(i32, u64)>,
    /// 0: none was assigned.
    pub xid: u64,
}

/// A message. Texts are in UTF-8, positions in characters from 1.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    pub level: Level,
    pub sqlstate: SqlState,
    pub message: Cow<'a, str>,
    pub detail: Option<Cow<'a, str>>,
    pub hint: Option<Cow<'a, str>>,
    /// A query that the client did not send, and the position in it.
    pub internal: Option<(u32, Cow<'a, str>)>,
    pub context: Option<Cow<'a, str>>,
    /// The client's query, and the position in it.
    pub statement: Option<Cow<'a, str>>,
    pub position: Option<u32>,
    pub origin: Option<MessageOrigin>,
    /// The session's activity: the tag of its command, or `idle`.
    pub command: &'a str,
    pub transaction: TransactionIds,
    pub query_id: i64,
}

impl<'a> Entry<'a> {
    pub fn new(level: Level, message: &'a str) -> Entry<'a> {
        Entry {
            level,
            sqlstate: SqlState::SUCCESSFUL_COMPLETION,
            message: Cow::Borrowed(message),
            detail: None,
            hint: None,
            internal: None,
            context: None,
            statement: None,
            position: None,
            origin: None,
            command: "",
            transaction: TransactionIds::default(),
            query_id: 0,
        }
    }

    /// An error or notice as its client gets it.
    pub fn of(error: &'a DbError) -> Entry<'a> {
        let fields = error.fields();
        let text = |text: &'a Option<String>| text.as_deref().map(Cow::Borrowed);
        Entry {
            sqlstate: fields.sqlstate,
            detail: text(&fields.detail),
            hint: text(&fields.hint),
            internal: fields.internal.as_ref().map(|(position, query)| (*position, Cow::Borrowed(query.as_str()))),
            context: text(&fields.context),
            position: fields.position,
            origin: Some(MessageOrigin {
                routine: fields.origin.routine(),
                file: fields.origin.file(),
                line: fields.origin.line(),
            }),
            ..Entry::new(fields.severity.into(), &fields.message)
        }
    }

    pub fn detail(mut self, detail: impl Into<Cow<'a, str>>) -> Entry<'a> {
        self.detail = Some(detail.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<Cow<'a, str>>) -> Entry<'a> {
        self.hint = Some(hint.into());
        self
    }

    /// The same entry, fit to be written.
    pub(crate) fn without_passwords(&self) -> Entry<'_> {
        fn clean<'t>(text: &'t Option<Cow<'_, str>>) -> Option<Cow<'t, str>> {
            text.as_deref().map(without_passwords)
        }
        Entry {
            level: self.level,
            sqlstate: self.sqlstate,
            message: without_passwords(&self.message),
            detail: clean(&self.detail),
            hint: clean(&self.hint),
            internal: self.internal.as_ref().map(|(at, query)| (*at, without_passwords(query))),
            context: clean(&self.context),
            statement: clean(&self.statement),
            position: self.position,
            origin: self.origin,
            command: self.command,
            transaction: self.transaction,
            query_id: self.query_id,
        }
    }
}
