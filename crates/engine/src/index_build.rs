//! Builds an index tree from entries in any order: they are sorted in pieces; pieces beyond the first become sorted runs in
//! files, which are merged into segments at the end.
//!
//! Where threads are allowed, a second thread sorts and writes a full piece while the next is collected, and the final segments
//! are written from ranges of keys, one per thread.
//!
//! Invariants:
//! 1. Nothing is visible before `finish` has handed all segments to the transaction; a builder that is dropped leaves no files.
//! 2. Two equal keys of a unique index are found, also where they meet between two pieces or two threads.
//! 3. The segments of a load (`index_load`) hold either entries whose keys must be unique or entries whose keys may repeat, never both.

use std::sync::Arc;

use melba_store::{EntryMerge, EntryPiece, Files, Held, IndexOutput, IndexRun, Interrupt, PiecePart, Result, Tree, split_entry};
use melba_threads::{Mutex, Running, Scheduler};
use melba_types::{Csn, RowId, TreeId};
use melba_vfs::counts;

use crate::serializable::Write;
use crate::txn::{Transaction, announce};
use crate::write_set::PrivateRun;

/// Threads that make the final segments, at most.
const THREADS_MAX: usize = 4;
/// With fewer entries one thread makes them all.
const SHARED_ENTRIES_MIN: usize = 1 << 15;
/// Entries between two checks for interrupts.
const ENTRIES_PER_LOOK: usize = 1 << 12;
/// Keys sampled from each run, or from the piece, to divide the work.
const SAMPLES: usize = 32;

/// A piece may be so large without asking the budget.
const PIECE_BYTES_MIN: usize = 1 << 20;

/// Collects index entries in any order; sorts them, in files when they are many, and makes segments of them.
pub struct IndexBuilder {
    txn: Arc<Transaction>,
    tree: Arc<Tree>,
    unique: Unique,
    piece: EntryPiece,
    /// The size that a piece may have now, and at most.
    piece_bytes: usize,
    piece_bytes_max: usize,
    threads: usize,
    runs: Vec<Arc<IndexRun>>,
    /// A piece that a second thread sorts and writes, and the result.
    sorting: Option<Sorting>,
    held: Held,
}

/// The pair of equal keys that `finish` searches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unique {
    No,
    /// Some pair: the build ends there.
    Any,
    /// The one whose second row has the least id: a load's rows come in the order of their ids.
    FirstRow,
}

/// Returns the piece, empty, when the thread has ended.
struct Sorting {
    piece: Arc<Mutex<EntryPiece>>,
    thread: Running<Result<Option<Arc<IndexRun>>>>,
}

/// Two rows with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    pub key: Vec<u8>,
    pub rows: (RowId, RowId),
}

impl IndexBuilder {
    /// A builder of a whole index tree (CREATE INDEX). `unique`: `finish` searches for equal keys.
    pub fn begin(txn: &Arc<Transaction>, tree: TreeId, unique: bool) -> Result<IndexBuilder> {
        IndexBuilder::new(txn, tree, if unique { Unique::Any } else { Unique::No })
    }

    pub(crate) fn new(txn: &Arc<Transaction>, tree: TreeId, unique: Unique) -> Result<IndexBuilder> {
        let tree = Arc::clone(&*txn.tree(tree)?);
        tree.require_index()?;
        Ok(IndexBuilder {
            txn: Arc::clone(txn),
            tree,
            unique,
            piece: EntryPiece::default(),
            piece_bytes: PIECE_BYTES_MIN,
            piece_bytes_max: txn.shared().options.index_build_bytes(),
            threads: txn.threads().min(THREADS_MAX),
            runs: Vec::new(),
            sorting: None,
            held: Held::new(&txn.session().query_memory()),
        })
    }

    /// Adds an entry. `may_repeat`: others may have the same key although the index is unique, because there is a null in it.
    #[inline]
    pub fn add(&mut self, key: &[u8], row: RowId, may_repeat: bool) -> Result<()> {
        self.piece.push(key, row, may_repeat);
        if self.piece.memory_bytes() >= self.piece_bytes { self.grow_or_spill() } else { Ok(()) }
    }

    /// Lets a piece that is full grow, or makes a run of it.
    fn grow_or_spill(&mut self) -> Result<()> {
        let more = (2 * self.piece_bytes).min(self.piece_bytes_max);
        // Another may be sorted meanwhile.
        let pieces = self.threads.min(2);
        if more > self.piece_bytes && self.held.try_set(more * pieces) {
            self.piece_bytes = more;
            return Ok(());
        }
        self.spill()
    }

    fn scheduler(&self) -> &dyn Scheduler {
        &*self.txn.shared().runtime.scheduler
    }

    fn files(&self) -> &Arc<Files> {
        &self.txn.shared().store.files
    }

    /// Makes a run of the piece: by a second thread, unless that is busy.
    fn spill(&mut self) -> Result<()> {
        let free = self.sorting.as_ref().is_none_or(|sorting| sorting.thread.is_finished());
        if self.threads > 1 && free {
            let spare = self.join()?;
            let piece = Arc::new(Mutex::new(std::mem::replace(&mut self.piece, spare)));
            let (files, sorted) = (Arc::clone(self.files()), Arc::clone(&piece));
            match self.scheduler().spawn("index sort", move || sorted.lock().write_run(&files)) {
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
    fn join(&mut self) -> Result<EntryPiece> {
        let Some(sorting) = self.sorting.take() else { return Ok(EntryPiece::default()) };
        match sorting.thread.join(self.scheduler()) {
            Ok(run) => self.runs.extend(run?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        let piece = std::mem::take(&mut *sorting.piece.lock());
        Ok(piece)
    }

    /// Sorts everything and hands it to the transaction. Of a unique index, the first pair of entries with one key is returned,
    /// and nothing is added.
    pub fn finish(mut self) -> Result<Option<Duplicate>> {
        let built = self.build()?;
        if built.duplicate.is_none() {
            self.link(built)?;
            return Ok(None);
        }
        Ok(built.duplicate.clone())
    }

    /// Sorts everything into segments.
    pub(crate) fn build(&mut self) -> Result<Built> {
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
            scheduler: self.scheduler(),
            runs: &self.runs,
            bounds: &bounds,
        };
        let parts = build.parts(pieces)?;
        self.runs.clear();
        Ok(Built::new(parts, self.unique))
    }

    /// Hands the segments to the transaction.
    pub(crate) fn link(&self, mut built: Built) -> Result<()> {
        announce::write(&self.txn, || Write::All(self.tree.id))?;
        self.txn.change(|state| {
            for run in std::mem::take(&mut built.runs).into_iter().chain(std::mem::take(&mut built.repeating)) {
                state.writes.put_link(state.command, &self.tree, PrivateRun::Index(run));
            }
            Ok(())
        })
    }

    pub(crate) fn is_unique(&self) -> bool {
        self.unique != Unique::No
    }

    pub(crate) fn txn(&self) -> &Arc<Transaction> {
        &self.txn
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.tree
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
        // Files that the second thread writes are deleted with the builder.
        if let Some(sorting) = self.sorting.take() {
            let _ = sorting.thread.join(self.scheduler());
        }
    }
}

/// The making of the final segments.
struct Build<'a> {
    files: &'a Arc<Files>,
    synced: bool,
    unique: Unique,
    interrupt: &'a Interrupt,
    scheduler: &'a dyn Scheduler,
    runs: &'a [Arc<IndexRun>],
    bounds: &'a [Vec<u8>],
}

/// All entries in segments, which are deleted unless they are taken.
pub(crate) struct Built {
    /// In the order of their entries.
    pub runs: Vec<Arc<IndexRun>>,
    /// Of a load: entries whose keys may repeat.
    pub repeating: Vec<Arc<IndexRun>>,
    pub duplicate: Option<Duplicate>,
}

/// The entries between two bounds.
#[derive(Default)]
struct EntriesPart {
    /// Files that are deleted with the part, unless they are taken.
    runs: Vec<Arc<IndexRun>>,
    repeating: Vec<Arc<IndexRun>>,
    duplicate: Option<Duplicate>,
    /// The first entry, unless its key may repeat, and the last one.
    first: Vec<u8>,
    last: Vec<u8>,
}

/// Segments in the making.
struct Outputs {
    entries: IndexOutput,
    repeating: IndexOutput,
    /// Entries until the next check for interrupts.
    until_look: usize,
}

impl Build<'_> {
    /// All parts in order, made side by side. `pieces`: unless the entries are in runs, those of each part.
    fn parts(&self, pieces: Vec<PiecePart<'_>>) -> Result<Vec<EntriesPart>> {
        let mut pieces = pieces.into_iter();
        let mut work: Vec<_> = (0..=self.bounds.len()).map(|i| (i, pieces.next())).collect();
        let Some((_, last_piece)) = work.pop() else { return Ok(Vec::new()) };
        melba_threads::scope(self.scheduler, |scope| {
            let part = |(i, piece)| scope.spawn(move || counts::apart(|| self.part(i, piece)));
            let others: Vec<_> = work.into_iter().map(part).collect();
            let last = self.part(self.bounds.len(), last_piece);
            let joined = others.into_iter().map(|other| {
                let (part, counted) = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                counts::take_over(&counted);
                part
            });
            let parts: Vec<Result<EntriesPart>> = joined.chain([last]).collect();
            parts.into_iter().collect()
        })
    }

    fn part(&self, i: usize, piece: Option<PiecePart<'_>>) -> Result<EntriesPart> {
        let mut part = EntriesPart::default();
        let output = || IndexOutput::new(self.files, self.synced, self.files.segment_bytes);
        let mut outputs = Outputs { entries: output(), repeating: output(), until_look: 0 };
        match piece {
            Some(mut piece) => {
                piece.sort();
                for (entry, may_repeat) in piece.iter() {
                    if !self.push(&mut part, &mut outputs, entry, may_repeat)? {
                        return Ok(part);
                    }
                }
            }
            None => {
                let lower = if i == 0 { &[][..] } else { &self.bounds[i - 1] };
                let upper = self.bounds.get(i);
                let mut merge = EntryMerge::from(self.runs.iter(), lower)?;
                while let Some(cursor) = merge.least().filter(|cursor| upper.is_none_or(|upper| cursor.key() < &upper[..])) {
                    if !self.push(&mut part, &mut outputs, cursor.key(), cursor.tombstone())? {
                        return Ok(part);
                    }
                    merge.advance()?;
                }
            }
        }
        part.last.extend_from_slice(outputs.entries.last_key());
        part.runs = outputs.entries.finish()?;
        part.repeating = outputs.repeating.finish()?;
        Ok(part)
    }

    /// Adds the next entry; false when it is a duplicate that ends the build.
    fn push(&self, part: &mut EntriesPart, outputs: &mut Outputs, entry: &[u8], may_repeat: bool) -> Result<bool> {
        if outputs.until_look == 0 {
            self.interrupt.check()?;
            outputs.until_look = ENTRIES_PER_LOOK;
        }
        outputs.until_look -= 1;
        if may_repeat && self.unique == Unique::FirstRow {
            outputs.repeating.push(entry, Csn(0), false)?;
            return Ok(true);
        }
        if !may_repeat && self.unique != Unique::No {
            if outputs.entries.entries() == 0 {
                part.first.extend_from_slice(entry);
            }
            if let Some(found) = equal_keys(outputs.entries.last_key(), entry) {
                part.duplicate = earlier(part.duplicate.take(), Some(found));
                if self.unique == Unique::Any {
                    return Ok(false);
                }
            }
        }
        outputs.entries.push(entry, Csn(0), false)?;
        Ok(true)
    }
}

impl Drop for EntriesPart {
    fn drop(&mut self) {
        self.runs.iter().chain(&self.repeating).for_each(|run| run.discard());
    }
}

impl Built {
    fn new(mut parts: Vec<EntriesPart>, unique: Unique) -> Built {
        let duplicate = EntriesPart::duplicate(&parts, unique);
        let runs = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.runs)).collect();
        let repeating = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.repeating)).collect();
        Built { runs, repeating, duplicate }
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        self.runs.iter().chain(&self.repeating).for_each(|run| run.discard());
    }
}

impl EntriesPart {
    fn duplicate(parts: &[EntriesPart], unique: Unique) -> Option<Duplicate> {
        let within = parts.iter().filter_map(|part| part.duplicate.clone());
        // Between them there may be parts without entries.
        let filled: Vec<&EntriesPart> = parts.iter().filter(|part| !part.last.is_empty()).collect();
        let between = filled.windows(2).filter_map(|pair| equal_keys(&pair[0].last, &pair[1].first));
        match unique {
            Unique::No => None,
            Unique::Any => within.chain(between).next(),
            Unique::FirstRow => within.chain(between).fold(None, |best, next| earlier(best, Some(next))),
        }
    }
}

/// The one of two pairs whose second row is less.
pub(crate) fn earlier(a: Option<Duplicate>, b: Option<Duplicate>) -> Option<Duplicate> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.rows.1 < a.rows.1 { b } else { a }),
        (a, b) => a.or(b),
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
        let part =
            |first: Vec<u8>, last: Vec<u8>| EntriesPart { runs: Vec::new(), repeating: Vec::new(), duplicate: None, first, last };
        let parts = |key: &[u8]| {
            let (before, after) = (part(entry(b"a", 1), entry(b"b", 2)), part(entry(key, 3), entry(b"d", 4)));
            [before, EntriesPart::default(), after]
        };
        let duplicate = Duplicate { key: b"b".to_vec(), rows: (RowId(2), RowId(3)) };
        assert_eq!(EntriesPart::duplicate(&parts(b"b"), Unique::Any), Some(duplicate.clone()));
        assert_eq!(EntriesPart::duplicate(&parts(b"b"), Unique::FirstRow), Some(duplicate));
        assert_eq!(EntriesPart::duplicate(&parts(b"b"), Unique::No), None);
        assert_eq!(EntriesPart::duplicate(&parts(b"c"), Unique::Any), None);
        // The first entry's key may repeat.
        let repeats = part(Vec::new(), entry(b"d", 4));
        assert_eq!(EntriesPart::duplicate(&[part(entry(b"a", 1), entry(b"b", 2)), repeats], Unique::Any), None);
    }
}
