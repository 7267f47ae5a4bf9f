//! Links between our documents: the file is there, and the heading or line that an anchor names.

use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// Checks the relative links of every document of the repository.
pub fn check(root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let mut documents = BTreeMap::new();
    for folder in ["", "docs", "docs/design", "docs/measurements", "docs/handbook"] {
        let entries = root.join(folder).read_dir().map_err(|e| format!("{folder}: {e}"))?;
        for path in entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "md")) {
            let text = super::read(&path)?;
            documents.insert(path, text);
        }
    }
    for (path, text) in &documents {
        let name = path.strip_prefix(root).unwrap_or(path).display();
        for (line, target) in links(text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let folder = path.parent().unwrap_or(root);
            let file = if file.is_empty() { path.clone() } else { plain(&folder.join(file)) };
            if !file.exists() {
                problems.push(format!("{name}:{line}: {target}: there is no such file"));
            } else if !anchor.is_empty() && !documents.get(&file).is_some_and(|text| anchors(text).contains(anchor)) {
                problems.push(format!("{name}:{line}: {target}: there is no such heading"));
            }
        }
    }
    Ok(())
}

/// The path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The lines of a page with their numbers, those of code left out.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        (!in_code && !is_fence && !line.starts_with("    ")).then_some((number, line))
    })
}

/// Targets of `](target)` that lie in the repository.
fn links(text: &str) -> Vec<(usize, &str)> {
    let targets = prose(text).flat_map(|(number, line)| {
        let parts = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        parts.map(move |target| (number, target))
    });
    targets.filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// The anchors that GitHub gives the headings.
fn anchors(text: &str) -> HashSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = HashSet::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim();
        let lower = heading.to_lowercase();
        let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = seen.entry(anchor.clone()).or_insert(0);
        anchors.insert(if *before == 0 { anchor } else { format!("{anchor}-{before}") });
        *before += 1;
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_anchors_are_found() {
        let text = "# A `b` (c), d\n## A\n## A\n[x](y.md#z), ![p](q.svg \"t\") [w](https://example.org)\n    [no](code)\n```sh\n[no](a)\n```\n";
        assert_eq!(links(text), [(4, "y.md#z"), (4, "q.svg")]);
        let mut anchors: Vec<String> = anchors(text).into_iter().collect();
        anchors.sort();
        assert_eq!(anchors, ["a", "a-1", "a-b-c-d"]);
    }

    #[test]
    fn paths_are_resolved() {
        assert_eq!(plain(Path::new("/a/docs/handbook/../design/./x.md")), Path::new("/a/docs/design/x.md"));
    }
}
