//! Writing the dense section of a column: all of its values in a segment, in blocks of similar ones that share a reference
//! (`melba_toast::dense`, docs/design/dense.md). Values wait in memory until the segment ends.

use std::sync::Arc;

use melba_toast::dense::{DenseOptions, Effort, Pace, Plan, PlannedBlock, Spool, Treatment};
use melba_toast::frame::{Density, densify, density};
use melba_toast::is_incompressible;
use melba_types::{Bitmap, ByteStrings, Kind};

use super::chunk::ChunkBuffer;
use super::reuse::Reused;
use super::section::StoredSection;
use super::{TableOptions, TableSegmentReader};
use crate::block::ReferenceName;
use crate::encoding::{BlockList, Section, is_word};
use crate::error::{BlockName, Result};
use crate::file::Blocks;
use crate::frame::{Codec, FrameWriter};
use crate::layout::{strings, words};

/// Raw bytes of blocks of ordinals.
const ORDINAL_BLOCK_BYTES: usize = 8 << 10;
/// Values shorter than this on average are not made dense.
const VALUE_BYTES_MIN: usize = 64;
/// The codec of blocks that are stored without a reference: pointers to frames, for example.
const AS_IS_CODEC: Codec = Codec::Zstd(3);
/// The codec of the reference itself: a window of 8 MB.
const REFERENCE_CODEC: Codec = Codec::Zstd(17);
/// The same when the space is to come back soon.
const HASTY_REFERENCE_CODEC: Codec = Codec::Zstd(9);

/// The values of a column that is being written.
pub(super) struct DenseColumn {
    column: usize,
    spool: Spool,
    /// Rows that are not null: each has a value in the spool.
    validity: Bitmap,
    /// Values that are not in stored form.
    plain: Bitmap,
    scratch: Vec<u8>,
}

impl DenseColumn {
    pub fn new(column: usize) -> DenseColumn {
        let (validity, plain) = (Bitmap::default(), Bitmap::default());
        DenseColumn { column, spool: Spool::default(), validity, plain, scratch: Vec::new() }
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.spool.memory_bytes()
    }

    /// Whether values other than frames are long enough: shorter ones are left to encodings that read them alone.
    pub fn suits(values: &ByteStrings) -> bool {
        values.bytes.len() >= values.len() * VALUE_BYTES_MIN
    }

    /// Takes a row group's values; those that are not `plain` are in stored form.
    pub fn append(&mut self, kind: Kind, values: &ByteStrings, validity: Option<&Bitmap>, plain: Option<&Bitmap>) {
        for row in 0..values.len() {
            let valid = validity.is_none_or(|validity| validity.get(row));
            self.validity.push(valid);
            if !valid {
                continue;
            }
            let is_plain = plain.is_none_or(|plain| plain.get(row));
            self.plain.push(is_plain);
            match (kind, is_plain) {
                (Kind::Frame, _) => self.append_frame(values.get(row)),
                (_, true) => self.spool.push(values.get(row), Treatment::Dense),
                (_, false) => self.spool.push(values.get(row), Treatment::AsIs),
            }
        }
    }

    fn append_frame(&mut self, frame: &[u8]) {
        match density(frame) {
            Density::Dense => self.spool.push(frame, Treatment::Dense),
            Density::Waiting => {
                self.scratch.clear();
                match densify(frame, &mut self.scratch) {
                    Ok(()) => self.spool.push(&self.scratch, Treatment::Dense),
                    // A reader of the value gets the error.
                    Err(_) => self.spool.push(frame, Treatment::AsIs),
                }
            }
            Density::Foreign => self.spool.push(frame, Treatment::AsIs),
        }
    }

    /// Writes the section; blocks of the same column of an input may be reused in it.
    fn finish(mut self, frames: &mut FrameWriter, how: &How) -> Result<Section> {
        self.spool.close();
        let effort = how.options.effort;
        let stored = |segment| StoredSection::of(segment, self.column);
        let mut reused = match how.source.as_ref().and_then(stored) {
            Some(input) => Reused::of(input, &self.spool, &self.plain, effort, how.give_way)?,
            None => None,
        };
        let neighbour = how.neighbour.as_ref().and_then(|neighbour| stored(&neighbour.segment));
        let plan = match &mut reused {
            Some(reused) => {
                let (again, reference) = (reused.take_again(), reused.input().reference()?);
                let is_left = |value| !reused.has(value);
                Plan::against(&self.spool, is_left, reference, again, &how.options, how.give_way)
            }
            None => {
                let is_crowded = how.neighbour.as_ref().is_some_and(|neighbour| neighbour.is_crowded);
                let offer = neighbour.as_ref().map(|section| section.offer(is_crowded)).transpose()?.flatten();
                Plan::of(&self.spool, offer, &how.options, how.give_way)
            }
        };
        let plan = plan.map_err(|_| frames.corrupt(BlockName::Footer, "values changed in memory"))?;
        let origin = reused.as_ref().map(Reused::input).or(neighbour.as_ref().filter(|_| plan.is_offered));
        let reference = write_reference(&plan.reference, origin, effort, frames)?;
        let reference_name = (!plan.reference.is_empty()).then(|| ReferenceName::of(&plan.reference));
        let ordinals = self.write_ordinals(reused.as_ref(), &plan, frames)?;
        let mut list = BlockList::new(frames.buffer());
        let mut firsts = vec![0];
        let mut thorough = reused.as_ref().map_or(0, Reused::thorough_blocks);
        let are_all_thorough = reused.as_ref().is_none_or(|reused| reused.blocks().len() == thorough);
        if let Some(reused) = &reused {
            for (at, block) in reused.blocks().iter().enumerate() {
                reused.write_block(at, frames, &mut list)?;
                firsts.push(firsts[firsts.len() - 1] + block.values.len() as u32);
            }
        }
        let written = self.write_blocks(plan, frames, how.give_way, &mut list, &mut firsts)?;
        if are_all_thorough {
            thorough += written;
        }
        let hasty_blocks = firsts.len() - 1 - thorough;
        Ok(Section {
            column: self.column,
            raw_bytes: self.spool.raw_bytes(),
            reference,
            reference_name,
            ordinals,
            blocks: list.finish(0),
            firsts,
            hasty_blocks,
        })
    }

    /// Writes the blocks of a plan; returns how many come before the first hasty one.
    fn write_blocks(
        &self,
        mut plan: Plan,
        frames: &mut FrameWriter,
        give_way: fn() -> Pace,
        list: &mut BlockList,
        firsts: &mut Vec<u32>,
    ) -> Result<usize> {
        let mut encoder = plan.encoder();
        let mut thorough = 0;
        for at in 0..plan.blocks.len() {
            if give_way() == Pace::Fast && plan.hasten() {
                encoder = plan.encoder();
            }
            let block = &plan.blocks[at];
            // Behind a hasty one all others count as such.
            thorough += usize::from(thorough == at && !(plan.is_hasty && block.treatment == Treatment::Dense));
            let content = self.content(block, frames)?;
            let length = match block.treatment {
                Treatment::Dense => frames.dense_block(&content, &mut encoder)?,
                Treatment::AsIs if is_incompressible(&content) => frames.plain_block(&[&content])?,
                Treatment::AsIs => frames.block(&content, AS_IS_CODEC)?,
            };
            list.note(length);
            firsts.push(firsts[firsts.len() - 1] + block.values.len() as u32);
        }
        Ok(thorough)
    }

    /// Writes for every row which of the section's values is its own.
    fn write_ordinals(&self, reused: Option<&Reused>, plan: &Plan, frames: &mut FrameWriter) -> Result<Blocks> {
        let mut of_value = vec![0; self.spool.len()];
        let first = reused.iter().flat_map(|reused| reused.blocks()).flat_map(|block| block.values.iter().copied());
        let then = plan.blocks.iter().flat_map(|block| block.values.iter().copied().map(Some));
        for (ordinal, value) in first.chain(then).enumerate() {
            if let Some(value) = value {
                of_value[value as usize] = ordinal as i64;
            }
        }
        let mut value = 0;
        let mut previous = 0;
        let rows: Vec<i64> = (0..self.validity.len())
            .map(|row| {
                if self.validity.get(row) {
                    previous = of_value[value];
                    value += 1;
                }
                previous
            })
            .collect();
        let shift = (ORDINAL_BLOCK_BYTES * 8 / 24).ilog2() as u8;
        let mut list = BlockList::new(frames.buffer());
        let mut content = Vec::new();
        for (at, block) in rows.chunks(1 << shift).enumerate() {
            content.clear();
            words::encode(block, Some(&self.validity), at << shift, &mut content);
            list.note(frames.block(&content, Codec::None)?);
        }
        Ok(list.finish(shift))
    }

    /// The content of a block.
    fn content(&self, block: &PlannedBlock, frames: &FrameWriter) -> Result<Vec<u8>> {
        let mut reader = self.spool.reader();
        let (mut values, mut plain) = (ByteStrings::default(), Bitmap::default());
        for value in &block.values {
            let bytes = reader.get(*value as usize);
            values.push(bytes.map_err(|_| frames.corrupt(BlockName::Footer, "values changed in memory"))?);
            plain.push(self.plain.get(*value as usize));
        }
        let plain = (plain.count_ones() < plain.len()).then_some(&plain);
        let mut content = Vec::new();
        strings::encode(&values, None, plain, 0..values.len(), &mut content);
        Ok(content)
    }
}

/// Writes a section's reference, as the section that it comes from has it, if that will do.
fn write_reference(content: &[u8], origin: Option<&StoredSection>, effort: Effort, frames: &mut FrameWriter) -> Result<Blocks> {
    let mut list = BlockList::new(frames.buffer());
    match origin {
        _ if content.is_empty() => {}
        Some(origin) if origin.has_reference_for(effort) => origin.write_reference(frames, &mut list)?,
        _ if effort == Effort::Normal => list.note(frames.block(content, HASTY_REFERENCE_CODEC)?),
        _ => list.note(frames.block(content, REFERENCE_CODEC)?),
    }
    Ok(list.finish(0))
}

/// How a writer makes values dense.
struct How {
    options: DenseOptions,
    give_way: fn() -> Pace,
    /// An input that most values come from.
    source: Option<Arc<TableSegmentReader>>,
    neighbour: Option<Neighbour>,
}

/// A segment of the table, whose references sections may take.
#[derive(Clone)]
pub struct Neighbour {
    pub segment: Arc<TableSegmentReader>,
    /// The table has more references than memory has room for.
    pub is_crowded: bool,
}

/// The columns that a writer makes dense, and how.
pub(super) struct DenseColumns {
    how: How,
    columns: Vec<DenseColumn>,
    /// Columns of which nothing is known yet.
    undecided: Vec<usize>,
}

impl DenseColumns {
    /// Of a segment with these options; columns that hold frames are dense, and others declared so.
    pub fn new(kinds: &[Kind], options: &TableOptions) -> Option<DenseColumns> {
        let is_dense =
            |(at, kind): &(usize, &Kind)| **kind == Kind::Frame || is_bit(options.dense_columns, *at) && !is_word(**kind);
        let undecided: Vec<usize> = kinds.iter().enumerate().filter(is_dense).map(|(at, _)| at).collect();
        let (columns, give_way) = (Vec::new(), options.give_way);
        let how = |options| How { options, give_way, source: None, neighbour: None };
        options.dense.filter(|_| !undecided.is_empty()).map(|options| DenseColumns { how: how(options), columns, undecided })
    }

    /// Says from which input most values come.
    pub fn reuse(&mut self, source: Arc<TableSegmentReader>) {
        self.how.source = Some(source);
    }

    /// Names a segment whose references sections may take.
    pub fn share_references(&mut self, neighbour: Neighbour) {
        self.how.neighbour = Some(neighbour);
    }

    /// The section of a column, of which `group` has the first or the next row group; `None`: it is not dense. The first row
    /// group decides for the segment.
    pub fn of(&mut self, column: usize, group: &ChunkBuffer) -> Option<&mut DenseColumn> {
        if let Some(at) = self.undecided.iter().position(|undecided| *undecided == column) {
            self.undecided.remove(at);
            if group.suits_dense() {
                self.columns.push(DenseColumn::new(column));
            }
        }
        self.columns.iter_mut().find(|dense| dense.column == column)
    }

    /// Whether there is a dense column, or one that may become so.
    pub fn may_hold(&self) -> bool {
        !self.columns.is_empty() || !self.undecided.is_empty()
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.columns.iter().map(DenseColumn::memory_bytes).sum()
    }

    /// Writes the sections.
    pub fn finish(self, frames: &mut FrameWriter) -> Result<Vec<Section>> {
        self.columns.into_iter().map(|column| column.finish(frames, &self.how)).collect()
    }
}

/// Whether a column is among those of a set of the first 64.
pub(super) fn is_bit(columns: u64, at: usize) -> bool {
    at < u64::BITS as usize && columns >> at & 1 != 0
}
