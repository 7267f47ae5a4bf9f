//! Reads values of a dense section: a row's ordinal, its block, the reference that the block needs.

use std::ops::Range;
use std::sync::Arc;

use super::values::StringsOut;
use crate::block::{Block, BlockKind, ReferenceName};
use crate::cache::BlockRef;
use crate::error::Result;
use crate::file::{BlockFile, Blocks};
use crate::layout::strings::StringBlock;

/// Scans leave blocks of sections in the cache whose values take up to this share of it.
const SCAN_CACHE_SHARE: u64 = 2;

/// The blocks that the last value of a section came from.
#[derive(Default)]
pub(crate) struct HeldSection {
    /// Numbers of the blocks within the section.
    ordinals: Option<(usize, Arc<Block>)>,
    values: Option<(usize, Arc<Block>)>,
}

/// A value's place: its block within the section, and its number in that.
type Place = (usize, usize);

/// The values of a dense column, of all row groups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    pub column: usize,
    /// Bytes of the values.
    pub raw_bytes: u64,
    /// No block or one.
    pub reference: Blocks,
    /// Of the reference, if there is one; not in files of older versions.
    pub reference_name: Option<ReferenceName>,
    /// Blocks of words: for each of the segment's rows, which of the section's values is its own.
    pub ordinals: Blocks,
    /// Blocks of one or many values.
    pub blocks: Blocks,
    /// The ordinal of each block's first value, and behind the last block the number of all values.
    pub firsts: Vec<u32>,
    /// So many of the last blocks were compressed by a fast level, to be compressed again when there is time.
    pub hasty_blocks: usize,
}

impl Section {
    /// Raw bytes of the values of hasty blocks, about.
    pub fn hasty_bytes(&self) -> u64 {
        let blocks = self.firsts.len() - 1;
        let (values, first) = (u64::from(self.firsts[blocks]), u64::from(self.firsts[blocks - self.hasty_blocks]));
        (self.raw_bytes as f64 * (values - first) as f64 / values.max(1) as f64) as u64
    }

    /// Where the value with an ordinal lies; `None` when there is none.
    fn place_of(&self, ordinal: u64) -> Option<Place> {
        let ordinal = u32::try_from(ordinal).ok()?;
        let block = self.firsts.partition_point(|first| *first <= ordinal).checked_sub(1)?;
        (block + 1 < self.firsts.len()).then(|| (block, (ordinal - self.firsts[block]) as usize))
    }

    /// Values of a block.
    fn values(&self, block: usize) -> usize {
        (self.firsts[block + 1] - self.firsts[block]) as usize
    }

    /// Calls `each` with a row's value and whether it is not in stored form; `None` when it is null.
    pub fn with_value<T>(&self, file: &BlockFile, row: usize, each: impl FnOnce(&[u8], bool) -> T) -> Result<Option<T>> {
        let (shift, number) = (self.ordinals.shift, row >> self.ordinals.shift);
        let ordinals = file.block(&self.ordinals, number, BlockKind::Words)?;
        let Some(ordinal) = self.ordinal(file, number, &ordinals, row & ((1 << shift) - 1))? else { return Ok(None) };
        let (block, at) = self.place(file, ordinal)?;
        let values = match file.cached(self.blocks.number(block)) {
            Some(values) => values,
            None => BlockRef::from(self.block(file, block, true)?),
        };
        let values = self.strings(file, block, &values)?;
        Ok(Some(each(values.get(at), values.is_plain(at))))
    }

    /// Appends the values of some rows; nulls are empty.
    pub fn read(&self, file: &BlockFile, rows: Range<usize>, held: &mut HeldSection, out: &mut StringsOut) -> Result<()> {
        let shift = self.ordinals.shift;
        for row in rows {
            let number = row >> shift;
            let ordinals = match held.ordinals.take() {
                Some((current, block)) if current == number => block,
                _ => file.block(&self.ordinals, number, BlockKind::Words)?.into_arc(),
            };
            let ordinal = self.ordinal(file, number, &ordinals, row & ((1 << shift) - 1))?;
            held.ordinals = Some((number, ordinals));
            let Some(ordinal) = ordinal else {
                out.push(None);
                continue;
            };
            let (block, at) = self.place(file, ordinal)?;
            let values = match held.values.take() {
                Some((current, values)) if current == block => values,
                _ => match file.cached(self.blocks.number(block)) {
                    Some(values) => values.into_arc(),
                    None => {
                        let keep = self.raw_bytes <= file.cache_bytes() / SCAN_CACHE_SHARE;
                        self.block(file, block, keep)?
                    }
                },
            };
            let strings = self.strings(file, block, &values)?;
            out.push(Some((strings.get(at), strings.is_plain(at))));
            held.values = Some((block, values));
        }
        Ok(())
    }

    /// The ordinal of a row, which is `at` in the section's block `number` of ordinals; `None`: null.
    fn ordinal(&self, file: &BlockFile, number: usize, block: &Block, at: usize) -> Result<Option<u64>> {
        match block {
            Block::Words(words) if at < words.rows() => Ok(words.is_valid(at).then(|| words.get(at) as u64)),
            _ => Err(file.damaged(self.ordinals.first + number as u32, "rows differ from the directory")),
        }
    }

    fn place(&self, file: &BlockFile, ordinal: u64) -> Result<Place> {
        self.place_of(ordinal).ok_or_else(|| file.damaged(self.ordinals.first, "ordinal beyond the section"))
    }

    pub fn strings<'a>(&self, file: &BlockFile, block: usize, content: &'a Block) -> Result<&'a StringBlock> {
        match content {
            Block::Strings(strings) if strings.rows() == self.values(block) => Ok(strings),
            _ => Err(file.damaged(self.blocks.first + block as u32, "values differ from the directory")),
        }
    }

    /// Reads a block of a section, and leaves it in the cache if `keep`.
    pub fn block(&self, file: &BlockFile, block: usize, keep: bool) -> Result<Arc<Block>> {
        let reference = match self.reference.ends.is_empty() {
            true => None,
            // Kept whatever happens to the block: all others need it too.
            false => Some(file.reference(&self.reference)?.into_arc()),
        };
        let reference = match reference.as_deref() {
            Some(Block::Reference(bytes)) => bytes.as_slice(),
            _ => &[],
        };
        file.dense_block(&self.blocks, block, reference, keep)
    }

    /// Checks all blocks of a section, and that every row has a value.
    pub fn verify(&self, file: &BlockFile, rows: usize) -> Result<()> {
        if let Some(name) = self.reference_name {
            // The file's own, whatever is in the cache.
            let content = file.frames.content(&file.frame(&self.reference, 0)?, self.reference.number(0))?;
            if ReferenceName::of(&content) != name {
                return Err(file.damaged(self.reference.number(0), "the reference differs from its name"));
            }
        }
        for block in 0..self.firsts.len() - 1 {
            let content = self.block(file, block, false)?;
            let strings = self.strings(file, block, &content)?;
            if (0..strings.rows()).any(|at| !strings.is_valid(at)) {
                return Err(file.damaged(self.blocks.first + block as u32, "a null among values"));
            }
        }
        for row in 0..rows {
            let number = row >> self.ordinals.shift;
            let ordinals = file.block(&self.ordinals, number, BlockKind::Words)?;
            if let Some(ordinal) = self.ordinal(file, number, &ordinals, row & ((1 << self.ordinals.shift) - 1))? {
                self.place(file, ordinal)?;
            }
        }
        Ok(())
    }
}
