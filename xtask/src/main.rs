//! Developer tasks: `cargo xtask ci` is the whole of CI; `cargo xtask tidy` checks the rules that no lint covers.

#![allow(clippy::disallowed_methods, reason = "developer tasks use real time and files")]

mod backup;
mod bulk;
mod clients;
mod compare;
mod crash;
mod differential;
mod documents;
mod dumps;
mod durability;
mod estimates;
mod handbook;
mod history;
mod isolation;
mod longrun;
mod melba;
mod memory;
mod messages;
mod pictures;
mod powercut;
mod recovery;
mod shapes;
mod sim;
mod simsql;
mod soak;
mod space;
mod sqllogictest;
mod suites;
mod sweep;
mod tidy;
mod tpch;
mod wire;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask <task>

tasks:
  ci               fmt, clippy, tidy, all tests, and those of the tasks below that take a minute or less
  tidy             the repository's own rules
  tidy --record    lowers the lists of xtask/*.txt to what they are now
  pictures         draws the handbook's diagrams from their texts
  sim              the engine on one thread, chosen by seeds; --help lists its options
  simsql           sessions of SQL on one thread over a simulated disk, chosen by seeds; --help lists its options
  clients          drivers of several languages, where their runtimes are installed
  console          the console in Chromium, where it and node are installed; pictures of it in target/clients/console
  handbook [NAME]  the commands of README.md and docs/handbook, in order, and the output that they show; UPDATE=1 writes it into the pages
  soak             every way of asking on busy processors, each answer counted; --seconds N (40), --connections N (64)
  crash            pgbench and kill -9; --rounds N (2), --scale N (1), --seconds N a round (3)
  backup           melba backup of a server under pgbench, followed, restored at positions of the log, verified, damaged
  history [LEVEL]  random histories of lists and kill -9, judged; --seconds N a level (8), --kills N (2), --seed N;
                   LEVEL predicates: of reads by range at SERIALIZABLE
  threads          what threads share without a plain lock, by a model checker (shuttle); INTERLEAVINGS=N (80) orders of each scenario
  powercut         power cuts below a real server and disks that fail, judged; --rounds N, --cuts N a round, --faults N, --millis N a
                   round, --seed N; --lie PATH: syncs below PATH (wal/) do nothing, which must be found; --fault OPERATION:FIRST:TIMES:ERRNO
  durability       what each mode waits for and each kind of table keeps, over psql, config files, kill -9 and pg_dump
  longrun          TPC-B and sysbench while flushes and merges go on, then kill -9; --minutes N (1), --scale N (2)
  space            space while all rows are updated; --rows N (1000000), --rounds N (20), --writers N (2); minutes long
  documents        space while all documents of a table are replaced; --rows N (10000), --rounds N (10); minutes long
  recovery         recovery of a database and of one ten times larger; --rows N (200000)
  bulk             COPY, indexes, CREATE TABLE AS beside PostgreSQL, speeds and sizes; --rows N (20000000), --rounds N (1)
  memory           a server with little memory and much data; --memory MB (192), --megabytes MB of data (400), --operate MB of them that
                   operators and changes are tried on (all)
  differential     random statements on PostgreSQL and on Melba, the same answers; --seconds N (60), --statements N, --seed N of the
                   first round (a fresh one)
  sqllogictest DIR files of the sqllogictest format, fetched by hand (CONTRIBUTING.md); --seconds N (1200)
  suites [NAME]    the published tests of drivers and ORMs (tests/suites), fetched from their registries, on PostgreSQL and on Melba:
                   shares into docs/COMPATIBILITY.md; --minutes N a suite and server (20); not in CI
  tpch             the queries of TPC-H on PostgreSQL and on Melba, the same answers, and times; --scale N (0.01)
  estimates        the rows that plans expect beside those that come: TPC-H and skewed data; --scale N (0.01), bars at 0.1
  shapes           much of one thing and four times as much (IN lists, columns, partitions, tables), and questions to the catalogs of
                   many tables, beside PostgreSQL; --tables N (2000)
  sweep [NAME]     every function and operator with arguments that are large, under a timeout of a tenth of a second; those with
                   NAME in theirs
  compare [NAME]   scripts of tests/sql on PostgreSQL and on Melba, the same output
  dumps            pg_dump, pg_restore, psql, pg_dumpall, vacuumlo, melba dump and restore between Melba and PostgreSQL, all
                   options; --pg-bin DIR with client programs of version 18 compares in all directions
  wire [NAME]      conversations of tests/wire, message by message, as PostgreSQL 18 holds them; --record HOST:PORT plays them there and
                   writes down the answers
  isolation [NAME] specs of tests/isolation on PostgreSQL and on Melba, the same output; with --source DIR (src/test/isolation
                   of PostgreSQL's source) PostgreSQL's own specs on Melba, and the share that agrees; --tester PATH

clients, console, soak, differential, sqllogictest, suites, tpch, estimates, shapes, sweep, compare, dumps, wire and isolation take --server HOST:PORT[/DATABASE], a server that
runs already, instead of a fresh Melba; differential, sqllogictest, suites, tpch, shapes, compare, dumps, isolation and bulk take --reference for PostgreSQL.
MELBA=PATH in the environment is the binary to test
(target/debug/melba).";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["ci"] => ci(),
        ["tidy"] => tidy::check(&root()),
        ["tidy", "--record"] => tidy::record(&root()),
        ["pictures"] => pictures::write(&root()),
        ["threads"] => threads(),
        ["sim", ref rest @ ..] => sim::sim(rest),
        ["simsql", ref rest @ ..] => simsql::simsql(rest),
        ["powercut", ref rest @ ..] => powercut::powercut(rest),
        [task, ref rest @ ..] => server_task(task, rest),
        [] => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The repository that cargo runs this in, else the one around the present directory: the program may have been built in another.
fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let inside = manifest.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let root = inside.ancestors().find(|folder| folder.join("xtask/Cargo.toml").is_file());
    root.map_or(inside.clone(), Path::to_owned)
}

/// Runs every part, also behind one that failed; the last lines name those that failed and say why.
fn ci() -> Result<(), String> {
    let mut ci = Ci::default();
    ci.step("fmt", || cargo(&["fmt", "--all", "--check"]));
    ci.step("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]));
    ci.step("tidy", || tidy::check(&root()));
    // No documentation has examples to run; looking for them takes a second a crate.
    ci.step("test", || cargo(&["test", "--workspace", "--quiet", "--no-fail-fast", "--lib", "--bins", "--tests"]));
    ci.step("threads", threads);
    ci.step("sim", sim::ci);
    ci.step("simsql", simsql::ci);
    for task in [
        "clients",
        "handbook",
        "soak",
        "crash",
        "backup",
        "history",
        "memory",
        "durability",
        "longrun",
        "compare",
        "tpch",
        "wire",
        "dumps",
        "isolation",
    ] {
        ci.step(task, || server_task(task, &[]));
    }
    ci.step("shapes", || server_task("shapes", &["--tables", "400"]));
    ci.step("estimates", || server_task("estimates", &["--scale", "0.1"]));
    ci.step("powercut", powercut::ci);
    ci.step("differential", differential::ci);
    ci.outcome()
}

#[derive(Default)]
struct Ci {
    /// The parts that failed, with their errors.
    failed: Vec<(&'static str, String)>,
}

impl Ci {
    /// Runs a part and says how long it took.
    fn step(&mut self, name: &'static str, run: impl FnOnce() -> Result<(), String>) {
        let began = Instant::now();
        let result = run();
        println!("ci: {name} took {} s", began.elapsed().as_secs());
        if let Err(error) = result {
            eprintln!("ci: {name} failed: {error}");
            self.failed.push((name, error));
        }
    }

    fn outcome(self) -> Result<(), String> {
        if self.failed.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.failed.iter().map(|(name, _)| *name).collect();
        let mut report = format!("ci: failed: {}", names.join(", "));
        for (name, error) in &self.failed {
            report += &format!("\nci: {name}: {error}");
        }
        Err(report)
    }
}

/// Tests that run under a model checker for threads, with a feature of their crates. Bugs on purpose must be found.
fn threads() -> Result<(), String> {
    for (package, features) in
        [("melba-segment", "shuttle"), ("melba-wal", "shuttle,planted"), ("melba-engine", "shuttle,planted")]
    {
        cargo(&["test", "--quiet", "--package", package, "--lib", "--features", features, "interleavings::"])?;
    }
    Ok(())
}

/// The tasks that talk to a server.
fn server_task(task: &str, arguments: &[&str]) -> Result<(), String> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if !argument.starts_with("--") {
            options.name = (*argument).to_owned();
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{argument} needs a value"))?;
        options.set(argument, value)?;
    }
    match task {
        "isolation" => isolation::run(&options.name, &options.isolation, options.server, options.reference),
        "wire" => wire::run(&options.name, &options.wire, options.server),
        "clients" => clients::run(options.server),
        "console" => clients::console(options.server),
        "handbook" => handbook::handbook(&options.name),
        "soak" => soak::soak(&options.soak, options.server),
        "backup" => backup::backup(),
        "crash" => crash::crash(&options.crash),
        "history" => history::history(&options.name, &options.history),
        "space" => space::space(&options.space),
        "documents" => documents::documents(&options.documents),
        "recovery" => recovery::recovery(&options.recovery),
        "bulk" => bulk::bulk(&options.bulk, options.reference),
        "memory" => memory::memory(&options.memory),
        "durability" => durability::durability(),
        "longrun" => longrun::longrun(&options.longrun),
        "dumps" => dumps::dumps(&options.dumps, options.server, options.reference),
        "differential" => differential::differential(&options.differential, options.server, options.reference),
        "sqllogictest" => {
            let seconds = options.sqllogictest_seconds.unwrap_or(1200);
            sqllogictest::sqllogictest(&options.name, seconds, options.server, options.reference)
        }
        "suites" => suites::suites(&options.name, &options.suites, options.server, options.reference),
        "sweep" => sweep::sweep(&options.name, options.server),
        "tpch" => tpch::tpch(&options.tpch, options.server, options.reference),
        "estimates" => estimates::estimates(&options.tpch.scale, options.server),
        "shapes" => shapes::shapes(&options.shapes, options.server, options.reference),
        "compare" => compare::compare(&options.name, options.server, options.reference),
        _ => Err(USAGE.to_owned()),
    }
}

#[derive(Default)]
struct Options {
    server: Option<melba::Address>,
    reference: Option<melba::Address>,
    crash: crash::Options,
    history: history::Options,
    differential: differential::Options,
    sqllogictest_seconds: Option<u32>,
    bulk: bulk::Options,
    space: space::Options,
    documents: documents::Options,
    recovery: recovery::Options,
    isolation: isolation::Options,
    memory: memory::Options,
    longrun: longrun::Options,
    dumps: dumps::Options,
    wire: wire::Options,
    soak: soak::Options,
    tpch: tpch::Options,
    shapes: shapes::Options,
    suites: suites::Options,
    name: String,
}

impl Options {
    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u32>().map_err(|_| format!("{option}: {value} is no number"));
        match option {
            "--server" => self.server = Some(melba::Address::parse(value)?),
            "--reference" => self.reference = Some(melba::Address::parse(value)?),
            "--rounds" => {
                let rounds = number()?;
                (self.crash.rounds, self.bulk.rounds) = (rounds, rounds);
                (self.space.rounds, self.documents.rounds) = (rounds.into(), rounds.into());
            }
            "--rows" => {
                let rows = number()?.into();
                (self.space.rows, self.recovery.rows, self.bulk.rows, self.documents.rows) = (rows, rows, rows, rows);
            }
            "--writers" => self.space.writers = number()?.into(),
            "--source" => self.isolation.source = Some(value.into()),
            "--record" => self.wire.record = Some(melba::Address::parse(value)?),
            "--tester" => self.isolation.tester = Some(value.into()),
            "--pg-bin" => self.dumps.pg_bin = Some(value.into()),
            "--seconds" => {
                let seconds = number()?;
                (self.crash.seconds, self.history.seconds) = (seconds, seconds);
                (self.soak.seconds, self.differential.seconds) = (seconds, seconds);
                self.sqllogictest_seconds = Some(seconds);
            }
            "--connections" => self.soak.connections = number()?,
            "--kills" => self.history.kills = number()?,
            "--seed" => (self.history.seed, self.differential.seed) = (number()?, Some(number()?)),
            "--statements" => self.differential.statements = number()?,
            "--memory" => self.memory.memory = number()?.into(),
            "--megabytes" => (self.memory.megabytes, self.memory.operate) = (number()?.into(), number()?.into()),
            "--operate" => self.memory.operate = number()?.into(),
            // pgbench counts in whole scales.
            "--scale" if value.contains('.') => self.tpch.scale = value.to_owned(),
            "--scale" => {
                (self.crash.scale, self.longrun.scale) = (number()?, number()?);
                self.tpch.scale = value.to_owned();
            }
            "--tables" => self.shapes.tables = number()? as usize,
            "--minutes" => (self.longrun.minutes, self.suites.minutes) = (number()?, Some(number()?)),
            _ => return Err(USAGE.to_owned()),
        }
        Ok(())
    }
}

/// Runs cargo. Its error repeats the lines that name errors and failed tests.
fn cargo(args: &[&str]) -> Result<(), String> {
    eprintln!("== cargo {}", args.join(" "));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cargo: {e}"))?;
    let (stdout, stderr) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let errors = std::thread::scope(|scope| {
        let tests = scope.spawn(|| echo(stdout, std::io::stdout()));
        let mut errors = echo(stderr, std::io::stderr());
        errors.extend(tests.join().expect("does not panic"));
        errors
    });
    let status = child.wait().map_err(|e| format!("cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {} failed{}", args.join(" "), errors.concat())) }
}

/// Copies lines from `input` to `output`. Returns the first 40 that name an error or a failed test, each behind a line break.
fn echo(input: impl Read, mut output: impl Write) -> Vec<String> {
    let mut input = BufReader::new(input);
    let mut errors = Vec::new();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        // Nobody may read the output any more; the command must still end.
        let _ = output.write_all(&line).and_then(|()| output.flush());
        let text = String::from_utf8_lossy(&line);
        if errors.len() < 40 && ["error", "---- ", "Diff in "].iter().any(|start| text.starts_with(start)) {
            errors.push(format!("\n    {}", text.trim_end()));
        }
        line.clear();
    }
    errors
}
