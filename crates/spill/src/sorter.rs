//! Sorting by encoded keys, in memory or by merging sorted runs.

use std::cmp::Ordering;
use std::sync::Arc;

use melba_engine::{Held, TempFile};
use melba_types::merge_heap::MergeHeap;
use melba_types::{Batch, ByteStrings, Column, ColumnData, DbError, Result};

use super::quicksort::quicksort;
use super::run::{Buffers, RunWriter};
use super::{Resources, Run, RunReader, block_bytes};
use melba_types::BATCH_ROWS;

/// Runs merged at a time; with more, some are merged beforehand.
const FAN_IN: usize = 32;
/// Bytes that keys are known to share, at most.
const SHARED_MAX: usize = 256;

/// Rows and their keys.
#[derive(Default)]
struct Chunk {
    rows: Batch,
    keys: ByteStrings,
}

/// A row: where it is, and, from the sort on, eight bytes of its key behind those that all keys share.
#[derive(Clone, Copy)]
struct Entry {
    head: u64,
    chunk: u32,
    row: u32,
}

/// Collects rows to sort.
pub struct Sorter {
    resources: Arc<Resources>,
    held: Held,
    target: usize,
    /// Keys begin with a group number of 4 bytes: groups are sorted one by one, each as if it were alone.
    grouped: bool,
    /// Only so many rows will be read.
    bound: Option<usize>,
    /// The bytes that all keys begin with; `None` before the first key. Groups are read from the keys' beginning, so with
    /// groups none are left out.
    shared: Option<Vec<u8>>,
    chunks: Vec<Chunk>,
    entries: Vec<Entry>,
    bytes: usize,
    runs: Vec<Run>,
    file: Option<Arc<TempFile>>,
    /// The most memory that was held.
    peak: usize,
}

/// Rows in order.
pub struct Sorted {
    source: Source,
    left: usize,
    _held: Held,
    _file: Option<Arc<TempFile>>,
    /// Bytes of memory, or of files.
    pub bytes: u64,
    pub on_disk: bool,
}

enum Source {
    Memory { chunks: Vec<Chunk>, entries: Vec<Entry>, at: usize },
    Merge(Merge),
}

impl Sorter {
    pub fn new(resources: &Arc<Resources>, bound: Option<usize>, grouped: bool) -> Sorter {
        Sorter {
            held: resources.held(),
            target: resources.work_bytes,
            resources: Arc::clone(resources),
            grouped,
            bound,
            shared: grouped.then(Vec::new),
            chunks: Vec::new(),
            entries: Vec::new(),
            bytes: 0,
            runs: Vec::new(),
            file: None,
            peak: 0,
        }
    }

    /// Adds rows with a key for each.
    pub fn push(&mut self, batch: Batch, keys: ByteStrings) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        self.compare_beginnings(&keys, batch.rows);
        self.bytes += batch.memory_bytes() + keys.bytes.capacity() + keys.ends.capacity() * 4;
        let fits = self.chunks.last().is_some_and(|c| c.rows.rows + batch.rows <= BATCH_ROWS);
        if !fits {
            self.chunks.push(Chunk::default());
        }
        let chunk = self.chunks.len() as u32 - 1;
        let Chunk { rows, keys: all } = &mut self.chunks[chunk as usize];
        let entry = |i: usize| Entry { head: 0, chunk, row: (rows.rows + i) as u32 };
        self.entries.extend((0..batch.rows).map(entry));
        if all.is_empty() {
            *all = keys;
        } else {
            all.append(&keys);
        }
        rows.append(batch);
        let total = self.bytes + self.entries.capacity() * size_of::<Entry>();
        self.peak = self.peak.max(total);
        if total > self.target || !self.held.try_set(total) {
            self.spill()?;
        }
        Ok(())
    }

    /// Shortens the bytes that all keys begin with to those that these begin with too.
    fn compare_beginnings(&mut self, keys: &ByteStrings, rows: usize) {
        let first = keys.get(0);
        let shared = self.shared.get_or_insert_with(|| first[..first.len().min(SHARED_MAX)].to_vec());
        for key in (0..rows).map(|i| keys.get(i)) {
            if !key.starts_with(shared) {
                shared.truncate(key.iter().zip(shared.iter()).take_while(|(a, b)| a == b).count());
            }
        }
    }

    /// Where the keys begin to differ.
    fn shared_bytes(&self) -> usize {
        self.shared.as_ref().map_or(0, Vec::len)
    }

    fn sort(&mut self) {
        let from = self.shared_bytes();
        let chunks = &self.chunks;
        let key = |e: &Entry| chunks[e.chunk as usize].keys.get(e.row as usize);
        self.entries.iter_mut().for_each(|e| e.head = head(key(e), from));
        let compare = |a: &Entry, b: &Entry| match a.head.cmp(&b.head) {
            Ordering::Equal => key(a).cmp(key(b)),
            different => different,
        };
        if !self.grouped {
            return quicksort(&mut self.entries, &compare);
        }
        let group = |e: &Entry| e.head >> 32;
        self.entries.sort_by_key(group);
        self.entries.chunk_by_mut(|a, b| group(a) == group(b)).for_each(|g| quicksort(g, &compare));
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(self.resources.file()?)),
        };
        let mut writer = RunWriter::new(&file, block_bytes(self.target));
        let mut buffers = Buffers::default();
        self.entries.truncate(self.bound.unwrap_or(usize::MAX));
        for some in self.entries.chunks(piece_rows(self.bytes, self.entries.len(), self.target)) {
            writer.push(gather(&self.chunks, some, true), &mut buffers)?;
        }
        self.runs.push(writer.finish(&mut buffers)?);
        self.chunks.clear();
        self.entries.clear();
        self.bytes = 0;
        self.held.set(0)?;
        Ok(())
    }

    pub fn finish(mut self) -> Result<Sorted> {
        let left = self.bound.unwrap_or(usize::MAX);
        if self.runs.is_empty() {
            self.sort();
            let source = Source::Memory { chunks: self.chunks, entries: self.entries, at: 0 };
            return Ok(Sorted { source, left, _held: self.held, _file: None, bytes: self.peak as u64, on_disk: false });
        }
        if !self.entries.is_empty() {
            self.spill()?;
        }
        while self.runs.len() > FAN_IN {
            self.merge_some()?;
        }
        let source = Source::Merge(Merge::new(&self.runs, self.shared_bytes())?);
        let bytes = self.file.as_ref().map_or(0, |f| f.bytes());
        Ok(Sorted { source, left, _held: self.held, _file: self.file, bytes, on_disk: true })
    }

    /// One merge pass: the runs become fewer, in a new file.
    fn merge_some(&mut self) -> Result<()> {
        let file = self.resources.file()?;
        let mut merged = Vec::new();
        let mut buffers = Buffers::default();
        for some in self.runs.chunks(FAN_IN) {
            let mut merge = Merge::new(some, self.shared_bytes())?;
            let mut writer = RunWriter::new(&file, block_bytes(self.target));
            while let Some(batch) = merge.next(MERGE_ROWS)? {
                writer.push(batch, &mut buffers)?;
            }
            merged.push(writer.finish(&mut buffers)?);
        }
        self.runs = merged;
        self.file = Some(file);
        Ok(())
    }
}

/// Rows merged at a time when runs are merged into longer ones.
const MERGE_ROWS: usize = 256;

/// Rows of a block of about the right size.
fn piece_rows(bytes: usize, rows: usize, target: usize) -> usize {
    (block_bytes(target) / (bytes / rows.max(1)).max(1)).clamp(1, BATCH_ROWS)
}

/// Eight bytes of a key from `from` on, big-endian; zeros where the key has ended.
fn head(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut padded = [0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(padded)
        }
    }
}

/// The rows of some entries, their keys as a last column if wanted.
fn gather(chunks: &[Chunk], entries: &[Entry], with_keys: bool) -> Batch {
    let picks: Vec<(u32, u32)> = entries.iter().map(|e| (e.chunk, e.row)).collect();
    let batches: Vec<&Batch> = chunks.iter().map(|c| &c.rows).collect();
    let mut batch = Batch::gather(&batches, &picks);
    if with_keys {
        let mut keys = ByteStrings::default();
        entries.iter().for_each(|e| keys.push(chunks[e.chunk as usize].keys.get(e.row as usize)));
        batch.columns.push(Column::new(ColumnData::Bytes(keys)));
    }
    batch
}

impl Sorted {
    /// The next rows.
    pub fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        let limit = limit.min(self.left);
        let batch = match &mut self.source {
            Source::Memory { chunks, entries, at } => {
                let to = at.saturating_add(limit).min(entries.len());
                let some = &entries[*at..to];
                *at = to;
                (!some.is_empty()).then(|| gather(chunks, some, false))
            }
            Source::Merge(merge) => merge.next(limit)?.map(|mut batch| {
                batch.columns.pop();
                batch
            }),
        };
        self.left -= batch.as_ref().map_or(0, |b| b.rows);
        Ok(batch)
    }

    /// The next rows with their keys.
    pub fn next_with_keys(&mut self, limit: usize) -> Result<Option<(Batch, ByteStrings)>> {
        let batch = match &mut self.source {
            Source::Memory { chunks, entries, at } => {
                let to = at.saturating_add(limit).min(entries.len());
                let some = &entries[*at..to];
                *at = to;
                (!some.is_empty()).then(|| gather(chunks, some, true))
            }
            Source::Merge(merge) => merge.next(limit)?,
        };
        let Some(mut batch) = batch else { return Ok(None) };
        match batch.columns.pop().map(|c| c.data) {
            Some(ColumnData::Bytes(keys)) => Ok(Some((batch, keys))),
            _ => Err(DbError::internal("sorted rows without their keys")),
        }
    }
}

/// Several runs read as one. The last column of their batches is the key.
struct Merge {
    cursors: Vec<Cursor>,
    /// Where the keys of all begin to differ.
    from: usize,
    /// Cursors with rows left.
    heap: MergeHeap,
    /// The batches that cursors and the answer in the making point into.
    batches: Vec<Batch>,
}

struct Cursor {
    reader: RunReader,
    batch: usize,
    row: usize,
}

/// The key that a cursor is at.
fn key<'a>(cursors: &[Cursor], batches: &'a [Batch], cursor: u32) -> &'a [u8] {
    let Cursor { batch, row, .. } = &cursors[cursor as usize];
    match batches[*batch].columns.last().map(|c| &c.data) {
        Some(ColumnData::Bytes(keys)) => keys.get(*row),
        _ => &[],
    }
}

impl Merge {
    fn new(runs: &[Run], from: usize) -> Result<Merge> {
        let (mut cursors, mut batches) = (Vec::new(), Vec::new());
        for run in runs {
            let mut reader = run.reader();
            if let Some(batch) = reader.next_batch()? {
                cursors.push(Cursor { reader, batch: batches.len(), row: 0 });
                batches.push(batch);
            }
        }
        let key = |cursor| key(&cursors, &batches, cursor);
        let heap = MergeHeap::new((0..cursors.len() as u32).map(|i| (i, head(key(i), from))), key);
        Ok(Merge { cursors, from, heap, batches })
    }

    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        let mut picks: Vec<(u32, u32)> = Vec::new();
        while picks.len() < limit
            && let Some(top) = self.heap.least()
        {
            let cursor = &mut self.cursors[top as usize];
            picks.push((cursor.batch as u32, cursor.row as u32));
            cursor.row += 1;
            let mut ended = false;
            if cursor.row >= self.batches[cursor.batch].rows {
                match cursor.reader.next_batch()? {
                    Some(batch) => {
                        (cursor.batch, cursor.row) = (self.batches.len(), 0);
                        self.batches.push(batch);
                    }
                    None => ended = true,
                }
            }
            let key = |cursor| key(&self.cursors, &self.batches, cursor);
            match ended {
                true => self.heap.remove(key),
                false => self.heap.advance(head(key(top), self.from), key),
            }
        }
        if picks.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&Batch> = self.batches.iter().collect();
        let batch = Batch::gather(&batches, &picks);
        self.drop_read();
        Ok(Some(batch))
    }

    /// Forgets batches that have been read.
    fn drop_read(&mut self) {
        if self.batches.len() <= self.cursors.len() {
            return;
        }
        let mut kept = Vec::with_capacity(self.cursors.len());
        for cursor in self.heap.inputs() {
            let cursor = &mut self.cursors[cursor as usize];
            kept.push(std::mem::take(&mut self.batches[cursor.batch]));
            cursor.batch = kept.len() - 1;
        }
        self.batches = kept;
    }
}
