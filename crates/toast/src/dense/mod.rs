//! Dense storage: values of a column compressed against each other, read one at a time.
//!
//! A *section* holds many values of one column. It has a *reference*, some megabytes of content that many of its values share,
//! and *blocks*, each of one or more similar values, compressed against the reference by zstd. Reading a value needs its block
//! and the reference, which a process decodes once. docs/design/dense.md gives the reasons.
//!
//! Making a section takes three steps:
//! 1. Values arrive in the order of their rows and wait, compressed by lz4 (`Spool`).
//! 2. A plan chooses the reference and which values share a block (`Plan::of`): `chunks` cuts values by their content, so that
//!    equal content gives equal chunks at any position; `reference` takes the content that most values share; `order` puts
//!    similar values side by side.
//! 3. The writer of the section compresses the blocks (`BlockEncoder`).
//!
//! All of it is pure code, and the same values give the same bytes.

use std::time::Duration;

mod candidate;
mod chunks;
mod codec;
mod order;
mod plan;
mod reference;
mod spool;

pub use candidate::Offer;
pub use codec::{BlockEncoder, REFERENCE_BYTES_MIN, decode_block};
pub use plan::{Plan, PlannedBlock};
pub use spool::{Spool, SpoolReader, Treatment};

/// How a section is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseOptions {
    /// Most bytes of the reference, decoded: readers keep it in memory.
    pub reference_bytes_max: usize,
    /// Raw bytes of a block of several values: the amount that reading one of them decodes.
    pub block_bytes: usize,
    /// Chunks that are in memory while a section is planned, some 50 bytes each; of more, a sample is.
    pub chunks_max: usize,
    /// How much time is spent.
    pub effort: Effort,
}

impl Default for DenseOptions {
    fn default() -> DenseOptions {
        DenseOptions {
            reference_bytes_max: REFERENCE_BYTES_MOST,
            block_bytes: 256 << 10,
            chunks_max: 2 << 20,
            effort: Effort::High,
        }
    }
}

/// Most bytes of a reference, with however much memory.
const REFERENCE_BYTES_MOST: usize = 8 << 20;
/// Bytes of a dense block decoded per microsecond: half the rate of the slowest collection in docs/measurements/dense.md.
const BYTES_A_MICROSECOND: usize = 1280;
/// Bytes of memory per chunk of a section that is planned: a chunk takes an eighth of that.
const MEMORY_A_CHUNK: u64 = 400;
/// A reference's share of the memory: a third of that is the block cache's, and a shard of it holds six references.
const MEMORY_A_REFERENCE: u64 = 3 * 96;
/// A section's values, compressed by lz4 while they wait, take 1/SECTION_SHARE of the memory, and at most SECTION_BYTES_MAX.
const SECTION_SHARE: u64 = 12;
const SECTION_BYTES_MAX: u64 = 64 << 20;

impl DenseOptions {
    /// How an engine with so much memory makes sections whose blocks are read within a budget.
    pub fn within(memory_bytes: u64, read_budget: Duration, effort: Effort) -> DenseOptions {
        let most = DenseOptions::default();
        let budget = (read_budget.as_micros() as usize).clamp(1, 10_000);
        DenseOptions {
            reference_bytes_max: most.reference_bytes_max.min((memory_bytes / MEMORY_A_REFERENCE) as usize),
            block_bytes: budget * BYTES_A_MICROSECOND,
            chunks_max: ((memory_bytes / MEMORY_A_CHUNK) as usize).clamp(1, most.chunks_max),
            effort,
        }
    }

    /// Bytes of a section's values, compressed by lz4 while they wait: the more there are, the more have their like among them.
    pub fn section_bytes(memory_bytes: u64) -> usize {
        (memory_bytes / SECTION_SHARE).clamp(1, SECTION_BYTES_MAX) as usize
    }
}

/// How much time compression may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// About 30 MB/s of raw bytes per core: the space of lz4 or of dead rows is soon freed.
    Normal,
    /// As `Normal`, but a fifth of that where a sample of the blocks becomes smaller by a fiftieth; of short values half of it.
    High,
}

/// The answer to a thread that yields, when it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// No client waits for it.
    Thorough,
    /// Others wait until it has ended: the fast level will do.
    Fast,
}

#[cfg(test)]
mod tests;
