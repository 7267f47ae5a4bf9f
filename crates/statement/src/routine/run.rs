//! One call of a function: its statements up to the last one, whose rows are the result.

use std::sync::Arc;

use melba_analyze::ResultForm;
use melba_engine::{ReadView, ViewPin};
use melba_execute::Execution;
use melba_fmgr::{RoutineCall, RoutineRows};
use melba_parse::command::is_query;
use melba_spill::{Place, Store};
use melba_transaction::Tx;
use melba_tree::OutputColumn;
use melba_types::{BATCH_ROWS, Batch, Datum, DbError, Oid, Record, Result, err, oids};
use pg_query::NodeEnum;

use super::super::context::StatementContext;
use super::super::control::Control;
use super::super::error_context::{self, Entered, ErrorContext};
use super::super::language::Called;
use super::super::local_settings::LocalSettings;
use super::super::outcome::Outcome;
use super::super::planning::analysis;
use super::super::set::set_in_routine;
use super::super::{command, execution, utility};
use super::body::{PlannedStatement, RoutineBody};
use super::{run_call, shares_view};

pub(super) struct FunctionRun {
    body: Arc<RoutineBody>,
    context: Arc<StatementContext>,
    tx: Arc<Tx>,
    parameters: Arc<[Datum]>,
    /// The calling statement's view.
    view: ReadView,
    /// As of which version of the session's settings the context is.
    settings_version: u64,
    /// Dropped last: the statements run with them.
    settings: Option<LocalSettings>,
}

/// The last statement, begun.
struct Last {
    execution: Execution,
    shape: Shape,
}

/// How rows become values.
struct Shape {
    form: ResultForm,
    ty: Oid,
    types: Arc<[Oid]>,
    names: Arc<[Arc<str>]>,
}

impl FunctionRun {
    pub fn start(called: Called, call: &RoutineCall<'_>) -> Result<FunctionRun> {
        let Called { context, function, settings } = called;
        let tx = context.tx.clone().ok_or_else(|| DbError::internal("no transaction is open"))?;
        let body = RoutineBody::of(&context, &function, call).map_err(|e| {
            let source = function.sql_body.as_deref().unwrap_or(&function.source);
            e.in_query(source).within(format!("SQL function \"{}\" during startup", function.name))
        })?;
        let view = ReadView { csn: call.view.0, command: call.view.1 };
        let settings_version = context.session.settings_version();
        Ok(FunctionRun { body, context, tx, parameters: call.args.into(), view, settings_version, settings })
    }

    /// Runs all statements but the last, and begins that one if it is a query.
    fn run_to_last(&mut self) -> Result<Option<Last>> {
        let count = self.body.statements.len();
        let result = self.body.result.ty;
        if count == 0 && result != oids::VOID {
            let e = melba_analyze::no_final_query(&analysis(&self.context), result);
            return Err(e.within(format!("SQL function \"{}\" during startup", self.body.function.name)));
        }
        for at in 0..count {
            self.refresh();
            let entered = self.enter(at);
            let step = self.step(at).and_then(|last| match last {
                Some(last) if at + 1 == count => Ok(Some(last)),
                Some(mut last) => {
                    while last.execution.next_batch(BATCH_ROWS)?.is_some() {
                        self.context.session.interrupt.check()?;
                    }
                    Ok(None)
                }
                None => Ok(None),
            });
            drop(entered);
            match step.map_err(|e| self.failed(at, e))? {
                Some(last) => return Ok(Some(last)),
                None if at + 1 == count && result != oids::VOID => {
                    return Err(self.failed(at, melba_analyze::no_final_query(&analysis(&self.context), result)));
                }
                None => {}
            }
        }
        Ok(None)
    }

    /// The statement before may have changed the catalog, and settings.
    fn refresh(&mut self) {
        let now = self.tx.catalog();
        let settings_version = self.context.session.settings_version();
        if !Arc::ptr_eq(&now, &self.context.catalog) || settings_version != self.settings_version {
            let mut context = StatementContext { catalog: now, ..StatementContext::clone(&self.context) };
            context.look_at_settings();
            self.settings_version = settings_version;
            self.context = Arc::new(context);
        }
    }

    fn enter(&self, at: usize) -> Entered {
        error_context::enter(ErrorContext::Sql { function: self.body.function.clone(), statement: at + 1 })
    }

    fn failed(&self, at: usize, e: DbError) -> DbError {
        let source = &self.body.statements[at].source;
        e.in_query(source).within(format!("SQL function \"{}\" statement {}", self.body.function.name, at + 1))
    }

    /// Begins a query; runs any other statement.
    fn step(&mut self, at: usize) -> Result<Option<Last>> {
        let statement = self.body.statements[at].clone();
        command::check_in_function(&statement.node, shares_view(&self.body.function), &self.context.session)?;
        if is_query(&statement.node) {
            let planned = self.planned(at)?;
            let view = shares_view(&self.body.function).then_some(self.view);
            let execution =
                execution::execution(&self.context, &self.tx, &planned.planned, &self.parameters, (view, &statement.source))?;
            let shape = self.shape(planned.form, &execution.plan().columns);
            return Ok(Some(Last { execution, shape }));
        }
        let outcome = match &statement.node {
            NodeEnum::CallStmt(call) => {
                run_call(&self.context, call, Some(&self.body.scope), (&[], &self.parameters), Control::NONE)?
            }
            NodeEnum::VariableSetStmt(set) => {
                set_in_routine(&self.context, set)?;
                return Ok(None);
            }
            _ => utility::execute(&self.context, &self.tx, &statement, (&[], &Arc::from([])))?,
        };
        match outcome {
            Outcome::CopyIn { .. } | Outcome::CopyOut { .. } => {
                Err(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in an SQL function"))
            }
            Outcome::Rows { .. } | Outcome::Done { .. } => Ok(None),
        }
    }

    /// A query for the definitions that its relations have once they are locked.
    fn planned(&mut self, at: usize) -> Result<Arc<PlannedStatement>> {
        let mut planned = self.body.planned(at, &self.context)?;
        while execution::is_outdated(&self.context, &self.tx, &planned.planned)? {
            self.refresh();
            planned = self.body.planned(at, &self.context)?;
        }
        Ok(planned)
    }

    fn shape(&self, form: ResultForm, given: &[OutputColumn]) -> Shape {
        let result = &self.body.result;
        let columns = match &result.columns {
            Some(columns) if form == ResultForm::Row => columns,
            _ => given,
        };
        Shape {
            form,
            ty: self.context.catalog.base_type(result.ty),
            types: columns.iter().map(|c| c.ty).collect(),
            names: columns.iter().map(|c| c.name.clone()).collect(),
        }
    }

    /// The first row of the last statement; a SELECT runs no further.
    pub fn value(mut self) -> Result<Datum> {
        let Some(mut last) = self.run_to_last()? else { return Ok(Datum::Null) };
        let at = self.body.statements.len() - 1;
        let _entered = self.enter(at);
        let value = (|| {
            let all = last.must_complete();
            let first = last.execution.next_batch(1)?.map(|batch| last.shape.value(&batch, 0));
            while all && last.execution.next_batch(BATCH_ROWS)?.is_some() {
                self.context.session.interrupt.check()?;
            }
            Ok(first.unwrap_or(Datum::Null))
        })();
        drop(last);
        value.map_err(|e| self.failed(at, e))
    }

    /// All rows of the last statement. Those of a SELECT are computed as they are read.
    pub fn rows(mut self) -> Result<RoutineRows> {
        let Some(mut last) = self.run_to_last()? else { return Ok(Box::new(std::iter::empty())) };
        if last.shape.form == ResultForm::Void {
            return Ok(Box::new(std::iter::empty()));
        }
        let source = if last.must_complete() || self.settings.is_some() {
            let mut kept = Store::new(last.execution.evaluation().resources());
            let at = self.body.statements.len() - 1;
            let _entered = self.enter(at);
            while let Some(batch) = last.execution.next_batch(BATCH_ROWS).map_err(|e| self.failed(at, e))? {
                self.context.session.interrupt.check()?;
                kept.push(batch)?;
            }
            self.settings = None;
            RowsSource::Kept(kept, 0)
        } else {
            let pin = self.tx.engine.pin_view(last.execution.evaluation().view());
            RowsSource::Running(Box::new(last.execution), pin)
        };
        Ok(Box::new(FunctionRows { run: self, source, shape: last.shape, batch: None }))
    }
}

impl Last {
    /// Its effects must happen whether or not its rows are wanted.
    fn must_complete(&self) -> bool {
        self.execution.plan().must_complete() || self.shape.form == ResultForm::Void
    }
}

impl Shape {
    fn value(&self, batch: &Batch, row: usize) -> Datum {
        match self.form {
            ResultForm::Void => Datum::Null,
            ResultForm::Value => batch.columns[0].get(row),
            ResultForm::Row => Datum::Record(Arc::new(Record {
                type_oid: self.ty,
                field_types: self.types.clone(),
                field_names: Some(self.names.clone()),
                fields: batch.columns.iter().map(|c| c.get(row)).collect(),
            })),
        }
    }
}

enum RowsSource {
    Running(Box<Execution>, ViewPin),
    Kept(Store, Place),
}

struct FunctionRows {
    source: RowsSource,
    shape: Shape,
    /// Buffered rows, and the next one of them.
    batch: Option<(Batch, usize)>,
    run: FunctionRun,
}

impl FunctionRows {
    fn fill(&mut self) -> Result<bool> {
        // The effects of a volatile function's row happen when it is requested.
        let limit = if shares_view(&self.run.body.function) { BATCH_ROWS } else { 1 };
        let next = match &mut self.source {
            RowsSource::Running(execution, _pin) => {
                let at = self.run.body.statements.len() - 1;
                let _entered = self.run.enter(at);
                execution.next_batch(limit).map_err(|e| self.run.failed(at, e))?
            }
            RowsSource::Kept(rows, place) => rows.read(place, BATCH_ROWS)?,
        };
        self.batch = next.map(|batch| (batch, 0));
        Ok(self.batch.is_some())
    }
}

impl Iterator for FunctionRows {
    type Item = Result<Datum>;

    fn next(&mut self) -> Option<Result<Datum>> {
        loop {
            if let Some((batch, at)) = &mut self.batch
                && *at < batch.rows
            {
                *at += 1;
                return Some(Ok(self.shape.value(batch, *at - 1)));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}
