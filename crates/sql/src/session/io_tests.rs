//! Blocks, temporary files and the log: what EXPLAIN and the views of statistics tell of them.

use super::tests::Harness;

/// A table whose rows and entries are in segments.
fn harness() -> Harness {
    let mut h = Harness::new();
    h.query("create extension pg_stat_statements");
    h.query("create table t (a int primary key, b text)");
    h.query("insert into t select g, md5(g::text) from generate_series(1, 30000) g");
    h.query("checkpoint");
    h
}

const PLAIN: &str = "costs off, timing off, summary off";

/// The number behind a word in the line of BUFFERS or WAL; 0: it is not there.
fn figure(plan: &str, word: &str) -> u64 {
    let at = plan.split_whitespace().find_map(|part| part.trim_end_matches(',').strip_prefix(word)?.strip_prefix('='));
    at.map_or(0, |number| number.parse().expect("a number"))
}

#[test]
fn explain_tells_blocks_and_the_log() {
    let mut h = harness();
    let scan = format!("explain (analyze, {PLAIN}) select count(b) from t");
    let first = h.lines(&scan);
    assert!(figure(&first, "read") > 10 && figure(&first, "hit") == 0, "{first}");
    // The aggregate has the blocks of the scan below.
    let lines: Vec<&str> = first.lines().filter(|line| line.contains("Buffers: shared")).map(str::trim).collect();
    assert!(lines.len() == 2 && lines[0] == lines[1], "{first}");
    let second = h.lines(&scan);
    assert_eq!(figure(&second, "hit"), figure(&first, "read"), "{second}");
    let point = h.lines(&format!("explain (analyze, {PLAIN}) select b from t where a = 77"));
    assert!((2..10).contains(&(figure(&point, "hit") + figure(&point, "read"))), "{point}");
    assert!(!h.lines(&format!("explain (analyze, buffers off, {PLAIN}) select b from t where a = 77")).contains("Buffers"));
    let document = h.lines("explain (analyze, wal, memory, timing off, format json) select b from t where a = 77");
    for key in
        ["\"Shared Hit Blocks\": ", "\"Temp Written Blocks\": 0", "\"WAL Bytes\": 0", "\"Planning\": {", "\"Memory Used\": "]
    {
        assert!(document.contains(key), "{document}");
    }
    assert!(!document.contains("I/O Read Time"), "{document}");
    h.query("set track_io_timing = on");
    assert!(h.lines("explain (analyze, format json) select 1").contains("\"Temp I/O Write Time\": 0.000"));
    // The bytes are those that the commit writes.
    let before = h.lines("select wal_bytes from pg_stat_wal").parse::<u64>().expect("a number");
    let insert = h.lines(&format!("explain (analyze, wal, {PLAIN}) insert into t select g, 'x' from generate_series(-50, -1) g"));
    let after = h.lines("select wal_bytes from pg_stat_wal").parse::<u64>().expect("a number");
    assert_eq!((figure(&insert, "records"), figure(&insert, "bytes")), (1, after - before), "{insert}");
    assert!(!h.lines(&format!("explain (analyze, wal, {PLAIN}) select 1")).contains("WAL"));
}

#[test]
fn explain_tells_rows_that_were_left_out_and_searches_of_indexes() {
    let mut h = harness();
    let explain = |h: &mut Harness, query: &str| h.lines(&format!("explain (analyze, buffers off, {PLAIN}) {query}"));
    let point = explain(&mut h, "select b from t where a = 77");
    assert!(point.contains("Index Searches: 1") && !point.contains("Removed"), "{point}");
    let some = explain(&mut h, "select b from t where a in (1, 900, 20000) and b <> md5('900')");
    assert!(some.contains("Index Searches: 3") && some.contains("Rows Removed by Filter: 1"), "{some}");
    let others = h.lines("select count(*) from t where b not like '%7_'");
    let scan = explain(&mut h, "select a from t where b like '%7_'");
    assert!(scan.contains(&format!("Rows Removed by Filter: {others}")), "{scan}");
    let pairs = explain(&mut h, "select x from (values (1), (2)) v(x) join generate_series(1, 10) g on g > x");
    assert!(pairs.contains("Rows Removed by Join Filter: 3"), "{pairs}");
    let groups = explain(&mut h, "select a / 10 from t group by 1 having count(*) < 10");
    assert!(groups.contains("Rows Removed by Filter: 2999"), "{groups}");
    let document = h.lines("explain (analyze, format json) select b from t where a = 77 and b <> ''");
    assert!(document.contains("\"Index Searches\": 1") && document.contains("\"Rows Removed by Filter\": 0"), "{document}");
}

#[test]
fn explain_shows_settings_that_are_not_the_defaults() {
    let mut h = Harness::new();
    h.query("set enable_seqscan = off");
    h.query("set work_mem = '7MB'");
    let shown = h.lines("explain (costs off, settings) select 1");
    assert!(
        shown.contains("Settings: ") && shown.contains("enable_seqscan = 'off'") && shown.contains("work_mem = '7MB'"),
        "{shown}"
    );
}

#[test]
fn views_of_statistics_tell_blocks_and_the_log() {
    let mut h = harness();
    h.register();
    h.query("select count(b) from t");
    h.query("select b from t where a = 77");
    h.query("select b from t where a = 77");
    let is_true = |h: &mut Harness, query: &str| assert_eq!(h.lines(query), "t", "{query}");
    is_true(
        &mut h,
        "select heap_blks_read > 10 and heap_blks_hit > 0 and idx_blks_read > 0 and idx_blks_hit > 0 and toast_blks_read = 0
           from pg_statio_user_tables where relname = 't'",
    );
    is_true(&mut h, "select idx_blks_read > 0 and idx_blks_hit > 0 from pg_statio_user_indexes where relname = 't'");
    is_true(&mut h, "select blks_read > 10 and blks_hit > 0 from pg_stat_database where datname = 'postgres'");
    is_true(
        &mut h,
        "select reads > 10 and read_bytes > 100000 and hits > 0 and writes > 10
           from pg_stat_io where backend_type = 'client backend' and object = 'relation' and context = 'normal'",
    );
    is_true(
        &mut h,
        "select count(*) = 79 and sum(reads) filter (where context <> 'normal' or object = 'temp relation') = 0
           from pg_stat_io where backend_type <> 'merger'",
    );
    is_true(
        &mut h,
        "select count(*) = 6 and max(reads) > 10 and max(hits) = sum(hits) from pg_stat_get_backend_io(pg_backend_pid())",
    );
    is_true(
        &mut h,
        "select shared_blks_read > 10 and shared_blks_written = 0 and wal_records = 0
           from pg_stat_statements where query ~ '^select count.b'",
    );
    is_true(&mut h, "select shared_blks_hit > 0 and calls = 2 from pg_stat_statements where query ~ '^select b from'");
    // Changes are those of the statement whose transaction commits on its own.
    h.query("insert into t values (-1, 'x')");
    h.query("begin");
    h.query("insert into t values (-2, 'x')");
    h.query("commit");
    is_true(
        &mut h,
        "select calls = 2 and wal_records = 1 and wal_bytes between 50 and 200 from pg_stat_statements where query ~ '^insert into t values'",
    );
    is_true(&mut h, "select wal_records = 1 from pg_stat_statements where query = 'commit'");
    h.query("select pg_stat_reset_shared('io'), pg_stat_reset()");
    is_true(
        &mut h,
        "select sum(reads) = 0 and sum(hits) = 0 and sum(writes) = 0 from pg_stat_io
           where object = 'relation' and backend_type = 'client backend'",
    );
    is_true(&mut h, "select heap_blks_read = 0 and idx_blks_hit = 0 from pg_statio_user_tables where relname = 't'");
    is_true(&mut h, "select blks_read = 0 and blks_hit = 0 from pg_stat_database where datname = 'postgres'");
}

#[test]
fn temporary_files_are_counted_in_blocks() {
    let mut h = harness();
    h.query("set work_mem = '64kB'");
    let sort = h.lines(&format!("explain (analyze, {PLAIN}) select b from t order by b offset 29999"));
    let line = sort.lines().find(|line| line.contains("temp ")).unwrap_or_default();
    let temporary = line.split_once("temp ").map_or("", |(_, temporary)| temporary);
    assert!(figure(temporary, "read") > 50 && figure(temporary, "written") > 50, "{sort}");
}

#[test]
fn background_work_is_shown_as_processes() {
    let mut h = harness();
    let types = "select string_agg(backend_type, ',' order by backend_type) from pg_stat_activity where datname is null";
    assert_eq!(h.lines(types), "", "steps that sessions run have no threads");
    h.engine().start_background();
    assert_eq!(h.lines(types), "checkpointer,log file preparer,merger,walwriter");
    let same = "select bool_and(pg_stat_get_backend_pid(i) = i and pg_stat_get_backend_start(i) is not null)
        from pg_stat_get_backend_idset() i where i in (select pid from pg_stat_activity where datname is null)";
    assert_eq!(h.lines(same), "t");
    let events = "select bool_and(coalesce(wait_event like '%Main', true)) from pg_stat_activity where datname is null";
    assert_eq!(h.lines(events), "t");
    let answer =
        h.query("select pg_terminate_backend(pid) or pg_cancel_backend(pid) from pg_stat_activity where backend_type = 'merger'");
    assert_eq!(answer, "T N01000 N01000 D:f C:SELECT 1 Z:I");
    let known = "select count(*) from pg_stat_activity where wait_event is not null and wait_event not in (select name from pg_wait_events)";
    assert_eq!(h.lines(known), "0");
}
