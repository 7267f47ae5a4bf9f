//! Calls from outside, and their results.
//!
//! Frames of functions that have returned are kept for the statement's next call of the same function:
//! 1. A spare frame runs again only in the context it was made in: the same catalog, user, search path, settings and transaction.
//! 2. Frames are dropped when their statement ends.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::Function;
use melba_catalog::trigger_events::ROW;
use melba_engine::ReadView;
use melba_fmgr::{RoutineCall, RoutineRows, TriggerCall, io};
use melba_plpgsql::Returns;
use melba_plpgsql::tree::{Target, VariableType};
use melba_spill::{Place, Resources, Store};
use melba_types::{BATCH_ROWS, Batch, Column, Datum, DbError, Kind, Oid, RarelyUsed, Record, Result, bail, err, oids};

use super::super::context::StatementContext;
use super::super::control::Control;
use super::super::language::{Called, Within};
use super::frame::{Frame, Typed};
use super::program::{Program, compile_error};
use super::state::RoutineState;
use super::trigger;

/// The rows a function has returned so far.
pub(super) struct Returned {
    pub value: Option<Typed>,
    /// Of a set-returning function.
    rows: Option<Store>,
    waiting: Vec<Datum>,
    kind: Kind,
}

impl Returned {
    pub fn new(context: &StatementContext, program: &Program) -> Returned {
        let rows = program.returns_set.then(|| {
            let resources = Arc::new(Resources::new(context, &context.session.engine()));
            Store::new(&resources)
        });
        let kind = context.catalog.kind_of(program.result.ty).unwrap_or(Kind::Record);
        Returned { value: None, rows, waiting: Vec::new(), kind }
    }

    pub fn push(&mut self, value: Datum) -> Result<()> {
        self.waiting.push(value);
        if self.waiting.len() >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let values = std::mem::take(&mut self.waiting);
        let Some(rows) = self.rows.as_mut().filter(|_| !values.is_empty()) else { return Ok(()) };
        let count = values.len();
        let mut column = Column::with_capacity(self.kind, count);
        values.into_iter().for_each(|value| column.push(value));
        rows.push(Batch::new(vec![column], count))
    }
}

fn start<'a>(
    context: Arc<StatementContext>,
    function: &Arc<Function>,
    call: &RoutineCall<'_>,
    control: Control<'a>,
) -> Result<Frame<'a>> {
    let program = Program::of(&context, function, call).map_err(|e| compile_error(e, &function.name, &function.source))?;
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
        return frame.result();
    }
    let mut frame = start(context.clone(), &function, call, Control::NONE)?;
    let value = frame.value()?;
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
        let value = frame.result()?;
        return Ok(Box::new(std::iter::once(Ok(value))));
    }
    frame.returned.flush()?;
    let rows = frame.returned.rows.take().ok_or_else(|| DbError::internal("a set without rows"))?;
    Ok(Box::new(ReturnedRows { rows, place: 0, batch: None }))
}

/// Runs a trigger's function: returns its row, or NULL.
pub fn call_trigger(called: Called, call: &TriggerCall<'_>) -> Result<Datum> {
    let Called { context, function, settings } = called;
    let program = Program::of_trigger(&context, &function, call);
    let program = program.map_err(|e| compile_error(e, &function.name, &function.source))?;
    let view = program.shares_view.then_some(ReadView { csn: call.view.0, command: call.view.1 });
    let mut frame = Frame::new(program, context, view, Control::NONE)?;
    let schema = frame.context.catalog.namespace(call.table.namespace).map_or_else(|| "".into(), |n| n.name.clone());
    for (variable, value) in trigger::values(call, schema).into_iter().enumerate() {
        frame.values[variable] = value;
    }
    frame.run()?;
    drop(settings);
    let Some(value) = frame.returned.value.take() else {
        let e = err!(S_R_E_FUNCTION_EXECUTED_NO_RETURN_STATEMENT, "control reached end of trigger procedure without RETURN");
        return Err(e.within(format!("PL/pgSQL function {}", frame.program.name)));
    };
    let row = frame.trigger_row(call, value.value);
    row.map_err(|e| e.within(format!("PL/pgSQL function {} during function exit", frame.program.name)))
}

/// DO.
pub fn run_inline(context: &Arc<StatementContext>, text: &str, within: Within<'_>, control: Control<'_>) -> Result<()> {
    let program = Program::of_block(context, text);
    let program = program.map_err(|e| within.located(e, text).unwrap_or_else(|e| compile_error(e, "inline_code_block", text)))?;
    Frame::new(Arc::new(program), context.clone(), None, control)?.run()
}

struct ReturnedRows {
    rows: Store,
    place: Place,
    batch: Option<(Batch, usize)>,
}

impl Iterator for ReturnedRows {
    type Item = Result<Datum>;

    fn next(&mut self) -> Option<Result<Datum>> {
        loop {
            if let Some((batch, at)) = &mut self.batch
                && *at < batch.rows
            {
                *at += 1;
                return Some(Ok(batch.columns[0].get(*at - 1)));
            }
            match self.rows.read(&mut self.place, BATCH_ROWS) {
                Ok(Some(batch)) => self.batch = Some((batch, 0)),
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

impl Frame<'_> {
    /// Runs the function; returns its result.
    pub fn value(&mut self) -> Result<Datum> {
        self.run()?;
        self.result()
    }

    /// The function's result, after its end.
    fn result(&mut self) -> Result<Datum> {
        if let Some(value) = self.returned.value.take() {
            return self.to_result(value).map_err(|e| {
                let place = format!("PL/pgSQL function {}", self.program.name);
                e.within(format!("{place} while casting return value to function's return type"))
            });
        }
        match (&self.program.output, self.program.returns) {
            (Some(output), _) => {
                let output = output.clone();
                self.output_value(&output)
            }
            // The result of PostgreSQL's void functions is not NULL.
            (None, Returns::Void) => Ok(Datum::text("")),
            _ => {
                let e = err!(S_R_E_FUNCTION_EXECUTED_NO_RETURN_STATEMENT, "control reached end of function without RETURN");
                Err(e.within(format!("PL/pgSQL function {}", self.program.name)))
            }
        }
    }

    /// The returned value, as a row of the trigger's table.
    fn trigger_row(&self, call: &TriggerCall<'_>, value: Datum) -> Result<Datum> {
        let record = match value {
            _ if !call.trigger.has(ROW) => return Ok(Datum::Null),
            Datum::Null => return Ok(Datum::Null),
            Datum::Record(record) => record,
            _ => bail!(DATATYPE_MISMATCH, "cannot return non-composite value from function returning composite type"),
        };
        if record.type_oid == call.table.row_type {
            return Ok(Datum::Record(record));
        }
        let fields = self.record_fields(&record);
        let given: Vec<_> = fields.iter().map(|(_, ty)| *ty).collect();
        self.check_shape(&given, "returned row structure does not match the structure of the triggering table")?;
        Ok(Datum::Record(Arc::new(Record { type_oid: call.table.row_type, ..(*record).clone() })))
    }

    /// The output parameters as they are.
    pub fn output_value(&self, output: &Target) -> Result<Datum> {
        match output {
            Target::Variable(variable) => {
                let ty = self.types[*variable];
                self.to_result(Typed { value: self.values[*variable].clone(), ty: ty.oid, typmod: ty.typmod })
            }
            Target::Row(targets) => {
                let mut fields = Vec::with_capacity(targets.len());
                for target in targets {
                    let Target::Variable(variable) = target else { continue };
                    fields.push(self.values[*variable].clone());
                }
                let columns = self.program.result.columns.as_deref().unwrap_or_default();
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
    pub fn result_type(&self) -> VariableType {
        let ty = self.program.result.ty;
        let is_record = ty == oids::RECORD || self.program.result.columns.is_some();
        VariableType { oid: ty, typmod: -1, collation: Oid::INVALID, is_record }
    }

    /// A value as the function returns it.
    ///
    /// # Errors
    /// 42804 for a row of another shape.
    pub fn to_result(&self, value: Typed) -> Result<Datum> {
        let result = self.result_type();
        if !result.is_record {
            return self.cast(value, result.oid, -1);
        }
        match value.value {
            Datum::Null => Ok(Datum::Null),
            Datum::Record(record) => {
                let fields = self.record_fields(&record);
                let columns: Vec<(Oid, i32)> = fields.iter().map(|(_, ty)| *ty).collect();
                self.check_shape(&columns, "returned record type does not match expected record type")?;
                let value = Datum::Record(self.named_record(&record.fields, record.clone()));
                match self.is_domain(result) {
                    true => io::check_domain(&*self.context, result.oid, value),
                    false => Ok(value),
                }
            }
            _ => bail!(DATATYPE_MISMATCH, "cannot return non-composite value from function returning composite type"),
        }
    }

    /// A row of a query as the function returns it.
    pub fn row_to_result(&self, columns: &[(Oid, i32)], values: Vec<Datum>) -> Result<Datum> {
        let result = self.result_type();
        const MESSAGE: &str = "structure of query does not match function result type";
        if !result.is_record {
            let [(ty, _)] = columns else { return Err(wrong_count(MESSAGE, columns.len(), 1)) };
            if *ty != result.oid {
                return Err(self.wrong_type(MESSAGE, *ty, result.oid, 0));
            }
            return Ok(values.into_iter().next().unwrap_or_default());
        }
        self.check_shape(columns, MESSAGE)?;
        let record = Record {
            type_oid: oids::RECORD,
            field_types: columns.iter().map(|c| c.0).collect(),
            field_names: None,
            fields: Vec::new(),
        };
        Ok(Datum::Record(self.named_record(&values, Arc::new(record))))
    }

    fn named_record(&self, fields: &[Datum], like: Arc<Record>) -> Arc<Record> {
        let Some(columns) = &self.program.result.columns else { return like };
        let base = self.context.catalog.base_type(self.program.result.ty);
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

    pub fn check_shape(&self, given: &[(Oid, i32)], message: &str) -> Result<()> {
        let Some(expected) = &self.program.result.columns else { return Ok(()) };
        match given.iter().zip(expected).position(|(given, expected)| given.0 != expected.ty) {
            Some(at) => Err(self.wrong_type(message, given[at].0, expected[at].ty, at)),
            None if given.len() != expected.len() => Err(wrong_count(message, given.len(), expected.len())),
            None => Ok(()),
        }
    }

    fn wrong_type(&self, message: &str, given: Oid, expected: Oid, at: usize) -> DbError {
        let name = |ty| self.context.catalog.type_name(ty, &self.context.path.path);
        let column = self.program.result.columns.as_ref().and_then(|c| c.get(at));
        let column = column.map_or_else(|| format!("{}", at + 1), |c| format!("\"{}\" (position {})", c.name, at + 1));
        err!(DATATYPE_MISMATCH, "{message}").detail(format!(
            "Returned type {} does not match expected type {} in column {column}.",
            name(given),
            name(expected)
        ))
    }
}

fn wrong_count(message: &str, given: usize, expected: usize) -> DbError {
    err!(DATATYPE_MISMATCH, "{message}")
        .detail(format!("Number of returned columns ({given}) does not match expected column count ({expected})."))
}

/// Frames kept per function: enough for most recursions.
const SPARE_MAX: usize = 50;

#[derive(Default)]
pub struct SpareFrames(RarelyUsed<HashMap<Oid, Vec<Frame<'static>>>>);

impl SpareFrames {
    /// The statement has ended.
    pub fn clear(&self) {
        self.0.take();
    }

    fn take(&self, function: Oid) -> Option<Frame<'static>> {
        self.0.used()?.get_mut(&function)?.pop()
    }

    pub(super) fn give_back(&self, function: Oid, frame: Frame<'static>) {
        let mut frames = self.0.lock();
        let spare = frames.entry(function).or_default();
        if spare.len() < SPARE_MAX {
            spare.push(frame);
        }
    }
}

/// Calls a function with a spare frame, if there is one that fits.
pub fn value_again(caller: &StatementContext, call: &RoutineCall<'_>) -> Option<Result<Datum>> {
    let mut frame = RoutineState::of(&caller.session).spare_frames.take(call.function)?;
    if !frame.fits(caller, call) {
        return None;
    }
    frame.begin_again(call);
    let result = frame.value();
    if result.is_ok() {
        RoutineState::of(&caller.session).spare_frames.give_back(call.function, frame);
    }
    Some(result)
}

impl Frame<'_> {
    fn fits(&self, caller: &StatementContext, call: &RoutineCall<'_>) -> bool {
        let own = &self.context;
        call.columns.is_none()
            && Arc::ptr_eq(&own.path, &caller.path)
            && Arc::ptr_eq(&own.user, &caller.user)
            && Arc::ptr_eq(&own.format, &caller.format)
            && caller.tx.as_ref().is_some_and(|tx| Arc::ptr_eq(tx, &self.tx))
            && self.tx.sees_catalog_version(own.catalog_version)
            && (own.transaction_start, own.statement_start) == (caller.transaction_start, caller.statement_start)
            && self.settings_version == caller.session.settings_version()
            && *self.program.arg_types == *call.arg_types
            && self.program.return_type == call.return_type
    }

    fn begin_again(&mut self, call: &RoutineCall<'_>) {
        let program = self.program.clone();
        self.values.fill(Datum::Null);
        for (ty, variable) in self.types.iter_mut().zip(&program.tree.variables) {
            *ty = variable.ty;
        }
        self.values[program.tree.found] = Datum::Bool(false);
        for (variable, value) in program.inputs.iter().zip(call.args) {
            self.values[*variable] = value.clone();
        }
        let view = ReadView { csn: call.view.0, command: call.view.1 };
        self.view = program.shares_view.then_some(view);
        self.evaluation.release_view();
        self.evaluation.set_view(view);
        self.returned.value = None;
        self.row_count = 0;
        self.handled = None;
        self.located = false;
    }
}
