//! Moves old segments of tables into stores, and back (docs/design/cold.md).
//!
//! Only segments of rows and of long values move, and only those that the manifest names and replay would not link: indexes stay,
//! so that finding a row needs no store.

use std::sync::Arc;

use melba_segment::TableSegmentReader;
use melba_store::{
    Asking, ColdCounts, ColdDirectory, ColdFailure, ColdPlace, ColdRequest, ColdSource, EngineError, Persistence, Result, Run,
    Tree, segment_name, segment_number,
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

    /// How many segments of a data directory are in stores, where `verify` and `salvage` do not look at them.
    ///
    /// # Errors
    /// The folder of segments cannot be listed.
    pub fn count_cold_segments(directory: &Arc<dyn Directory>) -> Result<usize> {
        let count = || -> std::io::Result<usize> {
            let cold = ColdDirectory::new(directory.subdirectory("segments")?, Arc::clone(directory));
            let names = cold.list()?;
            Ok(names.iter().filter_map(|name| segment_number(name)).filter(|file| cold.is_cold(*file)).count())
        };
        count().map_err(|e| EngineError::io("list the segments", e))
    }

    /// For one turn of each store that may be asked.
    pub fn ask_stores<'a>(&'a self, may_ask: &'a dyn Fn(&ColdSource) -> bool) -> Asking<'a> {
        Asking::new(may_ask, &*self.shared.runtime.clock)
    }

    /// Brings back what merges wait for. One thread at a time.
    pub fn bring_wanted(&self, asking: &mut Asking<'_>) {
        let table_of = |file| {
            let trees = self.shared.store.all_trees();
            let tree = trees.iter().find(|tree| runs_of(tree).iter().any(|run| run.segment.file == file));
            tree.map(|tree| tree.id.without_toast())
        };
        self.shared.store.files.cold.bring_wanted(asking, &table_of);
    }

    /// Removes objects that nobody needs. One thread at a time.
    pub fn sweep_cold(&self, asking: &mut Asking<'_>) {
        self.shared.store.files.cold.sweep(asking);
    }

    /// Moves the segments of a table that are due; without a target, and for those in other stores, back. One that fails, or whose
    /// store is not asked, stays where it is. One thread at a time.
    pub fn move_cold(&self, table: TreeId, target: Option<&ColdTarget>, asking: &mut Asking<'_>) {
        let failures = asking.failures.len();
        let trees = self.table_trees(table);
        let bytes: Vec<u64> = trees.iter().map(|tree| tree.stored_bytes()).collect();
        for tree in &trees {
            // Where most bytes are long values the rows stay, so that a row with one needs one request.
            let stays = tree.id == table && bytes.len() > 1 && bytes[1] > bytes[0];
            let logged = tree.persistence == Persistence::Logged;
            let target = target.filter(|_| logged);
            for run in runs_of(tree) {
                if let Err(error) = self.move_run(tree, &run, target, stays, asking) {
                    asking.failures.push(ColdFailure::local(error));
                }
            }
        }
        asking.failures[failures..].iter_mut().for_each(|failure| failure.table = Some(table));
    }

    /// Moves one segment if it is due; an error is none of a store. As long as `run` lives its file is not removed.
    fn move_run(
        &self,
        tree: &Tree,
        run: &TableRun,
        target: Option<&ColdTarget>,
        stays: bool,
        asking: &mut Asking<'_>,
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
            let is_cold = matches!(place, ColdPlace::Cold { .. });
            if is_cold && !asking.ask(ColdRequest::Read(at), "bring a segment back", || cold.bring_back(segment.file)) {
                return Ok(());
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
        // In another store, say, that may fail while the target does not.
        if let Some(old) = cold.old_object(segment.file).map_err(io("look for an older object"))? {
            let remove = || cold.remove_old_object(segment.file);
            if !asking.ask(ColdRequest::Remove(&old), "remove an object", remove) {
                return Ok(());
            }
        }
        let request = match &place {
            ColdPlace::Both { url } => ColdRequest::Read(url),
            _ => ColdRequest::Write(&target.store),
        };
        let move_out = || cold.move_out(segment.file, &folder, run.reader.cold_layout());
        asking.ask(request, "move a segment into a store", move_out);
        Ok(())
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
