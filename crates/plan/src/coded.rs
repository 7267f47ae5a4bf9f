//! Groups by columns of strings, directly above a scan: the scan returns their dictionary codes, by which groups are found.

use std::sync::Arc;

use melba_expression::{Expression, Node};
use melba_types::Kind;

use super::node::*;

/// Requests codes from the scan below for the grouped string columns, where no other node reads them.
pub(super) fn ask_for_codes(input: &mut PlanNode, groups: &[Expression], aggregates: &[AggregateSpec]) {
    for group in groups {
        let Node::Column(column) = group.node else { continue };
        let reads = |e: &Expression| e.reads(column);
        let is_read = |a: &AggregateSpec| {
            a.call.args.iter().chain(&a.filter).any(reads) || a.order.iter().any(|(expression, _)| reads(expression))
        };
        if matches!(group.kind, Kind::Text | Kind::Bytes) && !aggregates.iter().any(is_read) {
            ask(input, column);
        }
    }
}

/// Down through nodes that pass the column on unread.
fn ask(node: &mut PlanNode, column: usize) {
    let is_read = |expressions: &[Expression], column: usize| expressions.iter().any(|e| e.reads(column));
    match &mut node.op {
        Op::TableScan(scan) => {
            if let Some(scan) = Arc::get_mut(scan)
                && scan.source.plain
            {
                scan.coded.push(column);
            }
        }
        Op::Filter(n) => {
            if let Some(n) = Arc::get_mut(n)
                && !is_read(&n.conditions, column)
            {
                ask(&mut n.input, column);
            }
        }
        Op::Project(n) => {
            if let Some(n) = Arc::get_mut(n)
                && let Node::Column(below) = n.expressions[column].node
                && n.expressions.iter().filter(|e| e.reads(below)).count() == 1
            {
                ask(&mut n.input, below);
            }
        }
        Op::HashJoin(n) => {
            if let Some(n) = Arc::get_mut(n)
                && n.join.keeps_left()
                && column < n.left.kinds.len()
                && !is_read(&n.left_keys, column)
                && !is_read(&n.residual, column)
            {
                ask(&mut n.left, column);
            }
        }
        _ => {}
    }
}
