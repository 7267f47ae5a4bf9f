//! Chunks of short strings, each coded alone: the first block has the symbol table, the others strings of its codes.

use std::ops::Range;

use melba_types::{Bitmap, ByteStrings};

use super::read::{ChunkView, HeldRow, Scan};
use super::stages::{ChunkEncoding, ChunkEntry, EntryKind};
use super::values::{StringsOut, ValueOut};
use super::write::{BlockList, ChunkData, ChunkValues, Trained, TrainedSymbols, Write, WriteOptions};
use crate::block::{Block, BlockKind};
use crate::error::Result;
use crate::frame::{Codec, encode_payload};
use crate::layout::symbols::SymbolEncoder;

/// Fewer bytes do not pay for a symbol table.
const BYTES_MIN: usize = 16 << 10;
/// Values longer than this on average are left to the codec: it finds longer repetitions.
const VALUE_BYTES_MAX: usize = 512;
/// A symbol table must reduce values to this percentage of their bytes.
const PERCENT_MAX: usize = 80;
/// A symbol table is trained again when values take more than this percentage of the size it gave its training values.
const KEPT_PERCENT: usize = 102;

#[derive(Debug)]
pub(crate) struct Symbols;

impl ChunkEncoding for Symbols {
    fn tag(&self) -> u8 {
        4
    }

    fn entry_kind(&self) -> EntryKind {
        EntryKind::Blocks { heads: 1 }
    }

    fn suits_filter(&self) -> bool {
        true
    }

    fn analyze<'a>(
        &self,
        values: &'a ChunkValues<'a>,
        options: &WriteOptions,
        trained: &mut Trained<'_>,
    ) -> Option<Box<Write<'a>>> {
        let ChunkData::Strings(strings) = values.data else { return None };
        if !train(trained.symbols, strings, options) {
            return None;
        }
        let (options, validity) = (*options, values.validity);
        Some(Box::new(move |frames, trained| {
            let (encoder, _) = trained.symbols.as_ref().expect("trained above");
            let mut content = Vec::new();
            encoder.encode_table(&mut content);
            let list = BlockList::begin(frames, &content, Codec::None);
            encoder.encode_all(strings, trained.coded);
            ChunkEntry::Blocks(list.write_strings((trained.coded, validity), None, Codec::None, &options, frames))
        }))
    }

    fn read_strings(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], out: &mut StringsOut) -> Result<()> {
        let head = scan.head(BlockKind::Symbols)?;
        let Block::Symbols(table) = &*head else { return Err(scan.chunk.damaged("not a symbol table")) };
        scan.each_block(1, BlockKind::Strings, ranges, |block, rows| {
            let Block::Strings(block) = block else { return false };
            block.decode_validity(rows.clone(), out.values.len(), &mut out.validity);
            table.decode_all(rows.map(|i| block.get(i)), &mut out.values)
        })
    }

    fn read_picked(&self, scan: &mut Scan<'_>, ranges: &[Range<usize>], picks: &[u32], out: &mut StringsOut) -> Result<bool> {
        let head = scan.head(BlockKind::Symbols)?;
        let Block::Symbols(table) = &*head else { return Err(scan.chunk.damaged("not a symbol table")) };
        scan.each_block_picked(1, BlockKind::Strings, ranges, picks, |block, rows| {
            let Block::Strings(block) = block else { return false };
            let before = out.values.len();
            if out.validity.is_some() || !block.is_all_valid() {
                let validity = out.validity.get_or_insert_with(|| Bitmap::filled(before, true));
                rows.iter().for_each(|row| validity.push(block.is_valid(*row as usize)));
            }
            table.decode_all(rows.iter().map(|row| block.get(*row as usize)), &mut out.values)
        })?;
        Ok(true)
    }

    fn read_rows(&self, chunk: &ChunkView<'_>, rows: &[u32], held: &mut HeldRow, out: &mut ValueOut<'_>) -> Result<()> {
        let (blocks, kinds) = (chunk.blocks()?, (BlockKind::Symbols, BlockKind::Strings));
        for row in rows.iter().map(|&row| row as usize) {
            let at = row & blocks.mask();
            let (Block::Symbols(table), Block::Strings(coded), scratch) = held.head_and_block(chunk, blocks, row, kinds)? else {
                return Err(chunk.undecodable());
            };
            if !coded.is_valid(at) {
                out.push_null();
            } else if !table.decode(coded.get(at), scratch).is_some_and(|value| out.push_bytes(value)) {
                return Err(chunk.undecodable());
            }
        }
        Ok(())
    }
}

/// Finds a symbol table for the values; true when it makes them about as small as the codec would: a point read then decodes one
/// value, not a block. Training takes as long as coding a row group, so a table is kept as long as it compresses as well as before.
fn train(kept: &mut Option<TrainedSymbols>, values: &ByteStrings, options: &WriteOptions) -> bool {
    if values.bytes.len() < BYTES_MIN || values.bytes.len() / values.len() > VALUE_BYTES_MAX {
        return false;
    }
    let suits = kept.take().and_then(|(encoder, trained)| {
        let coded = encoder.measure(values);
        (coded * 100 <= trained * KEPT_PERCENT).then_some((encoder, trained, coded))
    });
    let (encoder, trained, coded) = suits.unwrap_or_else(|| {
        let encoder = SymbolEncoder::train(values);
        let coded = encoder.measure(values);
        (encoder, coded, coded)
    });
    *kept = Some((encoder, trained));
    let block = &values.bytes[..values.bytes.len().min(options.block_bytes)];
    let mut payload = Vec::new();
    encode_payload(block, options.string_codec(values), &mut payload);
    let payload = payload.len() * 1000 / block.len();
    coded <= PERCENT_MAX * 10 && coded * 10 <= payload * 11
}
