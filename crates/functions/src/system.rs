//! Set-returning functions about the running server. Their rows come from the session.

use melba_fmgr::SetFn;

macro_rules! from_session {
    ($($source:literal),* $(,)?) => {
        /// See the module.
        pub const SETS: &[(&str, SetFn)] = &[$((
            $source,
            |call, args| Ok(Box::new(call.session.system_rows($source, call, args)?.into_iter().map(Ok))),
        )),*];
    };
}

from_session!(
    "show_all_settings",
    "pg_lock_status",
    "pg_stat_get_activity",
    "pg_cursor",
    "melba_get_compression_stats",
    "pg_prepared_statement",
    "pg_prepared_xact",
    "pg_event_trigger_dropped_objects",
    "pg_event_trigger_ddl_commands",
    "pg_available_extensions",
    "pg_available_extension_versions"
);
