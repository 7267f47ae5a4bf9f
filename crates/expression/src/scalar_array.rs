//! `scalar op ANY/ALL (array)`, and IN with a list.

use std::sync::Arc;

use melba_fmgr::Operand;
use melba_types::{Array, Batch, ColumnData, Datum, Result, limits};

use super::batch::{Vector, booleans};
use super::members::Members;
use super::{Call, Expression, Node, ScalarArray};
use crate::Evaluation;
use crate::key::KeyPart;

/// Lists shorter than this are compared one by one.
const HASHED_MEMBERS_MIN: usize = 9;
/// What a key takes beside its bytes.
const MEMBER_BYTES: usize = 64;

/// Whether keys are less work: a few comparisons of a batch each are not much, where there is a kernel for them.
pub(super) fn is_worth_keys(array: &Array, call: &Call) -> bool {
    array.elements.len() >= HASHED_MEMBERS_MIN || call.vector.is_none()
}

/// Whether an array has one value for a whole statement: it is made of parameters, constants and values of fixed sub-plans.
pub(super) fn is_fixed(e: &Expression) -> bool {
    match &e.node {
        Node::Const(_) | Node::Parameter(_) => true,
        Node::SubPlan(subplan) => subplan.is_fixed,
        Node::Array { elements, .. } => elements.iter().all(is_fixed),
        Node::Relabel(arg) | Node::CoerceIo(arg) => is_fixed(arg),
        Node::ArrayCoerce { arg, element, .. } => {
            let reads_rows = |e: &Expression| matches!(e.node, Node::Column(_) | Node::Executor(_));
            is_fixed(arg) && !element.is_volatile() && !element.any(&mut |e| reads_rows(e))
        }
        Node::Call(call) => !call.volatile && call.args.iter().all(is_fixed),
        _ => false,
    }
}

/// The keys of an array's members. They are made when they are first needed.
fn members(s: &ScalarArray, ctx: &Evaluation) -> Result<Option<Arc<Members>>> {
    let Some(fixed) = s.fixed.as_ref().filter(|_| !ctx.has_parameter_offset()) else { return Ok(s.members.clone()) };
    if let Some(members) = ctx.fixed_arrays.known(fixed) {
        return Ok(members);
    }
    // An error is that of the first row that needs the array.
    let Ok(array) = s.call.args[1].eval_row(ctx, &[]) else { return Ok(None) };
    let members = match &array {
        Datum::Array(array) if is_worth_keys(array, &s.call) => {
            limits::check_memory(array.elements.len() * MEMBER_BYTES)?;
            Some(Arc::new(Members::new(&array.elements)))
        }
        _ => None,
    };
    ctx.fixed_arrays.note(fixed, members.clone());
    Ok(members)
}

/// `scalar op ANY (array)`: true if any comparison is, else NULL if any is NULL, else false; ALL is its dual.
pub(super) fn eval_row(s: &ScalarArray, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
    let scalar = s.call.args[0].eval_row(ctx, row)?;
    if let Some(members) = members(s, ctx)? {
        return Ok(members.test_value(&scalar, s.any));
    }
    let array = s.call.args[1].eval_row(ctx, row)?;
    let mut info = None;
    value(s, |args| s.call.invoke(info.get_or_insert_with(|| s.call.info(ctx)), args), scalar, array)
}

/// The same by a comparison of two values.
pub(super) fn value(
    s: &ScalarArray,
    mut compare: impl FnMut(&[Datum]) -> Result<Datum>,
    scalar: Datum,
    array: Datum,
) -> Result<Datum> {
    let Datum::Array(array) = &array else { return Ok(Datum::Null) };
    if array.elements.is_empty() {
        return Ok(Datum::Bool(!s.any));
    }
    if scalar.is_null() && s.call.strict {
        return Ok(Datum::Null);
    }
    if let Some(members) = &s.members {
        return Ok(members.test_value(&scalar, s.any));
    }
    let mut unknown = false;
    let mut args = [scalar, Datum::Null];
    for element in &array.elements {
        args[1] = element.clone();
        match compare(&args)? {
            Datum::Bool(v) if v == s.any => return Ok(Datum::Bool(s.any)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!s.any) })
}

/// The same for every row of a batch and an array that is known; `None` when rows must be evaluated one by one: also when a
/// comparison fails, because an element before may decide a row.
pub(super) fn eval_batch<'a>(s: &ScalarArray, ctx: &Evaluation, batch: &Batch) -> Result<Option<Vector<'a>>> {
    let members = members(s, ctx)?.filter(|members| !members.is_empty());
    let array = match s.call.args[1].as_const() {
        Some(Datum::Array(array)) if !array.elements.is_empty() => Some(array),
        _ => None,
    };
    if members.is_none() && array.is_none() || !s.call.strict || s.call.volatile {
        return Ok(None);
    }
    let scalars = s.call.args[0].eval_vector(ctx, batch)?;
    if matches!(scalars, Vector::Scalar(_)) {
        return Ok(None);
    }
    if let Some(members) = members {
        let (part, mut bytes) = (KeyPart::default(), Vec::new());
        return Ok(Some(booleans(batch.rows, |i| {
            if scalars.is_null(i) {
                return None;
            }
            bytes.clear();
            scalars.encode_key(&part, i, &mut bytes);
            members.test(&bytes, s.any)
        })));
    }
    let (Some(kernel), Some(array)) = (s.call.vector, array) else { return Ok(None) };
    let info = s.call.info(ctx);
    let mut decided = vec![false; batch.rows];
    for element in array.elements.iter().filter(|element| !element.is_null()) {
        let Ok(tested) = kernel(&info, &[scalars.operand(), Operand::Scalar(element)], batch.rows) else { return Ok(None) };
        let ColumnData::Bool(holds) = &tested.data else { return Ok(None) };
        decided.iter_mut().zip(holds).for_each(|(decided, holds)| *decided |= *holds == s.any);
    }
    let has_null = array.elements.iter().any(Datum::is_null);
    Ok(Some(booleans(batch.rows, |i| match decided[i] {
        _ if scalars.is_null(i) => None,
        true => Some(s.any),
        false if has_null => None,
        false => Some(!s.any),
    })))
}
