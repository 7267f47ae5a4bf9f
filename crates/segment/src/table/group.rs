//! Decodes ranges of rows of one row group: the path of scans.

use std::ops::Range;
use std::sync::Arc;

use melba_types::{Bitmap, Column, ColumnData, Csn, Datum, Kind, RowId, codec};

use super::reader::TableSegmentReader;
use super::{Csns, GroupData};
use crate::encoding::{Coded, HeldScan, Scan, StringsOut, WordSink, WordsOut, empty_column, is_word};
use crate::error::Result;
use crate::layout::packed::Word;
use crate::statistics::ZoneOp;

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
        let columns =
            (0..self.columns.len()).map(|i| self.column(i, std::slice::from_ref(&range), None)).collect::<Result<_>>()?;
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

    /// The rows of some ascending ranges, one after the other, of the `index`-th projected column, or those picked of them by their
    /// numbers, ascending; `None` when the segment is older than the column. Lets a scan decode the columns of its predicates first and
    /// the others for the rows that are left.
    pub fn column(&mut self, index: usize, rows: &[Range<usize>], picks: Option<&[u32]>) -> Result<Option<Column>> {
        let Some(chunk) = &mut self.columns[index] else { return Ok(None) };
        let Some(picks) = picks else { return chunk.column(&self.segment, self.group, rows).map(Some) };
        if let Some(column) = chunk.picked(&self.segment, self.group, rows, picks)? {
            return Ok(Some(column));
        }
        Ok(Some(chunk.column(&self.segment, self.group, rows)?.take(picks)))
    }

    /// The rows whose values satisfy all of some comparisons of bytes, by their numbers among those of the ranges; `None` when the
    /// column's encoding does not tell that without decoding them. `NULL` satisfies none.
    pub fn rows_where(
        &mut self,
        index: usize,
        rows: &[Range<usize>],
        comparisons: &[(ZoneOp, Datum)],
    ) -> Result<Option<Vec<u32>>> {
        let Some(chunk) = &mut self.columns[index] else { return Ok(None) };
        let mut scan = Scan { chunk: self.segment.view(self.group, chunk.index), held: &mut chunk.held };
        if scan.chunk.kind != Kind::Text || !scan.chunk.encoding.compares() {
            return Ok(None);
        }
        let mut of_bytes = Vec::with_capacity(comparisons.len());
        for (op, value) in comparisons {
            let Datum::Text(text) = value else { return Ok(None) };
            of_bytes.push((*op, text.as_bytes()));
        }
        scan.chunk.encoding.rows_where(&mut scan, rows, &of_bytes)
    }

    /// The same rows by a dictionary; `None` when the column has none, and its values are not few either.
    pub fn coded(&mut self, index: usize, rows: &[Range<usize>]) -> Result<Option<Coded>> {
        match &mut self.columns[index] {
            Some(chunk) => chunk.coded(&self.segment, self.group, rows),
            None => Ok(None),
        }
    }
}

/// Some rows of one column, by blocks that stay in the cache: the path of reads that want few.
pub(super) fn read_range(segment: &TableSegmentReader, group: usize, column: usize, range: Range<usize>) -> Result<Column> {
    let mut chunk = ChunkReader { index: column, held: HeldScan::default() };
    chunk.column(segment, group, &[range])
}

/// One chunk being read.
struct ChunkReader {
    /// Among the group's chunks.
    index: usize,
    held: HeldScan,
}

impl ChunkReader {
    fn new(index: usize) -> ChunkReader {
        ChunkReader { index, held: HeldScan::reading_ahead() }
    }

    fn column(&mut self, segment: &TableSegmentReader, group: usize, ranges: &[Range<usize>]) -> Result<Column> {
        let kind = segment.kinds()[self.index];
        let rows = ranges.iter().map(Range::len).sum();
        let mut column = empty_column(kind, segment.chunk(group, self.index).scale, rows);
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
            ColumnData::Text(out) | ColumnData::Bytes(out) => {
                let mut strings = StringsOut { values: std::mem::take(out), ..StringsOut::default() };
                self.strings(segment, group, ranges, &mut strings)?;
                (*out, *validity) = (strings.values, strings.validity);
                if let Some(plain) = strings.plain {
                    return Ok(stored_column(&column, &plain));
                }
            }
            ColumnData::Coded(_) | ColumnData::Datum(_) | ColumnData::Stored(_) => {
                column.data = self.datums(segment, group, kind, ranges)?;
            }
        }
        if let Some(validity) = &column.validity {
            zero_nulls(&mut column.data, validity);
        }
        Ok(column)
    }

    /// Rows of a column of strings that were picked; `None` where it is no more work to read all.
    fn picked(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        ranges: &[Range<usize>],
        picks: &[u32],
    ) -> Result<Option<Column>> {
        let mut column = empty_column(segment.kinds()[self.index], None, 0);
        let (ColumnData::Text(values) | ColumnData::Bytes(values)) = &mut column.data else { return Ok(None) };
        let mut scan = Scan { chunk: segment.view(group, self.index), held: &mut self.held };
        let mut out = StringsOut::default();
        if !scan.chunk.encoding.read_picked(&mut scan, ranges, picks, &mut out)? {
            return Ok(None);
        }
        (*values, column.validity) = (out.values, out.validity);
        Ok(Some(column))
    }

    /// Appends words; nulls hold unspecified values.
    fn words(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        ranges: &[Range<usize>],
        words: &mut dyn WordSink,
        validity: &mut Option<Bitmap>,
    ) -> Result<()> {
        let mut scan = Scan { chunk: segment.view(group, self.index), held: &mut self.held };
        scan.chunk.encoding.read_words(&mut scan, ranges, &mut WordsOut { words, validity })
    }

    fn strings(
        &mut self,
        segment: &TableSegmentReader,
        group: usize,
        ranges: &[Range<usize>],
        out: &mut StringsOut,
    ) -> Result<()> {
        let mut scan = Scan { chunk: segment.view(group, self.index), held: &mut self.held };
        scan.chunk.encoding.read_strings(&mut scan, ranges, out)
    }

    fn coded(&mut self, segment: &TableSegmentReader, group: usize, ranges: &[Range<usize>]) -> Result<Option<Coded>> {
        let mut scan = Scan { chunk: segment.view(group, self.index), held: &mut self.held };
        scan.chunk.encoding.codes(&mut scan, ranges)
    }

    fn datums(&mut self, segment: &TableSegmentReader, group: usize, kind: Kind, ranges: &[Range<usize>]) -> Result<ColumnData> {
        let is_null = |validity: &Option<Bitmap>, i: usize| validity.as_ref().is_some_and(|v| !v.get(i));
        if is_word(kind) {
            let (mut chars, mut validity): (Vec<u8>, _) = (Vec::new(), None);
            self.words(segment, group, ranges, &mut chars, &mut validity)?;
            let datum = |(i, &c): (usize, &u8)| if is_null(&validity, i) { Datum::Null } else { Datum::Char(c) };
            return Ok(ColumnData::Datum(chars.iter().enumerate().map(datum).collect()));
        }
        let mut strings = StringsOut::default();
        self.strings(segment, group, ranges, &mut strings)?;
        let StringsOut { values, validity, plain } = strings;
        let mut out = Vec::with_capacity(values.len());
        for i in 0..values.len() {
            let datum = match &plain {
                _ if is_null(&validity, i) => Some(Datum::Null),
                Some(plain) if !plain.get(i) => Some(Datum::Stored(values.get(i).into())),
                _ => codec::decode(kind, values.get(i)),
            };
            out.push(datum.ok_or_else(|| segment.undecodable(group, self.index))?);
        }
        Ok(if plain.is_some() { ColumnData::Stored(out) } else { ColumnData::Datum(out) })
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
