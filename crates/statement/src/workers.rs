//! Background work as PostgreSQL shows its auxiliary processes: a number, a backend_type, what it waits for.

use melba_engine::{BackgroundStep, BackgroundWorker};
use melba_types::{Datum, Oid};

use super::context::{Instance, StatementContext};
use super::user::sees_activity_of;

/// The numbers behind the server's own that belong to background work; sessions have those behind them.
pub const WORKER_PIDS: i32 = BackgroundStep::ALL.len() as i32 + 1;

/// A thread as pg_stat_activity shows it.
struct ShownWorker {
    pid: i32,
    backend_type: &'static str,
    /// What it waits for; `None`: it works.
    wait_event: Option<&'static str>,
}

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

/// The workers that have threads of their own.
pub(super) fn workers(instance: &Instance) -> Vec<BackgroundWorker> {
    match instance.cluster.engine.has_background() {
        true => instance.cluster.engine.background_workers(),
        false => Vec::new(),
    }
}

/// The engine's workers, and the thread that publishes tables, once there is something to publish.
fn shown(instance: &Instance) -> Vec<ShownWorker> {
    let of_engine = workers(instance).into_iter().map(|worker| ShownWorker {
        pid: pid(worker.step),
        backend_type: backend_type(worker.step),
        wait_event: (!worker.is_working).then(|| idle_event(worker.step)),
    });
    let publisher = instance.publishing.is_working().map(|is_working| ShownWorker {
        pid: std::process::id() as i32 + WORKER_PIDS,
        backend_type: "publisher",
        wait_event: (!is_working).then_some("PublisherMain"),
    });
    of_engine.chain(publisher).collect()
}

/// Their numbers.
pub(super) fn pids(instance: &Instance) -> Vec<i32> {
    shown(instance).iter().map(|worker| worker.pid).collect()
}

/// Rows of pg_stat_activity (`system_rows::activity_rows` has the columns).
pub(super) fn activity_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let is_seen = sees_activity_of(&context.catalog, context.user.oid, Oid::INVALID);
    let row = |worker: &ShownWorker| {
        let mut row = vec![Datum::Null; 31];
        (row[1], row[3]) = (Datum::Int4(worker.pid), Datum::text(""));
        if !is_seen {
            row[5] = Datum::text("<insufficient privilege>");
            return row;
        }
        row[5] = Datum::text("");
        if let Some(event) = worker.wait_event {
            (row[6], row[7]) = (Datum::text("Activity"), Datum::text(event));
        }
        row[10] = Datum::Int8(context.session.instance.started);
        row[17] = Datum::text(worker.backend_type);
        (row[18], row[25], row[27], row[28]) = (Datum::Bool(false), Datum::Bool(false), Datum::Bool(false), Datum::Bool(false));
        row
    };
    shown(&context.session.instance).iter().map(row).collect()
}

/// A column of pg_stat_activity, by pg_stat_get_backend_*; `None`: no worker has that number.
pub(super) fn column_of(context: &StatementContext, what: &str, of: i32) -> Option<Datum> {
    let all = shown(&context.session.instance);
    let worker = all.iter().find(|worker| worker.pid == of)?;
    let is_seen = matches!(what, "pid" | "dbid" | "userid") || sees_activity_of(&context.catalog, context.user.oid, Oid::INVALID);
    Some(match what {
        "pid" => Datum::Int4(of),
        "dbid" | "userid" => Datum::Oid(0),
        "activity" if !is_seen => Datum::text("<insufficient privilege>"),
        _ if !is_seen => Datum::Null,
        "activity" => Datum::text(""),
        "start" => Datum::Int8(context.session.instance.started),
        "wait_event_type" => worker.wait_event.map_or(Datum::Null, |_| Datum::text("Activity")),
        "wait_event" => worker.wait_event.map_or(Datum::Null, Datum::text),
        _ => Datum::Null,
    })
}
