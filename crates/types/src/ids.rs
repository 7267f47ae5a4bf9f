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

impl Oid {
    pub const INVALID: Oid = Oid(0);

    pub fn is_valid(self) -> bool {
        self.0 != 0
    }
}
