//! DDL that reads or rewrites a table's rows: filling indexes, validating constraints, changing columns.

use std::sync::Arc;

use melba_catalog::{Column, Persistence, Relation, RelationKind, Storage};
use melba_definition::context::{Ddl, RewriteReason};
use melba_definition::expression::{StoredExpression, Use, stored_expression};
use melba_expression::{Expression, compile_for_table};
use melba_table::{RowCopier, TableTarget, TargetBuilder};
use melba_tree::Expr;
use melba_types::{Datum, DbError, Kind, Oid, Result, SqlState, err, oids};
use pg_query::protobuf::Node;

use crate::index::fill::fill_index;
use crate::partition::identity::topmost;
use crate::sequence::owned_sequence;
use crate::table::column_uses::refuse_used_row_type;
use crate::table::persistence::{access_method, engine_persistence};
use crate::table::relation::put_relation;
use crate::table::rows::{exec_context, scan_rows, table_target};

/// The change of one column by ALTER COLUMN TYPE.
pub struct TypeChange {
    pub at: usize,
    pub column: Column,
    pub using: Option<Node>,
}

/// Sets the default of a column just added in existing rows: without touching them when it is the same for all.
pub fn fill_new_column(ddl: &Ddl<'_>, table: Oid, column: usize) -> Result<()> {
    let relation = ddl.relation(table)?;
    let definition = &relation.columns[column];
    if definition.generated == b'v' || relation.storage == Storage::None {
        return Ok(());
    }
    let catalog = ddl.catalog();
    let ty = catalog.type_(definition.ty);
    let is_domain = ty.is_some_and(|t| t.domain.is_some());
    let has_type_default = is_domain || ty.is_some_and(|t| t.base.as_ref().is_some_and(|base| base.default.is_some()));
    if definition.default.is_none() && definition.identity == 0 && !has_type_default {
        return Ok(());
    }
    let builder = TargetBuilder { catalog: &catalog, session: ddl.session() };
    let target = builder.table(table)?;
    if is_domain && scan_rows(ddl, target.tree, 0, &[], ddl.tx().engine.latest_view().0)?.next_batch()?.is_none() {
        // A domain may refuse a value that no row gets.
        return Ok(());
    }
    let generated = target.generated.iter().find(|(at, _)| *at == column).map(|(_, e)| e.clone());
    let default = match generated {
        Some(expression) => Some(expression),
        // A type may have a default, and a domain may refuse NULL.
        None if has_type_default && definition.identity == 0 => {
            let default = ddl.with_context(|c| melba_analyze::column_default(c, &relation, column))?;
            default.map(|e| compile_for_table(&catalog, Some(ddl.session()), &e)).transpose()?
        }
        None => builder.default(&relation, column)?,
    };
    let ctx = exec_context(ddl);
    if let Some(expression) = &default
        && definition.generated == 0
        && !expression.is_volatile()
    {
        let value = expression.eval_row(&ctx, &[])?;
        let mut columns = relation.columns.to_vec();
        columns[column].missing = value;
        put_relation(ddl, Relation { columns: columns.into(), ..(*relation).clone() });
        return Ok(());
    }
    ddl.rewriting(table, RewriteReason::Default)?;
    let sequence = owned_sequence(ddl, &*topmost(ddl, &relation)?, &definition.name);
    let (view, _pin) = ddl.tx().engine.latest_view();
    let mut rows = scan_rows(ddl, target.tree, relation.columns.len(), &target.missing, view)?;
    while let Some(batch) = rows.next_batch()? {
        for (id, mut row) in batch {
            row[column] = match (&default, &sequence) {
                (Some(expression), _) => expression.eval_row(&ctx, &row)?,
                (None, Some(sequence)) => next_identity(ddl, sequence, definition.kind)?,
                (None, None) => Datum::Null,
            };
            ddl.tx().engine.update(target.tree, id, &target.layout.encode_row(&row))?;
        }
    }
    Ok(())
}

fn next_identity(ddl: &Ddl<'_>, sequence: &Relation, kind: Kind) -> Result<Datum> {
    let Storage::Sequence(id) = sequence.storage else {
        return Err(DbError::internal("sequence without storage"));
    };
    let value = ddl.tx().engine.nextval(melba_engine::SequenceId(id.0))?;
    let out_of_range = |_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
    Ok(match kind {
        Kind::Int2 => Datum::Int2(i16::try_from(value).map_err(out_of_range)?),
        Kind::Int4 => Datum::Int4(i32::try_from(value).map_err(out_of_range)?),
        _ => Datum::Int8(value),
    })
}

/// ALTER COLUMN TYPE: passes every row through the USING expressions (or the assignment casts), all of which see the row as
/// it was, into new storage, unless all values stay as they are. Returns whether they did not: then the indexes are empty.
pub fn change_types(ddl: &Ddl<'_>, table: Oid, changes: &[TypeChange]) -> Result<bool> {
    let relation = ddl.relation(table)?;
    refuse_used_row_type(ddl, &relation)?;
    let mut columns = relation.columns.to_vec();
    let mut transforms: Vec<(usize, Expr)> = Vec::new();
    for TypeChange { at, column, using } in changes {
        let (at, old) = (*at, &relation.columns[*at]);
        columns[at] = column.clone();
        if relation.kind == RelationKind::Composite {
            continue;
        }
        if relation.foreign.is_some() {
            if using.is_some() {
                return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", relation.name));
            }
            columns[at].default = converted_default(ddl, &relation, at, column)?;
            continue;
        }
        if old.generated != 0 {
            let stored = generation_of_type(ddl, &relation, at, column)?;
            columns[at].default = Some(stored.text);
            transforms.extend((old.generated == b's').then_some((at, stored.expr)));
            continue;
        }
        let transform = transform_expression(ddl, &relation, at, column, using.as_ref())?;
        columns[at].default = converted_default(ddl, &relation, at, column)?;
        if !keeps_values(&transform, at, old, column) && !is_wider_varchar(using.as_ref(), old, column) {
            transforms.push((at, transform));
        }
    }
    // A virtual column has no values, but its place in the stored rows.
    let is_held_otherwise = columns.iter().zip(relation.columns.iter()).any(|(new, old)| new.kind != old.kind);
    if transforms.is_empty() && !is_held_otherwise || relation.is_partitioned() || relation.storage == Storage::None {
        put_relation(ddl, Relation { columns: columns.into(), ..(*relation).clone() });
        return Ok(false);
    }
    if transforms.is_empty() {
        rebuild(ddl, &table_target(ddl, table)?, columns, relation.persistence, &[])?;
        return Ok(false);
    }
    let catalog = ddl.catalog();
    let mut compiled: Vec<(usize, Expression)> = Vec::with_capacity(transforms.len());
    for (at, transform) in &transforms {
        compiled.push((*at, compile_for_table(&catalog, Some(ddl.session()), transform)?));
    }
    ddl.rewriting(table, RewriteReason::ColumnType)?;
    let before = table_target(ddl, table)?;
    rebuild(ddl, &before, columns, relation.persistence, &compiled)?;
    Ok(true)
}

/// A generated column's expression, with its value of the column's new type.
fn generation_of_type(ddl: &Ddl<'_>, relation: &Relation, at: usize, column: &Column) -> Result<StoredExpression> {
    let text = relation.columns[at].default.as_deref().unwrap_or_default();
    let node = melba_parse::parse_expression(text)?;
    stored_expression(ddl, &node, relation, Use::Generated, Some(column)).map_err(|_| {
        let ty = ddl.catalog().format_type(column.ty, Some(column.typmod), ddl.path());
        let message = format!("generation expression for column \"{}\" cannot be cast automatically to type {ty}", column.name);
        err!(DATATYPE_MISMATCH, "{message}")
    })
}

fn transform_expression(ddl: &Ddl<'_>, relation: &Relation, at: usize, column: &Column, using: Option<&Node>) -> Result<Expr> {
    let name = &relation.columns[at].name;
    let own_reference;
    let node = match using {
        Some(node) => node,
        None => {
            own_reference = melba_parse::parse_expression(&melba_catalog::quote_ident(name))?;
            &own_reference
        }
    };
    match stored_expression(ddl, node, relation, Use::Transform, Some(column)) {
        Ok(stored) => Ok(stored.expr),
        Err(_) if using.is_none() => {
            let ty = ddl.catalog().format_type(column.ty, Some(column.typmod), ddl.path());
            Err(err!(DATATYPE_MISMATCH, "column \"{name}\" cannot be cast automatically to type {ty}")
                .hint(format!("You might need to specify \"USING {}::{ty}\".", melba_catalog::quote_ident(name))))
        }
        Err(error) if error.sqlstate() == SqlState::DATATYPE_MISMATCH && error.message().starts_with("column ") => {
            let ty = ddl.catalog().format_type(column.ty, Some(column.typmod), ddl.path());
            let message = format!("result of USING clause for column \"{name}\" cannot be cast automatically to type {ty}");
            Err(err!(DATATYPE_MISMATCH, "{message}").hint("You might need to add an explicit cast."))
        }
        Err(error) => Err(error),
    }
}

fn converted_default(ddl: &Ddl<'_>, relation: &Relation, at: usize, column: &Column) -> Result<Option<Arc<str>>> {
    let Some(text) = &relation.columns[at].default else { return Ok(None) };
    let node = melba_parse::parse_expression(text)?;
    let ty = || ddl.catalog().format_type(column.ty, Some(column.typmod), ddl.path());
    let stored = stored_expression(ddl, &node, relation, Use::Default, Some(column)).map_err(|_| {
        err!(DATATYPE_MISMATCH, "default for column \"{}\" cannot be cast automatically to type {}", column.name, ty())
    })?;
    Ok(Some(stored.text))
}

/// Copies a table into new storage with other columns; indexes are filled again. Returns the new descriptor.
pub fn rebuild(
    ddl: &Ddl<'_>,
    before: &TableTarget,
    columns: Vec<Column>,
    persistence: Persistence,
    transforms: &[(usize, Expression)],
) -> Result<Arc<Relation>> {
    let oid = before.relation.oid;
    let kinds: Vec<Kind> = columns.iter().map(|c| c.kind).collect();
    let columns: Vec<Column> = columns.into_iter().map(|c| Column { missing: Datum::Null, ..c }).collect();
    let tree = ddl.tx().engine.create_table_tree(&kinds, engine_persistence(persistence))?;
    let (view, _pin) = ddl.tx().engine.latest_view();
    let mut rows = scan_rows(ddl, before.tree, before.relation.columns.len(), &before.missing, view)?;
    put_relation(
        ddl,
        Relation {
            columns: columns.into(),
            storage: Storage::Tree(tree),
            file_node: ddl.tx().new_oid(),
            stated: None,
            persistence,
            access_method: access_method(persistence),
            ..(*before.relation).clone()
        },
    );
    for index in &before.relation.indexes {
        let index = ddl.relation(*index)?;
        if let Storage::Tree(old) = index.storage {
            ddl.tx().engine.drop_tree(old)?;
        }
        let storage = match index.has_entries() {
            true => Storage::Tree(ddl.tx().engine.create_index_tree(tree, engine_persistence(persistence))?),
            false => Storage::None,
        };
        put_relation(ddl, Relation { storage, persistence, file_node: ddl.tx().new_oid(), stated: None, ..(*index).clone() });
    }
    let ctx = exec_context(ddl);
    let mut copier = RowCopier::new(ctx.catalog(), &*ddl.relation(oid)?, tree);
    while let Some(batch) = rows.next_batch()? {
        ctx.check_interrupt()?;
        for (_, mut row) in batch {
            let dropped = before.relation.columns.iter().enumerate().filter(|(_, c)| c.dropped);
            dropped.for_each(|(at, _)| row[at] = Datum::Null);
            let mut changed: Vec<(usize, Datum)> = Vec::with_capacity(transforms.len());
            for (at, expression) in transforms {
                changed.push((*at, expression.eval_row(&ctx, &row)?));
            }
            changed.into_iter().for_each(|(at, value)| row[at] = value);
            copier.insert(&ctx, &row)?;
        }
    }
    ddl.tx().engine.drop_tree(before.tree)?;
    let relation = ddl.relation(oid)?;
    if transforms.is_empty() {
        for index in &relation.indexes {
            fill_index(ddl, *index, false)?;
        }
    }
    Ok(relation)
}

/// Whether the expression is the column itself, and its values and their order are the same in both types.
fn keeps_values(transform: &Expr, at: usize, old: &Column, new: &Column) -> bool {
    let mut expression = transform;
    while let Expr::Relabel { arg, .. } = expression {
        expression = arg;
    }
    let is_column = matches!(expression, Expr::Var(var) if var.column as usize == at + 1);
    is_column && old.kind == new.kind && old.collation == new.collation
}

/// Whether a varchar only gets longer.
fn is_wider_varchar(using: Option<&Node>, old: &Column, new: &Column) -> bool {
    let varchars = old.ty == oids::VARCHAR && new.ty == oids::VARCHAR && old.collation == new.collation;
    using.is_none() && varchars && old.typmod >= 0 && (new.typmod < 0 || new.typmod >= old.typmod)
}
