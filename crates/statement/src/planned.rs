//! A statement after analysis and planning, as the session keeps it for later executions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use melba_analyze::LiteralUse;
use melba_catalog::Catalog;
use melba_expression::Expression;
use melba_plan::Plan;
use melba_tree::LockStrength;
use melba_tree::permissions::Permissions;
use melba_types::{Oid, Result};

use super::names::SearchPath;
use super::outcome::ResultColumn;
use super::positioned::Position;
use super::statement_counts::identity::Identity;

/// A statement after analysis, as the session keeps it for later executions.
#[derive(Default)]
pub struct Compiled {
    pub planned: Option<Planned>,
}

/// A planned query, and the catalog it was planned against.
pub struct Planned {
    pub plan: Arc<Plan>,
    /// Constants in it depend on the time, as `'now'::timestamptz` does: the same text has others later.
    pub(super) has_time: bool,
    /// The plan has the texts that EXPLAIN prints.
    pub(super) has_texts: bool,
    /// Those of EXPLAIN VERBOSE.
    pub(super) has_verbose_texts: bool,
    pub permissions: Permissions,
    pub catalog: Arc<Catalog>,
    pub path: Arc<SearchPath>,
    /// Whose privileges on schemas it was analyzed with.
    pub user: Oid,
    /// Policies hold for this user, with row_security as it was.
    pub(super) row_security: Option<bool>,
    pub parameter_types: Vec<Oid>,
    pub columns: Option<Arc<[ResultColumn]>>,
    /// Of a statement whose literals are its parameters.
    pub literals: Vec<LiteralUse>,
    /// What is computed from these alone.
    pub(super) literal_operations: Vec<Expression>,
    /// `Statement::row_literals`.
    pub(super) row_literals: usize,
    /// Where a cursor's rows come from.
    pub positions: Arc<[Position]>,
    /// How it locks the rows of the first relation of FROM that a locking clause is about.
    pub locks_rows: Option<LockStrength>,
    /// Not of a statement of a function's body.
    pub identity: Option<Arc<Identity>>,
    /// Nanoseconds that planning took, until they are counted.
    pub planning: AtomicU64,
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled(planned: {})", self.planned.is_some())
    }
}

impl Compiled {
    /// PostgreSQL computes constants when it plans, which is at Bind.
    pub fn check_constants(&self) -> Result<()> {
        self.planned.as_ref().map_or(Ok(()), |planned| planned.plan.check_constants())
    }

    /// The identity of a query without its constants.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.planned.as_ref().and_then(|p| p.identity.as_ref())
    }

    /// How long planning took, in nanoseconds, unless that was already read.
    pub fn take_planning_time(&self) -> Option<u64> {
        self.planned.as_ref().map(|p| p.planning.swap(0, Ordering::Relaxed)).filter(|time| *time > 0)
    }

    /// Worth keeping for the next time the same text comes.
    pub fn is_reusable(&self) -> bool {
        self.planned.is_some()
    }

    /// How the statement's literals became its parameters.
    pub fn literals(&self) -> &[LiteralUse] {
        self.planned.as_ref().map_or(&[], |p| &p.literals)
    }

    /// Texts that differ in their literals may share the plan. Not when it reads a whole table: it takes so long that it should
    /// know the constants. Nor when these decide which partitions have rows: the others must not be locked. Nor when rules have
    /// rewritten it: the operations over literals of each command are not known.
    pub fn may_share_literals(&self) -> bool {
        let shares = |plan: &Plan| !plan.scans_tables && !plan.prunes_by_parameters && plan.steps.is_none();
        self.planned.as_ref().is_none_or(|p| shares(&p.plan))
    }
}

/// The result of a statement's analysis.
#[derive(Debug)]
pub struct AnalyzedStatement {
    pub parameter_types: Vec<Oid>,
    pub columns: Option<Arc<[ResultColumn]>>,
    pub compiled: Compiled,
}
