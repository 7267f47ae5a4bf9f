//! A panic at every step of a commit: the engine continues or is poisoned, and no session waits for ever.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::step::plant_panic;
use melba_types::row::RowLayout;
use melba_types::{Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock};

use crate::*;

const TABLE: TreeId = TreeId(1);
/// No thread waits for longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The value that the panicking commit writes.
const MARK: i64 = -1;

fn open(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    Engine::open(EngineOptions::default(), directory, Arc::new(OsClock::new())).expect("opens")
}

fn row(n: i64) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8]).encode_row(&[Datum::Int8(n)])
}

fn values(engine: &Engine) -> Result<BTreeSet<i64>> {
    let t = engine.begin(Isolation::ReadCommitted)?;
    let mut scan = t.scan(t.statement_view(), TABLE, &[0], &[], &[], None)?;
    let mut found = BTreeSet::new();
    while let Some(batch) = scan.next()? {
        found.extend((0..batch.row_ids.len()).map(|i| batch.columns[0].get(i).as_i64()));
    }
    Ok(found)
}

/// Threads that commit, or wait for a row, until they are told to stop or the engine is poisoned; each returns one result.
fn others(engine: &Arc<Engine>, locked: RowId, stop: &Arc<AtomicBool>) -> Receiver<std::result::Result<(), EngineError>> {
    let (sender, answers) = channel();
    for durability in [Durability::Sync, Durability::Sync, Durability::Async] {
        let (engine, stop, sender) = (Arc::clone(engine), Arc::clone(stop), sender.clone());
        std::thread::spawn(move || {
            let mut result = Ok(());
            while result.is_ok() && !stop.load(Ordering::SeqCst) {
                result = engine.begin(Isolation::ReadCommitted).and_then(|t| {
                    t.insert(TABLE, &row(1))?;
                    t.commit(durability).map(drop)
                });
            }
            let _ = sender.send(result);
        });
    }
    let engine = Arc::clone(engine);
    std::thread::spawn(move || {
        let result = engine.begin(Isolation::ReadCommitted).and_then(|t| {
            t.lock_row(TABLE, locked, RowLockMode::ForUpdate, Wait::Block)?;
            t.commit(Durability::Sync).map(drop)
        });
        let _ = sender.send(result);
    });
    answers
}

/// One commit with a panic after `steps` steps; false when it had fewer.
fn panic_behind(steps: u32, durability: Durability, with_schema: bool) -> bool {
    let what = format!("a panic behind {steps} steps, {durability:?}, schema {with_schema}");
    let directory = MemoryDirectory::new();
    let engine = open(&directory);
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    assert_eq!(t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates"), TABLE);
    let locked = t.insert(TABLE, &row(0)).expect("inserts");
    t.commit(Durability::Sync).expect("commits");

    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.lock_row(TABLE, locked, RowLockMode::ForUpdate, Wait::Block).expect("free");
    t.insert(TABLE, &row(MARK)).expect("inserts");
    let created = with_schema.then(|| t.create_table_tree(&[Kind::Int8], Persistence::Logged).expect("creates"));
    let stop = Arc::new(AtomicBool::new(false));
    let answers = others(&engine, locked, &stop);
    plant_panic(Some(steps));
    let committed = catch_unwind(AssertUnwindSafe(|| {
        let on_publish: Option<OnPublish> = with_schema.then(|| Box::new(|_| ()) as OnPublish);
        t.start_commit(durability, on_publish).and_then(Committing::wait)
    }));
    let has_panicked = !plant_panic(None);
    drop(t);
    stop.store(true, Ordering::SeqCst);
    for _ in 0..4 {
        let answer = answers.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what}: somebody waits for ever"));
        let is_told = matches!(&answer, Ok(()) | Err(EngineError::Poisoned { .. }));
        assert!(is_told && (answer.is_ok() || engine.failure().is_some()), "{what}: {answer:?}");
    }
    assert_eq!(committed.is_err(), has_panicked, "{what}");
    match engine.failure() {
        None => {
            assert_eq!(values(&engine).expect("reads").contains(&MARK), !has_panicked, "{what}");
            assert!(!has_panicked || created.is_none_or(|tree| !engine.has_tree(tree)), "{what}");
            let t = engine.begin(Isolation::ReadCommitted).expect("begins");
            t.insert(TABLE, &row(2)).expect("inserts");
            t.commit(Durability::Sync).expect("commits");
            engine.checkpoint().expect("flushes");
        }
        Some(_) => {
            assert!(has_panicked, "{what}: poisoned without a panic");
            // No call hangs.
            assert!(engine.checkpoint().is_err() && engine.shutdown().is_err());
        }
    }
    drop(engine);
    let recovered = open(&directory.after_power_cut(&mut || true));
    let found = values(&recovered).expect("reads");
    assert!(found.contains(&0), "{what}: what was committed before is there");
    if let Some(tree) = created {
        assert_eq!(recovered.has_tree(tree), found.contains(&MARK), "{what}: the commit is whole, or not there");
    }
    has_panicked
}

#[test]
fn a_panic_at_any_step_of_a_commit_leaves_no_session_waiting() {
    for (durability, with_schema) in [(Durability::Sync, false), (Durability::Async, false), (Durability::Sync, true)] {
        let steps = (0..).take_while(|steps| panic_behind(*steps, durability, with_schema)).count();
        assert!(steps >= 10, "{steps} steps");
    }
}
