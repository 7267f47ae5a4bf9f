//! Writes a table segment front to back.

use std::ops::Range;
use std::sync::Arc;

use melba_toast::frame::{Density, density};
use melba_types::{Batch, Bitmap, Column, ColumnData, Csn, Kind, RowId};
use melba_vfs::Directory;

use super::chunk::ChunkCarryover;
use super::dense::{DenseColumns, is_bit};
use super::directory::{Group, TableDirectory};
use super::encoder::RawGroup;
use super::long::LongChunk;
use super::pool::{EncoderPool, PooledFile};
use super::{Neighbour, SegmentMeta, TABLE_MAGIC, TableOptions, TableSegmentReader};
use crate::encoding::Section;
use crate::error::Result;
use crate::frame::FrameWriter;

/// Writes a table segment. Dropped before `finish`, it leaves a file without a footer, which no reader opens and the owner
/// of the directory removes.
pub struct TableSegmentWriter {
    options: TableOptions,
    kinds: Vec<Kind>,
    group: RawGroup,
    sink: Sink,
    raw_bytes: u64,
    waiting_bytes: u64,
    last: Option<(RowId, Csn)>,
}

/// The destination of full groups.
enum Sink {
    /// Into the file at once.
    Here {
        frames: FrameWriter,
        groups: Vec<Group>,
        carryover: Box<ChunkCarryover>,
        /// The only column of the group that is being collected, if its values are long.
        long: Option<Box<LongChunk>>,
        dense: Option<Box<DenseColumns>>,
    },
    Pool {
        of: Pooled,
        groups: u64,
    },
}

/// The footer's content beside the groups of a segment.
pub(super) struct SegmentEnd {
    kinds: Vec<Kind>,
    raw_bytes: u64,
    waiting_bytes: u64,
    dense_columns: u64,
}

/// A segment whose rows have all been given; see `TableSegmentWriter::finish_later`.
pub enum Finishing {
    Done(SegmentMeta),
    Pooled(Pooled),
}

/// A segment that a pool writes; abandoned when it is dropped.
pub struct Pooled {
    pool: Arc<EncoderPool>,
    file: Arc<PooledFile>,
}

/// Rows taken at a time when a column's bytes are not known beforehand.
const DATUM_ROWS_MAX: usize = 1024;

/// The CSNs of appended rows.
#[derive(Clone, Copy)]
enum CsnSource<'a> {
    Uniform(Csn),
    Each(&'a [Csn]),
}

impl TableSegmentWriter {
    /// Creates the file `name`, which must not exist, for rows of `kinds`.
    pub fn create(directory: &dyn Directory, name: &str, kinds: &[Kind], options: &TableOptions) -> Result<TableSegmentWriter> {
        let frames = FrameWriter::create(directory, name, &TABLE_MAGIC)?;
        let dense = DenseColumns::new(kinds, options).map(Box::new);
        let sink = Sink::Here { frames, groups: Vec::new(), carryover: Box::default(), long: None, dense };
        Ok(TableSegmentWriter::new(kinds, options, sink))
    }

    /// The same, with a pool that encodes and writes, after the pool's options.
    pub fn create_pooled(
        directory: &dyn Directory,
        name: &str,
        kinds: &[Kind],
        pool: &Arc<EncoderPool>,
    ) -> Result<TableSegmentWriter> {
        let file = PooledFile::new(FrameWriter::create(directory, name, &TABLE_MAGIC)?);
        let options = *pool.options();
        let of = Pooled { pool: Arc::clone(pool), file };
        Ok(TableSegmentWriter::new(kinds, &options, Sink::Pool { of, groups: 0 }))
    }

    fn new(kinds: &[Kind], options: &TableOptions, sink: Sink) -> TableSegmentWriter {
        let group = RawGroup::new(kinds);
        TableSegmentWriter { options: *options, kinds: kinds.to_vec(), group, sink, raw_bytes: 0, waiting_bytes: 0, last: None }
    }

    /// Appends row versions. `deleted` marks tombstones (`None`: none), whose values are ignored (and best given as null).
    ///
    /// # Panics
    /// When rows do not come in ascending (row id, descending CSN) order across all calls, or lengths or kinds differ:
    /// bugs of ours.
    pub fn append(&mut self, row_ids: &[RowId], csns: &[Csn], deleted: Option<&Bitmap>, batch: &Batch) -> Result<()> {
        assert_eq!(row_ids.len(), csns.len(), "a CSN for each row");
        self.append_rows(row_ids, CsnSource::Each(csns), deleted, batch)
    }

    /// Appends live rows that all have one CSN: a bulk load's. `Csn(0)` is for rows whose commit is to come, see
    /// `TableSegmentReader::open_assigned`.
    pub fn append_uniform(&mut self, row_ids: &[RowId], csn: Csn, batch: &Batch) -> Result<()> {
        self.append_rows(row_ids, CsnSource::Uniform(csn), None, batch)
    }

    fn append_rows(&mut self, row_ids: &[RowId], csns: CsnSource<'_>, deleted: Option<&Bitmap>, batch: &Batch) -> Result<()> {
        assert_eq!(batch.columns.len(), self.kinds.len(), "a column for each kind");
        assert_eq!(batch.rows, row_ids.len(), "a row id for each row");
        assert!(self.long().is_none(), "rows by batch and one by one in one group");
        let mut from = 0;
        while from < batch.rows {
            if self.is_full() && self.last.is_none_or(|(last, _)| last != row_ids[from]) {
                self.flush_group()?;
            }
            let to = self.rows_to_take(row_ids, batch, from);
            self.append_hidden(row_ids, csns, deleted, from..to);
            for (buffer, column) in self.group.columns.iter_mut().zip(&batch.columns) {
                buffer.append(column, from, to);
            }
            from = to;
        }
        Ok(())
    }

    /// Appends a version of a row whose only column is a byte string, given in parts; `None`: a tombstone.
    ///
    /// # Panics
    /// As `append` does, and that does when it follows.
    pub fn append_bytes(&mut self, row_id: RowId, csn: Csn, parts: Option<&[&[u8]]>) -> Result<()> {
        assert_eq!(self.kinds.len(), 1, "a single column");
        let bytes = parts.unwrap_or_default().iter().map(|part| part.len()).sum();
        let ends_here = self.is_full() || !self.suits_long(bytes);
        if ends_here && self.last.is_none_or(|(last, _)| last != row_id) {
            self.flush_group()?;
        }
        let is_first = self.group.rows() == 0;
        self.check_order(&[row_id], CsnSource::Uniform(csn), 0..1);
        self.group.append_hidden(&[row_id], std::iter::once(csn), parts.is_none().then(|| std::iter::once(true)));
        let first_part = parts.and_then(|parts| parts.first()).copied().unwrap_or_default();
        if self.kinds[0] == Kind::Frame && density(first_part) == Density::Waiting {
            self.waiting_bytes += bytes as u64;
        }
        if let Sink::Here { frames, long, dense: None, .. } = &mut self.sink {
            if is_first && bytes >= self.options.block_bytes {
                *long = Some(Box::new(LongChunk::begin(frames.buffer())));
            }
            if let Some(long) = long {
                return long.append(parts, frames);
            }
        }
        self.group.columns[0].append_bytes(parts);
        Ok(())
    }

    /// Names the input of most dense values: blocks of it that have little else may be copied unchanged.
    pub fn reuse(&mut self, source: Arc<TableSegmentReader>) {
        if let Sink::Here { dense: Some(dense), .. } = &mut self.sink {
            dense.reuse(source);
        }
    }

    /// Names a segment of the same table whose references the sections may take: of equal references readers keep one in memory.
    pub fn share_references(&mut self, neighbour: Neighbour) {
        if let Sink::Here { dense: Some(dense), .. } = &mut self.sink {
            dense.share_references(neighbour);
        }
    }

    /// Bytes of values that wait in memory for the segment's end; `None` when no column is dense, nor may be yet: the first row
    /// group decides.
    pub fn spooled_bytes(&self) -> Option<usize> {
        match &self.sink {
            Sink::Here { dense: Some(dense), .. } if dense.may_hold() => Some(dense.memory_bytes()),
            _ => None,
        }
    }

    /// The chunk of long values that the group has, if it does.
    fn long(&self) -> Option<&LongChunk> {
        if let Sink::Here { long, .. } = &self.sink { long.as_deref() } else { None }
    }

    /// Whether the group has no long values, or has room for one of `bytes` bytes among them. Short values in separate blocks
    /// would take more space.
    fn suits_long(&self, bytes: usize) -> bool {
        self.long().is_none_or(|long| long.takes(bytes, self.options.block_bytes / 8))
    }

    /// Bytes of the group's values, about.
    fn group_bytes(&self) -> usize {
        self.group.bytes() + self.long().map_or(0, LongChunk::bytes)
    }

    fn is_full(&self) -> bool {
        self.group.rows() >= self.options.group_rows || self.group_bytes() >= self.options.group_bytes
    }

    /// The end of the rows from `from` on that this row group takes: at least one, at least to the end of a row's versions when full.
    fn rows_to_take(&self, row_ids: &[RowId], batch: &Batch, from: usize) -> usize {
        let room = self.options.group_rows.saturating_sub(self.group.rows()).max(1);
        let mut to = batch.rows.min(from + room);
        let bytes = self.options.group_bytes.saturating_sub(self.group.bytes());
        for column in &batch.columns {
            match &column.data {
                ColumnData::Text(v) | ColumnData::Bytes(v) => {
                    let start = if from == 0 { 0 } else { v.ends[from - 1] as usize };
                    to = from + v.ends[from..to].partition_point(|&end| end as usize - start <= bytes);
                }
                // Their bytes are known once encoded: by those of the rows before.
                ColumnData::Datum(_) => {
                    let bytes_a_row = (self.group.bytes() / self.group.rows().max(1)).max(1);
                    let rows = if self.group.rows() == 0 { 1 } else { (bytes / bytes_a_row).clamp(1, DATUM_ROWS_MAX) };
                    to = to.min(from + rows);
                }
                _ => {}
            }
        }
        to = to.max(from + 1);
        while to < batch.rows && row_ids[to] == row_ids[to - 1] {
            to += 1;
        }
        to
    }

    fn append_hidden(&mut self, row_ids: &[RowId], csns: CsnSource<'_>, deleted: Option<&Bitmap>, rows: Range<usize>) {
        self.check_order(row_ids, csns, rows.clone());
        let deleted = deleted.map(|deleted| rows.clone().map(|i| deleted.get(i)));
        let ids = &row_ids[rows.clone()];
        match csns {
            CsnSource::Uniform(csn) => self.group.append_hidden(ids, std::iter::repeat_n(csn, ids.len()), deleted),
            CsnSource::Each(csns) => self.group.append_hidden(ids, csns[rows].iter().copied(), deleted),
        }
    }

    /// Rows come after all that were given, in order.
    fn check_order(&mut self, row_ids: &[RowId], csns: CsnSource<'_>, rows: Range<usize>) {
        let csn_of = |i: usize| match csns {
            CsnSource::Uniform(csn) => csn,
            CsnSource::Each(csns) => csns[i],
        };
        let follows = |(id, csn): (RowId, Csn), i: usize| id < row_ids[i] || (id == row_ids[i] && csn > csn_of(i));
        let ordered = self.last.is_none_or(|last| follows(last, rows.start))
            && (rows.start + 1..rows.end).all(|i| follows((row_ids[i - 1], csn_of(i - 1)), i));
        assert!(ordered, "rows out of order after {:?}", self.last);
        self.last = Some((row_ids[rows.end - 1], csn_of(rows.end - 1)));
    }

    fn flush_group(&mut self) -> Result<()> {
        self.raw_bytes += (self.group_bytes() + self.group.rows() * 8) as u64;
        let waits = |at: &usize| self.options.dense.is_none() && is_bit(self.options.dense_columns, *at);
        let waiting = (0..self.kinds.len()).filter(waits).map(|at| self.group.columns[at].waiting_bytes());
        self.waiting_bytes += waiting.sum::<usize>() as u64;
        match &mut self.sink {
            Sink::Here { frames, groups, carryover, long, dense } => {
                let summary = self.group.summary();
                let mut chunks = Vec::with_capacity(self.group.chunks());
                chunks.extend(long.take().map(|long| long.finish()));
                for at in chunks.len()..self.group.chunks() {
                    let of_section = dense.as_mut().filter(|_| at < self.kinds.len());
                    if let Some(dense) = of_section.and_then(|dense| dense.of(at, &self.group.columns[at])) {
                        chunks.push(self.group.columns[at].write_dense(dense));
                        continue;
                    }
                    chunks.push(self.group.encode_chunk(at, carryover, frames.buffer(), &self.options));
                    frames.flush_full()?;
                }
                groups.push(Group { summary, chunks });
            }
            Sink::Pool { of, groups } => {
                let group = std::mem::replace(&mut self.group, RawGroup::new(&self.kinds));
                if let Some(spare) = of.pool.push(&of.file, *groups, group)? {
                    self.group = spare;
                }
                *groups += 1;
            }
        }
        Ok(())
    }

    /// Writes the rest and the footer, and makes the file's content durable; the caller makes its name durable
    /// (`Directory::sync_names`).
    pub fn finish(self) -> Result<SegmentMeta> {
        self.finish_later()?.wait()
    }

    /// The same, but a pool does it while its owner continues.
    pub fn finish_later(mut self) -> Result<Finishing> {
        if self.group.rows() > 0 {
            self.flush_group()?;
        }
        let columns = self.options.dense_columns | u64::from(self.kinds == [Kind::Frame]);
        let mut end = SegmentEnd {
            kinds: self.kinds,
            raw_bytes: self.raw_bytes,
            waiting_bytes: self.waiting_bytes,
            dense_columns: if self.waiting_bytes > 0 { columns } else { 0 },
        };
        match self.sink {
            Sink::Here { mut frames, groups, dense, .. } => {
                let sections = dense.map(|dense| dense.finish(&mut frames)).transpose()?.unwrap_or_default();
                if !sections.is_empty() {
                    end.waiting_bytes = 0;
                    end.dense_columns = sections.iter().map(|section| 1 << section.column).sum();
                }
                end.write(frames, groups, sections).map(Finishing::Done)
            }
            Sink::Pool { of, groups } => {
                of.pool.end(&of.file, groups, end);
                Ok(Finishing::Pooled(of))
            }
        }
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.file.give_up();
    }
}

impl Finishing {
    /// Waits for the end; returns the buffers that the segment still has then.
    #[cfg(test)]
    pub(super) fn buffers_after_end(&self) -> Result<usize> {
        let Finishing::Pooled(end) = self else { return Ok(0) };
        end.pool.finish(&end.file).map(|_| end.file.buffers())
    }

    /// Waits for the end.
    pub fn wait(self) -> Result<SegmentMeta> {
        match self {
            Finishing::Done(meta) => Ok(meta),
            Finishing::Pooled(end) => end.pool.finish(&end.file),
        }
    }
}

impl SegmentEnd {
    /// Writes the footer and makes the file durable.
    pub fn write(self, frames: FrameWriter, groups: Vec<Group>, sections: Vec<Section>) -> Result<SegmentMeta> {
        let summaries = groups.iter().map(|group| &group.summary);
        let mut meta = SegmentMeta {
            rows: summaries.clone().map(|g| g.rows as u64).sum(),
            tombstones: summaries.clone().map(|g| g.tombstones as u64).sum(),
            raw_bytes: self.raw_bytes,
            stored_bytes: 0,
            row_id_min: summaries.clone().next().map_or(RowId(0), |g| g.row_id_min),
            row_id_max: summaries.clone().next_back().map_or(RowId(0), |g| g.row_id_max),
            csn_min: summaries.clone().map(|g| g.csn_min).min().unwrap_or_default(),
            csn_max: summaries.map(|g| g.csn_max).max().unwrap_or_default(),
            waiting_bytes: self.waiting_bytes,
            dense_columns: self.dense_columns,
            dense_bytes: sections.iter().map(|section| section.raw_bytes).sum(),
            hasty_bytes: sections.iter().map(Section::hasty_bytes).sum(),
            footer_crc: 0,
        };
        let footer = TableDirectory { kinds: self.kinds, meta, groups, sections }.encode();
        (meta.stored_bytes, meta.footer_crc) = frames.finish(&footer, &TABLE_MAGIC)?;
        Ok(meta)
    }
}

/// A batch of `rows` null rows: the values of tombstones.
pub fn null_batch(kinds: &[Kind], rows: usize) -> Batch {
    let column = |&kind: &Kind| {
        let mut column = Column::with_capacity(kind, rows);
        (0..rows).for_each(|_| column.push_null());
        column
    };
    Batch::new(kinds.iter().map(column).collect(), rows)
}
