//! Reading the seed files: PostgreSQL's COPY text format with a header line.

use std::cell::Cell;
use std::sync::Arc;

use melba_types::Oid;

use crate::objects::{Acl, AclItem};

/// One seed file.
pub(crate) struct Seed {
    columns: Vec<&'static str>,
    body: &'static str,
}

/// Embeds `seed/NAME.tsv`.
macro_rules! seed {
    ($name:literal) => {
        $crate::seed::Seed::new(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/seed/", $name, ".tsv")))
    };
}
pub(crate) use seed;

impl Seed {
    pub(crate) fn new(text: &'static str) -> Seed {
        let (header, body) = text.split_once('\n').unwrap_or((text, ""));
        Seed { columns: header.split('\t').collect(), body }
    }

    /// The place of a column; tests check the loaders' names by loading everything.
    ///
    /// # Panics
    /// When the file has no such column.
    pub(crate) fn column(&self, name: &str) -> usize {
        self.columns.iter().position(|c| *c == name).unwrap_or_else(|| panic!("seed has no column {name}"))
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.body.lines().map(|line| Row { seed: self, fields: line.split('\t').collect(), next: Cell::new(0) })
    }
}

/// One row of a seed.
pub(crate) struct Row<'a> {
    seed: &'a Seed,
    fields: Vec<&'static str>,
    /// Loaders read the columns in the file's order: where to search first.
    next: Cell<usize>,
}

impl Row<'_> {
    pub(crate) fn optional(&self, name: &str) -> Option<&'static str> {
        let next = self.next.get();
        let at = if self.seed.columns.get(next) == Some(&name) { next } else { self.seed.column(name) };
        self.next.set(at + 1);
        Some(self.fields[at]).filter(|f| *f != "\\N")
    }

    pub(crate) fn str(&self, name: &str) -> &'static str {
        self.optional(name).unwrap_or("")
    }

    /// Text in which COPY escaped backslashes, tabs or newlines.
    pub(crate) fn text(&self, name: &str) -> Arc<str> {
        unescape(self.str(name)).into()
    }

    pub(crate) fn oid(&self, name: &str) -> Oid {
        Oid(self.number(name))
    }

    pub(crate) fn number<T: std::str::FromStr + Default>(&self, name: &str) -> T {
        self.str(name).parse().unwrap_or_default()
    }

    pub(crate) fn bool(&self, name: &str) -> bool {
        self.str(name) == "t"
    }

    pub(crate) fn char(&self, name: &str) -> u8 {
        self.str(name).bytes().next().unwrap_or(0)
    }

    /// An oidvector, or an array of OIDs.
    pub(crate) fn oids(&self, name: &str) -> Vec<Oid> {
        self.numbers(name).into_iter().map(Oid).collect()
    }

    /// A vector or an array of numbers.
    pub(crate) fn numbers<T: std::str::FromStr>(&self, name: &str) -> Vec<T> {
        let list = self.str(name).trim_matches(['{', '}']);
        list.split([' ', ',']).filter_map(|n| n.parse().ok()).collect()
    }

    /// A text array.
    pub(crate) fn texts(&self, name: &str) -> Vec<Arc<str>> {
        self.optional(name).map(|t| array_elements(&unescape(t))).unwrap_or_default()
    }

    pub(crate) fn acl(&self, name: &str, role: impl Fn(&str) -> Oid) -> Acl {
        let items = self.optional(name)?;
        Some(items.trim_matches(['{', '}']).split(',').filter_map(|item| AclItem::parse(item, &role)).collect())
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

/// The elements of a one-dimensional array without nulls in its text form.
pub(crate) fn array_elements(text: &str) -> Vec<Arc<str>> {
    let mut out = Vec::new();
    let mut chars = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or("").chars().peekable();
    while chars.peek().is_some() {
        let mut element = String::new();
        let mut quoted = false;
        while let Some(c) = chars.next() {
            match c {
                '"' => quoted = !quoted,
                '\\' => element.extend(chars.next()),
                ',' if !quoted => break,
                c => element.push(c),
            }
        }
        out.push(element.into());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_with_quotes() {
        let got = array_elements(r#"{a,"b,\"c\"",""}"#);
        assert_eq!(got.iter().map(|s| &**s).collect::<Vec<_>>(), ["a", "b,\"c\"", ""]);
    }
}
