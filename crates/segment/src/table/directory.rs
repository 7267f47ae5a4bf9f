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
//! section column varint | raw bytes varint | references varint (0, 1), block length varint | ordinals: as 2
//!         | blocks varint | (values varint, block length varint) ... | hasty blocks varint
//! ```
//!
//! A file of version 2 ends with the groups; one of version 3 has no mantissas, one of version 4 no filters, one of version 5 no hasty blocks.
//!
//! Offsets are not stored: blocks lie end to end in the order of the directory.

use melba_types::numeric::SMALL_SCALE_MAX;
use melba_types::{Csn, Kind, RowId};

use super::filter::ChunkFilter;
use super::{HIDDEN_COLUMNS, RowGroup, SegmentMeta};
use crate::frame::{FRAME_BYTES, HEADER_BYTES};
use crate::statistics::Statistics;
use melba_types::bytes::{ByteReader, put_bytes, put_varint};

const FORM_NULL: u8 = 0;
const FORM_CONSTANT: u8 = 1;
const FORM_BLOCKS: u8 = 2;
const FORM_DICTIONARY: u8 = 3;
const FORM_SYMBOLS: u8 = 4;
const FORM_DENSE: u8 = 5;
const FORM_MANTISSAS: u8 = 6;
const FORM_FILTERED: u8 = 7;
/// The version that has sections.
const VERSION_WITH_SECTIONS: u32 = 3;
/// The version whose sections say which blocks are hasty.
const VERSION_WITH_HASTE: u32 = 6;
/// Most columns that are believed: PostgreSQL's limit is 1,600.
const COLUMNS_MAX: usize = 1 << 16;

/// One column of one row group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chunk {
    pub statistics: Statistics,
    pub form: Form,
    /// Of numerics that are kept as words: the values are these, divided by 10^scale.
    pub scale: Option<u16>,
    pub filter: Option<ChunkFilter>,
}

impl Chunk {
    /// The least and the greatest word of a chunk of integers, or of numerics that are kept as such.
    pub fn integer_bounds(&self, kind: Kind) -> Option<(i64, i64)> {
        match self.scale {
            None => self.statistics.integer_bounds(kind),
            Some(scale) => self.statistics.mantissa_bounds(scale),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// Every row is null.
    Null,
    /// Every row holds this value, in storage format.
    Constant(Box<[u8]>),
    Blocks(Blocks),
    /// Codes into the first block.
    Dictionary(Blocks),
    /// Strings coded by the symbol table in the first block.
    Symbols(Blocks),
    /// The values are in the column's section.
    Dense,
}

/// The values of a dense column, of all row groups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Section {
    pub column: usize,
    /// Bytes of the values.
    pub raw_bytes: u64,
    /// No block or one.
    pub reference: Blocks,
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
}

/// The blocks of a chunk, end to end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    /// Rows a block: `1 << shift`.
    pub shift: u8,
    /// Number of the first one within the file.
    pub first: u32,
    /// Its offset within the file.
    pub offset: u64,
    /// Where each ends, relative to `offset`.
    pub ends: Vec<u64>,
}

impl Blocks {
    /// Offset and length of the `index`-th block.
    pub fn extent(&self, index: usize) -> (u64, usize) {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        (self.offset + start, (self.ends[index] - start) as usize)
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
            if let Form::Blocks(b) | Form::Dictionary(b) | Form::Symbols(b) = &mut chunk.form {
                b.first += blocks;
                b.offset += offset;
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
    chunks.all(|(column, chunk)| chunk.form != Form::Dense || has_section(column))
}

fn encode_section(section: &Section, out: &mut Vec<u8>) {
    put_varint(section.column as u64, out);
    put_varint(section.raw_bytes, out);
    encode_lengths(&section.reference, out, |_, _| {});
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

/// Whether values of `kind` are kept as 64-bit words; the others are byte strings in storage format.
pub(crate) fn is_word(kind: Kind) -> bool {
    matches!(kind, Kind::Bool | Kind::Int2 | Kind::Int4 | Kind::Int8 | Kind::Float4 | Kind::Float8 | Kind::Oid | Kind::Char)
}

pub(crate) fn encode_chunk(chunk: &Chunk, out: &mut Vec<u8>) {
    chunk.statistics.encode(out);
    if let Some(scale) = chunk.scale {
        out.extend_from_slice(&[FORM_MANTISSAS, scale as u8]);
    }
    if chunk.filter.is_some() {
        out.push(FORM_FILTERED);
    }
    let (tag, blocks) = match &chunk.form {
        Form::Null => return out.push(FORM_NULL),
        Form::Dense => return out.push(FORM_DENSE),
        Form::Constant(value) => {
            out.push(FORM_CONSTANT);
            return put_bytes(value, out);
        }
        Form::Blocks(blocks) => (FORM_BLOCKS, blocks),
        Form::Dictionary(blocks) => (FORM_DICTIONARY, blocks),
        Form::Symbols(blocks) => (FORM_SYMBOLS, blocks),
    };
    out.extend_from_slice(&[tag, blocks.shift]);
    encode_lengths(blocks, out, |_, _| {});
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
        let mut form = r.u8()?;
        let mut scale = None;
        if form == FORM_MANTISSAS && kind == Some(Kind::Numeric) {
            scale = Some(u16::from(r.u8()?)).filter(|scale| *scale <= SMALL_SCALE_MAX);
            form = r.u8().filter(|form| scale.is_some() && [FORM_CONSTANT, FORM_BLOCKS, FORM_DICTIONARY].contains(form))?;
        }
        let is_filtered = form == FORM_FILTERED && kind.is_some();
        if is_filtered {
            form = r.u8().filter(|form| [FORM_BLOCKS, FORM_SYMBOLS].contains(form))?;
        }
        let form = match form {
            FORM_NULL => Form::Null,
            FORM_CONSTANT => Form::Constant(r.bytes()?.into()),
            FORM_BLOCKS => Form::Blocks(self.blocks(r, rows, 0)?),
            FORM_DICTIONARY => Form::Dictionary(self.blocks(r, rows, 1)?),
            FORM_SYMBOLS => Form::Symbols(self.blocks(r, rows, 1)?),
            FORM_DENSE => Form::Dense,
            _ => return None,
        };
        let filter = if is_filtered { Some(self.filter(r)?) } else { None };
        Some(Chunk { statistics, form, scale, filter })
    }

    fn filter(&mut self, r: &mut ByteReader<'_>) -> Option<ChunkFilter> {
        let blocks = r.varint().and_then(|blocks| u32::try_from(blocks).ok()).filter(|blocks| *blocks > 0)?;
        let filter = ChunkFilter { blocks, first: self.block, offset: self.offset };
        self.block = self.block.checked_add(u32::try_from(filter.parts()).ok()?)?;
        self.offset += filter.bytes();
        (self.offset <= self.end).then_some(filter)
    }

    fn blocks(&mut self, r: &mut ByteReader<'_>, rows: usize, extra: usize) -> Option<Blocks> {
        let shift = r.u8().filter(|&shift| shift < 32)?;
        let count = r.length()?;
        if count != rows.div_ceil(1 << shift) + extra {
            return None;
        }
        self.lengths(r, shift, count, |_| Some(()))
    }

    /// The values of a column of `rows` rows.
    fn section(&mut self, r: &mut ByteReader<'_>, rows: usize, version: u32) -> Option<Section> {
        let (column, raw_bytes) = (r.length()?, r.varint()?);
        let references = r.length().filter(|count| *count <= 1)?;
        let reference = self.lengths(r, 0, references, |_| Some(()))?;
        let ordinals = self.blocks(r, rows, 0)?;
        let mut firsts = vec![0u32];
        let count = r.length()?;
        let blocks = self.lengths(r, 0, count, |r| {
            let values = u32::try_from(r.varint()?).ok().filter(|values| *values > 0)?;
            firsts.push(firsts.last()?.checked_add(values)?);
            Some(())
        })?;
        let hasty_blocks = if version >= VERSION_WITH_HASTE { r.length().filter(|hasty| *hasty <= count)? } else { 0 };
        Some(Section { column, raw_bytes, reference, ordinals, blocks, firsts, hasty_blocks })
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
