//! Rules of the repository that no lint checks.
//!
//! 1. A crate depends on those of our crates that the table in ARCHITECTURE.md allows, and on no others.
//! 2. A file has at most 800 lines and a function 70, unless `xtask/long.txt` lists it; listed ones may only get shorter. A crate has at
//!    most 20,000 lines without its tests.
//! 3. Every module opens with `//!`.
//! 4. Forbidden words do not occur: ignored tests, paths of a developer's machine, vague subjects in comments.
//! 5. Modules of a crate name each other in the directions that ARCHITECTURE.md allows, and circles only shrink (`modules`).
//! 6. A type's name stands for one type, and its own methods in at most five files (`types`).
//! 7. The engine's threads share state, sleep, and start others only through the crate `threads`, where a model checker can
//!    replace the primitives and no wait begins without the scheduler.
//! 8. The glossary names what is in the code, and explains names of several types (`glossary`).
//! 9. Links between documents lead somewhere (`links`), and the handbook's diagrams are what their texts draw (`pictures`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod glossary;
mod graph;
mod links;
mod modules;
mod types;

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const CRATE_LINES_MAX: usize = 20_000;
const FORBIDDEN: &[&str] = &["#[ignore", "unimplemented!(", "/wor\u{6b}/", "/home/", "/root/"];

/// Words that a comment can always replace by a noun, or by n.
const VAGUE: &[&str] = &["whoever", "Whoever", " so many "];

/// The primitives that the engine's crates take from `threads`, and the files that use others.
const SYNC: &[&str] =
    &["parking_lot::", "std::sync::atomic", "arc_swap::", "thread::sleep", "thread::spawn", "thread::scope", "thread::Builder"];
const SYNC_CRATES: &[&str] = &["crates/engine/src/", "crates/locks/src/", "crates/store/src/", "crates/wal/src/"];
const OWN_SYNC: &[&str] = &["/tests", "/interleavings"];

pub fn check(root: &Path) -> Result<(), String> {
    let mut problems = Vec::new();
    dependencies(root, &mut problems)?;
    let files = sources(root)?;
    for (name, text) in &files {
        words(name, text, &mut problems);
        let is_engine = SYNC_CRATES.iter().any(|crates| name.starts_with(crates));
        if is_engine && !OWN_SYNC.iter().any(|own| name.contains(own)) {
            primitives(name, text, &mut problems);
        }
    }
    lengths(root, &files, &mut problems)?;
    crates(&files, &mut problems);
    modules::check(root, &files, &mut problems)?;
    types::check(root, &files, &mut problems)?;
    glossary::check(root, &files, &mut problems)?;
    links::check(root, &mut problems)?;
    crate::pictures::check(root, &mut problems)?;
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Writes the present lists of long files and functions, of circles and of names.
pub fn record(root: &Path) -> Result<(), String> {
    let files = sources(root)?;
    modules::record(root, &files)?;
    types::record(root, &files)?;
    let mut list =
        String::from("# Files over 800 lines and functions over 70, with their length. Entries may only shrink and go.\n");
    for (name, length) in long_items(&files) {
        list.push_str(&format!("{length} {name}\n"));
    }
    std::fs::write(root.join("xtask/long.txt"), list).map_err(|e| format!("xtask/long.txt: {e}"))
}

/// The figures of a list whose lines are `FIGURE NAME`, by name.
fn ceilings(list: &str) -> BTreeMap<&str, usize> {
    let entries = list.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(' '));
    entries.filter_map(|(figure, name)| Some((name, figure.parse().ok()?))).collect()
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Our Rust files by their path below the root, in order.
fn sources(root: &Path) -> Result<Vec<(String, String)>, String> {
    let mut pending = vec![root.join("crates"), root.join("xtask")];
    let mut files = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))? {
            let path: PathBuf = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    pending.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                files.push((name, read(&path)?));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn words(name: &str, text: &str, problems: &mut Vec<String>) {
    if !text.trim_start().starts_with("//!") && !name.ends_with("tests.rs") && !name.contains("/tests/") {
        problems.push(format!("{name}: does not open with a //! description"));
    }
    if name == "xtask/src/tidy.rs" {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = FORBIDDEN.iter().find(|w| line.contains(*w)) {
            problems.push(format!("{name}:{}: \"{word}\" must not stay", number + 1));
        }
        let comment = line.split_once("//").map_or("", |(_, comment)| comment);
        if let Some(word) = VAGUE.iter().find(|w| comment.contains(*w)) {
            problems.push(format!("{name}:{}: \"{}\" in a comment: name the subject, or the number", number + 1, word.trim()));
        }
    }
}

fn primitives(name: &str, text: &str, problems: &mut Vec<String>) {
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = SYNC.iter().find(|w| line.contains(*w)) {
            problems.push(format!("{name}:{}: {word} comes from melba_threads", number + 1));
        }
    }
}

/// Crates that are longer than allowed.
fn crates(files: &[(String, String)], problems: &mut Vec<String>) {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, text) in files {
        let below = name.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
        if let Some((name, path)) = below
            && !is_test(path)
        {
            *lines.entry(name).or_default() += code_lines(text);
        }
    }
    for (name, count) in lines.into_iter().filter(|(_, count)| *count > CRATE_LINES_MAX) {
        problems.push(format!("crates/{name}: {count} lines without tests; look for the part that stands alone"));
    }
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("tests/")
}

/// The lines of a file before its tests, which come last.
fn code_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let opens_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    lines.windows(2).position(opens_tests).unwrap_or(lines.len())
}

/// Items that are longer than allowed: files by name, functions as `file: name`.
fn long_items(files: &[(String, String)]) -> BTreeMap<String, usize> {
    let mut long = BTreeMap::new();
    for (name, text) in files {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            long.insert(name.clone(), lines.len());
        }
        for (function, length) in functions(&lines) {
            if length > FUNCTION_LINES_MAX {
                let entry = long.entry(format!("{name}: {function}")).or_insert(0);
                *entry = length.max(*entry);
            }
        }
    }
    long
}

/// Functions and their lengths. Relies on rustfmt: a body ends at a closing brace as deep as the line that starts it.
fn functions<'a>(lines: &[&'a str]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(name) = function_name(line.trim_start()) else { continue };
        let close = format!("{}}}", &line[..indent]);
        let end = lines[start..].iter().position(|l| *l == close || (l.starts_with(&line[..indent]) && l[indent..] == *";"));
        let one_line = line.trim_end().ends_with(['}', ';']);
        if let (Some(length), false) = (end, one_line) {
            found.push((name, length + 1));
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line;
    while let Some(shorter) = ["pub ", "pub(crate) ", "pub(super) ", "const ", "async ", "unsafe ", "extern \"C\" "]
        .iter()
        .find_map(|w| rest.strip_prefix(w))
    {
        rest = shorter;
    }
    let name = rest.strip_prefix("fn ")?;
    Some(&name[..name.find(|c: char| !c.is_alphanumeric() && c != '_')?])
}

fn lengths(root: &Path, files: &[(String, String)], problems: &mut Vec<String>) -> Result<(), String> {
    let list = read(&root.join("xtask/long.txt"))?;
    let allowed: BTreeMap<&str, usize> = list
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| l.split_once(' '))
        .filter_map(|(length, name)| Some((name, length.parse().ok()?)))
        .collect();
    let long = long_items(files);
    for (name, length) in &long {
        match allowed.get(name.as_str()) {
            None => problems.push(format!("{name}: {length} lines; look for the part that wants a name of its own")),
            Some(max) if length > max => problems.push(format!("{name}: grew from {max} to {length} lines")),
            Some(_) => {}
        }
    }
    for name in allowed.keys().filter(|n| !long.contains_key(**n)) {
        problems.push(format!("{name}: is short now; take it off xtask/long.txt"));
    }
    Ok(())
}

/// A table of ARCHITECTURE.md: lines `| name | names it may use |` between a heading and the next.
fn table(text: &str, heading: &str) -> BTreeMap<String, Vec<String>> {
    let lines = text.lines().skip_while(|l| *l != heading).skip(1);
    let rows = lines.take_while(|l| !l.starts_with('#')).filter(|l| l.starts_with('|') && !l.starts_with("|-"));
    let cell = |c: &str| c.trim().trim_matches('`').to_owned();
    rows.skip(1)
        .filter_map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
            let used = cells.get(1)?.split([',', ' ']).map(cell).filter(|d| !d.is_empty() && d != "-");
            Some((cell(cells[0]), used.collect()))
        })
        .collect()
}

fn dependencies(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let table = table(&read(&root.join("ARCHITECTURE.md"))?, "## Dependencies");
    let crates = root.join("crates");
    for entry in std::fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))? {
        let folder = entry.map_err(|e| e.to_string())?.path();
        let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let manifest = read(&folder.join("Cargo.toml"))?;
        let mut used: Vec<&str> = our_dependencies(&manifest);
        used.sort_unstable();
        let Some(allowed) = table.get(&name) else {
            problems.push(format!("ARCHITECTURE.md: the dependency table lacks the crate {name}"));
            continue;
        };
        let mut allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        allowed.sort_unstable();
        if used != allowed {
            problems.push(format!(
                "crates/{name}/Cargo.toml depends on {}, ARCHITECTURE.md says {}",
                used.join(", "),
                allowed.join(", ")
            ));
        }
    }
    Ok(())
}

/// `melba-*` of the section [dependencies], without the prefix.
fn our_dependencies(manifest: &str) -> Vec<&str> {
    let section = manifest.lines().skip_while(|l| *l != "[dependencies]").skip(1).take_while(|l| !l.starts_with('['));
    section.filter_map(|l| l.strip_prefix("melba-")?.split(['.', ' ', '=']).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured() {
        let text = "impl X {\n    pub(crate) fn a() {\n        1\n    }\n    fn b(\n        x: u8,\n    ) {\n    }\n}\nfn c() {}\nfn d() {\n}";
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(functions(&lines), [("a", 3), ("b", 4), ("d", 2)]);
    }

    #[test]
    fn lines_of_a_crate_leave_out_its_tests() {
        assert_eq!(code_lines("//! x\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n"), 3);
        assert_eq!(code_lines("#[cfg(test)]\nmod tests;\n"), 2);
        assert!(is_test("session/tests/seen.rs") && is_test("files_tests.rs") && !is_test("session/mod.rs"));
    }

    #[test]
    fn the_table_is_read() {
        let text = "# X\n## Dependencies\ntext\n\n| crate | uses |\n|---|---|\n| `types` | - |\n| `wal` | `types`, `vfs` |\n\n## Y\n| a | b |";
        let table = table(text, "## Dependencies");
        assert_eq!(table.len(), 2);
        assert_eq!(table["wal"], ["types", "vfs"]);
        assert!(table["types"].is_empty());
        assert_eq!(
            our_dependencies("[dependencies]\nmelba-types.workspace = true\nregex = \"1\"\n[dev-dependencies]\nmelba-x = 1"),
            ["types"]
        );
    }
}
