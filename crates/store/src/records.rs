//! Trees and sequences as the manifest records them.

use melba_threads::atomic::Ordering;

use crate::manifest::{Edit, ManifestState, SequenceRecord, TreeRecord};
use crate::sequence::Sequence;
use crate::store::Store;
use crate::tree::{Tree, TreeData};

impl Store {
    /// The edits for trees and sequences that are otherwise now than the manifest has them.
    pub fn schema_edits(&self, state: &ManifestState) -> Vec<Edit> {
        let mut edits = Vec::new();
        for tree in self.all_trees().iter().filter(|t| t.committed.load(Ordering::Acquire)) {
            let record = tree_record(tree);
            if state.trees.get(&tree.id) != Some(&record) {
                edits.push(Edit::Tree(record));
            }
        }
        edits.extend(state.trees.keys().filter(|id| self.tree(**id).is_err()).map(|id| Edit::DropTree(*id)));
        for sequence in self.all_sequences() {
            let record = sequence_record(&sequence, false);
            let committed = sequence.state.lock().committed;
            if committed && state.sequences.get(&sequence.id) != Some(&record) {
                edits.push(Edit::Sequence(record));
            }
        }
        let gone = state.sequences.keys().filter(|id| self.sequence(**id).is_err());
        edits.extend(gone.map(|id| Edit::DropSequence(*id)));
        edits
    }

    /// The edits of a clean stop: sequences are where they are, and not ahead of that.
    pub fn clean_edits(&self) -> Vec<Edit> {
        let sequences = self.all_sequences();
        let committed = sequences.iter().filter(|s| s.state.lock().committed);
        committed.map(|s| Edit::Sequence(sequence_record(s, true))).chain([Edit::Clean(true)]).collect()
    }
}

fn tree_record(tree: &Tree) -> TreeRecord {
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

fn sequence_record(sequence: &Sequence, clean: bool) -> SequenceRecord {
    let counter = *sequence.state.lock();
    SequenceRecord {
        id: sequence.id,
        persistence: sequence.persistence,
        definition: sequence.definition,
        state: if clean { counter.state } else { counter.logged },
        start: sequence.start,
    }
}
