//! Loops.

use melba_plpgsql::tree::{Expression, Loop, LoopSource, Scroll, Target};
use melba_statement::planning::analysis;
use melba_types::{Array, Datum, Oid, Result, bail, err};

use super::expression::PieceUse;
use super::frame::{Frame, StatementFlow, Typed};
use super::value::RecordShape;
use super::{cursor, expression, sql, value};

/// Rows that a loop over a query reads ahead.
const ROWS_AHEAD: u64 = 64;

pub fn endless_loop(frame: &mut Frame<'_>, body: &Loop) -> Result<StatementFlow> {
    loop {
        frame.context.session.interrupt.check()?;
        let flow = frame.statements(&body.body)?;
        if let Some(flow) = frame.after_round(flow, body) {
            return Ok(flow);
        }
    }
}

pub fn while_loop(frame: &mut Frame<'_>, condition: &Expression, body: &Loop) -> Result<StatementFlow> {
    while value::holds(frame, condition)? {
        frame.context.session.interrupt.check()?;
        let flow = frame.statements(&body.body)?;
        if let Some(flow) = frame.after_round(flow, body) {
            return Ok(flow);
        }
    }
    Ok(StatementFlow::Next)
}

fn loop_bound(frame: &mut Frame<'_>, e: &Expression, what: &str) -> Result<i32> {
    value::integer(frame, e)?.ok_or_else(|| err!(NULL_VALUE_NOT_ALLOWED, "{what} of FOR loop cannot be null"))
}

pub fn integer_loop(
    frame: &mut Frame<'_>,
    variable: usize,
    lower: &Expression,
    upper: &Expression,
    step: Option<&Expression>,
    reverse: bool,
    body: &Loop,
) -> Result<StatementFlow> {
    let mut at = loop_bound(frame, lower, "lower bound")?;
    let end = loop_bound(frame, upper, "upper bound")?;
    let step = step.map_or(Ok(1), |step| loop_bound(frame, step, "BY value"))?;
    if step <= 0 {
        bail!(INVALID_PARAMETER_VALUE, "BY value of FOR loop must be greater than zero");
    }
    let mut found = false;
    let mut last = StatementFlow::Next;
    while if reverse { at >= end } else { at <= end } {
        found = true;
        frame.context.session.interrupt.check()?;
        match &mut frame.values[variable] {
            Datum::Int4(value) => *value = at,
            value => *value = Datum::Int4(at),
        }
        let flow = frame.statements(&body.body)?;
        if let Some(flow) = frame.after_round(flow, body) {
            last = flow;
            break;
        }
        match if reverse { at.checked_sub(step) } else { at.checked_add(step) } {
            Some(next) => at = next,
            None => break,
        }
    }
    frame.set_found(found);
    Ok(last)
}

pub fn row_loop(frame: &mut Frame<'_>, target: &Target, source: &LoopSource, body: &Loop) -> Result<StatementFlow> {
    if let LoopSource::Cursor { cursor, arguments } = source {
        return cursor::cursor_loop(frame, target, *cursor, arguments.as_ref(), body);
    }
    let begun = sql::begin_rows(frame, source)?;
    let (shape, origin) = (RecordShape::of_result(&begun.columns), begun.origin.clone());
    let name = cursor::add_portal(frame, None, begun, Scroll::No, true);
    cursor::portal_loop(frame, &name, (target, &shape, &origin), ROWS_AHEAD, body)
}

pub fn array_loop(frame: &mut Frame<'_>, target: &Target, slice: i32, array: &Expression, body: &Loop) -> Result<StatementFlow> {
    let value = expression::evaluate(frame, array, PieceUse::Any)?;
    if value.value.is_null() {
        bail!(NULL_VALUE_NOT_ALLOWED, "FOREACH expression must not be null");
    }
    let Datum::Array(array) = &value.value else {
        let shown = frame.context.catalog.type_name(value.ty, &frame.context.path.path);
        bail!(DATATYPE_MISMATCH, "FOREACH expression must yield an array, not type {shown}");
    };
    let dimensions = array.dims.len();
    if slice < 0 || slice as usize > dimensions {
        let message = format!("slice dimension ({slice}) is out of the valid range 0..{dimensions}");
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "{message}"));
    }
    let is_array = is_array_target(frame, target);
    if slice > 0 && !is_array {
        bail!(DATATYPE_MISMATCH, "FOREACH ... SLICE loop variable must be of an array type");
    }
    if slice == 0 && is_array {
        bail!(DATATYPE_MISMATCH, "FOREACH loop variable must not be of an array type");
    }
    let element = frame.context.catalog.type_(frame.context.catalog.base_type(value.ty)).map_or(Oid::INVALID, |t| t.element);
    let per_round: usize = array.dims[dimensions - slice as usize..].iter().map(|d| d.length as usize).product();
    let mut found = false;
    let mut last = StatementFlow::Next;
    for chunk in array.elements.chunks(per_round.max(1)) {
        frame.context.session.interrupt.check()?;
        found = true;
        let item = match slice {
            0 => Typed { value: chunk[0].clone(), ty: element, typmod: value.typmod },
            _ => {
                let dims = array.dims[dimensions - slice as usize..].to_vec();
                let part = Array { dims, elements: chunk.to_vec(), ..Array::clone(array) };
                Typed { value: Datum::Array(std::sync::Arc::new(part)), ty: value.ty, typmod: value.typmod }
            }
        };
        value::assign(frame, target, item)?;
        let flow = frame.statements(&body.body)?;
        if let Some(flow) = frame.after_round(flow, body) {
            last = flow;
            break;
        }
    }
    frame.set_found(found);
    Ok(last)
}

fn is_array_target(frame: &Frame<'_>, target: &Target) -> bool {
    let Target::Variable(variable) = target else { return false };
    let cx = analysis(&frame.context);
    let base = cx.catalog.base_type(frame.types[*variable].oid);
    cx.catalog.type_(base).is_some_and(|t| t.element.is_valid() && t.kind == melba_types::Kind::Array)
}
