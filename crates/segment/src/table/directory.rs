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
//! ```
//!
//! Offsets are not stored: blocks lie end to end in the order of the directory.

use melba_types::{Csn, Kind, RowId};

use super::{HIDDEN_COLUMNS, RowGroup, SegmentMeta};
use crate::frame::{FRAME_BYTES, HEADER_BYTES};
use crate::statistics::Statistics;
use melba_types::bytes::{ByteReader, put_bytes, put_varint};

const FORM_NULL: u8 = 0;
const FORM_CONSTANT: u8 = 1;
const FORM_BLOCKS: u8 = 2;
const FORM_DICTIONARY: u8 = 3;
const FORM_SYMBOLS: u8 = 4;
/// Most columns that are believed: PostgreSQL's limit is 1,600.
const COLUMNS_MAX: usize = 1 << 16;

/// One column of one row group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chunk {
    pub statistics: Statistics,
    pub form: Form,
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
        }
        self
    }
}

/// Everything the footer holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableDirectory {
    pub kinds: Vec<Kind>,
    /// Without `stored_bytes` and `footer_crc`, which the file itself tells.
    pub meta: SegmentMeta,
    pub groups: Vec<Group>,
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
        out
    }

    /// Parses a footer whose blocks must end at `blocks_end`.
    pub fn decode(bytes: &[u8], blocks_end: u64) -> Option<TableDirectory> {
        let mut r = ByteReader::new(bytes);
        let columns = r.length().filter(|&n| n <= COLUMNS_MAX)?;
        let kinds = r.take(columns)?.iter().map(|&kind| Kind::from_u8(kind)).collect::<Option<Vec<_>>>()?;
        let meta = SegmentMeta {
            rows: r.varint()?,
            tombstones: r.varint()?,
            raw_bytes: r.varint()?,
            row_id_min: RowId(r.varint()?),
            row_id_max: RowId(r.varint()?),
            csn_min: Csn(r.varint()?),
            csn_max: Csn(r.varint()?),
            stored_bytes: 0,
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
            let chunks = (0..columns + HIDDEN_COLUMNS).map(|_| cursor.chunk(&mut r, summary.rows)).collect::<Option<_>>()?;
            groups.push(Group { summary, chunks });
        }
        (r.remaining() == 0 && cursor.offset == blocks_end).then_some(TableDirectory { kinds, meta, groups })
    }
}

fn encode_chunk(chunk: &Chunk, out: &mut Vec<u8>) {
    chunk.statistics.encode(out);
    let (tag, blocks) = match &chunk.form {
        Form::Null => return out.push(FORM_NULL),
        Form::Constant(value) => {
            out.push(FORM_CONSTANT);
            return put_bytes(value, out);
        }
        Form::Blocks(blocks) => (FORM_BLOCKS, blocks),
        Form::Dictionary(blocks) => (FORM_DICTIONARY, blocks),
        Form::Symbols(blocks) => (FORM_SYMBOLS, blocks),
    };
    out.extend_from_slice(&[tag, blocks.shift]);
    put_varint(blocks.ends.len() as u64, out);
    let mut before = 0;
    for &end in &blocks.ends {
        put_varint(end - before, out);
        before = end;
    }
}

/// Where the next chunk's blocks begin.
struct Cursor {
    offset: u64,
    block: u32,
    end: u64,
}

impl Cursor {
    fn chunk(&mut self, r: &mut ByteReader<'_>, rows: usize) -> Option<Chunk> {
        let statistics = Statistics::decode(r)?;
        let form = match r.u8()? {
            FORM_NULL => Form::Null,
            FORM_CONSTANT => Form::Constant(r.bytes()?.into()),
            FORM_BLOCKS => Form::Blocks(self.blocks(r, rows, 0)?),
            FORM_DICTIONARY => Form::Dictionary(self.blocks(r, rows, 1)?),
            FORM_SYMBOLS => Form::Symbols(self.blocks(r, rows, 1)?),
            _ => return None,
        };
        Some(Chunk { statistics, form })
    }

    fn blocks(&mut self, r: &mut ByteReader<'_>, rows: usize, extra: usize) -> Option<Blocks> {
        let shift = r.u8().filter(|&shift| shift < 32)?;
        let count = r.length()?;
        if count != rows.div_ceil(1 << shift) + extra {
            return None;
        }
        let (first, offset) = (self.block, self.offset);
        let mut ends = Vec::new();
        for _ in 0..count {
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
