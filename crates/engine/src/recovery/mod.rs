//! Opening a database: the manifest's state, then the log's records after it.
//!
//! Invariants:
//! 1. Replay may begin before the last checkpoint: a version that is in a segment already is put into the row store again with
//!    the same CSN, and operations on trees and sequences that a later record drops are skipped.
//! 2. A segment that a commit linked is in the manifest only when the commit's record lies before the point where replay
//!    begins; until then the record links it, and no merge touches it.
//! 3. Files that neither the manifest nor the log name are removed: a crash left them of flushes, merges and bulk loads. A
//!    segment that the log links stays as long as its record may be replayed, also when a later record drops its tree.
//! 4. Of each key the row store gets the newest version only (`replay`): the work for a record does not depend on how often its
//!    keys were changed before.
//! 5. A damaged or missing segment affects only users of its tree. It stays in the manifest, and no file is removed then.

mod progress;
mod replay;

use std::collections::HashSet;
use std::sync::Arc;

use melba_store::{Edit, EngineError, ManifestState, Result, SegmentFile, Sequence, Store, Tree, with_space_of};
use melba_threads::atomic::Ordering;
use melba_types::row::RowLayout;
use melba_types::{Csn, Lsn, TreeId};
use melba_wal::{Wal, WalRecord};

use crate::commit::{Operation, decode};
pub use progress::RecoveryProgress;
use replay::Targets;

/// Objects that the log names beside those in the trees now.
struct Recovered {
    csn: Csn,
    next_tree: u64,
    next_file: u64,
    log_end: Lsn,
    /// Segments that the log links: the next replay will open them again.
    linked: HashSet<u64>,
    /// Entries that the manifest must forget.
    edits: Vec<Edit>,
    targets: Targets,
}

/// Recovers the manifest's state, then the records of the log after it; both then describe the open database's beginning. Returns
/// the newest commit.
pub(crate) fn recover(store: &mut Store, wal: &Wal, state: &ManifestState, progress: &RecoveryProgress) -> Result<Csn> {
    let mut edits = store.load(state)?;
    wal.belongs_to(state.belongs());
    let found = Replay { store, wal }.run(state, progress)?;
    with_space_of(store.root(), || Ok(wal.begin(found.log_end)?))?;
    edits.extend(found.edits.iter().cloned());
    edits.push(Edit::Log(wal.known()));
    store.skip_tree_ids(found.next_tree);
    // First the manifest forgets files, and a clean stop, then the files are deleted: no step that may fail comes in between.
    let strays = store.strays(&found.linked, found.next_file)?;
    let mut manifest = store.manifest();
    with_space_of(store.root(), || manifest.reserve(&edits, 0))?;
    manifest.install(&edits)?;
    wal.belongs_to(manifest.state().belongs());
    drop(manifest);
    store.look_for_reserve();
    store.remove_strays(&strays);
    Ok(found.csn)
}

/// The log on its way into the store.
struct Replay<'a> {
    store: &'a Store,
    wal: &'a Wal,
}

impl Replay<'_> {
    /// Replays the log from where the manifest says.
    fn run(&self, state: &ManifestState, progress: &RecoveryProgress) -> Result<Recovered> {
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
        found.targets.forget(self.store);
        found.log_end = end;
        Ok(found)
    }

    fn replay_record(&self, record: WalRecord<'_>, found: &mut Recovered) -> Result<()> {
        found.csn = found.csn.max(record.csn);
        let mut failure = None;
        let decoded = decode(record.payload, &mut |operation| {
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
                found.targets.forget(self.store);
                if let Ok(dropped) = self.store.tree(tree) {
                    dropped.discard();
                    self.store.remove_tree(tree);
                    found.edits.push(Edit::DropTree(tree));
                }
            }
            Operation::ExtendTable { tree, kinds } => {
                if let Ok(tree) = self.store.tree(tree)
                    && let Some(table) = tree.as_table()
                {
                    table.layout.set(Arc::new(RowLayout::new(kinds)));
                }
            }
            Operation::CreateSequence { id, persistence, definition, state } => {
                found.next_tree = found.next_tree.max(id.0 + 1);
                if self.store.sequence(id).is_err() {
                    self.store.add_sequence(Arc::new(Sequence::new(id, definition, state, persistence, true)));
                }
            }
            Operation::DropSequence(id) => {
                self.store.remove_sequence(id);
                found.edits.push(Edit::DropSequence(id));
            }
            Operation::SequenceState { id, state } => {
                if let Ok(sequence) = self.store.sequence(id) {
                    let mut counter = sequence.state.lock();
                    (counter.state, counter.logged, counter.logged_ahead) = (state, state, 0);
                }
            }
            Operation::Row { tree, row, bytes } => {
                found.targets.put_row(self.store, tree, row, bytes, csn);
            }
            Operation::Entry { tree, key, live } => {
                found.targets.put_entry(self.store, tree, key, live, csn);
            }
            Operation::LinkSegments { tree, files } => {
                found.targets.forget(self.store);
                for (file, footer_crc) in files {
                    let segment = SegmentFile { file, assigned: csn, footer_crc };
                    self.replay_link(tree, segment, found)?;
                }
            }
        }
        Ok(())
    }

    fn replay_create(&self, tree: Tree, found: &mut Recovered) {
        found.targets.forget(self.store);
        found.next_tree = found.next_tree.max(tree.id.without_toast().0 + 1);
        if self.store.tree(tree.id).is_err() {
            tree.committed.store(true, Ordering::Relaxed);
            self.store.add_tree(Arc::new(tree));
        }
    }

    fn replay_link(&self, tree: TreeId, segment: SegmentFile, found: &mut Recovered) -> Result<()> {
        found.next_file = found.next_file.max(segment.file + 1);
        let Ok(tree) = self.store.tree(tree) else { return Ok(()) };
        found.linked.insert(segment.file);
        self.store.link_again(&tree, segment)
    }
}
