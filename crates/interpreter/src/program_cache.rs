//! Functions that were parsed, kept for the session's next calls.

use std::sync::Arc;

use melba_catalog::Function;
use melba_fmgr::{RoutineCall, TriggerCall};
use melba_statement::context::StatementContext;
use melba_types::{Oid, Result, oids};

use super::program::Program;
use super::state::{ProgramKey, RoutineState};

/// Functions that are kept; beyond them the cache is cleared.
const PROGRAMS_MAX: usize = 1000;

/// The function that a call runs.
pub fn of_call(context: &StatementContext, function: &Arc<Function>, call: &RoutineCall<'_>) -> Result<Arc<Program>> {
    // Column definition lists differ from call to call.
    if call.columns.is_some() {
        return Program::new(context, function, call).map(Arc::new);
    }
    let key = (function.oid, Box::from(call.arg_types), call.return_type, call.collation);
    cached(context, key, || Program::new(context, function, call))
}

/// The function that a trigger runs.
pub fn of_trigger(context: &StatementContext, function: &Arc<Function>, call: &TriggerCall<'_>) -> Result<Arc<Program>> {
    let key = (function.oid, Box::from([call.trigger.oid]), oids::TRIGGER, Oid::INVALID);
    cached(context, key, || Program::of_trigger(context, function, call))
}

/// The function that an event trigger runs.
pub fn of_event_trigger(context: &StatementContext, function: &Arc<Function>) -> Result<Arc<Program>> {
    let key = (function.oid, Box::default(), oids::EVENT_TRIGGER, Oid::INVALID);
    cached(context, key, || Program::of_event_trigger(context, function))
}

fn cached(context: &StatementContext, key: ProgramKey, make: impl FnOnce() -> Result<Program>) -> Result<Arc<Program>> {
    if let Some(known) = RoutineState::of(&context.session).programs.lock().get(&key)
        && Arc::ptr_eq(&known.catalog, &context.catalog)
        && known.path == context.path.path
    {
        return Ok(known.clone());
    }
    let program = Arc::new(make()?);
    let mut cache = RoutineState::of(&context.session).programs.lock();
    if cache.len() >= PROGRAMS_MAX {
        cache.clear();
    }
    cache.insert(key, program.clone());
    Ok(program)
}
