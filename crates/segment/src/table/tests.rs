use std::sync::Arc;

use melba_types::{Batch, Bitmap, ByteStrings, Column, ColumnData, Csn, Datum, Interval, Kind, RowId};
use melba_vfs::{Directory, OsDirectory};

use super::*;
use crate::frame::FrameReader;
use crate::layout::strings::{self, StringBlock};
use crate::layout::words::{self, WordBlock};
use crate::{BlockCache, SegmentError, ZoneOp};

const KINDS: [Kind; 15] = [
    Kind::Int8,
    Kind::Int4,
    Kind::Bool,
    Kind::Float8,
    Kind::Text,
    Kind::Text,
    Kind::Bytes,
    Kind::Uuid,
    Kind::Interval,
    Kind::Char,
    Kind::Int2,
    Kind::Float4,
    Kind::Text,
    Kind::Numeric,
    Kind::Frame,
];

fn stored(i: u64) -> Datum {
    Datum::Stored(format!("stored form {i}").into_bytes().into())
}

/// A value of each kind for row `i`: sequences, few distinct values, nulls, long and short strings, constants.
fn row(i: u64) -> Vec<Datum> {
    let scattered = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let nullable = |value: Datum| if i % 5 == 3 { Datum::Null } else { value };
    vec![
        Datum::Int8(i as i64 * 3 - 1000),
        nullable(Datum::Int4(scattered as i32)),
        nullable(Datum::Bool((i / 100).is_multiple_of(2))),
        Datum::Float8(scattered as f64 / 7.0),
        nullable(Datum::text(format!("user{scattered}"))),
        nullable(Datum::text(["red", "green", "blue", ""][scattered as usize % 4])),
        Datum::bytes(vec![i as u8; (scattered % 300) as usize]),
        Datum::Uuid((u128::from(scattered) << 64).to_be_bytes()),
        nullable(Datum::Interval(Interval { months: 1, days: i as i32, micros: 5 })),
        nullable(Datum::Char(b'a' + (i % 26) as u8)),
        Datum::Int2(7),
        Datum::Null,
        nullable(if i % 900 < 5 { stored(i) } else { Datum::text(format!("plain {i}")) }),
        nullable(if i % 7 == 1 { stored(i) } else { Datum::Numeric((i as i64).into()) }),
        Datum::bytes(vec![i as u8; (scattered % 50) as usize]),
    ]
}

fn batch(rows: std::ops::Range<u64>) -> Batch {
    let mut columns: Vec<Column> = KINDS.iter().map(|&kind| Column::with_capacity(kind, 0)).collect();
    let count = (rows.end - rows.start) as usize;
    for i in rows {
        for (column, datum) in columns.iter_mut().zip(row(i)) {
            column.push(datum);
        }
    }
    Batch::new(columns, count)
}

fn options() -> TableOptions {
    TableOptions { group_rows: 1500, block_bytes: 4096, ..TableOptions::default() }
}

fn folder() -> (tempfile::TempDir, OsDirectory) {
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    (folder, directory)
}

/// Row ids 10, 20, ...; rows are those of `row`, the CSN is 5.
fn write_uniform(directory: &OsDirectory, rows: u64, options: &TableOptions) -> SegmentMeta {
    let writer = TableSegmentWriter::create(directory, "t", &KINDS, options).unwrap();
    write_rows(writer, rows).unwrap().finish().unwrap()
}

fn write_rows(mut writer: TableSegmentWriter, rows: u64) -> crate::Result<TableSegmentWriter> {
    for start in (0..rows).step_by(700) {
        let range = start..(start + 700).min(rows);
        let ids: Vec<RowId> = range.clone().map(|i| RowId(i * 10 + 10)).collect();
        writer.append_uniform(&ids, Csn(5), &batch(range))?;
    }
    Ok(writer)
}

fn show(datum: &Datum) -> String {
    format!("{datum:?}")
}

#[test]
fn scans_and_point_reads_return_the_appended_rows() {
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd(3)] {
        let (_folder, directory) = folder();
        let meta = write_uniform(&directory, 4000, &TableOptions { codec, ..options() });
        assert_eq!((meta.rows, meta.row_id_min, meta.row_id_max, meta.csn_max), (4000, RowId(10), RowId(40_000), Csn(5)));
        let cache = BlockCache::new(1 << 20);
        let segment = TableSegmentReader::open(&directory, "t", &cache).unwrap();
        assert_eq!(*segment.meta(), meta);
        assert_eq!(segment.row_groups().len(), 3);
        segment.verify().unwrap();
        let projection: Vec<usize> = (0..=KINDS.len()).collect();
        let mut i = 0;
        for group in 0..segment.row_groups().len() {
            let mut reader = segment.group(group, &projection);
            // Pieces that fall on no boundary.
            for start in (0..reader.rows()).step_by(333) {
                let data = reader.read(start..(start + 333).min(reader.rows())).unwrap();
                assert!(data.columns[KINDS.len()].is_none(), "the segment has no such column");
                assert_eq!((data.csns.get(0), data.tombstones), (Csn(5), None));
                for (at, id) in data.row_ids.iter().enumerate() {
                    assert_eq!(*id, RowId(i * 10 + 10));
                    for (column, expected) in data.columns.iter().flatten().zip(row(i)) {
                        assert_eq!(show(&column.get(at)), show(&expected), "row {i}");
                    }
                    i += 1;
                }
            }
        }
        assert_eq!(i, 4000);
        let ids: Vec<u64> = (0..4000).rev().step_by(3).collect();
        let find = |i: &u64| segment.find(RowId(i * 10 + 10), Csn(5)).unwrap().unwrap().position;
        let positions: Vec<Position> = ids.iter().map(find).collect();
        let mut out: Vec<Column> = KINDS.iter().map(|&kind| Column::with_capacity(kind, 1)).collect();
        segment.read_rows(&positions, &projection[..KINDS.len()], &mut out).unwrap();
        for (at, &i) in ids.iter().enumerate() {
            assert!(out.iter().zip(row(i)).all(|(column, expected)| show(&column.get(at)) == show(&expected)), "row {i}");
        }
        for i in (0..4000).step_by(37) {
            let version = segment.find(RowId(i * 10 + 10), Csn(5)).unwrap().unwrap();
            let mut out: Vec<Column> = KINDS.iter().map(|&kind| Column::with_capacity(kind, 1)).collect();
            segment.read_row(version.position, &projection[..KINDS.len()], &mut out).unwrap();
            for (column, expected) in out.iter().zip(row(i)) {
                assert_eq!(show(&column.get(0)), show(&expected), "row {i}");
            }
            assert_eq!(segment.find(RowId(i * 10 + 11), Csn(9)).unwrap(), None);
            assert_eq!(segment.find(RowId(i * 10 + 10), Csn(4)).unwrap(), None);
        }
    }
}

/// Every value of a segment, as text.
fn contents(directory: &OsDirectory, name: &str) -> Vec<String> {
    let segment = TableSegmentReader::open(directory, name, &BlockCache::new(1 << 20)).unwrap();
    segment.verify().unwrap();
    let projection: Vec<usize> = (0..KINDS.len()).collect();
    let mut out = Vec::new();
    for group in 0..segment.row_groups().len() {
        let mut reader = segment.group(group, &projection);
        let data = reader.read(0..reader.rows()).unwrap();
        for (at, id) in data.row_ids.iter().enumerate() {
            let values: Vec<Datum> = data.columns.iter().flatten().map(|c| c.get(at)).collect();
            out.push(format!("{id} {values:?}"));
        }
    }
    out
}

#[test]
fn a_pool_writes_segments_side_by_side() {
    let (_folder, directory) = folder();
    write_uniform(&directory, 9000, &options());
    let expected = contents(&directory, "t");
    let pool = EncoderPool::new(options(), std::sync::Arc::new(melba_threads::OwnThreads));
    let create = |name: &str| TableSegmentWriter::create_pooled(&directory, name, &KINDS, &pool).unwrap();
    // The last groups of one are still being encoded while the next one gets its rows.
    let first = write_rows(create("a"), 9000).unwrap().finish_later().unwrap();
    let given_up = write_rows(create("b"), 9000).unwrap();
    let second = write_rows(create("c"), 9000).unwrap().finish_later().unwrap();
    drop(given_up);
    assert_eq!(second.wait().unwrap().rows, 9000);
    assert_eq!(first.buffers_after_end().unwrap(), 0);
    assert!(TableSegmentReader::open(&directory, "b", &BlockCache::new(1 << 20)).is_err(), "it was never finished");
    assert!(contents(&directory, "a") == expected && contents(&directory, "c") == expected);
}

/// Frames: long ones, short ones, both in turns, with older versions and tombstones. The bytes follow, whichever code writes a length.
#[test]
fn byte_strings_come_back_long_and_short() {
    let (_folder, directory) = folder();
    let options = TableOptions { group_bytes: 300 << 10, block_bytes: 4096, ..TableOptions::default() };
    let lengths = |i: u64| match i / 20 {
        0 => 60_000,
        1 => 30,
        2 => [50_000, 12][i as usize % 2],
        _ => [0, 4096, 40_000, 100, 33][i as usize % 5],
    };
    let value = |i: u64| (0..lengths(i)).map(|at| ((at as u64 * (i + 3)) >> 3) as u8).collect::<Vec<u8>>();
    let write = |writer: &mut TableSegmentWriter| {
        for i in 0..100u64 {
            let bytes = value(i);
            let cut = bytes.len() / 3;
            if i % 7 == 2 {
                writer.append_bytes(RowId(i), Csn(9), None).unwrap();
            }
            writer.append_bytes(RowId(i), Csn(5), Some(&[&bytes[..cut], &bytes[cut..]])).unwrap();
        }
    };
    let pool = EncoderPool::new(options, std::sync::Arc::new(melba_threads::OwnThreads));
    let mut here = TableSegmentWriter::create(&directory, "here", &[Kind::Frame], &options).unwrap();
    let mut pooled = TableSegmentWriter::create_pooled(&directory, "pooled", &[Kind::Frame], &pool).unwrap();
    write(&mut here);
    write(&mut pooled);
    let metas = [here.finish().unwrap(), pooled.finish().unwrap()];
    assert_eq!(metas.map(|m| (m.rows, m.tombstones, m.row_id_max)), [(114, 14, RowId(99)); 2]);
    for (name, meta) in ["here", "pooled"].iter().zip(metas) {
        assert!(meta.stored_bytes < meta.raw_bytes + 6000, "{} of {} bytes", meta.stored_bytes, meta.raw_bytes);
        let segment = TableSegmentReader::open(&directory, name, &BlockCache::new(1 << 20)).unwrap();
        segment.verify().unwrap();
        assert!(segment.row_groups().len() > 4);
        for i in 0..100u64 {
            let find = |csn: u64| segment.find(RowId(i), Csn(csn)).unwrap().unwrap();
            assert_eq!((find(9).tombstone, find(5).tombstone), (i % 7 == 2, false));
            let same = segment.with_bytes(find(5).position, 0, |bytes| bytes == value(i)).unwrap();
            assert_eq!(same, Some(true), "value {i} of {name}");
            if i % 7 == 2 {
                assert_eq!(segment.with_bytes(find(9).position, 0, |_| ()).unwrap(), None);
            }
        }
    }
}

#[test]
fn versions_stay_together_newest_first() {
    let (_folder, directory) = folder();
    let kinds = [Kind::Int4];
    let options = TableOptions { group_rows: 10, ..TableOptions::default() };
    let mut writer = TableSegmentWriter::create(&directory, "t", &kinds, &options).unwrap();
    // Row r has r % 4 + 1 versions, the newest of every third row is a tombstone.
    let (mut ids, mut csns, mut deleted, mut values) = (vec![], vec![], Bitmap::default(), vec![]);
    for r in 1..100u64 {
        for version in (0..=r % 4).rev() {
            ids.push(RowId(r));
            csns.push(Csn(100 + version * 10));
            deleted.push(r % 3 == 0 && version == r % 4);
            values.push((r * 10 + version) as i32);
        }
    }
    let rows = values.len();
    let all = Batch::new(vec![Column::new(ColumnData::Int4(values.clone()))], rows);
    // One row at a time as well as all at once: groups must not cut a row's versions either way.
    for i in 0..rows / 2 {
        let mut flag = Bitmap::default();
        flag.push(deleted.get(i));
        writer.append(&ids[i..=i], &csns[i..=i], Some(&flag), &all.take(&[i as u32])).unwrap();
    }
    let rest: Vec<u32> = (rows as u32 / 2..rows as u32).collect();
    let mut flags = Bitmap::default();
    rest.iter().for_each(|&i| flags.push(deleted.get(i as usize)));
    writer.append(&ids[rows / 2..], &csns[rows / 2..], Some(&flags), &all.take(&rest)).unwrap();
    let meta = writer.finish().unwrap();
    assert_eq!((meta.tombstones, meta.csn_min, meta.csn_max), (33, Csn(100), Csn(130)));
    let segment = TableSegmentReader::open(&directory, "t", &BlockCache::new(1 << 20)).unwrap();
    segment.verify().unwrap();
    assert!(segment.row_groups().len() > 15);
    for r in 1..100u64 {
        let (group, versions) = segment.versions(RowId(r)).unwrap().unwrap();
        assert_eq!(versions.len() as u64, r % 4 + 1);
        assert!(segment.group_range(group).0 <= RowId(r));
        let found = segment.find(RowId(r), Csn(105)).unwrap().unwrap();
        assert_eq!((found.csn, found.tombstone), (Csn(100), r % 3 == 0 && r % 4 == 0));
        let newest = segment.find(RowId(r), Csn(u64::MAX)).unwrap().unwrap();
        assert_eq!((newest.csn, newest.tombstone), (Csn(100 + r % 4 * 10), r % 3 == 0));
    }
    let data = segment.read_group(0, &[0]).unwrap();
    assert_eq!(data.tombstones.unwrap().len(), data.row_ids.len());
    assert!(matches!(data.csns, Csns::Each(_)));
}

#[test]
fn a_bulk_load_takes_its_csn_when_it_is_opened() {
    let (_folder, directory) = folder();
    let mut writer = TableSegmentWriter::create(&directory, "t", &[Kind::Int8], &TableOptions::default()).unwrap();
    let ids: Vec<RowId> = (1..=100_000).map(RowId).collect();
    let column = Column::new(ColumnData::Int8(vec![42; ids.len()]));
    writer.append_uniform(&ids, Csn(0), &Batch::new(vec![column], ids.len())).unwrap();
    let meta = writer.finish().unwrap();
    assert!(meta.stored_bytes < 400, "row ids, CSNs and constants of 100,000 rows took {} bytes", meta.stored_bytes);
    let segment = TableSegmentReader::open_assigned(&directory, "t", &BlockCache::new(1 << 20), Csn(77)).unwrap();
    assert_eq!((segment.meta().csn_min, segment.meta().csn_max), (Csn(77), Csn(77)));
    assert_eq!(segment.read_group(1, &[]).unwrap().csns, Csns::Uniform(Csn(77)));
    assert_eq!(segment.find(RowId(99_999), Csn(76)).unwrap(), None);
    assert_eq!(segment.find(RowId(99_999), Csn(77)).unwrap().unwrap().csn, Csn(77));
}

#[test]
fn pruning_uses_the_groups_bounds() {
    let (_folder, directory) = folder();
    write_uniform(&directory, 4000, &options());
    let segment = TableSegmentReader::open(&directory, "t", &BlockCache::new(1 << 20)).unwrap();
    let kept = |op, value| (0..3).filter(|&g| !segment.prune(g, 0, op, &value)).collect::<Vec<_>>();
    assert_eq!(kept(ZoneOp::Equal, Datum::Int4(1500 * 3 - 1000)), [1]);
    assert_eq!(kept(ZoneOp::Less, Datum::Int8(0)), [0]);
    assert_eq!(kept(ZoneOp::IsNull, Datum::Null), []);
    assert!(!segment.prune(0, 99, ZoneOp::IsNull, &Datum::Null), "a column that the segment lacks");
    assert!(segment.prune(0, 11, ZoneOp::IsNotNull, &Datum::Null) && !segment.prune(0, 11, ZoneOp::IsNull, &Datum::Null));
    assert_eq!(segment.statistics(0, 5).unwrap().distinct, 4);
    let days = |days| Datum::Interval(Interval { months: 0, days, micros: 0 });
    let kept = |op, value| (0..3).filter(|&g| !segment.prune(g, 8, op, &value)).collect::<Vec<_>>();
    assert_eq!(kept(ZoneOp::Less, days(30)), [], "a month and more everywhere");
    assert_eq!(kept(ZoneOp::Equal, Datum::Interval(Interval { months: 0, days: 31 + 30, micros: 5 })), [0]);
    assert_eq!(kept(ZoneOp::Greater, days(3100)), [2]);
}

#[test]
fn encodings_earn_their_keep() {
    let (_folder, directory) = folder();
    let rows = 50_000usize;
    let stored = |name: &str, kind: Kind, data: ColumnData| {
        let mut writer = TableSegmentWriter::create(&directory, name, &[kind], &TableOptions::default()).unwrap();
        let ids: Vec<RowId> = (1..=rows as u64).map(RowId).collect();
        writer.append_uniform(&ids, Csn(1), &Batch::new(vec![Column::new(data)], rows)).unwrap();
        writer.finish().unwrap().stored_bytes as usize
    };
    let scattered = |i: usize| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let strings = |make: &dyn Fn(usize) -> String| {
        let mut strings = ByteStrings::default();
        (0..rows).for_each(|i| strings.push(make(i).as_bytes()));
        ColumnData::Text(strings)
    };
    let ten_bits =
        stored("a", Kind::Int8, ColumnData::Int8((0..rows).map(|i| (scattered(i) % 1024) as i64 + (1 << 50)).collect()));
    assert!(ten_bits < rows * 10 / 8 + 1000, "{ten_bits}");
    let runs = stored("b", Kind::Int4, ColumnData::Int4((0..rows).map(|i| scattered(i / 500) as i32).collect()));
    assert!(runs < 2000, "{runs}");
    let few_wide = stored("c", Kind::Int8, ColumnData::Int8((0..rows).map(|i| ((scattered(i) % 16) << 40) as i64).collect()));
    assert!(few_wide < rows * 4 / 8 + 1000, "{few_wide}");
    let words = stored("d", Kind::Text, strings(&|i| format!("word number {}", scattered(i) % 200)));
    assert!(words < rows + 4000, "{words}");
    let phones = stored("e", Kind::Text, strings(&|i| format!("+49{:011}", scattered(i) % 100_000_000_000)));
    assert!(phones < rows * 13, "{phones}");
}

/// Every file with one byte changed is an error or the same rows.
#[test]
fn no_damaged_byte_goes_unnoticed() {
    let (folder, directory) = folder();
    let kinds = [Kind::Int4, Kind::Text, Kind::Text];
    let options = TableOptions { group_rows: 40, block_bytes: 256, ..TableOptions::default() };
    let mut writer = TableSegmentWriter::create(&directory, "t", &kinds, &options).unwrap();
    for i in 0..100u64 {
        let mut columns: Vec<Column> = kinds.iter().map(|&kind| Column::with_capacity(kind, 1)).collect();
        columns[0].push(if i % 3 == 0 { Datum::Null } else { Datum::Int4((i * i * 7919 % 1009) as i32) });
        columns[1].push(Datum::text(format!("value {i} {}", "x".repeat(i as usize % 9))));
        columns[2].push(Datum::text(["a colour", "another colour"][i as usize % 2]));
        writer.append(&[RowId(i)], &[Csn(i % 7 + 1)], None, &Batch::new(columns, 1)).unwrap();
    }
    writer.finish().unwrap();
    let path = folder.path().join("t");
    let good = std::fs::read(&path).unwrap();
    for at in 0..good.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            std::fs::write(&path, &bad).unwrap();
            let opened = TableSegmentReader::open(&directory, "t", &BlockCache::new(0));
            let error = opened.and_then(|segment| segment.verify()).expect_err("damage found");
            assert!(matches!(error, SegmentError::Corrupt { .. }), "byte {at}: {error}");
        }
    }
    for length in 0..good.len() {
        std::fs::write(&path, &good[..length]).unwrap();
        let opened = TableSegmentReader::open(&directory, "t", &BlockCache::new(0));
        assert!(opened.and_then(|segment| segment.verify()).is_err(), "cut to {length}");
    }
}

#[test]
fn an_empty_segment_and_one_without_columns() {
    let (_folder, directory) = folder();
    let cache = BlockCache::new(1 << 20);
    TableSegmentWriter::create(&directory, "e", &KINDS, &options()).unwrap().finish().unwrap();
    let empty = TableSegmentReader::open(&directory, "e", &cache).unwrap();
    empty.verify().unwrap();
    assert_eq!(empty.find(RowId(1), Csn(1)).unwrap(), None);
    let mut writer = TableSegmentWriter::create(&directory, "n", &[], &options()).unwrap();
    writer.append_uniform(&[RowId(3), RowId(9)], Csn(1), &Batch::new(vec![], 2)).unwrap();
    writer.finish().unwrap();
    let segment: Arc<TableSegmentReader> = TableSegmentReader::open(&directory, "n", &cache).unwrap();
    segment.verify().unwrap();
    assert_eq!(segment.read_group(0, &[0]).unwrap().row_ids, [RowId(3), RowId(9)]);
    assert!(directory.list().unwrap().len() == 2);
}

/// Nonsense with a correct checksum must not panic: layouts are checked, not believed.
#[test]
fn nonsense_content_does_not_panic() {
    let words: Vec<i64> = (0..50).map(|i| (i * i % 17) << 30).collect();
    let runs: Vec<i64> = (0..50).map(|i| i / 10 * 1000).collect();
    let mut strings = ByteStrings::default();
    (0..50).for_each(|i| strings.push(&b"melba toast"[..i % 11]));
    let mut validity = Bitmap::filled(50, true);
    validity.set(7, false);
    let mut contents = [const { Vec::new() }; 4];
    words::encode(&words, Some(&validity), 0, &mut contents[0]);
    words::encode(&runs, None, 0, &mut contents[1]);
    strings::encode(&strings, Some(&validity), None, 0..50, &mut contents[2]);
    let (_folder, directory) = folder();
    let options = TableOptions { group_rows: 40, block_bytes: 256, ..TableOptions::default() };
    write_uniform(&directory, 100, &options);
    let (frames, footer) = FrameReader::open(&directory, "t", &TABLE_MAGIC).unwrap();
    contents[3] = footer;
    let mut refused = [0; 4];
    for (which, content) in contents.iter().enumerate() {
        for at in 0..content.len() {
            for value in [0, 1, 2, 0x3F, 0x40, 0x7F, 0x80, 0xFF] {
                let mut bad = content.clone();
                bad[at] = value;
                let read = match which {
                    3 => directory::TableDirectory::decode(&bad, frames.version, frames.blocks_end()).map(|_| ()),
                    2 => StringBlock::parse(bad).map(|block| {
                        let rows = block.rows().min(1000);
                        let (mut out, mut validity) = (ByteStrings::default(), None);
                        assert!(block.decode(0..rows, &mut out));
                        block.decode_validity(0..rows, 0, &mut validity);
                    }),
                    _ => WordBlock::parse(bad).map(|block| {
                        let rows = block.rows().min(1000);
                        let (mut out, mut validity) = (Vec::<i32>::new(), None);
                        block.decode(0..rows, &mut out);
                        block.decode_validity(0..rows, 0, &mut validity);
                        assert_eq!(out.len(), rows);
                    }),
                };
                refused[which] += usize::from(read.is_none());
            }
        }
    }
    assert!(refused.iter().all(|&n| n > 30), "{refused:?}");
}

/// Few values of a kind each, with nulls and without; the numerics of one scale, and of several.
fn few(i: u64) -> Vec<Datum> {
    let scattered = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as i64;
    let nullable = |value: Datum| if i % 5 == 3 { Datum::Null } else { value };
    let numeric = |text: &str| Datum::Numeric(melba_types::Numeric::parse(text).unwrap());
    vec![
        Datum::Int4((scattered % 90) as i32 - 40),
        nullable(Datum::Int8(scattered % 3 * 1_000_000_007)),
        nullable(Datum::Int2((scattered % 7) as i16)),
        numeric(["0.05", "0.10", "-1.00", "2.50"][scattered as usize % 4]),
        nullable(numeric(["0.05", "NaN", "1.5"][scattered as usize % 3])),
        nullable(Datum::text(["red", "green", ""][scattered as usize % 3])),
        nullable(Datum::Float8([0.5, f64::NAN, -0.0][scattered as usize % 3])),
        Datum::Char(b'a' + (scattered % 4) as u8),
        Datum::Int8(scattered),
        nullable(Datum::Bool(scattered % 2 == 0)),
    ]
}

#[test]
fn codes_stand_for_the_values() {
    let kinds = [
        Kind::Int4,
        Kind::Int8,
        Kind::Int2,
        Kind::Numeric,
        Kind::Numeric,
        Kind::Text,
        Kind::Float8,
        Kind::Char,
        Kind::Int8,
        Kind::Bool,
    ];
    let (_folder, directory) = folder();
    let mut columns: Vec<Column> = kinds.iter().map(|&kind| Column::with_capacity(kind, 0)).collect();
    let rows = 3000;
    for i in 0..rows {
        columns.iter_mut().zip(few(i)).for_each(|(column, value)| column.push(value));
    }
    let ids: Vec<RowId> = (0..rows).map(RowId).collect();
    let mut writer = TableSegmentWriter::create(&directory, "t", &kinds, &options()).unwrap();
    writer.append_uniform(&ids, Csn(5), &Batch::new(columns, ids.len())).unwrap();
    writer.finish().unwrap();
    let reader = Arc::new(TableSegmentReader::open(&directory, "t", &BlockCache::new(1 << 20)).unwrap());
    let projection: Vec<usize> = (0..kinds.len()).collect();
    let mut coded_kinds = vec![false; kinds.len()];
    for group in 0..reader.row_groups().len() {
        let mut of_group = reader.group(group, &projection);
        for ranges in [vec![0..500, 500..1000], vec![3..10, 700..800, 1100..1101]] {
            for (column, is_coded) in coded_kinds.iter_mut().enumerate() {
                let values = of_group.column(column, &ranges, None).unwrap().unwrap();
                let Some(coded) = of_group.coded(column, &ranges).unwrap() else { continue };
                *is_coded = true;
                assert_eq!(coded.codes.len(), values.len());
                for (row, code) in coded.codes.iter().enumerate() {
                    let is_null = coded.validity.as_ref().is_some_and(|valid| !valid.get(row));
                    let value = if is_null { Datum::Null } else { coded.entries.get(*code as usize) };
                    assert_eq!(format!("{value:?}"), format!("{:?}", values.get(row)), "column {column}, row {row}");
                }
            }
        }
    }
    // Numerics of several scales are strings, and no text; the last integers are too many; booleans are a bit each as they are.
    assert_eq!(coded_kinds, [true, true, true, true, false, true, true, false, false, false]);
}
