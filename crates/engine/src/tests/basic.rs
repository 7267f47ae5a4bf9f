//! Transactions against memory alone.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};

use crate::*;

pub(crate) fn memory_engine() -> Arc<Engine> {
    let directory = melba_vfs::MemoryDirectory::new();
    Engine::open(EngineOptions::default(), directory, Arc::new(melba_vfs::OsClock::new())).expect("opens")
}

fn row(id: i32, name: &str) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int4, Kind::Text]).encode_row(&[Datum::Int4(id), Datum::text(name)])
}

fn table(engine: &Engine) -> TreeId {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Int4, Kind::Text], Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    tree
}

fn names(t: &Arc<Transaction>, view: ReadView, tree: TreeId) -> Vec<String> {
    let mut scan = t.scan(view, tree, &[1], &[], &[], None).expect("opens");
    let mut out = Vec::new();
    while let Some(batch) = scan.next().expect("scans") {
        assert_eq!(batch.row_ids.len(), batch.columns[0].len());
        out.extend((0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_str().to_owned()));
    }
    out
}

#[test]
fn a_statement_sees_earlier_commits_and_earlier_commands() {
    let engine = memory_engine();
    let tree = table(&engine);
    let a = engine.begin(Isolation::ReadCommitted).expect("begins");
    let before = a.statement_view();
    let id = a.insert(tree, &row(1, "one")).expect("inserts");
    assert!(names(&a, before, tree).is_empty(), "a statement does not see its own writes");
    let after = a.statement_view();
    assert_eq!(names(&a, after, tree), ["one"]);

    let b = engine.begin(Isolation::RepeatableRead).expect("begins");
    let view_b = b.statement_view();
    assert!(names(&b, view_b, tree).is_empty());
    let published = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&published);
    let on_publish: OnPublish = Box::new(move |csn| seen.store(csn.0, Ordering::SeqCst));
    let csn = a.start_commit(Durability::Sync, Some(on_publish)).and_then(Committing::wait).expect("commits");
    assert_eq!(published.load(Ordering::SeqCst), csn.0);
    assert!(names(&b, b.statement_view(), tree).is_empty(), "repeatable read keeps its snapshot");
    assert!(b.get_latest(tree, id).expect("reads").csn > view_b.csn);

    let c = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = c.statement_view();
    assert_eq!(names(&c, view, tree), ["one"]);
    c.update(tree, id, &row(1, "uno")).expect("updates");
    c.commit(Durability::Async).expect("commits");
    assert!(names(&b, b.statement_view(), tree).is_empty());
    let c = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(names(&c, c.statement_view(), tree), ["uno"]);
}

#[test]
fn savepoints_undo_rows_keys_trees_and_layouts() {
    let engine = memory_engine();
    let tree = table(&engine);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let index = t.create_index_tree(tree, Persistence::Logged).expect("creates");
    let id = t.insert(tree, &row(1, "keep")).expect("inserts");
    t.index(index).insert(b"keep", id).expect("inserts");
    let s = t.savepoint();
    t.update(tree, id, &row(1, "lost")).expect("updates");
    t.index(index).delete(b"keep", id).expect("deletes");
    t.extend_table_tree(tree, &[Kind::Bool]).expect("extends");
    let other = t.create_table_tree(&[], Persistence::Logged).expect("creates");
    assert_eq!(t.table_layout(tree).expect("known").kinds().len(), 3);
    t.rollback_to(s);
    assert_eq!(t.table_layout(tree).expect("known").kinds().len(), 2);
    assert!(t.insert(other, b"").is_err());
    assert_eq!(names(&t, t.statement_view(), tree), ["keep"]);
    assert_eq!(t.index(index).probe_latest(b"keep", None).expect("probes"), Some(id));
    assert_eq!(t.index(index).probe_latest(b"keep", Some(id)).expect("probes"), None);
    t.rollback();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert!(names(&t, t.statement_view(), tree).is_empty());
    assert!(!engine.has_tree(index));
}

#[test]
fn index_scans_merge_own_entries_with_committed_ones_both_ways() {
    let engine = memory_engine();
    let tree = table(&engine);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let index = t.create_index_tree(tree, Persistence::Logged).expect("creates");
    for i in 0..3000u16 {
        t.index(index).insert(&i.to_be_bytes(), RowId(u64::from(i))).expect("inserts");
    }
    t.commit(Durability::Sync).expect("commits");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    for i in (0..3000u16).step_by(2) {
        t.index(index).delete(&i.to_be_bytes(), RowId(u64::from(i))).expect("deletes");
    }
    t.index(index).insert(&100u16.to_be_bytes(), RowId(9)).expect("inserts");
    let view = t.statement_view();
    let mut expected: Vec<u16> = (51..=2001).filter(|i| i % 2 == 1 || *i == 100).collect();
    for reverse in [false, true] {
        let (lower, upper) = (50u16.to_be_bytes(), 2001u16.to_be_bytes());
        let mut scan = t.index(index).scan(view, Bound::Excluded(&lower), Bound::Included(&upper), reverse).expect("opens");
        let mut found = Vec::new();
        while let Some((key, _)) = scan.next().expect("scans") {
            found.push(u16::from_be_bytes([key[0], key[1]]));
        }
        assert_eq!(found, expected);
        expected.reverse();
    }
}

/// A table whose changes are published: what scans say of the versions of its rows.
struct Published {
    engine: Arc<Engine>,
    tree: TreeId,
}

impl Published {
    fn new(rows: i32) -> Published {
        let engine = memory_engine();
        let tree = table(&engine);
        let published = Published { engine, tree };
        published.insert(rows);
        published
    }

    fn change(&self, change: impl FnOnce(&Arc<Transaction>)) {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        change(&t);
        t.commit(Durability::Sync).expect("commits");
    }

    fn insert(&self, rows: i32) {
        self.change(|t| (0..rows).for_each(|id| assert!(t.insert(self.tree, &row(id, "new")).is_ok())));
    }

    fn update(&self, id: RowId) {
        self.change(|t| t.update(self.tree, id, &row(7, "changed")).expect("updates"));
    }

    fn delete(&self, id: RowId) {
        self.change(|t| t.delete(self.tree, id).expect("deletes"));
    }

    fn scan<T>(&self, read: impl FnOnce(&mut TableScan) -> T) -> T {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        read(&mut t.scan(t.statement_view(), self.tree, &[0], &[], &[], None).expect("opens"))
    }

    /// All rows that a scan gives, and those newer than a commit.
    fn newer(&self, csn: melba_types::Csn) -> (Vec<RowId>, Vec<RowId>) {
        let (mut all, mut newer) = (Vec::new(), Vec::new());
        self.scan(|scan| {
            while let Some(mut piece) = scan.next_piece().expect("scans") {
                let positions = piece.newer_than(csn).expect("reads");
                let ids = piece.row_ids().expect("reads");
                all.extend_from_slice(ids);
                newer.extend(positions.iter().map(|at| ids[*at as usize]));
            }
        });
        all.sort_unstable();
        newer.sort_unstable();
        (all, newer)
    }

    fn has_changed(&self, csn: melba_types::Csn, storage: &[u64]) -> bool {
        self.scan(|scan| scan.has_newer(csn) || scan.storage() != storage)
    }
}

#[test]
fn a_scan_tells_the_versions_that_are_newer_than_a_commit() {
    let table = Published::new(100);
    let engine = &table.engine;
    let first = engine.visible_csn();
    let (rows, _) = table.newer(first);
    for flush in [false, true, false, true] {
        let before = engine.visible_csn();
        table.update(rows[7]);
        table.insert(1);
        assert_eq!(table.newer(before).1.len(), 2);
        if flush {
            engine.checkpoint().expect("flushes");
            assert_eq!(table.newer(before).1.len(), 2, "in segments");
        }
        assert!(table.newer(engine.visible_csn()).1.is_empty());
    }
    let last = engine.visible_csn();
    table.delete(rows[50]);
    table.update(rows[9]);
    engine.checkpoint().expect("flushes");
    engine.merge_all().expect("merges");
    let (all, changed) = table.newer(last);
    assert_eq!((all.len(), &changed[..]), (103, &[rows[9]][..]), "merges keep the commits of versions");
    assert_eq!(table.newer(first).1.len(), 6, "four new rows, and the two that were changed");
}

#[test]
fn the_rows_that_differ_between_two_views_are_found() {
    let table = Published::new(100);
    let engine = &table.engine;
    let rows = table.newer(melba_types::Csn(0)).0;
    let reader = engine.begin(Isolation::ReadCommitted).expect("begins");
    for step in 0..4 {
        let (since, _pin) = reader.latest_view();
        table.update(rows[step]);
        table.delete(rows[step + 10]);
        table.insert(1);
        if step % 2 == 1 {
            engine.checkpoint().expect("flushes");
            engine.merge_all().expect("merges");
        }
        let (until, _later_pin) = reader.latest_view();
        table.update(rows[step + 20]);
        let changed = DifferingRows::find(&reader, table.tree, since, until).expect("finds").ids;
        let new = *changed.last().expect("some");
        assert_eq!(changed, [rows[step], rows[step + 10], new], "step {step}");
        assert!(new > rows[99]);
    }
}

#[test]
fn a_scan_tells_whether_anything_has_changed() {
    let table = Published::new(100);
    let engine = &table.engine;
    engine.checkpoint().expect("flushes");
    let seen = || (engine.visible_csn(), table.scan(|scan| scan.storage()));
    let (csn, storage) = seen();
    assert!(!table.has_changed(csn, &storage));
    let (rows, _) = table.newer(csn);
    table.delete(rows[50]);
    assert!(table.has_changed(csn, &storage), "a tombstone in memory");
    engine.checkpoint().expect("flushes");
    assert!(table.has_changed(csn, &storage), "in a segment");
    engine.merge_all().expect("merges");
    assert!(table.has_changed(csn, &storage), "and when a merge has dropped it");
    // Rows that were never flushed: memory forgets them when they are deleted.
    table.insert(2);
    let (csn, storage) = seen();
    let last = |back: usize| *table.newer(csn).0.iter().rev().nth(back).expect("a row");
    table.delete(last(1));
    assert!(table.has_changed(csn, &storage));
    table.insert(1);
    table.delete(last(0));
    assert!(table.has_changed(csn, &storage));
}
