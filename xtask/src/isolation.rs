//! `cargo xtask isolation`: runs specs of several sessions, by PostgreSQL's isolationtester, step by step.
//!
//! With `--source` the specs are PostgreSQL's own, from its source package, and their expected output lies beside them; the share
//! that agrees is printed. Without it they are those of tests/isolation, which must print the same on a real PostgreSQL and on
//! Melba, or as PostgreSQL 18 printed into a file beside the spec, where an older one is different. A spec is a list of permutations; each counts separately.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compare::reference_for;
use crate::melba::{Address, Melba, ask};
use crate::root;

/// Which specs, and where they run.
#[derive(Default)]
pub struct Options {
    /// src/test/isolation of PostgreSQL's source.
    pub source: Option<PathBuf>,
    /// Where isolationtester is, when it is not where Debian puts it.
    pub tester: Option<PathBuf>,
}

/// The database's name in PostgreSQL's runner; some specs use it.
const DATABASE: &str = "isolation_regression";
/// Seconds that a step may wait before the tester cancels it.
const STEP_SECONDS: &str = "20";
/// Seconds for a whole spec.
const SPEC_SECONDS: &str = "120";

/// The result of a spec's run.
struct Outcome {
    agreeing: usize,
    permutations: usize,
    /// The first error that says why a spec cannot run at all.
    reason: Option<String>,
}

impl Outcome {
    fn agrees(&self) -> bool {
        self.agreeing == self.permutations
    }
}

/// Runs the specs whose name contains `filter`.
pub fn run(filter: &str, options: &Options, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    let Some(tester) = options.tester.clone().or_else(tester) else {
        println!("skipped isolation: isolationtester is not installed (Debian: postgresql-client)");
        return Ok(());
    };
    let melba = if server.is_none() { Some(Melba::fresh("isolation")?) } else { None };
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    match &options.source {
        Some(source) => postgres_suite(&tester, source, filter, &server)?,
        None => own_specs(&tester, filter, &server, reference)?,
    }
    melba.map_or(Ok(()), Melba::stop)
}

/// The newest isolationtester of Debian's packages.
fn tester() -> Option<PathBuf> {
    let versions = Path::new("/usr/lib/postgresql").read_dir().ok()?;
    let mut found: Vec<PathBuf> = versions
        .flatten()
        .map(|v| v.path().join("lib/pgxs/src/test/isolation/isolationtester"))
        .filter(|p| p.is_file())
        .collect();
    found.sort();
    found.pop()
}

/// PostgreSQL's suite, in the order of its schedule.
fn postgres_suite(tester: &Path, source: &Path, filter: &str, server: &Address) -> Result<(), String> {
    let schedule = read(&source.join("isolation_schedule"))?;
    let names = schedule.lines().filter_map(|l| l.strip_prefix("test:")).flat_map(str::split_whitespace);
    let mut outcomes = Vec::new();
    for name in names.filter(|n| n.contains(filter)) {
        let actual = play(tester, &source.join(format!("specs/{name}.spec")), name, "melba", server)?;
        let outcome = judge(&actual, &expected(source, name)?);
        let Outcome { agreeing, permutations, .. } = outcome;
        let mark = if outcome.agrees() { "ok     " } else { "differs" };
        let reason = outcome.reason.as_deref().unwrap_or_default();
        println!("{mark} isolation: {name} {agreeing}/{permutations} {reason}");
        outcomes.push(outcome);
    }
    let specs = outcomes.iter().filter(|o| o.agrees()).count();
    let (agreeing, permutations) = outcomes.iter().fold((0, 0), |(a, p), o| (a + o.agreeing, p + o.permutations));
    let percent = |part: usize, of: usize| part as f64 * 100.0 / of.max(1) as f64;
    println!("specs that agree in everything: {specs} of {}, {:.1} %", outcomes.len(), percent(specs, outcomes.len()));
    println!("permutations: {agreeing} of {permutations}, {:.1} %", percent(agreeing, permutations));
    let refused: Vec<&Outcome> = outcomes.iter().filter(|o| o.reason.is_some()).collect();
    let (lost, of) = refused.iter().fold((0, 0), |(a, p), o| (a + o.agreeing, p + o.permutations));
    println!(
        "without the {} specs whose setup is refused: {} of {}, {:.1} %",
        refused.len(),
        agreeing - lost,
        permutations - of,
        percent(agreeing - lost, permutations - of)
    );
    println!("outputs: {}", outputs()?.display());
    Ok(())
}

/// PostgreSQL's expected output: one text, or several alternatives.
fn expected(source: &Path, name: &str) -> Result<Vec<String>, String> {
    let first = read(&source.join(format!("expected/{name}.out")))?;
    let others = (1..10).map_while(|i| read(&source.join(format!("expected/{name}_{i}.out"))).ok());
    Ok(std::iter::once(first).chain(others).collect())
}

/// The specs of tests/isolation, on both.
fn own_specs(tester: &Path, filter: &str, server: &Address, reference: Option<Address>) -> Result<(), String> {
    let folder = root().join("tests/isolation");
    let entries = folder.read_dir().map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut specs: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    specs.retain(|p| p.extension().is_some_and(|e| e == "spec") && p.to_string_lossy().contains(filter));
    specs.sort();
    let mut postgres = None;
    let Some(reference) = reference_for("isolation", reference, &mut postgres)? else { return Ok(()) };
    let mut different = Vec::new();
    for spec in &specs {
        let name = spec.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let kept = spec.with_extension("out");
        let wanted = if kept.is_file() { read(&kept)? } else { play(tester, spec, &name, "postgres", &reference)? };
        let actual = play(tester, spec, &name, "melba", server)?;
        if wanted == actual {
            println!("ok      isolation: {name}");
        } else {
            println!("FAILED  isolation: {name}");
            different.push(name);
        }
    }
    drop(postgres);
    if different.is_empty() {
        return Ok(());
    }
    let folder = outputs()?;
    Err(format!("different from PostgreSQL: {}; see {}/NAME.postgres, NAME.melba", different.join(", "), folder.display()))
}

fn outputs() -> Result<PathBuf, String> {
    let folder = root().join("target/isolation");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Runs a spec in a new database, and returns its output.
fn play(tester: &Path, spec: &Path, name: &str, kind: &str, server: &Address) -> Result<String, String> {
    ask(server, &format!("drop database if exists {DATABASE}"))?;
    ask(server, &format!("create database {DATABASE}"))?;
    let path = outputs()?.join(format!("{name}.{kind}"));
    let file = |e: std::io::Error| format!("{}: {e}", path.display());
    let output = std::fs::File::create(&path).map_err(file)?;
    let also = output.try_clone().map_err(file)?;
    let input = std::fs::File::open(spec).map_err(|e| format!("{}: {e}", spec.display()))?;
    let mut command: Command = server.client("timeout");
    command.arg(SPEC_SECONDS).arg(tester).arg(format!("dbname={DATABASE}"));
    command.env("PGISOLATIONTIMEOUT", STEP_SECONDS).env("PGAPPNAME", format!("isolation/{name}"));
    command.env("PGTZ", "America/Los_Angeles").env("PGDATESTYLE", "Postgres, MDY");
    // A failing spec shows in its output, which alone counts.
    command.stdin(input).stdout(output).stderr(also).status().map_err(|e| format!("isolationtester: {e}"))?;
    Ok(String::from_utf8_lossy(&std::fs::read(&path).map_err(file)?).into_owned())
}

/// Compares permutation by permutation; blanks do not count, as PostgreSQL's own comparison has it.
fn judge(actual: &str, expected: &[String]) -> Outcome {
    let actual_parts = permutations(actual);
    let mut best = Outcome { agreeing: 0, permutations: 1, reason: None };
    for text in expected {
        let parts = permutations(text);
        let agreeing = parts.iter().zip(&actual_parts).filter(|(a, b)| a == b).count();
        if agreeing >= best.agreeing {
            best.agreeing = agreeing;
        }
        best.permutations = parts.len();
    }
    // A setup that fails ends the spec.
    let failed = actual.lines().position(|l| l.starts_with("setup failed") || l.contains("session setup failed"));
    best.reason =
        failed.and_then(|at| actual.lines().skip(at).find_map(|l| l.split_once("ERROR:"))).map(|(_, e)| e.trim().to_owned());
    best
}

fn permutations(text: &str) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("starting permutation:") {
            parts.push(Vec::new());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(part) = parts.last_mut()
            && !words.is_empty()
        {
            part.push(words.join(" "));
        }
    }
    parts
}
