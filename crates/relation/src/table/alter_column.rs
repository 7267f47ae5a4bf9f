//! ALTER TABLE ... ALTER COLUMN.

use std::sync::Arc;

use melba_catalog::{Column, ObjectAddress, Relation, SequenceInfo, classes};
use melba_definition::context::{Ddl, Dropped};
use melba_definition::expression::{Use, check_compressible, compression_method, storage_strategy, stored_expression};
use melba_engine::RelationLockMode;
use melba_parse::nodes::{option_text, options};
use melba_types::{DbError, Oid, Result, SqlState, bail, err};
use pg_query::protobuf::node::Node as N;
use pg_query::protobuf::{AlterTableCmd, AlterTableType as At, Constraint};

use crate::constraint::add_to_table::VALIDATE_HINT;
use crate::constraint::children::{drop_constraint_from_children, refuse_inherited_constraint};
use crate::constraint::row::is_system_column;
use crate::constraint::validate::set_not_null;
use crate::dependents::drop_addresses;
use crate::partition::identity::{check_identity_change, spread_identity};
use crate::remove::drop_constraint_row;
use crate::sequence::{change_sequence, create_owned_sequence, is_sequence_type, owned_sequence, sequence_options};
use crate::table::children::{change_column, each_child, has_children};
use crate::table::relation::put_relation;
use crate::table::storage_parameters::{ParametersOf, reset_list};

/// The largest value of SET STATISTICS.
const STATISTICS_TARGET_MAX: i16 = 10_000;

/// Runs a subcommand about one column; false when it is another one.
pub fn alter_column_command(
    ddl: &Ddl<'_>,
    relation: &Relation,
    c: &AlterTableCmd,
    def: Option<&N>,
    recurse: bool,
) -> Result<bool> {
    let kind = c.subtype();
    let is_column = matches!(
        kind,
        At::AtColumnDefault
            | At::AtDropNotNull
            | At::AtSetNotNull
            | At::AtDropExpression
            | At::AtSetStatistics
            | At::AtSetOptions
            | At::AtResetOptions
            | At::AtSetStorage
            | At::AtSetCompression
            | At::AtAddIdentity
            | At::AtSetIdentity
            | At::AtDropIdentity
    );
    if !is_column {
        return Ok(false);
    }
    let at = place_of_column(relation, c)?;
    let text = || match def {
        Some(N::String(s)) => s.sval.clone(),
        Some(N::DefElem(d)) => option_text(d).unwrap_or_default(),
        _ => String::new(),
    };
    match kind {
        At::AtColumnDefault => change_default(ddl, relation, at, c)?,
        At::AtSetNotNull => set_not_null(ddl, relation, at, recurse)?,
        At::AtDropNotNull => drop_not_null(ddl, relation, at, recurse)?,
        At::AtDropExpression => drop_expression(ddl, relation, at, c.missing_ok, recurse)?,
        At::AtSetStatistics => {
            let target = statistics_target(ddl, def)?;
            check_has_statistics(relation, at)?;
            change_column(ddl, relation, at, |col| col.statistics_target = target);
        }
        At::AtSetOptions | At::AtResetOptions => change_options(ddl, relation, at, def, kind == At::AtSetOptions)?,
        At::AtSetStorage => {
            let code = storage_strategy(ddl, &text(), &relation.columns[at])?;
            change_column(ddl, relation, at, |col| col.storage = code);
        }
        At::AtSetCompression => {
            let code = compression_method(ddl, &text(), &relation.columns[at])?;
            change_column(ddl, relation, at, |col| col.compression = code);
        }
        _ => {
            check_identity_change(relation, kind, recurse)?;
            alter_identity(ddl, relation, at, c, def)?;
            if relation.is_partitioned() {
                let letter = ddl.relation(relation.oid)?.columns[at].identity;
                spread_identity(ddl, relation.oid, &c.name, letter)?;
            }
        }
    }
    if recurse && matches!(kind, At::AtColumnDefault | At::AtSetStatistics | At::AtSetStorage) {
        alter_childrens_column(ddl, relation, c, def)?;
    }
    Ok(true)
}

/// The place of the column that a subcommand is about.
pub fn place_of_column(relation: &Relation, c: &AlterTableCmd) -> Result<usize> {
    let kind = c.subtype();
    Ok(match relation.columns.iter().position(|col| *col.name == *c.name && !col.dropped) {
        Some(at) => at,
        None if kind == At::AtSetStatistics && c.num > 0 && relation.index.is_none() => {
            bail!(FEATURE_NOT_SUPPORTED, "cannot refer to non-index column by number")
        }
        None if kind == At::AtSetStatistics && c.num > 0 => match relation.columns.get(c.num as usize - 1) {
            Some(_) => c.num as usize - 1,
            None => bail!(UNDEFINED_COLUMN, "column number {} of relation \"{}\" does not exist", c.num, relation.name),
        },
        None if is_system_column(&c.name) => {
            bail!(FEATURE_NOT_SUPPORTED, "cannot alter system column \"{}\"", c.name)
        }
        None => bail!(UNDEFINED_COLUMN, "column \"{}\" of relation \"{}\" does not exist", c.name, relation.name),
    })
}

/// Passes changes that children share on to them unchanged. A column known by its number is an index's.
fn alter_childrens_column(ddl: &Ddl<'_>, relation: &Relation, c: &AlterTableCmd, def: Option<&N>) -> Result<()> {
    if !c.name.is_empty() {
        each_child(ddl, relation, RelationLockMode::AccessExclusive, |child| {
            alter_column_command(ddl, &child, c, def, true).map(drop)
        })?;
    }
    Ok(())
}

/// SET STATISTICS; `None`: the default.
pub fn statistics_target(ddl: &Ddl<'_>, def: Option<&N>) -> Result<Option<i16>> {
    let Some(N::Integer(i)) = def else { return Ok(None) };
    match i.ival {
        ..-1 => bail!(INVALID_PARAMETER_VALUE, "statistics target {} is too low", i.ival),
        -1 => Ok(None),
        target if target > i32::from(STATISTICS_TARGET_MAX) => {
            let message = format!("lowering statistics target to {STATISTICS_TARGET_MAX}");
            ddl.warning(SqlState::INVALID_PARAMETER_VALUE, message);
            Ok(Some(STATISTICS_TARGET_MAX))
        }
        target => Ok(Some(target as i16)),
    }
}

fn change_default(ddl: &Ddl<'_>, relation: &Relation, at: usize, c: &AlterTableCmd) -> Result<()> {
    let column = &relation.columns[at];
    if column.identity != 0 {
        let error = err!(SYNTAX_ERROR, "column \"{}\" of relation \"{}\" is an identity column", column.name, relation.name);
        return Err(match c.def {
            None => error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."),
            Some(_) => error,
        });
    }
    if column.generated != 0 {
        let error = err!(SYNTAX_ERROR, "column \"{}\" of relation \"{}\" is a generated column", column.name, relation.name);
        return Err(match (&c.def, column.generated) {
            (Some(_), _) => error.hint("Use ALTER TABLE ... ALTER COLUMN ... SET EXPRESSION instead."),
            (None, b's') => error.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."),
            (None, _) => error,
        });
    }
    match c.def.as_deref() {
        None => {
            let address = ObjectAddress { class: classes::PG_ATTRDEF, object: column.default_oid, sub: 0 };
            if column.default_oid.is_valid() {
                ddl.dropping(&[Dropped { address, original: true, normal: false }]);
            }
            change_column(ddl, relation, at, forget_default);
        }
        Some(node) => {
            let stored = stored_expression(ddl, node, relation, Use::Default, Some(column))?;
            if stored.is_null() {
                change_column(ddl, relation, at, forget_default);
                return Ok(());
            }
            let oid = ddl.tx().new_oid();
            change_column(ddl, relation, at, |col| {
                col.default = Some(stored.text);
                col.default_oid = oid;
                col.default_depends_on = stored.depends_on;
            });
        }
    }
    Ok(())
}

fn drop_not_null(ddl: &Ddl<'_>, relation: &Relation, at: usize, recurse: bool) -> Result<()> {
    let catalog = ddl.catalog();
    let column = &relation.columns[at];
    let number = at as i16 + 1;
    let primary = relation.indexes.iter().filter_map(|i| catalog.relation(*i)?.index.as_ref());
    if primary.clone().any(|i| i.primary && i.keys.iter().any(|k| k.column == number)) {
        bail!(INVALID_TABLE_DEFINITION, "column \"{}\" is in a primary key", column.name);
    }
    if column.identity != 0 {
        bail!(SYNTAX_ERROR, "column \"{}\" of relation \"{}\" is an identity column", column.name, relation.name);
    }
    match catalog.not_null_constraint(relation, number) {
        Some(constraint) => {
            if relation.is_partition() && constraint.inherited > 0 {
                bail!(INVALID_TABLE_DEFINITION, "column \"{}\" is marked NOT NULL in parent table", column.name);
            }
            refuse_inherited_constraint(relation, constraint)?;
            let address = ObjectAddress { class: classes::PG_CONSTRAINT, object: constraint.oid, sub: 0 };
            ddl.dropping(&[Dropped { address, original: true, normal: false }]);
            drop_constraint_from_children(ddl, relation, constraint, recurse)?;
            drop_constraint_row(ddl, constraint)?;
        }
        None => change_column(ddl, relation, at, |col| col.not_null = false),
    }
    Ok(())
}

fn drop_expression(ddl: &Ddl<'_>, relation: &Relation, at: usize, missing_ok: bool, recurse: bool) -> Result<()> {
    let column = &relation.columns[at];
    if !recurse && has_children(ddl, relation) {
        bail!(FEATURE_NOT_SUPPORTED, "ALTER TABLE / DROP EXPRESSION must be applied to child tables too");
    }
    if column.inherited > 0 {
        bail!(INVALID_TABLE_DEFINITION, "cannot drop generation expression from inherited column");
    }
    if column.generated == 0 {
        let message = format!("column \"{}\" of relation \"{}\" is not a generated column", column.name, relation.name);
        if missing_ok {
            ddl.notice(format!("{message}, skipping"));
            return Ok(());
        }
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}");
    }
    if column.generated == b'v' {
        return Err(err!(FEATURE_NOT_SUPPORTED, "ALTER TABLE / DROP EXPRESSION is not supported for virtual generated columns")
            .detail(format!("Column \"{}\" of relation \"{}\" is a virtual generated column.", column.name, relation.name)));
    }
    let name = &column.name;
    for member in ddl.catalog().descendants(relation.oid) {
        ddl.lock_relation(member, RelationLockMode::AccessExclusive)?;
        let member = ddl.relation(member)?;
        let Some(at) = member.columns.iter().position(|c| !c.dropped && c.name == *name) else { continue };
        change_column(ddl, &member, at, |col| {
            col.generated = 0;
            forget_default(col);
        });
    }
    Ok(())
}

fn change_options(ddl: &Ddl<'_>, relation: &Relation, at: usize, def: Option<&N>, set: bool) -> Result<()> {
    let Some(N::List(list)) = def else { return Ok(()) };
    let column = &relation.columns[at];
    if set && options(&list.items).any(|def| def.defname == "compression_level") {
        check_compressible(ddl, column.ty)?;
    }
    let changed = if set {
        ParametersOf::Column.changed_list(&column.options, &list.items)?
    } else {
        reset_list(&column.options, &list.items)?
    };
    change_column(ddl, relation, at, |column| column.options = changed);
    Ok(())
}

/// Refuses a column of a type that has the relation's own rows in it.
pub fn refuse_own_rows(ddl: &Ddl<'_>, relation: &Relation, ty: Oid) -> Result<()> {
    let catalog = ddl.catalog();
    let (mut todo, mut at) = (vec![ty], 0);
    while let Some(ty) = todo.get(at).copied() {
        at += 1;
        if relation.row_type.is_valid() && ty == relation.row_type {
            bail!(INVALID_TABLE_DEFINITION, "composite type {} cannot be made a member of itself", relation.name);
        }
        let Some(entry) = catalog.type_(ty) else { continue };
        let columns = catalog.relation(entry.relation).into_iter().flat_map(|r| r.columns.iter());
        let parts = columns.filter(|c| !c.dropped).map(|c| c.ty);
        let inner = [entry.element, entry.domain.as_ref().map_or(Oid::INVALID, |d| d.base)];
        for part in parts.chain(inner).chain(entry.range.iter().map(|r| r.subtype)) {
            if part.0 >= classes::FIRST_USER_OID && !todo.contains(&part) {
                todo.push(part);
            }
        }
    }
    Ok(())
}

fn add_identity(ddl: &Ddl<'_>, relation: &Relation, at: usize, constraint: &Constraint) -> Result<()> {
    let column = &relation.columns[at];
    if !is_sequence_type(column.ty) {
        bail!(INVALID_PARAMETER_VALUE, "identity column type must be smallint, integer, or bigint");
    }
    if !column.not_null {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "column \"{}\" of relation \"{}\" must be declared NOT NULL before identity can be added",
            column.name,
            relation.name
        );
    }
    let catalog = ddl.catalog();
    if let Some(own) = catalog.not_null_constraint(relation, at as i16 + 1).filter(|c| !c.validated) {
        let message = format!("incompatible NOT VALID constraint \"{}\" on relation \"{}\"", own.name, relation.name);
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{message}").hint(VALIDATE_HINT));
    }
    if column.identity != 0 {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "column \"{}\" of relation \"{}\" is already an identity column",
            column.name,
            relation.name
        );
    }
    if column.default.is_some() {
        bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "column \"{}\" of relation \"{}\" already has a default value",
            column.name,
            relation.name
        );
    }
    let options = sequence_options(ddl, &constraint.options, Some(column.ty))?;
    let letter = constraint.generated_when.as_bytes().first().copied().unwrap_or(b'a');
    change_column(ddl, relation, at, |col| col.identity = letter);
    create_owned_sequence(ddl, "ALTER TABLE", relation.oid, at, options, true)
}

fn alter_identity(ddl: &Ddl<'_>, relation: &Relation, at: usize, c: &AlterTableCmd, def: Option<&N>) -> Result<()> {
    let column = &relation.columns[at];
    let not_identity = || format!("column \"{}\" of relation \"{}\" is not an identity column", column.name, relation.name);
    match (c.subtype(), def) {
        (At::AtAddIdentity, Some(N::Constraint(constraint))) => add_identity(ddl, relation, at, constraint),
        (At::AtSetIdentity, Some(N::List(list))) => {
            if column.identity == 0 {
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{}", not_identity());
            }
            let mut letter = column.identity;
            let mut rest = Vec::new();
            for node in &list.items {
                match node.node.as_ref() {
                    Some(N::DefElem(d)) if d.defname == "generated" => {
                        letter = match d.arg.as_ref().and_then(|a| a.node.as_ref()) {
                            Some(N::Integer(i)) => i.ival as u8,
                            _ => letter,
                        };
                    }
                    _ => rest.push(node.clone()),
                }
            }
            change_column(ddl, relation, at, |col| col.identity = letter);
            match owned_sequence(ddl, relation, &column.name) {
                Some(sequence) if !rest.is_empty() => change_sequence(ddl, &sequence, &sequence_options(ddl, &rest, None)?),
                _ => Ok(()),
            }
        }
        (At::AtDropIdentity, _) => {
            if column.identity == 0 {
                if c.missing_ok {
                    ddl.notice(format!("{}, skipping", not_identity()));
                    return Ok(());
                }
                bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{}", not_identity());
            }
            let sequence = owned_sequence(ddl, relation, &column.name);
            change_column(ddl, relation, at, |col| col.identity = 0);
            if let Some(sequence) = sequence {
                let info = sequence.sequence.as_ref().map(|s| SequenceInfo { identity: false, ..(**s).clone() });
                put_relation(ddl, Relation { sequence: info.map(Arc::new), ..(*sequence).clone() });
                let address = ObjectAddress { class: classes::PG_CLASS, object: sequence.oid, sub: 0 };
                drop_addresses(ddl, &[address], true)?;
            }
            Ok(())
        }
        _ => Err(DbError::unsupported("this change of an identity column")),
    }
}

fn forget_default(column: &mut Column) {
    column.default = None;
    column.default_oid = Oid::INVALID;
    column.default_depends_on = vec![];
}

/// In an index, only expressions have separate statistics.
fn check_has_statistics(relation: &Relation, at: usize) -> Result<()> {
    let Some(index) = &relation.index else { return Ok(()) };
    let (column, name) = (&relation.columns[at].name, &relation.name);
    match index.keys.get(at) {
        None => bail!(FEATURE_NOT_SUPPORTED, "cannot alter statistics on included column \"{column}\" of index \"{name}\""),
        Some(key) if key.column != 0 => {
            let message = format!("cannot alter statistics on non-expression column \"{column}\" of index \"{name}\"");
            Err(err!(FEATURE_NOT_SUPPORTED, "{message}").hint("Alter statistics on table column instead."))
        }
        Some(_) => Ok(()),
    }
}
