//! Left rows looked up in the table of a hash join, a bounded number of pairs at a time.

use melba_types::{Batch, Bitmap, Column, ColumnData, Result};

use super::super::pending::nulls;
use super::table::{Built, END};
use crate::ExecContext;
use melba_expression::filter;
use melba_plan::node::{HashJoinNode, JoinType};
use melba_types::BATCH_ROWS;

/// Pairs put together at a time.
const PAIRS_MAX: usize = 2 * BATCH_ROWS;

/// Which rows have found a partner, across batches of left rows.
pub(super) struct Marks<'a> {
    /// Of the table.
    pub matched: &'a mut Bitmap,
    /// Of the left side, when the join is done in rounds: left rows without a partner wait for the last one.
    pub partnered: Option<&'a mut Bitmap>,
}

/// One batch of left rows being joined.
pub(super) struct Probe {
    /// Of the join's node.
    id: usize,
    left: Batch,
    /// Number of the batch's first row within the left side.
    first: usize,
    /// For each left row, the next row of its chain that it has not been paired with.
    heads: Vec<u32>,
    /// The next left row.
    at: usize,
    /// The row at `at` has found a partner already.
    matched: bool,
}

impl Probe {
    pub fn new((id, node): (usize, &HashJoinNode), ctx: &ExecContext, left: Batch, first: usize, built: &Built) -> Result<Probe> {
        let heads = built.heads(node, ctx, &left)?;
        Ok(Probe { id, left, first, heads, at: 0, matched: false })
    }

    pub fn is_done(&self) -> bool {
        self.at >= self.left.rows
    }

    /// Pairs up some rows. `read`: columns that the residual conditions read.
    pub fn step(
        &mut self,
        node: &HashJoinNode,
        ctx: &ExecContext,
        built: &Built,
        read: &[usize],
        marks: Marks<'_>,
    ) -> Result<Batch> {
        let from = self.at;
        let (mut lefts, mut rights) = self.candidates(node, built);
        if !node.residual.is_empty() && !lefts.is_empty() {
            let pairs = read_pairs(&self.left, &lefts, &built.rows, &rights, read);
            if let Some(kept) = filter(&node.residual, ctx, &pairs)? {
                ctx.note_removed(self.id, lefts.len(), kept.len());
                lefts = kept.iter().map(|&k| lefts[k as usize]).collect();
                rights = kept.iter().map(|&k| rights[k as usize]).collect();
            }
        }
        if node.join.gives_right_last() {
            rights.iter().for_each(|&r| marks.matched.set(r as usize, true));
        }
        let rounds = marks.partnered.is_some();
        let met = self.note_partners(from, &lefts, marks.partnered);
        let fresh = |row: &u32| !met.before(*row);
        Ok(match node.join {
            // Each row has its one partner: the left columns are the join's.
            JoinType::Inner | JoinType::Right if built.is_unique() && lefts.len() == self.left.rows => {
                let mut columns = std::mem::take(&mut self.left).columns;
                columns.extend(built.rows.columns.iter().map(|c| c.take(&rights)));
                Batch { columns, rows: rights.len() }
            }
            JoinType::Inner | JoinType::Right => join_rows(&self.left, &lefts, &built.rows, &rights),
            JoinType::Left | JoinType::Full if rounds => join_rows(&self.left, &lefts, &built.rows, &rights),
            JoinType::Left | JoinType::Full => left_outer(&self.left, &lefts, &built.rows, &rights, from..self.at, &met),
            JoinType::SemiPair => {
                let mut last = None;
                let is_first = |i: &usize| last.replace(lefts[*i]) != Some(lefts[*i]) && !met.before(lefts[*i]);
                let first: Vec<usize> = (0..lefts.len()).filter(is_first).collect();
                let of = |rows: &[u32]| first.iter().map(|&i| rows[i]).collect::<Vec<u32>>();
                join_rows(&self.left, &of(&lefts), &built.rows, &of(&rights))
            }
            JoinType::Semi => {
                lefts.dedup();
                lefts.retain(fresh);
                self.left.take(&lefts)
            }
            JoinType::RightSemi | JoinType::RightAnti => Batch::default(),
            JoinType::Anti | JoinType::NotIn if rounds => Batch::default(),
            JoinType::Anti | JoinType::NotIn => {
                let alone = without(from..self.at, &lefts);
                self.left.take(&alone.into_iter().filter(fresh).collect::<Vec<_>>())
            }
        })
    }

    /// The next pairs with equal keys; continues up to the first row that is not complete.
    fn candidates(&mut self, node: &HashJoinNode, built: &Built) -> (Vec<u32>, Vec<u32>) {
        if built.is_unique() {
            return self.only_partners();
        }
        let exists_only = !node.join.keeps_right() && node.residual.is_empty();
        let (mut lefts, mut rights): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        while self.at < self.left.rows && lefts.len() < PAIRS_MAX {
            let mut row = self.heads[self.at];
            while row != END && lefts.len() < PAIRS_MAX {
                lefts.push(self.at as u32);
                rights.push(row);
                row = if exists_only { END } else { built.next(row) };
            }
            self.heads[self.at] = row;
            if row != END {
                break;
            }
            self.at += 1;
        }
        (lefts, rights)
    }

    /// All pairs, of rows that have one partner at most.
    fn only_partners(&mut self) -> (Vec<u32>, Vec<u32>) {
        let left = self.left.rows;
        self.at = left;
        let (mut lefts, mut rights) = (vec![0; left], vec![0; left]);
        let mut count = 0;
        for (row, head) in self.heads.iter().enumerate() {
            (lefts[count], rights[count]) = (row as u32, *head);
            count += usize::from(*head != END);
        }
        lefts.truncate(count);
        rights.truncate(count);
        (lefts, rights)
    }

    /// Remembers that the rows in `lefts` have a partner; returns which had one before.
    fn note_partners(&mut self, from: usize, lefts: &[u32], partnered: Option<&mut Bitmap>) -> Met {
        let mut met = Met { in_progress: self.matched.then_some(from as u32), rounds: Vec::new() };
        if let Some(partnered) = partnered {
            for &row in lefts {
                let at = self.first + row as usize;
                if partnered.get(at) && met.rounds.last() != Some(&row) {
                    met.rounds.push(row);
                }
            }
            lefts.iter().for_each(|row| partnered.set(self.first + *row as usize, true));
        }
        let still = lefts.last() == Some(&(self.at as u32)) || (self.at == from && self.matched);
        self.matched = self.at < self.left.rows && still;
        met
    }
}

/// Left rows that had found a partner before this step.
struct Met {
    /// The row that the last step left half done.
    in_progress: Option<u32>,
    /// Rows, ascending, that had one in an earlier round.
    rounds: Vec<u32>,
}

impl Met {
    fn before(&self, row: u32) -> bool {
        self.in_progress == Some(row) || self.rounds.binary_search(&row).is_ok()
    }
}

/// The rows of a range that are not in the ascending list.
fn without(rows: std::ops::Range<usize>, list: &[u32]) -> Vec<u32> {
    let mut list = list.iter().copied().peekable();
    let mut out = Vec::new();
    for i in rows.start as u32..rows.end as u32 {
        let mut found = false;
        while list.next_if_eq(&i).is_some() {
            found = true;
        }
        if !found {
            out.push(i);
        }
    }
    out
}

/// The next rows that have a partner, or have none; `None` when there are no more.
pub(super) fn built_rows(matched: &Bitmap, with_partner: bool, from: &mut usize) -> Option<Vec<u32>> {
    let mut rows: Vec<u32> = Vec::new();
    while *from < matched.len() && rows.len() < BATCH_ROWS {
        if matched.get(*from) == with_partner {
            rows.push(*from as u32);
        }
        *from += 1;
    }
    (!rows.is_empty()).then_some(rows)
}

/// Left rows without a partner, in the join's output form.
pub(super) fn left_alone(node: &HashJoinNode, left: &Batch, rows: &[u32]) -> Batch {
    let mut batch = left.take(rows);
    if node.join.keeps_right() {
        batch.columns.extend(nulls(&node.right.kinds, rows.len()));
    }
    batch
}

/// Pairs of rows side by side.
pub(in crate::operator) fn join_rows(left: &Batch, lefts: &[u32], right: &Batch, rights: &[u32]) -> Batch {
    let mut columns: Vec<Column> = Vec::with_capacity(left.columns.len() + right.columns.len());
    columns.extend(left.columns.iter().map(|c| c.take(lefts)));
    columns.extend(right.columns.iter().map(|c| c.take(rights)));
    Batch { columns, rows: lefts.len() }
}

/// The columns of pairs that are `read`; no caller may read the others.
fn read_pairs(left: &Batch, lefts: &[u32], right: &Batch, rights: &[u32], read: &[usize]) -> Batch {
    let sides = left.columns.iter().map(|c| (c, lefts)).chain(right.columns.iter().map(|c| (c, rights)));
    let column = |(i, (column, rows)): (usize, (&Column, &[u32]))| match read.contains(&i) {
        true => column.take(rows),
        false => Column::new(ColumnData::Bool(Vec::new())),
    };
    Batch { columns: sides.enumerate().map(column).collect(), rows: lefts.len() }
}

/// Pairs of rows, and the complete left rows without a partner beside NULLs, in the order of the left rows.
fn left_outer(left: &Batch, lefts: &[u32], right: &Batch, rights: &[u32], complete: std::ops::Range<usize>, met: &Met) -> Batch {
    let mut all: Vec<u32> = Vec::with_capacity(complete.len().max(lefts.len()));
    let mut partner: Vec<Option<u32>> = Vec::with_capacity(all.capacity());
    let mut at = 0;
    for i in complete.start as u32..complete.end as u32 {
        let start = at;
        while at < lefts.len() && lefts[at] == i {
            all.push(i);
            partner.push(Some(rights[at]));
            at += 1;
        }
        if at == start && !met.before(i) {
            all.push(i);
            partner.push(None);
        }
    }
    // Pairs of the row that is not complete.
    all.extend(&lefts[at..]);
    partner.extend(rights[at..].iter().map(|r| Some(*r)));
    let mut columns: Vec<Column> = left.columns.iter().map(|c| c.take(&all)).collect();
    columns.extend(right.columns.iter().map(|c| c.take_or_null(&partner)));
    Batch { columns, rows: all.len() }
}
