//! The scan of an index tree.

use std::ops::Bound;
use std::sync::Arc;

use melba_types::RowId;

use crate::error::Result;
use crate::key::KeyBytes;
use crate::tree::{IndexLevels, Tree};
use crate::txn::{ReadView, Transaction};

/// The first batch is small: most index scans want one entry.
const FIRST_BATCH_ENTRIES: usize = 8;
const BATCH_ENTRIES_MAX: usize = 1024;

/// A scan in progress. Entries come in key order, then row id order, or exactly reversed.
pub struct IndexScan {
    txn: Arc<Transaction>,
    view: ReadView,
    tree: Arc<Tree>,
    levels: IndexLevels,
    reverse: bool,
    /// What is still to be read, as bounds of whole entries.
    lower: Bound<KeyBytes>,
    upper: Bound<KeyBytes>,
    done: bool,
    limit: usize,
    own: Entries,
    active: Entries,
    batch: Entries,
    /// The next entry of `batch` to return.
    at: usize,
}

/// Entries end to end, with whether each is live.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<(u32, bool)>,
}

impl Entries {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn push(&mut self, entry: &[u8], live: bool) {
        self.bytes.extend_from_slice(entry);
        self.ends.push((self.bytes.len() as u32, live));
    }

    fn get(&self, i: usize) -> (&[u8], bool) {
        let start = if i == 0 { 0 } else { self.ends[i - 1].0 as usize };
        let (end, live) = self.ends[i];
        (&self.bytes[start..end as usize], live)
    }

    fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|i| self.get(i).0)
    }
}

/// The smallest byte string above every one that begins with `prefix`; `None` when there is none.
fn successor(prefix: &[u8]) -> Option<KeyBytes> {
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

impl IndexScan {
    pub(crate) fn open(
        txn: Arc<Transaction>,
        view: ReadView,
        tree: Arc<Tree>,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        reverse: bool,
    ) -> Result<IndexScan> {
        let levels = tree.as_index().map(|t| t.levels.read().clone());
        let levels = levels.ok_or(crate::error::EngineError::Misuse("not an index tree"))?;
        let mut done = false;
        let lower = match lower {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(k) => Bound::Included(KeyBytes::new(k)),
            Bound::Excluded(k) => match successor(k) {
                Some(next) => Bound::Included(next),
                None => {
                    done = true;
                    Bound::Unbounded
                }
            },
        };
        let upper = match upper {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Excluded(k) => Bound::Excluded(KeyBytes::new(k)),
            Bound::Included(k) => successor(k).map_or(Bound::Unbounded, Bound::Excluded),
        };
        done |= is_empty_range((as_slice(&lower), as_slice(&upper)));
        Ok(IndexScan {
            txn,
            view,
            tree,
            levels,
            reverse,
            lower,
            upper,
            done,
            limit: FIRST_BATCH_ENTRIES,
            own: Entries::default(),
            active: Entries::default(),
            batch: Entries::default(),
            at: 0,
        })
    }

    /// The next live entry: its key, without the row id, and its row.
    #[expect(clippy::should_implement_trait, reason = "lends its buffer, and is fallible")]
    pub fn next(&mut self) -> Result<Option<(&[u8], RowId)>> {
        while self.at == self.batch.len() {
            if self.done {
                return Ok(None);
            }
            self.fill();
        }
        self.at += 1;
        let (entry, _) = self.batch.get(self.at - 1);
        Transaction::split(entry).map(Some)
    }

    /// Reads the next entries of every source and merges them into `batch`.
    fn fill(&mut self) {
        self.own.clear();
        self.active.clear();
        let bounds = (as_slice(&self.lower), as_slice(&self.upper));
        let own = &mut self.own;
        self.txn.own_keys(self.view, self.tree.id, bounds, self.reverse, self.limit, |k, live| own.push(k, live));
        {
            let map = self.levels.active.map.read();
            let mut range = map.range::<[u8], _>(bounds);
            while self.active.len() < self.limit
                && let Some((key, chain)) = if self.reverse { range.next_back() } else { range.next() }
            {
                if let Some(version) = chain.visible(self.view.csn) {
                    self.active.push(key.as_slice(), version.value);
                }
            }
        }
        // A source that filled its share may have more behind its last entry; nothing beyond that is known yet.
        let full = |source: &Entries| if source.len() == self.limit { source.last().map(KeyBytes::new) } else { None };
        let ends = [full(&self.own), full(&self.active)].into_iter().flatten();
        let end = if self.reverse { ends.max() } else { ends.min() };
        self.merge(end.as_ref());
        match end {
            None => self.done = true,
            Some(end) if self.reverse => self.upper = Bound::Excluded(end),
            Some(end) => self.lower = Bound::Excluded(end),
        }
        self.done |= is_empty_range((as_slice(&self.lower), as_slice(&self.upper)));
        self.limit = (self.limit * 4).min(BATCH_ENTRIES_MAX);
    }

    /// The live entries of both sources up to and including `end`; of equal entries the own one counts.
    fn merge(&mut self, end: Option<&KeyBytes>) {
        self.batch.clear();
        self.at = 0;
        let reverse = self.reverse;
        let before = |a: &[u8], b: &[u8]| if reverse { a > b } else { a < b };
        let (mut i, mut j) = (0, 0);
        loop {
            let own = (i < self.own.len()).then(|| self.own.get(i));
            let other = (j < self.active.len()).then(|| self.active.get(j));
            let (entry, live) = match (own, other) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    (i, j) = (i + 1, j + 1);
                    x
                }
                (Some(x), Some(y)) if before(y.0, x.0) => {
                    j += 1;
                    y
                }
                (Some(x), _) => {
                    i += 1;
                    x
                }
                (None, Some(y)) => {
                    j += 1;
                    y
                }
                (None, None) => return,
            };
            if end.is_some_and(|end| before(end.as_slice(), entry)) {
                return;
            }
            if live {
                self.batch.push(entry, true);
            }
        }
    }
}
