//! The queries of the built-in views: our own SQL over the system relations, giving PostgreSQL's columns.
//!
//! The queries name objects of pg_catalog without qualification: analyze them under the search path `pg_catalog` alone, or with
//! pg_catalog first. `seed/check_views.sh` compares them with a real PostgreSQL's views.
//!
//! The texts are in `seed/views/*.sql`, one section per view, headed by `-- view NAME`. Three kinds of view have no text: those
//! over a function's rows, those that select from another view, and those of features that Melba does not have, which are empty.

use std::fmt::Write;
use std::sync::LazyLock;

use hashbrown::HashMap;
use melba_types::Oid;

use crate::classes::PG_CATALOG;
use crate::naming::quote_ident;

/// A column of a view: its name, and the SQL name of its type.
pub(crate) struct ViewColumn<'a> {
    pub name: &'a str,
    pub ty: String,
}

/// Views over a function's rows, column for column.
const OF_FUNCTION: &[(&str, &str)] = &[
    ("melba_cold", "melba_get_cold()"),
    ("melba_cold_cache", "melba_get_cold_cache()"),
    ("melba_compression_stats", "melba_get_compression_stats()"),
    ("melba_flushes", "melba_get_flushes()"),
    ("melba_memory", "melba_get_memory()"),
    ("melba_merges", "melba_get_merges()"),
    ("melba_publications", "melba_get_publications()"),
    ("pg_aios", "pg_get_aios()"),
    ("pg_backend_memory_contexts", "pg_get_backend_memory_contexts()"),
    ("pg_config", "pg_config()"),
    ("pg_cursors", "pg_cursor()"),
    ("pg_file_settings", "pg_show_all_file_settings()"),
    ("pg_hba_file_rules", "pg_hba_file_rules()"),
    ("pg_ident_file_mappings", "pg_ident_file_mappings()"),
    ("pg_locks", "pg_lock_status()"),
    ("pg_prepared_statements", "pg_prepared_statement()"),
    ("pg_settings", "pg_show_all_settings()"),
    ("pg_shmem_allocations", "pg_get_shmem_allocations()"),
    ("pg_stat_archiver", "pg_stat_get_archiver()"),
    ("pg_stat_io", "pg_stat_get_io()"),
    ("pg_stat_slru", "pg_stat_get_slru()"),
    ("pg_stat_wal", "pg_stat_get_wal()"),
    ("pg_timezone_names", "pg_timezone_names()"),
    ("pg_wait_events", "pg_get_wait_events()"),
];

const OF_SYSTEM: &str = "schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast'";
const OF_USERS: &str = "schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast'";
/// Grants that the current user's roles gave or received.
const OF_ENABLED_ROLES: &str = "grantor IN (SELECT role_name FROM information_schema.enabled_roles) \
     OR grantee IN (SELECT role_name FROM information_schema.enabled_roles)";

/// Views that select rows of another.
const OF_VIEW: &[(&str, &str, &str)] = &[
    ("pg_stat_sys_tables", "pg_stat_all_tables", OF_SYSTEM),
    ("pg_stat_user_tables", "pg_stat_all_tables", OF_USERS),
    ("pg_stat_xact_sys_tables", "pg_stat_xact_all_tables", OF_SYSTEM),
    ("pg_stat_xact_user_tables", "pg_stat_xact_all_tables", OF_USERS),
    ("pg_stat_sys_indexes", "pg_stat_all_indexes", OF_SYSTEM),
    ("pg_stat_user_indexes", "pg_stat_all_indexes", OF_USERS),
    ("pg_statio_sys_tables", "pg_statio_all_tables", OF_SYSTEM),
    ("pg_statio_user_tables", "pg_statio_all_tables", OF_USERS),
    ("pg_statio_sys_indexes", "pg_statio_all_indexes", OF_SYSTEM),
    ("pg_statio_user_indexes", "pg_statio_all_indexes", OF_USERS),
    ("pg_statio_sys_sequences", "pg_statio_all_sequences", OF_SYSTEM),
    ("pg_statio_user_sequences", "pg_statio_all_sequences", OF_USERS),
    ("administrable_role_authorizations", "information_schema.applicable_roles", "is_grantable = 'YES'"),
    ("role_column_grants", "information_schema.column_privileges", OF_ENABLED_ROLES),
    ("role_routine_grants", "information_schema.routine_privileges", OF_ENABLED_ROLES),
    ("role_table_grants", "information_schema.table_privileges", OF_ENABLED_ROLES),
    ("role_udt_grants", "information_schema.udt_privileges", OF_ENABLED_ROLES),
    ("role_usage_grants", "information_schema.usage_privileges", OF_ENABLED_ROLES),
];

static TEXTS: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let files = [
        include_str!("../seed/views/relations.sql"),
        include_str!("../seed/views/statistics.sql"),
        include_str!("../seed/views/information_schema.sql"),
        include_str!("../seed/views/information_schema_foreign.sql"),
        include_str!("../seed/views/information_schema_types.sql"),
        include_str!("../seed/views/information_schema_privileges.sql"),
        include_str!("../seed/views/information_schema_routines.sql"),
    ];
    let sections = files.iter().flat_map(|file| file.split("\n-- view ").skip(1));
    sections.filter_map(|section| section.split_once('\n')).map(|(name, text)| (name, text.trim_end())).collect()
});

/// The SELECT of a built-in view.
pub(crate) fn query(namespace: Oid, name: &str, columns: &[ViewColumn<'_>]) -> String {
    let list = || columns.iter().map(|c| quote_ident(c.name)).collect::<Vec<_>>().join(", ");
    if let Some(text) = TEXTS.get(name) {
        if namespace == PG_CATALOG {
            return (*text).to_owned();
        }
        // information_schema's columns are of its domains.
        let mut out = String::from("SELECT ");
        for (i, column) in columns.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let _ = write!(out, "{comma}v.{0}::{1} AS {0}", quote_ident(column.name), column.ty);
        }
        let _ = write!(out, "\nFROM ({text}) v");
        return out;
    }
    if let Some((_, function)) = OF_FUNCTION.iter().find(|(view, _)| *view == name) {
        return format!("SELECT {} FROM {function} f", list());
    }
    if let Some((_, base, condition)) = OF_VIEW.iter().find(|(view, ..)| *view == name) {
        return format!("SELECT {} FROM {base} WHERE {condition}", list());
    }
    let nulls: Vec<_> = columns.iter().map(|c| format!("NULL::{} AS {}", c.ty, quote_ident(c.name))).collect();
    format!("SELECT {} WHERE false", nulls.join(", "))
}
