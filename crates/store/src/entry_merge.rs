//! Several sorted segments of index entries read as one.

use std::sync::Arc;

use melba_segment::KeyCursor;
use melba_types::merge_heap::MergeHeap;

use crate::error::Result;
use crate::files::IndexRun;
use crate::key::head;

/// Cursors by their keys; of equal keys, the first cursor's comes first.
pub struct EntryMerge {
    cursors: Vec<KeyCursor>,
    heap: MergeHeap,
    /// Bytes that all keys begin with: heads are the eight behind them.
    common: usize,
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
        let mut cursors = Vec::new();
        for run in runs {
            let mut cursor = run.reader.cursor();
            if cursor.seek(lower)? {
                cursors.push(cursor);
            }
        }
        let heads = cursors.iter().enumerate().map(|(i, cursor)| (i as u32, head(cursor.key(), common)));
        let heap = MergeHeap::new(heads, |i| cursors[i as usize].key());
        Ok(EntryMerge { cursors, heap, common })
    }

    /// The cursor with the least key; `None` at the end.
    pub fn least(&self) -> Option<&KeyCursor> {
        self.heap.least().map(|i| &self.cursors[i as usize])
    }

    /// Goes to the next entry.
    pub fn advance(&mut self) -> Result<()> {
        let Some(least) = self.heap.least() else { return Ok(()) };
        let is_there = self.cursors[least as usize].next()?;
        let cursors = &self.cursors;
        let key = |i: u32| cursors[i as usize].key();
        match is_there {
            true => self.heap.advance(head(key(least), self.common), key),
            false => self.heap.remove(key),
        }
        Ok(())
    }
}
