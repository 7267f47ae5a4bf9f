//! Melba as a map: a table of key and value with a unique index, as SQL would have it.

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use melba_engine::{Durability, Engine, EngineOptions, EngineSession, Isolation, Persistence, Transaction};
use melba_types::row::{Field, RowLayout};
use melba_types::{ColumnData, Datum, Kind, TreeId};
use melba_vfs::{OsClock, OsDirectory};

use crate::store::{Client, Key, MEMORY_BYTES, Store, Sync, Value};

const KINDS: [Kind; 2] = [Kind::Bytes, Kind::Bytes];
const VALUE: usize = 1;
/// Rows that a scan in key order fetches together.
const FETCHED: usize = 1024;

struct Melba {
    engine: Arc<Engine>,
    layout: RowLayout,
    table: TreeId,
    index: TreeId,
}

pub fn open(folder: &Path) -> Box<dyn Store> {
    let options = EngineOptions { memory_bytes: MEMORY_BYTES, ..EngineOptions::default() };
    let directory = Arc::new(OsDirectory::open(folder).expect("a folder"));
    let engine = Engine::open(options, directory, Arc::new(OsClock::new())).expect("opens");
    engine.start_background();
    let t = engine.begin(Isolation::ReadCommitted).expect("begins");
    let table = t.create_table_tree(&KINDS, Persistence::Logged).expect("creates");
    let index = t.create_index_tree(table, Persistence::Logged).expect("creates");
    t.commit(Durability::Sync).expect("commits");
    Box::new(Melba { engine, layout: RowLayout::new(KINDS.to_vec()), table, index })
}

impl Store for Melba {
    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(MelbaClient { store: self, session: self.engine.session().expect("a free slot"), row: Vec::new() })
    }

    fn wait_until_idle(&self) {
        self.engine.checkpoint().expect("flushes");
        self.engine.merge_all().expect("merges");
    }
}

impl Drop for Melba {
    fn drop(&mut self) {
        self.engine.shutdown().expect("stops");
    }
}

struct MelbaClient<'s> {
    store: &'s Melba,
    session: Arc<EngineSession>,
    row: Vec<u8>,
}

impl MelbaClient<'_> {
    fn begin(&self) -> Arc<Transaction> {
        self.store.engine.begin_in(&self.session, Isolation::ReadCommitted).expect("begins")
    }

    fn value_of(&self, row: &[u8], each: &mut dyn FnMut(&[u8])) {
        let view = self.store.layout.view(row).expect("a row");
        match view.get(VALUE) {
            Field::Value(value) => each(value),
            _ => panic!("a value is bytes"),
        }
    }
}

impl Client for MelbaClient<'_> {
    fn put(&mut self, entries: &[(Key, Value)], sync: Sync) {
        let (table, index) = (self.store.table, self.store.index);
        let t = self.begin();
        for (key, value) in entries {
            let values = [Datum::Bytes(key[..].into()), Datum::Bytes(value[..].into())];
            self.row.clear();
            self.store.layout.encode(values.iter(), &mut self.row);
            match t.index(index).claim_key(key, None).expect("claims") {
                Some(id) => {
                    t.lock_row_to_change(table, id, melba_engine::RowLockMode::ForNoKeyUpdate).expect("locks");
                    t.update(table, id, &self.row).expect("updates");
                }
                None => {
                    let id = t.insert(table, &self.row).expect("inserts");
                    t.index(index).insert(key, id).expect("inserts");
                }
            }
        }
        let durability = if sync == Sync::Now { Durability::Sync } else { Durability::Async };
        t.commit(durability).expect("commits");
    }

    fn get(&mut self, key: &Key, each: &mut dyn FnMut(&[u8])) -> bool {
        let t = self.begin();
        let view = t.statement_view();
        let mut scan = t.index(self.store.index).lookup(view, key).expect("looks up");
        let id = scan.next().expect("scans").map(|(_, id)| id);
        let row = id.and_then(|id| t.get(view, self.store.table, id).expect("reads"));
        if let Some(row) = &row {
            self.value_of(row, each);
        }
        row.is_some()
    }

    fn scan(&mut self, each: &mut dyn FnMut(&[u8])) {
        let t = self.begin();
        let view = t.statement_view();
        let mut keys = t.index(self.store.index).scan(view, Bound::Unbounded, Bound::Unbounded, false).expect("opens");
        let mut ids = Vec::with_capacity(FETCHED);
        loop {
            ids.clear();
            while ids.len() < FETCHED
                && let Some((_, id)) = keys.next().expect("scans")
            {
                ids.push(id);
            }
            if ids.is_empty() {
                return;
            }
            let (_, columns) = t.fetch(view, self.store.table, &ids, &[VALUE], &[]).expect("fetches");
            let ColumnData::Bytes(values) = &columns[0].data else { panic!("a value is bytes") };
            (0..values.len()).for_each(|i| each(values.get(i)));
        }
    }
}
