//! Scans of system relations, whose rows are computed from the catalog, and of sequences.
//!
//! The columns that conditions and join filters read are computed first, for all rows, and the other columns for the rows that
//! pass. The catalog's snapshot does not change in between, so the rows come in the same order both times.

use std::sync::Arc;

use melba_catalog::relations::{self, EqFilter, Request};
use melba_catalog::{Relation, Storage};
use melba_engine::SequenceId;
use melba_types::{BATCH_ROWS, Batch, Bitmap, Column, ColumnData, Datum, DbError, Kind, Result, RowId};

use super::pending::{Pending, batch_of, give};
use super::table_scan::output_row;
use crate::join_filter::JoinFilter;
use crate::{ExecContext, Operator};
use melba_expression::{Expression, filter};
use melba_plan::node::{ScanOutput, SystemScanNode};

/// Up to this many rows are computed whole: reading some columns first pays for more.
const WHOLE_ROWS_MAX: f64 = 100.0;
/// Rows are found by single values as long as these are expected to find no more than this share of them.
const FOUND_SHARE_MAX: f64 = 0.25;

pub(super) struct SystemScanOp {
    id: usize,
    node: Arc<SystemScanNode>,
    kinds: Arc<[Kind]>,
    /// The relation's columns of the outputs; `None` when some are expressions.
    plain: Option<Vec<usize>>,
    /// Rows not yet filtered, and rows that passed, before they are requested.
    rows: Pending,
    passed: Pending,
    is_filtered: bool,
    started: bool,
}

/// The values by which a scan finds rows.
struct Sought {
    filters: Vec<EqFilter>,
    any_of: Option<(usize, Vec<Datum>)>,
    /// Of outputs.
    join_filters: Vec<(usize, Arc<JoinFilter>)>,
    /// About how many rows these find.
    rows: f64,
}

impl Sought {
    fn request<'a>(&'a self, columns: &'a [usize], rows: Option<&'a Bitmap>) -> Request<'a> {
        let any_of = self.any_of.as_ref().map(|(column, values)| (*column, &values[..]));
        Request { filters: &self.filters, any_of, rows, columns }
    }
}

impl SystemScanOp {
    pub fn new(id: usize, node: Arc<SystemScanNode>, kinds: Arc<[Kind]>) -> SystemScanOp {
        let place = |output: &ScanOutput| if let ScanOutput::Column(place) = output { Some(*place) } else { None };
        let plain = node.outputs.iter().map(place).collect();
        let (rows, passed) = (Pending::default(), Pending::default());
        SystemScanOp { id, node, kinds, plain, rows, passed, is_filtered: false, started: false }
    }

    fn open(&mut self, ctx: &ExecContext) -> Result<Batch> {
        self.is_filtered = false;
        let Some(relation) = ctx.catalog().relation(self.node.relation) else {
            return Err(DbError::internal(format!("system relation {} does not exist", self.node.relation)));
        };
        let Some(sought) = self.sought(ctx, relation)? else { return Ok(batch_of(&self.kinds, &[])) };
        if let Storage::Sequence(id) = relation.storage {
            return self.sequence(ctx, SequenceId(id.0), &sought.filters);
        }
        let read = |request: Request<'_>| relations::rows(relation, ctx.catalog(), ctx.session.live_info(), &request);
        let Some(places) = &self.plain else {
            let all: Vec<usize> = (0..self.node.column_kinds.len()).collect();
            let batch = read(sought.request(&all, None))?;
            let shown = (0..batch.rows).map(|i| output_row(ctx, &self.node.outputs, &batch.row(i), RowId(0)));
            return Ok(batch_of(&self.kinds, &shown.collect::<Result<Vec<_>>>()?));
        };
        let first = self.read_first(&sought);
        let is_whole = first.len() == places.len() || (sought.rows <= WHOLE_ROWS_MAX && sought.join_filters.is_empty());
        if first.is_empty()
            || is_whole
            || !relations::is_of_snapshot(relation)
            || self.node.filter.iter().any(Expression::is_volatile)
        {
            return read(sought.request(places, None));
        }
        let of = |outputs: &[usize]| outputs.iter().map(|output| places[*output]).collect::<Vec<usize>>();
        let Batch { columns, rows } = read(sought.request(&of(&first), None))?;
        let mut known = self.spread(&first, columns);
        let (passing, kept) = self.passing(ctx, &Batch { columns: known.clone(), rows }, &sought)?;
        self.is_filtered = true;
        let rest: Vec<usize> = (0..places.len()).filter(|output| !first.contains(output)).collect();
        let others = read(sought.request(&of(&rest), Some(&kept)))?;
        first.iter().for_each(|output| known[*output] = known[*output].take(&passing));
        rest.iter().zip(others.columns).for_each(|(output, column)| known[*output] = column);
        Ok(Batch { columns: known, rows: passing.len() })
    }

    /// `None`: a value is NULL, so there are no rows.
    fn sought(&self, ctx: &ExecContext, relation: &Relation) -> Result<Option<Sought>> {
        let per_value = |column| relations::rows_per_value(relation, column, ctx.catalog());
        let all = relations::rows_estimate(relation, ctx.catalog());
        let mut sought = Sought { filters: Vec::new(), any_of: None, join_filters: Vec::new(), rows: all };
        for (column, value) in &self.node.equal {
            let value = value.eval_row(ctx, &[])?;
            if value.is_null() {
                return Ok(None);
            }
            sought.rows = per_value(*column).unwrap_or(all).min(sought.rows);
            sought.filters.push(EqFilter { column: *column, value });
        }
        let is_better = |rows: f64, sought: &Sought| rows < sought.rows && rows <= all * FOUND_SHARE_MAX;
        for (column, list) in &self.node.any_of {
            let values = distinct_elements(list.eval_row(ctx, &[])?);
            let rows = values.len() as f64 * per_value(*column).unwrap_or(all);
            if is_better(rows, &sought) {
                (sought.any_of, sought.rows) = (Some((*column, values)), rows);
            }
        }
        for (output, number) in &self.node.join_filters {
            let Some(filter) = ctx.join_filter(*number) else { continue };
            if let ScanOutput::Column(column) = self.node.outputs[*output]
                && self.node.column_kinds[column] == Kind::Oid
                && let Some(of_one) = per_value(column)
                && is_better(filter.count() as f64 * of_one, &sought)
            {
                let values = filter.keys().filter_map(|key| u32::try_from(key).ok()).map(Datum::Oid).collect();
                (sought.any_of, sought.rows) = (Some((column, values)), filter.count() as f64 * of_one);
            }
            sought.join_filters.push((*output, filter));
        }
        Ok(Some(sought))
    }

    /// The outputs that conditions and join filters read.
    fn read_first(&self, sought: &Sought) -> Vec<usize> {
        let mut first: Vec<usize> = sought.join_filters.iter().map(|(output, _)| *output).collect();
        self.node.filter.iter().for_each(|condition| condition.columns(&mut first));
        first.sort_unstable();
        first.dedup();
        first
    }

    /// Columns at the places of outputs, between columns that no caller may read.
    fn spread(&self, outputs: &[usize], columns: Vec<Column>) -> Vec<Column> {
        let mut all: Vec<Column> = self.kinds.iter().map(|_| Column::new(ColumnData::Bool(Vec::new()))).collect();
        outputs.iter().zip(columns).for_each(|(output, column)| all[*output] = column);
        all
    }

    /// The rows that pass, as a list and as bits.
    fn passing(&self, ctx: &ExecContext, batch: &Batch, sought: &Sought) -> Result<(Vec<u32>, Bitmap)> {
        let first = self.read_first(sought);
        let mut passing = Vec::new();
        for from in (0..batch.rows).step_by(BATCH_ROWS) {
            ctx.check_interrupt()?;
            let mut rows: Vec<u32> = (from as u32..(from + BATCH_ROWS).min(batch.rows) as u32).collect();
            // Conditions are checked before join filters, so that their errors are still raised.
            if !self.node.filter.is_empty() {
                let columns = first.iter().map(|output| batch.columns[*output].take(&rows)).collect();
                let part = Batch { columns: self.spread(&first, columns), rows: rows.len() };
                if let Some(kept) = filter(&self.node.filter, ctx, &part)? {
                    ctx.note_removed(self.id, part.rows, kept.len());
                    rows = kept.iter().map(|at| rows[*at as usize]).collect();
                }
            }
            for (output, filter) in &sought.join_filters {
                filter.retain(&batch.columns[*output], &mut rows);
            }
            passing.extend(rows);
        }
        let mut kept = Bitmap::filled(batch.rows, false);
        passing.iter().for_each(|row| kept.set(*row as usize, true));
        Ok((passing, kept))
    }

    /// last_value, log_cnt, is_called. The log has a sequence's values ahead of time, but by a number that is never shown.
    fn sequence(&self, ctx: &ExecContext, id: SequenceId, filters: &[EqFilter]) -> Result<Batch> {
        let state = ctx.transaction().sequence_state(id)?;
        let row = vec![Datum::Int8(state.last_value), Datum::Int8(0), Datum::Bool(state.is_called)];
        let holds = |f: &EqFilter| matches!((&row[f.column], &f.value), (Datum::Bool(a), Datum::Bool(b)) if a == b);
        let shown = output_row(ctx, &self.node.outputs, &row, RowId(0))?;
        Ok(batch_of(&self.kinds, if filters.iter().all(holds) { std::slice::from_ref(&shown) } else { &[] }))
    }
}

/// The distinct values in an array of OIDs or texts, in ascending order. NULL equals nothing.
fn distinct_elements(array: Datum) -> Vec<Datum> {
    let Datum::Array(array) = array else { return Vec::new() };
    let mut values: Vec<Datum> = array.elements.iter().filter(|e| !e.is_null()).cloned().collect();
    let order = |a: &Datum, b: &Datum| match (a, b) {
        (Datum::Text(a), Datum::Text(b)) => a.cmp(b),
        _ => a.as_oid().cmp(&b.as_oid()),
    };
    values.sort_unstable_by(order);
    values.dedup_by(|a, b| order(a, b).is_eq());
    values
}

impl Operator for SystemScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if !self.started {
            self.started = true;
            let batch = self.open(ctx)?;
            if self.is_filtered { self.passed.put(batch) } else { self.rows.put(batch) }
        }
        if let Some(batch) = self.passed.take(limit) {
            return Ok(Some(batch));
        }
        while let Some(mut batch) = self.rows.take(BATCH_ROWS) {
            ctx.check_interrupt()?;
            if let Some(kept) = filter(&self.node.filter, ctx, &batch)? {
                ctx.note_removed(self.id, batch.rows, kept.len());
                batch = batch.take(&kept);
            }
            if batch.rows > 0 {
                return Ok(give(&mut self.passed, batch, limit));
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.started = false;
        self.rows.clear();
        self.passed.clear();
        Ok(())
    }
}
