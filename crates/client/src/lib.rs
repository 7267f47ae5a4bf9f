//! A connection by PostgreSQL's protocol: statements as simple queries or with parameters, and every message of their answers in order.
//!
//! The driver `postgres`, which other tools use, returns neither command tags nor the types of a simple query's columns, no values of
//! any type as text, and no COPY in the middle of a script; a shell and a console show all of them. The messages themselves are
//! `postgres-protocol`'s, the driver's codec.
//!
//! `target` is the address of a server, `startup` makes a connection of it, `session` talks, `portal` fetches the rows of one
//! statement in pieces, `cancel` interrupts.

#![allow(clippy::disallowed_methods, reason = "a client: its clock and files are not the database's")]

mod cancel;
pub mod escape;
mod portal;
mod report;
mod session;
mod socket;
mod startup;
mod stream;
pub mod target;
mod tls;

pub use cancel::CancelKey;
pub use report::{Failure, Report};
pub use session::{Connection, Event, ResultColumn, Row, Table};
pub use startup::open;

/// A failure in words for a person.
pub type Result<T> = std::result::Result<T, String>;
