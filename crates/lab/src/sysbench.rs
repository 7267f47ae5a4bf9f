//! sysbench's workloads against PostgreSQL's protocol and MySQL's, by the real sysbench.

use std::process::Command;

use clap::Args;

use crate::progress::Progress;
use crate::report::{Collector, Key, Report};
use crate::target::Protocol;
use crate::{Common, Result, Target, tool};

#[derive(Debug, Args)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,
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

pub fn run(options: &Options) -> Result<Report> {
    let common = &options.common;
    let parameters = vec![
        ("threads", options.threads.to_string()),
        ("tables", options.tables.to_string()),
        ("rows", options.rows.to_string()),
        ("seconds", options.seconds.to_string()),
    ];
    let mut report = Report::new("sysbench", common, parameters)?;
    let mut collector = Collector::new(common.targets.len());
    let progress = Progress::new(common.rounds as usize * options.workloads.len() * common.targets.len());
    for round in 1..=common.rounds {
        for workload in &options.workloads {
            for (index, target) in common.targets.iter().enumerate() {
                progress.step(format_args!("round {round}: {workload}, {}", target.name));
                let outcome = measure(options, workload, target)?;
                collector.add(Key::higher("Throughput", workload.as_str(), "1/s"), index, outcome.rate);
                collector.add(Key::lower("Latency, 95 %", workload.as_str(), "ms"), index, outcome.latency_95);
                collector.add(Key::lower("Statements tried again", workload.as_str(), "errors"), index, outcome.errors);
                if let Some(seconds) = outcome.cpu_seconds {
                    let micros = seconds * 1e6 / outcome.events;
                    collector.add(Key::lower("Server's CPU", workload.as_str(), "us an event"), index, micros);
                }
            }
        }
    }
    report.finish(&collector, Vec::new());
    report
        .notes
        .push("Deadlocks and serialization failures are tried again, any other error ends the experiment; bulk_insert counts rows, the others transactions.".to_owned());
    Ok(report)
}

#[derive(Debug, Default)]
struct Outcome {
    events: f64,
    /// Deadlocks and serialization failures, which sysbench tries again; any other ends it.
    errors: f64,
    rate: f64,
    /// In milliseconds.
    latency_95: f64,
    cpu_seconds: Option<f64>,
}

fn measure(options: &Options, workload: &str, target: &Target) -> Result<Outcome> {
    let step = |step: &str| {
        let command = &mut command(options, workload, target)?;
        tool::output(command.arg(step)).map_err(|e| format!("{}, {workload} {step}: {e}", target.name))
    };
    // What an interrupted run left would be in the way.
    step("cleanup")?;
    step("prepare")?;
    let process = target.process();
    let before = process.map(|p| p.usage());
    let report = step("run")?;
    let used = process.map(|p| p.usage()).zip(before).map(|(after, before)| after.since(before).cpu_seconds);
    step("cleanup")?;
    let outcome = parse(&report).map_err(|e| format!("{}, {workload}: {e}", target.name))?;
    Ok(Outcome { cpu_seconds: used, ..outcome })
}

fn command(options: &Options, workload: &str, target: &Target) -> Result<Command> {
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
    command.args(load.map(|(name, value)| format!("--{name}={value}"))).args(["--rand-type=uniform", "--percentile=95"]);
    Ok(command)
}

/// sysbench's report.
fn parse(text: &str) -> Result<Outcome> {
    let after = |start: &str| text.lines().find_map(|l| l.trim().strip_prefix(start)).and_then(|v| v.split_whitespace().next());
    let number = |start: &str| -> Result<f64> {
        after(start).and_then(|v| v.parse().ok()).ok_or_else(|| format!("sysbench's report has no \"{start}\""))
    };
    let (events, seconds) = (number("total number of events:")?, seconds(text)?);
    let errors = number("ignored errors:")?;
    Ok(Outcome { events, errors, rate: events / seconds, latency_95: number("95th percentile:")?, cpu_seconds: None })
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
         95th percentile:                        2.50
";

    #[test]
    fn the_report_is_read() {
        let outcome = parse(REPORT).unwrap();
        assert_eq!((outcome.events, outcome.rate, outcome.latency_95), (1000.0, 100.0, 2.5));
        assert_eq!(
            parse(&REPORT.replace("errors:                      0", "errors:                      3")).unwrap().errors,
            3.0
        );
        assert!(parse("").is_err());
    }
}
