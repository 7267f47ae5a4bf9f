//! The targets of queries, and the keys that refer to them.

use std::collections::HashMap;
use std::sync::Arc;

use melba_types::Oid;

use super::Expr;

#[derive(Clone, Debug)]
pub struct Target {
    pub expr: Expr,
    pub name: Arc<str>,
    /// Not part of the result: needed by ORDER BY, GROUP BY or DISTINCT ON only.
    pub junk: bool,
    /// Handle by which `SortGroup` refers to this target; 0 when none does.
    pub reference: u32,
    /// INSERT, UPDATE: the 1-based column assigned (assignments to fields and elements are folded into `expr`).
    pub column: i16,
    /// The table and column the value comes straight from (RowDescription's fields), or 0.
    pub origin: (Oid, i16),
}

/// One key of ORDER BY, GROUP BY, DISTINCT, PARTITION BY: a target by reference and how it is ordered.
#[derive(Clone, Debug)]
pub struct SortGroup {
    pub reference: u32,
    /// Equality operator.
    pub equal: Oid,
    /// Ordering operator (< or >), 0 when the type has none.
    pub sort: Oid,
    pub descending: bool,
    pub nulls_first: bool,
    pub hashable: bool,
    /// USING operator was written.
    pub using: bool,
}

/// Sort groups with the places of the targets that they refer to; `None`: there is no such target.
pub fn places_of_targets<'a>(
    groups: impl IntoIterator<Item = &'a SortGroup>,
    targets: &[Target],
) -> impl Iterator<Item = (&'a SortGroup, Option<usize>)> {
    let referred = targets.iter().enumerate().rev().filter(|(_, target)| target.reference != 0);
    let places: HashMap<u32, usize> = referred.map(|(at, target)| (target.reference, at)).collect();
    groups.into_iter().map(move |group| (group, places.get(&group.reference).copied()))
}
