//! The log writer's thread beside commits: when it is woken, how all sessions learn of a failed flush, how it stops.

use std::time::Duration;

use melba_vfs::FileOperation;

use super::*;

/// A thread that sleeps this long is woken, or sleeps for ever.
const NEVER: Duration = Duration::from_micros(u64::MAX);

fn sleeping_until_woken() -> EngineOptions {
    EngineOptions { wal_writer_delay: NEVER, wal_writer_flush_after_bytes: 1, ..options() }
}

/// Begins commits and looks after each as a server does; true when all succeed.
fn commit_deferred(f: &Fixture, rows: &[usize]) -> bool {
    let session = f.engine.session().expect("opens");
    rows.iter().all(|row| {
        let t = f.engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
        let Ok(mut waiting) = f.change(&t, *row, |n| n + 1).and_then(|()| t.start_commit(Durability::Sync, None)) else {
            return false;
        };
        loop {
            let _failed = session.flush_log();
            match waiting.poll() {
                Ok(result) => return result.is_ok(),
                Err(still) => waiting = still,
            }
            shuttle::thread::yield_now();
        }
    })
}

fn commit(f: &Fixture, rows: &[usize], durability: Durability) -> bool {
    rows.iter().all(|row| {
        let t = f.begin();
        f.change(&t, *row, |n| n + 1).and_then(|()| t.commit(durability)).is_ok()
    })
}

/// No other thread flushes the waiting records.
fn asynchronous_commits_reach_the_disk() {
    let f = Fixture::with(sleeping_until_woken(), 2);
    let writer = f.work(BackgroundStep::Log);
    let committers = [0, 1].map(|row| {
        let f = Arc::clone(&f);
        spawn(move || assert!(commit(&f, &[row, row], Durability::Async)))
    });
    join(committers);
    assert!(comes(|| f.engine.shared.pipeline.log.waiting_bytes() == 0), "the log writer sleeps over what waits");
    assert_eq!(f.after_power_cut(), [2, 2]);
    f.stop();
    join([writer]);
}

#[test]
fn the_log_writer_is_woken_for_waiting_commits() {
    check(asynchronous_commits_reach_the_disk);
}

#[test]
fn a_log_writer_that_is_not_woken_is_found() {
    check_finds(Plant::NoWake, asynchronous_commits_reach_the_disk);
}

/// One sync fails, whichever thread flushes: all waits end, commits reported as successful are there after a crash, and no commit
/// follows.
fn a_flush_fails() {
    let f = Fixture::with(sleeping_until_woken(), 4);
    f.faults.fail_once(&[FileOperation::Sync], choose(&[0, 1, 2, 3]));
    let writer = f.work(BackgroundStep::Log);
    let committers = [Some(Durability::Sync), Some(Durability::Sync), Some(Durability::Async), None].map(|durability| {
        let f = Arc::clone(&f);
        spawn(move || match durability {
            Some(Durability::Sync) => commit(&f, &[0], Durability::Sync),
            Some(Durability::Async) => commit(&f, &[1, 1], Durability::Async),
            None => commit_deferred(&f, &[2, 3]),
        })
    });
    let told = join(committers);
    let has_failed = || f.faults.failures() > 0;
    assert!(comes(|| has_failed() || f.engine.shared.pipeline.log.waiting_bytes() == 0), "the log writer sleeps");
    let kept = f.after_power_cut();
    assert!(kept[0] >= i64::from(told[0]) + i64::from(told[1]), "{told:?}, {kept:?}");
    assert!(!told[3] || kept[2..] == [1, 1], "{told:?}, {kept:?}");
    if has_failed() {
        assert!(f.engine.failure().is_some());
        assert!(!commit(&f, &[0], choose(&[Durability::Sync, Durability::Async])), "after a failed sync nothing is committed");
    }
    f.stop();
    join([writer]);
}

#[test]
fn all_commits_end_when_a_flush_fails() {
    check(a_flush_fails);
}

#[test]
fn a_leader_that_keeps_a_failure_to_itself_is_found() {
    check_finds(Plant::KeepFailure, a_flush_fails);
}

/// Commits continue while the background stops, and a clean stop loses none of them.
#[test]
fn a_stop_ends_the_log_writer_and_no_commit() {
    check(|| {
        let f = Fixture::with(EngineOptions { wal_writer_flush_after_bytes: choose(&[0, 1000]), ..sleeping_until_woken() }, 3);
        let background = [BackgroundStep::Log, BackgroundStep::LogFile, BackgroundStep::Flush].map(|step| f.work(step));
        let committers = [0, 1, 2].map(|row| {
            let f = Arc::clone(&f);
            spawn(move || match row {
                0 => commit_deferred(&f, &[0]),
                1 => commit(&f, &[1], Durability::Async),
                _ => commit(&f, &[2], Durability::Sync),
            })
        });
        if choose(&[false, true]) {
            f.stop();
        }
        assert_eq!(join(committers), [true; 3]);
        f.engine.shutdown().expect("stops");
        join(background);
        assert_eq!(f.after_power_cut(), [1, 1, 1]);
        assert!(f.engine.begin(Isolation::ReadCommitted).is_err() || !commit(&f, &[0], Durability::Async));
    });
}
