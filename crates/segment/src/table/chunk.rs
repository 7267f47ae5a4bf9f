//! Writes one column chunk: collects values as words or strings, takes their statistics, has an encoding write them, adds a filter.

use std::cmp::Ordering;

use melba_types::{Bitmap, ByteStrings, Column, ColumnData, Datum, Kind, codec, key};

use super::TableOptions;
use super::dense::DenseColumn;
use super::directory::Chunk;
use super::filter::{ChunkFilter, PART_BLOCKS};
use super::mantissas::MantissaBuffer;
use crate::encoding::{self, ChunkData, ChunkEntry, ChunkValues, DENSE, Trained, TrainedSymbols, WriteOptions, is_word};
use crate::filter::{FILTER_BLOCK_BYTES, blocks_for, build};
use crate::frame::{Codec, FrameBuffer};
use crate::statistics::{Bounds, Statistics, ordered_by_key};

/// Fewer values are searched quickly without a filter.
const FILTER_KEYS_MIN: u64 = 8192;
/// A chunk in which a value occurs more often than this has most of the column's values, so that a filter would rarely exclude it.
const FILTER_ROWS_A_KEY_MAX: u64 = 2;
/// Integers with more than one of the chunk's values per this many numbers between its bounds would be found in it too often.
const FILTER_GAP_MIN: u64 = 64;

/// The values of one column of the row group being collected.
pub(crate) struct ChunkBuffer {
    kind: Kind,
    values: Values,
    /// Absent as long as nothing is null.
    validity: Option<Bitmap>,
    /// Unset where a value is in stored form; absent as long as none is.
    plain: Option<Bitmap>,
    /// Least and greatest value, of kinds whose storage format has no order.
    extremes: Option<(Datum, Datum)>,
}

enum Values {
    Words(Vec<i64>),
    /// Numerics so far: one that is no mantissa of their scale turns them all into strings.
    Mantissas(MantissaBuffer),
    Strings(ByteStrings),
}

impl Values {
    fn new(kind: Kind) -> Values {
        match kind {
            _ if is_word(kind) => Values::Words(Vec::new()),
            Kind::Numeric => Values::Mantissas(MantissaBuffer::default()),
            _ => Values::Strings(ByteStrings::default()),
        }
    }
}

impl ChunkBuffer {
    pub fn new(kind: Kind) -> ChunkBuffer {
        ChunkBuffer { kind, values: Values::new(kind), validity: None, plain: None, extremes: None }
    }

    fn len(&self) -> usize {
        match &self.values {
            Values::Words(words) => words.len(),
            Values::Mantissas(buffer) => buffer.words.len(),
            Values::Strings(strings) => strings.len(),
        }
    }

    /// Bytes of the values, about.
    pub fn raw_bytes(&self) -> usize {
        match &self.values {
            Values::Words(words) => words.len() * self.kind.width().unwrap_or(8),
            Values::Mantissas(buffer) => buffer.words.len() * 8,
            Values::Strings(strings) => strings.bytes.len() + strings.len() * 4,
        }
    }

    /// Makes strings of mantissas: other numerics are to come.
    fn hold_strings(&mut self) {
        if let Values::Mantissas(buffer) = &self.values {
            self.extremes = buffer.extremes(self.validity.as_ref());
            self.values = Values::Strings(buffer.to_strings(self.validity.as_ref()));
        }
    }

    /// Appends rows `from..to` of a column of this kind.
    pub fn append(&mut self, column: &Column, from: usize, to: usize) {
        let before = self.len();
        if let Values::Mantissas(buffer) = &mut self.values {
            if buffer.append(column, from, to) {
                return self.append_validity(column, from, to, before);
            }
            self.hold_strings();
        }
        match (&mut self.values, &column.data) {
            (Values::Words(out), ColumnData::Bool(v)) => out.extend(v[from..to].iter().map(|&v| i64::from(v))),
            (Values::Words(out), ColumnData::Int2(v)) => out.extend(v[from..to].iter().map(|&v| i64::from(v))),
            (Values::Words(out), ColumnData::Int4(v)) => out.extend(v[from..to].iter().map(|&v| i64::from(v))),
            (Values::Words(out), ColumnData::Int8(v)) => out.extend_from_slice(&v[from..to]),
            (Values::Words(out), ColumnData::Oid(v)) => out.extend(v[from..to].iter().map(|&v| i64::from(v))),
            (Values::Words(out), ColumnData::Float4(v)) => out.extend(v[from..to].iter().map(|v| i64::from(v.to_bits()))),
            (Values::Words(out), ColumnData::Float8(v)) => out.extend(v[from..to].iter().map(|v| v.to_bits() as i64)),
            (Values::Words(out), ColumnData::Datum(v)) => {
                out.extend(v[from..to].iter().map(|v| if v.is_null() { 0 } else { i64::from(v.as_char()) }));
            }
            (Values::Strings(out), ColumnData::Text(v) | ColumnData::Bytes(v)) if column.validity.is_none() => {
                out.extend(v, from, to);
            }
            (Values::Strings(out), ColumnData::Text(v) | ColumnData::Bytes(v)) => {
                for i in from..to {
                    out.push(if column.is_null(i) { &[] } else { v.get(i) });
                }
            }
            (Values::Strings(out), ColumnData::Datum(v) | ColumnData::Stored(v)) => {
                for (i, datum) in (from..to).zip(&v[from..to]) {
                    if !column.is_null(i) {
                        codec::encode(datum, &mut out.bytes);
                        if ordered_by_key(self.kind) && !matches!(datum, Datum::Stored(_)) {
                            extend(&mut self.extremes, datum);
                        }
                    }
                    assert!(out.bytes.len() <= u32::MAX as usize, "a row group of more than 4 GB");
                    out.ends.push(out.bytes.len() as u32);
                }
            }
            (Values::Strings(out), ColumnData::Numeric(_)) => {
                for i in from..to {
                    if !column.is_null(i) {
                        let datum = column.get(i);
                        codec::encode(&datum, &mut out.bytes);
                        extend(&mut self.extremes, &datum);
                    }
                    out.ends.push(out.bytes.len() as u32);
                }
            }
            _ => panic!("a column of another kind appended to a chunk of {:?}", self.kind),
        }
        self.append_validity(column, from, to, before);
        self.append_plain(column, from, to, before);
    }

    /// Appends one value of a byte string, which comes in parts; `None`: null.
    pub fn append_bytes(&mut self, parts: Option<&[&[u8]]>) {
        let before = self.len();
        let Values::Strings(strings) = &mut self.values else { panic!("bytes appended to a chunk of {:?}", self.kind) };
        parts.unwrap_or_default().iter().for_each(|part| strings.bytes.extend_from_slice(part));
        assert!(strings.bytes.len() <= u32::MAX as usize, "a row group of more than 4 GB");
        strings.ends.push(strings.bytes.len() as u32);
        if parts.is_none() {
            self.validity.get_or_insert_with(|| Bitmap::filled(before, true));
        }
        self.validity.iter_mut().for_each(|validity| validity.push(parts.is_some()));
        self.plain.iter_mut().for_each(|plain| plain.push(true));
    }

    fn append_plain(&mut self, column: &Column, from: usize, to: usize, before: usize) {
        if let ColumnData::Stored(values) = &column.data {
            let plain = self.plain.get_or_insert_with(|| Bitmap::filled(before, true));
            values[from..to].iter().for_each(|v| plain.push(!matches!(v, Datum::Stored(_))));
        } else if let Some(plain) = &mut self.plain {
            plain.extend_filled(to - from, true);
        }
    }

    fn append_validity(&mut self, column: &Column, from: usize, to: usize, before: usize) {
        let may_have_nulls = column.validity.is_some() || matches!(column.data, ColumnData::Datum(_) | ColumnData::Stored(_));
        if !may_have_nulls || (self.validity.is_none() && (from..to).all(|i| !column.is_null(i))) {
            if let Some(validity) = &mut self.validity {
                validity.extend_filled(to - from, true);
            }
            return;
        }
        let validity = self.validity.get_or_insert_with(|| Bitmap::filled(before, true));
        for i in from..to {
            validity.push(!column.is_null(i));
        }
    }

    /// Bytes of values that would be dense in a dense column.
    pub fn waiting_bytes(&self) -> usize {
        match &self.values {
            Values::Strings(strings) if DenseColumn::suits(strings) => strings.bytes.len(),
            _ => 0,
        }
    }

    /// Whether the values are long enough to be dense.
    pub fn suits_dense(&self) -> bool {
        self.kind == Kind::Frame || self.waiting_bytes() > 0
    }

    /// Passes the values to their column's dense section, and empties the buffer.
    pub fn write_dense(&mut self, section: &mut DenseColumn) -> Chunk {
        self.hold_strings();
        let validity = self.validity.take();
        let extremes = self.extremes.take();
        let plain = self.plain.take().filter(|plain| plain.count_ones() < plain.len());
        let Values::Strings(values) = &mut self.values else { panic!("a dense chunk of {:?}", self.kind) };
        let nulls = validity.as_ref().map_or(0, |v| v.len() - v.count_ones()) as u64;
        let statistics = if self.kind == Kind::Frame || plain.is_some() {
            Statistics { nulls, distinct: values.len() as u64 - nulls, bounds: Bounds::None }
        } else {
            let is_valid = |i: usize| validity.as_ref().is_none_or(|v| v.get(i));
            let mut statistics = Statistics::of_strings(self.kind, values, is_valid, nulls, &mut Vec::new());
            if let Some((min, max)) = extremes {
                statistics.bounds = Bounds::of_datums(self.kind, &min, &max);
            }
            statistics
        };
        section.append(self.kind, values, validity.as_ref(), plain.as_ref());
        values.truncate(0);
        let chunk = Chunk { statistics, encoding: DENSE, entry: ChunkEntry::Section, scale: None, filter: None };
        self.empty_numerics();
        chunk
    }

    /// Writes the chunk and empties the buffer. `carryover` holds the choices made for earlier chunks of the column.
    pub fn write(&mut self, carryover: ColumnCarryover<'_>, frames: &mut FrameBuffer, options: &TableOptions) -> Chunk {
        let validity = self.validity.take();
        let extremes = self.extremes.take();
        let nulls = validity.as_ref().map_or(0, |v| v.len() - v.count_ones());
        let ColumnCarryover { mut trained, hashes } = carryover;
        hashes.clear();
        let mut out = ChunkOut { options: options.into(), trained: &mut trained, hashes, frames };
        let mut chunk = match &mut self.values {
            Values::Words(words) => {
                let chunk = write_words(self.kind, words, validity.as_ref(), nulls, &mut out);
                words.clear();
                chunk
            }
            Values::Mantissas(buffer) => {
                let extremes = buffer.extremes(validity.as_ref());
                let mut chunk = write_words(Kind::Int8, &mut buffer.words, validity.as_ref(), nulls, &mut out);
                if let Some((min, max)) = extremes {
                    chunk.statistics.bounds = Bounds::of_datums(self.kind, &min, &max);
                    chunk.scale = buffer.scale;
                }
                buffer.words.clear();
                buffer.scale = None;
                chunk
            }
            Values::Strings(values) => {
                let plain = self.plain.take().filter(|plain| plain.count_ones() < plain.len());
                let mut chunk = if self.kind == Kind::Frame || plain.is_some() {
                    write_stored(self.kind, values, (validity.as_ref(), plain.as_ref()), nulls, &mut out)
                } else {
                    write_strings(self.kind, values, validity.as_ref(), nulls, &mut out)
                };
                if let (Some((min, max)), None) = (extremes, plain) {
                    chunk.statistics.bounds = Bounds::of_datums(self.kind, &min, &max);
                }
                values.truncate(0);
                self.empty_numerics();
                chunk
            }
        };
        chunk.filter = write_filter(self.kind, &chunk, hashes, frames);
        chunk
    }

    /// The next group's numerics may be words again.
    fn empty_numerics(&mut self) {
        if self.kind == Kind::Numeric {
            self.values = Values::new(self.kind);
        }
    }
}

/// Widens the extremes to hold a value.
fn extend(extremes: &mut Option<(Datum, Datum)>, value: &Datum) {
    match extremes {
        None => *extremes = Some((value.clone(), value.clone())),
        Some((min, _)) if key::compare_plain(value, min) == Ordering::Less => *min = value.clone(),
        Some((_, max)) if key::compare_plain(value, max) == Ordering::Greater => *max = value.clone(),
        Some(_) => {}
    }
}

/// What the writing of a chunk uses.
struct ChunkOut<'a, 'b> {
    options: WriteOptions,
    trained: &'a mut Trained<'b>,
    /// Filled with the hashes of the chunk's values, see `Statistics::of_words`.
    hashes: &'a mut Vec<u64>,
    frames: &'a mut FrameBuffer,
}

impl ChunkOut<'_, '_> {
    fn write(&mut self, values: &ChunkValues<'_>, statistics: Statistics) -> Chunk {
        let (encoding, entry) = encoding::write(values, &self.options, self.trained, self.frames);
        Chunk { statistics, encoding, entry, scale: None, filter: None }
    }
}

/// Writes a chunk of a hidden column.
pub(crate) fn write_hidden(kind: Kind, values: &mut [i64], frames: &mut FrameBuffer, options: &TableOptions) -> Chunk {
    let mut trained = Trained { symbols: &mut None, coded: &mut ByteStrings::default() };
    let mut out = ChunkOut { options: options.into(), trained: &mut trained, hashes: &mut Vec::new(), frames };
    write_words(kind, values, None, 0, &mut out)
}

fn write_words(kind: Kind, values: &mut [i64], validity: Option<&Bitmap>, nulls: usize, out: &mut ChunkOut<'_, '_>) -> Chunk {
    let is_uniform = nulls == 0 && values.iter().all(|value| *value == values[0]);
    if nulls > 0 {
        fill_nulls(values, validity);
    }
    let statistics = match is_uniform {
        true => Statistics::of_constant(kind, values[0]),
        false => Statistics::of_words(kind, values, nulls as u64, out.hashes),
    };
    let mut chunk = ChunkValues::new(kind, ChunkData::Words(values), validity, nulls);
    (chunk.distinct, chunk.is_uniform) = (statistics.distinct as usize, is_uniform);
    out.write(&chunk, statistics)
}

fn write_strings(kind: Kind, values: &ByteStrings, validity: Option<&Bitmap>, nulls: usize, out: &mut ChunkOut<'_, '_>) -> Chunk {
    let is_valid = |i: usize| validity.is_none_or(|v| v.get(i));
    let statistics = Statistics::of_strings(kind, values, is_valid, nulls as u64, out.hashes);
    let mut chunk = ChunkValues::new(kind, ChunkData::Strings(values), validity, nulls);
    chunk.distinct = statistics.distinct as usize;
    chunk.is_uniform = nulls == 0 && (1..values.len()).all(|i| values.get(i) == values.get(0));
    out.write(&chunk, statistics)
}

/// Writes a chunk that holds values in stored form, or frames: nothing is known of their order.
fn write_stored(
    kind: Kind,
    values: &ByteStrings,
    (validity, plain): (Option<&Bitmap>, Option<&Bitmap>),
    nulls: usize,
    out: &mut ChunkOut<'_, '_>,
) -> Chunk {
    let statistics = Statistics { nulls: nulls as u64, distinct: (values.len() - nulls) as u64, bounds: Bounds::None };
    let chunk = ChunkValues::new(kind, ChunkData::Stored { values, plain }, validity, nulls);
    out.write(&chunk, statistics)
}

/// Writes the filter of a chunk, if it should have one. `hashes` are those of its values, none when they ascend: then the bounds
/// of chunks rarely overlap.
fn write_filter(kind: Kind, chunk: &Chunk, hashes: &[u64], frames: &mut FrameBuffer) -> Option<ChunkFilter> {
    if hashes.is_empty() || !suits_filter(kind, chunk, hashes.len() as u64) {
        return None;
    }
    let blocks = blocks_for(chunk.statistics.distinct as usize);
    let filter = ChunkFilter { blocks: blocks as u32, first: frames.next_block(), offset: frames.offset() };
    for part in build(hashes.iter().copied(), blocks).chunks(PART_BLOCKS * FILTER_BLOCK_BYTES) {
        frames.block(part, Codec::None);
    }
    Some(filter)
}

/// Whether a filter would help lookups in a chunk of `values` values, where neither a dictionary nor the bounds serve as well.
fn suits_filter(kind: Kind, chunk: &Chunk, values: u64) -> bool {
    let distinct = chunk.statistics.distinct;
    matches!(kind, Kind::Int4 | Kind::Int8 | Kind::Text | Kind::Bytes | Kind::Uuid)
        && chunk.encoding.suits_filter()
        && distinct >= FILTER_KEYS_MIN
        && distinct * FILTER_ROWS_A_KEY_MAX >= values
        && match &chunk.statistics.bounds {
            Bounds::Words { min, max } => max.abs_diff(*min) / FILTER_GAP_MIN >= distinct,
            Bounds::Bytes { .. } => true,
            Bounds::None => false,
        }
}

/// Choices and buffers that the writing of a row group's chunks hands to the next group.
#[derive(Default)]
pub(crate) struct ChunkCarryover {
    /// Each column's, as far as they are known.
    symbols: Vec<Option<TrainedSymbols>>,
    /// Coded strings, for their buffers.
    coded: ByteStrings,
    /// Hashes of a chunk's values, for their buffer.
    hashes: Vec<u64>,
}

/// A column's part of it.
pub(crate) struct ColumnCarryover<'a> {
    trained: Trained<'a>,
    hashes: &'a mut Vec<u64>,
}

impl ChunkCarryover {
    pub fn column(&mut self, at: usize) -> ColumnCarryover<'_> {
        self.symbols.resize_with(self.symbols.len().max(at + 1), || None);
        let trained = Trained { symbols: &mut self.symbols[at], coded: &mut self.coded };
        ColumnCarryover { trained, hashes: &mut self.hashes }
    }
}

impl From<&TableOptions> for WriteOptions {
    fn from(options: &TableOptions) -> WriteOptions {
        WriteOptions { codec: options.codec, block_bytes: options.block_bytes }
    }
}

/// Sets null slots to the value of the least valid row, so that they widen nothing.
fn fill_nulls(values: &mut [i64], validity: Option<&Bitmap>) {
    let Some(validity) = validity else { return };
    let filler = (0..values.len()).filter(|&i| validity.get(i)).map(|i| values[i]).min().unwrap_or(0);
    for i in (0..values.len()).filter(|&i| !validity.get(i)) {
        values[i] = filler;
    }
}
