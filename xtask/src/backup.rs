//! `cargo xtask backup`: backups of a server under load, and their restores: the sums of pgbench agree in each, and a position in
//! the log is exact to the transaction. Damage is found, and no damaged data restored.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::crash::balanced;
use crate::melba::{Address, Melba, ask, binary, postgres_program, run};
use crate::root;

const COUNT: &str = "select count(*) from pgbench_history";
/// A followed backup has this long for the last commits.
const INTERVAL: &str = "1s";

pub fn backup() -> Result<(), String> {
    let Some(pgbench) = postgres_program("pgbench") else {
        println!("skipped backup: pgbench is not installed");
        return Ok(());
    };
    let melba = Melba::fresh("backup")?;
    let folder = root().join("target").join(format!("backup-copies-{}", std::process::id()));
    let place = folder.join("place");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let from = format!("postgres://postgres@{}:{}/postgres", melba.address.host, melba.address.port);

    run(melba.address.client(&pgbench).args(["-i", "-q", "-s", "1"]).stderr(Stdio::null()), "pgbench -i")?;
    make(&from, &place, &[])?;
    let mut follower =
        Follower(command("backup", &from, &place).args(["--follow", INTERVAL, "--renew", "3s"]).spawn().map_err(failed)?);
    let load = ["-n", "-c", "4", "-j", "2", "-T", "8", "-M", "prepared"];
    run(melba.address.client(&pgbench).args(load).stdout(Stdio::null()).stderr(Stdio::null()), "pgbench")?;
    let (position, transactions) = (ask(&melba.address, "select pg_current_wal_lsn()")?, ask(&melba.address, COUNT)?);
    for _ in 0..3 {
        ask(&melba.address, "insert into pgbench_history select 1, 1, 1, 0, now() from generate_series(1, 10)")?;
    }
    ask(&melba.address, "create table loaded as select i, repeat('x', 100) as t from generate_series(1, 100000) i")?;
    let all = ask(&melba.address, COUNT)?;
    std::thread::sleep(Duration::from_secs(5));
    if let Some(status) = follower.0.try_wait().map_err(failed)? {
        return Err(format!("the backup that follows ended: {status}"));
    }
    drop(follower);
    melba.stop()?;

    look("verify", &place, true)?;
    let restored = Restored { place: &place, folder: &folder };
    let listed = look("list", &place, true)?;
    let names: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    if names.len() < 3 {
        return Err(format!("three backups or more were expected:\n{listed}"));
    }
    for name in &names[..names.len() - 1] {
        restored.check(&["--backup", name], |address| balanced(address).map(|_| ()))?;
    }
    restored.check(&["--to-lsn", &position], |address| expect(address, COUNT, &transactions))?;
    restored.check(&[], |address| {
        expect(address, COUNT, &all)?;
        expect(address, "select count(*), sum(length(t)) from loaded", "100000|10000000")
    })?;
    println!("ok      backup: {} backups under pgbench, restored with their sums, and exactly at {position}", names.len());

    run(
        Command::new(binary()).args(["backup", "expire", "--keep", "0s", "--in"]).arg(&place).stdout(Stdio::null()),
        "melba backup expire",
    )?;
    look("verify", &place, true)?;
    restored.check(&[], |address| expect(address, COUNT, &all))?;
    let segment = largest(&place)?;
    let mut bytes = std::fs::read(&segment).map_err(failed)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).map_err(failed)?;
    look("verify", &place, false)?;
    if restored.make(&[]).is_ok() {
        return Err("a damaged backup was restored".to_owned());
    }
    println!("ok      backup: old ones go, damage is found and not restored");
    std::fs::remove_dir_all(&folder).map_err(failed)
}

fn failed(e: std::io::Error) -> String {
    format!("backup: {e}")
}

/// Killed when dropped.
struct Follower(Child);

impl Drop for Follower {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(task: &str, from: &str, place: &Path) -> Command {
    let mut command = Command::new(binary());
    command.args([task, "--from", from, "--to"]).arg(place).stdout(Stdio::null());
    command
}

fn make(from: &str, place: &Path, options: &[&str]) -> Result<(), String> {
    run(command("backup", from, place).args(options), "melba backup")
}

/// The output of `melba backup list` or `verify`.
fn look(what: &str, place: &Path, is_sound: bool) -> Result<String, String> {
    let output = Command::new(binary()).args(["backup", what, "--in"]).arg(place).output().map_err(failed)?;
    match output.status.success() == is_sound {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("melba backup {what}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

struct Restored<'a> {
    place: &'a Path,
    folder: &'a Path,
}

impl Restored<'_> {
    fn make(&self, options: &[&str]) -> Result<PathBuf, String> {
        let directory = self.folder.join("restored");
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).map_err(failed)?;
        let place = self.place.display().to_string();
        let mut command = command("restore", &place, &directory.join("data"));
        run(command.args(options).stderr(Stdio::null()), "melba restore")?;
        Ok(directory)
    }

    /// Restores, serves, asks; a clean stop checks the whole directory.
    fn check(&self, options: &[&str], ask: impl Fn(&Address) -> Result<(), String>) -> Result<(), String> {
        let melba = Melba::over(self.make(options)?)?;
        ask(&melba.address).map_err(|e| format!("restored with {options:?}: {e}"))?;
        melba.stop()
    }
}

fn expect(address: &Address, query: &str, answer: &str) -> Result<(), String> {
    let found = ask(address, query)?;
    if found == answer { Ok(()) } else { Err(format!("{query}: {found}, and not {answer}")) }
}

/// The largest segment of a place with one database.
fn largest(place: &Path) -> Result<PathBuf, String> {
    let databases = std::fs::read_dir(place).map_err(failed)?.flatten().map(|d| d.path().join("segments"));
    let segments = databases.filter_map(|d| std::fs::read_dir(d).ok()).flatten().flatten();
    let bytes = |path: &PathBuf| path.metadata().map_or(0, |m| m.len());
    segments.map(|s| s.path()).max_by_key(bytes).ok_or_else(|| "there is no segment".to_owned())
}
