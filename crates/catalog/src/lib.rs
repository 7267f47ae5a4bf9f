//! The catalog: what exists in a database. Immutable snapshots, replaced as a whole when a transaction with DDL commits.
//!
//! A `Catalog` holds the built-in objects (PostgreSQL's own, with PostgreSQL's OIDs, from `seed/`) and the objects that
//! users created, which the engine stores in a table tree of its own. The system relations (pg_class, pg_attribute, ...)
//! are computed from it (`relations/`, one file per system relation) and read by the executor like any other relation.
//!
//! Invariants:
//! 1. A snapshot never changes. A transaction's DDL works on a private snapshot (`Catalog::with`), which its commit turns
//!    into object changes on top of the newest committed one.
//! 2. Names resolve here and nowhere else; every object is referred to by OID above this crate.

pub mod objects;

pub use objects::*;

/// A snapshot of one database's catalog.
#[derive(Debug, Default)]
pub struct Catalog {}
