//! Sessions: the requests of a connection, answered.
//!
//! ```text
//! text -> melba_parse -> melba_statement: melba_analyze (melba_tree::Query) -> melba_plan::Plan -> melba_execute (batches)
//!                                      \-> ddl, copy (utility statements: catalog changes, bulk transfers)
//! ```
//!
//! `session` holds a connection's state and drives the stages.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

pub mod session;
