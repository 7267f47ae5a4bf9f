//! SQL: parse, analyze, plan, execute.
//!
//! ```text
//! text -> parse (pg_query) -> analyze (tree::Query) -> plan (plan::Plan) -> execute (batches)
//!                          \-> ddl, copy (utility statements: catalog changes, bulk transfers)
//! ```
//!
//! `session` holds a connection's state and drives the stages; the server calls nothing else.

pub mod analyze;
pub mod cluster;
pub mod copy;
pub mod ddl;
pub mod deparse;
pub mod execute;
pub mod large_object;
pub mod parse;
pub mod plan;
pub mod seldom;
pub mod session;
pub mod table;
pub mod transaction;
pub mod tree;
