//! Background work as PostgreSQL shows its auxiliary processes: a number, a backend_type, what it waits for.

use melba_engine::{BackgroundStep, BackgroundWorker};
use melba_types::{Datum, Oid};

use super::context::{Instance, StatementContext};
use super::user::sees_activity_of;

/// The numbers behind the server's own that belong to background work; sessions have those behind them.
pub const WORKER_PIDS: i32 = BackgroundStep::ALL.len() as i32;

/// The number of a worker's thread in the place of a process.
pub(super) fn pid(step: BackgroundStep) -> i32 {
    std::process::id() as i32 + 1 + step as i32
}

/// pg_stat_activity.backend_type. PostgreSQL's names where a process of it does the same.
pub(super) fn backend_type(step: BackgroundStep) -> &'static str {
    match step {
        BackgroundStep::Log => "walwriter",
        BackgroundStep::LogFile => "log file preparer",
        BackgroundStep::Flush => "checkpointer",
        BackgroundStep::Merge => "merger",
    }
}

/// pg_stat_activity.wait_event, of type Activity, while it waits for work.
pub(super) fn idle_event(step: BackgroundStep) -> &'static str {
    match step {
        BackgroundStep::Log => "WalWriterMain",
        BackgroundStep::LogFile => "LogFilePreparerMain",
        BackgroundStep::Flush => "CheckpointerMain",
        BackgroundStep::Merge => "MergerMain",
    }
}

fn wait_event(worker: &BackgroundWorker) -> Option<&'static str> {
    (!worker.is_working).then(|| idle_event(worker.step))
}

/// The workers that have threads of their own.
pub(super) fn workers(instance: &Instance) -> Vec<BackgroundWorker> {
    match instance.cluster.engine.has_background() {
        true => instance.cluster.engine.background_workers(),
        false => Vec::new(),
    }
}

/// Rows of pg_stat_activity (`system_rows::activity_rows` has the columns).
pub(super) fn activity_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let is_seen = sees_activity_of(&context.catalog, context.user.oid, Oid::INVALID);
    let row = |worker: &BackgroundWorker| {
        let mut row = vec![Datum::Null; 31];
        (row[1], row[3]) = (Datum::Int4(pid(worker.step)), Datum::text(""));
        if !is_seen {
            row[5] = Datum::text("<insufficient privilege>");
            return row;
        }
        row[5] = Datum::text("");
        if let Some(event) = wait_event(worker) {
            (row[6], row[7]) = (Datum::text("Activity"), Datum::text(event));
        }
        row[10] = Datum::Int8(context.session.instance.started);
        row[17] = Datum::text(backend_type(worker.step));
        (row[18], row[25], row[27], row[28]) = (Datum::Bool(false), Datum::Bool(false), Datum::Bool(false), Datum::Bool(false));
        row
    };
    workers(&context.session.instance).iter().map(row).collect()
}

/// A column of pg_stat_activity, by pg_stat_get_backend_*; `None`: no worker has that number.
pub(super) fn column_of(context: &StatementContext, what: &str, of: i32) -> Option<Datum> {
    let all = workers(&context.session.instance);
    let worker = all.iter().find(|worker| pid(worker.step) == of)?;
    let is_seen = matches!(what, "pid" | "dbid" | "userid") || sees_activity_of(&context.catalog, context.user.oid, Oid::INVALID);
    Some(match what {
        "pid" => Datum::Int4(of),
        "dbid" | "userid" => Datum::Oid(0),
        "activity" if !is_seen => Datum::text("<insufficient privilege>"),
        _ if !is_seen => Datum::Null,
        "activity" => Datum::text(""),
        "start" => Datum::Int8(context.session.instance.started),
        "wait_event_type" => wait_event(worker).map_or(Datum::Null, |_| Datum::text("Activity")),
        "wait_event" => wait_event(worker).map_or(Datum::Null, Datum::text),
        _ => Datum::Null,
    })
}
