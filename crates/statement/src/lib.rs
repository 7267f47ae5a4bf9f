//! Statements that run in a session: their context, planning and execution, utility statements, cursors, functions in SQL.
//!
//! ```text
//! context (a session's state and what all sessions share)
//!   planning -> planned -> execution -> outcome (rows, which a portal keeps between fetches)
//!   utility (COPY, VACUUM, CREATE TABLE AS; those that only define are in `melba_ddl`)
//!   routine, language (calls of functions); system, system_rows (what functions and views show of the server)
//! ```
//!
//! Nothing here knows messages of the protocol, nor the connection that has sent them: those are `melba_sql`'s. Languages of functions
//! are installed from above (`language`).

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

pub mod activity;
mod arbiter_values;
mod auto_explain;
mod auto_explain_settings;
pub mod backends;
mod background_rows;
pub mod background_work;
pub mod backup;
mod blocking;
mod call_counts;
pub mod client;
pub mod cold;
mod cold_rows;
mod collected;
pub mod command;
pub mod context;
pub mod control;
mod copy;
mod created_file;
mod current_row;
pub mod cursor;
pub mod ddl_context;
pub mod deferred;
mod domain;
mod engine_info;
pub mod engine_settings;
pub mod error_context;
mod event_commands;
mod event_state;
pub mod event_trigger;
pub mod execution;
pub mod explain;
mod fetched;
mod fetching;
mod files;
mod filling;
mod function_counts;
mod function_session;
pub mod interrupt;
mod io_kinds;
mod io_statistics;
pub mod language;
pub mod large_objects;
pub mod lent;
mod library;
mod listing;
pub mod literal_operations;
mod local_settings;
mod lock_table;
mod log_messages;
mod maintained;
mod maintenance;
mod monitoring;
pub mod named_statements;
pub mod names;
mod notify;
mod object_names;
pub mod outcome;
pub mod pipeline;
mod plan_report;
pub mod planned;
pub mod planning;
pub mod portal;
pub mod portals;
pub mod positioned;
pub mod prepared;
pub mod prepared_query;
mod program;
mod progress;
mod publish;
pub mod publishing;
mod query_text;
mod reset;
mod resets;
pub mod routine;
mod serialization;
mod server_files;
pub mod set;
pub mod setting_text;
mod shown;
mod shown_cache;
pub mod statement_counts;
mod statistics;
pub mod system;
mod system_rows;
pub mod temporary;
pub mod transaction;
pub mod user;
pub mod utility;
mod vacuum;
pub mod value_io;
pub mod values;
pub mod workers;
