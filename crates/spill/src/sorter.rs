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
    /// The entries are in order.
    is_sorted: bool,
    runs: Vec<Run>,
    file: Option<Arc<TempFile>>,
    /// The most memory that was held.
    peak: usize,
}

/// Rows in order.
pub struct Sorted {
    source: Source,
    left: usize,
    _held: Vec<Held>,
    _files: Vec<Arc<TempFile>>,
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
            is_sorted: false,
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
        self.is_sorted = false;
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

    /// Sorts what is in memory; nothing to do when that is done.
    pub fn sort(&mut self) {
        if self.is_sorted {
            return;
        }
        self.is_sorted = true;
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

    pub fn finish(self) -> Result<Sorted> {
        let (resources, bound) = (Arc::clone(&self.resources), self.bound);
        Sorter::merge(&resources, vec![self], bound)
    }

    /// The rows of all sorters, whose keys are of the same columns. What is still in memory stays there.
    pub fn merge(resources: &Arc<Resources>, mut sorters: Vec<Sorter>, bound: Option<usize>) -> Result<Sorted> {
        let left = bound.unwrap_or(usize::MAX);
        sorters.retain(|sorter| !sorter.runs.is_empty() || !sorter.entries.is_empty());
        sorters.iter_mut().for_each(Sorter::sort);
        if let [_] | [] = sorters[..]
            && sorters.iter().all(|sorter| sorter.runs.is_empty())
        {
            let only = sorters.pop().unwrap_or_else(|| Sorter::new(resources, bound, false));
            let source = Source::Memory { chunks: only.chunks, entries: only.entries, at: 0 };
            let bytes = only.peak as u64;
            return Ok(Sorted { source, left, _held: vec![only.held], _files: vec![], bytes, on_disk: false });
        }
        let mut merge = Merge::new(shared_by_all(&sorters));
        let (mut held, mut files, mut peak) = (Vec::new(), Vec::new(), 0);
        for mut sorter in sorters {
            while sorter.runs.len() > FAN_IN {
                sorter.merge_some()?;
            }
            peak += sorter.peak as u64;
            sorter.runs.iter().try_for_each(|run| merge.add_run(run))?;
            merge.add_memory(sorter.chunks, sorter.entries, bound);
            held.push(sorter.held);
            files.extend(sorter.file);
        }
        merge.begin();
        let on_disk = !files.is_empty();
        let bytes = if on_disk { files.iter().map(|file| file.bytes()).sum() } else { peak };
        Ok(Sorted { source: Source::Merge(merge), left, _held: held, _files: files, bytes, on_disk })
    }

    /// One merge pass: the runs become fewer, in a new file.
    fn merge_some(&mut self) -> Result<()> {
        let file = self.resources.file()?;
        let mut merged = Vec::new();
        let mut buffers = Buffers::default();
        for some in self.runs.chunks(FAN_IN) {
            let mut merge = Merge::new(self.shared_bytes());
            some.iter().try_for_each(|run| merge.add_run(run))?;
            merge.begin();
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

/// How many bytes all keys begin with.
fn shared_by_all(sorters: &[Sorter]) -> usize {
    let shared = |sorter: &Sorter| sorter.shared.clone().unwrap_or_default();
    let least = sorters.iter().map(shared).reduce(|a, b| {
        let length = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        a[..length].to_vec()
    });
    least.map_or(0, |least| least.len())
}

/// Several runs, and rows in memory, read as one. The last column of their batches is the key.
struct Merge {
    cursors: Vec<Cursor>,
    /// Where the keys of all begin to differ.
    from: usize,
    /// Cursors with rows left.
    heap: MergeHeap,
    /// First those in memory, then those that cursors of runs, and the answer in the making, point into.
    batches: Vec<Batch>,
    /// How many are in memory.
    kept: usize,
    /// Of runs.
    first: Vec<Batch>,
}

struct Cursor {
    input: Input,
    batch: usize,
    row: usize,
}

enum Input {
    Run(RunReader),
    /// Rows in memory, the first of whose chunks is a batch; `at`: the one that the cursor is at.
    Memory {
        entries: Vec<Entry>,
        base: usize,
        at: usize,
    },
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
    /// Of nothing yet; `from`: where the keys of all begin to differ.
    fn new(from: usize) -> Merge {
        Merge { cursors: Vec::new(), from, heap: MergeHeap::default(), batches: Vec::new(), kept: 0, first: Vec::new() }
    }

    fn add_run(&mut self, run: &Run) -> Result<()> {
        let mut reader = run.reader();
        if let Some(batch) = reader.next_batch()? {
            self.cursors.push(Cursor { input: Input::Run(reader), batch: self.first.len(), row: 0 });
            self.first.push(batch);
        }
        Ok(())
    }

    /// Adds rows in order, of which no more than `bound` are wanted.
    fn add_memory(&mut self, chunks: Vec<Chunk>, mut entries: Vec<Entry>, bound: Option<usize>) {
        entries.truncate(bound.unwrap_or(usize::MAX));
        let Some(first) = entries.first() else { return };
        let base = self.batches.len();
        let (batch, row) = (base + first.chunk as usize, first.row as usize);
        self.batches.extend(chunks.into_iter().map(|Chunk { mut rows, keys }| {
            rows.columns.push(Column::new(ColumnData::Bytes(keys)));
            rows
        }));
        self.cursors.push(Cursor { input: Input::Memory { entries, base, at: 0 }, batch, row });
    }

    /// After all inputs were added.
    fn begin(&mut self) {
        self.kept = self.batches.len();
        self.batches.append(&mut self.first);
        let runs = self.cursors.iter_mut().filter(|cursor| matches!(cursor.input, Input::Run(_)));
        runs.for_each(|cursor| cursor.batch += self.kept);
        let key = |cursor| key(&self.cursors, &self.batches, cursor);
        self.heap = MergeHeap::new((0..self.cursors.len() as u32).map(|i| (i, head(key(i), self.from))), key);
    }

    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        let mut picks: Vec<(u32, u32)> = Vec::new();
        while picks.len() < limit
            && let Some(top) = self.heap.least()
        {
            let cursor = &mut self.cursors[top as usize];
            picks.push((cursor.batch as u32, cursor.row as u32));
            let ended = !cursor.advance(&mut self.batches)?;
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

    /// Forgets batches of runs that have been read.
    fn drop_read(&mut self) {
        if self.batches.len() <= self.kept + self.cursors.len() {
            return;
        }
        let mut read = self.batches.split_off(self.kept);
        for cursor in self.heap.inputs() {
            let cursor = &mut self.cursors[cursor as usize];
            if matches!(cursor.input, Input::Run(_)) {
                self.batches.push(std::mem::take(&mut read[cursor.batch - self.kept]));
                cursor.batch = self.batches.len() - 1;
            }
        }
    }
}

impl Cursor {
    /// Goes to the next row; false at the end.
    fn advance(&mut self, batches: &mut Vec<Batch>) -> Result<bool> {
        match &mut self.input {
            Input::Memory { entries, base, at } => {
                *at += 1;
                let Some(entry) = entries.get(*at) else { return Ok(false) };
                (self.batch, self.row) = (*base + entry.chunk as usize, entry.row as usize);
            }
            Input::Run(reader) => {
                self.row += 1;
                if self.row >= batches[self.batch].rows {
                    let Some(batch) = reader.next_batch()? else { return Ok(false) };
                    (self.batch, self.row) = (batches.len(), 0);
                    batches.push(batch);
                }
            }
        }
        Ok(true)
    }
}
