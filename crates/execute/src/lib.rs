//! Execution of plans: pull-based operators that return a batch at a time.
//!
//! Invariants:
//! 1. A plan is immutable and shared; operators and `ExecContext` hold all state of one execution.
//! 2. An operator returns at most the number of rows that it is asked for and evaluates targets on no more; so LIMIT and portals
//!    with row limits show the same side effects as in PostgreSQL.
//! 3. Operators are `Send`. The context moves with them from thread to thread; two threads never share it.

mod catalog_rows;
mod conflict;
pub mod context;
mod instrument;
mod join_filter;
mod key_overhead;
pub(crate) mod modify;
mod operator;
mod parallel;
mod runtime;
mod subplan;
mod subplan_rows;
mod team;
mod top_filter;
mod watch;

use std::sync::Arc;

use melba_expression::Evaluation;
use melba_spill::{Place, Store};
use melba_types::{BATCH_ROWS, Batch, Result};

pub use context::{ExecContext, ExecutionState};
pub use watch::{EndedExecution, ExecutionWatch, complete, watched_depth};

use self::operator::Pending;
use self::runtime::Runtime;
use self::watch::Watched;
use melba_plan::{Plan, PlanCommand, PlanStep, PlanSteps};
pub(crate) use operator::Operator;

/// One execution of a plan.
pub struct Execution {
    plan: Arc<Plan>,
    evaluation: Evaluation<ExecutionState>,
    root: Box<dyn Operator>,
    returned: u64,
    done: bool,
    /// Rows are passed on to a table: they keep their stored form.
    pub keep_stored: bool,
    /// Rows not expanded yet.
    pending: Pending,
    /// Of a statement that rules have rewritten, once its steps have run.
    outcome: StepsOutcome,
    watched: Option<Box<Watched>>,
}

impl Drop for Execution {
    fn drop(&mut self) {
        if let Some(watched) = self.watched.take() {
            watched.end(&self.plan, self.evaluation.subplans.timings(), &self.evaluation.parameters);
        }
    }
}

/// The result of the steps of a statement that rules have rewritten.
#[derive(Default)]
struct StepsOutcome {
    rows: Option<Store>,
    place: Place,
    affected: u64,
}

impl Execution {
    pub fn new(plan: Arc<Plan>, mut evaluation: Evaluation<ExecutionState>) -> Result<Execution> {
        plan.check_constants()?;
        evaluation.subplans.start(Runtime::of(&plan), operator::build);
        let root = operator::build(&plan.root, &ExecContext::of(&evaluation))?;
        Ok(Execution {
            plan,
            evaluation,
            root,
            returned: 0,
            done: false,
            keep_stored: false,
            pending: Pending::default(),
            outcome: StepsOutcome::default(),
            watched: None,
        })
    }

    /// Has somebody learn of its end.
    pub fn watch(&mut self, watch: Box<dyn ExecutionWatch>) {
        self.watched = Some(Box::new(Watched::new(watch)));
    }

    /// The evaluation of its expressions.
    pub fn evaluation(&self) -> &Evaluation<ExecutionState> {
        &self.evaluation
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The next rows, at most `limit`; after `None` the statement is complete. Columns beyond `Plan::columns` are not part
    /// of the result.
    #[inline]
    pub fn next_batch(&mut self, limit: usize) -> Result<Option<Batch>> {
        let Some(mut watched) = self.watched.take() else { return self.next_rows(limit) };
        let session = self.evaluation.session.clone();
        let result = watched.run(&*session, || self.next_rows(limit));
        self.watched = Some(watched);
        result
    }

    fn next_rows(&mut self, limit: usize) -> Result<Option<Batch>> {
        if !self.pending.is_empty() {
            return self.expanded(limit);
        }
        if let Some(steps) = self.plan.steps.clone() {
            if !std::mem::replace(&mut self.done, true) {
                self.outcome = self.run_steps(&steps)?;
            }
            let StepsOutcome { rows, place, .. } = &mut self.outcome;
            return rows.as_mut().map_or(Ok(None), |rows| rows.read(place, limit.max(1)));
        }
        if self.done {
            return Ok(None);
        }
        match self.root.next(&ExecContext::of(&self.evaluation), limit.max(1))? {
            Some(mut batch) => {
                self.returned += batch.rows as u64;
                batch.columns.truncate(self.plan.columns.len());
                if batch.is_stored() && !self.keep_stored {
                    self.pending.put(batch);
                    return self.expanded(limit);
                }
                Ok(Some(batch))
            }
            None => {
                self.done = true;
                let ctx = ExecContext::of(&self.evaluation);
                ctx.finish_modifying_ctes()?;
                ctx.finish_events()?;
                Ok(None)
            }
        }
    }

    /// Runs the commands to their ends, each as a command that sees the changes of those before it.
    fn run_steps(&self, steps: &PlanSteps) -> Result<StepsOutcome> {
        let of = &self.evaluation;
        of.keep_view();
        let mut outcome = StepsOutcome::default();
        for (at, step) in steps.steps.iter().enumerate() {
            let plan = match step {
                PlanStep::Run(plan) => plan.clone(),
                PlanStep::Notify { channel, payload } => {
                    of.session.notify(channel, payload)?;
                    continue;
                }
            };
            let view = if at == 0 { of.view() } else { of.transaction().current_view(of.view()) };
            let (session, transaction, parameters) = (of.session.clone(), of.transaction().clone(), of.parameters.clone());
            let evaluation = Evaluation::new(session, transaction, view, parameters, of.subplans.sibling());
            let mut step = Execution::new(plan, evaluation)?;
            step.keep_stored = self.keep_stored;
            let counts = steps.counted == Some(at);
            while let Some(batch) = step.next_batch(BATCH_ROWS)? {
                of.session.check_interrupt()?;
                if counts {
                    outcome.rows.get_or_insert_with(|| Store::new(of.resources())).push(batch)?;
                }
            }
            if counts {
                outcome.affected = step.rows_affected();
            }
        }
        Ok(outcome)
    }

    /// The next rows in stored form, expanded: few when they are long.
    fn expanded(&mut self, limit: usize) -> Result<Option<Batch>> {
        let rows = self.pending.rows_within(limit.max(1));
        match self.pending.take(rows) {
            Some(batch) => self.evaluation.expand_batch(batch, &self.plan.root.kinds).map(Some),
            None => Ok(None),
        }
    }

    /// Rows returned by a SELECT, or changed by the statement's own INSERT, UPDATE, DELETE or MERGE: the command tag's count.
    pub fn rows_affected(&self) -> u64 {
        match self.plan.command {
            _ if self.plan.steps.is_some() => self.outcome.affected,
            PlanCommand::Select => self.returned,
            _ => self.evaluation.subplans.rows_affected(),
        }
    }
}
