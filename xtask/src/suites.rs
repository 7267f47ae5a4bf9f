//! `cargo xtask suites`: the published tests of drivers and ORMs (tests/suites), on Melba and on a PostgreSQL beside it. The
//! table of docs/COMPATIBILITY.md gets a row for each: the tests that pass on PostgreSQL, and how many of them pass on Melba.
//!
//! Registries hold the suites; downloads stay below target/suites. Each has a folder with a `run`, which gets the server in the
//! variables of PostgreSQL's clients (an empty database exists for it) and appends lines to the file OUTCOMES as
//! tests/suites/outcomes.py describes. It is ended after a time limit: the tests that it has not reached count as failed on
//! Melba, and are left out where PostgreSQL has not reached them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::compare::{free_port, reference_for};
use crate::melba::{Address, Melba, ask};
use crate::root;

/// Between these lines of docs/COMPATIBILITY.md the rows stand.
const TABLE: (&str, &str) = ("<!-- suites: cargo xtask suites writes these rows -->", "<!-- /suites -->");

#[derive(Default)]
pub struct Options {
    /// How long one suite may take on one server, in minutes; 20 if not said.
    pub minutes: Option<u32>,
}

/// The results of one suite on one server.
#[derive(Default)]
struct Outcomes {
    version: String,
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
    cut_off: bool,
}

/// Runs the suites whose name contains `filter`.
pub fn suites(filter: &str, options: &Options, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    let minutes = options.minutes.unwrap_or(20);
    let scripts = scripts(filter)?;
    let mut postgres = None;
    let Some(reference) = reference_for("suites", reference, &mut postgres)? else { return Ok(()) };
    // Its REST catalog is tested, too.
    let metrics = format!("127.0.0.1:{}", free_port()?);
    let melba = if server.is_none() { Some(Melba::fresh_with("suites-server", &["--metrics", &metrics])?) } else { None };
    let catalog = melba.as_ref().map(|_| format!("http://{metrics}/iceberg"));
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    let version = ask(&reference, "select split_part(current_setting('server_version'), ' ', 1)")?;
    let mut rows = BTreeMap::new();
    for script in &scripts {
        let name = name_of(script);
        let theirs = play(script, "postgres", &reference, None, minutes)?;
        let ours = play(script, "melba", &server, catalog.as_deref(), minutes)?;
        if theirs.passed.is_empty() {
            println!("{name}: no test passed on PostgreSQL; target/suites/{name}/postgres.log says why");
            continue;
        }
        let row = row(&name, &version, &theirs, &ours);
        println!("{row}");
        let differ: Vec<&str> = theirs.passed.difference(&ours.passed).map(String::as_str).collect();
        let list = made(&name).join("differ.txt");
        std::fs::write(&list, differ.join("\n") + "\n").map_err(|e| format!("{}: {e}", list.display()))?;
        rows.insert(name, row);
    }
    drop(postgres);
    record(&root().join("docs/COMPATIBILITY.md"), rows)?;
    melba.map_or(Ok(()), Melba::stop)
}

fn scripts(filter: &str) -> Result<Vec<PathBuf>, String> {
    let folder = root().join("tests/suites");
    let entries = folder.read_dir().map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut scripts: Vec<PathBuf> = entries.flatten().map(|e| e.path().join("run")).filter(|p| p.is_file()).collect();
    scripts.retain(|p| name_of(p).contains(filter));
    scripts.sort();
    if scripts.is_empty() { Err(format!("no suite of tests/suites is called {filter}")) } else { Ok(scripts) }
}

fn name_of(script: &Path) -> String {
    script.parent().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The files of a suite that are never committed.
fn made(name: &str) -> PathBuf {
    root().join("target/suites").join(name)
}

/// One suite on one server, which may have a REST catalog.
fn play(script: &Path, on: &str, address: &Address, catalog: Option<&str>, minutes: u32) -> Result<Outcomes, String> {
    let name = name_of(script);
    let made = made(&name);
    std::fs::create_dir_all(&made).map_err(|e| format!("{}: {e}", made.display()))?;
    let database = format!("suite_{}", name.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
    ask(address, &format!("drop database if exists {database} with (force)"))?;
    ask(address, &format!("create database {database}"))?;
    let outcomes = made.join(format!("{on}.outcomes"));
    std::fs::write(&outcomes, "").map_err(|e| format!("{}: {e}", outcomes.display()))?;
    let log = made.join(format!("{on}.log"));
    let log = std::fs::File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let also = log.try_clone().map_err(|e| e.to_string())?;
    let address = Address { database: database.clone(), ..address.clone() };
    // `timeout` makes a group of processes and ends all of it: a suite that hangs leaves nothing behind.
    let mut command = address.client("timeout");
    command.arg("--kill-after=10").arg(format!("{minutes}m")).arg(script);
    command.env("OUTCOMES", &outcomes).env_remove("PGCONNECT_TIMEOUT");
    catalog.iter().for_each(|url| _ = command.env("ICEBERG_REST", url));
    let status = command.stdout(log).stderr(also).status().map_err(|e| format!("{}: {e}", script.display()))?;
    // Unless the suite has left its connections; the next run drops it then.
    let _ = ask(&Address { database: "postgres".to_owned(), ..address }, &format!("drop database {database} with (force)"));
    let text = std::fs::read_to_string(&outcomes).map_err(|e| format!("{}: {e}", outcomes.display()))?;
    Ok(Outcomes { cut_off: matches!(status.code(), Some(124 | 137) | None), ..read(&text) })
}

fn read(text: &str) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for (word, name) in text.lines().filter_map(|l| l.split_once('\t')) {
        match word {
            "version" => outcomes.version = name.to_owned(),
            "passed" => drop(outcomes.passed.insert(name.to_owned())),
            "failed" => drop(outcomes.failed.insert(name.to_owned())),
            _ => {}
        }
    }
    outcomes.passed = outcomes.passed.difference(&outcomes.failed).cloned().collect();
    outcomes
}

fn row(name: &str, postgres: &str, theirs: &Outcomes, ours: &Outcomes) -> String {
    let (all, both) = (theirs.passed.len(), theirs.passed.intersection(&ours.passed).count());
    // Rounded down: only a complete result is called complete.
    let share = (1000 * both / all) as f64 / 10.0;
    let end = match (theirs.cut_off, ours.cut_off) {
        (_, true) => " (cut off)",
        (true, false) => " (cut off on PostgreSQL)",
        _ => "",
    };
    format!("| {name} | {} | {postgres} | {all} | {both} | {share:.1} %{end} |", theirs.version)
}

/// Puts the rows into the table, in the places of those of the same suites.
fn record(page: &Path, mut rows: BTreeMap<String, String>) -> Result<(), String> {
    let text = std::fs::read_to_string(page).map_err(|e| format!("{}: {e}", page.display()))?;
    let missing = || format!("{}: no lines {} and {}", page.display(), TABLE.0, TABLE.1);
    let (before, rest) = text.split_once(TABLE.0).ok_or_else(missing)?;
    let (old, after) = rest.split_once(TABLE.1).ok_or_else(missing)?;
    let (head, old): (Vec<&str>, Vec<&str>) =
        old.trim().lines().partition(|l| l.starts_with("| suite") || l.starts_with("|---") || !l.starts_with('|'));
    for line in old {
        let name = line.trim_start_matches("| ").split(' ').next().unwrap_or_default();
        rows.entry(name.to_owned()).or_insert_with(|| line.to_owned());
    }
    let lines: Vec<&str> = head.into_iter().chain(rows.values().map(String::as_str)).collect();
    let text = format!("{before}{}\n{}\n{}{after}", TABLE.0, lines.join("\n"), TABLE.1);
    std::fs::write(page, text).map_err(|e| format!("{}: {e}", page.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_fails_in_one_way_has_not_passed() {
        let outcomes = read("version\t1.2\npassed\ta\npassed\tb\nfailed\tb\nskipped\tc\n");
        assert_eq!(outcomes.version, "1.2");
        assert_eq!(outcomes.passed.into_iter().collect::<Vec<_>>(), ["a"]);
        assert_eq!(outcomes.failed.into_iter().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_share_is_of_what_passes_on_postgresql() {
        let theirs = read("version\t1\npassed\ta\npassed\tb\npassed\tc\nfailed\td\n");
        let ours = Outcomes { cut_off: true, ..read("passed\ta\npassed\tc\npassed\td\n") };
        assert_eq!(row("x", "18", &theirs, &ours), "| x | 1 | 18 | 3 | 2 | 66.6 % (cut off) |");
    }

    #[test]
    fn rows_of_other_suites_stay() {
        let page = std::env::temp_dir().join(format!("melba-suites-{}.md", std::process::id()));
        let old = "| suite | share |\n|---|---|\n| a | 1 % |\n| c | 3 % |";
        std::fs::write(&page, format!("text\n{}\n{old}\n{}\nmore\n", TABLE.0, TABLE.1)).expect("written");
        record(&page, BTreeMap::from([("c".into(), "| c | 4 % |".into()), ("b".into(), "| b | 2 % |".into())]))
            .expect("recorded");
        let new = "| suite | share |\n|---|---|\n| a | 1 % |\n| b | 2 % |\n| c | 4 % |";
        let text = std::fs::read_to_string(&page).expect("read");
        let _ = std::fs::remove_file(&page);
        assert_eq!(text, format!("text\n{}\n{new}\n{}\nmore\n", TABLE.0, TABLE.1));
    }
}
