//! Groups by columns of strings: the scan or the hash join that they come from returns codes, by which groups are found. A string
//! is then read for the first row of a group only.

use std::sync::Arc;

use melba_expression::{Expression, Node};
use melba_types::Kind;

use super::node::*;

/// Who is asked for codes.
#[derive(Clone, Copy)]
struct Asked {
    /// A scan has a dictionary for each row group. The table of a join would keep none of them.
    scans: bool,
    /// The strings of a join count as its memory until it has ended: rows with their codes must not be kept longer.
    joins: bool,
}

/// Requests codes from the nodes below for the grouped string columns, where no other node reads them. `keeps_rows`: the aggregate
/// keeps its rows.
pub(super) fn ask_for_codes(input: &mut PlanNode, groups: &[Expression], aggregates: &[AggregateSpec], keeps_rows: bool) {
    let asked = Asked { scans: true, joins: !keeps_rows };
    for group in groups {
        let Node::Column(column) = group.node else { continue };
        let reads = |e: &Expression| e.reads(column);
        let is_read = |a: &AggregateSpec| {
            a.call.args.iter().chain(&a.filter).any(reads) || a.order.iter().any(|(expression, _)| reads(expression))
        };
        if matches!(group.kind, Kind::Text | Kind::Bytes) && !aggregates.iter().any(is_read) {
            ask(input, column, asked);
        }
    }
}

/// Down through nodes that pass the column on unread.
fn ask(node: &mut PlanNode, column: usize, asked: Asked) {
    let is_read = |expressions: &[Expression], column: usize| expressions.iter().any(|e| e.reads(column));
    match &mut node.op {
        Op::TableScan(scan) => {
            if let Some(scan) = Arc::get_mut(scan)
                && scan.source.plain
                && asked.scans
            {
                scan.coded.push(column);
            }
        }
        Op::Filter(n) => {
            if let Some(n) = Arc::get_mut(n)
                && !is_read(&n.conditions, column)
            {
                ask(&mut n.input, column, asked);
            }
        }
        Op::Project(n) => {
            if let Some(n) = Arc::get_mut(n)
                && let Node::Column(below) = n.expressions[column].node
                && n.expressions.iter().filter(|e| e.reads(below)).count() == 1
            {
                ask(&mut n.input, below, asked);
            }
        }
        Op::HashJoin(n) => {
            if let Some(n) = Arc::get_mut(n) {
                ask_side(n, column, asked);
            }
        }
        _ => {}
    }
}

/// The side of a join that an output column comes from, unless the join reads it.
fn ask_side(join: &mut HashJoinNode, column: usize, asked: Asked) {
    let is_read = |expressions: &[Expression], column: usize| expressions.iter().any(|e| e.reads(column));
    let left = join.left.kinds.len();
    let column = if join.join.keeps_left() { column } else { left + column };
    if is_read(&join.residual, column) {
        return;
    }
    match column.checked_sub(left) {
        None if !is_read(&join.left_keys, column) => ask(&mut join.left, column, asked),
        Some(of_right) if asked.joins && !is_read(&join.right_keys, of_right) => {
            join.coded.push(of_right);
            ask(&mut join.right, of_right, Asked { scans: false, ..asked });
        }
        _ => {}
    }
}
