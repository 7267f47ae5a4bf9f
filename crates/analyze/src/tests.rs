use melba_catalog::{Catalog, classes};
use melba_types::{DbError, Result, oids};

use super::*;

fn run_with(sql: &str, params: Option<&[Oid]>) -> Result<Analyzed> {
    let catalog = Catalog::default();
    let session = melba_builtins::test_session();
    let path = [classes::PG_CATALOG, classes::PUBLIC];
    let cx = Context {
        catalog: &catalog,
        session: &session,
        search_path: &path,
        temp_namespace: Oid::INVALID,
        database: "postgres",
        user: Oid(10),
    };
    let parsed = melba_parse::parse(sql)?;
    let statement = parsed.statements.first().expect("a statement");
    analyze(&cx, &statement.node, params)
}

fn types(sql: &str) -> Vec<Oid> {
    match run_with(sql, None) {
        Ok(a) => a.query.output_columns().iter().map(|c| c.ty).collect(),
        Err(e) => panic!("{sql}: {} {:?}", e, e.fields()),
    }
}

fn names(sql: &str) -> Vec<String> {
    let a = run_with(sql, None).expect("analyzes");
    a.query.output_columns().iter().map(|c| c.name.to_string()).collect()
}

fn error(sql: &str) -> DbError {
    run_with(sql, None).expect_err("fails")
}

/// SQLSTATE, message and 1-based position.
fn fails(sql: &str, state: &str, message: &str, position: u32) {
    let e = error(sql);
    assert_eq!((e.sqlstate().as_str(), e.message()), (state, message), "{sql}");
    assert_eq!(e.fields().position.unwrap_or(0), position, "{sql}");
}

#[test]
fn literals_and_operators_have_types() {
    assert_eq!(
        types("select 1, 'a', 1.5, null, true, 10000000000"),
        [oids::INT4, oids::TEXT, oids::NUMERIC, oids::TEXT, oids::BOOL, oids::INT8]
    );
    assert_eq!(
        types("select 1 + 1, 1 + 1.5, 1::int8 + 1, '1' + 1, 'a' || 'b', -1, 1 = 1"),
        [oids::INT4, oids::NUMERIC, oids::INT8, oids::INT4, oids::TEXT, oids::INT4, oids::BOOL]
    );
    assert_eq!(
        types("select case when true then 1 else 1.5 end, coalesce(null, 1), array[1, 2.5], greatest('a', 'b')"),
        [oids::NUMERIC, oids::INT4, oids::NUMERIC_ARRAY, oids::TEXT]
    );
}

#[test]
fn functions_are_resolved() {
    assert_eq!(
        types("select length('x'), abs(-1), upper('x'), now(), round(1.5), array_append(array[1], 2)"),
        [oids::INT4, oids::INT4, oids::TEXT, oids::TIMESTAMPTZ, oids::NUMERIC, oids::INT4_ARRAY]
    );
    fails("select nope(1)", "42883", "function nope(integer) does not exist", 8);
    fails("select 1 + true", "42883", "operator does not exist: integer + boolean", 10);
    fails("select 'a'::int4", "22P02", "invalid input syntax for type integer: \"a\"", 8);
    fails("select 1::bool::date", "42846", "cannot cast type boolean to date", 15);
}

#[test]
fn from_joins_and_names() {
    let sql = "select relname, n.nspname, c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace \
               where relkind = 'r' order by 1";
    assert_eq!(types(sql), [oids::NAME, oids::NAME, oids::OID]);
    assert_eq!(names("select count(*), sum(oid::int8) as s, max(oid)::text from pg_class"), ["count", "s", "max"]);
    fails("select x from pg_class", "42703", "column \"x\" does not exist", 8);
    fails("select * from nope", "42P01", "relation \"nope\" does not exist", 15);
    fails("select oid from pg_class, pg_type", "42702", "column reference \"oid\" is ambiguous", 8);
    fails(
        "select relname, count(*) from pg_class",
        "42803",
        "column \"pg_class.relname\" must appear in the GROUP BY clause or be used in an aggregate function",
        8,
    );
    let e = error("select relkin from pg_class");
    assert_eq!(e.fields().hint.as_deref(), Some("Perhaps you meant to reference the column \"pg_class.relkind\"."));
    let e = error("select pg_class.relname from pg_class c");
    assert_eq!(e.fields().hint.as_deref(), Some("Perhaps you meant to reference the table alias \"c\"."));
}

#[test]
fn subqueries_unions_and_ctes() {
    assert_eq!(types("select 1 union select 2.5 order by 1"), [oids::NUMERIC]);
    assert_eq!(types("select * from (values (1, 'a'), (2, 'b')) v(x, y)"), [oids::INT4, oids::TEXT]);
    assert_eq!(
        types("with recursive t(n) as (values (1) union all select n + 1 from t where n < 5) select * from t"),
        [oids::INT4]
    );
    assert_eq!(
        types("select (select max(oid) from pg_class), exists (select 1), 1 in (select 2)"),
        [oids::OID, oids::BOOL, oids::BOOL]
    );
    assert_eq!(types("select a.x, b from (select 1 as x) a, lateral (select a.x + 1 as b) s"), [oids::INT4, oids::INT4]);
    assert_eq!(
        types("select * from generate_series(1, 3) g(i), unnest(array['a']) with ordinality u(t, n)"),
        [oids::INT4, oids::TEXT, oids::INT8]
    );
}

#[test]
fn windows_and_grouping_sets() {
    let sql = "select row_number() over w, rank() over (order by oid), sum(1) over () from pg_class window w as (order by oid)";
    assert_eq!(types(sql), [oids::INT8, oids::INT8, oids::INT8]);
    let a = run_with("select relkind, relname, count(*) from pg_class group by rollup (1, 2)", None).expect("analyzes");
    assert_eq!(a.query.grouping_sets, Some(vec![vec![0, 1], vec![0], vec![]]));
    fails("select rank() from pg_class", "42809", "window function rank requires an OVER clause", 8);
    fails("select 1 from pg_class where count(*) > 1", "42803", "aggregate functions are not allowed in WHERE", 30);
}

#[test]
fn parameters_are_inferred() {
    let a = run_with("select $1 + 1, $2::text from pg_class where relname = $3", Some(&[])).expect("analyzes");
    assert_eq!(a.params, [oids::INT4, oids::TEXT, oids::NAME]);
    let e = run_with("select * from pg_class where $1 is null", Some(&[])).expect_err("unknown");
    assert_eq!(e.message(), "could not determine data type of parameter $1");
}

#[test]
fn arms_of_a_union_have_its_types() {
    let sql = "select 1.5 as x union (select 2 order by 1) union all select 3::int2";
    let query = run_with(sql, None).expect("analyzes").query;
    for entry in &query.range_table {
        let RangeKind::Subquery { query, .. } = &entry.kind else { panic!("an arm") };
        assert_eq!(query.output_columns()[0].ty, oids::NUMERIC);
    }
}

#[test]
fn views_that_cannot_be_changed_say_why() {
    let e = error("delete from pg_views");
    assert_eq!(e.sqlstate().as_str(), "55000");
    assert_eq!(e.message(), "cannot delete from view \"pg_views\"");
    assert_eq!(
        e.fields().detail.as_deref(),
        Some("Views that do not select from a single table or view are not automatically updatable.")
    );
}
