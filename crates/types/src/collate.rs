//! Orders of texts other than that of their bytes.

use std::cmp::Ordering;
use std::fmt::Debug;

/// The order of a collation.
pub trait Collate: Debug + Send + Sync {
    /// Only identical texts are equal.
    fn is_deterministic(&self) -> bool;
    fn compare(&self, a: &str, b: &str) -> Ordering;
    /// Appends bytes whose order is that of `compare`, except that a deterministic collation has some of different texts equal.
    fn sort_key(&self, text: &str, out: &mut Vec<u8>);
}
