use std::ops::ControlFlow;

use melba_types::RowId;
use melba_vfs::OsDirectory;

use super::*;
use crate::{BlockCache, SegmentError};

type Entry = (Vec<u8>, Csn, bool);

/// Sorted entries: 3 row ids a prefix, several versions of some keys.
fn entries(prefixes: u64) -> Vec<Entry> {
    let mut out = Vec::new();
    for p in 0..prefixes {
        for row in 0..3u64 {
            let mut key = format!("customer/{:06}/{}", p * 3, "z".repeat(p as usize % 5)).into_bytes();
            key.extend_from_slice(&(row * 1000 + p).to_be_bytes());
            for version in (0..=(p + row) % 3).rev() {
                out.push((key.clone(), Csn(version * 10 + 1), version == 1));
            }
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    out
}

fn write(directory: &OsDirectory, name: &str, entries: &[Entry], options: &KeyOptions) -> KeySegmentMeta {
    let mut writer = KeySegmentWriter::create(directory, name, options).unwrap();
    for (key, csn, tombstone) in entries {
        writer.append(key, *csn, *tombstone).unwrap();
    }
    writer.finish().unwrap()
}

fn folder() -> (tempfile::TempDir, OsDirectory) {
    let folder = tempfile::tempdir().unwrap();
    let directory = OsDirectory::open(folder.path()).unwrap();
    (folder, directory)
}

fn here(cursor: &KeyCursor) -> Entry {
    (cursor.key().to_vec(), cursor.csn(), cursor.tombstone())
}

#[test]
fn cursors_walk_and_seek_both_ways() {
    let (_folder, directory) = folder();
    let entries = entries(1500);
    let options = KeyOptions { block_bytes: 500, ..KeyOptions::default() };
    let meta = write(&directory, "k", &entries, &options);
    assert_eq!(meta.entries, entries.len() as u64);
    let segment = KeySegmentReader::open(&directory, "k", &BlockCache::new(1 << 20)).unwrap();
    assert_eq!(*segment.meta(), meta);
    segment.verify().unwrap();
    let mut cursor = segment.cursor();
    let mut forward = Vec::new();
    let mut more = cursor.seek_first().unwrap();
    while more {
        forward.push(here(&cursor));
        more = cursor.next().unwrap();
    }
    assert_eq!(forward, entries);
    let mut backward = Vec::new();
    let mut more = cursor.seek_last().unwrap();
    while more {
        backward.push(here(&cursor));
        more = cursor.prev().unwrap();
    }
    backward.reverse();
    assert_eq!(backward, entries);
    for i in (0..entries.len()).step_by(7) {
        let mut shorter = entries[i].0.clone();
        shorter.truncate(shorter.len() - i % 9);
        let mut longer = entries[i].0.clone();
        longer.push(0);
        for target in [&entries[i].0, &shorter, &longer] {
            let first = entries.partition_point(|e| e.0 < *target);
            assert_eq!(cursor.seek(target).unwrap(), first < entries.len());
            if first < entries.len() {
                assert_eq!(here(&cursor), entries[first]);
            }
            assert_eq!(cursor.seek_before(target).unwrap(), first > 0);
            if first > 0 {
                assert_eq!(here(&cursor), entries[first - 1]);
            }
        }
    }
    assert!(!cursor.seek(b"zzz").unwrap() && cursor.seek_before(b"zzz").unwrap());
    assert!(cursor.seek(b"").unwrap() && !cursor.seek_before(b"").unwrap());
}

#[test]
fn entries_of_one_key_are_found() {
    let (_folder, directory) = folder();
    let mut entries = entries(400);
    // Keys that begin with others, and many rows of one key, over several blocks.
    for row in 0..300u64 {
        entries.push(([b"customer/000300/zz/".as_slice(), &row.to_be_bytes()].concat(), Csn(row % 3), row % 7 == 0));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    let split = |e: &Entry| {
        let (key, row) = e.0.split_at(e.0.len() - ROW_ID_BYTES);
        (key.to_vec(), RowId(u64::from_be_bytes(row.try_into().unwrap())))
    };
    write(&directory, "k", &entries, &KeyOptions { block_bytes: 300, ..KeyOptions::default() });
    let segment = KeySegmentReader::open_assigned(&directory, "k", &BlockCache::new(1 << 20), Csn(5)).unwrap();
    let find = |key: &[u8], most: usize| {
        let mut found = Vec::new();
        let each = |row, csn, tombstone| {
            found.push((row, csn, tombstone));
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        segment.find(key, each).unwrap();
        found
    };
    let mut keys: Vec<Vec<u8>> = entries.iter().map(|e| split(e).0).collect();
    keys.dedup();
    let others: Vec<Vec<u8>> = keys.iter().flat_map(|k| [k[..k.len() - 1].to_vec(), [&k[..], b"z"].concat()]).collect();
    for key in keys.iter().chain(&others).chain([&b"".to_vec(), &b"a".to_vec(), &b"customer/9".to_vec(), &b"z".to_vec()]) {
        let of_key = entries.iter().map(|e| (split(e), if e.1.0 == 0 { Csn(5) } else { e.1 }, e.2)).filter(|e| e.0.0 == *key);
        let expected: Vec<(RowId, Csn, bool)> = of_key.map(|((_, row), csn, tombstone)| (row, csn, tombstone)).collect();
        assert_eq!(find(key, usize::MAX), expected, "{}", String::from_utf8_lossy(key));
        assert_eq!(find(key, 1), expected[..expected.len().min(1)]);
    }
}

#[test]
fn the_filter_knows_every_prefix() {
    let (_folder, directory) = folder();
    let entries = entries(3000);
    // Small blocks: many partitions, prefixes on their borders.
    write(&directory, "k", &entries, &KeyOptions { block_bytes: 100, ..KeyOptions::default() });
    let segment = KeySegmentReader::open(&directory, "k", &BlockCache::new(1 << 20)).unwrap();
    assert!(entries.iter().all(|e| segment.may_contain(&e.0[..e.0.len() - ROW_ID_BYTES]).unwrap()));
    let absent = (0..3000).filter(|p| segment.may_contain(format!("customer/{:06}/", p * 3 + 1).as_bytes()).unwrap()).count();
    assert!(absent < 150, "{absent} of 3000 prefixes that are not there");
    assert!(!segment.may_contain(b"d").unwrap());
}

#[test]
fn uniform_versions_cost_nothing_and_take_their_csn_at_open() {
    let (_folder, directory) = folder();
    let keys: Vec<Entry> = (0..10_000u64).map(|i| ([i.to_be_bytes(), i.to_be_bytes()].concat(), Csn(0), false)).collect();
    let meta = write(&directory, "k", &keys, &KeyOptions::default());
    assert!(meta.stored_bytes < 10_000 * 14, "{} bytes", meta.stored_bytes);
    let segment = KeySegmentReader::open_assigned(&directory, "k", &BlockCache::new(1 << 20), Csn(9)).unwrap();
    let mut cursor = segment.cursor();
    assert!(cursor.seek(&keys[77].0).unwrap());
    assert_eq!((cursor.csn(), cursor.tombstone(), segment.meta().csn_max), (Csn(9), false, Csn(9)));
}

#[test]
fn no_damaged_byte_goes_unnoticed() {
    let (folder, directory) = folder();
    let entries = entries(60);
    write(&directory, "k", &entries, &KeyOptions { block_bytes: 200, ..KeyOptions::default() });
    let path = folder.path().join("k");
    let good = std::fs::read(&path).unwrap();
    for at in 0..good.len() {
        for flip in [0x01, 0x80] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            std::fs::write(&path, &bad).unwrap();
            let opened = KeySegmentReader::open(&directory, "k", &BlockCache::new(0));
            let error = opened.and_then(|segment| segment.verify()).expect_err("damage found");
            assert!(matches!(error, SegmentError::Corrupt { .. }), "byte {at}: {error}");
        }
    }
}

/// Nonsense with a correct checksum must not panic: layouts are checked, not believed.
#[test]
fn nonsense_blocks_do_not_decode() {
    let mut builder = block::KeyBlockBuilder::default();
    let mut last = Vec::new();
    for (key, csn, tombstone) in entries(10) {
        let shared = block::shared_prefix(&last, &key);
        builder.push(&key, shared, csn, tombstone);
        last = key;
    }
    let mut content = Vec::new();
    builder.finish(&mut content);
    let mut interval = block::RestartInterval::default();
    let mut refused = 0;
    for at in 0..content.len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut bad = content.clone();
            bad[at] = value;
            let Some(block) = block::KeyBlock::parse(bad) else {
                refused += 1;
                continue;
            };
            for i in 0..block.intervals().min(100) {
                let decoded = block.enter(i, &mut interval).and_then(|()| block.decode_rest(&mut interval));
                refused += usize::from(decoded.is_none());
            }
            let _ = block.seek_interval(b"customer/000009");
        }
    }
    assert!(refused > 100);
}

#[test]
fn an_empty_segment() {
    let (_folder, directory) = folder();
    write(&directory, "k", &[], &KeyOptions::default());
    let segment = KeySegmentReader::open(&directory, "k", &BlockCache::new(1 << 20)).unwrap();
    segment.verify().unwrap();
    let mut cursor = segment.cursor();
    assert!(!cursor.seek(b"").unwrap() && !cursor.seek_last().unwrap() && !cursor.seek_first().unwrap());
    assert!(!segment.may_contain(b"x").unwrap());
}
