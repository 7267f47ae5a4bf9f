//! `melba dump` and `melba restore`: a database in one consistent snapshot as a file or a few, in little memory whatever the
//! number of objects, and back; or as an SQL script that psql replays on PostgreSQL.
//!
//! 1. All of a dump is read in one snapshot, which the workers share.
//! 2. Memory is a block a worker, the statements that make the objects, and 16 bytes a block when restoring; files are one, or one
//!    a worker.
//! 3. What is restored has been checked against its checksum; what is missing or damaged is named.
//! 4. It is a client: it knows the server by its protocol and PostgreSQL's catalogs alone.

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
