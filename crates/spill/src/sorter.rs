//! Sorting by encoded keys, in memory (`order`) or by merging sorted runs (`merge`).

use std::sync::Arc;

use melba_engine::{Held, TempFile};
use melba_types::{Batch, ByteStrings, ColumnData, Result};

use super::merge::{Merge, Ordered, without_keys};
use super::order::{Alone, ENTRY_BYTES, Keys, Threads};
use super::run::{Buffers, RunWriter};
use super::{Resources, Run, block_bytes};
use melba_types::BATCH_ROWS;

/// Runs merged at a time; with more, some are merged beforehand.
const FAN_IN: usize = 32;
/// Bytes that keys are known to share, at most.
const SHARED_MAX: usize = 256;

/// Collects rows to sort.
pub struct Sorter {
    resources: Arc<Resources>,
    held: Held,
    target: usize,
    /// Keys begin with a group number of 4 bytes: groups are sorted one by one, each as if it were alone.
    grouped: bool,
    /// Only this many rows will be read.
    bound: Option<usize>,
    /// The bytes that all keys begin with; `None` before the first key. Groups are read from the keys' beginning, so with
    /// groups none are left out.
    shared: Option<Vec<u8>>,
    /// Rows, and a list of their keys for each of these batches.
    batches: Vec<Batch>,
    keys: Vec<ByteStrings>,
    rows: usize,
    bytes: usize,
    runs: Vec<Run>,
    file: Option<Arc<TempFile>>,
    /// The most memory that was held.
    peak: usize,
}

/// Rows in order.
pub struct Sorted {
    source: MergeInput,
    left: usize,
    _held: Vec<Held>,
    _files: Vec<Arc<TempFile>>,
    /// Bytes of memory, or of files.
    pub bytes: u64,
    pub on_disk: bool,
}

enum MergeInput {
    Memory(Ordered),
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
            batches: Vec::new(),
            keys: Vec::new(),
            rows: 0,
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
        self.rows += batch.rows;
        match (self.batches.last_mut(), self.keys.last_mut()) {
            (Some(last), Some(last_keys)) if last.rows + batch.rows <= BATCH_ROWS => {
                last.append(batch);
                last_keys.append(&keys);
            }
            _ => {
                self.batches.push(batch);
                self.keys.push(keys);
            }
        }
        let total = self.bytes + self.rows * ENTRY_BYTES;
        self.peak = self.peak.max(total);
        if !self.resources.holds(&mut self.held, total, self.target) {
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

    /// Takes the rows in memory, in order.
    fn order(&mut self, threads: &impl Threads) -> Result<Ordered> {
        let (batches, lists) = (std::mem::take(&mut self.batches), std::mem::take(&mut self.keys));
        let shared = self.shared.as_ref().map_or(0, Vec::len);
        let keys = Keys { lists: &lists, rows: std::mem::take(&mut self.rows), shared };
        let parts = if self.grouped {
            vec![keys.order_groups()]
        } else {
            let mut room = self.resources.held();
            keys.order(self.bound.unwrap_or(usize::MAX), threads, |bytes| room.try_set(bytes))?
        };
        self.bytes = 0;
        Ok(Ordered::new(batches, lists, parts))
    }

    fn spill(&mut self) -> Result<()> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(self.file.insert(self.resources.file()?)),
        };
        let mut writer = RunWriter::new(&file, block_bytes(self.target));
        let mut buffers = Buffers::default();
        let rows_a_piece = piece_rows(self.bytes, self.rows, self.target);
        let mut rows = self.order(&Alone)?;
        let mut left = self.bound.unwrap_or(usize::MAX);
        while let Some(batch) = rows.next(rows_a_piece.min(left), true)? {
            left -= batch.rows;
            writer.push(batch, &mut buffers)?;
            if left == 0 {
                break;
            }
        }
        self.runs.push(writer.finish(&mut buffers)?);
        drop(rows);
        self.held.set(0)?;
        Ok(())
    }

    pub fn finish(self) -> Result<Sorted> {
        let (resources, bound) = (Arc::clone(&self.resources), self.bound);
        Sorter::merge(&resources, vec![self], bound, &Alone)
    }

    /// The rows of all sorters, whose keys are of the same columns. Rows that are still in memory stay there.
    pub fn merge(
        resources: &Arc<Resources>,
        mut sorters: Vec<Sorter>,
        bound: Option<usize>,
        threads: &impl Threads,
    ) -> Result<Sorted> {
        let left = bound.unwrap_or(usize::MAX);
        let bytes: u64 = sorters.iter().map(|sorter| sorter.peak as u64).sum();
        // Sorters that have written runs stay separate: each keeps its memory, and its sorted rows are read beside the runs.
        let mut held = Vec::new();
        let spilled = sorters.iter().any(|sorter| !sorter.runs.is_empty());
        let mut all = Sorter::new(resources, bound, sorters.iter().any(|sorter| sorter.grouped));
        for sorter in &mut sorters {
            all.take(sorter);
            held.push(std::mem::replace(&mut sorter.held, resources.held()));
        }
        if !spilled {
            let source = MergeInput::Memory(all.order(threads)?);
            return Ok(Sorted { source, left, _held: held, _files: vec![], bytes, on_disk: false });
        }
        let mut merge = Merge::new(all.shared.as_ref().map_or(0, Vec::len));
        for sorter in &mut sorters {
            while sorter.runs.len() > FAN_IN {
                sorter.merge_some()?;
            }
            sorter.runs.iter().try_for_each(|run| merge.add_run(run))?;
        }
        merge.add_memory(all.order(threads)?)?;
        merge.begin();
        let files: Vec<Arc<TempFile>> = sorters.into_iter().filter_map(|sorter| sorter.file).collect();
        let bytes = files.iter().map(|file| file.bytes()).sum();
        Ok(Sorted { source: MergeInput::Merge(merge), left, _held: held, _files: files, bytes, on_disk: true })
    }

    /// Takes the rows that another has in memory, and its knowledge of all its keys.
    fn take(&mut self, other: &mut Sorter) {
        self.batches.append(&mut other.batches);
        self.keys.append(&mut other.keys);
        self.rows += std::mem::take(&mut other.rows);
        match (&mut self.shared, &other.shared) {
            (Some(own), Some(others)) => own.truncate(own.iter().zip(others).take_while(|(a, b)| a == b).count()),
            (own, others) => *own = own.take().or_else(|| others.clone()),
        }
    }

    /// One merge pass: the runs become fewer, in a new file.
    fn merge_some(&mut self) -> Result<()> {
        let file = self.resources.file()?;
        let mut merged = Vec::new();
        let mut buffers = Buffers::default();
        for some in self.runs.chunks(FAN_IN) {
            let mut merge = Merge::new(self.shared.as_ref().map_or(0, Vec::len));
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

impl Sorted {
    /// The next rows.
    pub fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        let limit = limit.min(self.left);
        if limit == 0 {
            return Ok(None);
        }
        let batch = match &mut self.source {
            MergeInput::Memory(rows) => rows.next(limit, false)?,
            MergeInput::Merge(merge) => merge.next(limit)?.map(|mut batch| {
                batch.columns.pop();
                batch
            }),
        };
        self.left -= batch.as_ref().map_or(0, |b| b.rows);
        Ok(batch)
    }

    /// Skips at most `rows` of the next rows without making them; returns how many.
    pub fn skip(&mut self, rows: usize) -> Result<usize> {
        let rows = rows.min(self.left);
        let skipped = match &mut self.source {
            MergeInput::Memory(ordered) => ordered.skip(rows),
            MergeInput::Merge(merge) => merge.skip(rows)?,
        };
        self.left -= skipped;
        Ok(skipped)
    }

    /// The next rows with their keys.
    pub fn next_with_keys(&mut self, limit: usize) -> Result<Option<(Batch, ByteStrings)>> {
        let batch = match &mut self.source {
            MergeInput::Memory(rows) => rows.next(limit, true)?,
            MergeInput::Merge(merge) => merge.next(limit)?,
        };
        let Some(mut batch) = batch else { return Ok(None) };
        match batch.columns.pop().map(|c| c.data) {
            Some(ColumnData::Bytes(keys)) => Ok(Some((batch, keys))),
            _ => Err(without_keys()),
        }
    }
}
