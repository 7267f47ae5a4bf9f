//! The privileges that statements need on the relations they name.

use std::sync::Arc;

use melba_types::Oid;

/// A statement's use of a relation, for privilege checks and lock strength.
#[derive(Clone, Debug, Default)]
pub struct Privileges {
    pub select: bool,
    pub insert: bool,
    pub update: bool,
    pub delete: bool,
    /// Attribute numbers read / written.
    pub selected: Vec<i16>,
    pub inserted: Vec<i16>,
    pub updated: Vec<i16>,
    /// Read for columns of a view that are no columns of its table: of the view, its entry's own columns are read.
    pub behind: Vec<i16>,
    /// The view that was named instead of the table, and the views in it; for each of its columns the table's attribute number, or 0.
    pub through: Vec<(Oid, Arc<[i16]>)>,
}
