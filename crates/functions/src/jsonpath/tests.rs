use melba_types::{Datum, DbError, oids};

use super::parse;
use crate::io;
use crate::testing::FixedSession;

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
        ("$x + $\"y z\"", "($\"x\" + $\"y z\")"),
    ] {
        assert_eq!(parse(text).expect(text).to_string(), expected);
    }
    let problem = |text: &str| parse(text).err().map(|e| e.message().to_string());
    assert_eq!(problem("@ + 1").as_deref(), Some("@ is not allowed in root expressions"));
    assert_eq!(problem("$.a[").as_deref(), Some("syntax error at end of jsonpath input"));
    assert_eq!(problem("$.a && $.b").as_deref(), Some("syntax error at or near \"&&\" of jsonpath input"));
    assert_eq!(problem("last").as_deref(), Some("LAST is allowed only in array subscripts"));
}

fn query(json: &str, path: &str) -> String {
    let session = FixedSession::default();
    let run = || {
        let args: Vec<Datum> = [(oids::JSONB, json), (oids::JSONPATH, path), (oids::JSONB, "{\"v\":2}"), (oids::BOOL, "f")]
            .iter()
            .map(|(ty, text)| io::text_in(&session, *ty, -1, text))
            .collect::<Result<_, DbError>>()?;
        let function = crate::scalar("jsonb_path_query_array").expect("registered");
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
