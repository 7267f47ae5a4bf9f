//! `melba dump` and `melba restore`: dump a database in one consistent snapshot to one or a few files, in little memory whatever
//! the number of objects, and restore it; or dump it as an SQL script that psql replays on PostgreSQL.
//!
//! 1. The whole dump is read in one snapshot, which the workers share.
//! 2. Memory is one block per worker, the statements that create the objects, and, when restoring, 16 bytes per block. There is
//!    one file, or one per worker.
//! 3. Every block is checked against its checksum before it is restored; missing or damaged data is named.
//! 4. It is a client: it knows the server only through its protocol and PostgreSQL's catalogs.

#![allow(clippy::disallowed_methods, reason = "a client: its clock and files are not the database's")]

mod archive;
mod connection;
mod dump;
mod large_objects;
mod plain;
mod privileges;
mod progress;
mod restore;
mod restore_objects;
mod schema;
mod workers;

pub use connection::{Source, describe};
pub use dump::{DumpOptions, dump};
pub use progress::Progress;
pub use restore::{RestoreOptions, restore};

/// A failure in words for the person at the terminal.
pub type Result<T> = std::result::Result<T, String>;
