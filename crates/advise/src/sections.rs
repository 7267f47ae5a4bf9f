//! The size of a column's dense sections: planned as the engine plans them, over all of their values, and compressed in part.
//!
//! A dense section is larger or smaller than a part of it suggests: later values share more with earlier ones, a reference holds
//! a smaller share of the shared content, and both differ from collection to collection. So the size is not extrapolated from a
//! part. Values come in their order, as many as a section takes; its reference and its blocks are chosen by `melba_toast::dense`;
//! then all blocks are compressed by a fast level, some of them by the section's level, too, and the ratio of both is applied to
//! the rest.

use std::time::Duration;

use melba_toast::dense::{BlockEncoder, DenseOptions, Effort, Pace, Plan, PlannedBlock, Spool, Treatment};
use melba_toast::frame::FRAME_BYTES;
use melba_toast::is_incompressible;

use crate::Result;

/// Longer values lie out of line, in frames.
const ROW_BYTES_MAX: usize = 2000;
/// Blocks of a section that are compressed by its own level.
const BLOCKS: usize = 64;
/// The level that all are compressed by.
const LEVEL_FAST: i32 = 3;
/// The level for values that are stored as they come, per block, and the size of a block beside its stream.
const LEVEL_AS_IS: i32 = 3;
const BLOCK_HEADER_BYTES: f64 = 12.0;
/// The level for a reference.
const LEVEL_REFERENCE: i32 = 17;

/// How a server makes sections.
#[derive(Clone, Copy, Debug)]
pub struct SectionRules {
    pub options: DenseOptions,
    /// Bytes of values, compressed by lz4, that fill a section.
    pub section_bytes: usize,
}

impl SectionRules {
    pub fn of(memory_bytes: u64, budget: f64) -> SectionRules {
        let budget = Duration::from_secs_f64(budget / 1e3);
        let options = DenseOptions::within(memory_bytes, budget, Effort::High);
        SectionRules { options, section_bytes: DenseOptions::section_bytes(memory_bytes) }
    }
}

/// The sizes of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    pub raw_bytes: f64,
    /// Compressed by lz4, a few at a time.
    pub lz4_bytes: f64,
    pub dense_bytes: f64,
    pub sections: f64,
}

impl Taken {
    pub fn times(self, by: f64) -> Taken {
        Taken {
            raw_bytes: self.raw_bytes * by,
            lz4_bytes: self.lz4_bytes * by,
            dense_bytes: self.dense_bytes * by,
            sections: self.sections * by,
        }
    }
}

/// The sections of a column, whose values come in their order.
pub struct Sections {
    rules: SectionRules,
    frames: Filling,
    rows: Filling,
}

impl Sections {
    pub fn new(rules: SectionRules) -> Sections {
        Sections { rules, frames: Filling::default(), rows: Filling::default() }
    }

    pub fn take(&mut self, value: &[u8]) -> Result<()> {
        if value.len() <= ROW_BYTES_MAX {
            return self.rows.take(value, &self.rules);
        }
        value.chunks(FRAME_BYTES).try_for_each(|frame| self.frames.take(frame, &self.rules))
    }

    /// The next values are no neighbours of the last. A section that was begun counts if it is large enough to be representative.
    pub fn leap(&mut self) -> Result<()> {
        self.frames.leap(&self.rules)?;
        self.rows.leap(&self.rules)
    }

    /// All values have come.
    pub fn finish(&mut self) -> Result<()> {
        self.frames.finish(&self.rules)?;
        self.rows.finish(&self.rules)
    }

    /// The size of all values so far, those of uncounted sections in proportion.
    pub fn taken(&self) -> Taken {
        let (a, b) = (self.frames.in_proportion(), self.rows.in_proportion());
        Taken {
            raw_bytes: a.raw_bytes + b.raw_bytes,
            lz4_bytes: a.lz4_bytes + b.lz4_bytes,
            dense_bytes: a.dense_bytes + b.dense_bytes,
            sections: a.sections + b.sections,
        }
    }
}

/// A section that is being filled, and those that are full.
#[derive(Default)]
struct Filling {
    spool: Spool,
    full: Taken,
    /// Raw bytes of all values, and their size by lz4.
    raw_bytes: f64,
    lz4_bytes: f64,
}

impl Filling {
    fn take(&mut self, value: &[u8], rules: &SectionRules) -> Result<()> {
        self.spool.push(value, if is_incompressible(value) { Treatment::AsIs } else { Treatment::Dense });
        if self.spool.memory_bytes() >= rules.section_bytes { self.finish(rules) } else { Ok(()) }
    }

    fn leap(&mut self, rules: &SectionRules) -> Result<()> {
        let says_much = self.full.sections == 0.0 || self.spool.memory_bytes() * 2 >= rules.section_bytes;
        if says_much {
            return self.finish(rules);
        }
        self.note();
        Ok(())
    }

    fn finish(&mut self, rules: &SectionRules) -> Result<()> {
        if let Some((spool, lz4_bytes)) = self.note() {
            self.full.raw_bytes += spool.raw_bytes() as f64;
            self.full.lz4_bytes += lz4_bytes;
            self.full.dense_bytes += section_bytes(&spool, &rules.options)?;
            self.full.sections += 1.0;
        }
        Ok(())
    }

    /// Empties the section.
    fn note(&mut self) -> Option<(Spool, f64)> {
        let mut spool = std::mem::take(&mut self.spool);
        spool.close();
        let lz4_bytes = spool.memory_bytes() as f64;
        self.raw_bytes += spool.raw_bytes() as f64;
        self.lz4_bytes += lz4_bytes;
        (!spool.is_empty()).then_some((spool, lz4_bytes))
    }

    fn in_proportion(&self) -> Taken {
        let share = if self.full.raw_bytes > 0.0 { self.raw_bytes / self.full.raw_bytes } else { 0.0 };
        Taken {
            raw_bytes: self.raw_bytes,
            lz4_bytes: self.lz4_bytes,
            dense_bytes: self.full.dense_bytes * share,
            sections: self.full.sections * share,
        }
    }
}

/// The size of a section.
fn section_bytes(spool: &Spool, options: &DenseOptions) -> Result<f64> {
    let plan = Plan::of(spool, None, options, || Pace::Thorough).map_err(|e| e.to_string())?;
    let (dense, as_is): (Vec<_>, Vec<_>) = plan.blocks.iter().partition(|block| block.treatment == Treatment::Dense);
    let mut as_is_encoder = BlockEncoder::new(&[], LEVEL_AS_IS);
    let mut bytes = 0.0;
    for block in as_is {
        let content = content(spool, block)?;
        bytes += if is_incompressible(&content) { content.len() } else { compressed(&mut as_is_encoder, &content) } as f64;
    }
    let step = dense.len().div_ceil(BLOCKS).max(1);
    let mut encoder = plan.encoder();
    let mut fast = BlockEncoder::new(&plan.reference, LEVEL_FAST);
    let (mut all_fast, mut some_fast, mut some) = (0, 0, 0);
    for (at, block) in dense.iter().enumerate() {
        let content = content(spool, block)?;
        let is_sampled = at % step == step / 2;
        let by_fast = if step > 1 { compressed(&mut fast, &content) } else { 0 };
        all_fast += by_fast;
        if is_sampled {
            some_fast += by_fast;
            some += compressed(&mut encoder, &content);
        }
    }
    let share = if some_fast > 0 { all_fast as f64 / some_fast as f64 } else { 1.0 };
    let reference = compressed(&mut BlockEncoder::new(&[], LEVEL_REFERENCE), &plan.reference);
    Ok(bytes + some as f64 * share + reference as f64 + plan.blocks.len() as f64 * BLOCK_HEADER_BYTES)
}

/// Bytes of a block.
fn compressed(encoder: &mut BlockEncoder, content: &[u8]) -> usize {
    let mut out = Vec::new();
    if encoder.encode(content, content.len(), &mut out) { out.len() } else { content.len() }
}

fn content(spool: &Spool, block: &PlannedBlock) -> Result<Vec<u8>> {
    let mut reader = spool.reader();
    let mut out = Vec::new();
    for value in &block.values {
        out.extend_from_slice(reader.get(*value as usize).map_err(|e| e.to_string())?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words by a seed; pages of one site share most of them.
    fn page(site: u64, page: u64, words: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for at in 0..words {
            let seed = if at % 10 == 0 { page * 7919 + at } else { site * 104_729 + at };
            let word = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24;
            out.extend_from_slice(format!("<td>{word:x}</td> ").as_bytes());
        }
        out
    }

    fn rules(section_bytes: usize) -> SectionRules {
        SectionRules { section_bytes, ..SectionRules::of(1 << 30, 0.2) }
    }

    fn taken(rules: SectionRules, values: impl Iterator<Item = Vec<u8>>) -> Taken {
        let mut sections = Sections::new(rules);
        values.for_each(|value| sections.take(&value).unwrap());
        sections.finish().unwrap();
        sections.taken()
    }

    #[test]
    fn longer_sections_of_near_copies_are_denser() {
        let pages = || (0..60).map(|at| page(1, at, 1000));
        let (short, long) = (taken(rules(100 << 10), pages()), taken(rules(64 << 20), pages()));
        assert!(short.sections > 4.0 && long.sections == 1.0, "{short:?} {long:?}");
        assert_eq!((short.raw_bytes, long.raw_bytes), (long.raw_bytes, short.raw_bytes));
        assert!(long.dense_bytes * 1.2 < short.dense_bytes, "{short:?} {long:?}");
    }

    #[test]
    fn what_repeats_nothing_takes_what_it_is() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        let taken = taken(rules(64 << 20), (0..4).map(|_| (0..50_000).map(|_| random()).collect()));
        assert!((taken.dense_bytes / taken.raw_bytes - 1.0).abs() < 0.01, "{taken:?}");
    }

    #[test]
    fn a_section_that_is_left_early_counts_in_proportion() {
        let mut sections = Sections::new(rules(100 << 10));
        let mut pages = (0..1000).map(|at| page(1, at, 1000));
        while sections.frames.full.sections < 2.0 {
            sections.take(&pages.next().unwrap()).unwrap();
        }
        let two = sections.taken();
        sections.take(&pages.next().unwrap()).unwrap();
        sections.leap().unwrap();
        let more = sections.taken();
        let ratio = |taken: Taken| taken.raw_bytes / taken.dense_bytes;
        assert!(more.raw_bytes > two.raw_bytes && (ratio(more) - ratio(two)).abs() < 1e-9, "{two:?} {more:?}");
    }
}
