//! The anomalies that isolation levels forbid, as PostgreSQL implements them.

use super::AnomalyKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    ReadCommitted,
    /// Snapshot isolation.
    RepeatableRead,
    Serializable,
}

impl Level {
    /// A level by its SQL name with dashes.
    pub fn parse(name: &str) -> Option<Level> {
        match name {
            "read-committed" => Some(Level::ReadCommitted),
            "repeatable-read" => Some(Level::RepeatableRead),
            "serializable" => Some(Level::Serializable),
            _ => None,
        }
    }

    pub fn sql(self) -> &'static str {
        match self {
            Level::ReadCommitted => "READ COMMITTED",
            Level::RepeatableRead => "REPEATABLE READ",
            Level::Serializable => "SERIALIZABLE",
        }
    }

    pub fn forbids(self, kind: AnomalyKind) -> bool {
        match kind {
            AnomalyKind::GSingle | AnomalyKind::GNonadjacent => self != Level::ReadCommitted,
            AnomalyKind::G2Item => self == Level::Serializable,
            _ => true,
        }
    }

    /// Whether a transaction's reads are all of one snapshot, which has everything that had committed before.
    pub fn has_snapshot(self) -> bool {
        self != Level::ReadCommitted
    }
}
