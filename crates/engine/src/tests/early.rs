//! Locks that a commit releases before it is durable, and the transactions that then rely on it.

use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, ManualClock, MemoryDirectory};

use crate::*;

struct Fixture {
    disk: Arc<MemoryDirectory>,
    engine: Arc<Engine>,
    table: TreeId,
    row: RowId,
}

fn bytes(n: i64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8]).encode_row(&[Datum::Int8(n)])
}

fn number(row: &[u8]) -> i64 {
    RowLayout::new(vec![Kind::Int8]).view(row).expect("is whole").datum(0, &Datum::Null).as_i64()
}

fn open(disk: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let clock = Arc::new(ManualClock::default());
    Engine::open(EngineOptions::default(), Arc::clone(disk) as Arc<dyn Directory>, clock).expect("opens")
}

impl Fixture {
    /// A table with one row, which says 1.
    fn new() -> Fixture {
        let disk = MemoryDirectory::new();
        let engine = open(&disk);
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let table = t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates");
        let row = t.insert(table, &bytes(1)).expect("inserts");
        t.commit(Durability::Sync).expect("commits");
        Fixture { disk, engine, table, row }
    }

    fn begin(&self, isolation: Isolation) -> Arc<Transaction> {
        self.engine.begin(isolation).expect("begins")
    }

    fn lock(&self, t: &Arc<Transaction>) -> RowLockResult {
        t.lock_row(self.table, self.row, RowLockMode::ForUpdate, Wait::NoWait).expect("answers")
    }

    /// A commit that is applied and not durable; the row says `n` then.
    fn update(&self, t: &Arc<Transaction>, n: i64) -> Committing {
        assert_eq!(self.lock(t), RowLockResult::Granted);
        t.update(self.table, self.row, &bytes(n)).expect("updates");
        t.start_commit(Durability::Sync, None).expect("starts")
    }

    fn seen_by(&self, t: &Arc<Transaction>) -> i64 {
        let row = t.get(t.statement_view(), self.table, self.row).expect("reads").expect("is there");
        number(&row)
    }
}

#[test]
fn only_a_lock_holder_sees_a_commit_that_is_not_durable() {
    let f = Fixture::new();
    let (writer, next, reader) = (Isolation::ReadCommitted, Isolation::ReadCommitted, Isolation::ReadCommitted);
    let [writer, next, reader] = [writer, next, reader].map(|isolation| f.begin(isolation));
    assert_eq!(f.seen_by(&next), 1);
    let first = f.update(&writer, 2).poll().expect_err("waits for the disk");
    assert_eq!(f.lock(&next), RowLockResult::Granted);
    assert_eq!((f.seen_by(&next), f.seen_by(&reader)), (2, 1));
    let second = f.update(&next, 3);
    assert_eq!(f.seen_by(&reader), 1);
    second.wait().expect("is durable");
    assert!(first.poll().is_ok_and(|r| r.is_ok()), "the one before it is, too");
    assert_eq!(f.seen_by(&reader), 3);
}

#[test]
fn relying_on_a_commit_is_waiting_for_it() {
    let f = Fixture::new();
    let first = f.update(&f.begin(Isolation::ReadCommitted), 2);
    let reader = f.begin(Isolation::ReadCommitted);
    assert_eq!(f.lock(&reader), RowLockResult::Granted);
    assert_eq!(f.seen_by(&reader), 2);
    let before = f.disk.syncs();
    reader.commit(Durability::Async).expect("commits");
    assert_eq!(f.disk.syncs() - before, 1, "what it has seen is durable now");
    assert!(first.poll().is_ok_and(|r| r.is_ok()));
    let second = f.update(&f.begin(Isolation::ReadCommitted), 3);
    let reader = f.begin(Isolation::ReadCommitted);
    assert_eq!(f.lock(&reader), RowLockResult::Granted);
    reader.rollback();
    assert!(second.poll().is_ok_and(|r| r.is_ok()), "a rollback waits, too");
}

#[test]
fn a_snapshot_does_not_show_it_and_a_change_of_the_row_fails() {
    let f = Fixture::new();
    let first = f.update(&f.begin(Isolation::ReadCommitted), 2);
    let late = f.begin(Isolation::RepeatableRead);
    assert_eq!(f.seen_by(&late), 1);
    assert_eq!(f.lock(&late), RowLockResult::Granted);
    let view = late.statement_view();
    assert!(late.get_latest(f.table, f.row).expect("reads").csn > view.csn, "which the SQL layer makes 40001 of");
    late.rollback();
    first.wait().expect("commits");
}

#[test]
fn a_commit_with_an_action_at_publication_keeps_its_locks_until_then() {
    let f = Fixture::new();
    let t = f.begin(Isolation::ReadCommitted);
    assert_eq!(f.lock(&t), RowLockResult::Granted);
    t.update(f.table, f.row, &bytes(2)).expect("updates");
    let committing = t.start_commit(Durability::Sync, Some(Box::new(|_| {}))).expect("starts");
    let other = f.begin(Isolation::ReadCommitted);
    assert_eq!(f.lock(&other), RowLockResult::WouldBlock);
    committing.wait().expect("commits");
    assert_eq!(f.lock(&other), RowLockResult::Granted);
}

#[test]
fn a_crash_takes_both_or_the_later_one() {
    for durable in 0..=2 {
        let f = Fixture::new();
        let mut commits = Vec::new();
        for n in 1..=2 {
            commits.push(f.update(&f.begin(Isolation::ReadCommitted), 1 + n));
            if n == durable {
                f.engine.flush_log().expect("flushes");
            }
        }
        let after = open(&f.disk.after_power_cut(&mut || false));
        let t = after.begin(Isolation::ReadCommitted).expect("begins");
        let row = t.get(t.statement_view(), f.table, f.row).expect("reads").expect("is there");
        assert_eq!(number(&row), 1 + durable);
    }
}
