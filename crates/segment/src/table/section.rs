//! What a segment says of its dense sections.

use super::TableSegmentReader;
use crate::error::Result;
use crate::file::Blocks;

/// A segment's statistics of a dense column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionSummary {
    pub column: usize,
    /// With those that blocks have kept, and no row has any more.
    pub values: u64,
    /// Bytes of the values.
    pub raw_bytes: u64,
    /// Bytes of the section in the file.
    pub stored_bytes: u64,
    /// Bytes of its reference in the file.
    pub reference_bytes: u64,
    /// Blocks of values.
    pub blocks: usize,
}

impl TableSegmentReader {
    /// The dense sections.
    pub fn sections(&self) -> impl Iterator<Item = SectionSummary> {
        let bytes = |blocks: &Blocks| blocks.ends.last().copied().unwrap_or(0);
        self.sections.iter().map(move |section| SectionSummary {
            column: section.column,
            values: section.firsts.last().copied().unwrap_or(0).into(),
            raw_bytes: section.raw_bytes,
            stored_bytes: bytes(&section.reference) + bytes(&section.ordinals) + bytes(&section.blocks),
            reference_bytes: bytes(&section.reference),
            blocks: section.blocks.ends.len(),
        })
    }

    /// Reads and decodes a block of a column's section past the cache: the cost of reading one of its values, if only the
    /// reference is cached. Does nothing when there is no such block.
    pub fn decode_section_block(&self, column: usize, block: usize) -> Result<()> {
        match self.sections.iter().find(|section| section.column == column) {
            Some(section) if block < section.blocks.ends.len() => section.block(&self.file, block, false).map(drop),
            _ => Ok(()),
        }
    }
}
