//! What the server and its sessions read and write: pg_stat_io, pg_stat_wal, and the same of one session.

use std::sync::Arc;

use melba_engine::{BackgroundStep, IoCounts, WalStatistics, WriteCounts};
use melba_types::numeric::Numeric;
use melba_types::{Datum, Oid, Record, oids};

use super::backends::{Counter, SessionCounts};
use super::context::{Instance, StatementContext};
use super::io_kinds::{BACKENDS, SESSION, text_at};
use super::resets::IoSums;
use super::workers::{self, backend_type};

impl IoSums {
    /// Since the server's start.
    pub fn now(instance: &Instance) -> IoSums {
        let engine = &instance.cluster.engine;
        let mut sums = IoSums { sessions: instance.backends.of_all(), log: engine.log_statistics(), ..IoSums::default() };
        engine.background_workers().iter().for_each(|worker| sums.workers[worker.step as usize] = worker.io);
        sums
    }

    fn since(mut self, before: &IoSums) -> IoSums {
        self.sessions = self.sessions.since(&before.sessions);
        self.workers.iter_mut().zip(&before.workers).for_each(|(own, before)| *own = own.since(before));
        self.log = log_since(self.log, before.log);
        self
    }
}

/// When statistics of the server were reset; at its start, if not since.
pub(super) fn reset_time(context: &StatementContext, target: &str) -> Datum {
    let instance = &context.session.instance;
    Datum::Int8(instance.resets.of_shared(target).unwrap_or(instance.started))
}

fn log_since(log: WalStatistics, before: WalStatistics) -> WalStatistics {
    let written = |written: WriteCounts, before: WriteCounts| WriteCounts {
        writes: written.writes.saturating_sub(before.writes),
        bytes: written.bytes.saturating_sub(before.bytes),
        syncs: written.syncs.saturating_sub(before.syncs),
    };
    WalStatistics {
        records: log.records.saturating_sub(before.records),
        bytes: log.bytes.saturating_sub(before.bytes),
        by_clients: written(log.by_clients, before.by_clients),
        in_background: written(log.in_background, before.in_background),
    }
}

fn log_record(records: u64, bytes: u64, reset: Datum) -> Datum {
    // There are no full-page images, and the log's buffer grows instead of being full.
    let bytes = Datum::Numeric(Numeric::from(bytes as i64));
    let fields = vec![Datum::Int8(records as i64), Datum::Int8(0), bytes, Datum::Int8(0), reset];
    let types: [Oid; 5] = [oids::INT8, oids::INT8, oids::NUMERIC, oids::INT8, oids::TIMESTAMPTZ];
    Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types: types.into(), field_names: None, fields }))
}

/// pg_stat_get_wal: wal_records, wal_fpi, wal_bytes, wal_buffers_full, stats_reset.
pub(super) fn wal_statistics(context: &StatementContext) -> Datum {
    let instance = &context.session.instance;
    let log = log_since(instance.cluster.engine.log_statistics(), instance.resets.0.lock().wal);
    log_record(log.records, log.bytes, reset_time(context, "wal"))
}

/// Adds the log's writes to a row.
fn add_log(row: &mut [Datum], written: WriteCounts) {
    row[6] = Datum::Int8(written.writes as i64);
    row[7] = Datum::Numeric(Numeric::from(written.bytes as i64));
    row[17] = Datum::Int8(written.syncs as i64);
}

/// Adds blocks of segments to a row; only new segments are written.
fn add_blocks(row: &mut [Datum], io: &IoCounts) {
    let milliseconds = |nanos: u64| Datum::Float8(nanos as f64 / 1e6);
    row[3] = Datum::Int8(io.block_reads as i64);
    row[4] = Datum::Numeric(Numeric::from(io.block_read_bytes as i64));
    row[5] = milliseconds(io.block_read_nanos);
    row[6] = Datum::Int8(io.block_writes as i64);
    row[7] = Datum::Numeric(Numeric::from(io.block_write_bytes as i64));
    row[8] = milliseconds(io.block_write_nanos);
    row[14] = Datum::Int8(io.block_hits as i64);
}

fn of_sessions(counts: &SessionCounts) -> IoCounts {
    IoCounts {
        block_hits: counts.get(Counter::BlocksHit),
        block_reads: counts.get(Counter::BlocksRead),
        block_read_bytes: counts.get(Counter::BlockReadBytes),
        block_read_nanos: counts.get(Counter::BlockReadNanos),
        block_writes: counts.get(Counter::BlocksWritten),
        block_write_bytes: counts.get(Counter::BlockWriteBytes),
        block_write_nanos: counts.get(Counter::BlockWriteNanos),
        ..IoCounts::default()
    }
}

/// The kinds of background work that read or write segments.
const WITH_BLOCKS: [BackgroundStep; 2] = [BackgroundStep::Flush, BackgroundStep::Merge];

/// pg_stat_get_io.
pub(super) fn io_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let instance = &context.session.instance;
    let before = instance.resets.0.lock().io.clone();
    let (sums, reset) = (IoSums::now(instance).since(&before), reset_time(context, "io"));
    let mut rows = Vec::new();
    for kind in &BACKENDS {
        let step = WITH_BLOCKS.into_iter().find(|step| backend_type(*step) == kind.name);
        let blocks = match kind.name {
            SESSION => Some(of_sessions(&sums.sessions)),
            _ => step.map(|step| sums.workers[step as usize]),
        };
        let log = match kind.name {
            SESSION => Some(sums.log.by_clients),
            name => (name == backend_type(BackgroundStep::Log)).then_some(sums.log.in_background),
        };
        rows.extend(kind.rows(&reset).into_iter().map(|mut row| {
            match (place(&row), blocks, log) {
                (Some("relation"), Some(blocks), _) => add_blocks(&mut row, &blocks),
                (Some("wal"), _, Some(log)) => add_log(&mut row, log),
                _ => {}
            }
            row
        }));
    }
    rows
}

/// The object of a row whose context is the one that everything is counted in.
fn place(row: &[Datum]) -> Option<&str> {
    (text_at(row, 2) == "normal").then(|| text_at(row, 1))
}

/// The counts of a session since they were reset, and when that was.
fn of_session(context: &StatementContext, pid: i32) -> Option<(SessionCounts, Datum)> {
    let instance = &context.session.instance;
    let counts = SessionCounts::of_session(&*instance.backends.get(pid)?);
    let reset = instance.resets.0.lock().sessions.get(&pid).copied();
    Some(match reset {
        Some((time, before)) => (counts.since(&before), Datum::Int8(time)),
        None => (counts, Datum::Null),
    })
}

/// pg_stat_get_backend_io. The log's writes are shared by sessions, and not counted by session.
pub(super) fn backend_io_rows(context: &StatementContext, pid: i32) -> Vec<Vec<Datum>> {
    let (name, io, reset) = match of_session(context, pid) {
        Some((counts, reset)) => (SESSION, of_sessions(&counts), reset),
        None => {
            let all = workers::workers(&context.session.instance);
            let worker = all.iter().find(|worker| workers::pid(worker.step) == pid && WITH_BLOCKS.contains(&worker.step));
            let Some(worker) = worker else { return Vec::new() };
            (backend_type(worker.step), worker.io, Datum::Null)
        }
    };
    let kind = BACKENDS.iter().find(|kind| kind.name == name);
    let rows = kind.into_iter().flat_map(|kind| kind.rows(&reset)).filter(|row| text_at(row, 1) != "wal");
    rows.map(|mut row| {
        if place(&row) == Some("relation") {
            add_blocks(&mut row, &io);
        }
        row
    })
    .collect()
}

/// pg_stat_get_backend_wal.
pub(super) fn backend_wal(context: &StatementContext, pid: i32) -> Datum {
    of_session(context, pid)
        .map_or(Datum::Null, |(counts, reset)| log_record(counts.get(Counter::LogRecords), counts.get(Counter::LogBytes), reset))
}
