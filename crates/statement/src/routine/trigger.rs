//! Running triggers: their nesting, their named row sets, and the built-in trigger functions.

use std::sync::Arc;

use melba_catalog::trigger_events::{BEFORE, ROW, UPDATE};
use melba_fmgr::{Session, TransitionTable, TriggerCall};
use melba_functions::record;
use melba_tsearch::update_trigger;
use melba_types::{Datum, DbError, Oid, Result, bail};

use parking_lot::Mutex;

/// A trigger runs: pg_trigger_depth() counts it, and its table cannot be altered, as long as this lives.
pub(super) struct RunningTrigger<'a>(&'a Mutex<Vec<Oid>>);

impl RunningTrigger<'_> {
    /// `running`: the tables of the session's triggers that run.
    pub fn begin(running: &Mutex<Vec<Oid>>, table: Oid) -> RunningTrigger<'_> {
        running.lock().push(table);
        RunningTrigger(running)
    }
}

impl Drop for RunningTrigger<'_> {
    fn drop(&mut self) {
        self.0.lock().pop();
    }
}

/// A trigger's names for rows, and the rows.
type Named = (Arc<str>, Arc<dyn TransitionTable>);

/// The rows that a trigger has names for.
pub fn transitions(call: &TriggerCall<'_>) -> Option<Arc<[Named]>> {
    let named = |name: &Option<Arc<str>>, rows: &Option<Arc<dyn TransitionTable>>| Some((name.clone()?, rows.clone()?));
    let trigger = call.trigger;
    if trigger.old_table.is_none() && trigger.new_table.is_none() {
        return None;
    }
    let all = [named(&trigger.old_table, &call.old_table), named(&trigger.new_table, &call.new_table)];
    let all: Arc<[Named]> = all.into_iter().flatten().collect();
    (!all.is_empty()).then_some(all)
}

/// Runs a built-in trigger function.
///
/// # Errors
/// 39P01 for a trigger that it is not for.
pub(super) fn run_builtin(session: &dyn Session, source: &str, call: &TriggerCall<'_>) -> Result<Datum> {
    match source {
        "tsvector_update_trigger_byid" => update_trigger::run(session, call, false),
        "tsvector_update_trigger_bycolumn" => update_trigger::run(session, call, true),
        "suppress_redundant_updates_trigger" => suppress_redundant_updates(call),
        _ => Err(DbError::unsupported(format!("trigger function {source}"))),
    }
}

/// suppress_redundant_updates_trigger(): no row where nothing changes.
fn suppress_redundant_updates(call: &TriggerCall<'_>) -> Result<Datum> {
    let must = |what: &str| format!("suppress_redundant_updates_trigger: must be called {what}");
    if call.event != UPDATE {
        bail!(E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, "{}", must("on update"));
    }
    if !call.trigger.has(BEFORE) {
        bail!(E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, "{}", must("before update"));
    }
    if !call.trigger.has(ROW) {
        bail!(E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, "{}", must("for each row"));
    }
    match (call.old, call.new) {
        (Some(Datum::Record(old)), Some(Datum::Record(new))) if record::image_order(old, new)?.is_eq() => Ok(Datum::Null),
        (_, Some(new)) => Ok(new.clone()),
        _ => Err(DbError::internal("an update without its rows")),
    }
}
