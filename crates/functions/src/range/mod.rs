//! Ranges and multiranges over any ordered type.
//!
//! Invariants:
//! 1. A range of a discrete type is canonical: lower bound included, upper bound excluded.
//! 2. A multirange's ranges are ordered, not empty, and neither overlap nor touch.

mod io;
mod multirange;
mod ops;
mod types;

pub use io::TYPES;
pub use multirange::{AGGREGATES, SETS};
pub use types::RangeType;

use melba_fmgr::ScalarFn;

pub const TABLES: &[&[(&str, ScalarFn)]] = &[
    ops::FUNCTIONS,
    multirange::FUNCTIONS,
    &multirange::OVERLAPS,
    &multirange::CONTAINS,
    &multirange::CONTAINED_BY,
    &multirange::BEFORE,
    &multirange::AFTER,
    &multirange::ADJACENT,
    &multirange::OVERLEFT,
    &multirange::OVERRIGHT,
];

#[cfg(test)]
mod tests;
