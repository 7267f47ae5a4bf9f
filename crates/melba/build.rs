//! Names the commit for `melba --version` and version(), and lets libpg_query and lz4 each bring their own copy of xxHash: whichever is
//! linked first serves both.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    // Without git, or outside a clone, the version stands alone.
    let commit = git(&["rev-parse", "--short=9", "HEAD"]).map_or_else(String::new, |commit| format!(" {commit}"));
    println!("cargo::rustc-env=MELBA_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg=-Wl,--allow-multiple-definition");
}
