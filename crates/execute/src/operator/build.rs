//! Builds operators from plan nodes: the only place that knows all operators.

use melba_types::{Result, limits};

use super::{
    aggregate, bitmap_scan, cte, file_scan, function_scan, hash_join, incremental_sort, index_scan, json_table, limit, lock_rows,
    merge_append, nested_loop, project, set_op, simple, sort, synthesized_scan, system_scan, table_scan, unique_scan, window,
};
use crate::{ExecContext, Operator};
use melba_plan::Synthesized;
use melba_plan::node::{Op, PlanNode};

/// The operator for a plan node.
pub(crate) fn build(node: &PlanNode, ctx: &ExecContext) -> Result<Box<dyn Operator>> {
    limits::check_stack()?;
    let operator: Box<dyn Operator> = match &node.op {
        Op::Result(n) => Box::new(simple::ResultOp::new(n.clone(), ctx)?),
        Op::Values(n) => Box::new(simple::ValuesOp::new(n.clone(), node.kinds.clone())),
        Op::TableScan(n) => Box::new(table_scan::TableScanOp::new(node.id, n.clone())),
        Op::IndexScan(n) if matches!(&n.arms[..], [arm] if arm.unique) => {
            Box::new(unique_scan::UniqueScanOp::new(node.id, n.clone()))
        }
        Op::IndexScan(n) => Box::new(index_scan::IndexScanOp::new(node.id, n.clone())),
        Op::BitmapScan(n) => Box::new(bitmap_scan::BitmapScanOp::new(node.id, n.clone())),
        Op::SystemScan(n) => match Synthesized::of(n.relation) {
            Some(rows) => Box::new(synthesized_scan::SynthesizedScanOp::new(node.id, rows, n.clone(), node.kinds.clone())),
            None => Box::new(system_scan::SystemScanOp::new(node.id, n.clone(), node.kinds.clone())),
        },
        Op::FunctionScan(n) => Box::new(function_scan::FunctionScanOp::new(node.id, n.clone(), node.kinds.clone())),
        Op::FileScan(n) => Box::new(file_scan::FileScanOp::new(n.clone())),
        Op::JsonTable(n) => Box::new(json_table::JsonTableOp::new(n.clone(), node.kinds.clone())),
        Op::CteScan { cte } => Box::new(cte::CteScanOp::new(node.id, *cte)),
        Op::WorkTableScan { table } => Box::new(cte::WorkTableScanOp::new(*table)),
        Op::Filter(n) => Box::new(simple::FilterOp::new(node.id, n.clone(), ctx)?),
        Op::Project(n) => Box::new(project::ProjectOp::new(n.clone(), ctx)?),
        Op::ProjectSet(n) => Box::new(project::ProjectSetOp::new(n.clone(), node.kinds.clone(), ctx)?),
        Op::HashJoin(n) => Box::new(hash_join::HashJoinOp::new(node.id, n.clone(), ctx)?),
        Op::NestedLoop(n) => Box::new(nested_loop::NestedLoopOp::new(node.id, n.clone(), ctx)?),
        Op::Aggregate(n) => Box::new(aggregate::AggregateOp::new(node.id, n.clone(), node.kinds.clone(), ctx)?),
        Op::Window(n) => Box::new(window::WindowOp::new(node.id, n.clone(), ctx)?),
        Op::Sort(n) if n.presorted > 0 => Box::new(incremental_sort::IncrementalSortOp::new(n.clone(), ctx)?),
        Op::Sort(n) => Box::new(sort::SortOp::new(node.id, n.clone(), ctx)?),
        Op::Distinct(n) => Box::new(set_op::DistinctOp::new(node.id, n.clone(), ctx)?),
        Op::Limit(n) => Box::new(limit::LimitOp::new(n.clone(), ctx)?),
        Op::SetOp(n) => Box::new(set_op::SetOpOp::new(n.clone(), ctx)?),
        Op::Append(n) if !n.merge.is_empty() => Box::new(merge_append::MergeAppendOp::new(n.clone(), ctx)?),
        Op::Append(n) => Box::new(set_op::AppendOp::new(n.clone(), ctx)?),
        Op::RecursiveUnion(n) => Box::new(cte::RecursiveUnionOp::new(n.clone(), ctx)?),
        Op::LockRows(n) => Box::new(lock_rows::LockRowsOp::new(n.clone(), ctx)?),
        Op::Modify(n) => return crate::modify::build(n.clone(), ctx),
    };
    Ok(match ctx.instrumented() {
        true => Box::new(crate::instrument::InstrumentOp::new(node.id, operator)),
        false => operator,
    })
}
