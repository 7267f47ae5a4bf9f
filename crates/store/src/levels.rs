//! The places of a tree's committed versions: the active memory table, a frozen one being flushed, and segments.
//!
//! Invariant: of two versions of one key, the newer is in the same level or one further to the front. Levels are replaced as
//! a whole; a reader keeps those it found.

use std::borrow::Borrow;
use std::ops::Deref;
use std::sync::Arc;

use melba_segment::{KeySegmentReader, Position, TableSegmentReader};
use melba_threads::atomic::Ordering;
use melba_types::row::{RowLayout, RowView};
use melba_types::{Column, Csn, Datum, RowId};

use crate::RowBytes;
use crate::chain::Payload;
use crate::error::{EngineError, Result};
use crate::files::{IndexRun, Run, TableRun};
use crate::key::KeyBytes;
use crate::memory_table::MemTable;
use crate::swap::{Reading, Swap};

/// The place of runs that replace others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Where the first of those was.
    First,
    /// Behind all others.
    Bottom,
}

/// All levels of a tree, front to back.
pub struct Levels<K, V, R> {
    pub active: Arc<MemTable<K, V>>,
    pub frozen: Option<Arc<MemTable<K, V>>>,
    /// Newest first.
    pub runs: Arc<[Arc<Run<R>>]>,
}

pub type TableLevels = Levels<RowId, Option<RowBytes>, TableSegmentReader>;
pub type IndexLevels = Levels<KeyBytes, bool, KeySegmentReader>;

impl<K: Ord, V: Payload, R> Default for Levels<K, V, R> {
    fn default() -> Levels<K, V, R> {
        Levels { active: MemTable::new(), frozen: None, runs: Arc::new([]) }
    }
}

impl<K: Ord, V: Payload, R> Levels<K, V, R> {
    /// The memory tables, front to back.
    pub fn memory(&self) -> impl Iterator<Item = &Arc<MemTable<K, V>>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }

    /// The same without those that never had a key.
    pub fn used_memory(&self) -> impl Iterator<Item = &Arc<MemTable<K, V>>> {
        self.memory().filter(|table| !table.is_empty())
    }

    pub fn memory_bytes(&self) -> u64 {
        self.memory().map(|m| m.bytes.load(Ordering::Relaxed)).sum()
    }

    /// The version of a key in memory that a snapshot at `csn` sees; a tombstone counts.
    #[inline]
    pub fn version_in_memory<Q>(&self, key: &Q, csn: Csn) -> Option<(Csn, V)>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        match self.active.version(key, csn) {
            None => self.frozen.as_ref().and_then(|f| f.version(key, csn)),
            found => found,
        }
    }

    /// Puts runs in front of the others.
    pub fn add_runs(&mut self, added: impl IntoIterator<Item = Arc<Run<R>>>) {
        self.runs = added.into_iter().chain(self.runs.iter().cloned()).collect();
    }

    /// Removes the obsolete runs `removed`, and adds `added`. Returns the former runs, to be dropped when the levels are
    /// unlocked, because closing segments takes time.
    #[must_use]
    pub fn replace_runs(&mut self, removed: &[u64], added: &[Arc<Run<R>>], place: Place) -> Arc<[Arc<Run<R>>]> {
        let mut runs = self.runs.to_vec();
        let is_removed = |r: &Arc<Run<R>>| removed.contains(&r.segment.file);
        let first = runs.iter().position(is_removed).unwrap_or(0);
        runs.retain(|r| {
            let gone = is_removed(r);
            if gone {
                r.discard();
            }
            !gone
        });
        let at = if place == Place::First { first } else { runs.len() };
        runs.splice(at..at, added.iter().cloned());
        std::mem::replace(&mut self.runs, runs.into())
    }
}

impl TableLevels {
    /// Whether nothing below the active table can have a row.
    pub fn is_bottom(&self, id: RowId) -> bool {
        self.frozen.is_none() && !may_have_row(&self.runs, id)
    }
}

impl IndexLevels {
    /// Whether nothing below the active table can have an entry.
    pub fn is_bottom(&self, key: &[u8]) -> bool {
        self.frozen.is_none() && !may_have_key(&self.runs, key)
    }
}

/// Whether some segment may have versions of a row.
pub fn may_have_row(runs: &[Arc<TableRun>], id: RowId) -> bool {
    runs.iter().any(|r| {
        let meta = r.reader.meta();
        meta.row_id_min <= id && id <= meta.row_id_max
    })
}

/// Whether some segment may have versions of an entry.
pub fn may_have_key(runs: &[Arc<IndexRun>], key: &[u8]) -> bool {
    runs.iter().any(|r| {
        let meta = r.reader.meta();
        meta.key_min.as_slice() <= key && key <= meta.key_max.as_slice()
    })
}

impl<K, V, R> Clone for Levels<K, V, R> {
    fn clone(&self) -> Levels<K, V, R> {
        Levels { active: Arc::clone(&self.active), frozen: self.frozen.clone(), runs: Arc::clone(&self.runs) }
    }
}

/// A row's version, wherever it is.
pub enum Found {
    Memory(Option<RowBytes>),
    Stored(RunRef, Position),
    Deleted,
}

/// A table's segment in use for a moment.
pub enum RunRef {
    /// One of its levels'.
    Of(Reading<TableLevels>, usize),
    /// One of a transaction's own.
    Own(Arc<TableRun>),
}

impl Deref for RunRef {
    type Target = TableRun;

    #[inline]
    fn deref(&self) -> &TableRun {
        match self {
            RunRef::Of(levels, at) => &levels.runs[*at],
            RunRef::Own(run) => run,
        }
    }
}

/// The version of a row that a snapshot at `csn` sees.
pub fn see_row(levels: &Swap<TableLevels>, id: RowId, csn: Csn) -> Result<Option<Found>> {
    let levels = levels.read();
    if let Some((_, row)) = levels.version_in_memory(&id, csn) {
        return Ok(Some(Found::Memory(row)));
    }
    let place = place_in_runs(&levels.runs, id, csn)?;
    Ok(place.map(|(at, position, tombstone)| found_at(RunRef::Of(levels, at), position, tombstone)))
}

/// The same, and which commit made it.
pub fn find_row(levels: &Swap<TableLevels>, id: RowId, csn: Csn) -> Result<Option<(Csn, Found)>> {
    let levels = levels.read();
    if let Some((csn, row)) = levels.version_in_memory(&id, csn) {
        return Ok(Some((csn, Found::Memory(row))));
    }
    for (at, run) in levels.runs.iter().enumerate().filter(|(_, r)| may_see(r, id, csn)) {
        if let Some(version) = run.reader.find(id, csn)? {
            return Ok(Some((version.csn, found_at(RunRef::Of(levels, at), version.position, version.tombstone))));
        }
    }
    Ok(None)
}

fn found_at(run: RunRef, position: Position, tombstone: bool) -> Found {
    if tombstone { Found::Deleted } else { Found::Stored(run, position) }
}

fn may_see(run: &TableRun, id: RowId, csn: Csn) -> bool {
    let meta = run.reader.meta();
    meta.row_id_min <= id && id <= meta.row_id_max && meta.csn_min <= csn
}

/// The version among a transaction's own segments that a view sees.
pub fn see_in_own(runs: &[Arc<TableRun>], id: RowId, csn: Csn) -> Result<Option<Found>> {
    let place = place_in_runs(runs, id, csn)?;
    Ok(place.map(|(at, position, tombstone)| found_at(RunRef::Own(Arc::clone(&runs[at])), position, tombstone)))
}

/// The same as a place in one of the segments, which is given by its number, and whether it is a tombstone.
pub fn place_in_runs(runs: &[Arc<TableRun>], id: RowId, csn: Csn) -> Result<Option<(usize, Position, bool)>> {
    for (at, run) in runs.iter().enumerate().filter(|(_, r)| may_see(r, id, csn)) {
        if let Some((position, tombstone)) = run.reader.see(id, csn)? {
            return Ok(Some((at, position, tombstone)));
        }
    }
    Ok(None)
}

/// Appends the projected values of rows of a segment.
pub fn push_stored(
    run: &TableRun,
    positions: &[Position],
    projection: &[usize],
    missing: &[Datum],
    columns: &mut [Column],
) -> Result<()> {
    run.reader.read_rows(positions, projection, columns)?;
    let stored = run.reader.kinds().len();
    for (&c, column) in projection.iter().zip(columns).filter(|(c, _)| **c >= stored) {
        positions.iter().for_each(|_| column.push(missing.get(c).cloned().unwrap_or(Datum::Null)));
    }
    Ok(())
}

impl Found {
    /// The row in row format.
    pub fn into_row(self, layout: &RowLayout) -> Result<Option<RowBytes>> {
        match self {
            Found::Memory(row) => Ok(row),
            Found::Deleted => Ok(None),
            Found::Stored(run, position) => {
                let kinds = run.reader.kinds();
                let projection: Vec<usize> = (0..kinds.len()).collect();
                let mut columns: Vec<Column> = kinds.iter().map(|k| Column::with_capacity(*k, 1)).collect();
                run.reader.read_row(position, &projection, &mut columns)?;
                let values: Vec<Datum> = columns.iter().map(|c| c.get(0)).collect();
                Ok(Some(layout.encode_row(&values).into()))
            }
        }
    }

    /// Appends the projected values; false when the row is deleted.
    pub fn push_to(self, layout: &RowLayout, projection: &[usize], missing: &[Datum], columns: &mut [Column]) -> Result<bool> {
        match self {
            Found::Memory(None) | Found::Deleted => return Ok(false),
            Found::Memory(Some(row)) => push_row(layout, &row, projection, missing, columns)?,
            Found::Stored(run, position) => push_stored(&run, &[position], projection, missing, columns)?,
        }
        Ok(true)
    }
}

/// The values of a row in row format.
pub fn view_of<'a>(layout: &'a RowLayout, row: &'a [u8]) -> Result<RowView<'a>> {
    layout.view(row).ok_or_else(|| EngineError::Corrupt { what: "a stored row is malformed".into() })
}

/// Appends a row's projected values.
pub fn push_row(layout: &RowLayout, row: &[u8], projection: &[usize], missing: &[Datum], columns: &mut [Column]) -> Result<()> {
    let view = view_of(layout, row)?;
    for (&c, column) in projection.iter().zip(columns) {
        view.push_to(c, missing.get(c).unwrap_or(&Datum::Null), column);
    }
    Ok(())
}

/// Empty columns of the projected kinds.
pub fn empty_columns(layout: &RowLayout, projection: &[usize], rows: usize) -> Result<Vec<Column>> {
    projection
        .iter()
        .map(|&c| {
            let kind = layout.kinds().get(c).ok_or(EngineError::Misuse("a projection beyond the table's columns"))?;
            Ok(Column::with_capacity(*kind, rows))
        })
        .collect()
}
