-- The views of what has been counted; counters that differ between the servers are only compared with 0.
create table st (a int primary key, b text);
create table sp (a int) partition by range (a);
create table sp1 partition of sp for values from (0) to (100);
insert into st select i, 'x' from generate_series(1, 50) i;
update st set b = 'y' where a <= 10;
delete from st where a > 40;
insert into sp select i from generate_series(1, 7) i;
begin; insert into st values (100, 'z'); rollback;
select pg_stat_force_next_flush();
select relname, n_tup_ins, n_tup_upd, n_tup_del, n_live_tup from pg_stat_user_tables where relname in ('st', 'sp', 'sp1') order by 1;
select relname, heap_blks_read >= 0, idx_blks_hit >= 0, toast_blks_read >= 0 from pg_statio_user_tables where relname in ('st', 'sp', 'sp1') order by 1;
select relname, indexrelname, idx_scan >= 0 from pg_stat_user_indexes where relname = 'st';
select relname, indexrelname, idx_blks_hit >= 0 from pg_statio_user_indexes where relname = 'st';
select count(*) > 60 from pg_stat_sys_tables;
select count(*) > 100 from pg_stat_all_indexes;
select xact_commit > 0, xact_rollback > 0, numbackends > 0, tup_inserted > 0, conflicts, checksum_last_failure from pg_stat_database where datname = current_database();
select datid, datname, numbackends from pg_stat_database where datid = 0;
select * from pg_stat_user_functions;
select * from pg_stat_xact_user_functions;
select buffers_clean >= 0, stats_reset is not null from pg_stat_bgwriter;
select archived_count, last_archived_wal, stats_reset is not null from pg_stat_archiver;
select * from pg_stat_get_replication_slot('none');
select count(*) from pg_stat_progress_vacuum;
select count(*) from pg_stat_progress_copy;
select count(*) from pg_stat_progress_analyze;
select n, pg_indexam_progress_phasename(403, n) from generate_series(0, 6) n;
-- an index that is built is seen, by a function in it too
create table progress_table (a int);
insert into progress_table values (1);
create function progress_seen(a int) returns int language plpgsql immutable as $$
declare r record;
begin
    for r in select c.relname t, p.command, p.phase from pg_stat_progress_create_index p join pg_class c on c.oid = p.relid where pid = pg_backend_pid() loop
        raise notice '% of %: %', r.command, r.t, r.phase;
    end loop;
    return a;
end $$;
create index on progress_table (progress_seen(a));
select count(*) from pg_stat_progress_create_index;
drop table progress_table;
drop function progress_seen;
select pg_stat_get_numscans(0), pg_stat_get_live_tuples(0), pg_stat_get_db_xact_commit(12345), pg_stat_get_db_session_time(12345);
select n_tup_ins from pg_stat_xact_user_tables where relname = 'st';
create sequence ss;
select relname, blks_read >= 0 from pg_statio_user_sequences where relname = 'ss';
select confl_lock from pg_stat_database_conflicts where datname = current_database();
drop table st, sp;
drop sequence ss;

-- When tables were vacuumed and analyzed, and what has changed since.
create table maintained (a int primary key);
insert into maintained select generate_series(1, 10);
select pg_stat_force_next_flush();
select vacuum_count, analyze_count, last_vacuum is null as v, last_analyze is null as a from pg_stat_user_tables where relname = 'maintained';
vacuum maintained;
analyze maintained;
vacuum (analyze) maintained;
select vacuum_count, analyze_count, last_vacuum between now() - interval '1 minute' and now() as v, last_analyze <= now() as a,
    last_autovacuum, n_mod_since_analyze, n_ins_since_vacuum from pg_stat_user_tables where relname = 'maintained';
select pg_stat_reset_single_table_counters('maintained'::regclass);
select vacuum_count, analyze_count, last_vacuum, last_analyze from pg_stat_user_tables where relname = 'maintained';
drop table maintained;
