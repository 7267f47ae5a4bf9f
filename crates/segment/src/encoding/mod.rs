//! Encodings of column chunks. Each is a module with the same stages (`stages::ChunkEncoding`): analyze, write, read, filter.
//!
//! The rest of the crate knows an encoding by its place in `ENCODINGS` only: a chunk's directory entry names it by its tag, a reader
//! asks it for the chunk's values. The dispatch is once a chunk or a call, never once a value.

mod blocks;
mod constant;
mod dense;
mod dictionary;
mod digits;
mod null;
mod read;
mod section;
mod stages;
mod symbols;
#[cfg(test)]
mod toy_tests;
mod values;
mod write;

pub(crate) use blocks::BLOCKS;
pub(crate) use dense::DENSE;
pub(crate) use read::{ChunkView, HeldRow, HeldScan, Scan};
pub(crate) use section::Section;
pub(crate) use stages::{ChunkEncoding, ChunkEntry, EntryKind};
pub use values::Coded;
pub(crate) use values::{StringsOut, ValueOut, WordSink, WordsOut, empty_column, is_word};
pub(crate) use write::{BlockList, ChunkData, ChunkValues, Trained, TrainedSymbols, WriteOptions};

use crate::frame::FrameBuffer;

/// All encodings. For a chunk that is written the first one is taken that suits its values.
static ENCODINGS: &[&dyn ChunkEncoding] = &[
    #[cfg(test)]
    &toy_tests::Cubes,
    &null::Null,
    &constant::Constant,
    &dictionary::Dictionary,
    &digits::Digits,
    &symbols::Symbols,
    &blocks::Plain,
    &dense::Dense,
];

/// The encoding that a directory names by `tag`.
pub(crate) fn with_tag(tag: u8) -> Option<&'static dyn ChunkEncoding> {
    ENCODINGS.iter().copied().find(|encoding| encoding.tag() == tag)
}

/// Writes values by the encoding that suits them.
pub(crate) fn write(
    values: &ChunkValues<'_>,
    options: &WriteOptions,
    trained: &mut Trained<'_>,
    frames: &mut FrameBuffer,
) -> (&'static dyn ChunkEncoding, ChunkEntry) {
    let analyzed = ENCODINGS.iter().find_map(|&encoding| Some((encoding, encoding.analyze(values, options, trained)?)));
    let (encoding, write) = analyzed.expect("plain blocks take any values");
    (encoding, write(frames, trained))
}
