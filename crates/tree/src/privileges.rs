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
    /// The role whose privileges count, of what a rule names: the owner of the rule's relation. Or 0: the role around it.
    pub check_as: Oid,
    /// Attribute numbers read / written.
    pub selected: Vec<i16>,
    pub inserted: Vec<i16>,
    pub updated: Vec<i16>,
    /// Read for columns of a view that are no columns of its table: of the view, its entry's own columns are read.
    pub behind: Vec<i16>,
    /// The view that was named instead of the table, and the views in it; for each of its columns the table's attribute number, or 0.
    pub through: Vec<(Oid, Arc<[i16]>)>,
}

impl Privileges {
    /// The role that uses the relation, in a query that `role` runs; `None`: the user.
    pub fn role_within(&self, role: Option<Oid>) -> Option<Oid> {
        if self.check_as.is_valid() { Some(self.check_as) } else { role }
    }
}
