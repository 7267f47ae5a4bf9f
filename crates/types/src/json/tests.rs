use super::*;

fn problem(text: &str, strict: bool) -> String {
    match parse(text, strict) {
        Ok(_) => "none".into(),
        Err(e) => {
            let fields = e.fields();
            format!("{} {} | {}", e.sqlstate(), fields.detail.as_deref().unwrap_or(""), fields.context.as_deref().unwrap_or(""))
        }
    }
}

/// Expected texts are PostgreSQL 18's.
#[test]
fn errors_give_the_token_and_its_position() {
    for (text, expected) in [
        ("", "22P02 The input string ended unexpectedly. | JSON data, line 1: "),
        ("{\"abc\":1,3}", "22P02 Expected string, but found \"3\". | JSON data, line 1: {\"abc\":1,3..."),
        ("{1:\"abc\"}", "22P02 Expected string or \"}\", but found \"1\". | JSON data, line 1: {1..."),
        ("[1,2", "22P02 The input string ended unexpectedly. | JSON data, line 1: [1,2"),
        ("\"\\v\"", "22P02 Escape sequence \"\\v\" is invalid. | JSON data, line 1: \"\\v..."),
        ("01", "22P02 Token \"01\" is invalid. | JSON data, line 1: 01"),
        ("1 2", "22P02 Expected end of input, but found \"2\". | JSON data, line 1: 1 2"),
        ("trues", "22P02 Token \"trues\" is invalid. | JSON data, line 1: trues"),
        ("{\n\"a\"=1}", "22P02 Token \"=\" is invalid. | JSON data, line 2: \"a\"=..."),
    ] {
        assert_eq!(problem(text, false), expected, "{text}");
        assert!(validate(text).is_err());
    }
    assert_eq!(problem("\"\\u0000\"", false), "none");
    assert!(problem("\"\\u0000\"", true).starts_with("22P05"));
    assert!(problem("\"\\ud83d\"", true).starts_with("22P02 Unicode low surrogate"));
}

#[test]
fn strings_are_written_and_read() {
    assert_eq!(unescape("\"a\\u00e9\\n\\ud83d\\ude04\\\"\"").expect("valid"), "aé\n😄\"");
    let mut out = Vec::new();
    write_string("a\"\\\n\u{1}é", &mut out).expect("a short text");
    assert_eq!(String::from_utf8(out).expect("UTF-8"), "\"a\\\"\\\\\\n\\u0001é\"");
}

#[test]
fn depth_is_limited() {
    assert!(problem(&"[".repeat(1_000_000), false).starts_with("54001"));
}
