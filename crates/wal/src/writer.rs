//! Appends to the log.
//!
//! Space is reserved before a record is appended: the current file, or the spare that comes next, has blocks on the disk for all
//! records that wait in memory and all that have a reservation. So a full disk is an error before a commit has its place in the
//! order, when it can still fail alone, and writing an appended record needs no new blocks.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use melba_threads::atomic::{AtomicBool, AtomicU64, Ordering};
use melba_threads::planted::{Plant, is_planted};
use melba_threads::{Mutex, MutexGuard};
use melba_types::{Csn, Lsn};
use melba_vfs::{Directory, File, SyncSwitch, counts};

use crate::error::{Result, WalError};
use crate::format::{
    END_BYTES, FILE_HEADER_BYTES, FileHeader, RECORD_HEADER_BYTES, WalRecord, end_mark, file_name, record_header,
};
use crate::holds::Holds;
use crate::reader::{Belongs, Known, LogFiles, SPARE_PREFIX, replay};

/// How the log is written.
#[derive(Clone, Debug)]
pub struct WalOptions {
    /// Size of a file; one record may make a file larger.
    pub file_bytes: u64,
    /// Off: never waits for the disk.
    pub sync: SyncSwitch,
    /// Files kept for reuse when they are no longer needed.
    pub spares_max: usize,
}

impl Default for WalOptions {
    fn default() -> WalOptions {
        WalOptions { file_bytes: 8 << 20, sync: SyncSwitch::default(), spares_max: 2 }
    }
}

/// Payloads above this become separate chunks instead of being copied.
const COPY_BYTES_MAX: usize = 64 << 10;

/// Records that are not written yet.
#[derive(Default)]
struct Tail {
    /// Whole records; the last chunk is appended to.
    chunks: Vec<Vec<u8>>,
    bytes: u64,
    /// Bytes reserved and not written to a file yet, those in `chunks` among them.
    promised: u64,
    end: Lsn,
    /// Records appended since the log was opened.
    records: u64,
    /// Earlier batches were written while syncs were off.
    has_unsynced: bool,
    /// Empty buffers to reuse.
    spare: Vec<Vec<u8>>,
}

/// The file being written.
struct Current {
    file: Arc<dyn File>,
    name: String,
    start: Lsn,
    /// The position of the next byte.
    offset: u64,
    len: u64,
}

/// A file that a full disk has space for is at least as large.
const LEAST_FILE_BYTES: u64 = 4 << 10;
/// The bytes of a file beside records.
const FRAME_BYTES: u64 = (FILE_HEADER_BYTES + END_BYTES) as u64;

impl Current {
    fn is_half_full(&self) -> bool {
        self.offset > self.len / 2
    }
}

pub(crate) struct Files {
    current: Current,
    /// Starts of all files, ascending, the current one last.
    pub starts: Vec<Lsn>,
    /// The last one is taken next.
    spares: Vec<Spare>,
    next_spare: u64,
}

/// The files of a log that was begun.
pub(crate) struct FilesGuard<'a>(MutexGuard<'a, Option<Files>>);

impl Deref for FilesGuard<'_> {
    type Target = Files;

    fn deref(&self) -> &Files {
        self.0.as_ref().expect("the log was begun")
    }
}

impl DerefMut for FilesGuard<'_> {
    fn deref_mut(&mut self) -> &mut Files {
        self.0.as_mut().expect("the log was begun")
    }
}

/// A file of zeros, or of records that are no longer needed, with all its blocks on the disk.
struct Spare {
    name: String,
    len: u64,
}

impl Files {
    /// How many bytes of records can be written without new blocks.
    fn free_bytes(&self) -> u64 {
        let current = self.current.len.saturating_sub(self.current.offset + END_BYTES as u64);
        self.spares.last().map_or(0, |s| s.len.saturating_sub(FRAME_BYTES)).max(current)
    }

    fn new_spare_name(&mut self) -> String {
        new_spare_name(&mut self.next_spare)
    }
}

/// The log, open for appending.
pub struct Wal {
    pub(crate) directory: Arc<dyn Directory>,
    options: WalOptions,
    tail: Mutex<Tail>,
    /// `None`: not begun.
    files: Mutex<Option<Files>>,
    durable: AtomicU64,
    /// `Files::free_bytes`, for threads that do not want to wait for a sync to know it. Only too small while it changes.
    free_bytes: AtomicU64,
    failed: AtomicBool,
    /// Where the log began when it was opened.
    began_at: AtomicU64,
    /// Fields of the next file's header.
    database: AtomicU64,
    manifest: AtomicU64,
    written: [WriteCounters; 2],
    pub(crate) holds: Mutex<Holds>,
}

/// On whose behalf the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenBy {
    /// A client that waits for it.
    Client = 0,
    /// The background.
    Background = 1,
}

#[derive(Default)]
struct WriteCounters {
    writes: AtomicU64,
    bytes: AtomicU64,
    syncs: AtomicU64,
}

/// Counts of one kind of writer since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteCounts {
    pub writes: u64,
    pub bytes: u64,
    pub syncs: u64,
}

/// Counts of the log since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalStatistics {
    /// Records appended, and their bytes, written or not.
    pub records: u64,
    pub bytes: u64,
    pub by_clients: WriteCounts,
    pub in_background: WriteCounts,
}

impl WalStatistics {
    /// Syncs of the log by all writers.
    pub fn syncs(&self) -> u64 {
        self.by_clients.syncs + self.in_background.syncs
    }
}

impl WriteCounters {
    fn read(&self) -> WriteCounts {
        let value = |c: &AtomicU64| c.load(Ordering::Relaxed);
        WriteCounts { writes: value(&self.writes), bytes: value(&self.bytes), syncs: value(&self.syncs) }
    }
}

/// The checksum of a payload, for `Wal::append`: computed before the ordered step.
pub fn payload_crc(payload: &[u8]) -> u32 {
    crc32c::crc32c(payload)
}

impl Wal {
    /// A log that is not open for appending yet: `replay`, then `begin`.
    pub fn new(directory: Arc<dyn Directory>, options: WalOptions) -> Wal {
        Wal {
            directory,
            options,
            tail: Mutex::default(),
            files: Mutex::new(None),
            durable: AtomicU64::new(0),
            free_bytes: AtomicU64::new(0),
            began_at: AtomicU64::new(0),
            database: AtomicU64::new(0),
            manifest: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            written: Default::default(),
            holds: Mutex::default(),
        }
    }

    /// Hands every record from `from` on to `each`, in order; returns where the log ends.
    pub fn replay<E: From<WalError>>(
        &self,
        from: Lsn,
        known: Option<Known>,
        each: impl FnMut(WalRecord<'_>) -> Result<(), E>,
    ) -> Result<Lsn, E> {
        replay(&*self.directory, from, self.belongs(), known, each)
    }

    /// Tells whose log this is: files say so, and those of others are refused. To be called again whenever the manifest has got a
    /// record more.
    pub fn belongs_to(&self, belongs: Belongs) {
        self.database.store(belongs.database, Ordering::Release);
        self.manifest.fetch_max(belongs.manifest, Ordering::AcqRel);
    }

    fn belongs(&self) -> Belongs {
        Belongs { database: self.database.load(Ordering::Acquire), manifest: self.manifest.load(Ordering::Acquire) }
    }

    /// Facts to store elsewhere, for the next replay; `None` when nothing is certain, because syncs are, or were, off.
    pub fn known(&self) -> Option<Known> {
        let certain = self.options.sync.is_on() && !self.tail.lock().has_unsynced;
        certain.then(|| Known { start: Lsn(self.began_at.load(Ordering::Acquire)), durable: self.durable() })
    }

    /// Where the log ends at the latest, when it is read from `from` on: its last file may hold less than it has room for.
    pub fn expected_end(&self, from: Lsn) -> Result<Lsn> {
        let Some(last) = LogFiles::list(&*self.directory)?.starts.last().copied() else { return Ok(from) };
        let name = file_name(last);
        let len = self.directory.open(&name).and_then(|f| f.len()).map_err(|e| WalError::io(&name, e))?;
        Ok(Lsn(last.0.saturating_add(len.saturating_sub(FILE_HEADER_BYTES as u64))).max(from))
    }

    /// Begins a new file at `start`, which is where `replay` said the log ends (or 0).
    pub fn begin(&self, start: Lsn) -> Result<()> {
        let Wal { directory, options, .. } = self;
        let mut listed = LogFiles::list(&**directory)?;
        // Files at or after the end hold nothing but torn records; invariant 3 forbids to write behind those. The one that
        // begins at the end is replaced by the new one: it may be one that must be there.
        let beyond = listed.starts.split_off(listed.starts.partition_point(|s| *s < start));
        for beyond in beyond.into_iter().filter(|s| *s > start) {
            let name = file_name(beyond);
            directory.remove(&name).map_err(|e| WalError::io(&name, e))?;
        }
        if options.sync.is_on() {
            directory.sync_names().map_err(|e| WalError::io(".", e))?;
        }
        let mut spares = Vec::new();
        for name in listed.spares {
            let io = |e| WalError::io(&name, e);
            let len = directory.open(&name).and_then(|f| f.len()).map_err(io)?;
            // A crash may have come in the middle of making one, or between preparing, renaming and removing: then they are too many.
            if len >= options.file_bytes && spares.len() < options.spares_max {
                spares.push(Spare { name, len });
            } else {
                directory.remove(&name).map_err(io)?;
            }
        }
        let mut next_spare = spares.iter().filter_map(|s| spare_number(&s.name)).max().map_or(0, |n| n + 1);
        let spare = match spares.pop() {
            Some(spare) => spare,
            None => make_spare_that_fits(&**directory, &mut next_spare, options.file_bytes, LEAST_FILE_BYTES)?,
        };
        let current = self.begin_file(spare, start)?;
        let mut starts = listed.starts;
        starts.push(start);
        let files = Files { current, starts, spares, next_spare };
        {
            let mut tail = self.tail.lock();
            (tail.end, tail.has_unsynced) = (start, !options.sync.is_on());
        }
        self.began_at.store(start.0, Ordering::Release);
        self.durable.store(start.0, Ordering::Release);
        self.free_bytes.store(files.free_bytes(), Ordering::Release);
        *self.files.lock() = Some(files);
        Ok(())
    }

    pub(crate) fn files(&self) -> Result<FilesGuard<'_>> {
        let files = self.files.lock();
        if files.is_some() { Ok(FilesGuard(files)) } else { Err(WalError::Failed) }
    }

    /// Reserves disk space for a record with a payload of this many bytes; `append` follows, or `unreserve`. On an error nothing
    /// has changed.
    pub fn reserve(&self, payload_bytes: usize) -> Result<()> {
        let bytes = (RECORD_HEADER_BYTES + payload_bytes) as u64;
        let (promised, end) = {
            let mut tail = self.tail.lock();
            tail.promised += bytes;
            (tail.promised, tail.end.0.checked_add(tail.promised))
        };
        if end.is_none() {
            self.unreserve(payload_bytes);
            return Err(WalError::Exhausted);
        }
        if promised <= self.free_bytes.load(Ordering::Acquire) {
            return Ok(());
        }
        let result = self.preallocate();
        if result.is_err() {
            self.unreserve(payload_bytes);
        }
        result
    }

    /// Takes a promise back.
    pub fn unreserve(&self, payload_bytes: usize) {
        let mut tail = self.tail.lock();
        tail.promised = tail.promised.saturating_sub((RECORD_HEADER_BYTES + payload_bytes) as u64);
    }

    /// Lets the next spare grow, or makes one, until all that is promised fits.
    fn preallocate(&self) -> Result<()> {
        let mut files = self.files()?;
        // With the files locked nothing is written, so promises can only grow; a thread that adds one checks for itself.
        let promised = self.tail.lock().promised;
        if promised > files.free_bytes() {
            let len = self.options.file_bytes.max(promised + FRAME_BYTES);
            if files.current.offset == FILE_HEADER_BYTES as u64 {
                // Nothing is in it yet, and the next file would have its name.
                let current = &mut files.current;
                fill(&*current.file, &current.name, current.len..len)?;
                current.len = len;
            } else if let Some(spare) = files.spares.last_mut() {
                let file = self.directory.open(&spare.name).map_err(|e| WalError::io(&spare.name, e))?;
                fill(&*file, &spare.name, spare.len..len)?;
                spare.len = len;
            } else {
                let spare = make_spare_that_fits(&*self.directory, &mut files.next_spare, len, promised + FRAME_BYTES)?;
                files.spares.push(spare);
            }
        }
        self.free_bytes.store(files.free_bytes(), Ordering::Release);
        Ok(())
    }

    /// Puts a record at the end, in memory; returns where it begins and ends. A large payload is taken, not copied.
    pub fn append(&self, csn: Csn, payload: &mut Vec<u8>, payload_crc: u32) -> (Lsn, Lsn) {
        let mut guard = self.tail.lock();
        let tail = &mut *guard;
        let lsn = tail.end;
        // The first record of a batch: the batches before it are synced when it is written.
        let after_sync = tail.bytes == 0 && !tail.has_unsynced && self.options.sync.is_on();
        let header = record_header(payload.len() as u32, payload_crc, lsn, csn, after_sync);
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
        tail.records += 1;
        tail.end = Lsn(lsn.0 + length);
        counts::note_log_record(length);
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

    /// Everything written while syncs were off has been synced meanwhile.
    pub fn note_all_synced(&self) {
        self.tail.lock().has_unsynced = !self.options.sync.is_on();
    }

    pub fn statistics(&self) -> WalStatistics {
        let (records, end) = {
            let tail = self.tail.lock();
            (tail.records, tail.end)
        };
        let [by_clients, in_background] = [WrittenBy::Client, WrittenBy::Background].map(|by| self.written[by as usize].read());
        WalStatistics { records, bytes: end.0 - self.began_at.load(Ordering::Acquire), by_clients, in_background }
    }

    /// Writes and syncs everything appended so far. One thread does it at a time; others wait for it and then do the rest.
    pub fn flush(&self, by: WrittenBy) -> Result<Lsn> {
        self.flush_to(Lsn(u64::MAX), by)
    }

    /// The same, unless the thread that was waited for has written everything before `wanted`.
    pub fn flush_to(&self, wanted: Lsn, by: WrittenBy) -> Result<Lsn> {
        let mut files = self.files()?;
        if self.failed.load(Ordering::Acquire) {
            return Err(WalError::Failed);
        }
        if self.durable() >= wanted {
            return Ok(self.durable());
        }
        let (chunks, end) = {
            let mut tail = self.tail.lock();
            tail.bytes = 0;
            (std::mem::take(&mut tail.chunks), tail.end)
        };
        if chunks.is_empty() {
            return Ok(self.durable());
        }
        if is_planted(Plant::DurableEarly) {
            self.durable.store(end.0, Ordering::Release);
        }
        let result = self.write_out(&mut files, &chunks, end, &self.written[by as usize]);
        if result.is_err() {
            self.failed.store(!is_planted(Plant::ForgetFailedFlush), Ordering::Release);
            return result.map(|()| end);
        }
        self.durable.store(end.0, Ordering::Release);
        self.free_bytes.store(files.free_bytes(), Ordering::Release);
        let mut tail = self.tail.lock();
        tail.promised = tail.promised.saturating_sub(chunks.iter().map(|c| c.len() as u64).sum());
        tail.has_unsynced |= !self.options.sync.is_on();
        for mut chunk in chunks {
            if tail.spare.len() < 4 && chunk.capacity() <= 4 * COPY_BYTES_MAX {
                chunk.clear();
                tail.spare.push(chunk);
            }
        }
        Ok(end)
    }

    fn write_out(&self, files: &mut Files, chunks: &[Vec<u8>], end: Lsn, counters: &WriteCounters) -> Result<()> {
        let bytes: u64 = chunks.iter().map(|c| c.len() as u64).sum();
        let first = Lsn(end.0 - bytes);
        let end_bytes = END_BYTES as u64;
        if files.current.offset + bytes + end_bytes > files.current.len && files.current.offset > FILE_HEADER_BYTES as u64 {
            self.rotate(files, first, bytes)?;
        }
        let current = &mut files.current;
        for chunk in chunks {
            current.file.write_at(chunk, current.offset).map_err(|e| WalError::io(&current.name, e))?;
            current.offset += chunk.len() as u64;
        }
        current.len = current.len.max(current.offset);
        if self.options.sync.is_on() {
            current.file.sync().map_err(|e| WalError::io(&current.name, e))?;
            counters.syncs.fetch_add(1, Ordering::Relaxed);
        }
        counters.writes.fetch_add(chunks.len() as u64, Ordering::Relaxed);
        counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Begins the next file. Invariant 2 holds because every flush has synced the current one.
    fn rotate(&self, files: &mut Files, start: Lsn, bytes: u64) -> Result<()> {
        let spare = match files.spares.pop() {
            Some(spare) => spare,
            None => make_spare(&*self.directory, &mut files.next_spare, self.options.file_bytes.max(bytes + FRAME_BYTES))?,
        };
        let next = self.begin_file(spare, start)?;
        if self.options.sync.is_on() {
            // From here on the next file cannot be missed, and before there is nothing in it.
            let Current { file, name, offset, .. } = &files.current;
            let io = |e| WalError::io(name, e);
            file.write_at(&end_mark(start), *offset).map_err(io)?;
            file.sync().map_err(io)?;
        }
        files.current = next;
        files.starts.push(start);
        Ok(())
    }

    /// Makes a spare the file that begins at `start`. Its header is durable before it has that name.
    fn begin_file(&self, spare: Spare, start: Lsn) -> Result<Current> {
        let name = file_name(start);
        let io = |e| WalError::io(&name, e);
        let file = self.directory.open(&spare.name).map_err(io)?;
        let Belongs { database, manifest } = self.belongs();
        let header = FileHeader { start, len: spare.len, database, manifest, bytes: FILE_HEADER_BYTES };
        file.write_at(&header.encode(), 0).map_err(io)?;
        let is_synced = self.options.sync.is_on();
        if is_synced {
            file.sync().map_err(io)?;
        }
        self.directory.rename(&spare.name, &name).map_err(io)?;
        if is_synced {
            self.directory.sync_names().map_err(io)?;
        }
        Ok(Current { file, name, start, offset: FILE_HEADER_BYTES as u64, len: spare.len })
    }

    /// Prepares a file for the next rotation if there is none: a background step, so that no commit waits for it.
    pub fn prepare_spare(&self) -> Result<bool> {
        let name = {
            let mut files = self.files()?;
            if !files.spares.is_empty() || !files.current.is_half_full() || self.failed.load(Ordering::Acquire) {
                return Ok(false);
            }
            files.new_spare_name()
        };
        let len = self.options.file_bytes;
        let file = make_file(&*self.directory, &name, len)?;
        if self.options.sync.is_on()
            && let Err(e) = file.sync()
        {
            // A partial file must not take the space of a full disk.
            let _ = self.directory.remove(&name);
            return Err(WalError::io(&name, e));
        }
        let mut files = self.files()?;
        // Behind one that was enlarged meanwhile for reserved records.
        files.spares.insert(0, Spare { name, len });
        self.free_bytes.store(files.free_bytes(), Ordering::Release);
        Ok(true)
    }

    /// Deletes the files kept for reuse, except those needed soon; false when there are none.
    pub fn remove_spares(&self) -> Result<bool> {
        let mut files = self.files()?;
        let kept = usize::from(files.current.is_half_full());
        if files.spares.len() <= kept {
            return Ok(false);
        }
        let free_bytes = files.free_bytes();
        let removed = files.spares.len() - kept;
        let next = files.spares.split_off(removed);
        let spares = std::mem::replace(&mut files.spares, next);
        // First the smaller figure is stored, then the promises are read: a thread that adds one after that sees the room.
        self.free_bytes.store(files.free_bytes(), Ordering::Release);
        let promised = self.tail.lock().promised;
        if promised > files.free_bytes() && !is_planted(Plant::ForgetPromises) {
            files.spares.splice(0..0, spares);
            self.free_bytes.store(free_bytes, Ordering::Release);
            return Ok(false);
        }
        drop(files);
        spares.iter().try_for_each(|s| self.directory.remove(&s.name).map_err(|e| WalError::io(&s.name, e)))?;
        Ok(true)
    }

    /// Releases the files without bytes at or after `lsn` or for readers (`hold`): some are kept for reuse, which spares the disk
    /// new blocks.
    pub fn release_before(&self, lsn: Lsn) -> Result<()> {
        let mut superfluous = Vec::new();
        let mut files = self.files()?;
        let lsn = lsn.min(self.holds.lock().first());
        // A file ends where the next begins; the current one stays.
        while files.starts.len() > 1 && files.starts[1] <= lsn {
            let name = file_name(files.starts[0]);
            let io = |e| WalError::io(&name, e);
            // A large transaction's file is not worth keeping.
            let len = self.directory.open(&name).and_then(|f| f.len()).map_err(io)?;
            if files.spares.len() < self.options.spares_max && len == self.options.file_bytes {
                let spare = files.new_spare_name();
                self.directory.rename(&name, &spare).map_err(io)?;
                files.spares.insert(0, Spare { name: spare, len });
            } else {
                superfluous.push(name);
            }
            files.starts.remove(0);
        }
        self.free_bytes.store(files.free_bytes(), Ordering::Release);
        drop(files);
        // Removing a large file takes long, and commits need the lock.
        superfluous.iter().try_for_each(|name| self.directory.remove(name).map_err(|e| WalError::io(name, e)))
    }
}

fn spare_number(name: &str) -> Option<u64> {
    name.strip_prefix(SPARE_PREFIX)?.strip_suffix(".wal")?.parse().ok()
}

fn new_spare_name(last: &mut u64) -> String {
    *last += 1;
    format!("{SPARE_PREFIX}{last}.wal")
}

fn make_spare(directory: &dyn Directory, last: &mut u64, len: u64) -> Result<Spare> {
    let name = new_spare_name(last);
    make_file(directory, &name, len)?;
    Ok(Spare { name, len })
}

/// The same; on a disk with too little space a smaller one, of at least `least` bytes.
fn make_spare_that_fits(directory: &dyn Directory, last: &mut u64, mut len: u64, least: u64) -> Result<Spare> {
    loop {
        match make_spare(directory, last, len) {
            Err(WalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::StorageFull && least < len => {
                len = (len / 2).max(least);
            }
            made => return made,
        }
    }
}

/// Creates a file of zeros, or leaves nothing.
fn make_file(directory: &dyn Directory, name: &str, len: u64) -> Result<Arc<dyn File>> {
    let file = directory.create(name).map_err(|e| WalError::io(name, e))?;
    fill(&*file, name, 0..len).inspect_err(|_| {
        // A file that cannot be removed now is too short, and the next start removes it.
        let _ = directory.remove(name);
    })?;
    Ok(file)
}

/// Zeros written at a time. Linux 6.16 and later keep the data of one write in folios as large as it, and every later write to a
/// folio and its sync visit all blocks of it.
const FILL_BYTES: u64 = 64 << 10;

/// Writes zeros, so that later writes change no metadata and their sync is one disk write. (Space that is only reserved
/// would have to be marked as written by the sync.)
fn fill(file: &dyn File, name: &str, range: std::ops::Range<u64>) -> Result<()> {
    let zeros = vec![0; FILL_BYTES.min(range.end.saturating_sub(range.start)) as usize];
    let mut at = range.start;
    while at < range.end {
        let n = (range.end - at).min(zeros.len() as u64);
        file.write_at(&zeros[..n as usize], at).map_err(|e| WalError::io(name, e))?;
        at += n;
    }
    Ok(())
}

impl std::fmt::Debug for Wal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.files.lock() {
            Some(files) => write!(f, "Wal {{ file: {}, start: {} }}", files.current.name, files.current.start),
            None => f.write_str("Wal { not begun }"),
        }
    }
}
