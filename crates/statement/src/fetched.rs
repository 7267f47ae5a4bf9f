//! Statistics that a transaction has read, which it sees unchanged from then on (stats_fetch_consistency).
//!
//! The counts of tables, indexes and functions are kept. All other statistics are always the newest.

use std::hash::Hash;

use hashbrown::HashMap;
use melba_engine::{RowCounts, ScanCounts};
use melba_types::{Oid, RarelyUsed, TreeId};

use super::call_counts::CallCounts;

/// The counts of a tree.
#[derive(Clone, Copy, Default)]
pub struct TreeCounts {
    pub rows: RowCounts,
    pub scans: ScanCounts,
    /// About how many live rows it has.
    pub live: u64,
}

/// stats_fetch_consistency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consistency {
    /// Nothing is kept.
    #[default]
    None,
    /// What was read is kept.
    Cache,
    /// All is read when the first is.
    Snapshot,
}

impl Consistency {
    /// The value of the setting.
    pub fn of(setting: &str) -> Consistency {
        match setting {
            "cache" => Consistency::Cache,
            "snapshot" => Consistency::Snapshot,
            _ => Consistency::None,
        }
    }
}

/// Counts of a database.
#[derive(Default)]
pub struct DatabaseCounts {
    pub functions: HashMap<Oid, Option<CallCounts>>,
    pub trees: HashMap<TreeId, TreeCounts>,
    /// When all were read, in microseconds since 2000-01-01.
    pub taken: Option<i64>,
}

/// Those of a session's transaction, and the setting under which they were read.
#[derive(Default)]
pub struct FetchedCounts(RarelyUsed<(Consistency, DatabaseCounts)>);

impl FetchedCounts {
    /// The transaction has ended, or pg_stat_clear_snapshot was called.
    pub fn clear(&self) {
        self.0.take();
    }

    /// When all were read at once.
    pub fn taken(&self, consistency: Consistency) -> Option<i64> {
        let kept = self.0.used()?;
        kept.1.taken.filter(|_| kept.0 == consistency)
    }

    /// The counts of one object: those that are kept `of` such objects, or the `newest`. `all` reads those of all objects.
    pub fn counts<K: Eq + Hash, V: Copy + Default>(
        &self,
        consistency: Consistency,
        object: K,
        of: fn(&mut DatabaseCounts) -> &mut HashMap<K, V>,
        newest: impl FnOnce() -> V,
        all: impl FnOnce() -> DatabaseCounts,
    ) -> V {
        if consistency == Consistency::None {
            self.clear();
            return newest();
        }
        let mut kept = self.0.lock();
        if kept.0 != consistency {
            *kept = (consistency, DatabaseCounts::default());
        }
        match consistency {
            Consistency::Snapshot => {
                if kept.1.taken.is_none() {
                    kept.1 = all();
                }
                // An object that is not among them was not counted then.
                of(&mut kept.1).get(&object).copied().unwrap_or_default()
            }
            _ => *of(&mut kept.1).entry(object).or_insert_with(newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consistency_decides_what_is_read_again() {
        let fetched = FetchedCounts::default();
        let live = |n| TreeCounts { live: n, ..TreeCounts::default() };
        let all =
            || DatabaseCounts { trees: HashMap::from([(TreeId(1), live(10))]), taken: Some(7), ..DatabaseCounts::default() };
        let read = |consistency, tree, newest| {
            fetched.counts(consistency, TreeId(tree), |all| &mut all.trees, || live(newest), all).live
        };
        assert_eq!([read(Consistency::None, 1, 1), read(Consistency::None, 1, 2)], [1, 2]);
        assert_eq!([read(Consistency::Cache, 1, 3), read(Consistency::Cache, 1, 4), read(Consistency::Cache, 2, 5)], [3, 3, 5]);
        assert_eq!(fetched.taken(Consistency::Cache), None);
        assert_eq!([read(Consistency::Snapshot, 1, 6), read(Consistency::Snapshot, 2, 6)], [10, 0]);
        assert_eq!((fetched.taken(Consistency::Snapshot), fetched.taken(Consistency::Cache)), (Some(7), None));
        fetched.clear();
        assert_eq!((fetched.taken(Consistency::Snapshot), read(Consistency::Cache, 1, 8)), (None, 8));
    }
}
