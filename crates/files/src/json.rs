//! Files of JSON: an object in a line for each row, or one array of objects. Values are kept as they are written: a number loses no digit.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, ErrorKind};

use serde::de::{Deserialize, DeserializeSeed, Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{Result, check_columns};

/// A row: names and the texts of their values, as they come.
pub struct Object<'a>(pub Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Object<'de>, M::Error> {
                let mut fields: Vec<(Cow<str>, Cow<RawValue>)> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value = map.next_value::<Box<RawValue>>()?;
                    // Of two values of a name the last one counts, as in jsonb.
                    fields.retain(|(other, _)| *other != name);
                    fields.push((Cow::Owned(name), Cow::Owned(value)));
                    check_columns(fields.len()).map_err(M::Error::custom)?;
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// A value of JSON.
pub enum Value<'a> {
    Null,
    String(Cow<'a, str>),
    /// Anything else, as it is written.
    Other(&'a str),
}

impl<'a> Value<'a> {
    pub fn of(raw: &'a RawValue) -> Result<Value<'a>> {
        let text = raw.get().trim();
        Ok(match text.as_bytes().first() {
            Some(b'"') => Value::String(Cow::Owned(serde_json::from_str(text).map_err(|e| e.to_string())?)),
            Some(b'n') => Value::Null,
            _ => Value::Other(text),
        })
    }
}

/// Calls a function for each row, with the line where it begins, from 1, or its number in an array.
///
/// # Errors
/// Invalid JSON, and errors of the function, with their place.
pub fn rows(mut reader: impl BufRead, each: &mut dyn FnMut(u64, &Object) -> Result<()>) -> Result<()> {
    let mut number = 0;
    // Empty lines before the first row.
    loop {
        let buffered = reader.fill_buf().map_err(|e| e.to_string())?;
        match buffered.first() {
            Some(b'[') => return array(reader, each),
            Some(byte) if byte.is_ascii_whitespace() => {
                number += u64::from(*byte == b'\n');
                reader.consume(1);
            }
            _ => break,
        }
    }
    let mut lines = JsonLines { reader, number, line: Vec::new() };
    while let Some((number, object)) = lines.read()? {
        each(number, &object).map_err(|e| format!("line {number}: {e}"))?;
    }
    Ok(())
}

/// Objects in lines.
pub struct JsonLines<R> {
    reader: R,
    /// Lines that have been read.
    number: u64,
    line: Vec<u8>,
}

impl<R: BufRead> JsonLines<R> {
    pub fn new(reader: R) -> JsonLines<R> {
        JsonLines { reader, number: 0, line: Vec::new() }
    }

    /// The next object, with its line; `None` at the end.
    ///
    /// # Errors
    /// Invalid JSON, with its line, and errors of the system.
    pub fn read(&mut self) -> Result<Option<(u64, Object<'_>)>> {
        loop {
            self.line.clear();
            match self.reader.read_until(b'\n', &mut self.line) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e.to_string()),
            }
            self.number += 1;
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let number = self.number;
        let object = serde_json::from_slice::<Object>(&self.line).map_err(|e| format!("line {number}: {}", in_line(&e)))?;
        Ok(Some((number, object)))
    }
}

/// Without its line, which is always the first.
fn in_line(e: &serde_json::Error) -> String {
    let text = e.to_string();
    let words = text.split(" at line ").next().unwrap_or_default();
    format!("{words} (column {})", e.column())
}

fn array(reader: impl BufRead, each: &mut dyn FnMut(u64, &Object) -> Result<()>) -> Result<()> {
    struct Elements<'f>(&'f mut dyn FnMut(u64, &Object) -> Result<()>);
    impl<'de> Visitor<'de> for Elements<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an array of objects")
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> std::result::Result<(), S::Error> {
            let mut number = 0;
            while let Some(object) = elements.next_element::<Object>()? {
                number += 1;
                (self.0)(number, &object).map_err(|e| S::Error::custom(format!("element {number}: {e}")))?;
            }
            Ok(())
        }
    }
    impl<'de> DeserializeSeed<'de> for Elements<'_> {
        type Value = ();

        fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
            deserializer.deserialize_seq(self)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    deserializer.deserialize_seq(Elements(each)).and_then(|()| deserializer.end()).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>> {
        let mut all = Vec::new();
        rows(text.as_bytes(), &mut |line, object| {
            let fields = object.0.iter().map(|(name, value)| format!("{name}={}", value.get()));
            all.push(format!("{line}: {}", fields.collect::<Vec<_>>().join(" ")));
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn rows_are_lines_or_elements_and_keep_their_digits() {
        let lines = "\n{\"a\": 1.10, \"b\": {\"c\": [1, 2]}}\n\n {\"b\": null, \"a\": 12345678901234567890123, \"b\": \"x\"}";
        assert_eq!(
            read(lines),
            Ok(["2: a=1.10 b={\"c\": [1, 2]}", "4: a=12345678901234567890123 b=\"x\""].map(str::to_owned).to_vec())
        );
        let array = " [\n{\"a\": 1},\n{\n\"a\": 2.0}]\n";
        assert_eq!(read(array), Ok(["1: a=1", "2: a=2.0"].map(str::to_owned).to_vec()));
        assert_eq!(read(""), Ok(Vec::new()));
    }

    #[test]
    fn errors_know_their_line() {
        let error = read("{\"a\": 1}\n{\"a\": }\n").expect_err("it is wrong");
        assert!(error.starts_with("line 2: expected value"), "{error}");
        let error = read("{\"a\": 1}\n[1]\n").expect_err("it is wrong");
        assert!(error.starts_with("line 2: invalid type: sequence, expected an object"), "{error}");
        let error = read("[{\"a\": 1}, 2]").expect_err("it is wrong");
        assert!(error.contains("expected an object"), "{error}");
        let many: Vec<String> = (0..1601).map(|at| format!("\"k{at}\": 1")).collect();
        let object = |keys: usize| read(&format!("{{{}}}", many[..keys].join(", ")));
        let error = object(1601).expect_err("it has too many");
        assert!(error.starts_with("line 1: it has more than 1600 columns") && object(1600).is_ok(), "{error}");
    }
}
