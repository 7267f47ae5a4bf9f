//! Frames: the rows of its partition that a row's window functions see.

use std::cell::RefCell;
use std::ops::Range;

use melba_types::{Datum, Result, bail, limits};

use super::pages::Pages;
use crate::ExecContext;
use melba_expression::Call;
use melba_plan::node::WindowNode;
use melba_tree::{FrameBound, FrameExclusion, FrameMode};

/// The frames of one partition, computed row by row.
pub(super) struct Frames<'a> {
    node: &'a WindowNode,
    ctx: &'a ExecContext<'a>,
    pages: &'a Pages<'a>,
    rows: usize,
    /// Columns of the order key, and of the order value when there is one order column.
    key: usize,
    value: Option<usize>,
    /// The last requested peer group.
    group: RefCell<Range<usize>>,
    offsets: &'a Offsets,
}

/// The frame's offsets: computed once, even when there is no row.
#[derive(Default)]
pub(super) struct Offsets {
    start: Datum,
    end: Datum,
}

impl Offsets {
    /// # Errors
    /// 22004 for NULL, 22013 for a negative number of rows or groups.
    pub fn compute(node: &WindowNode, ctx: &ExecContext) -> Result<Offsets> {
        let offset = |e: &Option<melba_expression::Expression>, which: &str| -> Result<Datum> {
            let Some(e) = e else { return Ok(Datum::Null) };
            let value = e.eval_row(ctx, &[])?;
            match &value {
                Datum::Null => bail!(NULL_VALUE_NOT_ALLOWED, "frame {which} offset must not be null"),
                Datum::Int8(v) if *v < 0 && node.frame.mode != FrameMode::Range => {
                    bail!(INVALID_PRECEDING_OR_FOLLOWING_SIZE, "frame {which} offset must not be negative")
                }
                _ => Ok(value),
            }
        };
        Ok(Offsets { start: offset(&node.start_offset, "starting")?, end: offset(&node.end_offset, "ending")? })
    }
}

impl<'a> Frames<'a> {
    pub fn new(
        node: &'a WindowNode,
        ctx: &'a ExecContext<'a>,
        pages: &'a Pages<'a>,
        key: usize,
        value: Option<usize>,
        offsets: &'a Offsets,
    ) -> Frames<'a> {
        let rows = pages.rows();
        Frames { node, ctx, pages, rows, key, value, group: RefCell::new(0..0), offsets }
    }

    /// The rows that are equal in order; mostly the row is in the last requested group, or the first one after it.
    pub fn peers(&self, row: usize) -> Result<Range<usize>> {
        let known = self.group.borrow().clone();
        if known.contains(&row) {
            return Ok(known);
        }
        let mut start = row;
        while start > 0 && start != known.end && self.pages.same(start - 1, row, self.key)? {
            start -= 1;
        }
        let mut end = row + 1;
        while end < self.rows && self.pages.same(row, end, self.key)? {
            end += 1;
        }
        *self.group.borrow_mut() = start..end;
        Ok(start..end)
    }

    /// The first row of the group `count` groups before that of `row`, or the end of it; `None` when there are fewer.
    fn group_before(&self, row: usize, count: usize) -> Result<Option<Range<usize>>> {
        let mut group = self.peers(row)?;
        for _ in 0..count {
            if group.start == 0 {
                return Ok(None);
            }
            group = self.peers(group.start - 1)?;
        }
        Ok(Some(group))
    }

    fn group_after(&self, row: usize, count: usize) -> Result<Option<Range<usize>>> {
        let mut group = self.peers(row)?;
        for _ in 0..count {
            if group.end >= self.rows {
                return Ok(None);
            }
            group = self.peers(group.end)?;
        }
        Ok(Some(group))
    }

    pub fn frame(&self, row: usize) -> Result<[Range<usize>; 3]> {
        let frame = &self.node.frame;
        let from = self.bound(row, &frame.start, true)?.min(self.rows);
        let to = self.bound(row, &frame.end, false)?.clamp(from, self.rows);
        let peers = self.peers(row)?;
        let cut = |hole: Range<usize>| [from..to.min(hole.start).max(from), to.min(from.max(hole.end))..to, 0..0];
        Ok(match frame.exclude {
            FrameExclusion::None => [from..to, 0..0, 0..0],
            FrameExclusion::CurrentRow => cut(row..row + 1),
            FrameExclusion::Group => cut(peers),
            FrameExclusion::Ties => {
                let [before, after, _] = cut(peers);
                if (from..to).contains(&row) { [before, row..row + 1, after] } else { [before, after, 0..0] }
            }
        })
    }

    /// The first row of the frame (`starting`), or the row after its last.
    fn bound(&self, row: usize, bound: &FrameBound, starting: bool) -> Result<usize> {
        let offset = if starting { &self.offsets.start } else { &self.offsets.end };
        Ok(match (bound, self.node.frame.mode) {
            (FrameBound::UnboundedPreceding, _) => 0,
            (FrameBound::UnboundedFollowing, _) => self.rows,
            (FrameBound::CurrentRow, FrameMode::Rows) => row + usize::from(!starting),
            (FrameBound::CurrentRow, _) => {
                let peers = self.peers(row)?;
                if starting { peers.start } else { peers.end }
            }
            (FrameBound::Preceding(_), FrameMode::Rows) => (row + usize::from(!starting)).saturating_sub(count(offset)),
            (FrameBound::Following(_), FrameMode::Rows) => (row + usize::from(!starting)).saturating_add(count(offset)),
            (FrameBound::Preceding(_), FrameMode::Groups) => match self.group_before(row, count(offset))? {
                Some(group) if starting => group.start,
                Some(group) => group.end,
                None => 0,
            },
            (FrameBound::Following(_), FrameMode::Groups) => match self.group_after(row, count(offset))? {
                Some(group) if starting => group.start,
                Some(group) => group.end,
                None => self.rows,
            },
            (FrameBound::Preceding(_), FrameMode::Range) => self.range_bound(row, offset, true, starting)?,
            (FrameBound::Following(_), FrameMode::Range) => self.range_bound(row, offset, false, starting)?,
        })
    }

    /// RANGE with an offset: by the type's in_range function. NULLs are peers of each other only.
    fn range_bound(&self, row: usize, offset: &Datum, preceding: bool, starting: bool) -> Result<usize> {
        let call = if starting { &self.node.in_range_start } else { &self.node.in_range_end };
        limits::check_interrupt()?;
        let (Some(call), Some(column)) = (call, self.value) else {
            return Err(melba_types::DbError::internal("RANGE offset without in_range function"));
        };
        let value = |i: usize| self.pages.value(i, column);
        let current = value(row)?;
        let peers = self.peers(row)?;
        if current.is_null() {
            return Ok(if starting { peers.start } else { peers.end });
        }
        let descending = self.node.order[0].1.descending();
        // In terms of values: preceding in a descending order is greater.
        let subtract = preceding != descending;
        // Non-null rows are contiguous.
        let (mut low, mut high) = (0, self.rows);
        while low < high && value(low)?.is_null() {
            low += 1;
        }
        while high > low && value(high - 1)?.is_null() {
            high -= 1;
        }
        // The first row for which "outside before the bound" is false.
        while low < high {
            let middle = low + (high - low) / 2;
            let before = if starting {
                // Rows before the frame: not within (value >= bound ascending).
                !self.in_range(call, value(middle)?, &current, offset, subtract, descending)?
            } else {
                self.in_range(call, value(middle)?, &current, offset, subtract, !descending)?
            };
            if before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// value <= (`less`) or >= current ± offset.
    fn in_range(&self, call: &Call, value: Datum, current: &Datum, offset: &Datum, subtract: bool, less: bool) -> Result<bool> {
        let args = [value, current.clone(), offset.clone(), Datum::Bool(subtract), Datum::Bool(less)];
        Ok(matches!(call.invoke(&call.info(self.ctx), &args)?, Datum::Bool(true)))
    }
}

fn count(offset: &Datum) -> usize {
    match offset {
        Datum::Int8(v) => usize::try_from(*v).unwrap_or(0),
        Datum::Int4(v) => usize::try_from(*v).unwrap_or(0),
        _ => 0,
    }
}
