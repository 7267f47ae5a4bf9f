//! Words of messages for kinds of relations.

use melba_catalog::RelationKind;

/// The plural of a kind of relation in messages.
pub fn plural(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::Table => "tables",
        RelationKind::Index => "indexes",
        RelationKind::Sequence => "sequences",
        RelationKind::View => "views",
        RelationKind::MaterializedView => "materialized views",
        RelationKind::Composite => "composite types",
        RelationKind::PartitionedTable => "partitioned tables",
        RelationKind::PartitionedIndex => "partitioned indexes",
        RelationKind::Toast => "TOAST tables",
    }
}

/// The word for a kind of relation in messages.
pub fn relation_word(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::Index | RelationKind::PartitionedIndex => "index",
        RelationKind::Sequence => "sequence",
        RelationKind::View => "view",
        RelationKind::MaterializedView => "materialized view",
        RelationKind::Composite => "type",
        _ => "table",
    }
}
