//! redb: a copy-on-write B-tree with one writer; options as they come but for the cache.

use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use crate::store::{Client, KEY_BYTES, Key, MEMORY_BYTES, Store, Sync, VALUE_BYTES, Value};

const ENTRIES: TableDefinition<&[u8; KEY_BYTES], &[u8; VALUE_BYTES]> = TableDefinition::new("entries");

struct Redb(Database);

pub fn open(folder: &Path) -> Box<dyn Store> {
    let mut builder = Database::builder();
    builder.set_cache_size(MEMORY_BYTES as usize);
    let database = builder.create(folder.join("entries.redb")).expect("creates");
    let transaction = database.begin_write().expect("begins");
    transaction.open_table(ENTRIES).expect("creates");
    transaction.commit().expect("commits");
    Box::new(Redb(database))
}

impl Store for Redb {
    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(self)
    }

    fn wait_until_idle(&self) {
        // An empty commit makes those before it durable.
        self.0.begin_write().expect("begins").commit().expect("commits");
    }
}

impl Client for &Redb {
    fn put(&mut self, entries: &[(Key, Value)], sync: Sync) {
        let mut transaction = self.0.begin_write().expect("begins");
        let durability = if sync == Sync::Now { Durability::Immediate } else { Durability::None };
        transaction.set_durability(durability).expect("a durability");
        let mut table = transaction.open_table(ENTRIES).expect("opens");
        for (key, value) in entries {
            table.insert(key, value).expect("inserts");
        }
        drop(table);
        transaction.commit().expect("commits");
    }

    fn get(&mut self, key: &Key, each: &mut dyn FnMut(&[u8])) -> bool {
        let table = self.0.begin_read().expect("begins").open_table(ENTRIES).expect("opens");
        let value = table.get(key).expect("reads");
        value.iter().for_each(|value| each(value.value()));
        value.is_some()
    }

    fn scan(&mut self, each: &mut dyn FnMut(&[u8])) {
        let table = self.0.begin_read().expect("begins").open_table(ENTRIES).expect("opens");
        for entry in table.iter().expect("reads") {
            each(entry.expect("reads").1.value());
        }
    }
}
