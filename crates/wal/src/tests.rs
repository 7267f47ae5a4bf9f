//! The log as a whole.

use std::sync::Arc;

use melba_types::{Csn, Lsn};
use melba_vfs::{Directory, Faults, FaultyDirectory, MemoryDirectory};

use crate::format::{FileHeader, end_mark, file_name, record_header};
use crate::*;

fn small() -> WalOptions {
    WalOptions { file_bytes: 512, spares_max: 2, ..WalOptions::default() }
}

fn open(directory: Arc<dyn Directory>, options: WalOptions, start: Lsn) -> Result<Wal> {
    let wal = Wal::new(directory, options);
    wal.begin(start)?;
    Ok(wal)
}

fn append(wal: &Wal, text: &str) -> Lsn {
    let mut payload = text.as_bytes().to_vec();
    let crc = payload_crc(&payload);
    wal.append(Csn(7), &mut payload, crc).1
}

fn read(directory: &dyn Directory, from: Lsn) -> Result<(Vec<String>, Lsn)> {
    read_known(directory, from, Belongs::default(), None)
}

fn read_known(directory: &dyn Directory, from: Lsn, belongs: Belongs, known: Option<Known>) -> Result<(Vec<String>, Lsn)> {
    let mut out = Vec::new();
    let end = replay(directory, from, belongs, known, |r| {
        assert_eq!(r.csn, Csn(7));
        out.push(String::from_utf8_lossy(r.payload).into_owned());
        Ok::<(), WalError>(())
    })?;
    Ok((out, end))
}

#[test]
fn flushed_records_come_back_over_files_and_torn_tails_end_the_log() {
    let d = MemoryDirectory::new();
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, small(), Lsn(0)).expect("opens");
    let mut expected = Vec::new();
    for i in 0..40 {
        let text = format!("record {i} {}", "x".repeat(i * 7));
        append(&wal, &text);
        expected.push(text);
        if i % 3 == 0 {
            wal.flush(WrittenBy::Client).expect("flushes");
        }
    }
    let end = wal.flush(WrittenBy::Client).expect("flushes");
    append(&wal, "never flushed");
    assert!(d.list().expect("lists").len() > 5, "several files");
    // Whichever part of a torn write reaches the disk, the log ends at the same position.
    let torn = wal.flush(WrittenBy::Client);
    assert!(torn.is_ok());
    let after = d.after_power_cut(&mut || false);
    assert_eq!(read(&*after, Lsn(0)).expect("reads").0[..40], expected[..]);
    let (tail, at) = read(&*after, end).expect("reads");
    assert_eq!(tail, ["never flushed"]);
    let wal = open(Arc::clone(&after) as Arc<dyn Directory>, small(), at).expect("opens");
    append(&wal, "after recovery");
    wal.flush(WrittenBy::Client).expect("flushes");
    assert_eq!(read(&*after, end).expect("reads").0, ["never flushed", "after recovery"]);
}

#[test]
fn an_unsynced_write_is_torn_in_every_way_without_harm() {
    for pattern in 0..64u32 {
        let d = MemoryDirectory::new();
        let options = WalOptions { file_bytes: 8192, ..small() };
        let wal = open(Arc::clone(&d) as Arc<dyn Directory>, options.clone(), Lsn(0)).expect("opens");
        append(&wal, "acknowledged");
        wal.flush(WrittenBy::Client).expect("flushes");
        for i in 0..8 {
            append(&wal, &format!("{i}{}", "y".repeat(300)));
        }
        d.cut_power_at_sync(d.syncs());
        assert!(wal.flush(WrittenBy::Client).is_err());
        assert!(matches!(wal.flush(WrittenBy::Client), Err(WalError::Failed)));
        let mut sector = 0;
        let after = d.after_power_cut(&mut || {
            sector += 1;
            pattern >> (sector - 1) & 1 != 0
        });
        let (records, end) = read(&*after, Lsn(0)).expect("reads");
        assert_eq!(records[0], "acknowledged");
        for (i, r) in records[1..].iter().enumerate() {
            assert_eq!(*r, format!("{i}{}", "y".repeat(300)));
        }
        // Bytes beyond the end must never come back as records, also when the same bytes are appended again.
        let wal = open(Arc::clone(&after) as Arc<dyn Directory>, options, end).expect("opens");
        append(&wal, &format!("{}{}", records.len() - 1, "z".repeat(300)));
        wal.flush(WrittenBy::Client).expect("flushes");
        let (again, _) = read(&*after, Lsn(0)).expect("reads");
        assert_eq!(again.len(), records.len() + 1);
    }
}

#[test]
fn released_files_are_reused_and_old_records_in_them_are_not_read() {
    let d = MemoryDirectory::new();
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, small(), Lsn(0)).expect("opens");
    for i in 0..60 {
        let end = append(&wal, &format!("record {i:04}"));
        wal.flush(WrittenBy::Client).expect("flushes");
        wal.release_before(end).expect("releases");
        assert!(d.list().expect("lists").len() <= 1 + small().spares_max);
        assert_eq!(read(&*d, end).expect("reads"), (vec![], end));
    }
    assert!(read(&*d, Lsn(0)).is_err(), "the beginning is gone, and that is noticed");
}

#[test]
fn damage_in_the_middle_is_an_error() {
    let d = MemoryDirectory::new();
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, small(), Lsn(0)).expect("opens");
    for i in 0..60 {
        append(&wal, &format!("record {i:04}"));
        wal.flush(WrittenBy::Client).expect("flushes");
    }
    d.flip_bit(&d.list().expect("lists")[1], (FILE_HEADER_BYTES as u64 + 30) * 8).expect("flips");
    assert!(matches!(read(&*d, Lsn(0)), Err(WalError::Corrupt { .. })));
}

#[test]
fn damage_before_a_later_batch_is_an_error_in_the_last_file_too() {
    let d = MemoryDirectory::new();
    let options = WalOptions { file_bytes: 8192, ..small() };
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, options, Lsn(0)).expect("opens");
    let ends: Vec<Lsn> = (0..5)
        .map(|i| {
            let end = append(&wal, &format!("batch {i}"));
            wal.flush(WrittenBy::Client).expect("flushes");
            end
        })
        .collect();
    let name = &d.list().expect("lists")[0];
    for bit in 0..(FILE_HEADER_BYTES as u64 + ends[4].0) * 8 {
        // The header's padding and nothing else may be anything.
        d.flip_bit(name, bit).expect("flips");
        let offset = bit / 8;
        match read(&*d, Lsn(0)) {
            Err(WalError::Corrupt { file, .. } | WalError::Misplaced { file, .. }) => assert_eq!(file, *name),
            Ok((records, _)) => {
                assert!(offset >= FILE_HEADER_BYTES as u64 + ends[3].0, "bit {bit}: {records:?}");
                assert_eq!(records.len(), 4, "the last batch may never have been synced");
            }
            Err(e) => panic!("{e}"),
        }
        d.flip_bit(name, bit).expect("flips");
    }
}

#[test]
fn a_full_disk_refuses_promises_and_nothing_that_was_promised() {
    for free in (0..3000).step_by(97) {
        let faults = Faults::new();
        let d = FaultyDirectory::new(MemoryDirectory::new(), Arc::clone(&faults));
        let wal = open(Arc::clone(&d) as Arc<dyn Directory>, small(), Lsn(0)).expect("opens");
        let mut expected = Vec::new();
        let mut refused = 0;
        for i in 0..60 {
            if i == 5 {
                faults.set_free(Some(free));
            }
            if i == 50 {
                faults.set_free(None);
            }
            let text = format!("record {i} {}", "x".repeat(i * 29 % 700));
            match wal.reserve(text.len()) {
                Ok(()) => {
                    append(&wal, &text);
                    expected.push(text);
                }
                Err(WalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::StorageFull => refused += 1,
                Err(e) => panic!("free {free}: {e}"),
            }
            if i % 3 == 0 {
                wal.flush(WrittenBy::Client).expect("what was promised has its place");
            }
        }
        let end = wal.flush(WrittenBy::Client).expect("flushes");
        assert!(refused > 0, "free {free}");
        assert_eq!(read(&*d, Lsn(0)).expect("reads"), (expected, end));
    }
}

#[test]
fn the_format_is_as_documented() {
    let header = FileHeader { start: Lsn(0x0102_0304), len: 9, database: 7, manifest: 5, bytes: FILE_HEADER_BYTES };
    let bytes = header.encode();
    assert_eq!(bytes.len(), FILE_HEADER_BYTES);
    assert_eq!(&bytes[..12], b"MELBAWAL\x03\0\0\0");
    assert_eq!(&bytes[16..24], &[4, 3, 2, 1, 0, 0, 0, 0]);
    assert_eq!((bytes[24], bytes[32], bytes[40], &bytes[48..]), (9, 7, 5, &[0; 16][..]));
    assert_eq!(FileHeader::parse(&bytes), Some(Ok(header)));
    let record = record_header(5, payload_crc(b"hello"), Lsn(9), Csn(3), false);
    assert_eq!(record.len(), RECORD_HEADER_BYTES);
    assert_eq!(&record[..4], &[5, 0, 0, 0]);
    assert_eq!(&record[8..], &[9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
    let after_sync = record_header(5, payload_crc(b"hello"), Lsn(9), Csn(3), true);
    assert_eq!(after_sync[16..], [3, 0, 0, 0, 0, 0, 0, 0x80]);
    let end = end_mark(Lsn(9));
    assert_eq!((&end[..4], &end[8..]), (&[0xff; 4][..], &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..]));
    let document = include_str!("../../../docs/design/wal.md");
    assert!(document.contains(&format!("Format version: {FORMAT_VERSION}.")));
    let source = include_str!("format.rs");
    let diagram = source.lines().filter_map(|l| l.strip_prefix("//! ")).filter(|l| l.contains(" | ") && !l.contains('`'));
    assert_eq!(diagram.inspect(|l| assert!(document.contains(l.trim_end()), "{l}")).count(), 4);
}

/// A file of format version 2: a header of 32 bytes, records, no end.
fn old_file(directory: &dyn Directory, start: Lsn, payloads: &[&str]) -> Lsn {
    let mut bytes = b"MELBAWAL\x02\0\0\0".to_vec();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[8..12]), &start.0.to_le_bytes());
    bytes.extend(crc.to_le_bytes());
    bytes.extend(start.0.to_le_bytes());
    bytes.resize(32, 0);
    let mut lsn = start;
    for payload in payloads {
        let payload = payload.as_bytes();
        bytes.extend(record_header(payload.len() as u32, payload_crc(payload), lsn, Csn(7), true));
        bytes.extend(payload);
        lsn = Lsn(lsn.0 + (RECORD_HEADER_BYTES + payload.len()) as u64);
    }
    bytes.extend([0; 100]);
    directory.create(&file_name(start)).and_then(|f| f.write_at(&bytes, 0)).expect("writes");
    lsn
}

#[test]
fn files_of_the_version_before_are_read_and_new_ones_follow_them() {
    let d = MemoryDirectory::new();
    let next = old_file(&*d, Lsn(0), &["one", "two"]);
    let end = old_file(&*d, next, &["three"]);
    assert_eq!(read(&*d, Lsn(0)).expect("reads"), (["one", "two", "three"].map(str::to_owned).to_vec(), end));
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, small(), end).expect("opens");
    append(&wal, "four");
    wal.flush(WrittenBy::Client).expect("flushes");
    assert_eq!(read(&*d, Lsn(0)).expect("reads").0, ["one", "two", "three", "four"]);
    let unknown = d.create(&file_name(wal.end())).expect("creates");
    unknown.write_at(b"MELBAWAL\x04\0\0\0", 0).and_then(|()| unknown.set_len(200)).expect("writes");
    let error = read(&*d, Lsn(0)).expect_err("a version to come");
    assert!(error.to_string().contains("unknown format version 4"), "{error}");
}

const OURS: Belongs = Belongs { database: 5, manifest: 10 };

/// A log of several files, of which the manifest knows; the names of those files.
fn known_log() -> (Arc<MemoryDirectory>, Known, Vec<String>, Vec<String>) {
    let d = MemoryDirectory::new();
    let wal = Wal::new(Arc::clone(&d) as Arc<dyn Directory>, small());
    wal.belongs_to(OURS);
    wal.begin(Lsn(0)).expect("begins");
    let mut written = Vec::new();
    for i in 0..30 {
        written.push(format!("record {i:04}"));
        append(&wal, written.last().expect("just pushed"));
        wal.flush(WrittenBy::Client).expect("flushes");
    }
    let known = wal.known().expect("everything was synced");
    let files: Vec<String> = d.list().expect("lists").into_iter().filter(|n| !n.starts_with("spare")).collect();
    assert!(files.len() > 2);
    assert_eq!(read_known(&*d, Lsn(0), OURS, Some(known)).expect("reads").0, written);
    (d, known, files, written)
}

#[track_caller]
fn refused(d: &dyn Directory, known: Option<Known>, file: &str) {
    let error = read_known(d, Lsn(0), OURS, known).expect_err("is refused");
    assert!(error.to_string().contains(file), "{error} does not name {file}");
}

#[test]
fn a_file_that_is_missing_renamed_cut_or_of_another_database_is_refused_by_name() {
    let (d, known, files, _) = known_log();
    let copy = || d.after_power_cut(&mut || true);
    for (i, file) in files.iter().enumerate() {
        let without = copy();
        without.remove(file).expect("removes");
        // Behind the first file of a start there is always one that says so.
        let knows = [Some(known), None].into_iter().take(if i == 0 { 1 } else { 2 });
        knows.for_each(|known| refused(&*without, known, if i == 0 { &files[0] } else { file }));

        let renamed = copy();
        let other = file_name(Lsn(if i == 0 { 0x7777 } else { 1 }));
        renamed.rename(file, &other).expect("renames");
        refused(&*renamed, Some(known), ".wal");

        let cut = copy();
        let f = cut.open(file).expect("there");
        f.set_len(f.len().expect("answers") - 1).expect("cuts");
        refused(&*cut, Some(known), file);
    }
    let error = read_known(&*d, Lsn(0), Belongs { database: 6, ..OURS }, None).expect_err("another database's");
    assert!(error.to_string().contains("another database") && error.to_string().contains(&files[0]), "{error}");
    let error = read_known(&*d, Lsn(0), Belongs { manifest: 9, ..OURS }, Some(known)).expect_err("an older manifest");
    assert!(error.to_string().contains("newer than the file \"MANIFEST\""), "{error}");
    let all_gone = MemoryDirectory::new();
    refused(&*all_gone, Some(known), &files[0]);
    let behind = Known { start: Lsn(0), durable: Lsn(50) };
    assert!(read_known(&*all_gone, Lsn(40), OURS, Some(behind)).is_err());
}

#[test]
fn an_older_copy_of_a_log_file_is_refused_up_to_the_known_durable_position() {
    let d = MemoryDirectory::new();
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, WalOptions { file_bytes: 4096, ..small() }, Lsn(0)).expect("opens");
    append(&wal, "one");
    wal.flush(WrittenBy::Client).expect("flushes");
    let older = d.after_power_cut(&mut || true);
    append(&wal, "two");
    wal.flush(WrittenBy::Client).expect("flushes");
    let known = wal.known().expect("everything was synced");
    assert_eq!(read_known(&*d, Lsn(0), OURS, Some(known)).expect("reads").0, ["one", "two"]);
    refused(&*older, Some(known), &file_name(Lsn(0)));
    assert_eq!(read(&*older, Lsn(0)).expect("nobody knows better").0, ["one"]);
}

#[test]
fn a_file_that_is_begun_needs_nothing_but_its_end_to_be_missed() {
    // The power fails at every sync of a rotation: acknowledged records are there, and no file is reported missing that never existed.
    for cut in 0..14 {
        for survives in [false, true] {
            let d = MemoryDirectory::new();
            d.cut_power_at_sync(cut);
            let Ok(wal) = open(Arc::clone(&d) as Arc<dyn Directory>, small(), Lsn(0)) else { continue };
            let known = wal.known();
            let mut acknowledged = 0;
            for i in 0..30 {
                append(&wal, &format!("record {i} {}", "x".repeat(150)));
                if wal.flush(WrittenBy::Client).is_err() {
                    break;
                }
                acknowledged += 1;
            }
            let after = d.after_power_cut(&mut || survives);
            let (records, end) = read_known(&*after, Lsn(0), Belongs::default(), known).expect("reads");
            assert!(records.len() == acknowledged || records.len() == acknowledged + 1, "cut {cut}");
            // Beginning again at the same place does not lose the file that is known.
            after.cut_power_at_sync(after.syncs() + cut % 3);
            let again = open(Arc::clone(&after) as Arc<dyn Directory>, small(), end);
            let last = after.after_power_cut(&mut || again.is_ok() == survives);
            assert_eq!(read_known(&*last, Lsn(0), Belongs::default(), known).expect("reads").0, records, "cut {cut}");
        }
    }
}

#[test]
fn the_log_goes_on_behind_the_point_where_replay_begins() {
    // A file that had been abandoned exists again, and its successors, which held nothing, do not.
    let d = MemoryDirectory::new();
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, small(), Lsn(0)).expect("opens");
    append(&wal, "long ago");
    wal.flush(WrittenBy::Client).expect("flushes");
    let begin = Lsn(10_000);
    let (found, end) = read(&*d, begin).expect("reads");
    assert_eq!((found.len(), end), (0, begin));
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, small(), end).expect("opens");
    append(&wal, "now");
    wal.flush(WrittenBy::Client).expect("flushes");
    assert_eq!(read(&*d.after_power_cut(&mut || false), begin).expect("reads").0, ["now"]);
}

#[test]
fn a_spare_that_does_not_fit_leaves_nothing() {
    let (d, faults) = (MemoryDirectory::new(), Faults::new());
    let folder = FaultyDirectory::new(Arc::clone(&d) as Arc<dyn Directory>, Arc::clone(&faults));
    let wal = open(folder, small(), Lsn(0)).expect("opens");
    append(&wal, &"x".repeat(300));
    wal.flush(WrittenBy::Client).expect("flushes");
    let files = d.list().expect("lists");
    faults.set_free(Some(100));
    assert!(wal.prepare_spare().is_err());
    assert_eq!(d.list().expect("lists"), files);
    faults.set_free(None);
    assert!(wal.prepare_spare().expect("prepares"));
}

#[test]
fn spare_log_files_are_removed_except_reserved_ones() {
    let d = MemoryDirectory::new();
    let wal = open(Arc::clone(&d) as Arc<dyn Directory>, small(), Lsn(0)).expect("opens");
    for _ in 0..3 {
        append(&wal, &"x".repeat(300));
        wal.flush(WrittenBy::Client).expect("flushes");
    }
    wal.release_before(wal.end()).expect("releases");
    let files = || d.list().expect("lists").len();
    assert_eq!(files(), 3);
    wal.reserve(400).expect("there is room in a spare");
    assert!(wal.remove_spares().expect("removes"), "the one is enough for what is promised");
    assert_eq!(files(), 2);
    assert!(!wal.remove_spares().expect("looks"), "the file in use is half full");
    wal.unreserve(400);
    append(&wal, "another file");
    append(&wal, &"y".repeat(150));
    wal.flush(WrittenBy::Client).expect("flushes");
    assert_eq!(files(), 2);
    assert!(!wal.remove_spares().expect("looks"), "there is none");
    wal.reserve(400).expect("makes one");
    assert!(!wal.remove_spares().expect("looks"), "it is promised");
    assert_eq!(files(), 3);
}
