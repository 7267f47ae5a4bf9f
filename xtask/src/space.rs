//! `cargo xtask space`: updates every row of a table again and again at full speed, with readers beside it; then the same under a
//! snapshot that is kept; then all rows are deleted. Measures the largest size of the files, their size half a minute after the
//! last update, and the longest wait of a reader or writer.
//!
//! The limits are ratios to the size of the same rows freshly loaded. The time for which the machine's own disk and processor delay a
//! small write and a sleep is measured beside (`probe`): a pause counts against the server only as far as they did not pause.

mod bench;
mod probe;
mod watch;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::melba::{Melba, postgres_program, run};
use crate::root;

pub use bench::Bench;
use probe::{Pause, Pauses, Probe};
pub use watch::Watch;

/// Rows that one transaction updates.
const BATCH: u64 = 100;
/// The files' limits in percent of the live data: at any moment, and half a minute after the last update.
const MOST_PERCENT: u64 = 250;
const AFTER_PERCENT: u64 = 130;
/// And when all rows are deleted.
const DELETED_PERCENT: u64 = 20;
const AFTER: Duration = Duration::from_secs(30);
/// Rounds under a kept snapshot: one for this many of the others.
const SNAPSHOT_SHARE: u64 = 5;
/// A single statement may be kept waiting for this long.
const PAUSE_MILLIS: f64 = 100.0;

pub struct Options {
    pub rows: u64,
    pub rounds: u64,
    pub writers: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { rows: 1_000_000, rounds: 20, writers: 2 }
    }
}

/// 200 bytes in hexadecimal, other ones for each row and seed.
fn value(seed: &str) -> String {
    let part = |n: u32| format!("md5(id::text || '{n} ' || {seed})");
    format!("{} || left(md5(id::text), 8)", (0..6).map(part).collect::<Vec<_>>().join(" || "))
}

pub fn space(options: &Options) -> Result<(), String> {
    let Some(pgbench) = postgres_program("pgbench") else {
        println!("skipped space: pgbench is not installed");
        return Ok(());
    };
    let melba = Melba::fresh("space")?;
    let load = format!("insert into t select id, {} from generate_series(1, {}) id", value("0"), options.rows);
    for statement in ["create table t (id bigint primary key, v text)", &load] {
        run(melba.address.psql().args(["-Xqc", statement]), "psql")?;
    }
    let watch = Watch::start(melba.data());
    let live = watch.settled(Duration::from_secs(60));
    println!("{} rows, {} MB of files after loading", options.rows, live >> 20);
    let probe = Probe::start(&root().join("target/space-probe"))?;
    let bench = Bench::new(pgbench, &melba, root().join("target/space-logs"))?;
    let mut experiment = Experiment { options, bench, watch, live, missed: Vec::new() };
    let scan = "select count(*), sum(length(v)) from t;\n";
    let points = format!("\\set id random(1, {})\nselect v from t where id = :id;\n", options.rows);
    let readers = [experiment.bench.start("points", &points, 2, None)?, experiment.bench.start("scans", scan, 1, None)?];
    experiment.update("updates", options.rounds, 1)?;
    let snapshot = Snapshot::take(&melba)?;
    experiment.update("updates-under-snapshot", (options.rounds / SNAPSHOT_SHARE).max(1), 2)?;
    snapshot.give_up()?;
    experiment.settle("after the snapshot", AFTER_PERCENT);
    for reader in readers {
        experiment.bench.stop(reader)?;
    }
    experiment.delete()?;
    experiment.judge_pauses(&probe.finish())?;
    let missed = std::mem::take(&mut experiment.missed);
    drop(experiment);
    melba.stop()?;
    if missed.is_empty() { Ok(()) } else { Err(format!("space: missed {}", missed.join(", "))) }
}

struct Experiment<'a> {
    options: &'a Options,
    bench: Bench<'a>,
    watch: Watch,
    /// Bytes of the files after loading.
    live: u64,
    /// Bars.
    missed: Vec<String>,
}

impl Experiment<'_> {
    fn percent(&self, bytes: u64) -> u64 {
        bytes * 100 / self.live.max(1)
    }

    fn batches(&self) -> u64 {
        self.options.rows / BATCH
    }

    /// pgbench's commands that set `a` to the batches' beginnings one after another, spread over the table.
    fn place(&self) -> String {
        let batches = self.batches();
        let step = strewing_step(batches);
        let writers = self.options.writers;
        format!("\\set n :n + 1\n\\set a (((:n * {writers} + :client_id) * {step}) % {batches}) * {BATCH}\n")
    }

    /// Updates all rows `rounds` times; `versions` of each are needed.
    fn update(&mut self, name: &str, rounds: u64, versions: u64) -> Result<(), String> {
        let Options { writers, .. } = *self.options;
        let script = format!("{}update t set v = {} where id > :a and id <= :a + {BATCH};\n", self.place(), value(":n::text"));
        self.watch.most.store(0, Ordering::SeqCst);
        let began = Instant::now();
        let transactions = rounds * self.batches() / writers;
        self.bench.finish(self.bench.start(name, &script, writers, Some(transactions))?)?;
        let seconds = began.elapsed().as_secs_f64();
        let most = self.percent(self.watch.most.load(Ordering::SeqCst));
        let updated = transactions * writers * BATCH;
        println!("{name}: {updated} in {seconds:.0} s, {:.0} a second", updated as f64 / seconds);
        println!("{name}: files took at most {most} % of the live data (bar: {} %)", MOST_PERCENT * versions);
        if most >= MOST_PERCENT * versions {
            self.missed.push(format!("{name}: {most} %"));
        }
        self.settle(name, AFTER_PERCENT * versions);
        Ok(())
    }

    /// Waits for superfluous versions to be removed.
    fn settle(&mut self, name: &str, bar: u64) {
        let reached = self.watch.below(self.live * bar / 100, AFTER);
        let after = self.percent(self.watch.now.load(Ordering::SeqCst));
        match reached {
            Some(time) => {
                println!("{name}: below {bar} % after {:.1} s; after {} s {after} %", time.as_secs_f64(), AFTER.as_secs());
            }
            None => {
                println!("{name}: still at {after} % after {} s (bar: {bar} %)", AFTER.as_secs());
                self.missed.push(format!("{name}: {after} % in the end"));
            }
        }
    }

    fn delete(&mut self) -> Result<(), String> {
        let script = format!("{}delete from t where id > :a and id <= :a + {BATCH};\n", self.place());
        let writers = self.options.writers;
        self.bench.finish(self.bench.start("deletions", &script, writers, Some(self.batches() / writers))?)?;
        self.settle("deletions", DELETED_PERCENT);
        Ok(())
    }

    /// Prints the waits of each kind of statement, and compares them with the machine's pauses.
    fn judge_pauses(&mut self, machine: &Pauses) -> Result<(), String> {
        for (what, pauses) in [("a sync", &machine.disk), ("a sleep", &machine.processor)] {
            println!("the machine: {} times {what} took above 20 ms, {:.0} ms at most", pauses.len(), Pauses::longest(pauses));
        }
        for name in ["points", "scans", "updates", "updates-under-snapshot", "deletions"] {
            let took = self.bench.times(name)?;
            let long: Vec<&Pause> = took.iter().filter(|p| p.millis() > PAUSE_MILLIS).collect();
            let own = long.iter().map(|p| p.millis() - machine.shared_with(p)).fold(0.0, f64::max);
            println!(
                "{name}: {}; {} above {PAUSE_MILLIS} ms, at most {own:.0} ms without the machine's pauses",
                bench::summary(&took),
                long.len()
            );
            // A scan of all rows takes long.
            if name != "scans" && own > PAUSE_MILLIS {
                self.missed.push(format!("{name}: a pause of {own:.0} ms"));
            }
        }
        Ok(())
    }
}

/// A step without a common factor with the number of places visits them all, spread over the table.
pub fn strewing_step(places: u64) -> u64 {
    (places * 2 / 3..places).find(|s| gcd(*s, places) == 1).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Everything that a transaction's snapshot sees, as one line.
const SEEN: &str = "select count(*), sum(hashtext(v)) from t;\n";

/// A client in a REPEATABLE READ transaction.
struct Snapshot {
    psql: Child,
    answers: BufReader<std::process::ChildStdout>,
    seen: String,
}

impl Snapshot {
    fn take(melba: &Melba) -> Result<Snapshot, String> {
        let mut psql = melba.address.psql();
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut psql = psql.spawn().map_err(|e| format!("psql: {e}"))?;
        let answers = BufReader::new(psql.stdout.take().ok_or("psql has no output")?);
        let mut snapshot = Snapshot { psql, answers, seen: String::new() };
        snapshot.seen = snapshot.ask(&format!("begin isolation level repeatable read;\n{SEEN}"))?;
        Ok(snapshot)
    }

    fn ask(&mut self, query: &str) -> Result<String, String> {
        let input = self.psql.stdin.as_mut().ok_or("psql has no input")?;
        input.write_all(query.as_bytes()).and_then(|()| input.flush()).map_err(|e| format!("psql: {e}"))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|e| format!("psql: {e}"))?;
        Ok(line)
    }

    /// Checks that its view is unchanged, and ends it.
    fn give_up(mut self) -> Result<(), String> {
        let seen = self.ask(SEEN)?;
        if seen != self.seen || seen.is_empty() {
            return Err(format!("space: the snapshot saw {}, now {seen}", self.seen));
        }
        drop(self.psql.stdin.take());
        self.psql.wait().map(drop).map_err(|e| format!("psql: {e}"))
    }
}
