//! A table of a family, planned in the place of the family's parent.

use std::sync::Arc;

use melba_catalog::{Catalog, Relation};

/// A member of a family in the place of its parent.
pub(super) struct Member {
    pub parent: Arc<Relation>,
    pub relation: Arc<Relation>,
    /// By the parent's column: the member's column number; 0 for dropped ones.
    pub numbers: Vec<i16>,
    /// The entry's alias, where a name other than the parent's must distinguish members.
    pub alias: Option<Arc<str>>,
}

/// Whether reading or changing a table reaches other tables.
pub fn is_family(catalog: &Catalog, relation: &Relation, inherit: bool) -> bool {
    relation.is_partitioned() || (inherit && catalog.has_children(relation.oid))
}
