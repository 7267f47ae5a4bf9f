//! Functions, procedures and DO blocks LANGUAGE plpgsql: their statements run over a frame of variables.
//!
//! The modules are functions over the `Frame`; its methods run statements, which contain others.
//!
//! Invariants:
//! 1. A piece of SQL is analyzed when it is first reached, and again when the catalog or the shape of a record that it reads has
//!    changed since (`expression`).
//! 2. A single expression is evaluated without a plan, over the frame's variables as its input row.
//! 3. A trigger function is kept for each trigger: its NEW and OLD are rows of the trigger's table.
//! 4. An error carries one line of context for each function that it leaves (`Frame::located`).

mod cursor;
mod diagnostics;
mod exception;
mod expression;
mod extra_checks;
mod field;
mod frame;
mod loops;
mod misuse;
mod program;
mod program_cache;
mod purity;
mod raise;
mod result;
mod returned;
mod spare;
mod sql;
mod state;
mod statement;
mod trigger;
mod trigger_values;
mod utility;
mod value;

use std::sync::Arc;

use melba_catalog::{Function, classes};
use melba_fmgr::{PureRoutine, PureTrigger, RoutineCall, RoutineRows, TriggerCall};
use melba_types::{Datum, Oid, Result};

use melba_statement::context::{SessionState, StatementContext};
use melba_statement::control::Control;
use melba_statement::language::{Called, EventCall, Language, Within};

/// LANGUAGE plpgsql.
pub struct PlPgSql;

impl Language for PlPgSql {
    fn oid(&self) -> Oid {
        classes::PLPGSQL_LANGUAGE
    }

    fn check(&self, context: &StatementContext, function: &Arc<Function>, within: Within<'_>) -> Result<()> {
        program::check(context, function, within)
    }

    fn value_again(&self, caller: &StatementContext, call: &RoutineCall<'_>) -> Option<Result<Datum>> {
        result::value_again(caller, call)
    }

    fn pure_routine(
        &self,
        caller: &StatementContext,
        function: &Arc<Function>,
        call: &RoutineCall<'_>,
    ) -> Result<Option<Box<dyn PureRoutine>>> {
        purity::pure_routine(caller, function, call)
    }

    fn value(&self, called: Called, call: &RoutineCall<'_>, control: Control<'_>) -> Result<Datum> {
        result::call_value(called, call, control)
    }

    fn rows(&self, called: Called, call: &RoutineCall<'_>) -> Result<RoutineRows> {
        result::call_rows(called, call)
    }

    fn trigger_again(&self, caller: &StatementContext, call: &TriggerCall<'_>) -> Option<Result<Datum>> {
        result::trigger_again(caller, call)
    }

    fn pure_trigger(
        &self,
        caller: &StatementContext,
        function: &Arc<Function>,
        call: &TriggerCall<'_>,
    ) -> Result<Option<Box<dyn PureTrigger>>> {
        purity::pure_trigger(caller, function, call)
    }

    fn trigger(&self, called: Called, call: &TriggerCall<'_>) -> Result<Datum> {
        result::call_trigger(called, call)
    }

    fn event_trigger(&self, called: Called, call: &EventCall<'_>) -> Result<()> {
        result::call_event_trigger(called, call)
    }

    fn run_inline(&self, context: &Arc<StatementContext>, text: &str, within: Within<'_>, control: Control<'_>) -> Result<()> {
        result::run_inline(context, text, within, control)
    }

    fn end_statement(&self, session: &SessionState) {
        state::end_statement(session);
    }
}
