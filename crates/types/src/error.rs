//! The one error type that reaches a client: SQLSTATE, message and the optional fields of an ErrorResponse.

use crate::sqlstate::SqlState;

pub type Result<T, E = DbError> = std::result::Result<T, E>;

/// Severity of an error or notice, as the S and V fields of ErrorResponse and NoticeResponse name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Debug,
    Log,
    Info,
    Notice,
    Warning,
    Error,
    /// Ends the session.
    Fatal,
    /// Ends the server.
    Panic,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Debug => "DEBUG",
            Severity::Log => "LOG",
            Severity::Info => "INFO",
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Panic => "PANIC",
        }
    }
}

/// An error or notice. Boxed so that `Result<T>` stays small on hot paths.
#[derive(Clone, PartialEq)]
pub struct DbError(Box<Fields>);

/// The fields of an ErrorResponse. Messages follow PostgreSQL's style: lower case, no final period; detail and hint
/// are sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields {
    pub severity: Severity,
    pub sqlstate: SqlState,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// 1-based character position in the query text.
    pub position: Option<u32>,
    /// A query that the client did not send (a function's body), and the 1-based character position in it.
    pub internal: Option<(u32, String)>,
    /// The CONTEXT lines.
    pub context: Option<String>,
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    pub data_type: Option<String>,
    pub constraint: Option<String>,
}

impl DbError {
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> DbError {
        DbError(Box::new(Fields {
            severity: Severity::Error,
            sqlstate,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            internal: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
        }))
    }

    /// 0A000: something PostgreSQL does that Melba does not do yet. `what` reads like "SERIALIZABLE isolation".
    pub fn unsupported(what: impl std::fmt::Display) -> DbError {
        DbError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
    }

    /// XX000: a broken invariant of ours, reported rather than asserted where the server can go on.
    pub fn internal(message: impl Into<String>) -> DbError {
        DbError::new(SqlState::INTERNAL_ERROR, message)
    }

    pub fn severity(mut self, severity: Severity) -> DbError {
        self.0.severity = severity;
        self
    }

    pub fn detail(mut self, detail: impl Into<String>) -> DbError {
        self.0.detail = Some(detail.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> DbError {
        self.0.hint = Some(hint.into());
        self
    }

    pub fn context(mut self, context: impl Into<String>) -> DbError {
        self.0.context = Some(context.into());
        self
    }

    /// Adds a line to the context, for something further out.
    pub fn within(mut self, line: impl Into<String>) -> DbError {
        let context = &mut self.0.context;
        *context = Some(match context.take() {
            Some(inner) => format!("{inner}\n{}", line.into()),
            None => line.into(),
        });
        self
    }

    /// The position, a byte offset so far, is one in a query that the client did not send.
    pub fn in_query(mut self, query: &str) -> DbError {
        if let Some(position) = self.0.position.take() {
            let before = query.get(..position as usize - 1).unwrap_or(query);
            self.0.internal = Some((before.chars().count() as u32 + 1, query.to_owned()));
        }
        self
    }

    /// Sets the position unless an inner layer already knew a better one. `location` is a 0-based byte offset as the
    /// parser reports it (-1: unknown); the session turns bytes into characters.
    pub fn at(mut self, location: i32) -> DbError {
        if self.0.position.is_none() && location >= 0 {
            self.0.position = Some(location as u32 + 1);
        }
        self
    }

    pub fn schema(mut self, name: impl Into<String>) -> DbError {
        self.0.schema = Some(name.into());
        self
    }

    pub fn table(mut self, name: impl Into<String>) -> DbError {
        self.0.table = Some(name.into());
        self
    }

    pub fn column(mut self, name: impl Into<String>) -> DbError {
        self.0.column = Some(name.into());
        self
    }

    pub fn data_type(mut self, name: impl Into<String>) -> DbError {
        self.0.data_type = Some(name.into());
        self
    }

    pub fn constraint(mut self, name: impl Into<String>) -> DbError {
        self.0.constraint = Some(name.into());
        self
    }

    pub fn sqlstate(&self) -> SqlState {
        self.0.sqlstate
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn fields(&self) -> &Fields {
        &self.0
    }

    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.0
    }
}

impl std::fmt::Debug for DbError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0.sqlstate, self.0.message)
    }
}

impl std::fmt::Display for DbError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for DbError {}

/// `err!(UNDEFINED_COLUMN, "column \"{}\" does not exist", name)`: a `DbError` with a formatted message.
#[macro_export]
macro_rules! err {
    ($state:ident, $($arg:tt)*) => {
        $crate::DbError::new($crate::SqlState::$state, format!($($arg)*))
    };
}

/// `bail!(UNDEFINED_COLUMN, "...")`: returns `Err(err!(...).into())`.
#[macro_export]
macro_rules! bail {
    ($($arg:tt)*) => {
        return Err($crate::err!($($arg)*).into())
    };
}
