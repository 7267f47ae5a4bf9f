//! Statistics objects: CREATE STATISTICS and the other statements about them, and what ANALYZE collects for them.

pub mod alter;
mod collect;
pub mod create;
mod degrees;

pub use collect::analyze_statistics;
