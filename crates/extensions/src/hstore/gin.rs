//! GIN's gin_hstore_ops: the keys of an hstore, and its values.

use melba_fmgr::Session;
use melba_fmgr::gin::{GinKey, GinQuery, GinSupport};
use melba_types::key::KeyColumn;
use melba_types::{Datum, DbError, Result, hstore};

use super::texts;

pub const CLASSES: &[(&str, GinSupport)] =
    &[("gin_extract_hstore", GinSupport { extract_value: |_, value| Ok(items(value)), extract_query: query })];

/// Strategies of the operators: `@>`, `?`, `?|`, `?&`.
const CONTAINS: i16 = 7;
const EXISTS: i16 = 9;
const EXISTS_ANY: i16 = 10;
const EXISTS_ALL: i16 = 11;

/// Kinds of keys: PostgreSQL's KEYFLAG, VALFLAG and NULLFLAG.
const KEY: u8 = b'K';
const VALUE: u8 = b'V';
const NULL: u8 = b'N';

fn items(value: &Datum) -> Vec<GinKey> {
    let pairs = hstore::pairs(value.as_bytes());
    let of_pair = |(key, value): (&str, Option<&str>)| [item(KEY, key), value.map_or(item(NULL, ""), |value| item(VALUE, value))];
    pairs.flat_map(of_pair).collect()
}

/// A key that is not the beginning of another: a text has no NUL.
fn item(kind: u8, text: &str) -> GinKey {
    GinKey::Key([&[kind][..], text.as_bytes(), &[0]].concat())
}

fn query(_: &KeyColumn, strategy: i16, value: &Datum, _: &dyn Session) -> Result<GinQuery> {
    let keys = || texts(value.as_array()).flatten().map(|key| item(KEY, key)).collect();
    match strategy {
        CONTAINS => Ok(GinQuery::every(items(value))),
        EXISTS => Ok(GinQuery::Key(item(KEY, value.as_str()))),
        EXISTS_ANY => Ok(GinQuery::some(keys())),
        EXISTS_ALL => Ok(GinQuery::every(keys())),
        other => Err(DbError::internal(format!("unknown strategy of gin_hstore_ops: {other}"))),
    }
}
