//! Toast tables: PostgreSQL's storage of long values, a table of chunks for each table that can have some.
//!
//! Long values are stored in another way here (docs/design/toast.md), so a toast table is a relation whose rows are computed.
//! Every snapshot has one beside each table that would have one in PostgreSQL: it is added, replaced and removed with its table,
//! and never stored.

use std::sync::{Arc, LazyLock};

use melba_types::{Kind, Oid, oids};

use crate::classes;
use crate::objects::*;

/// chunk_id, chunk_seq, chunk_data.
static COLUMNS: LazyLock<Arc<[Column]>> = LazyLock::new(|| {
    [("chunk_id", oids::OID, Kind::Oid), ("chunk_seq", oids::INT4, Kind::Int4), ("chunk_data", oids::BYTEA, Kind::Bytes)]
        .map(|(name, ty, kind)| Column::new(name, ty, kind))
        .into()
});

/// Before the name of a storage parameter of a table that is its toast table's.
pub(crate) const TOAST_PREFIX: &str = "toast.";

impl Relation {
    /// Whether long values of a table are stored out of line.
    pub fn has_toast(&self) -> bool {
        matches!(self.storage, Storage::Tree(_))
            && matches!(self.kind, RelationKind::Table | RelationKind::MaterializedView)
            && self.columns.iter().any(|c| c.kind.is_toastable())
    }

    /// A table's toast table.
    pub(crate) fn toast_table(&self) -> Option<Relation> {
        let Storage::Tree(tree) = self.storage else { return None };
        self.has_toast().then(|| Relation {
            oid: self.oid.toast(),
            name: format!("pg_toast_{}", self.oid).into(),
            namespace: classes::PG_TOAST,
            kind: RelationKind::Toast,
            row_type: Oid::INVALID,
            of_type: Oid::INVALID,
            file_node: self.file_node.toast(),
            columns: COLUMNS.clone(),
            storage: Storage::Toast(tree),
            indexes: vec![],
            constraints: vec![],
            triggers: vec![],
            options: self.options.iter().filter_map(|o| o.strip_prefix(TOAST_PREFIX)).map(Arc::from).collect(),
            acl: None,
            view_query: None,
            parents: vec![],
            partition_bound: None,
            detach_pending: false,
            rule: Oid::INVALID,
            depends_on: vec![],
            ..self.clone()
        })
    }
}
