//! ALTER TABLE: one function per subcommand that is not about a column's definition.

use melba_catalog::{Column, ObjectAddress, Persistence, Relation, classes};
use melba_definition::context::Ddl;
use melba_definition::words::check_kind;
use melba_engine::RelationLockMode;
use melba_parse::nodes::{inner, strings};
use melba_relation::constraint::add_to_table::add_constraint_everywhere;
use melba_relation::constraint::alter::alter_constraint;
use melba_relation::constraint::children::{drop_constraint_from_children, refuse_inherited_constraint};
use melba_relation::constraint::row::constraint_of;
use melba_relation::constraint::validate::validate_constraint;
use melba_relation::dependents::drop_addresses;
use melba_relation::index::marks::{cluster_on, set_replica_identity};
use melba_relation::partition::index::attach_index_partition;
use melba_relation::policy::set_row_security;
use melba_relation::rule::enable_rule;
use melba_relation::sequence::owned_sequence;
use melba_relation::table::alter_column::alter_column_command;
use melba_relation::table::alter_kind::{check_form, unsupported_form};
use melba_relation::table::alter_persistence::{set_access_method, set_logged};
use melba_relation::table::attach::{add_inherit, attach_partition, drop_inherit};
use melba_relation::table::cold_store::check_cold_store;
use melba_relation::table::column::{add_column_everywhere, drop_column_everywhere};
use melba_relation::table::detach::{detach_partition, finalize_detach, refuse_pending_detach};
use melba_relation::table::relation::put_relation;
use melba_relation::table::retype::{alter_column_types, set_expression};
use melba_relation::table::storage_parameters::{ParametersOf, reset_list};
use melba_relation::table::truncate::refuse_pending_events;
use melba_relation::table::typed::{cascades, check_typed, clear_table_type, set_table_type, typed_tables};
use melba_relation::trigger::enable_triggers;
use melba_relation::view::check_checkable;
use melba_types::{DbError, Oid, Result, Severity, SqlState};
use pg_query::NodeRef;
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterTableCmd, AlterTableStmt, AlterTableType as At, ConstrType, DropBehavior};

use crate::foreign::{alter_column_options, alter_table_options, refuse_column, refuse_constraint};
use crate::owner::give_type;
use crate::privileges::acl::given;

pub fn alter_table(ddl: &Ddl<'_>, s: &AlterTableStmt) -> Result<()> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("ALTER TABLE without a name"))?;
    if s.missing_ok && ddl.find_relation(name)?.is_none() {
        ddl.notice(format!("relation \"{}\" does not exist, skipping", name.relname));
        return Ok(());
    }
    let mut commands = Vec::new();
    for node in &s.cmds {
        if let N::AlterTableCmd(command) = inner(node)? {
            commands.push(command.as_ref());
        }
    }
    let relation = ddl.open_target(name)?;
    check_kind(s.objtype(), &relation)?;
    ddl.require_own_relation(&relation)?;
    refuse_pending_events(ddl, &relation, "ALTER TABLE")?;
    commands.iter().try_for_each(|c| check_typed(&relation, c))?;
    let mut tables = match cascades(&commands) {
        Some(cascade) => typed_tables(ddl, &relation, cascade)?,
        None => Vec::new(),
    };
    tables.insert(0, relation.oid);
    let is_type = |c: &&AlterTableCmd| c.subtype() == At::AtAlterColumnType;
    // As PostgreSQL: drops first, then types, then the rest.
    let computes_from = |name: &str| commands.iter().any(|c| is_type(c) && uses_column(c, name));
    let late: Vec<&str> = commands
        .iter()
        .filter(|c| c.subtype() == At::AtDropColumn)
        .map(|c| c.name.as_str())
        .filter(|name| computes_from(name))
        .collect();
    // A column from which USING computes is dropped once it has.
    commands
        .sort_by_key(|c| if c.subtype() == At::AtDropColumn && late.contains(&c.name.as_str()) { (1, 1) } else { (pass(c), 0) });
    let first = commands.iter().position(is_type).unwrap_or(commands.len());
    let (before, rest) = commands.split_at(first);
    let (types, after) = rest.split_at(rest.iter().filter(|c| is_type(c)).count());
    for table in tables {
        let recurse = name.inh || table != relation.oid;
        before.iter().try_for_each(|c| alter_command(ddl, table, c, recurse))?;
        alter_column_types(ddl, table, types, recurse)?;
        after.iter().try_for_each(|c| alter_command(ddl, table, c, recurse))?;
    }
    Ok(())
}

fn alter_command(ddl: &Ddl<'_>, oid: Oid, c: &AlterTableCmd, recurse: bool) -> Result<()> {
    let relation = ddl.relation(oid)?;
    if c.subtype() != At::AtDetachPartitionFinalize {
        refuse_pending_detach(&relation)?;
    }
    check_form(c.subtype(), &relation)?;
    let def = c.def.as_deref().and_then(|d| d.node.as_ref());
    if relation.foreign.is_some() && alter_foreign_table(ddl, &relation, c, def, recurse)? {
        return Ok(());
    }
    match (c.subtype(), def) {
        (At::AtAddColumn, Some(N::ColumnDef(def))) if !def.fdwoptions.is_empty() => {
            check_form(At::AtAlterColumnGenericOptions, &relation)
        }
        (At::AtAddColumn, Some(N::ColumnDef(def))) => add_column_everywhere(ddl, &relation, def, c.missing_ok, recurse),
        (At::AtDropColumn, _) => drop_column_everywhere(ddl, &relation, c, recurse),
        (At::AtAddConstraint, Some(N::Constraint(constraint))) => add_constraint_everywhere(ddl, oid, None, constraint, recurse),
        (At::AtAddIndexConstraint | At::AtAddIndex, _) => Err(DbError::unsupported("this form of ADD CONSTRAINT")),
        (At::AtSetExpression, _) => set_expression(ddl, &relation, c, recurse),
        (At::AtDropConstraint, _) => drop_table_constraint(ddl, &relation, c, recurse),
        (At::AtValidateConstraint, _) => validate_constraint(ddl, &relation, &c.name, recurse),
        (At::AtAlterConstraint, Some(N::AtalterConstraint(c))) => alter_constraint(ddl, &relation, c, recurse),
        (At::AtChangeOwner, _) => {
            let spec = c.newowner.as_ref().ok_or_else(|| DbError::internal("OWNER TO without a role"))?;
            change_relation_owner(ddl, &relation, ddl.role_spec(spec)?)
        }
        (At::AtSetLogged, _) => set_logged(ddl, &relation, Persistence::Permanent),
        (At::AtSetUnLogged, _) => set_logged(ddl, &relation, Persistence::Unlogged),
        (At::AtAddOf, Some(N::TypeName(name))) => set_table_type(ddl, &relation, name),
        (At::AtDropOf, _) => clear_table_type(ddl, &relation),
        (At::AtAddInherit, Some(N::RangeVar(parent))) => add_inherit(ddl, &relation, parent),
        (At::AtDropInherit, Some(N::RangeVar(parent))) => drop_inherit(ddl, &relation, parent),
        (At::AtAttachPartition, Some(N::PartitionCmd(part))) => match relation.index {
            Some(_) => attach_index_partition(ddl, &relation, part),
            None => attach_partition(ddl, &relation, part),
        },
        (At::AtDetachPartition, Some(N::PartitionCmd(part))) => detach_partition(ddl, &relation, part),
        (At::AtDetachPartitionFinalize, Some(N::PartitionCmd(part))) => finalize_detach(ddl, &relation, part),
        (At::AtSetRelOptions | At::AtReplaceRelOptions, Some(N::List(list))) => {
            let options = ParametersOf::relation(&relation).changed_list(&relation.options, &list.items)?;
            check_cold_store(ddl, &list.items, relation.persistence)?;
            if relation.view_query.is_some() {
                let query = ddl.with_context(|c| melba_analyze::analyze_view(c, &relation))?;
                check_checkable(ddl, &relation.name, &options, &query)?;
            }
            put_relation(ddl, Relation { options, ..(*relation).clone() });
            Ok(())
        }
        (At::AtResetRelOptions, Some(N::List(list))) => {
            let options = reset_list(&relation.options, &list.items)?;
            put_relation(ddl, Relation { options, ..(*relation).clone() });
            Ok(())
        }
        (At::AtClusterOn, _) => cluster_on(ddl, &relation, Some(&c.name)),
        (At::AtDropCluster, _) => cluster_on(ddl, &relation, None),
        (At::AtReplicaIdentity, Some(N::ReplicaIdentityStmt(s))) => set_replica_identity(ddl, &relation, s),
        (At::AtSetTableSpace, _) if c.name == "pg_default" => Ok(()),
        // No table has any.
        (At::AtDropOids, _) => Ok(()),
        (At::AtSetAccessMethod, _) => set_access_method(ddl, &relation, &c.name),
        (_, _) if set_row_security(ddl, &relation, c)? => Ok(()),
        (_, _) if enable_rule(ddl, &relation, c)? => Ok(()),
        (_, _) if enable_triggers(ddl, &relation, c, recurse)? => Ok(()),
        (_, _) if alter_column_command(ddl, &relation, c, def, recurse)? => Ok(()),
        (other, _) => Err(unsupported_form(other)),
    }
}

/// Whether a form of ALTER TABLE was one that differs for foreign tables, or that only they have.
fn alter_foreign_table(ddl: &Ddl<'_>, relation: &Relation, c: &AlterTableCmd, def: Option<&N>, recurse: bool) -> Result<bool> {
    match (c.subtype(), def) {
        (At::AtAddColumn, Some(N::ColumnDef(def))) => {
            let is_there = relation.number_of(&def.colname).is_some();
            refuse_column(ddl, def)?;
            add_column_everywhere(ddl, relation, def, c.missing_ok, recurse)?;
            if !is_there {
                alter_column_options(ddl, &*ddl.relation(relation.oid)?, &def.colname, &def.fdwoptions)?;
            }
        }
        (At::AtAddConstraint, Some(N::Constraint(constraint))) => {
            refuse_constraint(constraint)?;
            return Ok(false);
        }
        (At::AtGenericOptions, Some(N::List(list))) => alter_table_options(ddl, relation, &list.items)?,
        (At::AtAlterColumnGenericOptions, Some(N::List(list))) => alter_column_options(ddl, relation, &c.name, &list.items)?,
        (At::AtAddIdentity | At::AtAddInherit, _) => return Err(unsupported_form(c.subtype())),
        _ => return Ok(false),
    }
    Ok(true)
}

fn drop_table_constraint(ddl: &Ddl<'_>, relation: &Relation, c: &AlterTableCmd, recurse: bool) -> Result<()> {
    let row = match constraint_of(ddl, relation, &c.name) {
        Ok(row) => row,
        Err(_) if c.missing_ok => {
            ddl.notice(format!("constraint \"{}\" of relation \"{}\" does not exist, skipping", c.name, relation.name));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    refuse_inherited_constraint(relation, &row)?;
    drop_constraint_from_children(ddl, relation, &row, recurse)?;
    let address = ObjectAddress { class: classes::PG_CONSTRAINT, object: row.oid, sub: 0 };
    drop_addresses(ddl, &[address], c.behavior() == DropBehavior::DropCascade)
}

fn change_relation_owner(ddl: &Ddl<'_>, relation: &Relation, owner: Oid) -> Result<()> {
    if relation.index.is_some() {
        if owner != relation.owner {
            let message = format!("cannot change owner of index \"{}\"", relation.name);
            let hint = "Change the ownership of the index's table instead.";
            ddl.session().notice(DbError::new(SqlState::WRONG_OBJECT_TYPE, message).severity(Severity::Warning).hint(hint));
        }
        return Ok(());
    }
    ddl.check_new_owner(relation.owner, owner, Some(relation.namespace))?;
    give_relation(ddl, relation, owner);
    Ok(())
}

/// A relation and its parts get another owner.
pub fn give_relation(ddl: &Ddl<'_>, relation: &Relation, owner: Oid) {
    let catalog = ddl.catalog();
    put_relation(ddl, owned_by(relation, owner));
    for index in relation.indexes.iter().filter_map(|i| catalog.relation(*i)) {
        put_relation(ddl, Relation { owner, ..(**index).clone() });
    }
    for column in relation.columns.iter().filter(|c| !c.dropped) {
        if let Some(sequence) = owned_sequence(ddl, relation, &column.name) {
            put_relation(ddl, owned_by(&sequence, owner));
        }
    }
    if let Some(ty) = catalog.type_(relation.row_type) {
        give_type(ddl, ty, owner);
    }
}

/// A relation after a change of owner, with the privileges granted by or to the old one.
fn owned_by(relation: &Relation, owner: Oid) -> Relation {
    let columns = relation.columns.iter().map(|c| Column { acl: given(&c.acl, relation.owner, owner), ..c.clone() });
    Relation { owner, acl: given(&relation.acl, relation.owner, owner), columns: columns.collect(), ..relation.clone() }
}

/// The strongest of the locks that an ALTER TABLE's commands take.
pub fn lock_of(s: &AlterTableStmt) -> RelationLockMode {
    let commands = s.cmds.iter().filter_map(|node| if let Some(N::AlterTableCmd(c)) = &node.node { Some(c) } else { None });
    commands.map(|c| lock_mode(c)).max().unwrap_or(RelationLockMode::AccessExclusive)
}

/// The lock that a form of ALTER TABLE takes: as weak as PostgreSQL's.
fn lock_mode(c: &AlterTableCmd) -> RelationLockMode {
    let def = c.def.as_deref().and_then(|d| d.node.as_ref());
    match (c.subtype(), def) {
        (At::AtValidateConstraint | At::AtSetStatistics | At::AtDetachPartitionFinalize, _) => {
            RelationLockMode::ShareUpdateExclusive
        }
        (At::AtDetachPartition, Some(N::PartitionCmd(c))) if c.concurrent => RelationLockMode::ShareUpdateExclusive,
        (
            At::AtEnableTrig
            | At::AtEnableTrigAll
            | At::AtEnableTrigUser
            | At::AtEnableAlwaysTrig
            | At::AtEnableReplicaTrig
            | At::AtDisableTrig
            | At::AtDisableTrigAll
            | At::AtDisableTrigUser,
            _,
        ) => RelationLockMode::ShareRowExclusive,
        (At::AtAddConstraint, Some(N::Constraint(c))) if c.contype() == ConstrType::ConstrForeign => {
            RelationLockMode::ShareRowExclusive
        }
        _ => RelationLockMode::AccessExclusive,
    }
}

/// Whether the USING of ALTER COLUMN TYPE names a column.
fn uses_column(c: &AlterTableCmd, name: &str) -> bool {
    let Some(N::ColumnDef(def)) = c.def.as_deref().and_then(|def| def.node.as_ref()) else { return false };
    let Some(using) = def.raw_default.as_deref().and_then(|node| node.node.as_ref()) else { return false };
    using.nodes().into_iter().any(|(node, ..)| match node {
        NodeRef::ColumnRef(column) => strings(&column.fields).last() == Some(&name),
        _ => false,
    })
}

/// The pass PostgreSQL runs a subcommand in.
fn pass(command: &AlterTableCmd) -> u8 {
    match command.subtype() {
        // DROP DEFAULT.
        At::AtColumnDefault if command.def.is_none() => 0,
        At::AtDropColumn | At::AtDropConstraint | At::AtDropNotNull | At::AtDropExpression | At::AtDropIdentity => 0,
        At::AtAlterColumnType => 1,
        At::AtAddColumn => 2,
        At::AtSetExpression => 3,
        At::AtColumnDefault | At::AtSetNotNull | At::AtAddIdentity | At::AtSetIdentity => 4,
        At::AtAddConstraint => 6,
        _ => 5,
    }
}
