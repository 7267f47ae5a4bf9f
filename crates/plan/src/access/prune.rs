//! Finds the partitions that can have rows for the conditions of a scan: by constants when it is planned, and by other values
//! when it begins.

use std::rc::Rc;
use std::sync::Arc;

use melba_catalog::{PartitionColumn, Relation};
use melba_fmgr::order;
use melba_types::{Datum, Oid, Result};

use crate::layout::Layout;
use crate::planner::Planner;
use crate::pruning::{PrunedTable, Pruner, Pruning};
use crate::rels::{contains_sublink, rels_of};
use crate::{comparison, volatility};
use melba_table::PartitionMap;
use melba_table::matching::{KeyTest, TestKind, Tests};
use melba_tree::{BooleanTest, Const, Expr};

/// The tests that conditions on an entry give for the partitions of its table; `None` when they give none.
pub fn pruner(planner: &mut Planner<'_>, entry: usize, root: &Arc<Relation>, own: &[Expr]) -> Result<Option<Rc<Pruner>>> {
    if !root.is_partitioned() || own.is_empty() {
        return Ok(None);
    }
    let mut pruner = Pruner { tables: vec![], values: vec![], constants: vec![] };
    let mut tables = vec![root.oid];
    while let Some(oid) = tables.pop() {
        let Some(table) = planner.catalog().relation(oid).cloned() else { continue };
        let map = PartitionMap::new(planner.catalog(), &table)?;
        tables.extend(map.partitioned());
        let key = EntryKey { entry, map: &map, columns: key_columns_in(&table, root) };
        let tests = Tests::All(own.iter().map(|c| tests(planner, &key, c, &mut pruner.values)).collect());
        pruner.tables.push(PrunedTable { relation: table, map, tests });
    }
    if pruner.tables.iter().all(|t| t.tests.is_empty()) {
        return Ok(None);
    }
    for value in pruner.values.clone() {
        let constant = match rels_of(&value) == 0 {
            true => planner.compile(&value, &Layout::default())?.as_const().cloned(),
            false => None,
        };
        pruner.constants.push(constant);
    }
    Ok(Some(Rc::new(pruner)))
}

pub fn compile_pruning(planner: &mut Planner<'_>, pruner: &Pruner, members: &[Oid]) -> Result<Pruning> {
    let tables = pruner.tables.iter().map(|t| (t.relation.oid, (t.map.clone(), t.tests.clone()))).collect();
    let values = planner.compile_all(&pruner.values, &Layout::default())?;
    Ok(Pruning { root: pruner.tables[0].relation.oid, tables, values, members: members.to_vec() })
}

/// The partition key of a table, over the entry of the table that is read.
struct EntryKey<'a> {
    entry: usize,
    map: &'a PartitionMap,
    /// The positions of the key's columns in the table that is read; `None` for expressions.
    columns: Vec<Option<usize>>,
}

/// The positions of a key's columns in the table above; `None` for expressions.
pub fn key_columns_in(table: &Relation, root: &Relation) -> Vec<Option<usize>> {
    let key = table.partition_key.as_ref().map_or(&[][..], |k| &k.columns);
    let position = |c: &melba_catalog::PartitionColumn| {
        let name = &table.columns.get(usize::try_from(c.column - 1).ok()?)?.name;
        root.columns.iter().position(|r| !r.dropped && r.name == *name)
    };
    key.iter().map(position).collect()
}

fn tests(planner: &Planner<'_>, key: &EntryKey<'_>, condition: &Expr, values: &mut Vec<Expr>) -> Tests<usize> {
    let mut many = |parts: &[Expr]| parts.iter().map(|p| tests(planner, key, p, values)).collect::<Vec<_>>();
    match condition {
        Expr::And(parts) => Tests::All(many(parts)),
        Expr::Or(parts) => Tests::Any(many(parts)),
        other => key_test(planner, key, other, values).map_or_else(|| Tests::All(vec![]), Tests::One),
    }
}

/// The test that one condition gives for one column of a key.
fn key_test(planner: &Planner<'_>, key: &EntryKey<'_>, condition: &Expr, values: &mut Vec<Expr>) -> Option<KeyTest<usize>> {
    let column_of = |e: &Expr| {
        let at = crate::rels::plain_column(e, key.entry)?;
        key.columns.iter().position(|k| *k == Some(at))
    };
    let mut add = |value: &Expr| {
        values.push(value.clone());
        values.len() - 1
    };
    match condition {
        Expr::Operator(op) => {
            let [a, b] = &op.args[..] else { return None };
            let (family, strategy) = planner.catalog().btree_strategy(op.operator)?;
            for (side, other, flipped) in [(a, b, false), (b, a, true)] {
                let Some(column) = column_of(side) else { continue };
                let PartitionColumn { ty, collation, .. } = key.map.key().columns[column];
                if planner.catalog().type_operators(ty).btree_family != family || !is_known(planner, key.entry, ty, other) {
                    return None;
                }
                let suits = if strategy == 3 { order::is_same_equality } else { order::is_same_order };
                if !suits(planner.catalog(), collation, op.input_collation) {
                    return None;
                }
                let kind = match (strategy, flipped) {
                    (3, _) => TestKind::Equal,
                    (1, false) | (5, true) => TestKind::Less { inclusive: false },
                    (2, false) | (4, true) => TestKind::Less { inclusive: true },
                    (4, false) | (2, true) => TestKind::Greater { inclusive: true },
                    (5, false) | (1, true) => TestKind::Greater { inclusive: false },
                    _ => return None,
                };
                return Some(KeyTest { column, kind, value: Some(add(other)) });
            }
            None
        }
        Expr::ScalarArray(s) if s.any && planner.catalog().is_equality(s.operator) => {
            let column = column_of(&s.scalar)?;
            let element = planner.catalog().array_element(s.array.ty())?;
            let PartitionColumn { ty, collation, .. } = key.map.key().columns[column];
            let known = is_known_value(planner, key.entry, &s.array)
                && comparison::comparable(planner, ty, element)
                && order::is_same_equality(planner.catalog(), collation, s.input_collation);
            known.then(|| KeyTest { column, kind: TestKind::AnyOf, value: Some(add(&s.array)) })
        }
        Expr::NullTest { arg, is_null, row: false } => {
            let kind = if *is_null { TestKind::IsNull } else { TestKind::NotNull };
            Some(KeyTest { column: column_of(arg)?, kind, value: None })
        }
        other => {
            let (column, value) = boolean_test(other)?;
            Some(KeyTest { column: column_of(column)?, kind: TestKind::Equal, value: Some(add(&value)) })
        }
    }
}

/// A value that is the same for all rows, of which keys are made as of the column's.
fn is_known(planner: &Planner<'_>, entry: usize, ty: Oid, value: &Expr) -> bool {
    is_known_value(planner, entry, value) && comparison::comparable(planner, ty, value.ty())
}

fn is_known_value(planner: &Planner<'_>, entry: usize, value: &Expr) -> bool {
    rels_of(value) & (1 << entry) == 0 && !volatility::has_volatile(planner, value) && !contains_sublink(value)
}

/// A boolean that stands for itself, or for its opposite, and the value that it then has.
fn boolean_test(condition: &Expr) -> Option<(&Expr, Expr)> {
    let (column, value) = match condition {
        Expr::Not(arg) => (arg.as_ref(), false),
        Expr::BooleanTest { arg, test: BooleanTest::True } => (arg.as_ref(), true),
        Expr::BooleanTest { arg, test: BooleanTest::False } => (arg.as_ref(), false),
        Expr::Var(_) => (condition, true),
        _ => return None,
    };
    let ty = melba_types::oids::BOOL;
    Some((column, Expr::Const(Const { value: Datum::Bool(value), ty, typmod: -1, collation: Oid::INVALID, location: -1 })))
}
