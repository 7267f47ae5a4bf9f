//! Filters that a hash join builds for the scans of its left side: the keys of its built rows. A left row whose key is not among
//! them has no partner. Where the join does not need such rows, the scan skips them before it decodes their other columns.
//!
//! A scan may use the filter if every node between it and the join gives the same result without these rows. For nodes that
//! process one row at a time that is clear; the others are argued below.

use std::sync::Arc;

use melba_expression::{Expression, Node};

use super::node::*;
use super::planner::Planner;
use crate::Synthesized;

/// Finds the scans that can use the keys of a join, and numbers the filters: (key, filter).
pub fn offer_filters(
    planner: &mut Planner<'_>,
    join: JoinType,
    left: &mut PlanNode,
    left_keys: &[Expression],
    right_keys: &[Expression],
) -> Vec<(usize, usize)> {
    // These return left rows without a partner, too.
    if join.keeps_unmatched_left() {
        return vec![];
    }
    let mut filters = Vec::new();
    for (key, (own, other)) in left_keys.iter().zip(right_keys).enumerate() {
        if let Node::Column(column) = own.node
            && own.kind.is_integer()
            && other.kind.is_integer()
            && offer(left, column, planner.join_filters)
        {
            filters.push((key, planner.join_filters));
            planner.join_filters += 1;
        }
    }
    filters
}

/// Hands a filter on an output column down to the scans that the column comes from; false when none can use it.
fn offer(node: &mut PlanNode, column: usize, filter: usize) -> bool {
    match &mut node.op {
        Op::TableScan(scan) => Arc::get_mut(scan).is_some_and(|scan| {
            // The keys' bounds exclude row groups before any condition is evaluated, so a condition with side effects forbids the filter.
            let usable = scan.source.plain && !any_volatile(&scan.filter);
            if usable {
                scan.join_filters.push((column, filter));
            }
            usable
        }),
        Op::SystemScan(scan) => Arc::get_mut(scan).is_some_and(|scan| {
            let is_computed = Synthesized::of(scan.relation).is_none();
            let is_column = |output: &ScanOutput| matches!(output, ScanOutput::Column(_));
            let usable = is_computed && scan.outputs.iter().all(is_column) && !any_volatile(&scan.filter);
            if usable {
                scan.join_filters.push((column, filter));
            }
            usable
        }),
        Op::Filter(n) => Arc::get_mut(n).is_some_and(|n| !any_volatile(&n.conditions) && offer(&mut n.input, column, filter)),
        Op::Project(n) => Arc::get_mut(n).is_some_and(|n| match n.expressions[column].node {
            Node::Column(below) if !any_volatile(&n.expressions) => offer(&mut n.input, below, filter),
            _ => false,
        }),
        Op::HashJoin(n) => Arc::get_mut(n).is_some_and(|n| {
            if any_volatile(&n.residual) {
                return false;
            }
            let mut taken = false;
            for column in equal_columns(n, column) {
                taken |= offer_side(n.join, (&mut n.left, &mut n.right), column, filter);
            }
            taken
        }),
        Op::NestedLoop(n) => Arc::get_mut(n).is_some_and(|n| {
            let sides = (&mut n.left, &mut n.right);
            !any_volatile(&n.conditions) && offer_side(n.join, sides, column, filter)
        }),
        // A group is kept or excluded as a whole. Without groups there is a row even for an empty input.
        Op::Aggregate(n) => Arc::get_mut(n).is_some_and(|n| match n.groups.get(column).map(|group| &group.node) {
            Some(Node::Column(below))
                if n.sets.len() == 1 && n.sets[0].contains(&column) && !n.labels.iter().any(|(of, _)| *of == column) =>
            {
                let is_volatile = n.aggregates.iter().any(|aggregate| any_volatile(&aggregate.call.args));
                !is_volatile && offer(&mut n.input, *below, filter)
            }
            _ => false,
        }),
        // Rows that are duplicates of each other are equal in the column.
        Op::Distinct(n) => Arc::get_mut(n).is_some_and(|n| {
            let is_compared = n.keys.iter().any(|(key, _)| matches!(key.node, Node::Column(at) if at == column));
            is_compared && offer(&mut n.input, column, filter)
        }),
        Op::Sort(n) => Arc::get_mut(n).is_some_and(|n| n.bound.is_none() && offer(&mut n.input, column, filter)),
        Op::Append(n) => Arc::get_mut(n).is_some_and(|n| {
            let mut taken = false;
            for input in &mut n.inputs {
                taken |= offer(input, column, filter);
            }
            taken
        }),
        _ => false,
    }
}

/// A column of a join's output, and the column of the other side that an inner join has it equal to.
fn equal_columns(node: &HashJoinNode, column: usize) -> Vec<usize> {
    let mut columns = vec![column];
    if node.join == JoinType::Inner {
        let width = node.left.kinds.len();
        for (left, right) in node.left_keys.iter().zip(&node.right_keys) {
            if let (Node::Column(l), Node::Column(r)) = (&left.node, &right.node)
                && left.kind.is_integer()
                && right.kind.is_integer()
            {
                match column {
                    _ if column == *l => columns.push(width + r),
                    _ if column == width + r => columns.push(*l),
                    _ => {}
                }
            }
        }
    }
    columns
}

/// Offers the filter to the side of a join that has the column. Left rows alone decide the result, unless unmatched right rows
/// are returned; in an inner join right rows decide as well, and in right semi and anti joins only they do.
fn offer_side(join: JoinType, (left, right): (&mut PlanNode, &mut PlanNode), column: usize, filter: usize) -> bool {
    let width = left.kinds.len();
    match join {
        JoinType::Right | JoinType::Full => false,
        JoinType::RightSemi | JoinType::RightAnti => offer(right, column, filter),
        _ if column < width => offer(left, column, filter),
        JoinType::Inner => offer(right, column - width, filter),
        _ => false,
    }
}

fn any_volatile(expressions: &[Expression]) -> bool {
    expressions.iter().any(Expression::is_volatile)
}
