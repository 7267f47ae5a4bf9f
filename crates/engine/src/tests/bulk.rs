//! Bulk loads: private until commit, deleted after rollback, whole after a crash.

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

/// A logged table of one bigint column.
fn table(engine: &Engine) -> TreeId {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    tree
}

#[test]
fn a_bulk_load_behaves_like_single_rows() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let tree = table(&engine);
    let log = engine.log_statistics().bytes;

    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let before = t.statement_view();
    for i in 0..10 {
        t.bulk(tree).insert(&batch(i * 4000, 4000)).expect("loads");
    }
    assert_eq!(count(&t, before, tree).0, 0, "a statement does not see its own rows");
    let view = t.statement_view();
    assert_eq!(count(&t, view, tree), (40_000, 40_000 * 39_999 / 2));
    let id = RowId(30_000);
    assert!(t.get(view, tree, id).expect("reads").is_some());
    assert!(t.get_latest(tree, id).expect("reads").row.is_some());
    t.delete(tree, id).expect("deletes");
    let savepoint = t.savepoint();
    t.bulk(tree).insert(&batch(0, 50_000)).expect("loads");
    assert_eq!(count(&t, t.statement_view(), tree).0, 89_999);
    t.rollback_to(savepoint);
    assert_eq!(count(&t, t.statement_view(), tree).0, 39_999);
    let other = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(count(&other, other.statement_view(), tree).0, 0);
    t.commit(Durability::Sync).expect("commits");
    assert!(engine.log_statistics().bytes - log < 400_000, "only the first rows are in the log");
    assert_eq!(count(&other, other.statement_view(), tree).0, 39_999);
    assert_eq!(engine.tree_rows_estimate(tree), 39_999);
    drop(other);
    while engine.run_once() {}
    assert_eq!(segments(&directory), 1, "what was rolled back is gone");

    let crashed = directory.after_power_cut(&mut || false);
    let engine = open(&crashed);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(count(&t, t.statement_view(), tree).0, 39_999);
    t.bulk(tree).insert(&batch(0, 50_000)).expect("loads");
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
    let mut builder = IndexBuilder::begin(&t, index, true).expect("begins");
    (0..100_000).for_each(|i| builder.add(&key(i), RowId(i), false).expect("adds"));
    assert_eq!(builder.finish().expect("builds"), None);
    let view = t.statement_view();
    let mut scan = t.index(index).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
    let mut expected = 0u64;
    while let Some((key, _)) = scan.next().expect("scans") {
        assert_eq!(key[300..], expected.to_be_bytes());
        expected += 1;
    }
    assert_eq!(expected, 100_000);
    let mut builder = IndexBuilder::begin(&t, index, true).expect("begins");
    builder.add(b"same", RowId(1), false).expect("adds");
    builder.add(b"same", RowId(2), false).expect("adds");
    let duplicate = Duplicate { key: b"same".to_vec(), rows: (RowId(1), RowId(2)) };
    assert_eq!(builder.finish().expect("builds"), Some(duplicate));
    t.commit(Durability::Sync).expect("commits");
    while engine.run_once() {}
    assert_eq!(segments(&directory), 1);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(t.index(index).probe_latest(&key(5), None).expect("probes"), Some(RowId(5)));
}

#[test]
fn threads_build_an_index_by_parts_and_find_duplicates_between_them() {
    let directory = MemoryDirectory::new();
    let files = Arc::clone(&directory) as Arc<dyn Directory>;
    let options = EngineOptions { query_bytes: 8 << 20, ..EngineOptions::default() };
    let engine = Engine::open(options, files, Arc::new(OsClock::new())).expect("opens");
    engine.start_background();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
    let key = |i: u64| [&b"a key of some length "[..], &(i * 7919 % 80_021).to_be_bytes()].concat();
    // In memory, and over many pieces; every seventh key is there twice, which is allowed.
    for n in [40_000, 80_000] {
        let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
        let mut builder = IndexBuilder::begin(&t, index, true).expect("begins");
        for i in 0..n {
            builder.add(&key(i), RowId(i), i % 7 == 0).expect("adds");
            if i % 7 == 0 {
                builder.add(&key(i), RowId(i + n), true).expect("adds");
            }
        }
        assert_eq!(builder.finish().expect("builds"), None);
        let view = t.statement_view();
        let mut scan = t.index(index).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
        let (mut count, mut last) = (0, Vec::new());
        while let Some((key, row)) = scan.next().expect("scans") {
            let entry = [key, &row.0.to_be_bytes()].concat();
            assert!(last < entry, "ascending");
            last = entry;
            count += 1;
        }
        assert_eq!(count, n + n.div_ceil(7));
        // Those that are not allowed are found wherever they are, the least key first.
        let mut repeated = vec![0, n / 2, n / 3];
        repeated.sort_by_key(|i| std::cmp::Reverse(key(*i)));
        while let Some(least) = repeated.last().copied() {
            let mut builder = IndexBuilder::begin(&t, index, true).expect("begins");
            (0..n).for_each(|i| builder.add(&key(i), RowId(i), false).expect("adds"));
            repeated.iter().for_each(|i| builder.add(&key(*i), RowId(i + n), false).expect("adds"));
            let duplicate = Duplicate { key: key(least), rows: (RowId(least), RowId(least + n)) };
            assert_eq!(builder.finish().expect("builds"), Some(duplicate));
            repeated.pop();
        }
    }
    t.rollback();
    drop(t);
    engine.shutdown().expect("stops");
    while engine.run_once() {}
    assert_eq!(segments(&directory), 0);
}

#[test]
fn rows_come_and_go_under_chosen_ids() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let tree = table(&engine);

    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let spread = |first: u64, rows: u64| -> Vec<RowId> { (0..rows).map(|i| RowId(first + i * 1000)).collect() };
    let layout = t.table_layout(tree).expect("there");
    t.insert_at(tree, RowId(7), &layout.encode_row(&[melba_types::Datum::Int8(-1)])).expect("inserts");
    // Few rows, and many: the latter become segments, which may lie before one another in any order.
    t.bulk(tree).insert_at(&spread(2_000_000_000, 10), &batch(0, 10)).expect("loads");
    t.bulk(tree).insert_at(&spread(1_000_000_000, 10_000), &batch(0, 10_000)).expect("loads");
    t.bulk(tree).insert_at(&spread(1000, 10_000), &batch(10_000, 10_000)).expect("loads");
    let view = t.statement_view();
    assert_eq!(count(&t, view, tree), (20_011, 20_000 * 19_999 / 2 + 45 - 1));
    t.delete(tree, RowId(2000)).expect("deletes");
    assert!(t.get(t.statement_view(), tree, RowId(2000)).expect("reads").is_none());
    let savepoint = t.savepoint();
    t.bulk(tree).insert_at(&spread(5, 10_000), &batch(0, 10_000)).expect("loads");
    t.rollback_to(savepoint);
    t.commit(Durability::Sync).expect("commits");
    drop(t);

    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = t.statement_view();
    assert_eq!(count(&t, view, tree).0, 20_010);
    let part = Morsel::range(RowId(1_000_000_000), RowId(1_000_002_001));
    let mut scan = t.scan(view, tree, &[0], &[], &[], Some(part)).expect("opens");
    let mut found = Vec::new();
    while let Some(batch) = scan.next().expect("scans") {
        found.extend(batch.row_ids);
    }
    assert_eq!(found, [RowId(1_000_000_000), RowId(1_000_001_000), RowId(1_000_002_000)]);
    assert!(t.insert(tree, &layout.encode_row(&[melba_types::Datum::Int8(0)])).expect("inserts") > RowId(2_000_009_000));
    drop(t);
    let crashed = directory.after_power_cut(&mut || false);
    let engine = open(&crashed);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(count(&t, t.statement_view(), tree).0, 20_010);

    // An id whose tombstone is still in memory, or our own: the new row must not hide behind it.
    t.delete(tree, RowId(3000)).expect("deletes");
    t.commit(Durability::Sync).expect("commits");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.delete(tree, RowId(4000)).expect("deletes");
    t.statement_view();
    let again: Vec<RowId> = [3000, 4000].into_iter().chain(3_000_000_000..3_000_009_000).map(RowId).collect();
    t.bulk(tree).insert_at(&again, &batch(0, again.len())).expect("loads");
    assert_eq!(count(&t, t.statement_view(), tree).0, 29_010);
    t.commit(Durability::Sync).expect("commits");
    for merged in [false, true] {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let view = t.statement_view();
        assert_eq!(count(&t, view, tree).0, 29_010);
        for id in [3000, 4000] {
            assert!(t.get(view, tree, RowId(id)).expect("reads").is_some());
        }
        drop(t);
        if !merged {
            engine.checkpoint().expect("flushes");
            engine.merge_all().expect("merges");
        }
    }
}

#[test]
fn a_linked_segment_stays_while_the_log_may_link_it_again() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let tree = table(&engine);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.bulk(tree).insert(&batch(0, 50_000)).expect("loads");
    t.commit(Durability::Sync).expect("commits");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.drop_tree(tree).expect("drops");
    t.commit(Durability::Async).expect("commits");
    drop(t);
    while engine.run_step(BackgroundStep::Merge) {}
    // The drop may be lost; the load is not.
    let lost = open(&directory.after_power_cut(&mut || false));
    let t = lost.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(count(&t, t.statement_view(), tree).0, 50_000);
    // It may be there, and is replayed after the load: twice, when no checkpoint comes in between.
    engine.flush_log().expect("flushes");
    let found = directory.after_power_cut(&mut || true);
    assert!(!open(&found).has_tree(tree));
    let again = open(&found.after_power_cut(&mut || true));
    assert!(!again.has_tree(tree));
    engine.checkpoint().expect("flushes");
    while engine.run_step(BackgroundStep::Merge) {}
    assert_eq!(segments(&directory), 0, "after a checkpoint it goes");
}
