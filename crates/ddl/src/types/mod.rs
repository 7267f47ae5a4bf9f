//! Types: base types, shells, enums, composites, domains, ranges, and casts between types.

pub mod array;
pub mod base;
pub mod cast;
pub mod create;
pub mod domain;
pub mod domain_columns;
pub mod named;
pub mod range;
pub mod shell;
