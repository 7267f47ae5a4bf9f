-- Views of activity and of what has been counted. A section a view; see src/views.rs.

-- view pg_stat_activity
SELECT a.datid, d.datname, a.pid, a.leader_pid, a.usesysid, r.rolname AS usename, a.application_name, a.client_addr,
    a.client_hostname, a.client_port, a.backend_start, a.xact_start, a.query_start, a.state_change, a.wait_event_type,
    a.wait_event, a.state, a.backend_xid, a.backend_xmin, a.query_id, a.query, a.backend_type
FROM pg_stat_get_activity(NULL) a
    LEFT JOIN pg_database d ON d.oid = a.datid
    LEFT JOIN pg_authid r ON r.oid = a.usesysid

-- view pg_stat_ssl
SELECT a.pid, a.ssl, a.sslversion AS version, a.sslcipher AS cipher, a.sslbits AS bits, a.ssl_client_dn AS client_dn,
    a.ssl_client_serial AS client_serial, a.ssl_issuer_dn AS issuer_dn
FROM pg_stat_get_activity(NULL) a
WHERE a.client_port IS NOT NULL

-- view pg_stat_gssapi
SELECT a.pid, a.gss_auth AS gss_authenticated, a.gss_princ AS principal, a.gss_enc AS encrypted,
    a.gss_delegation AS credentials_delegated
FROM pg_stat_get_activity(NULL) a
WHERE a.client_port IS NOT NULL

-- view pg_stat_all_tables
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
    pg_stat_get_numscans(c.oid) AS seq_scan, pg_stat_get_lastscan(c.oid) AS last_seq_scan,
    pg_stat_get_tuples_returned(c.oid) AS seq_tup_read,
    (SELECT sum(pg_stat_get_numscans(i.indexrelid))::bigint FROM pg_index i WHERE i.indrelid = c.oid) AS idx_scan,
    (SELECT max(pg_stat_get_lastscan(i.indexrelid)) FROM pg_index i WHERE i.indrelid = c.oid) AS last_idx_scan,
    (SELECT sum(pg_stat_get_tuples_fetched(i.indexrelid))::bigint FROM pg_index i WHERE i.indrelid = c.oid)
        + pg_stat_get_tuples_fetched(c.oid) AS idx_tup_fetch,
    pg_stat_get_tuples_inserted(c.oid) AS n_tup_ins, pg_stat_get_tuples_updated(c.oid) AS n_tup_upd,
    pg_stat_get_tuples_deleted(c.oid) AS n_tup_del, pg_stat_get_tuples_hot_updated(c.oid) AS n_tup_hot_upd,
    pg_stat_get_tuples_newpage_updated(c.oid) AS n_tup_newpage_upd, pg_stat_get_live_tuples(c.oid) AS n_live_tup,
    pg_stat_get_dead_tuples(c.oid) AS n_dead_tup, pg_stat_get_mod_since_analyze(c.oid) AS n_mod_since_analyze,
    pg_stat_get_ins_since_vacuum(c.oid) AS n_ins_since_vacuum, pg_stat_get_last_vacuum_time(c.oid) AS last_vacuum,
    pg_stat_get_last_autovacuum_time(c.oid) AS last_autovacuum, pg_stat_get_last_analyze_time(c.oid) AS last_analyze,
    pg_stat_get_last_autoanalyze_time(c.oid) AS last_autoanalyze, pg_stat_get_vacuum_count(c.oid) AS vacuum_count,
    pg_stat_get_autovacuum_count(c.oid) AS autovacuum_count, pg_stat_get_analyze_count(c.oid) AS analyze_count,
    pg_stat_get_autoanalyze_count(c.oid) AS autoanalyze_count, pg_stat_get_total_vacuum_time(c.oid) AS total_vacuum_time,
    pg_stat_get_total_autovacuum_time(c.oid) AS total_autovacuum_time,
    pg_stat_get_total_analyze_time(c.oid) AS total_analyze_time,
    pg_stat_get_total_autoanalyze_time(c.oid) AS total_autoanalyze_time
FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 't', 'm', 'p')

-- view pg_stat_xact_all_tables
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
    pg_stat_get_xact_numscans(c.oid) AS seq_scan, pg_stat_get_xact_tuples_returned(c.oid) AS seq_tup_read,
    (SELECT sum(pg_stat_get_xact_numscans(i.indexrelid))::bigint FROM pg_index i WHERE i.indrelid = c.oid) AS idx_scan,
    (SELECT sum(pg_stat_get_xact_tuples_fetched(i.indexrelid))::bigint FROM pg_index i WHERE i.indrelid = c.oid)
        + pg_stat_get_xact_tuples_fetched(c.oid) AS idx_tup_fetch,
    pg_stat_get_xact_tuples_inserted(c.oid) AS n_tup_ins, pg_stat_get_xact_tuples_updated(c.oid) AS n_tup_upd,
    pg_stat_get_xact_tuples_deleted(c.oid) AS n_tup_del, pg_stat_get_xact_tuples_hot_updated(c.oid) AS n_tup_hot_upd,
    pg_stat_get_xact_tuples_newpage_updated(c.oid) AS n_tup_newpage_upd
FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 't', 'm', 'p')

-- view pg_stat_all_indexes
SELECT c.oid AS relid, i.oid AS indexrelid, n.nspname AS schemaname, c.relname, i.relname AS indexrelname,
    pg_stat_get_numscans(i.oid) AS idx_scan, pg_stat_get_lastscan(i.oid) AS last_idx_scan,
    pg_stat_get_tuples_returned(i.oid) AS idx_tup_read, pg_stat_get_tuples_fetched(i.oid) AS idx_tup_fetch
FROM pg_index x
    JOIN pg_class c ON c.oid = x.indrelid
    JOIN pg_class i ON i.oid = x.indexrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 't', 'm')

-- view pg_statio_all_tables
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
    pg_stat_get_blocks_fetched(c.oid) - pg_stat_get_blocks_hit(c.oid) AS heap_blks_read,
    pg_stat_get_blocks_hit(c.oid) AS heap_blks_hit,
    (SELECT sum(pg_stat_get_blocks_fetched(i.indexrelid) - pg_stat_get_blocks_hit(i.indexrelid))::bigint
        FROM pg_index i WHERE i.indrelid = c.oid) AS idx_blks_read,
    (SELECT sum(pg_stat_get_blocks_hit(i.indexrelid))::bigint FROM pg_index i WHERE i.indrelid = c.oid) AS idx_blks_hit,
    pg_stat_get_blocks_fetched(t.oid) - pg_stat_get_blocks_hit(t.oid) AS toast_blks_read,
    pg_stat_get_blocks_hit(t.oid) AS toast_blks_hit,
    (SELECT sum(pg_stat_get_blocks_fetched(i.indexrelid) - pg_stat_get_blocks_hit(i.indexrelid))::bigint
        FROM pg_index i WHERE i.indrelid = t.oid) AS tidx_blks_read,
    (SELECT sum(pg_stat_get_blocks_hit(i.indexrelid))::bigint FROM pg_index i WHERE i.indrelid = t.oid) AS tidx_blks_hit
FROM pg_class c
    LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 't', 'm')

-- view pg_statio_all_indexes
SELECT c.oid AS relid, i.oid AS indexrelid, n.nspname AS schemaname, c.relname, i.relname AS indexrelname,
    pg_stat_get_blocks_fetched(i.oid) - pg_stat_get_blocks_hit(i.oid) AS idx_blks_read,
    pg_stat_get_blocks_hit(i.oid) AS idx_blks_hit
FROM pg_index x
    JOIN pg_class c ON c.oid = x.indrelid
    JOIN pg_class i ON i.oid = x.indexrelid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 't', 'm')

-- view pg_statio_all_sequences
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname,
    pg_stat_get_blocks_fetched(c.oid) - pg_stat_get_blocks_hit(c.oid) AS blks_read,
    pg_stat_get_blocks_hit(c.oid) AS blks_hit
FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S'

-- view pg_stat_user_functions
SELECT p.oid AS funcid, n.nspname AS schemaname, p.proname AS funcname, pg_stat_get_function_calls(p.oid) AS calls,
    pg_stat_get_function_total_time(p.oid) AS total_time, pg_stat_get_function_self_time(p.oid) AS self_time
FROM pg_proc p LEFT JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prolang <> 12 AND pg_stat_get_function_calls(p.oid) IS NOT NULL

-- view pg_stat_xact_user_functions
SELECT p.oid AS funcid, n.nspname AS schemaname, p.proname AS funcname, pg_stat_get_xact_function_calls(p.oid) AS calls,
    pg_stat_get_xact_function_total_time(p.oid) AS total_time, pg_stat_get_xact_function_self_time(p.oid) AS self_time
FROM pg_proc p LEFT JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prolang <> 12 AND pg_stat_get_xact_function_calls(p.oid) IS NOT NULL

-- view pg_stat_database
SELECT d.datid, d.datname,
    CASE WHEN d.datid = 0 THEN 0 ELSE pg_stat_get_db_numbackends(d.datid) END AS numbackends,
    pg_stat_get_db_xact_commit(d.datid) AS xact_commit, pg_stat_get_db_xact_rollback(d.datid) AS xact_rollback,
    pg_stat_get_db_blocks_fetched(d.datid) - pg_stat_get_db_blocks_hit(d.datid) AS blks_read,
    pg_stat_get_db_blocks_hit(d.datid) AS blks_hit, pg_stat_get_db_tuples_returned(d.datid) AS tup_returned,
    pg_stat_get_db_tuples_fetched(d.datid) AS tup_fetched, pg_stat_get_db_tuples_inserted(d.datid) AS tup_inserted,
    pg_stat_get_db_tuples_updated(d.datid) AS tup_updated, pg_stat_get_db_tuples_deleted(d.datid) AS tup_deleted,
    pg_stat_get_db_conflict_all(d.datid) AS conflicts, pg_stat_get_db_temp_files(d.datid) AS temp_files,
    pg_stat_get_db_temp_bytes(d.datid) AS temp_bytes, pg_stat_get_db_deadlocks(d.datid) AS deadlocks,
    pg_stat_get_db_checksum_failures(d.datid) AS checksum_failures,
    pg_stat_get_db_checksum_last_failure(d.datid) AS checksum_last_failure,
    pg_stat_get_db_blk_read_time(d.datid) AS blk_read_time, pg_stat_get_db_blk_write_time(d.datid) AS blk_write_time,
    pg_stat_get_db_session_time(d.datid) AS session_time, pg_stat_get_db_active_time(d.datid) AS active_time,
    pg_stat_get_db_idle_in_transaction_time(d.datid) AS idle_in_transaction_time,
    pg_stat_get_db_sessions(d.datid) AS sessions, pg_stat_get_db_sessions_abandoned(d.datid) AS sessions_abandoned,
    pg_stat_get_db_sessions_fatal(d.datid) AS sessions_fatal, pg_stat_get_db_sessions_killed(d.datid) AS sessions_killed,
    pg_stat_get_db_parallel_workers_to_launch(d.datid) AS parallel_workers_to_launch,
    pg_stat_get_db_parallel_workers_launched(d.datid) AS parallel_workers_launched,
    pg_stat_get_db_stat_reset_time(d.datid) AS stats_reset
FROM (SELECT 0::oid AS datid, NULL::name AS datname UNION ALL SELECT oid, datname FROM pg_database) d

-- view pg_stat_database_conflicts
SELECT d.oid AS datid, d.datname, pg_stat_get_db_conflict_tablespace(d.oid) AS confl_tablespace,
    pg_stat_get_db_conflict_lock(d.oid) AS confl_lock, pg_stat_get_db_conflict_snapshot(d.oid) AS confl_snapshot,
    pg_stat_get_db_conflict_bufferpin(d.oid) AS confl_bufferpin,
    pg_stat_get_db_conflict_startup_deadlock(d.oid) AS confl_deadlock,
    pg_stat_get_db_conflict_logicalslot(d.oid) AS confl_active_logicalslot
FROM pg_database d

-- view pg_stat_bgwriter
SELECT pg_stat_get_bgwriter_buf_written_clean() AS buffers_clean,
    pg_stat_get_bgwriter_maxwritten_clean() AS maxwritten_clean, pg_stat_get_buf_alloc() AS buffers_alloc,
    pg_stat_get_bgwriter_stat_reset_time() AS stats_reset

-- view pg_stat_checkpointer
SELECT pg_stat_get_checkpointer_num_timed() AS num_timed, pg_stat_get_checkpointer_num_requested() AS num_requested,
    pg_stat_get_checkpointer_num_performed() AS num_done,
    pg_stat_get_checkpointer_restartpoints_timed() AS restartpoints_timed,
    pg_stat_get_checkpointer_restartpoints_requested() AS restartpoints_req,
    pg_stat_get_checkpointer_restartpoints_performed() AS restartpoints_done,
    pg_stat_get_checkpointer_write_time() AS write_time, pg_stat_get_checkpointer_sync_time() AS sync_time,
    pg_stat_get_checkpointer_buffers_written() AS buffers_written,
    pg_stat_get_checkpointer_slru_written() AS slru_written,
    pg_stat_get_checkpointer_stat_reset_time() AS stats_reset

-- view pg_stat_progress_analyze
SELECT p.pid, p.datid, d.datname, p.relid,
    CASE p.param1 WHEN 0 THEN 'initializing' WHEN 1 THEN 'acquiring sample rows' WHEN 2 THEN 'acquiring inherited sample rows'
        WHEN 3 THEN 'computing statistics' WHEN 4 THEN 'computing extended statistics' WHEN 5 THEN 'finalizing analyze' END AS phase,
    p.param2 AS sample_blks_total, p.param3 AS sample_blks_scanned, p.param4 AS ext_stats_total, p.param5 AS ext_stats_computed,
    p.param6 AS child_tables_total, p.param7 AS child_tables_done, p.param8::oid AS current_child_table_relid,
    p.param9::double precision / 1000000 AS delay_time
FROM pg_stat_get_progress_info('ANALYZE') p LEFT JOIN pg_database d ON d.oid = p.datid

-- view pg_stat_progress_vacuum
SELECT p.pid, p.datid, d.datname, p.relid,
    CASE p.param1 WHEN 0 THEN 'initializing' WHEN 1 THEN 'scanning heap' WHEN 2 THEN 'vacuuming indexes' WHEN 3 THEN 'vacuuming heap'
        WHEN 4 THEN 'cleaning up indexes' WHEN 5 THEN 'truncating heap' WHEN 6 THEN 'performing final cleanup' END AS phase,
    p.param2 AS heap_blks_total, p.param3 AS heap_blks_scanned, p.param4 AS heap_blks_vacuumed, p.param5 AS index_vacuum_count,
    p.param6 AS max_dead_tuple_bytes, p.param7 AS dead_tuple_bytes, p.param8 AS num_dead_item_ids, p.param9 AS indexes_total,
    p.param10 AS indexes_processed, p.param11::double precision / 1000000 AS delay_time
FROM pg_stat_get_progress_info('VACUUM') p LEFT JOIN pg_database d ON d.oid = p.datid

-- view pg_stat_progress_create_index
SELECT p.pid, p.datid, d.datname, p.relid, p.param7::oid AS index_relid,
    CASE p.param1 WHEN 1 THEN 'CREATE INDEX' WHEN 2 THEN 'CREATE INDEX CONCURRENTLY' WHEN 3 THEN 'REINDEX'
        WHEN 4 THEN 'REINDEX CONCURRENTLY' END AS command,
    CASE p.param10 WHEN 0 THEN 'initializing'
        WHEN 2 THEN 'building index' || coalesce(': ' || pg_indexam_progress_phasename(p.param9::oid, p.param11), '') END AS phase,
    p.param4 AS lockers_total, p.param5 AS lockers_done, p.param6 AS current_locker_pid, p.param16 AS blocks_total,
    p.param17 AS blocks_done, p.param12 AS tuples_total, p.param13 AS tuples_done, p.param14 AS partitions_total,
    p.param15 AS partitions_done
FROM pg_stat_get_progress_info('CREATE INDEX') p LEFT JOIN pg_database d ON d.oid = p.datid

-- view pg_stat_progress_copy
SELECT p.pid, p.datid, d.datname, p.relid,
    CASE p.param5 WHEN 1 THEN 'COPY FROM' WHEN 2 THEN 'COPY TO' END AS command,
    CASE p.param6 WHEN 1 THEN 'FILE' WHEN 2 THEN 'PROGRAM' WHEN 3 THEN 'PIPE' WHEN 4 THEN 'CALLBACK' END AS type,
    p.param1 AS bytes_processed, p.param2 AS bytes_total, p.param3 AS tuples_processed, p.param4 AS tuples_excluded,
    p.param7 AS tuples_skipped
FROM pg_stat_get_progress_info('COPY') p LEFT JOIN pg_database d ON d.oid = p.datid

-- view pg_stats
SELECT n.nspname AS schemaname, c.relname AS tablename, a.attname, s.stainherit AS inherited, s.stanullfrac AS null_frac,
    s.stawidth AS avg_width, s.stadistinct AS n_distinct,
    CASE WHEN s.stakind1 = 1 THEN s.stavalues1 WHEN s.stakind2 = 1 THEN s.stavalues2
        WHEN s.stakind3 = 1 THEN s.stavalues3 WHEN s.stakind4 = 1 THEN s.stavalues4
        WHEN s.stakind5 = 1 THEN s.stavalues5 END AS most_common_vals,
    CASE WHEN s.stakind1 = 1 THEN s.stanumbers1 WHEN s.stakind2 = 1 THEN s.stanumbers2
        WHEN s.stakind3 = 1 THEN s.stanumbers3 WHEN s.stakind4 = 1 THEN s.stanumbers4
        WHEN s.stakind5 = 1 THEN s.stanumbers5 END AS most_common_freqs,
    CASE WHEN s.stakind1 = 2 THEN s.stavalues1 WHEN s.stakind2 = 2 THEN s.stavalues2
        WHEN s.stakind3 = 2 THEN s.stavalues3 WHEN s.stakind4 = 2 THEN s.stavalues4
        WHEN s.stakind5 = 2 THEN s.stavalues5 END AS histogram_bounds,
    CASE WHEN s.stakind1 = 3 THEN s.stanumbers1[1] WHEN s.stakind2 = 3 THEN s.stanumbers2[1]
        WHEN s.stakind3 = 3 THEN s.stanumbers3[1] WHEN s.stakind4 = 3 THEN s.stanumbers4[1]
        WHEN s.stakind5 = 3 THEN s.stanumbers5[1] END AS correlation,
    CASE WHEN s.stakind1 = 4 THEN s.stavalues1 WHEN s.stakind2 = 4 THEN s.stavalues2
        WHEN s.stakind3 = 4 THEN s.stavalues3 WHEN s.stakind4 = 4 THEN s.stavalues4
        WHEN s.stakind5 = 4 THEN s.stavalues5 END AS most_common_elems,
    CASE WHEN s.stakind1 = 4 THEN s.stanumbers1 WHEN s.stakind2 = 4 THEN s.stanumbers2
        WHEN s.stakind3 = 4 THEN s.stanumbers3 WHEN s.stakind4 = 4 THEN s.stanumbers4
        WHEN s.stakind5 = 4 THEN s.stanumbers5 END AS most_common_elem_freqs,
    CASE WHEN s.stakind1 = 5 THEN s.stanumbers1 WHEN s.stakind2 = 5 THEN s.stanumbers2
        WHEN s.stakind3 = 5 THEN s.stanumbers3 WHEN s.stakind4 = 5 THEN s.stanumbers4
        WHEN s.stakind5 = 5 THEN s.stanumbers5 END AS elem_count_histogram,
    CASE WHEN s.stakind1 = 6 THEN s.stavalues1 WHEN s.stakind2 = 6 THEN s.stavalues2
        WHEN s.stakind3 = 6 THEN s.stavalues3 WHEN s.stakind4 = 6 THEN s.stavalues4
        WHEN s.stakind5 = 6 THEN s.stavalues5 END AS range_length_histogram,
    CASE WHEN s.stakind1 = 6 THEN s.stanumbers1[1] WHEN s.stakind2 = 6 THEN s.stanumbers2[1]
        WHEN s.stakind3 = 6 THEN s.stanumbers3[1] WHEN s.stakind4 = 6 THEN s.stanumbers4[1]
        WHEN s.stakind5 = 6 THEN s.stanumbers5[1] END AS range_empty_frac,
    CASE WHEN s.stakind1 = 7 THEN s.stavalues1 WHEN s.stakind2 = 7 THEN s.stavalues2
        WHEN s.stakind3 = 7 THEN s.stavalues3 WHEN s.stakind4 = 7 THEN s.stavalues4
        WHEN s.stakind5 = 7 THEN s.stavalues5 END AS range_bounds_histogram
FROM pg_statistic s
    JOIN pg_class c ON c.oid = s.starelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = s.staattnum
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT a.attisdropped AND has_column_privilege(c.oid, a.attnum, 'select')
    AND (NOT c.relrowsecurity OR NOT row_security_active(c.oid))

-- view pg_stats_ext
SELECT n.nspname AS schemaname, c.relname AS tablename, xn.nspname AS statistics_schemaname, x.stxname AS statistics_name,
    pg_get_userbyid(x.stxowner) AS statistics_owner,
    (SELECT array_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = x.stxrelid AND a.attnum = ANY (x.stxkeys)) AS attnames,
    pg_get_statisticsobjdef_expressions(x.oid) AS exprs, x.stxkind AS kinds, d.stxdinherit AS inherited,
    d.stxdndistinct AS n_distinct, d.stxddependencies AS dependencies, m.most_common_vals, m.most_common_val_nulls,
    m.most_common_freqs, m.most_common_base_freqs
FROM pg_statistic_ext x
    JOIN pg_class c ON c.oid = x.stxrelid
    JOIN pg_statistic_ext_data d ON d.stxoid = x.oid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_namespace xn ON xn.oid = x.stxnamespace
    LEFT JOIN LATERAL (SELECT array_agg(i.values) AS most_common_vals, array_agg(i.nulls) AS most_common_val_nulls,
            array_agg(i.frequency) AS most_common_freqs, array_agg(i.base_frequency) AS most_common_base_freqs
        FROM pg_mcv_list_items(d.stxdmcv) i) m ON d.stxdmcv IS NOT NULL
WHERE pg_has_role(c.relowner, 'USAGE') AND (NOT c.relrowsecurity OR NOT row_security_active(c.oid))

-- view pg_stats_ext_exprs
SELECT n.nspname AS schemaname, c.relname AS tablename, xn.nspname AS statistics_schemaname, x.stxname AS statistics_name,
    pg_get_userbyid(x.stxowner) AS statistics_owner, e.expr, d.stxdinherit AS inherited, s.stanullfrac AS null_frac,
    s.stawidth AS avg_width, s.stadistinct AS n_distinct, s.stavalues1 AS most_common_vals,
    s.stanumbers1 AS most_common_freqs, s.stavalues2 AS histogram_bounds, s.stanumbers3[1] AS correlation,
    s.stavalues4 AS most_common_elems, s.stanumbers4 AS most_common_elem_freqs, s.stanumbers5 AS elem_count_histogram
FROM pg_statistic_ext x
    JOIN pg_class c ON c.oid = x.stxrelid
    LEFT JOIN pg_statistic_ext_data d ON d.stxoid = x.oid
    LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_namespace xn ON xn.oid = x.stxnamespace
    JOIN LATERAL unnest(pg_get_statisticsobjdef_expressions(x.oid)) e(expr) ON true
    -- Statistics of single expressions are not collected.
    LEFT JOIN pg_statistic s ON false
WHERE pg_has_role(c.relowner, 'USAGE') AND (NOT c.relrowsecurity OR NOT row_security_active(c.oid))
