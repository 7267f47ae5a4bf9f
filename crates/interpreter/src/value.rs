//! Values that are assigned to variables.

use std::sync::Arc;

use melba_analyze::coerce_for_variable;
use melba_expression::{Expression as Compiled, compile_for_table};
use melba_fmgr::io;
use melba_plpgsql::tree::{Expression, Target, VariableType};
use melba_statement::outcome::ResultColumn;
use melba_statement::planning::analysis;
use melba_tree::{Expr, OutputColumn, Var};
use melba_types::{Batch, Datum, DbError, Oid, Record, Result, bail, oids};

use super::expression::PieceUse;
use super::frame::{FieldPlace, Frame, Typed};
use super::{expression, extra_checks, field};

/// The columns of a query's rows, for records made of them.
pub(super) struct RecordShape {
    pub columns: Vec<(Oid, i32)>,
    pub types: Arc<[Oid]>,
    pub names: Arc<[Arc<str>]>,
    /// `None`: those of the types.
    pub collations: Option<Arc<[Oid]>>,
}

impl RecordShape {
    pub fn of_result(columns: &[ResultColumn]) -> RecordShape {
        RecordShape {
            columns: columns.iter().map(|c| (c.ty, c.typmod)).collect(),
            types: columns.iter().map(|c| c.ty).collect(),
            names: columns.iter().map(|c| c.name.clone()).collect(),
            collations: columns.iter().any(|c| c.has_own_collation).then(|| columns.iter().map(|c| c.collation).collect()),
        }
    }

    pub fn of(frame: &Frame<'_>, columns: &[OutputColumn]) -> RecordShape {
        let cx = analysis(&frame.context);
        let is_own = |c: &OutputColumn| c.collation != cx.collation_of_type(c.ty);
        RecordShape {
            columns: columns.iter().map(|c| (c.ty, c.typmod)).collect(),
            types: columns.iter().map(|c| c.ty).collect(),
            names: columns.iter().map(|c| c.name.clone()).collect(),
            collations: columns.iter().any(is_own).then(|| columns.iter().map(|c| c.collation).collect()),
        }
    }
}

/// The value as one of another type, by assignment or through its text.
pub fn cast(frame: &Frame<'_>, from: Typed, ty: Oid, typmod: i32) -> Result<Datum> {
    let Some(cast) = cast_of(frame, &from, (ty, typmod))? else {
        return if from.value.is_null() { check_null(frame, ty) } else { Ok(from.value) };
    };
    let value = cast.eval_row(&frame.evaluation, &[from.value])?;
    if value.is_null() { check_null(frame, ty) } else { Ok(value) }
}

/// The expression that makes a value one of another type; `None` where it is one.
pub fn cast_of(frame: &Frame<'_>, from: &Typed, (ty, typmod): (Oid, i32)) -> Result<Option<Arc<Compiled>>> {
    if from.ty == ty && (typmod < 0 || from.typmod == typmod) {
        return Ok(None);
    }
    let key = (from.ty, from.typmod, ty, typmod);
    if let Some(known) = frame.program.casts.lock().get(&key) {
        return Ok(Some(known.clone()));
    }
    let made = Arc::new(compile_cast(frame, from, ty, typmod)?);
    frame.program.casts.lock().insert(key, made.clone());
    Ok(Some(made))
}

/// NULL as a value of a type, which a domain may refuse.
fn check_null(frame: &Frame<'_>, ty: Oid) -> Result<Datum> {
    if !frame.is_domain(ty) {
        return Ok(Datum::Null);
    }
    io::check_domain(&*frame.context, ty, Datum::Null)
}

fn compile_cast(frame: &Frame<'_>, from: &Typed, ty: Oid, typmod: i32) -> Result<Compiled> {
    let cx = analysis(&frame.context);
    let value = Expr::Var(Var::new(0, 1, from.ty, from.typmod, cx.collation_of_type(from.ty)));
    let mut cast = coerce_for_variable(&cx, value, ty, typmod)?;
    melba_analyze::assign_collations(&cx, &mut cast)?;
    compile_for_table(&frame.context.catalog, Some(&*frame.context), &cast)
}

/// `target := expression`
pub fn assign_expression(frame: &mut Frame<'_>, target: &Target, e: &Expression) -> Result<()> {
    let variable = match target {
        Target::Variable(variable) => *variable,
        Target::Field { record, name } => {
            field::place_of_target(frame, e, *record, name).map_err(|error| expression::of_piece(e, error))?;
            let value = expression::evaluate(frame, e, PieceUse::Any)?;
            // The evaluation may have changed the catalog.
            let place = field::place_of_target(frame, e, *record, name)?;
            return assign_to_place(frame, *record, place, value);
        }
        Target::Part { variable, .. } if expression::change_array(frame, *variable, e)? => return Ok(()),
        Target::Part { .. } | Target::Row(_) => {
            let wanted = expression::wanted_by(frame, target);
            let value = expression::evaluate(frame, e, wanted)?;
            return assign(frame, target, value);
        }
    };
    let ty = frame.types[variable];
    // The most frequent statement: a number that has the variable's type already.
    if let Some(piece) = &frame.prepared[e.number]
        && let Some(plain) = piece.plain_of(ty)
        && plain.put_number(&mut frame.values, variable)
    {
        return Ok(());
    }
    if ty.typmod < 0 && expression::change_array(frame, variable, e)? {
        return Ok(());
    }
    // A value that has the variable's type already.
    if ty.typmod < 0
        && !ty.is_record
        && !frame.program.tree.variables[variable].not_null
        && let Some(plain) = expression::known_plain(frame, e, ty.oid)
    {
        let value = plain.eval_row(&frame.evaluation, &frame.values);
        let slot = &mut frame.values[variable];
        return if put_number(slot, &value) { Ok(()) } else { put(slot, value) };
    }
    let value = expression::evaluate(frame, e, PieceUse::Type(ty))?;
    assign(frame, target, value)
}

/// Puts a number where one of its type is; false for all other values. To copy a datum that was just written, by wider moves than
/// those that wrote it, stalls the processor.
#[inline]
pub fn put_number(slot: &mut Datum, value: &Result<Datum>) -> bool {
    match (slot, value) {
        (Datum::Int4(slot), Ok(Datum::Int4(value))) => *slot = *value,
        (Datum::Int8(slot), Ok(Datum::Int8(value))) => *slot = *value,
        (Datum::Float8(slot), Ok(Datum::Float8(value))) => *slot = *value,
        (Datum::Bool(slot), Ok(Datum::Bool(value))) => *slot = *value,
        _ => return false,
    }
    true
}

#[inline(never)]
fn put(slot: &mut Datum, value: Result<Datum>) -> Result<()> {
    *slot = value?;
    Ok(())
}

pub fn assign(frame: &mut Frame<'_>, target: &Target, value: Typed) -> Result<()> {
    match target {
        Target::Variable(variable) if frame.types[*variable].is_record => assign_record(frame, *variable, value),
        Target::Variable(variable) => {
            let ty = frame.types[*variable];
            let value = cast(frame, value, ty.oid, ty.typmod)?;
            set(frame, *variable, value)
        }
        Target::Part { variable, path } if frame.types[*variable].oid == oids::RECORD => {
            let name = field::first_of_path(path).ok_or_else(|| DbError::internal("a part of a record without a field"))?;
            assign_field(frame, *variable, &name, value)
        }
        // The new value of the whole variable.
        Target::Part { variable, .. } => set(frame, *variable, value.value),
        Target::Field { record, name } => assign_field(frame, *record, name, value),
        Target::Row(_) => match value.value {
            Datum::Record(record) => {
                let fields = field::record_fields(frame, &record);
                let columns: Vec<(Oid, i32)> = fields.iter().map(|(_, ty)| *ty).collect();
                assign_fields(frame, target, &columns, &record.fields)
            }
            Datum::Null => assign_fields(frame, target, &[], &[]),
            _ => bail!(DATATYPE_MISMATCH, "cannot assign non-composite value to a row variable"),
        },
    }
}

fn set(frame: &mut Frame<'_>, variable: usize, value: Datum) -> Result<()> {
    let declared = &frame.program.tree.variables[variable];
    if declared.not_null && value.is_null() {
        bail!(NULL_VALUE_NOT_ALLOWED, "null value cannot be assigned to variable \"{}\" declared NOT NULL", declared.name);
    }
    frame.values[variable] = value;
    if !frame.record_collations.is_empty() {
        frame.record_collations.retain(|(of, _)| *of != variable);
    }
    Ok(())
}

fn assign_record(frame: &mut Frame<'_>, variable: usize, value: Typed) -> Result<()> {
    let ty = frame.types[variable];
    match value.value {
        Datum::Null => {
            let null = check_null(frame, ty.oid)?;
            set(frame, variable, null)
        }
        Datum::Record(record) => {
            let record = match ty.oid == oids::RECORD || record.type_oid == ty.oid {
                true => record,
                false => {
                    let fields = field::record_fields(frame, &record);
                    let columns: Vec<(Oid, i32)> = fields.iter().map(|(_, ty)| *ty).collect();
                    extra_checks::check_count(frame, columns.len(), field::fields_of(frame, variable)?.len())?;
                    record_of(frame, ty, &columns, &record.fields)?
                }
            };
            // Another variable's, if it is the value of one.
            let is_same =
                |of: usize| matches!(&frame.values[of], Datum::Record(r) if Arc::ptr_eq(&r.field_types, &record.field_types));
            let collations = frame.record_collations.iter().find(|(of, _)| is_same(*of)).map(|(_, all)| all.clone());
            set(frame, variable, Datum::Record(record))?;
            note_collations(frame, variable, collations.as_ref());
            Ok(())
        }
        // The text of any value may be one of a named type.
        other if ty.oid != oids::RECORD => {
            let record = cast(frame, Typed { value: other, ..value }, ty.oid, -1)?;
            set(frame, variable, record)
        }
        _ => bail!(DATATYPE_MISMATCH, "cannot assign non-composite value to a record variable"),
    }
}

/// Values as a record of a declared type: column by column, NULL where there is none.
pub fn record_of(frame: &Frame<'_>, ty: VariableType, columns: &[(Oid, i32)], values: &[Datum]) -> Result<Arc<Record>> {
    let cx = analysis(&frame.context);
    let relation = cx.row_relation(ty.oid).ok_or_else(|| DbError::internal("a record of an unknown type"))?.clone();
    let live: Vec<_> = relation.columns.iter().filter(|c| !c.dropped).collect();
    let mut fields = Vec::with_capacity(live.len());
    for (i, column) in live.iter().enumerate() {
        fields.push(match (columns.get(i), values.get(i)) {
            (Some((ty, typmod)), Some(value)) => {
                let from = Typed { value: value.clone(), ty: *ty, typmod: *typmod };
                cast(frame, from, column.ty, column.typmod)?
            }
            // A field without a value is NULL, even if its domain forbids it.
            _ => Datum::Null,
        });
    }
    let record = Record {
        type_oid: frame.context.catalog.base_type(ty.oid),
        field_types: live.iter().map(|c| c.ty).collect(),
        field_names: Some(live.iter().map(|c| c.name.clone()).collect()),
        fields,
    };
    let value = Datum::Record(Arc::new(record));
    match io::check_domain(&*frame.context, ty.oid, value)? {
        Datum::Record(record) => Ok(record),
        _ => Err(DbError::internal("a record became something else")),
    }
}

fn assign_field(frame: &mut Frame<'_>, variable: usize, name: &str, value: Typed) -> Result<()> {
    let place = field::field_to_assign(frame, variable, name)?;
    assign_to_place(frame, variable, place, value)
}

fn assign_to_place(frame: &mut Frame<'_>, variable: usize, place: FieldPlace, value: Typed) -> Result<()> {
    if frame.values[variable].is_null() && frame.types[variable].oid != oids::RECORD {
        frame.values[variable] = Datum::Record(record_of(frame, frame.types[variable], &[], &[])?);
    }
    let (ty, typmod) = place.ty;
    let value = cast(frame, value, ty, typmod)?;
    let is_short = matches!(&frame.values[variable], Datum::Record(record) if record.fields.len() <= place.at);
    let count = if is_short { field::fields_of(frame, variable)?.len() } else { 0 };
    let Datum::Record(record) = &mut frame.values[variable] else {
        return Err(DbError::internal("a record variable without a record"));
    };
    let record = Arc::make_mut(record);
    if is_short {
        record.fields.resize(count, Datum::Null);
    }
    record.fields[place.at] = value;
    if place.is_of_domain {
        io::check_domain(&*frame.context, frame.types[variable].oid, frame.values[variable].clone())?;
    }
    Ok(())
}

/// Assigns a query's row to a target.
pub fn assign_row(frame: &mut Frame<'_>, target: &Target, shape: &RecordShape, batch: &Batch, row: usize) -> Result<()> {
    let values: Vec<Datum> = batch.columns.iter().take(shape.columns.len()).map(|c| c.get(row)).collect();
    match target {
        Target::Variable(variable) if frame.types[*variable].is_record => {
            let ty = frame.types[*variable];
            let record = match ty.oid {
                oids::RECORD => Arc::new(Record {
                    type_oid: oids::RECORD,
                    field_types: shape.types.clone(),
                    field_names: Some(shape.names.clone()),
                    fields: values,
                }),
                // One column that is the whole row.
                _ => match (&shape.columns[..], &values[..]) {
                    ([(own, _)], [Datum::Record(record)]) if *own == ty.oid => record.clone(),
                    _ => {
                        extra_checks::check_count(frame, values.len(), field::fields_of(frame, *variable)?.len())?;
                        record_of(frame, ty, &shape.columns, &values)?
                    }
                },
            };
            set(frame, *variable, Datum::Record(record))?;
            note_collations(frame, *variable, shape.collations.as_ref());
            Ok(())
        }
        target => assign_fields(frame, target, &shape.columns, &values),
    }
}

/// A record's fields have the collations of the row that it was made of.
fn note_collations(frame: &mut Frame<'_>, variable: usize, collations: Option<&Arc<[Oid]>>) {
    if let Some(collations) = collations
        && frame.types[variable].oid == oids::RECORD
    {
        frame.record_collations.push((variable, collations.clone()));
    }
}

/// Assigns values to a list of targets, one each; targets without one become NULL.
fn assign_fields(frame: &mut Frame<'_>, target: &Target, columns: &[(Oid, i32)], values: &[Datum]) -> Result<()> {
    let one;
    let targets = match target {
        Target::Row(targets) => targets,
        other => {
            one = vec![other.clone()];
            &one
        }
    };
    extra_checks::check_count(frame, columns.len(), targets.len())?;
    for (i, target) in targets.iter().enumerate() {
        let value = match (columns.get(i), values.get(i)) {
            (Some((ty, typmod)), Some(value)) => Typed { value: value.clone(), ty: *ty, typmod: *typmod },
            _ => Typed { value: Datum::Null, ty: oids::UNKNOWN, typmod: -1 },
        };
        assign(frame, target, value)?;
    }
    Ok(())
}

/// There is no row: NULL everywhere, a record has the row's fields.
pub fn assign_no_row(frame: &mut Frame<'_>, target: &Target, shape: &RecordShape) -> Result<()> {
    if let Target::Variable(variable) = target
        && frame.types[*variable].is_record
        && !frame.is_domain(frame.types[*variable].oid)
    {
        if frame.types[*variable].oid != oids::RECORD {
            let record = record_of(frame, frame.types[*variable], &[], &[])?;
            return set(frame, *variable, Datum::Record(record));
        }
        let record = Record {
            type_oid: oids::RECORD,
            field_types: shape.types.clone(),
            field_names: Some(shape.names.clone()),
            fields: vec![Datum::Null; shape.types.len()],
        };
        set(frame, *variable, Datum::Record(Arc::new(record)))?;
        note_collations(frame, *variable, shape.collations.as_ref());
        return Ok(());
    }
    let (columns, values) = (vec![(oids::UNKNOWN, -1); shape.columns.len()], vec![Datum::Null; shape.columns.len()]);
    assign_fields(frame, target, &columns, &values)
}

/// The value as text, as messages and dynamic statements show it.
pub fn text_of(frame: &Frame<'_>, value: &Typed) -> Result<String> {
    io::text_of(&*frame.context, value.ty, &value.value)
}

/// The type that conditions are wanted in.
pub const BOOLEAN: VariableType = VariableType { oid: oids::BOOL, typmod: -1, collation: Oid::INVALID, is_record: false };
/// That of the bounds of loops.
pub const INTEGER: VariableType = VariableType { oid: oids::INT4, ..BOOLEAN };

/// Whether a condition is true.
pub fn holds(frame: &mut Frame<'_>, condition: &Expression) -> Result<bool> {
    if let Some(plain) = expression::known_plain(frame, condition, oids::BOOL) {
        return plain.holds(&frame.evaluation, &frame.values);
    }
    let value = value_as(frame, condition, BOOLEAN)?;
    Ok(matches!(value, Datum::Bool(true)))
}

/// An expression's value as one of a type.
fn value_as(frame: &mut Frame<'_>, e: &Expression, ty: VariableType) -> Result<Datum> {
    let value = expression::evaluate(frame, e, PieceUse::Type(ty))?;
    cast(frame, value, ty.oid, ty.typmod)
}

/// The value as an integer, `None` for NULL.
pub fn integer(frame: &mut Frame<'_>, e: &Expression) -> Result<Option<i32>> {
    Ok(match value_as(frame, e, INTEGER)? {
        Datum::Int4(value) => Some(value),
        _ => None,
    })
}
