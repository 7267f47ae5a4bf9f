//! Reading and changing objects.

use std::sync::Arc;

use melba_catalog::classes;
use melba_engine::{
    EngineError, Isolation, Latest, LockTag, Morsel, ReadView, RelationLockMode, RowLockMode, RowLockResult, Transaction,
    ViewPin, Wait,
};
use melba_toast::Method;
use melba_types::row::RowLayout;
use melba_types::{Batch, Column, Datum, DbError, Kind, Oid, Result, RowId, TreeId, err};

use super::extent::Extent;
use super::metadata::Metadata;
use super::{DATA_KINDS, EXTENT_BYTES, LargeObjects, METADATA_KINDS, SIZE_MAX, Trees, data_row, metadata_row, of_data_row};

/// Extents looked up one by one; for more than these, the tree is scanned for existing ones.
const PROBES_MAX: u64 = 256;

/// OIDs that can be locked together.
const BLOCK_OIDS: u32 = 1 << 16;
/// Row locks in a block after which the whole of it is tried. More than the objects of one entry of a dump, which several
/// sessions restore side by side.
const BLOCK_ROWS_MAX: u32 = 2048;

/// How a transaction has locked in a block of OIDs.
pub(super) enum BlockLock {
    /// The block ROW EXCLUSIVE, and this many rows, counting repetitions.
    Rows(u32),
    /// The block EXCLUSIVE: no rows need be locked.
    Whole,
}

/// Which state of an object is meant.
#[derive(Clone, Copy, Debug)]
pub enum Sight {
    Snapshot(ReadView),
    /// Everything committed, and all own changes.
    Newest,
}

/// Large objects as a running transaction works with them.
pub struct LargeObjectAccess<'a> {
    pub objects: &'a mut LargeObjects,
    engine: &'a Arc<Transaction>,
    trees: Trees,
    /// The view of `Sight::Newest`, once it was needed.
    newest: Option<(ReadView, ViewPin)>,
}

impl<'a> LargeObjectAccess<'a> {
    pub fn new(
        objects: &'a mut LargeObjects,
        engine: &'a Arc<Transaction>,
        trees: Trees,
        method: Method,
    ) -> LargeObjectAccess<'a> {
        objects.buffer.target = Some((trees, method));
        LargeObjectAccess { objects, engine, trees, newest: None }
    }

    fn view(&mut self, sight: Sight) -> ReadView {
        match sight {
            Sight::Snapshot(view) => view,
            Sight::Newest => self.newest.get_or_insert_with(|| self.engine.latest_view()).0,
        }
    }

    /// An object; `None` when there is none.
    pub fn metadata(&mut self, sight: Sight, oid: Oid) -> Result<Option<Metadata>> {
        if let Sight::Newest = sight {
            let buffer = &self.objects.buffer;
            if let Some(changed) = buffer.object(oid) {
                return Ok(Some(changed.value.clone()));
            }
            if buffer.is_removed(oid) {
                return Ok(None);
            }
        }
        let view = self.view(sight);
        let (found, columns) =
            self.engine.fetch(view, self.trees.metadata, &[metadata_row(oid)], &[0, 1, 2], &[const { Datum::Null }; 3])?;
        Ok((!found.is_empty()).then(|| Metadata::of_row(&columns, 0)))
    }

    fn exists(&mut self, oid: Oid) -> Result<bool> {
        if self.objects.buffer.object(oid).is_some() {
            return Ok(true);
        }
        let view = self.view(Sight::Newest);
        Ok(!self.engine.fetch(view, self.trees.metadata, &[metadata_row(oid)], &[], &[])?.0.is_empty())
    }

    /// An object that must be there.
    ///
    /// # Errors
    /// 42704 when it is not.
    pub fn existing(&mut self, sight: Sight, oid: Oid) -> Result<Metadata> {
        self.metadata(sight, oid)?.ok_or_else(|| missing(oid))
    }

    /// An extent; `None` for a hole.
    fn extent(&mut self, sight: Sight, oid: Oid, extent: u64) -> Result<Option<Extent>> {
        if let (Sight::Newest, Some(buffered)) = (sight, self.objects.buffer.extent(oid, extent)) {
            return Ok(Some(buffered.clone()));
        }
        let view = self.view(sight);
        let missing = [const { Datum::Null }; 3];
        let (found, columns) = self.engine.fetch(view, self.trees.data, &[data_row(oid, extent)], &[0, 1, 2], &missing)?;
        if found.is_empty() { Ok(None) } else { Extent::of_row(&columns, 0).map(Some) }
    }

    /// The numbers of the extents in the engine, from `from` to `to`.
    fn stored_extents(&mut self, oid: Oid, from: u64, to: u64) -> Result<Vec<u64>> {
        let view = self.view(Sight::Newest);
        if to - from < PROBES_MAX {
            let ids: Vec<RowId> = (from..=to).map(|extent| data_row(oid, extent)).collect();
            let (found, _) = self.engine.fetch(view, self.trees.data, &ids, &[], &[])?;
            return Ok(found.into_iter().map(|at| from + u64::from(at)).collect());
        }
        let range = Morsel::range(data_row(oid, from), RowId(data_row(oid, to).0 + 1));
        let mut scan = self.engine.scan(view, self.trees.data, &[], &[], &[], Some(range))?;
        let mut out = Vec::new();
        while let Some(batch) = scan.next()? {
            out.extend(batch.row_ids.iter().map(|row| of_data_row(*row).1));
        }
        Ok(out)
    }

    /// Up to `length` bytes from `offset` on; fewer at the object's end.
    pub fn read(&mut self, sight: Sight, oid: Oid, size: i64, offset: i64, length: usize) -> Result<Vec<u8>> {
        self.read_with(sight, oid, size, offset, length, &mut None)
    }

    /// Reads at a descriptor's position and moves it.
    pub fn read_descriptor(&mut self, number: i32, length: usize) -> Result<Vec<u8>> {
        let descriptor = self.objects.descriptor(number)?;
        let (oid, sight, position) = (descriptor.oid, descriptor.sight(), descriptor.position);
        let mut last = descriptor.last_read.take();
        // An object that another transaction removed meanwhile reads as empty.
        let size = self.metadata(sight, oid)?.map_or(0, |m| m.size);
        let bytes = self.read_with(sight, oid, size, position, length, &mut last)?;
        let descriptor = self.objects.descriptor(number)?;
        descriptor.position += bytes.len() as i64;
        descriptor.last_read = last.filter(|_| matches!(sight, Sight::Snapshot(_)));
        Ok(bytes)
    }

    fn read_with(
        &mut self,
        sight: Sight,
        oid: Oid,
        size: i64,
        offset: i64,
        length: usize,
        last: &mut Option<(u64, Option<Extent>)>,
    ) -> Result<Vec<u8>> {
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(0);
        let mut out = vec![0; length.min(left)];
        for (number, at, range) in pieces(offset as u64, out.len()) {
            if last.as_ref().is_none_or(|(known, _)| *known != number) {
                *last = Some((number, self.extent(sight, oid, number)?));
            }
            if let Some((_, Some(extent))) = last {
                extent.read(at, &mut out[range]);
            }
        }
        Ok(out)
    }

    /// Locks a row and returns its newest state.
    ///
    /// # Errors
    /// 40001 when the transaction keeps one snapshot and the row has changed since.
    fn lock(&mut self, tree: TreeId, row: RowId, mode: RowLockMode) -> Result<Latest> {
        self.lock_row(tree, row, mode, Wait::Block)?;
        // Changes that we waited for are visible now.
        self.newest = None;
        let latest = self.engine.get_latest(tree, row)?;
        let one_snapshot = self.engine.isolation() != Isolation::ReadCommitted;
        if one_snapshot && latest.own_command.is_none() && latest.csn > self.engine.active_view().csn {
            return Err(EngineError::SerializationFailure.into());
        }
        Ok(latest)
    }

    /// Creates an empty object. `next` returns an OID to try when none was given (0).
    ///
    /// # Errors
    /// 23505 when the OID is taken.
    pub fn create(&mut self, oid: Oid, owner: Oid, acl: melba_catalog::Acl, mut next: impl FnMut() -> Oid) -> Result<Oid> {
        let oid = if oid.is_valid() {
            if self.objects.buffer.is_removed(oid) {
                self.objects.buffer.flush(self.engine)?;
            }
            self.lock_new(oid, Wait::Block)?;
            if self.exists(oid)? {
                return Err(err!(
                    UNIQUE_VIOLATION,
                    "duplicate key value violates unique constraint \"pg_largeobject_metadata_oid_index\""
                )
                .detail(format!("Key (oid)=({oid}) already exists.")));
            }
            oid
        } else {
            // After a restart the counter begins below the objects that were created before it; growing steps pass them.
            let mut step = 1u32;
            loop {
                let mut candidate = next();
                for _ in 1..step {
                    candidate = next();
                }
                if self.lock_new(candidate, Wait::NoWait)? && !self.exists(candidate)? {
                    break candidate;
                }
                step = step.saturating_mul(2).min(1 << 16);
            }
        };
        self.objects.buffer.put_object(oid, Metadata { owner, acl, size: 0 }, true);
        self.flush_if_full()?;
        Ok(oid)
    }

    fn lock_new(&mut self, oid: Oid, wait: Wait) -> Result<bool> {
        self.newest = None;
        self.lock_row(self.trees.metadata, metadata_row(oid), RowLockMode::ForUpdate, wait)
    }

    /// Locks a row of either tree; false: would block. A session that works on very many objects locks blocks of OIDs instead of
    /// rows, if no other session is there: a million row locks cost more than the objects they protect.
    fn lock_row(&mut self, tree: TreeId, row: RowId, mode: RowLockMode, wait: Wait) -> Result<bool> {
        let oid = if tree == self.trees.data { of_data_row(row).0 } else { Oid(row.0 as u32) };
        let block = oid.0 / BLOCK_OIDS;
        let tag = LockTag::Object { database: self.trees.database.0, class: classes::PG_LARGEOBJECT.0, object: block };
        let rows = match self.objects.blocks.get_mut(&block) {
            Some(BlockLock::Whole) => return Ok(true),
            Some(BlockLock::Rows(rows)) => rows,
            None => {
                if !self.engine.lock_object(tag, RelationLockMode::RowExclusive, wait)? {
                    return Ok(false);
                }
                self.objects.blocks.insert(block, BlockLock::Rows(0));
                return self.lock_row(tree, row, mode, wait);
            }
        };
        *rows += 1;
        if *rows % BLOCK_ROWS_MAX == 0 && self.engine.lock_object(tag, RelationLockMode::Exclusive, Wait::NoWait)? {
            self.objects.blocks.insert(block, BlockLock::Whole);
            return Ok(true);
        }
        Ok(self.engine.lock_row(tree, row, mode, wait)? == RowLockResult::Granted)
    }

    /// Locks an object's metadata and returns its newest state.
    ///
    /// # Errors
    /// 42704 when it does not exist (any more).
    fn lock_metadata(&mut self, oid: Oid, mode: RowLockMode) -> Result<Metadata> {
        if self.objects.buffer.is_removed(oid) {
            return Err(missing(oid));
        }
        // An object that was changed and not flushed is already locked.
        if let Some(changed) = self.objects.buffer.object(oid).filter(|_| mode < RowLockMode::ForUpdate) {
            return Ok(changed.value.clone());
        }
        let latest = self.lock(self.trees.metadata, metadata_row(oid), mode)?;
        if let Some(changed) = self.objects.buffer.object(oid) {
            return Ok(changed.value.clone());
        }
        let row = latest.row.ok_or_else(|| missing(oid))?;
        let columns = columns_of(&METADATA_KINDS, &row)?;
        Ok(Metadata::of_row(&columns, 0))
    }

    /// Changes an object's owner or privileges.
    pub fn change_metadata(&mut self, oid: Oid, change: impl FnOnce(&mut Metadata) -> Result<()>) -> Result<()> {
        let mut metadata = self.lock_metadata(oid, RowLockMode::ForNoKeyUpdate)?;
        change(&mut metadata)?;
        self.objects.buffer.put_object(oid, metadata, false);
        Ok(())
    }

    /// Writes `data` at `offset`. The caller has checked privileges.
    pub fn write(&mut self, oid: Oid, offset: i64, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = offset.saturating_add(data.len() as i64);
        if end > SIZE_MAX {
            return Err(err!(INVALID_PARAMETER_VALUE, "invalid large object write request size: {}", data.len()));
        }
        let mut metadata = self.lock_metadata(oid, RowLockMode::ForKeyShare)?;
        if end > metadata.size {
            metadata = self.lock_metadata(oid, RowLockMode::ForNoKeyUpdate)?;
            metadata.size = metadata.size.max(end);
            self.objects.buffer.put_object(oid, metadata, false);
        }
        for (number, at, range) in pieces(offset as u64, data.len()) {
            self.change_extent(oid, number, |extent| extent.write(at, &data[range]))?;
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Changes an extent, which is made if it is a hole.
    fn change_extent(&mut self, oid: Oid, number: u64, change: impl FnOnce(&mut Extent)) -> Result<()> {
        let mut change = Some(change);
        let mut apply = |extent: &mut Extent| {
            if let Some(change) = change.take() {
                change(extent);
            }
        };
        if self.objects.buffer.change_extent(oid, number, &mut apply) {
            return Ok(());
        }
        // No other session can know of an object that is not even in the engine.
        let unknown = self.objects.buffer.object(oid).is_some_and(|o| o.fresh);
        let stored = match unknown {
            true => None,
            false => self.lock(self.trees.data, data_row(oid, number), RowLockMode::ForNoKeyUpdate)?.row,
        };
        let fresh = stored.is_none();
        let mut extent = match stored {
            Some(row) => Extent::of_row(&columns_of(&DATA_KINDS, &row)?, 0)?,
            None => Extent::default(),
        };
        apply(&mut extent);
        self.objects.buffer.put_extent(oid, number, extent, fresh);
        Ok(())
    }

    /// Makes an object `length` bytes long. The caller has checked privileges.
    pub fn truncate(&mut self, oid: Oid, length: i64) -> Result<()> {
        if !(0..=SIZE_MAX).contains(&length) {
            return Err(err!(INVALID_PARAMETER_VALUE, "invalid large object truncation target: {length}"));
        }
        let mut metadata = self.lock_metadata(oid, RowLockMode::ForNoKeyUpdate)?;
        let last = length as u64 / EXTENT_BYTES as u64;
        self.remove_extents(oid, last + 1, metadata.size)?;
        self.change_extent(oid, last, |extent| extent.truncate(length as usize % EXTENT_BYTES))?;
        metadata.size = length;
        self.objects.buffer.put_object(oid, metadata, false);
        self.flush_if_full()
    }

    /// Removes an object. The caller has checked privileges.
    ///
    /// # Errors
    /// 42704 when it does not exist (any more).
    pub fn unlink(&mut self, oid: Oid) -> Result<()> {
        let metadata = self.lock_metadata(oid, RowLockMode::ForUpdate)?;
        self.objects.buffer.remove_object(oid, metadata.size);
        self.objects.close_all_of(oid);
        self.flush_if_full()
    }

    /// Removes the extents from `from` on of an object of a size.
    fn remove_extents(&mut self, oid: Oid, from: u64, size: i64) -> Result<()> {
        let known = self.objects.buffer.object(oid).is_none_or(|o| !o.fresh);
        // The last extent may only record that its page exists.
        let last = size as u64 / EXTENT_BYTES as u64;
        let stored = if known && from <= last { self.stored_extents(oid, from, last)? } else { Vec::new() };
        let buffered: Vec<u64> = self.objects.buffer.extents_from(oid, from).collect();
        for extent in buffered {
            self.objects.buffer.remove_extent(oid, extent);
        }
        for extent in stored {
            self.engine.delete(self.trees.data, data_row(oid, extent))?;
        }
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.objects.buffer.is_full() {
            self.newest = None;
            self.objects.buffer.flush(self.engine)?;
        }
        Ok(())
    }

    /// The first object for which `which` is true, by OID or `None`: for DROP ROLE.
    pub fn all(&mut self, mut each: impl FnMut(Oid, Metadata)) -> Result<()> {
        self.objects.buffer.flush(self.engine)?;
        let (view, _pin) = self.engine.latest_view();
        let mut scan = self.engine.scan(view, self.trees.metadata, &[0, 1, 2], &[const { Datum::Null }; 3], &[], None)?;
        while let Some(batch) = scan.next()? {
            for (at, row) in batch.row_ids.iter().enumerate() {
                each(Oid(row.0 as u32), Metadata::of_row(&batch.columns, at));
            }
        }
        Ok(())
    }
}

/// PostgreSQL's error for an OID that no large object has.
pub(super) fn missing(oid: Oid) -> DbError {
    err!(UNDEFINED_OBJECT, "large object {oid} does not exist")
}

/// A stored row as columns of one row.
fn columns_of(kinds: &[Kind], row: &[u8]) -> Result<Vec<Column>> {
    let layout = RowLayout::new(kinds.to_vec());
    let view = layout.view(row).ok_or_else(|| err!(DATA_CORRUPTED, "a row of a large object cannot be read"))?;
    let mut columns: Vec<Column> = kinds.iter().map(|k| Column::with_capacity(*k, 1)).collect();
    for (at, column) in columns.iter_mut().enumerate() {
        view.push_to(at, &Datum::Null, column);
    }
    Ok(Batch::new(columns, 1).columns)
}

/// Cuts `length` bytes at `offset` into extents: number, where in it, and where in the bytes.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let position = offset + done as u64;
        let at = (position % EXTENT_BYTES as u64) as usize;
        let size = (EXTENT_BYTES - at).min(length - done);
        let piece = (position / EXTENT_BYTES as u64, at, done..done + size);
        done += size;
        (size > 0).then_some(piece)
    })
}
