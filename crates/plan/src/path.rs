//! Ways to read and join relations, with their costs; the planner compares them and turns the best into nodes.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use super::index_path::{BitmapChoice, IndexChoice};
use super::member::Member;
use super::node::JoinType;
use super::planner::Stage;
use super::pruning::Pruner;
use super::rels::Rels;
pub(super) use super::wanted::Wanted;
use melba_tree::Expr;

/// A column of the required order: expression, descending, nulls first.
#[derive(Clone, Debug)]
pub(super) struct OrderKey {
    pub expr: Expr,
    pub descending: bool,
    pub nulls_first: bool,
}

/// The goal that is known when paths are made.
#[derive(Default)]
pub(super) struct Goal {
    pub order: Vec<OrderKey>,
    /// How many groups rows make by the first key of the order, the first two, and so on; empty where not all rows are sorted alike.
    pub groups: Vec<f64>,
    pub wanted: Wanted,
}

pub(super) struct Path {
    pub kind: PathKind,
    pub rels: Rels,
    /// Relations whose columns it needs as parameters.
    pub params: Rels,
    pub rows: f64,
    pub startup: f64,
    pub total: f64,
    /// How many of the required order's keys the rows come in the order of, from the first on.
    pub ordered: usize,
    /// Conditions of joins above that it satisfies already.
    pub used: Vec<Rc<Expr>>,
}

pub(super) enum PathKind {
    Leaf(LeafPath),
    Join {
        join: JoinType,
        hash: Vec<(Expr, Expr)>,
        left: Rc<Path>,
        right: Rc<Path>,
        conditions: Vec<Expr>,
        is_hash: bool,
    },
    Filter {
        input: Rc<Path>,
        conditions: Vec<Expr>,
    },
    /// One row of no columns.
    Nothing,
}

impl Path {
    pub fn cost(&self, goal: &Goal) -> f64 {
        self.startup + (self.total - self.startup) * goal.wanted.share_of(self.rows)
    }

    /// The same with the sort that brings the rows into the required order.
    ///
    /// A sort reads all rows, not only those that are wanted; one of rows that are ordered by the first keys only whole groups of them.
    pub fn sorted_cost(&self, goal: &Goal) -> f64 {
        if self.ordered >= goal.order.len() {
            return self.cost(goal);
        }
        let groups = if self.ordered > 0 { goal.groups[self.ordered - 1].clamp(1.0, self.rows.max(1.0)) } else { 1.0 };
        let read = (goal.wanted.share_of(self.rows) + 1.0 / groups).min(1.0);
        self.startup + ((self.total - self.startup) + sorting_cost(self.rows, groups)) * read
    }
}

/// Twice PostgreSQL's cpu_operator_cost.
pub(super) const COMPARISON: f64 = 0.005;

/// The cost of sorting the rows of some groups, group by group.
pub(super) fn sorting_cost(rows: f64, groups: f64) -> f64 {
    rows * (rows / groups).max(2.0).log2() * COMPARISON
}

/// How a range table entry is read.
pub(super) struct LeafPath {
    pub entry: usize,
    pub access: Access,
    /// Conditions to check on each row.
    pub filter: Vec<Expr>,
}

pub(super) enum Access {
    Table,
    Index(IndexChoice),
    Bitmap(BitmapChoice),
    System {
        equal: Vec<(usize, Expr)>,
        /// Lists of values that a column is among.
        any_of: Vec<(usize, Expr)>,
    },
    Function,
    /// A foreign table's.
    Foreign,
    Transition,
    JsonTable,
    Values,
    Cte,
    Result,
    /// Planned already, with the parameters it uses; taken when the plan is made.
    Subquery(RefCell<Option<(Stage, BTreeSet<usize>)>>),
    /// A table with children.
    Family(FamilyPath),
}

/// How a member is read.
pub(super) struct MemberPath {
    pub member: Arc<Member>,
    pub path: Rc<Path>,
}

/// How a family is read.
#[derive(Default)]
pub(super) struct FamilyPath {
    pub members: Vec<MemberPath>,
    /// Each member's rows are wanted in this order, and sorted where they do not come in it.
    pub order: Vec<OrderKey>,
    /// They are merged by it. Otherwise the members are in an order in which their rows may follow each other.
    pub is_merged: bool,
    /// Conditions that decide, once they have values, which members have no rows for them.
    pub pruner: Option<Rc<Pruner>>,
}
