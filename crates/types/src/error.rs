//! The one error type that reaches a client: SQLSTATE, message and the optional fields of an ErrorResponse.

use std::panic::Location;

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
pub struct DbError(Box<ErrorFields>);

/// The fields of an ErrorResponse. Messages follow PostgreSQL's style: lower case, no final period; detail and hint
/// are sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorFields {
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
    pub origin: SourceLocation,
}

/// Where in the source an error was raised. Any two are equal: it is not part of the error.
#[derive(Clone, Copy, Debug)]
pub struct SourceLocation {
    location: &'static Location<'static>,
    /// A function's path, or the name of PostgreSQL's function for the errors that clients know by it.
    routine: Option<&'static str>,
}

impl PartialEq for SourceLocation {
    fn eq(&self, _: &SourceLocation) -> bool {
        true
    }
}

impl SourceLocation {
    /// The name of the source file, without its folder.
    pub fn file(&self) -> &'static str {
        let path = self.location.file();
        path.rsplit(['/', '\\']).next().unwrap_or(path)
    }

    pub fn line(&self) -> u32 {
        self.location.line()
    }

    /// The function's name, or the file's where it is not known.
    pub fn routine(&self) -> &'static str {
        let path = self.routine.unwrap_or_else(|| self.file().trim_end_matches(".rs"));
        path.trim_end_matches("::{{closure}}").rsplit("::").next().unwrap_or(path)
    }
}

impl DbError {
    #[track_caller]
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> DbError {
        DbError(Box::new(ErrorFields {
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
            origin: SourceLocation { location: Location::caller(), routine: None },
        }))
    }

    /// 0A000: a feature of PostgreSQL that Melba does not have yet. `what` reads like "SERIALIZABLE isolation".
    #[track_caller]
    pub fn unsupported(what: impl std::fmt::Display) -> DbError {
        DbError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
    }

    /// XX000: a broken invariant of ours, reported rather than asserted where the server can continue.
    #[track_caller]
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

    /// Adds a line to the context, for an outer level.
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

    /// As PostgreSQL's errors of what it analyzes apart from the statement's text.
    pub fn without_position(mut self) -> DbError {
        self.0.position = None;
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

    /// PostgreSQL's name of the function that raises this, for errors that clients know by it.
    pub fn routine(mut self, name: &'static str) -> DbError {
        self.0.origin.routine = Some(name);
        self
    }

    /// The function that raises this is the one around `place`.
    pub fn raised_at<F: Fn()>(self, _place: F) -> DbError {
        self.routine(std::any::type_name::<F>())
    }

    pub fn sqlstate(&self) -> SqlState {
        self.0.sqlstate
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn fields(&self) -> &ErrorFields {
        &self.0
    }

    pub fn fields_mut(&mut self) -> &mut ErrorFields {
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
        $crate::DbError::new($crate::SqlState::$state, format!($($arg)*)).raised_at(|| ())
    };
}

/// `bail!(UNDEFINED_COLUMN, "...")`: returns `Err(err!(...).into())`.
#[macro_export]
macro_rules! bail {
    ($($arg:tt)*) => {
        return Err($crate::err!($($arg)*).into())
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_know_the_function_that_raised_them() {
        let error = err!(SYNTAX_ERROR, "wrong").at(3);
        let origin = error.fields().origin;
        assert_eq!((origin.file(), origin.routine()), ("error.rs", "errors_know_the_function_that_raised_them"));
        let in_closure = [()].map(|()| err!(SYNTAX_ERROR, "wrong"));
        assert_eq!(in_closure[0].fields().origin.routine(), "errors_know_the_function_that_raised_them");
        assert_eq!(DbError::internal("x").fields().origin.routine(), "error");
        assert_eq!(DbError::internal("x").routine("RevalidateCachedQuery").fields().origin.routine(), "RevalidateCachedQuery");
    }
}
