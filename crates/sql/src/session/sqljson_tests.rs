//! SQL/JSON, which PostgreSQL 15 does not have. Expected answers are PostgreSQL 18's.

use super::tests::Harness;

/// Rows by their first column; an error may come after the description of the columns.
fn check(answers: &[(&str, &str)]) {
    let mut h = Harness::new();
    for (query, expected) in answers {
        let answer = h.query(query);
        let answer = answer.strip_prefix("T E").map_or_else(|| answer.clone(), |error| format!("E{error}"));
        assert_eq!(answer, *expected, "{query}");
    }
}

/// Of expressions: the value, or the SQLSTATE.
fn check_values(values: &[(&str, &str)]) {
    for (expression, expected) in values {
        let wanted = match expected.strip_prefix('E') {
            Some(state) if state.len() == 5 => format!("E{state} Z:I"),
            _ => format!("T D:{expected} C:SELECT 1 Z:I"),
        };
        check(&[(&format!("select {expression}"), &wanted)]);
    }
}

#[test]
fn constructors_make_json() {
    check_values(&[
        ("json_object('a' : 1, 'b' value null, 'c' : '[1]' format json)", r#"{"a" : 1, "b" : null, "c" : [1]}"#),
        ("json_object('a' : null, 'a' : 2 absent on null)", r#"{"a" : 2}"#),
        ("json_object('a' : null, 'a' : 2 absent on null with unique keys)", "E22030"),
        ("json_object('b' : 1, 'aa' : 2, 'b' : 3 returning jsonb)", r#"{"b": 3, "aa": 2}"#),
        ("json_object(null : 1)", "E22004"),
        ("json_object('a' : jsonb '1')::jsonb", r#"{"a": 1}"#),
        ("json_array(1, null, true, '2' format json)", "[1, true, 2]"),
        ("json_array(1, null null on null returning jsonb)", "[1, null]"),
        ("json_array('[1, 2]' format json returning bytea)", r"\x5b5b312c20325d5d"),
        ("json_array(select i from (values (3), (null), (1)) v(i) order by i)", "[1, 3]"),
        ("json_array(select 1 where false) is null", "t"),
        ("json_scalar(12.50)", "12.50"),
        ("json_scalar(null::text) is null", "t"),
        ("json(' {\"a\": 1, \"a\": 2} ')", " {\"a\": 1, \"a\": 2} "),
        ("json('{\"a\": 1, \"a\": 2}' with unique keys)", "E22030"),
        ("json(1)", "E42846"),
        ("json_serialize('{\"a\" : 1 }' returning varchar(4))", "E22001"),
        ("json_serialize(jsonb '{\"a\" : 1 }')", r#"{"a": 1}"#),
        ("json_serialize('1' returning int)", "E42804"),
    ]);
}

#[test]
fn aggregates_filter_and_run_over_windows() {
    check_values(&[
        ("json_arrayagg(i order by i desc) from generate_series(1, 3) i", "[3, 2, 1]"),
        ("json_arrayagg(nullif(i, 2) null on null returning jsonb) from generate_series(1, 3) i", "[1, null, 3]"),
        ("json_objectagg(i : i * 2 returning jsonb) filter (where i > 1) from generate_series(1, 3) i", r#"{"2": 4, "3": 6}"#),
        ("json_objectagg(i % 2 : i with unique keys) from generate_series(1, 3) i", "E22030"),
        (
            "string_agg(a, ';') from (select json_arrayagg(i returning text) over (order by i) a from generate_series(1, 3) i)",
            "[1];[1, 2];[1, 2, 3]",
        ),
        ("json_arrayagg(json_arrayagg(1))", "E42803"),
    ]);
}

#[test]
fn is_json_tells_kinds_apart() {
    check_values(&[
        ("array[' {\"a\": [1]}' is json object, '1' is json array, '1' is json scalar, 'x' is json]", "{t,f,t,f}"),
        ("'{\"a\": 1, \"a\": 2}' is json with unique keys", "f"),
        ("'[{\"a\": 1, \"a\": 2}]' is not json with unique keys", "t"),
        ("(null::text is json) is null", "t"),
        ("'\\x5b5d'::bytea is json array", "t"),
        ("1 is json", "E42804"),
    ]);
}

#[test]
fn on_empty_and_on_error_replace_a_missing_path_result() {
    check_values(&[
        ("json_value('{\"a\": \"b\"}', '$.a')", "b"),
        ("json_value('{\"a\": \"b\"}', '$.a' returning int) is null", "t"),
        ("json_value('{\"a\": \"b\"}', '$.a' returning int error on error)", "E22P02"),
        ("json_value('{\"a\": \"b\"}', '$.a' returning int default 7 on error)", "7"),
        ("json_value('{}', '$.a' default 'none' on empty)", "none"),
        ("json_value('{}', 'strict $.a' default 'none' on empty default 'wrong' on error)", "wrong"),
        ("json_value('{}', '$.a' error on empty)", "E22035"),
        ("json_value('[1, 2]', '$[*]' error on error)", "E22034"),
        ("json_value('[1, 2]', '$' error on error)", "E2203F"),
        ("json_value('12.345', '$' returning numeric(4, 1))", "12.3"),
        ("json_value('\"x\"', '$' default 12.345 on error returning int)", "E42601"),
        ("json_value('\"2020-01-02\"', '$.datetime()' returning date)", "2020-01-02"),
        ("json_value('[]', '$' returning int default 1/0 on error)", "E22012"),
        ("json_value('{}', '$.a' returning int default 'x' on empty)", "E22P02"),
        ("json_query('[1, 2]', '$[*]' error on error)", "E22034"),
        ("json_query('[1, 2]', '$[*]' with wrapper)", "[1, 2]"),
        ("json_query('[1]', '$[*]' with conditional wrapper)", "1"),
        ("json_query('\"a\"', '$' returning text)", "\"a\""),
        ("json_query('\"a\"', '$' returning text omit quotes)", "a"),
        ("json_query('[1, 2]', '$' returning int[])", "{1,2}"),
        ("json_query('{}', '$.a' empty array on empty returning text)", "E42601"),
        ("json_query('{}', '$.a' returning text empty array on empty)", "[]"),
        ("json_exists('{\"a\": 1}', '$.a ? (@ > $x)' passing 0 as x)", "t"),
        ("json_exists('{\"a\": 1}', 'strict $.b')", "f"),
        ("json_exists('{\"a\": 1}', 'strict $.b' error on error)", "E2203A"),
        ("json_exists('{}', '$.a ? (@ > $x)' error on error)", "f"),
        ("json_exists('1', '$ ? (@ > $x)')", "E42704"),
        ("json_exists('1', '$' error on empty)", "E42601"),
        ("json_value('1', '$' empty array on error)", "E42601"),
        ("json_value(json '1', '$' || 'x')", "E42704"),
        ("json_value(1, '$')", "E42846"),
    ]);
}

#[test]
fn a_domain_is_checked_where_a_path_gives_nothing() {
    check(&[
        ("create domain known as int not null", "C:CREATE DOMAIN Z:I"),
        ("create domain small as int check (value < 5)", "C:CREATE DOMAIN Z:I"),
        ("select json_value('{}', '$.a' returning known)", "E42804 Z:I"),
        ("select json_value('7', '$' returning small) is null", "T D:t C:SELECT 1 Z:I"),
        ("select json_value('7', '$' returning small error on error)", "E23514 Z:I"),
        ("select json_value('7', '$' returning small default 4 on error)", "T D:4 C:SELECT 1 Z:I"),
    ]);
}

#[test]
fn json_table_joins_nested_paths() {
    let doc = r#"'[{"a": 1, "b": [10, 20], "c": ["x"]}, {"a": 2, "b": []}, 3]'"#;
    let nested = format!(
        "select t::text from json_table({doc}, '$[*]' columns (n for ordinality, a int, nested '$.b[*]' columns (b int path '$'), \
         nested path '$.c[*]' as p columns (m for ordinality, c text path '$'))) t"
    );
    check(&[
        (&nested, "T D:(1,1,10,,) D:(1,1,20,,) D:(1,1,,1,x) D:(2,2,,,) D:(3,,,,) C:SELECT 5 Z:I"),
        ("select * from json_table('[1, 2]', 'strict $.a' columns (a int))", "T C:SELECT 0 Z:I"),
        ("select * from json_table('[1, 2]', 'strict $.a' columns (a int) error on error)", "E2203A Z:I"),
        ("select * from json_table(null::jsonb, '$' columns (a int))", "T C:SELECT 0 Z:I"),
        (
            "select concat_ws('|', x, a, has) from (values ('[1]'), ('[2, 3]')) v(x), json_table(x, '$[*]' passing 2 as two columns (a int path \
             '$ ? (@ >= $two)', has int exists path '$ ? (@ >= $two)'))",
            "T D:[1]|0 D:[2, 3]|2|1 D:[2, 3]|3|1 C:SELECT 3 Z:I",
        ),
        ("select * from json_table('1', '$' columns (a int path '$', a int path '$'))", "E42712 Z:I"),
        ("select * from json_table('1', '$' columns (a for ordinality, b for ordinality))", "E42601 Z:I"),
        ("select * from json_table('1', '$' columns (a int)) t(a, b)", "E42P10 Z:I"),
        ("select a from json_table('[1, 2]', '$[*]' columns (a int path '$')) where a > $1", "E42P02 Z:I"),
    ]);
}

/// A path may select other items under another time zone.
#[test]
fn an_index_has_only_paths_that_no_time_zone_changes() {
    check(&[
        ("create table t (j jsonb)", "C:CREATE TABLE Z:I"),
        ("create index on t (json_query(j, '$.a'))", "C:CREATE INDEX Z:I"),
        ("create index on t (json_query(j, '$.a.date()'))", "E42P17 Z:I"),
        ("create index on t (json_query(j, '$.a ? (@.datetime() < \"10:00\".datetime())'))", "E42P17 Z:I"),
        (
            "create index on t (json_query(j, '$.a ? (@.datetime(\"HH24\") < $x)' passing time '10:00' as x))",
            "C:CREATE INDEX Z:I",
        ),
        ("create index on t (json_query(j, '$.a ? (@.datetime(\"HH24\") < $x)' passing timetz '10:00Z' as x))", "E42P17 Z:I"),
    ]);
}
