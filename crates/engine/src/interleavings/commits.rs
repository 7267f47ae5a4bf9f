//! The commit pipeline: the log's shared flush and its leader, deferred commits, publication in order, failures.

use melba_vfs::FileOperation;

use super::*;

const BOTH: [Durability; 2] = [Durability::Sync, Durability::Async];

/// Two rows are set to one number each time: a reader who sees one without the other sees a torn commit.
fn commit_pairs(f: &Fixture, commits: usize) {
    for _ in 0..commits {
        let durability = choose(&BOTH);
        let t = f.begin();
        f.change(&t, 0, |n| n + 1).expect("changes");
        f.change(&t, 1, |n| n + 1).expect("changes");
        let log_end = f.engine.log_end();
        let csn = t.commit(durability).expect("commits");
        assert!(f.engine.visible_csn() >= csn, "a commit that has returned is visible");
        if durability == Durability::Sync {
            assert!(f.engine.shared.pipeline.log.wal.durable() > log_end, "and durable");
        }
    }
}

fn commits_are_seen_whole_and_stay() {
    let f = Fixture::new(2);
    let writers = [2, 1].map(|commits| {
        let f = Arc::clone(&f);
        spawn(move || commit_pairs(&f, commits))
    });
    let background = spawn({
        let f = Arc::clone(&f);
        move || {
            for _ in 0..2 {
                f.engine.run_step(BackgroundStep::Log);
            }
        }
    });
    let mut last = 0;
    for _ in 0..3 {
        let t = f.begin();
        let view = t.statement_view();
        let seen = (f.read(&t, view, 0), f.read(&t, view, 1));
        assert!(seen.0 == seen.1 && seen.0 >= last, "{seen:?} after {last}");
        assert!(f.after_power_cut()[0] <= 3);
        last = seen.0;
    }
    join(writers);
    join([background]);
    f.engine.flush_log().expect("flushes");
    assert_eq!(f.after_power_cut(), [3, 3]);
}

#[test]
fn commits_are_durable_visible_and_whole_with_any_log_flusher() {
    check(commits_are_seen_whole_and_stay);
}

/// A reader that has seen a synchronous commit finds it after a crash.
fn visible_commits_survive() {
    let f = Fixture::new(2);
    let writer = spawn({
        let f = Arc::clone(&f);
        move || {
            let t = f.begin();
            f.change(&t, 0, |_| 1).expect("changes");
            t.commit(Durability::Sync).expect("commits");
        }
    });
    let t = f.begin();
    let seen = f.read(&t, t.statement_view(), 0);
    assert!(f.after_power_cut()[0] >= seen, "seen, and lost");
    join([writer]);
}

#[test]
fn visible_commits_are_durable() {
    check(visible_commits_survive);
}

#[test]
fn commits_that_are_published_early_are_found() {
    check_finds(Plant::PublishEarly, visible_commits_survive);
}

/// As in a server: commits of several sessions are begun, the log is flushed once, and then each commit is checked.
#[test]
fn deferred_commits_end_beside_others() {
    check(|| {
        let f = Fixture::new(4);
        let deferring = [[0, 1], [2, 3]].map(|rows| {
            let f = Arc::clone(&f);
            spawn(move || {
                let sessions = rows.map(|row| {
                    let session = f.engine.session().expect("opens");
                    let t = f.engine.begin_in(&session, Isolation::ReadCommitted).expect("begins");
                    f.change(&t, row, |n| n + 1).expect("changes");
                    let committing = t.start_commit(choose(&BOTH), None).expect("starts");
                    (session, committing)
                });
                for (session, committing) in sessions {
                    let mut waiting = committing.poll().err();
                    while let Some(committing) = waiting {
                        session.flush_log().expect("flushes");
                        waiting = committing.poll().err();
                        shuttle::thread::yield_now();
                    }
                }
            })
        });
        let waiting = spawn({
            let f = Arc::clone(&f);
            move || {
                let t = f.begin();
                f.change(&t, 0, |n| n + 1).expect("changes");
                t.commit(choose(&BOTH)).expect("commits");
            }
        });
        join(deferring);
        join([waiting]);
        let t = f.begin();
        let view = t.statement_view();
        assert_eq!((0..4).map(|row| f.read(&t, view, row)).collect::<Vec<_>>(), [2, 1, 1, 1]);
        assert_eq!(
            f.engine.shared.pipeline.floor().whole,
            f.engine.shared.pipeline.floor().assigned,
            "nothing is left in flight"
        );
    });
}

/// The sync that the log needs fails for one of them: every waiter ends, acknowledged commits are there, and no further commit is
/// acknowledged.
#[test]
fn all_who_wait_hear_of_a_failed_flush() {
    check(|| {
        let f = Fixture::new(3);
        f.faults.fail_once(&[FileOperation::Sync], choose(&[0, 1, 2]));
        let writers = [0, 1, 2].map(|row| {
            let f = Arc::clone(&f);
            spawn(move || {
                let t = f.begin();
                f.change(&t, row, |_| 1).expect("changes");
                t.commit(Durability::Sync).is_ok()
            })
        });
        let acknowledged = join(writers);
        let kept = f.after_power_cut();
        for (row, acknowledged) in acknowledged.iter().enumerate() {
            assert!(!acknowledged || kept[row] == 1, "row {row} was acknowledged: {kept:?}");
        }
        if f.faults.failures() > 0 {
            let t = f.begin();
            assert!(f.change(&t, 0, |_| 7).and_then(|()| t.commit(Durability::Sync)).is_err(), "after a failed sync nothing is");
        }
    });
}

/// Rows that are locked with `commit_delay` and asynchronous commits behind synchronous ones: commits are published in CSN order,
/// and later ones wait.
#[test]
fn an_asynchronous_commit_waits_for_those_before_it() {
    check(|| {
        let f = Fixture::new(2);
        let commits = [(0, Durability::Sync), (1, Durability::Async), (1, Durability::Sync)].map(|(row, durability)| {
            let f = Arc::clone(&f);
            spawn(move || {
                let t = f.begin();
                f.change(&t, row, |n| n + 1).expect("changes");
                let csn = t.commit(durability).expect("commits");
                let seen = f.begin().statement_view().csn;
                assert!(seen >= csn, "a commit at {csn} is over, a new view is at {seen}");
                csn
            })
        });
        let mut csns = join(commits);
        csns.sort_unstable();
        csns.dedup();
        assert_eq!(csns.len(), 3);
    });
}
