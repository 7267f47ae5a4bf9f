//! Sequences: what was given out does not come again in one life of the engine, and what a durable commit used never does.

use super::Check;
use crate::ensure;
use crate::model::SequenceModel;

/// A value that `nextval` gave.
pub fn check(sequence: &SequenceModel, value: i64) -> Check {
    if let Some(given) = sequence.given {
        ensure!(value > given, "nextval gave {value} after {given}");
    }
    ensure!(value > sequence.floor, "nextval gave {value}, and a durable commit has used {}", sequence.floor);
    Ok(())
}
