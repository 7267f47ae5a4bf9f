//! The plan of a section: its reference, and which values share a block.

use super::candidate::{Candidate, Material, Offer};
use super::chunks;
use super::order::{by_similarity, sketch};
use super::reference::{AllChunks, Coverage};
use super::{BlockEncoder, DenseOptions, Effort, Pace, Spool, Treatment};
use crate::CodecError;

/// A chunk has `1 << 6` bytes on average, of short values 16.
const CHUNK_BITS: u32 = 6;
const SHORT_CHUNK_BITS: u32 = 4;
/// Values that are shorter on average stay in the order of their rows: many share a block anyhow, and scans like it.
const SHORT_BYTES: u64 = 2048;
/// The reference of short values: they share little content, and a longer one costs more in distances than it saves.
const SHORT_REFERENCE_BYTES_MAX: usize = 256 << 10;
/// Their blocks, in halves of other values' blocks: literals, which make most of them, are decoded fastest.
const SHORT_BLOCK_HALVES: usize = 3;
/// Blocks that are compressed beforehand, to measure which treatment pays.
const SAMPLES: usize = 8;
/// zstd's level: the densest of its fast strategies; the one for short values when there is time, and for others.
const LEVEL_NORMAL: i32 = 12;
const LEVEL_HIGH_SHORT: i32 = 15;
const LEVEL_HIGH: i32 = 17;
/// A slower level must reduce the blocks to this share, in thousandths.
const LEVEL_PAYS: usize = 980;
/// The source of a section's reference.
enum Source {
    /// The section's own values, or the offered one.
    Chosen(Option<Offer>),
    /// The one that there is.
    Given(Vec<u8>),
}

/// The parts of a section.
pub struct Plan {
    /// Empty when none pays.
    pub reference: Vec<u8>,
    /// The reference is the one that was offered.
    pub is_offered: bool,
    pub blocks: Vec<PlannedBlock>,
    /// zstd's level.
    pub level: i32,
    /// No higher level has been tried: blocks may become smaller when there is time.
    pub is_hasty: bool,
}

/// Values that are compressed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedBlock {
    pub values: Vec<u32>,
    pub treatment: Treatment,
}

impl Plan {
    /// Plans a section of a closed spool's values, which may take the reference of another one; `give_way` is called between
    /// values.
    ///
    /// # Errors
    /// `Malformed` when the spool's memory has changed: a bug of ours.
    pub fn of(spool: &Spool, offer: Option<Offer>, options: &DenseOptions, give_way: fn() -> Pace) -> Result<Plan, CodecError> {
        Plan::over(spool, |_| true, Source::Chosen(offer), Vec::new(), options, give_way)
    }

    /// Plans blocks of some of the values against a reference that there is, behind blocks that are given.
    ///
    /// # Errors
    /// As `of`.
    pub fn against(
        spool: &Spool,
        is_wanted: impl Fn(u32) -> bool,
        reference: Vec<u8>,
        given: Vec<PlannedBlock>,
        options: &DenseOptions,
        give_way: fn() -> Pace,
    ) -> Result<Plan, CodecError> {
        Plan::over(spool, is_wanted, Source::Given(reference), given, options, give_way)
    }

    fn over(
        spool: &Spool,
        is_wanted: impl Fn(u32) -> bool,
        source: Source,
        mut blocks: Vec<PlannedBlock>,
        options: &DenseOptions,
        give_way: fn() -> Pace,
    ) -> Result<Plan, CodecError> {
        let with = |treatment| -> Vec<u32> {
            let is_with = |v: &u32| is_wanted(*v) && spool.treatment(*v as usize) == treatment;
            (0..spool.len() as u32).filter(is_with).collect()
        };
        let dense = with(Treatment::Dense);
        let dense_bytes: u64 = dense.iter().map(|v| spool.value_bytes(*v as usize) as u64).sum();
        let all = || dense.iter().chain(blocks.iter().flat_map(|block| &block.values));
        let is_short = all().map(|v| spool.value_bytes(*v as usize) as u64).sum::<u64>() < SHORT_BYTES * all().count() as u64;
        let (mut reference_bytes, mut block_bytes) = (options.reference_bytes_max, options.block_bytes);
        if is_short {
            reference_bytes = reference_bytes.min(SHORT_REFERENCE_BYTES_MAX);
            block_bytes = block_bytes * SHORT_BLOCK_HALVES / 2;
        }
        let bits = if is_short { SHORT_CHUNK_BITS } else { CHUNK_BITS };
        let share = (dense_bytes >> bits) / options.chunks_max as u64 + 1;
        // Of short values some are sampled, of others some of the chunks: larger chunks would find less in them.
        let looked_at: Vec<u32> = dense.iter().copied().step_by(if is_short { share as usize } else { 1 }).collect();
        let mut all = AllChunks { sampled: if is_short { 0 } else { share.next_power_of_two().ilog2() }, ..AllChunks::default() };
        let mut sketches = Vec::new();
        let mut cut = Vec::new();
        let mut reader = spool.reader();
        for value in &looked_at {
            give_way();
            cut.clear();
            chunks::cut(reader.get(*value as usize)?, bits, &mut cut);
            if !is_short {
                sketches.push(sketch(&cut));
            }
            if matches!(source, Source::Chosen(_)) {
                all.append(&cut);
            }
        }
        let order: Vec<u32> =
            if is_short { dense.clone() } else { by_similarity(&sketches).iter().map(|at| dense[*at as usize]).collect() };
        let (reference, candidates) = match source {
            Source::Given(reference) => (reference, None),
            Source::Chosen(offer) => {
                let coverage = Coverage::new(all);
                let bytes_max = reference_bytes;
                let material = Material { spool, values: &looked_at, coverage, bytes_max, bits, level: LEVEL_NORMAL };
                (Vec::new(), Some(material.candidates(offer)?))
            }
        };
        blocks.extend(in_blocks(spool, &order, block_bytes, Treatment::Dense));
        let higher = match options.effort {
            Effort::Normal => None,
            Effort::High if is_short => Some(LEVEL_HIGH_SHORT),
            Effort::High => Some(LEVEL_HIGH),
        };
        let mut plan = Plan { reference, is_offered: false, blocks: Vec::new(), level: LEVEL_NORMAL, is_hasty: true };
        let samples = Samples::of(spool, &blocks, give_way)?;
        if let Some(candidates) = candidates {
            plan.choose_reference(candidates, &samples);
        }
        plan.choose_level(higher, &samples);
        // Copied as they are, they need not be read with others.
        blocks.extend(in_blocks(spool, &with(Treatment::AsIs), options.block_bytes / 8, Treatment::AsIs));
        plan.blocks = blocks;
        Ok(plan)
    }

    /// The encoder of the plan's blocks.
    pub fn encoder(&self) -> BlockEncoder {
        BlockEncoder::new(&self.reference, self.level)
    }

    /// Goes on at the fast level, which is three to six times as fast; false when that is the level already.
    pub fn hasten(&mut self) -> bool {
        let is_slower = std::mem::replace(&mut self.level, LEVEL_NORMAL) > LEVEL_NORMAL;
        self.is_hasty |= is_slower;
        is_slower
    }

    /// Takes a reference, unless the section is smaller without: each candidate stands against the better of those behind it.
    fn choose_reference(&mut self, candidates: Vec<Candidate>, samples: &Samples) {
        let bytes = |reference: &[u8]| samples.section_bytes(reference, self.level);
        let without = bytes(&[]);
        let mut best = (without, Candidate::default());
        for candidate in candidates.into_iter().rev() {
            let with = bytes(&candidate.reference) + candidate.stored_bytes;
            if with <= without && with * 1000 <= best.0 * (1000 + candidate.allowance) {
                best = (with, candidate);
            }
        }
        (self.reference, self.is_offered) = (best.1.reference, best.1.is_offered);
    }

    /// Takes the higher level, if there is time and it pays.
    fn choose_level(&mut self, higher: Option<i32>, samples: &Samples) {
        if let Some(higher) = higher
            && (samples.give_way)() == Pace::Thorough
        {
            self.is_hasty = false;
            let bytes = samples.bytes(&self.reference, self.level);
            if samples.bytes(&self.reference, higher) * 1000 <= bytes * LEVEL_PAYS {
                self.level = higher;
            }
        }
    }
}

/// Blocks that are compressed beforehand.
struct Samples {
    contents: Vec<Vec<u8>>,
    /// Blocks of the whole section.
    blocks: usize,
    give_way: fn() -> Pace,
}

impl Samples {
    fn of(spool: &Spool, blocks: &[PlannedBlock], give_way: fn() -> Pace) -> Result<Samples, CodecError> {
        let step = (blocks.len() / SAMPLES).max(1);
        let contents = blocks.iter().skip(step / 2).step_by(step).map(|block| content(spool, block)).collect::<Result<_, _>>()?;
        Ok(Samples { contents, blocks: blocks.len(), give_way })
    }

    /// Bytes of the samples, compressed against a reference.
    fn bytes(&self, reference: &[u8], level: i32) -> usize {
        let mut encoder = BlockEncoder::new(reference, level);
        let mut out = Vec::new();
        for sample in &self.contents {
            (self.give_way)();
            if !encoder.encode(sample, sample.len(), &mut out) {
                out.extend_from_slice(sample);
            }
        }
        out.len()
    }

    /// Bytes of all blocks, about.
    fn section_bytes(&self, reference: &[u8], level: i32) -> usize {
        self.bytes(reference, level) * self.blocks / self.contents.len().max(1)
    }
}

/// Values in blocks of `block_bytes`, or of one value that is longer.
fn in_blocks(spool: &Spool, order: &[u32], block_bytes: usize, treatment: Treatment) -> Vec<PlannedBlock> {
    let mut blocks: Vec<PlannedBlock> = Vec::new();
    let mut bytes = 0;
    for value in order {
        let more = spool.value_bytes(*value as usize);
        match blocks.last_mut() {
            Some(block) if bytes + more <= block_bytes => block.values.push(*value),
            _ => {
                blocks.push(PlannedBlock { values: vec![*value], treatment });
                bytes = 0;
            }
        }
        bytes += more;
    }
    blocks
}

/// The bytes of a block's values end to end.
fn content(spool: &Spool, block: &PlannedBlock) -> Result<Vec<u8>, CodecError> {
    let mut reader = spool.reader();
    let mut out = Vec::new();
    for value in &block.values {
        out.extend_from_slice(reader.get(*value as usize)?);
    }
    Ok(out)
}
