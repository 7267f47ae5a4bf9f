//! Databases that run inside Python (DuckDB, ClickHouse as chdb), each in a separate process of `peer.py`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::form::{Form, Row, joined, parted};
use crate::Result;
use crate::python::{Python, PythonAnswer};

const PROGRAM: &str = include_str!("peer.py");

pub struct DocumentPeer {
    /// `None` once it was stopped.
    python: Option<Python>,
    folder: PathBuf,
    /// Its reported version.
    pub version: String,
}

#[derive(Serialize)]
struct PeerRequest<'a> {
    #[serde(rename = "do")]
    what: &'a str,
    ids: &'a [u64],
    /// Bytes behind the line.
    length: usize,
}

impl DocumentPeer {
    /// Starts a kind of database: `duckdb`, or the codec of ClickHouse's columns. An error says why there is none.
    pub fn start(interpreter: &Path, kind: &str, columns: usize, scratch: &Path) -> Result<DocumentPeer> {
        let folder = scratch.join("python");
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let arguments = [kind, &folder.to_string_lossy(), &columns.to_string()];
        let (python, version) = Python::start(interpreter, PROGRAM, &arguments)?;
        Ok(DocumentPeer { python: Some(python), folder, version })
    }

    fn ask(&mut self, what: &str, ids: &[u64], payload: &[u8]) -> Result<(PythonAnswer, Vec<u8>)> {
        let python = self.python.as_mut().ok_or("the database was removed")?;
        python.ask(&PeerRequest { what, ids, length: payload.len() }, payload)
    }

    fn timed(&mut self, what: &str, ids: &[u64], payload: &[u8]) -> Result<Duration> {
        Ok(Duration::from_secs_f64(self.ask(what, ids, payload)?.0.seconds))
    }
}

fn numbered(rows: &[Row]) -> Vec<u8> {
    rows.iter().flat_map(|row| [row.id.to_le_bytes().to_vec(), joined(&row.documents)]).flatten().collect()
}

impl Form for DocumentPeer {
    fn insert(&mut self, rows: &[Row]) -> Result<Duration> {
        self.timed("insert", &[], &numbered(rows))
    }

    fn update(&mut self, rows: &[Row]) -> Result<Duration> {
        self.timed("update", &[], &numbered(rows))
    }

    fn delete(&mut self, ids: &[u64]) -> Result<Duration> {
        self.timed("delete", ids, &[])
    }

    fn maintain(&mut self) -> Result<Duration> {
        self.timed("maintain", &[], &[])
    }

    fn read(&mut self, id: u64) -> Result<(Option<Vec<Vec<u8>>>, Duration)> {
        let (answer, payload) = self.ask("read", &[id], &[])?;
        let documents = answer.found.then(|| parted(&payload)).transpose()?;
        Ok((documents, Duration::from_secs_f64(answer.seconds)))
    }

    fn bytes(&mut self) -> Result<u64> {
        Ok(self.ask("bytes", &[], &[])?.0.number as u64)
    }

    fn remove(&mut self) -> Result<()> {
        self.python = None;
        std::fs::remove_dir_all(&self.folder).map_err(|e| format!("{}: {e}", self.folder.display()))
    }
}
