//! Decides which parts of a plan several threads run: aggregates, and the built sides of hash joins, over the rows of a table
//! scan through filters, projections, hash joins and lookups by an index.
//!
//! Each thread takes parts of the table. Built rows are put in the table's order again, so a join gives its rows in the same
//! order. For an aggregate each thread collects separate groups, which are merged at the end. So an aggregate takes part only if
//! states of parts of the rows, merged in any order, are exactly the state of all of them: sums of floating-point numbers and
//! aggregates that keep their input's order are left to one thread, and results do not depend on the number of threads. All
//! functions must be parallel safe by pg_proc. As in PostgreSQL only SELECT without data-modifying WITH comes into question.

use melba_expression::Expression;

use super::node::*;
use super::planner::Planner;

/// The size of a row in memory beside its values, roughly as PostgreSQL's pages count it.
const ROW_OVERHEAD_BYTES: f64 = 28.0;

/// Threads beside the statement's own that are useful for the rows of `input`; 0 when it cannot be divided.
pub fn workers_for(planner: &Planner<'_>, input: &PlanNode) -> usize {
    if !planner.may_be_parallel {
        return 0;
    }
    let workers = workers_of_scan(planner, input);
    if workers > 0 && is_spine_safe(input) { workers } else { 0 }
}

/// The same for an aggregate over `input`.
pub fn workers_for_aggregate(
    planner: &Planner<'_>,
    input: &PlanNode,
    sets: usize,
    groups: &[Expression],
    aggregates: &[AggregateSpec],
) -> usize {
    let is_safe = || {
        sets <= 1
            && groups.iter().all(Expression::is_parallel_safe)
            && aggregates.iter().all(|aggregate| combines(planner, aggregate))
    };
    match workers_for(planner, input) {
        workers if workers > 0 && is_safe() => workers,
        _ => 0,
    }
}

/// By the size of the table, as PostgreSQL's compute_parallel_worker: one from min_parallel_table_scan_size on, another for each
/// time it is three times as large.
fn workers_of_scan(planner: &Planner<'_>, input: &PlanNode) -> usize {
    let number = |name: &str| planner.inputs.session.setting_number(name).unwrap_or(0.0);
    let Some(scan) = input.driving_scan() else { return 0 };
    // As in PostgreSQL, values of varying length count as 32 bytes.
    let width: usize = scan.source.kinds.iter().map(|kind| kind.width().unwrap_or(32)).sum();
    let bytes = planner.inputs.statistics.rows(scan.source.tree) * (width as f64 + ROW_OVERHEAD_BYTES);
    // The setting is in blocks.
    let least = number("min_parallel_table_scan_size") * 8192.0;
    if bytes < least.max(1.0) {
        return 0;
    }
    let wanted = 1.0 + ((bytes / least.max(8192.0)).ln() / 3f64.ln()).max(0.0);
    wanted.min(number("max_parallel_workers_per_gather")) as usize
}

/// Whether states of parts of the rows, in any order, make the state of all.
pub fn combines(planner: &Planner<'_>, aggregate: &AggregateSpec) -> bool {
    let call = &aggregate.call;
    let expressions = || call.args.iter().chain(&aggregate.filter);
    if aggregate.distinct.is_some() || !aggregate.order.is_empty() || !call.parallel_safe {
        return false;
    }
    let info = call.planned_info(planner.inputs.session);
    expressions().all(Expression::is_parallel_safe) && (aggregate.make)(&info).is_ok_and(|state| state.combines())
}

/// Whether all expressions between a node and its driving scan are parallel safe.
fn is_spine_safe(node: &PlanNode) -> bool {
    let safe = |expressions: &[Expression]| expressions.iter().all(Expression::is_parallel_safe);
    match &node.op {
        Op::TableScan(n) => {
            safe(&n.filter) && safe(&n.source.virtuals) && n.zones.iter().all(|zone| zone.value.is_parallel_safe())
        }
        Op::Filter(n) => safe(&n.conditions) && is_spine_safe(&n.input),
        Op::Project(n) => safe(&n.expressions) && is_spine_safe(&n.input),
        Op::HashJoin(n) => safe(&n.left_keys) && safe(&n.right_keys) && safe(&n.residual) && is_spine_safe(&n.left),
        Op::NestedLoop(n) => safe(&n.conditions) && n.right.index_scan().is_some_and(is_lookup_safe) && is_spine_safe(&n.left),
        _ => false,
    }
}

fn is_lookup_safe(scan: &IndexScanNode) -> bool {
    let is_safe_match = |key: &KeyMatch| match key {
        KeyMatch::Equal(value) | KeyMatch::AnyOf(value) => value.is_parallel_safe(),
        KeyMatch::IsNull => true,
    };
    let is_safe_range = |range: &KeyRange| match range {
        KeyRange::Between { lower, upper } => {
            lower.iter().chain(upper).all(|bound| bound.values.iter().all(Expression::is_parallel_safe))
        }
        KeyRange::Prefix { pattern, .. } => pattern.is_parallel_safe(),
        KeyRange::NotNull => true,
    };
    let is_safe_arm = |arm: &IndexArm| arm.matches.iter().all(is_safe_match) && arm.range.iter().all(is_safe_range);
    scan.arms.iter().all(is_safe_arm) && scan.filter.iter().chain(&scan.source.virtuals).all(Expression::is_parallel_safe)
}
