//! The bytes of a jsonb value in PostgreSQL, as they are compressed: a header per container, an entry per child, the children's bytes.

use serde_json::Value;

/// Every so manieth entry has its child's offset instead of its length.
const STRIDE: usize = 32;
const IS_OBJECT: u32 = 0x2000_0000;
const IS_ARRAY: u32 = 0x4000_0000;
const IS_SCALAR: u32 = 0x1000_0000;
const HAS_OFFSET: u32 = 0x8000_0000;
const NUMERIC: u32 = 0x1000_0000;
const FALSE: u32 = 0x2000_0000;
const TRUE: u32 = 0x3000_0000;
const NULL: u32 = 0x4000_0000;
const CONTAINER: u32 = 0x5000_0000;

/// The value without its length; `None` when the text is no JSON.
pub fn encode(text: &[u8]) -> Option<Vec<u8>> {
    let value: Value = serde_json::from_slice(text).ok()?;
    let mut out = Vec::new();
    match &value {
        Value::Array(_) | Value::Object(_) => container(&value, &mut out),
        scalar => children(1 | IS_ARRAY | IS_SCALAR, &[Child::Value(scalar)], &mut out),
    }
    Some(out)
}

enum Child<'a> {
    Key(&'a str),
    Value(&'a Value),
}

fn container(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            let each: Vec<Child> = items.iter().map(Child::Value).collect();
            children(items.len() as u32 | IS_ARRAY, &each, out);
        }
        Value::Object(pairs) => {
            // Keys by length, then by bytes; all of them, then all values.
            let mut sorted: Vec<(&String, &Value)> = pairs.iter().collect();
            sorted.sort_by_key(|(key, _)| (key.len(), key.as_bytes()));
            let keys = sorted.iter().map(|(key, _)| Child::Key(key));
            let each: Vec<Child> = keys.chain(sorted.iter().map(|(_, value)| Child::Value(value))).collect();
            children(pairs.len() as u32 | IS_OBJECT, &each, out);
        }
        _ => {}
    }
}

fn children(header: u32, each: &[Child], out: &mut Vec<u8>) {
    out.extend_from_slice(&header.to_le_bytes());
    let entries = out.len();
    out.resize(entries + 4 * each.len(), 0);
    let start = out.len();
    for (at, child) in each.iter().enumerate() {
        let before = out.len();
        let kind = match child {
            Child::Key(key) => string(key, out),
            Child::Value(Value::String(text)) => string(text, out),
            Child::Value(Value::Null) => NULL,
            Child::Value(Value::Bool(true)) => TRUE,
            Child::Value(Value::Bool(false)) => FALSE,
            Child::Value(Value::Number(number)) => numeric(&number.to_string(), out),
            Child::Value(value) => {
                align(out);
                container(value, out);
                CONTAINER
            }
        };
        let entry = match at % STRIDE {
            0 => kind | HAS_OFFSET | (out.len() - start) as u32,
            _ => kind | (out.len() - before) as u32,
        };
        out[entries + 4 * at..entries + 4 * at + 4].copy_from_slice(&entry.to_le_bytes());
    }
}

fn string(text: &str, out: &mut Vec<u8>) -> u32 {
    out.extend_from_slice(text.as_bytes());
    0
}

fn align(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A numeric's short form: a length, a header, groups of four digits. Signs and exponents change no length that matters.
fn numeric(text: &str, out: &mut Vec<u8>) -> u32 {
    align(out);
    let (whole, fraction) = text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
    let whole = whole.trim_start_matches('0');
    let padded = format!("{}{whole}{fraction}", "0".repeat(whole.len().next_multiple_of(4) - whole.len()));
    let digits: String = padded.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    let groups: Vec<u16> = digits
        .as_bytes()
        .chunks(4)
        .map(|group| group.iter().chain([b'0'; 4].iter()).take(4).fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
        .collect();
    let bytes = 4 + 2 + 2 * groups.len() as u32;
    out.extend_from_slice(&(bytes << 2).to_le_bytes());
    out.extend_from_slice(&(0x8000 | (fraction.len() as u16) << 7).to_le_bytes());
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_le_bytes()));
    NUMERIC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_postgresqls() {
        // pg_column_size of PostgreSQL 18, less the length in front.
        let measured =
            [("{}", 4), ("[1, 2]", 28), ("{\"a\": 1}", 24), ("\"abc\"", 11), ("{\"ab\": [true, null], \"c\": 12345.5}", 48)];
        for (text, bytes) in measured {
            assert_eq!(encode(text.as_bytes()).unwrap().len(), bytes, "{text}");
        }
        assert_eq!(encode(b"{"), None);
    }
}
