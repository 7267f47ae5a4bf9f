//! Several threads run the same part of a plan, each over other parts of one table: a team.
//!
//! What is run so is a chain from a table scan upwards through filters, projections, and hash joins whose left side it is
//! (`melba_plan::parallel` decides). The hash tables are built once, by the statement's own thread, before the members start; then
//! they are only read.
//!
//! Invariants:
//! 1. Each member has operators and an `Evaluation` of its own. Members share the list of the table's parts, from which each
//!    part is taken once, and what does not change any more: hash tables, join filters, the view.
//! 2. All members have ended when `run` returns, also after an error or a panic.
//! 3. Members form no teams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use melba_engine::Morsel;
use melba_expression::Evaluation;
use melba_plan::node::{PlanNode, TableScanNode};
use melba_types::{Result, limits};
use parking_lot::Mutex;

use crate::context::ExecutionState;
use crate::operator::{Built, build};
use crate::{ExecContext, Operator};

/// Parts of a table a member: enough that members end at about the same time.
const PARTS_A_MEMBER: usize = 32;

/// Members of all teams, but for the statements' own threads.
static WORKERS: AtomicUsize = AtomicUsize::new(0);

/// Workers counted in `WORKERS` for as long as this lives.
struct Workers(usize);

impl Workers {
    /// As many of `wanted` as the machine has other processors for and `max_parallel_workers` allows.
    fn take(wanted: usize, ctx: &ExecContext) -> Workers {
        let processors = ctx.transaction().threads();
        let most = ctx.session.setting_number("max_parallel_workers").unwrap_or(0.0) as usize;
        let wanted = wanted.min(processors - 1);
        let free = |taken: usize| wanted.min(most.saturating_sub(taken));
        let before = WORKERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| Some(taken + free(taken)));
        Workers(before.map_or(0, free))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        WORKERS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// The tables of hash joins, by the number of the plan's node.
pub(crate) type BuiltTables = HashMap<usize, Arc<Built>>;

/// What the members share.
pub(crate) struct Team {
    workers: Workers,
    scan: Arc<TableScanNode>,
    parts: Mutex<std::vec::IntoIter<Morsel>>,
    tables: BuiltTables,
}

impl Team {
    /// A team of the statement's thread and at most `workers` more for what `node` gives, of which `input` is the operator;
    /// `None` when one thread is to do it. Then `input` goes on where it is.
    pub fn form(ctx: &ExecContext, workers: usize, node: &PlanNode, input: &mut dyn Operator) -> Result<Option<Team>> {
        if workers == 0 || ctx.team().is_some() {
            return Ok(None);
        }
        let Some(scan) = node.driving_scan() else { return Ok(None) };
        let workers = Workers::take(workers, ctx);
        let mut tables = BuiltTables::new();
        if workers.0 == 0 || !input.share(ctx, &mut tables)? {
            return Ok(None);
        }
        let parts = ctx.transaction().morsels(scan.source.tree, (workers.0 + 1) * PARTS_A_MEMBER)?;
        Ok(Some(Team { workers, scan: scan.clone(), parts: Mutex::new(parts.into_iter()), tables }))
    }

    /// Runs `work` over the rows of `node`, a part of them a member; what each member has made.
    ///
    /// # Errors
    /// That of the first member that failed; the others stop.
    pub fn run<T: Send>(
        self,
        ctx: &ExecContext,
        node: &PlanNode,
        work: impl Fn(&ExecContext, &mut dyn Operator) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let team = Arc::new(self);
        let member = |evaluation: Evaluation<ExecutionState>| {
            let ctx = ExecContext::of(&evaluation);
            let made = build(node, &ctx).and_then(|mut input| work(&ctx, &mut *input));
            let made = made.and_then(|made| limits::check_reserve().map(|()| made));
            if made.is_err() {
                team.parts.lock().by_ref().for_each(drop);
            }
            (made, evaluation.subplans.timings())
        };
        let interrupt = limits::interrupt();
        let scheduler = ctx.transaction().scheduler();
        let ended = melba_threads::scope(scheduler, |scope| {
            let start = |_| {
                let (evaluation, interrupt, member) = (ctx.member(&team), interrupt.clone(), &member);
                let body = move || limits::run_member(interrupt, || member(evaluation));
                // Without a thread the others do its work.
                scope.spawn_large(limits::SESSION_STACK_BYTES, body).ok()
            };
            let threads: Vec<_> = (0..team.workers.0).filter_map(start).collect();
            let mut ended = vec![member(ctx.member(&team))];
            for thread in threads {
                ended.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            ended
        });
        ctx.record_members(ended.iter().map(|(_, timings)| &timings[..]));
        ended.into_iter().map(|(made, _)| made).collect()
    }

    /// Threads beside the statement's own.
    pub fn workers(&self) -> usize {
        self.workers.0
    }

    /// Whether the members take the parts of this scan's table.
    pub fn divides(&self, scan: &Arc<TableScanNode>) -> bool {
        Arc::ptr_eq(&self.scan, scan)
    }

    /// The next part of the table that nobody has taken.
    pub fn next_part(&self) -> Option<Morsel> {
        self.parts.lock().next()
    }

    /// The table of a join, by its node.
    pub fn table(&self, join: usize) -> Option<Arc<Built>> {
        self.tables.get(&join).cloned()
    }
}
