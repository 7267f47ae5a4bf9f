//! Serializable transactions against memory: the known anomalies, safe snapshots, bounded memory, random histories.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Csn, Datum, Kind, RowId, TreeId};

use super::FINISHED_MAX;
use crate::tests::basic::memory_engine;
use crate::*;

fn row(key: u8, value: u64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int4, Kind::Int8]).encode_row(&[Datum::Int4(i32::from(key)), Datum::Int8(value as i64)])
}

/// A table and an index over its first column.
struct Store {
    engine: Arc<Engine>,
    table: TreeId,
    index: TreeId,
}

impl Store {
    fn new() -> Store {
        let engine = memory_engine();
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let table = t.create_table_tree(&[Kind::Int4, Kind::Int8], Persistence::Logged).expect("creates");
        let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        Store { engine, table, index }
    }

    fn begin(&self) -> Arc<Transaction> {
        self.engine.begin(Isolation::Serializable).expect("begins")
    }

    /// The rows with keys from `first` to `last`: key and value.
    fn range(&self, t: &Arc<Transaction>, first: u8, last: u8) -> Result<Vec<(u8, u64, RowId)>, EngineError> {
        let view = t.statement_view();
        let mut scan = t.index_scan(view, self.index, Bound::Included(&[first]), Bound::Included(&[last]), false)?;
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

    fn scan(&self, t: &Arc<Transaction>) -> Result<usize, EngineError> {
        let mut scan = t.scan(t.statement_view(), self.table, &[0], &[], &[], None)?;
        let mut rows = 0;
        while let Some(batch) = scan.next()? {
            rows += batch.row_ids.len();
        }
        Ok(rows)
    }

    /// Sets a key's value, adding the key when it is not there; 40001 or `Deadlock` (would wait) as an error.
    fn put(&self, t: &Arc<Transaction>, key: u8, value: u64) -> Result<(), EngineError> {
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
                t.index_insert(self.index, &[key], id)
            }
        }
    }

    fn fill(&self, keys: std::ops::Range<u8>) {
        let t = self.engine.begin(Isolation::ReadCommitted).expect("begins");
        keys.for_each(|key| self.put(&t, key, 0).expect("puts"));
        t.commit(Durability::Sync).expect("commits");
    }

    fn tracked(&self) -> (usize, usize, usize) {
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
    // Some summarised transaction read the table and another wrote it: what `long` does now may be the middle of a structure.
    store.range(&long, 2, 2).expect("reads");
    assert!(is_conflict(store.put(&long, 1, 1)) || is_conflict(commit(&long)));
    long.rollback();
    assert_eq!(store.tracked(), (0, 0, 0));
}

#[test]
fn what_a_dropped_tree_was_read_for_is_not_forgotten() {
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

// Random histories.

#[derive(Default)]
struct History {
    /// Of each key, its versions in commit order: commit and transaction.
    versions: BTreeMap<u8, Vec<(Csn, usize)>>,
    committed: Vec<usize>,
    failed: usize,
}

struct Running {
    number: usize,
    txn: Arc<Transaction>,
    snapshot: Option<Csn>,
    reads: Vec<u8>,
    writes: Vec<u8>,
}

const KEYS: u8 = 6;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// One step of a transaction; false when it has ended.
fn step(
    store: &Store,
    history: &mut History,
    running: &mut Running,
    done: &mut Vec<(usize, Csn, Vec<u8>)>,
    seed: &mut u64,
) -> bool {
    let t = &running.txn;
    let key = (random(seed) % u64::from(KEYS)) as u8;
    let result = match random(seed) % 8 {
        0..3 => store.range(t, key, key).map(|_| running.reads.push(key)),
        3 => {
            let last = (key + 2).min(KEYS - 1);
            store.range(t, key, last).map(|_| running.reads.extend(key..=last))
        }
        4 => store.scan(t).map(|_| running.reads.extend(0..KEYS)),
        5..7 => store.put(t, key, running.number as u64).map(|()| {
            running.reads.push(key);
            running.writes.push(key);
        }),
        _ => {
            running.snapshot.get_or_insert(t.statement_view().csn);
            match commit(t) {
                Ok(csn) => {
                    running.writes.sort_unstable();
                    running.writes.dedup();
                    for key in &running.writes {
                        history.versions.entry(*key).or_default().push((csn, running.number));
                    }
                    history.committed.push(running.number);
                    done.push((running.number, running.snapshot.unwrap_or(csn), std::mem::take(&mut running.reads)));
                    return false;
                }
                Err(e) => Err(e),
            }
        }
    };
    if result.is_err() {
        history.failed += 1;
        t.rollback();
        return false;
    }
    running.snapshot.get_or_insert(t.statement_view().csn);
    true
}

/// The edges of the history's serialization graph (Adya): whoever comes first in a serial order.
fn edges(history: &History, done: &[(usize, Csn, Vec<u8>)]) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for versions in history.versions.values() {
        out.extend(versions.windows(2).map(|w| (w[0].1, w[1].1)));
    }
    for (reader, snapshot, keys) in done {
        for key in keys {
            let versions = history.versions.get(key).map_or(&[][..], |v| v);
            let next = versions.partition_point(|(csn, _)| csn <= snapshot);
            out.extend(next.checked_sub(1).map(|read| (versions[read].1, *reader)));
            out.extend(versions.get(next).map(|(_, writer)| (*reader, *writer)));
        }
    }
    out.retain(|(a, b)| a != b);
    out
}

fn has_cycle(nodes: &[usize], edges: &[(usize, usize)]) -> bool {
    let mut left: Vec<usize> = nodes.to_vec();
    let mut edges = edges.to_vec();
    loop {
        let before = left.len();
        left.retain(|n| edges.iter().any(|(_, to)| to == n));
        edges.retain(|(from, to)| left.contains(from) && left.contains(to));
        if left.len() == before {
            return !left.is_empty();
        }
    }
}

#[test]
fn random_histories_are_serializable() {
    let (mut committed, mut failed) = (0, 0);
    for start in 0..150u64 {
        let mut seed = start;
        let store = Store::new();
        let (mut history, mut done) = (History::default(), Vec::new());
        let mut running: Vec<Running> = Vec::new();
        for number in 1..=40 {
            while running.len() < 5 && running.iter().all(|r| r.number < number) {
                let txn = store.begin();
                running.push(Running { number, txn, snapshot: None, reads: Vec::new(), writes: Vec::new() });
            }
            for _ in 0..6 {
                let Some(at) = (!running.is_empty()).then(|| random(&mut seed) as usize % running.len()) else { break };
                let mut one = running.swap_remove(at);
                if step(&store, &mut history, &mut one, &mut done, &mut seed) {
                    running.push(one);
                }
            }
        }
        running.iter().for_each(|r| r.txn.rollback());
        assert_eq!(store.tracked(), (0, 0, 0), "seed {start}");
        assert!(!has_cycle(&history.committed, &edges(&history, &done)), "seed {start} is not serializable");
        committed += history.committed.len();
        failed += history.failed;
    }
    assert!(committed > 1000 && failed > 100, "{committed} committed, {failed} failed");
}
