//! Many threads on the production configuration: money moves, and the sum stays the same.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock, SeededRandom};

use crate::*;

const ACCOUNTS: u64 = 200;
const THREADS: u64 = 6;
const TRANSFERS: u64 = 400;

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    // Small enough that flushes and merges run all the time.
    let options = EngineOptions { memory_bytes: 200_000, wal_file_bytes: 16 << 10, ..EngineOptions::default() };
    Engine::open(options, Arc::clone(directory) as Arc<dyn Directory>, Arc::new(OsClock::new())).expect("opens")
}

fn layout() -> RowLayout {
    RowLayout::new(vec![Kind::Int8, Kind::Text])
}

fn row(balance: i64) -> Vec<u8> {
    layout().encode_row(&[Datum::Int8(balance), Datum::text("filler ".repeat(20))])
}

fn balance(row: &[u8]) -> i64 {
    layout().view(row).expect("a row").datum(0, &Datum::Null).as_i64()
}

fn total(t: &Arc<Transaction>, tree: TreeId, index: TreeId) -> i64 {
    let view = t.statement_view();
    let (mut rows, mut sum) = (0, 0);
    let mut scan = t.scan(view, tree, &[0], &[], &[], None).expect("opens");
    while let Some(batch) = scan.next().expect("scans") {
        rows += batch.row_ids.len() as u64;
        sum += (0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_i64()).sum::<i64>();
    }
    assert_eq!(rows, ACCOUNTS);
    // The index is keyed by balance, so that every transfer changes it.
    let mut by_index = 0;
    let mut scan = t.index(index).scan(view, Bound::Unbounded, Bound::Unbounded, true).expect("opens");
    while let Some((key, _)) = scan.next().expect("scans") {
        by_index += i64::from_be_bytes(key.try_into().expect("8 bytes"));
    }
    assert_eq!(by_index, sum);
    sum
}

/// One transfer; an error rolls it back.
fn transfer(t: &Arc<Transaction>, tree: TreeId, index: TreeId, random: &SeededRandom) -> Result<()> {
    let amount = random.below(5) as i64;
    for sign in [-1, 1] {
        let id = RowId(1 + random.below(ACCOUNTS as usize) as u64);
        let view = t.statement_view();
        t.lock_row(tree, id, RowLockMode::ForNoKeyUpdate, Wait::Block)?;
        let latest = t.get_latest(tree, id)?;
        if t.isolation() == Isolation::RepeatableRead && latest.csn > view.csn {
            return Err(EngineError::SerializationFailure);
        }
        let old = balance(&latest.row.expect("never deleted"));
        t.update(tree, id, &row(old + sign * amount))?;
        if amount != 0 {
            t.index(index).delete(&old.to_be_bytes(), id)?;
            t.index(index).insert(&(old + sign * amount).to_be_bytes(), id)?;
        }
    }
    let durability = if random.chance(30) { Durability::Sync } else { Durability::Async };
    t.commit(durability).map(drop)
}

fn client(engine: &Engine, tree: TreeId, index: TreeId, seed: u64) {
    let session = engine.session().expect("free slot");
    session.set_deadlock_timeout(std::time::Duration::from_millis(2));
    let random = SeededRandom::new(seed);
    let mut done = 0;
    while done < TRANSFERS {
        let isolation = if random.chance(50) { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
        let t = engine.begin_in(&session, isolation).expect("begins");
        match transfer(&t, tree, index, &random) {
            Ok(()) => done += 1,
            Err(EngineError::SerializationFailure | EngineError::Deadlock { .. }) => t.rollback(),
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn transfers_by_many_threads_keep_the_sum() {
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    engine.start_background();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(layout().kinds(), Persistence::Logged).expect("creates");
    let index = t.create_index_tree(tree, Persistence::Logged).expect("creates");
    for _ in 0..ACCOUNTS {
        let id = t.insert(tree, &row(1000)).expect("inserts");
        t.index(index).insert(&1000i64.to_be_bytes(), id).expect("inserts");
    }
    t.commit(Durability::Sync).expect("commits");
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        let engine = &engine;
        let stop = &stop;
        s.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let t = engine.begin(Isolation::RepeatableRead).expect("begins");
                assert_eq!(total(&t, tree, index), ACCOUNTS as i64 * 1000);
                assert_eq!(total(&t, tree, index), ACCOUNTS as i64 * 1000);
            }
        });
        let clients: Vec<_> = (0..THREADS).map(|i| s.spawn(move || client(engine, tree, index, i))).collect();
        let results: Vec<_> = clients.into_iter().map(|c| c.join()).collect();
        stop.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|r| r.expect("no panic"));
    });
    assert!(engine.locks().is_empty());
    let check = |engine: &Engine| {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        assert_eq!(total(&t, tree, index), ACCOUNTS as i64 * 1000);
    };
    check(&engine);
    // Whole transfers may be missing, no halves.
    directory.cut_power();
    let random = SeededRandom::new(5);
    check(&open(&directory.after_power_cut(&mut || random.chance(50))));
}
