//! Chunks of few different values: the first block has them in ascending order, the others codes of them.

use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_types::{Bitmap, ByteStrings, ColumnData};

use super::blocks::ROWS_AN_ENTRY;
use super::read::{ChunkView, HeldRow, Scan};
use super::stages::{ChunkEncoding, ChunkEntry, EntryKind};
use super::values::{Coded, StringsOut, ValueOut, WordsOut, empty_column, push_words};
use super::write::{BlockList, ChunkData, ChunkValues, Trained, Write, WriteOptions};
use crate::block::{Block, BlockKind};
use crate::error::Result;
use crate::frame::Codec;
use crate::layout::{strings, words};

/// Most entries of a dictionary, and their bytes, so that it stays in a CPU's cache while a scan looks values up.
const ENTRIES_MAX: usize = 8192;
const BYTES_MAX: usize = 256 << 10;
/// A dictionary must reduce a chunk to this percentage of its size without one.
const PERCENT_MAX: usize = 70;

#[derive(Debug)]
pub(crate) struct Dictionary;

impl ChunkEncoding for Dictionary {
    fn tag(&self) -> u8 {
        3
    }

    fn entry_kind(&self) -> EntryKind {
        EntryKind::Blocks { heads: 1 }
    }

    fn analyze<'a>(&self, values: &'a ChunkValues<'a>, options: &WriteOptions, _: &mut Trained<'_>) -> Option<Box<Write<'a>>> {
        // The estimate may be a little low; the dictionary itself counts exactly.
        if values.distinct > ENTRIES_MAX {
            return None;
        }
        let mut content = Vec::new();
        let (entries, codes, codec) = match values.data {
            ChunkData::Words(all) => {
                let (entries, codes) = of_words(all)?;
                let bits = entries.len() * 64 + codes.len() * bits_for(entries.len());
                if bits * 100 > values.packed_bits(all) * PERCENT_MAX {
                    return None;
                }
                words::encode(&entries, None, 0, &mut content);
                (entries.len(), codes, Codec::None)
            }
            ChunkData::Strings(all) => {
                let (entries, codes) = of_strings(all)?;
                let bytes = entries.bytes.len() + entries.len() + codes.len() * bits_for(entries.len()) / 8;
                if bytes * 100 > (all.bytes.len() + all.len() / 2) * PERCENT_MAX {
                    return None;
                }
                strings::encode(&entries, None, None, 0..entries.len(), &mut content);
                (entries.len(), codes, options.codec)
            }
            ChunkData::Stored { .. } => return None,
        };
        let (options, validity) = (*options, values.validity);
        Some(Box::new(move |frames, _| {
            let list = BlockList::begin(frames, &content, codec);
            ChunkEntry::Blocks(list.write_words((&codes, validity), bits_for(entries), Codec::None, &options, frames))
        }))
    }

    fn read_words(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut WordsOut<'_>) -> Result<()> {
        if scan.held.reads_ahead {
            let entries = scan.head_words()?;
            out.words.look_up(&entries, &codes_below(scan, entries.len(), ranges, out.validity)?);
            return Ok(());
        }
        let head = scan.head(BlockKind::Words)?;
        let Block::Words(entries) = &*head else { return Err(scan.chunk.damaged("not a dictionary of words")) };
        out.words.pick(entries, &codes_below(scan, entries.rows(), ranges, out.validity)?);
        Ok(())
    }

    fn read_strings(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut StringsOut) -> Result<()> {
        let head = scan.head(BlockKind::Strings)?;
        let Block::Strings(entries) = &*head else { return Err(scan.chunk.damaged("not a dictionary of strings")) };
        let codes = codes_below(scan, entries.rows(), ranges, &mut out.validity)?;
        entries.pick(&codes, &mut out.values);
        if let Some(validity) = &out.validity {
            // Null rows carry the code of some entry.
            out.values = blank_nulls(&out.values, validity);
        }
        Ok(())
    }

    fn read_rows(&self, chunk: &ChunkView<'_>, rows: &[u32], held: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()> {
        let (blocks, kinds) = (chunk.blocks()?, (chunk.value_kind(), BlockKind::Words));
        for row in rows.iter().map(|&row| row as usize) {
            let at = row & blocks.mask();
            let (entries, Block::Words(codes), _) = held.head_and_block(chunk, blocks, row, kinds)? else {
                return Err(chunk.undecodable());
            };
            if !codes.is_valid(at) {
                out.push_null();
                continue;
            }
            let code = codes.get(at) as usize;
            let is_decoded = match entries {
                Block::Words(entries) if code < entries.rows() => {
                    out.push_word(entries.get(code));
                    true
                }
                Block::Strings(entries) if code < entries.rows() => out.push_bytes(entries.get(code)),
                _ => false,
            };
            if !is_decoded {
                return Err(chunk.undecodable());
            }
        }
        Ok(())
    }

    fn word(&self, chunk: &ChunkView<'_>, row: usize) -> Result<i64> {
        let blocks = chunk.blocks()?;
        let codes = chunk.block_of_row(blocks, row, 1, BlockKind::Words)?;
        let entries = chunk.file.block(blocks, 0, BlockKind::Words)?;
        let (Block::Words(codes), Block::Words(entries)) = (&*codes, &*entries) else { return Err(chunk.undecodable()) };
        let code = codes.get(row & blocks.mask()) as usize;
        if code < entries.rows() { Ok(entries.get(code)) } else { Err(chunk.undecodable()) }
    }

    fn codes(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>]) -> Result<Option<Coded>> {
        let chunk = scan.chunk;
        let mut validity = None;
        let mut column = empty_column(chunk.kind, chunk.scale, 0);
        let (codes, is_whole) = if let ColumnData::Text(out) | ColumnData::Bytes(out) = &mut column.data {
            let head = scan.head(BlockKind::Strings)?;
            let Block::Strings(entries) = &*head else { return Err(chunk.damaged("not a dictionary of strings")) };
            let codes = codes_below(scan, entries.rows(), ranges, &mut validity)?;
            (codes, scan.held.entries.is_some() || entries.decode(0..entries.rows(), out))
        } else {
            if !push_words(&mut column.data, std::iter::empty()) {
                return Ok(None);
            }
            let words = scan.head_words()?;
            if words.len() > chunk.rows / ROWS_AN_ENTRY {
                return Ok(None);
            }
            let codes = codes_below(scan, words.len(), ranges, &mut validity)?;
            (codes, scan.held.entries.is_some() || push_words(&mut column.data, words.iter().copied()))
        };
        if !is_whole {
            return Err(chunk.damaged("entries of a dictionary"));
        }
        let entries = Arc::clone(scan.held.entries.get_or_insert_with(|| Arc::new(column)));
        Ok(Some(Coded { entries, codes, validity }))
    }
}

/// Codes below `entries`.
fn codes_below(scan: &mut Scan<'_>, entries: usize, ranges: &[Range<usize>], validity: &mut Option<Bitmap>) -> Result<Vec<u32>> {
    let codes = scan.numbers(1, ranges, validity)?;
    if codes.iter().any(|&code| code as usize >= entries) {
        return Err(scan.chunk.damaged("code beyond the dictionary"));
    }
    Ok(codes)
}

/// Bits of a code among `entries`.
fn bits_for(entries: usize) -> usize {
    entries.max(1).next_power_of_two().ilog2() as usize
}

/// Entries in ascending order and each row's code; `None` when there are too many.
fn of_words(values: &[i64]) -> Option<(Vec<i64>, Vec<i64>)> {
    let mut codes: HashMap<i64, i64> = HashMap::new();
    for &value in values {
        codes.insert(value, 0);
        if codes.len() > ENTRIES_MAX {
            return None;
        }
    }
    let mut entries: Vec<i64> = codes.keys().copied().collect();
    entries.sort_unstable();
    for (code, entry) in entries.iter().enumerate() {
        codes.insert(*entry, code as i64);
    }
    let rows = values.iter().map(|value| codes[value]).collect();
    Some((entries, rows))
}

fn of_strings(values: &ByteStrings) -> Option<(ByteStrings, Vec<i64>)> {
    let mut codes: HashMap<&[u8], i64> = HashMap::new();
    let mut bytes = 0;
    for i in 0..values.len() {
        let value = values.get(i);
        if codes.insert(value, 0).is_none() {
            bytes += value.len();
            if codes.len() > ENTRIES_MAX || bytes > BYTES_MAX {
                return None;
            }
        }
    }
    let mut sorted: Vec<&[u8]> = codes.keys().copied().collect();
    sorted.sort_unstable();
    let mut entries = ByteStrings::default();
    for (code, entry) in sorted.into_iter().enumerate() {
        entries.push(entry);
        codes.insert(entry, code as i64);
    }
    let rows = (0..values.len()).map(|i| codes[values.get(i)]).collect();
    Some((entries, rows))
}

fn blank_nulls(values: &ByteStrings, validity: &Bitmap) -> ByteStrings {
    let mut out = ByteStrings { ends: Vec::with_capacity(values.len()), bytes: Vec::with_capacity(values.bytes.len()) };
    for i in 0..values.len() {
        out.push(if validity.get(i) { values.get(i) } else { &[] });
    }
    out
}
