//! Checks docs/design/segment.md against the code: its constants and its two annotated files.

use melba_types::{Batch, Column, ColumnData, Csn, Datum, Kind, Numeric, RowId};
use melba_vfs::OsDirectory;

use crate::encoding::{BLOCKS, ChunkEntry};
use crate::file::Blocks;
use crate::statistics::{Bounds, Statistics};
use crate::table::directory::{Chunk, encode_chunk};
use crate::table::filter::ChunkFilter;
use crate::{Codec, KeyOptions, KeySegmentWriter, TableOptions, TableSegmentWriter};

const DOCUMENT: &str = include_str!("../../../docs/design/segment.md");

/// The bytes of the fenced block after the line `title`: two-digit hex numbers up to a `|` on each line.
fn documented(title: &str) -> Vec<u8> {
    let after = DOCUMENT.split_once(title).expect("the title is in the document").1;
    let block = after.split("```").nth(1).expect("a fenced block follows");
    let hex = block.lines().skip(1).flat_map(|line| line.split('|').next().unwrap_or("").split_whitespace());
    hex.map(|byte| u8::from_str_radix(byte, 16).expect("a hex byte")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_table_segment_is_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    let options = TableOptions { codec: Codec::None, ..TableOptions::default() };
    let mut writer = TableSegmentWriter::create(&directory, "t", &[Kind::Int4], &options).unwrap();
    let column = Column::new(ColumnData::Int4(vec![7, 9, 8]));
    writer.append_uniform(&[RowId(1), RowId(2), RowId(3)], Csn(5), &Batch::new(vec![column], 3)).unwrap();
    writer.finish().unwrap();
    let written = std::fs::read(folder.path().join("t")).unwrap();
    assert_eq!(hex(&documented("A table segment, byte by byte")), hex(&written));
}

#[test]
fn a_chunk_of_numerics_is_as_documented() {
    let blocks = Blocks { shift: 16, first: 0, offset: 16, ends: vec![25] };
    let (min, max) = (Numeric::from_parts(75, 2), Numeric::from_parts(150, 2));
    let bounds = Bounds::of_datums(Kind::Numeric, &Datum::Numeric(min), &Datum::Numeric(max));
    let statistics = Statistics { nulls: 0, distinct: 3, bounds };
    let mut encoded = Vec::new();
    encode_chunk(
        &Chunk { statistics, encoding: BLOCKS, entry: ChunkEntry::Blocks(blocks), scale: Some(2), filter: None },
        &mut encoded,
    );
    assert_eq!(hex(&documented("A chunk of numerics")), hex(&encoded));
}

#[test]
fn a_chunk_with_a_filter_is_as_documented() {
    let blocks = Blocks { shift: 16, first: 0, offset: 16, ends: vec![1_048_601] };
    let bounds = Bounds::Bytes { min: [0].into(), max: [255].into(), cut: false };
    let statistics = Statistics { nulls: 0, distinct: 65_401, bounds };
    let filter = Some(ChunkFilter { blocks: 2555, first: 1, offset: 1_048_617 });
    let mut encoded = Vec::new();
    encode_chunk(&Chunk { statistics, encoding: BLOCKS, entry: ChunkEntry::Blocks(blocks), scale: None, filter }, &mut encoded);
    assert_eq!(hex(&documented("A chunk with a filter")), hex(&encoded));
}

#[test]
fn the_key_segment_is_as_documented() {
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    let mut writer = KeySegmentWriter::create(&directory, "k", &KeyOptions::default()).unwrap();
    writer.append(b"ab\x00\x00\x00\x00\x00\x00\x00\x01", Csn(5), false).unwrap();
    writer.append(b"ac\x00\x00\x00\x00\x00\x00\x00\x02", Csn(6), true).unwrap();
    writer.finish().unwrap();
    let written = std::fs::read(folder.path().join("k")).unwrap();
    assert_eq!(hex(&documented("A key segment, byte by byte")), hex(&written));
}

#[test]
fn the_constants_are_as_documented() {
    let constants = [
        ("format version", u64::from(crate::FORMAT_VERSION)),
        ("header bytes", crate::frame::HEADER_BYTES as u64),
        ("frame bytes", crate::frame::FRAME_BYTES as u64),
        ("tail bytes", crate::frame::TAIL_BYTES as u64),
        ("rows of a row group", TableOptions::default().group_rows as u64),
        ("raw bytes of a row group", TableOptions::default().group_bytes as u64),
        ("raw bytes of a column block", TableOptions::default().block_bytes as u64),
        ("bytes of a key block", KeyOptions::default().block_bytes as u64),
        ("entries between restarts", crate::key::block::RESTART_INTERVAL as u64),
        ("key blocks of a filter partition", crate::key::directory::PARTITION_BLOCKS as u64),
        ("filter blocks of a chunk's filter's part", crate::table::filter::PART_BLOCKS as u64),
        ("bytes of a filter block", crate::filter::FILTER_BLOCK_BYTES as u64),
    ];
    for (name, value) in constants {
        let row = format!("| {name} | {value} |");
        assert!(DOCUMENT.contains(&row), "the document lacks the row {row}");
    }
}
