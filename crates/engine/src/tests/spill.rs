//! Write sets that do not fit into memory: the same answers, the same rollbacks, the same state after a crash.

use std::ops::Bound;
use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

fn open(directory: &Arc<MemoryDirectory>, write_set_bytes: usize) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    let options = EngineOptions { write_set_bytes, memory_bytes: 1 << 20, segment_bytes: 200_000, ..EngineOptions::default() };
    Engine::open(options, directory, Arc::new(OsClock::new())).expect("opens")
}

fn row(value: i64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8]).encode_row(&[Datum::Int8(value)])
}

fn key(value: i64) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// Rows, their sum, and the entries of the index that lead to rows with another value: none.
fn look(t: &Arc<Transaction>, view: ReadView, table: TreeId, index: TreeId) -> (usize, i64, usize) {
    let mut scan = t.scan(view, table, &[0], &[], &[], None).expect("opens");
    let (mut rows, mut sum) = (0, 0);
    while let Some(batch) = scan.next().expect("scans") {
        rows += batch.row_ids.len();
        sum += (0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_i64()).sum::<i64>();
    }
    let mut entries = t.index(index).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
    let (mut found, mut wrong) = (0, 0);
    while let Some((entry, id)) = entries.next().expect("scans") {
        let (entry, id) = (entry.to_vec(), id);
        found += 1;
        let stored = t.get(view, table, id).expect("reads");
        wrong += usize::from(stored.as_deref() != Some(&row(i64::from_be_bytes(entry.try_into().expect("8 bytes")))[..]));
    }
    assert_eq!(found, rows, "an entry a row");
    (rows, sum, wrong)
}

#[test]
fn large_updates_are_as_small_ones() {
    const ROWS: i64 = 12_000;
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 60_000);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
    let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
    let insert = |value: i64| {
        let id = t.insert(table, &row(value)).expect("inserts");
        t.index(index).insert(&key(value), id).expect("inserts");
    };
    (0..ROWS).for_each(insert);
    assert!(t.write_bytes() < 60_000);
    assert_eq!(look(&t, t.statement_view(), table, index), (ROWS as usize, ROWS * (ROWS - 1) / 2, 0));
    t.commit(Durability::Sync).expect("commits");

    let before = engine.begin(Isolation::RepeatableRead).expect("begins");
    let old = before.statement_view();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = t.statement_view();
    let update = |value: i64, new: i64| {
        let id = t.index(index).probe_latest(&key(value), None).expect("probes").expect("there");
        assert!(t.get_latest(table, id).expect("reads").own_command.is_none());
        t.update(table, id, &row(new)).expect("updates");
        t.index(index).delete(&key(value), id).expect("deletes");
        t.index(index).insert(&key(new), id).expect("inserts");
        assert!(t.get_latest(table, id).expect("reads").own_command.is_some_and(|c| c >= view.command));
    };
    (0..ROWS).for_each(|i| update(i * 7919 % ROWS, i * 7919 % ROWS + 1_000_000));
    assert!(t.write_bytes() < 60_000);
    // A statement does not see its own writes, and other transactions do not either.
    assert_eq!(look(&t, view, table, index), (ROWS as usize, ROWS * (ROWS - 1) / 2, 0));
    let updated = (ROWS as usize, ROWS * (ROWS - 1) / 2 + ROWS * 1_000_000, 0);
    assert_eq!(look(&t, t.statement_view(), table, index), updated);

    let savepoint = t.savepoint();
    let pinned = t.statement_view();
    let _pin = t.pin_view(pinned);
    for value in (0..ROWS).step_by(2) {
        let id = t.index(index).probe_latest(&key(value + 1_000_000), None).expect("probes").expect("there");
        t.delete(table, id).expect("deletes");
        t.index(index).delete(&key(value + 1_000_000), id).expect("deletes");
    }
    assert_eq!(look(&t, pinned, table, index), updated, "a cursor sees what it saw");
    assert_eq!(look(&t, t.statement_view(), table, index).0, ROWS as usize / 2);
    t.rollback_to(savepoint);
    assert_eq!(look(&t, t.statement_view(), table, index), updated);
    let id = t.index(index).probe_latest(&key(1_000_000), None).expect("probes").expect("there");
    t.delete(table, id).expect("deletes");
    t.index(index).delete(&key(1_000_000), id).expect("deletes");
    let left = (updated.0 - 1, updated.1 - 1_000_000, 0);
    assert_eq!(look(&t, t.statement_view(), table, index), left);
    let log = engine.log_statistics().bytes;
    t.commit(Durability::Sync).expect("commits");
    assert!(engine.log_statistics().bytes - log < 100_000, "the log has links");
    assert_eq!(engine.tree_rows_estimate(table), left.0 as u64);
    assert_eq!(look(&before, old, table, index), (ROWS as usize, ROWS * (ROWS - 1) / 2, 0), "an old snapshot");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(look(&t, t.statement_view(), table, index), left);
    drop((t, before));

    let crashed = directory.after_power_cut(&mut || false);
    let engine = open(&crashed, 60_000);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(look(&t, t.statement_view(), table, index), left, "after a crash");
    engine.checkpoint().expect("flushes");
    engine.merge_all().expect("merges");
    assert_eq!(look(&t, t.statement_view(), table, index), left, "after merges");
}

#[test]
fn a_rolled_back_spill_leaves_no_file() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 2_000);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    let files = |d: &MemoryDirectory| d.subdirectory("segments").expect("there").list().expect("lists").len();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    for i in 0..1_000 {
        // A statement each, as clients that insert row by row do.
        t.statement_view();
        t.insert(table, &row(i)).expect("inserts");
    }
    assert!(files(&directory) > 0 && t.write_bytes() < 20_000);
    let crashed = directory.after_power_cut(&mut || true);
    t.rollback();
    drop(t);
    while engine.run_once() {}
    assert_eq!(files(&directory), 0);
    assert_eq!(engine.query_memory().reserved(), 0);
    let engine = open(&crashed, 2_000);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert!(t.scan(t.statement_view(), table, &[0], &[], &[], None).expect("opens").next().expect("scans").is_none());
    assert_eq!(files(&crashed), 0, "what the crash left is gone");
}

#[test]
fn scans_that_are_open_while_changes_are_moved_see_each_row_once() {
    const ROWS: i64 = 3000;
    let directory = MemoryDirectory::new();
    let engine = open(&directory, 400_000);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
    let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
    for value in 0..ROWS {
        let id = t.insert(table, &row(value)).expect("inserts");
        t.index(index).insert(&key(value), id).expect("inserts");
    }
    t.commit(Durability::Sync).expect("commits");
    engine.checkpoint().expect("flushes");

    // Half of the rows are new, in memory, when the scans begin.
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.statement_view();
    let update = |ids: std::ops::RangeInclusive<i64>, by: i64| {
        for id in ids.map(|id| RowId(id as u64)) {
            let old = t.get_latest(table, id).expect("reads").row.expect("there");
            let old = RowLayout::new(vec![Kind::Int8]).view(&old).expect("a row").datum(0, &Datum::Null).as_i64();
            t.update(table, id, &row(old + by)).expect("updates");
            t.index(index).delete(&key(old), id).expect("deletes");
            t.index(index).insert(&key(old + by), id).expect("inserts");
        }
    };
    update(1..=ROWS / 2, ROWS);
    let all_in_memory = t.write_bytes();
    let view = t.statement_view();
    let mut scan = t.scan(view, table, &[0], &[], &[], None).expect("opens");
    let mut entries = t.index(index).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
    let first = scan.next().expect("scans").expect("rows");
    let mut values: Vec<i64> = (0..first.row_ids.len()).map(|i| first.columns[0].get(i).as_i64()).collect();
    let mut keys = vec![entries.next().expect("scans").expect("an entry").0.to_vec()];
    t.statement_view();
    update(1..=ROWS, 2 * ROWS);
    assert!(t.write_bytes() < all_in_memory, "the first half was moved");
    while let Some(batch) = scan.next().expect("scans") {
        values.extend((0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_i64()));
    }
    while let Some((entry, _)) = entries.next().expect("scans") {
        keys.push(entry.to_vec());
    }
    values.sort_unstable();
    let wanted: Vec<i64> = (ROWS / 2..ROWS + ROWS / 2).collect();
    assert_eq!(values, wanted);
    assert_eq!(keys, wanted.iter().map(|value| key(*value)).collect::<Vec<_>>());
}
