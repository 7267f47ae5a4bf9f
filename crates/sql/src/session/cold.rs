//! Cold data (docs/design/cold.md): the stores by which the engine reaches objects, and which tables have segments that move.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use melba_catalog::publications::parse_span;
use melba_catalog::{Relation, Storage};
use melba_engine::{ColdTarget, Objects};
use melba_objects::Stores;
use melba_settings::Settings;
use melba_transaction::cluster::Cluster;
use melba_types::{DbError, Result, SqlState, TreeId, err};
use parking_lot::Mutex;

/// How long an answer of a store is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes that are sent at a time.
const PIECE_BYTES: u64 = 8 << 20;
/// The age of segments that move, when a table does not say.
const AFTER: &str = "7d";
/// After a failure a table's segments wait for so long.
const RETRY_AFTER: i64 = 10_000_000;
const KILOBYTE: u64 = 1024;

/// The stores, as the engine sees them.
#[derive(Default)]
struct ColdStores(Stores);

impl Objects for ColdStores {
    fn put(&self, url: &str, bytes: u64, read: &mut dyn FnMut(Range<u64>) -> io::Result<Vec<u8>>) -> io::Result<()> {
        let mut at = 0;
        let mut next = || {
            let range = at..bytes.min(at + PIECE_BYTES);
            at = range.end;
            if range.is_empty() {
                return Ok(None);
            }
            read(range).map(Some).map_err(|e| err!(IO_ERROR, "could not read a segment: {e}"))
        };
        self.0.write(url, PATIENCE, &mut next).map_err(failed)
    }

    fn get(&self, url: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.0.read(url, range, PATIENCE).map(Vec::from).map_err(failed)
    }

    fn remove(&self, url: &str) -> io::Result<()> {
        self.0.remove(url, PATIENCE).map_err(failed)
    }
}

/// A store that does not do what it should is an error of its own class, whatever its reason: the table is as it should be.
fn failed(error: DbError) -> io::Error {
    let of_store = [
        SqlState::UNDEFINED_FILE,
        SqlState::INSUFFICIENT_PRIVILEGE,
        SqlState::INVALID_PARAMETER_VALUE,
        SqlState::WRONG_OBJECT_TYPE,
    ];
    if !of_store.contains(&error.sqlstate()) {
        return io::Error::other(error);
    }
    let detail = error.fields().detail.as_deref().map(str::to_owned);
    let same = err!(IO_ERROR, "{}", error.message());
    io::Error::other(detail.into_iter().fold(same, |error, detail| error.detail(detail)))
}

/// What the server knows of moves of cold data.
#[derive(Default)]
pub struct ColdWork {
    /// The last failure of tables, by their trees, and when it was.
    failures: Mutex<HashMap<TreeId, (String, i64)>>,
    /// The last failure that concerns no table.
    failure: Mutex<Option<String>>,
}

impl ColdWork {
    /// Lets the engine reach object stores.
    pub(super) fn begin(cluster: &Cluster) {
        cluster.engine.set_objects(Arc::new(ColdStores::default()));
    }

    /// The last failure of a table, by its tree, and when it was.
    pub(super) fn failure(&self, tree: TreeId) -> Option<(String, i64)> {
        self.failures.lock().get(&tree).cloned()
    }

    /// Moves everything that is due, and removes what nobody needs; returns new failures. For one thread.
    pub fn step(&self, cluster: &Cluster, settings: &Settings, is_stopping: &dyn Fn() -> bool) -> Vec<String> {
        let engine = &cluster.engine;
        engine.set_cold_cache_bytes(settings.get("cold_cache_size").as_integer().max(0) as u64 * KILOBYTE);
        let data = settings.get("data_directory").as_text().to_owned();
        let mut told = Vec::new();
        let tended = engine.tend_cold().err().map(|e| message(&DbError::from(e)));
        let mut failure = self.failure.lock();
        if *failure != tended {
            told.extend(tended.clone());
            *failure = tended;
        }
        drop(failure);
        let mut targets: HashMap<TreeId, Option<ColdTarget>> =
            engine.cold_tables().into_iter().map(|tree| (tree, None)).collect();
        for catalog in cluster.catalogs().databases() {
            let cold = catalog.user_relations().filter_map(|relation| Some((tree_of(relation)?, target_of(relation)?)));
            targets.extend(cold.map(|(tree, target)| (tree, Some(target))));
        }
        self.failures.lock().retain(|tree, _| targets.contains_key(tree));
        for (tree, target) in targets {
            let now = cluster.clock.now_micros();
            let waits = self.failures.lock().get(&tree).is_some_and(|(_, at)| now < *at + RETRY_AFTER);
            if waits || is_stopping() {
                continue;
            }
            let moved = check(target.as_ref(), &data)
                .and_then(|()| engine.move_cold(tree, target.as_ref(), is_stopping).map_err(DbError::from));
            let mut failures = self.failures.lock();
            match moved {
                Ok(()) => drop(failures.remove(&tree)),
                Err(_) if is_stopping() => {}
                Err(e) => {
                    let message = message(&e);
                    if failures.get(&tree).is_none_or(|(known, _)| *known != message) {
                        told.push(message.clone());
                    }
                    failures.insert(tree, (message, cluster.clock.now_micros()));
                }
            }
        }
        told
    }
}

fn message(error: &DbError) -> String {
    let detail = error.fields().detail.as_deref().map_or_else(String::new, |detail| format!(" ({detail})"));
    format!("{}{detail}", error.message())
}

/// Whether none of the server's own files is at stake.
fn check(target: Option<&ColdTarget>, data: &str) -> Result<()> {
    match target {
        Some(ColdTarget { store, .. }) if !data.is_empty() && melba_objects::is_within(store, Path::new(data)) => {
            Err(err!(INVALID_PARAMETER_VALUE, "cold_store \"{store}\" is in the data directory"))
        }
        _ => Ok(()),
    }
}

pub(super) fn tree_of(relation: &Relation) -> Option<TreeId> {
    if let Storage::Tree(tree) = relation.storage { Some(tree) } else { None }
}

pub(super) fn option<'a>(relation: &'a Relation, name: &str) -> Option<&'a str> {
    relation.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

fn target_of(relation: &Relation) -> Option<ColdTarget> {
    let store = option(relation, "cold_store")?.trim_end_matches('/').to_owned();
    let after = parse_span(option(relation, "cold_after").unwrap_or(AFTER))?;
    Some(ColdTarget { store, after })
}
