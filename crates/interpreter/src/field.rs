//! The fields of a frame's records.

use std::sync::Arc;

use melba_catalog::Relation;
use melba_plpgsql::tree::Expression;
use melba_statement::planning::analysis;
use melba_types::{Datum, DbError, Oid, Record, Result, err, oids};

use super::frame::{FieldPlace, Frame};

/// The field that an expression's value goes to; looked up once in a context where the record's type is declared.
///
/// # Errors
/// 42703 when there is no such field.
pub fn place_of_target(frame: &mut Frame<'_>, e: &Expression, variable: usize, name: &str) -> Result<FieldPlace> {
    if let Some(place) = frame.places[e.number] {
        return Ok(place);
    }
    let place = field_to_assign(frame, variable, name)?;
    if frame.types[variable].oid != oids::RECORD {
        frame.places[e.number] = Some(place);
    }
    Ok(place)
}

/// # Errors
/// 42703 when there is no such field.
pub fn field_to_assign(frame: &Frame<'_>, variable: usize, name: &str) -> Result<FieldPlace> {
    let (at, ty) = place_of_field(frame, variable, name)?;
    Ok(FieldPlace { at, ty, is_of_domain: frame.is_domain(frame.types[variable].oid) })
}

/// Where a record's field is, and its type with its modifier.
///
/// # Errors
/// 42703 when there is no such field.
pub fn place_of_field(frame: &Frame<'_>, variable: usize, name: &str) -> Result<(usize, (Oid, i32))> {
    let missing = || {
        let record = &frame.program.tree.variables[variable].name;
        err!(UNDEFINED_COLUMN, "record \"{record}\" has no field \"{name}\"")
    };
    let declared = frame.types[variable];
    if declared.oid != oids::RECORD {
        let mut live = row_relation(frame, declared.oid)?.columns.iter().filter(|c| !c.dropped).enumerate();
        let (place, column) = live.find(|(_, c)| *c.name == *name).ok_or_else(missing)?;
        return Ok((place, (column.ty, column.typmod)));
    }
    let fields = fields_of(frame, variable)?;
    let place = fields.iter().position(|(n, _)| **n == *name).ok_or_else(missing)?;
    Ok((place, fields[place].1))
}

/// A field's name, type and modifier.
pub(super) type Field = (Arc<str>, (Oid, i32));

/// The fields of a record variable in its present state.
pub fn fields_of(frame: &Frame<'_>, variable: usize) -> Result<Vec<Field>> {
    let declared = frame.types[variable];
    if declared.oid != oids::RECORD {
        let live = row_relation(frame, declared.oid)?.columns.iter().filter(|c| !c.dropped);
        return Ok(live.map(|c| (c.name.clone(), (c.ty, c.typmod))).collect());
    }
    let Datum::Record(record) = &frame.values[variable] else {
        let name = &frame.program.tree.variables[variable].name;
        return Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "record \"{name}\" is not assigned yet")
            .detail("The tuple structure of a not-yet-assigned record is indeterminate."));
    };
    Ok(record_fields(frame, record))
}

/// The collation of a record variable's field, by its place.
pub fn collation_of_field(frame: &Frame<'_>, variable: usize, place: usize, ty: Oid) -> Oid {
    let cx = analysis(&frame.context);
    let record_type = match (frame.types[variable].oid, &frame.values[variable]) {
        (oids::RECORD, Datum::Record(record)) => record.type_oid,
        (declared, _) => declared,
    };
    if let Some(relation) = cx.row_relation(record_type) {
        let column = relation.columns.iter().filter(|c| !c.dropped).nth(place);
        return column.map_or(Oid::INVALID, |c| c.collation);
    }
    let own = own_collations(frame, variable).and_then(|all| all.get(place).copied());
    own.unwrap_or_else(|| cx.collation_of_type(ty))
}

/// The collations of a record's fields; `None`: those of their types.
pub fn own_collations<'a>(frame: &'a Frame<'_>, variable: usize) -> Option<&'a Arc<[Oid]>> {
    frame.record_collations.iter().find(|(of, _)| *of == variable).map(|(_, all)| all)
}

fn row_relation<'a>(frame: &'a Frame<'_>, ty: Oid) -> Result<&'a Relation> {
    let relation = analysis(&frame.context).row_relation(ty);
    relation.map(|r| &**r).ok_or_else(|| DbError::internal("a record of an unknown type"))
}

/// Names and types of a record's fields.
pub fn record_fields(frame: &Frame<'_>, record: &Record) -> Vec<Field> {
    let relation = analysis(&frame.context).row_relation(record.type_oid).cloned();
    let live = relation.as_ref().map(|r| r.columns.iter().filter(|c| !c.dropped).collect::<Vec<_>>());
    let name = |i: usize| match (&record.field_names, &live) {
        (Some(names), _) if i < names.len() => names[i].clone(),
        (_, Some(columns)) if i < columns.len() => columns[i].name.clone(),
        _ => format!("f{}", i + 1).into(),
    };
    let typmod = |i: usize| live.as_ref().and_then(|columns| columns.get(i)).map_or(-1, |c| c.typmod);
    let types = match &live {
        Some(columns) => columns.iter().map(|c| c.ty).collect(),
        None => record.field_types.to_vec(),
    };
    types.into_iter().enumerate().map(|(i, ty)| (name(i), (ty, typmod(i)))).collect()
}

/// The field that an assignment's path begins with: `.name...`, `."Name"...`.
pub fn first_of_path(path: &str) -> Option<String> {
    let name = path.trim_start().strip_prefix('.')?.trim_start();
    let Some(mut rest) = name.strip_prefix('"') else {
        let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(name.len());
        return Some(name[..end].to_lowercase());
    };
    let mut out = String::new();
    loop {
        let at = rest.find('"')?;
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                out.push('"');
                rest = after;
            }
            None => return Some(out),
        }
    }
}
