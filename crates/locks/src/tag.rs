//! The kinds of objects that can be locked.

use melba_types::{RowId, TreeId, TxnId};

/// A lockable object of the layers above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockTag {
    /// A table, index, sequence or view. `database` is 0 for shared ones.
    Relation { database: u32, relation: u32 },
    /// A catalog object that is not a relation; `class` is the OID of its catalog.
    Object { database: u32, class: u32, object: u32 },
    /// The name of a catalog object that is new, by hash: two names of the same hash only wait for each other needlessly.
    Name { database: u32, class: u32, hash: u64 },
    /// pg_advisory_lock: `two_keys` distinguishes (int, int) from (bigint).
    Advisory { database: u32, key: u64, two_keys: bool },
}

/// A key of the lock table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKey {
    Tag(LockTag),
    Row(TreeId, RowId),
    /// One value of a unique key, by hash: two values of the same hash only wait for each other needlessly.
    Key(TreeId, u64),
    /// A session's transaction, by the session's slot: only held where others wait for its end.
    Transaction(u32, TxnId),
}

/// A lock that is held or waited for, as pg_locks shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LockedObject {
    /// The object; `None` for a row or unique key value.
    pub tag: Option<LockTag>,
    /// The tree of a row or key lock.
    pub tree: Option<TreeId>,
    /// Of a table, the block of rows of a predicate lock.
    pub page: Option<u64>,
    /// The row of a row lock.
    pub row: Option<RowId>,
    /// The transaction that is waited for: its session's slot, and its number.
    pub transaction: Option<(u32, TxnId)>,
    /// PostgreSQL's name of the mode.
    pub mode: &'static str,
    /// Held, or waited for.
    pub granted: bool,
    /// The process id that the holder's session announced.
    pub pid: i32,
}

impl LockKey {
    /// The object as a deadlock's DETAIL names it.
    pub fn describe(&self) -> String {
        match self {
            LockKey::Tag(LockTag::Relation { database, relation }) => {
                format!("relation {relation} of database {database}")
            }
            LockKey::Tag(LockTag::Object { database, class, object }) => {
                format!("object {object} of class {class} of database {database}")
            }
            LockKey::Tag(LockTag::Name { database, class, .. }) => format!("name of class {class} of database {database}"),
            LockKey::Tag(LockTag::Advisory { database, key, two_keys }) => {
                format!("advisory lock [{database},{},{},{}]", key >> 32, key & 0xffff_ffff, 1 + u8::from(*two_keys))
            }
            LockKey::Row(tree, row) => format!("tuple {row} of relation {tree}"),
            LockKey::Key(tree, _) => format!("key of relation {tree}"),
            LockKey::Transaction(slot, id) => format!("virtual transaction {slot}/{id}"),
        }
    }

    pub fn shown(&self, mode: &'static str, granted: bool, pid: i32) -> LockedObject {
        let (tag, tree, row) = match *self {
            LockKey::Tag(tag) => (Some(tag), None, None),
            LockKey::Row(tree, row) => (None, Some(tree), Some(row)),
            LockKey::Key(tree, _) => (None, Some(tree), None),
            LockKey::Transaction(..) => (None, None, None),
        };
        let transaction = if let LockKey::Transaction(slot, id) = *self { Some((slot, id)) } else { None };
        LockedObject { tag, tree, page: None, row, transaction, mode, granted, pid }
    }
}

impl LockedObject {
    /// Data that a serializable transaction has read.
    pub fn predicate(tree: TreeId, page: Option<u64>, row: Option<RowId>, pid: i32) -> LockedObject {
        LockedObject { tag: None, tree: Some(tree), page, row, transaction: None, mode: "SIReadLock", granted: true, pid }
    }
}
