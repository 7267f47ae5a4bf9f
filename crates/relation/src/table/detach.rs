//! DETACH PARTITION: at once, or CONCURRENTLY in two transactions, so that queries of the partitioned table go on.
//!
//! The first transaction marks the partition (`Relation::detach_pending`), looks for rows that refer to its rows, and commits. Then
//! `PendingDetach` waits for the transactions that know the table with the partition, and a second transaction completes the detach. Where
//! that is not reached, FINALIZE completes it.

use std::sync::Arc;

use melba_catalog::detaching::detaching_partition;
use melba_catalog::{ConstraintKind, PartitionStrategy, Relation, quote_ident};
use melba_definition::context::Ddl;
use melba_definition::expression::{Use, again, stored_expression};
use melba_definition::lookup::Lookup;
use melba_definition::words::plural;
use melba_engine::{LockTag, RelationLockMode};
use melba_fmgr::{CallInfo, registry};
use melba_parse::nodes::inner;
use melba_types::{Datum, DbError, Oid, Result, bail, err, oids};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType as At, BoolExprType, ConstrType, Constraint, Node, PartitionCmd, RangeVar,
};

use crate::constraint::add::add_check;
use crate::constraint::children::pass_constraints_on;
use crate::partition::foreign_key::detach_foreign_keys;
use crate::partition::identity::forget_identity;
use crate::partition::index::detach_indexes;
use crate::partition::referenced::{check_parent_references, drop_parent_references};
use crate::table::attach::{drop_parent_triggers, remove_parent};
use crate::table::relation::put_relation;

const FINALIZE_HINT: &str = "Use ALTER TABLE ... DETACH PARTITION ... FINALIZE to complete the pending detach operation.";

/// ALTER TABLE ... DETACH PARTITION; of CONCURRENTLY the first transaction.
///
/// # Errors
/// 55000 when the partition's detach is pending; with CONCURRENTLY also when another partition's is, or when there is a default partition.
pub fn detach_partition(ddl: &Ddl<'_>, parent: &Relation, c: &PartitionCmd) -> Result<()> {
    let name = partition_name(c)?;
    if !parent.is_partitioned() {
        return Err(err!(WRONG_OBJECT_TYPE, "ALTER action DETACH PARTITION cannot be performed on relation \"{}\"", parent.name)
            .detail(format!("This operation is not supported for {}.", plural(parent.kind))));
    }
    if c.concurrent {
        return mark_partition(ddl, parent, name);
    }
    let child = ddl.open_relation(name, RelationLockMode::AccessExclusive)?;
    check_partition_of(parent, &child)?;
    if child.detach_pending {
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot detach partition \"{}\"", child.name)
            .detail("The partition is being detached concurrently or has an unfinished detach.")
            .hint(FINALIZE_HINT));
    }
    check_parent_references(ddl, child.oid)?;
    detach(ddl, parent, child.oid)
}

/// ALTER TABLE ... DETACH PARTITION ... FINALIZE.
///
/// # Errors
/// 55000 when the partition's detach is not pending.
pub fn finalize_detach(ddl: &Ddl<'_>, parent: &Relation, c: &PartitionCmd) -> Result<()> {
    let child = ddl.open_relation(partition_name(c)?, RelationLockMode::AccessExclusive)?;
    // The first transaction may have ended with nobody waiting for those that do not see it.
    ddl.tx().engine.session().await_older_snapshots()?;
    complete(ddl, parent, &child)
}

/// Raises 55000 for a change of a partition whose detach is pending.
pub fn refuse_pending_detach(relation: &Relation) -> Result<()> {
    if relation.detach_pending {
        let message = format!("cannot alter partition \"{}\" with an incomplete detach", relation.name);
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}").hint(FINALIZE_HINT));
    }
    Ok(())
}

/// A detach whose first transaction has run.
pub struct PendingDetach {
    parent: Arc<Relation>,
    partition: Arc<Relation>,
}

impl PendingDetach {
    /// What a statement has marked, before its first transaction ends; `None`: it is no DETACH PARTITION CONCURRENTLY.
    ///
    /// # Errors
    /// Those of the lookup of its names.
    pub fn of(lookup: &Lookup<'_>, s: &AlterTableStmt) -> Result<Option<PendingDetach>> {
        let (Some(name), Some(detached)) = (&s.relation, concurrent_detach(s)?) else { return Ok(None) };
        let (Some(parent), Some(partition)) = (lookup.find_relation(name)?, lookup.find_relation(partition_name(detached)?)?)
        else {
            return Ok(None);
        };
        Ok(partition.detach_pending.then_some(PendingDetach { parent, partition }))
    }

    /// The second transaction: waits for those that have locked the partitioned table, and completes the detach.
    ///
    /// # Errors
    /// 55000 when one of the two tables was dropped meanwhile; the errors of a wait. The detach is pending then.
    pub fn complete(&self, ddl: &Ddl<'_>) -> Result<()> {
        let tag = LockTag::Relation { database: ddl.tx().database.0, relation: self.parent.oid.0 };
        // Without a lock of its own, behind which later queries would wait.
        ddl.tx().engine.session().await_holders(tag, RelationLockMode::AccessExclusive)?;
        ddl.lock_relation(self.parent.oid, RelationLockMode::ShareUpdateExclusive)?;
        ddl.lock_relation(self.partition.oid, RelationLockMode::AccessExclusive)?;
        let catalog = ddl.catalog();
        let removed =
            |what: &str, name: &str| err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{what} \"{name}\" was removed concurrently");
        let parent = catalog.relation(self.parent.oid).ok_or_else(|| removed("partitioned table", &self.parent.name))?;
        let partition = catalog.relation(self.partition.oid).ok_or_else(|| removed("partition", &self.partition.name))?;
        complete(ddl, parent, partition)
    }
}

fn concurrent_detach(s: &AlterTableStmt) -> Result<Option<&PartitionCmd>> {
    for node in &s.cmds {
        if let N::AlterTableCmd(command) = inner(node)?
            && let Some(c) = partition_command(command)
            && c.concurrent
        {
            return Ok(Some(c));
        }
    }
    Ok(None)
}

fn partition_command(command: &AlterTableCmd) -> Option<&PartitionCmd> {
    match (command.subtype(), command.def.as_deref()?.node.as_ref()?) {
        (At::AtDetachPartition, N::PartitionCmd(c)) => Some(c),
        _ => None,
    }
}

fn partition_name(c: &PartitionCmd) -> Result<&RangeVar> {
    c.name.as_ref().ok_or_else(|| DbError::internal("DETACH PARTITION without a table"))
}

fn check_partition_of(parent: &Relation, child: &Relation) -> Result<()> {
    if !child.is_partition() || !child.parents.contains(&parent.oid) {
        bail!(UNDEFINED_TABLE, "relation \"{}\" is not a partition of relation \"{}\"", child.name, parent.name);
    }
    Ok(())
}

/// The first transaction of CONCURRENTLY.
fn mark_partition(ddl: &Ddl<'_>, parent: &Relation, name: &RangeVar) -> Result<()> {
    let catalog = ddl.catalog();
    if catalog.default_partition(parent.oid).is_some() {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot detach partitions concurrently when a default partition exists");
    }
    let child = ddl.open_relation(name, RelationLockMode::ShareUpdateExclusive)?;
    if let Some(other) = detaching_partition(&catalog, parent.oid).and_then(|oid| catalog.relation(oid)) {
        let schema = catalog.namespace(parent.namespace).map_or("", |n| &n.name);
        let place = format!("already pending detach in partitioned table \"{schema}.{}\"", parent.name);
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "partition \"{}\" {place}", other.name).hint(FINALIZE_HINT));
    }
    check_partition_of(parent, &child)?;
    check_parent_references(ddl, child.oid)?;
    if parent.partition_key.as_ref().is_some_and(|key| key.strategy != PartitionStrategy::Hash) {
        keep_bound(ddl, child.oid)?;
    }
    put_relation(ddl, Relation { detach_pending: true, ..(*ddl.relation(child.oid)?).clone() });
    Ok(())
}

/// The partition gets its bound as a CHECK constraint, unless others say the same.
fn keep_bound(ddl: &Ddl<'_>, partition: Oid) -> Result<()> {
    let Some(text) = bound_condition(ddl, partition)? else { return Ok(()) };
    let condition = melba_parse::parse_expression(&text)?;
    let relation = ddl.relation(partition)?;
    if is_implied(ddl, &relation, &condition)? {
        return Ok(());
    }
    let check = Constraint {
        contype: ConstrType::ConstrCheck as i32,
        raw_expr: Some(Box::new(condition)),
        is_enforced: true,
        initially_valid: true,
        location: -1,
        ..Constraint::default()
    };
    // The bound itself has kept other rows away.
    add_check(ddl, partition, None, &check)?;
    pass_constraints_on(ddl, &*ddl.relation(partition)?, &relation.constraints)
}

/// The condition of a partition's bounds; `None`: it has all rows.
fn bound_condition(ddl: &Ddl<'_>, partition: Oid) -> Result<Option<String>> {
    const FUNCTION: &str = "pg_get_partition_constraintdef";
    let function = registry::scalar(FUNCTION).ok_or_else(|| DbError::internal(format!("{FUNCTION} is missing")))?;
    let session = ddl.current_session();
    let call = CallInfo {
        session: &*session,
        arg_types: &[oids::OID],
        return_type: oids::TEXT,
        collation: Oid::INVALID,
        variadic: false,
        columns: None,
        view: CallInfo::NO_VIEW,
    };
    let text = function(&call, &[Datum::Oid(partition.0)])?;
    Ok((!text.is_null()).then(|| text.as_str().to_owned()))
}

/// Whether each part of a condition is a part of a valid CHECK constraint, or a NOT NULL constraint.
fn is_implied(ddl: &Ddl<'_>, relation: &Relation, condition: &Node) -> Result<bool> {
    let catalog = ddl.catalog();
    let stored = |node: &Node| Ok::<_, DbError>(stored_expression(ddl, node, relation, Use::Check, None)?.text);
    let mut known = Vec::new();
    for row in relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).filter(|c| c.validated && c.enforced) {
        if let (ConstraintKind::Check, Some(text)) = (row.kind, &row.expression) {
            let whole = melba_parse::parse_expression(text)?;
            for part in conjuncts(&whole) {
                known.push(stored(part)?);
            }
        }
    }
    let columns = relation.columns.iter().enumerate().filter(|(at, c)| !c.dropped && catalog.is_never_null(relation, *at));
    for (_, column) in columns {
        let text = format!("{} IS NOT NULL", quote_ident(&column.name));
        known.push(again(ddl, &text, relation, Use::Check)?.text);
    }
    for part in conjuncts(condition) {
        if !known.contains(&stored(part)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The parts that AND connects.
fn conjuncts(node: &Node) -> Vec<&Node> {
    match &node.node {
        Some(N::BoolExpr(e)) if e.boolop() == BoolExprType::AndExpr => e.args.iter().flat_map(conjuncts).collect(),
        _ => vec![node],
    }
}

/// The end of every detach of which the first transaction has run.
fn complete(ddl: &Ddl<'_>, parent: &Relation, child: &Relation) -> Result<()> {
    check_partition_of(parent, child)?;
    if !child.detach_pending {
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot complete detaching partition \"{}\"", child.name)
            .detail("There's no pending concurrent detach."));
    }
    detach(ddl, parent, child.oid)
}

/// A partition becomes a table of its own.
fn detach(ddl: &Ddl<'_>, parent: &Relation, child: Oid) -> Result<()> {
    remove_parent(ddl, child, parent)?;
    let relation = ddl.relation(child)?;
    put_relation(ddl, Relation { partition_bound: None, detach_pending: false, ..(*relation).clone() });
    forget_identity(ddl, &relation)?;
    drop_parent_triggers(ddl, child)?;
    detach_foreign_keys(ddl, &*ddl.relation(child)?)?;
    drop_parent_references(ddl, child)?;
    detach_indexes(ddl, &*ddl.relation(child)?)
}
