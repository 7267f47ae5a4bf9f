//! What the server and its sessions read and write: pg_stat_io, pg_stat_wal, and the same of one session.

use std::sync::Arc;

use melba_engine::{BackgroundStep, IoCounts, WalStatistics, WriteCounts};
use melba_types::numeric::Numeric;
use melba_types::{Datum, Oid, Record, oids};

use super::backends::{Counter, SessionCounts};
use super::context::{Instance, StatementContext};
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

/// A row of pg_stat_io: backend_type, object, context, reads, read_bytes, read_time, writes, write_bytes, write_time, writebacks,
/// writeback_time, extends, extend_bytes, extend_time, hits, evictions, reuses, fsyncs, fsync_time, stats_reset.
fn row(backend: &'static str, object: &'static str, reset: &Datum) -> Vec<Datum> {
    let mut row = vec![Datum::Null; 20];
    (row[0], row[1], row[2]) = (Datum::text(backend), Datum::text(object), Datum::text("normal"));
    row[19] = reset.clone();
    row
}

fn log_row(backend: &'static str, written: WriteCounts, reset: &Datum) -> Vec<Datum> {
    let mut row = row(backend, "wal", reset);
    row[6] = Datum::Int8(written.writes as i64);
    row[7] = Datum::Numeric(Numeric::from(written.bytes as i64));
    row[17] = Datum::Int8(written.syncs as i64);
    row
}

/// Blocks of segments; only new segments are written.
fn block_row(backend: &'static str, io: &IoCounts, reset: &Datum) -> Vec<Datum> {
    let mut row = row(backend, "relation", reset);
    let milliseconds = |nanos: u64| Datum::Float8(nanos as f64 / 1e6);
    row[3] = Datum::Int8(io.block_reads as i64);
    row[4] = Datum::Numeric(Numeric::from(io.block_read_bytes as i64));
    row[5] = milliseconds(io.block_read_nanos);
    row[6] = Datum::Int8(io.block_writes as i64);
    row[7] = Datum::Numeric(Numeric::from(io.block_write_bytes as i64));
    row[8] = milliseconds(io.block_write_nanos);
    row[14] = Datum::Int8(io.block_hits as i64);
    row
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
    let mut rows = vec![
        block_row("client backend", &of_sessions(&sums.sessions), &reset),
        log_row("client backend", sums.log.by_clients, &reset),
    ];
    rows.extend(WITH_BLOCKS.map(|step| block_row(backend_type(step), &sums.workers[step as usize], &reset)));
    rows.push(log_row(backend_type(BackgroundStep::Log), sums.log.in_background, &reset));
    rows
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
    if let Some((counts, reset)) = of_session(context, pid) {
        return vec![block_row("client backend", &of_sessions(&counts), &reset)];
    }
    let all = workers::workers(&context.session.instance);
    let worker = all.iter().find(|worker| workers::pid(worker.step) == pid && WITH_BLOCKS.contains(&worker.step));
    worker.into_iter().map(|worker| block_row(backend_type(worker.step), &worker.io, &Datum::Null)).collect()
}

/// pg_stat_get_backend_wal.
pub(super) fn backend_wal(context: &StatementContext, pid: i32) -> Datum {
    of_session(context, pid)
        .map_or(Datum::Null, |(counts, reset)| log_record(counts.get(Counter::LogRecords), counts.get(Counter::LogBytes), reset))
}
