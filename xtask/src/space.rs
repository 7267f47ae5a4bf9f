//! `cargo xtask space`: every row of a table is updated again and again at full speed, with readers beside it. What the files take
//! at most, what they take half a minute after the last update, and how long a reader or writer had to wait at most.
//!
//! The bars are in ratios to what the same rows take freshly loaded; pauses are printed, and only judged by who knows the machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::melba::{Melba, postgres_program, run};
use crate::root;

/// Rows that one transaction updates.
const BATCH: u64 = 100;
/// Files may take this many percent of the live data at any moment, and so many half a minute after the last update.
const MOST_PERCENT: u64 = 250;
const AFTER_PERCENT: u64 = 130;
const AFTER: Duration = Duration::from_secs(30);
/// How often files are measured.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
    let bench = Bench::new(pgbench, &melba, root().join("target/space-logs"))?;
    let load = format!("insert into t select id, {} from generate_series(1, {}) id", value("0"), options.rows);
    for statement in ["create table t (id bigint primary key, v text)", &load] {
        run(melba.address.client("psql").args(["-Xqc", statement]), "psql")?;
    }
    let watch = Watch::start(melba.data());
    let live = watch.settled(Duration::from_secs(60));
    println!("{} rows, {} MB of files after loading", options.rows, live >> 20);
    let percent = |bytes: u64| bytes * 100 / live.max(1);

    let points = format!("\\set id random(1, {})\nselect v from t where id = :id;\n", options.rows);
    let scan = "select count(*), sum(length(v)) from t;\n";
    let readers = [bench.start("points", &points, 2, None)?, bench.start("scans", scan, 1, None)?];
    let batches = options.rows / BATCH;
    let step = strewing_step(batches);
    let place = format!("\\set n :n + 1\n\\set a (((:n * {} + :client_id) * {step}) % {batches}) * {BATCH}\n", options.writers);
    let update = format!("{place}update t set v = {} where id > :a and id <= :a + {BATCH};\n", value(":n::text"));
    watch.most.store(0, Ordering::SeqCst);
    let began = Instant::now();
    let transactions = options.rounds * batches / options.writers;
    bench.finish(bench.start("updates", &update, options.writers, Some(transactions))?)?;
    let seconds = began.elapsed().as_secs_f64();
    let most = percent(watch.most.load(Ordering::SeqCst));
    let updated = transactions * options.writers * BATCH;
    println!("{updated} updates in {seconds:.0} s, {:.0} a second", updated as f64 / seconds);
    println!("files took at most {most} % of the live data (bar: {MOST_PERCENT} %)");
    let reached = watch.below(live * AFTER_PERCENT / 100, AFTER);
    let after = percent(watch.now.load(Ordering::SeqCst));
    match reached {
        Some(time) => {
            println!("they were below {AFTER_PERCENT} % after {:.1} s; after {} s {after} %", time.as_secs_f64(), AFTER.as_secs())
        }
        None => println!("they were still at {after} % after {} s (bar: {AFTER_PERCENT} %)", AFTER.as_secs()),
    }
    for reader in readers {
        bench.stop(reader)?;
    }
    for name in ["points", "scans", "updates"] {
        println!("{name}: {}", bench.pauses(name)?);
    }

    let delete = format!("{place}delete from t where id > :a and id <= :a + {BATCH};\n");
    bench.finish(bench.start("deletions", &delete, options.writers, Some(batches / options.writers))?)?;
    watch.below(live / 5, AFTER);
    let deleted = percent(watch.now.load(Ordering::SeqCst));
    println!("all rows deleted: {deleted} % after at most {} s", AFTER.as_secs());
    drop(watch);
    melba.stop()?;
    if most >= MOST_PERCENT || reached.is_none() || deleted > 20 {
        return Err("space: a bar was missed".to_owned());
    }
    Ok(())
}

/// A step without a common factor with the number of places visits them all, strewn over the table.
pub fn strewing_step(places: u64) -> u64 {
    (places * 2 / 3..places).find(|s| gcd(*s, places) == 1).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Runs scripts with pgbench, each with a log of its transactions.
pub struct Bench<'a> {
    pgbench: PathBuf,
    melba: &'a Melba,
    folder: PathBuf,
}

impl Bench<'_> {
    /// With an empty folder for scripts and logs.
    pub fn new(pgbench: PathBuf, melba: &Melba, folder: PathBuf) -> Result<Bench<'_>, String> {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Bench { pgbench, melba, folder })
    }

    /// Starts a script; without a number of transactions until it is stopped.
    pub fn start(&self, name: &str, script: &str, clients: u64, transactions: Option<u64>) -> Result<Child, String> {
        let file = self.folder.join(format!("{name}.sql"));
        std::fs::write(&file, script).map_err(|e| format!("{}: {e}", file.display()))?;
        let clients = clients.to_string();
        let mut command = self.melba.address.client(&self.pgbench);
        command.args(["-n", "-M", "prepared", "-D", "n=0", "-c", &clients, "-j", &clients, "-f"]).arg(&file);
        match transactions {
            Some(n) => command.args(["-t", &n.to_string()]),
            None => command.args(["-T", "100000"]),
        };
        command.args(["-l", "--log-prefix"]).arg(self.folder.join(name));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| format!("pgbench: {e}"))
    }

    pub fn finish(&self, mut child: Child) -> Result<(), String> {
        let status = child.wait().map_err(|e| format!("pgbench: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("pgbench failed: {status}")) }
    }

    fn stop(&self, mut child: Child) -> Result<(), String> {
        // With an interrupt it writes the rest of its log.
        run(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]), "kill")?;
        child.wait().map(drop).map_err(|e| format!("pgbench: {e}"))
    }

    /// What a script's transactions took: the median, one in a thousand, and the longest.
    pub fn pauses(&self, name: &str) -> Result<String, String> {
        let mut micros: Vec<u64> = Vec::new();
        let prefix = format!("{name}.");
        for file in self.folder.read_dir().map_err(|e| format!("{}: {e}", self.folder.display()))?.flatten() {
            let log = file.file_name().into_string().unwrap_or_default();
            if log.starts_with(&prefix) && !log.ends_with(".sql") {
                let text = std::fs::read_to_string(file.path()).map_err(|e| format!("{log}: {e}"))?;
                // client, number, microseconds, ...
                micros.extend(text.lines().filter_map(|l| l.split(' ').nth(2)?.parse::<u64>().ok()));
            }
        }
        micros.sort_unstable();
        let at =
            |share: f64| micros.get((micros.len() as f64 * share) as usize).or(micros.last()).map_or(0.0, |m| *m as f64 / 1e3);
        Ok(format!(
            "{} transactions, median {:.1} ms, one in 1000 above {:.1} ms, longest {:.1} ms",
            micros.len(),
            at(0.5),
            at(0.999),
            at(1.0)
        ))
    }
}

/// Measures the files of a data directory all the time, on a thread of its own.
pub struct Watch {
    now: Arc<AtomicU64>,
    pub most: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Watch {
    pub fn start(data: PathBuf) -> Watch {
        let watch = Watch { now: Arc::default(), most: Arc::default(), stop: Arc::default() };
        let (now, most, stop) = (Arc::clone(&watch.now), Arc::clone(&watch.most), Arc::clone(&watch.stop));
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let bytes = bytes_of(&data);
                now.store(bytes, Ordering::SeqCst);
                most.fetch_max(bytes, Ordering::SeqCst);
                std::thread::sleep(LOOK_EVERY);
            }
        });
        watch
    }

    /// The bytes once they have not changed for ten seconds.
    pub fn settled(&self, within: Duration) -> u64 {
        let began = Instant::now();
        let (mut last, mut since) = (0, Instant::now());
        while began.elapsed() < within && since.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(LOOK_EVERY);
            let now = self.now.load(Ordering::SeqCst);
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        last
    }

    /// Watches for so long; answers when the bytes were below the bar for good.
    fn below(&self, bar: u64, within: Duration) -> Option<Duration> {
        let began = Instant::now();
        let mut reached = None;
        while began.elapsed() < within {
            std::thread::sleep(LOOK_EVERY);
            let is_below = self.now.load(Ordering::SeqCst) < bar;
            reached = if is_below { reached.or(Some(began.elapsed())) } else { None };
        }
        reached
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// Bytes of all files below a folder.
fn bytes_of(folder: &Path) -> u64 {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
