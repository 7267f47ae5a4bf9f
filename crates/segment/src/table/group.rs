//! Decodes ranges of rows of one row group: the path of scans.

use std::ops::Range;
use std::sync::Arc;

use melba_types::{Bitmap, ByteStrings, Column, ColumnData, Csn, Datum, Kind, Mantissas, RowId, codec};

use super::directory::{Blocks, Form, is_word};
use super::reader::TableSegmentReader;
use super::section::HeldSection;
use super::{Csns, GroupData};
use crate::block::{Block, BlockKind};
use crate::cache::BlockRef;
use crate::encoding::packed::Word;
use crate::encoding::strings::StringBlock;
use crate::encoding::words::WordBlock;
use crate::error::Result;

impl Word for RowId {
    #[inline(always)]
    fn from_word(word: i64) -> RowId {
        RowId(word as u64)
    }
}

impl Word for Csn {
    #[inline(always)]
    fn from_word(word: i64) -> Csn {
        Csn(word as u64)
    }
}

/// Reads rows of one row group in pieces of the caller's size. A chunk is read from the file some blocks at a time; blocks are
/// decompressed on demand, best in ascending order.
pub struct GroupReader {
    segment: Arc<TableSegmentReader>,
    group: usize,
    rows: usize,
    /// `None` where the segment is older than the column.
    columns: Vec<Option<ChunkReader>>,
    row_ids: ChunkReader,
    csns: ChunkReader,
    tombstones: ChunkReader,
}

impl GroupReader {
    pub(super) fn new(segment: Arc<TableSegmentReader>, group: usize, projection: &[usize]) -> GroupReader {
        let columns = segment.kinds().len();
        let (row_ids, csns, tombstones) = (columns, columns + 1, columns + 2);
        let reader = |&column: &usize| (column < columns).then(|| ChunkReader::new(column));
        GroupReader {
            rows: segment.row_groups()[group].rows,
            columns: projection.iter().map(reader).collect(),
            row_ids: ChunkReader::new(row_ids),
            csns: ChunkReader::new(csns),
            tombstones: ChunkReader::new(tombstones),
            segment,
            group,
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Decodes rows `range` of the group.
    pub fn read(&mut self, range: Range<usize>) -> Result<GroupData> {
        let row_ids = self.row_ids(range.clone())?;
        let csns = self.csns(range.clone())?;
        let tombstones = self.tombstones(range.clone())?;
        let columns = (0..self.columns.len()).map(|i| self.column(i, std::slice::from_ref(&range))).collect::<Result<_>>()?;
        Ok(GroupData { row_ids, csns, tombstones, columns })
    }

    pub fn row_ids(&mut self, range: Range<usize>) -> Result<Vec<RowId>> {
        let mut out = Vec::with_capacity(range.len());
        self.row_ids.words(&self.segment, self.group, &[range], &mut out, &mut None)?;
        Ok(out)
    }

    pub fn csns(&mut self, range: Range<usize>) -> Result<Csns> {
        let summary = &self.segment.row_groups()[self.group];
        if summary.csn_min == summary.csn_max {
            return Ok(Csns::Uniform(summary.csn_max));
        }
        let mut out: Vec<Csn> = Vec::with_capacity(range.len());
        self.csns.words(&self.segment, self.group, &[range], &mut out, &mut None)?;
        let assigned = self.segment.assigned();
        if assigned != Csn(0) {
            out.iter_mut().filter(|csn| csn.0 == 0).for_each(|csn| *csn = assigned);
        }
        Ok(Csns::Each(out))
    }

    /// Which rows of `range` are tombstones; `None` when none is.
    pub fn tombstones(&mut self, range: Range<usize>) -> Result<Option<Bitmap>> {
        if self.segment.row_groups()[self.group].tombstones == 0 {
            return Ok(None);
        }
        let mut flags: Vec<bool> = Vec::with_capacity(range.len());
        self.tombstones.words(&self.segment, self.group, &[range], &mut flags, &mut None)?;
        let mut bitmap = Bitmap::default();
        flags.iter().for_each(|&flag| bitmap.push(flag));
        Ok(Some(bitmap))
    }

    /// The rows of some ascending ranges, one after the other, of the `index`-th projected column; `None` when the segment is older
    /// than the column. Lets a scan decode the columns of its predicates first and the others for the rows that are left.
    pub fn column(&mut self, index: usize, rows: &[Range<usize>]) -> Result<Option<Column>> {
        match &mut self.columns[index] {
            Some(chunk) => chunk.column(&self.segment, self.group, rows).map(Some),
            None => Ok(None),
        }
    }

    /// The same rows by a dictionary; `None` when the column has none, and its values are not few either.
    pub fn coded(&mut self, index: usize, rows: &[Range<usize>]) -> Result<Option<Coded>> {
        match &mut self.columns[index] {
            Some(chunk) => chunk.coded(&self.segment, self.group, rows),
            None => Ok(None),
        }
    }
}

/// Rows of a column as places in its dictionary, or among the integers between its bounds.
pub struct Coded {
    /// The same for all rows of a row group, and none of them NULL. Not every one need be a row's.
    pub entries: Arc<Column>,
    pub codes: Vec<u32>,
    /// Codes of NULLs are arbitrary.
    pub validity: Option<Bitmap>,
}

/// Some rows of one column, by blocks that stay in the cache: the path of reads that want few.
pub(super) fn read_range(segment: &TableSegmentReader, group: usize, column: usize, range: Range<usize>) -> Result<Column> {
    let mut chunk = ChunkReader { scans: false, ..ChunkReader::new(column) };
    chunk.column(segment, group, &[range])
}

/// One chunk being read.
struct ChunkReader {
    /// Among the group's chunks.
    index: usize,
    /// Other blocks will follow: they are read from the file ahead.
    scans: bool,
    /// Frames of the chunk from `frames_at` on: those of a block that was not in the cache, and of some that follow.
    frames: Vec<u8>,
    frames_at: u64,
    /// The block read last, and its index in the chunk.
    current: Option<(usize, Arc<Block>)>,
    /// The chunk's first block, when that is a dictionary or a symbol table.
    first: Option<Arc<Block>>,
    /// The words of the dictionary, once a scan needed them.
    words: Option<Arc<[i64]>>,
    /// The values of codes, once they were requested.
    entries: Option<Arc<Column>>,
    dense: HeldSection,
}

impl ChunkReader {
    fn new(index: usize) -> ChunkReader {
        ChunkReader {
            index,
            scans: true,
            frames: Vec::new(),
            frames_at: 0,
            current: None,
            first: None,
            words: None,
            entries: None,
            dense: HeldSection::default(),
        }
    }

    fn column(&mut self, segment: &TableSegmentReader, group: usize, ranges: &[Range<usize>]) -> Result<Column> {
        let kind = segment.kinds()[self.index];
        let mut column = self.empty_column(segment, group, total(ranges));
        let mut plain = None;
        let validity = &mut column.validity;
        match &mut column.data {
            ColumnData::Bool(out) => self.words(segment, group, ranges, out, validity)?,
            ColumnData::Int2(out) => self.words(segment, group, ranges, out, validity)?,
            ColumnData::Int4(out) => self.words(segment, group, ranges, out, validity)?,
            ColumnData::Int8(out) => self.words(segment, group, ranges, out, validity)?,
            ColumnData::Oid(out) => self.words(segment, group, ranges, out, validity)?,
            ColumnData::Float4(out) => self.words(segment, group, ranges, out, validity)?,
            ColumnData::Float8(out) => self.words(segment, group, ranges, out, validity)?,
            ColumnData::Numeric(out) => self.words(segment, group, ranges, &mut out.values, validity)?,
            ColumnData::Text(out) | ColumnData::Bytes(out) => self.strings(segment, group, ranges, out, validity, &mut plain)?,
            ColumnData::Coded(_) | ColumnData::Datum(_) | ColumnData::Stored(_) => {
                column.data = self.datums(segment, group, kind, ranges)?;
            }
        }
        if let Some(plain) = plain {
            return Ok(stored_column(&column, &plain));
        }
        if let Some(validity) = &column.validity {
            zero_nulls(&mut column.data, validity);
        }
        Ok(column)
    }

    /// A column for values of the chunk.
    fn empty_column(&self, segment: &TableSegmentReader, group: usize, rows: usize) -> Column {
        let scale = segment.chunk(group, self.index).scale;
        match scale.and_then(|scale| Mantissas::new(Vec::with_capacity(rows), scale)) {
            Some(words) => Column::new(ColumnData::Numeric(words)),
            None => Column::with_capacity(segment.kinds()[self.index], rows),
        }
    }

    /// Appends words; nulls hold unspecified values.
    fn words<T: Word>(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        ranges: &[Range<usize>],
        out: &mut Vec<T>,
        validity: &mut Option<Bitmap>,
    ) -> Result<()> {
        let chunk = segment.chunk(group, self.index);
        match &chunk.form {
            Form::Null => {
                out.resize(out.len() + total(ranges), T::from_word(0));
                *validity = Some(Bitmap::filled(out.len(), false));
            }
            Form::Constant(value) => {
                let word = segment.constant_word(value)?;
                out.resize(out.len() + total(ranges), T::from_word(word));
            }
            Form::Blocks(blocks) => self.each_block(segment, group, blocks, 0, BlockKind::Words, ranges, |block, rows| {
                let Block::Words(block) = block else { return false };
                block.decode_validity(rows.clone(), out.len(), validity);
                block.decode(rows, out);
                true
            })?,
            Form::Dictionary(blocks) => {
                if self.scans {
                    let entries = self.entry_words(segment, group, blocks)?;
                    let codes = self.codes(segment, group, blocks, entries.len(), ranges, validity)?;
                    out.extend(codes.iter().map(|&code| T::from_word(entries[code as usize])));
                    return Ok(());
                }
                let first = self.first_block(segment, group, blocks, BlockKind::Words)?;
                let Block::Words(dictionary) = &*first else {
                    return Err(segment.damaged(blocks.first, "not a dictionary of words"));
                };
                let codes = self.codes(segment, group, blocks, dictionary.rows(), ranges, validity)?;
                out.extend(codes.iter().map(|&code| T::from_word(dictionary.get(code as usize))));
            }
            Form::Symbols(_) | Form::Dense => return Err(segment.undecodable(group, self.index)),
        }
        Ok(())
    }

    fn strings(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        ranges: &[Range<usize>],
        out: &mut ByteStrings,
        validity: &mut Option<Bitmap>,
        plain: &mut Option<Bitmap>,
    ) -> Result<()> {
        let chunk = segment.chunk(group, self.index);
        match &chunk.form {
            Form::Null => {
                (0..total(ranges)).for_each(|_| out.push(&[]));
                *validity = Some(Bitmap::filled(out.len(), false));
            }
            Form::Constant(value) => (0..total(ranges)).for_each(|_| out.push(value)),
            Form::Dense => {
                let (section, start) = segment.section_of(group, self.index)?;
                for range in ranges {
                    let rows = start + range.start..start + range.end;
                    segment.dense_rows(section, rows, &mut self.dense, out, validity, plain)?;
                }
            }
            Form::Symbols(blocks) => {
                let table = self.first_block(segment, group, blocks, BlockKind::Symbols)?;
                let Block::Symbols(table) = &*table else {
                    return Err(segment.damaged(blocks.first, "not a symbol table"));
                };
                self.each_block(segment, group, blocks, 1, BlockKind::Strings, ranges, |block, rows| {
                    let Block::Strings(block) = block else { return false };
                    block.decode_validity(rows.clone(), out.len(), validity);
                    table.decode_all(rows.map(|i| block.get(i)), out)
                })?;
            }
            Form::Blocks(blocks) => self.each_block(segment, group, blocks, 0, BlockKind::Strings, ranges, |block, rows| {
                let Block::Strings(block) = block else { return false };
                block.decode_validity(rows.clone(), out.len(), validity);
                block.decode_plain(rows.clone(), out.len(), plain);
                block.decode(rows, out)
            })?,
            Form::Dictionary(blocks) => {
                let (dictionary, codes) = self.string_codes(segment, group, blocks, ranges, validity)?;
                let Block::Strings(dictionary) = &*dictionary else { return Ok(()) };
                dictionary.pick(&codes, out);
                if let Some(validity) = validity {
                    // Null rows carry the code of some entry.
                    *out = blank_nulls(out, validity);
                }
            }
        }
        Ok(())
    }

    /// The block of the dictionary, which is one of strings, and codes of its entries.
    fn string_codes(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        blocks: &Blocks,
        ranges: &[Range<usize>],
        validity: &mut Option<Bitmap>,
    ) -> Result<(Arc<Block>, Vec<u32>)> {
        let first = self.first_block(segment, group, blocks, BlockKind::Strings)?;
        let Block::Strings(dictionary) = &*first else {
            return Err(segment.damaged(blocks.first, "not a dictionary of strings"));
        };
        let codes = self.codes(segment, group, blocks, dictionary.rows(), ranges, validity)?;
        Ok((first, codes))
    }

    /// The words of the dictionary.
    fn entry_words(&mut self, segment: &TableSegmentReader, group: usize, blocks: &Blocks) -> Result<Arc<[i64]>> {
        if let Some(words) = &self.words {
            return Ok(Arc::clone(words));
        }
        let first = self.first_block(segment, group, blocks, BlockKind::Words)?;
        let Block::Words(dictionary) = &*first else {
            return Err(segment.damaged(blocks.first, "not a dictionary of words"));
        };
        let mut words = Vec::new();
        dictionary.decode(0..dictionary.rows(), &mut words);
        Ok(Arc::clone(self.words.insert(words.into())))
    }

    fn coded(&mut self, segment: &TableSegmentReader, group: usize, ranges: &[Range<usize>]) -> Result<Option<Coded>> {
        let mut entries = self.empty_column(segment, group, 0);
        let is_strings = matches!(entries.data, ColumnData::Text(_) | ColumnData::Bytes(_));
        if !is_strings && !push_words(&mut entries.data, std::iter::empty()) {
            return Ok(None);
        }
        let rows_of_group = segment.row_groups()[group].rows;
        let mut validity = None;
        let chunk = segment.chunk(group, self.index);
        let codes = match &chunk.form {
            Form::Constant(value) => match &mut entries.data {
                ColumnData::Text(out) | ColumnData::Bytes(out) => {
                    out.push(value);
                    vec![0; total(ranges)]
                }
                _ => return Ok(None),
            },
            Form::Dictionary(blocks) if is_strings => {
                let (dictionary, codes) = self.string_codes(segment, group, blocks, ranges, &mut validity)?;
                if let (Block::Strings(dictionary), ColumnData::Text(out) | ColumnData::Bytes(out), None) =
                    (&*dictionary, &mut entries.data, &self.entries)
                    && !dictionary.decode(0..dictionary.rows(), out)
                {
                    return Err(segment.damaged(blocks.first, "entries of a dictionary"));
                }
                codes
            }
            Form::Dictionary(blocks) => {
                let words = self.entry_words(segment, group, blocks)?;
                if words.len() > rows_of_group / ROWS_AN_ENTRY {
                    return Ok(None);
                }
                if self.entries.is_none() {
                    push_words(&mut entries.data, words.iter().copied());
                }
                self.codes(segment, group, blocks, words.len(), ranges, &mut validity)?
            }
            Form::Blocks(blocks) => {
                let Some((least, greatest)) = chunk.integer_bounds(segment.kinds()[self.index]) else { return Ok(None) };
                let span = greatest.abs_diff(least);
                if span >= (rows_of_group / ROWS_AN_ENTRY) as u64 {
                    return Ok(None);
                }
                if self.entries.is_none() {
                    push_words(&mut entries.data, least..=greatest);
                }
                self.distances(segment, group, blocks, (least, span as u32), ranges, &mut validity)?
            }
            Form::Null | Form::Symbols(_) | Form::Dense => return Ok(None),
        };
        let entries = Arc::clone(self.entries.get_or_insert_with(|| Arc::new(entries)));
        Ok(Some(Coded { entries, codes, validity }))
    }

    /// How far the integers of a chunk are above the least one, at most `span`; 0 for nulls.
    fn distances(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        blocks: &Blocks,
        (least, span): (i64, u32),
        ranges: &[Range<usize>],
        validity: &mut Option<Bitmap>,
    ) -> Result<Vec<u32>> {
        let mut out: Vec<u32> = Vec::with_capacity(total(ranges));
        self.each_block(segment, group, blocks, 0, BlockKind::Words, ranges, |block, rows| {
            let Block::Words(block) = block else { return false };
            block.decode_validity(rows.clone(), out.len(), validity);
            block.decode(rows, &mut out);
            true
        })?;
        // The lower halves of the words are enough.
        out.iter_mut().for_each(|word| *word = word.wrapping_sub(least as u32));
        if let Some(validity) = validity {
            out.iter_mut().enumerate().filter(|(row, _)| !validity.get(*row)).for_each(|(_, word)| *word = 0);
        }
        if out.iter().any(|distance| *distance > span) {
            return Err(segment.damaged(blocks.first, "integer beyond its chunk's bounds"));
        }
        Ok(out)
    }

    fn datums(&mut self, segment: &TableSegmentReader, group: usize, kind: Kind, ranges: &[Range<usize>]) -> Result<ColumnData> {
        let mut out = Vec::with_capacity(total(ranges));
        let mut validity = None;
        let mut plain: Option<Bitmap> = None;
        let is_null = |validity: &Option<Bitmap>, i: usize| validity.as_ref().is_some_and(|v| !v.get(i));
        if is_word(kind) {
            let mut chars: Vec<u8> = Vec::new();
            self.words(segment, group, ranges, &mut chars, &mut validity)?;
            out.extend(chars.iter().enumerate().map(|(i, &c)| if is_null(&validity, i) { Datum::Null } else { Datum::Char(c) }));
            return Ok(ColumnData::Datum(out));
        }
        let mut strings = ByteStrings::default();
        self.strings(segment, group, ranges, &mut strings, &mut validity, &mut plain)?;
        for i in 0..strings.len() {
            let datum = match &plain {
                _ if is_null(&validity, i) => Some(Datum::Null),
                Some(plain) if !plain.get(i) => Some(Datum::Stored(strings.get(i).into())),
                _ => codec::decode(kind, strings.get(i)),
            };
            out.push(datum.ok_or_else(|| segment.undecodable(group, self.index))?);
        }
        Ok(if plain.is_some() { ColumnData::Stored(out) } else { ColumnData::Datum(out) })
    }

    fn first_block(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        blocks: &Blocks,
        kind: BlockKind,
    ) -> Result<Arc<Block>> {
        if let Some(first) = &self.first {
            return Ok(Arc::clone(first));
        }
        let first = self.block(segment, group, blocks, 0, kind)?;
        Ok(Arc::clone(self.first.insert(first)))
    }

    /// Codes of a dictionary of `entries` entries.
    fn codes(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        blocks: &Blocks,
        entries: usize,
        ranges: &[Range<usize>],
        validity: &mut Option<Bitmap>,
    ) -> Result<Vec<u32>> {
        let mut codes: Vec<u32> = Vec::with_capacity(total(ranges));
        self.each_block(segment, group, blocks, 1, BlockKind::Words, ranges, |block, rows| {
            let Block::Words(block) = block else { return false };
            block.decode_validity(rows.clone(), codes.len(), validity);
            block.decode(rows, &mut codes);
            true
        })?;
        if codes.iter().any(|&code| code as usize >= entries) {
            return Err(segment.damaged(blocks.first, "code beyond the dictionary"));
        }
        Ok(codes)
    }

    /// Calls `visit` with each block that holds rows of a range and which of its rows those are; `skip` blocks precede the
    /// chunk's rows.
    #[expect(clippy::too_many_arguments, reason = "one caller a line; a struct for them would be read once")]
    fn each_block(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        blocks: &Blocks,
        skip: usize,
        kind: BlockKind,
        ranges: &[Range<usize>],
        mut visit: impl FnMut(&Block, Range<usize>) -> bool,
    ) -> Result<()> {
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let index = at >> blocks.shift;
                let start = index << blocks.shift;
                let end = (start + (1 << blocks.shift)).min(range.end);
                let block = match self.current.take() {
                    Some((current, block)) if current == index + skip => block,
                    _ => self.block(segment, group, blocks, index + skip, kind)?,
                };
                let expected = segment.rows_of_block(group, blocks, index);
                if block_rows(&block) != Some(expected) || !visit(&block, at - start..end - start) {
                    return Err(segment.damaged(blocks.first + (index + skip) as u32, "rows differ from the directory"));
                }
                self.current = Some((index + skip, block));
                at = end;
            }
        }
        Ok(())
    }

    fn block(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        blocks: &Blocks,
        index: usize,
        kind: BlockKind,
    ) -> Result<Arc<Block>> {
        if !self.scans {
            return segment.block(blocks, index, kind).map(BlockRef::into_arc);
        }
        if let Some(block) = segment.cached(blocks, index) {
            return Ok(block.into_arc());
        }
        let (offset, length) = blocks.extent(index);
        let is_read = self.frames_at <= offset && offset + length as u64 <= self.frames_at + self.frames.len() as u64;
        if !is_read {
            (self.frames, self.frames_at) = (segment.frames_ahead(group, blocks, index)?, offset);
        }
        let at = (offset - self.frames_at) as usize;
        segment.parse_block(blocks.first + index as u32, &self.frames[at..at + length], kind, segment.caches_scans())
    }
}

/// Codes help expressions that are computed once per entry, where a row group has at least this many rows per entry.
const ROWS_AN_ENTRY: usize = 8;

/// Appends words to a column; false for one that does not hold words.
fn push_words(data: &mut ColumnData, words: impl Iterator<Item = i64>) -> bool {
    fn push<T: Word>(out: &mut Vec<T>, words: impl Iterator<Item = i64>) -> bool {
        out.extend(words.map(T::from_word));
        true
    }
    match data {
        ColumnData::Bool(out) => push(out, words),
        ColumnData::Int2(out) => push(out, words),
        ColumnData::Int4(out) => push(out, words),
        ColumnData::Int8(out) => push(out, words),
        ColumnData::Oid(out) => push(out, words),
        ColumnData::Float4(out) => push(out, words),
        ColumnData::Float8(out) => push(out, words),
        ColumnData::Numeric(out) => push(&mut out.values, words),
        ColumnData::Text(_) | ColumnData::Bytes(_) | ColumnData::Coded(_) | ColumnData::Datum(_) | ColumnData::Stored(_) => false,
    }
}

fn total(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(Range::len).sum()
}

/// Rows of a block of values; `None` for other blocks.
pub(super) fn block_rows(block: &Block) -> Option<usize> {
    match block {
        Block::Words(block) => Some(WordBlock::rows(block)),
        Block::Strings(block) => Some(StringBlock::rows(block)),
        Block::Symbols(_) | Block::Keys(_) | Block::Filter(_) | Block::Reference(_) => None,
    }
}

/// Text or bytes of which some rows are in stored form.
fn stored_column(column: &Column, plain: &Bitmap) -> Column {
    let value = |i: usize| match &column.data {
        ColumnData::Text(v) | ColumnData::Bytes(v) if !plain.get(i) => Datum::Stored(v.get(i).into()),
        _ => column.get(i),
    };
    Column { data: ColumnData::Stored((0..column.len()).map(value).collect()), validity: column.validity.clone() }
}

/// Sets null rows to their kind's default value.
fn zero_nulls(data: &mut ColumnData, validity: &Bitmap) {
    fn zero<T: Copy + Default>(values: &mut [T], validity: &Bitmap) {
        for (word, values) in validity.words().iter().zip(values.chunks_mut(64)) {
            if *word != u64::MAX {
                for (bit, value) in values.iter_mut().enumerate() {
                    *value = if word >> bit & 1 != 0 { *value } else { T::default() };
                }
            }
        }
    }
    match data {
        ColumnData::Bool(v) => zero(v, validity),
        ColumnData::Int2(v) => zero(v, validity),
        ColumnData::Int4(v) => zero(v, validity),
        ColumnData::Int8(v) => zero(v, validity),
        ColumnData::Oid(v) => zero(v, validity),
        ColumnData::Float4(v) => zero(v, validity),
        ColumnData::Float8(v) => zero(v, validity),
        ColumnData::Numeric(v) => zero(&mut v.values, validity),
        ColumnData::Text(_) | ColumnData::Bytes(_) | ColumnData::Coded(_) | ColumnData::Datum(_) | ColumnData::Stored(_) => {}
    }
}

fn blank_nulls(values: &ByteStrings, validity: &Bitmap) -> ByteStrings {
    let mut out = ByteStrings { ends: Vec::with_capacity(values.len()), bytes: Vec::with_capacity(values.bytes.len()) };
    for i in 0..values.len() {
        out.push(if validity.get(i) { values.get(i) } else { &[] });
    }
    out
}
