//! CREATE, ALTER and DROP of functions and procedures.
//!
//! A body that is a string is kept as it was written and means what its names mean whenever it runs; a body RETURN or BEGIN
//! ATOMIC is kept like a view's query, and what it mentions cannot be dropped from under it.

mod alter;
mod attributes;
mod body;
mod create;
mod find;
mod parameters;

pub(super) use find::RoutineName;
pub(super) use parameters::Parameters;
