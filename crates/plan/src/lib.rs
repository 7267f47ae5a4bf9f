//! Planning: turns an analyzed query into a tree of operators.
//!
//! ```text
//! Query -> prepare (subqueries and sublinks become joins) -> join (order and methods, over access paths)
//!       -> query (grouping, windows, DISTINCT, ORDER BY, LIMIT) -> Plan
//! ```
//!
//! The modules are functions over the `Planner`, which holds the query levels and what the plan has so far. Its methods are those that
//! recurse into each other: `query`, `sublink`, `leaf_paths` and `relation_paths`, and `create`, which makes nodes of a path.
//!
//! Invariants:
//! 1. A plan holds no values of parameters: it is made once and executed with any values.
//! 2. Every row that a node returns has exactly the columns of its layout, which is known when the node above it is compiled.

mod access;
mod arbiters;
mod coded;
mod column_statistics;
mod common;
mod comparison;
pub mod constant;
mod correlation;
mod cte;
mod default_selectivity;
mod dependency;
mod disjunction;
mod equivalence;
pub mod explain;
pub mod explain_document;
mod explain_output;
mod extremes;
mod failure;
pub mod file_scan;
mod fold;
mod grouping;
mod groups;
mod implication;
mod index_node;
mod index_path;
pub mod io_usage;
mod join;
mod join_filter;
mod join_tree;
mod layout;
mod locking;
mod member;
mod membership;
mod modify;
pub mod modify_node;
mod needed;
mod never_null;
pub mod node;
mod nullability;
mod parallel;
mod path;
pub mod pattern;
mod plain_path;
mod planner;
mod prepare;
mod project_set;
pub mod pruning;
mod pushdown;
mod query;
mod recheck;
mod rels;
pub mod row_range;
mod sampled;
mod search_cycle;
mod selectivity;
mod set_operation;
mod shown;
mod sort;
mod stage;
mod steps;
mod sublink;
mod synthesized;
mod table_sample;
mod timing;
mod top_filter;
mod union_order;
mod unnest;
mod volatility;
mod wanted;
mod window;
pub mod zone_filter;

use std::sync::Arc;

use melba_catalog::Catalog;
use melba_engine::{ColumnEstimate, Engine, SampleAge, TableSample};
use melba_expression::{Evaluation, NoSubPlans};
use melba_fmgr::Session;
use melba_types::{Result, TreeId};

pub use access::FROZEN_XMIN;
pub use column_statistics::column_statistics;
pub use node::{CteNode, Estimate, Plan, PlanCommand, PlanNode, PlanStep, PlanSteps, SubPlanNode};
pub use steps::plan_of_steps;
pub use synthesized::Synthesized;
pub use timing::{NodeStorage, NodeTiming};

use melba_tree::Query;

/// The planner's questions about stored data.
pub trait Statistics {
    fn engine(&self) -> &Engine;

    /// To compute conditions for sampled rows; `None` when no transaction is open.
    fn evaluation(&self) -> Option<Evaluation<NoSubPlans>>;

    /// Rows of a table, roughly.
    fn rows(&self, tree: TreeId) -> f64 {
        self.engine().tree_rows_estimate(tree) as f64
    }

    /// Whether some rows of a table are in segments.
    fn has_segments(&self, tree: TreeId) -> bool {
        self.engine().tree_has_segments(tree)
    }

    /// A column's statistics, counted from 0; `None` when there are none.
    fn column(&self, tree: TreeId, column: usize) -> Option<ColumnEstimate> {
        self.engine().tree_column_estimate(tree, column)
    }

    /// Some rows of a table; `None` when it has none.
    fn sample(&self, tree: TreeId, columns: &[usize]) -> Option<TableSample> {
        self.engine().tree_sample(tree, columns, SampleAge::ForPlans)
    }
}

/// The inputs of planning.
#[derive(Clone, Copy)]
pub struct PlanInputs<'a> {
    pub catalog: &'a Arc<Catalog>,
    pub session: &'a dyn Session,
    pub statistics: &'a dyn Statistics,
    /// Keep the texts that EXPLAIN prints.
    pub explain: bool,
    /// Those of EXPLAIN VERBOSE, too.
    pub verbose: bool,
}

impl PlanInputs<'_> {
    /// Whether the session has not turned a way to run queries off (`enable_seqscan` and others).
    fn is_enabled(&self, setting: &str) -> bool {
        self.session.setting(setting).as_deref() != Some("off")
    }
}

/// Plans an analyzed statement.
pub fn plan(query: &Query, inputs: &PlanInputs<'_>) -> Result<Arc<Plan>> {
    let (planner, mut query) = (planner::Planner::new(*inputs), query.clone());
    fold::simplify(&planner, &mut query);
    planner.plan(query)
}
