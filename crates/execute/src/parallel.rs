//! Several threads run the same part of a plan, each over other parts of one table: a team.
//!
//! Such a part is a chain from a table scan upwards through filters, projections, and hash joins and loops over an index whose
//! left side it is (`melba_plan::parallel` decides). The hash tables are built once, before the members start, possibly by teams
//! of their own; then they are only read. A join that returns rows of such a table last does not make a member wait: the member
//! that ends the last part returns them.
//!
//! Invariants:
//! 1. Each member has its own operators and `Evaluation`. Members share the list of the table's parts, from which each part is
//!    taken once, and state that no longer changes: hash tables, join filters, the view. A member takes the parts of its own range
//!    of the table first, and then those that others have left.
//! 2. A member runs its operators to their end for each part. So the rows they return belong to that part, and can be put in the
//!    table's order.
//! 3. All members have ended when `run` returns, also after an error or a panic.
//! 4. Members form no teams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use melba_engine::io_counts;
use melba_expression::Evaluation;
use melba_plan::node::{Op, PlanNode};
use melba_types::{BATCH_ROWS, Batch, DbError, Result, limits};
use parking_lot::Mutex;

use crate::context::ExecutionState;
use crate::team::{BuiltTables, Team};
use crate::{ExecContext, Operator};

/// Parts of a table a member: enough that members end at about the same time.
const PARTS_A_MEMBER: usize = 32;

/// Workers of all teams.
static WORKERS: AtomicUsize = AtomicUsize::new(0);

/// Threads beside the statement's own, counted in `WORKERS` for as long as this lives.
pub(crate) struct Workers(usize);

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

    pub fn count(&self) -> usize {
        self.0
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        WORKERS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// A team of the statement's thread and at most `workers` more for the rows of `node`, whose operator is `input`; `None` when one
/// thread is to do it. Then `input` continues from its current row.
pub(crate) fn form(
    ctx: &ExecContext,
    workers: usize,
    node: &PlanNode,
    input: &mut dyn Operator,
) -> Result<Option<(Team, Workers)>> {
    if workers == 0 || ctx.team().is_some() {
        return Ok(None);
    }
    let Some(scan) = node.driving_scan() else { return Ok(None) };
    let mut tables = BuiltTables::new();
    if !input.share(ctx, &mut tables)? {
        return Ok(None);
    }
    let workers = Workers::take(workers, ctx);
    if workers.0 == 0 {
        return Ok(None);
    }
    let members = workers.0 + 1;
    let parts = ctx.transaction().morsels(scan.source.tree, members * PARTS_A_MEMBER)?;
    Ok(Some((Team::new(scan.clone(), parts, members, tables), workers)))
}

/// How many rows to ask a node for at a time: rows that are only counted take no memory.
pub(crate) fn rows_at_once(node: &PlanNode) -> usize {
    match &node.op {
        Op::TableScan(scan) if scan.only_counts() => usize::MAX,
        _ => BATCH_ROWS,
    }
}

/// Passes the rows of `node` to a member of a team.
pub(crate) fn each_batch(ctx: &ExecContext, node: &PlanNode, mut take: impl FnMut(Batch) -> Result<()>) -> Result<()> {
    let Some(team) = ctx.team() else { return Err(DbError::internal("a part of a plan without a team")) };
    let mut input = ctx.build(node)?;
    let share = team.begin_share();
    while let Some(part) = team.next_part(share) {
        input.rescan(ctx)?;
        ctx.set_part(Some(part));
        while let Some(batch) = input.next(ctx, rows_at_once(node))? {
            ctx.check_interrupt()?;
            take(batch)?;
        }
        ctx.set_part(None);
    }
    Ok(())
}

/// The results of `f` for each item, in their order. The members of a team of at most `workers` beside the statement's thread
/// take the items one by one. `node` names the team's plan; no table is read.
pub(crate) fn each_of<I: Send, T: Send>(
    ctx: &ExecContext,
    workers: usize,
    node: &PlanNode,
    items: Vec<I>,
    f: impl Fn(&ExecContext, I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let scan = node.driving_scan().filter(|_| workers > 0 && items.len() > 1 && ctx.team().is_none());
    let Some(scan) = scan else { return items.into_iter().map(|item| f(ctx, item)).collect() };
    let workers = Workers::take(workers.min(items.len() - 1), ctx);
    let items = Mutex::new(items.into_iter().enumerate());
    let work = |ctx: &ExecContext| {
        let mut made = Vec::new();
        loop {
            // Not in the loop's condition, which would hold the lock through its body.
            let next = items.lock().next();
            let Some((place, item)) = next else { return Ok(made) };
            made.push((place, f(ctx, item)?));
        }
    };
    let made = run(ctx, Team::new(scan.clone(), Vec::new(), workers.0 + 1, BuiltTables::new()), &workers, work)?;
    let mut made: Vec<(usize, T)> = made.into_iter().flatten().collect();
    made.sort_by_key(|(place, _)| *place);
    Ok(made.into_iter().map(|(_, made)| made).collect())
}

/// All that a team has collected of `node`.
pub(crate) struct Gathered {
    /// In the order of a single thread.
    pub batches: Vec<Batch>,
    /// Their size, plus `other_bytes` of each batch.
    pub bytes: usize,
    pub workers: usize,
}

/// Lets a team collect the rows of `node`, whose operator is `input`; `None` when one thread is to do it, or when they are more
/// than may be kept at once. Then `input` starts over.
pub(crate) fn gather(
    ctx: &ExecContext,
    workers: usize,
    node: &PlanNode,
    input: &mut dyn Operator,
    other_bytes: impl Fn(&ExecContext, &Batch) -> Result<usize> + Sync,
) -> Result<Option<Gathered>> {
    let Some((team, workers)) = form(ctx, workers, node, input)? else { return Ok(None) };
    /// More than anything holds, and than could be added to without an overflow.
    const TOO_MUCH: usize = usize::MAX / 2;
    let bytes = AtomicUsize::new(0);
    let collect = |ctx: &ExecContext| {
        let resources = ctx.resources();
        let (mut batches, mut held) = (Vec::new(), resources.held());
        each_batch(ctx, node, |batch| {
            let more = batch.memory_bytes() + other_bytes(ctx, &batch)?;
            let (own, all) = (held.bytes() + more, bytes.fetch_add(more, Ordering::Relaxed) + more);
            if !resources.holds_part(&mut held, own, all, resources.hash_bytes) {
                bytes.store(TOO_MUCH, Ordering::Relaxed);
                ctx.team().iter().for_each(|team| team.stop());
            } else {
                batches.push((ctx.part().map_or(0, |(number, _)| number), batch));
            }
            Ok(())
        })?;
        Ok(batches)
    };
    let mut batches: Vec<(usize, Batch)> = run(ctx, team, &workers, collect)?.into_iter().flatten().collect();
    let bytes = bytes.into_inner();
    if bytes >= TOO_MUCH {
        input.rescan(ctx)?;
        return Ok(None);
    }
    // Those of one part are one member's, in their order.
    batches.sort_by_key(|(number, _)| *number);
    Ok(Some(Gathered { batches: batches.into_iter().map(|(_, batch)| batch).collect(), bytes, workers: workers.count() }))
}

/// Lets each member do `work`; returns the results of each.
///
/// # Errors
/// That of the first member that failed; the others stop.
pub(crate) fn run<T: Send>(
    ctx: &ExecContext,
    team: Team,
    workers: &Workers,
    work: impl Fn(&ExecContext) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let team = Arc::new(team);
    let member = |evaluation: Evaluation<ExecutionState>| {
        let made = work(&ExecContext::of(&evaluation)).and_then(|made| limits::check_reserve().map(|()| made));
        if made.is_err() {
            team.stop();
        }
        (made, evaluation.subplans.timings())
    };
    let (interrupt, measures_times) = (limits::interrupt(), io_counts::measures_times());
    let ended = melba_threads::scope(ctx.transaction().scheduler(), |scope| {
        let start = |_| {
            let (evaluation, interrupt, member) = (ctx.member(&team), interrupt.clone(), &member);
            let body = move || {
                io_counts::measure_times(measures_times);
                limits::run_member(interrupt, || io_counts::apart(|| member(evaluation)))
            };
            // Without a thread the others do its work.
            scope.spawn_large(limits::SESSION_STACK_BYTES, body).ok()
        };
        let threads: Vec<_> = (0..workers.0).filter_map(start).collect();
        let mut ended = vec![member(ctx.member(&team))];
        for thread in threads {
            let (member, counted) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            io_counts::take_over(&counted);
            ended.push(member);
        }
        ended
    });
    ctx.record_members(ended.iter().map(|(_, timings)| &timings[..]));
    ended.into_iter().map(|(made, _)| made).collect()
}
