//! How an index is read: its parts, and the bounds of their keys, not compiled yet.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_expression::key::KeyPart;
use melba_fmgr::GinColumn;
use melba_types::{Oid, TreeId};

use melba_tree::Expr;

/// The part of an index that is read, with bounds not compiled yet.
#[derive(Clone)]
pub(super) struct ArmChoice {
    pub index: Oid,
    pub name: Arc<str>,
    pub tree: TreeId,
    pub parts: Vec<KeyPart>,
    pub matches: Vec<Match>,
    pub range: Option<RangeChoice>,
    /// `IndexArm::unique`.
    pub unique: bool,
    /// Conditions for EXPLAIN.
    pub shown: Vec<Expr>,
}

#[derive(Clone)]
pub(super) enum Match {
    Equal(Expr),
    AnyOf(Expr),
    IsNull,
}

/// `KeyBound`, not compiled yet.
#[derive(Clone)]
pub(super) struct BoundChoice {
    pub values: Vec<Expr>,
    pub inclusive: bool,
}

#[derive(Clone)]
pub(super) enum RangeChoice {
    Between { lower: Option<BoundChoice>, upper: Option<BoundChoice> },
    Prefix { pattern: Expr, regex: bool },
    NotNull,
}

#[derive(Clone)]
pub(super) struct IndexChoice {
    pub arms: Vec<ArmChoice>,
    pub reverse: bool,
    /// Conditions on the relation alone that hold for all rows found.
    pub decided: Vec<Expr>,
}

/// A GIN index, and the conditions that its rows are found by.
pub(super) struct BitmapChoice {
    pub index: Arc<Relation>,
    pub columns: Vec<GinColumn>,
    pub matches: Vec<BitmapMatch>,
}

/// A condition that a column of an index answers.
pub(super) struct BitmapMatch {
    /// From 0.
    pub column: usize,
    pub strategy: i16,
    /// The right operand of the strategy's operator.
    pub value: Expr,
    pub shown: Expr,
}
