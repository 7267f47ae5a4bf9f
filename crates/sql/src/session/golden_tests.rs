//! Golden scripts: statements with their answers in `testdata`, which `UPDATE=1 cargo test -p melba-sql golden` rewrites.
//!
//! A script is a list of cases between empty lines: comments that begin with `#`, a statement, a line `----`, the answer.
//! `plans/*.plan` show the plan of each query, other statements are run; `views/*.view` run each statement.

use std::path::{Path, PathBuf};

use super::tests::Harness;

/// The scripts of a folder, in order of their names.
fn scripts(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder of scripts");
    let mut scripts: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty(), "no script in {}", folder.display());
    scripts
}

/// Runs the script in a new database: returns the script with the current answers.
fn replay(script: &str, mut answer: impl FnMut(&mut Harness, &str) -> String) -> String {
    let mut harness = Harness::new();
    let mut replayed = String::new();
    for case in script.split("\n\n").map(str::trim).filter(|case| !case.is_empty()) {
        let asked = case.lines().take_while(|line| *line != "----").collect::<Vec<_>>();
        let statement = asked.iter().filter(|line| !line.starts_with('#')).copied().collect::<Vec<_>>().join("\n");
        replayed.push_str(&asked.join("\n"));
        if !statement.is_empty() {
            let answer = answer(&mut harness, &statement);
            replayed.push_str(&format!("\n----\n{}", answer.trim_end()));
        }
        replayed.push_str("\n\n");
    }
    replayed.trim_end().to_owned() + "\n"
}

/// From the first line that differs.
const SHOWN_LINES: usize = 12;

fn check(folder: &str, answer: impl Fn(&mut Harness, &str) -> String) {
    for path in scripts(folder) {
        let script = std::fs::read_to_string(&path).expect("a readable script");
        let replayed = replay(&script, &answer);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, replayed).expect("a writable script");
        } else {
            let same = script.lines().zip(replayed.lines()).take_while(|(old, new)| old == new).count();
            let after = |text: &str| text.lines().skip(same).take(SHOWN_LINES).collect::<Vec<_>>().join("\n");
            let (name, command) = (path.display(), "UPDATE=1 cargo test -p melba-sql golden");
            let (old, new) = (after(&script), after(&replayed));
            assert!(script == replayed, "{name}:{}\n{old}\n-- is now\n{new}\n-- {command} accepts it", same + 1);
        }
    }
}

#[test]
fn golden_plans() {
    let queries = ["select", "insert", "update", "delete", "merge", "values", "with", "table"];
    check("plans", |harness, statement| match statement.split_whitespace().next() {
        Some(first) if queries.contains(&first) => harness.lines(&format!("explain (costs off) {statement}")),
        _ => harness.lines(statement),
    });
}

#[test]
fn golden_views() {
    check("views", |harness, statement| harness.lines(statement));
}
