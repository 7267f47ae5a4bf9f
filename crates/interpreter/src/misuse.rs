//! Errors that are not a statement's own, and their context.

use melba_types::DbError;

/// Misuse of a statement is no error of the statement: its context does not show it.
pub fn misuse(e: DbError) -> DbError {
    e.routine(MISUSE)
}

pub fn is_misuse(e: &DbError) -> bool {
    e.fields().origin.routine() == MISUSE && e.fields().context.is_none()
}

/// PostgreSQL's function that raises most of these.
const MISUSE: &str = "exec_stmt_execsql";

/// An error of a statement that EXECUTE runs.
pub fn of_text(text: &str, e: DbError) -> DbError {
    if is_misuse(&e) {
        return e;
    }
    match e.fields().position {
        Some(_) => e.in_query(text),
        None => e.within(format!("SQL statement \"{text}\"")),
    }
}
