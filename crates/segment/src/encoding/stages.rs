//! What an encoding does: the stages that each one has.

use std::fmt::Debug;
use std::ops::Range;

use super::read::{ChunkView, HeldRow, Scan};
use super::values::{Coded, StringsOut, ValueOut, WordsOut};
use super::write::{ChunkValues, Trained, Write, WriteOptions};
use crate::error::Result;
use crate::file::Blocks;
use crate::statistics::ZoneOp;

/// What the directory holds of a chunk's values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChunkEntry {
    Nothing,
    Bytes(Box<[u8]>),
    Blocks(Blocks),
    /// The values are in the column's dense section.
    Section,
}

/// Which `ChunkEntry` the chunks of an encoding have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Nothing,
    Bytes,
    /// Blocks of rows behind `heads` blocks that all rows share: a dictionary, say.
    Blocks {
        heads: usize,
    },
    Section,
}

/// Where a word is among the ascending ones of a chunk.
pub(crate) struct LowerBound {
    /// The first row whose word is not below; the number of rows when there is none.
    pub row: usize,
    /// Its word, where that is known already.
    pub word: Option<u64>,
}

/// An encoding of column chunks.
///
/// The values of a chunk are words or byte strings (`ChunkView::holds_words`). An encoding of one sort keeps the methods here for the
/// other: they are errors, because only a damaged file has such a chunk. Words may be mantissas of numerics, which readers take care of.
pub(crate) trait ChunkEncoding: Debug + Sync {
    /// Its number in directories, which no other encoding may have had. 6 and 7 are taken by the marks of numerics and filters.
    fn tag(&self) -> u8;

    fn entry_kind(&self) -> EntryKind;

    /// Whether a filter of the chunk's values says more than the encoding tells by itself.
    fn suits_filter(&self) -> bool {
        false
    }

    /// Analyze: how the values would be written, or `None` when an encoding further back in the table suits them better.
    fn analyze<'a>(
        &self,
        values: &'a ChunkValues<'a>,
        options: &WriteOptions,
        trained: &mut Trained<'_>,
    ) -> Option<Box<Write<'a>>>;

    /// Read: appends words of some ascending ranges of rows. Those of nulls are unspecified.
    fn read_words(&self, scan: &mut Scan<'_>, _ranges: &[Range<usize>], _out: &mut WordsOut<'_>) -> Result<()> {
        Err(scan.chunk.undecodable())
    }

    /// Read: the same of byte strings. Those of nulls are empty.
    fn read_strings(&self, scan: &mut Scan<'_>, _ranges: &[Range<usize>], _out: &mut StringsOut) -> Result<()> {
        Err(scan.chunk.undecodable())
    }

    /// Read: the same of rows that were picked, by their numbers among those of the ranges, ascending; false, with nothing appended,
    /// where that is no less work than all of them.
    fn read_picked(&self, _: &mut Scan<'_>, _ranges: &[Range<usize>], _picks: &[u32], _out: &mut StringsOut) -> Result<bool> {
        Ok(false)
    }

    /// Read: appends the values of single rows, in the order given.
    fn read_rows(&self, chunk: &ChunkView<'_>, rows: &[u32], held: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()>;

    /// Read: the word of a row of a chunk without nulls.
    fn word(&self, chunk: &ChunkView<'_>, _row: usize) -> Result<i64> {
        Err(chunk.undecodable())
    }

    /// Read: calls `each` with the bytes of a row, not in stored form, unless it is null.
    fn with_bytes(&self, chunk: &ChunkView<'_>, _row: usize, _each: &mut dyn FnMut(&[u8])) -> Result<()> {
        Err(chunk.undecodable())
    }

    /// Filter: rows as places among few entries, so that a predicate is evaluated once an entry; `None` when that is not less work.
    fn codes(&self, _scan: &mut Scan<'_>, _ranges: &[Range<usize>]) -> Result<Option<Coded>> {
        Ok(None)
    }

    /// Whether `rows_where` ever answers.
    fn compares(&self) -> bool {
        false
    }

    /// Filter: the rows whose byte strings satisfy all of some comparisons, by their numbers among those of the ranges; `None` where that
    /// takes decoding them.
    fn rows_where(
        &self,
        _: &mut Scan<'_>,
        _ranges: &[Range<usize>],
        _comparisons: &[(ZoneOp, &[u8])],
    ) -> Result<Option<Vec<u32>>> {
        Ok(None)
    }

    /// Filter: where a word is in a chunk of ascending ones without nulls, compared as unsigned.
    fn lower_bound(&self, chunk: &ChunkView<'_>, word: u64) -> Result<LowerBound> {
        let (mut low, mut high) = (0, chunk.rows);
        while low < high {
            let middle = low + (high - low) / 2;
            if (self.word(chunk, middle)? as u64) < word {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(LowerBound { row: low, word: None })
    }
}

impl PartialEq for dyn ChunkEncoding {
    fn eq(&self, other: &dyn ChunkEncoding) -> bool {
        self.tag() == other.tag()
    }
}
