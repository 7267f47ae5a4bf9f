//! Readers without locks: snapshots and the versions kept for them, levels that are replaced while they are read.

use melba_threads::atomic::{AtomicU64, Ordering};
use melba_types::Csn;

use super::*;
use crate::snapshot::Snapshots;

/// Versions older than the oldest snapshot are dropped: no snapshot in use may be older than that.
#[test]
fn no_snapshot_in_use_is_older_than_the_horizon() {
    check(|| {
        let snapshots = Arc::new(Snapshots::new(Csn(1)));
        // Versions replaced up to here have been dropped.
        let gone = Arc::new(AtomicU64::new(0));
        let exporter = snapshots.take_slot().expect("free");
        let exported = snapshots.acquire(exporter, None, Csn(0));
        snapshots.export(exported);
        let publisher = spawn({
            let (snapshots, gone) = (Arc::clone(&snapshots), Arc::clone(&gone));
            move || {
                for csn in 2..6 {
                    snapshots.note_applied(Csn(csn));
                    snapshots.publish(Csn(csn));
                    let oldest = snapshots.compute_oldest();
                    gone.fetch_max(oldest.0, Ordering::SeqCst);
                    let in_use = snapshots.in_use();
                    assert!(in_use.is_sorted() && in_use.last() >= Some(&oldest));
                }
            }
        });
        let readers = [None, Some(exported)].map(|adopted| {
            let (snapshots, gone) = (Arc::clone(&snapshots), Arc::clone(&gone));
            spawn(move || {
                let slot = snapshots.take_slot().expect("free");
                for _ in 0..2 {
                    let csn = match adopted {
                        Some(csn) if snapshots.adopt(slot, csn, None) => csn,
                        _ => snapshots.acquire(slot, None, choose(&[Csn(0), snapshots.applied()])),
                    };
                    for _ in 0..2 {
                        let gone = gone.load(Ordering::SeqCst);
                        assert!(gone <= csn.0, "a view is at {csn}, versions up to {gone} are gone");
                        shuttle::thread::yield_now();
                    }
                    snapshots.hold(slot, None);
                }
                snapshots.free_slot(slot);
            })
        });
        snapshots.forget_export(exported);
        snapshots.hold(exporter, None);
        join([publisher]);
        join(readers);
        assert_eq!(snapshots.compute_oldest(), Csn(5));
    });
}

/// Rows move from memory to segments and from segment to segment while they are read and changed.
#[test]
fn rows_stay_where_readers_find_them() {
    check(|| {
        let f = Fixture::new(2);
        let writer = spawn({
            let f = Arc::clone(&f);
            move || {
                for _ in 0..2 {
                    let t = f.begin();
                    f.change(&t, 0, |n| n + 1).expect("changes");
                    f.change(&t, 1, |n| n + 1).expect("changes");
                    t.commit(Durability::Async).expect("commits");
                }
            }
        });
        let background = spawn({
            let f = Arc::clone(&f);
            move || {
                f.engine.checkpoint().expect("flushes");
                f.engine.merge_all().expect("merges");
                f.engine.checkpoint().expect("flushes");
            }
        });
        for _ in 0..2 {
            let t = f.engine.begin(Isolation::RepeatableRead).expect("begins");
            let view = t.statement_view();
            let first = (f.read(&t, view, 0), f.read(&t, view, 1));
            let mut scan = t.scan(view, f.table, &[0], &[], &[], None).expect("opens");
            let mut scanned = Vec::new();
            while let Some(batch) = scan.next().expect("scans") {
                scanned.extend((0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_i64()));
            }
            assert_eq!((first.0, first.1, scanned), (first.0, first.0, vec![first.0; 2]));
        }
        join([writer]);
        join([background]);
        let t = f.begin();
        assert_eq!(f.read(&t, t.statement_view(), 1), 2);
    });
}

/// A sequence's values and a commit that used one.
#[test]
fn values_of_a_sequence_come_once() {
    check(|| {
        let f = Fixture::new(1);
        let t = f.begin();
        let definition = SequenceDefinition { increment: 1, min: 1, max: i64::MAX, cycle: false };
        let start = SequenceState { last_value: 1, is_called: false };
        let sequence = t.create_sequence(definition, start, Persistence::Logged).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        let threads = [0; 3].map(|_| {
            let f = Arc::clone(&f);
            spawn(move || {
                let t = f.begin();
                let values = [0; 2].map(|_| t.nextval(sequence).expect("a value"));
                t.commit(choose(&[Durability::Sync, Durability::Async])).expect("commits");
                values
            })
        });
        let mut values = join(threads).concat();
        values.sort_unstable();
        assert_eq!(values, [1, 2, 3, 4, 5, 6]);
    });
}
