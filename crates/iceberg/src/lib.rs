//! Tables as Apache Iceberg, format version 2: data files, position deletes, manifests and metadata below a folder of a store.
//!
//! ```text
//! rows -> `change`: which are new, which are gone -> Parquet files
//!                -> `manifest` (Avro) -> `metadata` (JSON): the snapshot
//! ```
//!
//! Invariants:
//! 1. A snapshot exists once its metadata is written, which is written last and created once (`table`). Files that no metadata names are
//!    removed when the table is opened the next time.
//! 2. A table's rows are those of one commit: `Change` compares row ids and versions with what the last snapshot has.
//! 3. Nothing is written into a folder that holds other files (`publication`), and no file is removed that this crate has not named.
//!
//! The session calls it with rows. It knows no transaction.

mod avro;
mod change;
mod manifest;
mod metadata;
mod names;
mod publication;
mod row_set;
mod schema;
mod stored;
mod table;

#[cfg(test)]
mod tests;

pub use change::{Change, Committed, Moment};
pub use metadata::Lineage;
pub use publication::{Published, PublishedTable};
pub use schema::{PublishedColumn, Schema};
pub use stored::Announce;
pub use table::IcebergTable;
