//! The scan of a table tree: first the rows in memory, then segment by segment the rows that memory and newer segments do not replace.

use std::sync::Arc;

use melba_segment::{Coded, GroupReader, ZoneOp};
use melba_store::{EngineError, Result, RowBytes, TableLevels, TableRun, Tree, empty_columns, push_row};
use melba_threads::Guard;
use melba_threads::atomic::Ordering;
use melba_types::row::RowLayout;
use melba_types::{BATCH_ROWS, Column, Csn, Datum, RowId, TreeId};

use super::mask::{MemoryMask, RunMask};
use super::piece::{Places, ScanPiece};
use super::{Morsel, ZonePredicate};
use crate::serializable::Read;
use crate::txn::{OwnView, Transaction, announce};
use crate::view::ReadView;

/// Rows taken from memory at a time, under one lock.
const MEMORY_BATCH_ROWS: usize = 1024;
/// Rows of a row group processed at a time: operators take them without dividing them.
const PIECE_ROWS: usize = BATCH_ROWS;

/// Some rows: their ids and the projected columns.
#[derive(Clone, Debug)]
pub struct ScanBatch {
    pub row_ids: Vec<RowId>,
    pub columns: Vec<Column>,
}

/// A scan in progress.
pub struct TableScan {
    own: OwnView,
    view: ReadView,
    tree: Arc<Tree>,
    layout: Arc<RowLayout>,
    pub(super) projection: Vec<usize>,
    missing: Vec<Datum>,
    predicates: Vec<ZonePredicate>,
    /// How many of them it was opened with.
    own_predicates: usize,
    comparisons: Vec<Comparisons>,
    /// By predicate: whether all rows of the last piece are known to satisfy it.
    satisfied: Vec<bool>,
    /// See `take_left_out`.
    left_out: usize,
    levels: Arc<TableLevels>,
    morsel: Morsel,
    memory: MemoryCursor,
    /// Private segments of this transaction, then the tree's, newest first.
    runs: Vec<Arc<TableRun>>,
    /// How many of them are private: those are newer than the memory tables.
    private: usize,
    /// The rows of memory tables that private segments replace.
    private_masks: Vec<RunMask>,
    segments: SegmentCursor,
}

/// The predicates about one column of the projection that a row's own value satisfies or not.
struct Comparisons {
    /// Of the projection.
    column: usize,
    values: Vec<(ZoneOp, Datum)>,
    /// Their numbers among the predicates.
    numbers: Vec<usize>,
    /// NULL satisfies one of them.
    or_null: bool,
}

impl Comparisons {
    fn of(predicates: &[ZonePredicate], projection: &[usize]) -> Vec<Comparisons> {
        let mut all: Vec<Comparisons> = Vec::new();
        for (number, predicate) in predicates.iter().enumerate() {
            let column = projection.iter().position(|column| *column == predicate.column);
            let (Some(column), [value]) = (column, &predicate.values[..]) else { continue };
            let at = all.iter().position(|of| of.column == column).unwrap_or_else(|| {
                all.push(Comparisons { column, values: vec![], numbers: vec![], or_null: false });
                all.len() - 1
            });
            all[at].values.push((predicate.op, value.clone()));
            all[at].numbers.push(number);
            all[at].or_null |= predicate.or_null;
        }
        all
    }
}

/// Rows of one source: id and, unless deleted, bytes.
type Rows = Vec<(RowId, Option<RowBytes>)>;

/// Walks the own changes and the memory tables, merged.
struct MemoryCursor {
    next: RowId,
    done: bool,
    /// Own changes, active, frozen.
    sources: [Rows; 3],
}

/// Walks the segments: which run, row group, and row in it.
#[derive(Default)]
struct SegmentCursor {
    run: usize,
    group: usize,
    row: usize,
    /// Of the row group that the last piece was of.
    reader: Option<(usize, usize, GroupReader)>,
    /// The row whose newest visible version has been found; its older versions are not needed.
    decided: Option<RowId>,
    /// A run and a row group, and whether all of its rows are wanted.
    untouched: Option<(usize, usize, bool)>,
    memory: MemoryMask,
    masks: Vec<RunMask>,
}

impl Transaction {
    /// All rows that a view sees, as batches of columns; `projection` and `missing` as for `fetch`. The predicates only let
    /// the scan leave out rows that cannot satisfy them; it may return others too. `morsel` limits it to a part of the table.
    pub fn scan(
        self: &Arc<Self>,
        view: ReadView,
        tree: TreeId,
        projection: &[usize],
        missing: &[Datum],
        predicates: &[ZonePredicate],
        morsel: Option<Morsel>,
    ) -> Result<TableScan> {
        let tree = self.tree(tree)?;
        tree.require_table()?;
        if announce::tracks(self, view) {
            announce::reads(self, std::iter::once(Read::Table(tree.id)))?;
        }
        let layout = self.layout_of(&tree)?;
        TableScan::open(Arc::clone(self), view, &tree, Guard::into_inner(layout), projection, missing, predicates, morsel)
    }

    /// Parts of a table of about equal size, at most `parts`, that together are all of it.
    pub fn morsels(&self, tree: TreeId, parts: usize) -> Result<Vec<Morsel>> {
        let tree = self.tree(tree)?;
        let table = tree.require_table()?;
        let levels = table.levels.read();
        let groups = || levels.runs.iter().flat_map(|run| run.reader.row_groups());
        let mut starts: Vec<u64> = groups().map(|group| group.row_id_min.0).collect();
        starts.sort_unstable();
        let last = groups().map(|group| group.row_id_max.0.saturating_add(1)).max().unwrap_or(0);
        Ok(Morsel::split(table.next_row.load(Ordering::Relaxed), &starts, last, parts))
    }
}

impl TableScan {
    #[expect(clippy::too_many_arguments, reason = "the parts of one scan, named by its only caller")]
    pub(crate) fn open(
        txn: Arc<Transaction>,
        view: ReadView,
        tree: &Arc<Tree>,
        layout: Arc<RowLayout>,
        projection: &[usize],
        missing: &[Datum],
        predicates: &[ZonePredicate],
        morsel: Option<Morsel>,
    ) -> Result<TableScan> {
        txn.check_failure()?;
        let levels = tree.as_table().map(|t| Guard::into_inner(t.levels.read()));
        let levels = levels.ok_or(EngineError::Misuse("not a table tree"))?;
        empty_columns(&layout, projection, 0)?;
        let morsel = morsel.unwrap_or(Morsel::ALL);
        let mut own = OwnView::new(txn, view);
        own.look();
        let mut runs = own.txn.private_tables(view, tree.id);
        let in_range = |r: &Arc<TableRun>| {
            let meta = r.reader.meta();
            meta.csn_min <= view.csn && meta.row_id_min < morsel.to && meta.row_id_max >= morsel.from
        };
        runs.retain(in_range);
        let private = runs.len();
        runs.extend(levels.runs.iter().filter(|r| in_range(r)).cloned());
        Ok(TableScan {
            memory: MemoryCursor { next: morsel.from, done: false, sources: Default::default() },
            segments: SegmentCursor::default(),
            projection: projection.to_vec(),
            missing: missing.to_vec(),
            predicates: predicates.to_vec(),
            own_predicates: predicates.len(),
            comparisons: Comparisons::of(predicates, projection),
            satisfied: Vec::new(),
            left_out: 0,
            own,
            view,
            tree: Arc::clone(tree),
            layout,
            levels,
            morsel,
            private_masks: runs[..private].iter().map(|r| RunMask::new(r, view.csn)).collect(),
            private,
            runs,
        })
    }

    /// What the scan reads: the numbers of the segments, and behind them how many rows memory has a version of, tombstones included.
    ///
    /// When it is the same as for an earlier view, and `has_newer` is false for that one's CSN, both views see the same. What a merge
    /// drops makes other segments. A deleted row of which memory forgets everything is counted no more, and no row with an older version
    /// can have come instead.
    pub fn storage(&self) -> Vec<u64> {
        let mut in_memory = 0;
        for table in self.levels.used_memory() {
            in_memory += table.map.read().values().filter(|chain| chain.visible(self.view.csn).is_some()).count() as u64;
        }
        self.runs.iter().map(|run| run.segment.file).chain([in_memory]).collect()
    }

    /// Whether there may be a version, or a tombstone, that is newer than a commit. True for the transaction's own changes.
    pub fn has_newer(&self, csn: Csn) -> bool {
        self.own.txn.has_writes()
            || self.runs.iter().any(|run| run.reader.meta().csn_max > csn)
            || self.levels.used_memory().any(|table| {
                table.map.read().values().any(|chain| chain.visible(self.view.csn).is_some_and(|version| version.csn > csn))
            })
    }

    /// The next rows; never an empty batch.
    #[expect(clippy::should_implement_trait, reason = "fallible")]
    pub fn next(&mut self) -> Result<Option<ScanBatch>> {
        self.next_piece()?.map(ScanPiece::finish).transpose()
    }

    /// The next rows, whose columns are read on demand; never none.
    pub fn next_piece(&mut self) -> Result<Option<ScanPiece<'_>>> {
        self.satisfied.clear();
        if let Some(ScanBatch { row_ids, columns }) = self.memory_rows()? {
            return Ok(Some(ScanPiece::loaded(self, row_ids, columns)));
        }
        while self.segments.run < self.runs.len() {
            let Some((row_ids, places)) = self.segment_rows()? else { continue };
            if let Some((row_ids, places)) = self.satisfying(row_ids, places)? {
                return Ok(Some(ScanPiece::new(self, row_ids, places)));
            }
        }
        Ok(None)
    }

    /// The next rows of memory, as long as there are any.
    fn memory_rows(&mut self) -> Result<Option<ScanBatch>> {
        while !self.memory.done {
            let mut columns = empty_columns(&self.layout, &self.projection, 0)?;
            let mut row_ids = Vec::new();
            for (id, row) in self.memory_batch()? {
                if let Some(row) = row {
                    push_row(&self.layout, &row, &self.projection, &self.missing, &mut columns)?;
                    row_ids.push(id);
                }
            }
            if !row_ids.is_empty() {
                return Ok(Some(ScanBatch { row_ids, columns }));
            }
        }
        Ok(None)
    }

    /// How many rows come next, without reading them; `None` at the end. For scans of no columns.
    pub fn next_count(&mut self) -> Result<Option<usize>> {
        while !self.memory.done {
            let rows = self.memory_batch()?.iter().filter(|(_, row)| row.is_some()).count();
            if rows > 0 {
                return Ok(Some(rows));
            }
        }
        while self.skip_groups()? {
            if let Some(rows) = self.whole_group() {
                return Ok(Some(rows));
            }
            if let Some((_, places)) = self.segment_rows()? {
                return Ok(Some(places.rows()));
            }
        }
        Ok(None)
    }

    /// The next rows of memory; then the row group that comes next, if all of its rows are the view's, and the least and the greatest
    /// value of each projected column are known without reading it: these, as two rows. Beside them, how many rows were passed.
    pub fn next_extremes(&mut self) -> Result<Option<(Vec<Column>, usize)>> {
        if let Some(ScanBatch { row_ids, columns }) = self.memory_rows()? {
            return Ok(Some((columns, row_ids.len())));
        }
        if !self.skip_groups()? {
            return Ok(None);
        }
        let (reader, group) = (&self.runs[self.segments.run].reader, self.segments.group);
        let rows = reader.row_groups()[group].rows as u64;
        let mut columns = Vec::with_capacity(self.projection.len());
        for &column in &self.projection {
            let kind = self.layout.kinds()[column];
            let known = reader.statistics(group, column).and_then(|statistics| statistics.extremes(kind, rows));
            let Some((least, greatest)) = known else { return Ok(None) };
            let mut extremes = Column::with_capacity(kind, 2);
            extremes.push(least);
            extremes.push(greatest);
            columns.push(extremes);
        }
        Ok(self.whole_group().map(|rows| (columns, rows)))
    }

    /// Passes the row group that comes next, if all of its rows are wanted; how many they are.
    fn whole_group(&mut self) -> Option<usize> {
        if self.segments.row > 0 || !self.is_untouched() {
            return None;
        }
        let cursor = &mut self.segments;
        let rows = self.runs[cursor.run].reader.row_groups()[cursor.group].rows;
        (cursor.group, cursor.decided) = (cursor.group + 1, None);
        Some(rows)
    }

    /// Whether the view sees all rows of the row group that the scan is at, and nothing newer replaces any.
    fn is_untouched(&mut self) -> bool {
        let cursor = &mut self.segments;
        if let Some((run, group, is_untouched)) = cursor.untouched
            && (run, group) == (cursor.run, cursor.group)
        {
            return is_untouched;
        }
        let group = &self.runs[cursor.run].reader.row_groups()[cursor.group];
        let (first, last) = (group.row_id_min, group.row_id_max);
        let is_plain = group.unique && group.tombstones == 0 && group.csn_max <= self.view.csn;
        let is_inside = self.morsel.from <= first && last < self.morsel.to;
        let levels = (cursor.run >= self.private).then_some(&*self.levels);
        let is_untouched = is_plain
            && is_inside
            && !self.runs[..cursor.run].iter().any(|run| has_rows(run, first, last))
            && !cursor.memory.has_any(&self.own, &self.tree, levels, first, last);
        cursor.untouched = Some((cursor.run, cursor.group, is_untouched));
        is_untouched
    }

    /// Adds a predicate that excludes rows from now on, beside those of the scan's opening.
    pub fn restrict(&mut self, predicate: ZonePredicate) {
        self.predicates.truncate(self.own_predicates);
        self.predicates.push(predicate);
        self.comparisons = Comparisons::of(&self.predicates, &self.projection);
    }

    /// The rows of a row group that satisfy the predicates, as far as encodings tell without decoding values; `None`: none does.
    fn satisfying(
        &mut self,
        mut row_ids: Option<Vec<RowId>>,
        mut places: Places,
    ) -> Result<Option<(Option<Vec<RowId>>, Places)>> {
        self.satisfied.clear();
        self.satisfied.resize(self.predicates.len(), false);
        let Some((run, group, reader)) = &mut self.segments.reader else { return Ok(Some((row_ids, places))) };
        for of in &self.comparisons {
            let statistics = self.runs[*run].reader.statistics(*group, self.projection[of.column]);
            if of.or_null && statistics.is_none_or(|statistics| statistics.nulls > 0) {
                continue;
            }
            let Some(found) = reader.rows_where(of.column, &places.ranges, &of.values)? else { continue };
            of.numbers.iter().for_each(|number| self.satisfied[*number] = true);
            let kept = places.positions(found);
            self.left_out += places.rows() - kept.len();
            if kept.is_empty() {
                return Ok(None);
            }
            if kept.len() < places.rows() {
                row_ids = row_ids.map(|row_ids| kept.iter().map(|&i| row_ids[i as usize]).collect());
                places = places.take(&kept);
            }
        }
        Ok(Some((row_ids, places)))
    }

    /// How many rows of the row groups that were read do not satisfy the predicates, since this was asked last.
    pub fn take_left_out(&mut self) -> usize {
        std::mem::take(&mut self.left_out)
    }

    /// Whether all rows of the last piece are known to satisfy the n-th predicate.
    pub(super) fn satisfies(&self, predicate: usize) -> bool {
        self.satisfied.get(predicate).is_some_and(|is| *is)
    }

    /// The next rows of memory, tombstones included, newer levels first in right.
    fn memory_batch(&mut self) -> Result<Rows> {
        let cursor = &mut self.memory;
        cursor.sources.iter_mut().for_each(Vec::clear);
        self.own.rows(self.tree.id, cursor.next, MEMORY_BATCH_ROWS, &mut cursor.sources[0]);
        for (table, rows) in self.levels.memory().zip(&mut cursor.sources[1..]) {
            if table.is_empty() {
                continue;
            }
            let map = table.map.read();
            for (id, chain) in map.range(cursor.next..self.morsel.to) {
                if let Some(version) = chain.visible(self.view.csn) {
                    rows.push((*id, version.value.clone()));
                    if rows.len() == MEMORY_BATCH_ROWS {
                        break;
                    }
                }
            }
        }
        // A source that filled its share may have more behind its last row; nothing beyond that is known yet.
        let mut end = self.morsel.to;
        for source in &cursor.sources {
            if source.len() == MEMORY_BATCH_ROWS
                && let Some((last, _)) = source.last()
            {
                end = end.min(RowId(last.0 + 1));
            }
        }
        cursor.done = end == self.morsel.to;
        cursor.next = end;
        let [own, active, frozen] = &cursor.sources;
        let mut committed;
        let mut active = active;
        if !frozen.is_empty() {
            committed = merge(active, frozen, end);
            active = &committed;
        }
        if self.private > 0 {
            let ids: Vec<RowId> = active.iter().map(|(id, _)| *id).collect();
            let mut wanted: Vec<u32> = (0..ids.len() as u32).collect();
            if let (Some(first), Some(last)) = (ids.first(), ids.last()) {
                for mask in &mut self.private_masks {
                    mask.filter(*first, *last, &ids, &mut wanted)?;
                }
            }
            let kept: Rows = wanted.iter().map(|i| active[*i as usize].clone()).collect();
            committed = kept;
            active = &committed;
        }
        Ok(merge(own, active, end))
    }

    /// Goes to the next row group that may have rows for the scan.
    fn skip_groups(&mut self) -> Result<bool> {
        let cursor = &mut self.segments;
        while let Some(run) = self.runs.get(cursor.run) {
            while let Some(group) = run.reader.row_groups().get(cursor.group) {
                let outside = group.row_id_min >= self.morsel.to || group.row_id_max < self.morsel.from;
                let unseen = group.csn_min > self.view.csn;
                let is_begun = cursor.row > 0 && cursor.row < group.rows;
                if is_begun || (cursor.row == 0 && !outside && !unseen && !excluded(&self.predicates, run, cursor.group)?) {
                    return Ok(true);
                }
                (cursor.group, cursor.row, cursor.decided) = (cursor.group + 1, 0, None);
            }
            (cursor.run, cursor.group) = (cursor.run + 1, 0);
            cursor.masks.clear();
        }
        Ok(false)
    }

    /// The next rows of a row group that are visible and not replaced, by place in the group, and their ids as far as these were looked
    /// at; `None` when a piece of it has none.
    fn segment_rows(&mut self) -> Result<Option<(Option<Vec<RowId>>, Places)>> {
        if !self.skip_groups()? {
            return Ok(None);
        }
        let is_untouched = self.is_untouched();
        let run = Arc::clone(&self.runs[self.segments.run]);
        let group = self.segments.group;
        let rows = run.reader.row_groups()[group].rows;
        let range = self.segments.row..(self.segments.row + PIECE_ROWS).min(rows);
        self.segments.row = range.end;
        let mut reader = match self.segments.reader.take() {
            Some((of_run, of_group, reader)) if (of_run, of_group) == (self.segments.run, group) => reader,
            _ => run.reader.group(group, &self.projection),
        };
        if is_untouched {
            self.segments.reader = Some((self.segments.run, group, reader));
            return Ok(Some((None, Places::all(range))));
        }
        let row_ids = reader.row_ids(range.clone())?;
        let wanted = self.wanted(&run, group, &mut reader, &row_ids, range.clone())?;
        self.segments.reader = Some((self.segments.run, group, reader));
        if wanted.is_empty() {
            return Ok(None);
        }
        if wanted.len() == row_ids.len() {
            return Ok(Some((Some(row_ids), Places::all(range))));
        }
        let kept = wanted.iter().map(|&i| row_ids[i as usize]).collect();
        Ok(Some((Some(kept), Places::some(range.start, &wanted))))
    }

    /// Reads a projected column of rows of the group that the last piece is of.
    pub(super) fn read_column(&mut self, index: usize, places: &Places) -> Result<Column> {
        let Some((_, _, reader)) = &mut self.segments.reader else {
            return Err(EngineError::Misuse("a column of rows that are not in a segment"));
        };
        let column = reader.column(index, &places.ranges, places.picks.as_deref())?;
        Ok(column.unwrap_or_else(|| self.missing_column(self.projection[index], places.rows())))
    }

    /// The ids of rows of the group that the last piece is of.
    pub(super) fn read_row_ids(&mut self, places: &Places) -> Result<Vec<RowId>> {
        let Some((_, _, reader)) = &mut self.segments.reader else {
            return Err(EngineError::Misuse("ids of rows that are not in a segment"));
        };
        let mut row_ids = Vec::with_capacity(places.rows());
        for range in &places.ranges {
            row_ids.extend(reader.row_ids(range.clone())?);
        }
        Ok(match &places.picks {
            None => row_ids,
            Some(picks) => picks.iter().map(|&i| row_ids[i as usize]).collect(),
        })
    }

    /// Positions of the rows of the group that the last piece is of whose versions are newer than a commit.
    pub(super) fn newer_places(&mut self, places: &Places, csn: Csn) -> Result<Vec<u32>> {
        let Some((run, group, reader)) = &mut self.segments.reader else {
            return Err(EngineError::Misuse("versions of rows that are not in a segment"));
        };
        if self.runs[*run].reader.row_groups()[*group].csn_max <= csn && *run >= self.private {
            return Ok(Vec::new());
        }
        let mut newer = Vec::with_capacity(places.rows());
        for range in &places.ranges {
            let csns = reader.csns(range.clone())?;
            newer.extend((0..range.len()).map(|row| *run < self.private || csns.get(row) > csn));
        }
        let is_newer = |row: usize| places.picks.as_ref().map_or(newer[row], |picks| newer[picks[row] as usize]);
        Ok((0..places.rows()).filter(|row| is_newer(*row)).map(|row| row as u32).collect())
    }

    /// The same of rows in memory; those that the transaction itself has written are newer than any commit.
    pub(super) fn newer_in_memory(&self, row_ids: &[RowId], csn: Csn) -> Vec<u32> {
        let is_newer = |id: &RowId| {
            let version = self.levels.version_in_memory(id, self.view.csn);
            version.is_none_or(|(of_version, _)| of_version > csn)
        };
        (0..).zip(row_ids).filter(|(_, id)| is_newer(id)).map(|(row, _)| row).collect()
    }

    /// The same by the column's dictionary, if it has one.
    pub(super) fn read_codes(&mut self, index: usize, places: &Places) -> Result<Option<Coded>> {
        let Some((_, _, reader)) = &mut self.segments.reader else { return Ok(None) };
        let Some(mut coded) = reader.coded(index, &places.ranges)? else { return Ok(None) };
        if let Some(picks) = &places.picks {
            coded.codes = picks.iter().map(|&i| coded.codes[i as usize]).collect();
            coded.validity = coded.validity.map(|validity| validity.take(picks));
        }
        Ok(Some(coded))
    }

    fn missing_column(&self, column: usize, rows: usize) -> Column {
        let value = self.missing.get(column).unwrap_or(&Datum::Null);
        let mut out = Column::with_capacity(self.layout.kinds()[column], rows);
        (0..rows).for_each(|_| out.push(value.clone()));
        out
    }

    /// Positions within a piece of the versions that the view sees and no newer level replaces.
    fn wanted(
        &mut self,
        run: &TableRun,
        group: usize,
        reader: &mut GroupReader,
        row_ids: &[RowId],
        range: std::ops::Range<usize>,
    ) -> Result<Vec<u32>> {
        let summary = &run.reader.row_groups()[group];
        let plain = summary.unique && summary.tombstones == 0 && summary.csn_max <= self.view.csn;
        let inside = |id: RowId| self.morsel.from <= id && id < self.morsel.to;
        let mut wanted: Vec<u32> = Vec::with_capacity(row_ids.len());
        if plain {
            // The ids ascend.
            let before = |bound: RowId| row_ids.partition_point(|id| *id < bound) as u32;
            wanted.extend(before(self.morsel.from)..before(self.morsel.to));
        } else {
            let csns = reader.csns(range.clone())?;
            let dead = reader.tombstones(range)?;
            for (i, id) in row_ids.iter().enumerate() {
                if self.segments.decided == Some(*id) || csns.get(i) > self.view.csn {
                    continue;
                }
                self.segments.decided = Some(*id);
                if !dead.as_ref().is_some_and(|d| d.get(i)) && inside(*id) {
                    wanted.push(i as u32);
                }
            }
        }
        let (Some(first), Some(last)) = (row_ids.first().copied(), row_ids.last().copied()) else { return Ok(wanted) };
        let cursor = &mut self.segments;
        let levels = (cursor.run >= self.private).then_some(&*self.levels);
        cursor.memory.load(&self.own, &self.tree, levels, first, last);
        cursor.memory.filter(row_ids, &mut wanted);
        if cursor.masks.is_empty() {
            cursor.masks = self.runs[..cursor.run].iter().map(|r| RunMask::new(r, self.view.csn)).collect();
        }
        for mask in &mut cursor.masks {
            mask.filter(first, last, row_ids, &mut wanted)?;
        }
        Ok(wanted)
    }
}

/// Whether a segment may have versions of rows between two.
fn has_rows(run: &TableRun, first: RowId, last: RowId) -> bool {
    let groups = run.reader.row_groups();
    let from = groups.partition_point(|group| group.row_id_max < first);
    groups.get(from).is_some_and(|group| group.row_id_min <= last)
}

/// Whether one of the predicates leaves a row group out.
fn excluded(predicates: &[ZonePredicate], run: &TableRun, group: usize) -> Result<bool> {
    for predicate in predicates {
        if predicate.excludes(&run.reader, group)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Both lists in order up to `end`; of equal ids the first list's.
fn merge(newer: &Rows, older: &Rows, end: RowId) -> Rows {
    let mut out = Vec::with_capacity(newer.len() + older.len());
    let (mut a, mut b) = (newer.iter().peekable(), older.iter().peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some((x, _)), Some((y, _))) => {
                let own = x <= y;
                if x == y {
                    b.next();
                }
                if own { a.next() } else { b.next() }
            }
            (Some(_), None) => a.next(),
            (None, _) => b.next(),
        };
        match next {
            Some(row) if row.0 < end => out.push(row.clone()),
            _ => return out,
        }
    }
}
