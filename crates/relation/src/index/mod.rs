//! Indexes.

pub mod build;
pub mod create;
pub mod fill;
pub mod marks;
pub mod request;
