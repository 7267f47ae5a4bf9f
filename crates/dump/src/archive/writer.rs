//! Writes a dump: several workers, each a stream at a time.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use zstd_safe::CCtx;

use super::BLOCK_BYTES;
use super::contents::Contents;
use super::format::{BlockHeader, CONTENTS, END, FileHeader};
use crate::Result;

/// The destination of a dump.
pub struct ArchiveWriter {
    parts: Vec<Mutex<Part>>,
    blocks: AtomicU64,
    level: i32,
}

struct Part {
    out: Box<dyn Write + Send>,
    /// To be synced at the end, unless it is a pipe.
    file: Option<File>,
}

impl ArchiveWriter {
    /// One file for all workers.
    pub fn file(path: &Path, level: i32) -> Result<ArchiveWriter> {
        let part = Part::create(path)?;
        ArchiveWriter::begin(vec![part], level)
    }

    /// A file a worker in a new folder.
    pub fn directory(path: &Path, workers: usize, level: i32) -> Result<ArchiveWriter> {
        std::fs::create_dir(path).map_err(|e| format!("could not create {}: {e}", path.display()))?;
        let parts = (0..workers.max(1)).map(|part| Part::create(&path.join(part_name(part)))).collect::<Result<_>>()?;
        ArchiveWriter::begin(parts, level)
    }

    /// A pipe, standard output say.
    pub fn pipe(out: Box<dyn Write + Send>, level: i32) -> Result<ArchiveWriter> {
        ArchiveWriter::begin(vec![Part { out, file: None }], level)
    }

    fn begin(mut parts: Vec<Part>, level: i32) -> Result<ArchiveWriter> {
        let dump = rand::random();
        for (number, part) in (0..).zip(&mut parts) {
            part.write(&FileHeader { part: number, dump }.encode())?;
        }
        Ok(ArchiveWriter { parts: parts.into_iter().map(Mutex::new).collect(), blocks: AtomicU64::new(0), level })
    }

    /// The contents of the dump: written before any stream.
    pub fn contents(&self, contents: &Contents) -> Result<()> {
        let json = serde_json::to_vec(contents).map_err(|e| e.to_string())?;
        let mut stream = self.stream(CONTENTS, 0)?;
        stream.write(&json)?;
        stream.finish()
    }

    /// A stream, written by a worker into its part.
    pub fn stream(&self, stream: u32, worker: usize) -> Result<StreamWriter<'_>> {
        let mut context = CCtx::create();
        context.set_parameter(zstd_safe::CParameter::CompressionLevel(self.level)).map_err(zstd_error)?;
        let part = worker % self.parts.len();
        Ok(StreamWriter { archive: self, part, stream, sequence: 0, raw: Vec::new(), stored: Vec::new(), context })
    }

    fn append(&self, part: usize, header: BlockHeader, stored: &[u8]) -> Result<()> {
        let mut part = self.parts[part].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.blocks.fetch_add(1, Ordering::Relaxed);
        part.write(&header.encode())?;
        part.write(stored)
    }

    /// Declares the dump whole, and makes it durable.
    pub fn finish(self) -> Result<()> {
        let mut raw = (self.parts.len() as u32).to_le_bytes().to_vec();
        raw.extend(self.blocks.load(Ordering::Relaxed).to_le_bytes());
        let mut stored = Vec::with_capacity(zstd_safe::compress_bound(raw.len()));
        zstd_safe::compress(&mut stored, &raw, self.level).map_err(zstd_error)?;
        let parts: Vec<Part> =
            self.parts.into_iter().map(|p| p.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)).collect();
        // The other parts are on disk before part 0 says that they are.
        for (number, mut part) in parts.into_iter().enumerate().rev() {
            if number == 0 {
                part.write(&BlockHeader::new(END, 0, raw.len() as u32, &stored).encode())?;
                part.write(&stored)?;
            }
            part.out.flush().map_err(write_error)?;
            if let Some(file) = part.file {
                file.sync_all().map_err(write_error)?;
            }
        }
        Ok(())
    }
}

/// The file of a part in a folder.
pub(super) fn part_name(part: usize) -> String {
    format!("part-{part}.melba")
}

impl Part {
    fn create(path: &Path) -> Result<Part> {
        let shown = |e: std::io::Error| format!("could not create {}: {e}", path.display());
        let file = File::options().write(true).create_new(true).open(path).map_err(shown)?;
        let out = Box::new(file.try_clone().map_err(shown)?);
        Ok(Part { out, file: Some(file) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(write_error)
    }
}

fn write_error(e: std::io::Error) -> String {
    format!("could not write the dump: {e}")
}

fn zstd_error(code: zstd_safe::ErrorCode) -> String {
    format!("zstd: {}", zstd_safe::get_error_name(code))
}

/// One stream being written.
pub struct StreamWriter<'a> {
    archive: &'a ArchiveWriter,
    part: usize,
    stream: u32,
    sequence: u32,
    raw: Vec<u8>,
    stored: Vec<u8>,
    context: CCtx<'static>,
}

impl StreamWriter<'_> {
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let take = bytes.len().min(BLOCK_BYTES - self.raw.len());
            self.raw.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if self.raw.len() == BLOCK_BYTES {
                self.block()?;
            }
        }
        Ok(())
    }

    /// Ends the stream; without it the dump is known to miss it.
    pub fn finish(mut self) -> Result<()> {
        if !self.raw.is_empty() {
            self.block()?;
        }
        self.block()
    }

    fn block(&mut self) -> Result<()> {
        self.stored.clear();
        self.stored.reserve(zstd_safe::compress_bound(self.raw.len()));
        self.context.compress2(&mut self.stored, &self.raw).map_err(zstd_error)?;
        let header = BlockHeader::new(self.stream, self.sequence, self.raw.len() as u32, &self.stored);
        self.archive.append(self.part, header, &self.stored)?;
        self.sequence += 1;
        self.raw.clear();
        Ok(())
    }
}
