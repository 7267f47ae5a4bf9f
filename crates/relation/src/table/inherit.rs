//! Columns and constraints that a new table gets from its parents: columns, defaults, NOT NULL and CHECK constraints, each merged
//! by name with those of other parents and with its own.

use std::sync::Arc;

use melba_catalog::{Column, Constraint as Row, ConstraintKind, ObjectAddress, Persistence, Relation, RelationKind};
use melba_definition::context::Ddl;
use melba_definition::expression::{Use, stored_expression};
use melba_definition::naming::unused_constraint_name;
use melba_engine::RelationLockMode;
use melba_parse::nodes::{inner, strings};
use melba_toast::Method;
use melba_types::{Datum, DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{ConstrType, Constraint, Node};

use crate::constraint::row::{bare_constraint, put_constraint};
use crate::table::builder::TableBuilder;

/// Parents of a new table, and the columns and constraints that it takes over from them.
#[derive(Default)]
pub struct Inheritance {
    pub parents: Vec<Arc<Relation>>,
    columns: Vec<InheritedColumn>,
    checks: Vec<InheritedCheck>,
    /// The parent is a partitioned table, and this is one of its partitions.
    pub is_partition: bool,
}

struct InheritedColumn {
    column: Column,
    /// Of the first parent that has one.
    not_null: Option<Arc<str>>,
    /// Parents whose NOT NULL is inherited.
    not_nulls: i16,
    /// Parents have different defaults.
    conflict: bool,
}

struct InheritedCheck {
    row: Arc<Row>,
    count: i16,
}

/// Opens and merges the parents of a new table.
pub fn inheritance(ddl: &Ddl<'_>, names: &[Node], is_partition: bool, persistence: Persistence) -> Result<Inheritance> {
    let mut inheritance = Inheritance { is_partition, ..Inheritance::default() };
    for node in names {
        let N::RangeVar(name) = inner(node)? else { continue };
        let mode = if is_partition { RelationLockMode::AccessExclusive } else { RelationLockMode::ShareUpdateExclusive };
        let parent = ddl.open_relation(name, mode)?;
        check_parent(ddl, &parent, is_partition, persistence)?;
        if inheritance.parents.iter().any(|p| p.oid == parent.oid) {
            bail!(DUPLICATE_TABLE, "relation \"{}\" would be inherited from more than once", parent.name);
        }
        inherit_columns(ddl, &mut inheritance.columns, &parent)?;
        inherit_checks(ddl, &mut inheritance.checks, &parent)?;
        inheritance.parents.push(parent);
    }
    Ok(inheritance)
}

fn check_parent(ddl: &Ddl<'_>, parent: &Relation, is_partition: bool, persistence: Persistence) -> Result<()> {
    let name = &parent.name;
    if parent.foreign.is_some() && !is_partition {
        return Err(DbError::unsupported("inheriting from a foreign table"));
    }
    if !matches!(parent.kind, RelationKind::Table | RelationKind::PartitionedTable) {
        if is_partition {
            bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not partitioned");
        }
        bail!(WRONG_OBJECT_TYPE, "inherited relation \"{name}\" is not a table or foreign table");
    }
    if parent.oid.0 < melba_catalog::classes::FIRST_USER_OID {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{name}\" is a system catalog");
    }
    if is_partition != parent.is_partitioned() {
        if is_partition {
            bail!(INVALID_OBJECT_DEFINITION, "\"{name}\" is not partitioned");
        }
        bail!(WRONG_OBJECT_TYPE, "cannot inherit from partitioned table \"{name}\"");
    }
    if !is_partition && parent.is_partition() {
        bail!(WRONG_OBJECT_TYPE, "cannot inherit from partition \"{name}\"");
    }
    if parent.persistence == Persistence::Temporary && persistence != Persistence::Temporary {
        if is_partition {
            bail!(WRONG_OBJECT_TYPE, "cannot create a permanent relation as partition of temporary relation \"{name}\"");
        }
        bail!(WRONG_OBJECT_TYPE, "cannot inherit from temporary relation \"{name}\"");
    }
    if is_partition && parent.persistence != Persistence::Temporary && persistence == Persistence::Temporary {
        bail!(WRONG_OBJECT_TYPE, "cannot create a temporary relation as partition of permanent relation \"{name}\"");
    }
    ddl.require_owner(parent.owner, "table", name)
}

fn inherit_columns(ddl: &Ddl<'_>, columns: &mut Vec<InheritedColumn>, parent: &Relation) -> Result<()> {
    let catalog = ddl.catalog();
    for (at, column) in parent.columns.iter().enumerate().filter(|(_, c)| !c.dropped) {
        let constraint = catalog.not_null_constraint(parent, at as i16 + 1).filter(|c| !c.no_inherit);
        let not_null = constraint.map(|c| c.name.clone());
        let Some(known) = columns.iter_mut().find(|c| c.column.name == column.name) else {
            columns.push(InheritedColumn {
                column: Column {
                    not_null: not_null.is_some(),
                    default_oid: if column.default.is_some() { ddl.tx().new_oid() } else { Oid::INVALID },
                    identity: 0,
                    missing: Datum::Null,
                    statistics_target: None,
                    options: vec![],
                    acl: None,
                    inherited: 1,
                    local: false,
                    ..column.clone()
                },
                not_nulls: i16::from(not_null.is_some()),
                not_null,
                conflict: false,
            });
            continue;
        };
        ddl.notice(format!("merging multiple inherited definitions of column \"{}\"", column.name));
        let own = &mut known.column;
        check_same_type(ddl, "inherited column", own, column)?;
        check_same_storage("inherited column", own, column)?;
        own.compression = merged_compression(own, column)?;
        if own.generated != column.generated {
            bail!(DATATYPE_MISMATCH, "inherited column \"{}\" has a generation conflict", column.name);
        }
        own.inherited += 1;
        own.not_null |= not_null.is_some();
        known.not_nulls += i16::from(not_null.is_some());
        known.not_null = known.not_null.take().or(not_null);
        match (&own.default, &column.default) {
            (None, Some(_)) => {
                own.default.clone_from(&column.default);
                own.default_oid = ddl.tx().new_oid();
                own.default_depends_on.clone_from(&column.default_depends_on);
            }
            (Some(a), Some(b)) if a != b => known.conflict = true,
            _ => {}
        }
    }
    Ok(())
}

fn inherit_checks(ddl: &Ddl<'_>, checks: &mut Vec<InheritedCheck>, parent: &Relation) -> Result<()> {
    let catalog = ddl.catalog();
    let own = parent.constraints.iter().filter_map(|c| catalog.constraint(*c));
    for row in own.filter(|c| c.kind == ConstraintKind::Check && !c.no_inherit) {
        match checks.iter_mut().find(|c| c.row.name == row.name) {
            None => checks.push(InheritedCheck { row: row.clone(), count: 1 }),
            Some(known) if known.row.expression == row.expression => {
                known.count += 1;
                if row.enforced && !known.row.enforced {
                    known.row = row.clone();
                }
            }
            Some(_) => bail!(
                DUPLICATE_OBJECT,
                "check constraint name \"{}\" appears multiple times but with different expressions",
                row.name
            ),
        }
    }
    Ok(())
}

fn check_same_type(ddl: &Ddl<'_>, what: &str, a: &Column, b: &Column) -> Result<()> {
    let catalog = ddl.catalog();
    if a.ty != b.ty || a.typmod != b.typmod {
        let shown = |c: &Column| catalog.format_type(c.ty, Some(c.typmod), ddl.path());
        return Err(err!(DATATYPE_MISMATCH, "{what} \"{}\" has a type conflict", b.name).detail(format!(
            "{} versus {}",
            shown(a),
            shown(b)
        )));
    }
    if a.collation != b.collation {
        let shown = |c: &Column| catalog.collation(c.collation).map_or("default".into(), |c| c.name.clone());
        return Err(err!(COLLATION_MISMATCH, "{what} \"{}\" has a collation conflict", b.name).detail(format!(
            "\"{}\" versus \"{}\"",
            shown(a),
            shown(b)
        )));
    }
    Ok(())
}

/// The columns of the new table: the parents', into which its own of the same name are merged, then the others.
pub fn merge_columns(ddl: &Ddl<'_>, inheritance: &mut Inheritance, builder: &mut TableBuilder) -> Result<()> {
    let own = std::mem::take(&mut builder.columns);
    let inherited = inheritance.columns.len();
    let mut columns: Vec<Column> = inheritance.columns.iter().map(|c| c.column.clone()).collect();
    let mut places = Vec::with_capacity(own.len());
    let mut merged = vec![false; inherited];
    for (at, column) in own.into_iter().enumerate() {
        let Some(place) = columns[..inherited].iter().position(|c| c.name == column.name) else {
            places.push(columns.len());
            columns.push(column);
            continue;
        };
        let name = &column.name;
        if !inheritance.is_partition {
            if place == at {
                ddl.notice(format!("merging column \"{name}\" with inherited definition"));
            } else {
                let moved = format!("moving and merging column \"{name}\" with inherited definition");
                let notice = DbError::new(melba_types::SqlState::SUCCESSFUL_COMPLETION, moved)
                    .detail("User-specified column moved to the position of the inherited column.");
                ddl.session().notice(notice.severity(melba_types::Severity::Notice));
            }
            let parent = &columns[place];
            check_same_type(ddl, "column", parent, &column)?;
            if builder.explicit_storage.contains(&at) {
                check_same_storage("column", parent, &column)?;
            }
            columns[place].compression = merged_compression(parent, &column)?;
        }
        let target = &mut columns[place];
        target.local = !inheritance.is_partition;
        target.not_null |= column.not_null;
        target.identity = column.identity;
        merged[place] = true;
        places.push(place);
    }
    move_references(inheritance, builder, &places, &mut columns)?;
    for (inherited, column) in inheritance.columns.iter().zip(&columns) {
        if inherited.conflict && column.default.is_some() {
            let what = if column.generated != 0 { "generation expressions" } else { "default values" };
            let hint = if column.generated != 0 {
                "To resolve the conflict, specify a generation expression explicitly."
            } else {
                "To resolve the conflict, specify a default explicitly."
            };
            return Err(err!(INVALID_COLUMN_DEFINITION, "column \"{}\" inherits conflicting {what}", column.name).hint(hint));
        }
    }
    builder.columns = columns;
    Ok(())
}

/// Constraints and sequences of columns follow the columns to their places. The table's default hides an inherited one.
fn move_references(
    inheritance: &Inheritance,
    builder: &mut TableBuilder,
    places: &[usize],
    columns: &mut [Column],
) -> Result<()> {
    for (column, constraint) in &mut builder.constraints {
        let Some(at) = column else { continue };
        *at = places[*at];
        let target = &mut columns[*at];
        match constraint.contype() {
            ConstrType::ConstrDefault | ConstrType::ConstrGenerated if *at < inheritance.columns.len() => {
                check_generation(target, generation_letter(constraint))?;
                target.default = None;
                target.default_oid = Oid::INVALID;
                target.default_depends_on = vec![];
                target.generated = 0;
            }
            _ => {}
        }
    }
    for (at, ..) in &mut builder.sequences {
        *at = places[*at];
        let target = &mut columns[*at];
        if target.generated != 0 {
            bail!(INVALID_COLUMN_DEFINITION, "column \"{}\" inherits from generated column but specifies identity", target.name);
        }
        target.default = None;
        target.default_oid = Oid::INVALID;
        target.default_depends_on = vec![];
    }
    Ok(())
}

/// Adds to a table the constraints of its parents. `own`: those written for it.
pub fn add_inherited_constraints(
    ddl: &Ddl<'_>,
    table: Oid,
    inheritance: &Inheritance,
    own: &mut Vec<(Option<usize>, Constraint)>,
) -> Result<()> {
    for (at, inherited) in inheritance.columns.iter().enumerate() {
        let Some(parent_name) = &inherited.not_null else { continue };
        let name = &inherited.column.name;
        let is_own = |(column, c): &&(Option<usize>, Constraint)| {
            c.contype() == ConstrType::ConstrNotnull
                && (*column == Some(at) || (column.is_none() && strings(&c.keys).contains(&&**name)))
        };
        let written = own.iter().find(is_own).map(|(_, c)| c);
        if let Some(c) = written.filter(|c| c.is_no_inherit) {
            return Err(err!(DATATYPE_MISMATCH, "cannot define not-null constraint with NO INHERIT on column \"{name}\"")
                .detail("The column has an inherited not-null constraint.")
                .at(c.location));
        }
        let named = written.filter(|c| !c.conname.is_empty()).map(|c| c.conname.clone());
        let local = written.is_some();
        let name = match (named, local) {
            (Some(name), _) => name,
            (None, false) => parent_name.to_string(),
            (None, true) => {
                let (relation, catalog) = (ddl.relation(table)?, ddl.catalog());
                unused_constraint_name(&catalog, relation.namespace, &[], &relation.name, Some(name), "not_null")
            }
        };
        put_inherited_not_null(ddl, table, at, &name, (inherited.not_nulls, local), true)?;
    }
    for inherited in &inheritance.checks {
        let relation = ddl.relation(table)?;
        let same_name = own.iter().position(|(_, c)| c.contype() == ConstrType::ConstrCheck && *c.conname == *inherited.row.name);
        let mut enforced = inherited.row.enforced;
        if let Some(at) = same_name {
            let (_, c) = own.remove(at);
            check_mergeable(ddl, &relation, &inherited.row, &c)?;
            enforced |= c.is_enforced;
            ddl.notice(format!("merging constraint \"{}\" with inherited definition", inherited.row.name));
        }
        let local = same_name.is_some() && !inheritance.is_partition;
        // A new table has no rows that could violate it.
        let row = Row { enforced, validated: enforced, ..(*inherited.row).clone() };
        put_inherited_check(ddl, &relation, &row, inherited.count, local)?;
    }
    Ok(())
}

/// An own CHECK of the name of an inherited one must say the same.
pub fn check_mergeable(ddl: &Ddl<'_>, relation: &Relation, inherited: &Row, c: &Constraint) -> Result<()> {
    let node = c.raw_expr.as_deref().ok_or_else(|| DbError::internal("check without an expression"))?;
    let stored = stored_expression(ddl, node, relation, Use::Check, None)?;
    if inherited.expression.as_ref() != Some(&stored.text) {
        bail!(DUPLICATE_OBJECT, "constraint \"{}\" for relation \"{}\" already exists", c.conname, relation.name);
    }
    if c.is_no_inherit {
        bail!(
            INVALID_OBJECT_DEFINITION,
            "constraint \"{}\" conflicts with inherited constraint on relation \"{}\"",
            c.conname,
            relation.name
        );
    }
    if inherited.enforced && !c.is_enforced {
        bail!(
            INVALID_OBJECT_DEFINITION,
            "constraint \"{}\" conflicts with NOT ENFORCED constraint on relation \"{}\"",
            c.conname,
            relation.name
        );
    }
    Ok(())
}

/// Adds a parent's CHECK to a table that has none of the name.
pub fn put_inherited_check(ddl: &Ddl<'_>, relation: &Relation, parent: &Row, count: i16, local: bool) -> Result<()> {
    let catalog = ddl.catalog();
    let above = catalog.relation(parent.relation).ok_or_else(|| DbError::internal("a check of no table"))?;
    let number = |n: &i16| {
        let name = &above.columns[*n as usize - 1].name;
        relation.columns.iter().position(|c| !c.dropped && c.name == *name).map_or(0, |at| at as i16 + 1)
    };
    let columns: Vec<i16> = parent.columns.iter().map(number).collect();
    let depends_on = parent.depends_on.iter().map(|d| moved_address(d, above, relation)).collect();
    let row = Row {
        expression: parent.expression.clone(),
        columns,
        enforced: parent.enforced,
        validated: parent.validated,
        depends_on,
        local,
        inherited: count,
        ..bare_constraint(ddl, relation, &parent.name, ConstraintKind::Check)?
    };
    put_constraint(ddl, relation.clone(), row);
    Ok(())
}

/// Marks a column NOT NULL as its parents have it. `count`: how many have; `validated`: no row of the table has a NULL there.
pub fn put_inherited_not_null(
    ddl: &Ddl<'_>,
    table: Oid,
    column: usize,
    name: &str,
    (count, local): (i16, bool),
    validated: bool,
) -> Result<()> {
    let relation = ddl.relation(table)?;
    let catalog = ddl.catalog();
    let taken = relation.constraints.iter().filter_map(|c| catalog.constraint(*c)).any(|c| *c.name == *name);
    let name = if taken {
        let column = &relation.columns[column].name;
        let taken = [name.to_owned()];
        unused_constraint_name(&catalog, relation.namespace, &taken, &relation.name, Some(column), "not_null")
    } else {
        name.to_owned()
    };
    let bare = bare_constraint(ddl, &relation, &name, ConstraintKind::NotNull)?;
    let row = Row { columns: vec![column as i16 + 1], inherited: count, local, validated, ..bare };
    let mut columns = relation.columns.to_vec();
    columns[column].not_null = true;
    put_constraint(ddl, Relation { columns: columns.into(), ..(*relation).clone() }, row);
    Ok(())
}

/// The dependency of a stored expression, where it is on columns of the expression's first table.
fn moved_address(address: &ObjectAddress, from: &Relation, to: &Relation) -> ObjectAddress {
    if address.object != from.oid {
        return *address;
    }
    let column = usize::try_from(address.sub - 1).ok().and_then(|at| from.columns.get(at));
    let sub = column.and_then(|c| to.columns.iter().position(|t| t.name == c.name)).map_or(0, |at| at as i32 + 1);
    ObjectAddress { object: to.oid, sub, ..*address }
}

fn storage_word(storage: u8) -> &'static str {
    match storage {
        b'p' => "PLAIN",
        b'e' => "EXTERNAL",
        b'm' => "MAIN",
        _ => "EXTENDED",
    }
}

fn check_same_storage(what: &str, a: &Column, b: &Column) -> Result<()> {
    if a.storage == b.storage {
        return Ok(());
    }
    Err(err!(DATATYPE_MISMATCH, "{what} \"{}\" has a storage parameter conflict", b.name).detail(format!(
        "{} versus {}",
        storage_word(a.storage),
        storage_word(b.storage)
    )))
}

fn compression_word(method: u8) -> &'static str {
    Method::from_letter(method).map_or("default", Method::name)
}

/// The method of a column of which one definition may have none.
fn merged_compression(a: &Column, b: &Column) -> Result<u8> {
    match (a.compression, b.compression) {
        (0, method) | (method, 0) => Ok(method),
        (x, y) if x == y => Ok(x),
        (x, y) => Err(err!(DATATYPE_MISMATCH, "column \"{}\" has a compression method conflict", b.name).detail(format!(
            "{} versus {}",
            compression_word(x),
            compression_word(y)
        ))),
    }
}

/// How a column is generated that has a constraint: `s`, `v`, or 0 for a default.
fn generation_letter(c: &Constraint) -> u8 {
    match (c.contype(), c.generated_kind.as_bytes()) {
        (ConstrType::ConstrGenerated, [letter, ..]) => *letter,
        _ => 0,
    }
}

/// The error of a column that is stored and one over it that is computed when it is read, or the other way round.
pub fn different_generation(code: SqlState, name: &str, above: u8, own: u8) -> DbError {
    let word = |letter| if letter == b's' { "STORED" } else { "VIRTUAL" };
    DbError::new(code, format!("column \"{name}\" inherits from generated column of different kind")).detail(format!(
        "Parent column is {}, child column is {}.",
        word(above),
        word(own)
    ))
}

/// The table's column over an inherited one: both are generated, and in the same way, or neither. `own`: `s`, `v` or 0.
fn check_generation(inherited: &Column, own: u8) -> Result<()> {
    let (name, is_generated) = (&inherited.name, own != 0);
    if inherited.generated != 0 && is_generated && own != inherited.generated {
        return Err(different_generation(SqlState::INVALID_COLUMN_DEFINITION, name, inherited.generated, own));
    }
    if inherited.generated != 0 && !is_generated {
        bail!(INVALID_COLUMN_DEFINITION, "column \"{name}\" inherits from generated column but specifies default");
    }
    if inherited.generated == 0 && is_generated {
        return Err(err!(INVALID_COLUMN_DEFINITION, "child column \"{name}\" specifies generation expression")
            .hint("A child table column cannot be generated unless its parent column is."));
    }
    Ok(())
}
