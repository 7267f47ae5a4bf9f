use melba_types::{Oid, oids};

fn call(source: &str, args: &[(Oid, &str)], result: Oid) -> String {
    crate::testing::session().call_text(source, args, result).unwrap_or_else(|error| error)
}

/// Expected values are PostgreSQL 18's.
#[test]
fn paths_lead_into_both_forms() {
    let text = "{\"a\": {\"b\":[10, \"x\\ny\", null]}, \"a\": {\"b\":[10, \"x\\ny\", null]}}";
    for (ty, prefix) in [(oids::JSON, "json"), (oids::JSONB, "jsonb")] {
        let path = |p: &str| call(&format!("{prefix}_extract_path_text"), &[(ty, text), (oids::TEXT_ARRAY, p)], oids::TEXT);
        assert_eq!(path("{a,b,1}"), "x\ny");
        assert_eq!(path("{a,b,-3}"), "10");
        assert_eq!(path("{a,b,2}"), "NULL");
        assert_eq!(path("{a,c}"), "NULL");
    }
}

#[test]
fn a_jsonb_scalar_is_its_own_element() {
    for index in ["0", "-1"] {
        let args = [(oids::JSONB, "12"), (oids::INT4, index)];
        assert_eq!(call("jsonb_array_element", &args, oids::JSONB), "12");
        assert_eq!(call("jsonb_array_element_text", &args, oids::TEXT), "12");
    }
    assert_eq!(call("jsonb_array_element_text", &[(oids::JSONB, "12"), (oids::INT4, "1")], oids::TEXT), "NULL");
    assert_eq!(call("json_array_element_text", &[(oids::JSON, "12"), (oids::INT4, "0")], oids::TEXT), "NULL");
}

#[test]
fn several_keys_are_looked_for_at_once() {
    let exists = |any, json, keys| {
        let source = if any { "jsonb_exists_any" } else { "jsonb_exists_all" };
        call(source, &[(oids::JSONB, json), (oids::TEXT_ARRAY, keys)], oids::BOOL)
    };
    for (json, keys, any, all) in [
        ("[\"a\", 1, \"b\"]", "{b,c}", "t", "f"),
        ("[\"a\", 1, \"b\"]", "{b,NULL,a}", "t", "t"),
        ("[\"a\", 1]", "{1,c}", "f", "f"),
        ("[\"a\"]", "{}", "f", "t"),
        ("[\"a\"]", "{a}", "t", "t"),
        ("{\"a\": 1, \"b\": 2}", "{b,c}", "t", "f"),
        ("\"a\"", "{a,b}", "t", "f"),
    ] {
        assert_eq!((&*exists(true, json, keys), &*exists(false, json, keys)), (any, all), "{json} {keys}");
    }
}

/// The product of their lengths would take minutes.
#[test]
fn many_keys_are_found_in_a_long_array() {
    let json = format!("[{}]", vec!["1"; 100_000].join(","));
    let keys = format!("{{{}}}", vec!["a"; 100_000].join(","));
    let start = std::time::Instant::now();
    assert_eq!(call("jsonb_exists_any", &[(oids::JSONB, &json), (oids::TEXT_ARRAY, &keys)], oids::BOOL), "f");
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}

/// A cancel request also ends a running containment test.
#[test]
fn a_containment_can_be_interrupted() {
    struct Raised;
    impl melba_types::limits::Interruptible for Raised {
        fn check(&self) -> melba_types::Result<()> {
            Err(melba_types::err!(QUERY_CANCELED, "canceling statement due to user request"))
        }
    }
    // Short enough to be read without a look.
    let array = |of: &str| format!("[{}]", vec![of; 300].join(","));
    let args = [(oids::JSONB, &*array("1")), (oids::JSONB, &*array("2"))];
    melba_types::limits::run(std::sync::Arc::new(Raised), || {
        assert_eq!(call("jsonb_array_length", &args[..1], oids::INT4), "300");
        assert_eq!(call("jsonb_contains", &args, oids::BOOL), "57014 canceling statement due to user request");
    });
}

#[test]
fn edits_follow_paths() {
    let set = |target, path, new, create| {
        let args = [(oids::JSONB, target), (oids::TEXT_ARRAY, path), (oids::JSONB, new), (oids::BOOL, create)];
        call("jsonb_set", &args, oids::JSONB)
    };
    assert_eq!(set("{\"a\":[1,2]}", "{a,-1}", "9", "t"), "{\"a\": [1, 9]}");
    assert_eq!(set("{\"a\":[1,2]}", "{a,7}", "9", "t"), "{\"a\": [1, 2, 9]}");
    assert_eq!(set("{\"a\":[1,2]}", "{b}", "9", "f"), "{\"a\": [1, 2]}");
    assert_eq!(set("{\"a\":[1,2]}", "{a,x}", "9", "t"), "22P02 path element at position 2 is not an integer: \"x\"");
    assert_eq!(set("1", "{a}", "9", "t"), "22023 cannot set path in scalar");
    let concat = |a, b| call("jsonb_concat", &[(oids::JSONB, a), (oids::JSONB, b)], oids::JSONB);
    assert_eq!(concat("{\"a\":1,\"b\":2}", "{\"b\":3}"), "{\"a\": 1, \"b\": 3}");
    assert_eq!(concat("{\"a\":1}", "[2]"), "[{\"a\": 1}, 2]");
}

#[test]
fn values_become_json() {
    let json = |ty, text| call("to_json", &[(ty, text)], oids::JSON);
    assert_eq!(json(oids::TIMESTAMPTZ, "2014-05-28 12:22:35.614298+00"), "\"2014-05-28T12:22:35.614298+00:00\"");
    assert_eq!(json(oids::FLOAT8, "NaN"), "\"NaN\"");
    assert_eq!(json(oids::INT4_ARRAY, "{{1,2},{3,NULL}}"), "[[1,2],[3,null]]");
    assert_eq!(json(oids::TEXT, "a\"b"), "\"a\\\"b\"");
}
