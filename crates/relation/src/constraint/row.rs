//! Table constraints: creation, validation of existing rows, dropping.

use std::sync::Arc;

use melba_catalog::foreign_keys::{MULTIRANGES_OVERLAP, RANGES_OVERLAP};
use melba_catalog::{Catalog, Column, Constraint as Row, ConstraintKind, FIRES_ON_ORIGIN, Object, Relation, TypeKind, classes};
use melba_definition::context::Ddl;
use melba_definition::expression::equality_operator;
use melba_definition::naming::unused_constraint_name;
use melba_fmgr::order::is_same_equality;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::Constraint;

use crate::table::relation::put_relation;

/// A foreign key as written, names resolved against the referencing table.
pub struct ForeignKeyRequest<'s> {
    pub constraint: &'s Constraint,
    pub columns: Vec<i16>,
    /// The partitions get it, too.
    pub recurse: bool,
}

/// Resolves column names to numbers.
pub fn column_numbers(relation: &Relation, names: &[&str], in_key: bool) -> Result<Vec<i16>> {
    names
        .iter()
        .map(|name| match relation.columns.iter().position(|c| !c.dropped && *c.name == **name) {
            Some(at) => Ok(at as i16 + 1),
            None if in_key => bail!(UNDEFINED_COLUMN, "column \"{name}\" named in key does not exist"),
            None => bail!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{}\" does not exist", relation.name),
        })
        .collect()
}

/// Marks a column NOT NULL and records the constraint, unless it has one. That existing rows have no NULL, the caller
/// has checked.
pub fn add_not_null(ddl: &Ddl<'_>, table: Oid, column: usize, name: Option<String>, no_inherit: bool) -> Result<()> {
    put_not_null(ddl, table, column, name, no_inherit, true)
}

/// The same for new rows only: NOT VALID.
pub fn add_not_null_unchecked(ddl: &Ddl<'_>, table: Oid, column: usize, name: Option<String>, no_inherit: bool) -> Result<()> {
    put_not_null(ddl, table, column, name, no_inherit, false)
}

fn put_not_null(ddl: &Ddl<'_>, table: Oid, column: usize, name: Option<String>, no_inherit: bool, validated: bool) -> Result<()> {
    let relation = ddl.relation(table)?;
    let catalog = ddl.catalog();
    let number = column as i16 + 1;
    if relation.is_partitioned() && no_inherit {
        bail!(FEATURE_NOT_SUPPORTED, "not-null constraints on partitioned tables cannot be NO INHERIT");
    }
    if catalog.not_null_constraint(&relation, number).is_some() {
        return Ok(());
    }
    let name = name.unwrap_or_else(|| {
        let column = &relation.columns[column].name;
        unused_constraint_name(&catalog, relation.namespace, &[], &relation.name, Some(column), "not_null")
    });
    let bare = bare_constraint(ddl, &relation, &name, ConstraintKind::NotNull)?;
    let row = Row { no_inherit, validated, columns: vec![number], ..bare };
    let mut columns = relation.columns.to_vec();
    columns[column].not_null = true;
    put_constraint(ddl, Relation { columns: columns.into(), ..(*relation).clone() }, row);
    Ok(())
}

/// A pg_constraint row with everything optional left out; an error when the table has one of that name.
pub fn bare_constraint(ddl: &Ddl<'_>, relation: &Relation, name: &str, kind: ConstraintKind) -> Result<Row> {
    let catalog = ddl.catalog();
    if relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).any(|c| *c.name == *name) {
        bail!(DUPLICATE_OBJECT, "constraint \"{name}\" for relation \"{}\" already exists", relation.name);
    }
    Ok(Row {
        oid: ddl.tx().new_oid(),
        name: name.into(),
        namespace: relation.namespace,
        kind,
        deferrable: false,
        initially_deferred: false,
        enforced: true,
        validated: true,
        relation: relation.oid,
        domain: Oid::INVALID,
        index: Oid::INVALID,
        columns: vec![],
        foreign_key: None,
        expression: None,
        operators: vec![],
        local: true,
        inherited: 0,
        no_inherit: false,
        parent: Oid::INVALID,
        depends_on: vec![],
        check_enabled: FIRES_ON_ORIGIN,
        action_enabled: FIRES_ON_ORIGIN,
    })
}

/// Records a constraint and lists it at its table.
pub fn put_constraint(ddl: &Ddl<'_>, mut relation: Relation, row: Row) {
    relation.constraints.push(row.oid);
    ddl.tx().put(Object::Constraint(Arc::new(row)));
    put_relation(ddl, relation);
}

/// Whether the index of a referenced column can be searched for values of a referencing one: by an operator of its family, or
/// when these are implicitly cast to the index's type.
fn is_key_comparable(ddl: &Ddl<'_>, to: Oid, from: Oid) -> bool {
    let catalog = ddl.catalog();
    let (to, from) = (catalog.base_type(to), catalog.base_type(from));
    let Some(class) = catalog.default_operator_class(classes::BTREE, to) else { return false };
    let in_family = |operator: Oid| catalog.operator_members(operator).any(|m| m.family == class.family);
    let mut equalities = catalog.operators_by_name(classes::PG_CATALOG, "=");
    let becomes_it = || catalog.cast(from, class.input_type).is_some_and(|c| c.context == b'i');
    to == from
        || equalities.any(|o| o.left == class.input_type && o.right == from && in_family(o.oid))
        || from == class.input_type
        || becomes_it()
}

/// The = operator between a referenced and a referencing column.
fn key_equality(ddl: &Ddl<'_>, constraint: &str, from: &Column, to: &Column) -> Result<Oid> {
    let operator = equality_operator(ddl, to.ty, from.ty).filter(|_| is_key_comparable(ddl, to.ty, from.ty));
    operator.or_else(|| class_equality(&ddl.catalog(), from.ty, to.ty)).ok_or_else(|| incomparable(ddl, constraint, from, to))
}

/// The equality of a type's operator class, which may be in no schema of the search path.
fn class_equality(catalog: &Catalog, from: Oid, to: Oid) -> Option<Oid> {
    let ty = catalog.base_type(to);
    let operators = catalog.type_operators(ty);
    (catalog.base_type(from) == ty && operators.btree_family.is_valid() && operators.equal.is_valid()).then_some(operators.equal)
}

fn incomparable(ddl: &Ddl<'_>, constraint: &str, from: &Column, to: &Column) -> DbError {
    let catalog = ddl.catalog();
    err!(DATATYPE_MISMATCH, "foreign key constraint \"{constraint}\" cannot be implemented").detail(format!(
        "Key columns \"{}\" of the referencing table and \"{}\" of the referenced table are of incompatible types: {} \
             and {}.",
        from.name,
        to.name,
        catalog.type_name(from.ty, ddl.path()),
        catalog.type_name(to.ty, ddl.path())
    ))
}

/// The operators by which the columns of a foreign key are compared: equality, and `&&` of a PERIOD, which is the last one.
pub fn key_operators(
    ddl: &Ddl<'_>,
    constraint: &str,
    (relation, columns): (&Relation, &[i16]),
    (referenced, referenced_columns): (&Relation, &[i16]),
    has_period: bool,
) -> Result<Vec<Oid>> {
    let mut operators = Vec::with_capacity(columns.len());
    for (at, (from, to)) in columns.iter().zip(referenced_columns).enumerate() {
        let (from, to) = (&relation.columns[*from as usize - 1], &referenced.columns[*to as usize - 1]);
        refuse_different_equality(ddl, constraint, from, to)?;
        operators.push(match has_period && at + 1 == columns.len() {
            true => period_overlap(ddl, from, to).ok_or_else(|| incomparable(ddl, constraint, from, to))?,
            false => key_equality(ddl, constraint, from, to)?,
        });
    }
    Ok(operators)
}

/// # Errors
/// 42P21 when different texts are equal by one of two columns and not by the other.
fn refuse_different_equality(ddl: &Ddl<'_>, constraint: &str, from: &Column, to: &Column) -> Result<()> {
    let catalog = ddl.catalog();
    if from.collation == to.collation || is_same_equality(&catalog, from.collation, to.collation) {
        return Ok(());
    }
    let name = |oid: Oid| catalog.collation(oid).map_or_else(String::new, |c| c.name.to_string());
    Err(err!(COLLATION_MISMATCH, "foreign key constraint \"{constraint}\" cannot be implemented").detail(format!(
        "Key columns \"{}\" of the referencing table and \"{}\" of the referenced table have incompatible collations: \"{}\" and \
             \"{}\".  If either collation is nondeterministic, then both collations have to be the same.",
        from.name,
        to.name,
        name(from.collation),
        name(to.collation)
    )))
}

fn period_overlap(ddl: &Ddl<'_>, from: &Column, to: &Column) -> Option<Oid> {
    let catalog = ddl.catalog();
    let ty = catalog.base_type(to.ty);
    match catalog.type_(ty).filter(|_| catalog.base_type(from.ty) == ty)?.type_kind {
        TypeKind::Range => Some(RANGES_OVERLAP),
        TypeKind::Multirange => Some(MULTIRANGES_OVERLAP),
        _ => None,
    }
}

/// DEFERRABLE and INITIALLY DEFERRED of a constraint.
#[derive(Clone, Copy, Default)]
pub struct Modifiers {
    pub deferrable: bool,
    pub initially_deferred: bool,
}

impl Modifiers {
    pub fn of(c: &Constraint) -> Modifiers {
        Modifiers { deferrable: c.deferrable || c.initdeferred, initially_deferred: c.initdeferred }
    }
}

pub fn check_partitioned_reference(relation: &Relation, referenced: &Relation, recurse: bool) -> Result<()> {
    if relation.is_partitioned() && !recurse {
        let (table, to) = (&relation.name, &referenced.name);
        let what = format!("foreign key on partitioned table \"{table}\" referencing relation \"{to}\"");
        bail!(WRONG_OBJECT_TYPE, "cannot use ONLY for {what}");
    }
    Ok(())
}

/// Names that columns may not have.
pub fn is_system_column(name: &str) -> bool {
    matches!(name, "tableoid" | "cmax" | "xmax" | "cmin" | "xmin" | "ctid")
}

pub fn constraint_of(ddl: &Ddl<'_>, relation: &Relation, name: &str) -> Result<Arc<Row>> {
    let catalog = ddl.catalog();
    let found = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).find(|c| *c.name == *name);
    found.cloned().ok_or_else(|| err!(UNDEFINED_OBJECT, "constraint \"{name}\" of relation \"{}\" does not exist", relation.name))
}
