//! Cold data (docs/design/cold.md): the stores by which the engine reaches objects, and which tables have segments that move.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use melba_catalog::publications::parse_span;
use melba_catalog::{Relation, Storage};
use melba_engine::{ColdFailure, ColdTarget, OF_OBJECT, Objects};
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
/// After a failure a table's segments wait for so long, and so does a store: twice as long as before when it fails again at once.
const REST: i64 = 10_000_000;
const REST_MAX: i64 = 32 * REST;
/// So long a failure of one kind is not logged again.
const QUIET: i64 = 600_000_000;
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
    let is_of_object = [SqlState::UNDEFINED_FILE, SqlState::WRONG_OBJECT_TYPE].contains(&error.sqlstate());
    let kind = if is_of_object { OF_OBJECT } else { io::ErrorKind::Other };
    io::Error::new(kind, detail.into_iter().fold(same, |error, detail| error.detail(detail)))
}

/// A store that failed, or a table's moves.
#[derive(Clone)]
struct MoveFailure {
    message: String,
    at: i64,
    /// Until when nothing is asked of it, and how long that is altogether.
    until: i64,
    rest: i64,
}

impl MoveFailure {
    /// After an earlier one, maybe.
    fn new(message: String, now: i64, before: Option<&MoveFailure>) -> MoveFailure {
        let again = before.filter(|before| now < before.until + before.rest);
        let rest = again.map_or(REST, |before| (2 * before.rest).min(REST_MAX));
        MoveFailure { message, at: now, until: now + rest, rest }
    }

    /// Of a table whose store failed. The store rests, not the table, which may get another one.
    fn of_table(&self) -> MoveFailure {
        MoveFailure { until: self.at, ..self.clone() }
    }
}

/// When failures were logged: of one kind once in a while, because their texts differ each time.
#[derive(Default)]
struct Told(HashMap<(String, SqlState), i64>);

impl Told {
    /// Whether a failure of a place is to be logged.
    fn is_new(&mut self, place: &str, kind: SqlState, now: i64) -> bool {
        self.0.retain(|_, at| now < *at + QUIET);
        let kind = (place.to_owned(), kind);
        let is_new = !self.0.contains_key(&kind);
        self.0.entry(kind).or_insert(now);
        is_new
    }
}

#[derive(Default)]
struct ColdFailures {
    tables: HashMap<TreeId, MoveFailure>,
    stores: HashMap<String, MoveFailure>,
    told: Told,
    /// New ones, for the log.
    new: Vec<String>,
}

impl ColdFailures {
    fn may_ask(&self, store: &str, now: i64) -> bool {
        self.stores.get(store).is_none_or(|failure| failure.until <= now)
    }

    /// A failure of a store, or of none.
    fn add(&mut self, store: Option<&str>, error: &DbError, now: i64) {
        self.tell(store.unwrap_or_default(), error, now);
        if let Some(store) = store {
            let failure = MoveFailure::new(message(error), now, self.stores.get(store));
            self.stores.insert(store.to_owned(), failure);
        }
    }

    fn tell(&mut self, place: &str, error: &DbError, now: i64) {
        if self.told.is_new(place, error.sqlstate(), now) {
            self.new.push(message(error));
        }
    }
}

/// What the server knows of moves of cold data.
#[derive(Default)]
pub struct ColdWork(Mutex<ColdFailures>);

impl ColdWork {
    /// Lets the engine reach object stores.
    pub(super) fn begin(cluster: &Cluster) {
        cluster.engine.set_objects(Arc::new(ColdStores::default()), Arc::clone(&cluster.random));
    }

    /// The last failure of a table, by its tree, and when it was.
    pub(super) fn failure(&self, tree: TreeId) -> Option<(String, i64)> {
        self.0.lock().tables.get(&tree).map(|failure| (failure.message.clone(), failure.at))
    }

    /// Moves everything that is due, and removes what nobody needs; returns new failures. A store that fails is left alone for a
    /// while, and the others are not concerned. For one thread.
    pub fn step(&self, cluster: &Cluster, settings: &Settings, is_stopping: &dyn Fn() -> bool) -> Vec<String> {
        let engine = &cluster.engine;
        engine.set_cold_cache_bytes(settings.get("cold_cache_size").as_integer().max(0) as u64 * KILOBYTE);
        let data = settings.get("data_directory").as_text().to_owned();
        let now = || cluster.clock.now_micros();
        let may_ask = |store: &str| !is_stopping() && self.0.lock().may_ask(store, now());
        let bring_wanted = || self.add(cluster, engine.bring_wanted(&may_ask), is_stopping);
        bring_wanted();
        self.add(cluster, engine.sweep_cold(&may_ask), is_stopping);
        let mut targets: HashMap<TreeId, Option<ColdTarget>> =
            engine.cold_tables().into_iter().map(|tree| (tree, None)).collect();
        for catalog in cluster.catalogs().databases() {
            let cold = catalog.user_relations().filter_map(|relation| Some((tree_of(relation)?, target_of(relation)?)));
            targets.extend(cold.map(|(tree, target)| (tree, Some(target))));
        }
        self.0.lock().tables.retain(|tree, _| targets.contains_key(tree));
        for (tree, target) in targets {
            if is_stopping() {
                break;
            }
            if self.0.lock().tables.get(&tree).is_some_and(|failure| now() < failure.until) {
                continue;
            }
            bring_wanted();
            // A table that waits for a store that rests says why.
            let waits_for = Mutex::new(None);
            let may_go = |store: &str| {
                let may_go = may_ask(store);
                if !may_go {
                    *waits_for.lock() = Some(store.to_owned());
                }
                may_go
            };
            let moved = match check(target.as_ref(), &data) {
                Ok(()) => engine.move_cold(tree, target.as_ref(), &may_go).map_err(|failure| {
                    let ColdFailure { store, error } = failure;
                    (store, DbError::from(error))
                }),
                Err(e) => Err((None, e)),
            };
            if is_stopping() {
                break;
            }
            let mut failures = self.0.lock();
            let failed = match (moved, waits_for.into_inner()) {
                (Ok(()), Some(store)) => failures.stores.get(&store).map(MoveFailure::of_table),
                (Ok(()), None) => None,
                (Err((Some(store), e)), _) => {
                    failures.add(Some(&store), &e, now());
                    failures.stores.get(&store).map(MoveFailure::of_table)
                }
                (Err((None, e)), _) => {
                    failures.tell(&target.map_or_else(String::new, |target| target.store), &e, now());
                    Some(MoveFailure::new(message(&e), now(), None))
                }
            };
            match failed {
                Some(failure) => drop(failures.tables.insert(tree, failure)),
                None => drop(failures.tables.remove(&tree)),
            }
        }
        std::mem::take(&mut self.0.lock().new)
    }

    /// Failures that concern no table.
    fn add(&self, cluster: &Cluster, failures: Vec<ColdFailure>, is_stopping: &dyn Fn() -> bool) {
        if is_stopping() {
            return;
        }
        for ColdFailure { store, error } in failures {
            self.0.lock().add(store.as_deref(), &DbError::from(error), cluster.clock.now_micros());
        }
    }
}

fn message(error: &DbError) -> String {
    let detail = error.fields().detail.as_deref().map_or_else(String::new, |detail| format!(" ({detail})"));
    format!("{}{detail}", error.message())
}

/// Whether a table's place is one, and none of the server's own files is at stake.
fn check(target: Option<&ColdTarget>, data: &str) -> Result<()> {
    if let Some(ColdTarget { store, .. }) = target {
        let invalid = |why| err!(INVALID_PARAMETER_VALUE, "invalid value for option \"cold_store\": \"{store}\"").detail(why);
        melba_objects::check_folder(store).map_err(invalid)?;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_rest_longer_and_longer_and_failures_are_logged_once_in_a_while() {
        let mut failures = ColdFailures::default();
        let error = |text: &str| err!(IO_ERROR, "no answer after {text}");
        let mut now = 1_000_000_000;
        failures.add(Some("s3://a"), &error("20 s"), now);
        assert!(!failures.may_ask("s3://a", now + REST - 1) && failures.may_ask("s3://a", now + REST));
        assert!(failures.may_ask("s3://b", now));
        now += REST;
        failures.add(Some("s3://a"), &error("21 s"), now);
        assert!(!failures.may_ask("s3://a", now + 2 * REST - 1) && failures.may_ask("s3://a", now + 2 * REST));
        assert_eq!(failures.new.len(), 1, "another text is no news");
        failures.add(Some("s3://b"), &error("20 s"), now);
        failures.add(Some("s3://a"), &err!(DATA_CORRUPTED, "damage"), now);
        assert_eq!(failures.new.len(), 3, "another store, and another kind");
        now += QUIET;
        failures.add(Some("s3://a"), &error("20 s"), now);
        assert_eq!((failures.new.len(), failures.stores["s3://a"].rest), (4, REST));
    }
}
