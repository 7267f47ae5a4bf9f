//! Identity columns of partitioned tables: their partitions have them, too, and take their numbers from the same sequence.

use melba_catalog::Relation;
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_types::{Oid, Result, bail, err};
use pg_query::protobuf::{AlterTableType as At, ColumnDef, ConstrType};

use crate::constraint::column::constraints_of;
use crate::table::children::change_column;

/// A new partition has its parent's identity columns.
pub fn inherit_identity(ddl: &Ddl<'_>, table: Oid, parent: &Relation) -> Result<()> {
    let mut of_parent = parent.columns.iter().filter(|c| !c.dropped && c.identity != 0);
    of_parent.try_for_each(|c| spread_identity(ddl, table, &c.name, c.identity))
}

/// A table that is no partition any more has none of them.
pub fn forget_identity(ddl: &Ddl<'_>, table: &Relation) -> Result<()> {
    let mut own = table.columns.iter().filter(|c| !c.dropped && c.identity != 0);
    own.try_for_each(|c| spread_identity(ddl, table.oid, &c.name, 0))
}

/// Marks the column of a table and of its partitions.
pub fn spread_identity(ddl: &Ddl<'_>, table: Oid, name: &str, letter: u8) -> Result<()> {
    for oid in ddl.catalog().descendants(table) {
        ddl.lock_relation(oid, RelationLockMode::AccessExclusive)?;
        let member = ddl.relation(oid)?;
        if let Some(at) = member.columns.iter().position(|c| !c.dropped && *c.name == *name) {
            change_column(ddl, &member, at, |c| c.identity = letter);
        }
    }
    Ok(())
}

/// The topmost of the tables that a table is a partition of, which owns the sequences.
pub fn topmost(ddl: &Ddl<'_>, table: &Relation) -> Result<std::sync::Arc<Relation>> {
    let mut top = ddl.relation(table.oid)?;
    while let (true, [parent]) = (top.is_partition(), &top.parents[..]) {
        top = ddl.relation(*parent)?;
    }
    Ok(top)
}

/// Partitions agree on identity columns.
pub fn check_identity_change(relation: &Relation, kind: At, recurse: bool) -> Result<()> {
    let what = match kind {
        At::AtAddIdentity => "add identity to a column",
        At::AtSetIdentity => "change identity column",
        _ => "drop identity from a column",
    };
    if relation.is_partition() {
        bail!(INVALID_TABLE_DEFINITION, "cannot {what} of a partition");
    }
    if relation.is_partitioned() && !recurse {
        return Err(err!(INVALID_TABLE_DEFINITION, "cannot {what} of only the partitioned table")
            .hint("Do not specify the ONLY keyword."));
    }
    Ok(())
}

/// GENERATED AS IDENTITY where another table or a type defines the columns.
pub fn refuse_identity(def: &ColumnDef, of: &str) -> Result<()> {
    if constraints_of(def).any(|c| c.contype() == ConstrType::ConstrIdentity) {
        bail!(FEATURE_NOT_SUPPORTED, "identity columns are not supported on {of}");
    }
    Ok(())
}
