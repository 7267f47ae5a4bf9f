//! Costs that must not grow with the number of earlier repetitions: steps are counted, not time.

use std::ops::Bound;
use std::sync::Arc;

use melba_store::steps;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

const TABLE: TreeId = TreeId(1);
const INDEX: TreeId = TreeId(2);
/// Steps along version chains that one change may take, whatever happened before.
const STEPS_MAX: u64 = 100;

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let options = EngineOptions { wal_file_bytes: 64 << 10, ..EngineOptions::default() };
    Engine::open(options, Arc::clone(directory) as Arc<dyn Directory>, Arc::new(OsClock::new())).expect("opens")
}

fn row(n: u64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8]).encode_row(&[Datum::Int8(n as i64)])
}

/// A table with one row, and an index.
fn create(engine: &Engine) -> RowId {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates"), TABLE);
    assert_eq!(t.create_index_tree(TABLE, Persistence::Logged).expect("creates"), INDEX);
    let id = t.insert(TABLE, &row(0)).expect("inserts");
    t.commit(Durability::Async).expect("commits");
    id
}

/// Transactions that change the row, and its entry's key now and then.
fn change(engine: &Engine, id: RowId, times: u64) {
    let session = engine.session().expect("a free slot");
    for n in 1..=times {
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        t.update(TABLE, id, &row(n)).expect("updates");
        if n % 2 == 0 {
            t.index(INDEX).delete(b"key", id).expect("deletes");
        } else {
            t.index(INDEX).insert(b"key", id).expect("inserts");
        }
        t.commit(Durability::Async).expect("commits");
    }
}

fn state(engine: &Engine, id: RowId) -> (Option<RowBytes>, usize) {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = t.statement_view();
    let mut scan = t.index(INDEX).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
    let mut entries = 0;
    while scan.next().expect("scans").is_some() {
        entries += 1;
    }
    (t.get(view, TABLE, id).expect("reads"), entries)
}

#[test]
fn replay_does_not_grow_with_the_versions_of_a_row_or_key() {
    for times in [2000, 4001] {
        let directory = MemoryDirectory::new();
        let engine = open(&directory);
        let id = create(&engine);
        change(&engine, id, times);
        engine.flush_log().expect("writes");
        let before = engine.shared.store.row_store_bytes();
        let after = directory.after_power_cut(&mut || true);
        let begun = steps::taken();
        let recovered = open(&after);
        let taken = steps::taken() - begun;
        assert!(taken <= times, "{taken} steps to replay {times} changes of a row and of a key");
        assert_eq!(state(&recovered, id), state(&engine, id));
        let bytes = recovered.shared.store.row_store_bytes();
        assert!(bytes <= before && bytes < 1000, "{bytes} bytes of row store after recovery, {before} before");
    }
}

#[test]
fn a_row_that_is_changed_under_an_old_snapshot_stays_cheap() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let id = create(&engine);
    let old = engine.begin(Isolation::RepeatableRead).expect("begins");
    let seen = old.get(old.statement_view(), TABLE, id).expect("reads");
    change(&engine, id, 100);
    let half_way = engine.begin(Isolation::RepeatableRead).expect("begins");
    half_way.statement_view();
    let begun = steps::taken();
    change(&engine, id, 4000);
    let taken = steps::taken() - begun;
    assert!(taken <= 4000 * STEPS_MAX, "{taken} steps for 4000 changes of a row");
    let begun = steps::taken();
    assert_eq!(old.get(old.statement_view(), TABLE, id).expect("reads"), seen);
    assert!(steps::taken() - begun <= STEPS_MAX);
}

#[test]
fn a_transaction_over_many_trees_and_savepoints_keeps_them_apart() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tables: Vec<TreeId> =
        (0..40).map(|_| t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates")).collect();
    t.commit(Durability::Async).expect("commits");
    let session = engine.session().expect("a free slot");
    // The buffers of one transaction are the next one's.
    for first in [0, 1000, 2000] {
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        let (mut ids, mut savepoints) = (Vec::new(), Vec::new());
        for (n, table) in (first..).zip(&tables) {
            savepoints.push(t.savepoint());
            ids.push(t.insert(*table, &row(n)).expect("inserts"));
        }
        let undone = savepoints.swap_remove(30);
        t.rollback_to(undone);
        t.release(savepoints[20]);
        t.rollback_to(savepoints[19]);
        let view = t.statement_view();
        for (i, (table, id)) in tables.iter().zip(&ids).enumerate() {
            let expected = (i < 19).then(|| row(first + i as u64));
            assert_eq!(t.get(view, *table, *id).expect("reads").as_deref(), expected.as_deref(), "table {i}");
        }
        t.commit(Durability::Async).expect("commits");
        let t = engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        let view = t.statement_view();
        for (i, (table, id)) in tables.iter().zip(&ids).enumerate() {
            assert_eq!(t.get(view, *table, *id).expect("reads").is_some(), i < 19, "table {i}");
        }
    }
}
