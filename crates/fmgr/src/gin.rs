//! Operator classes of GIN: the keys of an indexed value, and the keys that a row must have to satisfy a condition.

use melba_types::key::KeyColumn;
use melba_types::{Datum, Result};

use crate::Session;

/// A key of a value, or what stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GinKey {
    Key(Vec<u8>),
    /// An element that is NULL.
    Null,
    /// The value has no keys.
    None,
}

/// What a row must have to satisfy a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GinQuery {
    Key(GinKey),
    /// A key that begins with these bytes.
    Prefix(Vec<u8>),
    /// All of them; of none: every row with a value.
    And(Vec<GinQuery>),
    /// One of them; of none: no row.
    Or(Vec<GinQuery>),
    /// At least that number of them, which is one or more.
    AtLeast(usize, Vec<GinQuery>),
}

impl GinQuery {
    /// Every row with a value.
    pub const ALL: GinQuery = GinQuery::And(Vec::new());

    pub fn every(keys: Vec<GinKey>) -> GinQuery {
        GinQuery::And(keys.into_iter().map(GinQuery::Key).collect())
    }

    pub fn some(keys: Vec<GinKey>) -> GinQuery {
        GinQuery::Or(keys.into_iter().map(GinQuery::Key).collect())
    }
}

/// The functions of an operator class, which PostgreSQL calls extractValue and extractQuery. The column is that of an array's elements,
/// by equality.
#[derive(Clone, Copy, Debug)]
pub struct GinSupport {
    /// The keys of a value that is not null, in any order; they may repeat.
    pub extract_value: fn(&KeyColumn, &Datum) -> Result<Vec<GinKey>>,
    /// By the number of the operator's strategy (pg_amop), its right operand, which is not null, and the session's settings.
    pub extract_query: fn(&KeyColumn, i16, &Datum, &dyn Session) -> Result<GinQuery>,
}
