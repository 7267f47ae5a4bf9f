//! Where a tree's committed versions are: the active memory table, a frozen one being flushed, and segments.
//!
//! Invariant: of two versions of one key, the newer is in the same level or one further to the front. Levels are replaced as
//! a whole; a reader keeps those it found.

use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

use melba_segment::{BlockCache, KeySegmentReader, Position, TableSegmentReader};
use melba_types::row::RowLayout;
use melba_types::{Column, Csn, Datum, RowId};
use melba_vfs::{Directory, SwitchedDirectory, SyncSwitch};

use crate::RowBytes;
use crate::chain::{Chain, Payload};
use crate::engine::EngineOptions;
use crate::error::{EngineError, Result};
use crate::key::KeyBytes;
use crate::manifest::SegmentFile;
use crate::swap::{Reading, Swap};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock};

/// The keys of one memory table, each with its versions.
pub(crate) struct MemTable<K, V> {
    pub map: RwLock<BTreeMap<K, Chain<V>>>,
    /// Estimate of the memory in use.
    pub bytes: AtomicU64,
    /// Keys that a commit made tombstones, oldest first: they go when no snapshot is older (a queue's table would fill with
    /// them otherwise).
    pub garbage: Mutex<VecDeque<(Csn, K)>>,
    /// There has been a key: false lets readers leave the lock alone.
    has_keys: AtomicBool,
}

/// Beside its parts, what an entry costs in a B-tree node that is two thirds full, and in the allocator.
const ENTRY_OVERHEAD_BYTES: usize = 24;

/// What a key with one version takes, without the version's heap bytes.
pub(crate) fn entry_bytes<K, V>(key_heap_bytes: usize) -> usize {
    size_of::<Chain<V>>() + size_of::<K>() + key_heap_bytes + ENTRY_OVERHEAD_BYTES
}

impl<K: Ord, V: Payload> MemTable<K, V> {
    pub fn new() -> Arc<MemTable<K, V>> {
        Arc::new(MemTable {
            map: RwLock::default(),
            bytes: AtomicU64::new(0),
            garbage: Mutex::default(),
            has_keys: AtomicBool::new(false),
        })
    }

    /// Whether there has never been a key. What was committed before a reader's view began is known to it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.has_keys.load(Ordering::Acquire)
    }

    /// To be called before keys are added.
    pub fn note_keys(&self) {
        if self.is_empty() {
            self.has_keys.store(true, Ordering::Release);
        }
    }

    #[inline]
    fn version<Q>(&self, key: &Q, csn: Csn) -> Option<(Csn, V)>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        if self.is_empty() {
            return None;
        }
        let map = self.map.read();
        map.get(key).and_then(|chain| chain.visible(csn)).map(|v| (v.csn, v.value.clone()))
    }
}

/// Files that no tree needs any more.
#[derive(Default)]
pub(crate) struct Trash(pub Mutex<Vec<SegmentFile>>);

/// The segment files of an engine.
pub(crate) struct Files {
    pub directory: Arc<dyn Directory>,
    /// The same, for files that a crash may take.
    pub unsynced: Arc<dyn Directory>,
    pub cache: Arc<BlockCache>,
    pub trash: Arc<Trash>,
    /// The number of the next file; never used before.
    pub next: AtomicU64,
    /// Raw bytes after which another segment is begun, at most: a merge rewrites about so much at a time.
    pub segment_bytes: usize,
}

/// The segments of a flush are this many times smaller than a full one, so that merges can be done with them one by one.
const PIECES: usize = 8;

impl Files {
    /// Of the folder of segments, in which `sync` says whether anything is made durable.
    pub fn new(segments: &Arc<dyn Directory>, sync: &SyncSwitch, options: &EngineOptions, next: u64) -> Files {
        let switched = |sync: SyncSwitch| Arc::new(SwitchedDirectory::new(Arc::clone(segments), sync)) as Arc<dyn Directory>;
        Files {
            directory: switched(sync.clone()),
            unsynced: switched(SyncSwitch::new(false)),
            cache: BlockCache::new(options.cache_bytes()),
            trash: Arc::default(),
            next: AtomicU64::new(next),
            segment_bytes: options.segment_bytes,
        }
    }

    /// Where to write a segment that is durable when finished, or need not be.
    pub fn writable(&self, synced: bool) -> &dyn Directory {
        if synced { &*self.directory } else { &*self.unsynced }
    }

    pub fn next_file(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// Raw bytes of a segment that a flush writes, about.
    pub fn piece_bytes(&self) -> usize {
        (self.segment_bytes / PIECES).max(1)
    }

    /// Opens a table's segment; rows with CSN 0 get what it has assigned. It must be the file that was written under its name.
    pub fn open_table(&self, segment: SegmentFile) -> Result<Arc<TableRun>> {
        let name = segment_name(segment.file);
        let reader = TableSegmentReader::open_assigned(&*self.directory, &name, &self.cache, segment.assigned)?;
        let segment = segment.recognised(reader.meta().footer_crc)?;
        Ok(Run::new(segment, reader, Usage::new(segment.file, &self.trash)))
    }

    /// Opens an index's segment; entries with CSN 0 get what it has assigned. It must be the file that was written under its name.
    pub fn open_index(&self, segment: SegmentFile) -> Result<Arc<IndexRun>> {
        let name = segment_name(segment.file);
        let reader = KeySegmentReader::open_assigned(&*self.directory, &name, &self.cache, segment.assigned)?;
        let segment = segment.recognised(reader.meta().footer_crc)?;
        Ok(Run::new(segment, reader, Usage::new(segment.file, &self.trash)))
    }

    /// Opens a transaction's table segment for everybody: the commit gives its rows `assigned`.
    pub fn link_table(&self, private: &TableRun, assigned: Csn) -> Result<Arc<TableRun>> {
        let segment = SegmentFile { assigned, ..private.segment };
        let reader = TableSegmentReader::open_assigned(&*self.directory, &segment_name(segment.file), &self.cache, assigned)?;
        Ok(Run::new(segment.recognised(reader.meta().footer_crc)?, reader, Arc::clone(&private.usage)))
    }

    /// Opens a transaction's index segment for everybody: the commit gives its entries `assigned`.
    pub fn link_index(&self, private: &IndexRun, assigned: Csn) -> Result<Arc<IndexRun>> {
        let segment = SegmentFile { assigned, ..private.segment };
        let reader = KeySegmentReader::open_assigned(&*self.directory, &segment_name(segment.file), &self.cache, assigned)?;
        Ok(Run::new(segment.recognised(reader.meta().footer_crc)?, reader, Arc::clone(&private.usage)))
    }

    /// Makes the names of new files durable.
    pub fn sync_names(&self) -> Result<()> {
        self.directory.sync_names().map_err(|e| EngineError::io("sync the segments' directory", e))
    }

    /// A file that nobody needs, and no commit has linked.
    pub fn discard(&self, file: u64) {
        self.trash.0.lock().push(SegmentFile::unknown(file, Csn(0)));
    }
}

/// The name of a segment file.
pub(crate) fn segment_name(file: u64) -> String {
    format!("{file:016x}.seg")
}

/// The number of a segment file; `None` for other names.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_suffix(".seg")?, 16).ok()
}

/// An open segment of a tree.
pub(crate) struct Run<R> {
    pub segment: SegmentFile,
    pub reader: Arc<R>,
    /// Shared by a transaction's own view of a segment and everybody's after its commit.
    usage: Arc<Usage>,
}

impl<R> Run<R> {
    fn new(segment: SegmentFile, reader: Arc<R>, usage: Arc<Usage>) -> Arc<Run<R>> {
        usage.assigned.store(segment.assigned.0, Ordering::Release);
        Arc::new(Run { segment, reader, usage })
    }

    /// Replaced by a merge, dropped, or rolled back: the file goes when the last reader does.
    pub fn discard(&self) {
        self.usage.obsolete.store(true, Ordering::Release);
    }
}

/// That a file is read.
struct Usage {
    file: u64,
    /// The CSN of the commit that linked it, or 0.
    assigned: AtomicU64,
    obsolete: AtomicBool,
    trash: Arc<Trash>,
}

impl Usage {
    fn new(file: u64, trash: &Arc<Trash>) -> Arc<Usage> {
        Arc::new(Usage { file, assigned: AtomicU64::new(0), obsolete: false.into(), trash: Arc::clone(trash) })
    }
}

impl Drop for Usage {
    fn drop(&mut self) {
        if *self.obsolete.get_mut() {
            let assigned = Csn(*self.assigned.get_mut());
            self.trash.0.lock().push(SegmentFile::unknown(self.file, assigned));
        }
    }
}

/// Where runs go that take the place of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where the first of those was.
    First,
    /// Behind all others.
    Bottom,
}

/// All levels of a tree, front to back.
pub(crate) struct Levels<K, V, R> {
    pub active: Arc<MemTable<K, V>>,
    pub frozen: Option<Arc<MemTable<K, V>>>,
    /// Newest first.
    pub runs: Arc<[Arc<Run<R>>]>,
}

pub(crate) type TableLevels = Levels<RowId, Option<RowBytes>, TableSegmentReader>;
pub(crate) type IndexLevels = Levels<KeyBytes, bool, KeySegmentReader>;
pub(crate) type TableRun = Run<TableSegmentReader>;
pub(crate) type IndexRun = Run<KeySegmentReader>;

impl<K: Ord, V: Payload, R> Levels<K, V, R> {
    pub fn new() -> Levels<K, V, R> {
        Levels { active: MemTable::new(), frozen: None, runs: Arc::new([]) }
    }

    /// The memory tables, front to back.
    pub fn memory(&self) -> impl Iterator<Item = &Arc<MemTable<K, V>>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// The same without those that never had a key.
    pub fn used_memory(&self) -> impl Iterator<Item = &Arc<MemTable<K, V>>> {
        self.memory().filter(|table| !table.is_empty())
    }

    pub fn memory_bytes(&self) -> u64 {
        self.memory().map(|m| m.bytes.load(Ordering::Relaxed)).sum()
    }

    /// The version of a key in memory that a snapshot at `csn` sees; a tombstone counts.
    #[inline]
    pub fn version_in_memory<Q>(&self, key: &Q, csn: Csn) -> Option<(Csn, V)>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        match self.active.version(key, csn) {
            None => self.frozen.as_ref().and_then(|f| f.version(key, csn)),
            found => found,
        }
    }

    /// Puts runs in front of the others.
    pub fn add_runs(&mut self, added: impl IntoIterator<Item = Arc<Run<R>>>) {
        self.runs = added.into_iter().chain(self.runs.iter().cloned()).collect();
    }

    /// Takes `removed` out, which are obsolete now, and puts `added` in. Returns the runs there were, to be dropped when the
    /// levels are unlocked: to close segments takes its time.
    #[must_use]
    pub fn replace_runs(&mut self, removed: &[u64], added: &[Arc<Run<R>>], place: Place) -> Arc<[Arc<Run<R>>]> {
        let mut runs = self.runs.to_vec();
        let is_removed = |r: &Arc<Run<R>>| removed.contains(&r.segment.file);
        let first = runs.iter().position(is_removed).unwrap_or(0);
        runs.retain(|r| {
            let gone = is_removed(r);
            if gone {
                r.discard();
            }
            !gone
        });
        let at = if place == Place::First { first } else { runs.len() };
        runs.splice(at..at, added.iter().cloned());
        std::mem::replace(&mut self.runs, runs.into())
    }
}

impl TableLevels {
    /// Whether nothing below the active table can have a row.
    pub fn is_bottom(&self, id: RowId) -> bool {
        self.frozen.is_none() && !may_have_row(&self.runs, id)
    }
}

impl IndexLevels {
    /// Whether nothing below the active table can have an entry.
    pub fn is_bottom(&self, key: &[u8]) -> bool {
        self.frozen.is_none() && !may_have_key(&self.runs, key)
    }
}

/// Whether some segment may have versions of a row.
pub(crate) fn may_have_row(runs: &[Arc<TableRun>], id: RowId) -> bool {
    runs.iter().any(|r| {
        let meta = r.reader.meta();
        meta.row_id_min <= id && id <= meta.row_id_max
    })
}

/// Whether some segment may have versions of an entry.
pub(crate) fn may_have_key(runs: &[Arc<IndexRun>], key: &[u8]) -> bool {
    runs.iter().any(|r| {
        let meta = r.reader.meta();
        meta.key_min.as_slice() <= key && key <= meta.key_max.as_slice()
    })
}

impl<K, V, R> Clone for Levels<K, V, R> {
    fn clone(&self) -> Levels<K, V, R> {
        Levels { active: Arc::clone(&self.active), frozen: self.frozen.clone(), runs: Arc::clone(&self.runs) }
    }
}

/// A row's version, wherever it is.
pub(crate) enum Found {
    Memory(Option<RowBytes>),
    Stored(RunRef, Position),
    Deleted,
}

/// A table's segment in use for a moment.
pub(crate) enum RunRef {
    /// One of its levels'.
    Of(Reading<TableLevels>, usize),
    /// One of a transaction's own.
    Own(Arc<TableRun>),
}

impl Deref for RunRef {
    type Target = TableRun;

    #[inline]
    fn deref(&self) -> &TableRun {
        match self {
            RunRef::Of(levels, at) => &levels.runs[*at],
            RunRef::Own(run) => run,
        }
    }
}

/// The version of a row that a snapshot at `csn` sees.
pub(crate) fn see_row(levels: &Swap<TableLevels>, id: RowId, csn: Csn) -> Result<Option<Found>> {
    let levels = levels.read();
    if let Some((_, row)) = levels.version_in_memory(&id, csn) {
        return Ok(Some(Found::Memory(row)));
    }
    let place = place_in_runs(&levels.runs, id, csn)?;
    Ok(place.map(|(at, position, tombstone)| found_at(RunRef::Of(levels, at), position, tombstone)))
}

/// The same, and which commit made it.
pub(crate) fn find_row(levels: &Swap<TableLevels>, id: RowId, csn: Csn) -> Result<Option<(Csn, Found)>> {
    let levels = levels.read();
    if let Some((csn, row)) = levels.version_in_memory(&id, csn) {
        return Ok(Some((csn, Found::Memory(row))));
    }
    for (at, run) in levels.runs.iter().enumerate().filter(|(_, r)| may_see(r, id, csn)) {
        if let Some(version) = run.reader.find(id, csn)? {
            return Ok(Some((version.csn, found_at(RunRef::Of(levels, at), version.position, version.tombstone))));
        }
    }
    Ok(None)
}

fn found_at(run: RunRef, position: Position, tombstone: bool) -> Found {
    if tombstone { Found::Deleted } else { Found::Stored(run, position) }
}

fn may_see(run: &TableRun, id: RowId, csn: Csn) -> bool {
    let meta = run.reader.meta();
    meta.row_id_min <= id && id <= meta.row_id_max && meta.csn_min <= csn
}

/// The version among a transaction's own segments that a view sees.
pub(crate) fn see_in_own(runs: &[Arc<TableRun>], id: RowId, csn: Csn) -> Result<Option<Found>> {
    let place = place_in_runs(runs, id, csn)?;
    Ok(place.map(|(at, position, tombstone)| found_at(RunRef::Own(Arc::clone(&runs[at])), position, tombstone)))
}

/// The same as a place in one of the segments, which is told by its number, and whether it is a tombstone.
pub(crate) fn place_in_runs(runs: &[Arc<TableRun>], id: RowId, csn: Csn) -> Result<Option<(usize, Position, bool)>> {
    for (at, run) in runs.iter().enumerate().filter(|(_, r)| may_see(r, id, csn)) {
        if let Some((position, tombstone)) = run.reader.see(id, csn)? {
            return Ok(Some((at, position, tombstone)));
        }
    }
    Ok(None)
}

/// Appends the projected values of rows of a segment.
pub(crate) fn push_stored(
    run: &TableRun,
    positions: &[Position],
    projection: &[usize],
    missing: &[Datum],
    columns: &mut [Column],
) -> Result<()> {
    run.reader.read_rows(positions, projection, columns)?;
    let stored = run.reader.kinds().len();
    for (&c, column) in projection.iter().zip(columns).filter(|(c, _)| **c >= stored) {
        positions.iter().for_each(|_| column.push(missing.get(c).cloned().unwrap_or(Datum::Null)));
    }
    Ok(())
}

impl Found {
    /// The row in row format.
    pub fn into_row(self, layout: &RowLayout) -> Result<Option<RowBytes>> {
        match self {
            Found::Memory(row) => Ok(row),
            Found::Deleted => Ok(None),
            Found::Stored(run, position) => {
                let kinds = run.reader.kinds();
                let projection: Vec<usize> = (0..kinds.len()).collect();
                let mut columns: Vec<Column> = kinds.iter().map(|k| Column::with_capacity(*k, 1)).collect();
                run.reader.read_row(position, &projection, &mut columns)?;
                let values: Vec<Datum> = columns.iter().map(|c| c.get(0)).collect();
                Ok(Some(layout.encode_row(&values).into()))
            }
        }
    }

    /// Appends the projected values; false when the row is deleted.
    pub fn push_to(self, layout: &RowLayout, projection: &[usize], missing: &[Datum], columns: &mut [Column]) -> Result<bool> {
        match self {
            Found::Memory(None) | Found::Deleted => return Ok(false),
            Found::Memory(Some(row)) => crate::txn::push_row(layout, &row, projection, missing, columns)?,
            Found::Stored(run, position) => push_stored(&run, &[position], projection, missing, columns)?,
        }
        Ok(true)
    }
}
