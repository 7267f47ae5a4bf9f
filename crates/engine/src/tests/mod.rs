//! Tests of the whole engine.

pub(crate) mod basic;
mod bulk;
mod crash;
mod model;
mod random;
mod space;
mod threads;
