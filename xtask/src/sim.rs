//! `cargo xtask sim`: the simulation of the engine (crates/sim), with its checks.

use crate::cargo;

/// Hands the options on. The bugs that `--plant` turns on are only built when it is asked for.
pub fn sim(options: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "--quiet", "--package", "melba-sim"];
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
    // The last needs three transactions that end in one order of many: it is found once in some ten thousand seeds.
    for (bug, first, seeds) in [
        ("skip-fsync", "1", "1000"),
        ("publish-early", "1", "1000"),
        ("drop-index-entry", "1", "1000"),
        ("forget-prepared", "15001", "10000"),
    ] {
        sim(&["--plant", bug, "--from", first, "--seeds", seeds, "--serializable"])?;
    }
    Ok(())
}
