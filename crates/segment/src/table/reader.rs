//! Reads a table segment: opening, point reads, pruning, verification.

use std::ops::Range;
use std::sync::Arc;

use melba_types::{Column, Csn, Datum, Kind, RowId};
use melba_vfs::Directory;

use super::directory::{Chunk, Group, TableDirectory};
use super::group::read_range;
use super::{GroupData, GroupReader, Position, RowGroup, RowVersion, SegmentMeta, TABLE_MAGIC};
use crate::cache::{BlockCache, SegmentBlocks};
use crate::encoding::{ChunkEntry, ChunkView, HeldRow, Section, ValueOut};
use crate::error::{BlockName, Result, SegmentError};
use crate::file::BlockFile;
use crate::frame::FrameReader;
use crate::statistics::{Statistics, ZoneOp};

/// An open table segment; shared between threads.
pub struct TableSegmentReader {
    pub(super) file: BlockFile,
    kinds: Vec<Kind>,
    meta: SegmentMeta,
    /// The meaning of a stored CSN of 0.
    assigned: Csn,
    summaries: Vec<RowGroup>,
    chunks: Vec<Vec<Chunk>>,
    pub(super) sections: Vec<Section>,
    /// The number of each row group's first row among all of the segment's.
    starts: Vec<usize>,
}

impl TableSegmentReader {
    /// Opens a segment, reading its footer only.
    pub fn open(directory: &dyn Directory, name: &str, cache: &Arc<BlockCache>) -> Result<Arc<TableSegmentReader>> {
        TableSegmentReader::open_assigned(directory, name, cache, Csn(0))
    }

    /// Opens a segment written before its transaction's commit: rows stored with CSN 0 have CSN `assigned`.
    pub fn open_assigned(
        directory: &dyn Directory,
        name: &str,
        cache: &Arc<BlockCache>,
        assigned: Csn,
    ) -> Result<Arc<TableSegmentReader>> {
        let (frames, footer) = FrameReader::open(directory, name, &TABLE_MAGIC)?;
        let decoded = TableDirectory::decode(&footer, frames.version, frames.blocks_end());
        let decoded = decoded.ok_or_else(|| frames.corrupt(BlockName::Footer, "not a table directory"))?;
        let TableDirectory { kinds, mut meta, groups, sections } = decoded;
        meta.stored_bytes = frames.file_bytes;
        meta.footer_crc = frames.footer_crc;
        let (mut summaries, mut chunks) = (Vec::with_capacity(groups.len()), Vec::with_capacity(groups.len()));
        for Group { mut summary, chunks: of_group } in groups {
            if summary.csn_min.0 == 0 {
                // Among other CSNs the assigned one may lie anywhere, so the bounds only get wider.
                let uniform = summary.csn_max.0 == 0;
                summary.csn_min = if uniform { assigned } else { assigned.min(Csn(1)) };
                summary.csn_max = summary.csn_max.max(assigned);
            }
            summaries.push(summary);
            chunks.push(of_group);
        }
        meta.csn_min = summaries.iter().map(|g| g.csn_min).min().unwrap_or_default();
        meta.csn_max = summaries.iter().map(|g| g.csn_max).max().unwrap_or_default();
        let cached = SegmentBlocks::new(cache, block_count(&chunks, &sections));
        let starts = summaries.iter().scan(0, |rows, group| Some(std::mem::replace(rows, *rows + group.rows))).collect();
        let mut file = BlockFile::new(frames, cached);
        for section in &sections {
            section.reference_name.iter().for_each(|name| file.share_reference(section.reference.number(0), *name));
        }
        let reader = TableSegmentReader { file, kinds, meta, assigned, summaries, chunks, sections, starts };
        Ok(Arc::new(reader))
    }

    /// Says for whom the blocks are counted (`melba_vfs::counts`).
    pub fn set_owner(&self, owner: u64) {
        self.file.set_owner(owner);
    }

    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// The columns that the segment has: the table's first ones, fewer when columns were added since.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    pub fn row_groups(&self) -> &[RowGroup] {
        &self.summaries
    }

    /// First and last row id of a row group.
    pub fn group_range(&self, group: usize) -> (RowId, RowId) {
        (self.summaries[group].row_id_min, self.summaries[group].row_id_max)
    }

    /// Statistics of a column in a row group; `None` when the segment is older than the column.
    pub fn statistics(&self, group: usize, column: usize) -> Option<&Statistics> {
        (column < self.kinds.len()).then(|| &self.chunks[group][column].statistics)
    }

    /// Whether no row of the group can satisfy `column op value`; never for a column that the segment lacks.
    ///
    /// The order is that of the kind, byte strings by bytes. Where the SQL type has another one (other collations, enums, types of unsigned
    /// 64 bits) only `Equal`, `IsNull` and `IsNotNull` are allowed, and where equal values differ in bytes (bpchar) not `Equal` either. The
    /// answer is about this segment's versions alone: those of a pruned group still replace older versions of their rows elsewhere.
    pub fn prune(&self, group: usize, column: usize, op: ZoneOp, value: &Datum) -> bool {
        let rows = self.summaries[group].rows as u64;
        self.statistics(group, column).is_some_and(|s| s.excludes(self.kinds[column], rows, op, value))
    }

    /// Decodes a whole row group. Scans that want pieces use `group`.
    pub fn read_group(self: &Arc<Self>, group: usize, projection: &[usize]) -> Result<GroupData> {
        let rows = self.summaries[group].rows;
        self.group(group, projection).read(0..rows)
    }

    /// A reader of pieces of a row group.
    pub fn group(self: &Arc<Self>, group: usize, projection: &[usize]) -> GroupReader {
        GroupReader::new(Arc::clone(self), group, projection)
    }

    /// The newest version of a row with a CSN of at most `csn_max`.
    ///
    /// A row id outside of the segment's row groups costs a binary search in memory. There is no filter beside: the packed row ids of a group
    /// are no larger than one.
    pub fn find(&self, row_id: RowId, csn_max: Csn) -> Result<Option<RowVersion>> {
        let Some((position, tombstone)) = self.see(row_id, csn_max)? else { return Ok(None) };
        let csn = self.csn_at(position.group as usize, position.row as usize)?;
        Ok(Some(RowVersion { position, csn, tombstone }))
    }

    /// As `find`: where the version is, and whether it is a tombstone. Of most row groups everything is seen, and no CSN read.
    pub fn see(&self, row_id: RowId, csn_max: Csn) -> Result<Option<(Position, bool)>> {
        let Some((group, rows)) = self.versions(row_id)? else { return Ok(None) };
        let all = self.summaries[group].csn_max <= csn_max;
        for row in rows {
            if all || self.csn_at(group, row)? <= csn_max {
                let position = Position { group: group as u32, row: row as u32 };
                return Ok(Some((position, self.tombstone_at(group, row)?)));
            }
        }
        Ok(None)
    }

    /// All versions of a row, newest first: its row group and the rows within.
    pub fn versions(&self, row_id: RowId) -> Result<Option<(usize, Range<usize>)>> {
        let group = self.summaries.partition_point(|g| g.row_id_max < row_id);
        match self.summaries.get(group) {
            Some(summary) if summary.row_id_min <= row_id => {}
            _ => return Ok(None),
        }
        let summary = &self.summaries[group];
        let rows = summary.rows;
        if is_dense(summary) {
            // A bulk load's row ids leave no gaps.
            let row = (row_id.0 - summary.row_id_min.0) as usize;
            return Ok(Some((group, row..row + 1)));
        }
        let row_ids = self.view(group, self.kinds.len());
        let bound = row_ids.encoding.lower_bound(&row_ids, row_id.0)?;
        let start = bound.row;
        if summary.unique
            && let Some(word) = bound.word
        {
            return Ok((word == row_id.0).then_some((group, start..start + 1)));
        }
        let mut end = start;
        while end < rows && self.hidden(group, 0, end)? as u64 == row_id.0 {
            end += 1;
            if self.summaries[group].unique {
                break;
            }
        }
        Ok((end > start).then_some((group, start..end)))
    }

    /// The last of the rows from `position` on whose ids follow each other without gaps, if `csn_max` sees the one version that
    /// each has, and none is a tombstone: the n-th after it has the n-th position after this one.
    pub fn dense_until(&self, position: Position, csn_max: Csn) -> Option<RowId> {
        let summary = &self.summaries[position.group as usize];
        (is_dense(summary) && summary.tombstones == 0 && summary.csn_max <= csn_max).then_some(summary.row_id_max)
    }

    /// The row at `position`: appends one value to `out[i]` for each column `projection[i]` that the segment has; for
    /// columns it lacks (`kinds`) the caller appends their missing value.
    ///
    /// # Panics
    /// When the position is not of this segment or a column is of another kind: bugs of ours.
    pub fn read_row(&self, position: Position, projection: &[usize], out: &mut [Column]) -> Result<()> {
        self.read_rows(&[position], projection, out)
    }

    /// As `read_row`, for many rows in the order given. Rows of one block that follow each other look it up once, so ascending
    /// positions are best.
    pub fn read_rows(&self, positions: &[Position], projection: &[usize], out: &mut [Column]) -> Result<()> {
        assert_eq!(projection.len(), out.len(), "an output for each column");
        let range = contiguous(positions);
        for (&column, out) in projection.iter().zip(out) {
            if column < self.kinds.len() {
                if let Some((group, range)) = &range
                    && out.is_empty()
                {
                    *out = read_range(self, *group, column, range.clone())?;
                    continue;
                }
                self.read_values(positions, column, out)?;
            }
        }
        Ok(())
    }

    /// Appends values of a column, those of one row group at a time.
    fn read_values(&self, positions: &[Position], column: usize, out: &mut Column) -> Result<()> {
        let Some((first, rest)) = positions.split_first() else { return Ok(()) };
        let mut held = HeldRow::default();
        self.read_chunk_values(first.group, &[first.row], column, &mut held, out)?;
        if rest.is_empty() {
            return Ok(());
        }
        out.reserve_like_last(rest.len());
        let rows: Vec<u32> = rest.iter().map(|position| position.row).collect();
        let mut at = 0;
        for positions in rest.chunk_by(|a, b| a.group == b.group) {
            self.read_chunk_values(positions[0].group, &rows[at..at + positions.len()], column, &mut held, out)?;
            at += positions.len();
        }
        Ok(())
    }

    #[inline]
    fn read_chunk_values(&self, group: u32, rows: &[u32], column: usize, held: &mut HeldRow, out: &mut Column) -> Result<()> {
        let chunk = self.view(group as usize, column);
        chunk.encoding.read_rows(&chunk, rows, held, &mut ValueOut { column: out, kind: chunk.kind, scale: chunk.scale })
    }

    /// The id of the row at `position`.
    pub fn row_id(&self, position: Position) -> Result<RowId> {
        let (group, row) = (position.group as usize, position.row as usize);
        let summary = &self.summaries[group];
        if is_dense(summary) {
            return Ok(RowId(summary.row_id_min.0 + row as u64));
        }
        Ok(RowId(self.hidden(group, 0, row)? as u64))
    }

    /// Whether the row at `position` is a tombstone.
    pub fn is_tombstone(&self, position: Position) -> Result<bool> {
        self.tombstone_at(position.group as usize, position.row as usize)
    }

    /// Whether the values of a column lie in a dense section.
    pub fn is_dense(&self, column: usize) -> bool {
        self.sections.iter().any(|section| section.column == column)
    }

    /// Calls `each` with a value that lies uncompressed in blocks of byte strings: a frame of a large value. `None` when it is null.
    ///
    /// # Panics
    /// When the position is not of this segment: a bug of ours.
    pub fn with_bytes<T>(&self, position: Position, column: usize, each: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let (group, row) = (position.group as usize, position.row as usize);
        let (mut each, mut result) = (Some(each), None);
        let mut call = |bytes: &[u8]| result = each.take().map(|each| each(bytes));
        let chunk = self.view(group, column);
        chunk.encoding.with_bytes(&chunk, row, &mut call)?;
        Ok(result)
    }

    fn csn_at(&self, group: usize, row: usize) -> Result<Csn> {
        let summary = &self.summaries[group];
        if summary.csn_min == summary.csn_max {
            return Ok(summary.csn_max);
        }
        let csn = Csn(self.hidden(group, 1, row)? as u64);
        Ok(if csn.0 == 0 { self.assigned } else { csn })
    }

    fn tombstone_at(&self, group: usize, row: usize) -> Result<bool> {
        Ok(self.summaries[group].tombstones > 0 && self.hidden(group, 2, row)? != 0)
    }

    /// One value of a hidden column.
    fn hidden(&self, group: usize, hidden: usize, row: usize) -> Result<i64> {
        let column = self.kinds.len() + hidden;
        let chunk = self.view(group, column);
        chunk.encoding.word(&chunk, row)
    }

    /// Checks every block: checksums, layouts, row counts, the order of row ids, and that every value decodes.
    pub fn verify(self: &Arc<Self>) -> Result<()> {
        // Dense values are decoded block by block: in the order of rows, each block would be decoded many times.
        let is_dense = |column: &usize| self.sections.iter().any(|section| section.column == *column);
        let projection: Vec<usize> = (0..self.kinds.len()).filter(|column| !is_dense(column)).collect();
        let rows = self.summaries.iter().map(|group| group.rows).sum();
        self.sections.iter().try_for_each(|section| section.verify(&self.file, rows))?;
        let mut last = None;
        for (group, summary) in self.summaries.iter().enumerate() {
            let mut reader = self.group(group, &projection);
            for start in (0..summary.rows).step_by(4096) {
                let data = reader.read(start..(start + 4096).min(summary.rows))?;
                for (i, row_id) in data.row_ids.iter().enumerate() {
                    let this = (*row_id, std::cmp::Reverse(data.csns.get(i)));
                    let in_range = *row_id >= summary.row_id_min && *row_id <= summary.row_id_max;
                    if !in_range || last.is_some_and(|last| last >= this) {
                        return Err(self.undecodable(group, self.kinds.len()));
                    }
                    last = Some(this);
                }
                for (column, values) in projection.iter().zip(&data.columns) {
                    let values = values.iter().flat_map(|values| (0..values.len()).map(|i| values.get(i)));
                    self.verify_filter(group, *column, values)?;
                }
            }
        }
        Ok(())
    }
}

/// Functions for `GroupReader` and filters.
impl TableSegmentReader {
    #[inline]
    pub(crate) fn chunk(&self, group: usize, column: usize) -> &Chunk {
        &self.chunks[group][column]
    }

    /// A chunk as its encoding reads it.
    #[inline]
    pub(super) fn view(&self, group: usize, column: usize) -> ChunkView<'_> {
        let Chunk { statistics, encoding, entry, scale, .. } = self.chunk(group, column);
        ChunkView {
            file: &self.file,
            encoding: *encoding,
            entry,
            // Hidden columns hold words.
            kind: self.kinds.get(column).copied().unwrap_or(Kind::Int8),
            scale: *scale,
            rows: self.summaries[group].rows,
            statistics,
            section: if matches!(entry, ChunkEntry::Section) { self.section(group, column) } else { None },
        }
    }

    /// The section of a column, and of its rows the first of a group.
    fn section(&self, group: usize, column: usize) -> Option<(&Section, usize)> {
        let section = self.sections.iter().find(|section| section.column == column)?;
        Some((section, self.starts[group]))
    }

    pub(super) fn assigned(&self) -> Csn {
        self.assigned
    }

    /// A chunk whose checksums are right and whose values are not.
    pub(super) fn undecodable(&self, group: usize, column: usize) -> SegmentError {
        self.view(group, column).undecodable()
    }
}

/// Blocks of all chunks, whose numbers follow each other.
fn block_count(chunks: &[Vec<Chunk>], sections: &[Section]) -> usize {
    let count = |chunk: &Chunk| {
        let own = chunk.blocks().map_or(0, |blocks| blocks.ends.len());
        own + chunk.filter.map_or(0, |filter| filter.parts())
    };
    let of_section = |s: &Section| s.reference.ends.len() + s.ordinals.ends.len() + s.blocks.ends.len();
    chunks.iter().flatten().map(count).sum::<usize>() + sections.iter().map(of_section).sum::<usize>()
}

/// Whether the ids of a row group's rows, one version of each, leave no gaps.
fn is_dense(group: &RowGroup) -> bool {
    group.unique && group.row_id_max.0 - group.row_id_min.0 == group.rows as u64 - 1
}

/// The row group and the range of rows that positions are, if they follow each other and are not too few for it to pay.
fn contiguous(positions: &[Position]) -> Option<(usize, Range<usize>)> {
    const ROWS_MIN: usize = 4;
    let first = positions.first().filter(|_| positions.len() >= ROWS_MIN)?;
    let follows = |(i, p): (usize, &Position)| p.group == first.group && p.row as usize == first.row as usize + i;
    let start = first.row as usize;
    positions.iter().enumerate().all(follows).then(|| (first.group as usize, start..start + positions.len()))
}
