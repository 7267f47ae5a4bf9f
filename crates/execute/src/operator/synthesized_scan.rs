//! Scans of relations whose rows are synthesized while trees are scanned: large objects, and the chunks of toast tables.

use std::ops::RangeInclusive;
use std::sync::Arc;

use melba_engine::ZoneOp;
use melba_types::{Batch, Column, Datum, Kind, Result, RowId};

use super::pending::{Pending, batch_of, give};
use super::table_scan;
use crate::{ExecContext, Operator};
use melba_expression::filter;
use melba_largeobject::Scan;
use melba_plan::Synthesized;
use melba_plan::node::{ScanOutput, SystemScanNode};
use melba_table::ChunkScan;

enum SynthesizedSource {
    LargeObjects(Scan),
    Chunks(ChunkScan),
}

impl SynthesizedSource {
    /// The relation's columns for some more rows, and how many those are; `None` at the end.
    fn next(&mut self, ctx: &ExecContext) -> Result<Option<(Vec<Column>, usize)>> {
        match self {
            SynthesizedSource::LargeObjects(scan) => scan.next_rows(),
            SynthesizedSource::Chunks(scan) => scan.next(ctx),
        }
    }
}

/// The scan and the values that columns must have.
type Running = (SynthesizedSource, Vec<(usize, Datum)>);

pub(super) struct SynthesizedScanOp {
    id: usize,
    rows: Synthesized,
    node: Arc<SystemScanNode>,
    kinds: Arc<[Kind]>,
    scan: Option<Running>,
    pending: Pending,
    done: bool,
}

impl SynthesizedScanOp {
    pub fn new(id: usize, rows: Synthesized, node: Arc<SystemScanNode>, kinds: Arc<[Kind]>) -> SynthesizedScanOp {
        SynthesizedScanOp { id, rows, node, kinds, scan: None, pending: Pending::default(), done: false }
    }

    fn open(&self, ctx: &ExecContext) -> Result<Option<Running>> {
        let mut needed = [false; 3];
        for output in &self.node.outputs {
            match output {
                ScanOutput::Column(c) => needed[*c] = true,
                ScanOutput::WholeRow { columns, .. } => columns.iter().flatten().for_each(|c| needed[*c] = true),
                _ => {}
            }
        }
        let (mut objects, mut equal) = (Objects::ALL, Vec::new());
        for (op, value) in &self.node.ranges {
            match value.eval_row(ctx, &[])? {
                Datum::Null => return Ok(None),
                value => objects.restrict(*op, &value),
            }
        }
        for (column, value) in &self.node.equal {
            match value.eval_row(ctx, &[])? {
                Datum::Null => return Ok(None),
                value if *column == 0 => objects.restrict(ZoneOp::Equal, &value),
                value => {
                    needed[*column] = true;
                    equal.push((*column, value));
                }
            }
        }
        let Some(objects) = objects.range() else { return Ok(None) };
        let source = match self.rows {
            Synthesized::LargeObjects(rows) => {
                SynthesizedSource::LargeObjects(Scan::open(ctx.transaction(), ctx.catalog(), ctx.view(), rows, objects, needed)?)
            }
            Synthesized::Chunks(table) => SynthesizedSource::Chunks(ChunkScan::open(ctx, table, objects, needed[2])?),
        };
        Ok(Some((source, equal)))
    }

    /// The node's outputs for rows of the relation.
    fn outputs(&self, ctx: &ExecContext, columns: &[Column], rows: usize) -> Result<Batch> {
        let plain: Option<Vec<Column>> = self
            .node
            .outputs
            .iter()
            .map(|output| match output {
                ScanOutput::Column(c) => Some(columns[*c].clone()),
                _ => None,
            })
            .collect();
        if let Some(columns) = plain {
            return Ok(Batch::new(columns, rows));
        }
        let value = |column: &Column, row| if column.is_empty() { Datum::Null } else { column.get(row) };
        let one = |row| {
            let values: Vec<Datum> = columns.iter().map(|c| value(c, row)).collect();
            table_scan::output_row(ctx, &self.node.outputs, &values, RowId(0))
        };
        Ok(batch_of(&self.kinds, &(0..rows).map(one).collect::<Result<Vec<_>>>()?))
    }
}

impl Operator for SynthesizedScanOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        if self.done {
            return Ok(None);
        }
        if self.scan.is_none() {
            self.scan = self.open(ctx)?;
        }
        while let Some((mut scan, equal)) = self.scan.take() {
            ctx.check_interrupt()?;
            let Some((columns, rows)) = scan.next(ctx)? else { break };
            let mut batch = self.outputs(ctx, &columns, rows)?;
            if !equal.is_empty() {
                let passes = |row: &u32| equal.iter().all(|(c, value)| same(&columns[*c].get(*row as usize), value));
                batch = batch.take(&(0..rows as u32).filter(passes).collect::<Vec<_>>());
            }
            if let Some(kept) = filter(&self.node.filter, ctx, &batch)? {
                ctx.note_removed(self.id, batch.rows, kept.len());
                batch = batch.take(&kept);
            }
            self.scan = Some((scan, equal));
            if batch.rows > 0 {
                return Ok(give(&mut self.pending, batch, limit));
            }
        }
        self.scan = None;
        self.done = true;
        Ok(None)
    }

    fn rescan(&mut self, _ctx: &ExecContext) -> Result<()> {
        self.scan = None;
        self.done = false;
        self.pending.clear();
        Ok(())
    }
}

/// The OIDs that conditions leave.
#[derive(Clone, Copy)]
struct Objects {
    first: u64,
    /// Behind the last.
    end: u64,
}

impl Objects {
    const ALL: Objects = Objects { first: 0, end: 1 << 32 };

    fn restrict(&mut self, op: ZoneOp, value: &Datum) {
        // Other types than the column's the planner does not hand down.
        let Datum::Oid(oid) = value else { return };
        let oid = u64::from(*oid);
        let (first, end) = match op {
            ZoneOp::Equal => (oid, oid + 1),
            ZoneOp::Less => (0, oid),
            ZoneOp::LessOrEqual => (0, oid + 1),
            ZoneOp::Greater => (oid + 1, 1 << 32),
            ZoneOp::GreaterOrEqual => (oid, 1 << 32),
            _ => return,
        };
        self.first = self.first.max(first);
        self.end = self.end.min(end);
    }

    fn range(self) -> Option<RangeInclusive<u32>> {
        (self.first < self.end).then(|| self.first as u32..=(self.end - 1) as u32)
    }
}

/// Equality of the types that the planner hands down for these relations: OIDs and numbers of pages and chunks.
fn same(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Oid(a), Datum::Oid(b)) => a == b,
        (Datum::Int4(a), Datum::Int4(b)) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_leave_a_range_or_nothing() {
        let after = |conditions: &[(ZoneOp, u32)]| {
            let mut objects = Objects::ALL;
            conditions.iter().for_each(|(op, oid)| objects.restrict(*op, &Datum::Oid(*oid)));
            objects.range()
        };
        assert_eq!(after(&[]), Some(0..=u32::MAX));
        assert_eq!(after(&[(ZoneOp::GreaterOrEqual, 5), (ZoneOp::LessOrEqual, 9)]), Some(5..=9));
        assert_eq!(after(&[(ZoneOp::Greater, 5), (ZoneOp::Less, 9)]), Some(6..=8));
        assert_eq!(after(&[(ZoneOp::Equal, u32::MAX)]), Some(u32::MAX..=u32::MAX));
        assert_eq!(after(&[(ZoneOp::Equal, 5), (ZoneOp::Equal, 6)]), None);
        assert_eq!(after(&[(ZoneOp::Greater, u32::MAX)]), None);
        assert_eq!(after(&[(ZoneOp::Less, 0)]), None);
    }
}
