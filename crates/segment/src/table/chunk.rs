//! Writes one column chunk: collects values as words or strings, chooses a form, writes blocks.

use std::cmp::Ordering;

use hashbrown::HashMap;
use melba_types::{Bitmap, ByteStrings, Column, ColumnData, Datum, Kind, codec, key};

use super::TableOptions;
use super::dense::DenseColumn;
use super::directory::{Blocks, Chunk, Form, is_word};
use super::filter::{ChunkFilter, PART_BLOCKS};
use super::mantissas::MantissaBuffer;
use crate::encoding::symbols::SymbolEncoder;
use crate::encoding::{packed, strings, words};
use crate::filter::{FILTER_BLOCK_BYTES, blocks_for, build};
use crate::frame::{Codec, FrameBuffer, encode_payload};
use crate::statistics::{Bounds, Statistics, ordered_by_key};

/// Longer constants are left to dictionaries: the directory stays in memory.
const CONSTANT_BYTES_MAX: usize = 64;
/// Most entries of a dictionary, and their bytes, so that it stays in a CPU's cache while a scan looks values up.
const DICTIONARY_ENTRIES_MAX: usize = 8192;
const DICTIONARY_BYTES_MAX: usize = 256 << 10;
/// A dictionary must reduce a chunk to this percentage of its size without one.
const DICTIONARY_PERCENT_MAX: usize = 70;
/// Fewer bytes do not pay for a symbol table.
const SYMBOLS_BYTES_MIN: usize = 16 << 10;
/// Values longer than this on average are left to the codec: it finds longer repetitions.
const SYMBOLS_VALUE_BYTES_MAX: usize = 512;
/// A symbol table must reduce values to this percentage of their bytes.
const SYMBOLS_PERCENT_MAX: usize = 80;
/// A symbol table is trained again when values take more than this percentage of the size it gave its training values.
const SYMBOLS_KEPT_PERCENT: usize = 102;
/// Fewer values are searched quickly without a filter.
const FILTER_KEYS_MIN: u64 = 8192;
/// A chunk in which a value occurs more often than this has most of the column's values, so that a filter would rarely exclude it.
const FILTER_ROWS_A_KEY_MAX: u64 = 2;
/// Integers with more than one of the chunk's values per this many numbers between its bounds would be found in it too often.
const FILTER_GAP_MIN: u64 = 64;
/// Rows a block at most: a row group's usual size.
const SHIFT_MAX: u8 = 16;

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
        let chunk = Chunk { statistics, form: Form::Dense, scale: None, filter: None };
        self.empty_numerics();
        chunk
    }

    /// Writes the chunk and empties the buffer. `carryover` holds the choices made for earlier chunks of the column.
    pub fn write(&mut self, carryover: ColumnCarryover<'_>, frames: &mut FrameBuffer, options: &TableOptions) -> Chunk {
        let validity = self.validity.take();
        let extremes = self.extremes.take();
        let nulls = validity.as_ref().map_or(0, |v| v.len() - v.count_ones());
        let ColumnCarryover { symbols, coded, hashes } = carryover;
        hashes.clear();
        let mut chunk = match &mut self.values {
            Values::Words(words) => {
                let chunk = write_words(self.kind, words, validity.as_ref(), nulls, hashes, frames, options);
                words.clear();
                chunk
            }
            Values::Mantissas(buffer) => {
                let extremes = buffer.extremes(validity.as_ref());
                let mut chunk = write_words(Kind::Int8, &mut buffer.words, validity.as_ref(), nulls, hashes, frames, options);
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
                    write_stored(values, validity.as_ref(), plain.as_ref(), nulls, frames, options)
                } else {
                    let carryover = ColumnCarryover { symbols, coded, hashes };
                    write_strings(self.kind, values, validity.as_ref(), nulls, carryover, frames, options)
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

/// Writes a chunk of words; also those of the hidden columns. `hashes` as for `Statistics::of_words`.
pub(crate) fn write_words(
    kind: Kind,
    values: &mut [i64],
    validity: Option<&Bitmap>,
    nulls: usize,
    hashes: &mut Vec<u64>,
    frames: &mut FrameBuffer,
    options: &TableOptions,
) -> Chunk {
    if nulls == 0 && values.iter().all(|value| *value == values[0]) {
        let statistics = Statistics::of_constant(kind, values[0]);
        return Chunk { statistics, form: Form::Constant(values[0].to_le_bytes().into()), scale: None, filter: None };
    }
    if nulls > 0 {
        fill_nulls(values, validity);
    }
    let statistics = Statistics::of_words(kind, values, nulls as u64, hashes);
    if nulls == values.len() {
        return Chunk { statistics, form: Form::Null, scale: None, filter: None };
    }
    // A line suits the whole chunk or none; a sample would not show that.
    let width = packed::Fit::of(values).width() as usize;
    let runs = if width > 0 { words::count_runs(values) } else { values.len() };
    let codec = if matches!(kind, Kind::Float4 | Kind::Float8) { options.codec } else { Codec::None };
    let bits = (values.len() * width).min(runs * (width + 16));
    if statistics.distinct as usize <= DICTIONARY_ENTRIES_MAX
        && let Some((entries, codes)) = dictionary_of_words(values)
        && (entries.len() * 64 + codes.len() * bits_for(entries.len())) * 100 <= bits * DICTIONARY_PERCENT_MAX
    {
        let mut content = Vec::new();
        words::encode(&entries, None, 0, &mut content);
        let first = BlockList::begin(frames, &content, Codec::None);
        let blocks = write_word_blocks(&codes, validity, bits_for(entries.len()), Codec::None, Some(first), frames, options);
        return Chunk { statistics, form: Form::Dictionary(blocks), scale: None, filter: None };
    }
    let bits_a_row = bits.div_ceil(values.len());
    let blocks = write_word_blocks(values, validity, bits_a_row, codec, None, frames, options);
    Chunk { statistics, form: Form::Blocks(blocks), scale: None, filter: None }
}

fn write_strings(
    kind: Kind,
    values: &ByteStrings,
    validity: Option<&Bitmap>,
    nulls: usize,
    carryover: ColumnCarryover<'_>,
    frames: &mut FrameBuffer,
    options: &TableOptions,
) -> Chunk {
    let ColumnCarryover { symbols, coded, hashes } = carryover;
    let statistics = Statistics::of_strings(kind, values, |i| validity.is_none_or(|v| v.get(i)), nulls as u64, hashes);
    if nulls == values.len() {
        return Chunk { statistics, form: Form::Null, scale: None, filter: None };
    }
    let first = values.get(0);
    if nulls == 0 && first.len() <= CONSTANT_BYTES_MAX && (1..values.len()).all(|i| values.get(i) == first) {
        return Chunk { statistics, form: Form::Constant(first.into()), scale: None, filter: None };
    }
    // The estimate may be a little low; the dictionary itself counts exactly.
    if statistics.distinct as usize <= DICTIONARY_ENTRIES_MAX
        && let Some((entries, codes)) = dictionary_of_strings(values)
        && (entries.bytes.len() + entries.len() + codes.len() * bits_for(entries.len()) / 8) * 100
            <= (values.bytes.len() + values.len() / 2) * DICTIONARY_PERCENT_MAX
    {
        let mut content = Vec::new();
        strings::encode(&entries, None, None, 0..entries.len(), &mut content);
        let first = BlockList::begin(frames, &content, options.codec);
        let blocks = write_word_blocks(&codes, validity, bits_for(entries.len()), Codec::None, Some(first), frames, options);
        return Chunk { statistics, form: Form::Dictionary(blocks), scale: None, filter: None };
    }
    let codec = string_codec(values, options);
    if let Some(encoder) = choose_symbols(symbols, values, codec, options) {
        let mut content = Vec::new();
        encoder.encode_table(&mut content);
        let list = BlockList::begin(frames, &content, Codec::None);
        encoder.encode_all(values, coded);
        let blocks = write_string_blocks(coded, validity, None, Codec::None, list, frames, options);
        return Chunk { statistics, form: Form::Symbols(blocks), scale: None, filter: None };
    }
    let list = BlockList::new(frames);
    let blocks = write_string_blocks(values, validity, None, codec, list, frames, options);
    Chunk { statistics, form: Form::Blocks(blocks), scale: None, filter: None }
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
        && matches!(chunk.form, Form::Blocks(_) | Form::Symbols(_))
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
    symbols: Vec<Option<Symbols>>,
    /// Coded strings, for their buffers: fresh memory for each chunk costs more than filling it.
    coded: ByteStrings,
    /// Hashes of a chunk's values, for their buffer.
    hashes: Vec<u64>,
}

/// A column's part of it.
pub(crate) struct ColumnCarryover<'a> {
    symbols: &'a mut Option<Symbols>,
    coded: &'a mut ByteStrings,
    hashes: &'a mut Vec<u64>,
}

impl ChunkCarryover {
    pub fn column(&mut self, at: usize) -> ColumnCarryover<'_> {
        self.symbols.resize_with(self.symbols.len().max(at + 1), || None);
        ColumnCarryover { symbols: &mut self.symbols[at], coded: &mut self.coded, hashes: &mut self.hashes }
    }
}

/// A symbol table, and the coded size of a sample of its training values, in thousandths.
type Symbols = (SymbolEncoder, usize);

/// A symbol table for the values, when it makes them about as small as the codec would: a point read then decodes one value, not
/// a block. Training takes as long as coding a row group, so a table is kept as long as it compresses as well as before.
fn choose_symbols<'a>(
    kept: &'a mut Option<Symbols>,
    values: &ByteStrings,
    codec: Codec,
    options: &TableOptions,
) -> Option<&'a SymbolEncoder> {
    if values.bytes.len() < SYMBOLS_BYTES_MIN || values.bytes.len() / values.len() > SYMBOLS_VALUE_BYTES_MAX {
        return None;
    }
    let suits = kept.take().and_then(|(encoder, trained)| {
        let coded = encoder.measure(values);
        (coded * 100 <= trained * SYMBOLS_KEPT_PERCENT).then_some((encoder, trained, coded))
    });
    let (encoder, trained, coded) = suits.unwrap_or_else(|| {
        let encoder = SymbolEncoder::train(values);
        let coded = encoder.measure(values);
        (encoder, coded, coded)
    });
    let block = &values.bytes[..values.bytes.len().min(options.block_bytes)];
    let mut payload = Vec::new();
    encode_payload(block, codec, &mut payload);
    let payload = payload.len() * 1000 / block.len();
    let worth = coded <= SYMBOLS_PERCENT_MAX * 10 && coded * 10 <= payload * 11;
    let (encoder, _) = kept.insert((encoder, trained));
    worth.then_some(encoder)
}

/// Writes a chunk that holds values in stored form, or frames. Most of its bytes are compressed, so only a codec is tried, and
/// nothing is known of the values' order.
fn write_stored(
    values: &ByteStrings,
    validity: Option<&Bitmap>,
    plain: Option<&Bitmap>,
    nulls: usize,
    frames: &mut FrameBuffer,
    options: &TableOptions,
) -> Chunk {
    let statistics = Statistics { nulls: nulls as u64, distinct: (values.len() - nulls) as u64, bounds: Bounds::None };
    if nulls == values.len() {
        return Chunk { statistics, form: Form::Null, scale: None, filter: None };
    }
    let codec = if plain.is_some() { string_codec(values, options) } else { Codec::None };
    let list = BlockList::new(frames);
    let blocks = write_string_blocks(values, validity, plain, codec, list, frames, options);
    Chunk { statistics, form: Form::Blocks(blocks), scale: None, filter: None }
}

fn write_string_blocks(
    values: &ByteStrings,
    validity: Option<&Bitmap>,
    plain: Option<&Bitmap>,
    codec: Codec,
    mut list: BlockList,
    frames: &mut FrameBuffer,
    options: &TableOptions,
) -> Blocks {
    // A few long values among many short ones must not share their blocks with a lot of them.
    let longest = values.lengths(0..values.len()).max().unwrap_or(0);
    let average = (values.bytes.len() + values.len()) / values.len();
    let shift = shift_for(average.max(longest / 8) * 8, options);
    let mut content = Vec::new();
    for start in (0..values.len()).step_by(1 << shift) {
        content.clear();
        let rows = start..(start + (1 << shift)).min(values.len());
        let bytes = strings::encode_head(values, validity, plain, rows, &mut content);
        if codec == Codec::None {
            list.add_plain(frames, &[&content, bytes]);
        } else {
            content.extend_from_slice(bytes);
            list.add(frames, &content, codec);
        }
    }
    list.finish(shift)
}

fn write_word_blocks(
    values: &[i64],
    validity: Option<&Bitmap>,
    bits_a_row: usize,
    codec: Codec,
    list: Option<BlockList>,
    frames: &mut FrameBuffer,
    options: &TableOptions,
) -> Blocks {
    let shift = shift_for(bits_a_row + usize::from(validity.is_some()), options);
    let mut list = list.unwrap_or_else(|| BlockList::new(frames));
    let mut content = Vec::new();
    for (i, block) in values.chunks(1 << shift).enumerate() {
        content.clear();
        words::encode(block, validity, i << shift, &mut content);
        list.add(frames, &content, codec);
    }
    list.finish(shift)
}

/// Blocks written so far of a chunk.
pub(super) struct BlockList {
    first: u32,
    offset: u64,
    ends: Vec<u64>,
}

impl BlockList {
    pub fn new(frames: &FrameBuffer) -> BlockList {
        BlockList { first: frames.next_block(), offset: frames.offset(), ends: Vec::new() }
    }

    /// A list with its first block, a dictionary.
    fn begin(frames: &mut FrameBuffer, content: &[u8], codec: Codec) -> BlockList {
        let mut list = BlockList::new(frames);
        list.add(frames, content, codec);
        list
    }

    fn add(&mut self, frames: &mut FrameBuffer, content: &[u8], codec: Codec) {
        self.note(frames.block(content, codec));
    }

    fn add_plain(&mut self, frames: &mut FrameBuffer, parts: &[&[u8]]) {
        self.note(frames.plain_block(parts));
    }

    /// A block of `length` bytes was written.
    pub fn note(&mut self, length: u32) {
        self.ends.push(self.ends.last().copied().unwrap_or(0) + u64::from(length));
    }

    pub fn finish(self, shift: u8) -> Blocks {
        Blocks { shift, first: self.first, offset: self.offset, ends: self.ends }
    }
}

/// The largest power of two of rows whose block stays within the options' bytes.
fn shift_for(bits_a_row: usize, options: &TableOptions) -> u8 {
    let rows = options.block_bytes * 8 / bits_a_row.max(1);
    (rows.max(1).ilog2() as u8).min(SHIFT_MAX)
}

/// Bits of a code among `entries`.
fn bits_for(entries: usize) -> usize {
    entries.max(1).next_power_of_two().ilog2() as usize
}

/// Sets null slots to the value of the least valid row, so that they widen nothing.
fn fill_nulls(values: &mut [i64], validity: Option<&Bitmap>) {
    let Some(validity) = validity else { return };
    let filler = (0..values.len()).filter(|&i| validity.get(i)).map(|i| values[i]).min().unwrap_or(0);
    for i in (0..values.len()).filter(|&i| !validity.get(i)) {
        values[i] = filler;
    }
}

/// Entries in ascending order and each row's code; `None` when there are too many.
fn dictionary_of_words(values: &[i64]) -> Option<(Vec<i64>, Vec<i64>)> {
    let mut codes: HashMap<i64, i64> = HashMap::new();
    for &value in values {
        codes.insert(value, 0);
        if codes.len() > DICTIONARY_ENTRIES_MAX {
            return None;
        }
    }
    let mut entries: Vec<i64> = codes.keys().copied().collect();
    entries.sort_unstable();
    for (code, entry) in entries.iter().enumerate() {
        codes.insert(*entry, code as i64);
    }
    let rows = values.iter().map(|value| codes[value]).collect();
    Some((entries, rows))
}

fn dictionary_of_strings(values: &ByteStrings) -> Option<(ByteStrings, Vec<i64>)> {
    let mut codes: HashMap<&[u8], i64> = HashMap::new();
    let mut bytes = 0;
    for i in 0..values.len() {
        let value = values.get(i);
        if codes.insert(value, 0).is_none() {
            bytes += value.len();
            if codes.len() > DICTIONARY_ENTRIES_MAX || bytes > DICTIONARY_BYTES_MAX {
                return None;
            }
        }
    }
    let mut sorted: Vec<&[u8]> = codes.keys().copied().collect();
    sorted.sort_unstable();
    let mut entries = ByteStrings::default();
    for (code, entry) in sorted.into_iter().enumerate() {
        entries.push(entry);
        codes.insert(entry, code as i64);
    }
    let rows = (0..values.len()).map(|i| codes[values.get(i)]).collect();
    Some((entries, rows))
}

/// The options' codec, unless a sample of the bytes says that it would be wasted work.
fn string_codec(values: &ByteStrings, options: &TableOptions) -> Codec {
    if melba_toast::is_incompressible(&values.bytes) { Codec::None } else { options.codec }
}
