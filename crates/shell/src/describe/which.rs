//! Parses which list is requested, and in what form.

use melba_client::ResultColumn;

/// A command of this family, without the letters for more.
pub struct Which<'a> {
    pub name: &'a str,
    pub with_system: bool,
    /// `+`.
    pub is_verbose: bool,
}

pub fn parse(name: &str) -> Which<'_> {
    let short = name.trim_end_matches(['+', 'S']);
    let more = &name[short.len()..];
    Which { name: short, with_system: more.contains('S'), is_verbose: more.contains('+') }
}

/// A result with a display form of its own.
pub struct Listing {
    pub title: String,
    pub columns: Vec<ResultColumn>,
    pub rows: Vec<Vec<Option<String>>>,
    /// Of a relation; a list has the number of its rows.
    pub footers: Option<Vec<String>>,
}
