//! Full text search: tsvector and tsquery, the parser of documents, dictionaries, ranking, headlines.
//!
//! The forms of values are in `melba_types::tsvector` and `tsquery`; docs/design/textsearch.md has the whole.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

mod config;
mod conversion;
mod cover;
mod debug;
mod dictionary;
mod document;
mod gin;
mod headline;
mod json;
mod matching;
mod parser;
mod query_functions;
mod query_io;
mod query_parser;
mod rank;
mod rewrite;
mod statistics;
mod stop_words;
mod tables;
pub mod update_trigger;
mod vector_functions;
mod vector_io;
mod words;

pub use tables::TABLES;
