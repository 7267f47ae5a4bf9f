//! Functions that reach beyond values: the session, its settings and backends, sequences, locks, sizes. By pg_proc.prosrc.

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use hashbrown::HashMap;
use melba_catalog::classes::{self, INTERNAL_LANGUAGE};
use melba_catalog::privileges::RoleUse;
use melba_catalog::{Catalog, Persistence, Relation, acl};
use melba_engine::{LockTag, RelationLockMode, SequenceId, Wait};
use melba_fmgr::CallInfo;
use melba_fmgr::Session as _;
use melba_types::inet::Inet;
use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Record, Result, SqlState, bail, err, oids};

use melba_largeobject::{RowsOf, Trees};
use melba_settings::Scope;
use melba_transaction::Tx;
use melba_transaction::xids::XidStatus;
use melba_tree::permissions;

use super::backends::{Addresses, Backend};
use super::backup::{call_backup, refused_backup};
use super::blocking::call_blocking;
use super::context::StatementContext;
use super::ddl_context::temporary_name;
use super::domain::domain_check;
use super::event_state::rewritten;
use super::fetching::snapshot_time;
use super::files::{file_validator, libpq_validator};
use super::io_statistics::wal_statistics;
use super::large_objects::{call_large_object, has_large_object_privilege};
use super::log_messages::{current_log_file, rotate_log};
use super::notify::call_notify;
use super::object_names::call_object_names;
use super::publish::publish;
use super::server_files::call_server_file;
use super::set::{TEXT_SEARCH_CONFIG, check_user_setting, text_search_config};
use super::statistics::{archiver_statistics, replication_slot_statistics, statistics_value};
use super::user;

/// A call of a system function.
struct SystemCall<'a> {
    context: &'a StatementContext,
    /// pg_proc.prosrc
    source: &'a str,
    return_type: Oid,
    args: &'a [Datum],
}

impl SystemCall<'_> {
    fn transaction(&self) -> Result<&Arc<Tx>> {
        self.context.tx.as_ref().ok_or_else(|| DbError::internal("a statement without a transaction"))
    }
}

type SystemFunction = fn(&SystemCall<'_>) -> Result<Datum>;

// Functions that answer several names.
const UPDATABLE: SystemFunction = |c| is_updatable(c.context, c.source, c.args);
const BACKEND: SystemFunction = |c| call_backend(c.context, c.source, c.args);
const CONNECTION_END: SystemFunction = |c| Ok(connection_end(c.context, c.source));
const BLOCKING: SystemFunction = |c| call_blocking(c.context, c.source, c.args);
const XACT: SystemFunction = |c| call_xact(c.context, c.source, c.args);
const OBJECT_NAMES: SystemFunction = |c| call_object_names(c.context, c.source, c.args);
const OF_SEQUENCE: SystemFunction = |c| describe_sequence(c.context, c.source, c.args);
const SEQUENCE: SystemFunction = |c| call_sequence(c.context, c.source, c.args);
const ADVISORY: SystemFunction = |c| call_advisory(c.context, c.source, c.args);
const SIZE: SystemFunction = |c| call_size(c.context, c.source, c.args);
const BRIN: SystemFunction = |c| call_brin(c.context, c.source, c.args);
const LARGE_OBJECT: SystemFunction = |c| call_large_object(c.context, c.source, c.args);
const LARGE_OBJECT_PRIVILEGE: SystemFunction = |c| has_large_object_privilege(c.context, c.args);
const SERVER_FILE: SystemFunction = |c| call_server_file(c.context, c.source, c.args);
const BACKUP: SystemFunction = |c| call_backup(c.context, c.source, c.args);
const REFUSED_BACKUP: SystemFunction = |c| Err(refused_backup(c.source));

/// By pg_proc.prosrc. A new system function is a row here. The counters of `pg_stat_get_*` are in `statistics`.
const FUNCTIONS: &[(&str, SystemFunction)] = &[
    ("current_user", |c| Ok(Datum::text(&*c.context.user.name))),
    ("session_user", |c| Ok(Datum::text(&*c.context.user.session_name))),
    ("system_user", |c| Ok(c.context.session.activity.peer.lock().identity.clone().map_or(Datum::Null, Datum::Text))),
    ("current_database", |c| Ok(Datum::text(&*c.context.session.database))),
    ("current_schema", |c| Ok(current_schema(c.context))),
    ("current_schemas", |c| Ok(current_schemas(c.context, c.args[0].as_bool()))),
    ("pg_my_temp_schema", |c| Ok(Datum::Oid(c.context.path.temporary.0))),
    ("pgsql_version", |_| Ok(Datum::text(version()))),
    ("getdatabaseencoding", |_| Ok(Datum::text("UTF8"))),
    ("pg_client_encoding", |c| Ok(Datum::text(c.context.setting("client_encoding").unwrap_or_default()))),
    ("show_config_by_name", |c| current_setting(c.context, c.args, false)),
    ("show_config_by_name_missing_ok", |c| current_setting(c.context, c.args, c.args[1].as_bool())),
    ("set_config_by_name", |c| set_config(c.context, c.args)),
    ("pg_reload_conf", |c| c.context.session.instance.reload().map(|()| Datum::Bool(true))),
    ("setseed", |c| set_seed(c.context, c.args[0].as_f64())),
    ("pg_is_in_recovery", |_| Ok(Datum::Bool(false))),
    ("pg_rotate_logfile", |c| Ok(rotate_log(c.context))),
    ("pg_current_logfile", |c| current_log_file(c.context, None)),
    ("pg_current_logfile_1arg", |c| {
        current_log_file(c.context, c.args.first().filter(|format| !format.is_null()).map(Datum::as_str))
    }),
    ("pg_export_snapshot", |c| c.transaction()?.export_snapshot().map(Datum::text)),
    ("file_fdw_handler", |_| Err(DbError::unsupported("calling the handler of a foreign-data wrapper"))),
    ("file_fdw_validator", |c| file_validator(c.context, c.args)),
    ("postgresql_fdw_validator", |c| libpq_validator(c.args)),
    ("pg_notify", |c| call_notify(c.context, c.transaction()?, c.args)),
    ("pg_notification_queue_usage", |c| Ok(Datum::Float8(c.context.session.instance.cluster.notifications.usage()))),
    ("pg_trigger_depth", |c| Ok(Datum::Int4(c.context.session.running_triggers.lock().len() as i32))),
    ("pg_event_trigger_table_rewrite_oid", |c| rewritten(c.context, c.source)),
    ("pg_event_trigger_table_rewrite_reason", |c| rewritten(c.context, c.source)),
    ("pg_settings_get_flags", |c| Ok(setting_flags(c.context, c.args[0].as_str()))),
    ("to_regtypemod", |c| type_modifier(c.context, c.args[0].as_str())),
    ("xid_age", |c| Ok(Datum::Int4(c.transaction()?.cluster().xids.age(c.args[0].as_oid())))),
    // There are no multixacts: locks of rows are not in the rows.
    ("mxid_age", |c| Ok(Datum::Int4(if c.args[0].as_oid() == 0 { i32::MAX } else { 0 }))),
    ("pg_relation_is_updatable", UPDATABLE),
    ("pg_column_is_updatable", UPDATABLE),
    ("domain_check", |c| domain_check(c.context, c.return_type, &c.args[0])),
    ("pg_sleep", |c| sleep(c.context, c.args[0].as_f64())),
    ("pg_sleep_for_3935", |c| sleep(c.context, c.args[0].as_interval().span() as f64 / 1e6)),
    ("pg_sleep_until_3936", |c| {
        let micros = c.args[0].as_i64().saturating_sub(c.context.clock_timestamp());
        sleep(c.context, micros as f64 / 1e6)
    }),
    ("current_query", |c| Ok(Datum::text(c.context.session.activity.query()))),
    ("pg_backend_pid", BACKEND),
    ("pg_cancel_backend", BACKEND),
    ("pg_terminate_backend", BACKEND),
    ("pg_postmaster_start_time", BACKEND),
    ("inet_client_addr", CONNECTION_END),
    ("inet_client_port", CONNECTION_END),
    ("inet_server_addr", CONNECTION_END),
    ("inet_server_port", CONNECTION_END),
    ("pg_blocking_pids", BLOCKING),
    ("pg_safe_snapshot_blocking_pids", BLOCKING),
    ("pg_isolation_test_session_is_blocked", BLOCKING),
    ("pg_current_xact_id", XACT),
    ("pg_current_xact_id_if_assigned", XACT),
    ("pg_current_snapshot", XACT),
    ("pg_xact_status", XACT),
    ("pg_describe_object", OBJECT_NAMES),
    ("pg_identify_object", OBJECT_NAMES),
    ("pg_identify_object_as_address", OBJECT_NAMES),
    ("pg_get_object_address", OBJECT_NAMES),
    ("pg_get_acl", OBJECT_NAMES),
    ("pg_sequence_parameters", OF_SEQUENCE),
    ("pg_sequence_last_value", OF_SEQUENCE),
    ("pg_get_sequence_data", OF_SEQUENCE),
    ("nextval_oid", SEQUENCE),
    ("nextval_identity", SEQUENCE),
    ("currval_oid", SEQUENCE),
    ("setval_oid", SEQUENCE),
    ("setval3_oid", SEQUENCE),
    ("lastval", SEQUENCE),
    ("pg_advisory_unlock_all", ADVISORY),
    ("pg_advisory_lock_int8", ADVISORY),
    ("pg_advisory_lock_int4", ADVISORY),
    ("pg_advisory_lock_shared_int8", ADVISORY),
    ("pg_advisory_lock_shared_int4", ADVISORY),
    ("pg_advisory_xact_lock_int8", ADVISORY),
    ("pg_advisory_xact_lock_int4", ADVISORY),
    ("pg_advisory_xact_lock_shared_int8", ADVISORY),
    ("pg_advisory_xact_lock_shared_int4", ADVISORY),
    ("pg_try_advisory_lock_int8", ADVISORY),
    ("pg_try_advisory_lock_int4", ADVISORY),
    ("pg_try_advisory_lock_shared_int8", ADVISORY),
    ("pg_try_advisory_lock_shared_int4", ADVISORY),
    ("pg_try_advisory_xact_lock_int8", ADVISORY),
    ("pg_try_advisory_xact_lock_int4", ADVISORY),
    ("pg_try_advisory_xact_lock_shared_int8", ADVISORY),
    ("pg_try_advisory_xact_lock_shared_int4", ADVISORY),
    ("pg_advisory_unlock_int8", ADVISORY),
    ("pg_advisory_unlock_int4", ADVISORY),
    ("pg_advisory_unlock_shared_int8", ADVISORY),
    ("pg_advisory_unlock_shared_int4", ADVISORY),
    ("brin_summarize_new_values", BRIN),
    ("brin_summarize_range", BRIN),
    ("brin_desummarize_range", BRIN),
    ("pg_database_size_name", SIZE),
    ("pg_database_size_oid", SIZE),
    ("pg_relation_size", SIZE),
    ("pg_relation_size_2325", SIZE),
    ("pg_table_size", SIZE),
    ("pg_indexes_size", SIZE),
    ("pg_total_relation_size", SIZE),
    ("be_lo_open", LARGE_OBJECT),
    ("be_lo_close", LARGE_OBJECT),
    ("be_loread", LARGE_OBJECT),
    ("be_lowrite", LARGE_OBJECT),
    ("be_lo_lseek", LARGE_OBJECT),
    ("be_lo_lseek64", LARGE_OBJECT),
    ("be_lo_tell", LARGE_OBJECT),
    ("be_lo_tell64", LARGE_OBJECT),
    ("be_lo_creat", LARGE_OBJECT),
    ("be_lo_create", LARGE_OBJECT),
    ("be_lo_from_bytea", LARGE_OBJECT),
    ("be_lo_unlink", LARGE_OBJECT),
    ("be_lo_truncate", LARGE_OBJECT),
    ("be_lo_truncate64", LARGE_OBJECT),
    ("be_lo_get", LARGE_OBJECT),
    ("be_lo_get_fragment", LARGE_OBJECT),
    ("be_lo_put", LARGE_OBJECT),
    ("be_lo_import", LARGE_OBJECT),
    ("be_lo_import_with_oid", LARGE_OBJECT),
    ("be_lo_export", LARGE_OBJECT),
    ("has_largeobject_privilege_id", LARGE_OBJECT_PRIVILEGE),
    ("has_largeobject_privilege_id_id", LARGE_OBJECT_PRIVILEGE),
    ("has_largeobject_privilege_name_id", LARGE_OBJECT_PRIVILEGE),
    ("pg_read_file_all", SERVER_FILE),
    ("pg_read_file_all_missing", SERVER_FILE),
    ("pg_read_file_off_len", SERVER_FILE),
    ("pg_read_file_off_len_missing", SERVER_FILE),
    ("pg_read_binary_file_all", SERVER_FILE),
    ("pg_read_binary_file_all_missing", SERVER_FILE),
    ("pg_read_binary_file_off_len", SERVER_FILE),
    ("pg_read_binary_file_off_len_missing", SERVER_FILE),
    ("pg_stat_file", SERVER_FILE),
    ("pg_stat_file_1arg", SERVER_FILE),
    ("melba_backup_file", BACKUP),
    ("melba_backup_log", BACKUP),
    ("melba_backup_advance", BACKUP),
    ("melba_backup_stop", BACKUP),
    ("melba_publish", |c| publish(c.context, c.args[0].as_str())),
    ("pg_backup_start", REFUSED_BACKUP),
    ("pg_backup_stop", REFUSED_BACKUP),
    ("pg_switch_wal", REFUSED_BACKUP),
    ("pg_create_restore_point", REFUSED_BACKUP),
    ("pg_stat_get_wal", |c| Ok(wal_statistics(c.context))),
    ("pg_stat_get_archiver", |c| Ok(archiver_statistics(c.context))),
    ("pg_stat_get_replication_slot", |c| Ok(replication_slot_statistics(c.args[0].as_str()))),
    // A transaction's counts are shown when it ends.
    ("pg_stat_force_next_flush", |_| Ok(Datum::text(""))),
    ("pg_stat_clear_snapshot", |c| {
        c.context.session.fetched.clear();
        Ok(Datum::text(""))
    }),
    ("pg_stat_get_snapshot_timestamp", |c| Ok(snapshot_time(c.context).map_or(Datum::Null, Datum::Int8))),
];

static BY_SOURCE: LazyLock<HashMap<&str, SystemFunction>> = LazyLock::new(|| FUNCTIONS.iter().copied().collect());

/// Calls the function, or refuses it with 0A000.
pub(super) fn call_system(context: &StatementContext, source: &str, call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    if let Some(function) = BY_SOURCE.get(source) {
        return function(&SystemCall { context, source, return_type: call.return_type, args });
    }
    let counter = statistics_value(context, source, call.return_type, args);
    counter.unwrap_or_else(|| Err(unsupported_function(context, source)))
}

/// 0A000 for a function of PostgreSQL that Melba lacks.
pub(super) fn unsupported_function(context: &StatementContext, source: &str) -> DbError {
    let function = context.catalog.functions().find(|f| f.language == INTERNAL_LANGUAGE && *f.source == *source);
    DbError::unsupported(format!("function {}", function.map_or(source, |f| &f.name)))
}

fn setting_flags(context: &StatementContext, name: &str) -> Datum {
    let settings = context.session.settings.lock();
    let Ok(id) = settings.get_id(name) else { return Datum::Null };
    let flags: Vec<&str> = match settings.definition(id) {
        Some(definition) => definition.flags().collect(),
        // A client's own.
        None => vec!["NO_SHOW_ALL", "NOT_IN_SAMPLE"],
    };
    array_of(oids::TEXT, flags.into_iter().map(Datum::text).collect())
}

/// The modifier of the type that a text names; NULL when there is no such type.
///
/// # Errors
/// Those of text that is no type's name, and of modifiers that the type does not have.
fn type_modifier(context: &StatementContext, text: &str) -> Result<Datum> {
    let first = text.split_whitespace().next().unwrap_or_default();
    if first.is_empty() || first.eq_ignore_ascii_case("setof") {
        return Ok(Datum::Null);
    }
    let name = melba_parse::parse_type_name(text)?;
    let unknown = [SqlState::UNDEFINED_OBJECT, SqlState::UNDEFINED_SCHEMA];
    match super::planning::analysis(context).transform_type_name(&name) {
        Ok((_, modifier)) => Ok(Datum::Int4(modifier)),
        Err(e) if unknown.contains(&e.sqlstate()) => Ok(Datum::Null),
        Err(e) => Err(e.without_position()),
    }
}

/// Whether rows of a relation, or a column of it, can be changed.
fn is_updatable(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let cx = super::planning::analysis(context);
    let relation = Oid(args[0].as_oid());
    if source == "pg_relation_is_updatable" {
        return melba_analyze::updatable_events(&cx, relation, args[1].as_bool(), None).map(Datum::Int4);
    }
    let Ok(column) = usize::try_from(args[1].as_i16() - 1) else { return Ok(Datum::Bool(false)) };
    let events = melba_analyze::updatable_events(&cx, relation, args[2].as_bool(), Some(column))?;
    // UPDATE and DELETE.
    Ok(Datum::Bool(events & 0b10100 == 0b10100))
}

fn call_xact(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    Ok(match source {
        "pg_current_xact_id" => Datum::Int8(tx.xid() as i64),
        "pg_current_xact_id_if_assigned" => tx.xid_if_assigned().map_or(Datum::Null, |xid| Datum::Int8(xid as i64)),
        "pg_current_snapshot" => {
            let snapshot = tx.xid_snapshot();
            melba_functions::snapshot::datum(snapshot.xmin, snapshot.xmax, &snapshot.running)
        }
        _ => match tx.cluster().xids.status(args[0].as_i64() as u64)? {
            Some(XidStatus::Running) => Datum::text("in progress"),
            Some(XidStatus::Committed) => Datum::text("committed"),
            Some(XidStatus::Aborted) => Datum::text("aborted"),
            None => Datum::Null,
        },
    })
}

/// The schema in which tables would be created.
fn current_schema(context: &StatementContext) -> Datum {
    let path = &context.path;
    if path.creates_temporary && !path.temporary.is_valid() {
        // The name that it will have: PostgreSQL creates it for this question.
        return Datum::text(temporary_name(&context.session));
    }
    let name = path.explicit.first().and_then(|oid| context.catalog.namespace(*oid));
    name.map_or(Datum::Null, |n| Datum::text(n.name.clone()))
}

fn current_schemas(context: &StatementContext, implicit: bool) -> Datum {
    let oids = if implicit { &context.path.path } else { &context.path.explicit };
    let names = oids.iter().filter_map(|oid| context.catalog.namespace(*oid));
    array_of(oids::NAME, names.map(|n| Datum::text(n.name.clone())).collect())
}

pub(super) fn array_of(element_type: Oid, elements: Vec<Datum>) -> Datum {
    let dims = match elements.len() {
        0 => Vec::new(),
        n => vec![ArrayDim { length: n as i32, lower_bound: 1 }],
    };
    Datum::Array(Arc::new(Array { element_type, dims, elements }))
}

fn current_setting(context: &StatementContext, args: &[Datum], missing_ok: bool) -> Result<Datum> {
    let settings = context.session.settings.lock();
    match settings.get_id(args[0].as_str()) {
        Ok(id) => {
            user::check_sees_setting(&context.catalog, context.user.oid, settings.name(id))?;
            Ok(Datum::text(settings.show(id)))
        }
        Err(_) if missing_ok => Ok(Datum::Null),
        Err(e) => Err(e),
    }
}

fn set_config(context: &StatementContext, args: &[Datum]) -> Result<Datum> {
    if args[0].is_null() {
        bail!(NULL_VALUE_NOT_ALLOWED, "SET requires parameter name");
    }
    let name = args[0].as_str();
    let local = matches!(args.get(2), Some(Datum::Bool(true)));
    let scope = if local { Scope::Transaction } else { Scope::Session };
    let config = match &args[1] {
        Datum::Text(value) if name.eq_ignore_ascii_case(TEXT_SEARCH_CONFIG) => Some(text_search_config(context, value)?),
        _ => None,
    };
    let mut settings = context.session.settings.lock();
    match name.to_ascii_lowercase().as_str() {
        user_setting @ ("role" | "session_authorization") => {
            let role = Some(&args[1]).filter(|v| !v.is_null()).map(Datum::as_str);
            check_user_setting(context, user_setting, role)?;
            settings.set_user(user_setting, role, scope)?;
        }
        "transaction_isolation" | "transaction_read_only" | "transaction_deferrable" => {
            return Err(DbError::unsupported(format!("set_config of \"{name}\"")));
        }
        _ => match &args[1] {
            Datum::Null => settings.reset(name, scope)?,
            value => settings.set(name, config.as_deref().unwrap_or(value.as_str()), scope)?,
        },
    }
    let id = settings.get_id(name)?;
    Ok(Datum::text(settings.show(id)))
}

fn set_seed(context: &StatementContext, seed: f64) -> Result<Datum> {
    if !(-1.0..=1.0).contains(&seed) {
        bail!(INVALID_PARAMETER_VALUE, "setseed parameter {seed} is out of allowed range [-1,1]");
    }
    *context.session.random.lock() = Some(seed.to_bits());
    Ok(Datum::text(""))
}

fn sleep(context: &StatementContext, seconds: f64) -> Result<Datum> {
    context.session.activity.set_sleeping(true);
    let slept = wait_until(context, seconds, &|| false);
    context.session.activity.set_sleeping(false);
    slept.map(|_| Datum::text(""))
}

/// Waits for a condition, in short pieces, so that a cancel request is not kept waiting. False: the time is over.
fn wait_until(context: &StatementContext, seconds: f64, condition: &dyn Fn() -> bool) -> Result<bool> {
    const PIECE: Duration = Duration::from_millis(10);
    let clock = &context.session.instance.cluster.clock;
    // Not-a-number is no time at all.
    let end = clock.monotonic() + Duration::from_secs_f64(if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, 1e9) });
    context.session.instance.cluster.engine.scheduler().before_wait();
    loop {
        context.check_interrupt()?;
        if condition() {
            return Ok(true);
        }
        let left = end.saturating_sub(clock.monotonic());
        if left.is_zero() {
            return Ok(false);
        }
        std::thread::sleep(left.min(PIECE));
    }
}

fn call_backend(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    match source {
        "pg_backend_pid" => Ok(Datum::Int4(context.session.pid)),
        "pg_postmaster_start_time" => Ok(Datum::Int8(context.session.instance.started)),
        "pg_cancel_backend" => Ok(Datum::Bool(match signalled_backend(context, args[0].as_i32(), "cancel")? {
            Some(backend) => {
                backend.interrupt.cancel();
                true
            }
            None => false,
        })),
        _ => terminate_backend(context, args[0].as_i32(), args[1].as_i64()),
    }
}

/// The session that gets a signal; `None`, with a warning, when there is none.
///
/// # Errors
/// 42501 when the user has neither the privileges of the session's role nor those of pg_signal_backend.
fn signalled_backend(context: &StatementContext, pid: i32, verb: &str) -> Result<Option<Arc<Backend>>> {
    const SIGNAL_BACKEND: Oid = Oid(4200);
    let Some(backend) = context.session.instance.backends.get(pid) else {
        context.session.warning(err!(WARNING, "PID {pid} is not a PostgreSQL backend process"));
        return Ok(None);
    };
    let (what, things, doing) = match verb {
        "cancel" => ("query", "queries", "query is being canceled"),
        _ => ("process", "processes", "process is being terminated"),
    };
    let denied = |detail: String| Err(err!(INSUFFICIENT_PRIVILEGE, "permission denied to {verb} {what}").detail(detail));
    let catalog = &context.catalog;
    if catalog.is_superuser(backend.role) {
        if !catalog.is_superuser(context.user.oid) {
            return denied(format!(
                "Only roles with the SUPERUSER attribute may {verb} {things} of roles with the SUPERUSER attribute."
            ));
        }
    } else if ![backend.role, SIGNAL_BACKEND].iter().any(|r| catalog.has_role(context.user.oid, *r, RoleUse::Inherit)) {
        return denied(format!(
            "Only roles with privileges of the role whose {doing} or with privileges of the \"pg_signal_backend\" role may \
             {verb} this {what}."
        ));
    }
    Ok(Some(backend))
}

/// `timeout`: milliseconds to wait until the session has ended; 0 does not wait.
fn terminate_backend(context: &StatementContext, pid: i32, timeout: i64) -> Result<Datum> {
    if timeout < 0 {
        bail!(NUMERIC_VALUE_OUT_OF_RANGE, "\"timeout\" must not be negative");
    }
    if signalled_backend(context, pid, "terminate")?.is_none() {
        return Ok(Datum::Bool(false));
    }
    let backends = &context.session.instance.backends;
    let sent = backends.terminate(pid);
    if timeout == 0 || pid == context.session.pid {
        return Ok(Datum::Bool(sent));
    }
    if wait_until(context, timeout as f64 / 1000.0, &|| backends.get(pid).is_none())? {
        return Ok(Datum::Bool(true));
    }
    let unit = if timeout == 1 { "millisecond" } else { "milliseconds" };
    context.session.warning(err!(WARNING, "backend with PID {pid} did not terminate within {timeout} {unit}"));
    Ok(Datum::Bool(false))
}

/// An address or a port; NULL when the client has come by a Unix-domain socket.
fn connection_end(context: &StatementContext, source: &str) -> Datum {
    let Some(Addresses { client, server }) = context.session.activity.peer.lock().addresses else { return Datum::Null };
    let end = if source.starts_with("inet_client") { client } else { server };
    match source.ends_with("_port") {
        true => Datum::Int4(i32::from(end.port())),
        false => Datum::bytes(Inet::from(end.ip()).store()),
    }
}

fn sequence(catalog: &Catalog, oid: u32) -> Result<(SequenceId, Arc<Relation>)> {
    let relation = catalog.relation(Oid(oid)).cloned();
    let relation = relation.ok_or_else(|| err!(UNDEFINED_TABLE, "could not open relation with OID {oid}"))?;
    match relation.storage {
        melba_catalog::Storage::Sequence(id) => Ok((SequenceId(id.0), relation)),
        _ => bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", relation.name),
    }
}

/// The questions of pg_sequences and pg_dump.
fn describe_sequence(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let record = |fields: Vec<Datum>, types: &[Oid]| {
        Datum::Record(Arc::new(Record { type_oid: oids::RECORD, field_types: types.into(), field_names: None, fields }))
    };
    let may = |relation: &Relation, masks: &[u64]| {
        masks.iter().any(|mask| context.catalog.has_relation_privileges(context.user.oid, relation, *mask))
    };
    let (id, relation) = sequence(&context.catalog, args[0].as_oid())?;
    if source == "pg_sequence_parameters" {
        if !may(&relation, &[acl::SELECT, acl::USAGE, acl::UPDATE]) {
            return Err(permissions::denied(&relation));
        }
        let info = relation.sequence.as_ref().ok_or_else(|| DbError::internal("a sequence without parameters"))?;
        let numbers = [info.start, info.min, info.max, info.increment].map(Datum::Int8);
        let mut fields = numbers.to_vec();
        fields.extend([Datum::Bool(info.cycle), Datum::Int8(info.cache), Datum::Oid(info.ty.0)]);
        let int8 = oids::INT8;
        return Ok(record(fields, &[int8, int8, int8, int8, oids::BOOL, int8, oids::OID]));
    }
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let state = tx.engine.sequence_state(id)?;
    if source == "pg_sequence_last_value" {
        let known = state.is_called && may(&relation, &[acl::SELECT, acl::USAGE]);
        return Ok(if known { Datum::Int8(state.last_value) } else { Datum::Null });
    }
    let fields = match may(&relation, &[acl::SELECT]) {
        true => vec![Datum::Int8(state.last_value), Datum::Bool(state.is_called)],
        false => vec![Datum::Null, Datum::Null],
    };
    Ok(record(fields, &[oids::INT8, oids::BOOL]))
}

fn call_sequence(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    if source == "lastval" {
        let last = context.session.sequences.lock().last;
        let known = last.and_then(|(oid, value)| Some((tx.catalog().relation(oid)?.clone(), value)));
        let Some((relation, value)) = known else {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "lastval is not yet defined in this session");
        };
        let may = |mask| context.catalog.has_relation_privileges(context.user.oid, &relation, mask);
        return if may(acl::USAGE) || may(acl::SELECT) { Ok(Datum::Int8(value)) } else { Err(permissions::denied(&relation)) };
    }
    // Against ALTER SEQUENCE and DROP, to the end of the transaction; while we waited it may have got other storage.
    let tag = LockTag::Relation { database: context.session.database_oid.0, relation: args[0].as_oid() };
    tx.engine.lock_relation(tag, RelationLockMode::RowExclusive, Wait::Block)?;
    let (id, relation) = sequence(&tx.catalog(), args[0].as_oid())?;
    let allowed: &[u64] = match source {
        "nextval_oid" => &[acl::USAGE, acl::UPDATE],
        "currval_oid" => &[acl::USAGE, acl::SELECT],
        // Its table's privileges count, and they were checked.
        "nextval_identity" => &[0],
        _ => &[acl::UPDATE],
    };
    if !allowed.iter().any(|mask| context.catalog.has_relation_privileges(context.user.oid, &relation, *mask)) {
        return Err(permissions::denied(&relation));
    }
    let is_read_only = || context.session.settings.lock().get("transaction_read_only").as_bool();
    if source != "currval_oid" && relation.persistence != Persistence::Temporary && is_read_only() {
        let function = if source.starts_with("nextval") { "nextval" } else { "setval" };
        bail!(READ_ONLY_SQL_TRANSACTION, "cannot execute {function}() in a read-only transaction");
    }
    match source {
        "nextval_oid" | "nextval_identity" => {
            let value = tx.engine.nextval(id).map_err(|e| name_sequence(e.into(), &relation.name))?;
            let mut sequences = context.session.sequences.lock();
            sequences.current.insert(relation.oid, value);
            sequences.last = Some((relation.oid, value));
            Ok(Datum::Int8(value))
        }
        "currval_oid" => context.session.sequences.lock().current.get(&relation.oid).map(|v| Datum::Int8(*v)).ok_or_else(|| {
            err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "currval of sequence \"{}\" is not yet defined in this session", relation.name)
        }),
        _ => {
            let value = args[1].as_i64();
            let called = args.get(2).is_none_or(Datum::as_bool);
            tx.engine.setval(id, value, called).map_err(|e| name_sequence(e.into(), &relation.name))?;
            if called {
                let mut sequences = context.session.sequences.lock();
                sequences.current.insert(relation.oid, value);
                if let Some(last) = sequences.last.as_mut().filter(|last| last.0 == relation.oid) {
                    last.1 = value;
                }
            }
            Ok(Datum::Int8(value))
        }
    }
}

/// pg_[try_]advisory_[xact_]lock[_shared], pg_advisory_unlock[_shared|_all].
fn call_advisory(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    if source == "pg_advisory_unlock_all" {
        context.session.engine().unlock_all();
        return Ok(Datum::text(""));
    }
    let database = context.session.database_oid.0;
    let tag = match args {
        [Datum::Int8(key)] => LockTag::Advisory { database, key: *key as u64, two_keys: false },
        [Datum::Int4(a), Datum::Int4(b)] => {
            LockTag::Advisory { database, key: u64::from(*a as u32) << 32 | u64::from(*b as u32), two_keys: true }
        }
        _ => return Err(unsupported_function(context, source)),
    };
    let mode = if source.contains("_shared") { RelationLockMode::Share } else { RelationLockMode::Exclusive };
    if source.starts_with("pg_advisory_unlock") {
        let held = context.session.engine().unlock(tag, mode);
        if !held {
            let mode = if mode == RelationLockMode::Share { "ShareLock" } else { "ExclusiveLock" };
            context.session.warning(err!(WARNING, "you don't own a lock of type {mode}"));
        }
        return Ok(Datum::Bool(held));
    }
    let attempt = source.starts_with("pg_try_");
    let wait = if attempt { Wait::NoWait } else { Wait::Block };
    let granted = if source.contains("_xact_") {
        tx.engine.lock_object(tag, mode, wait)?
    } else {
        context.session.engine().lock(tag, mode, wait)?
    };
    Ok(if attempt { Datum::Bool(granted) } else { Datum::text("") })
}

/// Functions of BRIN indexes, whose summaries are those of blocks: there are never any to make or to forget.
fn call_brin(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let block = args.get(1).map_or(0, Datum::as_i64);
    if !(0..=i64::from(u32::MAX)).contains(&block) {
        bail!(NUMERIC_VALUE_OUT_OF_RANGE, "block number out of range: {block}");
    }
    let oid = Oid(args[0].as_oid());
    let catalog = &context.catalog;
    let relation = catalog.relation(oid).ok_or_else(|| err!(UNDEFINED_TABLE, "could not open relation with OID {oid}"))?;
    if relation.index.is_none() {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", relation.name);
    }
    if relation.access_method != classes::BRIN {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a BRIN index", relation.name);
    }
    if !catalog.has_role(context.user.oid, relation.owner, RoleUse::Inherit) {
        bail!(INSUFFICIENT_PRIVILEGE, "must be owner of index {}", relation.name);
    }
    Ok(if source == "brin_desummarize_range" { Datum::text("") } else { Datum::Int4(0) })
}

fn call_size(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Datum> {
    let catalog = &context.catalog;
    let own = |relation: &Relation| own_size(context, catalog, relation);
    let toast = |relation: &Relation| catalog.relation(relation.oid.toast()).map_or(0, |r| own(r));
    if source.starts_with("pg_database_size") {
        return database_size(context, &args[0]);
    }
    const FORKS: [&str; 4] = ["main", "fsm", "vm", "init"];
    if args.get(1).is_some_and(|fork| !FORKS.contains(&fork.as_str())) {
        let e = err!(INVALID_PARAMETER_VALUE, "invalid fork name");
        return Err(e.hint("Valid fork names are \"main\", \"fsm\", \"vm\", and \"init\"."));
    }
    let Some(relation) = catalog.relation(Oid(args[0].as_oid())) else { return Ok(Datum::Null) };
    let indexes = || relation.indexes.iter().filter_map(|i| catalog.relation(*i)).map(|r| own(r)).sum::<u64>();
    let bytes = match source {
        "pg_indexes_size" => indexes(),
        "pg_total_relation_size" => own(relation) + toast(relation) + indexes(),
        "pg_table_size" => own(relation) + toast(relation),
        // There are no maps of free space and visibility.
        _ if args.get(1).is_some_and(|fork| fork.as_str() != "main") => 0,
        _ => own(relation),
    };
    Ok(Datum::Int8(bytes as i64))
}

/// Bytes of a relation's own storage.
fn own_size(context: &StatementContext, catalog: &Catalog, relation: &Relation) -> u64 {
    let engine = &context.session.instance.cluster.engine;
    match relation.storage {
        melba_catalog::Storage::Tree(tree) => engine.tree_bytes(tree),
        melba_catalog::Storage::Toast(tree) => engine.tree_bytes(tree.toast()),
        _ => match RowsOf::relation(relation.oid) {
            Some(RowsOf::Metadata) => engine.tree_bytes(Trees::of(catalog).metadata),
            Some(RowsOf::Pages) => engine.tree_bytes(Trees::of(catalog).data),
            None => 0,
        },
    }
}

/// # Errors
/// 3D000 and 42704 for a database that does not exist, by name and OID.
fn database_size(context: &StatementContext, database: &Datum) -> Result<Datum> {
    let oid = match database {
        Datum::Text(name) => context.catalog.database_by_name(name).map(|d| d.oid),
        oid => context.catalog.database(Oid(oid.as_oid())).map(|d| d.oid),
    };
    let oid = oid.ok_or_else(|| match database {
        Datum::Text(name) => err!(UNDEFINED_DATABASE, "database \"{name}\" does not exist"),
        oid => err!(UNDEFINED_OBJECT, "database with OID {} does not exist", oid.as_oid()),
    })?;
    let total = |catalog: &Catalog| catalog.relations().map(|r| own_size(context, catalog, r)).sum::<u64>();
    let bytes = match context.session.instance.cluster.catalogs().database(oid) {
        // With what the transaction has created.
        _ if oid == context.catalog.database_oid() => total(&context.catalog),
        Some(catalog) => total(catalog),
        None => 0,
    };
    Ok(Datum::Int8(bytes as i64))
}

/// The engine does not know the names of its sequences.
fn name_sequence(mut error: DbError, name: &str) -> DbError {
    let fields = error.fields_mut();
    fields.message = fields.message.replacen("of sequence", &format!("of sequence \"{name}\""), 1).replacen(
        "for sequence (",
        &format!("for sequence \"{name}\" ("),
        1,
    );
    error
}

/// The result of version(). Clients search it for "PostgreSQL" and a number behind it.
static VERSION: OnceLock<String> = OnceLock::new();

/// The version of the program around, with its commit, for version(): the crate's own unless it is set before its first use.
pub fn set_version(version: &str) {
    let _ = VERSION.set(version_of(version));
}

/// The result of version().
pub fn version() -> &'static str {
    VERSION.get_or_init(|| version_of(env!("CARGO_PKG_VERSION")))
}

fn version_of(version: &str) -> String {
    format!("PostgreSQL 18.6 (Melba {version}), 64-bit")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expressions call these without a row of pg_proc.
    const CALLED_BY_EXPRESSIONS: [&str; 2] = ["domain_check", "nextval_identity"];

    #[test]
    fn each_function_of_the_table_is_in_pg_proc_and_has_one_row() {
        let catalog = Catalog::new(Oid(5));
        let of_extensions =
            melba_catalog::available_extensions().iter().flat_map(|e| &e.objects).filter_map(|object| match object {
                melba_catalog::Object::Function(f) => Some(f),
                _ => None,
            });
        let all = catalog.functions().chain(of_extensions);
        let sources: std::collections::HashSet<&str> = all.map(|f| &*f.source).collect();
        let unknown: Vec<&str> = FUNCTIONS.iter().map(|(source, _)| *source).filter(|s| !sources.contains(s)).collect();
        assert_eq!(unknown, CALLED_BY_EXPRESSIONS);
        assert_eq!(BY_SOURCE.len(), FUNCTIONS.len());
    }
}
