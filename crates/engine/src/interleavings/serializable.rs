//! SERIALIZABLE with sessions that commit in two steps: a commit is visible before the module is notified.

use super::*;
use crate::serializable::tests::Store;

/// How a transaction of the scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Failed,
    /// The numbers it has read: the number of the open batch, and the sum of the first one.
    Committed(u64, u64),
}

const BATCH: u8 = 1;
const SUM: u8 = 2;

fn one(store: &Store, work: impl FnOnce(&Arc<Transaction>) -> Result<(u64, u64), EngineError>, read_only: bool) -> Ended {
    let t = store.begin();
    t.set_access(read_only, false);
    let read = work(&t).and_then(|read| {
        let committing = t.start_commit(choose(&[Durability::Sync, Durability::Async]), None)?;
        // As in a server whose session ends its commit after others have been served.
        (0..choose(&[0, 20])).for_each(|_: u32| shuttle::thread::yield_now());
        committing.wait()?;
        Ok(read)
    });
    match read {
        Ok((batch, sum)) => Ended::Committed(batch, sum),
        Err(EngineError::SerializationConflict { .. } | EngineError::SerializationFailure | EngineError::LockTimeout) => {
            t.rollback();
            Ended::Failed
        }
        Err(e) => panic!("{e:?}"),
    }
}

fn value(store: &Store, t: &Arc<Transaction>, key: u8) -> Result<u64, EngineError> {
    Ok(store.range(t, key, key)?[0].1)
}

/// One adds to the open batch, one closes it, one reports the sum of a batch that is closed (Fekete, O'Neil, O'Neil 2004).
fn a_report_of_a_closed_batch_stays_true() {
    let store = Arc::new(Store::new());
    store.fill(BATCH..SUM + 1);
    let (adder, closer) = (Arc::clone(&store), Arc::clone(&store));
    let adder = spawn(move || {
        let add = |t: &Arc<Transaction>| {
            let batch = value(&adder, t, BATCH)?;
            if batch == 0 {
                adder.put(t, SUM, 5)?;
            }
            Ok((batch, 0))
        };
        one(&adder, add, false)
    });
    let closer = spawn(move || {
        let close = |t: &Arc<Transaction>| closer.put(t, BATCH, 1).map(|()| (0, 0));
        one(&closer, close, false)
    });
    let report = |t: &Arc<Transaction>| Ok((value(&store, t, BATCH)?, value(&store, t, SUM)?));
    let report = one(&store, report, choose(&[false, true]));
    let (added, closed) = (join([adder])[0], join([closer])[0]);
    let t = store.begin();
    let sum = value(&store, &t, SUM).expect("reads");
    assert!(
        !matches!(report, Ended::Committed(1, told) if told != sum),
        "reported {report:?}, then {sum}: added {added:?}, closed {closed:?}"
    );
    t.rollback();
    drop(t);
    assert_eq!(store.tracked(), (0, 0, 0), "nothing is kept when nobody runs");
}

#[test]
fn reports_of_a_closed_batch_stay_true() {
    check(a_report_of_a_closed_batch_stays_true);
}

#[test]
fn forgotten_conflicts_with_prepared_transactions_are_found() {
    check_finds(Plant::ForgetPrepared, a_report_of_a_closed_batch_stays_true);
}

/// Each keeps the sum of two rows at zero or above, judging by the rows it has read.
#[test]
fn write_skew_does_not_happen() {
    check(|| {
        let store = Arc::new(Store::new());
        store.fill(1..4);
        let threads = [1, 2, 3].map(|key| {
            let store = Arc::clone(&store);
            spawn(move || {
                let take = |t: &Arc<Transaction>| {
                    let taken: u64 = store.range(t, 1, 3)?.iter().map(|row| row.1).sum();
                    if taken == 0 {
                        store.put(t, key, 1)?;
                    }
                    Ok((taken, 0))
                };
                one(&store, take, false)
            })
        });
        let ended = join(threads);
        let taken = ended.iter().filter(|e| matches!(e, Ended::Committed(0, _))).count();
        assert!(taken <= 1, "{ended:?}");
    });
}

/// A DEFERRABLE transaction waits while others commit or fail, and never reads a state in between.
#[test]
fn a_deferrable_report_is_woken_and_true() {
    check(|| {
        let store = Arc::new(Store::new());
        store.fill(BATCH..SUM + 1);
        let (adder, closer) = (Arc::clone(&store), Arc::clone(&store));
        let adder = spawn(move || {
            let add = |t: &Arc<Transaction>| {
                let batch = value(&adder, t, BATCH)?;
                if batch == 0 {
                    adder.put(t, SUM, 5)?;
                }
                Ok((batch, 0))
            };
            one(&adder, add, false)
        });
        let closer = spawn(move || one(&closer, |t| closer.put(t, BATCH, 1).map(|()| (0, 0)), false));
        let t = store.begin();
        t.set_access(true, true);
        t.await_safe_snapshot().expect("comes");
        let told = (value(&store, &t, BATCH).expect("reads"), value(&store, &t, SUM).expect("reads"));
        t.commit(Durability::Sync).expect("commits");
        join([adder, closer]);
        let t = store.begin();
        let sum = value(&store, &t, SUM).expect("reads");
        assert!(told.0 == 0 || told.1 == sum, "told {told:?}, then {sum}");
        t.rollback();
    });
}
