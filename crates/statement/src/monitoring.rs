//! Monitoring functions: the server's sessions, keywords, references between system relations, wait events, files, memory, the log.

#![expect(clippy::disallowed_methods, reason = "counts files of the directory, which no statement depends on")]

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use melba_catalog::{CatalogForeignKey, catalog_foreign_keys, classes, keywords};
use melba_types::inet::Inet;
use melba_types::numeric::Numeric;
use melba_types::{Datum, Oid, Record, Result, bail, err, oids};

use super::backends::Backend;
use super::background_rows::{flush_rows, merge_rows};
use super::context::StatementContext;
use super::io_statistics::{backend_io_rows, backend_wal};
use super::server_files;
use super::statement_counts::rows::{reset_statements, statements_info};
use super::system::array_of;
use super::user::sees_activity_of;
use super::workers;

/// Of the Unix epoch's beginning to that of PostgreSQL's, in microseconds.
const MICROS_TO_2000: i64 = 946_684_800_000_000;
const DEFAULT_TABLESPACE: Oid = Oid(1663);
const GLOBAL_TABLESPACE: Oid = Oid(1664);

/// The waits that sessions and background work may show: type, name, description.
const WAIT_EVENTS: [(&str, &str, &str); 13] = [
    ("Activity", "CheckpointerMain", "Waiting for versions to write from the row store to segments"),
    ("Activity", "LogFilePreparerMain", "Waiting for a file of the log to prepare"),
    ("Activity", "MergerMain", "Waiting for segments to merge"),
    ("Activity", "PublisherMain", "Waiting for a publication whose snapshot is due"),
    ("Activity", "WalWriterMain", "Waiting for records of the log to write"),
    ("Client", "ClientRead", "Waiting to read data from the client"),
    ("Lock", "advisory", "Waiting to acquire an advisory user lock"),
    ("Lock", "object", "Waiting to acquire a lock on an object that is no relation"),
    ("Lock", "page", "Waiting to acquire a lock on a range of keys"),
    ("Lock", "relation", "Waiting to acquire a lock on a relation"),
    ("Lock", "transactionid", "Waiting for a transaction to finish"),
    ("Lock", "tuple", "Waiting to acquire a lock on a row"),
    ("Timeout", "PgSleep", "Waiting due to a call to pg_sleep"),
];

/// Sets of rows; `None`: no such function.
pub(super) fn monitoring_rows(context: &StatementContext, source: &str, args: &[Datum]) -> Option<Result<Vec<Vec<Datum>>>> {
    Some(match source {
        "pg_get_keywords" => Ok(keyword_rows()),
        "pg_get_catalog_foreign_keys" => Ok(foreign_key_rows()),
        "pg_config" => Ok(config_rows()),
        "pg_get_wait_events" => Ok(WAIT_EVENTS.map(|(kind, name, text)| [kind, name, text].map(Datum::text).into()).into()),
        "pg_stat_get_backend_idset" => {
            let workers = workers::pids(&context.session.instance).into_iter();
            let sessions = context.session.instance.backends.all().into_iter().map(|backend| backend.pid);
            Ok(sessions.chain(workers).map(|pid| vec![Datum::Int4(pid)]).collect())
        }
        "pg_stat_get_backend_io" => Ok(backend_io_rows(context, args[0].as_i32())),
        "pg_get_loaded_modules" | "pg_get_shmem_allocations_numa" => Ok(Vec::new()),
        "pg_get_backend_memory_contexts" => Ok(memory_rows(context)),
        "melba_get_memory" => Ok(memory_part_rows(context)),
        "melba_get_flushes" => Ok(flush_rows(context)),
        "melba_get_merges" => Ok(merge_rows(context)),
        "pg_tablespace_databases" => Ok(databases_of_tablespace(context, Oid(args[0].as_oid()))),
        "pg_ls_logdir" => files_of(context, "log_directory", true),
        "pg_ls_waldir" => files_of(context, "wal", false),
        "pg_ls_tmpdir_noargs" | "pg_ls_tmpdir_1arg" => files_of(context, "temp", false),
        _ => return None,
    })
}

/// Single values; `None`: no such function.
pub(super) fn monitoring_value(context: &StatementContext, source: &str, args: &[Datum]) -> Option<Result<Datum>> {
    if let Some(what) = source.strip_prefix("pg_stat_get_backend_").filter(|what| *what != "wal") {
        return Some(Ok(of_backend(context, what, args[0].as_i32())));
    }
    let engine = &context.session.instance.cluster.engine;
    let is_in_recovery = || {
        Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "recovery is not in progress")
            .hint("Recovery control functions can only be executed during recovery."))
    };
    Some(match source {
        "pg_conf_load_time" => Ok(Datum::Int8(context.session.instance.loaded_at())),
        "pg_current_wal_lsn" | "pg_current_wal_insert_lsn" => Ok(Datum::Int8(engine.log_end().0 as i64)),
        "pg_current_wal_flush_lsn" => Ok(Datum::Int8(engine.log_durable().0 as i64)),
        // Nothing is replayed or received from another server.
        "pg_last_wal_replay_lsn" | "pg_last_wal_receive_lsn" | "pg_last_xact_replay_timestamp" => Ok(Datum::Null),
        "pg_is_wal_replay_paused"
        | "pg_get_wal_replay_pause_state"
        | "pg_wal_replay_pause"
        | "pg_wal_replay_resume"
        | "pg_promote" => is_in_recovery(),
        "pg_stat_statements_info" => Ok(statements_info(context)),
        "pg_stat_statements_reset_1_11" => Ok(reset_statements(context, args)),
        "pg_jit_available" | "pg_numa_available" => Ok(Datum::Bool(false)),
        "pg_stat_get_backend_wal" => Ok(backend_wal(context, args[0].as_i32())),
        "pg_indexam_progress_phasename" => Ok(index_phase(Oid(args[0].as_oid()), args[1].as_i64())),
        "pg_wal_lsn_diff" => Ok(Datum::Numeric(Numeric::from(args[0].as_i64().wrapping_sub(args[1].as_i64())))),
        "pg_tablespace_size_oid" => tablespace_size(context, Oid(args[0].as_oid())),
        "pg_tablespace_size_name" => tablespace_named(args[0].as_str()).and_then(|oid| tablespace_size(context, oid)),
        "pg_stat_have_stats" => Ok(Datum::Bool(has_statistics(context, args))),
        "pg_xact_commit_timestamp" | "pg_xact_commit_timestamp_origin" | "pg_last_committed_xact" => no_commit_times(),
        _ => return origin_value(source, args),
    })
}

/// Functions over replication origins, of which there are none; `None`: no such function.
fn origin_value(source: &str, args: &[Datum]) -> Option<Result<Datum>> {
    Some(match source.strip_prefix("pg_replication_origin_")? {
        "oid" => Ok(Datum::Null),
        "session_is_setup" => Ok(Datum::Bool(false)),
        "xact_reset" => Ok(Datum::text("")),
        "session_reset" | "session_progress" | "xact_setup" => {
            Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "no replication origin is configured"))
        }
        "drop" | "session_setup" | "advance" | "progress" => {
            Err(err!(UNDEFINED_OBJECT, "replication origin \"{}\" does not exist", args[0].as_str()))
        }
        _ => return None,
    })
}

/// The phases of building an index, numbered from 1.
fn index_phase(method: Oid, phase: i64) -> Datum {
    let names: &[&str] = match method {
        classes::BTREE => {
            &["initializing", "scanning table", "sorting live tuples", "sorting dead tuples", "loading tuples in tree"]
        }
        classes::GIN => &[
            "initializing",
            "scanning table",
            "sorting tuples (workers)",
            "merging tuples (workers)",
            "sorting tuples",
            "merging tuples",
        ],
        _ => &[],
    };
    let name = usize::try_from(phase - 1).ok().and_then(|at| names.get(at));
    name.map_or(Datum::Null, |name| Datum::text(*name))
}

/// The times of commits are not kept, as without track_commit_timestamp.
fn no_commit_times() -> Result<Datum> {
    Err(err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "could not get commit timestamp data")
        .hint("Make sure the configuration parameter \"track_commit_timestamp\" is set."))
}

/// A column of pg_stat_activity, of the session of that number.
fn of_backend(context: &StatementContext, what: &str, pid: i32) -> Datum {
    let Some(backend) = context.session.instance.backends.get(pid) else {
        if let Some(value) = workers::column_of(context, what, pid) {
            return value;
        }
        return match what {
            "activity" => Datum::text("<backend information not available>"),
            "subxact" => subtransactions(false),
            _ => Datum::Null,
        };
    };
    let is_public = matches!(what, "pid" | "dbid" | "userid" | "subxact");
    if !is_public && !sees_activity_of(&context.catalog, context.user.oid, backend.role) {
        return if what == "activity" { Datum::text("<insufficient privilege>") } else { Datum::Null };
    }
    column_of(context, &backend, what)
}

fn column_of(context: &StatementContext, backend: &Arc<Backend>, what: &str) -> Datum {
    let activity = &backend.activity;
    let time = |time: i64| if time == 0 { Datum::Null } else { Datum::Int8(time) };
    let client = || activity.peer.lock().addresses.map(|addresses| addresses.client);
    match what {
        "pid" => Datum::Int4(backend.pid),
        "dbid" => Datum::Oid(backend.database.0),
        "userid" => Datum::Oid(backend.role.0),
        "activity" => Datum::text(activity.query()),
        "activity_start" => time(activity.query_start()),
        "xact_start" => time(activity.transaction_start()),
        "start" => time(activity.peer.lock().started),
        "client_addr" => client().map_or(Datum::Null, |client| Datum::bytes(Inet::from(client.ip()).store())),
        "client_port" => Datum::Int4(client().map_or(-1, |client| i32::from(client.port()))),
        "wait_event_type" => wait_event(context, backend).map_or(Datum::Null, |(kind, _)| Datum::text(kind)),
        "wait_event" => wait_event(context, backend).map_or(Datum::Null, |(_, event)| Datum::text(event)),
        "subxact" => subtransactions(true),
        _ => Datum::Null,
    }
}

fn wait_event(context: &StatementContext, backend: &Backend) -> Option<(&'static str, &'static str)> {
    let locks = context.session.instance.cluster.engine.locks();
    let lock = locks.iter().find(|lock| lock.pid == backend.pid && !lock.granted);
    lock.map(|lock| ("Lock", super::system_rows::lock_type(lock))).or_else(|| backend.activity.wait_event())
}

fn has_statistics(context: &StatementContext, args: &[Datum]) -> bool {
    let (kind, database, object) = (args[0].as_str(), Oid(args[1].as_oid()), args[2].as_i64());
    match kind {
        "database" => context.session.instance.cluster.catalogs().database(database).is_some(),
        "relation" => u32::try_from(object).is_ok_and(|oid| context.catalog.relation(Oid(oid)).is_some()),
        "bgwriter" | "checkpointer" | "archiver" | "wal" | "io" | "slru" => true,
        _ => false,
    }
}

/// name, setting. Nothing is installed beside the binary.
fn config_rows() -> Vec<Vec<Datum>> {
    let binary = std::env::current_exe().ok();
    let folder = binary.as_deref().and_then(Path::parent).map_or(String::new(), |folder| folder.display().to_string());
    let rows = [("BINDIR", folder), ("VERSION", super::system::version().to_owned())];
    rows.into_iter().map(|(name, setting)| vec![Datum::text(name), Datum::text(setting)]).collect()
}

/// name, ident, type, level, path, total_bytes, total_nblocks, free_bytes, free_chunks, used_bytes: the memory of all queries
/// together, because memory is not kept by context.
fn memory_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let budget = context.session.instance.cluster.engine.query_memory();
    let (limit, used) = (budget.limit() as i64, budget.reserved() as i64);
    let path = melba_types::Array {
        element_type: oids::INT4,
        dims: vec![melba_types::ArrayDim { length: 1, lower_bound: 1 }],
        elements: vec![Datum::Int4(1)],
    };
    vec![vec![
        Datum::text("query memory"),
        Datum::Null,
        Datum::text("budget"),
        Datum::Int4(1),
        Datum::Array(Arc::new(path)),
        Datum::Int8(limit),
        Datum::Int8(1),
        Datum::Int8(limit - used),
        Datum::Int8(1),
        Datum::Int8(used),
    ]]
}

/// name, used_bytes, limit_bytes: the process, the parts that are counted, and what is left over for all that is not: connections,
/// catalogs, plans, buffers of background work.
fn memory_part_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let parts = context.session.instance.cluster.engine.memory();
    let (process, limit) = melba_types::limits::process_memory();
    let other = process.saturating_sub(parts.iter().map(|part| part.used).sum());
    let row = |name, used: u64, limit: Option<u64>| {
        vec![Datum::text(name), Datum::Int8(used as i64), limit.map_or(Datum::Null, |limit| Datum::Int8(limit as i64))]
    };
    let mut rows = vec![row("process", process, limit)];
    rows.extend(parts.iter().map(|part| row(part.name, part.used, Some(part.limit))));
    rows.push(row("other", other, None));
    rows
}

/// All databases are in one tablespace; shared objects are in the other.
fn databases_of_tablespace(context: &StatementContext, tablespace: Oid) -> Vec<Vec<Datum>> {
    if tablespace != DEFAULT_TABLESPACE {
        return Vec::new();
    }
    let cluster = &context.session.instance.cluster;
    cluster.catalogs().databases().map(|database| vec![Datum::Oid(database.database_oid().0)]).collect()
}

fn tablespace_named(name: &str) -> Result<Oid> {
    match name {
        "pg_default" => Ok(DEFAULT_TABLESPACE),
        "pg_global" => Ok(GLOBAL_TABLESPACE),
        _ => Err(err!(UNDEFINED_OBJECT, "tablespace \"{name}\" does not exist")),
    }
}

/// Bytes of all databases; those of shared objects are not separated.
fn tablespace_size(context: &StatementContext, tablespace: Oid) -> Result<Datum> {
    let instance = &context.session.instance;
    if tablespace != DEFAULT_TABLESPACE {
        return match tablespace == GLOBAL_TABLESPACE {
            true => Ok(Datum::Int8(0)),
            false => Err(err!(UNDEFINED_OBJECT, "tablespace with OID {tablespace} does not exist")),
        };
    }
    let catalogs = instance.cluster.catalogs();
    let bytes: u64 = catalogs
        .databases()
        .flat_map(|catalog| catalog.user_relations())
        .map(|relation| match relation.storage {
            melba_catalog::Storage::Tree(tree) => {
                instance.cluster.engine.tree_bytes(tree) + instance.cluster.engine.tree_bytes(tree.toast())
            }
            _ => 0,
        })
        .sum();
    Ok(Datum::Int8(bytes as i64))
}

/// name, size, modification of the files in a folder of the data directory, which a setting names or which has this name.
fn files_of(context: &StatementContext, folder: &str, is_setting: bool) -> Result<Vec<Vec<Datum>>> {
    let (data, folder) = {
        let settings = context.session.settings.lock();
        let folder = if is_setting { settings.get(folder).as_text().to_owned() } else { folder.to_owned() };
        (settings.get("data_directory").as_text().to_owned(), folder)
    };
    if data.is_empty() {
        bail!(FEATURE_NOT_SUPPORTED, "there are no files without a data directory");
    }
    let path = Path::new(&data).join(&folder);
    let failed = |e: std::io::Error| server_files::error(&format!("could not open directory \"{folder}\""), &e);
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // It may have been removed meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
            rows.push(vec![
                Datum::text(entry.file_name().to_string_lossy()),
                Datum::Int8(metadata.len() as i64),
                Datum::Int8(since_2000(modified)),
            ]);
        }
    }
    Ok(rows)
}

fn since_2000(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64) - MICROS_TO_2000
}

/// pg_stat_get_backend_subxact: subxact_count, subxact_overflowed. Savepoints are no transactions.
fn subtransactions(is_there: bool) -> Datum {
    let fields = if is_there { vec![Datum::Int4(0), Datum::Bool(false)] } else { vec![Datum::Null; 2] };
    let types = [oids::INT4, oids::BOOL];
    Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types: types.into(), field_names: None, fields }))
}

/// word, catcode, barelabel, catdesc, baredesc
fn keyword_rows() -> Vec<Vec<Datum>> {
    let describe = |code| match code {
        'R' => "reserved",
        'T' => "reserved (can be function or type name)",
        'C' => "unreserved (cannot be function or type name)",
        _ => "unreserved",
    };
    let row = |(word, code, is_bare): (&'static str, char, bool)| {
        vec![
            Datum::text(word),
            Datum::Char(code as u8),
            Datum::Bool(is_bare),
            Datum::text(describe(code)),
            Datum::text(if is_bare { "can be bare label" } else { "requires AS" }),
        ]
    };
    keywords().map(row).collect()
}

/// fktable, fkcols, pktable, pkcols, is_array, is_opt
fn foreign_key_rows() -> Vec<Vec<Datum>> {
    let names = |columns: Vec<&str>| array_of(oids::TEXT, columns.into_iter().map(Datum::text).collect());
    let row = |key: CatalogForeignKey| {
        vec![
            Datum::Oid(key.table.0),
            names(key.columns),
            Datum::Oid(key.referenced_table.0),
            names(key.referenced_columns),
            Datum::Bool(key.is_array),
            Datum::Bool(key.is_optional),
        ]
    };
    catalog_foreign_keys().into_iter().map(row).collect()
}
