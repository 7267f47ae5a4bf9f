//! Decode speed of columns and latency of point reads. `cargo bench -p melba-segment` measures; inside `cargo test` it runs on tiny
//! inputs, so that it cannot rot.

#![allow(clippy::disallowed_methods, reason = "a benchmark by real time")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use melba_segment::{
    BlockCache, Codec, KeyOptions, KeySegmentReader, KeySegmentWriter, TableOptions, TableSegmentReader, TableSegmentWriter,
};
use melba_types::{Batch, ByteStrings, Column, ColumnData, Csn, Kind, RowId};
use melba_vfs::OsDirectory;

fn scattered(i: usize) -> u64 {
    (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}

fn text(rows: usize, make: impl Fn(usize) -> String) -> ColumnData {
    let mut strings = ByteStrings::default();
    (0..rows).for_each(|i| strings.push(make(i).as_bytes()));
    ColumnData::Text(strings)
}

fn value_bytes(data: &ColumnData) -> usize {
    match data {
        ColumnData::Int4(v) => v.len() * 4,
        ColumnData::Int8(v) => v.len() * 8,
        ColumnData::Float8(v) => v.len() * 8,
        ColumnData::Text(v) => v.bytes.len() + v.len() * 4,
        _ => 0,
    }
}

fn write(directory: &OsDirectory, name: &str, kind: Kind, data: ColumnData, codec: Codec) -> f64 {
    let rows = Column::new(data.clone()).len();
    let options = TableOptions { codec, ..TableOptions::default() };
    let started = Instant::now();
    let mut writer = TableSegmentWriter::create(directory, name, &[kind], &options).expect("a new file");
    let ids: Vec<RowId> = (1..=rows as u64).map(RowId).collect();
    writer.append_uniform(&ids, Csn(1), &Batch::new(vec![Column::new(data)], rows)).expect("appended");
    writer.finish().expect("finished");
    started.elapsed().as_secs_f64()
}

fn scan(segment: &Arc<TableSegmentReader>, piece: usize) -> usize {
    let mut rows = 0;
    for group in 0..segment.row_groups().len() {
        let mut reader = segment.group(group, &[0]);
        for start in (0..reader.rows()).step_by(piece) {
            let range = start..(start + piece).min(reader.rows());
            let column = reader.column(0, std::slice::from_ref(&range), None).expect("decoded");
            rows += black_box(column).map_or(0, |column| column.len());
        }
    }
    rows
}

fn columns(directory: &OsDirectory, rows: usize, rounds: usize) {
    let cases: Vec<(&str, Kind, ColumnData, Codec)> = vec![
        ("int8_sequence", Kind::Int8, ColumnData::Int8((0..rows as i64).collect()), Codec::None),
        ("int8_10_bits", Kind::Int8, ColumnData::Int8((0..rows).map(|i| (scattered(i) % 1024) as i64).collect()), Codec::None),
        ("int8_44_bits", Kind::Int8, ColumnData::Int8((0..rows).map(|i| scattered(i) as i64).collect()), Codec::None),
        ("int4_runs", Kind::Int4, ColumnData::Int4((0..rows).map(|i| scattered(i / 100) as i32).collect()), Codec::None),
        ("int4_17_bits", Kind::Int4, ColumnData::Int4((0..rows).map(|i| (scattered(i) % 100_000) as i32).collect()), Codec::None),
        ("float8_plain", Kind::Float8, ColumnData::Float8((0..rows).map(|i| scattered(i) as f64 / 7.0).collect()), Codec::Lz4),
        ("text_dictionary", Kind::Text, text(rows, |i| format!("word number {}", scattered(i) % 200)), Codec::Lz4),
        ("text_symbols", Kind::Text, text(rows, |i| format!("user{}", scattered(i))), Codec::None),
        ("text_urls", Kind::Text, text(rows, |i| format!("https://example.org/page/{}.html", scattered(i))), Codec::Lz4),
        ("text_lz4", Kind::Text, text(rows, |i| format!("{} is said {}", scattered(i), "again and ".repeat(60))), Codec::Lz4),
        ("text_zstd", Kind::Text, text(rows, |i| format!("https://example.org/page/{}.html", scattered(i))), Codec::Zstd(3)),
    ];
    println!(
        "{:<16} {:>10} {:>12} {:>12} {:>12} {:>10} {:>12}",
        "column", "B/row", "cached GB/s", "read GB/s", "ns/row", "write MB/s", "point ns"
    );
    for (name, kind, data, codec) in cases {
        let bytes = value_bytes(&data);
        let write_seconds = write(directory, name, kind, data, codec);
        let cache = BlockCache::new(1 << 30);
        let segment = TableSegmentReader::open(directory, name, &cache).expect("opens");
        assert_eq!(scan(&segment, 4096), rows);
        let started = Instant::now();
        (0..rounds).for_each(|_| assert_eq!(scan(&segment, 4096), rows));
        let seconds = started.elapsed().as_secs_f64() / rounds as f64;
        let uncached = TableSegmentReader::open(directory, name, &BlockCache::new(0)).expect("opens");
        let started = Instant::now();
        assert_eq!(scan(&uncached, 4096), rows);
        let uncached_seconds = started.elapsed().as_secs_f64();
        let reads = rows.min(200_000);
        let started = Instant::now();
        for i in 0..reads {
            let id = RowId(scattered(i) % rows as u64 + 1);
            let version = segment.find(id, Csn(1)).expect("read").expect("present");
            let mut out = [Column::with_capacity(kind, 1)];
            segment.read_row(version.position, &[0], &mut out).expect("read");
            black_box(&out);
        }
        println!(
            "{name:<16} {:>10.2} {:>12.2} {:>12.2} {:>12.2} {:>10.0} {:>12.0}",
            segment.meta().stored_bytes as f64 / rows as f64,
            bytes as f64 / seconds / 1e9,
            bytes as f64 / uncached_seconds / 1e9,
            seconds * 1e9 / rows as f64,
            bytes as f64 / write_seconds / 1e6,
            started.elapsed().as_nanos() as f64 / reads as f64,
        );
    }
}

fn keys(directory: &OsDirectory, entries: usize) {
    let key = |i: usize| [(i as u64 * 3).to_be_bytes(), (i as u64).to_be_bytes()].concat();
    let started = Instant::now();
    let mut writer = KeySegmentWriter::create(directory, "keys", &KeyOptions::default()).expect("a new file");
    (0..entries).for_each(|i| writer.append(&key(i), Csn(1), false).expect("appended"));
    let meta = writer.finish().expect("finished");
    let write = started.elapsed().as_nanos() as f64 / entries as f64;
    let segment = KeySegmentReader::open(directory, "keys", &BlockCache::new(1 << 30)).expect("opens");
    let mut cursor = segment.cursor();
    let time = |count: usize, step: &mut dyn FnMut(usize)| {
        let started = Instant::now();
        (0..count).for_each(step);
        started.elapsed().as_nanos() as f64 / count as f64
    };
    let first = cursor.seek_first().expect("read");
    assert_eq!(first, entries > 0);
    let forward = time(entries - 1, &mut |_| assert!(cursor.next().expect("read")));
    let backward = time(entries - 1, &mut |_| assert!(cursor.prev().expect("read")));
    let seek = time(entries, &mut |i| assert!(cursor.seek(&key(scattered(i) as usize % entries)).expect("read")));
    let mut found = 0;
    let miss = time(entries, &mut |i| {
        let absent = ((scattered(i) % entries as u64) * 3 + 1).to_be_bytes();
        found += usize::from(segment.may_contain(&absent).expect("read"));
    });
    println!(
        "keys: {:.2} B/entry, ns: append {write:.0}, next {forward:.1}, prev {backward:.1}, seek {seek:.0}, filter miss {miss:.0} ({:.2} % wrong)",
        meta.stored_bytes as f64 / entries as f64,
        found as f64 * 100.0 / entries as f64,
    );
}

fn main() {
    // `cargo bench` passes --bench, `cargo test` does not.
    let measure = std::env::args().any(|argument| argument == "--bench");
    let (rows, rounds) = if measure { (2_000_000, 5) } else { (3000, 1) };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let directory = OsDirectory::open(folder.path()).expect("opens");
    columns(&directory, rows, rounds);
    keys(&directory, rows / 2);
}
