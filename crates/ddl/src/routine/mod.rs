//! CREATE, ALTER and DROP of functions and procedures.
//!
//! A body that is a string is kept as it was written, and its names are looked up whenever it runs; a body RETURN or BEGIN ATOMIC
//! is kept like a view's query, and the objects it uses cannot be dropped without it.

pub mod aggregate;
pub mod alter;
pub mod attributes;
pub mod body;
pub mod create;
pub mod find;
pub mod internal;
pub mod parameters;
pub mod plain;
