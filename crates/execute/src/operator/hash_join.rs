//! Hash joins: the right side is read into a table by key, the left side probes it.
//!
//! A right side that does not fit is split by the hash of its key, and the left side likewise; each pair of parts is then joined
//! separately. A part that splitting does not make smaller (one key has too many rows) is joined in several rounds: a table of as
//! many rows as fit, probed by all left rows of the part, then the next.

mod probe;
mod row_table;
mod shared;
mod table;

use std::sync::Arc;

use melba_engine::Held;
use melba_types::{Batch, Bitmap, Result};

use self::probe::{Marks, Probe, built_rows, left_alone};
use self::shared::Shared;
use self::table::{Built, Keys};
use super::pending::{Pending, give, nulls};
use crate::team::BuiltTables;
use crate::{ExecContext, Operator, parallel};
use melba_expression::Expression;
use melba_plan::NodeStorage;
use melba_plan::node::{HashJoinNode, JoinType};
use melba_spill::{Partitions, Run, RunReader};
use melba_types::BATCH_ROWS;

pub(super) use self::probe::join_rows;

/// Rows are split by hash at most so often.
const LEVELS_MAX: u32 = 4;

/// Keys are checked for NULLs as long as at least 1/NULLS_SHARE of them are NULL.
const NULLS_SHARE: usize = 8;

/// Where the rows of one side come from.
enum Side {
    Input,
    Run(Run, RunReader),
}

/// Two parts to be joined.
struct HashJoinWork {
    left: Run,
    right: Run,
    level: u32,
}

pub(super) struct HashJoinOp {
    id: usize,
    node: Arc<HashJoinNode>,
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    /// The two sides of the join.
    sides: (Side, Side),
    level: u32,
    stage: Stage,
    /// Right rows that do not fit in the table being built.
    overflow: Option<Batch>,
    /// All rows of the right input have been taken.
    right_ended: bool,
    /// The table, or the table of this round.
    built: Option<Arc<Built>>,
    /// In a team: the table that its members share.
    shared: Option<Arc<Shared>>,
    /// Its rows that have found a partner, for joins that return right rows last. In a member: with rows of all its parts.
    matched: Bitmap,
    probe: Option<Probe>,
    /// In several rounds: which rows of the left part have found a partner.
    partnered: Option<Bitmap>,
    /// Of NOT IN, as the right side has rows: left rows whose key is NULL do not pass.
    leaves_out_nulls: bool,
    /// Right rows whose key is NULL are not kept. They find no partner; looking for them pays as long as there are many.
    drops_nulls: bool,
    /// Row number, within the left part, of the next batch's first row.
    left_row: usize,
    built_from: usize,
    work: Vec<HashJoinWork>,
    batches: u64,
    pending: Pending,
    /// Columns that the residual conditions read.
    read: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A table must be built.
    Build,
    Probe,
    /// Rows of the table by whether they have a partner (joins that return right rows last).
    Built,
    /// After the last of several rounds: left rows that have no partner.
    LeftAlone,
    /// The parts are joined.
    Next,
    Done,
}

impl HashJoinOp {
    pub fn new(id: usize, node: Arc<HashJoinNode>, ctx: &ExecContext) -> Result<HashJoinOp> {
        let left = ctx.build(&node.left)?;
        let right = ctx.build(&node.right)?;
        let mut read = Vec::new();
        node.residual.iter().for_each(|condition| condition.columns(&mut read));
        let needs_nulls = node.join.keeps_unmatched_right() || node.join == JoinType::NotIn;
        let drops_nulls = !needs_nulls && !node.right_keys.iter().any(Expression::is_volatile);
        Ok(HashJoinOp {
            id,
            node,
            left,
            right,
            sides: (Side::Input, Side::Input),
            level: 0,
            stage: Stage::Build,
            overflow: None,
            right_ended: false,
            built: None,
            shared: None,
            matched: Bitmap::default(),
            probe: None,
            partnered: None,
            leaves_out_nulls: false,
            drops_nulls,
            left_row: 0,
            built_from: 0,
            work: Vec::new(),
            batches: 1,
            pending: Pending::default(),
            read,
        })
    }

    fn next_left(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        match &mut self.sides.0 {
            Side::Input if self.leaves_out_nulls => {
                let keys = Keys { expressions: &self.node.left_keys, parts: &self.node.parts };
                while let Some(batch) = self.left.next(ctx, BATCH_ROWS)? {
                    match keys.not_null(ctx, &batch)? {
                        Some(rows) if rows.is_empty() => ctx.check_interrupt()?,
                        Some(rows) => return Ok(Some(batch.take(&rows))),
                        None => return Ok(Some(batch)),
                    }
                }
                Ok(None)
            }
            Side::Input => self.left.next(ctx, BATCH_ROWS),
            Side::Run(_, reader) => reader.next_batch(),
        }
    }

    fn next_right(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        if let Some(batch) = self.overflow.take() {
            return Ok(Some(batch));
        }
        match &mut self.sides.1 {
            Side::Input if self.right_ended => Ok(None),
            Side::Input => match self.right.next(ctx, BATCH_ROWS)? {
                Some(batch) => self.with_keys(ctx, batch).map(Some),
                None => {
                    self.right_ended = true;
                    Ok(None)
                }
            },
            Side::Run(_, reader) => reader.next_batch(),
        }
    }

    /// A right batch without the rows whose key is NULL, if any are left out.
    fn with_keys(&mut self, ctx: &ExecContext, batch: Batch) -> Result<Batch> {
        if !self.drops_nulls {
            return Ok(batch);
        }
        let keys = Keys { expressions: &self.node.right_keys, parts: &self.node.parts };
        let rows = keys.not_null(ctx, &batch)?;
        let kept = rows.as_ref().map_or(batch.rows, Vec::len);
        self.drops_nulls = kept < batch.rows - batch.rows / NULLS_SHARE;
        Ok(match rows {
            Some(rows) => batch.take(&rows),
            None => batch,
        })
    }

    /// Reads right rows into a table, splits both sides when they do not fit, or leaves the rest for another round.
    fn build_stage(&mut self, ctx: &ExecContext) -> Result<Stage> {
        if let Some(shared) = ctx.team().and_then(|team| team.table::<Shared>(self.id)) {
            if self.shared.is_none() {
                self.matched = unmatched(&self.node, &shared.built);
                self.leaves_out_nulls = self.node.join == JoinType::NotIn && shared.built.rows.rows > 0;
            }
            self.built = Some(shared.built.clone());
            self.shared = Some(shared);
            self.built_from = 0;
            return Ok(Stage::Probe);
        }
        let node = self.node.clone();
        // Only the table of all built rows says which keys there are.
        node.filters.iter().for_each(|(_, filter)| ctx.set_join_filter(*filter, None));
        let mut held = ctx.resources().held();
        let mut rows = Batch { columns: nulls(&node.right.kinds, 0), rows: 0 };
        let (mut row_bytes, mut computed_bytes) = (0, 0);
        if matches!(self.sides.1, Side::Input)
            && let Some(row_bytes) = self.gather(ctx, &mut rows, &mut held)?
        {
            return self.begin_probe(ctx, rows, row_bytes, held);
        }
        let keys = Keys { expressions: &node.right_keys, parts: &node.parts };
        while let Some(batch) = self.next_right(ctx)? {
            let before = row_bytes;
            row_bytes += batch.memory_bytes();
            computed_bytes += keys.computed_bytes(ctx, &batch)?;
            let more = row_bytes + computed_bytes + Built::table_bytes_about(rows.rows + batch.rows);
            if rows.rows > 0 && !ctx.resources().holds(&mut held, more, ctx.resources().hash_bytes) {
                match &self.sides.0 {
                    _ if self.can_split() => {
                        drop(held);
                        return self.split(ctx, vec![batch, rows]);
                    }
                    Side::Run(..) => {
                        self.overflow = Some(batch);
                        row_bytes = before;
                        break;
                    }
                    // Keys that change when they are evaluated again cannot be split: all rows must fit.
                    Side::Input => held.set(more)?,
                }
            }
            rows.append(batch);
            ctx.check_interrupt()?;
        }
        if self.overflow.is_some() && self.partnered.is_none() {
            self.begin_rounds()?;
        }
        self.begin_probe(ctx, rows, row_bytes, held)
    }

    /// Lets a team read the right rows, if that pays and they fit; their size if all of them were read.
    fn gather(&mut self, ctx: &ExecContext, rows: &mut Batch, held: &mut Held) -> Result<Option<usize>> {
        let node = self.node.clone();
        let keys = Keys { expressions: &node.right_keys, parts: &node.parts };
        let table_bytes =
            |ctx: &ExecContext, batch: &Batch| Ok(Built::table_bytes_about(batch.rows) + keys.computed_bytes(ctx, batch)?);
        let Some(gathered) = parallel::gather(ctx, node.workers, &node.right, &mut *self.right, table_bytes)? else {
            return Ok(None);
        };
        if !held.try_set(gathered.bytes) {
            self.right.rescan(ctx)?;
            return Ok(None);
        }
        self.right_ended = true;
        ctx.record_timing(self.id, |t| t.workers = gathered.workers as u64);
        let batches = gathered.batches.into_iter().map(|batch| self.with_keys(ctx, batch));
        let batches: Vec<Batch> = batches.collect::<Result<_>>()?;
        let row_bytes = batches.iter().map(Batch::memory_bytes).sum();
        rows.append_all(batches);
        Ok(Some(row_bytes))
    }

    /// Builds the table from some right rows of this size; returns the next stage.
    fn begin_probe(&mut self, ctx: &ExecContext, rows: Batch, row_bytes: usize, held: Held) -> Result<Stage> {
        let node = self.node.clone();
        if node.join == JoinType::NotIn && matches!(self.sides.1, Side::Input) {
            if has_nulls(&node, ctx, &rows)? {
                return Ok(Stage::Done);
            }
            self.leaves_out_nulls = rows.rows > 0;
        }
        let mut built = Built::new(&node, ctx, rows, held)?;
        // What keys take is known for certain now, and strings that came as codes.
        let with_strings = if node.coded.is_empty() { 0 } else { built.rows.memory_bytes() };
        let bytes = row_bytes.max(with_strings) + built.table_bytes();
        if !ctx.resources().holds(&mut built.held, bytes, ctx.resources().hash_bytes) {
            if self.can_split() && built.rows.rows > 1 {
                return self.split(ctx, vec![built.rows]);
            }
            built.held.set(bytes)?;
        }
        built.code(&node.coded);
        if matches!(self.sides, (Side::Input, Side::Input)) {
            built.tell_scans(&node, ctx)?;
        }
        if self.level == 0 || self.batches > 1 {
            self.record(ctx, &built);
        }
        let inner = !node.join.keeps_unmatched_left();
        let empty = built.rows.rows == 0;
        self.matched = unmatched(&node, &built);
        self.built = Some(Arc::new(built));
        (self.built_from, self.left_row) = (0, 0);
        if let Side::Run(_, reader) = &mut self.sides.0 {
            reader.rewind();
        }
        Ok(if empty && inner && self.partnered.is_none() { Stage::Next } else { Stage::Probe })
    }

    fn record(&self, ctx: &ExecContext, built: &Built) {
        let memory = built.held.bytes() as u64;
        let (buckets, batches) = (built.rows.rows.next_power_of_two().max(1024) as u64, self.batches);
        ctx.record_timing(self.id, |t| {
            let before = match t.storage {
                Some(NodeStorage::HashJoin { memory, .. }) => memory,
                _ => 0,
            };
            t.storage = Some(NodeStorage::HashJoin { buckets, batches, memory: memory.max(before) });
        });
    }

    /// Whether both sides may be split by their keys once more.
    fn can_split(&self) -> bool {
        self.level < LEVELS_MAX && self.partnered.is_none() && !self.volatile_keys()
    }

    fn volatile_keys(&self) -> bool {
        self.node.left_keys.iter().chain(&self.node.right_keys).any(|k| k.is_volatile())
    }

    /// Several rounds read the left side several times, so it must be a run.
    fn begin_rounds(&mut self) -> Result<()> {
        let Side::Run(left, _) = &self.sides.0 else {
            return Err(melba_types::DbError::internal("a join in rounds over an input that is read once"));
        };
        self.partnered = Some(Bitmap::filled(left.rows as usize, false));
        Ok(())
    }

    /// Splits both sides; `next` was already read from the right one, its first rows last.
    fn split(&mut self, ctx: &ExecContext, mut next: Vec<Batch>) -> Result<Stage> {
        let node = self.node.clone();
        let resources = ctx.resources();
        let new = || Partitions::new(resources, resources.hash_bytes, self.level);
        let (mut rights, mut lefts) = (new()?, new()?);
        let right_keys = Keys { expressions: &node.right_keys, parts: &node.parts };
        self.leaves_out_nulls = node.join == JoinType::NotIn;
        while let Some(batch) = next.pop().map_or_else(|| self.next_right(ctx), |batch| Ok(Some(batch)))? {
            if node.join == JoinType::NotIn && has_nulls(&node, ctx, &batch)? {
                return Ok(Stage::Done);
            }
            right_keys.split(ctx, batch, &mut rights)?;
            ctx.check_interrupt()?;
        }
        let left_keys = Keys { expressions: &node.left_keys, parts: &node.parts };
        while let Some(batch) = self.next_left(ctx)? {
            left_keys.split(ctx, batch, &mut lefts)?;
            ctx.check_interrupt()?;
        }
        let pairs: Vec<(Run, Run)> = lefts.finish()?.into_iter().zip(rights.finish()?).collect();
        self.batches += pairs.len() as u64 - u64::from(self.level == 0);
        let needs_left = !node.join.keeps_unmatched_right();
        let needs_right = !node.join.keeps_unmatched_left();
        let pairs = pairs.into_iter().rev().filter(|(left, right)| match () {
            () if needs_left && left.rows == 0 => false,
            () => !(needs_right && right.rows == 0),
        });
        let level = self.level + 1;
        self.work.extend(pairs.map(|(left, right)| {
            // A split that left everything in one part will not do better the next time.
            let same = matches!(&self.sides.1, Side::Run(before, _) if before.rows == right.rows);
            HashJoinWork { left, right, level: if same { LEVELS_MAX } else { level } }
        }));
        Ok(Stage::Next)
    }

    /// Goes to the next pair of parts.
    fn next_work(&mut self) -> Stage {
        self.built = None;
        self.probe = None;
        self.partnered = None;
        let Some(HashJoinWork { left, right, level }) = self.work.pop() else { return Stage::Done };
        let side = |run: Run| {
            let reader = run.reader();
            Side::Run(run, reader)
        };
        self.sides = (side(left), side(right));
        self.level = level;
        Stage::Build
    }

    /// Joins some left rows.
    fn probe_stage(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        let node = self.node.clone();
        if self.probe.is_none() {
            let Some(left) = self.next_left(ctx)? else {
                self.stage = self.end_left(ctx);
                return Ok(None);
            };
            let Some(built) = &self.built else { return Ok(None) };
            let first = self.left_row;
            self.left_row += left.rows;
            self.probe = Some(Probe::new((self.id, &node), ctx, left, first, built)?);
            ctx.check_interrupt()?;
        }
        let (Some(probe), Some(built)) = (&mut self.probe, &self.built) else { return Ok(None) };
        let marks = Marks { matched: &mut self.matched, partnered: self.partnered.as_mut() };
        let out = probe.step(&node, ctx, built, &self.read, marks)?;
        if probe.is_done() {
            self.probe = None;
        }
        Ok(Some(out))
    }

    /// The left side has ended, or the member's part of it: returns the next stage.
    fn end_left(&mut self, ctx: &ExecContext) -> Stage {
        if let (Some(shared), Some(team), true) = (&self.shared, ctx.team(), self.node.join.gives_right_last()) {
            match shared.end_part(&self.matched, team.count()) {
                Some(matched) => self.matched = matched,
                // Another member's part is the last to end.
                None => return Stage::Done,
            }
            ctx.leave_order();
        }
        Stage::Built
    }

    /// Rows of the table with a partner, or without one; then the next stage.
    fn built_stage(&mut self) -> Option<Batch> {
        let join = self.node.join;
        if join.gives_right_last()
            && let Some(built) = &self.built
            && let Some(rows) = built_rows(&self.matched, join == JoinType::RightSemi, &mut self.built_from)
        {
            let mut columns = if join.keeps_left() { nulls(&self.node.left.kinds, rows.len()) } else { vec![] };
            columns.extend(built.rows.columns.iter().map(|c| c.take(&rows)));
            return Some(Batch { columns, rows: rows.len() });
        }
        self.built = None;
        self.stage = match (&self.overflow, &self.partnered) {
            (Some(_), _) => Stage::Build,
            (None, Some(_)) => {
                self.left_row = 0;
                if let Side::Run(_, reader) = &mut self.sides.0 {
                    reader.rewind();
                }
                Stage::LeftAlone
            }
            (None, None) => Stage::Next,
        };
        None
    }

    fn left_alone_stage(&mut self, ctx: &ExecContext) -> Result<Option<Batch>> {
        let wanted = self.node.join.keeps_unmatched_left();
        let (true, Some(left)) = (wanted, self.next_left(ctx)?) else {
            self.stage = Stage::Next;
            return Ok(None);
        };
        let Some(partnered) = &self.partnered else { return Ok(None) };
        let first = self.left_row;
        self.left_row += left.rows;
        let rows: Vec<u32> = (0..left.rows as u32).filter(|i| !partnered.get(first + *i as usize)).collect();
        Ok(Some(left_alone(&self.node, &left, &rows)))
    }
}

/// Whether a right row has a NULL for its key, so that NOT IN is true for no left row.
fn has_nulls(node: &HashJoinNode, ctx: &ExecContext, rows: &Batch) -> Result<bool> {
    let keys = Keys { expressions: &node.right_keys, parts: &node.parts };
    Ok(keys.not_null(ctx, rows)?.is_some())
}

/// No row of the table has found a partner; empty for joins that do not need it.
fn unmatched(node: &HashJoinNode, built: &Built) -> Bitmap {
    Bitmap::filled(if node.join.gives_right_last() { built.rows.rows } else { 0 }, false)
}

impl Operator for HashJoinOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        loop {
            let batch = match self.stage {
                Stage::Build => {
                    self.stage = self.build_stage(ctx)?;
                    None
                }
                Stage::Probe => self.probe_stage(ctx)?,
                Stage::Built => self.built_stage(),
                Stage::LeftAlone => self.left_alone_stage(ctx)?,
                Stage::Next => {
                    self.stage = self.next_work();
                    None
                }
                Stage::Done => return Ok(None),
            };
            if let Some(batch) = batch.filter(|b| b.rows > 0) {
                return Ok(give(&mut self.pending, batch, limit));
            }
            ctx.check_interrupt()?;
        }
    }

    fn share(&mut self, ctx: &ExecContext, tables: &mut BuiltTables) -> Result<bool> {
        if self.stage == Stage::Build {
            self.stage = self.build_stage(ctx)?;
        }
        match &self.built {
            // Not split, nor in rounds.
            Some(built) if self.stage == Stage::Probe && matches!(self.sides, (Side::Input, Side::Input)) => {
                let shared = Shared::new(built.clone(), unmatched(&self.node, built));
                tables.insert(self.id, Arc::new(shared));
                self.left.share(ctx, tables)
            }
            _ => Ok(false),
        }
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.sides = (Side::Input, Side::Input);
        self.level = 0;
        self.stage = Stage::Build;
        self.overflow = None;
        self.right_ended = false;
        self.built = None;
        self.probe = None;
        self.partnered = None;
        self.work.clear();
        self.batches = 1;
        self.pending.clear();
        self.left.rescan(ctx)?;
        self.right.rescan(ctx)
    }
}
