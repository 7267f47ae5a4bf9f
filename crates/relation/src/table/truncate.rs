//! TRUNCATE: new, empty trees in place of the old ones.

use std::sync::Arc;

use hashbrown::HashSet;
use melba_catalog::foreign::require_handler;
use melba_catalog::trigger_events::TRUNCATE;
use melba_catalog::{ConstraintKind, Relation, RelationKind, Storage};
use melba_definition::context::Ddl;
use melba_engine::RelationLockMode;
use melba_parse::nodes::inner;
use melba_table::TableWriter;
use melba_types::{DbError, Kind, Oid, Result, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{DropBehavior, TruncateStmt};

use crate::sequence::{SequenceOptions, change_sequence, owned_sequence};
use crate::table::persistence::engine_persistence;
use crate::table::relation::put_relation;
use crate::table::rows::{exec_context, table_target};

fn check_may_truncate(ddl: &Ddl<'_>, table: &Relation) -> Result<()> {
    match ddl.catalog().has_relation_privileges(ddl.user(), table, melba_catalog::acl::TRUNCATE) {
        true => Ok(()),
        false => Err(melba_tree::permissions::denied(table)),
    }
}

pub fn truncate(ddl: &Ddl<'_>, s: &TruncateStmt) -> Result<()> {
    let mut tables: Vec<Arc<Relation>> = Vec::new();
    // The parent's privilege counts for children.
    let mut children: HashSet<Oid> = HashSet::new();
    for node in &s.relations {
        let N::RangeVar(name) = inner(node)? else { continue };
        // Before the lock, so that a user without the privilege neither waits nor keeps others waiting.
        if let Some(found) = ddl.find_relation(name)? {
            check_may_truncate(ddl, &found)?;
        }
        let relation = ddl.open_target(name)?;
        if let Some(foreign) = &relation.foreign {
            require_handler(&ddl.catalog(), foreign.server)?;
            bail!(FEATURE_NOT_SUPPORTED, "cannot truncate foreign table \"{}\"", relation.name);
        }
        if !matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable) {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", relation.name);
        }
        if matches!(relation.storage, Storage::System(_)) {
            bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{}\" is a system catalog", relation.name);
        }
        if relation.is_partitioned() && !name.inh {
            return Err(err!(WRONG_OBJECT_TYPE, "cannot truncate only a partitioned table")
                .hint("Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly."));
        }
        let catalog = ddl.catalog();
        let members = if name.inh { catalog.descendants(relation.oid) } else { vec![relation.oid] };
        for member in members {
            if catalog.relation(member).is_some_and(|m| m.is_temporary_elsewhere(ddl.temporary())) {
                continue;
            }
            if !tables.iter().any(|t| t.oid == member) {
                ddl.lock_relation(member, RelationLockMode::AccessExclusive)?;
                tables.push(ddl.relation(member)?);
                children.extend((member != relation.oid).then_some(member));
            }
        }
    }
    add_referencing(ddl, &mut tables, s.behavior() == DropBehavior::DropCascade)?;
    for table in tables.iter().filter(|table| !children.contains(&table.oid)) {
        check_may_truncate(ddl, table)?;
    }
    let triggered = begin_truncation(ddl, &tables)?;
    for table in &tables {
        refuse_pending_events(ddl, table, "TRUNCATE")?;
        if !table.is_partitioned() {
            empty_table(ddl, table.oid)?;
        }
        if s.restart_seqs {
            for column in table.columns.iter().filter(|c| !c.dropped) {
                if let Some(sequence) = owned_sequence(ddl, table, &column.name) {
                    let restart = SequenceOptions { restart: Some(None), ..SequenceOptions::default() };
                    change_sequence(ddl, &sequence, &restart)?;
                }
            }
        }
    }
    end_truncation(ddl, triggered)
}

/// Fires the triggers before TRUNCATE; returns the writers that fire those after it.
fn begin_truncation(ddl: &Ddl<'_>, tables: &[Arc<Relation>]) -> Result<Vec<TableWriter>> {
    let mut writers = Vec::new();
    for table in tables.iter().filter(|table| !table.triggers.is_empty()) {
        let mut writer = TableWriter::new(Arc::new(table_target(ddl, table.oid)?), ddl.tx().engine.clone());
        writer.begin(&exec_context(ddl), TRUNCATE)?;
        writers.push(writer);
    }
    Ok(writers)
}

fn end_truncation(ddl: &Ddl<'_>, writers: Vec<TableWriter>) -> Result<()> {
    for mut writer in writers {
        let ctx = exec_context(ddl);
        writer.end(&ctx, TRUNCATE)?;
        let changes = writer.changes();
        writer.events.finish(&ctx, &ddl.tx().engine, &ddl.tx().deferred, &changes)?;
    }
    Ok(())
}

fn add_referencing(ddl: &Ddl<'_>, tables: &mut Vec<Arc<Relation>>, cascade: bool) -> Result<()> {
    let catalog = ddl.catalog();
    let mut known: HashSet<Oid> = tables.iter().map(|t| t.oid).collect();
    let mut at = 0;
    while at < tables.len() {
        let table = tables[at].clone();
        at += 1;
        for constraint in catalog.referencing_constraints(table.oid) {
            if constraint.kind != ConstraintKind::ForeignKey || known.contains(&constraint.relation) {
                continue;
            }
            let referencing = ddl.relation(constraint.relation)?;
            if !cascade {
                return Err(err!(FEATURE_NOT_SUPPORTED, "cannot truncate a table referenced in a foreign key constraint")
                    .detail(format!("Table \"{}\" references \"{}\".", referencing.name, table.name))
                    .hint(format!("Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.", referencing.name)));
            }
            let all = |table: &Relation| catalog.descendants(table.oid);
            for member in if referencing.is_partitioned() { all(&referencing) } else { vec![referencing.oid] } {
                let member = ddl.relation(member)?;
                if known.insert(member.oid) {
                    ddl.notice(format!("truncate cascades to table \"{}\"", member.name));
                    ddl.lock_relation(member.oid, RelationLockMode::AccessExclusive)?;
                    tables.push(member);
                }
            }
        }
    }
    Ok(())
}

/// 55006 for a table with checks that wait for the end of the transaction, and for one that a running statement changes, from
/// whose trigger this is called.
pub fn refuse_pending_events(ddl: &Ddl<'_>, table: &Relation, what: &str) -> Result<()> {
    if ddl.session().is_in_use(table.oid) {
        let name = &table.name;
        bail!(OBJECT_IN_USE, "cannot {what} \"{name}\" because it is being used by active queries in this session");
    }
    if ddl.tx().deferred.mentions(table.oid)? {
        bail!(OBJECT_IN_USE, "cannot {what} \"{}\" because it has pending trigger events", table.name);
    }
    Ok(())
}

/// Gives a table and its indexes empty storage. The old trees are dropped when the transaction commits.
pub fn empty_table(ddl: &Ddl<'_>, oid: Oid) -> Result<()> {
    let relation = ddl.relation(oid)?;
    let Storage::Tree(old) = relation.storage else {
        return Err(DbError::internal("table without storage"));
    };
    let kinds: Vec<Kind> = relation.columns.iter().map(|c| c.kind).collect();
    let persistence = engine_persistence(relation.persistence);
    let tree = ddl.tx().engine.create_table_tree(&kinds, persistence)?;
    ddl.tx().engine.drop_tree(old)?;
    let storage = Storage::Tree(tree);
    put_relation(ddl, Relation { storage, file_node: ddl.tx().new_oid(), stated: None, ..(*relation).clone() });
    for index in &relation.indexes {
        let index = ddl.relation(*index)?;
        if let Storage::Tree(old) = index.storage {
            ddl.tx().engine.drop_tree(old)?;
        }
        let storage = match index.has_entries() {
            true => Storage::Tree(ddl.tx().engine.create_index_tree(tree, persistence)?),
            false => Storage::None,
        };
        put_relation(ddl, Relation { storage, file_node: ddl.tx().new_oid(), stated: None, ..(*index).clone() });
    }
    Ok(())
}
