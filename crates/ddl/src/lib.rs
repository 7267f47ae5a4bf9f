//! Utility statements that define objects: they change the catalog and the storage of its objects.
//!
//! Each statement reads the transaction's catalog, takes the locks PostgreSQL takes, and records `Object` changes in the
//! `Tx`; nothing is visible to others before the commit. A clause that is not supported is refused with 0A000.
//!
//! `statements` has a row for each statement with its function, which takes a [`Ddl`]. The functions stand in modules by the kind of
//! object. Other utility statements use [`Lookup`] alone.

mod address;
mod alter_routine;
mod alter_table;
mod collation;
mod comment;
mod conversion;
mod database;
mod define;
mod drop;
mod event_trigger;
mod extension;
mod extension_members;
mod foreign;
mod large_object;
mod move_schema;
mod owned;
mod owner;
mod plain;
mod privileges;
mod publication;
mod rename;
mod role;
mod schema;
mod statements;
mod text_search;
mod types;

pub use address::object_address;
pub use schema::create_temporary_schema;
pub use statements::{STATEMENTS, execute};
