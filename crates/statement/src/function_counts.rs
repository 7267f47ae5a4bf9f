//! Counting the calls of functions, and showing them. With track_functions = none a call reads the version of the session's settings
//! and no more.

use std::sync::Arc;
use std::time::Duration;

use melba_catalog::classes;
use melba_fmgr::RoutineRows;
use melba_types::{Datum, Oid, Result};

use super::call_counts::{CallCounts, RunningCall, Tracked};
use super::context::{SessionState, StatementContext};
use super::fetching::fetched_function;

fn now(session: &SessionState) -> Duration {
    session.instance.cluster.clock.monotonic()
}

pub(super) fn is_counted(context: &StatementContext, function: Oid) -> bool {
    let session = &context.session;
    let read = || Tracked::of(session.settings.lock().get("track_functions").as_text());
    let tracked = session.calls.tracked(session.settings_version(), read);
    if tracked == Tracked::None {
        return false;
    }
    let language = match &context.tx {
        Some(tx) => tx.catalog().function(function).map(|f| f.language),
        None => context.catalog.function(function).map(|f| f.language),
    };
    match language {
        None | Some(classes::INTERNAL_LANGUAGE) => false,
        Some(classes::SQL_LANGUAGE | classes::C_LANGUAGE) => tracked == Tracked::All,
        Some(_) => true,
    }
}

fn begin(session: &SessionState, function: Oid) -> RunningCall {
    session.calls.begin(function, now(session))
}

/// Runs a call. It is counted if it is to be, and if it does not fail.
pub(super) fn counted<T>(context: &StatementContext, function: Oid, call: impl FnOnce() -> Result<T>) -> Result<T> {
    if !is_counted(context, function) {
        return call();
    }
    let running = begin(&context.session, function);
    call().inspect(|_| context.session.calls.end(&running, now(&context.session), true))
}

/// The rows of a call, which is counted when they have been read as far as they are wanted.
pub(super) fn counted_rows(
    context: &StatementContext,
    function: Oid,
    call: impl FnOnce() -> Result<RoutineRows>,
) -> Result<RoutineRows> {
    if !is_counted(context, function) {
        return call();
    }
    let session = context.session.clone();
    let running = begin(&session, function);
    let rows = call()?;
    session.calls.end(&running, now(&session), false);
    Ok(Box::new(CountedRows { session, function, rows, has_failed: false }))
}

struct CountedRows {
    session: Arc<SessionState>,
    function: Oid,
    rows: RoutineRows,
    has_failed: bool,
}

impl Iterator for CountedRows {
    type Item = Result<Datum>;

    fn next(&mut self) -> Option<Result<Datum>> {
        let running = begin(&self.session, self.function);
        let row = self.rows.next();
        self.has_failed |= matches!(row, Some(Err(_)));
        self.session.calls.end(&running, now(&self.session), false);
        row
    }
}

impl Drop for CountedRows {
    fn drop(&mut self) {
        if !self.has_failed {
            self.session.calls.count(self.function);
        }
    }
}

/// pg_stat_get_function_NAME and pg_stat_get_xact_function_NAME: `calls`, `total_time` or `self_time`, in milliseconds. NULL for a
/// function without counts; `None`: no such name.
pub(super) fn function_value(context: &StatementContext, name: &str, function: Oid) -> Option<Datum> {
    let (counts, what) = match (name.strip_prefix("xact_function_"), name.strip_prefix("function_")) {
        (Some(what), _) => (context.session.calls.of_function(function), what),
        (None, Some(what)) => (fetched_function(context, function), what),
        (None, None) => return None,
    };
    let value: fn(CallCounts) -> Datum = match what {
        "calls" => |counts| Datum::Int8(counts.calls as i64),
        "total_time" => |counts| Datum::Float8(counts.total.as_secs_f64() * 1000.0),
        "self_time" => |counts| Datum::Float8(counts.own.as_secs_f64() * 1000.0),
        _ => return None,
    };
    Some(counts.map_or(Datum::Null, value))
}
