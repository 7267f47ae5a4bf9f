//! Evaluation on one row.

use std::sync::Arc;

use melba_fmgr::{Session, io};
use melba_types::{Datum, Kind, Oid, Record, Result, err, limits};

use super::{Expression, Node, RowCompare, array, condition, scalar_array, sqlvalue};
use crate::Evaluation;
use melba_tree::Comparison;

pub(super) fn eval(expression: &Expression, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
    Ok(match &expression.node {
        Node::Const(value) => value.clone(),
        Node::Column(i) => return ctx.expand(row[*i].clone(), expression.kind),
        Node::Parameter(i) => ctx.parameter(*i)?,
        Node::Executor(i) => return ctx.expand(ctx.executor_parameter(*i), expression.kind),
        Node::Local(i) => ctx.local(*i),
        Node::Call(call) => return call.eval(ctx, row),
        Node::Routine(routine) => return routine.eval(ctx, row),
        Node::And(args) => return condition::and(args, ctx, row),
        Node::Or(args) => return condition::or(args, ctx, row),
        Node::Not(arg) => condition::not(arg.eval_row(ctx, row)?),
        Node::Distinct(call) => {
            let args = [call.args[0].eval_row(ctx, row)?, call.args[1].eval_row(ctx, row)?];
            Datum::Bool(call.is_distinct(&call.info(ctx), &args)?)
        }
        Node::ScalarArray(s) => return scalar_array::eval_row(s, ctx, row),
        // The values of these are expanded once they are chosen.
        Node::Case(_) | Node::Coalesce(_) | Node::NullIf(_) | Node::MinMax(_) | Node::SubPlan(_) => {
            return ctx.expand(expression.eval_stored(ctx, row)?, expression.kind);
        }
        Node::NullTest { arg, is_null, row: of_row } => condition::null_test(&arg.eval_stored(ctx, row)?, *is_null, *of_row),
        Node::BooleanTest { arg, test } => condition::boolean_test(&arg.eval_row(ctx, row)?, *test),
        Node::Relabel(arg) => relabel(arg.eval_row(ctx, row)?, expression.kind),
        Node::CoerceIo(arg) => return coerce_io(&*ctx.session, arg.ty, expression.ty, arg.eval_row(ctx, row)?),
        Node::ArrayCoerce { arg, element, element_type } => {
            return array::coerce(ctx, row, arg.eval_row(ctx, row)?, element, *element_type);
        }
        Node::ConvertRow { arg, fields } => convert_row(arg.eval_row(ctx, row)?, fields.as_deref(), expression),
        Node::Domain { arg } => return io::check_domain(&*ctx.session, expression.ty, arg.eval_row(ctx, row)?),
        Node::Array { elements, element_type, multidimensional } => {
            let values = elements.iter().map(|e| e.eval_row(ctx, row)).collect::<Result<Vec<_>>>()?;
            check_depth(&values)?;
            return array::build(values, *element_type, *multidimensional);
        }
        Node::Row { fields, types, names } => {
            let fields = fields.iter().map(|f| f.eval_row(ctx, row)).collect::<Result<Vec<_>>>()?;
            return record(expression, types, Some(names.clone()), fields);
        }
        Node::RowCompare(compare) => return row_compare(compare, ctx, row),
        Node::FieldSelect { arg, field } => match arg.eval_row(ctx, row)? {
            Datum::Record(record) => record.fields.get(*field).cloned().unwrap_or(Datum::Null),
            _ => Datum::Null,
        },
        Node::FieldStore { arg, values, types } => {
            return record(expression, types, None, with_fields(arg, values, types.len(), ctx, row)?);
        }
        Node::Let { arg, body } => {
            let value = arg.eval_row(ctx, row)?;
            return ctx.with_local(value, || body.eval_row(ctx, row));
        }
        Node::JsonQuery(query) => return query.eval(expression.ty, ctx, row),
        Node::Subscript(s) => return array::subscript(s, ctx, row),
        Node::SqlValue { function, typmod } => return sqlvalue::eval(*function, expression.ty, *typmod, ctx),
        Node::NextValue { sequence } => return sqlvalue::next_value(*sequence, expression.ty, ctx),
        Node::MergeAction => ctx.merge_action(),
        Node::CursorRow { cursor, table } => cursor_row(cursor, *table, ctx, row)?.map_or(Datum::Null, Datum::Int8),
        Node::OrderLabel(label) => return label.eval(ctx, row),
        Node::CurrentOf(args) => Datum::Bool(is_current(args, ctx, row)?),
    })
}

/// The fields of a row, `width` of them, with other values in some of them.
fn with_fields(
    arg: &Expression,
    values: &[(usize, Expression)],
    width: usize,
    ctx: &Evaluation,
    row: &[Datum],
) -> Result<Vec<Datum>> {
    let mut fields = match arg.eval_row(ctx, row)? {
        Datum::Record(record) => record.fields.clone(),
        _ => Vec::new(),
    };
    fields.resize(width, Datum::Null);
    for (field, value) in values {
        fields[*field] = value.eval_row(ctx, row)?;
    }
    Ok(fields)
}

/// Whether a cursor stands on a row: the cursor's name, the row's ctid and tableoid.
fn is_current(args: &[Expression], ctx: &Evaluation, row: &[Datum]) -> Result<bool> {
    let [cursor, id, table] = args else { return Ok(false) };
    match (eval(id, ctx, row)?, eval(table, ctx, row)?) {
        (Datum::Int8(id), Datum::Oid(table)) => Ok(cursor_row(cursor, Oid(table), ctx, row)? == Some(id)),
        _ => Ok(false),
    }
}

/// The ctid of the table's row that a cursor stands on.
fn cursor_row(cursor: &Expression, table: Oid, ctx: &Evaluation, row: &[Datum]) -> Result<Option<i64>> {
    match eval(cursor, ctx, row)? {
        Datum::Text(name) => ctx.session.cursor_row(&name, table),
        _ => Err(err!(UNDEFINED_CURSOR, "cursor \"\" does not exist")),
    }
}

fn record(expression: &Expression, types: &Arc<[Oid]>, names: Option<Arc<[Arc<str>]>>, fields: Vec<Datum>) -> Result<Datum> {
    check_depth(&fields)?;
    Ok(Datum::Record(Arc::new(Record { type_oid: expression.ty, field_types: types.clone(), field_names: names, fields })))
}

/// Refuses rows in rows so deep that dropping them, or printing them, would take the stack: a recursive query makes a level a
/// step.
fn check_depth(fields: &[Datum]) -> Result<()> {
    for field in fields {
        match field {
            Datum::Record(record) => {
                limits::check_nesting()?;
                check_depth(&record.fields)?;
            }
            Datum::Array(array) if matches!(array.elements.first(), Some(Datum::Record(_))) => check_depth(&array.elements)?,
            _ => {}
        }
    }
    Ok(())
}

/// Binary-compatible types have the same physical form, except the object identifiers that int4 casts to and from without a function.
pub(super) fn relabel(value: Datum, kind: Kind) -> Datum {
    match (value, kind) {
        (Datum::Int4(v), Kind::Oid) => Datum::Oid(v as u32),
        (Datum::Oid(v), Kind::Int4) => Datum::Int4(v as i32),
        (value, _) => value,
    }
}

/// A value's text as a value of another type.
pub(super) fn coerce_io(session: &dyn Session, from: Oid, to: Oid, value: Datum) -> Result<Datum> {
    if value.is_null() {
        return Ok(Datum::Null);
    }
    let text = io::text_of(session, from, &value)?;
    io::text_in(session, to, -1, &text)
}

fn convert_row(value: Datum, fields: Option<&[usize]>, expression: &Expression) -> Datum {
    let Datum::Record(r) = value else { return value };
    let type_oid = expression.ty;
    let Some(places) = fields else { return Datum::Record(Arc::new(Record { type_oid, ..(*r).clone() })) };
    Datum::Record(Arc::new(Record {
        type_oid,
        field_types: places.iter().filter_map(|at| r.field_types.get(*at).copied()).collect(),
        field_names: r.field_names.as_ref().map(|names| places.iter().filter_map(|at| names.get(*at).cloned()).collect()),
        fields: places.iter().map(|at| r.fields.get(*at).cloned().unwrap_or(Datum::Null)).collect(),
    }))
}

/// The first pair that is not equal decides; a NULL before that makes the answer NULL.
fn row_compare(compare: &RowCompare, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
    for pair in &compare.pairs {
        let a = pair.order.args[0].eval_row(ctx, row)?;
        let b = pair.order.args[1].eval_row(ctx, row)?;
        if a.is_null() || b.is_null() {
            return Ok(Datum::Null);
        }
        if pair.equal.compare(ctx, a.clone(), b.clone())? != Some(true) {
            return Ok(match pair.order.compare(ctx, a, b)? {
                Some(v) => Datum::Bool(v),
                None => Datum::Null,
            });
        }
    }
    Ok(Datum::Bool(matches!(compare.comparison, Comparison::LessEqual | Comparison::GreaterEqual | Comparison::Equal)))
}
