//! The handbook's configuration reference: the table of settings as Markdown. A test holds the page to the table;
//! `UPDATE=1 cargo test -p melba-settings reference` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::table::{Class, Context, Definition, Type, table};
use crate::value;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/handbook/configuration-reference.md");

const HEAD: &str = "# Configuration reference

Every setting that the server knows, by its effect. This page is generated from the table that the server uses
(`UPDATE=1 cargo test -p melba-settings reference`). [Configuration](configuration.md) says where settings are written and lists the few
that one starts with. PostgreSQL's manual describes those with PostgreSQL's names in full.

In psql, `select name, setting, extra_desc from pg_settings` shows the same for the running server.

";

/// The page.
fn page() -> String {
    let mut out = HEAD.to_owned();
    let count = |class| table().definitions.iter().filter(|d| d.class == class).count();
    out.push_str("| class | settings | what setting it does |\n|---|---:|---|\n");
    let classes = [
        (Class::Acts, "[acts](#settings-that-act)", "what it does in PostgreSQL, or, of Melba's own, what is described here"),
        (Class::Fixed, "[fixed](#fixed-settings)", "nobody can set it: it reports a fact"),
        (Class::Inert, "[inert](#inert-settings)", "any value is accepted and shown, and changes nothing"),
        (Class::Refused, "[refused](#refused-values)", "values that ask for what is not there are refused (0A000)"),
    ];
    for (class, name, effect) in classes {
        let _ = writeln!(out, "| {name} | {} | {effect} |", count(class));
    }
    acting(&mut out);
    out.push_str("\n## Fixed settings\n\n| setting | value | |\n|---|---|---|\n");
    for (d, default) in of(Class::Fixed) {
        let _ = writeln!(out, "| `{}` | {} | {} |", d.name, default, d.description);
    }
    out.push_str("\n## Inert settings\n\nA configuration file of PostgreSQL may keep these. They change nothing.\n");
    by_note(Class::Inert, &mut out);
    out.push_str("\n## Refused values\n\nThese have one value, or the few listed. Others are refused with SQLSTATE 0A000.\n");
    by_note(Class::Refused, &mut out);
    out
}

fn of(class: Class) -> impl Iterator<Item = (&'static Definition, String)> {
    let all = table().definitions.iter().zip(&table().defaults);
    all.filter(move |(d, _)| d.class == class).map(|(d, value)| (d, code(value::show(d, value))))
}

/// A section for each category, with a table.
fn acting(out: &mut String) {
    let mut sections: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (d, default) in of(Class::Acts) {
        let row = format!("| `{}` | {default} | {} | {} | {} |", d.name, range(d), when(d.context), d.description);
        sections.entry(d.category).or_default().push(row);
    }
    out.push_str("\n## Settings that act\n\n\"Set\" says when a value takes effect, and who may set it.\n");
    for (category, rows) in sections {
        let _ = write!(out, "\n### {category}\n\n| setting | default | values | set | |\n|---|---|---|---|---|\n");
        let _ = writeln!(out, "{}", rows.join("\n"));
    }
}

/// Names together that share a reason, the reasons with most names first.
fn by_note(class: Class, out: &mut String) {
    let mut notes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (d, default) in of(class) {
        let others: Vec<String> = d.accepted.split(',').filter(|o| !d.accepted.is_empty() && !o.is_empty()).map(code).collect();
        let name = match class {
            Class::Refused if others.is_empty() => format!("`{}` ({default})", d.name),
            Class::Refused => format!("`{}` ({default}; also {})", d.name, others.join(", ")),
            _ => format!("`{}`", d.name),
        };
        notes.entry(d.note).or_default().push(name);
    }
    let mut notes: Vec<(&str, Vec<String>)> = notes.into_iter().collect();
    notes.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    for (note, names) in notes {
        let _ = writeln!(out, "\n- {note}\n  {}", names.join(", "));
    }
}

fn code(text: impl AsRef<str>) -> String {
    let text = text.as_ref();
    if text.is_empty() { "empty".to_owned() } else { format!("`{text}`") }
}

fn range(d: &Definition) -> String {
    let bound = |text: &str| match text.parse() {
        Ok(number) => value::show(d, &value::Value::Integer(number)),
        Err(_) => text.to_owned(),
    };
    match d.ty {
        Type::Bool => "on, off".to_owned(),
        Type::Integer if d.max == "2147483647" => format!("from {}", bound(d.min)),
        Type::Integer => format!("{} to {}", bound(d.min), bound(d.max)),
        Type::Real => format!("{}{unit} to {}{unit}", d.min, d.max, unit = d.unit),
        Type::Enum => d.options().filter(|o| !o.is_empty()).collect::<Vec<_>>().join(", "),
        Type::Text => "text".to_owned(),
    }
}

fn when(context: Context) -> &'static str {
    match context {
        Context::Internal => "never",
        Context::Postmaster => "at the start",
        Context::Sighup => "by a reload",
        Context::SuperuserBackend => "by a connection, superusers",
        Context::Backend => "by a connection",
        Context::Superuser => "at any time, superusers",
        Context::User => "at any time",
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a page of the repository, read and written by a test")]
fn the_configuration_reference_is_current() {
    let page = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PAGE, &page).expect("the handbook is beside the crates");
    }
    let kept = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(kept == page, "the page differs from the table: UPDATE=1 cargo test -p melba-settings reference");
}
