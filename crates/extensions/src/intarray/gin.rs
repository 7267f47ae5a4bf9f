//! gin__int_ops: the keys of array_ops, by the operators of intarray.

use melba_fmgr::Session;
use melba_fmgr::gin::{GinKey, GinQuery, GinSupport};
use melba_functions::array::gin;
use melba_types::key::{KeyColumn, encode};
use melba_types::{Datum, DbError, Result};

use super::integers;
use super::query_int::{IntQuery, read};

pub const CLASSES: &[(&str, GinSupport)] = &[(
    "ginint4_queryextract",
    GinSupport { extract_value: |element, value| Ok(gin::keys(element, value)), extract_query: query },
)];

/// Strategies of the operators: `&&`, `=`, `@>`, `<@`, `@@`.
const OVERLAP: i16 = 3;
const EQUAL: i16 = 6;
const CONTAINS: i16 = 7;
const CONTAINED: i16 = 8;
const SATISFIES: i16 = 20;

fn query(element: &KeyColumn, strategy: i16, value: &Datum, session: &dyn Session) -> Result<GinQuery> {
    let strategy = match strategy {
        OVERLAP => gin::OVERLAP,
        EQUAL => gin::EQUAL,
        CONTAINS => gin::CONTAINS,
        CONTAINED => gin::CONTAINED,
        SATISFIES => return Ok(demanded(element, &read(value.as_str())?)),
        other => return Err(DbError::internal(format!("unknown strategy of gin__int_ops: {other}"))),
    };
    // NULL elements are refused.
    integers(value)?;
    gin::query(element, strategy, value, session)
}

fn demanded(column: &KeyColumn, query: &IntQuery) -> GinQuery {
    match query {
        IntQuery::Element(element) => {
            let mut key = Vec::new();
            encode(column, &Datum::Int4(*element), &mut key);
            GinQuery::Key(GinKey::Key(key))
        }
        IntQuery::Not(_) => GinQuery::ALL,
        IntQuery::And(parts) => {
            let parts = parts.iter().map(|part| demanded(column, part));
            GinQuery::And(parts.filter(|part| *part != GinQuery::ALL).collect())
        }
        IntQuery::Or(parts) => {
            let parts: Vec<GinQuery> = parts.iter().map(|part| demanded(column, part)).collect();
            if parts.contains(&GinQuery::ALL) { GinQuery::ALL } else { GinQuery::Or(parts) }
        }
    }
}
