//! `cargo xtask differential`: random statements on PostgreSQL and on Melba must have the same answers (crates/testkit, `differential`).

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::compare::reference_for;
use crate::melba::{Address, Melba};
use crate::{cargo, root};

pub struct Options {
    pub seconds: u32,
    /// The first round's; `None` draws one.
    pub seed: Option<u32>,
    pub statements: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { seconds: 60, seed: None, statements: u32::MAX }
    }
}

/// In CI: the same rounds each time.
const CI_SEED: u32 = 1;
const CI_STATEMENTS: u32 = 500;
/// As long as it takes on a busy machine.
const CI_SECONDS: u32 = 600;

/// One run of `options`.
pub fn differential(options: &Options, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    let seed = options.seed.unwrap_or_else(fresh_seed);
    play(&[(seed, options.seconds)], options.statements, server, reference)
}

/// A fixed number of statements, from a fixed seed. Fresh seeds are for users with time to examine their findings.
pub fn ci() -> Result<(), String> {
    play(&[(CI_SEED, CI_SECONDS)], CI_STATEMENTS, None, None)
}

fn fresh_seed() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_secs());
    // Far from the fixed one, and short enough to type.
    1_000_000 + u32::try_from(now % 1_000_000).unwrap_or(0) * 1_000
}

fn play(runs: &[(u32, u32)], statements: u32, server: Option<Address>, reference: Option<Address>) -> Result<(), String> {
    cargo(&["build", "--quiet", "--package", "melba-testkit", "--bin", "differential"])?;
    let mut postgres = None;
    let Some(reference) = reference_for("differential", reference, &mut postgres)? else { return Ok(()) };
    let melba = if server.is_none() { Some(Melba::fresh("differential")?) } else { None };
    let server = server.or_else(|| melba.as_ref().map(|m| m.address.clone())).ok_or("no server")?;
    for (seed, seconds) in runs {
        println!("differential: seed {seed}, {seconds} s");
        let mut tester = Command::new(root().join("target/debug/differential"));
        tester.args([reference.text(), server.text()]);
        tester.args([seconds, seed, &statements].map(u32::to_string));
        let status = tester.status().map_err(|e| format!("differential: {e}"))?;
        if !status.success() {
            return Err("differential failed; again: cargo xtask differential --seed N, with the seed of a difference".to_owned());
        }
    }
    drop(postgres);
    melba.map_or(Ok(()), Melba::stop)
}
