//! Fields of composite values and records.

use melba_types::{Oid, Result, oids};

use super::analyzer::Analyzer;
use super::out_arguments;
use super::record::{Names, RecordOrigin, is_record_reference, origin};
use melba_tree::*;
use melba_types::DbError;
use melba_types::err;

/// The fields of a whole-row Var of record type.
pub fn expand_whole_row(analyzer: &mut Analyzer<'_, '_>, v: &Var) -> Result<Box<RowExpr>> {
    let level = analyzer.level_up(v.levels_up);
    let entry = &level.range_table[v.entry];
    let columns = entry.columns.iter().enumerate().filter(|(_, c)| c.ty.is_valid());
    let fields = columns
        .clone()
        .map(|(i, c)| Expr::Var(Var { column: i as i16 + 1, ty: c.ty, typmod: c.typmod, collation: c.collation, ..v.clone() }));
    let names = columns.clone().map(|(_, c)| c.name.clone()).collect();
    Ok(Box::new(RowExpr { fields: fields.collect(), names, ty: oids::RECORD, explicit: false, location: v.location }))
}

/// The field `name` of a composite value, if it has one.
pub fn project_field(analyzer: &mut Analyzer<'_, '_>, value: &Expr, name: &str) -> Result<Option<Expr>> {
    // A field of a whole row is simply the column.
    if let Expr::Var(v) = value
        && v.column == 0
    {
        let level = analyzer.level_up_mut(v.levels_up);
        let entry = &mut level.range_table[v.entry];
        let found = entry.columns.iter().position(|c| c.ty.is_valid() && &*c.name == name);
        let Some(i) = found else { return Ok(None) };
        super::scope::note_selected(entry, i as i16 + 1);
        let c = &entry.columns[i];
        return Ok(Some(Expr::Var(Var {
            column: i as i16 + 1,
            ty: c.ty,
            typmod: c.typmod,
            collation: c.collation,
            ..v.clone()
        })));
    }
    let Some(columns) = record_columns(analyzer, value)? else {
        return if is_record_reference(value) { Err(unregistered()) } else { Ok(None) };
    };
    let Some(i) = columns.iter().position(|c| c.ty.is_valid() && &*c.name == name) else { return Ok(None) };
    Ok(Some(field_select(value.clone(), i, &columns[i])))
}

/// The columns of a composite value: by its type, or for records by their origin.
pub fn record_columns(analyzer: &mut Analyzer<'_, '_>, value: &Expr) -> Result<Option<Vec<OutputColumn>>> {
    let ty = value.ty();
    if let Some(relation) = analyzer.cx().row_relation(ty) {
        let column = |c: &melba_catalog::Column| OutputColumn {
            name: c.name.clone(),
            ty: if c.dropped { Oid::INVALID } else { c.ty },
            typmod: c.typmod,
            collation: c.collation,
        };
        return Ok(Some(relation.columns.iter().map(column).collect()));
    }
    if ty != oids::RECORD {
        return Ok(None);
    }
    let scopes = analyzer.levels().rev().map(|level| Names { entries: &level.range_table, ctes: &level.ctes }).collect();
    match origin(scopes, value) {
        Some(RecordOrigin::Row(columns)) => Ok(Some(columns)),
        Some(RecordOrigin::Expr(Expr::Row(row))) => Ok(Some(
            row.fields
                .iter()
                .zip(&row.names)
                .map(|(f, n)| OutputColumn { name: n.clone(), ty: f.ty(), typmod: f.typmod(), collation: f.collation() })
                .collect(),
        )),
        Some(RecordOrigin::Expr(Expr::Function(call))) => out_arguments::columns(analyzer.cx(), &call),
        _ => Ok(None),
    }
}

pub fn field_select(value: Expr, i: usize, column: &OutputColumn) -> Expr {
    // A field of ROW(...) is the field itself only when the row has no side effects; keep the selection.
    Expr::FieldSelect {
        arg: Box::new(value),
        field: i as i16 + 1,
        ty: column.ty,
        typmod: column.typmod,
        collation: column.collation,
    }
}

/// The fields of a record are needed, but their types are unknown.
pub fn unregistered() -> DbError {
    err!(WRONG_OBJECT_TYPE, "record type has not been registered")
}
