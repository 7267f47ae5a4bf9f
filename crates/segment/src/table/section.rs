//! Reads values of a dense section: a row's ordinal, its block, the reference that the block needs.

use std::ops::Range;
use std::sync::Arc;

use melba_types::{Bitmap, ByteStrings};

use super::TableSegmentReader;
use super::directory::{Blocks, Section};
use crate::block::{Block, BlockKind};
use crate::cache::BlockRef;
use crate::encoding::strings::StringBlock;
use crate::error::Result;

/// Scans leave blocks of sections in the cache whose values take up to this share of it.
const SCAN_CACHE_SHARE: u64 = 2;

/// The blocks that the last value of a section came from.
#[derive(Default)]
pub(super) struct HeldSection {
    /// Numbers of the blocks within the section.
    ordinals: Option<(usize, Arc<Block>)>,
    values: Option<(usize, Arc<Block>)>,
}

/// A value's place: its block within the section, and its number in that.
type Place = (usize, usize);

impl Section {
    /// Where the value with an ordinal lies; `None` when there is none.
    fn place(&self, ordinal: u64) -> Option<Place> {
        let ordinal = u32::try_from(ordinal).ok()?;
        let block = self.firsts.partition_point(|first| *first <= ordinal).checked_sub(1)?;
        (block + 1 < self.firsts.len()).then(|| (block, (ordinal - self.firsts[block]) as usize))
    }

    /// Values of a block.
    fn values(&self, block: usize) -> usize {
        (self.firsts[block + 1] - self.firsts[block]) as usize
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
            Some(section) if block < section.blocks.ends.len() => self.dense_block(section, block, false).map(drop),
            _ => Ok(()),
        }
    }

    /// Calls `each` with a row's value and whether it is not in stored form; `None` when it is null.
    pub(super) fn with_dense<T>(&self, section: &Section, row: usize, each: impl FnOnce(&[u8], bool) -> T) -> Result<Option<T>> {
        let (shift, number) = (section.ordinals.shift, row >> section.ordinals.shift);
        let ordinals = self.block(&section.ordinals, number, BlockKind::Words)?;
        let Some(ordinal) = self.ordinal(section, number, &ordinals, row & ((1 << shift) - 1))? else { return Ok(None) };
        let (block, at) = self.place(section, ordinal)?;
        let values = match self.cached(&section.blocks, block) {
            Some(values) => values,
            None => BlockRef::from(self.dense_block(section, block, true)?),
        };
        let values = self.strings_of(section, block, &values)?;
        Ok(Some(each(values.get(at), values.is_plain(at))))
    }

    /// Appends the values of some rows; nulls are empty.
    pub(super) fn dense_rows(
        &self,
        section: &Section,
        rows: Range<usize>,
        held: &mut HeldSection,
        out: &mut ByteStrings,
        validity: &mut Option<Bitmap>,
        plain: &mut Option<Bitmap>,
    ) -> Result<()> {
        let shift = section.ordinals.shift;
        for row in rows {
            let number = row >> shift;
            let ordinals = match held.ordinals.take() {
                Some((current, block)) if current == number => block,
                _ => self.block(&section.ordinals, number, BlockKind::Words)?.into_arc(),
            };
            let ordinal = self.ordinal(section, number, &ordinals, row & ((1 << shift) - 1))?;
            held.ordinals = Some((number, ordinals));
            let Some(ordinal) = ordinal else {
                validity.get_or_insert_with(|| Bitmap::filled(out.len(), true)).push(false);
                plain.iter_mut().for_each(|plain| plain.push(true));
                out.push(&[]);
                continue;
            };
            let (block, at) = self.place(section, ordinal)?;
            let values = match held.values.take() {
                Some((current, values)) if current == block => values,
                _ => match self.cached(&section.blocks, block) {
                    Some(values) => values.into_arc(),
                    None => {
                        let keep = section.raw_bytes <= self.cache_bytes() / SCAN_CACHE_SHARE;
                        self.dense_block(section, block, keep)?
                    }
                },
            };
            let strings = self.strings_of(section, block, &values)?;
            if !strings.is_plain(at) {
                plain.get_or_insert_with(|| Bitmap::filled(out.len(), true));
            }
            plain.iter_mut().for_each(|plain| plain.push(strings.is_plain(at)));
            validity.iter_mut().for_each(|validity| validity.push(true));
            out.push(strings.get(at));
            held.values = Some((block, values));
        }
        Ok(())
    }

    /// The ordinal of a row, which is `at` in the section's block `number` of ordinals; `None`: null.
    fn ordinal(&self, section: &Section, number: usize, block: &Block, at: usize) -> Result<Option<u64>> {
        match block {
            Block::Words(words) if at < words.rows() => Ok(words.is_valid(at).then(|| words.get(at) as u64)),
            _ => Err(self.damaged(section.ordinals.first + number as u32, "rows differ from the directory")),
        }
    }

    fn place(&self, section: &Section, ordinal: u64) -> Result<Place> {
        section.place(ordinal).ok_or_else(|| self.damaged(section.ordinals.first, "ordinal beyond the section"))
    }

    pub(super) fn strings_of<'a>(&self, section: &Section, block: usize, content: &'a Block) -> Result<&'a StringBlock> {
        match content {
            Block::Strings(strings) if strings.rows() == section.values(block) => Ok(strings),
            _ => Err(self.damaged(section.blocks.first + block as u32, "values differ from the directory")),
        }
    }

    /// Reads a block of a section, and leaves it in the cache if `keep`.
    pub(super) fn dense_block(&self, section: &Section, block: usize, keep: bool) -> Result<Arc<Block>> {
        let reference = match section.reference.ends.is_empty() {
            true => None,
            // Kept whatever happens to the block: all others need it too.
            false => Some(self.block(&section.reference, 0, BlockKind::Reference)?.into_arc()),
        };
        let reference = match reference.as_deref() {
            Some(Block::Reference(bytes)) => bytes.as_slice(),
            _ => &[],
        };
        self.read_dense_block(&section.blocks, block, reference, keep)
    }

    /// Checks all blocks of a section, and that every row has a value.
    pub(super) fn verify_section(&self, section: &Section, rows: usize) -> Result<()> {
        for block in 0..section.firsts.len() - 1 {
            let content = self.dense_block(section, block, false)?;
            let strings = self.strings_of(section, block, &content)?;
            if (0..strings.rows()).any(|at| !strings.is_valid(at)) {
                return Err(self.damaged(section.blocks.first + block as u32, "a null among values"));
            }
        }
        for row in 0..rows {
            let number = row >> section.ordinals.shift;
            let ordinals = self.block(&section.ordinals, number, BlockKind::Words)?;
            if let Some(ordinal) = self.ordinal(section, number, &ordinals, row & ((1 << section.ordinals.shift) - 1))? {
                self.place(section, ordinal)?;
            }
        }
        Ok(())
    }
}
