//! Runs random statements on PostgreSQL and on Melba; `cargo xtask differential` starts it beside the two servers.

#![allow(clippy::disallowed_methods, reason = "it tests a server from outside, by real time")]

use std::time::Duration;

use melba_testkit::differential::{DifferentialOptions, Report, run};

const USAGE: &str = "usage: differential REFERENCE SERVER SECONDS SEED STATEMENTS [DIFFERENCES]
REFERENCE and SERVER are HOST:PORT[/DATABASE]; ends after so many seconds, statements or differences (20)";

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [reference, server, seconds, seed, statements, rest @ ..] = arguments.as_slice() else { return Err(USAGE.into()) };
    let number = |text: &String| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
    let options = DifferentialOptions {
        reference: reference.clone(),
        server: server.clone(),
        seed: number(seed)?,
        statements: usize::try_from(number(statements)?).map_err(|e| e.to_string())?,
        limit: Duration::from_secs(number(seconds)?),
        statements_a_round: 150,
        differences: rest.first().map_or(Ok(20), number)? as usize,
    };
    let report = run(&options)?;
    print(&report);
    if report.differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} statements differ; `cargo xtask differential --seed N` repeats the round of a seed",
        report.differences.len()
    ))
}

fn print(report: &Report) {
    println!(
        "differential: {} rounds, {} statements, {} rows, {} refused by both, {} differ",
        report.rounds,
        report.statements,
        report.rows,
        report.errors.values().map(|e| e.0).sum::<usize>(),
        report.differences.len()
    );
    for (state, (count, message)) in &report.errors {
        println!("  refused by both: {count} {state}, such as: {message}");
    }
    for (reason, count) in &report.explained {
        println!("  explained: {count} {reason:?}");
    }
    for (message, count) in &report.refused {
        println!("  refused by Melba: {count} {message}");
    }
}
