//! Writes the segments of a flush, a merge or a bulk load.

use std::collections::BTreeMap;
use std::sync::Arc;

use melba_segment::{
    Codec, DenseOptions, EncoderPool, Finishing, KeyOptions, KeySegmentWriter, Neighbour, TableOptions, TableSegmentReader,
    TableSegmentWriter,
};
use melba_threads::Scheduler;
use melba_types::row::{Field, RowLayout};
use melba_types::{Batch, Bitmap, Column, ColumnData, Csn, Datum, Kind, RowId};

use crate::error::{EngineError, Result};
use crate::files::{Files, IndexRun, SegmentFile, TableRun};
use crate::give_way::give_way;
use crate::ids::segment_name;
use crate::memory::{Held, QueryMemory};

/// Of the blocks of indexes that are to be small.
const PACKED_CODEC: Codec = Codec::Zstd(3);
/// Rows handed to a segment writer at a time.
const BATCH_ROWS: usize = 2048;
const BATCH_BYTES: usize = 4 << 20;
/// Row groups' worth of memory that a pool takes: one is collected, one waits, two are encoded, one is empty, and the buffers of
/// all have grown beyond their content.
const POOLED_GROUPS: usize = 8;
/// A pool may take such a part of the budget of all queries.
const POOL_SHARE: u64 = 4;

/// How frames become dense.
#[derive(Clone, Copy, Debug)]
pub struct DensePolicy {
    pub options: DenseOptions,
    /// Bytes that frames may take, compressed by lz4, while they wait for the end of their segment: the more there are, the more
    /// have their like among them.
    pub spool_bytes: usize,
}

/// Writes row versions into segments, one for each number of columns that rows have (ADD COLUMN leaves old rows as they are).
pub struct TableOutput {
    files: Arc<Files>,
    synced: bool,
    layout: Arc<RowLayout>,
    /// Raw bytes after which another segment is begun.
    segment_bytes: usize,
    dense: Option<DensePolicy>,
    /// The input of most dense values.
    reused: Option<Arc<TableSegmentReader>>,
    /// A segment beside, whose references may be taken.
    neighbour: Option<Neighbour>,
    /// As in `TableOptions`.
    dense_columns: u64,
    writers: BTreeMap<usize, Writer>,
    /// Columns, file, and the finish to wait for.
    done: Vec<(usize, u64, Option<Finishing>)>,
    pool: Option<EncoderThread>,
}

/// A second thread for the row groups, and their memory.
struct EncoderThread {
    pool: Arc<EncoderPool>,
    _held: Held,
}

struct Writer {
    file: u64,
    segment: TableSegmentWriter,
    /// The row added last.
    last: Option<RowId>,
    row_ids: Vec<RowId>,
    csns: Vec<Csn>,
    deleted: Bitmap,
    kinds: Vec<Kind>,
    columns: Vec<Column>,
    bytes: usize,
    written: usize,
}

impl TableOutput {
    /// `synced`: the segments are durable when they are finished.
    pub fn new(files: &Arc<Files>, synced: bool, layout: Arc<RowLayout>, segment_bytes: usize) -> TableOutput {
        TableOutput {
            files: Arc::clone(files),
            synced,
            layout,
            segment_bytes,
            dense: None,
            reused: None,
            neighbour: None,
            dense_columns: 0,
            writers: BTreeMap::new(),
            done: Vec::new(),
            pool: None,
        }
    }

    /// Makes values of dense columns dense: as many together as `density` allows.
    pub fn dense(mut self, density: DensePolicy) -> TableOutput {
        self.dense = Some(density);
        self
    }

    /// Lets blocks of the input with most dense values be copied unchanged.
    pub fn reuse(mut self, source: Arc<TableSegmentReader>) -> TableOutput {
        self.reused = Some(source);
        self
    }

    /// Lets dense values take the references of a segment beside.
    pub fn share_references(mut self, neighbour: Neighbour) -> TableOutput {
        self.neighbour = Some(neighbour);
        self
    }

    /// Says which columns are dense, so that their values are, or wait to be.
    pub fn dense_columns(mut self, columns: u64) -> TableOutput {
        self.dense_columns = columns;
        self
    }

    fn options(&self) -> TableOptions {
        let dense = self.dense.map(|density| density.options);
        TableOptions { dense, dense_columns: self.dense_columns, give_way, ..TableOptions::default() }
    }

    /// Lets a thread of the output's own encode and write, where the budget has room for it.
    pub fn pooled(mut self, memory: &Arc<QueryMemory>, scheduler: &Arc<dyn Scheduler>) -> TableOutput {
        let options = self.options();
        let mut held = Held::new(memory);
        let bytes = POOLED_GROUPS * options.group_bytes;
        if bytes as u64 <= memory.limit() / POOL_SHARE && held.try_set(bytes) {
            let pool = EncoderPool::new(options, Arc::clone(scheduler));
            self.pool = Some(EncoderThread { pool, _held: held });
        }
        self
    }

    fn kinds(&self, columns: usize) -> &[Kind] {
        &self.layout.kinds()[..columns]
    }

    fn writer(&mut self, columns: usize, row: RowId) -> Result<&mut Writer> {
        if let Some(writer) = self.writers.get_mut(&columns) {
            // Versions of one row stay together.
            let new_row = writer.last != Some(row);
            if new_row && (writer.row_ids.len() >= BATCH_ROWS || writer.bytes >= BATCH_BYTES) {
                writer.write()?;
            }
            let is_full = match (self.dense, writer.segment.spooled_bytes()) {
                (Some(density), Some(spooled)) => spooled >= density.spool_bytes,
                _ => writer.written + writer.bytes >= self.segment_bytes,
            };
            if new_row && is_full {
                self.finish_writer(columns)?;
            }
        }
        if !self.writers.contains_key(&columns) {
            let pool = self.pool.as_ref().map(|p| &p.pool);
            let mut writer = Writer::new(&self.files, self.synced, self.kinds(columns), pool, &self.options())?;
            self.reused.iter().for_each(|source| writer.segment.reuse(Arc::clone(source)));
            self.neighbour.iter().for_each(|neighbour| writer.segment.share_references(neighbour.clone()));
            self.writers.insert(columns, writer);
        }
        self.writers.get_mut(&columns).ok_or(EngineError::Misuse("the writer was just made"))
    }

    /// The rows are frames of large values, which need no columns on their way.
    fn has_frames(&self) -> bool {
        self.layout.kinds() == [Kind::Frame]
    }

    /// Adds a version of a frame, given in parts; `None`: a tombstone.
    pub fn push_frame(&mut self, id: RowId, csn: Csn, parts: Option<&[&[u8]]>) -> Result<()> {
        let writer = self.writer(1, id)?;
        writer.segment.append_bytes(id, csn, parts)?;
        writer.last = Some(id);
        writer.written += 16 + parts.unwrap_or_default().iter().map(|part| part.len()).sum::<usize>();
        Ok(())
    }

    /// Adds a version in row format; `None`: a tombstone.
    pub fn push_row(&mut self, id: RowId, csn: Csn, row: Option<&[u8]>) -> Result<()> {
        let layout = Arc::clone(&self.layout);
        let malformed = || EngineError::Corrupt { what: "a row in the row store is malformed".into() };
        let view = row.map(|r| layout.view(r).ok_or_else(malformed)).transpose()?;
        if self.has_frames() {
            return match view.map(|v| v.get(0)) {
                None => self.push_frame(id, csn, None),
                Some(Field::Value(frame)) => self.push_frame(id, csn, Some(&[frame])),
                Some(_) => Err(malformed()),
            };
        }
        let writer = self.writer(view.map_or(layout.kinds().len(), |v| v.columns()), id)?;
        writer.push_version(id, csn, view.is_none());
        for (c, column) in writer.columns.iter_mut().enumerate() {
            match &view {
                Some(view) => view.push_to(c, &Datum::Null, column),
                None => column.push_null(),
            }
        }
        writer.bytes += row.map_or(0, <[u8]>::len);
        Ok(())
    }

    /// Adds a version whose values are at position `at` of `columns`.
    pub fn push_values(&mut self, id: RowId, csn: Csn, deleted: bool, columns: &[Option<Column>], at: usize) -> Result<()> {
        if self.has_frames()
            && let Some(Some(Column { data: ColumnData::Bytes(frames), .. })) = columns.first()
        {
            return self.push_frame(id, csn, (!deleted).then_some(&[frames.get(at)]));
        }
        let width = if deleted { self.layout.kinds().len() } else { columns.len() };
        let kinds = Arc::clone(&self.layout);
        let writer = self.writer(width, id)?;
        writer.push_version(id, csn, deleted);
        for (c, column) in writer.columns.iter_mut().enumerate() {
            match columns.get(c) {
                Some(Some(source)) if !deleted => writer.bytes += push_value(column, kinds.kinds()[c], source, at),
                _ => column.push_null(),
            }
        }
        Ok(())
    }

    /// Adds many live rows of one CSN.
    pub fn push_batch(&mut self, row_ids: &[RowId], csn: Csn, batch: &Batch) -> Result<()> {
        let Some(first) = row_ids.first() else { return Ok(()) };
        let writer = self.writer(batch.columns.len(), *first)?;
        writer.write()?;
        writer.segment.append_uniform(row_ids, csn, batch)?;
        writer.last = row_ids.last().copied();
        writer.written += batch.columns.iter().map(column_bytes).sum::<usize>() + row_ids.len() * 8;
        Ok(())
    }

    /// Begins another segment for the rows that follow.
    pub fn cut(&mut self) -> Result<()> {
        self.writers.keys().copied().collect::<Vec<_>>().into_iter().try_for_each(|columns| self.finish_writer(columns))
    }

    fn finish_writer(&mut self, columns: usize) -> Result<()> {
        if let Some(mut writer) = self.writers.remove(&columns) {
            let file = writer.file;
            let finishing = writer.write().and_then(|()| Ok(writer.segment.finish_later()?));
            let (finishing, result) = finishing.map_or_else(|e| (None, Err(e)), |f| (Some(f), Ok(())));
            self.done.push((columns, file, finishing));
            return result;
        }
        Ok(())
    }

    /// Finishes the segments and opens them: those with more columns first, for their rows are newer.
    pub fn finish(mut self) -> Result<Vec<Arc<TableRun>>> {
        self.cut()?;
        for finishing in self.done.iter_mut().filter_map(|(_, _, finishing)| finishing.take()) {
            finishing.wait()?;
        }
        self.done.sort_by_key(|(columns, file, _)| (std::cmp::Reverse(*columns), *file));
        let done = std::mem::take(&mut self.done);
        done.iter().map(|(_, file, _)| self.files.open_table(SegmentFile::unknown(*file, Csn(0)))).collect()
    }
}

impl Drop for TableOutput {
    // Files that no reader has opened: the output failed or was abandoned.
    fn drop(&mut self) {
        // Abandoned before they are dropped, so that no thread writes to them any more.
        let writers = std::mem::take(&mut self.writers).into_values().map(|w| w.file);
        let done = std::mem::take(&mut self.done).into_iter().map(|(_, file, _)| file);
        writers.chain(done).for_each(|file| self.files.discard(file));
    }
}

impl Writer {
    fn new(
        files: &Files,
        synced: bool,
        kinds: &[Kind],
        pool: Option<&Arc<EncoderPool>>,
        options: &TableOptions,
    ) -> Result<Writer> {
        let file = files.next_file();
        let (directory, name) = (files.writable(synced), segment_name(file));
        let segment = match pool {
            Some(pool) => TableSegmentWriter::create_pooled(directory, &name, kinds, pool)?,
            None => TableSegmentWriter::create(directory, &name, kinds, options)?,
        };
        Ok(Writer {
            file,
            segment,
            last: None,
            row_ids: Vec::new(),
            csns: Vec::new(),
            deleted: Bitmap::default(),
            columns: empty_columns(kinds),
            kinds: kinds.to_vec(),
            bytes: 0,
            written: 0,
        })
    }

    fn push_version(&mut self, id: RowId, csn: Csn, deleted: bool) {
        self.last = Some(id);
        self.row_ids.push(id);
        self.csns.push(csn);
        self.deleted.push(deleted);
        self.bytes += 16;
    }

    fn write(&mut self) -> Result<()> {
        if self.row_ids.is_empty() {
            return Ok(());
        }
        let rows = self.row_ids.len();
        let deleted = (self.deleted.count_ones() > 0).then_some(&self.deleted);
        let batch = Batch::new(std::mem::take(&mut self.columns), rows);
        self.segment.append(&self.row_ids, &self.csns, deleted, &batch)?;
        self.columns = empty_columns(&self.kinds);
        self.row_ids.clear();
        self.csns.clear();
        self.deleted = Bitmap::default();
        self.written += self.bytes;
        self.bytes = 0;
        Ok(())
    }
}

/// Bytes of a column's values, about.
fn column_bytes(column: &Column) -> usize {
    match &column.data {
        ColumnData::Text(v) | ColumnData::Bytes(v) => v.bytes.len() + 4 * v.len(),
        ColumnData::Datum(v) => 32 * v.len(),
        ColumnData::Stored(v) => v.iter().map(datum_bytes).sum(),
        _ => 8 * column.len(),
    }
}

fn empty_columns(kinds: &[Kind]) -> Vec<Column> {
    kinds.iter().map(|k| Column::with_capacity(*k, 0)).collect()
}

/// Appends the value at `at` of a column to another of the same kind; returns its bytes, about.
fn push_value(to: &mut Column, kind: Kind, from: &Column, at: usize) -> usize {
    if !from.is_null(at)
        && let ColumnData::Text(v) | ColumnData::Bytes(v) = &from.data
    {
        let bytes = v.get(at);
        if to.push_encoded(kind, bytes) {
            return bytes.len();
        }
    }
    let value = from.get(at);
    let bytes = datum_bytes(&value);
    to.push(value);
    bytes
}

/// Bytes of a value, about.
fn datum_bytes(value: &Datum) -> usize {
    match value {
        Datum::Text(v) => v.len(),
        Datum::Bytes(v) | Datum::Stored(v) => v.len(),
        _ => 8,
    }
}

/// Writes index entries into segments.
pub struct IndexOutput {
    files: Arc<Files>,
    options: KeyOptions,
    /// Raw bytes after which another segment is begun, which take about half as many in the file.
    segment_bytes: usize,
    synced: bool,
    writer: Option<(u64, KeySegmentWriter)>,
    done: Vec<u64>,
    entries: usize,
    /// The last key of the segments that are done.
    last: Vec<u8>,
}

impl IndexOutput {
    /// `synced`: the segments are durable when they are finished.
    pub fn new(files: &Arc<Files>, synced: bool, segment_bytes: usize) -> IndexOutput {
        IndexOutput {
            files: Arc::clone(files),
            options: KeyOptions::default(),
            synced,
            segment_bytes,
            writer: None,
            done: Vec::new(),
            entries: 0,
            last: Vec::new(),
        }
    }

    /// Compresses the blocks: for indexes of dense tables, which are to be small rather than written fast.
    pub fn packed(mut self) -> IndexOutput {
        self.options.codec = PACKED_CODEC;
        self
    }

    /// Adds a version of an entry.
    pub fn push(&mut self, key: &[u8], csn: Csn, dead: bool) -> Result<()> {
        let full = self.writer.as_ref().is_some_and(|(_, w)| w.stored_bytes() >= self.segment_bytes as u64 / 2);
        if full && self.last_key() != key {
            self.finish_writer()?;
        }
        if self.writer.is_none() {
            let file = self.files.next_file();
            let writer = KeySegmentWriter::create(self.files.writable(self.synced), &segment_name(file), &self.options)?;
            self.writer = Some((file, writer));
        }
        if let Some((_, writer)) = &mut self.writer {
            writer.append(key, csn, dead)?;
        }
        self.entries += 1;
        Ok(())
    }

    /// The entry that was added last; empty when there is none.
    #[inline]
    pub fn last_key(&self) -> &[u8] {
        self.writer.as_ref().map_or(&self.last, |(_, writer)| writer.last_key())
    }

    /// How many were added.
    pub fn entries(&self) -> usize {
        self.entries
    }

    fn finish_writer(&mut self) -> Result<()> {
        if let Some((file, writer)) = self.writer.take() {
            self.done.push(file);
            self.last = writer.last_key().to_vec();
            writer.finish()?;
        }
        Ok(())
    }

    /// Finishes the segments and opens them.
    pub fn finish(mut self) -> Result<Vec<Arc<IndexRun>>> {
        self.finish_writer()?;
        let done = std::mem::take(&mut self.done);
        done.iter().map(|file| self.files.open_index(SegmentFile::unknown(*file, Csn(0)))).collect()
    }
}

impl Drop for IndexOutput {
    fn drop(&mut self) {
        self.writer.iter().for_each(|(file, _)| self.files.discard(*file));
        self.done.iter().for_each(|file| self.files.discard(*file));
    }
}
