//! The scan of an index tree.

use std::ops::Bound;
use std::sync::Arc;

use melba_segment::KeyCursor;
use melba_store::{EngineError, IndexLevels, IndexRun, KeyBytes, Result, Tree};
use melba_threads::Guard;
use melba_types::RowId;

use crate::serializable::Read;
use crate::txn::{IndexAccess, OwnView, Transaction, announce, entries};
use crate::view::ReadView;

/// The first batch is small: most index scans want one entry.
const FIRST_BATCH_ENTRIES: usize = 8;
const BATCH_ENTRIES_MAX: usize = 1024;
const EXPECTED_ENTRIES_MAX: usize = 32;

/// A scan in progress. Entries come in key order, then row id order, or exactly reversed.
pub struct IndexScan {
    own: OwnView,
    view: ReadView,
    tree: Arc<Tree>,
    levels: Arc<IndexLevels>,
    /// One for each segment that may have entries within the bounds, newest first.
    cursors: Vec<KeyCursor>,
    /// The transaction's own segments: kept although it may replace them by fewer.
    own_runs: Vec<Arc<IndexRun>>,
    /// How many of the cursors are theirs: those are newer than the memory tables.
    private: usize,
    reverse: bool,
    /// The part still to be read, as bounds of whole entries.
    lower: Bound<KeyBytes>,
    upper: Bound<KeyBytes>,
    done: bool,
    limit: usize,
    /// Own changes, own segments, active, frozen, then the tree's segments: of equal entries the first source's counts.
    sources: Vec<Entries>,
    batch: Entries,
    /// The next entry of `batch` to return.
    at: usize,
}

/// Entries end to end, with whether each is live.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<(u32, bool)>,
    /// The next one to merge.
    head: usize,
    /// All of a segment's entries so far have been merged: its cursor is at the next.
    is_resumed: bool,
}

const OWN: usize = 0;
/// Memory tables.
const MEMORY: usize = 2;

impl Entries {
    fn clear(&mut self) {
        self.is_resumed = self.head > 0 && self.head == self.len();
        self.bytes.clear();
        self.ends.clear();
        self.head = 0;
    }

    /// Empties it for other bounds: no cursor stands where they begin.
    fn forget(&mut self) {
        self.head = 0;
        self.clear();
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn push(&mut self, entry: &[u8], live: bool) {
        self.bytes.extend_from_slice(entry);
        self.ends.push((self.bytes.len() as u32, live));
    }

    /// Reserves capacity for about `entries` entries of `bytes` bytes, unless they are too many to expect.
    fn reserve(&mut self, entries: usize, bytes: usize) {
        let entries = entries.min(EXPECTED_ENTRIES_MAX);
        self.bytes.reserve(entries * bytes);
        self.ends.reserve(entries);
    }

    fn get(&self, i: usize) -> (&[u8], bool) {
        let start = if i == 0 { 0 } else { self.ends[i - 1].0 as usize };
        let (end, live) = self.ends[i];
        (&self.bytes[start..end as usize], live)
    }

    fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|i| self.get(i).0)
    }

    fn at_head(&self) -> Option<(&[u8], bool)> {
        (self.head < self.len()).then(|| self.get(self.head))
    }
}

/// The smallest byte string above every one that begins with `prefix`; `None` when there is none.
pub(crate) fn successor(prefix: &[u8]) -> Option<KeyBytes> {
    let last = prefix.iter().rposition(|b| *b != 0xff)?;
    let mut out = prefix[..=last].to_vec();
    out[last] += 1;
    Some(KeyBytes::new(&out))
}

fn as_slice(bound: &Bound<KeyBytes>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(k) => Bound::Included(k.as_slice()),
        Bound::Excluded(k) => Bound::Excluded(k.as_slice()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// `BTreeMap::range` panics on an inverted range.
fn is_empty_range(bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    match bounds {
        (Bound::Included(l), Bound::Included(u)) => l > u,
        (Bound::Included(l) | Bound::Excluded(l), Bound::Excluded(u) | Bound::Included(u)) => l >= u,
        _ => false,
    }
}

impl IndexAccess<'_> {
    /// Entries with keys within bounds, ascending or descending. Bounds are keys without row ids; a key that starts with an
    /// included upper bound is within it, so bounds may be prefixes.
    pub fn scan(&self, view: ReadView, lower: Bound<&[u8]>, upper: Bound<&[u8]>, reverse: bool) -> Result<IndexScan> {
        let tree = self.txn.tree(self.tree)?;
        tree.require_index()?;
        IndexScan::open(Arc::clone(self.txn), view, &tree, (lower, upper), reverse, None)
    }

    /// Entries whose whole key is `key` (all columns of the index): like `scan` with it as both bounds, but segments
    /// without it are left out by their filters.
    pub fn lookup(&self, view: ReadView, key: &[u8]) -> Result<IndexScan> {
        let tree = self.txn.tree(self.tree)?;
        tree.require_index()?;
        let bounds = (Bound::Included(key), Bound::Included(key));
        IndexScan::open(Arc::clone(self.txn), view, &tree, bounds, false, Some(key))
    }
}

impl IndexScan {
    /// `exact`: the bounds are one whole key, so that filters can be used.
    pub(crate) fn open(
        txn: Arc<Transaction>,
        view: ReadView,
        tree: &Arc<Tree>,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        reverse: bool,
        exact: Option<&[u8]>,
    ) -> Result<IndexScan> {
        let levels = tree.as_index().map(|t| Guard::into_inner(t.levels.read()));
        let levels = levels.ok_or(EngineError::Misuse("not an index tree"))?;
        let mut scan = IndexScan {
            own: OwnView::new(txn, view),
            view,
            tree: Arc::clone(tree),
            levels,
            cursors: Vec::new(),
            own_runs: Vec::new(),
            private: 0,
            reverse,
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            done: false,
            limit: FIRST_BATCH_ENTRIES,
            sources: Vec::new(),
            batch: Entries::default(),
            at: 0,
        };
        scan.restart(bounds, exact)?;
        Ok(scan)
    }

    /// Restarts with other bounds, keeping buffers, and the cursors of segments that are read again. The view sees the same as
    /// before.
    pub fn restart(&mut self, bounds: (Bound<&[u8]>, Bound<&[u8]>), exact: Option<&[u8]>) -> Result<()> {
        self.own.txn.check_failure()?;
        self.done = false;
        self.lower = match bounds.0 {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(k) => Bound::Included(KeyBytes::new(k)),
            Bound::Excluded(k) => match successor(k) {
                Some(next) => Bound::Included(next),
                None => {
                    self.done = true;
                    Bound::Unbounded
                }
            },
        };
        self.upper = match bounds.1 {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Excluded(k) => Bound::Excluded(KeyBytes::new(k)),
            Bound::Included(k) => successor(k).map_or(Bound::Unbounded, Bound::Excluded),
        };
        self.done |= is_empty_range((as_slice(&self.lower), as_slice(&self.upper)));
        (self.limit, self.at) = (FIRST_BATCH_ENTRIES, 0);
        self.batch.clear();
        if self.done { Ok(()) } else { self.find_cursors(exact) }
    }

    /// A cursor for each segment that may have entries within the bounds, the transaction's own first.
    fn find_cursors(&mut self, exact: Option<&[u8]>) -> Result<()> {
        let mut before = std::mem::take(&mut self.cursors).into_iter().peekable();
        let mut cursors = Vec::with_capacity(before.len());
        self.own.look();
        self.own_runs = entries::private_indexes(&self.own.txn, self.view, self.tree.id);
        self.private = 0;
        for (i, run) in self.own_runs.iter().chain(self.levels.runs.iter()).enumerate() {
            // Of one segment and the next, in the same order as before.
            let known = before.next_if(|known| known.is_of(&run.reader));
            if may_have_entries(run, self.view, &self.lower, &self.upper, exact)? {
                cursors.push(known.unwrap_or_else(|| run.reader.cursor()));
            }
            if i + 1 == self.own_runs.len() {
                self.private = cursors.len();
            }
        }
        self.cursors = cursors;
        self.sources.iter_mut().for_each(Entries::forget);
        self.sources.resize_with(1 + MEMORY + self.cursors.len(), Entries::default);
        Ok(())
    }

    /// The next live entry: its key, without the row id, and its row.
    #[expect(clippy::should_implement_trait, reason = "lends its buffer, and is fallible")]
    pub fn next(&mut self) -> Result<Option<(&[u8], RowId)>> {
        while self.at == self.batch.len() {
            if self.done {
                return Ok(None);
            }
            self.fill()?;
        }
        self.at += 1;
        let (entry, _) = self.batch.get(self.at - 1);
        entries::split(entry).map(Some)
    }

    /// The row of the next live entry with exactly this key: bounds admit longer ones that begin with it.
    pub(crate) fn next_of(&mut self, key: &[u8]) -> Result<Option<RowId>> {
        while let Some((found, row)) = self.next()? {
            if found == key {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Appends the rows of the next entries, as many as are buffered, at most `limit`; false at the end.
    pub fn next_rows(&mut self, limit: usize, out: &mut Vec<RowId>) -> Result<bool> {
        self.next_entries(limit, |_, row| out.push(row))
    }

    /// Calls `each` with key and row of the next entries, as many as are buffered, at most `limit`; false at the end.
    pub fn next_entries(&mut self, limit: usize, mut each: impl FnMut(&[u8], RowId)) -> Result<bool> {
        while self.at == self.batch.len() {
            if self.done {
                return Ok(false);
            }
            self.fill()?;
        }
        let end = self.batch.len().min(self.at + limit);
        for i in self.at..end {
            let (key, row) = entries::split(self.batch.get(i).0)?;
            each(key, row);
        }
        self.at = end;
        Ok(true)
    }

    /// Reads the next entries of every source and merges them into `batch`.
    fn fill(&mut self) -> Result<()> {
        let bounds = (as_slice(&self.lower), as_slice(&self.upper));
        let (limit, reverse) = (self.limit, self.reverse);
        self.sources.iter_mut().for_each(Entries::clear);
        let entries = &mut self.sources[OWN];
        self.own.keys(self.tree.id, bounds, reverse, limit, |k, live| entries.push(k, live));
        let memory = OWN + 1 + self.private;
        for (table, entries) in self.levels.memory().zip(&mut self.sources[memory..memory + MEMORY]) {
            if table.is_empty() {
                continue;
            }
            let map = table.map.read();
            let mut range = map.range::<[u8], _>(bounds);
            while entries.len() < limit
                && let Some((key, chain)) = if reverse { range.next_back() } else { range.next() }
            {
                if let Some(version) = chain.visible(self.view.csn) {
                    entries.push(key.as_slice(), version.value);
                }
            }
        }
        let segments = (OWN + 1..memory).chain(memory + MEMORY..self.sources.len());
        for (cursor, source) in self.cursors.iter_mut().zip(segments) {
            let entries = &mut self.sources[source];
            read_segment(cursor, self.view, bounds, reverse, limit, entries)?;
        }
        // A source that filled its share may have more behind its last entry; nothing beyond that is known yet.
        let ends = self.sources.iter().filter(|s| s.len() == limit).filter_map(|s| s.last());
        let end = if reverse { ends.max() } else { ends.min() };
        let end = end.map(KeyBytes::new);
        self.note_read(end.as_ref())?;
        self.merge(end.as_ref());
        match end {
            None => self.done = true,
            Some(end) if reverse => self.upper = Bound::Excluded(end),
            Some(end) => self.lower = Bound::Excluded(end),
        }
        self.done |= is_empty_range((as_slice(&self.lower), as_slice(&self.upper)));
        self.limit = (limit * 4).min(BATCH_ENTRIES_MAX);
        Ok(())
    }

    /// Announces the entries up to and including `end`, or all that are left: present or not, they have been searched.
    fn note_read(&self, end: Option<&KeyBytes>) -> Result<()> {
        if !announce::tracks(&self.own.txn, self.view) {
            return Ok(());
        }
        let (mut lower, mut upper) = (as_slice(&self.lower), as_slice(&self.upper));
        match end {
            Some(end) if self.reverse => lower = Bound::Included(end.as_slice()),
            Some(end) => upper = Bound::Included(end.as_slice()),
            None => {}
        }
        announce::reads(&self.own.txn, std::iter::once(Read::Range(self.tree.id, lower, upper)))
    }

    /// The live entries of all sources up to and including `end`.
    fn merge(&mut self, end: Option<&KeyBytes>) {
        self.batch.clear();
        self.at = 0;
        let reverse = self.reverse;
        let before = |a: &[u8], b: &[u8]| if reverse { a > b } else { a < b };
        let mut filled = self.sources.iter_mut().filter(|s| s.len() > 0);
        if let (Some(only), None) = (filled.next(), filled.next())
            && only.ends.iter().all(|(_, live)| *live)
        {
            // `end` is its last entry, if there is one.
            only.head = only.len();
            self.batch.ends.clone_from(&only.ends);
            std::mem::swap(&mut self.batch.bytes, &mut only.bytes);
            return;
        }
        loop {
            let mut first: Option<usize> = None;
            for (i, source) in self.sources.iter().enumerate() {
                if let Some((entry, _)) = source.at_head()
                    && first.and_then(|f| self.sources[f].at_head()).is_none_or(|(best, _)| before(entry, best))
                {
                    first = Some(i);
                }
            }
            let Some(winner) = first else { return };
            let (older, newer) = (winner + 1, winner);
            let (head, tail) = self.sources.split_at_mut(older);
            let Some((entry, live)) = head[newer].at_head() else { return };
            if end.is_some_and(|end| before(end.as_slice(), entry)) {
                return;
            }
            for source in tail {
                if source.at_head().is_some_and(|(other, _)| other == entry) {
                    source.head += 1;
                }
            }
            if live {
                self.batch.push(entry, true);
            }
            head[newer].head += 1;
        }
    }
}

/// Whether a segment may have entries within bounds; `exact` as for `IndexScan::open`.
pub(crate) fn may_have_entries(
    run: &IndexRun,
    view: ReadView,
    lower: &Bound<KeyBytes>,
    upper: &Bound<KeyBytes>,
    exact: Option<&[u8]>,
) -> Result<bool> {
    let meta = run.reader.meta();
    let below = match upper {
        Bound::Excluded(u) | Bound::Included(u) => u.as_slice() < meta.key_min.as_slice(),
        Bound::Unbounded => false,
    };
    let above = match lower {
        Bound::Included(l) | Bound::Excluded(l) => l.as_slice() > meta.key_max.as_slice(),
        Bound::Unbounded => false,
    };
    if below || above || meta.csn_min > view.csn {
        return Ok(false);
    }
    Ok(match exact {
        Some(key) => run.reader.may_contain(key)?,
        None => true,
    })
}

/// Goes to where the entries within bounds begin, in scan order.
fn seek(cursor: &mut KeyCursor, bounds: (Bound<&[u8]>, Bound<&[u8]>), reverse: bool) -> Result<()> {
    if reverse {
        match bounds.1 {
            // Upper bounds of whole entries are never included ones (see `IndexScan::open` and `fill`).
            Bound::Excluded(u) | Bound::Included(u) => cursor.seek_before(u)?,
            Bound::Unbounded => cursor.seek_last()?,
        };
    } else {
        match bounds.0 {
            Bound::Included(l) | Bound::Excluded(l) => cursor.seek(l)?,
            Bound::Unbounded => cursor.seek_first()?,
        };
    }
    Ok(())
}

/// Up to `limit` entries of a segment within bounds, as the view sees them, in scan order.
fn read_segment(
    cursor: &mut KeyCursor,
    view: ReadView,
    bounds: (Bound<&[u8]>, Bound<&[u8]>),
    reverse: bool,
    limit: usize,
    out: &mut Entries,
) -> Result<()> {
    // Otherwise it is where the last batch ended.
    if !out.is_resumed {
        seek(cursor, bounds, reverse)?;
    }
    let inside = |key: &[u8]| match (reverse, bounds) {
        (false, (_, Bound::Excluded(u))) => key < u,
        (false, (_, Bound::Included(u))) => key <= u,
        (true, (Bound::Included(l), _)) => key >= l,
        (true, (Bound::Excluded(l), _)) => key > l,
        _ => true,
    };
    let mut key = Vec::new();
    while cursor.is_valid() && out.len() < limit {
        if !inside(cursor.key()) {
            return Ok(());
        }
        if cursor.is_all_visible(view.csn) {
            let skipped = !reverse && matches!(bounds.0, Bound::Excluded(l) if l == cursor.key());
            if !skipped {
                if out.len() == 0 {
                    out.reserve(limit, cursor.key().len());
                }
                out.push(cursor.key(), true);
            }
            if reverse {
                cursor.prev()?
            } else {
                cursor.next()?
            };
            continue;
        }
        key.clear();
        key.extend_from_slice(cursor.key());
        // All versions of this key: newest first going forward, oldest first going back.
        let mut seen: Option<bool> = None;
        while cursor.is_valid() && cursor.key() == key {
            if cursor.csn() <= view.csn && (reverse || seen.is_none()) {
                seen = Some(!cursor.tombstone());
            }
            if reverse {
                cursor.prev()?
            } else {
                cursor.next()?
            };
        }
        let skipped = !reverse && matches!(bounds.0, Bound::Excluded(l) if l == key);
        if let Some(live) = seen
            && !skipped
        {
            if out.len() == 0 {
                out.reserve(limit, key.len());
            }
            out.push(&key, live);
        }
    }
    Ok(())
}
