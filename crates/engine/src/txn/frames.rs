//! Frames of large values: the rows of toast trees (docs/design/toast.md). They are written once, read by row id and removed.
//! `bulk` writes them.

use std::ops::Range;

use melba_store::{EngineError, Found, Result};
use melba_types::row::Field;
use melba_types::{RowId, TreeId};

use super::Transaction;
use crate::view::ReadView;

impl Transaction {
    /// Takes `count` consecutive row ids of a toast tree, for frames of about `bytes` in all. The caller must write them in their
    /// order, before it takes others.
    pub fn reserve_frames(&self, tree: TreeId, count: u64, bytes: usize) -> Result<RowId> {
        let tree = self.tree(tree)?;
        let table = tree.require_table()?;
        self.expect_frames(&tree, bytes)?;
        Ok(RowId(table.take_rows(count)?))
    }

    /// Removes the frames of a value.
    pub fn delete_frames(&self, tree: TreeId, ids: Range<RowId>) -> Result<()> {
        (ids.start.0..ids.end.0).try_for_each(|id| self.delete(tree, RowId(id)))
    }

    /// Calls `each` with a frame of a toast tree. A frame whose row the view's statement was led to is found even when a
    /// transaction that committed meanwhile wrote it: READ COMMITTED reads newest versions of rows.
    ///
    /// # Errors
    /// `Corrupt` when there is no such frame.
    pub fn with_frame<T>(&self, view: ReadView, tree: TreeId, id: RowId, each: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let tree = self.tree(tree)?;
        let layout = self.layout_of(&tree)?;
        let missing = || EngineError::Corrupt { what: format!("missing frame {id} of toast tree {}", tree.id) };
        let found = match self.find(view, &tree, id)? {
            None | Some(Found::Deleted | Found::Memory(None)) => {
                self.with_newest(|csn| self.find(ReadView { csn, command: u32::MAX }, &tree, id))?
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
}
