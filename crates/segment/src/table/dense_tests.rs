//! Dense sections: the values written come back, whichever way they are read, and damage affects only the values it hits.

use std::sync::Arc;

use melba_toast::dense::{DenseOptions, Effort};
use melba_toast::{Method, frame};
use melba_types::{Batch, Column, Csn, Datum, Kind, RowId};
use melba_vfs::{Directory, OsDirectory};

use super::*;
use crate::error::BlockName;
use crate::{BlockCache, SegmentError};

/// Pages that share a template, each with some unique content.
fn page(n: u64) -> Vec<u8> {
    let word = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let template =
        |from: u64| (from..from + 120).map(|i| format!("<p class=\"{}\">{}</p>\n", word(i), word(i + 7))).collect::<String>();
    format!("{}<b>{} {}</b>{}", template(0), word(n + 1000), word(n + 2000), template(200 + n % 3)).into_bytes()
}

/// A frame of a row: most of a dense column, some of another, some that are a table of characters, or nothing.
fn row_of(n: u64) -> Option<Vec<u8>> {
    let method = match n % 10 {
        3 => Some(Method::Lz4),
        4 => None,
        5 => return Some(vec![n as u8, 0, 1, 0]),
        6 => return None,
        _ => Some(Method::Dense),
    };
    let mut out = Vec::new();
    frame::encode(method, 3, &page(n), &mut out);
    Some(out)
}

/// The expected result of reading a row: bytes that decode to the same.
fn is_row(n: u64, found: Option<&[u8]>) -> bool {
    let (Some(given), Some(found)) = (row_of(n), found) else { return row_of(n).is_none() && found.is_none() };
    if n % 10 < 3 || n % 10 > 6 {
        let mut raw = Vec::new();
        frame::density(found) == frame::Density::Dense && frame::decode(found, &mut raw).is_ok() && raw == page(n)
    } else {
        given == found
    }
}

fn write(directory: &OsDirectory, rows: u64, dense: Option<DenseOptions>) -> SegmentMeta {
    let options = TableOptions { group_rows: 64, dense, ..TableOptions::default() };
    let mut writer = TableSegmentWriter::create(directory, "d", &[Kind::Frame], &options).unwrap();
    for n in 0..rows {
        let row = row_of(n);
        let parts = row.as_deref().map(|row| [row]);
        writer.append_bytes(RowId(n * 2 + 1), Csn(9), parts.as_ref().map(|parts| &parts[..])).unwrap();
    }
    assert_eq!(writer.spooled_bytes().is_some_and(|bytes| bytes > 0), dense.is_some() && rows > 64);
    writer.finish().unwrap()
}

fn options() -> Option<DenseOptions> {
    Some(DenseOptions { reference_bytes_max: 64 << 10, block_bytes: 32 << 10, chunks_max: 1 << 20, effort: Effort::Normal })
}

fn open(directory: &OsDirectory) -> crate::Result<Arc<TableSegmentReader>> {
    TableSegmentReader::open(directory, "d", &BlockCache::new(8 << 20))
}

fn folder() -> (tempfile::TempDir, OsDirectory) {
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    (folder, directory)
}

#[test]
fn dense_values_come_back_by_every_way() {
    let (_folder, directory) = folder();
    let rows = 300;
    let waiting = write(&directory, rows, None);
    assert!(waiting.waiting_bytes > 200_000 && waiting.dense_bytes == 0);
    directory.remove("d").unwrap();
    let meta = write(&directory, rows, options());
    assert!(meta.dense_bytes > 1_500_000 && meta.waiting_bytes == 0);
    let segment = open(&directory).unwrap();
    assert_eq!(*segment.meta(), meta);
    segment.verify().unwrap();
    for n in 0..rows {
        let found = segment.find(RowId(n * 2 + 1), Csn(9)).unwrap().expect("the row is there");
        assert_eq!(found.tombstone, row_of(n).is_none());
        let same = segment.with_bytes(found.position, 0, |bytes| is_row(n, Some(bytes))).unwrap();
        assert!(same.unwrap_or(is_row(n, None)), "row {n}");
        let mut out = [Column::with_capacity(Kind::Frame, 1)];
        segment.read_row(found.position, &[0], &mut out).unwrap();
        assert!(out[0].is_null(0) == row_of(n).is_none() && (out[0].is_null(0) || is_row(n, Some(out[0].get(0).as_bytes()))));
    }
    let mut n = 0;
    for group in 0..segment.row_groups().len() {
        let data = segment.read_group(group, &[0]).unwrap();
        let column = data.columns[0].as_ref().expect("the column is there");
        for at in 0..data.row_ids.len() {
            let value = column.get(at);
            assert!(is_row(n, (!column.is_null(at)).then(|| value.as_bytes())), "row {n}");
            n += 1;
        }
    }
    assert_eq!(n, rows);
}

#[test]
fn dense_values_take_less() {
    let (_folder, directory) = folder();
    let waiting = write(&directory, 300, None).stored_bytes;
    directory.remove("d").unwrap();
    let dense = write(&directory, 300, options()).stored_bytes;
    // A fifth of the rows is stored as it comes.
    assert!(dense * 2 < waiting, "{waiting} bytes became {dense}");
}

#[test]
fn a_segment_without_values_has_a_section_all_the_same() {
    let (_folder, directory) = folder();
    let options = TableOptions { dense: options(), ..TableOptions::default() };
    let mut writer = TableSegmentWriter::create(&directory, "d", &[Kind::Frame], &options).unwrap();
    writer.append_bytes(RowId(1), Csn(1), None).unwrap();
    writer.finish().unwrap();
    let segment = open(&directory).unwrap();
    segment.verify().unwrap();
    assert!(segment.read_group(0, &[0]).unwrap().columns[0].as_ref().expect("the column is there").is_null(0));
}

#[test]
fn a_damaged_block_costs_its_values_alone() {
    let (folder, directory) = folder();
    let rows = 300;
    write(&directory, rows, options());
    let path = folder.path().join("d");
    let sound = std::fs::read(&path).unwrap();
    let mut least = rows;
    for at in (0..sound.len()).step_by(1009) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&path, &bytes).unwrap();
        let Ok(segment) = open(&directory) else { continue };
        let error = segment.verify().expect_err("every byte is checked");
        assert!(matches!(error, SegmentError::Corrupt { block: BlockName::Data(_), .. }), "{error}");
        let mut lost = 0;
        for n in 0..rows {
            let Ok(Some(found)) = segment.find(RowId(n * 2 + 1), Csn(9)) else { continue };
            match segment.with_bytes(found.position, 0, |bytes| is_row(n, Some(bytes))) {
                Ok(same) => assert!(same.unwrap_or(true), "row {n} is wrong"),
                Err(_) => lost += 1,
            }
        }
        least = least.min(lost.max(1));
    }
    assert!(least < rows / 10, "at best {least} rows of {rows} are lost");
}

/// A file as version 2 wrote it: the annotated table segment of docs/design/segment.md at that time.
#[test]
fn segments_of_version_2_are_read() {
    const FILE: &str = "4d454c424154414202000000882028ea110000009f0a12ae0001030002030e001800000000000000000a0000004ae7ce\
        c100010300000302808008420000007e9970360001020300240103050501030001030505010003010e12021001190003\
        010206021001120001010a0a010805000000000000000001010000010800000000000000003b000000000000004a0000\
        00c9696f3f4d454c4241544142";
    let digits: Vec<u8> = FILE.bytes().filter(|b| b.is_ascii_hexdigit()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
    let (folder, directory) = folder();
    std::fs::write(folder.path().join("d"), bytes).unwrap();
    let segment = open(&directory).unwrap();
    segment.verify().unwrap();
    let column = segment.read_group(0, &[0]).unwrap().columns[0].clone().expect("the column is there");
    assert_eq!((0..3).map(|i| show(&column.get(i))).collect::<Vec<_>>(), ["Int4(7)", "Int4(9)", "Int4(8)"]);
}

/// Documents of some hundred bytes; some null, some in stored form, a few of many kinds of content.
fn document(n: u64) -> Datum {
    match n % 50 {
        7 => Datum::Null,
        8 => Datum::Stored(format!("pointer to the frames of value {n}").into_bytes().into()),
        _ => Datum::text(format!(
            "{{\"id\": {n}, \"kind\": \"page view\", \"agent\": \"Mozilla/5.0 (X11; Linux x86_64) number {}\"}}",
            n % 7
        )),
    }
}

fn show(datum: &Datum) -> String {
    format!("{datum:?}")
}

fn documents(rows: std::ops::Range<u64>) -> Batch {
    let mut columns = [Column::with_capacity(Kind::Int8, 0), Column::with_capacity(Kind::Text, 0)];
    let count = (rows.end - rows.start) as usize;
    for n in rows {
        columns[0].push(Datum::Int8(n as i64));
        columns[1].push(document(n));
    }
    Batch::new(columns.into(), count)
}

#[test]
fn short_values_of_dense_columns_share_blocks() {
    let (_folder, directory) = folder();
    let kinds = [Kind::Int8, Kind::Text];
    let mut sizes = Vec::new();
    for (name, dense) in [("w", None), ("d", options())] {
        let options = TableOptions { group_rows: 700, dense, dense_columns: 0b10, ..TableOptions::default() };
        let mut writer = TableSegmentWriter::create(&directory, name, &kinds, &options).unwrap();
        for from in (0..3000).step_by(500) {
            let ids: Vec<RowId> = (from..from + 500).map(RowId).collect();
            writer.append_uniform(&ids, Csn(3), &documents(from..from + 500)).unwrap();
        }
        let meta = writer.finish().unwrap();
        assert_eq!((meta.dense_columns, meta.waiting_bytes > 0, meta.dense_bytes > 0), (0b10, dense.is_none(), dense.is_some()));
        let segment = TableSegmentReader::open(&directory, name, &BlockCache::new(8 << 20)).unwrap();
        segment.verify().unwrap();
        let mut n = 0;
        for group in 0..segment.row_groups().len() {
            let data = segment.read_group(group, &[1]).unwrap();
            let column = data.columns[0].as_ref().expect("the column is there");
            for at in 0..data.row_ids.len() {
                assert_eq!(show(&column.get(at)), show(&document(n)), "{name}, row {n}");
                let mut out = [Column::with_capacity(Kind::Text, 1)];
                segment.read_row(Position { group: group as u32, row: at as u32 }, &[1], &mut out).unwrap();
                assert_eq!(show(&out[0].get(0)), show(&document(n)), "{name}, row {n}");
                n += 1;
            }
        }
        assert_eq!(n, 3000);
        sizes.push(meta.stored_bytes);
    }
    assert!(sizes[1] * 3 < sizes[0] * 2, "{sizes:?}");
}

#[test]
fn very_short_values_are_left_alone() {
    let (_folder, directory) = folder();
    let options = TableOptions { dense: options(), dense_columns: 0b1, ..TableOptions::default() };
    let mut writer = TableSegmentWriter::create(&directory, "d", &[Kind::Text], &options).unwrap();
    let mut column = Column::with_capacity(Kind::Text, 0);
    (0..1000).for_each(|n| column.push(Datum::text(format!("user{n}"))));
    let ids: Vec<RowId> = (0..1000).map(RowId).collect();
    writer.append_uniform(&ids, Csn(3), &Batch::new(vec![column], 1000)).unwrap();
    let meta = writer.finish().unwrap();
    assert_eq!((meta.waiting_bytes, meta.dense_bytes, meta.dense_columns), (0, 0, 0));
}

/// Writes a segment of the frames of some pages, which may reuse blocks of another.
fn write_pages(
    directory: &OsDirectory,
    name: &str,
    pages: &[u64],
    source: Option<&Arc<TableSegmentReader>>,
) -> crate::Result<SegmentMeta> {
    write_pages_with(directory, name, pages, source, |_| {})
}

fn write_pages_with(
    directory: &OsDirectory,
    name: &str,
    pages: &[u64],
    source: Option<&Arc<TableSegmentReader>>,
    change: impl FnOnce(&mut TableOptions),
) -> crate::Result<SegmentMeta> {
    let mut options = TableOptions { group_rows: 64, dense: options(), ..TableOptions::default() };
    change(&mut options);
    let mut writer = TableSegmentWriter::create(directory, name, &[Kind::Frame], &options)?;
    source.iter().for_each(|source| writer.reuse(Arc::clone(source)));
    write_frames(writer, pages.iter().map(|n| page(*n)))
}

fn write_frames(mut writer: TableSegmentWriter, values: impl Iterator<Item = Vec<u8>>) -> crate::Result<SegmentMeta> {
    for (at, value) in values.enumerate() {
        let mut bytes = Vec::new();
        frame::encode(Some(Method::Dense), 3, &value, &mut bytes);
        writer.append_bytes(RowId(at as u64), Csn(1), Some(&[&bytes]))?;
    }
    writer.finish()
}

/// Reads the pages again, and returns how many blocks of values two segments have in common, and how many the first one has.
fn pages_and_common_blocks(segment: &Arc<TableSegmentReader>, pages: &[u64], other: &TableSegmentReader) -> (usize, usize) {
    segment.verify().unwrap();
    for (at, n) in pages.iter().enumerate() {
        let found = segment.find(RowId(at as u64), Csn(1)).unwrap().expect("the row is there");
        let same = segment.with_bytes(found.position, 0, |bytes| {
            let mut raw = Vec::new();
            frame::decode(bytes, &mut raw).is_ok() && raw == page(*n)
        });
        assert_eq!(same.unwrap(), Some(true), "page {n} of row {at}");
    }
    let blocks = |segment: &TableSegmentReader| -> Vec<Vec<u8>> {
        let blocks = &segment.sections[0].blocks;
        (0..blocks.ends.len()).map(|at| segment.file.frame(blocks, at).unwrap()).collect()
    };
    let (ours, theirs) = (blocks(segment), blocks(other));
    (ours.iter().filter(|block| theirs.contains(block)).count(), ours.len())
}

#[test]
fn blocks_that_live_move_as_bytes_with_their_reference() {
    let (_folder, directory) = folder();
    let cache = BlockCache::new(8 << 20);
    let open = |name: &str| TableSegmentReader::open(&directory, name, &cache).unwrap();
    let pages: Vec<u64> = (0..300).collect();
    write_pages(&directory, "a", &pages, None).unwrap();
    let first = open("a");
    // The same in another order, with one twice.
    let mut turned: Vec<u64> = pages.iter().rev().copied().collect();
    turned.push(7);
    write_pages(&directory, "b", &turned, Some(&first)).unwrap();
    let (common, all) = pages_and_common_blocks(&open("b"), &turned, &first);
    assert_eq!(all, common + 1, "all blocks, and one for the page that came twice");
    // A twelfth is deleted, some are new: blocks with no deleted value stay.
    let changed: Vec<u64> = pages.iter().filter(|n| **n % 12 != 0).copied().chain(1000..1010).collect();
    write_pages(&directory, "c", &changed, Some(&first)).unwrap();
    let (common, all) = pages_and_common_blocks(&open("c"), &changed, &first);
    assert!(common * 2 >= all && common < all, "{common} of {all} blocks");
    // Another merge drops more.
    let fewer: Vec<u64> = changed.iter().filter(|n| **n % 12 != 5).copied().collect();
    write_pages(&directory, "d", &fewer, Some(&open("c"))).unwrap();
    pages_and_common_blocks(&open("d"), &fewer, &first);
    // Most are new.
    let others: Vec<u64> = (0..200).chain(500..600).collect();
    write_pages(&directory, "e", &others, Some(&first)).unwrap();
    assert_eq!(pages_and_common_blocks(&open("e"), &others, &first).0, 0);
    // Sizes are near those of a section that is made from nothing.
    write_pages(&directory, "f", &changed, None).unwrap();
    let bytes = |name: &str| open(name).meta().stored_bytes;
    assert!(bytes("c") * 10 <= bytes("f") * 13, "{} bytes instead of {}", bytes("c"), bytes("f"));
}

#[test]
fn segments_with_like_values_share_a_reference() {
    let (folder, directory) = folder();
    let cache = BlockCache::new(8 << 20);
    let write = |name: &str, numbers: &[u64], neighbour: Option<&Arc<TableSegmentReader>>, effort| {
        // A fifth of what the pages have in common.
        let dense = options().map(|options| DenseOptions { effort, reference_bytes_max: 4 << 10, ..options });
        let options = TableOptions { group_rows: 64, dense, ..TableOptions::default() };
        let mut writer = TableSegmentWriter::create(&directory, name, &[Kind::Frame], &options).unwrap();
        neighbour
            .iter()
            .for_each(|neighbour| writer.share_references(Neighbour { segment: Arc::clone(neighbour), is_crowded: false }));
        write_frames(writer, numbers.iter().map(|n| page(*n))).unwrap();
        TableSegmentReader::open(&directory, name, &cache).unwrap()
    };
    let pages = |from: u64| -> Vec<u64> { (0..300).map(|n| 4 * n + from).collect() };
    let alone = write("a", &pages(0), None, Effort::Normal);
    let first = write("b", &pages(1), Some(&alone), Effort::Normal);
    let second = write("c", &pages(2), Some(&first), Effort::Normal);
    let third = write("d", &pages(3), Some(&second), Effort::High);
    let name = |segment: &TableSegmentReader| segment.sections[0].reference_name.expect("it has a reference");
    assert!(name(&alone) != name(&first), "it is continued");
    assert!(name(&first) == name(&second) && name(&first) == name(&third), "it goes from neighbour to neighbour");
    let stored = |segment: &TableSegmentReader| segment.meta().stored_bytes;
    assert!(stored(&second) < stored(&alone), "{} bytes instead of {}", stored(&second), stored(&alone));
    // Each is read, and the reference is there once.
    drop((alone, first, second, third));
    let cache = BlockCache::new(8 << 20);
    let [first, second, third] = ["b", "c", "d"].map(|name| TableSegmentReader::open(&directory, name, &cache).unwrap());
    for segment in [&first, &second, &third] {
        segment.decode_section_block(0, 0).unwrap();
    }
    assert_eq!(cache.statistics().blocks, 1);
    pages_and_common_blocks(&second, &pages(2), &first);
    pages_and_common_blocks(&third, &pages(3), &first);
    // It is in the file of each: the others may go, and damage is found behind the shared copy.
    directory.remove("b").unwrap();
    directory.remove("d").unwrap();
    drop((first, third));
    pages_and_common_blocks(&second, &pages(2), &second);
    let path = folder.path().join("c");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[second.sections[0].reference.extent(0).0 as usize + 40] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let number = second.sections[0].reference.number(0);
    let error = second.verify().expect_err("the reference is damaged");
    assert!(matches!(error, SegmentError::Corrupt { block: BlockName::Data(at), .. } if at == number), "{error}");
}

#[test]
fn hasty_blocks_are_compressed_again_when_there_is_time() {
    let (_folder, directory) = folder();
    let cache = BlockCache::new(8 << 20);
    let open = |name: &str| TableSegmentReader::open(&directory, name, &cache).unwrap();
    let thoroughly = |options: &mut TableOptions| {
        options.dense.iter_mut().for_each(|dense| dense.effort = Effort::High);
    };
    let pages: Vec<u64> = (0..300).collect();
    let meta = write_pages(&directory, "hasty", &pages, None).unwrap();
    assert_eq!((meta.hasty_bytes, *open("hasty").meta()), (meta.dense_bytes, meta));
    let hasty = open("hasty");
    // A few rows are deleted: the recompressed section has the live values, and no others.
    let fewer: Vec<u64> = pages.iter().filter(|n| **n % 40 != 3).copied().collect();
    let meta = write_pages_with(&directory, "thorough", &fewer, Some(&hasty), thoroughly).unwrap();
    assert_eq!((meta.hasty_bytes, *open("thorough").meta()), (0, meta));
    let thorough = open("thorough");
    let blocks = pages_and_common_blocks(&thorough, &fewer, &hasty).1;
    assert!(meta.stored_bytes <= hasty.meta().stored_bytes);
    // New blocks are hasty, and reused ones are not.
    let more: Vec<u64> = fewer.iter().copied().chain(1000..1030).collect();
    let meta = write_pages(&directory, "more", &more, Some(&thorough)).unwrap();
    let more_segment = open("more");
    let (common, all) = pages_and_common_blocks(&more_segment, &more, &thorough);
    assert_eq!((common, more_segment.sections[0].hasty_blocks), (blocks, all - blocks));
    assert!(meta.hasty_bytes > 0 && meta.hasty_bytes * 4 < meta.dense_bytes);
    // In a hurry, all of it stays hasty.
    let hurried = write_pages_with(&directory, "hurried", &more, Some(&more_segment), |options| {
        thoroughly(options);
        options.give_way = || melba_toast::dense::Pace::Fast;
    });
    assert_eq!(hurried.unwrap().hasty_bytes, meta.hasty_bytes);
    let meta = write_pages_with(&directory, "again", &more, Some(&open("hurried")), thoroughly).unwrap();
    assert_eq!(meta.hasty_bytes, 0);
    assert_eq!(pages_and_common_blocks(&open("again"), &more, &thorough).0, blocks, "what is thorough moves as bytes");
}

#[test]
fn reusing_a_damaged_input_is_an_error() {
    let (folder, directory) = folder();
    let pages: Vec<u64> = (0..60).collect();
    write_pages(&directory, "a", &pages, None).unwrap();
    let path = folder.path().join("a");
    let mut bytes = std::fs::read(&path).unwrap();
    let blocks = TableSegmentReader::open(&directory, "a", &BlockCache::new(8 << 20)).unwrap().sections[0].blocks.clone();
    bytes[blocks.extent(0).0 as usize + 40] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let source = TableSegmentReader::open(&directory, "a", &BlockCache::new(8 << 20)).unwrap();
    let error = write_pages(&directory, "b", &pages, Some(&source)).expect_err("a block is damaged");
    assert!(matches!(error, SegmentError::Corrupt { block: BlockName::Data(at), .. } if at == blocks.first), "{error}");
}
