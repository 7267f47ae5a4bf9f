//! Indexes.

pub mod build;
mod catch_up;
pub mod create;
pub mod fill;
pub mod marks;
pub mod request;
