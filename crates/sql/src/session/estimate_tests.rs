//! What plans expect of rows that no segment has, and what is known of columns, shown and restored.

use super::tests::Harness;

/// The rows that a plan's first node expects.
fn expected(h: &mut Harness, query: &str) -> f64 {
    let plan = h.lines(&format!("explain {query}"));
    let rows = plan.split("rows=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    rows.parse().unwrap_or_else(|_| panic!("no rows in {plan}"))
}

#[track_caller]
fn check(h: &mut Harness, query: &str, actual: f64, factor: f64) {
    let expected = expected(h, query);
    let error = (expected / actual).max(actual / expected);
    assert!(error <= factor, "{query}: {expected} rows expected, {actual} are there");
}

/// 10,000 rows in the row store: statements of fewer rows are no bulk loads.
fn filled() -> Harness {
    let mut h = Harness::new();
    h.query("create table r (id int primary key, few int, city int, zip int, name text, ordered date, gone int)");
    for from in [0, 5000] {
        h.query(&format!(
            "insert into r select i, i * 7919 % 10, z / 10, z, 'name ' || z, date '2020-01-01' + i / 20, case when i % 4 = 0 then i end \
             from (select i, (i::bigint * i * 31 + i * 17) % 1009 % 400 z from generate_series({from}, {from} + 4999) i) s"
        ));
    }
    h
}

#[test]
fn rows_of_the_row_store_are_estimated_as_those_of_segments() {
    let mut h = filled();
    for stored in [false, true] {
        if stored {
            h.query("checkpoint");
        }
        check(&mut h, "select from r where few = 3", 1000.0, 1.3);
        check(&mut h, "select from r where id < 2500", 2500.0, 1.2);
        check(&mut h, "select from r where gone is not null", 2500.0, 1.2);
        check(&mut h, "select from r where ordered between date '2020-02-01' and date '2020-02-20'", 400.0, 1.5);
        check(&mut h, "select from r where name like '%9'", 1000.0, 1.5);
        let actual: f64 = h.lines("select count(*) from r where city = 7").trim().parse().expect("a number");
        check(&mut h, "select from r where city = 7 and zip between 70 and 79", actual, 2.0);
    }
}

#[test]
fn groups_of_columns_that_depend_on_each_other_are_estimated_by_sampled_rows() {
    let mut h = filled();
    for query in [
        "select zip, city from r group by 1, 2",
        "select few, city from r group by few, city",
        "select extract(year from ordered), few from r group by 1, 2",
        "select id % 7 from r group by 1",
    ] {
        let actual: f64 = h.lines(&format!("select count(*) from ({query}) q")).trim().parse().expect("a number");
        check(&mut h, query, actual, 2.0);
    }
}

#[test]
fn pg_stats_follows_changes_without_analyze() {
    let mut h = Harness::new();
    h.query("create table t (a int, b text)");
    let known = "select attname || ' ' || null_frac || ' ' || n_distinct || coalesce(' ' || most_common_vals::text, '') from pg_stats \
                 where tablename = 't' order by attname";
    assert_eq!(h.query(known), "T C:SELECT 0 Z:I");
    h.query("insert into t select i % 2, null from generate_series(1, 100) i");
    assert_eq!(h.query(known), "T D:a 0 2 {0,1} D:b 1 0 C:SELECT 2 Z:I");
    h.query("update t set a = 7, b = 'b'");
    assert_eq!(h.query(known), "T D:a 0 1 {7} D:b 0 1 {b} C:SELECT 2 Z:I");
    h.query("checkpoint");
    h.query("delete from t where ctid = '(0,1)'");
    h.query("alter table t add c int default 3");
    assert_eq!(h.query("select count(*) from pg_stats where tablename = 't' and attname < 'c'"), "T D:2 C:SELECT 1 Z:I");
}

#[test]
fn statistics_of_a_dump_are_checked_and_not_restored() {
    let mut h = Harness::new();
    h.query("create table t (a int)");
    let restore = |arguments: &str| format!("select pg_restore_relation_stats('schemaname', 'public', 'relname', {arguments})");
    assert_eq!(h.query(&restore("'t', 'version', 180000, 'relpages', 1, 'reltuples', 5::real")), "T N0A000 D:f C:SELECT 1 Z:I");
    assert_eq!(h.query(&restore("'missing', 'relpages', 1")), "T E42P01 Z:I");
    assert_eq!(h.query(&restore("'t', 'nonsense', 1")), "T N01000 N0A000 D:f C:SELECT 1 Z:I");
    let column = "select pg_restore_attribute_stats('schemaname', 'public', 'relname', 't', 'inherited', false, 'attname', ";
    assert_eq!(h.query(&format!("{column} 'a', 'null_frac', 0.5::real)")), "T N0A000 D:f C:SELECT 1 Z:I");
    assert_eq!(h.query(&format!("{column} 'b')")), "T E42703 Z:I");
    assert_eq!(h.query("select pg_clear_relation_stats('public', 't')"), "T N0A000 D: C:SELECT 1 Z:I");
    assert_eq!(h.query("select pg_clear_attribute_stats('public', 't', 'b', false)"), "T E42703 Z:I");
    h.query("create role r");
    h.query("set role r");
    assert_eq!(h.query("select pg_clear_relation_stats('public', 't')"), "T E42501 Z:I");
}
