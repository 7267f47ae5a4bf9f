//! Commits: what they put into the log, their order, their application, and how writers are slowed down.
//!
//! `Pipeline` knows the log, snapshots, locks and nothing of trees: what a commit's application is, it is told as a function.

mod activity;
mod apply;
mod log;
mod pace;
mod payload;
mod pipeline;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use apply::Apply;
pub(crate) use log::Log;
#[cfg(test)]
pub(crate) use pace::WAIT_MAX;
pub(crate) use pace::{WAIT_MAX_FOR_BYTES, WAIT_MIN, merges_lag, throttle};
pub(crate) use payload::{Operation, decode, encode};
pub use pipeline::Durability;
pub(crate) use pipeline::{Committer, EarlyRelease, Floor, Needs, Pipeline, Record, Started};
