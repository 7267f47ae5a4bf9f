//! `cargo xtask history`: sessions over a server that is killed again and again; the checkers of crates/testkit judge their reads.

use std::process::Command;
use std::time::Duration;

use crate::melba::Melba;
use crate::{cargo, root};

pub struct Options {
    /// For each level.
    pub seconds: u32,
    /// How often the server is killed meanwhile.
    pub kills: u32,
    pub seed: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { seconds: 8, kills: 2, seed: 1 }
    }
}

const LEVELS: [&str; 3] = ["read-committed", "repeatable-read", "serializable"];
/// Histories of reads by predicate, at SERIALIZABLE.
const PREDICATES: &str = "predicates";

/// At one level, or at all when `level` is empty.
pub fn history(level: &str, options: &Options) -> Result<(), String> {
    cargo(&["build", "--quiet", "--package", "melba-testkit", "--bin", "history", "--bin", PREDICATES])?;
    match level {
        "" => LEVELS.iter().try_for_each(|level| run(level, options)).and_then(|()| predicates(options)),
        PREDICATES => predicates(options),
        level => run(level, options),
    }
}

/// Rows found by ranges of their keys. The server is not killed, and has more time.
fn predicates(options: &Options) -> Result<(), String> {
    let melba = Melba::fresh(PREDICATES)?;
    let address = format!("{}:{}", melba.address.host, melba.address.port);
    let mut sessions = Command::new(root().join("target/debug").join(PREDICATES));
    sessions.args([&address, &(2 * options.seconds).to_string(), &options.seed.to_string()]);
    if !sessions.status().map_err(|e| format!("predicates: {e}"))?.success() {
        return Err(format!("the history of predicates failed; again: cargo xtask history predicates --seed {}", options.seed));
    }
    melba.stop()
}

fn run(level: &str, options: &Options) -> Result<(), String> {
    let mut melba = Melba::fresh("history")?;
    let address = format!("{}:{}", melba.address.host, melba.address.port);
    let mut sessions = Command::new(root().join("target/debug/history"));
    sessions.args([&address, level, &options.seconds.to_string(), &options.seed.to_string()]);
    let mut sessions = sessions.spawn().map_err(|e| format!("history: {e}"))?;
    let pause = Duration::from_secs(u64::from(options.seconds)) / (options.kills + 1);
    for _ in 0..options.kills {
        std::thread::sleep(pause);
        melba = melba.crash_and_restart()?;
    }
    let status = sessions.wait().map_err(|e| format!("history: {e}"))?;
    if !status.success() {
        return Err(format!("history at {level} failed; again: cargo xtask history {level} --seed {}", options.seed));
    }
    melba.stop()
}
