//! Opening a database: the manifest's state, then the log's records after it.
//!
//! Invariants:
//! 1. Replay may begin before the last checkpoint: a version that is in a segment already is put into the row store again with
//!    the same CSN, and operations on trees and sequences that a later record drops are skipped.
//! 2. A segment that a commit linked is in the manifest only when the commit's record lies before the point where replay
//!    begins; until then the record links it, and no merge touches it.
//! 3. Files that neither the manifest nor the log name are removed: what a crash left of flushes, merges and bulk loads. A
//!    segment that the log links stays as long as its record may be replayed, also when a later record drops its tree.
//! 4. Of each key the row store gets the newest version only (`replay`): the work for a record does not depend on how often its
//!    keys were changed before.
//! 5. A segment that is damaged or missing stops nobody but who uses its tree. It stays in the manifest, and no file is removed then.

use std::collections::HashSet;
use std::sync::Arc;

use melba_types::row::RowLayout;
use melba_types::{Csn, Lsn};
use melba_wal::Record;

use crate::batch::{self, Operation};
use crate::commit::Pipeline;
use crate::engine::Shared;
use crate::error::{EngineError, Result};
use crate::levels::{Run, segment_number};
use crate::manifest::{Edit, ManifestState, SegmentFile, SequenceRecord, TreeRecord};
use crate::progress::RecoveryProgress;
use crate::replay::Targets;
use crate::reserve::{Reserve, with_space_of};
use crate::sequence::Sequence;
use crate::snapshot::Snapshots;
use crate::sync::atomic::Ordering;
use crate::tree::{Persistence, Tree, TreeData};

/// What recovery found beside trees.
pub(crate) struct Recovered {
    pub csn: Csn,
    pub next_tree: u64,
    pub next_file: u64,
    pub log_end: Lsn,
    /// Segments that the log links: the next replay will open them again.
    pub linked: HashSet<u64>,
    /// What the manifest must forget.
    pub edits: Vec<Edit>,
    targets: Targets,
}

impl Shared {
    /// Builds the trees and sequences of a manifest; after a crash, unlogged ones are empty.
    pub(crate) fn load(&self, state: &ManifestState) -> Result<Vec<Edit>> {
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
            if record.persistence == Persistence::Temporary {
                edits.push(Edit::DropSequence(record.id));
                continue;
            }
            let begins_again = match record.persistence {
                Persistence::Logged | Persistence::Temporary => false,
                Persistence::Unlogged => !state.clean,
                Persistence::Memory => true,
            };
            let state = if begins_again { record.start } else { record.state };
            let sequence = Sequence::new(record.id, record.definition, state, record.persistence, true);
            self.add_sequence(Arc::new(Sequence { start: record.start, ..sequence }));
        }
        Ok(edits)
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
                let runs = open_all(&tree, files, |f| self.files.open_table(*f))?;
                table.levels.write().add_runs(runs);
            }
            TreeData::Index(index) => {
                let runs = open_all(&tree, files, |f| self.files.open_index(*f))?;
                index.levels.write().add_runs(runs);
            }
        }
        self.add_tree(Arc::new(tree));
        Ok(())
    }

    /// The manifest's state, then what the log has after it; both are left so that what is open now is their beginning.
    pub(crate) fn recover(&mut self, state: &ManifestState, progress: &RecoveryProgress) -> Result<()> {
        let mut edits = self.load(state)?;
        self.wal.belongs_to(state.belongs());
        let found = self.replay(state, progress)?;
        with_space_of(&*self.directory, || Ok(self.wal.begin(found.log_end)?))?;
        edits.extend(found.edits.iter().cloned());
        edits.push(Edit::Log(self.wal.known()));
        self.snapshots = Snapshots::new(found.csn);
        self.pipeline = Pipeline::new(found.csn);
        *self.next_tree.get_mut() = found.next_tree;
        self.all_trees().iter().for_each(|tree| self.note_flushed(tree));
        // First the manifest forgets files, and a clean stop, then they go: nothing that may fail comes in between.
        let strays = self.strays(&found)?;
        let manifest = self.manifest.get_mut();
        with_space_of(&*self.directory, || manifest.reserve(&edits, 0))?;
        manifest.install(&edits)?;
        self.wal.belongs_to(manifest.state().belongs());
        self.reserve = Reserve::new(&self.directory, self.options.reserve_bytes());
        // What cannot be removed now is a stray for the next start.
        strays.iter().for_each(|name| drop(self.files.directory.remove(name)));
        Ok(())
    }

    /// Replays the log from where the manifest says.
    pub(crate) fn replay(&self, state: &ManifestState, progress: &RecoveryProgress) -> Result<Recovered> {
        let mut found = Recovered {
            csn: state.csn,
            next_tree: state.next_tree,
            next_file: state.next_file,
            log_end: state.replay,
            linked: HashSet::new(),
            edits: Vec::new(),
            targets: Targets::default(),
        };
        progress.begin(state.replay, self.wal.expected_end(state.replay)?);
        let end = self.wal.replay(state.replay, state.log, |record| {
            progress.advance(record.end);
            self.replay_record(record, &mut found)
        })?;
        found.targets.forget();
        found.log_end = end;
        Ok(found)
    }

    fn replay_record(&self, record: Record<'_>, found: &mut Recovered) -> Result<()> {
        found.csn = found.csn.max(record.csn);
        let mut failure = None;
        let decoded = batch::decode(record.payload, &mut |operation| {
            if failure.is_none()
                && let Err(e) = self.replay_operation(operation, record.csn, found)
            {
                failure = Some(e);
            }
        });
        match (failure, decoded) {
            (Some(e), _) => Err(e),
            (None, Some(())) => Ok(()),
            (None, None) => Err(EngineError::Corrupt { what: format!("the log record at {} is malformed", record.lsn) }),
        }
    }

    fn replay_operation(&self, operation: Operation<'_>, csn: Csn, found: &mut Recovered) -> Result<()> {
        match operation {
            Operation::CreateTable { tree, persistence, kinds } => {
                self.replay_create(Tree::table(tree, &kinds, persistence), found);
            }
            Operation::CreateIndex { tree, table, persistence } => {
                self.replay_create(Tree::index(tree, table, persistence), found);
            }
            Operation::DropTree(tree) => {
                found.targets.forget();
                if let Ok(dropped) = self.tree(tree) {
                    dropped.discard();
                    self.remove_tree(tree);
                    found.edits.push(Edit::DropTree(tree));
                }
            }
            Operation::ExtendTable { tree, kinds } => {
                if let Ok(tree) = self.tree(tree)
                    && let Some(table) = tree.as_table()
                {
                    table.layout.set(Arc::new(RowLayout::new(kinds)));
                }
            }
            Operation::CreateSequence { id, persistence, definition, state } => {
                found.next_tree = found.next_tree.max(id.0 + 1);
                if self.sequence(id).is_err() {
                    self.add_sequence(Arc::new(Sequence::new(id, definition, state, persistence, true)));
                }
            }
            Operation::DropSequence(id) => {
                self.remove_sequence(id);
                found.edits.push(Edit::DropSequence(id));
            }
            Operation::SequenceState { id, state } => {
                if let Ok(sequence) = self.sequence(id) {
                    let mut counter = sequence.state.lock();
                    (counter.state, counter.logged, counter.logged_ahead) = (state, state, 0);
                }
            }
            Operation::Row { tree, row, bytes } => {
                if let Some(target) = found.targets.of(self, tree) {
                    target.put_row(self, row, bytes, csn);
                }
            }
            Operation::Entry { tree, key, live } => {
                if let Some(target) = found.targets.of(self, tree) {
                    target.put_entry(self, key, live, csn);
                }
            }
            Operation::LinkSegments { tree, files } => {
                found.targets.forget();
                for (file, footer_crc) in files {
                    let segment = SegmentFile { file, assigned: csn, footer_crc };
                    self.replay_link(tree, segment, found)?;
                }
            }
        }
        Ok(())
    }

    fn replay_create(&self, tree: Tree, found: &mut Recovered) {
        found.targets.forget();
        found.next_tree = found.next_tree.max(tree.id.without_toast().0 + 1);
        if self.tree(tree.id).is_err() {
            tree.committed.store(true, Ordering::Relaxed);
            self.add_tree(Arc::new(tree));
        }
    }

    fn replay_link(&self, tree: melba_types::TreeId, segment: SegmentFile, found: &mut Recovered) -> Result<()> {
        let file = segment.file;
        found.next_file = found.next_file.max(file + 1);
        let Ok(tree) = self.tree(tree) else { return Ok(()) };
        found.linked.insert(file);
        if tree.damaged_files().iter().any(|s| s.file == file) {
            return Ok(());
        }
        let linked = [segment];
        match &tree.data {
            TreeData::Table(table) => {
                let known = table.levels.read().runs.iter().any(|r| r.segment.file == file);
                for run in open_all(&tree, if known { &[] } else { &linked }, |f| self.files.open_table(*f))? {
                    table.next_row.fetch_max(run.reader.meta().row_id_max.0 + 1, Ordering::Relaxed);
                    tree.live.fetch_add(run.reader.meta().rows as i64, Ordering::Relaxed);
                    table.levels.write().add_runs([run]);
                }
            }
            TreeData::Index(index) => {
                let known = index.levels.read().runs.iter().any(|r| r.segment.file == file);
                for run in open_all(&tree, if known { &[] } else { &linked }, |f| self.files.open_index(*f))? {
                    tree.live.fetch_add(run.reader.meta().entries as i64, Ordering::Relaxed);
                    index.levels.write().add_runs([run]);
                }
            }
        }
        Ok(())
    }

    /// The segment files that no tree has. The next file gets a number that none of all ever had.
    pub(crate) fn strays(&self, found: &Recovered) -> Result<Vec<String>> {
        let mut known = found.linked.clone();
        for tree in self.all_trees() {
            known.extend(tree.damaged_files().iter().map(|s| s.file));
            match &tree.data {
                TreeData::Table(t) => known.extend(t.levels.read().runs.iter().map(|r| r.segment.file)),
                TreeData::Index(t) => known.extend(t.levels.read().runs.iter().map(|r| r.segment.file)),
            }
        }
        let mut next = found.next_file;
        let io = |e| EngineError::io("list files that a crash left", e);
        let mut strays = Vec::new();
        for name in self.files.directory.list().map_err(io)? {
            let Some(file) = segment_number(&name) else { continue };
            next = next.max(file + 1);
            if !known.contains(&file) {
                strays.push(name);
            }
        }
        if self.all_trees().iter().any(|tree| tree.is_damaged()) {
            // What is missing may lie there under another name, or the manifest may be an older one.
            strays.clear();
        }
        self.files.next.store(next, Ordering::SeqCst);
        Ok(strays)
    }

    /// The manifest's record of a tree.
    pub(crate) fn tree_record(&self, tree: &Tree) -> TreeRecord {
        let (kinds, next_row) = match &tree.data {
            TreeData::Table(t) => (t.layout.read().kinds().to_vec(), t.next_row.load(Ordering::Relaxed)),
            TreeData::Index(_) => (Vec::new(), 0),
        };
        TreeRecord {
            id: tree.id,
            is_index: tree.as_index().is_some(),
            table: tree.table,
            persistence: tree.persistence,
            next_row,
            live: tree.live.load(Ordering::Relaxed).max(0) as u64,
            kinds,
        }
    }

    /// The manifest's record of a sequence.
    pub(crate) fn sequence_record(&self, sequence: &Sequence, clean: bool) -> SequenceRecord {
        let counter = *sequence.state.lock();
        SequenceRecord {
            id: sequence.id,
            persistence: sequence.persistence,
            definition: sequence.definition,
            state: if clean { counter.state } else { counter.logged },
            start: sequence.start,
        }
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
