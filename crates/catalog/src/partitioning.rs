//! How the rows of a partitioned table are spread over its partitions.

use std::sync::Arc;

use melba_types::{Datum, Oid};

/// pg_partitioned_table: how a partitioned table's rows are spread over its partitions.
#[derive(Clone, Debug)]
pub struct PartitionKey {
    pub strategy: PartitionStrategy,
    pub columns: Vec<PartitionColumn>,
}

/// pg_partitioned_table.partstrat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionStrategy {
    List,
    Range,
    Hash,
}

impl PartitionStrategy {
    pub fn letter(self) -> u8 {
        match self {
            PartitionStrategy::List => b'l',
            PartitionStrategy::Range => b'r',
            PartitionStrategy::Hash => b'h',
        }
    }

    /// As PARTITION BY writes it.
    pub fn word(self) -> &'static str {
        match self {
            PartitionStrategy::List => "LIST",
            PartitionStrategy::Range => "RANGE",
            PartitionStrategy::Hash => "HASH",
        }
    }
}

/// One column of a partition key.
#[derive(Clone, Debug)]
pub struct PartitionColumn {
    /// 1-based column number; 0: `expression`.
    pub column: i16,
    pub expression: Option<Arc<str>>,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
    /// The collation of its column or expression: `collation` is printed only where it differs.
    pub natural_collation: Oid,
    pub opclass: Oid,
}

/// pg_class.relpartbound: which rows of its parent a partition has.
#[derive(Clone, Debug)]
pub struct PartitionBound {
    pub values: PartitionValues,
    /// As pg_get_expr prints it.
    pub text: Arc<str>,
}

#[derive(Clone, Debug)]
pub enum PartitionValues {
    /// Values that no other partition has.
    Default,
    /// Null is a value like others.
    List(Vec<Datum>),
    /// From the first, inclusive, to the second, exclusive.
    Range(Vec<RangeDatum>, Vec<RangeDatum>),
    Hash {
        modulus: i32,
        remainder: i32,
    },
}

/// One column of a range's bound.
#[derive(Clone, Debug)]
pub enum RangeDatum {
    MinValue,
    Value(Datum),
    MaxValue,
}
