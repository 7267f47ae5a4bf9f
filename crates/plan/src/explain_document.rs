//! EXPLAIN in machine-readable formats: properties in groups, written as JSON, XML or YAML, byte by byte as PostgreSQL does.

use std::fmt::Write;

/// FORMAT, except text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Xml,
    Yaml,
}

pub type Group = Vec<(String, PropertyValue)>;

/// The value of a property.
#[derive(Clone, Debug)]
pub enum PropertyValue {
    Text(String),
    /// As it is: a number, true, false.
    Plain(String),
    Texts(Vec<String>),
    Group(Group),
    /// Groups of a kind, which XML names.
    Groups(&'static str, Vec<Group>),
}

impl PropertyValue {
    pub fn text(text: impl Into<String>) -> PropertyValue {
        PropertyValue::Text(text.into())
    }

    pub fn plain(value: impl ToString) -> PropertyValue {
        PropertyValue::Plain(value.to_string())
    }
}

/// The whole answer; `None`: the statement has no plan.
pub fn write(format: Format, query: Option<&Group>) -> String {
    let mut out = String::new();
    match (format, query) {
        (Format::Json, Some(query)) => {
            out.push_str("[\n  ");
            json_group(query, 1, &mut out);
            out.push_str("\n]");
        }
        (Format::Xml, Some(query)) => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n");
            query.iter().for_each(|(key, value)| xml(key, value, 2, &mut out));
            out.push_str("  </Query>\n</explain>");
        }
        (Format::Yaml, Some(query)) => {
            out.push_str("- ");
            yaml_group(query, 1, &mut out);
        }
        (Format::Json, None) => out.push_str("[\n  \"Utility Statement\"\n]"),
        (Format::Xml, None) => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Utility-Statement />\n</explain>");
        }
        (Format::Yaml, None) => out.push_str("- \"Utility Statement\""),
    }
    out
}

/// The properties of one object that stands for itself.
pub fn write_object(format: Format, object: &Group) -> String {
    let mut out = String::new();
    match format {
        Format::Json => json_group(object, 0, &mut out),
        Format::Xml => {
            out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n");
            object.iter().for_each(|(key, value)| xml(key, value, 1, &mut out));
            out.push_str("</explain>");
        }
        Format::Yaml => yaml_group(object, 0, &mut out),
    }
    out
}

fn indented(depth: usize) -> String {
    "  ".repeat(depth)
}

/// A string as JSON and YAML quote it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn json_group(group: &Group, depth: usize, out: &mut String) {
    out.push('{');
    for (i, (key, value)) in group.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\n{}{}: ", indented(depth + 1), quoted(key));
        match value {
            PropertyValue::Text(text) => out.push_str(&quoted(text)),
            PropertyValue::Plain(text) => out.push_str(text),
            PropertyValue::Texts(texts) => {
                let items: Vec<String> = texts.iter().map(|t| quoted(t)).collect();
                let _ = write!(out, "[{}]", items.join(", "));
            }
            PropertyValue::Group(inner) => json_group(inner, depth + 1, out),
            PropertyValue::Groups(_, groups) => {
                out.push('[');
                for (i, inner) in groups.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    let _ = write!(out, "{comma}\n{}", indented(depth + 2));
                    json_group(inner, depth + 2, out);
                }
                let _ = write!(out, "\n{}]", indented(depth + 1));
            }
        }
    }
    let _ = write!(out, "\n{}}}", indented(depth));
}

fn xml_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\r', "&#x0d;")
}

fn xml(key: &str, value: &PropertyValue, depth: usize, out: &mut String) {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let tag: String = key.chars().map(allowed).collect();
    let pad = indented(depth);
    if let PropertyValue::Text(text) | PropertyValue::Plain(text) = value {
        let _ = writeln!(out, "{pad}<{tag}>{}</{tag}>", xml_text(text));
        return;
    }
    let _ = writeln!(out, "{pad}<{tag}>");
    match value {
        PropertyValue::Texts(texts) => texts.iter().for_each(|text| {
            let _ = writeln!(out, "{pad}  <Item>{}</Item>", xml_text(text));
        }),
        PropertyValue::Group(inner) => inner.iter().for_each(|(key, value)| xml(key, value, depth + 1, out)),
        PropertyValue::Groups(kind, groups) => {
            groups.iter().for_each(|inner| xml(kind, &PropertyValue::Group(inner.clone()), depth + 1, out));
        }
        PropertyValue::Text(_) | PropertyValue::Plain(_) => {}
    }
    let _ = writeln!(out, "{pad}</{tag}>");
}

/// The first property continues the caller's line.
fn yaml_group(group: &Group, depth: usize, out: &mut String) {
    for (i, (key, value)) in group.iter().enumerate() {
        if i > 0 {
            let _ = write!(out, "\n{}", indented(depth));
        }
        let _ = write!(out, "{key}: ");
        match value {
            PropertyValue::Text(text) => out.push_str(&quoted(text)),
            PropertyValue::Plain(text) => out.push_str(text),
            PropertyValue::Texts(texts) => texts.iter().for_each(|text| {
                let _ = write!(out, "\n{}- {}", indented(depth + 1), quoted(text));
            }),
            PropertyValue::Group(inner) => {
                let _ = write!(out, "\n{}", indented(depth + 1));
                yaml_group(inner, depth + 1, out);
            }
            PropertyValue::Groups(_, groups) => groups.iter().for_each(|inner| {
                let _ = write!(out, "\n{}- ", indented(depth + 1));
                yaml_group(inner, depth + 2, out);
            }),
        }
    }
}

/// Parts of a list that stand between commas outside of parentheses and quotes.
pub fn list_items(list: &str) -> Vec<String> {
    let (mut depth, mut quote, mut items) = (0, None, vec![String::new()]);
    for c in list.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(c),
            ('(' | '[', None) => depth += 1,
            (')' | ']', None) => depth -= 1,
            (',', None) if depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(item) = items.last_mut()
            && !(item.is_empty() && c == ' ')
        {
            item.push(c);
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query() -> Group {
        let scan = |name: &str| {
            vec![("Node Type".into(), PropertyValue::text(name)), ("Parallel Aware".into(), PropertyValue::plain(false))]
        };
        let mut plan = scan("Sort");
        plan.push(("Sort Key".into(), PropertyValue::Texts(list_items("a, f(b, c) DESC, ('x, \"y'::text)"))));
        plan.push(("I/O & <more>".into(), PropertyValue::text("a < \"b\" & c")));
        plan.push(("Plans".into(), PropertyValue::Groups("Plan", vec![scan("Seq Scan"), scan("Hash")])));
        vec![
            ("Plan".into(), PropertyValue::Group(plan)),
            ("Planning Time".into(), PropertyValue::plain("0.125")),
            ("Triggers".into(), PropertyValue::Groups("Trigger", vec![])),
        ]
    }

    #[test]
    fn formats_are_written_as_postgresql_writes_them() {
        let json = r#"[
  {
    "Plan": {
      "Node Type": "Sort",
      "Parallel Aware": false,
      "Sort Key": ["a", "f(b, c) DESC", "('x, \"y'::text)"],
      "I/O & <more>": "a < \"b\" & c",
      "Plans": [
        {
          "Node Type": "Seq Scan",
          "Parallel Aware": false
        },
        {
          "Node Type": "Hash",
          "Parallel Aware": false
        }
      ]
    },
    "Planning Time": 0.125,
    "Triggers": [
    ]
  }
]"#;
        assert_eq!(write(Format::Json, Some(&query())), json);
        let xml = r#"<explain xmlns="http://www.postgresql.org/2009/explain">
  <Query>
    <Plan>
      <Node-Type>Sort</Node-Type>
      <Parallel-Aware>false</Parallel-Aware>
      <Sort-Key>
        <Item>a</Item>
        <Item>f(b, c) DESC</Item>
        <Item>('x, "y'::text)</Item>
      </Sort-Key>
      <I-O----more->a &lt; "b" &amp; c</I-O----more->
      <Plans>
        <Plan>
          <Node-Type>Seq Scan</Node-Type>
          <Parallel-Aware>false</Parallel-Aware>
        </Plan>
        <Plan>
          <Node-Type>Hash</Node-Type>
          <Parallel-Aware>false</Parallel-Aware>
        </Plan>
      </Plans>
    </Plan>
    <Planning-Time>0.125</Planning-Time>
    <Triggers>
    </Triggers>
  </Query>
</explain>"#;
        assert_eq!(write(Format::Xml, Some(&query())), xml);
        let yaml = "- Plan: \n    Node Type: \"Sort\"\n    Parallel Aware: false\n    Sort Key: \n      - \"a\"\n      \
                    - \"f(b, c) DESC\"\n      - \"('x, \\\"y'::text)\"\n    I/O & <more>: \"a < \\\"b\\\" & c\"\n    Plans: \n      \
                    - Node Type: \"Seq Scan\"\n        Parallel Aware: false\n      - Node Type: \"Hash\"\n        \
                    Parallel Aware: false\n  Planning Time: 0.125\n  Triggers: ";
        assert_eq!(write(Format::Yaml, Some(&query())), yaml);
    }
}
