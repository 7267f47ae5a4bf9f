//! Definitions of functions, procedures, aggregates and operators, and of the types that come with other definitions: shells, which a
//! function may name before they are defined, and arrays.
//!
//! A body that is a string is kept as it was written, and its names are looked up whenever it runs; a body RETURN or BEGIN ATOMIC
//! is kept like a view's query, and the objects it uses cannot be dropped without it.

pub mod aggregate;
pub mod array;
pub mod attributes;
mod body;
pub mod create;
pub mod find;
pub mod internal;
pub mod operator;
mod parameters;
pub mod plain;
pub mod shell;
