//! Runs files of the sqllogictest format on Melba, and on PostgreSQL where the answer is not the file's; `cargo xtask
//! sqllogictest` starts it.

#![allow(clippy::disallowed_methods, reason = "it tests a server from outside, by real time")]

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use melba_testkit::sqllogictest::{Outcome, Runner};

const USAGE: &str = "usage: sqllogictest SERVER REFERENCE|- SECONDS FILE-OR-FOLDER...
SERVER and REFERENCE are HOST:PORT[/DATABASE]; no file is begun after so many seconds";

/// Files that run at a time.
const SESSIONS: usize = 2;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, reference, seconds, paths @ ..] = arguments.as_slice() else { return Err(USAGE.into()) };
    let seconds = seconds.parse().map_err(|_| format!("{seconds} is no number"))?;
    let mut files = Vec::new();
    for path in paths {
        find(Path::new(path), &mut files)?;
    }
    files.sort();
    // From the end, so that `pop` takes them in order.
    files.reverse();
    let queue = Mutex::new(files);
    let total = Mutex::new(Outcome::default());
    let end = Instant::now() + Duration::from_secs(seconds);
    let reference = (reference != "-").then_some(reference.as_str());
    let session = |number: usize| -> Result<(), String> {
        let mut runner = Runner::connect(server, reference)?;
        while Instant::now() < end {
            let Some(file) = queue.lock().map_err(|e| e.to_string())?.pop() else { break };
            let outcome = runner.file(&file, &format!("sqllogictest_{number}"))?;
            println!(
                "{}: {} records, {} wrong, {} refused, {} as PostgreSQL",
                file.display(),
                outcome.records,
                outcome.wrong,
                outcome.refused,
                outcome.as_postgres
            );
            outcome.notes.iter().take(10).for_each(|note| println!("  {note}"));
            total.lock().map_err(|e| e.to_string())?.add(outcome);
        }
        Ok(())
    };
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let session = &session;
        let sessions: Vec<_> = (0..SESSIONS).map(|n| scope.spawn(move || session(n))).collect();
        sessions.into_iter().map(|s| s.join().unwrap_or_else(|_| Err("a session panicked".into()))).collect()
    });
    let total = total.into_inner().map_err(|e| e.to_string())?;
    let left = queue.into_inner().map_err(|e| e.to_string())?.len();
    println!(
        "sqllogictest: {} files, {} records, {} wrong, {} refused, {} as PostgreSQL but not as the file; {left} files not begun",
        total.files, total.records, total.wrong, total.refused, total.as_postgres
    );
    results.into_iter().collect::<Result<(), String>>()?;
    if total.wrong + total.refused == 0 { Ok(()) } else { Err("some answers are neither the file's nor PostgreSQL's".into()) }
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = path.read_dir().map_err(|e| format!("{}: {e}", path.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() || path.extension().is_some_and(|e| e == "test" || e == "slt") {
            find(&path, files)?;
        }
    }
    Ok(())
}
