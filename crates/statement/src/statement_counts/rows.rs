//! The functions behind the views pg_stat_statements and pg_stat_statements_info.

use std::sync::Arc;

use melba_types::numeric::Numeric;
use melba_types::{Datum, Oid, Record, oids};

use super::super::context::StatementContext;
use super::super::user::sees_activity_of;
use super::counts::Times;
use super::{Key, Known};

/// Columns of pg_stat_statements 1.12.
const COLUMNS: usize = 52;
const TEMPORARY_BLOCK_BYTES: u64 = 8192;

/// pg_stat_statements(showtext). Figures of what there is not are 0: dirtied and local blocks, JIT, workers.
pub(crate) fn statement_rows(context: &StatementContext, show_text: bool) -> Vec<Vec<Datum>> {
    let mut shared = context.session.instance.statements.shared.lock();
    shared.gather();
    shared.known.iter().map(|(key, known)| statement_row(context, key, known, show_text)).collect()
}

fn statement_row(context: &StatementContext, key: &Key, known: &Known, show_text: bool) -> Vec<Datum> {
    let is_seen = sees_activity_of(&context.catalog, context.user.oid, key.user);
    let count = |n: u64| Datum::Int8(n as i64);
    let milliseconds = |nanoseconds: f64| Datum::Float8(nanoseconds / 1e6);
    let times = |t: &Times| [t.total, t.min, t.max, t.mean(), t.deviation()].map(milliseconds);
    let counts = &known.counts;
    let mut row = vec![Datum::Int8(0); COLUMNS];
    row[0] = Datum::Oid(key.user.0);
    row[1] = Datum::Oid(key.database.0);
    row[2] = Datum::Bool(key.top_level);
    row[3] = if is_seen { Datum::Int8(key.query) } else { Datum::Null };
    row[4] = match (show_text, is_seen) {
        (false, _) => Datum::Null,
        (true, true) => Datum::text(&*known.text),
        (true, false) => Datum::text("<insufficient privilege>"),
    };
    row[5] = count(counts.planning.count);
    row[6..11].clone_from_slice(&times(&counts.planning));
    row[11] = count(counts.execution.count);
    row[12..17].clone_from_slice(&times(&counts.execution));
    row[17] = count(counts.rows);
    let io = &counts.io;
    (row[18], row[19], row[21]) = (count(io.block_hits), count(io.block_reads), count(io.block_writes));
    let temporary = |bytes: u64| count(bytes.div_ceil(TEMPORARY_BLOCK_BYTES));
    (row[26], row[27]) = (temporary(io.temp_read_bytes), temporary(io.temp_write_bytes));
    // Times of local blocks, and of JIT's steps.
    for at in (28..34).chain([39, 41, 43, 45, 47]) {
        row[at] = Datum::Float8(0.0);
    }
    let shared = [io.block_read_nanos, io.block_write_nanos].map(|nanos| milliseconds(nanos as f64));
    let temporary = [io.temp_read_nanos, io.temp_write_nanos].map(|nanos| milliseconds(nanos as f64));
    row[28..30].clone_from_slice(&shared);
    row[32..34].clone_from_slice(&temporary);
    row[34] = count(io.log_records);
    row[36] = Datum::Numeric(Numeric::from(io.log_bytes as i64));
    row[50] = Datum::Int8(known.since);
    row[51] = Datum::Int8(known.minmax_since);
    row
}

/// pg_stat_statements_info(): dealloc, stats_reset.
pub(crate) fn statements_info(context: &StatementContext) -> Datum {
    let shared = context.session.instance.statements.shared.lock();
    let reset = if shared.reset == 0 { context.session.instance.started } else { shared.reset };
    let fields = vec![Datum::Int8(shared.deallocations), Datum::Int8(reset)];
    let types: [Oid; 2] = [oids::INT8, oids::TIMESTAMPTZ];
    Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types: types.into(), field_names: None, fields }))
}

/// pg_stat_statements_reset(userid, dbid, queryid, minmax_only): 0 stands for any; when it was done.
pub(crate) fn reset_statements(context: &StatementContext, args: &[Datum]) -> Datum {
    let (user, database, query) = (Oid(args[0].as_oid()), Oid(args[1].as_oid()), args[2].as_i64());
    let minmax_only = matches!(args[3], Datum::Bool(true));
    let now = context.session.instance.cluster.clock.now_micros();
    let is_meant = |key: &Key| {
        (!user.is_valid() || key.user == user)
            && (!database.is_valid() || key.database == database)
            && (query == 0 || key.query == query)
    };
    let is_all = !user.is_valid() && !database.is_valid() && query == 0;
    context.session.instance.statements.reset(is_meant, is_all, minmax_only, now);
    Datum::Int8(now)
}
