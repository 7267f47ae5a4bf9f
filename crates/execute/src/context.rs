//! State that the operators of one execution share.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::sync::Arc;

use melba_catalog::Relation;
use melba_catalog::relations::FIRST_NORMAL_XID;
use melba_expression::Evaluation;
use melba_types::{Csn, Datum, DbError, Result};

use super::catalog_rows;
use super::operator::Operator;
use super::runtime::Runtime;
use super::team::{Part, Team};
use melba_plan::NodeTiming;
use melba_plan::node::PlanNode;
use melba_table::{Events, StatementChanges};
use melba_transaction::Tx;

/// One statement's context: the evaluation of its expressions, and state that operators share beside it. Operators hold no
/// reference to it but get it with every call.
#[derive(Clone, Copy)]
pub struct ExecContext<'a> {
    evaluation: &'a Evaluation,
    state: &'a ExecutionState,
}

impl<'a> ExecContext<'a> {
    pub fn of(evaluation: &'a Evaluation<ExecutionState>) -> ExecContext<'a> {
        ExecContext { evaluation, state: &evaluation.subplans }
    }
}

impl Deref for ExecContext<'_> {
    type Target = Evaluation;

    fn deref(&self) -> &Evaluation {
        self.evaluation
    }
}

/// State that changes while a plan runs, beside the values that expressions read.
pub struct ExecutionState {
    tx: Arc<Tx>,
    /// Checks for the end of the statement, and triggers after it, in the order in which they came up.
    events: RefCell<Events>,
    changes: OnceCell<Arc<StatementChanges>>,
    /// Parameters of each row of the VALUES list whose second row stands for further ones; 0: there is none.
    pub row_parameters: usize,
    /// It was met.
    pub rows_repeated: Cell<bool>,
    rows_affected: Cell<u64>,
    /// EXPLAIN ANALYZE: by plan node.
    timings: Option<RefCell<Vec<NodeTiming>>>,
    /// Of which this is a member's state.
    team: Option<Arc<Team>>,
    part: Cell<Option<Part>>,
    pub(super) runtime: Runtime,
    build: Option<Build>,
}

/// Builds the operator of a plan node. The execution passes it, so that operators, sub-plans and WITH queries, which are built at
/// the first request for rows, need not depend on the builder.
pub(crate) type Build = fn(&PlanNode, &ExecContext) -> Result<Box<dyn Operator>>;

impl ExecutionState {
    pub fn new(tx: Arc<Tx>) -> ExecutionState {
        ExecutionState {
            tx,
            events: RefCell::default(),
            changes: OnceCell::new(),
            row_parameters: 0,
            rows_repeated: Cell::new(false),
            rows_affected: Cell::new(0),
            timings: None,
            team: None,
            part: Cell::new(None),
            runtime: Runtime::default(),
            build: None,
        }
    }

    /// For an execution that begins.
    pub(crate) fn start(&mut self, runtime: Runtime, build: Build) {
        (self.runtime, self.build) = (runtime, Some(build));
    }

    /// Measures every operator (EXPLAIN ANALYZE).
    pub fn instrument(&mut self) {
        self.timings = Some(RefCell::default());
    }

    /// The measurements, by plan node.
    pub fn timings(&self) -> Vec<NodeTiming> {
        self.timings.as_ref().map(|t| t.borrow().clone()).unwrap_or_default()
    }

    /// That of another execution in the same transaction.
    pub(crate) fn sibling(&self) -> ExecutionState {
        ExecutionState::new(self.tx.clone())
    }

    pub(crate) fn rows_affected(&self) -> u64 {
        self.rows_affected.get()
    }
}

impl<'a> ExecContext<'a> {
    /// The id of the transaction as system columns show it; never 0, which means that there is none.
    pub(crate) fn xid(&self) -> u32 {
        (self.state.tx.xid() as u32).max(FIRST_NORMAL_XID)
    }

    /// xmin of a version that a commit has made, or this transaction.
    pub(crate) fn xmin(&self, commit: Option<Csn>) -> Datum {
        Datum::Oid(commit.map_or_else(|| self.xid(), |csn| self.state.tx.xid_of_commit(csn)))
    }

    /// A context of the same execution, over its evaluation.
    pub(super) fn over(evaluation: &'a Evaluation, state: &'a ExecutionState) -> ExecContext<'a> {
        ExecContext { evaluation, state }
    }

    /// The operator of a plan node.
    pub(crate) fn build(&self, node: &PlanNode) -> Result<Box<dyn Operator>> {
        let build = self.state.build.ok_or_else(|| DbError::internal("a plan node outside an execution"))?;
        build(node, self)
    }

    pub(super) fn runtime(&self) -> &'a Runtime {
        &self.state.runtime
    }

    pub(crate) fn row_parameters(&self) -> usize {
        self.state.row_parameters
    }

    /// Notes that a VALUES list had rows of which its second one stood for further ones.
    pub(crate) fn set_rows_repeated(&self) {
        self.state.rows_repeated.set(true);
    }

    pub(crate) fn instrumented(&self) -> bool {
        self.state.timings.is_some()
    }

    pub(crate) fn record_timing(&self, node: usize, f: impl FnOnce(&mut NodeTiming)) {
        if let Some(timings) = &self.state.timings {
            let mut timings = timings.borrow_mut();
            if timings.len() <= node {
                timings.resize(node + 1, NodeTiming::default());
            }
            f(&mut timings[node]);
        }
    }

    /// Notes how many rows a node's conditions looked at and how many passed.
    pub(crate) fn note_removed(&self, node: usize, rows: usize, passed: usize) {
        self.record_timing(node, |t| t.removed += rows.saturating_sub(passed) as u64);
    }

    /// The team whose member this is.
    pub(crate) fn team(&self) -> Option<&'a Arc<Team>> {
        self.state.team.as_ref()
    }

    /// The part of the team's table that this member works at.
    pub(crate) fn part(&self) -> Option<Part> {
        self.state.part.get()
    }

    pub(crate) fn set_part(&self, part: Option<Part>) {
        self.state.part.set(part);
    }

    /// Whether this is a team's member between two parts.
    pub(crate) fn is_between_parts(&self) -> bool {
        self.state.team.is_some() && self.part().is_none()
    }

    /// Rows that the member returns from now on, until its next part, come after all parts.
    pub(crate) fn leave_order(&self) {
        self.set_part(self.part().map(|(_, part)| (usize::MAX, part)));
    }

    /// The evaluation of a team's member.
    pub(crate) fn member(&self, team: &Arc<Team>) -> Evaluation<ExecutionState> {
        let mut state = ExecutionState::new(self.state.tx.clone());
        state.timings = self.state.timings.is_some().then(RefCell::default);
        state.team = Some(team.clone());
        state.runtime = self.state.runtime.member();
        state.build = self.state.build;
        self.evaluation.member(state)
    }

    /// Adds the measurements of a team's members.
    pub(crate) fn record_members<'t>(&self, members: impl Iterator<Item = &'t [NodeTiming]>) {
        for (node, timing) in members.flat_map(|timings| timings.iter().enumerate()) {
            self.record_timing(node, |sum| sum.add(timing));
        }
    }

    pub(crate) fn add_events(&self, events: Events) -> Result<()> {
        if events.is_empty() { Ok(()) } else { self.state.events.borrow_mut().append(self, events) }
    }

    /// The state for triggers that all changes of the statement share.
    pub(crate) fn changes(&self) -> &Arc<StatementChanges> {
        self.state.changes.get_or_init(Arc::default)
    }

    /// Runs the constraints' events after the statement's own changes.
    pub(crate) fn finish_events(&self) -> Result<()> {
        let mut events = std::mem::take(&mut *self.state.events.borrow_mut());
        if events.is_empty() {
            return Ok(());
        }
        events.finish(self, self.transaction(), &self.state.tx.deferred, self.changes())
    }

    /// Replaces a row of a system catalog.
    pub(crate) fn change_catalog(&self, relation: &Relation, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<()> {
        let new = new.map(|new| self.expand_row(new, relation.columns.iter().map(|c| c.kind))).transpose()?;
        catalog_rows::change((&self.state.tx, &*self.session), relation, old, new.as_deref())
    }

    pub(crate) fn add_rows_affected(&self, rows: u64) {
        let affected = &self.state.rows_affected;
        affected.set(affected.get() + rows);
    }
}
