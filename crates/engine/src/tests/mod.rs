//! Tests of the whole engine.

pub(crate) mod basic;
