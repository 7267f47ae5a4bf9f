//! Temporary files: queries put data there that does not fit into their memory.
//!
//! Invariants:
//! 1. A file lives as long as its `TempFile`; the folder is emptied when the engine opens, so nothing outlives a crash.
//! 2. Blocks are compressed when that makes them smaller, and checked when they are read; the file's owner keeps their positions.
//! 3. Nothing is ever synced: no temporary file is used after a crash.

use std::sync::{Arc, OnceLock};

use melba_toast::lz4;
use melba_vfs::{Directory, File, counts};

use crate::error::{EngineError, Result};
use melba_threads::atomic::{AtomicU64, Ordering};

/// The folder of temporary files.
pub struct TempFiles {
    directory: Arc<dyn Directory>,
    next: AtomicU64,
    written: AtomicU64,
}

/// The temporary files of one session.
#[derive(Default)]
pub struct TempUsage {
    /// For temp_file_limit.
    bytes: AtomicU64,
    watch: OnceLock<Box<TempWatch>>,
}

/// Told of a removed file: its name and how many bytes were written.
pub type TempWatch = dyn Fn(&str, u64) + Send + Sync;

impl TempUsage {
    /// The first one stays.
    pub fn set_watch(&self, watch: Box<TempWatch>) {
        let _ = self.watch.set(watch);
    }
}

/// One temporary file, written in blocks by one thread and read by any.
pub struct TempFile {
    files: Arc<TempFiles>,
    usage: Arc<TempUsage>,
    /// The most that the session's files may take in all.
    limit: u64,
    name: String,
    file: Arc<dyn File>,
    end: AtomicU64,
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TempBlock {
    offset: u64,
    stored: u32,
    raw: u32,
    crc: u32,
}

impl TempFiles {
    /// Empties the folder, which belongs to this engine alone.
    pub fn open(directory: Arc<dyn Directory>) -> Result<TempFiles> {
        let io = |e| EngineError::io("clear the folder of temporary files", e);
        for name in directory.list().map_err(io)? {
            directory.remove(&name).map_err(io)?;
        }
        Ok(TempFiles { directory, next: AtomicU64::new(0), written: AtomicU64::new(0) })
    }

    /// Files made and bytes written since the engine was opened.
    pub fn counters(&self) -> (u64, u64) {
        (self.next.load(Ordering::Relaxed), self.written.load(Ordering::Relaxed))
    }

    /// A new file of a session whose files may have `limit` bytes in all.
    pub fn create(self: &Arc<Self>, usage: &Arc<TempUsage>, limit: Option<u64>) -> Result<TempFile> {
        let name = format!("{:x}.tmp", self.next.fetch_add(1, Ordering::Relaxed));
        let create = || self.directory.create(&name).and_then(|_| self.directory.open_on_demand(&name));
        let file = create().map_err(|e| EngineError::io("create a temporary file", e))?;
        Ok(TempFile {
            files: Arc::clone(self),
            usage: Arc::clone(usage),
            limit: limit.unwrap_or(u64::MAX),
            name,
            file,
            end: AtomicU64::new(0),
        })
    }
}

impl TempFile {
    /// Writes a block at the end; `packed` is a buffer to reuse.
    ///
    /// # Errors
    /// 53400 when the session's files would exceed temp_file_limit, 53100 when the disk is full.
    pub fn append(&self, raw: &[u8], packed: &mut Vec<u8>) -> Result<TempBlock> {
        packed.resize(raw.len(), 0);
        let stored = match lz4::compress(raw, packed) {
            Ok(n) if n < raw.len() - raw.len() / 16 => &packed[..n],
            _ => raw,
        };
        let bytes = stored.len() as u64;
        if self.usage.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.limit {
            self.usage.bytes.fetch_sub(bytes, Ordering::Relaxed);
            return Err(EngineError::TempFileLimit { kilobytes: self.limit >> 10 });
        }
        self.files.written.fetch_add(bytes, Ordering::Relaxed);
        let offset = self.end.fetch_add(bytes, Ordering::Relaxed);
        self.file.write_at(stored, offset).map_err(|e| EngineError::io("write to a temporary file", e))?;
        counts::note_temporary_written(bytes);
        let crc = crc32c::crc32c(stored);
        Ok(TempBlock { offset, stored: stored.len() as u32, raw: raw.len() as u32, crc })
    }

    /// Reads a block into `out`; `packed` is a buffer to reuse.
    pub fn read(&self, block: TempBlock, packed: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<()> {
        let damaged = || EngineError::Corrupt { what: format!("temporary file \"{}\" is damaged", self.name) };
        let io = |e| EngineError::io("read a temporary file", e);
        out.resize(block.raw as usize, 0);
        if block.stored == block.raw {
            self.file.read_at(out, block.offset).map_err(io)?;
            counts::note_temporary_read(u64::from(block.stored));
            return if crc32c::crc32c(out) == block.crc { Ok(()) } else { Err(damaged()) };
        }
        packed.resize(block.stored as usize, 0);
        self.file.read_at(packed, block.offset).map_err(io)?;
        counts::note_temporary_read(u64::from(block.stored));
        if crc32c::crc32c(packed) != block.crc || lz4::decompress(packed, out) != Ok(out.len()) {
            return Err(damaged());
        }
        Ok(())
    }

    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        self.usage.bytes.fetch_sub(self.bytes(), Ordering::Relaxed);
        if let Some(watch) = self.usage.watch.get() {
            watch(&self.name, self.bytes());
        }
        // A file that cannot be removed now is removed when the engine opens next.
        let _ = self.files.directory.remove(&self.name);
    }
}

impl TempBlock {
    /// Bytes before compression.
    pub fn raw_bytes(&self) -> usize {
        self.raw as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_vfs::MemoryDirectory;

    #[test]
    fn blocks_come_back_limits_hold_and_nothing_is_left() {
        let directory = MemoryDirectory::new();
        drop(directory.create("left-by-a-crash").expect("creates"));
        let files = Arc::new(TempFiles::open(Arc::clone(&directory) as Arc<dyn Directory>).expect("opens"));
        assert!(directory.list().expect("lists").is_empty());
        let usage = Arc::new(TempUsage::default());
        let file = files.create(&usage, Some(2000)).expect("creates");
        let (mut packed, mut out) = (Vec::new(), Vec::new());
        let repetitive = vec![7; 10_000];
        let mut x = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 24) as u8
        })
        .take(1000)
        .collect();
        let nothing = Vec::new();
        let blocks = [&repetitive, &noise, &nothing].map(|raw| (file.append(raw, &mut packed).expect("fits"), raw));
        for (block, raw) in blocks {
            file.read(block, &mut packed, &mut out).expect("reads");
            assert_eq!(&out, raw);
        }
        let refused = file.append(&noise, &mut packed);
        assert!(matches!(refused, Err(EngineError::TempFileLimit { kilobytes: 1 })));
        let used = file.bytes();
        assert_eq!(usage.bytes.load(Ordering::Relaxed), used);
        directory.flip_bit(&file.name, 8 * used - 5).expect("flips");
        assert!(matches!(file.read(blocks[1].0, &mut packed, &mut out), Err(EngineError::Corrupt { .. })));
        drop(file);
        assert_eq!(usage.bytes.load(Ordering::Relaxed), 0);
        assert!(directory.list().expect("lists").is_empty());
    }
}
