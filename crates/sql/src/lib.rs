//! SQL: analyzed statements are planned and executed.
//!
//! ```text
//! text -> melba_parse -> melba_analyze (melba_tree::Query) -> plan (plan::Plan) -> execute (batches)
//!                     \-> ddl, copy (utility statements: catalog changes, bulk transfers)
//! ```
//!
//! `session` holds a connection's state and drives the stages; the server calls nothing else.

pub mod copy;
pub mod ddl;
pub mod execute;
pub mod plan;
pub mod session;

pub use melba_transaction::cluster;
