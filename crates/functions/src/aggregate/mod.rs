//! Aggregates.
//!
//! A built-in aggregate is found by the names of its transition and final functions (`registry::aggregate`); the states are Rust
//! values, not arrays as in pg_aggregate. Aggregates without an entry run on their transition function through `generic`.
//!
//! Ordered-set aggregates get the direct arguments first (`Aggregate::begin`), then the aggregated ones, rows in the order of
//! WITHIN GROUP. Hypothetical-set aggregates get one more argument with each row, an integer: how it compares with the
//! hypothetical row in that order (-1 before, 0 peer, 1 after).

mod bits;
mod collect;
mod exact;
mod extremes;
mod generic;
mod grouped;
mod intervals;
mod kernels;
mod ordered;
mod regression;
mod sums;
mod variance;

use melba_fmgr::{Aggregate, AggregateFn, TakenRows};
use melba_types::{Bitmap, DbError, Result};

pub use generic::generic;

pub const TABLES: &[&[(&str, &str, AggregateFn)]] = &[
    bits::AGGREGATES,
    collect::AGGREGATES,
    extremes::AGGREGATES,
    intervals::AGGREGATES,
    ordered::AGGREGATES,
    regression::AGGREGATES,
    sums::AGGREGATES,
    variance::AGGREGATES,
];

/// The state to merge, of the type it must have.
fn same<T: 'static>(other: Box<dyn Aggregate>) -> Result<Box<T>> {
    other.as_any().downcast().map_err(|_| DbError::internal("merged states of different aggregates"))
}

/// Calls `f` with each row of `rows` whose value is not null.
#[inline]
fn for_each_valid(validity: Option<&Bitmap>, rows: TakenRows<'_>, mut f: impl FnMut(usize)) {
    match validity {
        None => rows.for_each(f),
        Some(valid) => rows.for_each(|row| {
            if valid.get(row) {
                f(row);
            }
        }),
    }
}

/// The methods that are the same for every state.
macro_rules! any {
    () => {
        fn as_any(self: Box<Self>) -> Box<dyn std::any::Any> {
            self
        }
    };
}
use any;

#[cfg(test)]
mod tests;
