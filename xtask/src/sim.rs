//! `cargo xtask sim`: the simulation of the engine (crates/sim), built with optimisation and with its checks.

use crate::cargo;

/// Hands the options on. The bugs that `--plant` turns on are only built when it is asked for.
pub fn sim(options: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "--quiet", "--profile", "sim", "--package", "melba-sim"];
    if options.contains(&"--plant") {
        arguments.extend(["--features", "planted"]);
    }
    arguments.push("--");
    arguments.extend(options);
    cargo(&arguments)
}

/// The seeds of past failures, a minute of fresh ones, and that each bug planted on purpose is found.
pub fn ci() -> Result<(), String> {
    sim(&["--past", "--serializable"])?;
    sim(&["--minutes", "1", "--serializable"])?;
    for bug in ["skip-fsync", "publish-early", "drop-index-entry", "forget-prepared"] {
        sim(&["--plant", bug, "--from", "1", "--seeds", "1000", "--serializable"])?;
    }
    Ok(())
}
