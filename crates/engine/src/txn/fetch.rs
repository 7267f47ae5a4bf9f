//! Rows by id as columns.
//!
//! Ids as an index returns them often follow each other, and their rows are then in one memory table or one segment: whole runs
//! of them are read without a search of every level for each.

use std::sync::Arc;

use melba_segment::Position;
use melba_store::{
    Chain, Found, MemTable, Result, RowBytes, TableLevels, TableRun, empty_columns, place_in_runs, push_row, push_stored, view_of,
};
use melba_types::row::RowLayout;
use melba_types::{Column, Csn, Datum, RowId, TreeId};

use super::{Transaction, announce};
use crate::serializable::Read;
use crate::view::ReadView;

/// The rows read so far.
struct Fetched<'a> {
    layout: &'a RowLayout,
    ids: &'a [RowId],
    csn: Csn,
    projection: &'a [usize],
    missing: &'a [Datum],
    /// Positions of the rows that there are.
    kept: Vec<u32>,
    columns: Vec<Column>,
    /// The next id.
    at: usize,
}

impl Transaction {
    /// One row by id as columns of one value, as `fetch`; `None` when the view does not see it.
    pub fn fetch_row(
        &self,
        view: ReadView,
        tree: TreeId,
        id: RowId,
        projection: &[usize],
        missing: &[Datum],
    ) -> Result<Option<Vec<Column>>> {
        let tree = self.tree(tree)?;
        if announce::tracks(self, view) {
            announce::reads(self, std::iter::once(Read::Row(tree.id, id)))?;
        }
        let Some(found) = self.find(view, &tree, id)? else { return Ok(None) };
        let layout = self.layout_of(&tree)?;
        let mut columns = empty_columns(&layout, projection, 1)?;
        Ok(found.push_to(&layout, projection, missing, &mut columns)?.then_some(columns))
    }

    /// One row by id: appends its projected values, as `fetch`; false when the view does not see it.
    pub fn fetch_values(
        &self,
        view: ReadView,
        tree: TreeId,
        id: RowId,
        projection: &[usize],
        missing: &[Datum],
        out: &mut Vec<Datum>,
    ) -> Result<bool> {
        let tree = self.tree(tree)?;
        if announce::tracks(self, view) {
            announce::reads(self, std::iter::once(Read::Row(tree.id, id)))?;
        }
        let Some(found) = self.find(view, &tree, id)? else { return Ok(false) };
        let layout = self.layout_of(&tree)?;
        if let Found::Memory(Some(row)) = &found {
            let row = view_of(&layout, row)?;
            out.extend(projection.iter().map(|&c| row.datum(c, missing.get(c).unwrap_or(&Datum::Null))));
            return Ok(true);
        }
        let mut columns = empty_columns(&layout, projection, 1)?;
        let is_there = found.push_to(&layout, projection, missing, &mut columns)?;
        if is_there {
            out.extend(columns.iter().map(|column| column.get(0)));
        }
        Ok(is_there)
    }

    /// Rows by id as columns: `projection` names columns of the layout; `missing` has, by column number, the values of columns
    /// that are newer than a row (those beyond its end are null). Returns the positions in `ids` of the rows that the view
    /// sees, and their columns.
    pub fn fetch(
        &self,
        view: ReadView,
        tree: TreeId,
        ids: &[RowId],
        projection: &[usize],
        missing: &[Datum],
    ) -> Result<(Vec<u32>, Vec<Column>)> {
        let tree = self.tree(tree)?;
        let layout = self.layout_of(&tree)?;
        if announce::tracks(self, view) {
            announce::reads(self, ids.iter().map(|id| Read::Row(tree.id, *id)))?;
        }
        let columns = empty_columns(&layout, projection, ids.len())?;
        let kept = Vec::with_capacity(ids.len());
        let mut out = Fetched { layout: &layout, ids, csn: view.csn, projection, missing, kept, columns, at: 0 };
        let may_be_own = self.has_writes() && self.state().writes.knows(tree.id);
        let levels = (ids.len() > 1 && !may_be_own).then(|| tree.require_table().map(|t| t.levels.read())).transpose()?;
        while out.at < ids.len() {
            if let Some(levels) = &levels {
                out.take_from_memory(&levels.active)?;
                out.take_from_segments(levels)?;
            }
            let Some(id) = ids.get(out.at) else { break };
            if let Some(found) = self.find(view, &tree, *id)?
                && found.push_to(&layout, projection, missing, &mut out.columns)?
            {
                out.kept.push(out.at as u32);
            }
            out.at += 1;
        }
        Ok((out.kept, out.columns))
    }
}

/// Rows of one segment whose ids follow each other without gaps: the place of one gives those of the others.
#[derive(Default)]
struct Dense {
    first: RowId,
    position: Position,
    /// Before `first`: there are none.
    last: RowId,
}

impl Dense {
    /// The rows from `id` on, which is at `position` of `run`, up to where newer segments may know better.
    fn from(runs: &[Arc<TableRun>], run: &Arc<TableRun>, id: RowId, position: Position, csn: Csn) -> Dense {
        let Some(mut last) = run.reader.dense_until(position, csn) else { return Dense::default() };
        for newer in runs.iter().take_while(|newer| !Arc::ptr_eq(newer, run)) {
            let meta = newer.reader.meta();
            if meta.row_id_max >= id {
                last = last.min(RowId(meta.row_id_min.0.saturating_sub(1)));
            }
        }
        Dense { first: id, position, last }
    }

    #[inline]
    fn position(&self, id: RowId) -> Option<Position> {
        let within = self.first < id && id <= self.last;
        within.then(|| Position { row: self.position.row + (id.0 - self.first.0) as u32, ..self.position })
    }
}

impl Fetched<'_> {
    /// Takes rows from a memory table, as long as it knows the ids. Ids in order cost a step and not a search.
    fn take_from_memory(&mut self, table: &MemTable<RowId, Option<RowBytes>>) -> Result<()> {
        /// Commits wait meanwhile.
        const ROWS_MAX: usize = 64;
        if table.is_empty() {
            return Ok(());
        }
        let map = table.map.read();
        let mut rest = map.range(RowId(u64::MAX)..);
        for id in self.ids[self.at..].iter().take(ROWS_MAX) {
            let chain = match rest.next() {
                Some((next, chain)) if next == id => chain,
                _ => {
                    rest = map.range(*id..);
                    match rest.next() {
                        Some((next, chain)) if next == id => chain,
                        _ => return Ok(()),
                    }
                }
            };
            match chain.visible(self.csn) {
                Some(Chain { value: Some(row), .. }) => {
                    push_row(self.layout, row, self.projection, self.missing, &mut self.columns)?;
                    self.kept.push(self.at as u32);
                }
                Some(_) => {}
                None => return Ok(()),
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Takes rows from segments, as long as the ids ascend and no memory table knows one.
    fn take_from_segments(&mut self, levels: &TableLevels) -> Result<()> {
        let Some(first) = self.ids.get(self.at) else { return Ok(()) };
        let known = levels.used_memory().filter_map(|table| table.map.read().range(*first..).next().map(|(id, _)| *id)).min();
        let mut before = None;
        let mut run: Option<&Arc<TableRun>> = None;
        let mut dense = Dense::default();
        let mut positions = Vec::with_capacity(self.ids.len() - self.at);
        for id in &self.ids[self.at..] {
            if known.is_some_and(|known| *id >= known) || before.replace(*id).is_some_and(|before| before >= *id) {
                break;
            }
            if let Some(position) = dense.position(*id) {
                positions.push(position);
                self.kept.push(self.at as u32);
            } else if let Some((at, position, false)) = place_in_runs(&levels.runs, *id, self.csn)? {
                let found = &levels.runs[at];
                if run.is_some_and(|run| !Arc::ptr_eq(run, found)) {
                    self.push_stored(run, &mut positions)?;
                }
                run = Some(found);
                dense = Dense::from(&levels.runs, found, *id, position, self.csn);
                positions.push(position);
                self.kept.push(self.at as u32);
            }
            self.at += 1;
        }
        self.push_stored(run, &mut positions)
    }

    fn push_stored(&mut self, run: Option<&Arc<TableRun>>, positions: &mut Vec<Position>) -> Result<()> {
        if let Some(run) = run {
            push_stored(run, positions, self.projection, self.missing, &mut self.columns)?;
            positions.clear();
        }
        Ok(())
    }
}
