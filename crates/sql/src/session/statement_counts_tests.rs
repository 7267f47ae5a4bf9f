//! Statement statistics of whole sessions.

use super::tests::Harness;

/// Calls, rows and text of statements that mention `t`.
const SHOWN: &str = "select calls || ' ' || rows || ' ' || query from pg_stat_statements where query ~ '\\mt\\M' and query !~ 'create' \
    order by query collate \"C\"";

fn shown(h: &mut Harness) -> Vec<String> {
    let answer = h.query(SHOWN);
    let rows = answer.strip_prefix("T ").and_then(|rest| rest.split_once(" C:SELECT")).map_or("", |(rows, _)| rows);
    rows.split("D:").map(|row| row.trim().to_owned()).filter(|row| !row.is_empty()).collect()
}

fn harness() -> Harness {
    let mut h = Harness::new();
    h.query("create extension pg_stat_statements");
    h.query("create table t (a int, b text)");
    h
}

#[test]
fn constants_do_not_tell_statements_apart() {
    let mut h = harness();
    for statement in [
        "insert into t values (1, 'x')",
        "insert into t values (2, 'it''s')",
        "select a from t where a = -1",
        "select a from t where a = -  7",
        "select a from t where a in (1, 2)",
        "select a from t where a in (1, 2, 3, 4)",
        "select a from t where b = 'x' and a > 1.5",
        "select a from t where b = E'\\x41' and a > 2.5",
        "update t set b = null where a = 1",
        "update t set b = null where a = 2",
    ] {
        h.query(statement);
    }
    let expected = [
        "2 2 insert into t values ($1, $2)",
        "2 0 select a from t where a = $1",
        "2 4 select a from t where a in ($1 /*, ... */)",
        "2 0 select a from t where b = $1 and a > $2",
        "2 2 update t set b = $1 where a = $2",
    ];
    assert_eq!(shown(&mut h), expected);
}

#[test]
fn statement_counts_follow_the_settings() {
    let mut h = harness();
    h.query("set pg_stat_statements.track_utility = off");
    h.query("lock table t");
    h.query("set pg_stat_statements.track = none");
    h.query("select from t");
    h.query("set compute_query_id = off");
    h.query("reset pg_stat_statements.track");
    h.query("select a from t");
    h.query("reset compute_query_id");
    h.query("select b from t");
    h.query("select nothing from t");
    assert_eq!(shown(&mut h), ["1 0 select b from t"], "a statement that fails is not counted");
    assert_eq!(h.query("set pg_stat_statements.track = 'all'"), "E0A000 Z:I");
}

#[test]
fn identifiers_are_shown_where_they_are_asked_for() {
    let mut h = Harness::new();
    h.query("create table t (a int)");
    let explained = |h: &mut Harness| h.query("explain (verbose, costs off) select from t").contains("Query Identifier");
    assert!(!explained(&mut h), "nothing asks for them");
    h.query("set compute_query_id = on");
    assert!(explained(&mut h));
    h.query("set compute_query_id = regress");
    assert!(!explained(&mut h));
    h.query("reset compute_query_id");
    h.query("create extension pg_stat_statements");
    assert!(explained(&mut h));
}

#[test]
fn the_extension_goes_as_it_came() {
    let mut h = harness();
    h.query("create schema apart");
    h.query("alter extension pg_stat_statements set schema apart");
    assert_eq!(h.query("select count(*) > 0 from apart.pg_stat_statements"), "T D:t C:SELECT 1 Z:I");
    assert_eq!(h.query("drop view apart.pg_stat_statements"), "E2BP01 Z:I");
    assert_eq!(h.query("drop extension pg_stat_statements"), "C:DROP EXTENSION Z:I");
    assert_eq!(h.query("select count(*) from pg_class where relname like 'pg_stat_statements%'"), "T D:0 C:SELECT 1 Z:I");
}

#[test]
fn others_see_neither_texts_nor_may_they_reset() {
    let mut h = harness();
    h.query("create role reader");
    h.query("select from t");
    h.query("set role reader");
    let others = "select count(*) > 0 from pg_stat_statements where query = '<insufficient privilege>' and queryid is null";
    assert_eq!(h.query(others), "T D:t C:SELECT 1 Z:I");
    assert_eq!(h.query("select pg_stat_statements_reset()"), "E42501 Z:I");
}
