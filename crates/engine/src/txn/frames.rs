//! ToastFrames of large values: the rows of toast trees (docs/design/toast.md). They are written once, read by row id and removed.

use std::ops::Range;
use std::sync::Arc;

use melba_store::{EngineError, Found, Result, Tree};
use melba_types::row::Field;
use melba_types::{Csn, RowId};

use super::{ToastFrames, Transaction};
use crate::view::ReadView;

impl ToastFrames<'_> {
    /// Takes `count` consecutive row ids of a toast tree, for frames of about `bytes` in all. The caller must write them in their
    /// order, before it takes others.
    pub fn reserve(&self, count: u64, bytes: usize) -> Result<RowId> {
        let tree = self.txn.tree(self.tree)?;
        let table = tree.require_table()?;
        expect_frames(self.txn, &tree, bytes)?;
        Ok(RowId(table.take_rows(count)?))
    }

    /// Removes the frames of a value.
    pub fn delete(&self, ids: Range<RowId>) -> Result<()> {
        (ids.start.0..ids.end.0).try_for_each(|id| self.txn.delete(self.tree, RowId(id)))
    }

    /// Says that some frames will be read, in order: where they are in a store one request brings them.
    ///
    /// # Errors
    /// Those of reading.
    pub fn expect(&self, view: ReadView, ids: Range<RowId>) -> Result<()> {
        if ids.end.0.saturating_sub(ids.start.0) < 2 || !self.txn.shared().store.files.cold.is_used() {
            return Ok(());
        }
        let tree = self.txn.tree(self.tree)?;
        let first = self.txn.find(view, &tree, ids.start)?;
        let last = self.txn.find(view, &tree, RowId(ids.end.0 - 1))?;
        if let (Some(Found::Stored(run, first)), Some(Found::Stored(other, last))) = (first, last)
            && run.segment.file == other.segment.file
        {
            run.reader.expect(0, first, last);
        }
        Ok(())
    }

    /// Calls `each` with a frame of a toast tree. A frame whose row the view's statement was led to is found even when a
    /// transaction that committed meanwhile wrote it: READ COMMITTED reads newest versions of rows.
    ///
    /// # Errors
    /// `Corrupt` when there is no such frame.
    pub fn with<T>(&self, view: ReadView, id: RowId, each: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let tree = self.txn.tree(self.tree)?;
        let layout = self.txn.layout_of(&tree)?;
        let missing = || EngineError::Corrupt { what: format!("missing frame {id} of toast tree {}", tree.id) };
        let found = match self.txn.find(view, &tree, id)? {
            None | Some(Found::Deleted | Found::Memory(None)) => {
                self.txn.with_newest(|csn| self.txn.find(ReadView { csn, command: u32::MAX }, &tree, id))?
            }
            found => found,
        };
        match found {
            Some(Found::Memory(Some(row))) => match layout.view(&row).map(|v| v.get(0)) {
                Some(Field::Value(frame)) => Ok(each(frame)),
                _ => Err(missing()),
            },
            Some(Found::Stored(run, position)) => run.reader.with_bytes(position, 0, each)?.ok_or_else(missing),
            _ => Err(missing()),
        }
    }

    /// Adds a frame, given in parts, at a reserved row id of a toast tree. Many bytes of one command bypass the row store and the
    /// log.
    pub fn put(&self, id: RowId, parts: &[&[u8]]) -> Result<()> {
        let tree = self.txn.tree(self.tree)?;
        let layout = self.txn.layout_of(&tree)?;
        let bytes = parts.iter().map(|part| part.len()).sum();
        self.txn.change(|state| {
            let writer = state.bulk_writer(&tree, self.txn);
            if let Some(output) = writer.frame_output(&self.txn.shared().store.files, &layout, bytes) {
                return output.push_frame(id, Csn(0), Some(parts));
            }
            writer.small_bytes += bytes;
            self.txn.put_in(state, &tree, id, Some(layout.encode_bytes(parts)), 1)
        })
    }
}

/// Announces `bytes` of frames: a segment for them begins at once if they are many.
fn expect_frames(txn: &Transaction, tree: &Arc<Tree>, bytes: usize) -> Result<()> {
    let layout = txn.layout_of(tree)?;
    txn.change(|state| {
        state.bulk_writer(tree, txn).frame_output(&txn.shared().store.files, &layout, bytes);
        Ok(())
    })
}
