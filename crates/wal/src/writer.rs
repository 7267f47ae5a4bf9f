//! Appending to the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use melba_types::{Csn, Lsn};
use melba_vfs::{Directory, File};
use parking_lot::Mutex;

use crate::error::{Result, WalError};
use crate::format::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES, file_header, file_name, record_header};
use crate::reader::{LogFiles, SPARE_PREFIX};

/// How the log is written.
#[derive(Clone, Copy, Debug)]
pub struct WalOptions {
    /// Size of a file; one record may make a file larger.
    pub file_bytes: u64,
    /// False: never waits for the disk.
    pub sync: bool,
    /// Files kept for reuse when they are no longer needed.
    pub spares_max: usize,
}

impl Default for WalOptions {
    fn default() -> WalOptions {
        WalOptions { file_bytes: 16 << 20, sync: true, spares_max: 4 }
    }
}

/// Payloads above this become chunks of their own instead of being copied.
const COPY_BYTES_MAX: usize = 64 << 10;

/// Records that are not written yet.
struct Tail {
    /// Whole records; the last chunk is appended to.
    chunks: Vec<Vec<u8>>,
    bytes: u64,
    end: Lsn,
    /// Empty buffers to reuse.
    spare: Vec<Vec<u8>>,
}

/// The file being written.
struct Current {
    file: Arc<dyn File>,
    name: String,
    start: Lsn,
    /// Where the next byte goes.
    offset: u64,
    len: u64,
}

struct Files {
    current: Current,
    /// Starts of all files, ascending, the current one last.
    starts: Vec<Lsn>,
    spares: Vec<String>,
    next_spare: u64,
}

/// The log, open for appending.
pub struct Wal {
    directory: Arc<dyn Directory>,
    options: WalOptions,
    tail: Mutex<Tail>,
    files: Mutex<Files>,
    durable: AtomicU64,
    failed: AtomicBool,
    bytes_written: AtomicU64,
    syncs: AtomicU64,
}

/// The checksum of a payload, for `Wal::append`: computed before the ordered step.
pub fn payload_crc(payload: &[u8]) -> u32 {
    crc32c::crc32c(payload)
}

impl Wal {
    /// Begins a new file at `start`, which is where `replay` said the log ends (or 0).
    pub fn open(directory: Arc<dyn Directory>, options: WalOptions, start: Lsn) -> Result<Wal> {
        let mut listed = LogFiles::list(&*directory)?;
        // Files at or after the end hold nothing but torn records; invariant 3 forbids to write behind those.
        for beyond in listed.starts.split_off(listed.starts.partition_point(|s| *s < start)) {
            let name = file_name(beyond);
            directory.remove(&name).map_err(|e| WalError::io(&name, e))?;
        }
        directory.sync_names().map_err(|e| WalError::io(".", e))?;
        let name = file_name(start);
        let file = directory.create(&name).map_err(|e| WalError::io(&name, e))?;
        fill(&*file, &name, options.file_bytes)?;
        let current = begin_file(&*directory, file, name, start, options.file_bytes, options.sync)?;
        let mut starts = listed.starts;
        starts.push(start);
        // A crash between preparing, renaming and removing can leave more than are wanted.
        for extra in listed.spares.split_off(listed.spares.len().min(options.spares_max)) {
            directory.remove(&extra).map_err(|e| WalError::io(&extra, e))?;
        }
        let next_spare = listed.spares.iter().filter_map(|s| spare_number(s)).max().map_or(0, |n| n + 1);
        Ok(Wal {
            directory,
            options,
            tail: Mutex::new(Tail { chunks: Vec::new(), bytes: 0, end: start, spare: Vec::new() }),
            files: Mutex::new(Files { current, starts, spares: listed.spares, next_spare }),
            durable: AtomicU64::new(start.0),
            failed: AtomicBool::new(false),
            bytes_written: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
        })
    }

    /// Puts a record at the end, in memory; returns where it begins and ends. A large payload is taken, not copied.
    pub fn append(&self, csn: Csn, payload: &mut Vec<u8>, payload_crc: u32) -> (Lsn, Lsn) {
        let mut guard = self.tail.lock();
        let tail = &mut *guard;
        let lsn = tail.end;
        let header = record_header(payload.len() as u32, payload_crc, lsn, csn);
        let length = (RECORD_HEADER_BYTES + payload.len()) as u64;
        let chunk = match tail.chunks.last_mut() {
            Some(chunk) if chunk.len() <= COPY_BYTES_MAX => chunk,
            _ => {
                let fresh = tail.spare.pop().unwrap_or_default();
                tail.chunks.push(fresh);
                tail.chunks.last_mut().expect("just pushed")
            }
        };
        chunk.extend_from_slice(&header);
        if payload.len() <= COPY_BYTES_MAX {
            chunk.extend_from_slice(payload);
        } else {
            tail.chunks.push(std::mem::take(payload));
        }
        tail.bytes += length;
        tail.end = Lsn(lsn.0 + length);
        (lsn, tail.end)
    }

    /// Where the next record will begin.
    pub fn end(&self) -> Lsn {
        self.tail.lock().end
    }

    /// Everything before this survives a crash.
    #[inline]
    pub fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Bytes waiting in memory.
    pub fn pending_bytes(&self) -> u64 {
        self.tail.lock().bytes
    }

    /// Bytes written and syncs done since the log was opened.
    pub fn counters(&self) -> (u64, u64) {
        (self.bytes_written.load(Ordering::Relaxed), self.syncs.load(Ordering::Relaxed))
    }

    /// Writes and syncs everything appended so far. One thread does it at a time; others wait for it and then do the rest.
    pub fn flush(&self) -> Result<Lsn> {
        let mut files = self.files.lock();
        if self.failed.load(Ordering::Acquire) {
            return Err(WalError::Failed);
        }
        let (chunks, end) = {
            let mut tail = self.tail.lock();
            tail.bytes = 0;
            (std::mem::take(&mut tail.chunks), tail.end)
        };
        if chunks.is_empty() {
            return Ok(self.durable());
        }
        let result = self.write_out(&mut files, &chunks, end);
        if result.is_err() {
            self.failed.store(true, Ordering::Release);
            return result.map(|()| end);
        }
        self.durable.store(end.0, Ordering::Release);
        let mut tail = self.tail.lock();
        for mut chunk in chunks {
            if tail.spare.len() < 4 && chunk.capacity() <= 4 * COPY_BYTES_MAX {
                chunk.clear();
                tail.spare.push(chunk);
            }
        }
        Ok(end)
    }

    fn write_out(&self, files: &mut Files, chunks: &[Vec<u8>], end: Lsn) -> Result<()> {
        let bytes: u64 = chunks.iter().map(|c| c.len() as u64).sum();
        let first = Lsn(end.0 - bytes);
        if files.current.offset + bytes > files.current.len && files.current.offset > FILE_HEADER_BYTES as u64 {
            self.rotate(files, first, bytes)?;
        }
        let current = &mut files.current;
        for chunk in chunks {
            current.file.write_at(chunk, current.offset).map_err(|e| WalError::io(&current.name, e))?;
            current.offset += chunk.len() as u64;
        }
        current.len = current.len.max(current.offset);
        self.sync(current)?;
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self, current: &Current) -> Result<()> {
        if self.options.sync {
            current.file.sync().map_err(|e| WalError::io(&current.name, e))?;
            self.syncs.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Begins the next file. Invariant 2 holds because every flush has synced the current one.
    fn rotate(&self, files: &mut Files, start: Lsn, bytes: u64) -> Result<()> {
        let name = file_name(start);
        let io = |e| WalError::io(&name, e);
        let len = self.options.file_bytes.max(bytes + FILE_HEADER_BYTES as u64);
        let file = match files.spares.pop() {
            Some(spare) => {
                self.directory.rename(&spare, &name).map_err(io)?;
                self.directory.open(&name).map_err(io)?
            }
            None => {
                let file = self.directory.create(&name).map_err(io)?;
                fill(&*file, &name, self.options.file_bytes)?;
                file
            }
        };
        files.current = begin_file(&*self.directory, file, name, start, len, self.options.sync)?;
        files.starts.push(start);
        Ok(())
    }

    /// Prepares a file for the next rotation if there is none: a background step, so that no commit waits for it.
    pub fn prepare_spare(&self) -> Result<bool> {
        let name = {
            let mut files = self.files.lock();
            let half_full = files.current.offset > files.current.len / 2;
            if !files.spares.is_empty() || !half_full || self.failed.load(Ordering::Acquire) {
                return Ok(false);
            }
            files.next_spare += 1;
            format!("{SPARE_PREFIX}{}.wal", files.next_spare)
        };
        if let Err(e) = self.create_spare(&name) {
            // What there is of it must not take the space of a full disk.
            let _ = self.directory.remove(&name);
            return Err(e);
        }
        self.files.lock().spares.push(name);
        Ok(true)
    }

    fn create_spare(&self, name: &str) -> Result<()> {
        let io = |e| WalError::io(name, e);
        let file = self.directory.create(name).map_err(io)?;
        fill(&*file, name, self.options.file_bytes)?;
        if self.options.sync { file.sync().map_err(io) } else { Ok(()) }
    }

    /// Gives back the files that hold nothing at or after `lsn`: some are kept for reuse, which spares the disk new blocks.
    pub fn release_before(&self, lsn: Lsn) -> Result<()> {
        let mut files = self.files.lock();
        // A file ends where the next begins; the current one stays.
        while files.starts.len() > 1 && files.starts[1] <= lsn {
            let name = file_name(files.starts[0]);
            let io = |e| WalError::io(&name, e);
            if files.spares.len() < self.options.spares_max {
                files.next_spare += 1;
                let spare = format!("{SPARE_PREFIX}{}.wal", files.next_spare);
                self.directory.rename(&name, &spare).map_err(io)?;
                files.spares.push(spare);
            } else {
                self.directory.remove(&name).map_err(io)?;
            }
            files.starts.remove(0);
        }
        Ok(())
    }
}

fn spare_number(name: &str) -> Option<u64> {
    name.strip_prefix(SPARE_PREFIX)?.strip_suffix(".wal")?.parse().ok()
}

/// Writes zeros, so that later writes change no metadata and their sync is one disk write. (Space that is only reserved
/// would have to be marked as written by the sync.)
fn fill(file: &dyn File, name: &str, len: u64) -> Result<()> {
    let zeros = vec![0; (1 << 20).min(len) as usize];
    let mut at = 0;
    while at < len {
        let n = (len - at).min(zeros.len() as u64);
        file.write_at(&zeros[..n as usize], at).map_err(|e| WalError::io(name, e))?;
        at += n;
    }
    Ok(())
}

fn begin_file(directory: &dyn Directory, file: Arc<dyn File>, name: String, start: Lsn, len: u64, sync: bool) -> Result<Current> {
    file.write_at(&file_header(start), 0).map_err(|e| WalError::io(&name, e))?;
    if sync {
        file.sync().map_err(|e| WalError::io(&name, e))?;
        directory.sync_names().map_err(|e| WalError::io(&name, e))?;
    }
    Ok(Current { file, name, start, offset: FILE_HEADER_BYTES as u64, len })
}

impl std::fmt::Debug for Wal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let files = self.files.lock();
        write!(f, "Wal {{ file: {}, start: {}, durable: {} }}", files.current.name, files.current.start, self.durable())
    }
}
