//! Patterns of names: `*` and `?` as in a shell, `schema.name`, lower case except in double quotes.

use crate::scan::literal;

/// Regular expressions of a schema and a name; `None` matches all.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    schema: Option<String>,
    name: Option<String>,
}

impl Pattern {
    pub fn parse(text: &str) -> Pattern {
        let mut parts = vec![String::new()];
        let mut in_quotes = false;
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            let part = parts.last_mut().expect("there is always one");
            match c {
                '"' if in_quotes && characters.peek() == Some(&'"') => {
                    characters.next();
                    part.push('"');
                }
                '"' => in_quotes = !in_quotes,
                c if in_quotes && is_special(c) => part.extend(['\\', c]),
                c if in_quotes => part.push(c),
                '.' => parts.push(String::new()),
                '*' => part.push_str(".*"),
                '?' => part.push('.'),
                '$' => part.push_str("\\$"),
                c => part.extend(c.to_lowercase()),
            }
        }
        let mut wanted = parts.into_iter().rev().map(|part| Some(part).filter(|part| !part.is_empty() && part != ".*"));
        // A database before the schema can only be this one.
        let name = wanted.next().flatten();
        let schema = wanted.next();
        // A schema of all: names that are not visible, too.
        Pattern { name, schema: schema.map(|schema| schema.unwrap_or_else(|| ".*".to_owned())) }
    }

    pub fn is_empty(&self) -> bool {
        *self == Pattern::default()
    }

    /// A condition of SQL; without a schema objects must be visible.
    pub fn condition(&self, schema: &str, name: &str, is_visible: Option<&str>) -> String {
        let matches = |column: &str, pattern: &str| {
            format!("{column} OPERATOR(pg_catalog.~) {} COLLATE pg_catalog.default", literal(&format!("^({pattern})$")))
        };
        let mut conditions = Vec::new();
        conditions.extend(self.name.as_ref().map(|pattern| matches(name, pattern)));
        match (&self.schema, is_visible) {
            (Some(pattern), _) if pattern == ".*" => {}
            (Some(pattern), _) => conditions.push(matches(schema, pattern)),
            (None, Some(is_visible)) => conditions.push(is_visible.to_owned()),
            (None, None) => {}
        }
        if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") }
    }
}

fn is_special(c: char) -> bool {
    "|*+?()[]{}.^$\\".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_regular_expressions_of_schema_and_name() {
        let of = |text: &str| {
            let Pattern { schema, name } = Pattern::parse(text);
            (schema, name)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("Order*"), (None, some("order.*")));
        assert_eq!(of("s.\"A.b*\""), (some("s"), some("A\\.b\\*")));
        assert_eq!(of("*.t?"), (some(".*"), some("t.")));
        assert_eq!(of("db.s."), (some("s"), None));
        assert_eq!(of(""), (None, None));
        assert_eq!(
            Pattern::parse("t$").condition("n", "c", Some("v(c)")),
            "c OPERATOR(pg_catalog.~)  E'^(t\\\\$)$' COLLATE pg_catalog.default AND v(c)"
        );
        assert_eq!(Pattern::parse("*.*").condition("n", "c", Some("v(c)")), "true");
    }
}
