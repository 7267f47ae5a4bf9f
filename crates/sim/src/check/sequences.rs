//! Sequences: a value that was returned is not returned again in one life of the engine, and one that a durable commit used never is.

use super::Check;
use crate::ensure;
use crate::model::SequenceModel;

/// A value that `nextval` returned.
pub fn check(sequence: &SequenceModel, value: i64) -> Check {
    if let Some(given) = sequence.given {
        ensure!(value > given, "nextval gave {value} after {given}");
    }
    ensure!(value > sequence.floor, "nextval gave {value}, and a durable commit has used {}", sequence.floor);
    Ok(())
}
