//! Blocks of an input's dense section that are copied unchanged into an output, with the reference against which they are
//! compressed: a merge that changes few of a section's values compresses only those.
//!
//! Equal values are recognised by their bytes, so that merges need not say where a value comes from. A block may keep some values
//! that no row has any more.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use melba_toast::dense::{Effort, Pace, PlannedBlock, Spool, SpoolReader, Treatment};
use melba_types::Bitmap;

use super::section::StoredSection;
use crate::encoding::{BlockList, Section};
use crate::error::Result;
use crate::frame::FrameWriter;

/// Percentage of the bytes of a block's values that must be live for the block to be reused: with the dead rows that merges
/// tolerate, a section takes less than 1.3 times the space of its live values.
const BLOCK_LIVE_PERCENT: usize = 87;
/// Percentage of the bytes of all values that must be in such blocks; else the section is replanned, with a new reference.
const SECTION_REUSED_PERCENT: u64 = 50;
/// Percentage that must be the input's, in whatever blocks: the reference was chosen for its values, not for others.
const SECTION_KNOWN_PERCENT: u64 = 75;

/// The reused part of an input's section.
pub(super) struct Reused {
    input: StoredSection,
    blocks: Vec<ReusedBlock>,
    /// Blocks that a fast level has compressed, and that are compressed again: the values that live.
    again: Vec<PlannedBlock>,
    /// Of the spool's values, those that are in these blocks.
    placed: Bitmap,
}

/// A reused block.
pub(super) struct ReusedBlock {
    /// Its number within the section.
    block: usize,
    /// For each of its values, which of the spool's it is, if any.
    pub values: Vec<Option<u32>>,
}

impl Reused {
    /// The part of an input's section that has the values of a closed spool, of which some are `plain`; `None` when that is too
    /// little.
    ///
    /// # Errors
    /// Those of reading the input.
    pub fn of(
        input: StoredSection,
        spool: &Spool,
        plain: &Bitmap,
        effort: Effort,
        give_way: fn() -> Pace,
    ) -> Result<Option<Reused>> {
        if input.section().raw_bytes * 100 < spool.raw_bytes() * SECTION_KNOWN_PERCENT {
            return Ok(None);
        }
        let placed = Bitmap::filled(spool.len(), false);
        let mut reused = Reused { input, blocks: Vec::new(), again: Vec::new(), placed };
        let stays = match effort {
            Effort::Normal => usize::MAX,
            Effort::High => reused.first_hasty(),
        };
        let mut left = Left::of(spool, plain).map_err(|()| reused.input.changed())?;
        let (mut known, mut bytes) = (0, 0);
        for block in 0..reused.section().blocks.ends.len() {
            give_way();
            let content = reused.section().block(reused.input.file(), block, false)?;
            let strings = reused.section().strings(reused.input.file(), block, &content)?;
            let mut values = Vec::with_capacity(strings.rows());
            let (mut all, mut live) = (0, 0);
            for at in 0..strings.rows() {
                let value = strings.get(at);
                let same = left.take(value, strings.is_plain(at)).map_err(|()| reused.input.changed())?;
                all += value.len();
                live += if same.is_some() { value.len() } else { 0 };
                values.push(same);
            }
            known += live as u64;
            if values.iter().any(Option::is_some) && live * 100 >= all * BLOCK_LIVE_PERCENT {
                bytes += live as u64;
                if block < stays {
                    values.iter().flatten().for_each(|value| reused.placed.set(*value as usize, true));
                    reused.blocks.push(ReusedBlock { block, values });
                    continue;
                }
                let values: Vec<u32> = values.into_iter().flatten().collect();
                // Others are not compressed at all.
                if values.iter().all(|value| spool.treatment(*value as usize) == Treatment::Dense) {
                    values.iter().for_each(|value| reused.placed.set(*value as usize, true));
                    reused.again.push(PlannedBlock { values, treatment: Treatment::Dense });
                }
            } else {
                (0..values.len()).for_each(|at| left.give_back(values[at], strings.get(at), strings.is_plain(at)));
            }
        }
        let is_share = |bytes: u64, percent: u64| bytes * 100 >= spool.raw_bytes() * percent;
        Ok((is_share(bytes, SECTION_REUSED_PERCENT) && is_share(known, SECTION_KNOWN_PERCENT)).then_some(reused))
    }

    fn section(&self) -> &Section {
        self.input.section()
    }

    /// The section that the part is of.
    pub fn input(&self) -> &StoredSection {
        &self.input
    }

    pub fn blocks(&self) -> &[ReusedBlock] {
        &self.blocks
    }

    /// Takes the blocks that are to be compressed again.
    pub fn take_again(&mut self) -> Vec<PlannedBlock> {
        std::mem::take(&mut self.again)
    }

    /// The section's first hasty block.
    fn first_hasty(&self) -> usize {
        self.section().blocks.ends.len() - self.section().hasty_blocks
    }

    /// How many of the reused blocks come before the first hasty one.
    pub fn thorough_blocks(&self) -> usize {
        self.blocks.partition_point(|block| block.block < self.first_hasty())
    }

    /// Whether one of the spool's values is in a reused block.
    pub fn has(&self, value: u32) -> bool {
        self.placed.get(value as usize)
    }

    /// Writes one of the blocks unchanged.
    pub fn write_block(&self, at: usize, frames: &mut FrameWriter, list: &mut BlockList) -> Result<()> {
        self.input.write_block(self.blocks[at].block, frames, list)
    }
}

/// Values of a spool that no block has yet, by a hash of their bytes.
struct Left<'a> {
    by_hash: HashMap<u64, Vec<u32>>,
    reader: SpoolReader<'a>,
    plain: &'a Bitmap,
}

impl Left<'_> {
    fn of<'a>(spool: &'a Spool, plain: &'a Bitmap) -> std::result::Result<Left<'a>, ()> {
        let mut by_hash: HashMap<u64, Vec<u32>> = HashMap::with_capacity(spool.len());
        let mut reader = spool.reader();
        for value in (0..spool.len()).rev() {
            let hash = hash_of(reader.get(value).map_err(drop)?, plain.get(value));
            by_hash.entry(hash).or_default().push(value as u32);
        }
        Ok(Left { by_hash, reader, plain })
    }

    /// Takes a value with some bytes, if there is one.
    fn take(&mut self, bytes: &[u8], is_plain: bool) -> std::result::Result<Option<u32>, ()> {
        let Some(alike) = self.by_hash.get_mut(&hash_of(bytes, is_plain)) else { return Ok(None) };
        let Some(value) = alike.last().copied() else { return Ok(None) };
        if self.plain.get(value as usize) != is_plain || self.reader.get(value as usize).map_err(drop)? != bytes {
            return Ok(None);
        }
        alike.pop();
        Ok(Some(value))
    }

    fn give_back(&mut self, value: Option<u32>, bytes: &[u8], is_plain: bool) {
        if let Some(value) = value {
            self.by_hash.entry(hash_of(bytes, is_plain)).or_default().push(value);
        }
    }
}

fn hash_of(bytes: &[u8], is_plain: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (bytes, is_plain).hash(&mut hasher);
    hasher.finish()
}
