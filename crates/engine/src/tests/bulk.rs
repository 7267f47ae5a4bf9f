//! Bulk loads: private until commit, gone after rollback, whole after a crash.

use std::ops::Bound;
use std::sync::Arc;

use melba_types::{Batch, Column, ColumnData, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    Engine::open(EngineOptions::default(), directory, Arc::new(OsClock::new())).expect("opens")
}

fn batch(first: i64, rows: usize) -> Batch {
    Batch::new(vec![Column::new(ColumnData::Int8((first..first + rows as i64).collect()))], rows)
}

fn count(t: &Arc<Transaction>, view: ReadView, tree: TreeId) -> (usize, i64) {
    let mut scan = t.scan(view, tree, &[0], &[], &[], None).expect("opens");
    let (mut rows, mut sum) = (0, 0);
    while let Some(batch) = scan.next().expect("scans") {
        rows += batch.row_ids.len();
        sum += (0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_i64()).sum::<i64>();
    }
    (rows, sum)
}

fn segments(directory: &MemoryDirectory) -> usize {
    directory.subdirectory("segments").expect("there").list().expect("lists").len()
}

#[test]
fn a_bulk_load_behaves_like_single_rows() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
    t.commit(Durability::Sync, |_| {}).expect("commits");
    let (log, _) = engine.log_counters();

    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let before = t.statement_view();
    for i in 0..10 {
        t.insert_batch(tree, &batch(i * 4000, 4000)).expect("loads");
    }
    assert_eq!(count(&t, before, tree).0, 0, "a statement does not see its own rows");
    let view = t.statement_view();
    assert_eq!(count(&t, view, tree), (40_000, 40_000 * 39_999 / 2));
    let id = RowId(30_000);
    assert!(t.get(view, tree, id).expect("reads").is_some());
    assert!(t.get_latest(tree, id).expect("reads").row.is_some());
    t.delete(tree, id).expect("deletes");
    let savepoint = t.savepoint();
    t.insert_batch(tree, &batch(0, 50_000)).expect("loads");
    assert_eq!(count(&t, t.statement_view(), tree).0, 89_999);
    t.rollback_to(savepoint);
    assert_eq!(count(&t, t.statement_view(), tree).0, 39_999);
    let other = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(count(&other, other.statement_view(), tree).0, 0);
    t.commit(Durability::Sync, |_| {}).expect("commits");
    assert!(engine.log_counters().0 - log < 400_000, "only the first rows are in the log");
    assert_eq!(count(&other, other.statement_view(), tree).0, 39_999);
    assert_eq!(engine.tree_rows_estimate(tree), 39_999);
    drop(other);
    while engine.run_once() {}
    assert_eq!(segments(&directory), 1, "what was rolled back is gone");

    let crashed = directory.after_power_cut(&mut || false);
    let engine = open(&crashed);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(count(&t, t.statement_view(), tree).0, 39_999);
    t.insert_batch(tree, &batch(0, 50_000)).expect("loads");
    // A checkpoint names the linked segment, a merge replaces it; a load in progress is not touched.
    engine.checkpoint().expect("flushes");
    engine.merge_all().expect("merges");
    let after = crashed.after_power_cut(&mut || true);
    let engine = open(&after);
    let t2 = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(count(&t2, t2.statement_view(), tree).0, 39_999);
    assert_eq!(segments(&after), 1, "the load that the crash ended left nothing");
}

#[test]
fn built_indexes_are_sorted_over_spills_and_find_duplicates() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
    let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
    let key = |i: u64| [&[b'k'; 300][..], &(i * 7919 % 100_000).to_be_bytes()].concat();
    let mut builder = t.build_index(index).expect("begins");
    (0..100_000).for_each(|i| builder.add(&key(i), RowId(i)).expect("adds"));
    assert_eq!(builder.finish(|_, _, _| true).expect("builds"), None);
    let view = t.statement_view();
    let mut scan = t.index_scan(view, index, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
    let mut expected = 0u64;
    while let Some((key, _)) = scan.next().expect("scans") {
        assert_eq!(key[300..], expected.to_be_bytes());
        expected += 1;
    }
    assert_eq!(expected, 100_000);
    let mut builder = t.build_index(index).expect("begins");
    builder.add(b"same", RowId(1)).expect("adds");
    builder.add(b"same", RowId(2)).expect("adds");
    let duplicate = Duplicate { key: b"same".to_vec(), rows: (RowId(1), RowId(2)) };
    assert_eq!(builder.finish(|_, _, _| true).expect("builds"), Some(duplicate));
    t.commit(Durability::Sync, |_| {}).expect("commits");
    while engine.run_once() {}
    assert_eq!(segments(&directory), 1);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(t.index_probe_latest(index, &key(5), None).expect("probes"), Some(RowId(5)));
}
