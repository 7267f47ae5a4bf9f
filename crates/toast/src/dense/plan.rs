//! The plan of a section: its reference, and which values share a block.

use super::chunks;
use super::order::{by_similarity, sketch};
use super::reference::{AllChunks, choose};
use super::{BlockEncoder, DenseOptions, Effort, Spool, Treatment};
use crate::CodecError;

/// Chunks of a section, about: they are in memory while it is planned, some 40 bytes each.
const CHUNKS_MAX: u64 = 512 << 10;
/// A chunk has at least `1 << 6` bytes on average, of short values 16.
const CHUNK_BITS: std::ops::RangeInclusive<u32> = 6..=12;
const SHORT_CHUNK_BITS: u32 = 4;
/// Values that are shorter on average stay in the order of their rows: many share a block anyhow, and scans like it.
const SHORT_BYTES: u64 = 2048;
/// The reference of short values: what they share is soon told, and a longer one costs more in distances than it saves.
const SHORT_REFERENCE_BYTES_MAX: usize = 256 << 10;
/// Their blocks, in halves of other values' blocks: literals, which make most of them, are decoded fastest.
const SHORT_BLOCK_HALVES: usize = 3;
/// Blocks that are compressed beforehand, to see what pays.
const SAMPLES: usize = 8;
/// zstd's level for little memory; the densest of its fast strategies; the one for short values when there is time, and for others.
const LEVEL_LOW: i32 = 9;
const LEVEL_NORMAL: i32 = 12;
const LEVEL_HIGH_SHORT: i32 = 15;
const LEVEL_HIGH: i32 = 17;
/// More than so many bytes of longer values take too long at the highest level: they would hold up other merges for minutes.
const LEVEL_HIGH_BYTES_MAX: u64 = 64 << 20;
/// A slower level must bring the blocks to this share, in thousandths.
const LEVEL_PAYS: usize = 980;

/// What a section is made of.
pub struct Plan {
    /// Empty when none pays.
    pub reference: Vec<u8>,
    pub blocks: Vec<PlannedBlock>,
    /// zstd's level.
    pub level: i32,
}

/// Values that are compressed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedBlock {
    pub values: Vec<u32>,
    pub treatment: Treatment,
}

impl Plan {
    /// Plans a section of a closed spool's values; `give_way` is called between values.
    ///
    /// # Errors
    /// `Malformed` when the spool's memory has changed: a bug of ours.
    pub fn of(spool: &Spool, options: &DenseOptions, give_way: fn()) -> Result<Plan, CodecError> {
        let dense: Vec<u32> = (0..spool.len() as u32).filter(|v| spool.treatment(*v as usize) == Treatment::Dense).collect();
        let dense_bytes: u64 = dense.iter().map(|v| spool.value_bytes(*v as usize) as u64).sum();
        let is_short = dense_bytes < SHORT_BYTES * dense.len() as u64;
        let least = if is_short { SHORT_CHUNK_BITS } else { *CHUNK_BITS.start() };
        let bits = (dense_bytes / CHUNKS_MAX).checked_ilog2().map_or(least, |log| (log + 1).clamp(least, *CHUNK_BITS.end()));
        // Of short values a part is looked at, for larger chunks would find nothing in them.
        let (bits, every) = if is_short { (least, (dense_bytes >> least) / CHUNKS_MAX + 1) } else { (bits, 1) };
        let looked_at: Vec<u32> = dense.iter().copied().step_by(every as usize).collect();
        let mut all = AllChunks::default();
        let mut sketches = Vec::new();
        let mut reader = spool.reader();
        for value in &looked_at {
            give_way();
            let start = all.chunks.len();
            chunks::cut(reader.get(*value as usize)?, bits, &mut all.chunks);
            all.ends.push(all.chunks.len() as u32);
            if !is_short {
                sketches.push(sketch(&all.chunks[start..]));
            }
        }
        let order: Vec<u32> =
            if is_short { dense.clone() } else { by_similarity(&sketches).iter().map(|at| dense[*at as usize]).collect() };
        let mut reference = vec![0];
        let (mut reference_bytes, mut block_bytes) = (options.reference_bytes_max, options.block_bytes);
        if is_short {
            reference_bytes = reference_bytes.min(SHORT_REFERENCE_BYTES_MAX);
            block_bytes = block_bytes * SHORT_BLOCK_HALVES / 2;
        }
        for piece in choose(&all, reference_bytes) {
            let value = reader.get(looked_at[piece.value as usize] as usize)?;
            reference.extend_from_slice(&value[piece.from as usize..piece.to as usize]);
        }
        drop(all);
        let mut blocks = in_blocks(spool, &order, block_bytes, Treatment::Dense);
        let as_is: Vec<u32> = (0..spool.len() as u32).filter(|v| spool.treatment(*v as usize) == Treatment::AsIs).collect();
        let (level, higher) = match options.effort {
            Effort::Low => (LEVEL_LOW, None),
            Effort::Normal => (LEVEL_NORMAL, None),
            Effort::High if is_short => (LEVEL_NORMAL, Some(LEVEL_HIGH_SHORT)),
            Effort::High => (LEVEL_NORMAL, Some(LEVEL_HIGH).filter(|_| dense_bytes <= LEVEL_HIGH_BYTES_MAX)),
        };
        let mut plan = Plan { reference, blocks: Vec::new(), level };
        plan.decide(spool, &blocks, higher, give_way)?;
        // Copied as they are, they need not be read with others.
        blocks.extend(in_blocks(spool, &as_is, options.block_bytes / 8, Treatment::AsIs));
        plan.blocks = blocks;
        Ok(plan)
    }

    /// Drops the reference, or takes the higher level, where a sample of the blocks says that it pays.
    fn decide(&mut self, spool: &Spool, blocks: &[PlannedBlock], higher: Option<i32>, give_way: fn()) -> Result<(), CodecError> {
        let step = (blocks.len() / SAMPLES).max(1);
        let samples: Vec<Vec<u8>> =
            blocks.iter().skip(step / 2).step_by(step).map(|block| content(spool, block)).collect::<Result<_, _>>()?;
        let measure = |reference: &[u8], level: i32| -> usize {
            let mut encoder = BlockEncoder::new(reference, level);
            let mut out = Vec::new();
            for sample in &samples {
                give_way();
                if !encoder.encode(sample, sample.len(), &mut out) {
                    out.extend_from_slice(sample);
                }
            }
            out.len()
        };
        let mut bytes = measure(&self.reference, self.level);
        let without = measure(&[], self.level);
        let saved = without.saturating_sub(bytes) * blocks.len() / samples.len().max(1);
        if !BlockEncoder::new(&[], self.level).encode(&self.reference, saved, &mut Vec::new()) {
            self.reference.clear();
            bytes = without;
        }
        if let Some(higher) = higher
            && measure(&self.reference, higher) * 1000 <= bytes * LEVEL_PAYS
        {
            self.level = higher;
        }
        Ok(())
    }
}

/// Values in blocks of so many bytes, if they are not longer themselves.
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
