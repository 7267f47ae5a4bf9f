//! What pg_settings_get_flags tells of settings.

use crate::table::{Class, Context, Definition};

impl Definition {
    /// The names of the setting's flags, in PostgreSQL's order.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let name = self.name;
        FLAGS.iter().filter(move |(_, settings)| settings.binary_search(&name).is_ok()).map(|(flag, _)| *flag)
    }

    /// ALTER SYSTEM cannot keep it.
    pub fn is_refused_by_alter_system(&self) -> bool {
        self.context == Context::Internal || self.class == Class::Fixed || NOT_IN_FILE.binary_search(&self.name).is_ok()
    }
}

/// Each with its settings, which are sorted.
const FLAGS: &[(&str, &[&str])] = &[
    ("EXPLAIN", EXPLAIN),
    ("NO_RESET", NO_RESET),
    ("NO_RESET_ALL", NO_RESET_ALL),
    ("NO_SHOW_ALL", NO_SHOW_ALL),
    ("NOT_IN_SAMPLE", NOT_IN_SAMPLE),
    ("RUNTIME_COMPUTED", RUNTIME_COMPUTED),
];

/// EXPLAIN (SETTINGS) shows them when they have been changed.
const EXPLAIN: &[&str] = &[
    "constraint_exclusion",
    "cpu_index_tuple_cost",
    "cpu_operator_cost",
    "cpu_tuple_cost",
    "cursor_tuple_fraction",
    "debug_parallel_query",
    "effective_cache_size",
    "effective_io_concurrency",
    "enable_async_append",
    "enable_bitmapscan",
    "enable_distinct_reordering",
    "enable_gathermerge",
    "enable_group_by_reordering",
    "enable_hashagg",
    "enable_hashjoin",
    "enable_incremental_sort",
    "enable_indexonlyscan",
    "enable_indexscan",
    "enable_material",
    "enable_memoize",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_parallel_append",
    "enable_parallel_hash",
    "enable_partition_pruning",
    "enable_partitionwise_aggregate",
    "enable_partitionwise_join",
    "enable_presorted_aggregate",
    "enable_self_join_elimination",
    "enable_seqscan",
    "enable_sort",
    "enable_tidscan",
    "from_collapse_limit",
    "geqo",
    "geqo_effort",
    "geqo_generations",
    "geqo_pool_size",
    "geqo_seed",
    "geqo_selection_bias",
    "geqo_threshold",
    "hash_mem_multiplier",
    "jit",
    "jit_above_cost",
    "jit_inline_above_cost",
    "jit_optimize_above_cost",
    "join_collapse_limit",
    "maintenance_io_concurrency",
    "max_parallel_workers",
    "max_parallel_workers_per_gather",
    "min_parallel_index_scan_size",
    "min_parallel_table_scan_size",
    "parallel_leader_participation",
    "parallel_setup_cost",
    "parallel_tuple_cost",
    "plan_cache_mode",
    "random_page_cost",
    "recursive_worktable_factor",
    "search_path",
    "seq_page_cost",
    "temp_buffers",
    "work_mem",
];

/// RESET is refused.
const NO_RESET: &[&str] = &["seed", "transaction_deferrable", "transaction_isolation", "transaction_read_only"];

/// RESET ALL passes over them.
const NO_RESET_ALL: &[&str] = &[
    "is_superuser",
    "role",
    "seed",
    "session_authorization",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
];

/// pg_settings does not list them.
const NO_SHOW_ALL: &[&str] =
    &["default_with_oids", "is_superuser", "role", "seed", "session_authorization", "ssl_renegotiation_limit"];

/// ALTER SYSTEM refuses them: they are of a session or a transaction, of the command line, or protect its file.
const NOT_IN_FILE: &[&str] = &[
    "allow_alter_system",
    "config_file",
    "data_directory",
    "role",
    "seed",
    "session_authorization",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
];

/// They are not in PostgreSQL's example of a configuration file.
const NOT_IN_SAMPLE: &[&str] = &[
    "allow_in_place_tablespaces",
    "allow_system_table_mods",
    "application_name",
    "backtrace_functions",
    "block_size",
    "data_checksums",
    "data_directory_mode",
    "debug_assertions",
    "debug_discard_caches",
    "debug_io_direct",
    "debug_logical_replication_streaming",
    "debug_parallel_query",
    "default_with_oids",
    "huge_pages_status",
    "ignore_checksum_failure",
    "ignore_invalid_pages",
    "ignore_system_indexes",
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "jit_debugging_support",
    "jit_dump_bitcode",
    "jit_expressions",
    "jit_profiling_support",
    "jit_tuple_deforming",
    "max_function_args",
    "max_identifier_length",
    "max_index_keys",
    "num_os_semaphores",
    "post_auth_delay",
    "pre_auth_delay",
    "remove_temp_files_after_crash",
    "restrict_nonsystem_relation_kind",
    "role",
    "seed",
    "segment_size",
    "send_abort_for_crash",
    "send_abort_for_kill",
    "server_encoding",
    "server_version",
    "server_version_num",
    "session_authorization",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    "ssl_library",
    "ssl_renegotiation_limit",
    "trace_connection_negotiation",
    "trace_notify",
    "trace_sort",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
    "wal_block_size",
    "wal_consistency_checking",
    "wal_segment_size",
    "zero_damaged_pages",
];

/// They are computed when the server starts.
const RUNTIME_COMPUTED: &[&str] = &[
    "data_checksums",
    "data_directory_mode",
    "num_os_semaphores",
    "shared_memory_size",
    "shared_memory_size_in_huge_pages",
    "wal_segment_size",
];

#[cfg(test)]
mod tests {
    use super::{FLAGS, NOT_IN_FILE};

    #[test]
    fn settings_with_a_flag_are_sorted() {
        assert!(FLAGS.iter().all(|(_, settings)| settings.is_sorted()));
        assert!(NOT_IN_FILE.is_sorted());
    }
}
