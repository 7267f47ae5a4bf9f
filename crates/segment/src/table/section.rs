//! What a segment says of its dense sections, and what sections of others take from them.

use std::sync::Arc;

use melba_toast::dense::{Effort, Offer};

use super::TableSegmentReader;
use crate::block::{Block, ReferenceName};
use crate::encoding::{BlockList, Section};
use crate::error::{Result, SegmentError};
use crate::file::{BlockFile, Blocks};
use crate::frame::FrameWriter;

/// A section of a segment, from which another one takes its reference or some blocks.
pub(super) struct StoredSection {
    segment: Arc<TableSegmentReader>,
    /// Its number.
    at: usize,
}

impl StoredSection {
    /// The section of a column, if it has one.
    pub fn of(segment: &Arc<TableSegmentReader>, column: usize) -> Option<StoredSection> {
        let at = segment.sections.iter().position(|section| section.column == column)?;
        Some(StoredSection { segment: Arc::clone(segment), at })
    }

    pub fn section(&self) -> &Section {
        &self.segment.sections[self.at]
    }

    pub fn file(&self) -> &BlockFile {
        &self.segment.file
    }

    /// The reference's content; empty when there is none.
    pub fn reference(&self) -> Result<Vec<u8>> {
        if self.section().reference.ends.is_empty() {
            return Ok(Vec::new());
        }
        let block = self.file().reference(&self.section().reference)?;
        Ok(match &*block {
            Block::Reference(bytes) => bytes.clone(),
            _ => Vec::new(),
        })
    }

    /// The reference for a section that has none yet.
    pub fn offer(&self, is_crowded: bool) -> Result<Option<Offer>> {
        let reference = self.reference()?;
        let stored_bytes = self.section().reference.ends.last().map_or(0, |end| *end as usize);
        Ok((stored_bytes > 0).then_some(Offer { reference, stored_bytes, is_crowded }))
    }

    /// Whether the reference's block suits a section that is made with an effort: one of a fast level does not where there is
    /// time. As far as that is known, the reference was compressed as most of the blocks.
    pub fn has_reference_for(&self, effort: Effort) -> bool {
        effort == Effort::Normal || self.section().hasty_blocks * 2 < self.section().blocks.ends.len()
    }

    /// Writes the reference unchanged.
    pub fn write_reference(&self, frames: &mut FrameWriter, list: &mut BlockList) -> Result<()> {
        for at in 0..self.section().reference.ends.len() {
            list.note(frames.copied_block(&self.file().frame(&self.section().reference, at)?)?);
        }
        Ok(())
    }

    /// Writes one of the blocks of values unchanged.
    pub fn write_block(&self, at: usize, frames: &mut FrameWriter, list: &mut BlockList) -> Result<()> {
        list.note(frames.copied_block(&self.file().frame(&self.section().blocks, at)?)?);
        Ok(())
    }

    /// Says that values were not what they were a moment before: a bug of ours.
    pub fn changed(&self) -> SegmentError {
        self.file().damaged(self.section().blocks.first, "values changed in memory")
    }
}

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
    /// Equal for references of equal content; `None` where there is none, or the file has no names yet.
    pub reference_name: Option<ReferenceName>,
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
            reference_name: section.reference_name,
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
