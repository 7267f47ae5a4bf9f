//! Calls from outside, and their results.

use std::sync::Arc;

use melba_catalog::Function;
use melba_catalog::trigger_events::ROW;
use melba_engine::ReadView;
use melba_fmgr::{RoutineCall, RoutineRows, TriggerCall, io};
use melba_plpgsql::Returns;
use melba_plpgsql::tree::{Target, VariableType};
use melba_statement::context::StatementContext;
use melba_statement::control::Control;
use melba_statement::language::{Called, EventCall, Within};
use melba_types::{Datum, DbError, Oid, Record, Result, bail, err, oids};

use super::frame::{Frame, Typed};
use super::program::{Program, compile_error};
use super::state::RoutineState;
use super::{field, program_cache, spare, trigger_values, value};

fn start<'a>(
    context: Arc<StatementContext>,
    function: &Arc<Function>,
    call: &RoutineCall<'_>,
    control: Control<'a>,
) -> Result<Frame<'a>> {
    let program =
        program_cache::of_call(&context, function, call).map_err(|e| compile_error(e, &function.name, &function.source))?;
    let view = program.shares_view.then_some(ReadView { csn: call.view.0, command: call.view.1 });
    let mut frame = Frame::new(program, context, view, control)?;
    for (input, value) in call.args.iter().enumerate() {
        let variable = frame.program.inputs[input];
        frame.values[variable] = value.clone();
    }
    Ok(frame)
}

/// The value of a function, or a procedure's output arguments.
pub fn call_value(called: Called, call: &RoutineCall<'_>, control: Control<'_>) -> Result<Datum> {
    let Called { context, function, settings } = called;
    let is_atomic = control.is_none();
    let has_own_surroundings = settings.is_some() || function.security_definer || call.columns.is_some();
    if !is_atomic || has_own_surroundings {
        let mut frame = start(context, &function, call, control)?;
        frame.run()?;
        drop(settings);
        return result(&mut frame);
    }
    let mut frame = Box::new(start(context.clone(), &function, call, Control::NONE)?);
    let value = value(&mut frame)?;
    RoutineState::of(&context.session).spare_frames.give_back(function.oid, frame);
    Ok(value)
}

/// The rows of a set-returning function.
pub fn call_rows(called: Called, call: &RoutineCall<'_>) -> Result<RoutineRows> {
    let Called { context, function, settings } = called;
    let mut frame = start(context, &function, call, Control::NONE)?;
    frame.run()?;
    drop(settings);
    if !frame.program.returns_set {
        let value = result(&mut frame)?;
        return Ok(Box::new(std::iter::once(Ok(value))));
    }
    frame.returned.take_rows()
}

/// Runs a trigger's function: returns its row, or NULL.
pub fn call_trigger(called: Called, call: &TriggerCall<'_>) -> Result<Datum> {
    let Called { context, function, settings } = called;
    let is_kept = settings.is_none() && !function.security_definer && context.transitions.is_none();
    let session = context.session.clone();
    let program = program_cache::of_trigger(&context, &function, call);
    let program = program.map_err(|e| compile_error(e, &function.name, &function.source))?;
    let view = program.shares_view.then_some(ReadView { csn: call.view.0, command: call.view.1 });
    let mut frame = Box::new(Frame::new(program, context, view, Control::NONE)?);
    let row = run_trigger(&mut frame, call);
    drop(settings);
    if is_kept && row.is_ok() {
        RoutineState::of(&session).spare_frames.give_back(call.trigger.oid, frame);
    }
    row
}

/// Runs a trigger with the spare frame that another row has left, if one fits.
pub fn trigger_again(caller: &StatementContext, call: &TriggerCall<'_>) -> Option<Result<Datum>> {
    let spare_frames = &RoutineState::of(&caller.session).spare_frames;
    let mut frame = spare_frames.take(call.trigger.oid)?;
    if !spare::is_current(&frame, caller) || frame.program.oid != call.trigger.function {
        return None;
    }
    spare::restart(&mut frame, ReadView { csn: call.view.0, command: call.view.1 });
    let row = run_trigger(&mut frame, call);
    if row.is_ok() {
        spare_frames.give_back(call.trigger.oid, frame);
    }
    Some(row)
}

fn run_trigger(frame: &mut Frame<'_>, call: &TriggerCall<'_>) -> Result<Datum> {
    trigger_values::begin(frame, call);
    match call.trigger.has(ROW) {
        true => run_row_trigger(frame, call.table.row_type),
        false => run_to_return(frame).map(|_| Datum::Null),
    }
}

/// Runs the function of a trigger whose variables have their values. `row_type`: of the table's rows.
pub fn run_row_trigger(frame: &mut Frame<'_>, row_type: Oid) -> Result<Datum> {
    let value = run_to_return(frame)?;
    let row = trigger_row(frame, row_type, value);
    row.map_err(|e| e.within(format!("PL/pgSQL function {} during function exit", frame.program.name)))
}

fn run_to_return(frame: &mut Frame<'_>) -> Result<Datum> {
    frame.run()?;
    let Some(value) = frame.returned.value.take() else {
        let e = err!(S_R_E_FUNCTION_EXECUTED_NO_RETURN_STATEMENT, "control reached end of trigger procedure without RETURN");
        return Err(e.within(format!("PL/pgSQL function {}", frame.program.name)));
    };
    Ok(value.value)
}

/// Runs an event trigger's function.
pub fn call_event_trigger(called: Called, call: &EventCall<'_>) -> Result<()> {
    let Called { context, function, settings } = called;
    let program = program_cache::of_event_trigger(&context, &function);
    let program = program.map_err(|e| compile_error(e, &function.name, &function.source))?;
    let mut frame = Frame::new(program, context, None, Control::NONE)?;
    for (variable, value) in [call.event, call.tag].into_iter().enumerate() {
        frame.values[variable] = Datum::text(value);
    }
    frame.run()?;
    drop(settings);
    Ok(())
}

/// DO.
pub fn run_inline(context: &Arc<StatementContext>, text: &str, within: Within<'_>, control: Control<'_>) -> Result<()> {
    let program = Program::of_block(context, text);
    let program = program.map_err(|e| within.located(e, text).unwrap_or_else(|e| compile_error(e, "inline_code_block", text)))?;
    Frame::new(Arc::new(program), context.clone(), None, control)?.run()
}

/// Runs the function; returns its result.
pub fn value(frame: &mut Frame<'_>) -> Result<Datum> {
    frame.run()?;
    result(frame)
}

/// The function's result, after its end.
pub fn result(frame: &mut Frame<'_>) -> Result<Datum> {
    if let Some(value) = frame.returned.value.take() {
        return to_result(frame, value).map_err(|e| {
            let place = format!("PL/pgSQL function {}", frame.program.name);
            e.within(format!("{place} while casting return value to function's return type"))
        });
    }
    match (&frame.program.output, frame.program.returns) {
        (Some(output), _) => {
            let output = output.clone();
            output_value(frame, &output)
        }
        // The result of PostgreSQL's void functions is not NULL.
        (None, Returns::Void) => Ok(Datum::text("")),
        _ => {
            let e = err!(S_R_E_FUNCTION_EXECUTED_NO_RETURN_STATEMENT, "control reached end of function without RETURN");
            Err(e.within(format!("PL/pgSQL function {}", frame.program.name)))
        }
    }
}

/// The returned value, as a row of the trigger's table.
fn trigger_row(frame: &Frame<'_>, row_type: Oid, value: Datum) -> Result<Datum> {
    let record = match value {
        Datum::Null => return Ok(Datum::Null),
        Datum::Record(record) => record,
        _ => bail!(DATATYPE_MISMATCH, "cannot return non-composite value from function returning composite type"),
    };
    if record.type_oid == row_type {
        return Ok(Datum::Record(record));
    }
    let fields = field::record_fields(frame, &record);
    let given: Vec<_> = fields.iter().map(|(_, ty)| *ty).collect();
    check_shape(frame, &given, "returned row structure does not match the structure of the triggering table")?;
    Ok(Datum::Record(Arc::new(Record { type_oid: row_type, ..(*record).clone() })))
}

/// The output parameters as they are.
pub fn output_value(frame: &Frame<'_>, output: &Target) -> Result<Datum> {
    match output {
        Target::Variable(variable) => {
            let ty = frame.types[*variable];
            to_result(frame, Typed { value: frame.values[*variable].clone(), ty: ty.oid, typmod: ty.typmod })
        }
        Target::Row(targets) => {
            let mut fields = Vec::with_capacity(targets.len());
            for target in targets {
                let Target::Variable(variable) = target else { continue };
                fields.push(frame.values[*variable].clone());
            }
            let columns = frame.program.result.columns.as_deref().unwrap_or_default();
            Ok(Datum::Record(Arc::new(Record {
                type_oid: oids::RECORD,
                field_types: columns.iter().map(|c| c.ty).collect(),
                field_names: Some(columns.iter().map(|c| c.name.clone()).collect()),
                fields,
            })))
        }
        _ => Err(DbError::internal("an output parameter that is no variable")),
    }
}

/// The type that RETURN's expression is wanted in.
pub fn result_type(frame: &Frame<'_>) -> VariableType {
    let ty = frame.program.result.ty;
    let is_record = ty == oids::RECORD || frame.program.result.columns.is_some();
    VariableType { oid: ty, typmod: -1, collation: Oid::INVALID, is_record }
}

/// A value as the function returns it.
///
/// # Errors
/// 42804 for a row of another shape.
pub fn to_result(frame: &Frame<'_>, value: Typed) -> Result<Datum> {
    let result = result_type(frame);
    if !result.is_record {
        return value::cast(frame, value, result.oid, -1);
    }
    match value.value {
        Datum::Null => Ok(Datum::Null),
        Datum::Record(record) => {
            let fields = field::record_fields(frame, &record);
            let columns: Vec<(Oid, i32)> = fields.iter().map(|(_, ty)| *ty).collect();
            check_shape(frame, &columns, "returned record type does not match expected record type")?;
            let value = Datum::Record(named_record(frame, &record.fields, record.clone()));
            match frame.is_domain(result.oid) {
                true => io::check_domain(&*frame.context, result.oid, value),
                false => Ok(value),
            }
        }
        _ => bail!(DATATYPE_MISMATCH, "cannot return non-composite value from function returning composite type"),
    }
}

/// A row of a query as the function returns it.
pub fn row_to_result(frame: &Frame<'_>, columns: &[(Oid, i32)], values: Vec<Datum>) -> Result<Datum> {
    let result = result_type(frame);
    const MESSAGE: &str = "structure of query does not match function result type";
    if !result.is_record {
        let [(ty, _)] = columns else { return Err(wrong_count(MESSAGE, columns.len(), 1)) };
        if *ty != result.oid {
            return Err(wrong_type(frame, MESSAGE, *ty, result.oid, 0));
        }
        return Ok(values.into_iter().next().unwrap_or_default());
    }
    check_shape(frame, columns, MESSAGE)?;
    let record = Record {
        type_oid: oids::RECORD,
        field_types: columns.iter().map(|c| c.0).collect(),
        field_names: None,
        fields: Vec::new(),
    };
    Ok(Datum::Record(named_record(frame, &values, Arc::new(record))))
}

fn named_record(frame: &Frame<'_>, fields: &[Datum], like: Arc<Record>) -> Arc<Record> {
    let Some(columns) = &frame.program.result.columns else { return like };
    let base = frame.context.catalog.base_type(frame.program.result.ty);
    if like.type_oid == base && like.fields.len() == fields.len() && base != oids::RECORD {
        return like;
    }
    Arc::new(Record {
        type_oid: base,
        field_types: columns.iter().map(|c| c.ty).collect(),
        field_names: Some(columns.iter().map(|c| c.name.clone()).collect()),
        fields: fields.to_vec(),
    })
}

fn check_shape(frame: &Frame<'_>, given: &[(Oid, i32)], message: &str) -> Result<()> {
    let Some(expected) = &frame.program.result.columns else { return Ok(()) };
    match given.iter().zip(expected).position(|(given, expected)| given.0 != expected.ty) {
        Some(at) => Err(wrong_type(frame, message, given[at].0, expected[at].ty, at)),
        None if given.len() != expected.len() => Err(wrong_count(message, given.len(), expected.len())),
        None => Ok(()),
    }
}

fn wrong_type(frame: &Frame<'_>, message: &str, given: Oid, expected: Oid, at: usize) -> DbError {
    let name = |ty| frame.context.catalog.type_name(ty, &frame.context.path.path);
    let column = frame.program.result.columns.as_ref().and_then(|c| c.get(at));
    // The column of a scalar has no name.
    let column = column.map_or("", |c| &c.name);
    err!(DATATYPE_MISMATCH, "{message}").detail(format!(
        "Returned type {} does not match expected type {} in column \"{column}\" (position {}).",
        name(given),
        name(expected),
        at + 1
    ))
}

fn wrong_count(message: &str, given: usize, expected: usize) -> DbError {
    err!(DATATYPE_MISMATCH, "{message}")
        .detail(format!("Number of returned columns ({given}) does not match expected column count ({expected})."))
}

/// Calls a function with a spare frame, if there is one that fits.
pub fn value_again(caller: &StatementContext, call: &RoutineCall<'_>) -> Option<Result<Datum>> {
    let spare_frames = &RoutineState::of(&caller.session).spare_frames;
    let mut frame = spare_frames.take(call.function)?;
    if !spare::fits(&frame, caller, call) {
        return None;
    }
    spare::begin_again(&mut frame, call);
    let result = value(&mut frame);
    if result.is_ok() {
        spare_frames.give_back(call.function, frame);
    }
    Some(result)
}
