//! pgbench scripts, each with a log of its transactions.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::probe::Pause;
use crate::melba::{Melba, run};

pub struct Bench<'a> {
    pgbench: PathBuf,
    melba: &'a Melba,
    folder: PathBuf,
}

impl Bench<'_> {
    /// With an empty folder for scripts and logs.
    pub fn new(pgbench: PathBuf, melba: &Melba, folder: PathBuf) -> Result<Bench<'_>, String> {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|e| at(&folder, e))?;
        Ok(Bench { pgbench, melba, folder })
    }

    /// Starts a script; without a number of transactions until it is stopped.
    pub fn start(&self, name: &str, script: &str, clients: u64, transactions: Option<u64>) -> Result<Child, String> {
        let file = self.folder.join(format!("{name}.sql"));
        std::fs::write(&file, script).map_err(|e| at(&file, e))?;
        let clients = clients.to_string();
        let mut command = self.melba.address.client(&self.pgbench);
        command.args(["-n", "-M", "prepared", "-D", "n=0", "-c", &clients, "-j", &clients, "-f"]).arg(&file);
        match transactions {
            Some(n) => command.args(["-t", &n.to_string()]),
            None => command.args(["-T", "100000"]),
        };
        command.args(["-l", "--log-prefix"]).arg(self.folder.join(name));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|e| format!("pgbench: {e}"))
    }

    pub fn finish(&self, mut child: Child) -> Result<(), String> {
        let status = child.wait().map_err(|e| format!("pgbench: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("pgbench failed: {status}")) }
    }

    pub fn stop(&self, mut child: Child) -> Result<(), String> {
        // With an interrupt it writes the rest of its log.
        run(Command::new("kill").args(["-INT", &child.id().to_string()]), "kill")?;
        child.wait().map(drop).map_err(|e| format!("pgbench: {e}"))
    }

    /// From when to when a script's transactions ran.
    pub fn times(&self, name: &str) -> Result<Vec<Pause>, String> {
        let mut times = Vec::new();
        let prefix = format!("{name}.");
        for file in self.folder.read_dir().map_err(|e| at(&self.folder, e))?.flatten() {
            let log = file.file_name().into_string().unwrap_or_default();
            if log.starts_with(&prefix) && !log.ends_with(".sql") {
                let text = std::fs::read_to_string(file.path()).map_err(|e| at(&file.path(), e))?;
                times.extend(text.lines().filter_map(time));
            }
        }
        Ok(times)
    }

    /// The durations of a script's transactions.
    pub fn pauses(&self, name: &str) -> Result<String, String> {
        self.times(name).map(|took| summary(&took))
    }
}

/// The median, one in a thousand, and the longest.
pub fn summary(took: &[Pause]) -> String {
    let mut sorted: Vec<f64> = took.iter().map(Pause::millis).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted.get((sorted.len() as f64 * share) as usize).or(sorted.last()).copied().unwrap_or(0.0);
    format!(
        "{} transactions, median {:.1} ms, one in 1000 above {:.1} ms, longest {:.1} ms",
        took.len(),
        at(0.5),
        at(0.999),
        at(1.0)
    )
}

/// A line of the log: client, transaction, microseconds it took, script, when it ended in seconds and microseconds.
fn time(line: &str) -> Option<Pause> {
    let mut fields = line.split(' ').skip(2).map(|field| field.parse::<f64>().ok());
    let took = fields.next()??;
    let to = fields.nth(1)?? + fields.next()?? / 1e6;
    Some(Pause { from: to - took / 1e6, to })
}

fn at(path: &Path, error: std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
