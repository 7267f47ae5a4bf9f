//! The children of a table that a change of it reaches.

use std::sync::Arc;

use melba_catalog::{Column, Relation};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_types::Result;

use crate::table::relation::put_relation;

pub const EXCLUSIVE: RelationLockMode = RelationLockMode::AccessExclusive;

/// Calls a function for the tables that inherit from a table directly, locked. Each is in the state that the ones before it
/// left: a table may be below another in several ways.
pub fn each_child(
    ddl: &Ddl<'_>,
    relation: &Relation,
    mode: RelationLockMode,
    mut f: impl FnMut(Arc<Relation>) -> Result<()>,
) -> Result<()> {
    let children = ddl.catalog().children(relation.oid);
    children.iter().try_for_each(|child| ddl.lock_relation(*child, mode))?;
    children.into_iter().try_for_each(|child| f(ddl.relation(child)?))
}

pub fn has_children(ddl: &Ddl<'_>, relation: &Relation) -> bool {
    ddl.catalog().has_children(relation.oid)
}

pub fn change_column(ddl: &Ddl<'_>, relation: &Relation, at: usize, f: impl FnOnce(&mut Column)) {
    let mut columns = relation.columns.to_vec();
    f(&mut columns[at]);
    put_relation(ddl, Relation { columns: columns.into(), ..relation.clone() });
}
