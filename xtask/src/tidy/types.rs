//! Names of types, and the files of their methods.
//!
//! 1. A name stands for one type. Two types are in sight of each other when they are in one crate, or when one is public and the
//!    other's crate uses its crate. `xtask/names.txt` lists the names of several types in sight, and how many.
//! 2. A type's own methods stand in at most five files; `xtask/impls.txt` lists the types whose methods stand in more.
//!
//! Private types count: a search for a name finds them too. Figures of both lists may only fall.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::graph::{module_of, product_code};
use super::{ceilings, our_dependencies, read};

const NAMES: &str = "xtask/names.txt";
const NAMES_HEAD: &str = "# Names that stand for several types in sight of each other. Figures may only fall.\n";
const IMPLS: &str = "xtask/impls.txt";
const IMPLS_HEAD: &str = "# Types whose own methods stand in more than five files. Figures may only fall.\n";
const FILES_MAX: usize = 5;

/// Where a type is defined, or has methods.
#[derive(Debug)]
pub struct Place<'a> {
    pub crate_name: &'a str,
    file: &'a str,
    pub public: bool,
    /// It only names another type.
    alias: bool,
}

pub fn check(root: &Path, files: &[(String, String)], problems: &mut Vec<String>) -> Result<(), String> {
    let code = code(files);
    let (names, impls) = (read(&root.join(NAMES))?, read(&root.join(IMPLS))?);
    let (names, impls) = (ceilings(&names), ceilings(&impls));
    for (name, places) in repeated(&definitions(&code), &dependencies(root, &code)?) {
        let ceiling = names.get(name).copied().unwrap_or(1);
        if places.len() > ceiling {
            let files: Vec<&str> = places.iter().map(|place| place.file).collect();
            problems.push(format!("{name}: {} types in sight, {NAMES} allows {ceiling}: {}", files.len(), files.join(" ")));
        }
    }
    for (name, files) in strewn(&code) {
        let ceiling = impls.get(name.as_str()).copied().unwrap_or(FILES_MAX);
        if files > ceiling {
            problems.push(format!("{name}: methods in {files} files, {IMPLS} allows {ceiling}"));
        }
    }
    Ok(())
}

/// Lowers the figures to the present values.
pub fn record(root: &Path, files: &[(String, String)]) -> Result<(), String> {
    let code = code(files);
    let definitions = definitions(&code);
    let names = repeated(&definitions, &dependencies(root, &code)?);
    write(root, NAMES, NAMES_HEAD, names.into_iter().map(|(name, places)| (name.to_owned(), places.len())))?;
    write(root, IMPLS, IMPLS_HEAD, strewn(&code))
}

fn write(root: &Path, list: &str, head: &str, now: impl IntoIterator<Item = (String, usize)>) -> Result<(), String> {
    let text = std::fs::read_to_string(root.join(list)).unwrap_or_default();
    let before = ceilings(&text);
    let lowered = now.into_iter().map(|(name, figure)| (before.get(name.as_str()).map_or(figure, |b| figure.min(*b)), name));
    let mut lowered: Vec<(usize, String)> = lowered.collect();
    lowered.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let lines = lowered.iter().map(|(figure, name)| format!("{figure} {name}\n"));
    std::fs::write(root.join(list), head.to_owned() + &lines.collect::<String>()).map_err(|e| format!("{list}: {e}"))
}

/// The files of the crates without tests: crate, path, code.
pub fn code(files: &[(String, String)]) -> Vec<(&str, &str, String)> {
    let of_crate = |path: &'_ str| -> Option<bool> {
        let (_, below) = path.strip_prefix("crates/")?.split_once("/src/")?;
        module_of(below).map(|_| true)
    };
    let files = files.iter().filter(|(path, _)| of_crate(path).is_some());
    let named = files.filter_map(|(path, text)| {
        let name = path.strip_prefix("crates/")?.split('/').next()?;
        Some((name, path.as_str(), product_code(text)))
    });
    named.collect()
}

/// By crate, the crates that it uses.
fn dependencies<'a>(root: &Path, code: &[(&'a str, &'a str, String)]) -> Result<BTreeMap<&'a str, BTreeSet<String>>, String> {
    let names: BTreeSet<&str> = code.iter().map(|(name, ..)| *name).collect();
    let used = names.into_iter().map(|name| {
        let manifest = read(&root.join(format!("crates/{name}/Cargo.toml")))?;
        Ok((name, our_dependencies(&manifest).into_iter().map(str::to_owned).collect()))
    });
    used.collect()
}

/// Types and traits by name.
pub fn definitions<'a>(code: &'a [(&'a str, &'a str, String)]) -> BTreeMap<&'a str, Vec<Place<'a>>> {
    let mut definitions: BTreeMap<&str, Vec<Place<'_>>> = BTreeMap::new();
    for (crate_name, file, text) in code {
        for line in text.lines() {
            let (public, declared) = match line.strip_prefix("pub") {
                Some(rest) => (rest.starts_with(' '), rest.split_once(' ').map_or("", |(_, rest)| rest)),
                None => (false, line),
            };
            let kinds = ["struct ", "enum ", "trait ", "unsafe trait ", "union ", "type "];
            let Some((kind, rest)) = kinds.iter().find_map(|kind| Some((kind, declared.strip_prefix(kind)?))) else { continue };
            let alias = *kind == "type ";
            definitions.entry(word(rest)).or_default().push(Place { crate_name, file, public, alias });
        }
    }
    definitions
}

fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// Definitions that see another of the same name, or are seen by it. Aliases are left out.
fn repeated<'a, 'd>(
    definitions: &'d BTreeMap<&'a str, Vec<Place<'a>>>,
    dependencies: &BTreeMap<&str, BTreeSet<String>>,
) -> Vec<(&'a str, Vec<&'d Place<'a>>)> {
    let sees = |from: &Place<'_>, to: &Place<'_>| {
        from.crate_name == to.crate_name
            || to.public && dependencies.get(from.crate_name).is_some_and(|used| used.contains(to.crate_name))
    };
    let in_sight = definitions.iter().map(|(name, places)| {
        let places: Vec<&Place<'_>> = places.iter().filter(|place| !place.alias).collect();
        let has_twin = |at: usize| {
            let mut others = places.iter().enumerate().filter(|(other, _)| *other != at);
            others.any(|(_, other)| sees(places[at], other) || sees(other, places[at]))
        };
        (*name, (0..places.len()).filter(|at| has_twin(*at)).map(|at| places[at]).collect::<Vec<_>>())
    });
    in_sight.filter(|(_, places)| places.len() > 1).collect()
}

/// `crate::Type` of those with own methods in too many files, and in how many.
fn strewn(code: &[(&str, &str, String)]) -> BTreeMap<String, usize> {
    let mut files: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (crate_name, file, text) in code {
        for name in text.lines().filter_map(implemented) {
            files.entry(format!("{crate_name}::{name}")).or_default().insert(file);
        }
    }
    files.into_iter().map(|(name, files)| (name, files.len())).filter(|(_, files)| *files > FILES_MAX).collect()
}

/// The type of a line that begins an `impl` without a trait.
fn implemented(line: &str) -> Option<&str> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '<') - i32::from(*c == '>');
            depth == 0
        });
        rest = &rest[end?.0 + 1..];
    }
    let rest = rest.trim_start();
    let is_of_trait = rest.split('{').next().is_some_and(|head| head.contains(" for "));
    let name = word(rest);
    (!is_of_trait && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_in_sight_are_those_of_a_crate_and_of_the_crates_it_uses() {
        let text = |t: &str| t.to_owned();
        let code = [
            ("low", "low.rs", text("pub struct A;\nstruct B<T>(T);\npub(crate) enum C {}\npub struct D;")),
            ("mid", "mid.rs", text("struct A;\nstruct B;\npub struct C;\n    struct D;")),
            ("top", "top.rs", text("struct A;\npub trait E {}")),
            ("top", "deep.rs", text("struct E;\npub type A = u8;")),
        ];
        let uses = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        let dependencies = BTreeMap::from([("low", uses(&[])), ("mid", uses(&["low"])), ("top", uses(&["mid"]))]);
        let definitions = definitions(&code);
        let repeated = repeated(&definitions, &dependencies);
        let names: Vec<(&str, usize)> = repeated.iter().map(|(name, places)| (*name, places.len())).collect();
        assert_eq!(names, [("A", 2), ("E", 2)]);
    }

    #[test]
    fn own_methods_are_told_from_those_of_traits() {
        assert_eq!(implemented("impl Rows {"), Some("Rows"));
        assert_eq!(implemented("impl<'a, T: Into<Vec<u8>>> Rows<'a, T> {"), Some("Rows"));
        assert_eq!(implemented("impl<T> Drop for Rows<T> {"), None);
        assert_eq!(implemented("    impl Rows {"), None);
    }
}
