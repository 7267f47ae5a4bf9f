//! The differential tester: random schemas and statements, run on PostgreSQL and on Melba, whose answers must be the same.
//!
//! A round is a seed: a new schema, tables with rows, views, some changes, then statements. Each is run on both servers and
//! judged (`judge`, with the short list of harmless differences); a differing one is reduced (`reduce`) to a statement, and then
//! rows, as small as can be found, and printed as a psql script. Statements that change rows run in a transaction that is rolled
//! back after the tables have been compared, so that every statement of a round sees the same rows.

mod change;
mod expression;
mod from;
mod generator;
mod judge;
mod operators;
mod query;
mod reduce;
mod round;
mod schema;
mod server;
mod tree;
mod types;
mod window;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub use judge::{Difference, Reason, Verdict};
pub use server::TestedServer;

use round::Round;

pub struct DifferentialOptions {
    pub reference: String,
    pub server: String,
    pub seed: u64,
    /// Ends after these, whichever comes first.
    pub statements: usize,
    pub limit: Duration,
    /// Of one round.
    pub statements_a_round: usize,
    /// Ends after this many differences.
    pub differences: usize,
}

/// The counts of a run.
#[derive(Default)]
pub struct Report {
    pub rounds: usize,
    pub statements: usize,
    /// Of them both servers refused: by SQLSTATE, with the first statement.
    pub errors: BTreeMap<String, (usize, String)>,
    pub rows: usize,
    pub explained: BTreeMap<Reason, usize>,
    /// The features that Melba refuses, and how often.
    pub refused: BTreeMap<String, usize>,
    pub differences: Vec<String>,
}

/// Rounds from `seed` on, until one of the limits is reached.
pub fn run(options: &DifferentialOptions) -> Result<Report, String> {
    let mut report = Report::default();
    let end = Instant::now() + options.limit;
    let mut seed = options.seed;
    while report.statements < options.statements && Instant::now() < end && report.differences.len() < options.differences {
        let left = options.statements - report.statements;
        let mut round = Round::start(options, seed)?;
        round.play(left.min(options.statements_a_round), end, &mut report)?;
        report.rounds += 1;
        seed += 1;
    }
    Ok(report)
}
