//! Directions inside crates.
//!
//! 1. The largest knot of a crate, modules that all reach each other, has at most the size in `xtask/knots.txt`.
//! 2. The modules at the top of a crate name exactly those that a table of ARCHITECTURE.md allows. A crate without a table has no
//!    such rule.

use std::collections::BTreeMap;
use std::path::Path;

use super::graph::{Graph, Module};
use super::{ceilings, read, table};

const KNOTS: &str = "xtask/knots.txt";

/// Prints the largest knot of each crate that has one.
pub fn check(root: &Path, files: &[(String, String)], problems: &mut Vec<String>) -> Result<(), String> {
    let list = read(&root.join(KNOTS))?;
    let ceilings = ceilings(&list);
    let architecture = read(&root.join("ARCHITECTURE.md"))?;
    for (name, graph) in graphs(files) {
        let knots = graph.knots();
        let (size, ceiling) = (knots.first().map_or(1, Vec::len), ceilings.get(name).copied().unwrap_or(1));
        if size > 1 {
            println!("{name}: {} of {} modules name each other in a circle", size, graph.edges.len());
        }
        if size > ceiling {
            let knot: Vec<String> = knots[0].iter().map(|m| written(m)).collect();
            problems.push(format!("crates/{name}: {size} modules in a circle, {KNOTS} allows {ceiling}: {}", knot.join(" ")));
        }
        directions(name, &graph, &architecture, problems);
    }
    Ok(())
}

/// Lowers the limits to the present values.
pub fn record(root: &Path, files: &[(String, String)]) -> Result<(), String> {
    let list = read(&root.join(KNOTS))?;
    let before = ceilings(&list);
    let mut lowered = String::from("# Most modules of a crate that may name each other in a circle. Figures may only fall.\n");
    for (name, graph) in graphs(files) {
        let size = graph.knots().first().map_or(1, Vec::len).min(before.get(name).copied().unwrap_or(usize::MAX));
        if size > 1 {
            lowered.push_str(&format!("{size} {name}\n"));
        }
    }
    std::fs::write(root.join(KNOTS), lowered).map_err(|e| format!("{KNOTS}: {e}"))
}

fn written(module: &Module) -> String {
    if module.is_empty() { "crate".to_owned() } else { module.join("::") }
}

/// By crate.
fn graphs(files: &[(String, String)]) -> BTreeMap<&str, Graph> {
    let mut by_crate: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in files {
        let below = path.strip_prefix("crates/").and_then(|p| p.split_once("/src/"));
        if let Some((name, path)) = below {
            by_crate.entry(name).or_default().push((path, text));
        }
    }
    by_crate.into_iter().map(|(name, files)| (name, Graph::read(&files))).collect()
}

fn directions(name: &str, graph: &Graph, architecture: &str, problems: &mut Vec<String>) {
    let allowed = table(architecture, &format!("### Modules of `{name}`"));
    if allowed.is_empty() {
        return;
    }
    for (module, used) in graph.top() {
        let Some(allowed) = allowed.get(module) else {
            problems.push(format!("ARCHITECTURE.md: the table of the modules of {name} lacks {module}"));
            continue;
        };
        for other in used.iter().filter(|u| !allowed.iter().any(|a| a == *u)) {
            problems.push(format!("crates/{name}: {module} names {other}, which ARCHITECTURE.md does not allow"));
        }
        for other in allowed.iter().filter(|a| !used.contains(a.as_str())) {
            problems.push(format!("ARCHITECTURE.md: {module} of {name} no longer names {other}; take it off the table"));
        }
    }
}
