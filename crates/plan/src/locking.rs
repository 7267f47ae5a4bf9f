//! FOR UPDATE and similar clauses.

use std::sync::Arc;

use melba_engine::RelationLockMode;
use melba_tree::{Locking, Query, RangeKind};
use melba_types::{DbError, Result, bail};

use super::access::{members, source};
use super::layout::{Layout, row_columns};
use super::node::*;
use super::planner::{Planner, Stage};
use super::recheck::RecheckExpr;
use super::rels::has;
use super::{member, needed, recheck};

/// The columns, by position, of the keys that a foreign key may refer to.
fn key_columns(planner: &Planner<'_>, relation: &melba_catalog::Relation) -> Vec<usize> {
    let indexes = relation.indexes.iter().filter_map(|i| planner.catalog().relation(*i)?.index.as_ref());
    let keys = indexes.filter(|i| i.unique && i.predicate.is_none() && i.keys.iter().all(|k| k.column != 0));
    let mut columns: Vec<usize> = keys.flat_map(|i| i.keys.iter().map(|k| k.column as usize - 1)).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

fn locked_members(
    planner: &mut Planner<'_>,
    entry: usize,
    parent: &Arc<melba_catalog::Relation>,
) -> Result<(Vec<LockedTable>, Layout)> {
    let layout = Layout(needed::needed(planner, entry, &[]).iter().map(|c| (entry, *c)).collect());
    let sources = members::member_sources(planner, entry, parent)?;
    for (member, _) in &sources {
        planner.relations.add(member.oid, RelationLockMode::RowShare);
    }
    let tables = sources.into_iter().map(|(r, source)| LockedTable { source, keys: key_columns(planner, &r) }).collect();
    Ok((tables, layout))
}

/// FOR UPDATE and similar clauses.
pub fn locked(planner: &mut Planner<'_>, query: &Query, stage: Stage, recheck: Vec<RecheckExpr>) -> Result<Stage> {
    if query.locking.is_empty() {
        return Ok(stage);
    }
    let mut locks = Vec::new();
    for locking in &query.locking {
        let RangeKind::Relation { oid, inherit, .. } = planner.level().entries[locking.entry].kind else { continue };
        let Some(relation) = planner.catalog().relation(oid).cloned() else { continue };
        if matches!(relation.storage, melba_catalog::Storage::System(_)) {
            return Err(DbError::unsupported("locking rows of a system relation"));
        }
        planner.relations.add(oid, RelationLockMode::RowShare);
        // A foreign table's rows cannot be locked: they stay as they were read.
        if relation.foreign.is_some() {
            continue;
        }
        let Some(row_id) = stage.layout.position(locking.entry, -1) else { continue };
        let mut table = None;
        let (tables, layout) = if member::is_family(planner.catalog(), &relation, inherit) {
            table = stage.layout.position(locking.entry, -6);
            locked_members(planner, locking.entry, &relation)?
        } else {
            let (source, layout) = source::table_source(planner, locking.entry, &relation, &[])?;
            (vec![LockedTable { source, keys: key_columns(planner, &relation) }], layout)
        };
        let columns = row_columns(&stage.layout, &layout);
        locks.push(RowLock { tables, table, strength: locking.strength, wait: locking.wait, row_id, columns });
    }
    let recheck = recheck::compile_rechecks(planner, recheck, &stage.layout)?;
    let (kinds, estimate) = (stage.node.kinds.clone(), stage.node.estimate);
    let op = Op::LockRows(Arc::new(LockRowsNode { input: stage.node, locks, recheck }));
    Ok(Stage { node: planner.node(op, kinds, estimate), layout: stage.layout })
}

/// A null-extended row of an outer join cannot be locked.
pub fn refuse_nullable(locking: &[Locking], tree: &super::join_tree::Tree) -> Result<()> {
    let nullable = tree.nullable();
    match locking.iter().find(|l| has(nullable, l.entry)) {
        Some(lock) => {
            bail!(FEATURE_NOT_SUPPORTED, "{} cannot be applied to the nullable side of an outer join", lock.strength.clause())
        }
        None => Ok(()),
    }
}
