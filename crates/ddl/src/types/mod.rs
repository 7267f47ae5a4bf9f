//! Types: base types, enums, composites, domains, ranges, and casts between types.

pub mod base;
pub mod cast;
pub mod create;
pub mod domain;
pub mod domain_columns;
pub mod named;
pub mod range;
