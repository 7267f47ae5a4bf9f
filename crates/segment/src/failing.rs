//! Every I/O of writing, opening and reading fails once: each time the caller gets the error, nothing panics, and an unfinished
//! file does not open.

use std::sync::Arc;

use melba_types::{Batch, Column, ColumnData, Csn, Kind, RowId};
use melba_vfs::{Directory, Faults, FaultyDirectory, FileOperation, MemoryDirectory};

use crate::{
    BlockCache, EncoderPool, KeyOptions, KeySegmentReader, KeySegmentWriter, Result, SegmentError, TableOptions,
    TableSegmentReader, TableSegmentWriter,
};

fn write_table(directory: &dyn Directory) -> Result<()> {
    write_rows(TableSegmentWriter::create(directory, "s", &[Kind::Int8], &TableOptions::default())?)
}

fn write_table_pooled(directory: &dyn Directory) -> Result<()> {
    let pool = EncoderPool::new(TableOptions::default(), std::sync::Arc::new(melba_threads::OwnThreads));
    write_rows(TableSegmentWriter::create_pooled(directory, "s", &[Kind::Int8], &pool)?)
}

fn write_rows(mut writer: TableSegmentWriter) -> Result<()> {
    // Scattered values of more than a write buffer, so that not all is written at the end.
    for start in (0..200_000u64).step_by(50_000) {
        let ids: Vec<RowId> = (start..start + 50_000).map(RowId).collect();
        let values = ids.iter().map(|id| id.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64).collect();
        writer.append_uniform(&ids, Csn(1), &Batch::new(vec![Column::new(ColumnData::Int8(values))], ids.len()))?;
    }
    writer.finish().map(|_| ())
}

fn read_table(directory: &dyn Directory) -> Result<()> {
    let segment = TableSegmentReader::open(directory, "s", &BlockCache::new(1 << 20))?;
    let mut out = [Column::with_capacity(Kind::Int8, 1)];
    if let Some(version) = segment.find(RowId(123_456), Csn(1))? {
        segment.read_row(version.position, &[0], &mut out)?;
    }
    assert_eq!(out[0].len(), 1);
    segment.verify()
}

fn write_keys(directory: &dyn Directory) -> Result<()> {
    let mut writer = KeySegmentWriter::create(directory, "s", &KeyOptions::default())?;
    for i in 0..100_000u64 {
        let hash = (i << 32 | i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).to_be_bytes();
        writer.append(&[hash, i.to_be_bytes()].concat(), Csn(1), false)?;
    }
    writer.finish().map(|_| ())
}

fn read_keys(directory: &dyn Directory) -> Result<()> {
    let segment = KeySegmentReader::open(directory, "s", &BlockCache::new(1 << 16))?;
    segment.may_contain(&(7u64 << 32).to_be_bytes())?;
    let mut cursor = segment.cursor();
    let mut more = cursor.seek(&(99_000u64 << 32).to_be_bytes())?;
    while more {
        more = cursor.next()?;
    }
    Ok(())
}

/// Runs `write`, then `read`, with every I/O failing in turn, and returns how many there are.
fn fail_each(write: fn(&dyn Directory) -> Result<()>, read: fn(&dyn Directory) -> Result<()>) -> u64 {
    let attempt = |fails_at: u64| {
        let (plain, faults) = (MemoryDirectory::new(), Faults::new());
        let failing = FaultyDirectory::new(Arc::clone(&plain) as Arc<dyn Directory>, Arc::clone(&faults));
        faults.fail_from(FileOperation::ALL, fails_at);
        let written = write(&*failing);
        let steps_of_write = faults.operations();
        let result = written.and_then(|()| read(&*failing));
        (plain, result, steps_of_write, faults.operations())
    };
    let (_, result, steps_of_write, steps) = attempt(u64::MAX);
    result.unwrap();
    for fails_at in 0..steps {
        let (plain, result, ..) = attempt(fails_at);
        let error = result.expect_err("the failure is reported");
        assert!(matches!(error, SegmentError::Io { .. }), "I/O {fails_at}: {error}");
        // The last one of writing is the sync, before which the file is whole.
        if fails_at + 1 < steps_of_write {
            assert!(read(&*plain).is_err(), "a file whose I/O {fails_at} failed opens");
        }
    }
    steps
}

#[test]
fn every_failing_io_of_a_table_segment_is_reported() {
    assert!(fail_each(write_table, read_table) > 10);
}

#[test]
fn every_failing_io_of_a_pooled_table_segment_is_reported() {
    assert!(fail_each(write_table_pooled, read_table) > 10);
}

#[test]
fn every_failing_io_of_a_key_segment_is_reported() {
    assert!(fail_each(write_keys, read_keys) > 10);
}
