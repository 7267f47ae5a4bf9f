use melba_fmgr::io;
use melba_types::{Datum, DbError, oids};

use super::parse;

/// Expected texts are PostgreSQL 18's.
#[test]
fn paths_are_normalized() {
    for (text, expected) in [
        ("$.a.b[*] ? (@.c > 1 && @.d == \"x\").e", "$.\"a\".\"b\"[*]?(@.\"c\" > 1 && @.\"d\" == \"x\").\"e\""),
        ("strict $.a[0, 1 to last]", "strict $.\"a\"[0,1 to last]"),
        ("1 + 2 * 3", "(1 + 2 * 3)"),
        ("(1 + 2) * -3", "((1 + 2) * -3)"),
        ("$.** {2 to 5}.*", "$.**{2 to 5}.*"),
        (
            "$ ? (exists (@.a) || !(@.b like_regex \"^x\" flag \"i\"))",
            "$?(exists (@.\"a\") || !(@.\"b\" like_regex \"^x\" flag \"i\"))",
        ),
        ("$.a.type()", "$.\"a\".type()"),
        ("(1).type()", "(1).type()"),
        ("1..e", "(1).\"e\""),
        ("0x1E_F + 0b10 + 0o17 + 1_000.5e1", "(((495 + 2) + 15) + 10005)"),
        ("$.a\\x62\\tc", "$.\"ab\\tc\""),
        ("$x + $\"y z\"", "($\"x\" + $\"y z\")"),
    ] {
        assert_eq!(parse(text).expect(text).to_string(), expected);
    }
    let problem = |text: &str| parse(text).err().map(|e| e.message().to_string());
    assert_eq!(problem("@ + 1").as_deref(), Some("@ is not allowed in root expressions"));
    for (text, shown) in [("1.type()", "1.t"), ("00", "00"), ("100_", "100_"), ("1_000.5e_1", "1_000.5e")] {
        let message = format!("trailing junk after numeric literal at or near \"{shown}\" of jsonpath input");
        assert_eq!(problem(text), Some(message), "{text}");
    }
    // These begin words.
    for text in ["0755", "100__000", "0b_1", "_100"] {
        assert_eq!(problem(text).as_deref(), Some("syntax error at end of jsonpath input"), "{text}");
    }
    assert_eq!(problem("error error").as_deref(), Some("syntax error at or near \" \" of jsonpath input"));
    assert_eq!(problem("$.time(2.0)").as_deref(), Some("syntax error at or near \"2.0\" of jsonpath input"));
    assert_eq!(problem("$.date(2)").as_deref(), Some("syntax error at or near \"2\" of jsonpath input"));
    assert_eq!(problem("$.a[").as_deref(), Some("syntax error at end of jsonpath input"));
    assert_eq!(problem("$.a && $.b").as_deref(), Some("syntax error at or near \"&&\" of jsonpath input"));
    assert_eq!(problem("last").as_deref(), Some("LAST is allowed only in array subscripts"));
}

fn query(json: &str, path: &str) -> String {
    let session = crate::testing::session();
    let run = || {
        let args: Vec<Datum> = [(oids::JSONB, json), (oids::JSONPATH, path), (oids::JSONB, "{\"v\":2}"), (oids::BOOL, "f")]
            .iter()
            .map(|(ty, text)| io::text_in(&session, *ty, -1, text))
            .collect::<Result<_, DbError>>()?;
        let function = melba_fmgr::registry::scalar("jsonb_path_query_array").expect("registered");
        io::text_of(&session, oids::JSONB, &function(&session.call(&[], oids::JSONB), &args)?)
    };
    run().unwrap_or_else(|e: DbError| format!("{} {}", e.sqlstate(), e.message()))
}

#[test]
fn paths_select() {
    let json = "{\"a\":[1,2,{\"b\":[3,\"x\"]}],\"n\":null}";
    for (path, expected) in [
        ("$.a[*].b", "[[3, \"x\"]]"),
        ("$.a.b", "[[3, \"x\"]]"),
        ("$.a[last]", "[{\"b\": [3, \"x\"]}]"),
        ("$.a[0 to 1] * $v", "22038 left operand of jsonpath operator * is not a single numeric value"),
        ("$.a[1] * $v", "[4]"),
        ("$.a[*] ? (@ >= $v)", "[2]"),
        ("$.a.size()", "[3]"),
        ("$.zz", "[]"),
        ("strict $.zz", "2203A JSON object does not contain key \"zz\""),
        ("strict $.a[7]", "22033 jsonpath array subscript is out of bounds"),
        ("$.n == null", "[true]"),
        ("$.a[*] ? (@.b[*] starts with \"x\")", "[{\"b\": [3, \"x\"]}]"),
        ("$.** ? (@.type() == \"string\")", "[\"x\", \"x\"]"),
        ("$w", "42704 could not find jsonpath variable \"w\""),
        ("$.a[0] / 0", "22012 division by zero"),
    ] {
        assert_eq!(query(json, path), expected, "{path}");
    }
}

fn check(json: &str, expectations: &[(&str, &str)]) {
    for (path, expected) in expectations {
        assert_eq!(query(json, path), *expected, "{path}");
    }
}

/// Objects are distinguished by PostgreSQL's numbers.
#[test]
fn keyvalue_identifies_objects() {
    check(
        "[{\"a\":1,\"b\":[1,2]},{\"c\":{\"d\":1}}]",
        &[
            ("$[*].keyvalue().id", "[12, 12, 72]"),
            ("$[1].c.keyvalue()", "[{\"id\": 88, \"key\": \"d\", \"value\": 1}]"),
            ("$vars.keyvalue()", "42704 could not find jsonpath variable \"vars\""),
        ],
    );
    check(
        "{\"a\":{\"x\":1},\"b\":{\"y\":\"long string here\", \"z\":[1,2,{\"q\":1}]}}",
        &[
            ("$.*.keyvalue().id", "[24, 48, 48]"),
            ("$.b.z[2].keyvalue().keyvalue().id", "[20000000000, 20000000000, 20000000000]"),
            ("$.keyvalue().value.keyvalue().id", "[20000000048, 40000000048, 40000000048]"),
            ("$.keyvalue().key", "[\"a\", \"b\"]"),
            (
                "$.keyvalue() ? (@.value.x == 1).**",
                "[{\"id\": 0, \"key\": \"a\", \"value\": {\"x\": 1}}, 0, \"a\", {\"x\": 1}, 1]",
            ),
        ],
    );
}

#[test]
fn dates_and_times_have_types() {
    let json = "[\"2017-03-10\", \"12:34:56\", \"12:34:56+3\", \"2017-03-10 12:34:56\", \"2017-03-10T12:34:56.789+05:20\"]";
    check(
        json,
        &[
            (
                "$[*].datetime()",
                "[\"2017-03-10\", \"12:34:56\", \"12:34:56+03:00\", \"2017-03-10T12:34:56\", \"2017-03-10T12:34:56.789+05:20\"]",
            ),
            (
                "$[*].datetime().type()",
                "[\"date\", \"time without time zone\", \"time with time zone\", \"timestamp without time zone\", \"timestamp with time zone\"]",
            ),
            (
                "$[0 to 3].datetime() ? (@ < \"2017-03-10T12:35\".datetime(\"yyyy-mm-dd\\\"T\\\"HH24:MI\"))",
                "[\"2017-03-10\", \"2017-03-10T12:34:56\"]",
            ),
            ("$[0].time()", "22031 time format is not recognized: \"2017-03-10\""),
            ("$[3].date()", "[\"2017-03-10\"]"),
            ("$[4].date()", "0A000 cannot convert value from timestamptz to date without time zone usage"),
            ("$[4].timestamp_tz(1)", "[\"2017-03-10T12:34:56.8+05:20\"]"),
            ("$[0].datetime(\"dd/mm\")", "22007 unmatched format separator \"/\""),
            ("$[0].datetime(\"yyyy mm dd\")", "22007 unmatched format separator \" \""),
            ("$[0].datetime(\"yyyy-mm-dd HH24\")", "22007 input string is too short for datetime format"),
            ("$[0].datetime(\"yyyy|mm|dd\")", "22007 invalid datetime format separator: \"|\""),
            ("$[1].datetime().string()", "[\"12:34:56\"]"),
        ],
    );
}
