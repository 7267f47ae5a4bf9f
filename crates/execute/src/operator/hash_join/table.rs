//! The table of a hash join.

use melba_engine::Held;
use melba_types::key_words::KeyWords;
use melba_types::{Batch, Column, ColumnData, Result};

use super::super::integers::{each_int, int_datum};
use super::super::long_keys::LongKeys;
use super::row_table::RowTable;
use crate::ExecContext;
use crate::join_filter::JoinFilter;
use melba_expression::Expression;
use melba_expression::Vector;
use melba_expression::expand;
use melba_expression::key::KeyPart;
use melba_plan::node::HashJoinNode;
use melba_spill::Partitions;

/// The end of a chain.
pub(super) const END: u32 = u32::MAX;

/// The first row of each key; rows of equal keys are chained.
enum Table {
    /// One integer key, whose values lie close together: by the distance from the least.
    Dense { least: i64, heads: Vec<u32> },
    /// One integer key.
    Int(RowTable<i64>),
    /// Two of them, side by side.
    Ints(RowTable<u128>),
    /// Encoded keys: those that fit a word, and the others.
    Encoded { words: RowTable<u128>, long: LongKeys },
}

pub(super) struct Built {
    pub rows: Batch,
    table: Table,
    /// The next row with the same key; empty when no two rows have the same.
    next: Vec<u32>,
    pub held: Held,
}

/// A table by distance may have this many places a row, and this many in any case.
const PLACES_A_ROW: usize = 8;
const PLACES_LEAST: usize = 4096;

impl Built {
    /// About the size of a table that is not built yet, beside its rows; their keys fit words.
    pub fn table_bytes_about(rows: usize) -> usize {
        rows * 40
    }

    /// The size of the table beside its rows.
    pub fn table_bytes(&self) -> usize {
        let table = match &self.table {
            Table::Dense { heads, .. } => heads.capacity() * size_of::<u32>(),
            Table::Int(table) => table.bytes(),
            Table::Ints(table) => table.bytes(),
            Table::Encoded { words, long } => words.bytes() + long.bytes(),
        };
        table + self.next.capacity() * size_of::<u32>()
    }

    pub fn new(node: &HashJoinNode, ctx: &ExecContext, rows: Batch, held: Held) -> Result<Built> {
        let keys = node.right_keys.iter().map(|k| k.eval_vector(ctx, &rows)).collect::<Result<Vec<_>>>()?;
        let mut next = vec![END; rows.rows];
        let ints = node.right_keys.iter().chain(&node.left_keys).all(|key| key.kind.is_integer());
        let mut is_unique = true;
        // The next row with the key, when `row` becomes the first.
        let mut chain = |row: usize, before: u32| {
            next[row] = before;
            is_unique &= before == END;
        };
        // From the last row to the first, so that chains run in input order.
        let table = if ints && keys.len() == 2 {
            let words = (0..rows.rows).map(|row| ints_of(&keys, row).unwrap_or(0)).collect();
            Table::Ints(RowTable::new(words, |row| !has_null(&keys, row), chain))
        } else if ints && keys.len() == 1 {
            int_table(&keys[0], rows.rows, chain)
        } else {
            let of_rows = key_words(&keys, &node.parts, rows.rows);
            let (mut long, mut key) = (LongKeys::default(), Vec::new());
            for row in (0..rows.rows).rev().filter(|row| of_rows.get(*row).is_none()) {
                if key_of(&keys, &node.parts, row, &mut key) {
                    chain(row, long.put(&key, row as u32).unwrap_or(END));
                }
            }
            let are_words: Vec<bool> = (0..rows.rows).map(|row| of_rows.get(row).is_some() && !has_null(&keys, row)).collect();
            Table::Encoded { words: RowTable::new(of_rows.into_words(), |row| are_words[row], chain), long }
        };
        drop(keys);
        if is_unique {
            next = Vec::new();
        }
        Ok(Built { rows, table, next, held })
    }

    /// Lets rows be taken as codes in some columns of strings, if there is memory for the codes.
    pub fn code(&mut self, columns: &[usize]) {
        let bytes_of = |column: &usize| match &self.rows.columns[*column].data {
            // The entries are those of a join below, which may end before this one.
            ColumnData::Coded(known) => known.entries().memory_bytes(),
            _ => self.rows.rows * size_of::<u32>(),
        };
        let bytes: usize = columns.iter().map(bytes_of).sum();
        if self.held.try_set(self.held.bytes() + bytes) {
            for column in columns {
                let own = &mut self.rows.columns[*column];
                *own = std::mem::replace(own, Column::new(ColumnData::Bool(Vec::new()))).into_coded();
            }
        }
    }

    /// Whether no two rows have the same key.
    pub fn is_unique(&self) -> bool {
        self.next.is_empty()
    }

    /// The next row with the key of this one, or `END`.
    pub fn next(&self, row: u32) -> u32 {
        self.next.get(row as usize).copied().unwrap_or(END)
    }

    /// Passes the keys to scans of the left side, as far as there is memory for them.
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
        let mut out = Vec::with_capacity(left.rows);
        in_pieces(ctx, &node.left_keys, left, |piece| {
            out.extend(self.heads_of_piece(node, ctx, piece)?);
            Ok(())
        })?;
        Ok(out)
    }

    fn heads_of_piece(&self, node: &HashJoinNode, ctx: &ExecContext, left: &Batch) -> Result<Vec<u32>> {
        let keys = node.left_keys.iter().map(|k| k.eval_vector(ctx, left)).collect::<Result<Vec<_>>>()?;
        let mut out = Vec::with_capacity(left.rows);
        match &self.table {
            // Keys below the least become large.
            Table::Dense { least, heads } => each_int(&keys[0], 0..left.rows, |_, key| {
                let head = key.and_then(|key| heads.get(usize::try_from(key.wrapping_sub(*least) as u64).ok()?));
                out.push(head.copied().unwrap_or(END));
            }),
            Table::Int(table) => {
                let mut of_rows = Vec::with_capacity(left.rows);
                each_int(&keys[0], 0..left.rows, |_, key| of_rows.push(key));
                table.find_all(of_rows.into_iter(), &mut out);
            }
            Table::Ints(table) => table.find_all((0..left.rows).map(|row| ints_of(&keys, row)), &mut out),
            Table::Encoded { words, long } => {
                let of_rows = (!words.is_empty()).then(|| key_words(&keys, &node.parts, left.rows));
                let word = |row: usize| of_rows.as_ref().and_then(|of_rows| of_rows.get(row));
                words.find_all((0..left.rows).map(|row| word(row).filter(|_| !has_null(&keys, row))), &mut out);
                let mut key = Vec::new();
                for row in (0..left.rows).filter(|row| !long.is_empty() && word(*row).is_none()) {
                    if key_of(&keys, &node.parts, row, &mut key) {
                        out[row] = long.get(&key).unwrap_or(END);
                    }
                }
            }
        }
        Ok(out)
    }
}

/// The table of one integer key. `chain` is called with the rows, from the last to the first, and the row that was the first with
/// the key before.
fn int_table(key: &Vector<'_>, rows: usize, mut chain: impl FnMut(usize, u32)) -> Table {
    let (mut least, mut greatest) = (i64::MAX, i64::MIN);
    each_int(key, 0..rows, |_, key| {
        if let Some(key) = key {
            (least, greatest) = (least.min(key), greatest.max(key));
        }
    });
    let places = usize::try_from(greatest.wrapping_sub(least) as u64).map_or(usize::MAX, |span| span.saturating_add(1));
    if least > greatest || places <= (rows * PLACES_A_ROW).max(PLACES_LEAST) {
        let mut heads = vec![END; if least > greatest { 0 } else { places }];
        each_int(key, (0..rows).rev(), |row, key| {
            if let Some(key) = key {
                chain(row, std::mem::replace(&mut heads[key.wrapping_sub(least) as usize], row as u32));
            }
        });
        return Table::Dense { least, heads };
    }
    let mut keys = Vec::with_capacity(rows);
    each_int(key, 0..rows, |_, key| keys.push(key.unwrap_or(0)));
    Table::Int(RowTable::new(keys, |row| !key.is_null(row), chain))
}

/// The keys of all rows that fit words. A row with a NULL may have one, too.
fn key_words(keys: &[Vector<'_>], parts: &[KeyPart], rows: usize) -> KeyWords {
    let mut words = KeyWords::new(rows);
    keys.iter().zip(parts).for_each(|(key, part)| key.append_words(part, &mut words));
    words
}

fn has_null(keys: &[Vector<'_>], row: usize) -> bool {
    keys.iter().any(|key| key.is_null(row))
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

/// Calls `each` with as many rows at a time as may be expanded together, where keys are columns in stored form. The other columns of
/// a piece may lack.
fn in_pieces(ctx: &ExecContext, keys: &[Expression], batch: &Batch, mut each: impl FnMut(&Batch) -> Result<()>) -> Result<()> {
    let mut read = Vec::new();
    keys.iter().for_each(|key| key.columns(&mut read));
    if !read.iter().any(|column| batch.columns[*column].is_stored()) {
        return each(batch);
    }
    let mut from = 0;
    while from < batch.rows {
        ctx.check_interrupt()?;
        let rows = expand::rows_within(batch, from);
        each(&batch.slice(from..from + rows, Some(&read)))?;
        from += rows;
    }
    Ok(())
}

/// The join keys of one side.
pub(super) struct Keys<'a> {
    pub expressions: &'a [Expression],
    pub parts: &'a [KeyPart],
}

impl Keys<'_> {
    /// What keys that are computed or expanded take, and their copies in a table: as long as it is made, both are there.
    pub fn computed_bytes(&self, ctx: &ExecContext, batch: &Batch) -> Result<usize> {
        let bytes = |key: &Expression| {
            if key.makes_values() && !key.is_volatile() {
                return Ok(2 * key.eval_vector(ctx, batch)?.owned_bytes());
            }
            let mut read = Vec::new();
            if key.is_column() {
                key.columns(&mut read);
            }
            Ok(2 * read.iter().map(|column| expand::expanded_bytes(&batch.columns[*column])).sum::<usize>())
        };
        self.expressions.iter().map(bytes).sum()
    }

    /// The rows without a NULL in a key; `None`: all of them.
    pub fn not_null(&self, ctx: &ExecContext, batch: &Batch) -> Result<Option<Vec<u32>>> {
        let keys = self.expressions.iter().map(|k| k.eval_stored_vector(ctx, batch)).collect::<Result<Vec<_>>>()?;
        let rows: Vec<u32> = (0..batch.rows as u32).filter(|row| !keys.iter().any(|key| key.is_null(*row as usize))).collect();
        Ok((rows.len() < batch.rows).then_some(rows))
    }

    /// Splits a batch by key. Rows with a NULL, which never find a partner, are all in the first part.
    pub fn split(&self, ctx: &ExecContext, batch: Batch, to: &mut Partitions) -> Result<()> {
        let (mut parts, mut key) = (Vec::with_capacity(batch.rows), Vec::new());
        in_pieces(ctx, self.expressions, &batch, |piece| {
            let keys = self.expressions.iter().map(|k| k.eval_vector(ctx, piece)).collect::<Result<Vec<_>>>()?;
            let part = |i| if key_of(&keys, self.parts, i, &mut key) { to.part_of(&key) } else { 0 };
            parts.extend((0..piece.rows).map(part));
            Ok(())
        })?;
        to.push(batch, &parts)
    }
}
