//! What EXPLAIN shows of constants, widths and LIMIT.

use super::tests::Harness;

#[test]
fn plans_show_precomputed_constants() {
    let mut h = Harness::new();
    h.query("create table t (a int, b text)");
    let plan =
        h.query("explain (costs off) select * from t where a = 1 + 1 and b similar to lower('_%X') and a < random() + (2 - 1)");
    let filter =
        "Filter: ((a = 2) AND (b ~ '^(?:..*x)$'::text) AND ((a)::double precision < (random() + '1'::double precision)))";
    assert!(plan.contains(filter), "{plan}");
}

#[test]
fn plans_tell_the_width_of_rows() {
    let mut h = Harness::new();
    h.query("create table t (a int, b text, c bigint)");
    for (query, width) in
        [("select * from t", 44), ("select a from t", 4), ("select b || 'x', c from t", 40), ("insert into t values (1)", 0)]
    {
        let answer = h.query(&format!("explain {query}"));
        assert!(answer.contains(&format!(" width={width})")), "{query}: {answer}");
    }
}

#[test]
fn plans_pay_for_the_rows_of_offset() {
    let mut h = Harness::new();
    h.query("create table t (id int primary key, note text)");
    h.query("insert into t select i, i from generate_series(1, 20000) i");
    for (bounds, node) in
        [("limit 10", "Index Scan"), ("limit 10 offset 19000", "Sort"), ("limit null", "Sort"), ("limit null offset 5", "Sort")]
    {
        let answer = h.query(&format!("explain (costs off) select * from t order by id {bounds}"));
        assert!(answer.contains(node), "{bounds}: {answer}");
    }
}

#[test]
fn a_range_of_ctids_is_read_and_nothing_else() {
    let mut h = Harness::new();
    h.query("create table t (a int, b text)");
    h.query("insert into t select i, i from generate_series(1, 50000) i");
    h.query("vacuum t");
    for (condition, title) in [
        ("ctid >= '(0,5)' and ctid < '(0,900)'", "Tid Range Scan on t"),
        ("'(0,900)' >= ctid and a > 3", "Tid Range Scan on t"),
        ("ctid = '(0,5)' and ctid < '(0,900)'", "Tid Scan on t"),
        ("ctid <> '(0,5)'", "Seq Scan on t"),
        ("ctid < '(0,5)' or a = 1", "Seq Scan on t"),
    ] {
        let plan = h.query(&format!("explain (costs off) select b from t where {condition}"));
        assert!(plan.contains(title), "{condition}: {plan}");
        assert_eq!(plan.contains("TID Cond: "), title.starts_with("Tid Range"), "{condition}: {plan}");
    }
    // A scan that read all would find the row that cannot be divided by.
    let one = "select count(1 / (a - 40000)) from t where ctid < '(0,900)'";
    assert!(h.query(one).contains("899"));
    let plan = h.query("explain select b from t where ctid >= '(0,5)' and ctid < '(0,900)'::tid");
    assert!(plan.contains("rows=896 "), "{plan}");
}
