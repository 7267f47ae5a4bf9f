//! A newtype for every kind of number that crosses a crate boundary.

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(v: $inner) -> Self {
                $name(v)
            }
        }
    };
}

number!(/// PostgreSQL object identifier; 0 is "no object".
    Oid(u32));
number!(/// Byte position in the write-ahead log, counted from the first record ever written.
    Lsn(u64));
number!(/// Commit sequence number: the order in which transactions become visible. 0 is "before every commit".
    Csn(u64));
number!(/// A running transaction, unique within one life of the server.
    TxnId(u64));
number!(/// A row of a table tree: assigned at insert, stable for the row's life, never reused.
    RowId(u64));
number!(/// A tree of the storage engine (a table's rows or an index's keys), never reused.
    TreeId(u64));

/// Set in the id of a tree that holds a table's large values.
const TOAST_TREE: u64 = 1 << 63;

impl TreeId {
    /// The tree of this table's values that are kept out of their rows.
    pub fn toast(self) -> TreeId {
        TreeId(self.0 | TOAST_TREE)
    }

    pub fn is_toast(self) -> bool {
        self.0 & TOAST_TREE != 0
    }

    /// The table of a toast tree; other trees themselves.
    pub fn without_toast(self) -> TreeId {
        TreeId(self.0 & !TOAST_TREE)
    }
}

impl Oid {
    pub const INVALID: Oid = Oid(0);
    /// Set in the OID of a table's toast table.
    pub const TOAST: u32 = 1 << 31;

    pub fn is_valid(self) -> bool {
        self.0 != 0
    }

    /// The OID of a table's toast table. Ordinary ones stay below: they are counted up from 16384.
    pub fn toast(self) -> Oid {
        Oid(self.0 | Oid::TOAST)
    }

    pub fn is_toast(self) -> bool {
        self.0 & Oid::TOAST != 0
    }

    /// The table of a toast table; others themselves.
    pub fn without_toast(self) -> Oid {
        Oid(self.0 & !Oid::TOAST)
    }
}
