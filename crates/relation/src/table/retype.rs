//! Objects that depend on a column whose type has changed: its table's indexes and constraints, and foreign keys to it.
//!
//! As in PostgreSQL, which creates them again from their text, expressions without a meaning for the new type are refused.

use std::sync::Arc;

use melba_catalog::{Column, Constraint, ConstraintKind, ForeignKeyInfo, IndexInfo, IndexKey, Object, Relation};
use melba_definition::context::Ddl;
use melba_definition::expression::{Use, again, stored_expression};
use melba_engine::RelationLockMode;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::AlterTableCmd;
use pg_query::protobuf::node::Node as N;

use crate::constraint::exclusion::retyped_operators;
use crate::constraint::row::key_operators;
use crate::index::build::{accepting_class, column_type, column_typmod, require_key_order};
use crate::index::fill::fill_index;
use crate::index::request::{AccessMethod, no_default_class};
use crate::partition::bound::refuse_partition_column;
use crate::sequence::{SequenceOptions, change_sequence, is_sequence_type, owned_sequence};
use crate::statistics::alter::retype_statistics;
use crate::table::alter_column::{place_of_column, refuse_own_rows};
use crate::table::alter_kind::check_form;
use crate::table::children::has_children;
use crate::table::column_uses::refuse_used_column;
use crate::table::relation::{new_column, put_relation};
use crate::table::rewrite::{TypeChange, change_types};
use crate::table::rows::{check_existing_rows, look_for_nulls, validate_foreign_key};

/// Columns whose types a statement changes, by table.
#[derive(Default)]
pub struct Retyped(Vec<(Oid, Vec<TypeChange>)>);

impl Retyped {
    pub fn add(&mut self, table: Oid, change: TypeChange) {
        match self.0.iter_mut().find(|(t, _)| *t == table) {
            Some((_, changes)) => changes.push(change),
            None => self.0.push((table, vec![change])),
        }
    }
}

/// All ALTER COLUMN TYPE of a statement: objects over several of the columns are adapted when all have changed.
pub fn alter_column_types(ddl: &Ddl<'_>, table: Oid, commands: &[&AlterTableCmd], recurse: bool) -> Result<()> {
    let mut retyped = Retyped::default();
    for (nth, c) in commands.iter().enumerate() {
        let relation = ddl.relation(table)?;
        check_form(c.subtype(), &relation)?;
        let at = place_of_column(&relation, c)?;
        if commands[..nth].iter().any(|before| before.name == c.name) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot alter type of column \"{}\" twice", c.name);
        }
        let def = c.def.as_deref().and_then(|d| d.node.as_ref());
        alter_type_everywhere(ddl, &relation, at, def, recurse, &mut retyped)?;
    }
    change_and_adapt(ddl, &retyped)
}

/// ALTER COLUMN SET EXPRESSION: the values are computed again, and all that is about the column is as after a change of its type.
///
/// # Errors
/// 55000 for a column that is not generated, 0A000 for a virtual one of a table with checks.
pub fn set_expression(ddl: &Ddl<'_>, relation: &Relation, c: &AlterTableCmd, recurse: bool) -> Result<()> {
    let node = c.def.as_deref().ok_or_else(|| DbError::internal("SET EXPRESSION without an expression"))?;
    let members = if recurse { ddl.catalog().descendants(relation.oid) } else { vec![relation.oid] };
    let mut retyped = Retyped::default();
    for oid in members {
        ddl.lock_relation(oid, RelationLockMode::AccessExclusive)?;
        let member = ddl.relation(oid)?;
        let at = place_of_column(&member, c)?;
        let column = &member.columns[at];
        let (name, table) = (&column.name, &member.name);
        if column.generated == 0 {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "column \"{name}\" of relation \"{table}\" is not a generated column");
        }
        let catalog = ddl.catalog();
        let mut constraints = member.constraints.iter().filter_map(|c| catalog.constraint(*c));
        if column.generated == b'v' && constraints.any(|c| c.kind == ConstraintKind::Check) {
            let message =
                "ALTER TABLE / SET EXPRESSION is not supported for virtual generated columns in tables with check constraints";
            return Err(err!(FEATURE_NOT_SUPPORTED, "{message}")
                .detail(format!("Column \"{name}\" of relation \"{table}\" is a virtual generated column.")));
        }
        let stored = stored_expression(ddl, node, &member, Use::Generated, Some(column))?;
        let column = Column {
            default: Some(stored.text),
            default_oid: ddl.tx().new_oid(),
            default_depends_on: stored.depends_on,
            ..column.clone()
        };
        let (is_stored, is_checked) = (column.generated == b's', column.not_null);
        let mut columns = member.columns.to_vec();
        columns[at] = column.clone();
        put_relation(ddl, Relation { columns: columns.into(), ..(*member).clone() });
        if is_stored {
            retyped.add(oid, TypeChange { at, column, using: None });
        } else if is_checked {
            look_for_nulls(ddl, oid, at)?;
        }
    }
    change_and_adapt(ddl, &retyped)
}

/// Changes the columns, and then the objects over them.
fn change_and_adapt(ddl: &Ddl<'_>, retyped: &Retyped) -> Result<()> {
    for (table, changes) in &retyped.0 {
        let is_new = change_types(ddl, *table, changes)?;
        let changed: Vec<usize> = changes.iter().map(|c| c.at).collect();
        for index in ddl.relation(*table)?.indexes.clone() {
            retype_index(ddl, &*ddl.relation(*table)?, &*ddl.relation(index)?, &changed)?;
            if is_new {
                fill_index(ddl, index, false)?;
            }
        }
    }
    retyped.0.iter().try_for_each(|(table, changes)| {
        let changed: Vec<usize> = changes.iter().map(|c| c.at).collect();
        retype_constraints(ddl, &*ddl.relation(*table)?, &changed)?;
        retype_statistics(ddl, &*ddl.relation(*table)?, &changed)
    })
}

fn retype_constraints(ddl: &Ddl<'_>, relation: &Relation, changed: &[usize]) -> Result<()> {
    let uses = |columns: &[i16]| columns.iter().any(|number| *number > 0 && changed.contains(&(*number as usize - 1)));
    let catalog = ddl.catalog();
    for check in relation.constraints.iter().filter_map(|c| catalog.constraint(*c)) {
        if check.kind == ConstraintKind::Check && uses(&check.columns) {
            retype_check(ddl, relation, check)?;
        }
    }
    let own = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).filter(|c| uses(&c.columns));
    let refers = |c: &&Arc<Constraint>| c.foreign_key.as_ref().is_some_and(|k| uses(&k.referenced_columns));
    let others = catalog.referencing_constraints(relation.oid);
    let mut keys: Vec<_> = own.filter(|c| c.foreign_key.is_some()).chain(others.into_iter().filter(refers)).collect();
    keys.sort_by_key(|c| c.oid);
    keys.dedup_by_key(|c| c.oid);
    keys.into_iter().try_for_each(|key| retype_foreign_key(ddl, key))
}

fn retype_index(ddl: &Ddl<'_>, relation: &Relation, index: &Relation, changed: &[usize]) -> Result<()> {
    let Some(info) = &index.index else { return Ok(()) };
    let catalog = ddl.catalog();
    let predicate = match &info.predicate {
        Some(text) => Some(again(ddl, text, relation, Use::IndexPredicate)?.text),
        None => None,
    };
    let mut keys = info.keys.clone();
    for key in &mut keys {
        let (ty, collation, natural) = match &key.expression {
            None if changed.contains(&(key.column as usize - 1)) => {
                let column = &relation.columns[key.column as usize - 1];
                (column.ty, column.collation, column.collation)
            }
            None => continue,
            Some(text) => {
                let stored = again(ddl, text, relation, Use::IndexExpression)?;
                key.expression = Some(stored.text);
                if stored.ty == key.ty && stored.collation == key.natural_collation {
                    continue;
                }
                (stored.ty, stored.collation, stored.collation)
            }
        };
        let method = AccessMethod::of_oid(&catalog, index.access_method);
        let is_default = catalog.default_operator_class(method.oid, key.ty).is_some_and(|class| class.oid == key.opclass);
        let opclass = match is_default {
            true => catalog.default_operator_class(method.oid, ty).ok_or_else(|| no_default_class(ddl, ty, method.name))?.oid,
            false => accepting_class(ddl, key.opclass, ty)?,
        };
        if let Some(class) = catalog.access_methods().class(opclass) {
            require_key_order(&catalog, class, ty)?;
        }
        let collation = if key.collation == key.natural_collation { collation } else { key.collation };
        *key = IndexKey { ty, collation, natural_collation: natural, opclass, ..key.clone() };
    }
    if let Some(constraint) = catalog.constraint(info.constraint).filter(|c| !c.operators.is_empty()) {
        let operators = retyped_operators(ddl, constraint, &keys)?;
        ddl.tx().put(Object::Constraint(Arc::new(Constraint { operators, ..(**constraint).clone() })));
    }
    let mut columns = index.columns.to_vec();
    for (key, c) in keys.iter().zip(&mut columns) {
        c.ty = column_type(ddl, key);
        c.typmod = column_typmod(ddl, relation, key);
        c.kind = catalog.kind_of(c.ty).unwrap_or(c.kind);
    }
    let info = IndexInfo { keys, predicate, ..(**info).clone() };
    put_relation(ddl, Relation { index: Some(Arc::new(info)), columns: columns.into(), ..index.clone() });
    Ok(())
}

fn retype_check(ddl: &Ddl<'_>, relation: &Relation, check: &Constraint) -> Result<()> {
    let Some(text) = &check.expression else { return Ok(()) };
    let stored = again(ddl, text, relation, Use::Check)?;
    let row = Constraint { expression: Some(stored.text), depends_on: stored.depends_on, ..check.clone() };
    ddl.tx().put(Object::Constraint(Arc::new(row.clone())));
    if row.validated && row.enforced { check_existing_rows(ddl, &row) } else { Ok(()) }
}

/// A foreign key compares by the operators of the new types, and is checked again.
fn retype_foreign_key(ddl: &Ddl<'_>, key: &Constraint) -> Result<()> {
    let Some(info) = &key.foreign_key else { return Ok(()) };
    let (from, to) = (ddl.relation(key.relation)?, ddl.relation(info.referenced_table)?);
    let referenced = (&*to, &info.referenced_columns[..]);
    let operators = key_operators(ddl, &key.name, (&from, &key.columns), referenced, info.has_period())?;
    let info = ForeignKeyInfo { operators, ..(**info).clone() };
    ddl.tx().put(Object::Constraint(Arc::new(Constraint { foreign_key: Some(Arc::new(info)), ..key.clone() })));
    if key.validated && key.enforced { validate_foreign_key(ddl, key.oid) } else { Ok(()) }
}

/// The result of ALTER COLUMN TYPE for a column.
pub fn changed_type(ddl: &Ddl<'_>, relation: &Relation, at: usize, def: Option<&N>) -> Result<TypeChange> {
    let Some(N::ColumnDef(def)) = def else { return Err(DbError::internal("ALTER TYPE without a type")) };
    let name = def.type_name.as_ref().ok_or_else(|| DbError::internal("ALTER TYPE without a type"))?;
    let generated = relation.columns[at].generated != 0;
    if generated && def.raw_default.is_some() {
        let column = &relation.columns[at].name;
        return Err(err!(INVALID_COLUMN_DEFINITION, "cannot specify USING when altering type of generated column")
            .detail(format!("Column \"{column}\" is a generated column.")));
    }
    let (ty, typmod) = ddl.type_from_name(name)?;
    if relation.columns[at].identity != 0 && !is_sequence_type(ty) {
        bail!(INVALID_PARAMETER_VALUE, "identity column type must be smallint, integer, or bigint");
    }
    let mut column = Column { ..relation.columns[at].clone() };
    let fresh = new_column(ddl, &column.name, ty, typmod)?;
    refuse_own_rows(ddl, relation, ty)?;
    refuse_used_column(ddl, relation, at)?;
    column.ty = ty;
    column.typmod = typmod;
    column.kind = fresh.kind;
    column.storage = fresh.storage;
    column.collation = match &def.coll_clause {
        Some(clause) => ddl.collation(&melba_parse::nodes::strings(&clause.collname), ty, clause.location)?,
        None => fresh.collation,
    };
    if fresh.storage == b'p' {
        column.compression = 0;
    }
    if relation.columns[at].identity != 0
        && let Some(sequence) = owned_sequence(ddl, relation, &relation.columns[at].name)
    {
        change_sequence(ddl, &sequence, &SequenceOptions::of_type(ty))?;
    }
    Ok(TypeChange { at, column, using: def.raw_default.as_deref().cloned() })
}

/// ALTER COLUMN TYPE: the children's columns have the type of their parents'.
pub fn alter_type_everywhere(
    ddl: &Ddl<'_>,
    relation: &Relation,
    at: usize,
    def: Option<&N>,
    recurse: bool,
    retyped: &mut Retyped,
) -> Result<()> {
    let name = &relation.columns[at].name;
    if relation.columns[at].inherited > 0 {
        bail!(INVALID_TABLE_DEFINITION, "cannot alter inherited column \"{name}\"");
    }
    if !recurse && has_children(ddl, relation) {
        bail!(INVALID_TABLE_DEFINITION, "type of inherited column \"{name}\" must be changed in child tables too");
    }
    let members = ddl.catalog().descendants(relation.oid);
    for oid in &members {
        ddl.lock_relation(*oid, RelationLockMode::AccessExclusive)?;
        let member = ddl.relation(*oid)?;
        let Some(at) = member.columns.iter().position(|c| !c.dropped && c.name == *name) else { continue };
        let count = member.parents.iter().filter(|p| members.contains(p)).count();
        if member.columns[at].inherited as usize > count {
            bail!(INVALID_TABLE_DEFINITION, "cannot alter inherited column \"{name}\" of relation \"{}\"", member.name);
        }
        refuse_partition_column(ddl, &member, at, "alter")?;
        retyped.add(*oid, changed_type(ddl, &member, at, def)?);
    }
    Ok(())
}
