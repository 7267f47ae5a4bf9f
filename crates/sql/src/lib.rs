//! Sessions: what a connection asks for is parsed, analyzed, planned and executed.
//!
//! ```text
//! text -> melba_parse -> melba_analyze (melba_tree::Query) -> melba_plan::Plan -> melba_execute (batches)
//!                     \-> ddl, copy (utility statements: catalog changes, bulk transfers)
//! ```
//!
//! `session` holds a connection's state and drives the stages; the server calls nothing else, but opens a `cluster`.

pub mod session;

pub use melba_transaction::cluster;
