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

/// How many of a query's rows will be read before LIMIT ends it.
#[derive(Clone, Copy, Default)]
pub(super) enum Wanted {
    #[default]
    All,
    /// A share of them, where LIMIT or OFFSET has no value yet.
    Share(f64),
    Rows(f64),
}

/// The smallest share that counts. Rows that match may stand at the end of an order, so a plan that is good only if they come at once
/// is not taken for one that finds them all.
const SHARE_MIN: f64 = 0.01;

impl Wanted {
    /// The share of `rows`.
    fn share_of(self, rows: f64) -> f64 {
        match self {
            Wanted::All => 1.0,
            Wanted::Share(share) => share,
            Wanted::Rows(wanted) => (wanted / rows.max(1.0)).clamp(SHARE_MIN, 1.0),
        }
    }
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
        // A comparison costs 0.005, twice cpu_operator_cost as in PostgreSQL.
        let comparisons = self.rows * (self.rows / groups).max(2.0).log2();
        self.startup + ((self.total - self.startup) + comparisons * 0.005) * read
    }
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
pub(super) struct FamilyPath {
    pub members: Vec<MemberPath>,
    /// Conditions that decide, once they have values, which members have no rows for them.
    pub pruner: Option<Rc<Pruner>>,
}
