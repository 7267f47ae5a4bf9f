//! Built-in functions, operators, aggregates, casts and type I/O: pure code over datums.
//!
//! They are found by the rows of `TABLES` (`melba_fmgr::registry`). A function here calls another as Rust, not by its name,
//! wherever it can.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use real time and files"))]

pub mod aggregate;
pub mod any;
pub mod array;
pub mod bits;
pub mod bool;
pub mod bytea;
pub mod catalog;
pub mod column_size;
pub mod datetime;
pub mod enums;
pub mod float;
pub mod format;
pub mod hash;
pub mod inet;
pub mod int;
pub mod macaddr;
pub mod math;
pub mod money;
pub mod numeric;
pub mod oid;
pub mod quick;
pub mod range;
pub mod record;
pub mod regs;
mod sample;
pub mod setreturning;
pub mod snapshot;
pub mod system;
mod tables;
#[cfg(test)]
mod testing;
pub mod text;
pub mod type_functions;
pub mod uuid;
pub mod vector;
pub mod window;

pub use tables::TABLES;
