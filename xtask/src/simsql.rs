//! `cargo xtask simsql`: SQL under simulation (crates/simsql).

use crate::cargo;

/// Hands the options on.
pub fn simsql(options: &[&str]) -> Result<(), String> {
    let mut arguments = vec!["run", "--quiet", "--package", "melba-simsql", "--"];
    arguments.extend(options);
    cargo(&arguments)
}

/// Half a minute of fresh seeds, and that a bug planted on purpose is found.
pub fn ci() -> Result<(), String> {
    simsql(&["--seconds", "30"])?;
    simsql(&["--plant", "no-fsync", "--from", "1", "--seeds", "50"])
}
