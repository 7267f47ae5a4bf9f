//! Utility statements that define objects: they change the catalog and the storage of its objects.
//!
//! Each statement reads the transaction's catalog, takes the locks PostgreSQL takes, and records `Object` changes in the
//! `Tx`; nothing is visible to others before the commit. A clause that is not supported is refused with 0A000.
//!
//! `statements` has a row for each statement with its function, which takes a [`Ddl`]. The functions stand in modules by the kind of
//! object. Other utility statements use [`Lookup`] alone.

mod address;
mod built_in;
mod collation;
mod comment;
mod constraint;
mod context;
mod database;
mod define;
mod dependents;
mod describe;
mod drop;
mod event_trigger;
mod expression;
mod extension;
mod family_lock;
mod index;
mod large_object;
mod lookup;
mod move_schema;
mod naming;
mod operator;
mod operator_class;
mod owned;
mod owner;
mod partition;
mod privileges;
mod progress;
mod publication;
mod remove;
mod rename;
mod role;
mod routine;
mod rule;
mod schema;
mod sequence;
mod special_schema;
mod statements;
mod statistics;
mod stored_text;
mod table;
mod text_search;
mod transition;
mod trigger;
mod types;
mod view;
mod words;

pub use address::object_address;
pub use context::{Ddl, DdlSession, Dropped, OnCommit, RewriteReason, StatementText};
pub use dependents::{drop_contents, drop_quietly};
pub use index::marks::cluster_on;
pub use lookup::{Lookup, LookupSession, Schemas};
pub use progress::{LongCommand, ProgressReport};
pub use schema::create_temporary_schema;
pub use statements::{STATEMENTS, execute};
pub use statistics::analyze_statistics;
pub use table::cold_store::new_parameters;
pub use table::create::put_table;
pub use table::detach::PendingDetach;
pub use table::on_commit::{check_on_commit, note_on_commit, run_on_commit};
pub use table::persistence::table_persistence;
pub use table::relation::forget_stated_sizes;
pub use table::relation::{new_column, put_relation, relation_exists};
pub use table::storage_parameters::ParametersOf;
pub use table::truncate::empty_table;
pub use view::{deparse_with_names, query_columns, stored_query};
pub use words::plural;
