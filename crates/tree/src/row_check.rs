//! Conditions on the rows that a statement writes, besides the constraints of their table.

use std::sync::Arc;

use crate::Expr;

/// A condition on a row of the target that raises an error where it does not hold.
#[derive(Clone, Debug)]
pub struct RowCheck {
    pub kind: RowCheckKind,
    /// The table or view that demands it.
    pub name: Arc<str>,
    /// The policy, where it is one alone.
    pub policy: Option<Arc<str>>,
    pub condition: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowCheckKind {
    /// Policies, of a new row.
    Insert,
    Update,
    /// Policies for the existing row that will be changed: by ON CONFLICT DO UPDATE, by MERGE.
    Conflict,
    MergeUpdate,
    MergeDelete,
    /// WITH CHECK OPTION, of a new row after all constraints.
    View,
}
