//! Constraints of a table definition: checks, keys and foreign keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use melba_catalog::{Catalog, Column, Constraint as Row, ConstraintKind, ForeignKeyInfo, Relation, RelationKind, acl, classes};
use melba_definition::context::Ddl;
use melba_definition::expression::{Use, stored_expression};
use melba_definition::naming::{column_part, unused_constraint_name, unused_relation_name};
use melba_engine::RelationLockMode;
use melba_fmgr::order;
use melba_parse::nodes::strings;
use melba_types::{DbError, Oid, Result, bail, err};
use pg_query::protobuf::{ConstrType, Constraint};

use crate::constraint::exclusion::{add_exclusion, check_partitioned_operators, period_operators};
use crate::constraint::row::{
    ForeignKeyRequest, Modifiers, add_not_null, bare_constraint, check_partitioned_reference, column_numbers, is_system_column,
    key_operators, put_constraint,
};
use crate::index::build::build_index;
use crate::index::create::invalidate_partitioned_index;
use crate::index::request::{AccessMethod, IndexRequest, KeyRequest};
use crate::partition::foreign_key::pass_foreign_key_on;
use crate::partition::index::index_partitions;
use crate::partition::referenced::add_referenced_parts;
use crate::table::persistence::check_foreign_key_persistence;
use crate::table::relation::put_relation;
use crate::table::rows::{check_excluded_rows, check_no_nulls, validate_foreign_key};
use crate::table::storage_parameters::ParametersOf;

/// Adds constraints to a table in the order PostgreSQL does: defaults and generated columns, checks and NOT NULLs,
/// indexes (the primary key first), foreign keys.
pub fn add_constraints(ddl: &Ddl<'_>, table: Oid, constraints: &[(Option<usize>, Constraint)]) -> Result<()> {
    add_constraints_to(ddl, table, constraints, true)
}

/// `recurse`: keys are added to partitions, too.
pub fn add_constraints_to(ddl: &Ddl<'_>, table: Oid, constraints: &[(Option<usize>, Constraint)], recurse: bool) -> Result<()> {
    use ConstrType::*;
    let of = |types: &'static [ConstrType]| constraints.iter().filter(move |(_, c)| types.contains(&c.contype()));
    for (column, c) in of(&[ConstrDefault, ConstrGenerated]) {
        let column = column.ok_or_else(|| DbError::internal("default without a column"))?;
        set_column_expression(ddl, table, column, c)?;
    }
    for (column, c) in of(&[ConstrCheck]) {
        add_check(ddl, table, *column, c)?;
    }
    merge_not_nulls(ddl, table, constraints)?;
    if let Some((_, second)) = of(&[ConstrPrimary]).nth(1) {
        let name = ddl.relation(table)?.name.clone();
        return Err(
            err!(INVALID_TABLE_DEFINITION, "multiple primary keys for table \"{name}\" are not allowed").at(second.location)
        );
    }
    let keys = of(&[ConstrPrimary]).chain(of(&[ConstrUnique, ConstrExclusion]));
    for (column, c) in &without_repetitions(&*ddl.relation(table)?, keys) {
        match c.contype() {
            ConstrExclusion => add_exclusion(ddl, table, c, (c.deferrable || c.initdeferred, c.initdeferred), recurse)?,
            _ => add_key(ddl, table, *column, c, Modifiers::of(c), recurse)?,
        }
    }
    for (column, c) in of(&[ConstrForeign]) {
        let columns = match column {
            Some(column) => vec![*column as i16 + 1],
            None => foreign_key_columns(&*ddl.relation(table)?, &strings(&c.fk_attrs))?,
        };
        add_foreign_key(ddl, table, &ForeignKeyRequest { constraint: c, columns, recurse }, Modifiers::of(c))?;
    }
    Ok(())
}

/// The keys without those that say the same as one before, which takes their name if it has none (transformIndexConstraints).
fn without_repetitions<'a>(
    relation: &Relation,
    keys: impl Iterator<Item = &'a (Option<usize>, Constraint)>,
) -> Vec<(Option<usize>, Constraint)> {
    let columns = |column: Option<usize>, c: &Constraint| match column {
        Some(column) => vec![relation.columns[column].name.to_string()],
        None => strings(&c.keys).into_iter().map(str::to_owned).collect::<Vec<_>>(),
    };
    let index = |(column, c): &(Option<usize>, Constraint)| {
        let timing = (c.deferrable || c.initdeferred, c.initdeferred);
        let including: Vec<String> = strings(&c.including).into_iter().map(str::to_owned).collect();
        (columns(*column, c), including, c.nulls_not_distinct, timing, c.without_overlaps)
    };
    let is_plain = |c: &Constraint| c.contype() != ConstrType::ConstrExclusion && c.indexname.is_empty();
    let mut kept: Vec<(Option<usize>, Constraint)> = Vec::new();
    for key in keys {
        match kept.iter_mut().find(|before| is_plain(&before.1) && is_plain(&key.1) && index(before) == index(key)) {
            Some(before) if before.1.conname.is_empty() => before.1.conname = key.1.conname.clone(),
            Some(_) => {}
            None => kept.push(key.clone()),
        }
    }
    kept
}

/// The columns of a foreign key, on either side.
fn foreign_key_columns(relation: &Relation, names: &[&str]) -> Result<Vec<i16>> {
    let number = |name: &&str| match relation.number_of(name) {
        Some(number) => Ok(number),
        None if is_system_column(name) => bail!(FEATURE_NOT_SUPPORTED, "system columns cannot be used in foreign keys"),
        None => bail!(UNDEFINED_COLUMN, "column \"{name}\" referenced in foreign key constraint does not exist"),
    };
    names.iter().map(number).collect()
}

/// The columns of ON DELETE SET, each of them once.
fn delete_set_columns(relation: &Relation, columns: &[i16], c: &Constraint) -> Result<Vec<i16>> {
    let mut set_columns = foreign_key_columns(relation, &strings(&c.fk_del_set_cols))?;
    let mut seen = BTreeSet::new();
    set_columns.retain(|column| seen.insert(*column));
    if let Some(stranger) = set_columns.iter().find(|n| !columns.contains(n)) {
        let name = &relation.columns[*stranger as usize - 1].name;
        bail!(INVALID_COLUMN_REFERENCE, "column \"{name}\" referenced in ON DELETE SET action must be part of foreign key");
    }
    Ok(set_columns)
}

/// 42601 for an action that would assign to a generated column.
fn refuse_generated_actions(relation: &Relation, columns: &[i16], c: &Constraint) -> Result<()> {
    if columns.iter().all(|number| relation.columns[*number as usize - 1].generated == 0) {
        return Ok(());
    }
    let message = |event| format!("invalid {event} action for foreign key constraint containing generated column");
    if matches!(&*c.fk_upd_action, "n" | "d" | "c") {
        bail!(SYNTAX_ERROR, "{}", message("ON UPDATE"));
    }
    if matches!(&*c.fk_del_action, "n" | "d") {
        bail!(SYNTAX_ERROR, "{}", message("ON DELETE"));
    }
    Ok(())
}

/// Virtual generated columns are of built-in types only, as in PostgreSQL.
fn check_virtual_type(ddl: &Ddl<'_>, column: &Column) -> Result<()> {
    let (name, catalog) = (&column.name, ddl.catalog());
    if catalog.type_(column.ty).is_some_and(|t| t.domain.is_some()) {
        bail!(FEATURE_NOT_SUPPORTED, "virtual generated column \"{name}\" cannot have a domain type");
    }
    if column.ty.0 >= classes::FIRST_USER_OID {
        return Err(err!(FEATURE_NOT_SUPPORTED, "virtual generated column \"{name}\" cannot have a user-defined type")
            .detail("Virtual generated columns that make use of user-defined types are not yet supported."));
    }
    Ok(())
}

/// DEFAULT expr or GENERATED ALWAYS AS (expr).
pub fn set_column_expression(ddl: &Ddl<'_>, table: Oid, column: usize, c: &Constraint) -> Result<()> {
    let relation = ddl.relation(table)?;
    let mut columns = relation.columns.to_vec();
    let node = c.raw_expr.as_deref().ok_or_else(|| DbError::internal("default without an expression"))?;
    let generated = c.contype() == ConstrType::ConstrGenerated;
    let is_virtual = generated && c.generated_kind == "v";
    if is_virtual {
        check_virtual_type(ddl, &columns[column])?;
    }
    if columns[column].default.is_some() {
        let name = &columns[column].name;
        if generated || columns[column].generated != 0 {
            bail!(
                SYNTAX_ERROR,
                "both default and generation expression specified for column \"{name}\" of table \"{}\"",
                relation.name
            );
        }
        bail!(SYNTAX_ERROR, "multiple default values specified for column \"{name}\" of table \"{}\"", relation.name);
    }
    if columns[column].identity != 0 {
        bail!(
            SYNTAX_ERROR,
            "both default and identity specified for column \"{}\" of table \"{}\"",
            columns[column].name,
            relation.name
        );
    }
    let usage = if generated { Use::Generated } else { Use::Default };
    let stored = stored_expression(ddl, node, &relation, usage, Some(&columns[column]))?;
    if !generated && stored.is_null() {
        return Ok(());
    }
    if generated {
        columns[column].generated = if is_virtual { b'v' } else { b's' };
    }
    columns[column].default = Some(stored.text);
    columns[column].default_oid = ddl.tx().new_oid();
    columns[column].default_depends_on = stored.depends_on;
    put_relation(ddl, Relation { columns: columns.into(), ..(*relation).clone() });
    Ok(())
}

/// One named NOT NULL constraint a column (PostgreSQL 18 lists them in pg_constraint).
fn merge_not_nulls(ddl: &Ddl<'_>, table: Oid, constraints: &[(Option<usize>, Constraint)]) -> Result<()> {
    let relation = ddl.relation(table)?;
    let mut named: Vec<(usize, Option<String>, bool)> = Vec::new();
    for (column, c) in constraints {
        let at = match (c.contype(), column) {
            (ConstrType::ConstrNotnull, Some(column)) => vec![*column],
            (ConstrType::ConstrNotnull, None) => {
                column_numbers(&relation, &strings(&c.keys), false)?.iter().map(|n| *n as usize - 1).collect()
            }
            (ConstrType::ConstrPrimary, Some(column)) => vec![*column],
            (ConstrType::ConstrPrimary, None) if c.indexname.is_empty() => {
                column_numbers(&relation, &strings(&c.keys), true)?.iter().map(|n| *n as usize - 1).collect()
            }
            _ => continue,
        };
        let is_not_null = c.contype() == ConstrType::ConstrNotnull;
        let no_inherit = is_not_null && c.is_no_inherit;
        for column in at {
            let name = (is_not_null && !c.conname.is_empty()).then(|| c.conname.clone());
            let Some(before) = named.iter_mut().find(|n| n.0 == column) else {
                named.push((column, name, no_inherit));
                continue;
            };
            let column = &relation.columns[column].name;
            if before.2 != no_inherit {
                let message = format!("conflicting NO INHERIT declaration for not-null constraint on column \"{column}\"");
                bail!(SYNTAX_ERROR, "{message}");
            }
            match (&before.1, name) {
                (Some(first), Some(second)) if *first != second => {
                    bail!(SYNTAX_ERROR, "conflicting not-null constraint names \"{first}\" and \"{second}\"")
                }
                (None, name) => before.1 = name,
                _ => {}
            }
        }
    }
    for (at, column) in relation.columns.iter().enumerate() {
        if column.not_null && !column.dropped && !named.iter().any(|n| n.0 == at) {
            named.push((at, None, false));
        }
    }
    named.sort_by_key(|n| n.0);
    for (column, name, no_inherit) in named {
        add_not_null(ddl, table, column, name, no_inherit)?;
    }
    Ok(())
}

/// CHECK. Returns the constraint's OID.
pub fn add_check(ddl: &Ddl<'_>, table: Oid, column: Option<usize>, c: &Constraint) -> Result<Oid> {
    let relation = ddl.relation(table)?;
    if relation.is_partitioned() && c.is_no_inherit {
        bail!(INVALID_TABLE_DEFINITION, "cannot add NO INHERIT constraint to partitioned table \"{}\"", relation.name);
    }
    let node = c.raw_expr.as_deref().ok_or_else(|| DbError::internal("check without an expression"))?;
    let stored = stored_expression(ddl, node, &relation, Use::Check, None)?;
    let name = if c.conname.is_empty() {
        // As PostgreSQL: the column's name when the check reads exactly one.
        let single = match stored.columns.as_slice() {
            [one] => Some(&*relation.columns[*one as usize - 1].name),
            _ => column.map(|c| &*relation.columns[c].name).filter(|_| false),
        };
        unused_constraint_name(&ddl.catalog(), relation.namespace, &[], &relation.name, single, "check")
    } else {
        c.conname.clone()
    };
    let row = Row {
        expression: Some(stored.text),
        columns: stored.columns,
        no_inherit: c.is_no_inherit,
        enforced: c.is_enforced,
        validated: !c.skip_validation && c.is_enforced,
        depends_on: stored.depends_on,
        ..bare_constraint(ddl, &relation, &name, ConstraintKind::Check)?
    };
    let oid = row.oid;
    put_constraint(ddl, (*relation).clone(), row);
    Ok(oid)
}

/// PRIMARY KEY or UNIQUE. With `recurse`, partitions get theirs; else they must have their own.
pub fn add_key(
    ddl: &Ddl<'_>,
    table: Oid,
    column: Option<usize>,
    c: &Constraint,
    modifiers: Modifiers,
    recurse: bool,
) -> Result<()> {
    let relation = ddl.relation(table)?;
    let primary = c.contype() == ConstrType::ConstrPrimary;
    let catalog = ddl.catalog();
    if primary && relation.indexes.iter().filter_map(|i| catalog.relation(*i)?.index.as_ref()).any(|i| i.primary) {
        bail!(INVALID_TABLE_DEFINITION, "multiple primary keys for table \"{}\" are not allowed", relation.name);
    }
    if !c.indexname.is_empty() && relation.is_partitioned() {
        bail!(FEATURE_NOT_SUPPORTED, "ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables");
    }
    if !c.indexname.is_empty() {
        return constraint_from_index(ddl, &relation, c, primary, modifiers);
    }
    let columns = match column {
        Some(column) => vec![column as i16 + 1],
        None => column_numbers(&relation, &strings(&c.keys), true)?,
    };
    refuse_repeated_columns(&relation, &columns, primary)?;
    let include = column_numbers(&relation, &strings(&c.including), true)?;
    let names: Vec<&str> = columns.iter().chain(&include).map(|n| &*relation.columns[*n as usize - 1].name).collect();
    let name = match (c.conname.is_empty(), primary) {
        (false, _) => c.conname.clone(),
        (true, true) => unused_relation_name(&catalog, relation.namespace, &relation.name, None, "pkey"),
        (true, false) => unused_relation_name(&catalog, relation.namespace, &relation.name, Some(&column_part(&names)), "key"),
    };
    let kind = if primary { ConstraintKind::PrimaryKey } else { ConstraintKind::Unique };
    let keys: Vec<KeyRequest> = columns.iter().map(|n| KeyRequest::column(*n)).collect();
    let (method, operators) = match c.without_overlaps {
        true => period_operators(ddl, &relation, &keys)?,
        false => (AccessMethod::BTREE, vec![]),
    };
    let bare = Row { operators, columns, ..bare_constraint(ddl, &relation, &name, kind)? };
    check_partitioned_operators(ddl, &relation, &bare)?;
    let request = IndexRequest {
        keys,
        method,
        include,
        unique: true,
        primary,
        nulls_not_distinct: c.nulls_not_distinct,
        constraint: bare.oid,
        deferrable: modifiers.deferrable,
        options: ParametersOf::Index.new_list(&c.options)?,
        ..IndexRequest::named(name)
    };
    let index = build_index(ddl, &relation, request)?;
    let row = Row {
        index,
        deferrable: modifiers.deferrable,
        initially_deferred: modifiers.initially_deferred,
        no_inherit: true,
        ..bare
    };
    put_constraint(ddl, (*ddl.relation(table)?).clone(), row);
    check_excluded_rows(ddl, index)?;
    if recurse {
        return index_partitions(ddl, index);
    }
    invalidate_partitioned_index(ddl, index)
}

fn refuse_repeated_columns(relation: &Relation, columns: &[i16], primary: bool) -> Result<()> {
    let Some(at) = (0..columns.len()).find(|at| columns[..*at].contains(&columns[*at])) else { return Ok(()) };
    let kind = if primary { "primary key" } else { "unique" };
    let name = &relation.columns[columns[at] as usize - 1].name;
    bail!(DUPLICATE_COLUMN, "column \"{name}\" appears twice in {kind} constraint")
}

/// ADD CONSTRAINT ... UNIQUE/PRIMARY KEY USING INDEX.
fn constraint_from_index(ddl: &Ddl<'_>, relation: &Relation, c: &Constraint, primary: bool, modifiers: Modifiers) -> Result<()> {
    let catalog = ddl.catalog();
    let index = relation.indexes.iter().filter_map(|i| catalog.relation(*i)).find(|i| *i.name == *c.indexname);
    let index = index.ok_or_else(|| err!(UNDEFINED_OBJECT, "index \"{}\" does not exist", c.indexname))?;
    let info = index.index.as_ref().ok_or_else(|| DbError::internal("index without definition"))?;
    if info.constraint.is_valid() {
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "index \"{}\" is already associated with a constraint", index.name);
    }
    if !info.unique {
        return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a unique index", index.name)
            .detail("Cannot create a primary key or unique constraint using such an index."));
    }
    if info.predicate.is_some() || info.keys.iter().any(|k| k.column == 0) {
        let what = if info.predicate.is_some() { "is a partial index" } else { "contains expressions" };
        return Err(err!(WRONG_OBJECT_TYPE, "index \"{}\" {what}", index.name)
            .detail("Cannot create a primary key or unique constraint using such an index."));
    }
    let has_default_order = |k: &melba_catalog::IndexKey| {
        let class = catalog.default_operator_class(melba_catalog::classes::BTREE, k.ty);
        class.is_some_and(|class| class.oid == k.opclass) && k.collation == k.natural_collation && !k.descending && !k.nulls_first
    };
    if let Some(at) = info.keys.iter().position(|k| !has_default_order(k)) {
        let number = at + 1;
        return Err(err!(
            WRONG_OBJECT_TYPE,
            "index \"{}\" column number {number} does not have default sorting behavior",
            index.name
        )
        .detail("Cannot create a primary key or unique constraint using such an index.")
        .at(c.location));
    }
    let columns: Vec<i16> = info.keys.iter().map(|k| k.column).collect();
    let name = if c.conname.is_empty() { index.name.to_string() } else { c.conname.clone() };
    let kind = if primary { ConstraintKind::PrimaryKey } else { ConstraintKind::Unique };
    let row = Row {
        columns: columns.clone(),
        index: index.oid,
        deferrable: modifiers.deferrable,
        initially_deferred: modifiers.initially_deferred,
        no_inherit: true,
        ..bare_constraint(ddl, relation, &name, kind)?
    };
    if *index.name != *name {
        ddl.notice(format!("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{name}\"", index.name));
    }
    let info = melba_catalog::IndexInfo { constraint: row.oid, primary, deferrable: modifiers.deferrable, ..(**info).clone() };
    put_relation(ddl, Relation { name: name.into(), index: Some(Arc::new(info)), ..(**index).clone() });
    if primary {
        for column in columns {
            check_no_nulls(ddl, relation.oid, column as usize - 1)?;
            add_not_null(ddl, relation.oid, column as usize - 1, None, false)?;
        }
    }
    put_constraint(ddl, (*ddl.relation(relation.oid)?).clone(), row);
    Ok(())
}

fn add_foreign_key(ddl: &Ddl<'_>, table: Oid, request: &ForeignKeyRequest<'_>, modifiers: Modifiers) -> Result<()> {
    let c = request.constraint;
    let relation = ddl.relation(table)?;
    let name = c.pktable.as_ref().ok_or_else(|| DbError::internal("foreign key without a table"))?;
    let referenced = ddl.open_relation(name, RelationLockMode::ShareRowExclusive)?;
    if !matches!(referenced.kind, RelationKind::Table | RelationKind::PartitionedTable) {
        bail!(WRONG_OBJECT_TYPE, "referenced relation \"{}\" is not a table", referenced.name);
    }
    check_partitioned_reference(&relation, &referenced, request.recurse)?;
    check_foreign_key_persistence(&relation, &referenced)?;
    let has_period = c.fk_with_period || c.pk_with_period;
    if has_period && !c.fk_with_period {
        let message = "foreign key uses PERIOD on the referenced table but not the referencing table";
        bail!(INVALID_FOREIGN_KEY, "{message}");
    }
    let catalog = ddl.catalog();
    let columns = &request.columns;
    let (referenced_columns, index) = referenced_key(ddl, &referenced, c)?;
    if request.columns.iter().any(|number| relation.columns[*number as usize - 1].generated == b'v') {
        bail!(FEATURE_NOT_SUPPORTED, "foreign key constraints on virtual generated columns are not supported");
    }
    refuse_generated_actions(&relation, columns, c)?;
    refuse_period_actions(c)?;
    if columns.len() != referenced_columns.len() {
        bail!(INVALID_FOREIGN_KEY, "number of referencing and referenced columns for foreign key disagree");
    }
    let constraint_name = if c.conname.is_empty() {
        let names: Vec<&str> = columns.iter().map(|n| &*relation.columns[*n as usize - 1].name).collect();
        unused_constraint_name(&catalog, relation.namespace, &[], &relation.name, Some(&column_part(&names)), "fkey")
    } else {
        c.conname.clone()
    };
    let sides = ((&*relation, &columns[..]), (&*referenced, &referenced_columns[..]));
    let operators = key_operators(ddl, &constraint_name, sides.0, sides.1, has_period)?;
    let set_columns = delete_set_columns(&relation, columns, c)?;
    let letter = |action: &str| action.as_bytes().first().copied().unwrap_or(b'a');
    let info = ForeignKeyInfo {
        referenced_table: referenced.oid,
        referenced_columns,
        on_update: letter(&c.fk_upd_action),
        on_delete: letter(&c.fk_del_action),
        match_type: c.fk_matchtype.as_bytes().first().copied().unwrap_or(b's'),
        delete_set_columns: set_columns,
        operators,
    };
    if info.match_type == b'p' {
        bail!(FEATURE_NOT_SUPPORTED, "MATCH PARTIAL not yet implemented");
    }
    let row = Row {
        columns: columns.clone(),
        index,
        foreign_key: Some(Arc::new(info)),
        deferrable: modifiers.deferrable,
        initially_deferred: modifiers.initially_deferred,
        enforced: c.is_enforced,
        validated: !c.skip_validation && c.is_enforced,
        no_inherit: !relation.is_partitioned(),
        ..bare_constraint(ddl, &relation, &constraint_name, ConstraintKind::ForeignKey)?
    };
    put_constraint(ddl, (*relation).clone(), row.clone());
    add_referenced_parts(ddl, &row, &row.name)?;
    if row.validated {
        validate_foreign_key(ddl, row.oid)?;
    }
    pass_foreign_key_on(ddl, &row)
}

/// 0A000 of actions that a foreign key with PERIOD cannot have.
fn refuse_period_actions(c: &Constraint) -> Result<()> {
    for (action, event) in [(&c.fk_upd_action, "ON UPDATE"), (&c.fk_del_action, "ON DELETE")] {
        if c.fk_with_period && matches!(&**action, "r" | "c" | "n" | "d") {
            bail!(FEATURE_NOT_SUPPORTED, "unsupported {event} action for foreign key constraint using PERIOD");
        }
    }
    Ok(())
}

/// The referenced columns, which the user must be allowed to refer to, and the unique index that covers exactly them.
fn referenced_key(ddl: &Ddl<'_>, referenced: &Relation, c: &Constraint) -> Result<(Vec<i16>, Oid)> {
    if c.fk_with_period && !c.pk_attrs.is_empty() && !c.pk_with_period {
        let message = "foreign key uses PERIOD on the referencing table but not the referenced table";
        bail!(INVALID_FOREIGN_KEY, "{message}");
    }
    let (columns, index) = unique_key(ddl, referenced, &strings(&c.pk_attrs), c.fk_with_period)?;
    if is_without_overlaps(&ddl.catalog(), index) && !c.fk_with_period {
        let message = match c.pk_attrs.is_empty() {
            true => "foreign key uses PERIOD on the referenced table but not the referencing table",
            false => "foreign key must use PERIOD when referencing a primary key using WITHOUT OVERLAPS",
        };
        bail!(INVALID_FOREIGN_KEY, "{message}");
    }
    ddl.require_columns(referenced, &columns, acl::REFERENCES)?;
    Ok((columns, index))
}

/// Whether an index is that of a key WITHOUT OVERLAPS.
fn is_without_overlaps(catalog: &Catalog, index: Oid) -> bool {
    let constraint = catalog.relation(index).and_then(|i| catalog.constraint(i.index.as_ref()?.constraint));
    constraint.is_some_and(|c| c.is_without_overlaps())
}

/// The columns and the unique index that covers exactly them; without names, the primary key.
fn unique_key(ddl: &Ddl<'_>, referenced: &Relation, names: &[&str], has_period: bool) -> Result<(Vec<i16>, Oid)> {
    let catalog = ddl.catalog();
    let mut indexes = referenced.indexes.iter().filter_map(|i| catalog.relation(*i));
    if names.is_empty() {
        let primary = indexes.find(|i| i.index.as_ref().is_some_and(|x| x.primary));
        let Some(primary) = primary else {
            bail!(UNDEFINED_OBJECT, "there is no primary key for referenced table \"{}\"", referenced.name);
        };
        if primary.index.as_ref().is_some_and(|x| x.deferrable) {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot use a deferrable primary key for referenced table \"{}\"",
                referenced.name
            );
        }
        let keys = primary.index.as_ref().map(|i| i.keys.iter().map(|k| k.column).collect()).unwrap_or_default();
        return Ok((keys, primary.oid));
    }
    let columns = foreign_key_columns(referenced, names)?;
    if (1..columns.len()).any(|at| columns[..at].contains(&columns[at])) {
        bail!(INVALID_FOREIGN_KEY, "foreign key referenced-columns list must not contain duplicates");
    }
    let covers = |i: &&Arc<Relation>| {
        i.index.as_ref().is_some_and(|x| {
            let mut keys: Vec<i16> = x.keys.iter().map(|k| k.column).collect();
            let last = keys.last().copied();
            let mut wanted = columns.clone();
            keys.sort_unstable();
            wanted.sort_unstable();
            let fits = !has_period || is_without_overlaps(&catalog, i.oid) && last == columns.last().copied();
            let is_equal = |k: &melba_catalog::IndexKey| order::is_same_equality(&catalog, k.collation, k.natural_collation);
            x.unique && x.valid && x.predicate.is_none() && keys == wanted && fits && x.keys.iter().all(is_equal)
        })
    };
    let mut covering = indexes.filter(covers).peekable();
    let any = covering.peek().is_some();
    match covering.find(|i| i.index.as_ref().is_some_and(|x| !x.deferrable)) {
        Some(index) => Ok((columns, index.oid)),
        None if any => Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot use a deferrable unique constraint for referenced table \"{}\"",
            referenced.name
        )),
        None => Err(err!(
            INVALID_FOREIGN_KEY,
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            referenced.name
        )),
    }
}
