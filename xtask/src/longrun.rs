//! `cargo xtask longrun`: TPC-B by pgbench and, where it is installed, sysbench's mixed workload, at once and for long, on a
//! server with so little memory that flushes and merges never stop. Then kill -9 under load.
//!
//! It fails on any error that a client sees (sysbench tries again after a deadlock: on more than a few of those), when the
//! server's memory grows, and when sums of money disagree, before the kill or after it. A run of minutes fails too when the 99th
//! percentile of TPC-B in any minute is more than five times the first minute's; a run of seconds only reports it, because the
//! load of a shared machine affects it as much.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::crash::balanced;
use crate::melba::{Melba, ask, postgres_program, run};
use crate::root;

pub struct Options {
    pub minutes: u32,
    pub scale: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { minutes: 1, scale: 2 }
    }
}

/// A longer run is judged minute by minute, a short one in parts of its minute.
const SHORT_INTERVAL_SECONDS: u32 = 10;
const P99_GROWTH_MAX: f64 = 5.0;
/// Memory of a later third of the run against the one before it.
const MEMORY_GROWTH_MAX: f64 = 1.2;
const MEMORY_NOISE_BYTES: u64 = 32 << 20;
/// Transactions of sysbench's mixed workload for each that may have to be tried again.
const SYSBENCH_TRANSACTIONS_PER_ERROR_MIN: u64 = 200;
const CLIENTS: &str = "8";
/// Memory for rows and cache: little, so that the load is many times as large.
const SHARED_BUFFERS: &str = "shared_buffers=24MB";
const SYSBENCH_TABLES: [&str; 2] = ["--tables=2", "--table-size=10000"];

/// The measurements of one interval.
struct Interval {
    transactions: u64,
    p99_milliseconds: f64,
    memory_bytes: u64,
}

struct Run {
    melba: Melba,
    pgbench: PathBuf,
    sysbench: Option<PathBuf>,
    logs: PathBuf,
    seconds: u32,
}

pub fn longrun(options: &Options) -> Result<(), String> {
    let Some(pgbench) = postgres_program("pgbench") else {
        println!("skipped longrun: pgbench is not installed");
        return Ok(());
    };
    let sysbench = postgres_program("sysbench");
    if sysbench.is_none() {
        println!("longrun: sysbench is not installed, pgbench runs alone");
    }
    let melba = Melba::fresh_with("longrun", &["-c", SHARED_BUFFERS])?;
    let scale = options.scale.to_string();
    run(melba.address.client(&pgbench).args(["-i", "-q", "-s", &scale]).stderr(Stdio::null()), "pgbench -i")?;
    let (seconds, count) = match options.minutes {
        0 | 1 => (SHORT_INTERVAL_SECONDS, 60 / SHORT_INTERVAL_SECONDS),
        minutes => (60, minutes),
    };
    let logs = root().join("target/longrun-logs");
    let mut work = Run { melba, pgbench, sysbench, logs, seconds };
    work.prepare_sysbench()?;
    let mut intervals = Vec::new();
    let first_file = newest_segment(&work.melba.data());
    for number in 1..=count {
        let interval = work.interval(number)?;
        intervals.push(interval);
        match check_p99(&intervals) {
            Err(e) if options.minutes <= 1 => println!("note    longrun: {e}"),
            result => result?,
        }
    }
    check_memory(&intervals)?;
    let written = newest_segment(&work.melba.data()) - first_file;
    if written == 0 {
        return Err("no segment was written: the load was too small to show anything".to_owned());
    }
    work.check_balance(&intervals)?;
    let total: u64 = intervals.iter().map(|i| i.transactions).sum();
    println!("ok      longrun: {total} transactions, {written} segments written, the sums agree");
    work.kill_under_load()
}

impl Run {
    fn prepare_sysbench(&self) -> Result<(), String> {
        let Some(mut prepare) = self.sysbench_command() else { return Ok(()) };
        run(prepare.arg("prepare").stdout(Stdio::null()), "sysbench prepare")
    }

    fn sysbench_command(&self) -> Option<Command> {
        let mut command = Command::new(self.sysbench.as_ref()?);
        let address = &self.melba.address;
        command.args(["oltp_read_write", "--db-driver=pgsql", "--pgsql-user=postgres", "--threads=4", "--report-interval=0"]);
        command.arg(format!("--pgsql-host={}", address.host)).arg(format!("--pgsql-port={}", address.port));
        command.arg(format!("--pgsql-db={}", address.database)).args(SYSBENCH_TABLES);
        Some(command)
    }

    fn pgbench_command(&self, seconds: u32) -> Command {
        let mut command = self.melba.address.client(&self.pgbench);
        command.args(["-n", "-c", CLIENTS, "-j", "2", "-M", "prepared", "-T", &seconds.to_string()]);
        command
    }

    /// Both loads at once.
    fn interval(&mut self, number: u32) -> Result<Interval, String> {
        let _ = std::fs::remove_dir_all(&self.logs);
        std::fs::create_dir_all(&self.logs).map_err(|e| format!("{}: {e}", self.logs.display()))?;
        let sysbench = self.sysbench_command().map(|mut command| {
            command.args(["--percentile=99", &format!("--time={}", self.seconds), "run"]);
            start(&mut command, "sysbench")
        });
        let mut pgbench = self.pgbench_command(self.seconds);
        pgbench.args(["-l", "--log-prefix"]).arg(self.logs.join("log"));
        let pgbench = start(&mut pgbench, "pgbench")?;
        let report = finish(pgbench, "pgbench")?;
        let failed = value(&report, "number of failed transactions:").unwrap_or("0");
        if failed != "0" {
            return Err(format!("interval {number}: {failed} transactions of pgbench failed"));
        }
        let sysbench = sysbench.transpose()?.map(|child| finish(child, "sysbench")).transpose()?;
        if let Some(report) = &sysbench {
            check_sysbench(report).map_err(|e| format!("interval {number}: {e}"))?;
        }
        let interval = Interval {
            transactions: value(&report, "number of transactions actually processed:").and_then(|n| n.parse().ok()).unwrap_or(0),
            p99_milliseconds: percentile(latencies(&self.logs)?),
            memory_bytes: self.melba.memory_bytes("VmRSS"),
        };
        println!(
            "{number:4}  TPC-B {:7.0} tps, p99 {:7.1} ms   sysbench {:>8} transactions, p99 {:>7} ms   {:5} MB",
            interval.transactions as f64 / f64::from(self.seconds),
            interval.p99_milliseconds,
            sysbench.as_deref().and_then(|r| value(r, "transactions:")).unwrap_or("-"),
            sysbench.as_deref().and_then(|r| value(r, "99th percentile:")).unwrap_or("-"),
            interval.memory_bytes >> 20,
        );
        Ok(interval)
    }

    /// The history has exactly the transactions that pgbench was told of.
    fn check_balance(&self, intervals: &[Interval]) -> Result<(), String> {
        let acknowledged: u64 = intervals.iter().map(|i| i.transactions).sum();
        match balanced(&self.melba.address)? {
            there if there == acknowledged => Ok(()),
            there => Err(format!("{acknowledged} transactions were acknowledged, {there} are there")),
        }
    }

    fn kill_under_load(self) -> Result<(), String> {
        let before = balanced(&self.melba.address)?;
        let mut bench = self.pgbench_command(600);
        let mut bench = bench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| format!("pgbench: {e}"))?;
        std::thread::sleep(Duration::from_secs(2));
        let melba = self.melba.crash_and_restart()?;
        bench.wait().map_err(|e| format!("pgbench: {e}"))?;
        let after = balanced(&melba.address)?;
        if after < before {
            return Err(format!("{before} transactions before kill -9, {after} after it"));
        }
        ask(&melba.address, "insert into pgbench_history (tid) values (0)")?;
        println!("ok      longrun: kill -9 under load, the sums agree");
        melba.stop()
    }
}

/// sysbench tries a transaction again that failed for a deadlock, and says so in its report only.
fn check_sysbench(report: &str) -> Result<(), String> {
    let number = |label| value(report, label).and_then(|n| n.parse::<u64>().ok());
    let (Some(transactions), Some(errors), Some(reconnects)) =
        (number("transactions:"), number("ignored errors:"), number("reconnects:"))
    else {
        return Err(format!("sysbench's report lacks its counts:\n{report}"));
    };
    if reconnects > 0 || errors * SYSBENCH_TRANSACTIONS_PER_ERROR_MIN > transactions + SYSBENCH_TRANSACTIONS_PER_ERROR_MIN {
        return Err(format!("sysbench: {transactions} transactions, {errors} errors, {reconnects} reconnects"));
    }
    Ok(())
}

/// Whether the newest interval is about as the first one was.
fn check_p99(intervals: &[Interval]) -> Result<(), String> {
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else { return Ok(()) };
    if last.p99_milliseconds > first.p99_milliseconds * P99_GROWTH_MAX {
        return Err(format!(
            "the 99th percentile of interval {} is {:.1} ms, of the first {:.1} ms",
            intervals.len(),
            last.p99_milliseconds,
            first.p99_milliseconds
        ));
    }
    Ok(())
}

fn check_memory(intervals: &[Interval]) -> Result<(), String> {
    let third = intervals.len().div_ceil(3);
    let most = |part: &[Interval]| part.iter().map(|i| i.memory_bytes).max().unwrap_or(0);
    let (earlier, later) = intervals.split_at(intervals.len() - third);
    let (before, after) = (most(earlier), most(later));
    if after as f64 > before as f64 * MEMORY_GROWTH_MAX + MEMORY_NOISE_BYTES as f64 {
        return Err(format!("the server's memory grew from {} to {} MB", before >> 20, after >> 20));
    }
    Ok(())
}

fn start(command: &mut Command, what: &str) -> Result<Child, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|e| format!("{what}: {e}"))
}

/// The output of a program that is to succeed.
fn finish(child: Child, what: &str) -> Result<String, String> {
    let output = child.wait_with_output().map_err(|e| format!("{what}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{what} failed: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    Ok(text)
}

/// The word after a label of a report.
fn value<'t>(report: &'t str, label: &str) -> Option<&'t str> {
    report.lines().find_map(|l| l.trim_start().strip_prefix(label)?.split_whitespace().next())
}

/// The third column of pgbench's logs, in microseconds.
fn latencies(logs: &Path) -> Result<Vec<u64>, String> {
    let mut all = Vec::new();
    for file in logs.read_dir().map_err(|e| format!("{}: {e}", logs.display()))?.flatten() {
        let text = std::fs::read_to_string(file.path()).map_err(|e| format!("{}: {e}", file.path().display()))?;
        all.extend(text.lines().filter_map(|l| l.split(' ').nth(2)?.parse::<u64>().ok()));
    }
    Ok(all)
}

/// The 99th percentile in milliseconds.
fn percentile(mut latencies: Vec<u64>) -> f64 {
    latencies.sort_unstable();
    let at = latencies.len() * 99 / 100;
    latencies.get(at).map_or(0.0, |l| *l as f64 / 1000.0)
}

/// The greatest number of a segment file: flushes and merges make it grow.
fn newest_segment(data: &Path) -> u64 {
    let names = data.join("segments").read_dir().into_iter().flatten().flatten().filter_map(|f| f.file_name().into_string().ok());
    names.filter_map(|n| u64::from_str_radix(n.strip_suffix(".seg")?, 16).ok()).max().unwrap_or(0)
}
