//! Tests of the whole engine.

pub(crate) mod basic;
mod crash;
mod model;
mod random;
