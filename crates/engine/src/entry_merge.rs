//! Several sorted segments of index entries read as one.

use std::sync::Arc;

use melba_segment::KeyCursor;

use crate::error::Result;
use crate::levels::IndexRun;

/// Cursors in a heap by their keys; of equal keys, the first cursor's comes first.
pub(crate) struct EntryMerge {
    cursors: Vec<KeyCursor>,
    heap: Vec<u32>,
}

impl EntryMerge {
    pub fn new<'a>(runs: impl Iterator<Item = &'a Arc<IndexRun>>) -> Result<EntryMerge> {
        let mut merge = EntryMerge { cursors: Vec::new(), heap: Vec::new() };
        for run in runs {
            let mut cursor = run.reader.cursor();
            cursor.seek_first()?;
            if cursor.is_valid() {
                merge.heap.push(merge.cursors.len() as u32);
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
        self.heap.first().map(|at| &self.cursors[*at as usize])
    }

    /// Goes to the next entry.
    pub fn advance(&mut self) -> Result<()> {
        let Some(top) = self.heap.first() else { return Ok(()) };
        let cursor = &mut self.cursors[*top as usize];
        cursor.next()?;
        if !cursor.is_valid() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    fn less(&self, a: u32, b: u32) -> bool {
        let key = |at: u32| self.cursors[at as usize].key();
        key(a).cmp(key(b)).then(a.cmp(&b)).is_lt()
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
