//! auto_explain: what is logged, and of which statements.

use super::tests::Harness;

/// A session that logs every plan to its client.
fn harness() -> Harness {
    let mut h = Harness::new();
    h.query("create table t (a int, b text)");
    h.query("insert into t select g, 'x' from generate_series(1, 5) g");
    h.query("set client_min_messages = log");
    h.query("set auto_explain.log_analyze = on");
    h.query("set auto_explain.log_timing = off");
    h.query("set auto_explain.log_min_duration = 0");
    h
}

/// The plans of a statement without its duration and costs, one after the other.
fn logged(h: &mut Harness, statement: &str) -> String {
    let plans = h.notices(statement).into_iter().filter_map(|notice| {
        let (duration, plan) = notice.split_once(" ms  plan:\n")?;
        duration.strip_prefix("duration: ")?.parse::<f64>().ok()?;
        let lines = plan.lines().map(|line| match (line.split_once("  (cost="), line.split_once(" width=")) {
            (Some((title, _)), Some((_, rest))) => format!("{title}{}", rest.split_once(')').map_or("", |(_, actual)| actual)),
            _ => line.to_owned(),
        });
        Some(lines.collect::<Vec<_>>().join("\n"))
    });
    plans.collect::<Vec<_>>().join("\n--\n")
}

#[test]
fn plans_are_logged_as_postgresql_does() {
    let mut h = harness();
    let plan = "Query Text: select count(*) from t where a > 3\nAggregate (actual rows=1.00 loops=1)\n  ->  Seq Scan on t (actual rows=2.00 loops=1)\n        Filter: (a > 3)\n        Rows Removed by Filter: 3";
    assert_eq!(logged(&mut h, "select count(*) from t where a > 3"), plan);
    let insert = "Query Text: insert into t values (6, 'y')\nInsert on t (actual rows=0.00 loops=1)\n  WAL: records=1 bytes=NN\n  ->  Result (actual rows=1.00 loops=1)";
    h.query("set auto_explain.log_wal = on");
    let shown = logged(&mut h, "insert into t values (6, 'y')");
    let bytes = shown.split_once("bytes=").and_then(|(_, rest)| rest.lines().next()).unwrap_or_default();
    assert!(bytes.parse::<u64>().is_ok_and(|bytes| bytes > 40), "{shown}");
    assert_eq!(shown, insert.replace("NN", bytes));
    h.query("set auto_explain.log_analyze = off");
    h.query("prepare p(int, text) as select b from t where a = $1 and b < $2");
    h.query("set auto_explain.log_parameter_max_length = 3");
    let prepared = "Query Text: prepare p(int, text) as select b from t where a = $1 and b < $2\nQuery Parameters: $1 = '1', $2 = 'lon...'\nSeq Scan on t\n  Filter: ((a = $1) AND (b < $2))";
    assert_eq!(logged(&mut h, "execute p(1, 'long')"), prepared);
    h.query("set auto_explain.log_format = json");
    let json = logged(&mut h, "select 1");
    assert!(
        json.starts_with("{\n  \"Query Text\": \"select 1\",\n  \"Plan\": {\n    \"Node Type\": \"Result\"")
            && json.ends_with("\n  }\n}"),
        "{json}"
    );
}

#[test]
fn statements_within_are_logged_where_they_are_wanted() {
    let mut h = harness();
    h.query(
        "create function f(i int) returns bigint language plpgsql as
           $$ begin perform 1 from t where a = i; return (select count(*) from t where a < i); end $$",
    );
    assert_eq!(logged(&mut h, "select f(3)").matches("Query Text").count(), 1);
    h.query("set auto_explain.log_nested_statements = on");
    let all = logged(&mut h, "select f(3)");
    let texts: Vec<&str> = all.lines().filter_map(|line| line.strip_prefix("Query Text: ")).collect();
    assert_eq!(texts, ["SELECT 1 from t where a = i", "(select count(*) from t where a < i)", "select f(3)"], "{all}");
    // EXPLAIN alone shows a plan that took no time.
    let shown = logged(&mut h, "explain select a from t where a = 3");
    assert_eq!(shown, "Query Text: explain select a from t where a = 3\nSeq Scan on t\n  Filter: (a = 3)");
    h.query("set auto_explain.log_min_duration = 1");
    assert_eq!(logged(&mut h, "explain select a from t where a = 3"), "");
    h.query("set auto_explain.log_min_duration = 0");
    // DO is no query: its statements are not within one.
    h.query("set auto_explain.log_nested_statements = off");
    let measured = logged(&mut h, "explain analyze select f(3)");
    assert_eq!(measured.lines().next(), Some("Query Text: explain analyze select f(3)"));
    assert_eq!(measured.matches("Query Text").count(), 1, "{measured}");
    assert_eq!(logged(&mut h, "do $$ begin perform a from t; end $$").matches("Query Text").count(), 1);
}

#[test]
fn neither_fast_nor_failed_statements_are_logged_nor_those_outside_of_the_sample() {
    let mut h = harness();
    assert_eq!(logged(&mut h, "select 1 / (a - 3) from t"), "");
    h.query("set auto_explain.log_min_duration = '1h'");
    assert_eq!(logged(&mut h, "select a from t"), "");
    h.query("set auto_explain.log_min_duration = 0");
    h.query("set auto_explain.sample_rate = 0");
    assert_eq!(logged(&mut h, "select a from t"), "");
    h.query("set auto_explain.sample_rate = 1");
    h.query("begin");
    h.query("declare c cursor for select a from t");
    h.query("fetch 2 from c");
    assert!(logged(&mut h, "close c").contains("Seq Scan on t (actual rows=2.00 loops=1)"));
}

#[test]
fn the_module_is_built_in() {
    let mut h = Harness::new();
    assert_eq!(h.query("load 'auto_explain'"), "C:LOAD Z:I");
    assert_eq!(h.query("load '$libdir/auto_explain'"), "C:LOAD Z:I");
    assert_eq!(h.query("load 'nothing'"), "E0A000 Z:I");
    assert_eq!(h.query("set session_preload_libraries = 'auto_explain'"), "C:SET Z:I");
    assert_eq!(h.query("set session_preload_libraries = 'auto_explain, other'"), "E0A000 Z:I");
    assert_eq!(h.query("set local_preload_libraries = '$libdir/auto_explain.so, pg_stat_statements'"), "C:SET Z:I");
    assert_eq!(h.query("set auto_explain.log_min_durations = 1"), "E42602 Z:I");
    assert_eq!(h.query("select set_config('AUTO_EXPLAIN.other', '1', false)"), "T E42602 Z:I");
    assert_eq!(h.query("alter database postgres set plpgsql.other = 1"), "E42602 Z:I");
    assert_eq!(h.query("set auto_explains.other = 1"), "C:SET Z:I");
    assert_eq!(h.query("set auto_explain.log_triggers = on"), "E0A000 Z:I");
}
