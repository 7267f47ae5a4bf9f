//! Functions and procedures LANGUAGE sql that are not inlined: their statements run one after the other.
//!
//! Invariants:
//! 1. The statements of a VOLATILE function or a procedure take new views; all others use the calling statement's view, and
//!    change nothing.
//! 2. The caller keeps its view usable (`Evaluation::keep_view`).
//! 3. Calls nest as deep as the thread's stack allows, whatever lies between them; then 54001.

mod body;
mod procedure;
mod run;
mod trigger;

use std::sync::Arc;

use melba_catalog::{Function, classes};
use melba_fmgr::{PureRoutine, PureTrigger, RoutineCall, RoutineRows, TriggerCall};
use melba_parse::Statement;
use melba_parse::nodes::{option_text, options};
use melba_types::{Datum, DbError, Oid, Result, err, limits};
use pg_query::protobuf::DoStmt;

pub use body::scope_and_result;
pub use procedure::{analyzed, call_columns, output, run_call, run_called};

use super::context::{StatementContext, format_settings};
use super::control::Control;
use super::function_counts::{counted, counted_rows, is_counted};
use super::language::{Called, Language, Within, language_named, language_of, languages};
use super::local_settings::LocalSettings;
use super::names::SearchPath;
use super::user::User;
use run::FunctionRun;
use trigger::RunningTrigger;

/// LANGUAGE sql.
pub struct Sql;

impl Language for Sql {
    fn oid(&self) -> Oid {
        classes::SQL_LANGUAGE
    }

    fn value(&self, called: Called, call: &RoutineCall<'_>, _control: Control<'_>) -> Result<Datum> {
        FunctionRun::start(called, call)?.value()
    }

    fn rows(&self, called: Called, call: &RoutineCall<'_>) -> Result<RoutineRows> {
        FunctionRun::start(called, call)?.rows()
    }
}

impl StatementContext {
    fn called(&self, call: &RoutineCall<'_>) -> Result<Called> {
        let tx = self.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
        let catalog = tx.catalog();
        let Some(function) = catalog.function(call.function) else {
            return Err(DbError::internal(format!("cache lookup failed for function {}", call.function)));
        };
        self.within_routine(function)
    }

    /// A function in its surroundings.
    pub fn within_routine(&self, function: &Arc<Function>) -> Result<Called> {
        limits::check_stack()?;
        let tx = self.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
        let catalog_version = tx.cluster().catalog_version();
        // Only the trigger's own function sees the rows by their names.
        let mut inner = StatementContext { catalog: tx.catalog(), catalog_version, transitions: None, ..self.clone() };
        if function.security_definer {
            inner.user = Arc::new(self.user.acting_as(&inner.catalog, function.owner));
        }
        let settings = match function.config.is_empty() {
            true => None,
            false => Some(LocalSettings::set(&inner, function)?),
        };
        if settings.is_some() || function.security_definer {
            inner.look_at_settings();
        }
        Ok(Called { context: Arc::new(inner), function: function.clone(), settings })
    }

    /// The context with the privileges of a role whose pending work runs.
    fn acting_as(&self, role: Oid) -> StatementContext {
        let user = Arc::new(self.user.acting_as(&self.catalog, role));
        let mut context = StatementContext { user, ..self.clone() };
        context.look_at_settings();
        context
    }

    /// The context in which expressions of `owner` are computed for another user: the owner's privileges, and a search path into
    /// which no user can put objects.
    pub(super) fn maintaining(&self, owner: Oid) -> StatementContext {
        let user = User { restricted: true, ..self.user.acting_as(&self.catalog, owner) };
        let temporary = *self.session.temporary_namespace.lock();
        let path = SearchPath::new("pg_catalog, pg_temp", &self.catalog, &user, temporary);
        StatementContext { user: Arc::new(user), path: Arc::new(path), ..self.clone() }
    }

    /// Takes over the session's present settings.
    pub fn look_at_settings(&mut self) {
        let temporary = *self.session.temporary_namespace.lock();
        let settings = self.session.settings.lock();
        if !self.user.acting {
            self.user = Arc::new(User::of((self.session.user_oid, &self.session.user), &settings, &self.catalog));
        }
        self.path = Arc::new(SearchPath::new(settings.get("search_path").as_text(), &self.catalog, &self.user, temporary));
        self.format = Arc::new(format_settings(&settings));
    }
}

/// The value of a function.
pub(super) fn routine_value(context: &StatementContext, call: &RoutineCall<'_>) -> Result<Datum> {
    counted(context, call.function, || match languages().find_map(|language| language.value_again(context, call)) {
        Some(value) => value,
        None => value_of_call(context, call, Control::NONE),
    })
}

/// The output arguments of a procedure, which may end the transaction where `control` lets it.
pub(super) fn procedure_value(context: &StatementContext, call: &RoutineCall<'_>, control: Control<'_>) -> Result<Datum> {
    counted(context, call.function, || value_of_call(context, call, control))
}

fn value_of_call(context: &StatementContext, call: &RoutineCall<'_>, control: Control<'_>) -> Result<Datum> {
    let called = context.called(call)?;
    // Settings and privileges of the procedure's own would have to outlast the transaction.
    let is_plain = called.settings.is_none() && !called.function.security_definer;
    let control = if is_plain { control } else { Control::NONE };
    language_of(&called.function)?.value(called, call, control)
}

/// The rows of a set-returning function.
pub(super) fn rows_of_routine(context: &StatementContext, call: &RoutineCall<'_>) -> Result<RoutineRows> {
    counted_rows(context, call.function, || {
        let called = context.called(call)?;
        language_of(&called.function)?.rows(called, call)
    })
}

/// Runs a trigger's function: returns its row, or NULL.
pub(super) fn run_trigger(context: &StatementContext, call: &TriggerCall<'_>) -> Result<Datum> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let catalog = tx.catalog();
    let function = catalog.function(call.trigger.function);
    let function = function.ok_or_else(|| DbError::internal(format!("function {} is missing", call.trigger.function)))?;
    let _running = RunningTrigger::begin(&context.session.running_triggers, call.table.oid);
    if function.language == classes::INTERNAL_LANGUAGE {
        return trigger::run_builtin(context, &function.source, call);
    }
    let is_own_role = call.role == context.user.oid;
    counted(context, function.oid, || {
        let language = language_of(function)?;
        let transitions = trigger::transitions(call);
        if is_own_role
            && transitions.is_none()
            && let Some(row) = language.trigger_again(context, call)
        {
            return row;
        }
        let mut called = match is_own_role {
            true => context.within_routine(function)?,
            false => context.acting_as(call.role).within_routine(function)?,
        };
        if transitions.is_some() {
            Arc::make_mut(&mut called.context).transitions = transitions;
        }
        language.trigger(called, call)
    })
}

/// A function, unless its calls are counted.
fn uncounted_function(context: &StatementContext, oid: Oid) -> Option<Arc<Function>> {
    let function = context.tx.as_ref()?.catalog().function(oid)?.clone();
    (function.language != classes::INTERNAL_LANGUAGE && !is_counted(context, oid)).then_some(function)
}

/// The function of a call, if it is pure.
pub fn pure_routine(context: &StatementContext, call: &RoutineCall<'_>) -> Result<Option<Box<dyn PureRoutine>>> {
    let Some(function) = uncounted_function(context, call.function) else { return Ok(None) };
    language_of(&function)?.pure_routine(context, &function, call)
}

/// A trigger's function, if it is pure.
pub fn pure_trigger(context: &StatementContext, call: &TriggerCall<'_>) -> Result<Option<Box<dyn PureTrigger>>> {
    let found = uncounted_function(context, call.trigger.function);
    let Some(function) = found.filter(|_| call.role == context.user.oid) else { return Ok(None) };
    language_of(&function)?.pure_trigger(context, &function, call)
}

/// Runs a DO block. Errors of its syntax point into the statement.
pub fn run_do(context: &Arc<StatementContext>, s: &DoStmt, statement: &Statement, control: Control<'_>) -> Result<()> {
    let mut text = None;
    let mut language = "plpgsql".to_owned();
    for option in options(&s.args) {
        match option.defname.as_str() {
            "as" => text = option_text(option),
            "language" => language = option_text(option).unwrap_or_default(),
            _ => return Err(DbError::internal(format!("option \"{}\" not recognized", option.defname))),
        }
    }
    let Some(text) = text else { return Err(err!(SYNTAX_ERROR, "no inline code specified")) };
    let within = Within { statement: &statement.source[statement.start..statement.end], start: statement.start };
    language_named(context, &language)?.run_inline(context, &text, within, control)
}

/// Whether a function's statements use the calling statement's view.
fn shares_view(function: &Function) -> bool {
    debug_assert_eq!(function.language, classes::SQL_LANGUAGE);
    function.volatility != b'v'
}
