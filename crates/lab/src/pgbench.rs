//! Drives the real pgbench and reads its report.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::statistics::{deviation, percentile};
use crate::{Result, Target, tool};

/// How pgbench runs.
#[derive(Clone, Debug)]
pub struct Load {
    pub clients: u32,
    pub threads: u32,
    pub seconds: u32,
    /// simple, extended or prepared
    pub protocol: String,
    /// The built-in transaction.
    pub script: String,
    /// Settings of every connection, as for PGOPTIONS.
    pub options: String,
}

/// The result of a run; latencies in milliseconds.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub transactions: u64,
    pub tps: f64,
    pub latency_average: f64,
    pub latency_deviation: f64,
    /// By statement of the script, in its order.
    pub statements: Vec<(String, f64)>,
    /// Of single transactions, by share (0.5, 0.95, ...).
    pub percentiles: Vec<(f64, f64)>,
}

pub const PERCENTILES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];

/// Creates the tables again.
pub fn initialize(target: &Target, scale: u32, arguments: &[&str], options: &str) -> Result<()> {
    let mut command = target.client_program(tool::find("pgbench")?);
    command.env("PGOPTIONS", options).args(["--initialize", "--quiet", "--scale", &scale.to_string()]).args(arguments);
    tool::output(&mut command).map(drop).map_err(|e| format!("{}: {e}", target.name))
}

/// Runs one of pgbench's own transactions.
pub fn run(target: &Target, load: &Load) -> Result<Outcome> {
    let folder = std::env::temp_dir().join(format!("melba-lab-pgbench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let outcome = command(target, load, &folder).and_then(|mut c| tool::output(&mut c)).and_then(|text| {
        let mut outcome = parse(&text)?;
        let mut latencies = latencies(&folder)?;
        outcome.latency_deviation = deviation(&latencies);
        outcome.percentiles = PERCENTILES.map(|share| (share, percentile(&mut latencies, share))).to_vec();
        Ok(outcome)
    });
    let _ = std::fs::remove_dir_all(&folder);
    outcome.map_err(|e| format!("{}: {e}", target.name))
}

fn command(target: &Target, load: &Load, folder: &Path) -> Result<Command> {
    let mut command = target.client_program(tool::find("pgbench")?);
    command.current_dir(folder).env("PGOPTIONS", &load.options).args(["--no-vacuum", "--report-per-command", "--log"]);
    command.args(["--protocol", &load.protocol, "--builtin", &load.script]);
    for (option, value) in [("--client", load.clients), ("--jobs", load.threads), ("--time", load.seconds)] {
        command.args([option, &value.to_string()]);
    }
    Ok(command)
}

/// pgbench's report, without the data of its log. A failed transaction is an error of the target: TPC-B at READ COMMITTED has none.
fn parse(text: &str) -> Result<Outcome> {
    let after =
        |start: &str| text.lines().find_map(|l| l.trim().strip_prefix(start)).map(|v| v.split_whitespace().next().unwrap_or(""));
    let number = |start: &str| -> Result<f64> {
        after(start).and_then(|v| v.split('/').next()?.parse().ok()).ok_or_else(|| format!("pgbench's report has no \"{start}\""))
    };
    if let Some(failed) = after("number of failed transactions:").filter(|f| *f != "0") {
        return Err(format!("{failed} transactions failed"));
    }
    let statements = text.lines().skip_while(|l| !l.starts_with("statement latencies")).skip(1).filter_map(statement);
    Ok(Outcome {
        transactions: number("number of transactions actually processed:")? as u64,
        tps: number("tps =")?,
        latency_average: number("latency average =")?,
        latency_deviation: f64::NAN,
        statements: statements.filter(|(s, _)| !s.starts_with('\\')).collect(),
        percentiles: Vec::new(),
    })
}

/// A latency, since version 15 a number of failures, and the statement.
fn statement(line: &str) -> Option<(String, f64)> {
    let (latency, rest) = line.trim().split_once(char::is_whitespace)?;
    let rest = rest.trim();
    let text = match rest.split_once(char::is_whitespace) {
        Some((failures, text)) if failures.parse::<u64>().is_ok() => text.trim(),
        _ => rest,
    };
    Some((text.trim_end_matches(';').to_owned(), latency.parse().ok()?))
}

/// Milliseconds of every transaction, from the log files: client, number, microseconds, ...
fn latencies(folder: &Path) -> Result<Vec<f64>> {
    let shown = |e: std::io::Error| format!("{}: {e}", folder.display());
    let logs: Vec<PathBuf> = std::fs::read_dir(folder).map_err(shown)?.flatten().map(|e| e.path()).collect();
    let mut latencies = Vec::new();
    for log in logs {
        let text = std::fs::read_to_string(&log).map_err(shown)?;
        let micros = text.lines().filter_map(|l| l.split(' ').nth(2)?.parse::<f64>().ok());
        latencies.extend(micros.map(|us| us / 1000.0));
    }
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "transaction type: <builtin: TPC-B (sort of)>
scaling factor: 1
number of transactions actually processed: 123/1000
number of failed transactions: 0 (0.000%)
latency average = 0.481 ms
initial connection time = 1.5 ms
tps = 2077.3 (without initial connection time)
statement latencies in milliseconds and failures:
         0.001           0  \\set aid random(1, 100000 * :scale)
         0.045           0  BEGIN;
         0.300           0  UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
";

    #[test]
    fn the_report_is_read() {
        let outcome = parse(REPORT).unwrap();
        assert_eq!((outcome.transactions, outcome.tps, outcome.latency_average), (123, 2077.3, 0.481));
        assert_eq!(outcome.statements[0], ("BEGIN".to_owned(), 0.045));
        assert_eq!(outcome.statements.len(), 2);
        assert!(parse(&REPORT.replace("transactions: 0 (", "transactions: 7 (")).unwrap_err().contains('7'));
        assert!(parse("nothing").is_err());
    }
}
