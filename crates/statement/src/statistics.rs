//! The statistics functions behind the pg_stat views.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use melba_catalog::{Relation, RelationKind, Storage};
use melba_engine::{DenseStatistics, RowCounts};
use melba_functions::text::io::truncate_name;
use melba_toast::Method;
use melba_types::{Datum, Oid, Record, Result, TreeId, oids};

use super::backends::{Counter, SessionCounts};
use super::context::StatementContext;
use super::fetched::TreeCounts;
use super::fetching::fetched_tree;
use super::function_counts::function_value;
use super::io_statistics::reset_time;
use super::maintained::{MaintainedTable, MaintenanceCommand, MaintenanceRuns};
use super::monitoring::monitoring_value;
use super::reset::reset_statistics;

/// PostgreSQL's buffers.
const BUFFER_BYTES: u64 = 8192;
/// The small caches of PostgreSQL.
const SLRUS: [&str; 8] = [
    "commit_timestamp",
    "multixact_member",
    "multixact_offset",
    "notify",
    "serializable",
    "subtransaction",
    "transaction",
    "other",
];

/// Statistics of the server, resets, or counts; `None`: no such function.
pub(super) fn statistics_value(context: &StatementContext, source: &str, result: Oid, args: &[Datum]) -> Option<Result<Datum>> {
    let value = monitoring_value(context, source, args).or_else(|| reset_statistics(context, source, args));
    value.or_else(|| counter(context, source, result, args).map(Ok))
}

/// The counters behind the pg_stat views, by pg_proc.prosrc; `None`: no such one. Counters that are not kept are as after a
/// reset: 0, and no time.
pub(super) fn counter(context: &StatementContext, source: &str, result: Oid, args: &[Datum]) -> Option<Datum> {
    let name = source.strip_prefix("pg_stat_get_").filter(|name| !name.starts_with("backend_"))?;
    match name {
        "db_stat_reset_time" => {
            let reset = context.session.instance.resets.of_database(Oid(args[0].as_oid()));
            return Some(reset.map_or(Datum::Null, |(time, _)| Datum::Int8(time)));
        }
        "db_session_time" | "db_active_time" | "db_idle_in_transaction_time" | "db_blk_read_time" | "db_blk_write_time" => {
            return Some(Datum::Float8(time_of_database(context, name, Oid(args[0].as_oid()))));
        }
        "last_vacuum_time" | "last_analyze_time" => {
            let last = runs(context, name, Oid(args[0].as_oid())).map_or(0, |runs| runs.last);
            return Some(if last == 0 { Datum::Null } else { Datum::Int8(last) });
        }
        "total_vacuum_time" | "total_analyze_time" => {
            let took = runs(context, name, Oid(args[0].as_oid())).map_or(0, |runs| runs.took);
            return Some(Datum::Float8(took as f64 / 1000.0));
        }
        _ if name.starts_with("checkpointer_") => return flush_value(context, name),
        _ if name.contains("function_") => return function_value(context, name, Oid(args[0].as_oid())),
        _ => {}
    }
    let kept = match args.first() {
        Some(of) if name.starts_with("db_") => counter_of_database(context, name, Oid(of.as_oid())),
        Some(of) => counter_of_table(context, name, Oid(of.as_oid())),
        None => None,
    };
    match (kept, result) {
        (Some(count), oids::INT4) => Some(Datum::Int4(count as i32)),
        (Some(count), _) => Some(Datum::Int8(count)),
        _ if name == "bgwriter_stat_reset_time" => Some(reset_time(context, "bgwriter")),
        (None, oids::INT4) => Some(Datum::Int4(0)),
        (None, oids::INT8) => Some(Datum::Int8(0)),
        (None, oids::FLOAT8) => Some(Datum::Float8(0.0)),
        (None, oids::TIMESTAMPTZ) => Some(Datum::Null),
        _ => None,
    }
}

/// pg_stat_checkpointer: flushes, which are all asked for, by the row store's size or by CHECKPOINT. Their time is not divided.
fn flush_value(context: &StatementContext, name: &str) -> Option<Datum> {
    let instance = &context.session.instance;
    let flushed = *instance.background_work.flushed.lock();
    let flushed = flushed.since(instance.resets.0.lock().flushed);
    Some(match name {
        "checkpointer_num_requested" | "checkpointer_num_performed" => Datum::Int8(flushed.count as i64),
        "checkpointer_buffers_written" => Datum::Int8(flushed.bytes.div_ceil(BUFFER_BYTES) as i64),
        "checkpointer_write_time" => Datum::Float8(flushed.took.as_secs_f64() * 1000.0),
        "checkpointer_sync_time" => Datum::Float8(0.0),
        "checkpointer_stat_reset_time" => reset_time(context, "checkpointer"),
        _ => Datum::Int8(0),
    })
}

/// The runs of VACUUM or ANALYZE on a table, whichever the counter names.
fn runs(context: &StatementContext, counter: &str, table: Oid) -> Option<MaintenanceRuns> {
    let table = MaintainedTable::of(context.session.database_oid, context.catalog.relation(table)?)?;
    let command = if counter.contains("analyze") { MaintenanceCommand::Analyze } else { MaintenanceCommand::Vacuum };
    Some(context.session.instance.maintained.of(table, command))
}

fn counter_of_table(context: &StatementContext, name: &str, table: Oid) -> Option<i64> {
    if matches!(name, "vacuum_count" | "analyze_count") {
        return Some(runs(context, name, table)?.count as i64);
    }
    let Storage::Tree(tree) = context.catalog.relation(table)?.storage else { return None };
    let TreeCounts { rows: counts, scans, live } = fetched_tree(context, tree);
    // Changes since a command ran, or since a reset behind it.
    let since = |count: fn(RowCounts) -> u64| {
        let before = runs(context, name, table).map_or(0, |runs| count(runs.rows));
        count(counts).min(count(context.session.instance.cluster.engine.tree_row_counts(tree)).saturating_sub(before))
    };
    Some(match name {
        "numscans" => scans.scans,
        "tuples_returned" => scans.rows,
        "blocks_fetched" => scans.blocks_hit + scans.blocks_read,
        "blocks_hit" => scans.blocks_hit,
        // A row for each entry of an index; those of a table's indexes are added by the views.
        "tuples_fetched" if context.catalog.relation(table)?.kind == RelationKind::Index => scans.rows,
        "live_tuples" => live,
        "tuples_inserted" => counts.inserted,
        "ins_since_vacuum" => since(|c| c.inserted),
        "tuples_updated" => counts.updated,
        "tuples_deleted" => counts.deleted,
        "mod_since_analyze" => since(|c| c.inserted + c.updated + c.deleted),
        _ => return None,
    } as i64)
}

/// The number of sessions of a database, and its sessions' counts since a reset.
fn sessions_of(context: &StatementContext, database: Oid) -> (usize, SessionCounts) {
    let instance = &context.session.instance;
    let (now, counts) = instance.backends.of_database(database, instance.cluster.clock.now_micros());
    let before = instance.resets.of_database(database).map(|(_, counts)| counts);
    (now, counts.since(&before.unwrap_or_default()))
}

/// Milliseconds that sessions of a database were connected, worked, waited within a transaction, or read and wrote blocks.
fn time_of_database(context: &StatementContext, name: &str, database: Oid) -> f64 {
    let (_, counts) = sessions_of(context, database);
    let micros = match name {
        "db_blk_read_time" => return counts.get(Counter::BlockReadNanos) as f64 / 1e6,
        "db_blk_write_time" => return counts.get(Counter::BlockWriteNanos) as f64 / 1e6,
        "db_session_time" => counts.session_time,
        "db_active_time" => counts.get(Counter::ActiveTime),
        _ => counts.get(Counter::IdleInTransactionTime),
    };
    micros as f64 / 1000.0
}

fn counter_of_database(context: &StatementContext, name: &str, database: Oid) -> Option<i64> {
    let instance = &context.session.instance;
    let (now, counts) = sessions_of(context, database);
    let scans = |of_indexes: bool| {
        let catalogs = instance.cluster.catalogs();
        let relations = catalogs.database(database).into_iter().flat_map(|c| c.user_relations());
        let relations = relations.filter(|r| (r.kind == RelationKind::Index) == of_indexes);
        let trees: HashSet<TreeId> =
            relations.filter_map(|r| if let Storage::Tree(tree) = r.storage { Some(tree) } else { None }).collect();
        instance.cluster.engine.scan_counts(|tree| trees.contains(&tree)).rows
    };
    let rows = |count: fn(RowCounts) -> u64| {
        let catalogs = instance.cluster.catalogs();
        let tables = catalogs.database(database).into_iter().flat_map(|c| c.user_relations());
        let trees = tables.filter_map(|r| if let Storage::Tree(tree) = r.storage { Some(tree) } else { None });
        trees.map(|tree| count(instance.cluster.engine.tree_row_counts(tree))).sum()
    };
    Some(match name {
        "db_numbackends" => now as u64,
        "db_sessions" => counts.sessions,
        "db_xact_commit" => counts.get(Counter::Commits),
        "db_xact_rollback" => counts.get(Counter::Rollbacks),
        "db_deadlocks" => counts.get(Counter::Deadlocks),
        "db_temp_files" => counts.get(Counter::TempFiles),
        "db_temp_bytes" => counts.get(Counter::TempBytes),
        "db_blocks_fetched" => counts.get(Counter::BlocksHit) + counts.get(Counter::BlocksRead),
        "db_blocks_hit" => counts.get(Counter::BlocksHit),
        "db_tuples_returned" => scans(false),
        "db_tuples_fetched" => scans(true),
        "db_tuples_inserted" => rows(|c| c.inserted),
        "db_tuples_updated" => rows(|c| c.updated),
        "db_tuples_deleted" => rows(|c| c.deleted),
        _ => return None,
    } as i64)
}

/// pg_stat_get_slru: name, blks_zeroed, blks_hit, blks_read, blks_written, blks_exists, flushes, truncates, stats_reset.
/// There are no such caches.
pub(super) fn slru_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let row = |name: &'static str| {
        let mut row = vec![Datum::Int8(0); 9];
        (row[0], row[8]) = (Datum::text(name), reset_time(context, "slru"));
        row
    };
    SLRUS.map(row).into()
}

/// pg_stat_get_archiver: archived_count, last_archived_wal, last_archived_time, failed_count, last_failed_wal,
/// last_failed_time, stats_reset. Nothing is archived.
pub(super) fn archiver_statistics(context: &StatementContext) -> Datum {
    let (none, zero) = (Datum::Null, Datum::Int8(0));
    let started = reset_time(context, "archiver");
    let fields = vec![zero.clone(), none.clone(), none.clone(), zero, none.clone(), none, started];
    let (count, text, time) = (oids::INT8, oids::TEXT, oids::TIMESTAMPTZ);
    let types = [count, text, time, count, text, time, time];
    Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types: types.into(), field_names: None, fields }))
}

/// pg_stat_get_replication_slot: slot_name, eight counts, stats_reset. Nothing was counted of a slot that there is not.
pub(super) fn replication_slot_statistics(name: &str) -> Datum {
    let mut fields = vec![Datum::Int8(0); 10];
    (fields[0], fields[9]) = (Datum::text(truncate_name(name)), Datum::Null);
    let mut types = [oids::INT8; 10];
    (types[0], types[9]) = (oids::TEXT, oids::TIMESTAMPTZ);
    Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types: types.into(), field_names: None, fields }))
}

/// The columns of `melba_compression_stats` for the methods of storing values.
const METHODS: [&str; 3] = ["dense", "lz4,dense", "lz4"];

/// melba_get_compression_stats: relid, schemaname, relname, attname, place, values, raw_bytes, stored_bytes, reference_bytes,
/// waiting_bytes, blocks, methods, read_mean, read_p99 (microseconds), cpu_time (seconds), governor. A row for each dense
/// column of a table, and one for its values out of line, whose column is named when there is only one dense column.
pub(super) fn compression_rows(context: &StatementContext) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    for relation in context.catalog.user_relations() {
        let Storage::Tree(tree) = relation.storage else { continue };
        for (place, tree) in [("row", tree), ("toast", tree.toast())] {
            // Without values that may be long there is no toast tree; another session may drop the table.
            let Ok(all) = context.session.instance.cluster.engine.dense_statistics(tree) else { continue };
            rows.extend(all.iter().map(|statistics| compression_row(context, relation, place, statistics)));
        }
    }
    Ok(rows)
}

fn compression_row(context: &StatementContext, relation: &Relation, place: &'static str, s: &DenseStatistics) -> Vec<Datum> {
    let mut dense = relation.columns.iter().filter(|c| !c.dropped && c.compression == Method::Dense.letter());
    let column = match (place, s.column) {
        ("row", Some(at)) => relation.columns.get(at),
        _ => dense.next().filter(|_| dense.next().is_none()),
    };
    let schema = context.catalog.namespace(relation.namespace).map_or(Datum::Null, |n| Datum::text(&*n.name));
    let number = |n: u64| Datum::Int8(n as i64);
    let micros = |time: Duration| if s.blocks == 0 { Datum::Null } else { Datum::Float8(time.as_nanos() as f64 / 1000.0) };
    vec![
        Datum::Oid(relation.oid.0),
        schema,
        Datum::text(&*relation.name),
        column.map_or(Datum::Null, |c| Datum::text(&*c.name)),
        Datum::text(place),
        number(s.values),
        number(s.raw_bytes),
        number(s.stored_bytes),
        number(s.reference_bytes),
        number(s.waiting_bytes),
        number(s.blocks),
        Datum::text(METHODS[usize::from(s.waiting_bytes > 0) + usize::from(s.blocks == 0)]),
        micros(s.read_mean),
        micros(s.read_p99),
        Datum::Float8(s.merge_time.as_secs_f64()),
        Datum::text(match (s.is_stopped, s.waiting_bytes, s.hasty_bytes) {
            (true, _, _) => "stopped",
            (false, 0, 0) => "done",
            (false, 0, _) => "hasty",
            (false, _, _) => "waiting",
        }),
    ]
}
