//! Rows of pg_settings, pg_locks, pg_stat_activity: what the functions behind these views return.

use std::sync::Arc;

use melba_catalog::{ExtensionDefinition, PLPGSQL, Storage, available_extensions};
use melba_engine::LockTag;
use melba_settings::configuration::Place;
use melba_settings::table::{Type, is_hidden};
use melba_settings::{Reconfigured, value};
use melba_types::inet::Inet;
use melba_types::numeric::Numeric;
use melba_types::{Array, ArrayDim, Datum, Oid, Result, TreeId, bail, oids};

use super::backends::{Addresses, Backend};
use super::backup::{backup_files, start_backup};
use super::cold_rows::{cold_cache_rows, cold_rows};
use super::context::StatementContext;
use super::event_state::{command_rows, dropped_object_rows};
use super::io_statistics::io_rows;
use super::listing::{cursor_rows, prepared_rows, prepared_transaction_rows};
use super::monitoring::monitoring_rows;
use super::progress;
use super::publish::{publication_rows, published_table_rows};
use super::server_files::list_directory;
use super::statement_counts::rows::statement_rows;
use super::statistics::{compression_rows, slru_rows};
use super::system::unsupported_function;
use super::user::sees_activity_of;
use super::workers;

/// pg_locks.locktype.
pub(super) fn lock_type(lock: &melba_engine::LockedObject) -> &'static str {
    if lock.transaction.is_some() {
        return "virtualxid";
    }
    match (lock.tag, lock.row, lock.page) {
        (Some(LockTag::Relation { .. }), ..) => "relation",
        (Some(LockTag::Object { .. } | LockTag::Name { .. }), ..) => "object",
        (Some(LockTag::Advisory { .. }), ..) => "advisory",
        (None, Some(_), _) => "tuple",
        (None, None, Some(_)) => "page",
        (None, None, None) => "relation",
    }
}

/// The beginning of a text, as long as track_activity_query_size has room for it.
fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// A row for each extension: name, version, comment, and all else, of those that need not be there.
fn available(row: impl Fn(&str, &str, &str, Option<&ExtensionDefinition>) -> Vec<Datum>) -> Vec<Vec<Datum>> {
    let others = available_extensions().iter().map(|d| row(d.name, d.version, d.comment, Some(d)));
    std::iter::once(row("plpgsql", "1.0", PLPGSQL, None)).chain(others).collect()
}

pub(super) fn rows_of(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    match source {
        "show_all_settings" => Ok(setting_rows(context)),
        "show_all_file_settings" => file_setting_rows(context),
        "pg_ls_dir" | "pg_ls_dir_1arg" => list_directory(context, args),
        "pg_lock_status" => Ok(lock_rows(context)),
        "pg_hba_file_rules" => context.session.instance.gate()?.rule_rows(&context.session.instance.settings()),
        "pg_ident_file_mappings" => context.session.instance.gate()?.mapping_rows(),
        "pg_available_extensions" => {
            Ok(available(|name, version, comment, _| vec![Datum::text(name), Datum::text(version), Datum::text(comment)]))
        }
        "pg_available_extension_versions" => Ok(available(|name, version, comment, definition| {
            let (trusted, relocatable) = definition.map_or((true, false), |d| (d.trusted, d.relocatable));
            // Only plpgsql is bound to a schema.
            let schema = if definition.is_none() { Datum::text("pg_catalog") } else { Datum::Null };
            let superuser = Datum::Bool(true);
            let (trusted, relocatable) = (Datum::Bool(trusted), Datum::Bool(relocatable));
            vec![
                Datum::text(name),
                Datum::text(version),
                superuser,
                trusted,
                relocatable,
                schema,
                Datum::Null,
                Datum::text(comment),
            ]
        })),
        "pg_cursor" => Ok(cursor_rows(context)),
        "pg_listening_channels" => {
            Ok(context.session.listener.channels().into_iter().map(|channel| vec![Datum::text(channel)]).collect())
        }
        "melba_get_cold" => cold_rows(context),
        "melba_get_cold_cache" => Ok(cold_cache_rows(context)),
        "melba_get_publications" => Ok(publication_rows(context)),
        "pg_get_publication_tables" => published_table_rows(context, args),
        "melba_backup_start" => start_backup(context),
        "melba_backup_files" => backup_files(context),
        "melba_get_compression_stats" => compression_rows(context),
        "pg_event_trigger_dropped_objects" => dropped_object_rows(context),
        "pg_event_trigger_ddl_commands" => command_rows(context),
        "pg_prepared_xact" => Ok(prepared_transaction_rows(context)),
        "pg_prepared_statement" => Ok(prepared_rows(context)),
        "pg_stat_get_io" => Ok(io_rows(context)),
        "pg_stat_statements_1_12" => Ok(statement_rows(context, matches!(args[0], Datum::Bool(true)))),
        "pg_stat_get_slru" => Ok(slru_rows(context)),
        "pg_stat_get_progress_info" => progress_rows(context, args[0].as_str()),
        "pg_stat_get_activity" => Ok(activity_rows(context, args)),
        _ => match monitoring_rows(context, source, args) {
            Some(rows) => rows,
            None => Err(unsupported_function(context, source)),
        },
    }
}

/// name, setting, unit, category, short_desc, extra_desc, context, vartype, source, min_val, max_val, enumvals, boot_val,
/// reset_val, sourcefile, sourceline, pending_restart
fn setting_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let settings = context.session.settings.lock();
    let optional = |s: &'static str| if s.is_empty() { Datum::Null } else { Datum::text(s) };
    let sees_files = super::user::sees_setting(&context.catalog, context.user.oid, "config_file");
    let mut rows = Vec::new();
    for id in settings.ids() {
        if !super::user::sees_setting(&context.catalog, context.user.oid, settings.name(id)) {
            continue;
        }
        let (value, reset) = (settings.value(id), settings.reset_value(id));
        let source = settings.source(id);
        let place = source.file.filter(|_| sees_files);
        let plain = |v| Datum::text(value::plain(v));
        let row = match settings.definition(id) {
            Some(d) if is_hidden(d.name) => continue,
            Some(d) => vec![
                Datum::text(d.name),
                Datum::text(settings.setting(d, value)),
                optional(d.unit),
                Datum::text(d.category),
                Datum::text(d.description),
                d.extra_description().map_or(Datum::Null, Datum::text),
                Datum::text(d.context.name()),
                Datum::text(d.type_name()),
                Datum::text(source.name),
                optional(d.min),
                optional(d.max),
                if d.ty == Type::Enum { text_array(d.options()) } else { Datum::Null },
                Datum::text(d.default),
                plain(reset),
                place.as_ref().map_or(Datum::Null, |(file, _)| Datum::text(&**file)),
                place.map_or(Datum::Null, |(_, line)| Datum::Int4(line as i32)),
                Datum::Bool(settings.is_pending_restart(id)),
            ],
            // One that a client has defined.
            None => continue,
        };
        rows.push(row);
    }
    rows
}

/// sourcefile, sourceline, seqno, name, setting, applied, error
fn file_setting_rows(context: &StatementContext) -> Result<Vec<Vec<Datum>>> {
    let configured = context.session.instance.configuration()?.read();
    let server = context.session.instance.settings();
    let Reconfigured { settings, problems, .. } = server.reconfigured(&configured);
    let in_force = configured.in_force(|name| server.find(name));
    let has_errors = !configured.errors.is_empty();
    let mut rows: Vec<Vec<Datum>> = Vec::new();
    for (at, assignment) in configured.assignments.iter().enumerate() {
        let Place::File(file, line) = &assignment.place else { continue };
        let waits = || server.find(&assignment.name).is_some_and(|id| settings.is_pending_restart(id));
        let problem = problems.iter().find(|(which, _)| *which == at);
        let error = match problem {
            Some((_, e)) if e.sqlstate() == melba_types::SqlState::UNDEFINED_OBJECT => {
                Some("unrecognized configuration parameter")
            }
            Some(_) => Some("setting could not be applied"),
            None if in_force[at] && waits() => Some("setting could not be applied"),
            None => None,
        };
        let applied = in_force[at] && error.is_none() && !has_errors;
        rows.push(vec![
            Datum::text(&**file),
            Datum::Int4(*line as i32),
            Datum::Int4(rows.len() as i32 + 1),
            Datum::text(&*assignment.name),
            Datum::text(&*assignment.value),
            Datum::Bool(applied),
            error.map_or(Datum::Null, Datum::text),
        ]);
    }
    for error in &configured.errors {
        let (name, value) =
            error.name.as_ref().map_or((Datum::Null, Datum::Null), |(name, value)| (Datum::text(&**name), Datum::text(&**value)));
        rows.push(vec![
            Datum::text(&*error.file),
            Datum::Int4(error.line as i32),
            Datum::Int4(rows.len() as i32 + 1),
            name,
            value,
            Datum::Bool(false),
            Datum::text(&*error.what),
        ]);
    }
    Ok(rows)
}

/// locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid, virtualtransaction,
/// pid, mode, granted, fastpath, waitstart
fn lock_rows(context: &StatementContext) -> Vec<Vec<Datum>> {
    let locks = context.session.instance.cluster.engine.locks();
    let by_tree = |tree: TreeId| {
        let found = context.catalog.relations().find(|r| matches!(r.storage, Storage::Tree(t) if t == tree));
        found.map_or(Datum::Null, |r| Datum::Oid(r.oid.0))
    };
    let row = |lock: &melba_engine::LockedObject| {
        let mut row = vec![Datum::Null; 16];
        let oid = |v: u32| Datum::Oid(v);
        row[0] = Datum::text(lock_type(lock));
        match lock.tag {
            Some(LockTag::Relation { database, relation }) => {
                (row[1], row[2]) = (oid(database), oid(relation));
            }
            Some(LockTag::Object { database, class, object }) => {
                (row[1], row[7], row[8], row[9]) = (oid(database), oid(class), oid(object), Datum::Int2(0));
            }
            Some(LockTag::Name { database, class, .. }) => {
                (row[1], row[7]) = (oid(database), oid(class));
            }
            Some(LockTag::Advisory { database, key, two_keys }) => {
                row[1] = oid(database);
                (row[7], row[8]) = (oid((key >> 32) as u32), oid(key as u32));
                row[9] = Datum::Int2(if two_keys { 2 } else { 1 });
            }
            None => {
                if let Some(tree) = lock.tree {
                    (row[1], row[2]) = (oid(context.session.database_oid.0), by_tree(tree));
                }
                if let Some(page) = lock.page {
                    row[3] = Datum::Int4(page as i32);
                }
                if let Some(id) = lock.row {
                    (row[3], row[4]) = (Datum::Int4((id.0 >> 8) as i32), Datum::Int2((id.0 & 0xff) as i16));
                }
            }
        }
        if let Some((slot, id)) = lock.transaction {
            row[5] = Datum::text(format!("{slot}/{id}"));
        }
        row[10] = Datum::text(format!("{}/0", lock.pid));
        row[11] = if lock.pid == 0 { Datum::Null } else { Datum::Int4(lock.pid) };
        row[12] = Datum::text(lock.mode);
        row[13] = Datum::Bool(lock.granted);
        row[14] = Datum::Bool(false);
        row
    };
    locks.iter().map(row).collect()
}

/// Of the sessions that run a command of that name, those whose activity this user may see; only COPY reports progress.
fn progress_rows(context: &StatementContext, command: &str) -> Result<Vec<Vec<Datum>>> {
    let Some(command) = progress::ProgressCommand::by_name(command) else {
        // Those that are never under way here.
        return match ["CLUSTER", "BASEBACKUP"].iter().any(|known| known.eq_ignore_ascii_case(command)) {
            true => Ok(Vec::new()),
            false => bail!(INVALID_PARAMETER_VALUE, "invalid command name: \"{command}\""),
        };
    };
    let backends = context.session.instance.backends.all();
    let row = |backend: &Arc<Backend>| {
        let (relation, figures) = backend.activity.progress.of(command)?;
        let is_seen = sees_activity_of(&context.catalog, context.user.oid, backend.role);
        Some(progress::row(backend.pid, backend.database, relation, &figures, is_seen))
    };
    Ok(backends.iter().filter_map(row).collect())
}

/// datid, pid, usesysid, application_name, state, query, wait_event_type, wait_event, xact_start, query_start,
/// backend_start, state_change, client_addr, client_hostname, client_port, backend_xid, backend_xmin, backend_type,
/// ssl, sslversion, sslcipher, sslbits, ssl_client_dn, ssl_client_serial, ssl_issuer_dn, and six columns about GSSAPI and
/// parallelism
fn activity_rows(context: &StatementContext, args: &[Datum]) -> Vec<Vec<Datum>> {
    let wanted = match args.first() {
        Some(Datum::Int4(pid)) => Some(*pid),
        _ => None,
    };
    let backends = context.session.instance.backends.all();
    let locks = context.session.instance.cluster.engine.locks();
    let query_bytes = context.session.instance.settings().get("track_activity_query_size").as_integer().max(1) as usize - 1;
    let row = |backend: &Arc<super::backends::Backend>| {
        let (activity, peer) = (&backend.activity, backend.activity.peer.lock().clone());
        let mut row = vec![Datum::Null; 31];
        let catalogs = context.session.instance.cluster.catalog_by_name(&peer.database);
        row[0] = catalogs.map_or(Datum::Null, |c| Datum::Oid(c.database_oid().0));
        row[1] = Datum::Int4(backend.pid);
        row[2] = Datum::Oid(context.catalog.role_by_name(&peer.user).map_or(Oid::INVALID, |r| r.oid).0);
        row[3] = Datum::text(peer.application_name);
        if !sees_activity_of(&context.catalog, context.user.oid, backend.role) {
            row[5] = Datum::text("<insufficient privilege>");
            return row;
        }
        row[4] = Datum::text(activity.state().name());
        row[5] = Datum::text(cut(&activity.query(), query_bytes));
        let lock = locks.iter().find(|lock| lock.pid == backend.pid && !lock.granted);
        let event = lock.map(|lock| ("Lock", lock_type(lock))).or_else(|| activity.wait_event());
        if let Some((kind, event)) = event {
            (row[6], row[7]) = (Datum::text(kind), Datum::text(event));
        }
        let time = |time: i64| if time == 0 { Datum::Null } else { Datum::Int8(time) };
        row[8] = time(activity.transaction_start());
        row[9] = time(activity.query_start());
        row[10] = Datum::Int8(peer.started);
        row[11] = time(activity.state_change());
        match peer.addresses {
            Some(Addresses { client, .. }) => {
                row[12] = Datum::bytes(Inet::from(client.ip()).store());
                row[14] = Datum::Int4(i32::from(client.port()));
            }
            // By a Unix-domain socket.
            None => row[14] = Datum::Int4(-1),
        }
        row[17] = Datum::text("client backend");
        row[18] = Datum::Bool(peer.encryption.is_some());
        if let Some(encryption) = &peer.encryption {
            row[19] = Datum::text(encryption.version);
            row[20] = Datum::text(encryption.cipher);
            row[21] = Datum::Int4(encryption.bits);
            if let Some(client) = &encryption.client {
                row[22] = Datum::text(client.subject.clone());
                row[23] = Numeric::parse(&client.serial).map_or(Datum::Null, Datum::Numeric);
                row[24] = Datum::text(client.issuer.clone());
            }
        }
        row[30] = match activity.query_id() {
            0 => Datum::Null,
            id => Datum::Int8(id),
        };
        // GSSAPI: neither authenticated nor encrypted, no credentials delegated.
        (row[25], row[27], row[28]) = (Datum::Bool(false), Datum::Bool(false), Datum::Bool(false));
        row
    };
    let sessions = backends.iter().map(row);
    let is_wanted = |row: &Vec<Datum>| wanted.is_none_or(|pid| matches!(row[1], Datum::Int4(of) if of == pid));
    sessions.chain(workers::activity_rows(context)).filter(is_wanted).collect()
}

fn text_array(items: impl Iterator<Item = &'static str>) -> Datum {
    let elements: Vec<Datum> = items.map(Datum::text).collect();
    let dims = vec![ArrayDim { length: elements.len() as i32, lower_bound: 1 }];
    Datum::Array(Arc::new(Array { element_type: oids::TEXT, dims, elements }))
}
