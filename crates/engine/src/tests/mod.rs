//! Tests of the whole engine.

pub(crate) mod basic;
mod bulk;
mod crash;
mod frames;
mod model;
mod space;
mod threads;
