//! Changes of a transaction that the engine does not have yet.
//!
//! Clients write objects in pieces of some kilobytes. An extent is compressed and put into the engine's write set once, not once
//! for each piece; new objects and extents are written by the thousand, which the engine turns into segments. The extents of
//! removed objects are looked up together.

use std::collections::BTreeMap;
use std::sync::Arc;

use melba_engine::{Morsel, Transaction};
use melba_toast::Method;
use melba_types::row::RowLayout;
use melba_types::{Batch, Column, Datum, Kind, Oid, Result, RowId, TreeId};

use super::extent::{Extent, STORED_COLUMN};
use super::metadata::Metadata;
use super::{DATA_KINDS, EXTENT_BYTES, METADATA_KINDS, Trees, data_row, metadata_row};

/// The buffer is flushed at this size.
const BYTES_MAX: usize = 16 << 20;
/// The size of an object or extent beside its bytes.
const ENTRY_BYTES: usize = 128;
/// Extents are looked up by their ids, this many at a time; those of an object with more are scanned for.
const PROBES: usize = 4096;

/// A state that the engine is to get.
pub(super) struct Changed<T> {
    pub value: T,
    /// The engine has no row for it.
    pub fresh: bool,
}

/// Changed objects and extents. Removed ones are nowhere else.
#[derive(Default)]
pub(super) struct Buffer {
    /// The destination, and how extents are compressed; known once the buffer is not empty.
    pub target: Option<(Trees, Method)>,
    objects: BTreeMap<RowId, Changed<Metadata>>,
    extents: BTreeMap<RowId, Changed<Extent>>,
    /// Objects to be removed that the engine has rows of, and the last extent that each may have.
    removed: BTreeMap<Oid, u64>,
    bytes: usize,
}

impl Buffer {
    pub fn object(&self, oid: Oid) -> Option<&Changed<Metadata>> {
        self.objects.get(&metadata_row(oid))
    }

    pub fn put_object(&mut self, oid: Oid, value: Metadata, fresh: bool) {
        let fresh = self.object(oid).map_or(fresh, |o| o.fresh);
        if self.objects.insert(metadata_row(oid), Changed { value, fresh }).is_none() {
            self.bytes += ENTRY_BYTES;
        }
    }

    pub fn extent(&self, oid: Oid, extent: u64) -> Option<&Extent> {
        self.extents.get(&data_row(oid, extent)).map(|e| &e.value)
    }

    /// The numbers of an object's extents that are here, from `from` on.
    pub fn extents_from(&self, oid: Oid, from: u64) -> impl Iterator<Item = u64> {
        self.extents.range(data_row(oid, from)..=data_row(oid, u64::from(u32::MAX))).map(|(row, _)| super::of_data_row(*row).1)
    }

    /// Changes an extent that is here.
    pub fn change_extent(&mut self, oid: Oid, extent: u64, change: impl FnOnce(&mut Extent)) -> bool {
        let Some(found) = self.extents.get_mut(&data_row(oid, extent)) else { return false };
        let before = found.value.bytes.len();
        change(&mut found.value);
        self.bytes = (self.bytes + found.value.bytes.len()).saturating_sub(before);
        true
    }

    pub fn put_extent(&mut self, oid: Oid, extent: u64, value: Extent, fresh: bool) {
        self.bytes += ENTRY_BYTES + value.bytes.len();
        self.extents.insert(data_row(oid, extent), Changed { value, fresh });
    }

    /// Forgets an extent; whether it was here and the engine has no row for it.
    pub fn remove_extent(&mut self, oid: Oid, extent: u64) -> bool {
        let removed = self.extents.remove(&data_row(oid, extent));
        if let Some(removed) = &removed {
            self.bytes = self.bytes.saturating_sub(ENTRY_BYTES + removed.value.bytes.len());
        }
        removed.is_some_and(|r| r.fresh)
    }

    /// Removes an object of a size.
    pub fn remove_object(&mut self, oid: Oid, size: i64) {
        let extents: Vec<u64> = self.extents_from(oid, 0).collect();
        for extent in extents {
            self.remove_extent(oid, extent);
        }
        let changed = self.objects.remove(&metadata_row(oid));
        if changed.is_some() {
            self.bytes = self.bytes.saturating_sub(ENTRY_BYTES);
        }
        if changed.is_none_or(|object| !object.fresh) {
            self.bytes += ENTRY_BYTES;
            // The last extent may only record that its page exists.
            self.removed.insert(oid, size as u64 / EXTENT_BYTES as u64);
        }
    }

    pub fn is_removed(&self, oid: Oid) -> bool {
        self.removed.contains_key(&oid)
    }

    pub fn clear(&mut self) {
        self.objects.clear();
        self.extents.clear();
        self.removed.clear();
        self.bytes = 0;
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// Hands everything to the engine.
    pub fn flush(&mut self, engine: &Arc<Transaction>) -> Result<()> {
        if self.objects.is_empty() && self.extents.is_empty() && self.removed.is_empty() {
            return Ok(());
        }
        let Some((trees, method)) = self.target else { return Ok(()) };
        let objects = std::mem::take(&mut self.objects);
        let extents = std::mem::take(&mut self.extents);
        let removed = std::mem::take(&mut self.removed);
        self.bytes = 0;
        remove(engine, trees, &removed)?;
        if method == Method::Dense {
            engine.note_dense_columns(trees.data, 1 << STORED_COLUMN)?;
        }
        write(engine, trees.data, &DATA_KINDS, extents, |extent, columns| extent.push_to(method, columns))?;
        write(engine, trees.metadata, &METADATA_KINDS, objects, |metadata, columns| {
            for (column, value) in columns.iter_mut().zip(metadata.row()) {
                column.push(value);
            }
        })
    }
}

/// Removes objects with all their extents.
fn remove(engine: &Arc<Transaction>, trees: Trees, removed: &BTreeMap<Oid, u64>) -> Result<()> {
    if removed.is_empty() {
        return Ok(());
    }
    let (view, _pin) = engine.latest_view();
    let mut probes = Vec::with_capacity(PROBES.min(removed.len()));
    let delete_found = |probes: &mut Vec<RowId>| -> Result<()> {
        let (found, _) = engine.fetch(view, trees.data, probes, &[], &[])?;
        let found: Vec<RowId> = found.into_iter().map(|at| probes[at as usize]).collect();
        probes.clear();
        Ok(engine.delete_rows(trees.data, &found)?)
    };
    for (&oid, &last) in removed {
        if last >= PROBES as u64 {
            let range = Morsel::range(data_row(oid, 0), RowId(data_row(oid, last).0 + 1));
            let mut scan = engine.scan(view, trees.data, &[], &[] as &[Datum], &[], Some(range))?;
            while let Some(batch) = scan.next()? {
                engine.delete_rows(trees.data, &batch.row_ids)?;
            }
            continue;
        }
        probes.extend((0..=last).map(|extent| data_row(oid, extent)));
        if probes.len() >= PROBES {
            delete_found(&mut probes)?;
        }
    }
    delete_found(&mut probes)?;
    let objects: Vec<RowId> = removed.keys().map(|oid| metadata_row(*oid)).collect();
    Ok(engine.delete_rows(trees.metadata, &objects)?)
}

/// Inserts new rows, all at once, and updates the rest.
fn write<T>(
    engine: &Transaction,
    tree: TreeId,
    kinds: &[Kind],
    changes: BTreeMap<RowId, Changed<T>>,
    push: impl Fn(&T, &mut [Column]),
) -> Result<()> {
    let empty = || -> Vec<Column> { kinds.iter().map(|k| Column::with_capacity(*k, 0)).collect() };
    let layout = RowLayout::new(kinds.to_vec());
    let (mut ids, mut columns) = (Vec::new(), empty());
    for (row, changed) in changes {
        if changed.fresh {
            push(&changed.value, &mut columns);
            ids.push(row);
        } else {
            let mut one = empty();
            push(&changed.value, &mut one);
            engine.update(tree, row, &layout.encode_row(&Batch::new(one, 1).row(0)))?;
        }
    }
    let rows = ids.len();
    Ok(engine.bulk(tree).insert_at(&ids, &Batch::new(columns, rows))?)
}
