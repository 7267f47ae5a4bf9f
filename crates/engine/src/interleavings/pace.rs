//! Writers that wait for the background: a row store over its limit, flushes that fail and later succeed, an engine that stops meanwhile.

use melba_vfs::FileOperation;

use super::*;

/// A few commits fill it, twice over.
const ROW_STORE_BYTES: u64 = 1000;
const ROWS_A_COMMIT: i64 = 6;
/// The size of a row there, at most.
const ROW_BYTES: u64 = 250;

fn small() -> EngineOptions {
    EngineOptions { memory_bytes: 6 * ROW_STORE_BYTES, ..options() }
}

/// Inserts rows.
fn commit(f: &Fixture) -> Result<(), EngineError> {
    let t = f.begin();
    for n in 0..ROWS_A_COMMIT {
        t.insert(f.table, &bytes(n))?;
    }
    t.commit(choose(&[Durability::Sync, Durability::Async])).map(drop)
}

fn rows(f: &Fixture) -> u64 {
    f.engine.tree_rows_estimate(f.table)
}

fn is_over(f: &Fixture) -> bool {
    f.engine.shared.store.row_store_bytes() > 2 * ROW_STORE_BYTES
}

/// The row store stays within its limit plus one commit of each writer, and its counted size is its real size.
fn writers_keep_to_the_limit() {
    let f = Fixture::with(small(), 1);
    let background = [BackgroundStep::Log, BackgroundStep::Flush].map(|step| f.work(step));
    let writers = [(); 3].map(|()| {
        let f = Arc::clone(&f);
        spawn(move || {
            for _ in 0..3 {
                commit(&f).expect("commits");
                let bytes = f.engine.shared.store.row_store_bytes();
                assert!(bytes <= 2 * ROW_STORE_BYTES + 3 * ROWS_A_COMMIT as u64 * ROW_BYTES, "{bytes} in the row store");
            }
        })
    });
    join(writers);
    f.stop();
    join(background);
    assert_eq!(rows(&f), 1 + 9 * ROWS_A_COMMIT as u64);
    let store = &f.engine.shared.store;
    let there: u64 = store.all_trees().iter().map(|tree| tree.memory_bytes()).sum();
    assert_eq!(store.row_store_bytes(), there, "counted, and there");
}

#[test]
fn the_row_store_keeps_to_its_limit_beside_writers() {
    check(writers_keep_to_the_limit);
}

#[test]
fn a_row_store_that_is_miscounted_is_found() {
    check_finds(Plant::CountApart, writers_keep_to_the_limit);
}

/// No segment can be written: all sessions that wait for one get the error, and continue when segments can be written again.
fn flushes_fail() {
    let f = Fixture::with(small(), 1);
    f.faults.fail_from(&[FileOperation::Create], 0);
    let flush = f.work(BackgroundStep::Flush);
    let writers = [(); 2].map(|()| {
        let f = Arc::clone(&f);
        spawn(move || {
            let mut committed = 0;
            while commit(&f).is_ok() {
                committed += 1;
            }
            committed
        })
    });
    let committed: u64 = join(writers).into_iter().sum();
    assert!(f.engine.failure().is_none(), "that is no reason to refuse everything");
    f.faults.heal();
    f.clock.advance(std::time::Duration::from_secs(10));
    assert!(comes(|| !is_over(&f)), "nobody flushes");
    commit(&f).expect("commits");
    assert_eq!(rows(&f), 1 + (committed + 1) * ROWS_A_COMMIT as u64);
    f.stop();
    join([flush]);
}

#[test]
fn writers_hear_of_a_flush_that_fails() {
    check(flushes_fail);
}

#[test]
fn a_writer_that_waits_for_a_failed_flush_is_found() {
    check_finds(Plant::WaitForFailed, flushes_fail);
}

/// No thread flushes, because the background is about to stop or the engine fails: writers flush themselves, or get the error.
#[test]
fn no_writer_waits_for_a_background_that_stops() {
    check(|| {
        let f = Fixture::with(small(), 1);
        f.engine.shared.runtime.set_threads(true);
        let writers = [(); 2].map(|()| {
            let f = Arc::clone(&f);
            spawn(move || (0..4).filter(|_| commit(&f).is_ok()).count())
        });
        assert!(comes(|| is_over(&f)), "nobody waits");
        let stops = choose(&[true, false]);
        match stops {
            true => f.stop(),
            false => drop(f.engine.shared.runtime.poison(EngineError::Misuse("planted"))),
        }
        let committed = join(writers);
        assert!(!stops || committed == [4, 4], "{committed:?}");
        assert!(stops || commit(&f).is_err());
    });
}
