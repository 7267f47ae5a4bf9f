//! Filters of chunks: which chunks have one, and their answers.

use std::sync::Arc;

use melba_types::{Batch, Column, ColumnData, Csn, Datum, Kind, RowId};
use melba_vfs::OsDirectory;

use super::*;
use crate::{BlockCache, SegmentError};

const KINDS: [Kind; 6] = [Kind::Int8, Kind::Text, Kind::Uuid, Kind::Int8, Kind::Int4, Kind::Text];
/// Those that have filters: the others ascend or have few values.
const FILTERED: [usize; 3] = [0, 1, 2];
const ROWS: u64 = 60_000;
const GROUP_ROWS: usize = 20_000;

fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ n << 17
}

/// Rows from `ROWS` on are in no segment.
fn row(n: u64) -> [Datum; 6] {
    let wild = scattered(n);
    [
        if n % 10 == 3 { Datum::Null } else { Datum::Int8(wild as i64) },
        if n % 10 == 4 { Datum::Null } else { Datum::text(format!("+49 {:011}", wild % 100_000_000_000)) },
        Datum::Uuid((u128::from(wild) << 60).to_be_bytes()),
        Datum::Int8(n as i64 * 1_000_000),
        Datum::Int4((wild % 9000) as i32),
        Datum::text(format!("{n:09}")),
    ]
}

fn write(mut writer: TableSegmentWriter) {
    for start in (0..ROWS).step_by(1000) {
        let rows = start..start + 1000;
        let mut columns: Vec<Column> = KINDS.iter().map(|&kind| Column::with_capacity(kind, 0)).collect();
        for n in rows.clone() {
            columns.iter_mut().zip(row(n)).for_each(|(column, value)| column.push(value));
        }
        let ids: Vec<RowId> = rows.map(|n| RowId(n + 1)).collect();
        writer.append_uniform(&ids, Csn(5), &Batch::new(columns, 1000)).unwrap();
    }
    writer.finish().unwrap();
}

fn folder() -> (tempfile::TempDir, OsDirectory) {
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    (folder, directory)
}

#[test]
fn filters_leave_out_chunks_without_a_value_and_none_that_has_it() {
    let (_folder, directory) = folder();
    let options = TableOptions { group_rows: GROUP_ROWS, ..TableOptions::default() };
    write(TableSegmentWriter::create(&directory, "alone", &KINDS, &options).unwrap());
    let pool = EncoderPool::new(options, Arc::new(melba_threads::OwnThreads));
    write(TableSegmentWriter::create_pooled(&directory, "pooled", &KINDS, &pool).unwrap());
    for name in ["alone", "pooled"] {
        let segment = TableSegmentReader::open(&directory, name, &BlockCache::new(1 << 20)).unwrap();
        segment.verify().unwrap();
        for column in 0..KINDS.len() {
            let absent = |n| [0, 1, 2].map(|group| segment.filters_out(group, column, &row(n)[column]).unwrap());
            for n in (0..ROWS).step_by(7) {
                let value = row(n)[column].clone();
                let out = absent(n);
                assert!(!out[n as usize / GROUP_ROWS] || value.is_null(), "column {column} of row {n}");
            }
            let wrong = (ROWS..ROWS + 9000).filter(|n| n % 10 > 4).map(|n| absent(n).iter().filter(|out| !**out).count());
            let (asked, wrong) = (4500 * 3, wrong.sum::<usize>());
            if FILTERED.contains(&column) {
                assert!(wrong < asked / 25, "column {column}: {wrong} of {asked}");
            } else {
                assert_eq!(wrong, asked, "column {column} has no filter");
            }
        }
        assert!(!segment.filters_out(0, 0, &Datum::Float8(0.5)).unwrap(), "a value of another kind");
        assert!(!segment.filters_out(0, 99, &Datum::Int8(1)).unwrap(), "a column that the segment lacks");
    }
}

#[test]
fn integers_of_other_widths_are_found() {
    let (_folder, directory) = folder();
    let mut writer = TableSegmentWriter::create(&directory, "t", &[Kind::Int4], &TableOptions::default()).unwrap();
    let values: Vec<i32> = (0..10_000).map(|n| scattered(n) as i32).collect();
    let ids: Vec<RowId> = (1..=10_000).map(RowId).collect();
    writer.append_uniform(&ids, Csn(5), &Batch::new(vec![Column::new(ColumnData::Int4(values.clone()))], 10_000)).unwrap();
    writer.finish().unwrap();
    let segment = TableSegmentReader::open(&directory, "t", &BlockCache::new(1 << 20)).unwrap();
    let out = |value: i64| segment.filters_out(0, 0, &Datum::Int8(value)).unwrap();
    assert!(values.iter().all(|value| !out(i64::from(*value))));
    assert!(out(i64::from(values[0]) + (1 << 40)));
}

#[test]
fn damage_to_a_filter_is_an_error() {
    let (folder, directory) = folder();
    let options = TableOptions { group_rows: GROUP_ROWS, ..TableOptions::default() };
    write(TableSegmentWriter::create(&directory, "t", &KINDS, &options).unwrap());
    let open = || TableSegmentReader::open(&directory, "t", &BlockCache::new(1 << 20)).unwrap();
    let filter = open().chunk(1, 0).filter.expect("the column has one");
    let path = folder.path().join("t");
    let whole = std::fs::read(&path).unwrap();
    for at in [0, 5, 8, 9, filter.bytes() - 1] {
        let mut damaged = whole.clone();
        damaged[(filter.offset + at) as usize] ^= 4;
        std::fs::write(&path, damaged).unwrap();
        assert!(matches!(open().verify(), Err(SegmentError::Corrupt { .. })), "byte {at}");
    }
}

/// A file as version 4 wrote it: the annotated table segment of docs/design/segment.md at that time.
#[test]
fn segments_of_version_4_are_read() {
    const FILE: &str = "4d454c424154414204000000fa326d2e110000009f0a12ae0001030002030e001800000000000000000a0000004ae7ce\
        c1000103000003028080084500000063692fe40001020300240103050501030001030505010003010e12021001190003\
        010206021001120001010a0a010805000000000000000001010000010800000000000000000000003b00000000000000\
        4d00000003d16f264d454c4241544142";
    let digits: Vec<u8> = FILE.bytes().filter(|b| b.is_ascii_hexdigit()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let (folder, directory) = folder();
    std::fs::write(folder.path().join("t"), digits.chunks(2).map(byte).collect::<Vec<u8>>()).unwrap();
    let segment = TableSegmentReader::open(&directory, "t", &BlockCache::new(1 << 20)).unwrap();
    segment.verify().unwrap();
    let column = segment.read_group(0, &[0]).unwrap().columns[0].clone().expect("the column is there");
    assert_eq!((0..3).map(|i| column.get(i).as_i32()).collect::<Vec<_>>(), [7, 9, 8]);
}
