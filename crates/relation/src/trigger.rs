//! CREATE TRIGGER, DROP TRIGGER, ALTER TRIGGER, and ALTER TABLE ... ENABLE and DISABLE TRIGGER.
//!
//! Invariant: a row trigger of a partitioned table has a separate trigger on each partition, which is changed with it and cannot
//! be dropped alone.

use std::sync::Arc;

use melba_analyze::{analyze_trigger_condition, stored_trigger_condition, trigger_entries};
use melba_catalog::trigger_events::{BEFORE, INSTEAD, ROW, TRUNCATE};
use melba_catalog::{
    Catalog, Constraint, ConstraintKind, FIRES_ON_ORIGIN, Object, ObjectAddress, Relation, RelationKind, Trigger, acl, classes,
};
use melba_definition::context::Ddl;
use melba_definition::describe::describe;
use melba_definition::naming::range_var;
use melba_definition::words::plural;
use melba_engine::RelationLockMode;
use melba_parse::nodes::strings;
use melba_tree::{Command, Expr, Query};
use melba_types::{DbError, Oid, Result, bail, err, oids};
use pg_query::protobuf::{AlterTableCmd, AlterTableType as At, CreateTrigStmt, Node, RenameStmt};

use crate::constraint::row::{bare_constraint, column_numbers};
use crate::table::relation::put_relation;
use crate::transition::{TransitionNames, transition_names};

/// The stored form of a WHEN condition.
struct Condition {
    text: Arc<str>,
    depends_on: Vec<ObjectAddress>,
}

pub fn create_trigger(ddl: &Ddl<'_>, s: &CreateTrigStmt) -> Result<()> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("CREATE TRIGGER without a table"))?;
    let table = ddl.open_target(name)?;
    check_table(&table, s)?;
    let constraint_table = match s.constrrel.as_ref().filter(|_| s.isconstraint) {
        Some(name) => ddl.open_relation(name, RelationLockMode::AccessShare)?.oid,
        None => Oid::INVALID,
    };
    for oid in [table.oid, constraint_table].into_iter().filter(|oid| oid.is_valid()) {
        let relation = ddl.relation(oid)?;
        if !ddl.catalog().has_relation_privileges(ddl.user(), &relation, acl::TRIGGER) {
            return Err(melba_tree::permissions::denied(&relation));
        }
    }
    let events = (s.timing | s.events) as i16 | if s.row { ROW } else { 0 };
    check_events(events, s)?;
    let transitions = transition_names(&s.transition_rels, events, !s.columns.is_empty(), &table)?;
    let condition = s.when_clause.as_deref().map(|node| trigger_condition(ddl, node, &table, events)).transpose()?;
    let function = function_without_arguments(ddl, &s.funcname, oids::TRIGGER)?;
    let TransitionNames { old: old_table, new: new_table } = transitions;
    let trigger = Trigger {
        oid: Oid::INVALID,
        name: s.trigname.as_str().into(),
        table: table.oid,
        function,
        events,
        enabled: FIRES_ON_ORIGIN,
        columns: trigger_columns(&table, &strings(&s.columns))?,
        arguments: strings(&s.args).into_iter().map(Arc::from).collect(),
        depends_on: condition.as_ref().map(|c| c.depends_on.clone()).unwrap_or_default(),
        when: condition.map(|c| c.text),
        old_table,
        new_table,
        deferrable: s.deferrable,
        initially_deferred: s.initdeferred,
        constraint: Oid::INVALID,
        constraint_table,
        parent: Oid::INVALID,
    };
    put_trigger(ddl, trigger, &table, s.replace, s.isconstraint)
}

/// The function of a trigger or event trigger.
///
/// # Errors
/// 42883 without such a function, 42501 where it may not be called, 42P17 unless it returns `result`.
pub fn function_without_arguments(ddl: &Ddl<'_>, funcname: &[Node], result: Oid) -> Result<Oid> {
    let names = strings(funcname);
    let (schema, name) = ddl.qualified(&names)?;
    let catalog = ddl.catalog();
    let schemas = ddl.searched_schemas(schema)?;
    let shown = names.join(".");
    let found = catalog.find_functions(&schemas, name).find(|f| f.arg_types.is_empty());
    let Some(function) = found else { bail!(UNDEFINED_FUNCTION, "function {shown}() does not exist") };
    let kind = melba_catalog::privileges::AclKind::Function;
    if !catalog.has_privileges(ddl.user(), kind, function.owner, &function.acl, acl::EXECUTE) {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for function {shown}");
    }
    if function.return_type != result {
        bail!(INVALID_OBJECT_DEFINITION, "function {shown} must return type {}", catalog.type_name(result, ddl.path()));
    }
    Ok(function.oid)
}

fn trigger_columns(table: &Relation, names: &[&str]) -> Result<Vec<i16>> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let number = column_numbers(table, &[name], false)?[0];
        if columns.contains(&number) {
            bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        columns.push(number);
    }
    Ok(columns)
}

fn trigger_condition(ddl: &Ddl<'_>, node: &Node, table: &Relation, events: i16) -> Result<Condition> {
    let expr = ddl.with_context(|c| analyze_trigger_condition(c, node, table, events))?;
    let mut depends_on = ddl.usable(expr.dependencies())?;
    expr.visit_vars(&mut |v| {
        let column = ObjectAddress { class: classes::PG_CLASS, object: table.oid, sub: i32::from(v.column) };
        if v.column > 0 && !depends_on.contains(&column) {
            depends_on.push(column);
        }
    });
    Ok(Condition { text: trigger_condition_text(ddl, &expr, table)?, depends_on })
}

pub fn trigger_condition_text(ddl: &Ddl<'_>, condition: &Expr, table: &Relation) -> Result<Arc<str>> {
    let over = Query { range_table: trigger_entries(table), ..Query::new(Command::Select) };
    ddl.with_context(|c| Ok(melba_deparse::trigger_condition(c, condition, &over).into()))
}

/// Adds a trigger to its table, or replaces one of that name; then does the same for the partitions.
fn put_trigger(ddl: &Ddl<'_>, trigger: Trigger, table: &Relation, replace: bool, is_constraint: bool) -> Result<()> {
    let catalog = ddl.catalog();
    let existing = catalog.trigger_by_name(table.oid, &trigger.name).cloned();
    if let Some(existing) = &existing {
        let message = format!("trigger \"{}\" for relation \"{}\"", trigger.name, table.name);
        if !replace {
            bail!(DUPLICATE_OBJECT, "{message} already exists");
        }
        if existing.parent.is_valid() && !trigger.parent.is_valid() {
            bail!(DUPLICATE_OBJECT, "{message} is an internal or a child trigger");
        }
        if existing.constraint.is_valid() {
            bail!(DUPLICATE_OBJECT, "{message} is a constraint trigger");
        }
    }
    let oid = existing.as_ref().map_or_else(|| ddl.tx().new_oid(), |t| t.oid);
    let constraint = if is_constraint { put_trigger_constraint(ddl, &trigger, table)? } else { Oid::INVALID };
    let trigger = Trigger { oid, constraint, ..trigger };
    ddl.tx().put(Object::Trigger(Arc::new(trigger.clone())));
    if existing.is_none() {
        let now = ddl.relation(table.oid)?;
        let mut triggers = now.triggers.clone();
        triggers.push(oid);
        put_relation(ddl, Relation { triggers, ..(*now).clone() });
    }
    if table.is_partitioned() && trigger.has(ROW) {
        for partition in catalog.children(table.oid) {
            ddl.lock_relation(partition, RelationLockMode::ShareRowExclusive)?;
            put_partition_trigger(ddl, &trigger, &*ddl.relation(partition)?, replace)?;
        }
    }
    Ok(())
}

/// The row of pg_constraint that SET CONSTRAINTS finds a constraint trigger by.
fn put_trigger_constraint(ddl: &Ddl<'_>, trigger: &Trigger, table: &Relation) -> Result<Oid> {
    let row = Constraint {
        deferrable: trigger.deferrable,
        initially_deferred: trigger.initially_deferred,
        no_inherit: true,
        ..bare_constraint(ddl, table, &trigger.name, ConstraintKind::Trigger)?
    };
    let oid = row.oid;
    ddl.tx().put(Object::Constraint(Arc::new(row)));
    let now = ddl.relation(table.oid)?;
    let mut constraints = now.constraints.clone();
    constraints.push(oid);
    put_relation(ddl, Relation { constraints, ..(*now).clone() });
    Ok(oid)
}

/// Adds the trigger of its parent to a partition.
fn put_partition_trigger(ddl: &Ddl<'_>, of: &Trigger, partition: &Relation, replace: bool) -> Result<()> {
    let parent = ddl.relation(of.table)?;
    let number = |n: i16| {
        let name = &parent.columns[n as usize - 1].name;
        column_numbers(partition, &[name], false).map(|numbers| numbers[0])
    };
    let columns = of.columns.iter().map(|n| number(*n)).collect::<Result<Vec<_>>>()?;
    // Columns have the same names there, so the condition is the same text; its references to the table become those of the partition.
    let mut depends_on = Vec::with_capacity(of.depends_on.len());
    for address in &of.depends_on {
        let own = address.class == classes::PG_CLASS && address.object == parent.oid && address.sub > 0;
        depends_on.push(match own {
            true => ObjectAddress { object: partition.oid, sub: number(address.sub as i16)?.into(), ..*address },
            false => *address,
        });
    }
    let trigger = Trigger { table: partition.oid, parent: of.oid, columns, depends_on, ..of.clone() };
    put_trigger(ddl, trigger, partition, replace, of.constraint.is_valid())
}

/// A table has become a partition: it gets the row triggers of its parent.
pub fn add_parent_triggers(ddl: &Ddl<'_>, partition: Oid) -> Result<()> {
    let relation = ddl.relation(partition)?;
    let catalog = ddl.catalog();
    let Some(parent) = relation.parents.first().and_then(|p| catalog.relation(*p)) else { return Ok(()) };
    for trigger in parent.triggers.iter().filter_map(|t| catalog.trigger(*t)).filter(|t| t.has(ROW)) {
        if let Some(existing) = catalog.trigger_by_name(partition, &trigger.name) {
            bail!(DUPLICATE_OBJECT, "trigger \"{}\" for relation \"{}\" already exists", existing.name, relation.name);
        }
        put_partition_trigger(ddl, trigger, &*ddl.relation(partition)?, false)?;
    }
    Ok(())
}

/// # Errors
/// 0A000 for a table with triggers that cannot be those of a partition or other child.
pub fn check_triggers_of_child(ddl: &Ddl<'_>, child: &Relation, becomes: &str, on: &str) -> Result<()> {
    let catalog = ddl.catalog();
    let uses = |t: &&Arc<Trigger>| t.has(ROW) && (t.old_table.is_some() || t.new_table.is_some());
    match child.triggers.iter().filter_map(|t| catalog.trigger(*t)).find(uses) {
        None => Ok(()),
        Some(trigger) => Err(err!(
            FEATURE_NOT_SUPPORTED,
            "trigger \"{}\" prevents table \"{}\" from becoming {becomes}",
            trigger.name,
            child.name
        )
        .detail(format!("ROW triggers with transition tables are not supported {on}."))),
    }
}

/// The trigger that DROP TRIGGER names.
///
/// # Errors
/// 2BP01 for a trigger that belongs to a partitioned table's.
pub fn dropped_trigger(ddl: &Ddl<'_>, names: &[&str], missing_ok: bool) -> Result<Option<ObjectAddress>> {
    let Some(trigger) = find_trigger(ddl, names, missing_ok)? else { return Ok(None) };
    let address = trigger_address(trigger.oid);
    if trigger.parent.is_valid() {
        let (what, owner) = (describe(ddl, address), describe(ddl, trigger_address(trigger.parent)));
        return Err(err!(DEPENDENT_OBJECTS_STILL_EXIST, "cannot drop {what} because {owner} requires it")
            .hint(format!("You can drop {owner} instead.")));
    }
    if ddl.tx().deferred.mentions(trigger.table)? {
        let table = ddl.relation(trigger.table)?;
        bail!(OBJECT_IN_USE, "cannot DROP TRIGGER \"{}\" because it has pending trigger events", table.name);
    }
    Ok(Some(address))
}

/// The trigger that DROP TRIGGER or COMMENT ON TRIGGER names: its table's names, then its own.
fn find_trigger(ddl: &Ddl<'_>, names: &[&str], missing_ok: bool) -> Result<Option<Arc<Trigger>>> {
    let found = find_on_table(ddl, "trigger", names, missing_ok, |catalog, table, name| {
        catalog.trigger_by_name(table, name).map(|t| t.oid)
    })?;
    Ok(found.and_then(|oid| ddl.catalog().trigger(oid).cloned()))
}

/// The object that a statement names by a table's name and its own. `kind`: the word for it.
pub fn find_on_table(
    ddl: &Ddl<'_>,
    kind: &str,
    names: &[&str],
    missing_ok: bool,
    find: impl Fn(&Catalog, Oid, &str) -> Option<Oid>,
) -> Result<Option<Oid>> {
    let [table @ .., name] = names else { bail!(SYNTAX_ERROR, "{kind} name must be qualified") };
    let range = range_var(table)?;
    let shown = table.join(".");
    if !range.schemaname.is_empty() && ddl.is_missing_schema(&range.schemaname, missing_ok)? {
        return Ok(None);
    }
    if missing_ok && ddl.find_relation(&range)?.is_none() {
        ddl.notice(format!("relation \"{shown}\" does not exist, skipping"));
        return Ok(None);
    }
    let relation = ddl.open_target(&range)?;
    if let Some(found) = find(&ddl.catalog(), relation.oid, name) {
        ddl.require_owner(relation.owner, "relation", &relation.name)?;
        return Ok(Some(found));
    }
    if missing_ok {
        ddl.notice(format!("{kind} \"{name}\" for relation \"{shown}\" does not exist, skipping"));
        return Ok(None);
    }
    let of = if kind == "rule" { "relation" } else { "table" };
    bail!(UNDEFINED_OBJECT, "{kind} \"{name}\" for {of} \"{}\" does not exist", relation.name)
}

/// The trigger that COMMENT ON TRIGGER names.
pub fn commented_trigger(ddl: &Ddl<'_>, names: &[&str]) -> Result<ObjectAddress> {
    let found = find_trigger(ddl, names, false)?;
    found.map(|t| trigger_address(t.oid)).ok_or_else(|| DbError::internal("COMMENT ON TRIGGER of no trigger"))
}

/// Forgets a trigger, and updates its table, which remains.
pub fn remove_trigger(ddl: &Ddl<'_>, oid: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    let Some(trigger) = catalog.trigger(oid) else { return Ok(()) };
    if let Some(table) = catalog.relation(trigger.table) {
        let triggers = table.triggers.iter().copied().filter(|t| *t != oid).collect();
        put_relation(ddl, Relation { triggers, ..(**table).clone() });
    }
    ddl.tx().remove(trigger_address(oid));
    Ok(())
}

/// ALTER TRIGGER ... RENAME TO.
pub fn rename_trigger(ddl: &Ddl<'_>, s: &RenameStmt) -> Result<()> {
    let name = s.relation.as_ref().ok_or_else(|| DbError::internal("ALTER TRIGGER without a table"))?;
    let table = ddl.open_target(name)?;
    if !matches!(table.kind, RelationKind::Table | RelationKind::View | RelationKind::PartitionedTable) {
        return Err(err!(WRONG_OBJECT_TYPE, "relation \"{}\" cannot have triggers", table.name)
            .detail(format!("This operation is not supported for {}.", plural(table.kind))));
    }
    ddl.require_own_relation(&table)?;
    let catalog = ddl.catalog();
    let Some(trigger) = catalog.trigger_by_name(table.oid, &s.subname) else {
        bail!(UNDEFINED_OBJECT, "trigger \"{}\" for table \"{}\" does not exist", s.subname, table.name);
    };
    if let Some(parent) = catalog.trigger(trigger.parent) {
        let of = catalog.relation(parent.table).map_or("", |r| &r.name);
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot rename trigger \"{}\" on table \"{}\"", trigger.name, table.name)
            .hint(format!("Rename the trigger on the partitioned table \"{of}\" instead.")));
    }
    rename_trigger_of(ddl, trigger, &s.newname)
}

fn rename_trigger_of(ddl: &Ddl<'_>, trigger: &Trigger, name: &str) -> Result<()> {
    let catalog = ddl.catalog();
    if catalog.trigger_by_name(trigger.table, name).is_some_and(|t| t.oid != trigger.oid) {
        let table = catalog.relation(trigger.table).map_or("", |r| &r.name);
        bail!(DUPLICATE_OBJECT, "trigger \"{name}\" for relation \"{table}\" already exists");
    }
    ddl.tx().put(Object::Trigger(Arc::new(Trigger { name: name.into(), ..trigger.clone() })));
    copies_of(ddl, trigger).iter().try_for_each(|copy| rename_trigger_of(ddl, copy, name))
}

/// The triggers that partitions have because of this one.
fn copies_of(ddl: &Ddl<'_>, trigger: &Trigger) -> Vec<Arc<Trigger>> {
    let catalog = ddl.catalog();
    let dependents = catalog.dependents(trigger_address(trigger.oid));
    let found =
        dependents.filter(|d| d.dependent.class == classes::PG_TRIGGER).filter_map(|d| catalog.trigger(d.dependent.object));
    found.filter(|t| t.parent == trigger.oid).cloned().collect()
}

/// ALTER TABLE ... ENABLE or DISABLE TRIGGER; false: the command is another one.
pub fn enable_triggers(ddl: &Ddl<'_>, table: &Relation, c: &AlterTableCmd, recurse: bool) -> Result<bool> {
    let (enabled, which) = match c.subtype() {
        At::AtEnableTrig => (b'O', Some(&*c.name)),
        At::AtEnableAlwaysTrig => (b'A', Some(&*c.name)),
        At::AtEnableReplicaTrig => (b'R', Some(&*c.name)),
        At::AtDisableTrig => (b'D', Some(&*c.name)),
        At::AtEnableTrigAll | At::AtEnableTrigUser => (b'O', None),
        At::AtDisableTrigAll | At::AtDisableTrigUser => (b'D', None),
        _ => return Ok(false),
    };
    let with_keys = matches!(c.subtype(), At::AtEnableTrigAll | At::AtDisableTrigAll);
    if with_keys {
        suspend_keys(ddl, table, enabled)?;
    }
    let catalog = ddl.catalog();
    let own = table.triggers.iter().filter_map(|t| catalog.trigger(*t));
    let mut found = false;
    for trigger in own.filter(|t| which.is_none_or(|name| *t.name == *name)) {
        found = true;
        enable_trigger(ddl, trigger, enabled, recurse)?;
    }
    match which {
        Some(name) if !found => {
            bail!(UNDEFINED_OBJECT, "trigger \"{name}\" for table \"{}\" does not exist", table.name)
        }
        _ => Ok(true),
    }
}

fn enable_trigger(ddl: &Ddl<'_>, trigger: &Trigger, enabled: u8, recurse: bool) -> Result<()> {
    if trigger.enabled != enabled {
        ddl.tx().put(Object::Trigger(Arc::new(Trigger { enabled, ..trigger.clone() })));
    }
    if recurse {
        copies_of(ddl, trigger).iter().try_for_each(|copy| enable_trigger(ddl, copy, enabled, true))?;
    }
    Ok(())
}

/// Foreign keys of the table, and those that refer to it, are checked and followed or not.
fn suspend_keys(ddl: &Ddl<'_>, table: &Relation, enabled: u8) -> Result<()> {
    let catalog = ddl.catalog();
    let keys: Vec<_> = table.constraints.iter().filter_map(|c| catalog.constraint(*c)).collect();
    let referenced_by = catalog.referencing_constraints(table.oid);
    let has_keys = keys.iter().any(|c| c.kind == ConstraintKind::ForeignKey) || !referenced_by.is_empty();
    if has_keys && !ddl.is_superuser() {
        let name = match keys.iter().find(|c| c.kind == ConstraintKind::ForeignKey) {
            Some(key) => format!("RI_ConstraintTrigger_c_{}", key.oid),
            None => format!("RI_ConstraintTrigger_a_{}", referenced_by[0].oid),
        };
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{name}\" is a system trigger");
    }
    for key in keys.iter().filter(|c| c.kind == ConstraintKind::ForeignKey) {
        ddl.tx().put(Object::Constraint(Arc::new(Constraint { check_enabled: enabled, ..(***key).clone() })));
    }
    for key in referenced_by {
        let catalog = ddl.catalog();
        let now = catalog.constraint(key.oid).unwrap_or(key);
        ddl.tx().put(Object::Constraint(Arc::new(Constraint { action_enabled: enabled, ..(**now).clone() })));
    }
    Ok(())
}

/// A trigger's condition, analyzed.
pub fn condition_of(ddl: &Ddl<'_>, trigger: &Trigger) -> Result<Option<Expr>> {
    let table = ddl.relation(trigger.table)?;
    ddl.with_context(|c| stored_trigger_condition(c, trigger, &table))
}

pub fn trigger_address(oid: Oid) -> ObjectAddress {
    ObjectAddress { class: classes::PG_TRIGGER, object: oid, sub: 0 }
}

/// Checks which triggers a kind of table may have.
fn check_table(table: &Relation, s: &CreateTrigStmt) -> Result<()> {
    let timing = s.timing as i16;
    let refuse = |what: &str, detail: &str| Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is a {what}", table.name).detail(detail));
    match table.kind {
        RelationKind::Table | RelationKind::PartitionedTable => {
            if timing == INSTEAD {
                return refuse("table", "Tables cannot have INSTEAD OF triggers.");
            }
            if table.is_partitioned() && s.row && !s.transition_rels.is_empty() {
                let detail = "ROW triggers with transition tables are not supported on partitioned tables.";
                return Err(err!(FEATURE_NOT_SUPPORTED, "\"{}\" is a partitioned table", table.name).detail(detail));
            }
        }
        RelationKind::View => {
            if timing != INSTEAD && s.row {
                return refuse("view", "Views cannot have row-level BEFORE or AFTER triggers.");
            }
            if s.events as i16 & TRUNCATE != 0 {
                return refuse("view", "Views cannot have TRUNCATE triggers.");
            }
        }
        RelationKind::ForeignTable => return Err(DbError::unsupported("triggers of foreign tables")),
        kind => {
            return Err(err!(WRONG_OBJECT_TYPE, "relation \"{}\" cannot have triggers", table.name)
                .detail(format!("This operation is not supported for {}.", plural(kind))));
        }
    }
    if table.oid.0 < classes::FIRST_USER_OID {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{}\" is a system catalog", table.name);
    }
    Ok(())
}

fn check_events(events: i16, s: &CreateTrigStmt) -> Result<()> {
    if events & ROW != 0 && events & TRUNCATE != 0 {
        bail!(FEATURE_NOT_SUPPORTED, "TRUNCATE FOR EACH ROW triggers are not supported");
    }
    if events & INSTEAD != 0 {
        if events & ROW == 0 {
            bail!(FEATURE_NOT_SUPPORTED, "INSTEAD OF triggers must be FOR EACH ROW");
        }
        if s.when_clause.is_some() {
            bail!(FEATURE_NOT_SUPPORTED, "INSTEAD OF triggers cannot have WHEN conditions");
        }
        if !s.columns.is_empty() {
            bail!(FEATURE_NOT_SUPPORTED, "INSTEAD OF triggers cannot have column lists");
        }
    }
    debug_assert!(events & (BEFORE | INSTEAD) != BEFORE | INSTEAD);
    Ok(())
}
