//! Loads the store that the manifest describes, and finds files that it does not name.

use std::collections::HashSet;
use std::sync::Arc;

use melba_threads::atomic::Ordering;

use crate::cold::gone_number;
use crate::error::{EngineError, Result};
use crate::files::{Run, SegmentFile};
use crate::ids::segment_number;
use crate::manifest::{Edit, ManifestState, SequenceRecord, TreeRecord};
use crate::persistence::Persistence;
use crate::sequence::Sequence;
use crate::store::Store;
use crate::tree::{Tree, TreeData};

impl Store {
    /// Builds the trees and sequences of a manifest; after a crash, unlogged ones are empty. Returns the entries that the
    /// manifest must forget.
    pub fn load(&self, state: &ManifestState) -> Result<Vec<Edit>> {
        let mut edits = vec![Edit::Clean(false)];
        for record in state.trees.values() {
            let files = state.segments.get(&record.id).map_or(&[][..], |f| f);
            let emptied = match record.persistence {
                Persistence::Logged => false,
                Persistence::Unlogged => !state.clean,
                Persistence::Memory | Persistence::Temporary => true,
            };
            if record.persistence == Persistence::Temporary {
                edits.push(Edit::DropTree(record.id));
                continue;
            }
            if emptied && !files.is_empty() {
                let removed = files.iter().map(|f| f.file).collect();
                edits.push(Edit::Segments { tree: record.id, removed, added: Vec::new() });
            }
            self.load_tree(record, if emptied { &[] } else { files })?;
        }
        for record in state.sequences.values() {
            match record.persistence {
                Persistence::Temporary => edits.push(Edit::DropSequence(record.id)),
                _ => self.load_sequence(record, state.clean),
            }
        }
        Ok(edits)
    }

    fn load_sequence(&self, record: &SequenceRecord, clean: bool) {
        let begins_again = match record.persistence {
            Persistence::Logged | Persistence::Temporary => false,
            Persistence::Unlogged => !clean,
            Persistence::Memory => true,
        };
        let state = if begins_again { record.start } else { record.state };
        let sequence = Sequence::new(record.id, record.definition, state, record.persistence, true);
        self.add_sequence(Arc::new(Sequence { start: record.start, ..sequence }));
    }

    fn load_tree(&self, record: &TreeRecord, files: &[SegmentFile]) -> Result<()> {
        let tree = match record.is_index {
            false => Tree::table(record.id, &record.kinds, record.persistence),
            true => Tree::index(record.id, record.table, record.persistence),
        };
        tree.committed.store(true, Ordering::Relaxed);
        if !files.is_empty() {
            tree.live.store(record.live as i64, Ordering::Relaxed);
        }
        match &tree.data {
            TreeData::Table(table) => {
                table.next_row.store(record.next_row, Ordering::Relaxed);
                let runs = open_all(&tree, files, |f| Ok(self.files.open_table(*f)?.of_tree(tree.id)))?;
                table.levels.write().add_runs(runs);
            }
            TreeData::Index(index) => {
                let runs = open_all(&tree, files, |f| Ok(self.files.open_index(*f)?.of_tree(tree.id)))?;
                index.levels.write().add_runs(runs);
            }
        }
        self.add_tree(Arc::new(tree));
        Ok(())
    }

    /// Puts a segment that a record of the log links into its tree, unless the manifest had it already.
    pub fn link_again(&self, tree: &Tree, segment: SegmentFile) -> Result<()> {
        if tree.damaged_files().iter().any(|s| s.file == segment.file) {
            return Ok(());
        }
        let linked = [segment];
        match &tree.data {
            TreeData::Table(table) => {
                let known = table.levels.read().runs.iter().any(|r| r.segment.file == segment.file);
                for run in open_all(tree, if known { &[] } else { &linked }, |f| Ok(self.files.open_table(*f)?.of_tree(tree.id)))?
                {
                    table.next_row.fetch_max(run.reader.meta().row_id_max.0 + 1, Ordering::Relaxed);
                    tree.live.fetch_add(run.reader.meta().rows as i64, Ordering::Relaxed);
                    table.levels.write().add_runs([run]);
                }
            }
            TreeData::Index(index) => {
                let known = index.levels.read().runs.iter().any(|r| r.segment.file == segment.file);
                for run in open_all(tree, if known { &[] } else { &linked }, |f| Ok(self.files.open_index(*f)?.of_tree(tree.id)))?
                {
                    tree.live.fetch_add(run.reader.meta().entries as i64, Ordering::Relaxed);
                    index.levels.write().add_runs([run]);
                }
            }
        }
        Ok(())
    }

    /// The segment files that no tree has and the log does not link. The next file gets a number that none of all ever had, and
    /// that is at least `next`.
    pub fn strays(&self, linked: &HashSet<u64>, mut next: u64) -> Result<Vec<String>> {
        let mut known = linked.clone();
        for tree in self.all_trees() {
            known.extend(tree.damaged_files().iter().map(|s| s.file));
            match &tree.data {
                TreeData::Table(t) => known.extend(t.levels.read().runs.iter().map(|r| r.segment.file)),
                TreeData::Index(t) => known.extend(t.levels.read().runs.iter().map(|r| r.segment.file)),
            }
        }
        let io = |e| EngineError::io("list files that a crash left", e);
        let mut strays = Vec::new();
        for name in self.files.directory.list().map_err(io)? {
            if let Some(file) = gone_number(&name) {
                next = next.max(file + 1);
            }
            let Some(file) = segment_number(&name) else { continue };
            next = next.max(file + 1);
            if !known.contains(&file) {
                strays.push(name);
            }
        }
        if self.all_trees().iter().any(|tree| tree.is_damaged()) {
            // The missing file may lie there under another name, or the manifest may be an older one.
            strays.clear();
        }
        self.files.next.store(next, Ordering::SeqCst);
        Ok(strays)
    }

    /// Removes files; a file that cannot be removed now is a stray for the next start.
    pub fn remove_strays(&self, strays: &[String]) {
        strays.iter().for_each(|name| drop(self.files.directory.remove(name)));
    }
}

/// Opens segments of a tree. One that is damaged makes the tree unusable, and nothing else.
fn open_all<R>(
    tree: &Tree,
    files: &[SegmentFile],
    open: impl Fn(&SegmentFile) -> Result<Arc<Run<R>>>,
) -> Result<Vec<Arc<Run<R>>>> {
    let mut runs = Vec::with_capacity(files.len());
    for file in files {
        match open(file) {
            Ok(run) => runs.push(run),
            Err(e) if e.is_damage() => tree.note_damage(*file, e),
            Err(e) => return Err(e),
        }
    }
    Ok(runs)
}
