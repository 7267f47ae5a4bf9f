//! Several sorted segments of index entries read as one.

use std::sync::Arc;

use melba_segment::KeyCursor;

use crate::error::Result;
use crate::levels::IndexRun;

/// Cursors in a heap by their keys; of equal keys, the first cursor's comes first.
pub(crate) struct EntryMerge {
    cursors: Vec<KeyCursor>,
    heap: Vec<Top>,
    /// Bytes that all keys begin with.
    common: usize,
}

/// A cursor's place in the heap.
#[derive(Clone, Copy)]
struct Top {
    /// The bytes of its key after the common ones, zeros where it has ended: they decide most comparisons.
    head: u64,
    cursor: u32,
}

impl EntryMerge {
    pub fn new<'a>(runs: impl Iterator<Item = &'a Arc<IndexRun>> + Clone) -> Result<EntryMerge> {
        EntryMerge::from(runs, &[])
    }

    /// The same from a key on.
    pub fn from<'a>(runs: impl Iterator<Item = &'a Arc<IndexRun>> + Clone, lower: &[u8]) -> Result<EntryMerge> {
        let metas = runs.clone().map(|run| run.reader.meta());
        let ends = metas.clone().map(|meta| &meta.key_min).min().zip(metas.map(|meta| &meta.key_max).max());
        let common = ends.map_or(0, |(min, max)| min.iter().zip(max).take_while(|(a, b)| a == b).count());
        let mut merge = EntryMerge { cursors: Vec::new(), heap: Vec::new(), common };
        for run in runs {
            let mut cursor = run.reader.cursor();
            if cursor.seek(lower)? {
                let place = Top { head: merge.head(&cursor), cursor: merge.cursors.len() as u32 };
                merge.heap.push(place);
                merge.cursors.push(cursor);
            }
        }
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(at);
        }
        Ok(merge)
    }

    /// The cursor with the least key; `None` at the end.
    pub fn least(&self) -> Option<&KeyCursor> {
        self.heap.first().map(|top| &self.cursors[top.cursor as usize])
    }

    /// Goes to the next entry.
    pub fn advance(&mut self) -> Result<()> {
        let Some(&Top { cursor, .. }) = self.heap.first() else { return Ok(()) };
        if self.cursors[cursor as usize].next()? {
            self.heap[0].head = self.head(&self.cursors[cursor as usize]);
        } else {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    #[inline]
    fn head(&self, cursor: &KeyCursor) -> u64 {
        crate::key::head(cursor.key(), self.common)
    }

    #[inline]
    fn less(&self, a: Top, b: Top) -> bool {
        let key = |top: Top| self.cursors[top.cursor as usize].key();
        a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b))).then(a.cursor.cmp(&b.cursor)).is_lt()
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.less(self.heap[child], self.heap[least]) {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}
