//! Window functions over an input sorted by partition and order columns.
//!
//! Rows are gathered until their memory is full; whole partitions among them are computed and returned. A partition that does not
//! fit alone is kept in files: its rows, the columns that the functions read of them, and the results of each function.

mod frame;
mod pages;

use std::ops::Range;
use std::sync::Arc;

use melba_fmgr::Sink;
use melba_fmgr::{MakeAggregate, Partition};
use melba_types::limits::Ticker;
use melba_types::{Batch, ByteStrings, Column, ColumnData, Datum, DbError, Result};

use self::frame::{Frames, Offsets};
use self::pages::Pages;
use super::pending::{Pending, give};
use super::sort::encode_keys;
use crate::{ExecContext, Operator};
use melba_expression::filter;
use melba_plan::NodeStorage;
use melba_plan::node::{WindowFunction, WindowNode, WindowSpec};
use melba_spill::{Place, Store};
use melba_types::BATCH_ROWS;

pub(super) struct WindowOp {
    id: usize,
    node: Arc<WindowNode>,
    layout: Layout,
    input: Box<dyn Operator>,
    done: bool,
    /// Known from the first request for rows on.
    offsets: Option<Offsets>,
    /// Rows of the partition that the last batch ended in, and the batch after it that was read already.
    rest: Batch,
    /// A partition in files: its rows and results, read from the same place.
    large: Option<Large>,
    used: (u64, u64),
    pending: Pending,
}

struct Large {
    rows: Store,
    results: Vec<Store>,
    place: Place,
}

/// The columns that the functions read: arguments, function by function; FILTER's results; the order key; the order value.
#[derive(Default)]
struct Layout {
    arguments: Vec<Range<usize>>,
    keeps: Vec<Option<usize>>,
    order_key: usize,
    order_value: Option<usize>,
}

impl Layout {
    fn new(node: &WindowNode) -> Layout {
        let mut layout = Layout::default();
        let mut next = 0;
        for function in &node.functions {
            layout.arguments.push(next..next + function.call.args.len());
            next += function.call.args.len();
        }
        for function in &node.functions {
            layout.keeps.push(function.filter.is_some().then_some(next));
            next += usize::from(function.filter.is_some());
        }
        layout.order_key = next;
        layout.order_value = (node.order.len() == 1).then_some(next + 1);
        layout
    }

    /// The columns of some rows that the functions read.
    fn read(node: &WindowNode, ctx: &ExecContext, rows: &Batch) -> Result<Batch> {
        let mut columns = Vec::new();
        for function in &node.functions {
            for argument in &function.call.args {
                columns.push(match function.function {
                    // These return values of other rows unchanged.
                    WindowFunction::Window(_) => argument.eval_stored_vector(ctx, rows)?.into_column(argument.kind, rows.rows)?,
                    WindowFunction::Aggregate { .. } => argument.eval_batch(ctx, rows)?,
                });
            }
        }
        for condition in node.functions.iter().filter_map(|f| f.filter.as_ref()) {
            let mut keep = vec![false; rows.rows];
            match filter(std::slice::from_ref(condition), ctx, rows)? {
                None => keep.fill(true),
                Some(kept) => kept.iter().for_each(|&r| keep[r as usize] = true),
            }
            columns.push(Column::new(ColumnData::Bool(keep)));
        }
        columns.push(Column::new(ColumnData::Bytes(encode_keys(&node.order, ctx, rows)?)));
        if let [(e, _)] = &node.order[..] {
            columns.push(e.unlabelled().eval_batch(ctx, rows)?);
        }
        Ok(Batch { columns, rows: rows.rows })
    }
}

impl WindowOp {
    pub fn new(id: usize, node: Arc<WindowNode>, ctx: &ExecContext) -> Result<WindowOp> {
        let input = ctx.build(&node.input)?;
        let layout = Layout::new(&node);
        Ok(WindowOp {
            id,
            node,
            layout,
            input,
            done: false,
            offsets: None,
            rest: Batch::default(),
            large: None,
            used: (0, 0),
            pending: Pending::default(),
        })
    }

    /// Computes the next whole partitions; `None` at the end, or when a large one was begun.
    fn compute(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        let mut held = ctx.resources().held();
        let mut all = std::mem::take(&mut self.rest);
        let mut bytes = all.memory_bytes();
        let mut full = false;
        while !full && !self.done {
            let Some(batch) = self.input.next(ctx, BATCH_ROWS)? else {
                self.done = true;
                break;
            };
            bytes += batch.memory_bytes();
            all.append(batch);
            full = bytes > ctx.resources().work_bytes || !held.try_set(bytes);
            ctx.check_interrupt()?;
        }
        self.used.0 = self.used.0.max(bytes as u64);
        if all.rows == 0 {
            return Ok(None);
        }
        let keys = encode_keys(&self.node.partition, ctx, &all)?;
        let last = partition_start(&keys, all.rows - 1);
        if !self.done {
            if last == 0 {
                self.begin_large(ctx, all, keys.get(0).to_vec())?;
                return Ok(None);
            }
            self.rest = all.take(&(last as u32..all.rows as u32).collect::<Vec<_>>());
            all = all.take(&(0..last as u32).collect::<Vec<_>>());
        }
        let read = Layout::read(&self.node, ctx, &all)?;
        let mut results: Vec<Column> = self.node.functions.iter().map(|f| Column::with_capacity(f.kind, all.rows)).collect();
        let mut start = 0;
        while start < all.rows {
            ctx.check_interrupt()?;
            let mut end = start + 1;
            while end < all.rows && keys.get(end) == keys.get(start) {
                end += 1;
            }
            let pages = Pages::memory(&read, start..end);
            for (column, function) in results.iter_mut().zip(0..) {
                let mut ticker = Ticker::new();
                let mut sink = |value| {
                    column.push(value);
                    ticker.step()
                };
                self.function(ctx, function, &pages, &mut sink)?;
            }
            start = end;
        }
        all.columns.extend(results);
        Ok(Some(all))
    }

    /// Reads a partition that does not fit, whose first rows are given, into files, and computes it.
    fn begin_large(&mut self, ctx: &ExecContext, first: Batch, key: Vec<u8>) -> Result<()> {
        let mut rows = Store::new(ctx.resources());
        let mut read = Store::new(ctx.resources());
        let mut batch = first;
        loop {
            let keys = encode_keys(&self.node.partition, ctx, &batch)?;
            let end = (0..batch.rows).find(|i| keys.get(*i) != &key[..]).unwrap_or(batch.rows);
            if end < batch.rows {
                self.rest = batch.take(&(end as u32..batch.rows as u32).collect::<Vec<_>>());
                batch = batch.take(&(0..end as u32).collect::<Vec<_>>());
            }
            for from in (0..batch.rows).step_by(BATCH_ROWS) {
                let to = (from + BATCH_ROWS).min(batch.rows);
                let piece = batch.take(&(from as u32..to as u32).collect::<Vec<_>>());
                read.push(Layout::read(&self.node, ctx, &piece)?)?;
                rows.push(piece)?;
            }
            ctx.check_interrupt()?;
            if self.rest.rows > 0 {
                break;
            }
            match self.input.next(ctx, BATCH_ROWS)? {
                Some(next) => batch = next,
                None => {
                    self.done = true;
                    break;
                }
            }
        }
        read.close()?;
        let count = rows.rows() as usize;
        let pages = Pages::stored(read, count);
        let mut results = Vec::new();
        for (i, function) in self.node.functions.iter().enumerate() {
            let mut store = Store::new(ctx.resources());
            let mut column = Column::with_capacity(function.kind, BATCH_ROWS);
            let mut sink = |value| {
                column.push(value);
                if column.len() < BATCH_ROWS {
                    return Ok(());
                }
                ctx.check_interrupt()?;
                let full = std::mem::replace(&mut column, Column::with_capacity(function.kind, BATCH_ROWS));
                store.push(Batch { columns: vec![full], rows: BATCH_ROWS })
            };
            self.function(ctx, i, &pages, &mut sink)?;
            let rows = column.len();
            store.push(Batch { columns: vec![column], rows })?;
            results.push(store);
        }
        let disk: u64 = results.iter().chain([&rows]).map(|s| s.usage().1).sum();
        self.used.1 = self.used.1.max(disk + pages.disk_bytes());
        self.large = Some(Large { rows, results, place: 0 });
        Ok(())
    }

    fn function(&self, ctx: &ExecContext, index: usize, pages: &Pages<'_>, sink: Sink<'_>) -> Result<()> {
        let function = &self.node.functions[index];
        let Some(offsets) = &self.offsets else { return Err(DbError::internal("a window frame whose offsets are not known")) };
        let frames = Frames::new(&self.node, ctx, pages, self.layout.order_key, self.layout.order_value, offsets);
        let arguments = self.layout.arguments[index].clone();
        let rows = PartitionRows { pages, arguments, keep: self.layout.keeps[index], frames: &frames };
        match &function.function {
            WindowFunction::Window(f) => f(&function.call.info(ctx), &rows, sink),
            WindowFunction::Aggregate { make, strict } => aggregate(function, make, *strict, ctx, &rows, sink),
        }
    }
}

/// The first row of the partition of row `row`.
fn partition_start(keys: &ByteStrings, row: usize) -> usize {
    let mut start = row;
    while start > 0 && keys.get(start - 1) == keys.get(row) {
        start -= 1;
    }
    start
}

impl Large {
    /// The next rows with their results.
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        let mut place = self.place;
        let Some(mut batch) = self.rows.read(&mut place, limit)? else { return Ok(None) };
        for results in &mut self.results {
            // Chunks of results and of rows need not end together.
            let mut from = self.place;
            let mut column = Batch::default();
            while from < place {
                let wanted = (place - from) as usize;
                let Some(some) = results.read(&mut from, wanted)? else {
                    return Err(DbError::internal("a window function gave too few results"));
                };
                column.append(some);
            }
            batch.columns.append(&mut column.columns);
        }
        self.place = place;
        Ok(Some(batch))
    }
}

struct PartitionRows<'a> {
    pages: &'a Pages<'a>,
    arguments: Range<usize>,
    keep: Option<usize>,
    frames: &'a Frames<'a>,
}

impl PartitionRows<'_> {
    /// An aggregate's arguments at a row; `None` when it does not take the row.
    fn taken(&self, row: usize, strict: bool) -> Result<Option<Vec<Datum>>> {
        if let Some(keep) = self.keep
            && !matches!(self.pages.value(row, keep)?, Datum::Bool(true))
        {
            return Ok(None);
        }
        let args = self.arguments.clone().map(|a| self.pages.value(row, a)).collect::<Result<Vec<Datum>>>()?;
        Ok((!strict || !args.iter().any(Datum::is_null)).then_some(args))
    }
}

impl Partition for PartitionRows<'_> {
    fn rows(&self) -> usize {
        self.pages.rows()
    }

    fn argument(&self, row: usize, argument: usize) -> Result<Datum> {
        self.pages.value(row, self.arguments.start + argument)
    }

    fn arguments(&self) -> usize {
        self.arguments.len()
    }

    fn peers(&self, row: usize) -> Result<Range<usize>> {
        self.frames.peers(row)
    }

    fn frame(&self, row: usize) -> Result<[Range<usize>; 3]> {
        self.frames.frame(row)
    }
}

/// An aggregate over each row's frame. A frame that grows at its end is continued, one that moves on at its start too when the
/// aggregate can forget; any other is computed from scratch.
fn aggregate(
    function: &WindowSpec,
    make: &MakeAggregate,
    strict: bool,
    ctx: &ExecContext,
    rows: &PartitionRows<'_>,
    sink: Sink<'_>,
) -> Result<()> {
    let call = function.call.info(ctx);
    let mut last = Datum::Null;
    let mut state = make(&call)?;
    let mut covered: [Range<usize>; 3] = [0..0, 0..0, 0..0];
    let simple = |f: &[Range<usize>; 3]| f[1].is_empty() && f[2].is_empty();
    let mut ticker = Ticker::new();
    for row in 0..rows.rows() {
        ticker.step()?;
        let frame = rows.frame(row)?;
        if row > 0 && frame == covered {
            sink(last.clone())?;
            continue;
        }
        let follows = simple(&frame) && simple(&covered) && frame[0].start >= covered[0].start && frame[0].end >= covered[0].end;
        let mut continued = follows && frame[0].start < covered[0].end;
        if continued {
            for gone in covered[0].start..frame[0].start {
                ticker.step()?;
                if let Some(args) = rows.taken(gone, strict)?
                    && !state.remove(&call, &args)?
                {
                    continued = false;
                    break;
                }
            }
        }
        let new = if continued {
            [covered[0].end.max(frame[0].start)..frame[0].end, 0..0, 0..0]
        } else {
            state = make(&call)?;
            frame.clone()
        };
        for row in new.into_iter().flatten() {
            ticker.step()?;
            if let Some(args) = rows.taken(row, strict)? {
                state.add(&call, &args)?;
            }
        }
        covered = frame;
        last = state.finish(&call)?;
        sink(last.clone())?;
    }
    Ok(())
}

impl Operator for WindowOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if self.offsets.is_none() {
            self.offsets = Some(Offsets::compute(&self.node, ctx)?);
        }
        loop {
            if let Some(batch) = self.pending.take(limit) {
                return Ok(Some(batch));
            }
            if let Some(large) = &mut self.large {
                match large.next(limit)? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.large = None,
                }
            }
            if self.done && self.rest.rows == 0 {
                let (memory, disk) = self.used;
                ctx.record_timing(self.id, |t| t.storage = Some(NodeStorage::Rows { memory, disk }));
                return Ok(None);
            }
            if let Some(batch) = self.compute(ctx)? {
                return Ok(give(&mut self.pending, batch, limit));
            }
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.done = false;
        self.offsets = None;
        self.rest = Batch::default();
        self.large = None;
        self.used = (0, 0);
        self.pending.clear();
        self.input.rescan(ctx)
    }
}
