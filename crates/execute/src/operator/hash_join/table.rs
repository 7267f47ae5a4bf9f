//! The table of a hash join.

use hashbrown::HashMap;
use melba_engine::Held;
use melba_types::{Batch, ColumnData, Datum, Result};

use crate::ExecContext;
use crate::join_filter::JoinFilter;
use melba_expression::Expression;
use melba_expression::Vector;
use melba_expression::key::KeyPart;
use melba_plan::node::HashJoinNode;
use melba_spill::Partitions;

/// The end of a chain.
pub(super) const END: u32 = u32::MAX;

/// Rows by key, rows of equal keys chained.
enum Table {
    /// One integer key.
    Int(HashMap<i64, u32>),
    /// Two of them, side by side.
    Ints(HashMap<u128, u32>),
    Bytes(HashMap<Box<[u8]>, u32>),
}

pub(super) struct Built {
    pub rows: Batch,
    table: Table,
    /// The next row with the same key.
    pub next: Vec<u32>,
    pub held: Held,
}

impl Built {
    /// About what the table takes beside its rows.
    pub fn table_bytes(rows: usize) -> usize {
        rows * 40
    }

    pub fn new(node: &HashJoinNode, ctx: &ExecContext, rows: Batch, held: Held) -> Result<Built> {
        let keys = node.right_keys.iter().map(|k| k.eval_vector(ctx, &rows)).collect::<Result<Vec<_>>>()?;
        let mut next = vec![END; rows.rows];
        let ints = node.right_keys.iter().chain(&node.left_keys).all(|key| key.kind.is_integer());
        // From the last row to the first, so that chains run in input order.
        let table = if ints && keys.len() == 2 {
            let mut table: HashMap<u128, u32> = HashMap::with_capacity(rows.rows);
            for i in (0..rows.rows).rev() {
                if let Some(key) = ints_of(&keys, i) {
                    next[i] = table.insert(key, i as u32).unwrap_or(END);
                }
            }
            Table::Ints(table)
        } else if ints && keys.len() == 1 {
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
        Ok(Built { rows, table, next, held })
    }

    /// Gives scans of the left side the keys, as far as there is memory for them.
    pub fn tell_scans(&mut self, node: &HashJoinNode, ctx: &ExecContext) -> Result<()> {
        for (key, number) in &node.filters {
            let keys = node.right_keys[*key].eval_vector(ctx, &self.rows)?;
            let filter = JoinFilter::new((0..self.rows.rows).filter_map(|row| int_of(&keys, row)));
            let filter = filter.filter(|filter| self.held.try_set(self.held.bytes() + filter.bytes()));
            ctx.set_join_filter(*number, filter);
        }
        Ok(())
    }

    /// For each left row the first row with its key, or `END`.
    pub fn heads(&self, node: &HashJoinNode, ctx: &ExecContext, left: &Batch) -> Result<Vec<u32>> {
        let keys = node.left_keys.iter().map(|k| k.eval_vector(ctx, left)).collect::<Result<Vec<_>>>()?;
        let mut key = Vec::new();
        let head = |i: usize| {
            let head = match &self.table {
                Table::Int(table) => int_of(&keys[0], i).and_then(|k| table.get(&k)),
                Table::Ints(table) => ints_of(&keys, i).and_then(|k| table.get(&k)),
                Table::Bytes(table) if key_of(&keys, &node.parts, i, &mut key) => table.get(&key[..]),
                Table::Bytes(_) => None,
            };
            head.copied().unwrap_or(END)
        };
        Ok((0..left.rows).map(head).collect())
    }
}

/// The key of row `i`; false when a part of it is NULL.
fn key_of(keys: &[Vector<'_>], parts: &[KeyPart], i: usize, out: &mut Vec<u8>) -> bool {
    out.clear();
    for (key, part) in keys.iter().zip(parts) {
        if key.is_null(i) {
            return false;
        }
        key.encode_key(part, i, out);
    }
    true
}

/// Two integer keys as one.
fn ints_of(keys: &[Vector<'_>], i: usize) -> Option<u128> {
    let half = |key: &Vector<'_>| int_of(key, i).map(|v| u128::from(v as u64));
    Some(half(&keys[0])? << 64 | half(&keys[1])?)
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
        ColumnData::Oid(v) => Some(i64::from(v[i])),
        _ => int_datum(&column.get(i)),
    }
}

fn int_datum(d: &Datum) -> Option<i64> {
    match d {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        Datum::Oid(v) => Some(i64::from(*v)),
        _ => None,
    }
}

/// The join keys of one side.
pub(super) struct Keys<'a> {
    pub expressions: &'a [Expression],
    pub parts: &'a [KeyPart],
}

impl Keys<'_> {
    /// Splits a batch by key. Rows with a NULL, which never find a partner, are all in the first part.
    pub fn split(&self, ctx: &ExecContext, batch: &Batch, to: &mut Partitions) -> Result<()> {
        let keys = self.expressions.iter().map(|k| k.eval_vector(ctx, batch)).collect::<Result<Vec<_>>>()?;
        let mut key = Vec::new();
        let part = |i| if key_of(&keys, self.parts, i, &mut key) { to.part_of(&key) } else { 0 };
        let parts: Vec<u32> = (0..batch.rows).map(part).collect();
        to.push(batch, &parts)
    }
}
