//! Moves old segments of tables into stores, and back (docs/design/cold.md).
//!
//! Only segments of rows and of long values move, and only those that the manifest names and replay would not link: indexes stay,
//! so that finding a row needs no store.

use std::sync::Arc;

use melba_segment::TableSegmentReader;
use melba_store::{
    Asking, ColdCounts, ColdFailure, ColdPlace, EngineError, Persistence, Result, Run, Tree, segment_name, store_of,
};
use melba_types::TreeId;
use melba_vfs::{Directory, Objects, Random};

use crate::engine::Engine;

/// Where the old segments of a table go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdTarget {
    /// The URL of a folder, without a slash at its end: neither a query nor a fragment, so that a name behind it is another object.
    pub store: String,
    /// The age of files that move, in microseconds.
    pub after: i64,
}

/// Where the segments of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColdUse {
    pub local_files: u64,
    pub local_bytes: u64,
    pub cold_files: u64,
    pub cold_bytes: u64,
    /// Bytes of cold files that are here, too.
    pub kept_bytes: u64,
}

/// How long a file stays that was brought back for a merge.
const PATIENCE: i64 = 600_000_000;

type TableRun = Arc<Run<TableSegmentReader>>;

impl Engine {
    /// Says how object stores are reached, and what makes the names of objects. The first call counts.
    pub fn set_objects(&self, objects: Arc<dyn Objects>, random: Arc<dyn Random>) {
        self.shared.store.files.cold.set_objects(objects, random, Arc::clone(&self.shared.runtime.scheduler));
    }

    /// Sets the size of the local cache of what was read from stores.
    pub fn set_cold_cache_bytes(&self, bytes: u64) {
        self.shared.store.files.cold.set_cache_bytes(bytes);
    }

    pub fn cold_counts(&self) -> ColdCounts {
        self.shared.store.files.cold.counts()
    }

    /// The trees of tables that have segments in stores.
    pub fn cold_tables(&self) -> Vec<TreeId> {
        if !self.shared.store.files.cold.is_used() {
            return Vec::new();
        }
        let trees = self.shared.store.all_trees();
        let is_cold = |tree: &&Arc<Tree>| runs_of(tree).iter().any(|run| !matches!(self.place(run), Ok(ColdPlace::Local)));
        let mut tables: Vec<TreeId> = trees.iter().filter(is_cold).map(|tree| tree.id.without_toast()).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    /// Where the segments of a table and its long values are.
    ///
    /// # Errors
    /// Those of reading what stands for a segment.
    pub fn cold_use(&self, table: TreeId) -> Result<ColdUse> {
        let mut found = ColdUse::default();
        for run in self.table_trees(table).iter().flat_map(runs_of) {
            let bytes = run.reader.meta().stored_bytes;
            match self.place(&run)? {
                ColdPlace::Cold { kept_bytes, .. } => {
                    found.cold_files += 1;
                    found.cold_bytes += bytes;
                    found.kept_bytes += kept_bytes;
                }
                _ => {
                    found.local_files += 1;
                    found.local_bytes += bytes;
                }
            }
        }
        Ok(found)
    }

    /// Brings back what merges wait for, from stores that may be asked. One thread at a time.
    pub fn bring_wanted(&self, may_ask: &dyn Fn(&str) -> bool) -> Vec<ColdFailure> {
        let mut asking = Asking::new(may_ask);
        self.shared.store.files.cold.bring_wanted(&mut asking);
        asking.failures
    }

    /// Removes objects that nobody needs, of stores that may be asked. One thread at a time.
    pub fn sweep_cold(&self, may_ask: &dyn Fn(&str) -> bool) -> Vec<ColdFailure> {
        let mut asking = Asking::new(may_ask);
        self.shared.store.files.cold.sweep(&mut asking);
        asking.failures
    }

    /// Moves the segments of a table that are due; without a target, and for those in other stores, back. `may_go` is asked before
    /// each one about the store that it needs: it stays where it is when that says no. One thread at a time.
    ///
    /// # Errors
    /// The first failure, and the store that failed: the rest is left for the next call.
    pub fn move_cold(
        &self,
        table: TreeId,
        target: Option<&ColdTarget>,
        may_go: &dyn Fn(&str) -> bool,
    ) -> std::result::Result<(), ColdFailure> {
        let trees = self.table_trees(table);
        let bytes: Vec<u64> = trees.iter().map(|tree| tree.stored_bytes()).collect();
        for tree in &trees {
            // Where most bytes are long values the rows stay, so that a row with one needs one request.
            let stays = tree.id == table && bytes.len() > 1 && bytes[1] > bytes[0];
            let logged = tree.persistence == Persistence::Logged;
            let target = target.filter(|_| logged);
            for run in runs_of(tree) {
                let mut asked = None;
                let mut may_go = |url: &str| {
                    let store = store_of(url);
                    asked = Some(store.to_owned());
                    may_go(store)
                };
                let moved = self.move_run(tree, &run, target, stays, &mut may_go);
                moved.map_err(|error| ColdFailure::of(asked, error))?;
            }
        }
        Ok(())
    }

    /// Moves one segment if it is due. As long as `run` lives its file is not removed.
    fn move_run(
        &self,
        tree: &Tree,
        run: &TableRun,
        target: Option<&ColdTarget>,
        stays: bool,
        may_go: &mut dyn FnMut(&str) -> bool,
    ) -> Result<()> {
        let store = &self.shared.store;
        let (cold, segment) = (&store.files.cold, &run.segment);
        let io = |what: &'static str| move |e| EngineError::io(what, e);
        let folder = target.map(|target| format!("{}/{:016x}/", target.store, self.database_number()));
        let is_in_folder = |url: &str| {
            let name = folder.as_ref().and_then(|folder| url.strip_prefix(folder.as_str()));
            name.is_some_and(|name| !name.contains('/'))
        };
        let place = self.place(run)?;
        if let ColdPlace::Both { url: at } | ColdPlace::Cold { url: at, .. } = &place
            && !is_in_folder(at)
        {
            if matches!(place, ColdPlace::Cold { .. }) {
                if !may_go(at) {
                    return Ok(());
                }
                cold.bring_back(segment.file).map_err(io("bring a segment back"))?;
            }
            return cold.give_up_object(segment.file).map_err(io("give an object up"));
        }
        let (Some(target), Some(folder)) = (target, folder) else { return Ok(()) };
        let is_named = || {
            let manifest = store.manifest();
            let named = manifest.state().segments.get(&tree.id);
            named.is_some_and(|named| named.iter().any(|other| other.file == segment.file))
        };
        if matches!(place, ColdPlace::Cold { .. }) || stays || store.is_replayed(segment) {
            return Ok(());
        }
        let now = self.shared.runtime.clock.now_micros();
        let written = cold.modified(&segment_name(segment.file)).map_err(io("look for a segment's age"))?;
        if now.saturating_sub(written) < target.after || cold.is_wanted(segment.file, now, PATIENCE) || !is_named() {
            return Ok(());
        }
        if !may_go(&target.store) {
            return Ok(());
        }
        cold.move_out(segment.file, &folder, run.reader.cold_layout()).map_err(io("move a segment into a store"))
    }

    fn place(&self, run: &TableRun) -> Result<ColdPlace> {
        let place = self.shared.store.files.cold.place(run.segment.file);
        place.map_err(|e| EngineError::io("read what stands for a segment", e))
    }

    /// A table's tree, and that of its long values.
    fn table_trees(&self, table: TreeId) -> Vec<Arc<Tree>> {
        let tree = |id| self.shared.store.tree(id).ok().map(|tree| Arc::clone(&tree));
        [table, table.toast()].into_iter().filter_map(tree).collect()
    }
}

/// A table's segments; an index has none that move.
fn runs_of(tree: &Arc<Tree>) -> Vec<TableRun> {
    tree.as_table().map_or_else(Vec::new, |table| table.levels.read().runs.to_vec())
}
