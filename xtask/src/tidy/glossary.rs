//! The glossary and the code agree.
//!
//! 1. A path that an entry of docs/GLOSSARY.md names exists: its crate, its modules, its type.
//! 2. The name of a public type in each of three or more crates of the server is a word with several meanings, so the glossary has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::read;

const GLOSSARY: &str = "docs/GLOSSARY.md";
/// Programs beside the server: their words meet nobody else's.
const PROGRAMS: &[&str] =
    &["advise", "backup", "dump", "lab", "powercut", "shell", "sim", "simsql", "slowdisk", "testkit", "workload"];
/// Crates that may define a name before it needs an entry.
const CRATES_MAX: usize = 2;

pub fn check(root: &Path, files: &[(String, String)], problems: &mut Vec<String>) -> Result<(), String> {
    let text = read(&root.join(GLOSSARY))?;
    let types = types(files);
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
fn types(files: &[(String, String)]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut types: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in files {
        let Some((krate, _)) = path.strip_prefix("crates/").and_then(|p| p.split_once("/src/")) else { continue };
        for line in text.lines().map(str::trim_start).filter(|line| line.starts_with("pub ")) {
            let mut tokens = line.split_whitespace().skip_while(|t| !["struct", "enum", "trait", "type"].contains(t)).skip(1);
            // A `pub fn` that mentions one of these words has a name in lower case behind it.
            let name = tokens.next().and_then(|name| name.split(|c: char| !c.is_alphanumeric()).next());
            if let Some(name) = name.filter(|name| name.starts_with(char::is_uppercase)) {
                types.entry(name).or_default().insert(krate);
            }
        }
    }
    types
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
