use super::*;

fn stored(text: &str) -> Vec<u8> {
    JsonbValue::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).to_bytes().expect("is small")
}

fn text(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write(Json::root(bytes), &mut out).expect("short");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn text_is_normalized() {
    assert_eq!(
        text(&stored("{\"bb\":1.10, \"a\":[true,null,\"x\\n\"], \"c\":{}, \"a\":[1,{\"z\":-0.5e3}]}")),
        "{\"a\": [1, {\"z\": -500}], \"c\": {}, \"bb\": 1.10}"
    );
}

#[test]
fn values_are_found_without_decoding_others() {
    let long = "x".repeat(70_000);
    let bytes = stored(&format!("{{\"a\":[10,20,30],\"long\":\"{long}\",\"z\":{{\"k\":\"v\"}}}}"));
    let root = Json::root(&bytes);
    assert_eq!(text(&root.field("a").and_then(|a| a.index(-1)).expect("there").to_bytes()), "30");
    assert_eq!(text(&root.field("z").and_then(|z| z.field("k")).expect("there").to_bytes()), "\"v\"");
    assert!(root.field("zz").is_none() && root.index(0).is_none());
    assert_eq!(JsonbValue::from_json(root).to_bytes().expect("is small"), bytes);
}

#[test]
fn the_format_is_as_documented() {
    assert_eq!(stored("[\"a\",null]"), [1, 5, 2, 2, 3, 4, b'a', 0]);
    assert_eq!(stored("{\"k\":true}"), [1, 6, 1, 1, 1, b'k', 2]);
}

#[test]
fn damaged_bytes_do_not_panic() {
    let bytes = stored("{\"a\":[1,2,{\"b\":\"c\"}],\"d\":1.5}");
    for at in 0..bytes.len() {
        for value in [0, 1, 5, 6, 7, 13, 14, 22, 255] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            text(&damaged);
            text(&damaged[..at]);
        }
    }
}

#[test]
fn order_and_containment() {
    // PostgreSQL 18's order.
    let ordered = [
        "[]",
        "null",
        "\"a\"",
        "\"b\"",
        "-1",
        "1",
        "1.5",
        "false",
        "true",
        "[0]",
        "[1]",
        "[0, 0]",
        "{}",
        "{\"a\": 1}",
        "{\"b\": 0}",
    ];
    let keys: Vec<Vec<u8>> = ordered
        .iter()
        .map(|text| {
            let mut key = Vec::new();
            sort_key(&stored(text), &mut key);
            key
        })
        .collect();
    assert!(keys.windows(2).all(|w| w[0] < w[1]));
    let contains = |a: &str, b: &str| super::contains(Json::root(&stored(a)), Json::root(&stored(b))).expect("is short");
    assert!(contains("{\"a\":[1,2,{\"x\":1,\"y\":2}]}", "{\"a\":[{\"x\":1.0}]}"));
    assert!(contains("[1,2]", "1") && !contains("[[1,2]]", "1") && !contains("1", "[1]"));
    assert!(!contains("[[1]]", "[1]"));
}
