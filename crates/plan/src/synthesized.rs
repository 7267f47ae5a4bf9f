//! Relations whose rows are not stored as such in a tree: large objects, and the chunks of toast tables.

use melba_largeobject::RowsOf;
use melba_types::Oid;

/// Which rows are synthesized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synthesized {
    LargeObjects(RowsOf),
    /// Of the toast table that this table has.
    Chunks(Oid),
}

impl Synthesized {
    /// By the relation that is scanned.
    pub fn of(relation: Oid) -> Option<Synthesized> {
        match RowsOf::relation(relation) {
            Some(rows) => Some(Synthesized::LargeObjects(rows)),
            None => relation.is_toast().then(|| Synthesized::Chunks(relation.without_toast())),
        }
    }
}
