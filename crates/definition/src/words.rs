//! Words of messages for kinds of relations, and the check of the kind that a statement names.

use melba_catalog::{Relation, RelationKind};
use melba_parse::command::object_word;
use melba_types::{Result, bail};
use pg_query::protobuf::ObjectType;

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
        RelationKind::ForeignTable => "foreign tables",
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
        RelationKind::ForeignTable => "foreign table",
        _ => "table",
    }
}

/// ALTER TABLE and the like work on most kinds of relations, as in PostgreSQL; other statements on the kind that they name.
///
/// # Errors
/// 42809 for a relation of another kind.
pub fn check_kind(kind: ObjectType, relation: &Relation) -> Result<()> {
    let right = match kind {
        ObjectType::ObjectTable => relation.kind != RelationKind::Composite,
        ObjectType::ObjectIndex => matches!(relation.kind, RelationKind::Index | RelationKind::PartitionedIndex),
        ObjectType::ObjectSequence => relation.kind == RelationKind::Sequence,
        ObjectType::ObjectView => relation.kind == RelationKind::View,
        ObjectType::ObjectMatview => relation.kind == RelationKind::MaterializedView,
        ObjectType::ObjectForeignTable => relation.kind == RelationKind::ForeignTable,
        _ => true,
    };
    if right {
        return Ok(());
    }
    let word = object_word(kind).to_lowercase();
    let article = if word.starts_with('i') { "an" } else { "a" };
    bail!(WRONG_OBJECT_TYPE, "\"{}\" is not {article} {word}", relation.name)
}
