//! What the server knows of publications with a format: when the next snapshot is due, how the last one went, and the state of their tables
//! on the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use melba_catalog::Publication;
use melba_catalog::publications::{parse_span, publications};
use melba_iceberg::{Committed, IcebergTable, Published};
use melba_transaction::cluster::Cluster;
use melba_types::{Oid, Result};
use parking_lot::Mutex;

/// Time between snapshots, and the age up to which they are kept, when the publication does not say.
const SNAPSHOT_INTERVAL: &str = "10s";
pub(super) const KEEP: &str = "1h";
/// The longest wait after errors.
const RETRY_MAX: i64 = 300_000_000;

/// The publications of a server that have been published.
#[derive(Default)]
pub struct Publishing {
    /// By database and publication.
    slots: Mutex<HashMap<(Oid, Oid), Arc<Slot>>>,
}

#[derive(Default)]
pub(super) struct Slot {
    /// Held while a snapshot is written.
    pub work: Mutex<Option<Work>>,
    pub report: Mutex<Report>,
}

/// The state of a publication's folder.
pub(super) struct Work {
    pub location: String,
    pub published: Published,
    pub tables: HashMap<Oid, IcebergTable>,
}

/// A row of melba_publications. Times are microseconds since 2000-01-01.
#[derive(Clone, Default)]
pub(super) struct Report {
    pub last: Option<SnapshotReport>,
    pub error: Option<(String, i64)>,
    /// Errors since the last snapshot.
    pub failures: u32,
    /// When the last attempt began.
    pub begun: Option<i64>,
    pub is_running: bool,
    /// The background has begun with it, and waits perhaps for locks.
    pub is_asked: bool,
}

#[derive(Clone, Copy)]
pub(super) struct SnapshotReport {
    pub csn: u64,
    pub commit_time: i64,
    pub took: i64,
    pub tables: usize,
    pub changed: Committed,
}

/// A publication whose next snapshot is due.
pub struct Due {
    pub database: Oid,
    pub database_name: String,
    pub publication: String,
    oid: Oid,
    begun: i64,
}

impl Publishing {
    pub(super) fn slot(&self, database: Oid, publication: Oid) -> Arc<Slot> {
        self.slots.lock().entry((database, publication)).or_default().clone()
    }

    /// Publications of all databases whose next snapshot is due, `limit` at most. They count as begun.
    pub fn due(&self, cluster: &Cluster, limit: usize) -> Vec<Due> {
        let now = cluster.clock.now_micros();
        let (mut due, mut known) = (Vec::new(), HashSet::new());
        for catalog in cluster.catalogs().databases() {
            let database = catalog.database_oid();
            for publication in publications(catalog).filter(|p| p.option("format").is_some()) {
                known.insert((database, publication.oid));
                let slot = self.slot(database, publication.oid);
                let mut report = slot.report.lock();
                let interval = span(publication, "snapshot_interval", SNAPSHOT_INTERVAL);
                let wait = interval.saturating_mul(1 << report.failures.min(10)).min(RETRY_MAX.max(interval));
                let is_due = report.begun.is_none_or(|begun| now >= begun.saturating_add(wait));
                if interval > 0 && is_due && !report.is_running && !report.is_asked && due.len() < limit {
                    (report.begun, report.is_asked) = (Some(now), true);
                    let database_name = catalog.database(database).map_or_else(String::new, |d| d.name.to_string());
                    let (oid, name) = (publication.oid, publication.name.to_string());
                    due.push(Due { database, database_name, publication: name, oid, begun: now });
                }
            }
        }
        // What is known of a publication ends with it.
        self.slots.lock().retain(|slot, _| known.contains(slot));
        due
    }

    /// Whether the background publishes something now; `None`: it has nothing to publish.
    pub(super) fn is_working(&self) -> Option<bool> {
        let slots = self.slots.lock();
        (!slots.is_empty()).then(|| slots.values().any(|slot| slot.report.lock().is_asked))
    }

    /// The background is done with a publication. Errors count that come from elsewhere than from its snapshot, too.
    pub fn done(&self, cluster: &Cluster, due: &Due, done: &Result<()>) {
        let slot = self.slot(due.database, due.oid);
        let mut report = slot.report.lock();
        report.is_asked = false;
        let Err(e) = done else { return };
        if report.error.as_ref().is_none_or(|(_, at)| *at < due.begun) {
            report.failures += 1;
            report.error = Some((e.message().to_owned(), cluster.clock.now_micros()));
        }
    }
}

pub(super) fn span(publication: &Publication, name: &str, default: &str) -> i64 {
    parse_span(publication.option(name).unwrap_or(default)).unwrap_or(0)
}
