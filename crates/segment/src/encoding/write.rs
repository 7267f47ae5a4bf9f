//! What encodings analyze and write: the values of a chunk, and the blocks that become of them.

use std::cell::OnceCell;

use melba_types::{Bitmap, ByteStrings, Kind};

use super::stages::ChunkEntry;
use crate::file::Blocks;
use crate::frame::{Codec, FrameBuffer};
use crate::layout::symbols::SymbolEncoder;
use crate::layout::{packed, strings, words};

/// Rows a block at most: a row group's usual size.
const SHIFT_MAX: u8 = 16;

/// The values of a chunk that is written.
pub(crate) struct ChunkValues<'a> {
    pub kind: Kind,
    pub data: ChunkData<'a>,
    /// Absent when nothing is null.
    pub validity: Option<&'a Bitmap>,
    pub nulls: usize,
    /// Different values that are not null, by an estimate.
    pub distinct: usize,
    /// All rows hold the same value.
    pub is_uniform: bool,
    packed_bits: OnceCell<usize>,
}

/// At least one value.
#[derive(Clone, Copy)]
pub(crate) enum ChunkData<'a> {
    /// Null rows have the value of another one.
    Words(&'a [i64]),
    Strings(&'a ByteStrings),
    /// Frames, or values of which some are in stored form: `plain` is unset there. Most of their bytes are compressed already.
    Stored {
        values: &'a ByteStrings,
        plain: Option<&'a Bitmap>,
    },
}

impl<'a> ChunkValues<'a> {
    pub fn new(kind: Kind, data: ChunkData<'a>, validity: Option<&'a Bitmap>, nulls: usize) -> ChunkValues<'a> {
        ChunkValues { kind, data, validity, nulls, distinct: 0, is_uniform: false, packed_bits: OnceCell::new() }
    }

    pub fn len(&self) -> usize {
        match self.data {
            ChunkData::Words(words) => words.len(),
            ChunkData::Strings(values) | ChunkData::Stored { values, .. } => values.len(),
        }
    }

    /// Bits that the chunk's words take as plain blocks.
    pub fn packed_bits(&self, words: &[i64]) -> usize {
        *self.packed_bits.get_or_init(|| {
            // A line suits the whole chunk or none; a sample would not show that.
            let width = packed::Fit::of(words).width() as usize;
            let runs = if width > 0 { words::count_runs(words) } else { words.len() };
            (words.len() * width).min(runs * (width + 16))
        })
    }
}

/// How chunks are written.
#[derive(Clone, Copy)]
pub(crate) struct WriteOptions {
    /// For blocks of byte strings and floats.
    pub codec: Codec,
    /// Raw bytes of a block, about.
    pub block_bytes: usize,
}

impl WriteOptions {
    /// The codec for byte strings, unless a look at the bytes says that it would be wasted work.
    pub fn string_codec(&self, values: &ByteStrings) -> Codec {
        if melba_toast::is_incompressible(&values.bytes) { Codec::None } else { self.codec }
    }

    /// The largest power of two of rows whose block stays within the options' bytes.
    fn shift(&self, bits_a_row: usize) -> u8 {
        let rows = self.block_bytes * 8 / bits_a_row.max(1);
        (rows.max(1).ilog2() as u8).min(SHIFT_MAX)
    }
}

/// A symbol table, and the coded size of a sample of its training values, in thousandths.
pub(crate) type TrainedSymbols = (SymbolEncoder, usize);

/// What earlier chunks of a column have left for the next one.
pub(crate) struct Trained<'a> {
    pub symbols: &'a mut Option<TrainedSymbols>,
    /// Coded strings, for their buffers: fresh memory for each chunk costs more than filling it.
    pub coded: &'a mut ByteStrings,
}

/// Writes analyzed values, and says what the directory holds of them.
pub(crate) type Write<'a> = dyn FnOnce(&mut FrameBuffer, &mut Trained<'_>) -> ChunkEntry + 'a;

/// Blocks written so far of a chunk.
pub(crate) struct BlockList {
    first: u32,
    offset: u64,
    ends: Vec<u64>,
}

impl BlockList {
    pub fn new(frames: &FrameBuffer) -> BlockList {
        BlockList { first: frames.next_block(), offset: frames.offset(), ends: Vec::new() }
    }

    /// A list with its first block, which precedes the rows.
    pub fn begin(frames: &mut FrameBuffer, content: &[u8], codec: Codec) -> BlockList {
        let mut list = BlockList::new(frames);
        list.note(frames.block(content, codec));
        list
    }

    /// A block of `length` bytes was written.
    pub fn note(&mut self, length: u32) {
        self.ends.push(self.ends.last().copied().unwrap_or(0) + u64::from(length));
    }

    pub fn finish(self, shift: u8) -> Blocks {
        Blocks { shift, first: self.first, offset: self.offset, ends: self.ends }
    }

    /// Writes words that take about `bits_a_row` bits each.
    pub fn write_words(
        mut self,
        (values, validity): (&[i64], Option<&Bitmap>),
        bits_a_row: usize,
        codec: Codec,
        options: &WriteOptions,
        frames: &mut FrameBuffer,
    ) -> Blocks {
        let shift = options.shift(bits_a_row + usize::from(validity.is_some()));
        let mut content = Vec::new();
        for (i, block) in values.chunks(1 << shift).enumerate() {
            content.clear();
            words::encode(block, validity, i << shift, &mut content);
            self.note(frames.block(&content, codec));
        }
        self.finish(shift)
    }

    /// Writes byte strings; those that are not `plain` are in stored form.
    pub fn write_strings(
        mut self,
        (values, validity): (&ByteStrings, Option<&Bitmap>),
        plain: Option<&Bitmap>,
        codec: Codec,
        options: &WriteOptions,
        frames: &mut FrameBuffer,
    ) -> Blocks {
        // A few long values among many short ones must not share their blocks with a lot of them.
        let longest = values.lengths(0..values.len()).max().unwrap_or(0);
        let average = (values.bytes.len() + values.len()) / values.len();
        let shift = options.shift(average.max(longest / 8) * 8);
        let mut content = Vec::new();
        for start in (0..values.len()).step_by(1 << shift) {
            content.clear();
            let rows = start..(start + (1 << shift)).min(values.len());
            let bytes = strings::encode_head(values, validity, plain, rows, &mut content);
            if codec == Codec::None {
                self.note(frames.plain_block(&[&content, bytes]));
            } else {
                content.extend_from_slice(bytes);
                self.note(frames.block(&content, codec));
            }
        }
        self.finish(shift)
    }
}
