//! Cold data (docs/design/cold.md): the stores by which the engine reaches objects, and which tables have segments that move.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use melba_catalog::publications::parse_span;
use melba_catalog::{Relation, Storage};
use melba_engine::{ColdFailure, ColdSource, ColdTarget, Engine, OF_OBJECT, Objects};
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
/// What failed rests for so long: twice as long as before when it fails again at once.
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

/// A failure, and what rests after it.
#[derive(Clone)]
struct MoveFailure {
    message: String,
    /// That waits for what rests.
    table: Option<TreeId>,
    at: i64,
    /// Until when nothing is asked of it, and how long that is altogether.
    until: i64,
    rest: i64,
}

impl MoveFailure {
    /// After an earlier one, maybe.
    fn new(message: String, table: Option<TreeId>, now: i64, before: Option<&MoveFailure>) -> MoveFailure {
        let again = before.filter(|before| now < before.until + before.rest);
        let rest = again.map_or(REST, |before| (2 * before.rest).min(REST_MAX));
        MoveFailure { message, table, at: now, until: now + rest, rest }
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
    /// Stores, removals and objects, the last two without their store.
    rests: HashMap<ColdSource, MoveFailure>,
    told: Told,
    /// New ones, for the log.
    new: Vec<String>,
}

impl ColdFailures {
    fn may_ask(&self, source: &ColdSource, now: i64) -> bool {
        self.rests.get(source).is_none_or(|failure| failure.until <= now)
    }

    /// Lets rest what failed; what its table is told.
    fn add(&mut self, failure: ColdFailure, now: i64) -> MoveFailure {
        let ColdFailure { source, table, error } = failure;
        let error = DbError::from(error);
        self.tell(&source.as_ref().map_or_else(String::new, ColdSource::kind), &error, now);
        let Some(source) = source else { return MoveFailure::new(message(&error), table, now, None) };
        let failure = MoveFailure::new(message(&error), table, now, self.rests.get(&source));
        self.rests.insert(source, failure.clone());
        failure.of_table()
    }

    /// Forgets what is over: it would rest as after a first failure.
    fn forget(&mut self, now: i64) {
        self.rests.retain(|_, failure| now < failure.until + failure.rest);
    }

    /// What a table's segments fail by.
    fn of_table(&self, table: TreeId, now: i64) -> Option<&MoveFailure> {
        // Merges wait for it. It is asked again soon after its rest, and fails or not.
        let waits = |failure: &&MoveFailure| failure.table == Some(table) && now < failure.until + REST;
        self.tables.get(&table).or_else(|| self.rests.values().filter(waits).max_by_key(|failure| failure.at))
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
    pub(super) fn failure(&self, tree: TreeId, now: i64) -> Option<(String, i64)> {
        self.0.lock().of_table(tree, now).map(|failure| (failure.message.clone(), failure.at))
    }

    /// Moves what is due, and removes what nobody needs, as far as one turn of each store goes; returns new failures. What fails is
    /// left alone for a while, and the rest is not concerned. For one thread.
    pub fn step(&self, cluster: &Cluster, settings: &Settings, is_stopping: &dyn Fn() -> bool) -> Vec<String> {
        let engine = &cluster.engine;
        engine.set_cold_cache_bytes(settings.get("cold_cache_size").as_integer().max(0) as u64 * KILOBYTE);
        let data = settings.get("data_directory").as_text().to_owned();
        let now = || cluster.clock.now_micros();
        let may_ask = |source: &ColdSource| !is_stopping() && self.0.lock().may_ask(source, now());
        self.0.lock().forget(now());
        // What merges wait for comes first.
        for work in [Engine::bring_wanted, Engine::sweep_cold] {
            let mut asking = engine.ask_stores(&may_ask);
            work(engine, &mut asking);
            if is_stopping() {
                return Vec::new();
            }
            asking.failures.into_iter().for_each(|failure| drop(self.0.lock().add(failure, now())));
        }
        let mut targets: HashMap<TreeId, Option<ColdTarget>> =
            engine.cold_tables().into_iter().map(|tree| (tree, None)).collect();
        for catalog in cluster.catalogs().databases() {
            let cold = catalog.user_relations().filter_map(|relation| Some((tree_of(relation)?, target_of(relation)?)));
            targets.extend(cold.map(|(tree, target)| (tree, Some(target))));
        }
        self.0.lock().tables.retain(|tree, _| targets.contains_key(tree));
        // All tables share the turns, in another order each time.
        let mut asking = engine.ask_stores(&may_ask);
        for (tree, target) in targets {
            if self.0.lock().tables.get(&tree).is_some_and(|failure| now() < failure.until) {
                continue;
            }
            let checked = check(target.as_ref(), &data);
            if checked.is_ok() {
                engine.move_cold(tree, target.as_ref(), &mut asking);
            }
            if is_stopping() {
                break;
            }
            let mut failures = self.0.lock();
            // A table that waits for what rests says why.
            let waits_for = asking.waits_for.take().and_then(|source| failures.rests.get(&source).map(MoveFailure::of_table));
            let mut found: Vec<MoveFailure> = asking.failures.drain(..).map(|failure| failures.add(failure, now())).collect();
            found.extend(waits_for);
            if let Err(e) = checked {
                failures.tell(&target.map_or_else(String::new, |target| target.store), &e, now());
                found.push(MoveFailure::new(message(&e), Some(tree), now(), None));
            }
            match found.into_iter().max_by_key(|failure| failure.until) {
                Some(failure) => drop(failures.tables.insert(tree, failure)),
                None => drop(failures.tables.remove(&tree)),
            }
        }
        std::mem::take(&mut self.0.lock().new)
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
    use melba_engine::EngineError;

    use super::*;

    const TABLE: TreeId = TreeId(7);

    fn failure(source: ColdSource, error: EngineError) -> ColdFailure {
        ColdFailure { source: Some(source), table: Some(TABLE), error }
    }

    fn no_answer(after: &str) -> EngineError {
        EngineError::io(format!("wait {after}"), io::ErrorKind::TimedOut.into())
    }

    #[test]
    fn what_fails_rests_longer_and_longer_and_is_logged_once_in_a_while() {
        let (a, b) = (ColdSource::Store("s3://a".into()), ColdSource::Store("s3://b".into()));
        let mut failures = ColdFailures::default();
        let mut now = 1_000_000_000;
        failures.add(failure(a.clone(), no_answer("20 s")), now);
        assert!(!failures.may_ask(&a, now + REST - 1) && failures.may_ask(&a, now + REST));
        assert!(failures.may_ask(&b, now));
        now += REST;
        failures.forget(now);
        failures.add(failure(a.clone(), no_answer("21 s")), now);
        assert!(!failures.may_ask(&a, now + 2 * REST - 1) && failures.may_ask(&a, now + 2 * REST));
        assert_eq!(failures.new.len(), 1, "another text is no news");
        failures.add(failure(b, no_answer("20 s")), now);
        failures.add(failure(a.clone(), EngineError::Misuse("a mistake")), now);
        assert_eq!(failures.new.len(), 3, "another store, and another kind");
        now += QUIET;
        failures.forget(now);
        assert!(failures.rests.is_empty());
        failures.add(failure(a.clone(), no_answer("20 s")), now);
        assert_eq!((failures.new.len(), failures.rests[&a].rest), (4, REST));
    }

    #[test]
    fn a_lost_object_rests_and_its_table_says_so() {
        let object = |n| ColdSource::Object(format!("s3://a/{n}"));
        let mut failures = ColdFailures::default();
        let mut now = 1_000_000_000;
        for rest in [1, 2, 4, 8, 16, 32, 32] {
            failures.add(failure(object(1), no_answer("for an object")), now);
            assert!(!failures.may_ask(&object(1), now + rest * REST - 1) && failures.may_ask(&object(2), now));
            assert!(failures.may_ask(&ColdSource::Store("s3://a".into()), now));
            now += rest * REST;
            assert!(failures.of_table(TABLE, now).is_some_and(|failure| failure.message.contains("for an object")));
        }
        assert!(failures.of_table(TreeId(8), now).is_none() && failures.of_table(TABLE, now + REST).is_none());
        assert_eq!(failures.new.len(), 2, "in {} s", now / 1_000_000 - 1000);
    }
}
