//! Window functions: a function sees a whole partition and answers for each of its rows.

use std::ops::Range;

use melba_types::{Datum, Result};

use crate::CallContext;

/// A partition, its rows in window order, as a window function sees it.
pub trait Partition {
    fn rows(&self) -> usize;
    /// Argument number `argument` evaluated at a row.
    fn argument(&self, row: usize, argument: usize) -> Result<Datum>;
    /// Number of arguments of the call.
    fn arguments(&self) -> usize;
    /// The rows that are equal to `row` in window order (`row` included).
    fn peers(&self, row: usize) -> Range<usize>;
    /// The rows of the frame of `row`, in order: up to three ranges, for EXCLUDE leaves holes.
    fn frame(&self, row: usize) -> Result<[Range<usize>; 3]>;
}

/// The results for rows 0 to `rows()` of the partition.
pub type WindowFn = fn(&CallContext<'_>, &dyn Partition) -> Result<Vec<Datum>>;
