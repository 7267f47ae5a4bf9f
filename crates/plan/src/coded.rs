//! Groups by columns of strings: the scan or the hash join that they come from returns codes, by which groups are found. A string
//! is then read for the first row of a group only.

use std::collections::{HashMap, HashSet};
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
    let read = aggregates.iter().flat_map(|a| a.call.args.iter().chain(&a.filter).chain(a.order.iter().map(|(key, _)| key)));
    let read = columns_of(read);
    let column = |group: &Expression| match group.node {
        Node::Column(column) if matches!(group.kind, Kind::Text | Kind::Bytes) && !read.contains(&column) => Some(column),
        _ => None,
    };
    ask(input, groups.iter().filter_map(column).collect(), Asked { scans: true, joins: !keeps_rows });
}

fn columns_of<'a>(expressions: impl IntoIterator<Item = &'a Expression>) -> HashSet<usize> {
    let mut columns = HashSet::new();
    for expression in expressions {
        let mut own = Vec::new();
        expression.columns(&mut own);
        columns.extend(own);
    }
    columns
}

/// Down through nodes that pass columns on unread.
fn ask(node: &mut PlanNode, mut columns: Vec<usize>, asked: Asked) {
    if columns.is_empty() {
        return;
    }
    match &mut node.op {
        Op::TableScan(scan) => {
            if let Some(scan) = Arc::get_mut(scan)
                && scan.source.plain
                && asked.scans
            {
                scan.coded.extend(columns);
            }
        }
        Op::Filter(n) => {
            if let Some(n) = Arc::get_mut(n) {
                let read = columns_of(&n.conditions);
                columns.retain(|column| !read.contains(column));
                ask(&mut n.input, columns, asked);
            }
        }
        Op::Project(n) => {
            if let Some(n) = Arc::get_mut(n) {
                let below = read_once(&n.expressions, &columns);
                ask(&mut n.input, below, asked);
            }
        }
        Op::HashJoin(n) => {
            if let Some(n) = Arc::get_mut(n) {
                ask_sides(n, columns, asked);
            }
        }
        _ => {}
    }
}

/// The columns of the input that are `columns` of the output, and that no other expression reads.
fn read_once(expressions: &[Expression], columns: &[usize]) -> Vec<usize> {
    let mut readers: HashMap<usize, usize> = HashMap::new();
    for expression in expressions {
        columns_of([expression]).into_iter().for_each(|column| *readers.entry(column).or_default() += 1);
    }
    let below = |column: &usize| match expressions[*column].node {
        Node::Column(below) if readers.get(&below) == Some(&1) => Some(below),
        _ => None,
    };
    columns.iter().filter_map(below).collect()
}

/// The sides of a join that output columns come from, but for those that the join reads.
fn ask_sides(join: &mut HashJoinNode, columns: Vec<usize>, asked: Asked) {
    let left = join.left.kinds.len();
    let first = if join.join.keeps_left() { 0 } else { left };
    let mut read = columns_of(&join.residual);
    read.extend(columns_of(&join.left_keys));
    read.extend(columns_of(&join.right_keys).into_iter().map(|column| left + column));
    let unread = columns.into_iter().map(|column| first + column).filter(|column| !read.contains(column));
    let (of_left, of_right): (Vec<usize>, Vec<usize>) = unread.partition(|column| *column < left);
    ask(&mut join.left, of_left, asked);
    if asked.joins {
        let of_right: Vec<usize> = of_right.into_iter().map(|column| column - left).collect();
        join.coded.extend(&of_right);
        ask(&mut join.right, of_right, Asked { scans: false, ..asked });
    }
}
