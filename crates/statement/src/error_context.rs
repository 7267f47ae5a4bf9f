//! What the statements of functions that run now are doing: PostgreSQL's error_context_stack, for notices and PG_CONTEXT. Errors collect
//! the same lines as they leave the functions.
//!
//! A thread runs one statement at a time, from its beginning to its end. An entry is on the thread's stack while the statement of a
//! function runs what may call other functions.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use melba_catalog::Function;

/// The statement of a function.
pub enum ErrorContext {
    PlPgSql {
        /// With its types.
        function: Arc<str>,
        /// Counted from 1.
        line: u32,
        /// The statement's name.
        statement: &'static str,
        /// The kind and the text of the SQL that it runs.
        piece: Option<(&'static str, Arc<str>)>,
    },
    /// `statement`: counted from 1.
    Sql { function: Arc<Function>, statement: usize },
}

impl fmt::Display for ErrorContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorContext::PlPgSql { function, line, statement, piece } => {
                if let Some((kind, text)) = piece {
                    writeln!(f, "{kind} \"{text}\"")?;
                }
                write!(f, "PL/pgSQL function {function} line {line} at {statement}")
            }
            ErrorContext::Sql { function, statement } => {
                write!(f, "SQL function \"{}\" statement {statement}", function.name)
            }
        }
    }
}

thread_local! {
    static STACK: RefCell<Vec<ErrorContext>> = const { RefCell::new(Vec::new()) };
}

/// Removes its entry when it is dropped, and those above it.
pub struct Entered(usize);

impl Drop for Entered {
    fn drop(&mut self) {
        STACK.with_borrow_mut(|stack| stack.truncate(self.0));
    }
}

pub fn enter(entry: ErrorContext) -> Entered {
    STACK.with_borrow_mut(|stack| {
        stack.push(entry);
        Entered(stack.len() - 1)
    })
}

/// Removes the innermost entry before its time: what the statement has run is over, and the function goes on itself.
pub fn leave() {
    STACK.with_borrow_mut(|stack| stack.pop());
}

/// The lines of context, the innermost first; `None` outside of functions.
pub fn lines() -> Option<String> {
    STACK.with_borrow(|stack| {
        let lines: Vec<String> = stack.iter().rev().map(ToString::to_string).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    })
}
