//! The footer of a table segment: kinds, row groups, and for each column chunk its statistics and blocks.
//!
//! ```text
//! columns varint | kind u8 ... | rows, tombstones, raw bytes, row id min, max, csn min, max varint | groups varint | group ...
//! group   rows varint | tombstones varint | row id min, max varint | csn min, max varint | unique u8 | chunk ... (columns, then hidden)
//! chunk   statistics | 0 null
//!                    | 1 constant bytes
//!                    | 2 blocks: shift u8 | blocks varint | block length varint ...
//!                    | 3 dictionary: as 2, the first block being the dictionary
//!                    | 4 symbols: as 2, the first block being the symbol table
//!                    | 5 dense: in the column's section
//!                    | 6 mantissas: scale u8, and one of 1 (a word), 2 or 3 (blocks of words)
//!                    | 7 filtered: one of 2 or 4, then the filter's blocks varint
//! waiting bytes varint | dense columns varint | sections varint | section ...
//! section column varint | raw bytes varint | references varint (0, 1), name 16, block length varint | ordinals: as 2
//!         | blocks varint | (values varint, block length varint) ... | hasty blocks varint
//! ```
//!
//! A file of version 2 ends with the groups; one of version 3 has no mantissas, one of version 4 no filters, one of version 5 no hasty blocks,
//! one of version 6 no names of references.
//!
//! Offsets are not stored: blocks lie end to end in the order of the directory.

use melba_types::numeric::SMALL_SCALE_MAX;
use melba_types::{Csn, Kind, RowId};

use super::filter::ChunkFilter;
use super::{HIDDEN_COLUMNS, RowGroup, SegmentMeta};
use crate::block::{REFERENCE_NAME_BYTES, ReferenceName};
use crate::encoding::{self, ChunkEncoding, ChunkEntry, EntryKind, Section};
use crate::file::Blocks;
use crate::frame::{FRAME_BYTES, HEADER_BYTES};
use crate::statistics::Statistics;
use melba_types::bytes::{ByteReader, put_bytes, put_varint};

/// Marks before the tag of an encoding (`ChunkEncoding::tag`).
const MARK_MANTISSAS: u8 = 6;
const MARK_FILTERED: u8 = 7;
/// The version that has sections.
const VERSION_WITH_SECTIONS: u32 = 3;
/// The version whose sections say which blocks are hasty.
const VERSION_WITH_HASTE: u32 = 6;
/// The version whose references have names.
const VERSION_WITH_NAMES: u32 = 7;
/// Most columns that are believed: PostgreSQL's limit is 1,600.
const COLUMNS_MAX: usize = 1 << 16;

/// One column of one row group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chunk {
    pub statistics: Statistics,
    pub encoding: &'static dyn ChunkEncoding,
    pub entry: ChunkEntry,
    /// Of numerics that are kept as words: the values are these, divided by 10^scale.
    pub scale: Option<u16>,
    pub filter: Option<ChunkFilter>,
}

impl Chunk {
    /// The blocks of the chunk's own, without the filter's.
    pub fn blocks(&self) -> Option<&Blocks> {
        if let ChunkEntry::Blocks(blocks) = &self.entry { Some(blocks) } else { None }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub summary: RowGroup,
    pub chunks: Vec<Chunk>,
}

impl Group {
    /// The group with its blocks where they come after `blocks` others and at `offset`, which were counted from nothing.
    pub fn moved(mut self, blocks: u32, offset: u64) -> Group {
        for chunk in &mut self.chunks {
            if let ChunkEntry::Blocks(own) = &mut chunk.entry {
                own.first += blocks;
                own.offset += offset;
            }
            if let Some(filter) = &mut chunk.filter {
                filter.first += blocks;
                filter.offset += offset;
            }
        }
        self
    }
}

/// Everything the footer holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableDirectory {
    pub kinds: Vec<Kind>,
    /// Without `stored_bytes` and `footer_crc`, which the file itself gives.
    pub meta: SegmentMeta,
    pub groups: Vec<Group>,
    pub sections: Vec<Section>,
}

impl TableDirectory {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(self.kinds.len() as u64, &mut out);
        out.extend(self.kinds.iter().map(|&kind| kind as u8));
        let meta = &self.meta;
        let (ids, csns) = ((meta.row_id_min, meta.row_id_max), (meta.csn_min, meta.csn_max));
        for v in [meta.rows, meta.tombstones, meta.raw_bytes, ids.0.0, ids.1.0, csns.0.0, csns.1.0] {
            put_varint(v, &mut out);
        }
        put_varint(self.groups.len() as u64, &mut out);
        for Group { summary: s, chunks } in &self.groups {
            for v in [s.rows as u64, s.tombstones as u64, s.row_id_min.0, s.row_id_max.0, s.csn_min.0, s.csn_max.0] {
                put_varint(v, &mut out);
            }
            out.push(u8::from(s.unique));
            for chunk in chunks {
                encode_chunk(chunk, &mut out);
            }
        }
        put_varint(meta.waiting_bytes, &mut out);
        put_varint(meta.dense_columns, &mut out);
        put_varint(self.sections.len() as u64, &mut out);
        self.sections.iter().for_each(|section| encode_section(section, &mut out));
        out
    }

    /// Parses a footer of a format version, whose blocks must end at `blocks_end`.
    pub fn decode(bytes: &[u8], version: u32, blocks_end: u64) -> Option<TableDirectory> {
        let mut r = ByteReader::new(bytes);
        let columns = r.length().filter(|&n| n <= COLUMNS_MAX)?;
        let kinds = r.take(columns)?.iter().map(|&kind| Kind::from_u8(kind)).collect::<Option<Vec<_>>>()?;
        let mut meta = SegmentMeta {
            rows: r.varint()?,
            tombstones: r.varint()?,
            raw_bytes: r.varint()?,
            row_id_min: RowId(r.varint()?),
            row_id_max: RowId(r.varint()?),
            csn_min: Csn(r.varint()?),
            csn_max: Csn(r.varint()?),
            stored_bytes: 0,
            waiting_bytes: 0,
            dense_columns: 0,
            dense_bytes: 0,
            hasty_bytes: 0,
            footer_crc: 0,
        };
        let count = r.length()?;
        let mut cursor = Cursor { offset: HEADER_BYTES as u64, block: 0, end: blocks_end };
        let mut groups = Vec::new();
        for _ in 0..count {
            let summary = RowGroup {
                rows: r.length().filter(|&rows| rows > 0 && rows <= u32::MAX as usize)?,
                tombstones: r.length()?,
                row_id_min: RowId(r.varint()?),
                row_id_max: RowId(r.varint()?),
                csn_min: Csn(r.varint()?),
                csn_max: Csn(r.varint()?),
                unique: r.u8()? != 0,
            };
            let kind = |at| kinds.get(at).copied();
            let chunks =
                (0..columns + HIDDEN_COLUMNS).map(|at| cursor.chunk(&mut r, kind(at), summary.rows)).collect::<Option<_>>()?;
            groups.push(Group { summary, chunks });
        }
        let mut sections = Vec::new();
        if version >= VERSION_WITH_SECTIONS {
            meta.waiting_bytes = r.varint()?;
            meta.dense_columns = r.varint()?;
            let rows = groups.iter().map(|group: &Group| group.summary.rows).sum();
            for _ in 0..r.length()? {
                sections.push(cursor.section(&mut r, rows, version)?);
            }
            meta.dense_bytes = sections.iter().map(|section| section.raw_bytes).sum();
            meta.hasty_bytes = sections.iter().map(Section::hasty_bytes).sum();
        }
        let is_whole = r.remaining() == 0 && cursor.offset == blocks_end && dense_chunks_have_sections(&groups, &sections);
        is_whole.then_some(TableDirectory { kinds, meta, groups, sections })
    }
}

fn dense_chunks_have_sections(groups: &[Group], sections: &[Section]) -> bool {
    let has_section = |column: usize| sections.iter().any(|section| section.column == column);
    let mut chunks = groups.iter().flat_map(|group| group.chunks.iter().enumerate());
    chunks.all(|(column, chunk)| chunk.entry != ChunkEntry::Section || has_section(column))
}

fn encode_section(section: &Section, out: &mut Vec<u8>) {
    put_varint(section.column as u64, out);
    put_varint(section.raw_bytes, out);
    encode_lengths(&section.reference, out, |_, out| out.extend(section.reference_name.iter().flat_map(|name| name.0)));
    out.push(section.ordinals.shift);
    encode_lengths(&section.ordinals, out, |_, _| {});
    let values = |block: usize| u64::from(section.firsts[block + 1] - section.firsts[block]);
    encode_lengths(&section.blocks, out, |block, out| put_varint(values(block), out));
    put_varint(section.hasty_blocks as u64, out);
}

/// Appends the number of blocks, and the length of each, behind the bytes that `before` appends for it.
fn encode_lengths(blocks: &Blocks, out: &mut Vec<u8>, before: impl Fn(usize, &mut Vec<u8>)) {
    put_varint(blocks.ends.len() as u64, out);
    for block in 0..blocks.ends.len() {
        before(block, out);
        put_varint(blocks.extent(block).1 as u64, out);
    }
}

pub(crate) fn encode_chunk(chunk: &Chunk, out: &mut Vec<u8>) {
    chunk.statistics.encode(out);
    if let Some(scale) = chunk.scale {
        out.extend_from_slice(&[MARK_MANTISSAS, scale as u8]);
    }
    if chunk.filter.is_some() {
        out.push(MARK_FILTERED);
    }
    out.push(chunk.encoding.tag());
    match &chunk.entry {
        ChunkEntry::Nothing | ChunkEntry::Section => {}
        ChunkEntry::Bytes(bytes) => put_bytes(bytes, out),
        ChunkEntry::Blocks(blocks) => {
            out.push(blocks.shift);
            encode_lengths(blocks, out, |_, _| {});
        }
    }
    if let Some(filter) = &chunk.filter {
        put_varint(filter.blocks.into(), out);
    }
}

/// Where the next chunk's blocks begin.
struct Cursor {
    offset: u64,
    block: u32,
    end: u64,
}

impl Cursor {
    /// A chunk of a user's column of some kind, or of a hidden one.
    fn chunk(&mut self, r: &mut ByteReader<'_>, kind: Option<Kind>, rows: usize) -> Option<Chunk> {
        let statistics = Statistics::decode(r)?;
        let mut tag = r.u8()?;
        let mut scale = None;
        if tag == MARK_MANTISSAS && kind == Some(Kind::Numeric) {
            scale = Some(r.u8().map(u16::from).filter(|scale| *scale <= SMALL_SCALE_MAX)?);
            tag = r.u8()?;
        }
        let is_filtered = tag == MARK_FILTERED && kind.is_some() && scale.is_none();
        if is_filtered {
            tag = r.u8()?;
        }
        let encoding = encoding::with_tag(tag)?;
        if is_filtered && !encoding.suits_filter() {
            return None;
        }
        let entry = match encoding.entry_kind() {
            EntryKind::Nothing => ChunkEntry::Nothing,
            EntryKind::Bytes => ChunkEntry::Bytes(r.bytes()?.into()),
            EntryKind::Blocks { heads } => ChunkEntry::Blocks(self.blocks(r, rows, heads)?),
            EntryKind::Section => ChunkEntry::Section,
        };
        let filter = if is_filtered { Some(self.filter(r)?) } else { None };
        Some(Chunk { statistics, encoding, entry, scale, filter })
    }

    fn filter(&mut self, r: &mut ByteReader<'_>) -> Option<ChunkFilter> {
        let blocks = r.varint().and_then(|blocks| u32::try_from(blocks).ok()).filter(|blocks| *blocks > 0)?;
        let filter = ChunkFilter { blocks, first: self.block, offset: self.offset };
        self.block = self.block.checked_add(u32::try_from(filter.parts()).ok()?)?;
        self.offset += filter.bytes();
        (self.offset <= self.end).then_some(filter)
    }

    fn blocks(&mut self, r: &mut ByteReader<'_>, rows: usize, heads: usize) -> Option<Blocks> {
        let shift = r.u8().filter(|&shift| shift < 32)?;
        let count = r.length()?;
        if count != rows.div_ceil(1 << shift) + heads {
            return None;
        }
        self.lengths(r, shift, count, |_| Some(()))
    }

    /// The values of a column of `rows` rows.
    fn section(&mut self, r: &mut ByteReader<'_>, rows: usize, version: u32) -> Option<Section> {
        let (column, raw_bytes) = (r.length()?, r.varint()?);
        let references = r.length().filter(|count| *count <= 1)?;
        let mut reference_name = None;
        let reference = self.lengths(r, 0, references, |r| {
            if version >= VERSION_WITH_NAMES {
                reference_name = Some(ReferenceName(*r.take(REFERENCE_NAME_BYTES)?.first_chunk()?));
            }
            Some(())
        })?;
        let ordinals = self.blocks(r, rows, 0)?;
        let mut firsts = vec![0u32];
        let count = r.length()?;
        let blocks = self.lengths(r, 0, count, |r| {
            let values = u32::try_from(r.varint()?).ok().filter(|values| *values > 0)?;
            firsts.push(firsts.last()?.checked_add(values)?);
            Some(())
        })?;
        let hasty_blocks = if version >= VERSION_WITH_HASTE { r.length().filter(|hasty| *hasty <= count)? } else { 0 };
        Some(Section { column, raw_bytes, reference, reference_name, ordinals, blocks, firsts, hasty_blocks })
    }

    /// `count` blocks; `before` reads the bytes before the length of each.
    fn lengths(
        &mut self,
        r: &mut ByteReader<'_>,
        shift: u8,
        count: usize,
        mut before: impl FnMut(&mut ByteReader<'_>) -> Option<()>,
    ) -> Option<Blocks> {
        let (first, offset) = (self.block, self.offset);
        let mut ends = Vec::new();
        for _ in 0..count {
            before(r)?;
            let length = r.varint().filter(|&length| length > FRAME_BYTES as u64 && length <= u64::from(u32::MAX))?;
            self.offset += length;
            if self.offset > self.end {
                return None;
            }
            ends.push(self.offset - offset);
        }
        self.block = self.block.checked_add(u32::try_from(count).ok()?)?;
        Some(Blocks { shift, first, offset, ends })
    }
}
