//! sysbench's workloads against PostgreSQL's protocol and MySQL's, by the real sysbench.

use std::process::Command;
use std::time::Duration;

use clap::Args;

use crate::progress::Progress;
use crate::report::{Collector, Key, Report};
use crate::slow_disk::SlowDisk;
use crate::target::Protocol;
use crate::{Common, Result, Target, tool};

#[derive(Debug, Args)]
pub struct SysbenchOptions {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    disk: SlowDisk,
    #[arg(long, default_value_t = 16)]
    threads: u32,
    #[arg(long, default_value_t = 4)]
    tables: u32,
    /// Rows of each table
    #[arg(long, default_value_t = 100_000)]
    rows: u32,
    /// Duration of each run
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// Workloads; by default the published six, then four more
    #[arg(long, value_delimiter = ',', default_values_t = WORKLOADS.map(str::to_owned))]
    workloads: Vec<String>,
}

const WORKLOADS: [&str; 10] = [
    "bulk_insert",
    "oltp_insert",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_point_select",
    "select_random_ranges",
    "oltp_read_only",
    "oltp_delete",
    "oltp_update_non_index",
    "select_random_points",
];

pub fn run(options: &SysbenchOptions) -> Result<Report> {
    let common = &options.common;
    let parameters = vec![
        ("threads", options.threads.to_string()),
        ("tables", options.tables.to_string()),
        ("rows", options.rows.to_string()),
        ("seconds", options.seconds.to_string()),
    ];
    let parameters = parameters.into_iter().chain(options.disk.parameters()).collect();
    let mut report = Report::new("sysbench", common, parameters)?;
    let mut collector = Collector::new(common.targets.len());
    let delays = options.disk.delays();
    let lines = common.rounds as usize * delays.len() * options.workloads.len();
    let progress = Progress::new(lines * common.targets.len());
    for round in 1..=common.rounds {
        for (delay, workload) in delays.iter().flat_map(|delay| options.workloads.iter().map(move |workload| (*delay, workload)))
        {
            for (index, target) in common.targets.iter().enumerate() {
                progress.step(format_args!("round {round}: {}, {}", SlowDisk::section(workload, delay), target.name));
                options.disk.set(delay)?;
                SlowDisk::check(delay, target, index, &mut collector)?;
                let outcome = measure(options, workload, delay, target)?;
                collect(workload, delay, &outcome, index, &mut collector);
            }
        }
    }
    options.disk.set(Some(Duration::ZERO))?;
    report.finish(&collector, Vec::new());
    report
        .notes
        .push("Deadlocks and serialization failures are tried again, any other error ends the experiment; bulk_insert counts rows, the others transactions.".to_owned());
    Ok(report)
}

fn collect(workload: &str, delay: Option<Duration>, outcome: &SysbenchOutcome, index: usize, collector: &mut Collector) {
    let section = |title| SlowDisk::section(title, delay);
    collector.add(Key::higher(section("Throughput"), workload, "1/s"), index, outcome.rate);
    collector.add(Key::lower(section("Latency, 99 %"), workload, "ms"), index, outcome.latency_99);
    collector.add(Key::lower(section("Statements tried again"), workload, "errors"), index, outcome.errors);
    if let Some(seconds) = outcome.cpu_seconds {
        let micros = seconds * 1e6 / outcome.events;
        collector.add(Key::lower(section("Server's CPU"), workload, "us an event"), index, micros);
    }
}

#[derive(Debug, Default)]
struct SysbenchOutcome {
    events: f64,
    /// Deadlocks and serialization failures, which sysbench tries again; any other ends it.
    errors: f64,
    rate: f64,
    /// In milliseconds.
    latency_99: f64,
    cpu_seconds: Option<f64>,
}

fn measure(options: &SysbenchOptions, workload: &str, delay: Option<Duration>, target: &Target) -> Result<SysbenchOutcome> {
    let step = |step: &str| {
        let command = &mut command(options, workload, target)?;
        tool::output(command.arg(step)).map_err(|e| format!("{}, {workload} {step}: {e}", target.name))
    };
    // The remains of an interrupted run would be in the way.
    options.disk.set(Some(Duration::ZERO))?;
    step("cleanup")?;
    step("prepare")?;
    options.disk.set(delay)?;
    let process = target.process();
    let before = process.map(|p| p.usage());
    let report = step("run")?;
    let used = process.map(|p| p.usage()).zip(before).map(|(after, before)| after.since(before).cpu_seconds);
    options.disk.set(Some(Duration::ZERO))?;
    step("cleanup")?;
    let outcome = parse(&report).map_err(|e| format!("{}, {workload}: {e}", target.name))?;
    Ok(SysbenchOutcome { cpu_seconds: used, ..outcome })
}

fn command(options: &SysbenchOptions, workload: &str, target: &Target) -> Result<Command> {
    let (driver, prefix) = match target.protocol {
        Protocol::PostgreSql => ("pgsql", "pgsql"),
        Protocol::MySql => ("mysql", "mysql"),
    };
    let mut command = Command::new(tool::find("sysbench")?);
    command.arg(workload).arg(format!("--db-driver={driver}"));
    let connection = [
        ("host", target.host.clone()),
        ("port", target.port.to_string()),
        ("user", target.user.clone()),
        ("password", target.password.clone()),
        ("db", target.database.clone()),
    ];
    command.args(connection.map(|(name, value)| format!("--{prefix}-{name}={value}")));
    // bulk_insert has a table a thread, the select_random ones have one.
    let tables = match workload {
        "bulk_insert" => options.threads,
        "select_random_ranges" | "select_random_points" => 1,
        _ => options.tables,
    };
    let load = [("threads", options.threads), ("tables", tables), ("table-size", options.rows), ("time", options.seconds)];
    command.args(load.map(|(name, value)| format!("--{name}={value}"))).args(["--rand-type=uniform", "--percentile=99"]);
    Ok(command)
}

/// sysbench's report.
fn parse(text: &str) -> Result<SysbenchOutcome> {
    let after = |start: &str| text.lines().find_map(|l| l.trim().strip_prefix(start)).and_then(|v| v.split_whitespace().next());
    let number = |start: &str| -> Result<f64> {
        after(start).and_then(|v| v.parse().ok()).ok_or_else(|| format!("sysbench's report has no \"{start}\""))
    };
    let (events, seconds) = (number("total number of events:")?, seconds(text)?);
    let errors = number("ignored errors:")?;
    Ok(SysbenchOutcome { events, errors, rate: events / seconds, latency_99: number("99th percentile:")?, cpu_seconds: None })
}

/// "total time: 10.0012s"
fn seconds(text: &str) -> Result<f64> {
    let line = text.lines().find_map(|l| l.trim().strip_prefix("total time:"));
    line.and_then(|v| v.trim().trim_end_matches('s').parse().ok()).ok_or_else(|| "sysbench's report has no total time".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "SQL statistics:
    transactions:                        1000   (100.0 per sec.)
    ignored errors:                      0      (0.00 per sec.)
General statistics:
    total time:                          10.0000s
    total number of events:              1000
Latency (ms):
         99th percentile:                        2.50
";

    #[test]
    fn the_report_is_read() {
        let outcome = parse(REPORT).unwrap();
        assert_eq!((outcome.events, outcome.rate, outcome.latency_99), (1000.0, 100.0, 2.5));
        assert_eq!(
            parse(&REPORT.replace("errors:                      0", "errors:                      3")).unwrap().errors,
            3.0
        );
        assert!(parse("").is_err());
    }
}
