//! Hash joins: the right side is read into a table by key, the left side probes it.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::{Batch, Bitmap, Column, ColumnData, Datum, Result};

use super::build;
use super::pending::{Pending, append, give, nulls};
use crate::execute::expression::{Vector, filter};
use crate::execute::key::KeyPart;
use crate::execute::{BATCH_ROWS, ExecContext, Expression, Operator};
use crate::plan::node::{HashJoinNode, JoinType};

const END: u32 = u32::MAX;

/// Rows by key, rows of equal keys chained.
enum Table {
    /// One integer key.
    Int(HashMap<i64, u32>),
    Bytes(HashMap<Box<[u8]>, u32>),
}

pub(super) struct HashJoinOp {
    node: Arc<HashJoinNode>,
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    built: Option<Built>,
    pending: Pending,
    left_done: bool,
    /// Right and full joins: build rows still to look at for lack of a match.
    unmatched_from: usize,
}

struct Built {
    rows: Batch,
    table: Table,
    /// The next row with the same key.
    next: Vec<u32>,
    matched: Bitmap,
}

/// The key of row `i`, or `None` when a part of it is NULL.
fn key_of(keys: &[Vector<'_>], parts: &[KeyPart], i: usize, out: &mut Vec<u8>) -> bool {
    out.clear();
    for (key, part) in keys.iter().zip(parts) {
        let value = key.get(i);
        if value.is_null() {
            return false;
        }
        part.encode(&value, out);
    }
    true
}

/// Integer keys without looking at datums.
fn int_of(key: &Vector<'_>, i: usize) -> Option<i64> {
    let column = match key {
        Vector::Borrowed(c) => *c,
        Vector::Owned(c) => c,
        Vector::Scalar(d) => return int_datum(d),
    };
    if column.is_null(i) {
        return None;
    }
    match &column.data {
        ColumnData::Int2(v) => Some(i64::from(v[i])),
        ColumnData::Int4(v) => Some(i64::from(v[i])),
        ColumnData::Int8(v) => Some(v[i]),
        _ => int_datum(&column.get(i)),
    }
}

fn int_datum(d: &Datum) -> Option<i64> {
    match d {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        _ => None,
    }
}

fn is_int(e: &Expression) -> bool {
    use melba_types::Kind::*;
    matches!(e.kind, Int2 | Int4 | Int8)
}

impl HashJoinOp {
    pub fn new(node: Arc<HashJoinNode>, ctx: &ExecContext) -> Result<HashJoinOp> {
        let left = build(&node.left, ctx)?;
        let right = build(&node.right, ctx)?;
        Ok(HashJoinOp { node, left, right, built: None, pending: Pending::default(), left_done: false, unmatched_from: 0 })
    }

    fn build_table(&mut self, ctx: &ExecContext) -> Result<Built> {
        let node = &self.node;
        let mut rows = Batch { columns: nulls(&node.right.kinds, 0), rows: 0 };
        while let Some(batch) = self.right.next(ctx, BATCH_ROWS)? {
            append(&mut rows, batch);
            ctx.check_interrupt()?;
        }
        let keys = node.right_keys.iter().map(|k| k.eval_vector(ctx, &rows)).collect::<Result<Vec<_>>>()?;
        let mut next = vec![END; rows.rows];
        let ints = node.right_keys.len() == 1 && is_int(&node.right_keys[0]) && is_int(&node.left_keys[0]);
        // From the last row to the first, so that chains run in input order.
        let table = if ints {
            let mut table: HashMap<i64, u32> = HashMap::with_capacity(rows.rows);
            for i in (0..rows.rows).rev() {
                if let Some(key) = int_of(&keys[0], i) {
                    next[i] = table.insert(key, i as u32).unwrap_or(END);
                }
            }
            Table::Int(table)
        } else {
            let mut table: HashMap<Box<[u8]>, u32> = HashMap::with_capacity(rows.rows);
            let mut key = Vec::new();
            for i in (0..rows.rows).rev() {
                if key_of(&keys, &node.parts, i, &mut key) {
                    next[i] = match table.get_mut(&key[..]) {
                        Some(head) => std::mem::replace(head, i as u32),
                        None => {
                            table.insert(key.as_slice().into(), i as u32);
                            END
                        }
                    };
                }
            }
            Table::Bytes(table)
        };
        drop(keys);
        let matched = Bitmap::filled(rows.rows, false);
        Ok(Built { rows, table, next, matched })
    }

    /// Joins one batch of left rows.
    fn probe(&mut self, ctx: &ExecContext, left: &Batch) -> Result<Batch> {
        let node = self.node.clone();
        let Some(built) = &mut self.built else { return Ok(Batch::default()) };
        let keys = node.left_keys.iter().map(|k| k.eval_vector(ctx, left)).collect::<Result<Vec<_>>>()?;
        let (mut lefts, mut rights): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let exists_only = !node.join.keeps_right() && node.residual.is_empty();
        let mut key = Vec::new();
        for i in 0..left.rows {
            let head = match &built.table {
                Table::Int(table) => int_of(&keys[0], i).and_then(|k| table.get(&k)),
                Table::Bytes(table) if key_of(&keys, &node.parts, i, &mut key) => table.get(&key[..]),
                Table::Bytes(_) => None,
            };
            let mut at = head.copied().unwrap_or(END);
            while at != END {
                lefts.push(i as u32);
                rights.push(at);
                if exists_only {
                    break;
                }
                at = built.next[at as usize];
            }
        }
        if !node.residual.is_empty() && !lefts.is_empty() {
            let pairs = join_rows(left, &lefts, &built.rows, &rights);
            if let Some(kept) = filter(&node.residual, ctx, &pairs)? {
                lefts = kept.iter().map(|&k| lefts[k as usize]).collect();
                rights = kept.iter().map(|&k| rights[k as usize]).collect();
            }
        }
        match node.join {
            JoinType::Inner => Ok(join_rows(left, &lefts, &built.rows, &rights)),
            JoinType::Semi => {
                lefts.dedup();
                Ok(left.take(&lefts))
            }
            JoinType::SemiPair => {
                let mut last = None;
                let first: Vec<usize> = (0..lefts.len()).filter(|&i| last.replace(lefts[i]) != Some(lefts[i])).collect();
                let of = |rows: &[u32]| first.iter().map(|&i| rows[i]).collect::<Vec<u32>>();
                Ok(join_rows(left, &of(&lefts), &built.rows, &of(&rights)))
            }
            JoinType::Anti => Ok(left.take(&without(left.rows, &lefts))),
            JoinType::Left | JoinType::Full | JoinType::Right => {
                for &r in &rights {
                    built.matched.set(r as usize, true);
                }
                if node.join == JoinType::Right {
                    return Ok(join_rows(left, &lefts, &built.rows, &rights));
                }
                Ok(left_outer(left, &lefts, &built.rows, &rights))
            }
        }
    }

    /// Build rows without a match, with NULLs for the left side.
    fn unmatched(&mut self) -> Option<Batch> {
        let built = self.built.as_ref()?;
        let mut rows: Vec<u32> = Vec::new();
        while self.unmatched_from < built.rows.rows && rows.len() < BATCH_ROWS {
            if !built.matched.get(self.unmatched_from) {
                rows.push(self.unmatched_from as u32);
            }
            self.unmatched_from += 1;
        }
        if rows.is_empty() {
            return None;
        }
        let mut columns = nulls(&self.node.left.kinds, rows.len());
        columns.extend(built.rows.columns.iter().map(|c| c.take(&rows)));
        Some(Batch { columns, rows: rows.len() })
    }
}

/// The rows of 0..rows that are not in the ascending list.
pub(super) fn without(rows: usize, list: &[u32]) -> Vec<u32> {
    let mut list = list.iter().copied().peekable();
    let mut out = Vec::new();
    for i in 0..rows as u32 {
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

/// Pairs of rows side by side.
pub(super) fn join_rows(left: &Batch, lefts: &[u32], right: &Batch, rights: &[u32]) -> Batch {
    let mut columns: Vec<Column> = Vec::with_capacity(left.columns.len() + right.columns.len());
    columns.extend(left.columns.iter().map(|c| c.take(lefts)));
    columns.extend(right.columns.iter().map(|c| c.take(rights)));
    Batch { columns, rows: lefts.len() }
}

/// Pairs of rows, and left rows without a partner beside NULLs, in the order of the left rows.
fn left_outer(left: &Batch, lefts: &[u32], right: &Batch, rights: &[u32]) -> Batch {
    let mut all: Vec<u32> = Vec::with_capacity(left.rows.max(lefts.len()));
    let mut partner: Vec<Option<u32>> = Vec::with_capacity(all.capacity());
    let mut at = 0;
    for i in 0..left.rows as u32 {
        let start = at;
        while at < lefts.len() && lefts[at] == i {
            all.push(i);
            partner.push(Some(rights[at]));
            at += 1;
        }
        if at == start {
            all.push(i);
            partner.push(None);
        }
    }
    let mut columns: Vec<Column> = left.columns.iter().map(|c| c.take(&all)).collect();
    columns.extend(right.columns.iter().map(|c| take_or_null(c, &partner)));
    Batch { columns, rows: all.len() }
}

fn take_or_null(column: &Column, rows: &[Option<u32>]) -> Column {
    if column.is_empty() {
        let mut out = column.take(&[]);
        rows.iter().for_each(|_| out.push_null());
        return out;
    }
    let indices: Vec<u32> = rows.iter().map(|r| r.unwrap_or(0)).collect();
    let mut out = column.take(&indices);
    for (i, row) in rows.iter().enumerate() {
        if row.is_none() {
            if let ColumnData::Datum(values) = &mut out.data {
                values[i] = Datum::Null;
            }
            out.validity.get_or_insert_with(|| Bitmap::filled(rows.len(), true)).set(i, false);
        }
    }
    out
}

impl Operator for HashJoinOp {
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>> {
        if let Some(batch) = self.pending.take(limit) {
            return Ok(Some(batch));
        }
        if self.built.is_none() {
            self.built = Some(self.build_table(ctx)?);
        }
        let join = self.node.join;
        if self.built.as_ref().is_some_and(|b| b.rows.rows == 0)
            && matches!(join, JoinType::Inner | JoinType::Semi | JoinType::SemiPair | JoinType::Right)
        {
            return Ok(None);
        }
        while !self.left_done {
            let Some(left) = self.left.next(ctx, BATCH_ROWS)? else {
                self.left_done = true;
                break;
            };
            let batch = self.probe(ctx, &left)?;
            ctx.check_interrupt()?;
            if batch.rows > 0 {
                return Ok(give(&mut self.pending, batch, limit));
            }
        }
        if matches!(join, JoinType::Full | JoinType::Right)
            && let Some(batch) = self.unmatched()
        {
            return Ok(give(&mut self.pending, batch, limit));
        }
        Ok(None)
    }

    fn rescan(&mut self, ctx: &ExecContext) -> Result<()> {
        self.built = None;
        self.left_done = false;
        self.unmatched_from = 0;
        self.pending.clear();
        self.left.rescan(ctx)?;
        self.right.rescan(ctx)
    }
}
