//! Reads a table segment: opening, point reads, pruning, verification.

use std::ops::Range;
use std::sync::Arc;

use melba_types::{Column, Csn, Datum, Kind, Numeric, RowId};
use melba_vfs::Directory;

use super::directory::{Blocks, Chunk, Form, Group, Section, TableDirectory, is_word};
use super::group::{block_rows, read_range};
use super::{GroupData, GroupReader, Position, RowGroup, RowVersion, SegmentMeta, TABLE_MAGIC};
use crate::block::{Block, BlockKind};
use crate::cache::{BlockCache, BlockRef, SegmentBlocks};
use crate::encoding::words::partition_point;
use crate::error::{BlockName, Result, SegmentError};
use crate::frame::FrameReader;
use crate::statistics::{Statistics, ZoneOp};

/// Scans leave blocks in the cache only of segments up to this share of its capacity, so that one scan of a large table
/// does not empty it.
const SCAN_CACHE_SHARE: u64 = 8;
/// Bytes of a chunk that are read from the file at a time, unless a single block is longer.
const READ_AHEAD_BYTES: u64 = 64 << 10;

/// An open table segment; shared between threads.
pub struct TableSegmentReader {
    frames: FrameReader,
    cached: SegmentBlocks,
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
        let reader = TableSegmentReader { frames, cached, kinds, meta, assigned, summaries, chunks, sections, starts };
        Ok(Arc::new(reader))
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
        let below = |block: &dyn Fn(usize) -> i64, count: usize| partition_point(count, |i| (block(i) as u64) < row_id.0);
        let start = match &self.chunks[group][self.kinds.len()].form {
            Form::Constant(value) => {
                let word = self.constant_word(value)?;
                below(&|_| word, rows)
            }
            Form::Blocks(blocks) => {
                // The block whose first row id is the last one not above; with several blocks each is touched at its first row.
                let count = rows.div_ceil(1 << blocks.shift);
                let (mut low, mut high) = (0, count - 1);
                while low < high {
                    let middle = (low + high).div_ceil(2);
                    if (self.word_block(group, blocks, middle, 0)?.1(0) as u64) < row_id.0 {
                        low = middle;
                    } else {
                        high = middle - 1;
                    }
                }
                let (count, get) = self.word_block(group, blocks, low, 0)?;
                let within = below(&get, count);
                let start = (low << blocks.shift) + within;
                if summary.unique && within < count {
                    return Ok((get(within) as u64 == row_id.0).then_some((group, start..start + 1)));
                }
                start
            }
            // A writer never makes a dictionary of sorted numbers: their runs are smaller.
            _ => return Err(self.undecodable(group, self.kinds.len())),
        };
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
                let mut held = Held::default();
                for (i, position) in positions.iter().enumerate() {
                    self.read_value(position.group as usize, position.row as usize, column, &mut held, out)?;
                    if i == 0 {
                        out.reserve_like_last(positions.len() - 1);
                    }
                }
            }
        }
        Ok(())
    }

    /// Calls `each` with a value that lies uncompressed in blocks of byte strings: a frame of a large value. `None` when it is null.
    ///
    /// # Panics
    /// When the position is not of this segment: a bug of ours.
    pub fn with_bytes<T>(&self, position: Position, column: usize, each: impl FnOnce(&[u8]) -> T) -> Result<Option<T>> {
        let (group, row) = (position.group as usize, position.row as usize);
        let blocks = match &self.chunks[group][column].form {
            Form::Blocks(blocks) => blocks,
            Form::Dense => {
                let section = self.section(group, column)?;
                return self.with_dense(section, self.starts[group] + row, |bytes, _| each(bytes));
            }
            _ => return Ok(None),
        };
        match &*self.block_of_row(group, blocks, row, 0, self.value_block_kind(group, column))? {
            Block::Strings(block) if block.is_valid(row & mask(blocks)) => Ok(Some(each(block.get(row & mask(blocks))))),
            _ => Ok(None),
        }
    }

    fn read_value(&self, group: usize, row: usize, column: usize, held: &mut Held, out: &mut Column) -> Result<()> {
        let kind = self.kinds[column];
        let undecodable = || self.undecodable(group, column);
        let push_bytes = |out: &mut Column, value: &[u8]| if out.push_encoded(kind, value) { Ok(()) } else { Err(undecodable()) };
        let chunk = &self.chunks[group][column];
        let push_word = |out: &mut Column, word: i64| match chunk.scale {
            Some(scale) => out.push(Datum::Numeric(Numeric::from_parts(i128::from(word), scale))),
            None => push_word(out, word),
        };
        let (blocks, block_kind, skip) = match &chunk.form {
            Form::Null => {
                out.push_null();
                return Ok(());
            }
            Form::Constant(value) if is_word(kind) || chunk.scale.is_some() => {
                push_word(out, self.constant_word(value)?);
                return Ok(());
            }
            Form::Constant(value) => return push_bytes(out, value),
            Form::Blocks(blocks) => (blocks, self.value_block_kind(group, column), 0),
            Form::Dictionary(blocks) => (blocks, BlockKind::Words, 1),
            Form::Symbols(blocks) => (blocks, BlockKind::Strings, 1),
            Form::Dense => {
                let section = self.section(group, column)?;
                let pushed = self.with_dense(section, self.starts[group] + row, |bytes, is_plain| {
                    if is_plain {
                        return push_bytes(out, bytes);
                    }
                    out.push(Datum::Stored(bytes.into()));
                    Ok(())
                })?;
                if pushed.transpose()?.is_none() {
                    out.push_null();
                }
                return Ok(());
            }
        };
        let at = row & mask(blocks);
        let index = row >> blocks.shift;
        let number = blocks.first + (index + skip) as u32;
        if held.block.as_ref().is_none_or(|(held, _)| *held != number) {
            held.block = Some((number, self.block_of_row(group, blocks, row, skip, block_kind)?));
        }
        if skip > 0 && held.first.as_ref().is_none_or(|(held, _)| *held != blocks.first) {
            let kind = if block_kind == BlockKind::Strings { BlockKind::Symbols } else { self.value_block_kind(group, column) };
            held.first = Some((blocks.first, self.block(blocks, 0, kind)?));
        }
        let first = if skip > 0 { held.first.as_ref().map(|(_, block)| &**block) } else { None };
        match (held.block.as_ref().map(|(_, block)| &**block), first) {
            (Some(Block::Words(block)), _) if !block.is_valid(at) => out.push_null(),
            (Some(Block::Strings(block)), _) if !block.is_valid(at) => out.push_null(),
            (Some(Block::Words(block)), None) => push_word(out, block.get(at)),
            (Some(Block::Strings(block)), None) if !block.is_plain(at) => out.push(Datum::Stored(block.get(at).into())),
            (Some(Block::Strings(block)), None) => push_bytes(out, block.get(at))?,
            (Some(Block::Words(codes)), Some(Block::Words(entries))) if (codes.get(at) as usize) < entries.rows() => {
                push_word(out, entries.get(codes.get(at) as usize));
            }
            (Some(Block::Words(codes)), Some(Block::Strings(entries))) if (codes.get(at) as usize) < entries.rows() => {
                push_bytes(out, entries.get(codes.get(at) as usize))?;
            }
            (Some(Block::Strings(coded)), Some(Block::Symbols(table))) => {
                let value = table.decode(coded.get(at), &mut held.scratch).ok_or_else(undecodable)?;
                push_bytes(out, value)?;
            }
            _ => return Err(undecodable()),
        }
        Ok(())
    }

    fn csn_at(&self, group: usize, row: usize) -> Result<Csn> {
        let csn = Csn(self.hidden(group, 1, row)? as u64);
        Ok(if csn.0 == 0 { self.assigned } else { csn })
    }

    fn tombstone_at(&self, group: usize, row: usize) -> Result<bool> {
        Ok(self.summaries[group].tombstones > 0 && self.hidden(group, 2, row)? != 0)
    }

    /// One value of a hidden column.
    fn hidden(&self, group: usize, hidden: usize, row: usize) -> Result<i64> {
        let column = self.kinds.len() + hidden;
        let undecodable = || self.undecodable(group, column);
        match &self.chunks[group][column].form {
            Form::Constant(value) => self.constant_word(value),
            Form::Blocks(blocks) => match &*self.block_of_row(group, blocks, row, 0, BlockKind::Words)? {
                Block::Words(block) => Ok(block.get(row & mask(blocks))),
                _ => Err(undecodable()),
            },
            Form::Dictionary(blocks) => {
                let codes = self.block_of_row(group, blocks, row, 1, BlockKind::Words)?;
                let entries = self.block(blocks, 0, BlockKind::Words)?;
                let (Block::Words(codes), Block::Words(entries)) = (&*codes, &*entries) else { return Err(undecodable()) };
                let code = codes.get(row & mask(blocks)) as usize;
                if code < entries.rows() { Ok(entries.get(code)) } else { Err(undecodable()) }
            }
            Form::Null | Form::Symbols(_) | Form::Dense => Err(undecodable()),
        }
    }

    fn word_block(
        &self,
        group: usize,
        blocks: &Blocks,
        index: usize,
        skip: usize,
    ) -> Result<(usize, impl Fn(usize) -> i64 + use<>)> {
        let block = self.block_of_row(group, blocks, index << blocks.shift, skip, BlockKind::Words)?;
        let rows = block_rows(&block).unwrap_or(0);
        Ok((rows, move |i: usize| match &*block {
            Block::Words(block) => block.get(i),
            _ => 0,
        }))
    }

    /// The block that holds `row` of the group, its number of rows checked.
    fn block_of_row(&self, group: usize, blocks: &Blocks, row: usize, skip: usize, kind: BlockKind) -> Result<BlockRef> {
        let index = row >> blocks.shift;
        let block = self.block(blocks, index + skip, kind)?;
        if block_rows(&block) != Some(self.rows_of_block(group, blocks, index)) {
            return Err(self.damaged(blocks.first + (index + skip) as u32, "rows differ from the directory"));
        }
        Ok(block)
    }

    pub(super) fn block(&self, blocks: &Blocks, index: usize, kind: BlockKind) -> Result<BlockRef> {
        if let Some(block) = self.cached(blocks, index) {
            return Ok(block);
        }
        let (offset, length) = blocks.extent(index);
        let number = blocks.first + index as u32;
        let content = self.frames.content_of(self.frames.bytes(offset, length)?, number)?;
        self.keep_block(number, content, kind, true).map(BlockRef::from)
    }

    /// Checks every block: checksums, layouts, row counts, the order of row ids, and that every value decodes.
    pub fn verify(self: &Arc<Self>) -> Result<()> {
        // Dense values are decoded block by block: in the order of rows, each block would be decoded many times.
        let is_dense = |column: &usize| self.sections.iter().any(|section| section.column == *column);
        let projection: Vec<usize> = (0..self.kinds.len()).filter(|column| !is_dense(column)).collect();
        let rows = self.summaries.iter().map(|group| group.rows).sum();
        self.sections.iter().try_for_each(|section| self.verify_section(section, rows))?;
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
    pub(super) fn chunk(&self, group: usize, index: usize) -> &Chunk {
        &self.chunks[group][index]
    }

    /// The section of a column, and of its rows the first of a group.
    pub(super) fn section_of(&self, group: usize, column: usize) -> Result<(&Section, usize)> {
        Ok((self.section(group, column)?, self.starts[group]))
    }

    fn section(&self, group: usize, column: usize) -> Result<&Section> {
        self.sections.iter().find(|section| section.column == column).ok_or_else(|| self.undecodable(group, column))
    }

    /// Bytes that the cache may hold.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.cached.cache().capacity_bytes() as u64
    }

    /// Reads and parses a block of a dense section.
    pub(super) fn read_dense_block(&self, blocks: &Blocks, index: usize, reference: &[u8], keep: bool) -> Result<Arc<Block>> {
        let (offset, length) = blocks.extent(index);
        let number = blocks.first + index as u32;
        let content = self.frames.dense_content(&self.frames.bytes(offset, length)?, number, reference)?;
        self.keep_block(number, content, BlockKind::Strings, keep)
    }

    pub(super) fn assigned(&self) -> Csn {
        self.assigned
    }

    /// The kind of the blocks that hold a chunk's values (or its dictionary).
    fn value_block_kind(&self, group: usize, column: usize) -> BlockKind {
        match self.kinds.get(column) {
            Some(&kind) if !is_word(kind) && self.chunks[group][column].scale.is_none() => BlockKind::Strings,
            _ => BlockKind::Words,
        }
    }

    pub(super) fn rows_of_block(&self, group: usize, blocks: &Blocks, index: usize) -> usize {
        (self.summaries[group].rows - (index << blocks.shift)).min(1 << blocks.shift)
    }

    pub(super) fn cached(&self, blocks: &Blocks, index: usize) -> Option<BlockRef> {
        self.cached_block(blocks.first + index as u32)
    }

    pub(super) fn cached_block(&self, number: u32) -> Option<BlockRef> {
        self.cached.get(number)
    }

    pub(super) fn frame_bytes(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.frames.bytes(offset, length)
    }

    pub(super) fn caches_scans(&self) -> bool {
        self.meta.stored_bytes <= self.cached.cache().capacity_bytes() as u64 / SCAN_CACHE_SHARE
    }

    /// The frames of a chunk's block and of those behind it that fit into one read.
    pub(super) fn frames_ahead(&self, group: usize, blocks: &Blocks, index: usize) -> Result<Vec<u8>> {
        debug_assert!(group < self.chunks.len());
        let (offset, length) = blocks.extent(index);
        let most = offset - blocks.offset + READ_AHEAD_BYTES;
        let end = blocks.ends[..blocks.ends.partition_point(|end| *end <= most)].last().copied().unwrap_or(0);
        self.frames.bytes(offset, length.max((blocks.offset + end).saturating_sub(offset) as usize))
    }

    pub(super) fn parse_block(&self, number: u32, frame: &[u8], kind: BlockKind, keep: bool) -> Result<Arc<Block>> {
        self.keep_block(number, self.frames.content(frame, number)?, kind, keep)
    }

    fn keep_block(&self, number: u32, content: Vec<u8>, kind: BlockKind, keep: bool) -> Result<Arc<Block>> {
        let block = Block::parse(kind, content).ok_or_else(|| self.damaged(number, "unknown layout"))?;
        let block = Arc::new(block);
        if keep {
            self.cached.insert(number, &block);
        }
        Ok(block)
    }

    pub(super) fn constant_word(&self, value: &[u8]) -> Result<i64> {
        let bytes = value.try_into().map_err(|_| self.frames.corrupt(BlockName::Footer, "constant of the wrong length"))?;
        Ok(i64::from_le_bytes(bytes))
    }

    /// A block as the file has it, verified.
    pub(super) fn frame(&self, blocks: &Blocks, index: usize) -> Result<Vec<u8>> {
        let (offset, length) = blocks.extent(index);
        self.frames.frame(offset, length, blocks.first + index as u32)
    }

    pub(super) fn damaged(&self, number: u32, reason: &'static str) -> SegmentError {
        self.frames.corrupt(BlockName::Data(number), reason)
    }

    /// A chunk whose checksums are right and whose values are not.
    pub(super) fn undecodable(&self, group: usize, column: usize) -> SegmentError {
        match &self.chunks[group][column].form {
            Form::Blocks(blocks) | Form::Dictionary(blocks) | Form::Symbols(blocks) => {
                self.damaged(blocks.first, "values do not decode")
            }
            Form::Null | Form::Constant(_) | Form::Dense => self.frames.corrupt(BlockName::Footer, "values do not decode"),
        }
    }
}

/// Blocks of all chunks, whose numbers follow each other.
fn block_count(chunks: &[Vec<Chunk>], sections: &[Section]) -> usize {
    let count = |chunk: &Chunk| match &chunk.form {
        Form::Blocks(blocks) | Form::Dictionary(blocks) | Form::Symbols(blocks) => blocks.ends.len(),
        Form::Null | Form::Constant(_) | Form::Dense => 0,
    };
    let count = |chunk: &Chunk| count(chunk) + chunk.filter.map_or(0, |filter| filter.parts());
    let of_section = |s: &Section| s.reference.ends.len() + s.ordinals.ends.len() + s.blocks.ends.len();
    chunks.iter().flatten().map(count).sum::<usize>() + sections.iter().map(of_section).sum::<usize>()
}

/// The blocks that the last value of a column came from, with their numbers.
#[derive(Default)]
struct Held {
    block: Option<(u32, BlockRef)>,
    /// The dictionary or symbol table.
    first: Option<(u32, BlockRef)>,
    scratch: Vec<u8>,
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

/// Selects a row within its block.
#[inline]
fn mask(blocks: &Blocks) -> usize {
    (1 << blocks.shift) - 1
}

/// Appends a word to a column of a word kind.
fn push_word(out: &mut Column, word: i64) {
    use crate::encoding::packed::Word;
    use melba_types::ColumnData;
    let before = out.len();
    match &mut out.data {
        ColumnData::Bool(v) => v.push(Word::from_word(word)),
        ColumnData::Int2(v) => v.push(Word::from_word(word)),
        ColumnData::Int4(v) => v.push(Word::from_word(word)),
        ColumnData::Int8(v) => v.push(Word::from_word(word)),
        ColumnData::Float4(v) => v.push(Word::from_word(word)),
        ColumnData::Float8(v) => v.push(Word::from_word(word)),
        ColumnData::Oid(v) => v.push(Word::from_word(word)),
        ColumnData::Datum(v) => v.push(Datum::Char(word as u8)),
        ColumnData::Text(_) | ColumnData::Bytes(_) | ColumnData::Coded(_) | ColumnData::Numeric(_) | ColumnData::Stored(_) => {
            panic!("a word for a column of other values")
        }
    }
    if let Some(validity) = &mut out.validity {
        debug_assert_eq!(validity.len(), before);
        validity.push(true);
    }
}
