//! fjall: an LSM tree of keys and values; options as they come but for the cache.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::store::{Client, Key, MEMORY_BYTES, Store, Sync, Value};

struct Fjall {
    database: Database,
    entries: Keyspace,
}

pub fn open(folder: &Path) -> Box<dyn Store> {
    let database = Database::builder(folder).cache_size(MEMORY_BYTES).open().expect("opens");
    let entries = database.keyspace("entries", KeyspaceCreateOptions::default).expect("creates");
    Box::new(Fjall { database, entries })
}

impl Store for Fjall {
    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(self)
    }

    fn wait_until_idle(&self) {
        self.entries.rotate_memtable_and_wait().expect("flushes");
        self.entries.major_compact().expect("compacts");
    }
}

impl Client for &Fjall {
    fn put(&mut self, entries: &[(Key, Value)], sync: Sync) {
        let mode = if sync == Sync::Now { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut batch = self.database.batch().durability(Some(mode));
        for (key, value) in entries {
            batch.insert(&self.entries, *key, *value);
        }
        batch.commit().expect("commits");
    }

    fn get(&mut self, key: &Key, each: &mut dyn FnMut(&[u8])) -> bool {
        let value = self.entries.get(key).expect("reads");
        value.iter().for_each(|value| each(value));
        value.is_some()
    }

    fn scan(&mut self, each: &mut dyn FnMut(&[u8])) {
        for entry in self.entries.iter() {
            each(&entry.value().expect("reads"));
        }
    }
}
