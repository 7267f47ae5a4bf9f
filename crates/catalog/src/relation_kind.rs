//! Kinds of relations.

/// pg_class.relkind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelationKind {
    Table,
    Index,
    Sequence,
    View,
    MaterializedView,
    Composite,
    PartitionedTable,
    PartitionedIndex,
    Toast,
    ForeignTable,
}

impl RelationKind {
    pub fn letter(self) -> u8 {
        match self {
            RelationKind::Table => b'r',
            RelationKind::Index => b'i',
            RelationKind::Sequence => b'S',
            RelationKind::View => b'v',
            RelationKind::MaterializedView => b'm',
            RelationKind::Composite => b'c',
            RelationKind::PartitionedTable => b'p',
            RelationKind::PartitionedIndex => b'I',
            RelationKind::Toast => b't',
            RelationKind::ForeignTable => b'f',
        }
    }
}
