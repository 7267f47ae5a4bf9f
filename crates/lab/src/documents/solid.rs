//! All rows in one xz stream: the densest form, and every change rewrites it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use liblzma::read::XzDecoder;
use liblzma::write::XzEncoder;

use super::form::{Form, Row, joined, parted, timed};
use crate::Result;

/// Reading a row decodes everything before it.
const READS_MAX: usize = 5;

pub struct Solid {
    path: PathBuf,
    level: u32,
    /// The stream that is being written.
    encoder: Option<XzEncoder<BufWriter<File>>>,
    /// Changes that the next stream takes in.
    updated: HashMap<u64, Vec<u8>>,
    deleted: HashSet<u64>,
}

impl Solid {
    pub fn new(scratch: &Path, level: u32) -> Result<Solid> {
        let path = scratch.join("documents.xz");
        let encoder = Some(encoder(&path, level)?);
        Ok(Solid { path, level, encoder, updated: HashMap::new(), deleted: HashSet::new() })
    }

    /// The numbers and contents of the stream's rows.
    fn rows(&self) -> Result<impl Iterator<Item = Result<(u64, Vec<u8>)>> + use<>> {
        let file = File::open(&self.path).map_err(|e| self.failed(e))?;
        let mut decoder = XzDecoder::new(BufReader::new(file));
        Ok(std::iter::from_fn(move || next(&mut decoder).transpose()))
    }

    fn failed(&self, e: std::io::Error) -> String {
        format!("{}: {e}", self.path.display())
    }

    fn finish(&mut self) -> Result<()> {
        let Some(encoder) = self.encoder.take() else { return Ok(()) };
        let mut file = encoder.finish().map_err(|e| self.failed(e))?;
        file.flush().map_err(|e| self.failed(e))
    }

    /// Writes a stream with the changes.
    fn rewrite(&mut self) -> Result<()> {
        let path = self.path.with_extension("new");
        let mut encoder = encoder(&path, self.level)?;
        for row in self.rows()? {
            let (id, content) = row?;
            if !self.deleted.contains(&id) {
                push(&mut encoder, id, self.updated.get(&id).unwrap_or(&content))?;
            }
        }
        self.encoder = Some(encoder);
        self.finish()?;
        std::fs::rename(&path, &self.path).map_err(|e| self.failed(e))?;
        self.updated.clear();
        self.deleted.clear();
        Ok(())
    }
}

fn encoder(path: &Path, level: u32) -> Result<XzEncoder<BufWriter<File>>> {
    let file = File::create(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(XzEncoder::new(BufWriter::new(file), level))
}

fn push(encoder: &mut XzEncoder<BufWriter<File>>, id: u64, content: &[u8]) -> Result<()> {
    let mut write = |bytes: &[u8]| encoder.write_all(bytes).map_err(|e| e.to_string());
    write(&id.to_le_bytes())?;
    write(&(content.len() as u64).to_le_bytes())?;
    write(content)
}

/// The next row; `None` at the stream's end.
fn next(decoder: &mut impl Read) -> Result<Option<(u64, Vec<u8>)>> {
    let (mut id, mut length) = ([0; 8], [0; 8]);
    match decoder.read_exact(&mut id) {
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        other => other.map_err(|e| e.to_string())?,
    }
    decoder.read_exact(&mut length).map_err(|e| e.to_string())?;
    let mut content = vec![0; u64::from_le_bytes(length) as usize];
    decoder.read_exact(&mut content).map_err(|e| e.to_string())?;
    Ok(Some((u64::from_le_bytes(id), content)))
}

impl Form for Solid {
    fn insert(&mut self, rows: &[Row]) -> Result<Duration> {
        let started = Instant::now();
        let encoder = self.encoder.as_mut().ok_or("the stream has ended")?;
        rows.iter().try_for_each(|row| push(encoder, row.id, &joined(&row.documents)))?;
        Ok(started.elapsed())
    }

    fn update(&mut self, rows: &[Row]) -> Result<Duration> {
        self.updated.extend(rows.iter().map(|row| (row.id, joined(&row.documents))));
        Ok(Duration::ZERO)
    }

    fn delete(&mut self, ids: &[u64]) -> Result<Duration> {
        self.deleted.extend(ids);
        Ok(Duration::ZERO)
    }

    fn maintain(&mut self) -> Result<Duration> {
        let started = Instant::now();
        self.finish()?;
        if !self.updated.is_empty() || !self.deleted.is_empty() {
            self.rewrite()?;
        }
        Ok(started.elapsed())
    }

    fn read(&mut self, id: u64) -> Result<(Option<Vec<Vec<u8>>>, Duration)> {
        timed(|| {
            for row in self.rows()? {
                let (found, content) = row?;
                if found == id {
                    return parted(&content).map(Some);
                }
            }
            Ok(None)
        })
    }

    fn bytes(&mut self) -> Result<u64> {
        std::fs::metadata(&self.path).map(|m| m.len()).map_err(|e| self.failed(e))
    }

    fn reads_max(&self) -> usize {
        READS_MAX
    }

    fn remove(&mut self) -> Result<()> {
        std::fs::remove_file(&self.path).map_err(|e| self.failed(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_written_anew_with_its_changes() {
        let scratch = tempfile::tempdir().unwrap();
        let mut solid = Solid::new(scratch.path(), 1).unwrap();
        let row = |id: u64, text: &str| Row { id, documents: vec![text.as_bytes().to_vec(), vec![7; 50_000]] };
        solid.insert(&[row(0, "a"), row(1, "b")]).unwrap();
        solid.insert(&[row(2, "c")]).unwrap();
        solid.maintain().unwrap();
        assert!(solid.bytes().unwrap() < 2000);
        assert_eq!(solid.read(2).unwrap().0, Some(row(2, "c").documents));
        solid.update(&[row(1, "new")]).unwrap();
        solid.delete(&[0]).unwrap();
        solid.maintain().unwrap();
        assert_eq!(solid.read(0).unwrap().0, None);
        assert_eq!(solid.read(1).unwrap().0, Some(row(1, "new").documents));
        solid.remove().unwrap();
    }
}
