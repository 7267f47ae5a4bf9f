//! Texts of the extended protocol that differ only in their literals.

use super::Harness;

/// Parse, Bind, Describe of the portal, Execute, Sync.
fn run(h: &mut Harness, text: &str) -> String {
    let parse = [b"P\0", text.as_bytes(), b"\0\0\0"].concat();
    h.raw(&[&parse, b"B\0\0\0\0\0\0\0\0", b"DP\0", b"E\0\0\0\0\0", b"S"])
}

#[test]
fn each_text_has_its_own_literals() {
    let mut h = Harness::new();
    h.query("create table t (a int primary key, b text)");
    for (text, answer) in [
        ("insert into t values (1, 'one')", "1 2 n C:INSERT 0 1 Z:I"),
        ("insert into t values (2, 'it''s two')", "1 2 n C:INSERT 0 1 Z:I"),
        ("insert into t values (3, null)", "1 2 n C:INSERT 0 1 Z:I"),
        ("insert into t values (2, 'again')", "1 2 n E23505 Z:I"),
        ("insert into t values (99999999999, 'far')", "1 E22003 Z:I"),
        ("insert into t values ('x', 'no number')", "E22P02 Z:I"),
        ("select b from t where a = 1", "1 2 T D:one C:SELECT 1 Z:I"),
        ("select b from t where a = 2", "1 2 T D:it's two C:SELECT 1 Z:I"),
        ("select b from t where a = 4", "1 2 T C:SELECT 0 Z:I"),
        ("update t set b = 'zwei' where a = 2", "1 2 n C:UPDATE 1 Z:I"),
        ("select b from t where a = 2", "1 2 T D:zwei C:SELECT 1 Z:I"),
        ("select b from t where nosuch = 2", "E42703 Z:I"),
        ("select b from t where a = 2 limit 'x'", "E22P02 Z:I"),
    ] {
        assert_eq!(run(&mut h, text), answer, "{text}");
    }
}

#[test]
fn a_literal_is_no_parameter_of_the_client() {
    let mut h = Harness::new();
    for value in ["41", "42"] {
        let parse = format!("P\0select {value} + 1\0\0\0");
        assert_eq!(h.raw(&[parse.as_bytes(), b"DS\0", b"S"]), "1 t T Z:I");
        // A value for it.
        assert_eq!(h.raw(&[b"B\0\0\0\0\0\x01\0\0\0\x015\0\0", b"S"]), "E08P01 Z:I");
        let sum = value.parse::<i32>().unwrap() + 1;
        assert_eq!(h.raw(&[b"B\0\0\0\0\0\0\0\0", b"E\0\0\0\0\0", b"S"]), format!("2 D:{sum} C:SELECT 1 Z:I"));
        // The statement is bound as often as the client likes.
        assert_eq!(h.raw(&[b"B\0\0\0\0\0\0\0\0", b"E\0\0\0\0\0", b"S"]), format!("2 D:{sum} C:SELECT 1 Z:I"));
    }
    assert_eq!(h.raw(&[b"CS\0", b"B\0\0\0\0\0\0\0\0", b"S"]), "3 E26000 Z:I");
}

#[test]
fn a_literal_takes_the_type_that_its_column_has_when_it_is_bound() {
    let mut h = Harness::new();
    h.query("create table t (a int)");
    assert_eq!(run(&mut h, "insert into t values ('1')"), "1 2 n C:INSERT 0 1 Z:I");
    assert_eq!(h.raw(&[b"P\0insert into t values ('2')\0\0\0", b"S"]), "1 Z:I");
    h.query("alter table t alter a type text using a::text || 'x'");
    // A query string drops the unnamed statement.
    assert_eq!(h.raw(&[b"B\0\0\0\0\0\0\0\0", b"S"]), "E26000 Z:I");
    assert_eq!(run(&mut h, "insert into t values ('2y')"), "1 2 n C:INSERT 0 1 Z:I");
    assert_eq!(h.raw(&[b"P\0select * from t where a = '2y'\0\0\0", b"S"]), "1 Z:I");
    // A named statement changes the table between Parse and Bind.
    assert_eq!(
        h.raw(&[b"Palter\0alter table t add c int\0\0\0", b"Balter\0alter\0\0\0\0\0\0\0", b"Ealter\0\0\0\0\0", b"S"]),
        "1 2 C:ALTER TABLE Z:I"
    );
    assert_eq!(h.raw(&[b"B\0\0\0\0\0\0\0\0", b"S"]), "E0A000 Z:I");
    assert_eq!(run(&mut h, "select a from t where a = '2y'"), "1 2 T D:2y C:SELECT 1 Z:I");
}

#[test]
fn nothing_is_parsed_in_a_failed_transaction() {
    let mut h = Harness::new();
    assert_eq!(run(&mut h, "select 1"), "1 2 T D:1 C:SELECT 1 Z:I");
    h.query("begin; select nosuch");
    assert_eq!(h.raw(&[b"P\0select 2\0\0\0", b"S"]), "E25P02 Z:E");
}

#[test]
fn constants_are_those_of_the_settings_and_of_the_time() {
    let mut h = Harness::new();
    h.query("create table t (a timestamptz); set timezone = 'UTC'");
    let statements = ["select date '01/02/2020' - date '01/01/2020'", "select E'01/02/2020'::date - 0, 0 < 5"];
    h.query("set datestyle = 'ISO, MDY'");
    let month_first = statements.map(|text| (h.query(text), run(&mut h, text)));
    h.query("set datestyle = 'ISO, DMY'");
    let day_first = statements.map(|text| (h.query(text), run(&mut h, text)));
    assert_eq!(month_first[0], ("T D:1 C:SELECT 1 Z:I".to_owned(), "1 2 T D:1 C:SELECT 1 Z:I".to_owned()));
    assert_eq!(day_first[0], ("T D:31 C:SELECT 1 Z:I".to_owned(), "1 2 T D:31 C:SELECT 1 Z:I".to_owned()));
    assert_eq!(month_first[1].0, "T D:2020-01-02 C:SELECT 1 Z:I");
    assert_eq!(day_first[1].0, "T D:2020-02-01 C:SELECT 1 Z:I");
    h.query("insert into t values (E'2020-01-01 00:00'); set timezone = 'America/New_York'");
    h.query("insert into t values (E'2020-01-01 00:00')");
    assert_eq!(h.query("select max(a) - min(a) from t"), "T D:05:00:00 C:SELECT 1 Z:I");
    // The time goes on.
    for text in ["select E'now'::timestamptz", "select timestamptz 'now' - timestamptz 'epoch'", "select $$now$$::timestamp"] {
        let first = (h.query(text), run(&mut h, text));
        std::thread::sleep(std::time::Duration::from_millis(2));
        let second = (h.query(text), run(&mut h, text));
        assert!(first.0 != second.0 && first.1 != second.1, "{text}: {first:?} {second:?}");
    }
}

#[test]
fn a_changed_result_is_refused_until_the_text_is_parsed_again() {
    let mut h = Harness::new();
    h.query("create table t (a int primary key); insert into t values (1), (2)");
    assert_eq!(run(&mut h, "select * from t where a = 2"), "1 2 T D:2 C:SELECT 1 Z:I");
    assert_eq!(h.raw(&[b"P\0select * from t where a = 1\0\0\0", b"S"]), "1 Z:I");
    let alter: [&[u8]; 4] = [b"Palter\0alter table t add c int\0\0\0", b"Balter\0alter\0\0\0\0\0\0\0", b"Ealter\0\0\0\0\0", b"S"];
    assert_eq!(h.raw(&alter), "1 2 C:ALTER TABLE Z:I");
    for _ in 0..2 {
        assert_eq!(h.raw(&[b"B\0\0\0\0\0\0\0\0", b"S"]), "E0A000 Z:I");
    }
}

#[test]
fn a_transaction_that_parsed_has_its_isolation_level() {
    let mut h = Harness::new();
    h.query("create table t (a int primary key)");
    assert_eq!(run(&mut h, "select a from t where a = 2"), "1 2 T C:SELECT 0 Z:I");
    assert_eq!(h.query("begin"), "C:BEGIN Z:T");
    assert_eq!(h.raw(&[b"P\0select a from t where a = 3\0\0\0", b"S"]), "1 Z:T");
    assert_eq!(h.query("set transaction isolation level serializable"), "E25001 Z:E");
}

/// PostgreSQL computes constants when it plans, whether or not a row needs them.
#[test]
fn operations_over_literals_fail_without_rows() {
    let mut h = Harness::new();
    h.query("create table t (a smallint primary key, n numeric(5,2), v varchar(3), i int)");
    for (text, answer) in [
        ("select i from t where a = 7::smallint", "1 2 T C:SELECT 0 Z:I"),
        ("select i from t where a = 70000::smallint", "1 E22003 Z:I"),
        ("select i from t where a = 8::smallint", "1 2 T C:SELECT 0 Z:I"),
        ("update t set n = 999.994 where a = 1", "1 2 n C:UPDATE 0 Z:I"),
        ("update t set n = 999.995 where a = 1", "1 E22003 Z:I"),
        ("update t set v = 'abc' where a = 1", "1 2 n C:UPDATE 0 Z:I"),
        ("update t set v = 'abc ' where a = 1", "1 2 n C:UPDATE 0 Z:I"),
        ("update t set v = 'abcd' where a = 1", "1 E22001 Z:I"),
        ("update t set i = 6 / 3 where a = 1", "1 2 n C:UPDATE 0 Z:I"),
        ("update t set i = 6 / 0 where a = 1", "1 E22012 Z:I"),
        ("insert into t values (1, 1, 'abc') on conflict (a) do update set v = 'cde'", "1 2 n C:INSERT 0 1 Z:I"),
        ("delete from t where a = 1", "1 2 n C:DELETE 1 Z:I"),
        ("insert into t values (1, 1, 'abc') on conflict (a) do update set v = 'cdef'", "1 E22001 Z:I"),
        ("select case when a > 0::smallint then 1 / 1 else 1 / 1 end from t where a = 1", "1 2 T C:SELECT 0 Z:I"),
        ("select case when a > 0::smallint then 1 / 1 else 1 / 0 end from t where a = 1", "1 E22012 Z:I"),
        // The condition decides before the rest is computed.
        ("select case when 1 = 1 then 1 / 1 else 1 / 0 end from t where a = 1", "1 2 T C:SELECT 0 Z:I"),
    ] {
        assert_eq!(run(&mut h, text), answer, "{text}");
    }
}
