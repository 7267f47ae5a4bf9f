//! Writing a table segment front to back.

use std::ops::Range;

use melba_types::{Batch, Bitmap, Column, ColumnData, Csn, Kind, RowId};
use melba_vfs::Directory;

use super::chunk::{ChunkBuffer, write_words};
use super::directory::{Group, TableDirectory};
use super::{RowGroup, SegmentMeta, TABLE_MAGIC, TableOptions};
use crate::error::Result;
use crate::frame::FrameWriter;

/// Writes a table segment. Dropped before `finish`, it leaves a file without a footer, which no reader opens and the owner
/// of the directory removes.
pub struct TableSegmentWriter {
    frames: FrameWriter,
    options: TableOptions,
    kinds: Vec<Kind>,
    columns: Vec<ChunkBuffer>,
    row_ids: Vec<i64>,
    csns: Vec<i64>,
    tombstones: Vec<i64>,
    groups: Vec<Group>,
    raw_bytes: u64,
    last: Option<(RowId, Csn)>,
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
        Ok(TableSegmentWriter {
            frames: FrameWriter::create(directory, name, &TABLE_MAGIC)?,
            options: *options,
            kinds: kinds.to_vec(),
            columns: kinds.iter().map(|&kind| ChunkBuffer::new(kind)).collect(),
            row_ids: Vec::new(),
            csns: Vec::new(),
            tombstones: Vec::new(),
            groups: Vec::new(),
            raw_bytes: 0,
            last: None,
        })
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
        let mut from = 0;
        while from < batch.rows {
            if self.is_full() && self.last.is_none_or(|(last, _)| last != row_ids[from]) {
                self.flush_group()?;
            }
            let to = self.rows_to_take(row_ids, batch, from);
            self.append_hidden(row_ids, csns, deleted, from..to);
            for (buffer, column) in self.columns.iter_mut().zip(&batch.columns) {
                buffer.append(column, from, to);
            }
            from = to;
        }
        Ok(())
    }

    fn buffered_bytes(&self) -> usize {
        self.columns.iter().map(ChunkBuffer::raw_bytes).sum()
    }

    fn is_full(&self) -> bool {
        self.row_ids.len() >= self.options.group_rows || self.buffered_bytes() >= self.options.group_bytes
    }

    /// The end of the rows from `from` on that this row group takes: at least one, at least to the end of a row's versions when full.
    fn rows_to_take(&self, row_ids: &[RowId], batch: &Batch, from: usize) -> usize {
        let room = self.options.group_rows.saturating_sub(self.row_ids.len()).max(1);
        let mut to = batch.rows.min(from + room);
        let bytes = self.options.group_bytes.saturating_sub(self.buffered_bytes());
        for column in &batch.columns {
            match &column.data {
                ColumnData::Text(v) | ColumnData::Bytes(v) => {
                    let start = if from == 0 { 0 } else { v.ends[from - 1] as usize };
                    to = from + v.ends[from..to].partition_point(|&end| end as usize - start <= bytes);
                }
                // Their bytes are known once encoded: by those of the rows before.
                ColumnData::Datum(_) => {
                    let bytes_a_row = (self.buffered_bytes() / self.row_ids.len().max(1)).max(1);
                    let rows = if self.row_ids.is_empty() { 1 } else { (bytes / bytes_a_row).clamp(1, DATUM_ROWS_MAX) };
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
        for i in rows.clone() {
            let csn = match csns {
                CsnSource::Uniform(csn) => csn,
                CsnSource::Each(csns) => csns[i],
            };
            let ordered = self.last.is_none_or(|(id, last)| id < row_ids[i] || (id == row_ids[i] && last > csn));
            assert!(ordered, "row {} at {csn} after {:?}", row_ids[i], self.last);
            self.last = Some((row_ids[i], csn));
            self.csns.push(csn.0 as i64);
        }
        self.row_ids.extend(row_ids[rows.clone()].iter().map(|id| id.0 as i64));
        match deleted {
            Some(deleted) => self.tombstones.extend(rows.map(|i| i64::from(deleted.get(i)))),
            None => self.tombstones.resize(self.row_ids.len(), 0),
        }
    }

    fn flush_group(&mut self) -> Result<()> {
        self.raw_bytes += (self.buffered_bytes() + self.row_ids.len() * 8) as u64;
        let summary = self.summary();
        let (frames, options) = (&mut self.frames, &self.options);
        let mut chunks = Vec::with_capacity(self.columns.len() + super::HIDDEN_COLUMNS);
        for column in &mut self.columns {
            chunks.push(column.write(frames, options)?);
        }
        for (kind, hidden) in [(Kind::Int8, &mut self.row_ids), (Kind::Int8, &mut self.csns), (Kind::Bool, &mut self.tombstones)]
        {
            chunks.push(write_words(kind, std::mem::take(hidden), None, 0, frames, options)?);
        }
        self.groups.push(Group { summary, chunks });
        Ok(())
    }

    fn summary(&self) -> RowGroup {
        let csns = self.csns.iter().map(|&csn| csn as u64);
        let ends = self.row_ids.first().zip(self.row_ids.last());
        let (first, last) = ends.map_or((0, 0), |(first, last)| (*first as u64, *last as u64));
        RowGroup {
            rows: self.row_ids.len(),
            tombstones: self.tombstones.iter().filter(|&&t| t != 0).count(),
            row_id_min: RowId(first),
            row_id_max: RowId(last),
            csn_min: Csn(csns.clone().min().unwrap_or(0)),
            csn_max: Csn(csns.max().unwrap_or(0)),
            unique: self.row_ids.windows(2).all(|pair| pair[0] != pair[1]),
        }
    }

    /// Bytes written to the file so far, about: lets a merge cut its output.
    pub fn stored_bytes(&self) -> u64 {
        self.frames.offset()
    }

    /// Writes what is left and the footer, and makes the file's content durable; the caller makes its name so
    /// (`Directory::sync_names`).
    pub fn finish(mut self) -> Result<SegmentMeta> {
        if !self.row_ids.is_empty() {
            self.flush_group()?;
        }
        let groups = self.groups.iter().map(|group| &group.summary);
        let mut meta = SegmentMeta {
            rows: groups.clone().map(|g| g.rows as u64).sum(),
            tombstones: groups.clone().map(|g| g.tombstones as u64).sum(),
            raw_bytes: self.raw_bytes,
            stored_bytes: 0,
            row_id_min: groups.clone().next().map_or(RowId(0), |g| g.row_id_min),
            row_id_max: groups.clone().next_back().map_or(RowId(0), |g| g.row_id_max),
            csn_min: groups.clone().map(|g| g.csn_min).min().unwrap_or_default(),
            csn_max: groups.map(|g| g.csn_max).max().unwrap_or_default(),
            footer_crc: 0,
        };
        let footer = TableDirectory { kinds: self.kinds, meta, groups: self.groups }.encode();
        (meta.stored_bytes, meta.footer_crc) = self.frames.finish(&footer, &TABLE_MAGIC)?;
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
