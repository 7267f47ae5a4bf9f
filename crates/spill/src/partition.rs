//! Rows split by the hash of a key: equal keys end up in the same part.

use std::sync::Arc;

use melba_engine::TempFile;
use melba_types::{Batch, Result};

use super::run::{Buffers, RunWriter};
use super::{Resources, Run, block_bytes};

const PARTS_MIN: usize = 8;
const PARTS_MAX: usize = 32;
/// An operator's target has one part per this many bytes.
const TARGET_BYTES_PER_PART: usize = 128 << 10;
/// All write buffers together take this part of the target.
const BUFFERS_SHARE: usize = 4;
const BUFFER_BYTES_MIN: usize = 4 << 10;
/// Parts with fewer rows wait for more: the fixed cost of each column of a part exceeds theirs.
const ROWS_A_PART: usize = 64;
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Parts being written, all into one file.
pub struct Partitions {
    file: Arc<TempFile>,
    parts: Vec<RunWriter>,
    buffers: Buffers,
    seed: u64,
    /// Rows that wait to be split, with the part of each, and about how many bytes they are.
    waiting: Batch,
    waiting_to: Vec<u32>,
    waiting_bytes: usize,
    waiting_bytes_max: usize,
}

impl Partitions {
    /// For an operator with this target. `level` is the number of earlier splits of the rows: each level splits by other bits.
    pub fn new(resources: &Resources, target: usize, level: u32) -> Result<Partitions> {
        let count = (target / TARGET_BYTES_PER_PART).clamp(PARTS_MIN, PARTS_MAX);
        let file = resources.file()?;
        let block = block_bytes(target).min(target / BUFFERS_SHARE / count);
        let parts = (0..count).map(|_| RunWriter::new(&file, block)).collect();
        Ok(Partitions::of(file, parts, Buffers::default(), target, u64::from(level)))
    }

    /// `count` parts, or fewer where their write buffers would be tiny, kept in memory as far as an operator with this target may hold
    /// them.
    pub fn in_memory(resources: &Resources, target: usize, count: usize) -> Result<Partitions> {
        let file = resources.file()?;
        let count = count.min(target / BUFFERS_SHARE / BUFFER_BYTES_MIN).max(PARTS_MIN);
        let block = block_bytes(target).min(target / BUFFERS_SHARE / count);
        let parts = (0..count).map(|_| RunWriter::new(&file, block).keeping(resources.held())).collect();
        Ok(Partitions::of(file, parts, Buffers::keeping(resources.limit(target)), target, 0))
    }

    fn of(file: Arc<TempFile>, parts: Vec<RunWriter>, buffers: Buffers, target: usize, seed: u64) -> Partitions {
        let waiting_bytes_max = (target / BUFFERS_SHARE).min(WAITING_BYTES_MAX);
        let (waiting, waiting_to) = (Batch::default(), Vec::new());
        Partitions { file, parts, buffers, seed, waiting, waiting_to, waiting_bytes: 0, waiting_bytes_max }
    }

    /// The part of a key.
    pub fn part_of(&self, key: &[u8]) -> u32 {
        // The hash's share of all hashes: a remainder would take longer than the hash.
        ((u128::from(hash(key, self.seed)) * self.parts.len() as u128) >> 64) as u32
    }

    /// Adds rows: `to` has the part of each.
    pub fn push(&mut self, batch: Batch, to: &[u32]) -> Result<()> {
        let enough = self.parts.len() * ROWS_A_PART;
        if self.waiting.rows == 0 && batch.rows >= enough {
            return self.split(&batch, to);
        }
        self.waiting_bytes += batch.memory_bytes();
        self.waiting.append(batch);
        self.waiting_to.extend_from_slice(to);
        if self.waiting.rows >= enough || self.waiting_bytes >= self.waiting_bytes_max { self.split_waiting() } else { Ok(()) }
    }

    fn split_waiting(&mut self) -> Result<()> {
        let (batch, to) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.waiting_to));
        self.waiting_bytes = 0;
        self.split(&batch, &to)
    }

    fn split(&mut self, batch: &Batch, to: &[u32]) -> Result<()> {
        // Where the rows of each part end, by their number; then, from there downwards, the rows, which so keep their order.
        let mut ends = vec![0; self.parts.len()];
        to.iter().for_each(|part| ends[*part as usize] += 1);
        let counts = ends.clone();
        for part in 1..ends.len() {
            ends[part] += ends[part - 1];
        }
        let mut rows = vec![0; batch.rows];
        for (row, part) in to.iter().enumerate().rev() {
            let end = &mut ends[*part as usize];
            *end -= 1;
            rows[*end] = row as u32;
        }
        for ((part, start), count) in self.parts.iter_mut().zip(ends).zip(counts) {
            if count > 0 {
                part.push(batch.take(&rows[start..start + count]), &mut self.buffers)?;
            }
        }
        Ok(())
    }

    /// All parts, also the empty ones: sides that are split the same way have matching parts.
    pub fn finish(mut self) -> Result<Vec<Run>> {
        self.split_waiting()?;
        self.parts.into_iter().map(|part| part.finish(&mut self.buffers)).collect()
    }

    /// Bytes written.
    pub fn bytes(&self) -> u64 {
        self.file.bytes()
    }
}

/// A hash that another seed changes altogether (the finalizer of MurmurHash3 over words of 8 bytes).
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let h = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bytes.len() as u64;
    let (words, rest) = bytes.as_chunks();
    let h = words.iter().fold(h, |h, word| mix(h ^ u64::from_le_bytes(*word)));
    // The last eight bytes, of which some were read before: a copy of the rest would be a call for each key.
    let last = match (bytes.last_chunk(), rest) {
        (_, []) => return mix(h),
        (Some(last), _) => u64::from_le_bytes(*last),
        (None, rest) => rest.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte)),
    };
    mix(mix(h ^ last))
}

fn mix(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}
