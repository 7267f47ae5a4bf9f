//! `cargo xtask powercut`: power cuts below a real server, and disks that fail (crates/testkit, `powercut`).

use std::process::Command;

use crate::melba::binary;
use crate::{cargo, root};

/// Builds the programs, and passes the options on.
pub fn powercut(options: &[&str]) -> Result<(), String> {
    if run(options)? { Ok(()) } else { Err(format!("failed; again: cargo xtask powercut {}", options.join(" "))) }
}

fn run(options: &[&str]) -> Result<bool, String> {
    if std::env::var_os("MELBA").is_none() {
        cargo(&["build", "--quiet", "--package", "melba"])?;
    }
    cargo(&["build", "--quiet", "--package", "melba-powercut"])?;
    cargo(&["build", "--quiet", "--package", "melba-testkit", "--bin", "powercut"])?;
    let target = root().join("target");
    let mut judge = Command::new(target.join("debug/powercut"));
    judge.arg(binary()).arg(target.join("debug/libmelba_powercut.so"));
    judge.arg(target.join(format!("powercut-{}", std::process::id()))).args(options);
    Ok(judge.status().map_err(|e| format!("powercut: {e}"))?.success())
}

/// Two lives, six faults, and disks that lie, which must be found out.
pub fn ci() -> Result<(), String> {
    powercut(&["--rounds", "2", "--cuts", "4", "--faults", "6"])?;
    for lie in ["wal/", "MANIFEST"] {
        if run(&["--rounds", "4", "--cuts", "4", "--faults", "0", "--lie", lie])? {
            return Err(format!("a disk that does not sync {lie} was not found out"));
        }
        println!("ok      powercut: a disk that does not sync {lie} is found out");
    }
    Ok(())
}
