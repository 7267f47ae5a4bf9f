//! What of a table segment stays on the local disk when its file moves to a store, and in which parts the rest is fetched.
//!
//! What finds a row stays: header and footer, the hidden columns, filters, and of dense sections references and ordinals. So a
//! row's own values are all that a point read fetches.
//!
//! Invariants:
//! 1. The blocks of a row group's columns are one part: all values of a row come with one request. A column that is alone, in blocks
//!    that need no others, has parts of a few blocks.
//! 2. Parts lie end to end and cover the whole file; none ends within a block.

use std::ops::Range;

use super::directory::Chunk;
use super::reader::TableSegmentReader;
use super::{HIDDEN_COLUMNS, Position};
use crate::encoding::EntryKind;
use crate::file::Blocks;
use crate::frame::HEADER_BYTES;

/// Bytes after which the next block begins another part.
const PART_BYTES: u64 = 256 << 10;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColdLayout {
    /// What stays, ascending and without overlaps.
    pub kept: Vec<Range<u64>>,
    /// Where each part ends; the last one ends with the file.
    pub ends: Vec<u64>,
}

impl TableSegmentReader {
    /// See the module.
    pub fn cold_layout(&self) -> ColdLayout {
        let (blocks_end, file_bytes) = (self.file.frames.blocks_end(), self.file.frames.file_bytes);
        let mut kept = vec![0..HEADER_BYTES as u64, blocks_end..file_bytes];
        let mut cuts = vec![blocks_end, file_bytes];
        let columns = self.kinds().len();
        for group in 0..self.row_groups().len() {
            let chunks: Vec<_> = (0..columns).map(|column| self.chunk(group, column)).collect();
            let own: Vec<_> = chunks.iter().filter_map(|chunk| chunk.blocks()).collect();
            match own[..] {
                [blocks] if chunks.iter().any(|chunk| needs_no_head(chunk)) => cut(blocks, &mut cuts),
                [first, ..] => cuts.push(first.offset),
                [] => {}
            }
            let filters = chunks.iter().filter_map(|chunk| chunk.filter.as_ref());
            kept.extend(filters.map(|filter| filter.offset..filter.offset + filter.bytes()));
            let hidden = (columns..columns + HIDDEN_COLUMNS).filter_map(|column| self.chunk(group, column).blocks());
            kept.extend(hidden.map(extent));
        }
        for section in &self.sections {
            kept.extend([extent(&section.reference), extent(&section.ordinals)]);
            cut(&section.blocks, &mut cuts);
        }
        cuts.retain(|end| *end > 0);
        cuts.sort_unstable();
        cuts.dedup();
        ColdLayout { kept: joined(kept), ends: cuts }
    }
}

impl TableSegmentReader {
    /// Says that the values of a column from one position to another will be read.
    pub fn expect(&self, column: usize, first: Position, last: Position) {
        let extent = |position: Position| {
            let blocks = self.chunk(position.group as usize, column).blocks()?;
            let (offset, length) = blocks.extent(position.row as usize >> blocks.shift);
            Some(offset..offset + length as u64)
        };
        if let (Some(first), Some(last)) = (extent(first), extent(last)) {
            self.file.frames.expect(first.start..last.end);
        }
    }
}

/// Whether a chunk has blocks that are read without another one.
fn needs_no_head(chunk: &Chunk) -> bool {
    chunk.blocks().is_some() && matches!(chunk.encoding.entry_kind(), EntryKind::Blocks { heads: 0 })
}

fn extent(blocks: &Blocks) -> Range<u64> {
    blocks.offset..blocks.offset + blocks.ends.last().copied().unwrap_or(0)
}

/// Cuts before the first of some blocks, behind the last one, and between them.
fn cut(blocks: &Blocks, cuts: &mut Vec<u64>) {
    let (start, mut since) = (blocks.offset, 0);
    cuts.push(start);
    for end in &blocks.ends {
        if end - since >= PART_BYTES {
            cuts.push(start + end);
            since = *end;
        }
    }
    cuts.push(extent(blocks).end);
}

/// Ranges in order, those that touch as one.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut out: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}
