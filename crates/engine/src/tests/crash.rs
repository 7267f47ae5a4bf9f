//! Power cuts at every sync: acknowledged commits are there, others are whole or absent, in commit order.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Batch, ByteStrings, Column, ColumnData, Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, Faults, FaultyDirectory, FileOperation, ManualClock, MemoryDirectory, SeededRandom};

use crate::*;

fn options() -> EngineOptions {
    EngineOptions {
        memory_bytes: 40_000,
        wal_file_bytes: 4096,
        segment_bytes: 3000,
        bulk_rows_min: 20,
        ..EngineOptions::default()
    }
}

fn open(directory: &Arc<MemoryDirectory>) -> Result<Arc<Engine>> {
    Engine::open(options(), Arc::clone(directory) as Arc<dyn Directory>, Arc::new(ManualClock::new()))
}

fn row(n: u64, text: &str) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int8, Kind::Text]).encode_row(&[Datum::Int8(n as i64), Datum::text(text)])
}

type State = BTreeMap<RowId, u64>;

const TABLE: TreeId = TreeId(1);
const INDEX: TreeId = TreeId(2);

/// The workload's history: the state after each commit, and how many commits were acknowledged as durable.
struct History {
    states: Vec<State>,
    durable: usize,
    /// Values of the sequence that clients have seen in durable commits.
    sequence_seen: i64,
}

/// Creates two trees and commits until an operation fails.
fn work(directory: &Arc<MemoryDirectory>, seed: u64, history: &mut History) -> Result<()> {
    let engine = open(directory)?;
    let t = engine.begin(Isolation::ReadCommitted)?;
    t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged)?;
    t.create_index_tree(TABLE, Persistence::Logged)?;
    let definition = SequenceDefinition { increment: 1, min: 1, max: i64::MAX, cycle: false };
    let start = SequenceState { last_value: 1, is_called: false };
    let sequence = t.create_sequence(definition, start, Persistence::Logged)?;
    history.states.push(State::new());
    t.commit(Durability::Sync)?;
    history.durable = history.states.len();
    let random = SeededRandom::new(seed);
    for n in 1..120u64 {
        let t = engine.begin(Isolation::ReadCommitted)?;
        let mut state = history.states.last().cloned().unwrap_or_default();
        let value = t.nextval(sequence)?;
        for _ in 0..1 + random.below(4) {
            let text = "some text ".repeat(random.below(20));
            let victim = state.iter().nth(random.below(state.len() + 1)).map(|(id, v)| (*id, *v));
            match (victim, random.below(3)) {
                (Some((id, old)), 0) => {
                    t.delete(TABLE, id)?;
                    t.index(INDEX).delete(&old.to_be_bytes(), id)?;
                    state.remove(&id);
                }
                (Some((id, old)), 1) => {
                    t.update(TABLE, id, &row(n, &text))?;
                    t.index(INDEX).delete(&old.to_be_bytes(), id)?;
                    t.index(INDEX).insert(&n.to_be_bytes(), id)?;
                    state.insert(id, n);
                }
                _ => {
                    let id = t.insert(TABLE, &row(n, &text))?;
                    t.index(INDEX).insert(&n.to_be_bytes(), id)?;
                    state.insert(id, n);
                }
            }
        }
        if n % 9 == 4 {
            load(&t, n, &mut state)?;
        }
        history.states.push(state);
        let sync = random.chance(60);
        t.commit(if sync { Durability::Sync } else { Durability::Async })?;
        if sync {
            history.durable = history.states.len();
            history.sequence_seen = value;
        }
        match random.below(40) {
            0 => engine.merge_all()?,
            1 => engine.checkpoint()?,
            2..8 => drop(engine.run_once()),
            _ => {}
        }
    }
    engine.shutdown()
}

/// A bulk load into table and index.
fn load(t: &Arc<Transaction>, n: u64, state: &mut State) -> Result<()> {
    let columns = vec![
        Column::new(ColumnData::Int8(vec![n as i64; 25])),
        Column::new(ColumnData::Text((0..25).fold(ByteStrings::default(), |mut v, _| {
            v.push(b"loaded");
            v
        }))),
    ];
    let ids = t.bulk(TABLE).insert(&Batch::new(columns, 25))?;
    let mut builder = IndexBuilder::begin(t, INDEX, false)?;
    for id in (ids.start.0..ids.end.0).map(RowId) {
        builder.add(&n.to_be_bytes(), id, false)?;
        state.insert(id, n);
    }
    builder.finish().map(drop)
}

/// The state that a fresh transaction sees, with index and table in agreement.
fn read(engine: &Engine) -> State {
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = t.statement_view();
    let mut state = State::new();
    let mut scan = t.scan(view, TABLE, &[0], &[], &[], None).expect("opens");
    while let Some(batch) = scan.next().expect("scans") {
        for (i, id) in batch.row_ids.iter().enumerate() {
            assert_eq!(state.insert(*id, batch.columns[0].get(i).as_i64() as u64), None);
        }
    }
    let mut entries = State::new();
    let mut scan = t.index(INDEX).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
    while let Some((key, id)) = scan.next().expect("scans") {
        assert_eq!(entries.insert(id, u64::from_be_bytes(key.try_into().expect("8 bytes"))), None);
    }
    assert_eq!(entries, state, "the index disagrees with the table");
    state
}

fn check(directory: &Arc<MemoryDirectory>, history: &History) {
    let engine = open(directory).expect("recovers");
    if history.durable == 0 && !engine.has_tree(TABLE) {
        return;
    }
    let state = read(&engine);
    let found = history.states.iter().rposition(|s| *s == state);
    assert!(found.is_some(), "a state that never was");
    let matches = history.states[history.durable.saturating_sub(1)..].contains(&state);
    assert!(matches, "commit {} was acknowledged, found {found:?}", history.durable);
    if history.sequence_seen > 0 {
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let value = t.nextval(SequenceId(3)).expect("advances");
        assert!(value > history.sequence_seen, "{value} came again");
    }
}

#[test]
fn a_power_cut_at_any_sync_loses_nothing_acknowledged() {
    let syncs = {
        let directory = MemoryDirectory::new();
        let mut history = History { states: Vec::new(), durable: 0, sequence_seen: 0 };
        work(&directory, 1, &mut history).expect("no power cut");
        check(&directory.after_power_cut(&mut || false), &history);
        directory.syncs()
    };
    assert!(syncs > 100, "{syncs}");
    for cut in 0..syncs {
        println!("power cut at sync {cut}");
        let directory = MemoryDirectory::new();
        directory.cut_power_at_sync(cut);
        let mut history = History { states: Vec::new(), durable: 0, sequence_seen: 0 };
        assert!(work(&directory, 1, &mut history).is_err());
        let random = SeededRandom::new(cut);
        let chance = [0, 50, 100][cut as usize % 3];
        let after = directory.after_power_cut(&mut || random.chance(chance));
        check(&after, &history);
        // Recovery itself is cut, and done again.
        let again = directory.after_power_cut(&mut || random.chance(chance));
        again.cut_power_at_sync(1 + cut % 5);
        let _ = open(&again);
        check(&again.after_power_cut(&mut || random.chance(chance)), &history);
    }
}

#[test]
fn a_failed_sync_of_the_log_poisons_the_engine() {
    let faults = Faults::new();
    let directory = FaultyDirectory::new(MemoryDirectory::new(), Arc::clone(&faults));
    let engine = Engine::open(options(), directory, Arc::new(ManualClock::new())).expect("opens");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let tree = t.create_table_tree(&[Kind::Int8, Kind::Text], Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.insert(tree, &row(1, "lost")).expect("inserts");
    faults.fail_once(FileOperation::CHANGES, 0);
    assert!(matches!(t.commit(Durability::Sync), Err(EngineError::Io { .. })));
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    t.insert(tree, &row(2, "refused")).expect("inserts");
    assert!(matches!(t.commit(Durability::Async), Err(EngineError::Poisoned { .. })));
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let view = t.statement_view();
    assert!(t.scan(view, tree, &[0], &[], &[], None).expect("opens").next().expect("scans").is_none());
}

#[test]
fn unlogged_rows_survive_a_clean_stop_only() {
    for clean in [true, false] {
        let directory = MemoryDirectory::new();
        let engine = open(&directory).expect("opens");
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let trees = [Persistence::Unlogged, Persistence::Memory, Persistence::Logged]
            .map(|p| t.create_table_tree(&[Kind::Int8, Kind::Text], p).expect("creates"));
        t.commit(Durability::Sync).expect("commits");
        let before = engine.log_statistics().bytes;
        let rows = |tree, text: &str| {
            let t = engine.begin(Isolation::ReadCommitted).expect("begins");
            (0..50).for_each(|n| {
                t.insert(tree, &row(n, text)).expect("inserts");
            });
            t.commit(Durability::Sync).expect("commits");
        };
        rows(trees[0], &"unlogged row ".repeat(50));
        rows(trees[1], "memory row");
        assert_eq!(engine.log_statistics().bytes, before, "no log for them");
        rows(trees[2], "logged row");
        engine.checkpoint().expect("flushes");
        rows(trees[0], "one more");
        if clean {
            engine.shutdown().expect("stops");
        }
        let engine = open(&directory.after_power_cut(&mut || true)).expect("recovers");
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let view = t.statement_view();
        let count = |tree| {
            let mut scan = t.scan(view, tree, &[], &[], &[], None).expect("opens");
            let mut rows = 0;
            while let Some(batch) = scan.next().expect("scans") {
                rows += batch.row_ids.len();
            }
            rows
        };
        assert_eq!(trees.map(count), [if clean { 100 } else { 0 }, 0, 50]);
    }
}
