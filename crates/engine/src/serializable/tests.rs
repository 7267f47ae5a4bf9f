//! Serializable transactions against memory: the known anomalies, safe snapshots, bounded memory, random histories.

mod histories;

use std::ops::Bound;
use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Csn, Datum, Kind, RowId, TreeId};

use super::FINISHED_MAX;
use crate::*;

fn row(key: u8, value: u64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int4, Kind::Int8]).encode_row(&[Datum::Int4(i32::from(key)), Datum::Int8(value as i64)])
}

/// A table and an index over its first column.
pub(crate) struct Store {
    pub engine: Arc<Engine>,
    table: TreeId,
    index: TreeId,
}

impl Store {
    pub fn new() -> Store {
        let directory = melba_vfs::MemoryDirectory::new();
        // Files are filled before they are used, and there are many engines.
        let options = EngineOptions { wal_file_bytes: 4096, ..EngineOptions::default() };
        let engine = Engine::open(options, directory, Arc::new(melba_vfs::OsClock::new())).expect("opens");
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let table = t.create_table_tree(&[Kind::Int4, Kind::Int8], Persistence::Logged).expect("creates");
        let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        Store { engine, table, index }
    }

    pub fn begin(&self) -> Arc<Transaction> {
        self.engine.begin(Isolation::Serializable).expect("begins")
    }

    /// The rows with keys from `first` to `last`: key and value.
    pub fn range(&self, t: &Arc<Transaction>, first: u8, last: u8) -> Result<Vec<(u8, u64, RowId)>, EngineError> {
        let view = t.statement_view();
        let mut scan = t.index(self.index).scan(view, Bound::Included(&[first]), Bound::Included(&[last]), false)?;
        let mut found = Vec::new();
        while let Some((key, id)) = scan.next()? {
            found.push((key[0], id));
        }
        let mut out = Vec::new();
        for (key, id) in found {
            let bytes = t.get(view, self.table, id)?.expect("an entry's row");
            let layout = t.table_layout(self.table)?;
            let Datum::Int8(value) = layout.view(&bytes).expect("a row").datum(1, &Datum::Null) else { panic!("a value") };
            out.push((key, value as u64, id));
        }
        Ok(out)
    }

    pub fn scan(&self, t: &Arc<Transaction>) -> Result<usize, EngineError> {
        let mut scan = t.scan(t.statement_view(), self.table, &[0], &[], &[], None)?;
        let mut rows = 0;
        while let Some(batch) = scan.next()? {
            rows += batch.row_ids.len();
        }
        Ok(rows)
    }

    /// Sets a key's value, adding the key when it is not there; 40001 or `Deadlock` (would wait) as an error.
    pub fn put(&self, t: &Arc<Transaction>, key: u8, value: u64) -> Result<(), EngineError> {
        let existing = self.range(t, key, key)?.first().map(|f| f.2);
        let view = t.statement_view();
        match existing {
            Some(id) => {
                if t.lock_row(self.table, id, RowLockMode::ForUpdate, Wait::NoWait)? == RowLockResult::WouldBlock {
                    return Err(EngineError::LockTimeout);
                }
                let latest = t.get_latest(self.table, id)?;
                if latest.own_command.is_none() && latest.csn > view.csn {
                    return Err(EngineError::SerializationFailure);
                }
                t.update(self.table, id, &row(key, value))
            }
            None => {
                let id = t.insert(self.table, &row(key, value))?;
                t.index(self.index).insert(&[key], id)
            }
        }
    }

    /// Removes a key, and says whether it was there; errors as for `put`.
    pub fn remove(&self, t: &Arc<Transaction>, key: u8) -> Result<bool, EngineError> {
        let Some((_, _, id)) = self.range(t, key, key)?.first().copied() else { return Ok(false) };
        let view = t.statement_view();
        if t.lock_row(self.table, id, RowLockMode::ForUpdate, Wait::NoWait)? == RowLockResult::WouldBlock {
            return Err(EngineError::LockTimeout);
        }
        let latest = t.get_latest(self.table, id)?;
        if latest.own_command.is_none() && latest.csn > view.csn {
            return Err(EngineError::SerializationFailure);
        }
        t.delete(self.table, id)?;
        t.index(self.index).delete(&[key], id)?;
        Ok(true)
    }

    pub fn begin_read_only(&self) -> Arc<Transaction> {
        let t = self.begin();
        t.set_access(true, false);
        t.statement_view();
        t
    }

    /// Changes a key and commits: visible to all, which the module has not been told.
    pub fn put_untold(&self, key: u8, value: u64) -> Committing {
        let t = self.begin();
        self.put(&t, key, value).expect("puts");
        let committing = t.start_commit(Durability::Sync, None).expect("may commit");
        self.engine.flush_log().expect("flushes");
        assert!(self.engine.visible_csn() >= committing.csn());
        committing
    }

    /// Enough independent commits that all earlier ones are summarised.
    pub fn summarise(&self) {
        for _ in 0..=FINISHED_MAX {
            let t = self.begin();
            t.statement_view();
            commit(&t).expect("commits");
        }
    }

    pub fn fill(&self, keys: std::ops::Range<u8>) {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        keys.for_each(|key| self.put(&t, key, 0).expect("puts"));
        t.commit(Durability::Sync).expect("commits");
    }

    pub fn tracked(&self) -> (usize, usize, usize) {
        let state = self.engine.shared.serializable.state.lock();
        (state.active.len(), state.finished.len(), state.trees.len())
    }
}

fn commit(t: &Arc<Transaction>) -> Result<Csn, EngineError> {
    t.commit(Durability::Sync)
}

fn is_conflict<T: std::fmt::Debug>(result: Result<T, EngineError>) -> bool {
    matches!(result, Err(EngineError::SerializationConflict { .. }))
}

#[test]
fn of_two_that_skew_each_other_one_fails() {
    let store = Store::new();
    store.fill(1..3);
    let (a, b) = (store.begin(), store.begin());
    store.range(&a, 1, 2).expect("reads");
    store.range(&b, 1, 2).expect("reads");
    store.put(&a, 1, 7).expect("puts");
    store.put(&b, 2, 7).expect("puts");
    commit(&a).expect("the first to commit wins");
    assert!(is_conflict(commit(&b)));
    b.rollback();
    assert_eq!(store.tracked(), (0, 0, 0), "nothing is kept when nobody runs");
    let (a, b) = (store.engine.begin(Isolation::RepeatableRead).expect("begins"), store.begin());
    store.range(&a, 1, 2).expect("reads");
    store.range(&b, 1, 2).expect("reads");
    store.put(&a, 1, 8).expect("puts");
    store.put(&b, 2, 8).expect("puts");
    commit(&a).expect("commits");
    commit(&b).expect("other isolation levels are nobody's concern");
}

#[test]
fn a_row_that_appears_in_a_range_is_noticed() {
    for whole_table in [false, true] {
        let store = Store::new();
        let (a, b) = (store.begin(), store.begin());
        for t in [&a, &b] {
            if whole_table {
                assert_eq!(store.scan(t).expect("reads"), 0);
            } else {
                assert!(store.range(t, 10, 20).expect("reads").is_empty());
            }
        }
        store.put(&a, 11, 1).expect("puts");
        store.put(&b, 12, 1).expect("puts");
        commit(&a).expect("commits");
        assert!(is_conflict(commit(&b)));
    }
    let store = Store::new();
    let (a, b) = (store.begin(), store.begin());
    store.range(&a, 10, 20).expect("reads");
    store.range(&b, 30, 40).expect("reads");
    store.put(&a, 21, 1).expect("puts");
    store.put(&b, 41, 1).expect("puts");
    commit(&a).expect("commits");
    commit(&b).expect("beside the ranges is not in them");
}

#[test]
fn a_write_to_a_row_id_that_was_read_as_missing_is_noticed() {
    type Write = fn(&Transaction, TreeId, RowId) -> Result<(), EngineError>;
    let writes: [Write; 2] = [|t, tree, id| t.insert_at(tree, id, &row(1, 1)), |t, tree, id| t.update(tree, id, &row(1, 1))];
    for write in writes {
        let store = Store::new();
        let (a, b) = (store.begin(), store.begin());
        for (t, id) in [(&a, 7), (&b, 8)] {
            let found = t.get(t.statement_view(), store.table, RowId(id)).expect("reads");
            assert!(found.is_none());
        }
        write(&a, store.table, RowId(8)).expect("writes");
        write(&b, store.table, RowId(7)).expect("writes");
        commit(&a).expect("commits");
        assert!(is_conflict(commit(&b)));
    }
}

type Step = fn(&Store, &Arc<Transaction>) -> Result<(), EngineError>;

/// A reader of the writer's data, which has itself written data that the writer reads: one of them fails.
fn assert_skew(store: &Store, name: &str, reads: Step, writes: Step) {
    for reads_first in [true, false] {
        let (reader, writer) = (store.begin(), store.begin());
        let played = || -> Result<(), EngineError> {
            reader.statement_view();
            store.range(&writer, 200, 200)?;
            if reads_first {
                reads(store, &reader)?;
            }
            writes(store, &writer)?;
            if !reads_first {
                reads(store, &reader)?;
            }
            store.put(&reader, 200, 1)?;
            commit(&reader)?;
            commit(&writer).map(|_| ())
        };
        assert!(is_conflict(played()), "{name}, {reads_first}");
        reader.rollback();
        writer.rollback();
    }
}

/// The rows with these ids.
fn read_rows(store: &Store, t: &Arc<Transaction>, ids: std::ops::RangeInclusive<u64>) -> Result<(), EngineError> {
    ids.into_iter().try_for_each(|id| t.get(t.statement_view(), store.table, RowId(id)).map(|_| ()))
}

fn write_rows(store: &Store, t: &Arc<Transaction>, ids: std::ops::RangeInclusive<u64>) -> Result<(), EngineError> {
    ids.into_iter().try_for_each(|id| t.update(store.table, RowId(id), &row(0, id)))
}

fn read_key(store: &Store, t: &Arc<Transaction>, key: u16) -> Result<(), EngineError> {
    let key = key.to_be_bytes();
    let mut scan = t.index(store.index).scan(t.statement_view(), Bound::Included(&key), Bound::Included(&key), false)?;
    scan.next().map(|_| ())
}

#[test]
fn conflicts_with_coarse_marks_are_noticed() {
    let store = Store::new();
    store.fill(1..40);
    let (read_one, write_one): (Step, Step) = (|s, t| read_rows(s, t, 30..=30), |s, t| write_rows(s, t, 30..=30));
    let (read_all, write_all): (Step, Step) = (|s, t| read_rows(s, t, 1..=30), |s, t| write_rows(s, t, 1..=30));
    assert_skew(&store, "a row", read_one, write_one);
    assert_skew(&store, "a block written", read_one, write_all);
    assert_skew(&store, "a block read", read_all, write_one);
    assert_skew(&store, "two blocks", read_all, write_all);
    let read_entry: Step = |s, t| read_key(s, t, 60_000);
    let write_entry: Step = |s, t| t.index(s.index).insert(&60_000_u16.to_be_bytes(), RowId(1));
    assert_skew(&store, "an entry", read_entry, write_entry);
    assert_skew(&store, "an index written", read_entry, |s, t| {
        (50_000..=60_000_u16).try_for_each(|key| t.index(s.index).insert(&key.to_be_bytes(), RowId(1)))
    });
    assert_skew(&store, "an index read", |s, t| (59_000..=60_000).try_for_each(|key| read_key(s, t, key)), write_entry);
}

#[test]
fn a_row_that_is_added_after_one_that_was_changed_is_noticed() {
    let store = Store::new();
    store.fill(1..3);
    let reader = store.begin();
    reader.statement_view();
    // The reader's snapshot does not show this version, so to remove it is no conflict.
    store.fill(1..2);
    let writer = store.begin();
    store.range(&writer, 200, 200).expect("reads");
    store.scan(&reader).expect("reads");
    assert!(store.remove(&writer, 1).expect("removes"));
    store.put(&writer, 9, 1).expect("puts");
    store.put(&reader, 200, 1).expect("puts");
    commit(&reader).expect("commits");
    assert!(is_conflict(commit(&writer)));
}

/// Fekete, O'Neil, O'Neil 2004: only the reader sees the anomaly.
#[test]
fn a_read_only_transaction_may_be_the_one_too_many() {
    let store = Store::new();
    store.fill(1..3);
    let (withdrawal, deposit) = (store.begin(), store.begin());
    store.range(&withdrawal, 1, 2).expect("reads");
    store.put(&deposit, 2, 20).expect("puts");
    commit(&deposit).expect("commits");
    let reader = store.begin();
    reader.set_access(true, false);
    store.range(&reader, 1, 2).expect("reads");
    commit(&reader).expect("commits");
    assert!(is_conflict(store.put(&withdrawal, 1, 5)));
}

/// A batch's number at key 1, its sum at key 2: the report of the closed batch, the withdrawal into it after it was closed.
#[test]
fn a_commit_counts_from_its_publication() {
    for (read_only, told_before_the_read) in [(false, false), (false, true), (true, false), (true, true)] {
        let store = Store::new();
        store.fill(1..3);
        let late = store.begin();
        store.range(&late, 1, 1).expect("reads");
        let mut closing = Some(store.put_untold(1, 1));
        let report = if read_only { store.begin_read_only() } else { store.begin() };
        report.statement_view();
        store.put(&late, 2, 5).expect("puts");
        commit(&late).expect("nobody has seen the batch without it");
        if told_before_the_read {
            closing.take().map(Committing::wait);
        }
        let read = store.range(&report, 1, 2).and_then(|_| commit(&report));
        assert!(is_conflict(read), "the batch was closed with {read_only}, {told_before_the_read}");
        closing.map(Committing::wait);
    }
}

#[test]
fn a_summarised_reader_may_have_seen_a_commit_reported_later() {
    let store = Store::new();
    store.fill(1..3);
    let late = store.begin();
    store.range(&late, 1, 1).expect("reads");
    let closing = store.put_untold(1, 1);
    let report = store.begin();
    store.range(&report, 1, 2).expect("reads");
    commit(&report).expect("commits");
    store.summarise();
    assert!(is_conflict(store.put(&late, 2, 5).and_then(|()| commit(&late))));
    closing.wait().expect("commits");
}

#[test]
fn whom_a_transaction_read_around_is_known_after_both_are_summarised() {
    for read_only in [false, true] {
        let store = Store::new();
        store.fill(2..3);
        let late = store.begin();
        store.range(&late, 1, 1).expect("reads");
        let closing = store.begin();
        // It reads nothing: summarised reads and writes are known by tree.
        closing.statement_view();
        let id = closing.insert(store.table, &row(1, 1)).expect("inserts");
        closing.index(store.index).insert(&[1], id).expect("inserts");
        commit(&closing).expect("commits");
        let report = if read_only { store.begin_read_only() } else { store.begin() };
        report.statement_view();
        store.summarise();
        store.put(&late, 2, 5).expect("puts");
        commit(&late).expect("nobody has seen the batch without it");
        store.summarise();
        let read = store.range(&report, 1, 2).and_then(|_| commit(&report));
        assert!(is_conflict(read.clone()), "{read_only}: {read:?}");
    }
}

#[test]
fn read_only_transactions_are_tracked_only_while_they_could_matter() {
    let store = Store::new();
    store.fill(1..3);
    let alone = store.begin();
    alone.set_access(true, false);
    store.range(&alone, 1, 2).expect("reads");
    assert_eq!(store.tracked().0, 0, "no writer ran when it began");
    let writer = store.begin();
    store.put(&writer, 1, 1).expect("puts");
    let reader = store.begin();
    reader.set_access(true, false);
    store.range(&reader, 2, 2).expect("reads");
    assert_eq!(store.tracked().0, 2);
    commit(&writer).expect("commits");
    store.range(&reader, 1, 1).expect("reads");
    assert_eq!(store.tracked(), (0, 0, 0), "safe since the writer has ended harmlessly");
}

#[test]
fn a_deferrable_transaction_waits_for_a_safe_snapshot() {
    let store = Arc::new(Store::new());
    store.fill(1..3);
    let writer = store.begin();
    store.put(&writer, 1, 9).expect("puts");
    let (ready, waits) = std::sync::mpsc::channel();
    let deferrable = std::thread::spawn({
        let store = Arc::clone(&store);
        move || {
            let t = store.begin();
            t.set_access(true, true);
            t.session().set_pid(77);
            ready.send(()).expect("sends");
            t.await_safe_snapshot().expect("waits");
            store.range(&t, 1, 1).expect("reads")[0].1
        }
    });
    waits.recv().expect("begins");
    writer.session().set_pid(76);
    while store.engine.safe_snapshot_blocking_pids(77).is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(store.engine.safe_snapshot_blocking_pids(77), [76]);
    commit(&writer).expect("commits");
    assert_eq!(deferrable.join().expect("ends"), 0, "the snapshot is of before the writer's commit");

    let waiting = store.begin();
    waiting.set_access(true, true);
    let _other = store.begin().statement_view();
    let blocker = store.begin();
    store.put(&blocker, 2, 1).expect("puts");
    waiting.session().interrupt().raise(InterruptReason::Cancel);
    assert!(matches!(waiting.await_safe_snapshot(), Err(EngineError::Interrupted(_))));
}

#[test]
fn many_commits_under_a_long_transaction_are_summarised() {
    let store = Store::new();
    store.fill(0..3);
    let long = store.begin();
    store.range(&long, 0, 0).expect("reads");
    for i in 0..FINISHED_MAX as u64 + 50 {
        let t = store.begin();
        store.range(&t, 1, 1).expect("reads");
        store.put(&t, 2, i).expect("puts");
        commit(&t).expect("commits");
    }
    assert_eq!(store.tracked().1, FINISHED_MAX);
    // Some summarised transaction read the table and another wrote it: an access by `long` now may be the middle of a structure.
    store.range(&long, 2, 2).expect("reads");
    assert!(is_conflict(store.put(&long, 1, 1)) || is_conflict(commit(&long)));
    long.rollback();
    assert_eq!(store.tracked(), (0, 0, 0));
}

#[test]
fn reads_of_a_dropped_tree_still_conflict() {
    let store = Store::new();
    store.fill(1..3);
    let (reader, writer) = (store.begin(), store.begin());
    store.range(&reader, 1, 2).expect("reads");
    store.range(&writer, 1, 2).expect("reads");
    store.put(&reader, 1, 1).expect("puts");
    commit(&reader).expect("commits");
    let ddl = store.engine.begin(Isolation::ReadCommitted).expect("begins");
    let moved = ddl.create_table_tree(&[Kind::Int4, Kind::Int8], Persistence::Logged).expect("creates");
    ddl.drop_tree(store.index).expect("drops");
    ddl.drop_tree(store.table).expect("drops");
    commit(&ddl).expect("commits");
    let wrote = writer.insert(moved, &row(2, 2)).map(drop);
    assert!(is_conflict(wrote.and_then(|()| commit(&writer).map(drop))));
}
