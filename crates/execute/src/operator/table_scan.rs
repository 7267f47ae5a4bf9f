//! Sequential scans of stored tables.

use std::sync::Arc;

use melba_engine::{Morsel, ScanPiece, TableScan, ZoneOp, ZonePredicate};
use melba_expression::{Expression, filter_rows, has_effects};
use melba_types::{BATCH_ROWS, Batch, Column, ColumnData, Csn, Datum, DbError, Kind, Oid, Record, Result, RowId};

use super::entries::Conditions;
use super::note_scan;
use super::partial::passing;
use super::passed::Passed;
use super::pending::{Pending, give, give_scanned};
use crate::join_filter::JoinFilter;
use crate::team::BuiltTables;
use crate::top_filter::TopFilter;
use crate::{ExecContext, Operator};
use melba_plan::node::{ScanOutput, TableScanNode, TableSource};
use melba_plan::pattern;
use melba_plan::row_range::RowIdEnd;
use melba_plan::zone_filter::ZoneForm;

/// Longer lists are not compared with zone maps.
const ZONE_VALUES_MAX: usize = 4096;
/// At most this many keys of a join filter are looked up in the filters of chunks, one by one.
const FILTER_KEYS_MAX: usize = 32;

pub(super) struct TableScanOp {
    id: usize,
    node: Arc<TableScanNode>,
    /// Conditions that are decided before all columns are read; `None`: none are.
    conditions: Option<Conditions>,
    scan: Option<TableScan>,
    filters: Vec<ScanFilter>,
    /// That of a sort above.
    top: Option<Arc<TopFilter>>,
    /// See `TableScanNode::only_counts`.
    counts: bool,
    /// The filter may have side effects: when a few rows are requested, it is evaluated until they are found.
    has_effects: bool,
    /// Rows that were read, and the first that the filter is still to be evaluated for.
    unfiltered: (Batch, usize),
    pending: Pending,
    /// A row after those pending has failed.
    failed: Option<DbError>,
    done: bool,
}

/// A join's filter at work.
struct ScanFilter {
    /// Of the projection.
    column: usize,
    /// `None`: the join has none, or is not built yet.
    filter: Option<Arc<JoinFilter>>,
    passed: Passed,
}

impl ScanFilter {
    fn apply(&mut self, piece: &mut ScanPiece<'_>) -> Result<()> {
        let Some(filter) = &self.filter else { return Ok(()) };
        if self.passed.is_useless() {
            return Ok(());
        }
        piece.load(self.column)?;
        let batch = piece.batch();
        let (rows, Some(passing)) = (batch.rows, filter.passing(&batch.columns[self.column])) else { return Ok(()) };
        self.passed.note(rows, passing.len());
        if passing.len() < rows {
            piece.keep(&passing);
        }
        Ok(())
    }
}

impl TableScanOp {
    pub fn new(id: usize, node: Arc<TableScanNode>) -> TableScanOp {
        let plain = node.source.plain && !node.filter.iter().any(Expression::is_volatile);
        let conditions = plain.then(|| Conditions::new(&node));
        let counts = node.only_counts();
        let filter = |(column, _): &(usize, usize)| ScanFilter { column: *column, filter: None, passed: Passed::default() };
        let filters = node.join_filters.iter().map(filter).collect();
        let has_effects = has_effects(node.filter.iter());
        let (unfiltered, pending) = ((Batch::default(), 0), Pending::default());
        let (scan, top, failed, done) = (None, None, None, false);
        TableScanOp { id, node, conditions, scan, filters, top, counts, has_effects, unfiltered, pending, failed, done }
    }

    /// The next rows that were read already and pass a filter with side effects.
    fn filtered(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        let (batch, at) = &mut self.unfiltered;
        while *at < batch.rows {
            let (kept, next) = filter_rows(&self.node.filter, ctx, batch, *at..batch.rows, limit)?;
            ctx.note_removed(self.id, next - *at, kept.len());
            *at = next;
            if !kept.is_empty() {
                let kept = given(&self.node.source, batch.take(&kept));
                return Ok(give_scanned(&mut self.pending, kept, limit));
            }
        }
        Ok(None)
    }

    /// The next rows of a scan of which no column is read; `None`: there are no more.
    fn give_counted(&mut self, ctx: &ExecContext, rows: Option<usize>, limit: usize) -> Option<Batch> {
        let Some(rows) = rows else {
            self.scan = None;
            self.done = true;
            return None;
        };
        note_scan(ctx, self.node.source.tree, 0, rows);
        give(&mut self.pending, Batch { columns: vec![], rows }, limit)
    }

    /// Opens the scan of the table, or of the part of it that a member of a team works at.
    fn open(&mut self, ctx: &ExecContext) -> Result<TableScan> {
        self.top = self.node.top_filter.and_then(|(_, number)| ctx.top_filter(number));
        let node = &self.node;
        let part = ctx.team().filter(|team| team.divides(node)).and_then(|_| ctx.part());
        let mut zones = Vec::with_capacity(node.zones.len());
        let mut conditions = Vec::with_capacity(node.zones.len());
        for zone in &node.zones {
            let value = zone.value.eval_row(ctx, &[])?;
            if value.is_null() {
                continue;
            }
            let mut is_condition = true;
            let values = match (value, zone.form) {
                (Datum::Array(array), ZoneForm::Array) => array.elements.clone(),
                (Datum::Text(text), ZoneForm::Pattern { regex }) => {
                    is_condition = !regex && pattern::like_only_prefix(&text).is_some();
                    let prefix = if regex { pattern::regex_prefix(&text) } else { pattern::like_prefix(&text) };
                    if prefix.is_empty() {
                        continue;
                    }
                    vec![Datum::text(prefix)]
                }
                (value, _) => vec![value],
            };
            if values.len() <= ZONE_VALUES_MAX {
                zones.push(ZonePredicate { column: zone.column, op: zone.op, values, or_null: false });
                conditions.push(is_condition.then_some(zone.condition));
            }
        }
        self.conditions.iter_mut().for_each(|all| all.open(std::mem::take(&mut conditions)));
        let source = &node.source;
        for (own, (column, number)) in self.filters.iter_mut().zip(&node.join_filters) {
            own.filter = ctx.join_filter(*number);
            if let Some(filter) = &own.filter {
                zones.extend(zones_of(source.projection[*column], source.kinds[*column], filter));
            }
        }
        // A team's members scan one table together.
        let scans = u64::from(part.as_ref().is_none_or(|(number, _)| *number == 0));
        note_scan(ctx, source.tree, scans, 0);
        let part = match &node.row {
            Some(row) => Some(match row.eval_row(ctx, &[])? {
                Datum::Int8(id) => Morsel::range(RowId(id as u64), RowId((id as u64).saturating_add(1))),
                _ => Morsel::range(RowId(0), RowId(0)),
            }),
            None => {
                let part = part.map(|(_, part)| part);
                if node.ends.is_empty() { part } else { Some(row_range(ctx, &node.ends)?.within(part)) }
            }
        };
        Ok(ctx.transaction().scan(ctx.view(), source.tree, &source.projection, &source.missing, &zones, part)?)
    }
}

/// The rows within some ends.
fn row_range(ctx: &ExecContext, ends: &[RowIdEnd]) -> Result<Morsel> {
    let (mut from, mut to) = (0, u64::MAX);
    for end in ends {
        let Datum::Int8(id) = end.value.eval_row(ctx, &[])? else { return Ok(Morsel::range(RowId(0), RowId(0))) };
        let id = id as u64;
        let next = id.saturating_add(1);
        match (end.is_upper, end.is_inclusive) {
            (true, true) => to = to.min(next),
            (true, false) => to = to.min(id),
            (false, true) => from = from.max(id),
            (false, false) => from = from.max(next),
        }
    }
    Ok(Morsel::range(RowId(from), RowId(to)))
}

/// What decides which rows of a piece are read.
struct Selection<'a> {
    node: &'a TableScanNode,
    conditions: &'a mut Conditions,
    filters: &'a mut [ScanFilter],
    /// That of a sort above, and its column.
    top: Option<(&'a TopFilter, usize)>,
}

impl Selection<'_> {
    /// The rows of a piece that pass, and the error that follows them. Columns are read when they are needed, for the rows that are left.
    fn select(self, ctx: &ExecContext, mut piece: ScanPiece<'_>) -> Result<(Option<Batch>, Option<DbError>)> {
        let Selection { node, conditions, filters, top } = self;
        conditions.decide_by_entries(node, ctx, &mut piece)?;
        // What leaves out more comes first, and the other is read for what is left.
        // An error of a condition must not be hidden.
        let are_first = node.never_fails && filters.iter().any(|filter| conditions.come_after(filter.passed));
        if are_first {
            filters.iter_mut().try_for_each(|filter| filter.apply(&mut piece))?;
        }
        let failed = conditions.decide_by_rows(ctx, &mut piece)?;
        if !are_first {
            filters.iter_mut().try_for_each(|filter| filter.apply(&mut piece))?;
        }
        if let Some((top, column)) = top {
            piece.load(column)?;
            if let Some(rows) = top.passing(&piece.batch().columns[column]) {
                piece.keep(&rows);
            }
        }
        node.coded.iter().try_for_each(|column| piece.load_coded(*column))?;
        let rows = piece.batch().rows;
        let batch = if rows > 0 { Some(Batch { columns: piece.first_columns(node.source.outputs.len())?, rows }) } else { None };
        Ok((batch, failed))
    }
}

/// A join filter's limits for the values of a row group: their bounds, and keys of which they must have one.
fn zones_of(column: usize, kind: Kind, filter: &JoinFilter) -> Vec<ZonePredicate> {
    let value = |key: i64| match kind {
        Kind::Int2 => i16::try_from(key).ok().map(Datum::Int2),
        Kind::Int4 => i32::try_from(key).ok().map(Datum::Int4),
        Kind::Int8 => Some(Datum::Int8(key)),
        _ => None,
    };
    let (least, greatest) = filter.bounds();
    let zone = |op, key| value(key).map(|value| ZonePredicate { column, op, values: vec![value], or_null: false });
    let mut zones: Vec<_> = zone(ZoneOp::GreaterOrEqual, least).into_iter().chain(zone(ZoneOp::LessOrEqual, greatest)).collect();
    if filter.count() <= FILTER_KEYS_MAX && matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8) {
        // Keys beyond the column's type are no row's.
        let values = filter.keys().filter_map(value).collect();
        zones.push(ZonePredicate { column, op: ZoneOp::Equal, values, or_null: false });
    }
    zones
}

impl Operator for TableScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(self.pending.rows_within(limit)) {
            return Ok(Some(batch));
        }
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while !self.done {
            ctx.check_interrupt()?;
            if let Some(batch) = self.filtered(ctx, limit)? {
                return Ok(Some(batch));
            }
            let scan = match &mut self.scan {
                Some(scan) => scan,
                None => {
                    let scan = self.open(ctx)?;
                    self.scan.insert(scan)
                }
            };
            if self.counts {
                let counted = scan.next_count()?;
                return Ok(self.give_counted(ctx, counted, limit));
            }
            if self.node.extremes
                && let Some((columns, passed)) = scan.next_extremes()?
            {
                note_scan(ctx, self.node.source.tree, 0, passed);
                let rows = columns.first().map_or(0, Column::len);
                return Ok(give(&mut self.pending, Batch { columns, rows }, limit));
            }
            let top = self.top.as_deref().zip(self.node.top_filter.map(|(column, _)| column));
            if let Some(zone) = top.and_then(|(top, column)| top.zone(self.node.source.projection[column])) {
                scan.restrict(zone);
            }
            let Some(mut piece) = scan.next_piece()? else {
                ctx.note_removed(self.id, scan.take_left_out(), 0);
                self.scan = None;
                self.done = true;
                break;
            };
            let rows = piece.batch().rows;
            note_scan(ctx, self.node.source.tree, 0, rows);
            ctx.note_removed(self.id, piece.take_left_out(), 0);
            let (passing, failed) = match &mut self.conditions {
                Some(conditions) => {
                    Selection { node: &self.node, conditions, filters: &mut self.filters, top }.select(ctx, piece)?
                }
                None => {
                    let found = piece.finish()?;
                    let batch = outputs(ctx, &self.node.source, &found.row_ids, found.columns)?;
                    if self.has_effects && limit < BATCH_ROWS {
                        self.unfiltered = (batch, 0);
                        continue;
                    }
                    passing(&self.node.filter, ctx, batch)?
                }
            };
            ctx.note_removed(self.id, rows, passing.as_ref().map_or(0, |batch| batch.rows));
            match (passing, failed) {
                (Some(batch), failed) => {
                    self.failed = failed;
                    return Ok(give_scanned(&mut self.pending, given(&self.node.source, batch), limit));
                }
                (None, Some(error)) => return Err(error),
                (None, None) => {}
            }
        }
        Ok(None)
    }

    fn share(&mut self, _ctx: &ExecContext, _tables: &mut BuiltTables) -> Result<bool> {
        Ok(true)
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.scan = None;
        self.done = false;
        if let Some(conditions) = &mut self.conditions {
            conditions.forget();
        }
        for filter in &mut self.filters {
            filter.filter = None;
            filter.passed.fade();
        }
        self.failed = None;
        self.unfiltered = (Batch::default(), 0);
        self.pending.clear();
        Ok(())
    }
}

/// Rows without the columns that only their conditions read.
fn given(source: &TableSource, mut batch: Batch) -> Batch {
    batch.columns.truncate(source.outputs.len());
    batch
}

/// The output columns of scanned rows.
pub(crate) fn outputs(ctx: &ExecContext, source: &TableSource, row_ids: &[RowId], mut columns: Vec<Column>) -> Result<Batch> {
    let rows = row_ids.len();
    if !source.virtuals.is_empty() {
        let batch = Batch { columns, rows };
        let computed = source.virtuals.iter().map(|e| e.eval_batch(ctx, &batch)).collect::<Result<Vec<_>>>()?;
        columns = batch.columns;
        columns.extend(computed);
    }
    if source.plain {
        return Ok(Batch { columns, rows });
    }
    let mut out = Vec::with_capacity(source.outputs.len());
    let mut columns: Vec<Option<Column>> = columns.into_iter().map(Some).collect();
    for (i, output) in source.outputs.iter().enumerate() {
        out.push(match output {
            ScanOutput::Column(c) => {
                let again = source.outputs[i + 1..].iter().any(|o| match o {
                    ScanOutput::Column(other) => other == c,
                    ScanOutput::WholeRow { .. } => true,
                    _ => false,
                });
                let column = if again { columns[*c].clone() } else { columns[*c].take() };
                column.unwrap_or_else(|| Column::with_capacity(source.kinds[i], 0))
            }
            ScanOutput::RowId => Column::new(ColumnData::Int8(row_ids.iter().map(|r| r.0 as i64).collect())),
            ScanOutput::Maker => {
                let mut column = Column::with_capacity(source.kinds[i], rows);
                for id in row_ids {
                    column.push(ctx.xmin(ctx.transaction().commit_of(ctx.view(), source.tree, *id)?));
                }
                column
            }
            ScanOutput::Const(value) => melba_expression::repeat(value, source.kinds[i], rows),
            ScanOutput::WholeRow { ty, columns: fields, types, names } => {
                let mut column = Column::with_capacity(source.kinds[i], rows);
                for row in 0..rows {
                    let get =
                        |c: &Option<usize>| c.and_then(|c| columns[c].as_ref()).map_or(Datum::Null, |column| column.get(row));
                    let fields = whole_row(ctx, fields.iter().map(get), types)?;
                    column.push(Datum::Record(Arc::new(Record {
                        type_oid: *ty,
                        field_types: types.clone(),
                        field_names: Some(names.clone()),
                        fields,
                    })));
                }
                column
            }
        });
    }
    Ok(Batch { columns: out, rows })
}

/// The fields of a row as a composite value, which holds nothing in stored form.
fn whole_row(ctx: &ExecContext, fields: impl Iterator<Item = Datum>, types: &[Oid]) -> Result<Vec<Datum>> {
    fields.zip(types).map(|(field, ty)| ctx.expand(field, ctx.catalog().kind_of(*ty).unwrap_or(Kind::Text))).collect()
}

/// The outputs for one row of a table whose projected columns are given. `commit`: of the version, unless it is the view's.
pub(crate) fn source_row(
    ctx: &ExecContext,
    source: &TableSource,
    mut row: Vec<Datum>,
    id: RowId,
    commit: Option<Csn>,
) -> Result<Vec<Datum>> {
    if source.plain {
        return Ok(row);
    }
    for expression in &source.virtuals {
        let value = expression.eval_row(ctx, &row)?;
        row.push(value);
    }
    let mut outputs = output_row(ctx, &source.outputs, &row, id)?;
    for (output, value) in source.outputs.iter().zip(&mut outputs) {
        if matches!(output, ScanOutput::Maker) {
            let seen = || ctx.transaction().commit_of(ctx.view(), source.tree, id);
            *value = ctx.xmin(commit.map_or_else(seen, |csn| Ok(Some(csn)))?);
        }
    }
    Ok(outputs)
}

/// The outputs for one row whose columns, virtual ones too, are given.
pub(crate) fn output_row(ctx: &ExecContext, outputs: &[ScanOutput], row: &[Datum], id: RowId) -> Result<Vec<Datum>> {
    let one = |output: &ScanOutput| {
        Ok(match output {
            ScanOutput::Column(c) => row[*c].clone(),
            ScanOutput::RowId => Datum::Int8(id.0 as i64),
            ScanOutput::Const(value) => value.clone(),
            // `source_row` knows the version; other rows are no transaction's.
            ScanOutput::Maker => Datum::Oid(melba_plan::FROZEN_XMIN),
            ScanOutput::WholeRow { ty, columns, types, names } => Datum::Record(Arc::new(Record {
                type_oid: *ty,
                field_types: types.clone(),
                field_names: Some(names.clone()),
                fields: whole_row(ctx, columns.iter().map(|c| c.map_or(Datum::Null, |c| row[c].clone())), types)?,
            })),
        })
    };
    outputs.iter().map(one).collect()
}
