//! Building an index tree from entries in any order: they are sorted a piece at a time; pieces beyond the first become sorted runs
//! in files, which are merged into segments in the end.
//!
//! Where threads are allowed, a full piece is sorted and written by a second one while the next is collected, and the final
//! segments are made from ranges of keys, one a thread.
//!
//! Invariants:
//! 1. Nothing is visible before `finish` has handed all segments to the transaction; a builder that is dropped leaves no files.
//! 2. Two equal keys of a unique index are found, also where they meet between two pieces or two threads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use melba_types::{Csn, RowId, TreeId};
use parking_lot::Mutex;

use crate::entry_merge::EntryMerge;
use crate::entry_sort::{Piece, PiecePart};
use crate::error::{EngineError, Result};
use crate::interrupt::Interrupt;
use crate::key::split_entry;
use crate::levels::{Files, IndexRun};
use crate::memory::Held;
use crate::output::IndexOutput;
use crate::serializable::Write;
use crate::tree::Tree;
use crate::txn::{PrivateRun, Transaction};
use crate::wait::about_to_wait;

/// Threads that make the final segments, at most.
const THREADS_MAX: usize = 4;
/// With fewer entries one thread makes them all.
const SHARED_ENTRIES_MIN: usize = 1 << 15;
/// Entries between two looks at the interrupt.
const ENTRIES_PER_LOOK: usize = 1 << 12;
/// Keys looked at in each run, or in the piece, to divide the work.
const SAMPLES: usize = 32;

/// Collects index entries in any order; sorts them, in files when they are many, and makes segments of them.
pub struct IndexBuilder {
    txn: Arc<Transaction>,
    tree: Arc<Tree>,
    unique: bool,
    piece: Piece,
    piece_bytes: usize,
    threads: usize,
    runs: Vec<Arc<IndexRun>>,
    /// A piece that a second thread sorts and writes, and what becomes of it.
    sorting: Option<Sorting>,
    _held: Held,
}

/// The piece is there again, empty, when the thread has ended.
struct Sorting {
    piece: Arc<Mutex<Piece>>,
    thread: JoinHandle<Result<Option<Arc<IndexRun>>>>,
}

/// Two rows with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    pub key: Vec<u8>,
    pub rows: (RowId, RowId),
}

impl Transaction {
    /// A builder of a whole index tree (CREATE INDEX), or of the entries of a bulk load. `unique`: `finish` looks for equal
    /// keys.
    pub fn build_index(self: &Arc<Self>, tree: TreeId, unique: bool) -> Result<IndexBuilder> {
        let tree = self.tree(tree)?;
        tree.as_index().ok_or(EngineError::Misuse("not an index tree"))?;
        let mut piece_bytes = self.shared().options.index_build_bytes();
        let mut held = Held::new(&self.session().query_memory());
        let mut threads = self.threads().min(THREADS_MAX);
        if threads > 1 && !held.try_set(2 * piece_bytes) {
            threads = 1;
        }
        while threads == 1 && piece_bytes > 1 << 20 && !held.try_set(piece_bytes) {
            piece_bytes /= 2;
        }
        Ok(IndexBuilder {
            txn: Arc::clone(self),
            tree,
            unique,
            piece: Piece::default(),
            piece_bytes,
            threads,
            runs: Vec::new(),
            sorting: None,
            _held: held,
        })
    }
}

impl IndexBuilder {
    /// Adds an entry. `may_repeat`: others may have the same key although the index is unique, because there is a null in it.
    pub fn add(&mut self, key: &[u8], row: RowId, may_repeat: bool) -> Result<()> {
        self.piece.push(key, row, may_repeat);
        if self.piece.memory_bytes() >= self.piece_bytes { self.spill() } else { Ok(()) }
    }

    fn files(&self) -> &Arc<Files> {
        &self.txn.shared().files
    }

    /// Makes a run of the piece: by a second thread, unless that is busy.
    fn spill(&mut self) -> Result<()> {
        let free = self.sorting.as_ref().is_none_or(|sorting| sorting.thread.is_finished());
        if self.threads > 1 && free {
            let spare = self.join()?;
            let piece = Arc::new(Mutex::new(std::mem::replace(&mut self.piece, spare)));
            let (files, sorted) = (Arc::clone(self.files()), Arc::clone(&piece));
            let thread = std::thread::Builder::new().name("index sort".into());
            match thread.spawn(move || sorted.lock().write_run(&files)) {
                Ok(thread) => {
                    self.sorting = Some(Sorting { piece, thread });
                    return Ok(());
                }
                Err(_) => std::mem::swap(&mut self.piece, &mut piece.lock()),
            }
        }
        let files = Arc::clone(self.files());
        self.runs.extend(self.piece.write_run(&files)?);
        Ok(())
    }

    /// Waits for the second thread; the piece that it has emptied.
    fn join(&mut self) -> Result<Piece> {
        let Some(sorting) = self.sorting.take() else { return Ok(Piece::default()) };
        while !sorting.thread.is_finished() && about_to_wait() {}
        match sorting.thread.join() {
            Ok(run) => self.runs.extend(run?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        let piece = std::mem::take(&mut *sorting.piece.lock());
        Ok(piece)
    }

    /// Sorts everything and hands it to the transaction. Of a unique index, the first pair of entries with one key is returned,
    /// and nothing is added.
    pub fn finish(mut self) -> Result<Option<Duplicate>> {
        if !self.runs.is_empty() || self.sorting.is_some() {
            if !self.piece.is_empty() {
                self.spill()?;
            }
            self.join()?;
        }
        let few = self.runs.is_empty() && self.piece.len() < SHARED_ENTRIES_MIN;
        let bounds = if few { Vec::new() } else { self.bounds() };
        let mut piece = std::mem::take(&mut self.piece);
        let pieces = if self.runs.is_empty() { piece.split(&bounds) } else { Vec::new() };
        let build = Build {
            files: self.files(),
            synced: self.tree.is_synced(),
            unique: self.unique,
            interrupt: &self.txn.session().interrupt(),
            runs: &self.runs,
            bounds: &bounds,
        };
        let parts = build.parts(pieces)?;
        if let Some(duplicate) = Part::duplicate(&parts, self.unique) {
            return Ok(Some(duplicate));
        }
        self.txn.note_write(|| Write::All(self.tree.id))?;
        self.txn.change(|state| {
            for run in parts.into_iter().flat_map(|mut part| std::mem::take(&mut part.runs)) {
                state.writes.put_link(state.command, &self.tree, PrivateRun::Index(run));
            }
            Ok(None)
        })
    }

    /// Keys that divide all entries into about equal parts, one a thread.
    fn bounds(&self) -> Vec<Vec<u8>> {
        let mut samples: Vec<Vec<u8>> = self.piece.sample(SAMPLES * 4);
        samples.extend(self.runs.iter().flat_map(|run| run.reader.sample(SAMPLES)).map(<[u8]>::to_vec));
        samples.sort_unstable();
        let mut bounds: Vec<Vec<u8>> =
            (1..self.threads).filter_map(|i| samples.get(samples.len() * i / self.threads).cloned()).collect();
        bounds.dedup();
        bounds
    }
}

impl Drop for IndexBuilder {
    fn drop(&mut self) {
        // What the second thread writes goes with the builder.
        if let Some(sorting) = self.sorting.take() {
            let _ = sorting.thread.join();
        }
    }
}

/// The making of the final segments.
struct Build<'a> {
    files: &'a Arc<Files>,
    synced: bool,
    unique: bool,
    interrupt: &'a Interrupt,
    runs: &'a [Arc<IndexRun>],
    bounds: &'a [Vec<u8>],
}

/// The entries between two bounds.
#[derive(Default)]
struct Part {
    /// Files that go with the part, unless they are taken.
    runs: Vec<Arc<IndexRun>>,
    duplicate: Option<Duplicate>,
    /// The first entry, unless its key may repeat, and the last one.
    first: Vec<u8>,
    last: Vec<u8>,
}

impl Build<'_> {
    /// All parts in order, made side by side. `pieces`: unless the entries are in runs, those of each part.
    fn parts(&self, pieces: Vec<PiecePart<'_>>) -> Result<Vec<Part>> {
        let mut pieces = pieces.into_iter();
        let mut work: Vec<_> = (0..=self.bounds.len()).map(|i| (i, pieces.next())).collect();
        let Some((_, last_piece)) = work.pop() else { return Ok(Vec::new()) };
        std::thread::scope(|scope| {
            let others: Vec<_> = work.into_iter().map(|(i, piece)| scope.spawn(move || self.part(i, piece))).collect();
            let last = self.part(self.bounds.len(), last_piece);
            let join = |other: std::thread::ScopedJoinHandle<'_, Result<Part>>| {
                while !other.is_finished() && about_to_wait() {}
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            let parts: Vec<Result<Part>> = others.into_iter().map(join).chain([last]).collect();
            parts.into_iter().collect()
        })
    }

    fn part(&self, i: usize, piece: Option<PiecePart<'_>>) -> Result<Part> {
        let mut part = Part::default();
        let mut output = IndexOutput::new(self.files, self.synced, self.files.segment_bytes);
        match piece {
            Some(mut piece) => {
                piece.sort();
                for (entry, may_repeat) in piece.iter() {
                    if !self.push(&mut part, &mut output, entry, may_repeat)? {
                        return Ok(part);
                    }
                }
            }
            None => {
                let lower = if i == 0 { &[][..] } else { &self.bounds[i - 1] };
                let upper = self.bounds.get(i);
                let mut merge = EntryMerge::from(self.runs.iter(), lower)?;
                while let Some(cursor) = merge.least().filter(|cursor| upper.is_none_or(|upper| cursor.key() < &upper[..])) {
                    if !self.push(&mut part, &mut output, cursor.key(), cursor.tombstone())? {
                        return Ok(part);
                    }
                    merge.advance()?;
                }
            }
        }
        part.last.extend_from_slice(output.last_key());
        part.runs = output.finish()?;
        Ok(part)
    }

    /// Adds the next entry; false when it is a duplicate.
    fn push(&self, part: &mut Part, output: &mut IndexOutput, entry: &[u8], may_repeat: bool) -> Result<bool> {
        if output.entries().is_multiple_of(ENTRIES_PER_LOOK) {
            self.interrupt.check()?;
            if output.entries() == 0 && !may_repeat {
                part.first.extend_from_slice(entry);
            }
        }
        if self.unique && !may_repeat {
            part.duplicate = equal_keys(output.last_key(), entry);
            if part.duplicate.is_some() {
                return Ok(false);
            }
        }
        output.push(entry, Csn(0), false)?;
        Ok(true)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.runs.iter().for_each(|run| run.obsolete.store(true, Ordering::Release));
    }
}

impl Part {
    fn duplicate(parts: &[Part], unique: bool) -> Option<Duplicate> {
        let within = parts.iter().find_map(|part| part.duplicate.clone());
        // Between them there may be parts without entries.
        let filled: Vec<&Part> = parts.iter().filter(|part| !part.last.is_empty()).collect();
        let between = || filled.windows(2).find_map(|pair| equal_keys(&pair[0].last, &pair[1].first));
        within.or_else(|| if unique { between() } else { None })
    }
}

/// Two entries' rows, when their keys are equal.
fn equal_keys(a: &[u8], b: &[u8]) -> Option<Duplicate> {
    let ((key_a, row_a), (key_b, row_b)) = split_entry(a).zip(split_entry(b))?;
    (key_a == key_b).then(|| Duplicate { key: key_a.to_vec(), rows: (row_a, row_b) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_meet_between_parts() {
        let entry = |key: &[u8], row: u64| [key, &row.to_be_bytes()].concat();
        let part = |first: Vec<u8>, last: Vec<u8>| Part { runs: Vec::new(), duplicate: None, first, last };
        let parts = |key: &[u8]| {
            let (before, after) = (part(entry(b"a", 1), entry(b"b", 2)), part(entry(key, 3), entry(b"d", 4)));
            [before, Part::default(), after]
        };
        let duplicate = Duplicate { key: b"b".to_vec(), rows: (RowId(2), RowId(3)) };
        assert_eq!(Part::duplicate(&parts(b"b"), true), Some(duplicate));
        assert_eq!(Part::duplicate(&parts(b"b"), false), None);
        assert_eq!(Part::duplicate(&parts(b"c"), true), None);
        // The first entry's key may repeat.
        let repeats = part(Vec::new(), entry(b"d", 4));
        assert_eq!(Part::duplicate(&[part(entry(b"a", 1), entry(b"b", 2)), repeats], true), None);
    }
}
