//! Databases that live inside of Python (DuckDB, ClickHouse as chdb), each in a process of its own that `peer.py` serves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::form::{Form, Row, joined, parted};
use crate::Result;

const PROGRAM: &str = include_str!("peer.py");

pub struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
    /// What it says it is.
    pub version: String,
}

#[derive(Serialize)]
struct Asked<'a> {
    #[serde(rename = "do")]
    what: &'a str,
    ids: &'a [u64],
    /// Bytes behind the line.
    length: usize,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    version: String,
    error: Option<String>,
    seconds: f64,
    bytes: u64,
    found: bool,
    length: usize,
}

impl Python {
    /// Starts a kind of database: `duckdb`, or the codec of ClickHouse's columns. An error says why there is none.
    pub fn start(python: &Path, kind: &str, columns: usize, scratch: &Path) -> Result<Python> {
        let folder = scratch.join("python");
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut child = Command::new(python)
            .args(["-c", PROGRAM, kind])
            .arg(&folder)
            .arg(columns.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", python.display()))?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or("no pipes to Python")?;
        let mut started = Python { child, input, output: BufReader::new(output), folder, version: String::new() };
        started.version = started.answer()?.0.version;
        Ok(started)
    }

    fn ask(&mut self, what: &str, ids: &[u64], payload: &[u8]) -> Result<(Answer, Vec<u8>)> {
        let line = serde_json::to_string(&Asked { what, ids, length: payload.len() }).map_err(|e| e.to_string())?;
        let written =
            writeln!(self.input, "{line}").and_then(|()| self.input.write_all(payload)).and_then(|()| self.input.flush());
        // A process that has ended says why in its last answer.
        match self.answer() {
            Err(e) => Err(e),
            Ok(answer) => written.map(|()| answer).map_err(|e| e.to_string()),
        }
    }

    fn answer(&mut self) -> Result<(Answer, Vec<u8>)> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|e| e.to_string())?;
        let answer: Answer = serde_json::from_str(&line).map_err(|e| format!("Python answered {line:?}: {e}"))?;
        if let Some(error) = answer.error {
            return Err(error);
        }
        let mut payload = vec![0; answer.length];
        self.output.read_exact(&mut payload).map_err(|e| e.to_string())?;
        Ok((answer, payload))
    }

    fn timed(&mut self, what: &str, ids: &[u64], payload: &[u8]) -> Result<Duration> {
        Ok(Duration::from_secs_f64(self.ask(what, ids, payload)?.0.seconds))
    }
}

fn numbered(rows: &[Row]) -> Vec<u8> {
    rows.iter().flat_map(|row| [row.id.to_le_bytes().to_vec(), joined(&row.documents)]).flatten().collect()
}

impl Form for Python {
    fn insert(&mut self, rows: &[Row]) -> Result<Duration> {
        self.timed("insert", &[], &numbered(rows))
    }

    fn update(&mut self, rows: &[Row]) -> Result<Duration> {
        self.timed("update", &[], &numbered(rows))
    }

    fn delete(&mut self, ids: &[u64]) -> Result<Duration> {
        self.timed("delete", ids, &[])
    }

    fn settle(&mut self) -> Result<Duration> {
        self.timed("settle", &[], &[])
    }

    fn read(&mut self, id: u64) -> Result<(Option<Vec<Vec<u8>>>, Duration)> {
        let (answer, payload) = self.ask("read", &[id], &[])?;
        let documents = answer.found.then(|| parted(&payload)).transpose()?;
        Ok((documents, Duration::from_secs_f64(answer.seconds)))
    }

    fn bytes(&mut self) -> Result<u64> {
        Ok(self.ask("bytes", &[], &[])?.0.bytes)
    }

    fn remove(&mut self) -> Result<()> {
        self.stop();
        std::fs::remove_dir_all(&self.folder).map_err(|e| format!("{}: {e}", self.folder.display()))
    }
}

impl Python {
    fn stop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        self.stop();
    }
}
