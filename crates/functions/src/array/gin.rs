//! GIN's array_ops: the keys of an array are its elements.

use melba_fmgr::Session;
use melba_fmgr::gin::{GinKey, GinQuery, GinSupport};
use melba_types::key::{KeyColumn, encode};
use melba_types::{Datum, DbError, Result};

pub const CLASSES: &[(&str, GinSupport)] =
    &[("ginarrayextract", GinSupport { extract_value: |element, value| Ok(keys(element, value)), extract_query: query })];

/// Strategies of the operators: `&&`, `@>`, `<@`, `=`.
pub const OVERLAP: i16 = 1;
pub const CONTAINS: i16 = 2;
pub const CONTAINED: i16 = 3;
pub const EQUAL: i16 = 4;

pub fn keys(element: &KeyColumn, value: &Datum) -> Vec<GinKey> {
    let Datum::Array(array) = value else { return Vec::new() };
    let key = |value: &Datum| match value {
        Datum::Null => GinKey::Null,
        value => {
            let mut key = Vec::new();
            encode(element, value, &mut key);
            GinKey::Key(key)
        }
    };
    array.elements.iter().map(key).collect()
}

pub fn query(element: &KeyColumn, strategy: i16, value: &Datum, _: &dyn Session) -> Result<GinQuery> {
    let mut keys = keys(element, value);
    match strategy {
        // NULLs are not equal.
        OVERLAP => {
            keys.retain(|key| *key != GinKey::Null);
            Ok(GinQuery::some(keys))
        }
        CONTAINS if keys.contains(&GinKey::Null) => Ok(GinQuery::some(vec![])),
        CONTAINS => Ok(GinQuery::every(keys)),
        CONTAINED => {
            keys.push(GinKey::None);
            Ok(GinQuery::some(keys))
        }
        EQUAL if keys.is_empty() => Ok(GinQuery::Key(GinKey::None)),
        EQUAL => Ok(GinQuery::every(keys)),
        other => Err(DbError::internal(format!("unknown strategy of array_ops: {other}"))),
    }
}
