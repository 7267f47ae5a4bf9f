//! The interactive commands: `melba sql`, a shell on any server of PostgreSQL's protocol or on a data directory that this process
//! serves; `melba import`, which creates tables from files; and `melba demo`, which shows what a database does.
//!
//! 1. It is a client (`client`) and knows nothing of the server's internals.
//! 2. Values shown on a terminal never control it (`escape`).
//! 3. Ctrl-C ends a statement, never the shell (`interrupts`).
//!
//! `scan` splits the input (`input`, `editor`) into statements and backslash commands; `query` and `copy` run statements,
//! `command` and `describe` commands; `format` writes results to `output`. `shell` is the state they share, `sql` the command
//! line. `import` and `demo` use `client` alone.

#![allow(clippy::disallowed_methods, reason = "a client: its clock and files are not the database's")]

mod command;
mod commands;
mod complete;
mod copy;
mod copy_data;
mod demo;
mod describe;
mod editor;
mod format;
mod import;
mod input;
mod interrupts;
mod output;
mod progress;
mod query;
mod scan;
mod shell;
mod sql;
mod terminal;
mod variables;

pub use demo::{DemoOptions, demo};
pub use import::{ImportOptions, import};
pub use sql::{SqlOptions, sql};
pub use terminal::restore as restore_terminal;

/// A failure in words for the person at the terminal.
pub type Result<T> = std::result::Result<T, String>;

/// Serves a data directory, which is created if it is missing, while a function runs, which gets the connection parameters.
pub type Serve<'a> = dyn Fn(&std::path::Path, &mut dyn FnMut(&str) -> Result<()>) -> Result<()> + 'a;
