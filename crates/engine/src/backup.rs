//! A copy of the database while it runs, and a database created from such a copy.
//!
//! A copy is a state of the manifest, the segment files that it names, and the log from that state's replay point on: the same as
//! after a crash, so that the ordinary recovery opens it. Until a `OnlineBackup` is dropped none of those files is removed.
//!
//! Invariants:
//! 1. Files are held before the state is taken: every file that the state names exists.
//! 2. The state reflects only commits before `end`, up to which the log is durable: a log that ends there or later is enough.
//! 3. Segments that commits linked after the state was written are named by the log, and are copied too.
//! 4. A copy has no rows of trees that a crash empties (unlogged, in memory).

use std::sync::Arc;

use melba_store::{EngineError, Manifest, ManifestState, Persistence, Result, Store, segment_name};
use melba_types::{Csn, Lsn};
use melba_vfs::Directory;
use melba_wal::{Belongs, RecordStream, Wal, WalOptions, WrittenBy, payload_crc};

use crate::commit::{Operation, decode};
use crate::engine::Engine;
use crate::shared::Shared;

/// Bytes of the log that are read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// A restored log's files: the start searches for records behind the end of the last one.
const LOG_FILE_BYTES: u64 = 1 << 20;
/// Restored records that are written together.
const BATCH_BYTES: u64 = LOG_FILE_BYTES / 2;

/// A segment file of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSegment {
    pub file: u64,
    /// The checksum of its footer: with the number it distinguishes the file from every other one that the database has had.
    pub footer_crc: u32,
    pub bytes: u64,
}

/// Holds the files that a copy of the database needs.
pub struct OnlineBackup {
    shared: Arc<Shared>,
    /// The reader that holds the log.
    reader: u64,
    pub state: ManifestState,
    pub segments: Vec<BackupSegment>,
    /// The copy needs the log up to here at least.
    pub end: Lsn,
}

impl Engine {
    /// Takes a copy's state, and holds its files.
    ///
    /// # Errors
    /// Fails if the log cannot be written, or if its part after the state cannot be read.
    pub fn begin_backup(&self) -> Result<OnlineBackup> {
        let shared = &self.shared;
        shared.runtime.check_poison()?;
        let wal = &shared.pipeline.log.wal;
        shared.store.files.trash.hold();
        let mut backup = OnlineBackup {
            shared: Arc::clone(shared),
            reader: wal.hold(),
            state: ManifestState::default(),
            segments: Vec::new(),
            end: Lsn(0),
        };
        let mut state = shared.store.manifest().state().clone();
        wal.move_hold(backup.reader, state.replay);
        shared.pipeline.flush_log(WrittenBy::Client)?;
        backup.end = wal.durable();
        let trees = &state.trees;
        state.segments.retain(|tree, _| trees.get(tree).is_some_and(|t| t.persistence == Persistence::Logged));
        (state.clean, state.log) = (false, None);
        let named = state.segments.values().flatten().map(|s| (s.file, s.footer_crc));
        let mut files: Vec<(u64, u32)> = named.chain(linked(wal, state.replay, backup.end)?).collect();
        files.sort_unstable();
        files.dedup_by_key(|(file, _)| *file);
        backup.state = state;
        backup.segments = files.into_iter().map(|file| segment(&shared.store, file)).collect::<Result<_>>()?;
        Ok(backup)
    }
}

impl OnlineBackup {
    /// Some bytes of a segment of the copy.
    ///
    /// # Errors
    /// `Corrupt` for a file that is no segment of it or has not these bytes, and failures to read.
    pub fn read_segment(&self, file: u64, offset: u64, bytes: usize) -> Result<Vec<u8>> {
        let name = segment_name(file);
        let Some(segment) = self.segments.iter().find(|s| s.file == file) else {
            return Err(EngineError::Corrupt { what: format!("the file \"{name}\" is not part of the backup") });
        };
        let left = segment.bytes.saturating_sub(offset);
        let mut content = vec![0; bytes.min(left as usize)];
        let io = |e| EngineError::io("read a segment for a backup", e);
        let opened = self.shared.store.files.directory.open_on_demand(&name).map_err(io)?;
        opened.read_at(&mut content, offset).map_err(io)?;
        Ok(content)
    }

    /// Durable bytes of the log from `from` on; none at its end. The log before `from` is not held any more.
    ///
    /// # Errors
    /// Those of reading a file of the log.
    pub fn read_log(&self, from: Lsn, bytes_max: usize) -> Result<Vec<u8>> {
        let wal = &self.shared.pipeline.log.wal;
        wal.move_hold(self.reader, from);
        Ok(wal.read(from, bytes_max)?)
    }

    /// Takes in all commits so far: `end` moves, and segments that were linked since are added at the end of `segments`. How many those
    /// are.
    ///
    /// # Errors
    /// Failures to write the log, or to read it.
    pub fn advance(&mut self) -> Result<usize> {
        let Shared { pipeline, store, .. } = &*self.shared;
        pipeline.flush_log(WrittenBy::Client)?;
        let end = pipeline.log.wal.durable();
        let known = self.segments.len();
        for (file, footer_crc) in linked(&pipeline.log.wal, self.end, end)? {
            if !self.segments.iter().any(|s| s.file == file) {
                self.segments.push(segment(store, (file, footer_crc))?);
            }
        }
        self.end = end;
        Ok(self.segments.len() - known)
    }
}

impl Drop for OnlineBackup {
    fn drop(&mut self) {
        self.shared.pipeline.log.wal.release(self.reader);
        self.shared.store.files.trash.release();
    }
}

/// A segment of the database's folder, in its full length.
fn segment(store: &Store, (file, footer_crc): (u64, u32)) -> Result<BackupSegment> {
    let io = |e| EngineError::io("read a segment for a backup", e);
    let bytes = store.files.directory.open_on_demand(&segment_name(file)).and_then(|f| f.len()).map_err(io)?;
    Ok(BackupSegment { file, footer_crc, bytes })
}

/// The segments that records of a part of the log link.
fn linked(wal: &Wal, from: Lsn, end: Lsn) -> Result<Vec<(u64, u32)>> {
    let (mut found, mut records, mut at) = (Vec::new(), RecordStream::new(from), from);
    while at < end {
        let bytes = wal.read(at, PIECE_BYTES)?;
        if bytes.is_empty() {
            break;
        }
        at = Lsn(at.0 + bytes.len() as u64);
        records.push(&bytes);
        while let Some(record) = records.next_record() {
            let each = &mut |operation: Operation<'_>| {
                if let Operation::LinkSegments { files, .. } = operation {
                    found.extend(files);
                }
            };
            decode(record.payload, each).ok_or_else(|| damaged(record.lsn))?;
        }
    }
    if records.end() < end { Err(damaged(records.end())) } else { Ok(found) }
}

fn damaged(at: Lsn) -> EngineError {
    EngineError::Corrupt { what: format!("the log has no whole record at {at}") }
}

/// The initial content of a restored database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The log ends here.
    pub end: Lsn,
    /// The last commit in it.
    pub csn: Csn,
}

/// Writes log and manifest of a copy into a folder that already has its segments: the next start recovers it.
///
/// `log` returns the copy's log, in pieces from the state's replay point on. It is read up to `until` or its end, and must reach
/// `least`. `database`: the number of the new database, whose log differs from there on.
///
/// # Errors
/// `Corrupt` for a log that is damaged or ends before `least`; those of `log`; failures to write.
pub fn restore(
    directory: &Arc<dyn Directory>,
    mut state: ManifestState,
    log: &mut dyn Iterator<Item = Result<Vec<u8>>>,
    (least, until): (Lsn, Option<Lsn>),
    database: u64,
) -> Result<Restored> {
    let folder = directory.subdirectory("wal").map_err(|e| EngineError::io("make the folder of the log", e))?;
    let wal = Wal::new(folder, WalOptions { file_bytes: LOG_FILE_BYTES, spares_max: 0, ..WalOptions::default() });
    state.database = database;
    wal.belongs_to(Belongs { database, manifest: state.records });
    wal.begin(state.replay)?;
    let mut records = RecordStream::new(state.replay);
    let mut restored = Restored { end: state.replay, csn: state.csn };
    let is_wanted = |end: Lsn| until.is_none_or(|until| end <= until);
    let (mut waiting, mut is_over) = (0, false);
    while !is_over && let Some(piece) = log.next() {
        records.push(&piece?);
        while let Some(record) = records.next_record() {
            is_over = !is_wanted(record.end);
            if is_over {
                break;
            }
            wal.append(record.csn, &mut record.payload.to_vec(), payload_crc(record.payload));
            (restored.end, restored.csn) = (record.end, record.csn.max(restored.csn));
            waiting += record.payload.len() as u64;
            if waiting > BATCH_BYTES {
                wal.flush(WrittenBy::Background)?;
                waiting = 0;
            }
        }
    }
    wal.flush(WrittenBy::Background)?;
    if restored.end < least {
        let what = format!("the log of the backup ends at {}, and it needs it up to {least}", restored.end);
        return Err(EngineError::Corrupt { what });
    }
    state.log = wal.known();
    Manifest::replace(&**directory, &state)?;
    Ok(restored)
}
