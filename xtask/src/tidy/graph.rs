//! Finds which module of a crate names which, from the text of its files.
//!
//! A path that begins with `crate` or `super`, or with a child of its module, leads to the module that defines its name: `pub
//! use` is followed, so that a re-export alone is no edge. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

/// A module's name below its crate, by segments. The crate's root has none.
pub type Module = Vec<String>;

/// The edges of one crate: who names whom.
pub struct Graph {
    pub edges: BTreeMap<Module, BTreeSet<Module>>,
}

struct Names<'a> {
    modules: &'a BTreeMap<Module, String>,
    /// By module: names it re-exports, and the modules that define them.
    exported: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Graph {
    /// `files` by their path below the crate's `src`.
    pub fn read(files: &[(&str, &str)]) -> Graph {
        let modules: BTreeMap<Module, String> =
            files.iter().filter_map(|(path, text)| Some((module_of(path)?, product_code(text)))).collect();
        let mut names = Names { modules: &modules, exported: BTreeMap::new() };
        let mut used: Vec<(&Module, Module)> = Vec::new();
        for (module, text) in &modules {
            let (imports, rest) = imports(text);
            for Import { public, path, name } in imports {
                let Some(path) = names.absolute(module, &path) else { continue };
                match public {
                    true => _ = names.exported.entry(module.clone()).or_default().insert(name, path),
                    false => used.push((module, path)),
                }
            }
            used.extend(paths(&rest).iter().filter_map(|path| Some((module, names.absolute(module, path)?))));
        }
        let mut edges: BTreeMap<Module, BTreeSet<Module>> = modules.keys().map(|m| (m.clone(), BTreeSet::new())).collect();
        for (from, path) in used {
            let to = names.definer(&path, 0);
            if to != *from {
                edges.entry(from.clone()).or_default().insert(to);
            }
        }
        Graph { edges }
    }

    /// Groups of modules that reach each other, those of one module left out; the largest first.
    pub fn knots(&self) -> Vec<Vec<&Module>> {
        let reach: BTreeMap<&Module, BTreeSet<&Module>> = self.edges.keys().map(|m| (m, self.reachable(m))).collect();
        let mut seen = BTreeSet::new();
        let mut knots = Vec::new();
        for (module, reached) in &reach {
            let knot: Vec<&Module> = reached.iter().filter(|m| reach[*m].contains(module)).copied().collect();
            if knot.len() > 1 && seen.insert(knot.clone()) {
                knots.push(knot);
            }
        }
        knots.sort_by_key(|knot| std::cmp::Reverse(knot.len()));
        knots
    }

    fn reachable(&self, from: &Module) -> BTreeSet<&Module> {
        let mut reached = BTreeSet::new();
        let mut pending: Vec<&Module> = self.edges[from].iter().collect();
        while let Some(module) = pending.pop() {
            if reached.insert(module) {
                pending.extend(&self.edges[module]);
            }
        }
        reached
    }

    /// Edges between the modules at the crate's top, the root left out.
    pub fn top(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut top: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in &self.edges {
            let Some(from) = from.first() else { continue };
            let named = to.iter().filter_map(|m| m.first()).filter(|m| *m != from).map(String::as_str);
            top.entry(from).or_default().extend(named);
        }
        top
    }
}

impl Names<'_> {
    /// The path from the crate's root, or `None` when it leads out of the crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let ups = path.iter().take_while(|s| *s == "super").count();
        let (base, rest) = match path[0].as_str() {
            "crate" => (&module[..0], &path[1..]),
            "self" => (&module[..], &path[1..]),
            "super" => (&module[..module.len().checked_sub(ups)?], &path[ups..]),
            first => {
                let mut child = module.clone();
                child.push(first.to_owned());
                self.modules.get(&child)?;
                (&module[..], path)
            }
        };
        Some([base, rest].concat())
    }

    /// The module that defines the last name of the path.
    fn definer(&self, path: &[String], followed: usize) -> Module {
        let longest = (0..=path.len()).rev().find(|&n| self.modules.contains_key(&path[..n])).unwrap_or(0);
        let exported = path.get(longest).and_then(|name| self.exported.get(&path[..longest])?.get(name));
        match exported {
            Some(target) if followed < 8 => self.definer(&[target, &path[longest + 1..]].concat(), followed + 1),
            _ => path[..longest].to_vec(),
        }
    }
}

/// The module of a file, by its path below `src`; `None` for tests.
pub fn module_of(path: &str) -> Option<Module> {
    let mut module: Module = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if module.iter().any(|s| s == "tests" || s.ends_with("_tests")) {
        return None;
    }
    if module.last().is_some_and(|s| s == "mod" || s == "lib" || s == "main") {
        module.pop();
    }
    Some(module)
}

/// The text without comments and without the module of tests that ends it.
pub fn product_code(text: &str) -> String {
    let code = text.lines().map(|l| l.split("//").next().unwrap_or(l)).collect::<Vec<_>>().join("\n");
    match code.find("#[cfg(test)]\nmod tests {") {
        Some(end) => code[..end].to_owned(),
        None => code,
    }
}

struct Import {
    public: bool,
    path: Vec<String>,
    /// Its name from here on.
    name: String,
}

/// The names in a file's `use` declarations, and the text without them.
fn imports(text: &str) -> (Vec<Import>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let declared = line.trim_start();
        let (public, declared) = match declared.strip_prefix("pub") {
            Some(more) => (true, more.split_once(' ').map_or(more, |(_, more)| more)),
            None => (false, declared),
        };
        let Some(tree) = declared.strip_prefix("use ") else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            let Some(more) = lines.next() else { break };
            tree.push_str(more.trim());
        }
        expand("", tree.split(';').next().unwrap_or(""), &mut |path| {
            let (path, name) = path.split_once(" as ").map_or((path, None), |(path, name)| (path, Some(name)));
            let path: Vec<String> =
                path.split("::").filter(|s| *s != "self" || path.starts_with("self")).map(str::to_owned).collect();
            let name = name.or(path.last().map(String::as_str)).unwrap_or("").to_owned();
            found.push(Import { public, path, name });
        });
    }
    (found, rest)
}

/// Calls `found` with each path of a tree such as `a::{b, c::{d, e}}`.
fn expand(prefix: &str, tree: &str, found: &mut impl FnMut(&str)) {
    let tree = tree.trim();
    let Some((before, group)) = tree.split_once('{') else {
        if !tree.is_empty() {
            found(&format!("{prefix}{tree}"));
        }
        return;
    };
    let prefix = format!("{prefix}{before}");
    let group = group.strip_suffix('}').unwrap_or(group);
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, &group[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    expand(&prefix, &group[start..], found);
}

/// Paths outside of `use` that begin with `crate` or `super`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c| !word(c)).map(|w| w.trim_end_matches(':'));
    words
        .filter(|w| w.starts_with("crate::") || w.starts_with("super::"))
        .map(|w| w.split("::").map(str::to_owned).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str) -> Module {
        path.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn re_exports_are_followed_and_tests_left_out() {
        let graph = Graph::read(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a/mod.rs", "mod deep;\npub use deep::{Thing, Other as Alias};\n"),
            ("a/deep.rs", "pub struct Thing;\n"),
            (
                "b.rs",
                "use crate::a::{\n    Alias,\n};\nfn f() -> crate::a::Thing {}\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n",
            ),
            ("c.rs", "// crate::a\nuse super::b::{self, f};\n"),
            ("b/tests.rs", "use crate::c;\n"),
        ]);
        assert_eq!(graph.edges[&module("b")], BTreeSet::from([module("a.deep")]));
        assert_eq!(graph.edges[&module("c")], BTreeSet::from([module("b")]));
        assert!(graph.edges[&module("a")].is_empty());
        assert_eq!(
            graph.top(),
            BTreeMap::from([("a", BTreeSet::new()), ("b", BTreeSet::from(["a"])), ("c", BTreeSet::from(["b"]))])
        );
        assert!(graph.knots().is_empty());
    }

    #[test]
    fn modules_that_reach_each_other_are_one_knot() {
        let graph = Graph::read(&[
            ("lib.rs", ""),
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c::{d::{E, F}, G};"),
            ("c/mod.rs", ""),
            ("c/d.rs", "fn f() { super::super::a::g() }"),
            ("x.rs", "use crate::a;"),
        ]);
        assert_eq!(graph.knots(), [vec![&module("a"), &module("b"), &module("c.d")]]);
    }
}
