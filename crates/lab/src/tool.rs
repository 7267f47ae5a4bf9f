//! External programs: their places, their output, and their resource use.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::Result;

/// The resources that a finished program used.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub elapsed: Duration,
    /// Its largest resident memory.
    pub memory_bytes: u64,
}

/// Debian's folder of PostgreSQL's programs, one folder a version.
const POSTGRESQL: &str = "/usr/lib/postgresql";

/// Folders of PostgreSQL programs that have one of this name: every installed version's, oldest first.
pub fn postgresql_folders(program: &str) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(POSTGRESQL)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path().join("bin"))))
        .filter(|(_, bin)| bin.join(program).exists())
        .collect();
    versions.sort();
    versions.into_iter().map(|(_, bin)| bin).collect()
}

/// A program on PATH or, for PostgreSQL's own, in the newest version's folder.
pub fn find(program: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|p| p.is_file());
    let newest = || Some(postgresql_folders(program).pop()?.join(program));
    on_path.or_else(newest).ok_or_else(|| format!("{program} is not installed"))
}

/// A program's output, when it succeeds.
pub fn output(command: &mut Command) -> Result<String> {
    let name = name(command);
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    if !output.status.success() {
        return Err(failure(&name, output.status, &output.stderr, &output.stdout));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program for its effect and returns its resource use.
pub fn measure(command: &mut Command) -> Result<Run> {
    let name = name(command);
    let errors = tempfile_path(&name);
    let sink = std::fs::File::create(&errors).map_err(|e| format!("{}: {e}", errors.display()))?;
    let started = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(sink).spawn().map_err(|e| format!("{name}: {e}"))?;
    let waited = wait(child.id());
    let elapsed = started.elapsed();
    let printed = std::fs::read(&errors).unwrap_or_default();
    let _ = std::fs::remove_file(&errors);
    let (status, memory_bytes) = waited.map_err(|e| format!("{name}: {e}"))?;
    if !status.success() {
        return Err(failure(&name, status, &printed, &[]));
    }
    Ok(Run { elapsed, memory_bytes })
}

/// Bytes of a file, or of all files below a folder; and how many files there are.
pub fn size(path: &Path) -> (u64, u64) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|e| size(&e.path())).fold((0, 0), |(a, b), (c, d)| (a + c, b + d)),
        Err(_) => std::fs::metadata(path).map_or((0, 0), |m| (m.len(), 1)),
    }
}

/// The status of a child of ours and its largest resident memory.
fn wait(pid: u32) -> std::io::Result<(ExitStatus, u64)> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to locals that live through the call; the child is ours and nothing else waits for it.
        let waited = unsafe { libc::wait4(pid as libc::pid_t, &mut status, 0, &mut usage) };
        if waited >= 0 {
            return Ok((ExitStatus::from_raw(status), usage.ru_maxrss as u64 * 1024));
        }
        let e = std::io::Error::last_os_error();
        if e.kind() != std::io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

fn tempfile_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("melba-lab-{}-{name}.err", std::process::id()))
}

fn name(command: &Command) -> String {
    Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The last lines of its output say why.
fn failure(name: &str, status: ExitStatus, errors: &[u8], printed: &[u8]) -> String {
    let text = [errors, printed].map(String::from_utf8_lossy).join("\n");
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    format!("{name} ended with {status}: {}", lines[lines.len().saturating_sub(5)..].join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_failures_are_seen() {
        let run = measure(Command::new("sh").args(["-c", "true"])).unwrap();
        assert!(run.memory_bytes > 100_000);
        let error = measure(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(error.contains("why") && error.contains('3'), "{error}");
        assert_eq!(output(Command::new("echo").arg("x")).unwrap(), "x\n");
    }
}
