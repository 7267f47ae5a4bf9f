//! WHERE CURRENT OF: finds the table rows of a cursor's row.
//!
//! A cursor's plan returns, behind its visible columns, the tableoid and ctid of each table that it may be used to change.

use melba_analyze::system_var;
use melba_catalog::{Catalog, Storage};
use melba_plan::node::{Op, PlanNode};
use melba_tree::{Command, Distinct, Query, RangeKind, Target};
use melba_types::{Oid, oids};

/// A table of a cursor's query.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub table: Oid,
    /// FOR UPDATE or a similar clause names it.
    pub locked: bool,
    /// The column with the tableoid; that with the ctid follows.
    pub column: usize,
}

/// Adds the columns with the rows' places. Those of tables that are locked; else of the only table.
pub(super) fn add_positions(query: &mut Query, catalog: &Catalog) -> Vec<Position> {
    let is_plain = query.command == Command::Select
        && query.group_by.is_empty()
        && query.grouping_sets.is_none()
        && query.having.is_none()
        && query.set_operation.is_none()
        && matches!(query.distinct, Distinct::None)
        && !query.has_aggregates
        && !query.has_windows
        && !query.has_set_returning;
    if !is_plain {
        return Vec::new();
    }
    let is_stored = |oid: Oid| catalog.relation(oid).is_some_and(|r| matches!(r.storage, Storage::Tree(_)) || r.is_partitioned());
    let table = |entry: usize| match query.range_table.get(entry)?.kind {
        RangeKind::Relation { oid, .. } if is_stored(oid) => Some((entry, oid)),
        _ => None,
    };
    let locked = !query.locking.is_empty();
    let tables: Vec<(usize, Oid)> = match (locked, query.range_table.len()) {
        (true, _) => query.locking.iter().filter_map(|l| table(l.entry)).collect(),
        (false, 1) => table(0).into_iter().collect(),
        (false, _) => Vec::new(),
    };
    let visible = query.targets.iter().filter(|t| !t.junk).count();
    let mut out = Vec::with_capacity(tables.len());
    for (i, (entry, table)) in tables.into_iter().enumerate() {
        for (number, ty) in [(-6, oids::OID), (-1, oids::TID)] {
            let expr = system_var(entry, number, ty);
            query.targets.push(Target { expr, name: "".into(), junk: false, reference: 0, column: 0, origin: (Oid::INVALID, 0) });
        }
        out.push(Position { table, locked, column: visible + 2 * i });
    }
    out
}

/// Whether a plan's rows come directly from scans: a sorted or joined row has no position, unless it is locked.
pub(super) fn is_simple_scan(node: &PlanNode) -> bool {
    match &node.op {
        Op::TableScan(_) | Op::IndexScan(_) | Op::BitmapScan(_) => true,
        Op::Filter(n) => is_simple_scan(&n.input),
        Op::Project(n) => is_simple_scan(&n.input),
        Op::Limit(n) => is_simple_scan(&n.input),
        // A merge has read a row of each input.
        Op::Append(n) => n.merge.is_empty() && n.inputs.iter().all(is_simple_scan),
        Op::Result(n) => n.input.as_ref().is_some_and(is_simple_scan),
        _ => false,
    }
}
