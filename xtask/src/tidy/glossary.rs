//! The glossary and the code agree.
//!
//! 1. A path that an entry of docs/GLOSSARY.md names exists: its crate, its modules, its type.
//! 2. The name of a public type in each of three or more crates of the server is a word with several meanings, so the glossary has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::read;
use super::types::{Place, code, definitions};

const GLOSSARY: &str = "docs/GLOSSARY.md";
/// Programs beside the server: their words meet nobody else's.
const PROGRAMS: &[&str] =
    &["advise", "backup", "dump", "lab", "powercut", "shell", "sim", "simsql", "slowdisk", "testkit", "workload"];
/// Crates that may define a name before it needs an entry.
const CRATES_MAX: usize = 2;

pub fn check(root: &Path, files: &[(String, String)], problems: &mut Vec<String>) -> Result<(), String> {
    let text = read(&root.join(GLOSSARY))?;
    let code = code(files);
    let types = public_types(&code);
    for path in paths(&text) {
        if !exists(path, files, &types) {
            problems.push(format!("{GLOSSARY}: `{path}` is not in the code"));
        }
    }
    let terms = terms(&text);
    for (name, crates) in &types {
        let crates: Vec<&str> = crates.iter().copied().filter(|c| !PROGRAMS.contains(c)).collect();
        if crates.len() > CRATES_MAX && !terms.contains(&words(name)) {
            problems.push(format!("{GLOSSARY} lacks \"{}\": {} define {name}", words(name), crates.join(", ")));
        }
    }
    Ok(())
}

/// Crates by the name of a type that they make public.
fn public_types<'a>(code: &'a [(&'a str, &'a str, String)]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let public = |places: Vec<Place<'a>>| places.into_iter().filter(|place| place.public).map(|place| place.crate_name).collect();
    let types = definitions(code).into_iter().map(|(name, places)| (name, public(places)));
    types.filter(|(_, crates): &(_, BTreeSet<&str>)| !crates.is_empty()).collect()
}

/// What entries give in code marks within the brackets behind their term.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let brackets = text.split("** (").skip(1).filter_map(|rest| rest.split(')').next());
    brackets.flat_map(|list| list.split('`').skip(1).step_by(2))
}

/// The words that the glossary explains, in bold or italics.
fn terms(text: &str) -> BTreeSet<String> {
    text.split('*').map(str::to_lowercase).collect()
}

/// `RowSource`: row source.
fn words(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}

fn exists(path: &str, files: &[(String, String)], types: &BTreeMap<&str, BTreeSet<&str>>) -> bool {
    let segments: Vec<&str> = path.split("::").collect();
    let last = segments.last().copied().unwrap_or_default();
    if last.starts_with(char::is_uppercase) {
        let Some(crates) = types.get(last).or_else(|| segments.len().checked_sub(2).and_then(|i| types.get(segments[i]))) else {
            return false;
        };
        return segments.len() == 1 || segments[0].starts_with(char::is_uppercase) || crates.contains(segments[0]);
    }
    let (krate, modules) = (segments[0], segments[1..].join("/"));
    let found = |place: String| files.iter().any(|(name, _)| *name == place);
    let base = format!("crates/{krate}/src");
    match modules.is_empty() {
        true => found(format!("{base}/lib.rs")) || found(format!("{base}/main.rs")),
        false => found(format!("{base}/{modules}.rs")) || found(format!("{base}/{modules}/mod.rs")),
    }
}
