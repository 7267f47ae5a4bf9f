//! Random transactions against a simple model, with flushes, merges and restarts in between.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Batch, ByteStrings, Column, ColumnData, Datum, Kind, RowId, TreeId};
use melba_vfs::{Directory, MemoryDirectory, OsClock, SeededRandom};

use crate::*;

type State = BTreeMap<RowId, String>;

/// A transaction of the engine, and the rows it must see.
struct Open {
    txn: Arc<Transaction>,
    session: Arc<EngineSession>,
    repeatable: bool,
    snapshot: Option<State>,
    snapshot_csn: u64,
    /// Own changes: `None` is deleted.
    own: BTreeMap<RowId, Option<String>>,
    savepoints: Vec<(Savepoint, BTreeMap<RowId, Option<String>>)>,
}

struct World {
    directory: Arc<MemoryDirectory>,
    engine: Arc<Engine>,
    table: TreeId,
    index: TreeId,
    committed: State,
    open: Vec<Open>,
    random: SeededRandom,
}

fn options() -> EngineOptions {
    EngineOptions {
        memory_bytes: 60_000,
        wal_file_bytes: 4096,
        segment_bytes: 3000,
        bulk_rows_min: 8,
        // A few changes are many: they move into segments again and again.
        write_set_bytes: 700,
        ..EngineOptions::default()
    }
}

fn open_engine(directory: &Arc<MemoryDirectory>) -> Arc<Engine> {
    let directory = Arc::clone(directory) as Arc<dyn Directory>;
    Engine::open(options(), directory, Arc::new(OsClock::new())).expect("opens")
}

fn encode(text: &str) -> Vec<u8> {
    RowLayout::new(vec![Kind::Int4, Kind::Text]).encode_row(&[Datum::Int4(text.len() as i32), Datum::text(text)])
}

fn key(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

impl World {
    fn new(seed: u64) -> World {
        let directory = MemoryDirectory::new();
        let engine = open_engine(&directory);
        let t = engine.begin(Isolation::ReadCommitted).expect("begins");
        let table = t.create_table_tree(&[Kind::Int4, Kind::Text], Persistence::Logged).expect("creates");
        let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
        t.commit(Durability::Sync).expect("commits");
        let random = SeededRandom::new(seed);
        World { directory, engine, table, index, committed: State::new(), open: Vec::new(), random }
    }

    fn text(&mut self) -> String {
        let n = self.random.below(40);
        format!("{n:02}{}", "abcdefgh".repeat(self.random.below(12)))
    }

    fn begin(&mut self) {
        let repeatable = self.random.chance(50);
        let isolation = if repeatable { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
        let session = self.engine.session().expect("free slot");
        let txn = self.engine.begin_in(&session, isolation).expect("begins");
        self.open.push(Open {
            txn,
            session,
            repeatable,
            snapshot: None,
            snapshot_csn: 0,
            own: BTreeMap::new(),
            savepoints: Vec::new(),
        });
    }

    /// A statement's view and the state that it must show.
    fn view(&mut self, at: usize) -> (ReadView, State) {
        let open = &mut self.open[at];
        let view = open.txn.statement_view();
        if !open.repeatable || open.snapshot.is_none() {
            open.snapshot = Some(self.committed.clone());
            open.snapshot_csn = view.csn.0;
        }
        assert_eq!(view.csn.0, open.snapshot_csn);
        let mut state = open.snapshot.clone().expect("just set");
        for (id, change) in &open.own {
            match change {
                Some(text) => drop(state.insert(*id, text.clone())),
                None => drop(state.remove(id)),
            }
        }
        (view, state)
    }

    fn write(&mut self, at: usize) {
        let (view, state) = self.view(at);
        let text = self.text();
        let (table, index) = (self.table, self.index);
        let victim = (!state.is_empty()).then(|| *state.keys().nth(self.random.below(state.len())).expect("in range"));
        let kind = self.random.below(10);
        let open = &mut self.open[at];
        let t = &open.txn;
        let (Some(id), 4..) = (victim, kind) else {
            let id = t.insert(table, &encode(&text)).expect("inserts");
            t.index(index).insert(&key(&text), id).expect("inserts");
            open.own.insert(id, Some(text));
            return;
        };
        let lock = t.lock_row(table, id, RowLockMode::ForUpdate, Wait::NoWait).expect("answers");
        let latest = t.get_latest(table, id).expect("reads");
        let changed = latest.csn > view.csn && latest.own_command.is_none();
        if lock == RowLockResult::WouldBlock || changed {
            return;
        }
        let old = &state[&id];
        t.index(index).delete(&key(old), id).expect("deletes");
        if kind < 7 {
            t.update(table, id, &encode(&text)).expect("updates");
            t.index(index).insert(&key(&text), id).expect("inserts");
            open.own.insert(id, Some(text));
        } else {
            t.delete(table, id).expect("deletes");
            open.own.insert(id, None);
        }
    }

    fn load(&mut self, at: usize) {
        let texts: Vec<String> = (0..1 + self.random.below(20)).map(|_| self.text()).collect();
        let (table, index) = (self.table, self.index);
        let open = &mut self.open[at];
        let mut strings = ByteStrings::default();
        texts.iter().for_each(|t| strings.push(t.as_bytes()));
        let lengths = texts.iter().map(|t| t.len() as i32).collect();
        let columns = vec![Column::new(ColumnData::Int4(lengths)), Column::new(ColumnData::Text(strings))];
        let ids = open.txn.bulk(table).insert(&Batch::new(columns, texts.len())).expect("loads");
        let mut builder = IndexBuilder::begin(&open.txn, index, false).expect("begins");
        for (i, text) in texts.into_iter().enumerate() {
            let id = RowId(ids.start.0 + i as u64);
            if i % 2 == 0 {
                builder.add(&key(&text), id, false).expect("adds");
            } else {
                open.txn.index(index).insert(&key(&text), id).expect("inserts");
            }
            open.own.insert(id, Some(text));
        }
        builder.finish().expect("builds");
    }

    fn check(&mut self, at: usize) {
        let (view, state) = self.view(at);
        let t = &self.open[at].txn;
        let (mut found, mut counted) = (State::new(), 0);
        let morsels = t.morsels(self.table, 1 + self.random.below(3)).expect("splits");
        for morsel in morsels {
            let mut scan = t.scan(view, self.table, &[1, 0], &[], &[], Some(morsel)).expect("opens");
            while let Some(batch) = scan.next().expect("scans") {
                for (i, id) in batch.row_ids.iter().enumerate() {
                    let text = batch.columns[0].get(i).as_str().to_owned();
                    assert_eq!(batch.columns[1].get(i).as_i32(), text.len() as i32);
                    assert_eq!(found.insert(*id, text), None, "a row came twice");
                }
            }
            let mut scan = t.scan(view, self.table, &[], &[], &[], Some(morsel)).expect("opens");
            while let Some(rows) = scan.next_count().expect("counts") {
                counted += rows;
            }
        }
        assert_eq!(counted, found.len());
        assert_eq!(found, state);
        let mut expected: Vec<(Vec<u8>, RowId)> = state.iter().map(|(id, text)| (key(text), *id)).collect();
        expected.sort();
        let from = format!("{:02}", self.random.below(40));
        let reverse = self.random.chance(50);
        let lower = if self.random.chance(50) { Bound::Unbounded } else { Bound::Included(from.as_bytes()) };
        expected.retain(|(k, _)| matches!(lower, Bound::Unbounded) || k.as_slice() >= from.as_bytes());
        if reverse {
            expected.reverse();
        }
        let mut scan = t.index(self.index).scan(view, lower, Bound::Unbounded, reverse).expect("opens");
        let mut entries = Vec::new();
        while let Some((k, id)) = scan.next().expect("scans") {
            entries.push((k.to_vec(), id));
        }
        assert_eq!(entries, expected);
        if let Some((wanted, _)) = expected.get(self.random.below(expected.len() + 1)) {
            let found = t.index(self.index).find(view, wanted).expect("finds").expect("is there");
            assert!(expected.contains(&(wanted.clone(), found)));
        }
        assert_eq!(t.index(self.index).find(view, b"none").expect("finds"), None);
        let ids: Vec<RowId> = (0..5).map(|_| RowId(self.random.below(400) as u64)).collect();
        let (kept, columns) = t.fetch(view, self.table, &ids, &[1], &[]).expect("fetches");
        let there: Vec<u32> = (0..5u32).filter(|i| state.contains_key(&ids[*i as usize])).collect();
        assert_eq!(kept, there);
        for (i, at) in kept.iter().enumerate() {
            assert_eq!(columns[0].get(i).as_str(), state[&ids[*at as usize]]);
        }
        for id in ids {
            let mut values = Vec::new();
            let is_there = t.fetch_values(view, self.table, id, &[1], &[], &mut values).expect("fetches");
            let columns = t.fetch_row(view, self.table, id, &[1], &[]).expect("fetches");
            assert_eq!((is_there, columns.is_some()), (state.contains_key(&id), state.contains_key(&id)));
            if let (Some(columns), Some(text)) = (columns, state.get(&id)) {
                assert_eq!((columns[0].get(0).as_str(), values[0].as_str()), (&text[..], &text[..]));
            }
        }
        if let Some((id, text)) = state.iter().next() {
            let row = t.get(view, self.table, *id).expect("reads").expect("visible");
            assert_eq!(&row[..], &encode(text)[..]);
        }
    }

    fn finish(&mut self, at: usize) {
        let open = self.open.swap_remove(at);
        if self.random.chance(25) {
            open.txn.rollback();
            return;
        }
        let durability = if self.random.chance(50) { Durability::Sync } else { Durability::Async };
        open.txn.commit(durability).expect("commits");
        for (id, change) in open.own {
            match change {
                Some(text) => drop(self.committed.insert(id, text)),
                None => drop(self.committed.remove(&id)),
            }
        }
        drop(open.session);
    }

    fn savepoint(&mut self, at: usize) {
        let open = &mut self.open[at];
        if self.random.chance(50) || open.savepoints.is_empty() {
            let savepoint = open.txn.savepoint();
            open.savepoints.push((savepoint, open.own.clone()));
        } else {
            let keep = self.random.below(open.savepoints.len());
            open.savepoints.truncate(keep + 1);
            let (savepoint, own) = &open.savepoints[keep];
            open.txn.rollback_to(*savepoint);
            open.own = own.clone();
        }
    }

    fn restart(&mut self) {
        self.open.clear();
        if self.random.chance(50) {
            self.engine.shutdown().expect("stops");
        } else {
            self.engine.flush_log().expect("flushes");
        }
        self.directory = self.directory.after_power_cut(&mut || false);
        self.engine = open_engine(&self.directory);
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..6 if self.open.len() < 4 => self.begin(),
            6..9 => while self.engine.run_once() {},
            9..12 => {
                self.engine.run_once();
            }
            12 => self.engine.checkpoint().expect("flushes"),
            13 if self.random.chance(30) => self.engine.merge_all().expect("merges"),
            14 if self.random.chance(20) => self.restart(),
            choice if !self.open.is_empty() => {
                let at = self.random.below(self.open.len());
                match choice {
                    15..25 => self.check(at),
                    25..32 => self.savepoint(at),
                    32..42 => self.finish(at),
                    42..46 => self.load(at),
                    _ => self.write(at),
                }
            }
            _ => self.begin(),
        }
    }
}

#[test]
fn random_transactions_agree_with_the_model() {
    let seeds = std::env::var("MELBA_SEED").ok().and_then(|s| s.parse().ok()).map_or(0..24, |s: u64| s..s + 1);
    for seed in seeds {
        // Printed only when the test fails.
        println!("MELBA_SEED={seed} cargo test -p melba-engine random_transactions");
        let mut world = World::new(seed);
        for _ in 0..700 {
            world.step();
        }
        world.restart();
        world.begin();
        world.check(0);
    }
}
