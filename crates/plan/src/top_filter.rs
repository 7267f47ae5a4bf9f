//! Sorts that keep only their first rows, directly above scans: the scan skips rows behind the last one that is kept.

use std::sync::Arc;

use melba_expression::Node;

use super::node::*;
use super::planner::Planner;

/// The number of a filter that the sort's first key makes for the scan of its input; `None` when that cannot use one.
pub fn offer_top_filter(planner: &mut Planner<'_>, input: &mut PlanNode, (key, part): &SortKey) -> Option<usize> {
    let Node::Column(column) = key.node else { return None };
    let is_taken = part.is_plain() && part.gives_values() && offer(input, column, planner.top_filters);
    planner.top_filters += usize::from(is_taken);
    is_taken.then(|| planner.top_filters - 1)
}

/// Down through projections of plain columns, which raise no errors for the rows that are left out.
fn offer(node: &mut PlanNode, column: usize, number: usize) -> bool {
    match &mut node.op {
        Op::TableScan(scan) => Arc::get_mut(scan).is_some_and(|scan| {
            let usable = scan.source.plain && !scan.filter.iter().any(|condition| condition.is_volatile());
            if usable {
                scan.top_filter = Some((column, number));
            }
            usable
        }),
        Op::Project(n) => Arc::get_mut(n).is_some_and(|n| {
            let is_plain = n.expressions.iter().all(|e| matches!(e.node, Node::Column(_)) || e.as_const().is_some());
            matches!(n.expressions[column].node, Node::Column(below) if is_plain && offer(&mut n.input, below, number))
        }),
        Op::Append(n) => Arc::get_mut(n).is_some_and(|n| {
            let mut taken = false;
            for input in &mut n.inputs {
                taken |= offer(input, column, number);
            }
            taken
        }),
        _ => false,
    }
}
