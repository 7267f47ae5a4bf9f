//! Rows of a toast table: the chunks in which PostgreSQL would keep a table's long values.
//!
//! A value's id is the result of pg_column_toast_chunk_id. Its chunks are the bytes that pg_column_size counts: of a compressed
//! value its length and method, then the streams of its frames, end to end.

use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

use melba_catalog::Storage;
use melba_engine::TableScan;
use melba_fmgr::varlena::HEADER_BYTES;
use melba_toast::{External, Stored, frame};
use melba_types::{ByteStrings, Column, ColumnData, Datum, DbError, Oid, Result, RowId};

use melba_expression::Evaluation;
use melba_expression::expand::parse;

/// PostgreSQL's size: four chunks fit on a page.
const CHUNK_BYTES: usize = 1996;
/// Chunks made at a time.
const ROWS: usize = 1024;

/// A scan of a toast table: a scan of its table that finds pointers, and their values one after the other.
pub struct ChunkScan {
    scan: TableScan,
    ids: RangeInclusive<u32>,
    with_data: bool,
    found: VecDeque<External>,
    current: Option<Chunks>,
}

/// The remaining part of a value.
struct Chunks {
    external: External,
    frames: Range<u64>,
    /// Bytes that were read; those from `at` on are for the next chunks.
    bytes: Vec<u8>,
    at: usize,
    /// Bytes of the chunks to come.
    left: usize,
    number: i32,
}

impl ChunkScan {
    /// Chunks of values with these ids. Without data that column stays empty, and no value is read.
    pub fn open(ctx: &Evaluation, table: Oid, ids: RangeInclusive<u32>, with_data: bool) -> Result<ChunkScan> {
        let relation = ctx.catalog().relation(table);
        let Some((relation, Storage::Tree(tree))) = relation.map(|r| (r, &r.storage)) else {
            return Err(DbError::internal(format!("table {table} does not exist")));
        };
        let long = relation.columns.iter().enumerate().filter(|(_, c)| c.kind.is_toastable() && !c.dropped);
        let (projection, missing): (Vec<usize>, Vec<Datum>) = long.map(|(i, c)| (i, c.missing.clone())).unzip();
        let scan = ctx.transaction().scan(ctx.view(), *tree, &projection, &missing, &[], None)?;
        Ok(ChunkScan { scan, ids, with_data, found: VecDeque::new(), current: None })
    }

    /// Columns for some more rows, and how many those are; `None` at the end.
    pub fn next(&mut self, ctx: &Evaluation) -> Result<Option<(Vec<Column>, usize)>> {
        let (mut ids, mut numbers, mut data) = (Vec::new(), Vec::new(), ByteStrings::default());
        while ids.len() < ROWS {
            let Some(chunks) = &mut self.current else {
                match self.found.pop_front() {
                    Some(external) => self.current = Some(Chunks::of(external)),
                    None if !self.find(ctx)? => break,
                    None => {}
                }
                continue;
            };
            if chunks.left == 0 {
                self.current = None;
                continue;
            }
            ids.push(chunks.external.first.0 as u32);
            numbers.push(chunks.number);
            let chunk = chunks.next(ctx, self.with_data)?;
            if self.with_data {
                data.push(chunk);
            }
        }
        let rows = ids.len();
        let columns = [ColumnData::Oid(ids), ColumnData::Int4(numbers), ColumnData::Bytes(data)];
        Ok((rows > 0).then(|| (columns.map(Column::new).into(), rows)))
    }

    /// Looks for pointers in some more of the table's rows; false at their end.
    fn find(&mut self, ctx: &Evaluation) -> Result<bool> {
        ctx.check_interrupt()?;
        let Some(batch) = self.scan.next()? else { return Ok(false) };
        for row in 0..batch.row_ids.len() {
            for column in &batch.columns {
                if let ColumnData::Stored(values) = &column.data
                    && let Datum::Stored(bytes) = &values[row]
                    && let Stored::External(external) = parse(bytes)?
                    && self.ids.contains(&(external.first.0 as u32))
                {
                    self.found.push_back(external);
                }
            }
        }
        Ok(true)
    }
}

impl Chunks {
    fn of(external: External) -> Chunks {
        let bytes =
            external.method.map_or(Vec::new(), |method| (external.raw_bytes | method.toast_id() << 30).to_le_bytes().to_vec());
        let left = external.stored_bytes as usize + if bytes.is_empty() { 0 } else { HEADER_BYTES };
        Chunks { frames: 0..external.frames(), external, bytes, at: 0, left, number: 0 }
    }

    /// The next chunk; without `read` nothing is read, and it is empty.
    fn next(&mut self, ctx: &Evaluation, read: bool) -> Result<&[u8]> {
        let length = self.left.min(CHUNK_BYTES);
        self.left -= length;
        self.number += 1;
        if !read {
            return Ok(&[]);
        }
        while self.bytes.len() - self.at < length
            && let Some(frame) = self.frames.next()
        {
            ctx.check_interrupt()?;
            self.bytes.drain(..std::mem::take(&mut self.at));
            let bytes = &mut self.bytes;
            let append = |row: &[u8]| frame::stream_as_written(row, bytes);
            ctx.transaction().frames(self.external.tree).with(ctx.view(), RowId(self.external.first.0 + frame), append)?;
        }
        let start = self.at;
        self.at = (start + length).min(self.bytes.len());
        Ok(&self.bytes[start..self.at])
    }
}
