//! Commits: their log records, their order, their application, and how writers are slowed down.
//!
//! `Pipeline` knows the log, snapshots and locks but not trees: the application of a commit is a function that it is given.

mod activity;
mod apply;
mod log;
mod pace;
mod payload;
mod pipeline;

pub(crate) use apply::Apply;
pub(crate) use log::Log;
#[cfg(test)]
pub(crate) use pace::WAIT_MAX;
pub(crate) use pace::{WAIT_MAX_FOR_BYTES, WAIT_MIN, merges_lag, throttle};
pub(crate) use payload::{Operation, decode, encode, encode_if};
pub use pipeline::Durability;
pub(crate) use pipeline::{CommitRecord, Committer, EarlyRelease, Floor, Needs, Pipeline, Started};
#[cfg(test)]
pub(crate) mod tests;
