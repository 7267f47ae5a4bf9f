//! GIN's jsonb_ops and jsonb_path_ops.
//!
//! The keys of jsonb_ops are a kind and a text: keys of objects at any depth, and values. A string in an array counts as a key of an
//! object, as for the operator `?`. Those of jsonb_path_ops are hashes of a value with the keys of all objects that it is in.

use melba_fmgr::Session;
use melba_fmgr::gin::{GinKey, GinQuery, GinSupport};
use melba_types::jsonb::{Json, View};
use melba_types::key::{KeyColumn, KeyType, encode};
use melba_types::{Datum, DbError, Kind, Result, limits};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::jsonpath::gin::{Entries, of_exists, of_match};
use crate::jsonpath::parsed;
use crate::{root, strings};

pub const CLASSES: &[(&str, GinSupport)] = &[
    ("gin_extract_jsonb", GinSupport { extract_value: |_, value| items(root(value)), extract_query: query }),
    ("gin_extract_jsonb_path", GinSupport { extract_value: |_, value| paths(root(value)), extract_query: path_query }),
];

/// Strategies of the operators: `@>`, `?`, `?|`, `?&`, `@?`, `@@`.
const CONTAINS: i16 = 7;
const EXISTS: i16 = 9;
const EXISTS_ANY: i16 = 10;
const EXISTS_ALL: i16 = 11;
const PATH_EXISTS: i16 = 15;
const PATH_MATCHES: i16 = 16;

/// Kinds of keys: PostgreSQL's JGINFLAG_KEY and so on.
const KEY: u8 = 1;
const NULL: u8 = 2;
const BOOL: u8 = 3;
const NUMBER: u8 = 4;
const STRING: u8 = 5;

fn query(_: &KeyColumn, strategy: i16, value: &Datum, _: &dyn Session) -> Result<GinQuery> {
    let keys = || strings(value).into_iter().flatten().map(|key| item(KEY, key.as_bytes())).collect();
    Ok(match strategy {
        CONTAINS => GinQuery::every(items(root(value))?),
        EXISTS => GinQuery::Key(item(KEY, value.as_str().as_bytes())),
        EXISTS_ANY => GinQuery::some(keys()),
        EXISTS_ALL => GinQuery::every(keys()),
        PATH_EXISTS => of_exists(&ITEMS, &*parsed(value)?)?,
        PATH_MATCHES => of_match(&ITEMS, &*parsed(value)?)?,
        other => return Err(DbError::internal(format!("unknown strategy of jsonb_ops: {other}"))),
    })
}

fn path_query(_: &KeyColumn, strategy: i16, value: &Datum, _: &dyn Session) -> Result<GinQuery> {
    match strategy {
        CONTAINS => Ok(GinQuery::every(paths(root(value))?)),
        PATH_EXISTS => of_exists(&PATHS, &*parsed(value)?),
        PATH_MATCHES => of_match(&PATHS, &*parsed(value)?),
        other => Err(DbError::internal(format!("unknown strategy of jsonb_path_ops: {other}"))),
    }
}

const ITEMS: Entries = Entries {
    key: |key| GinQuery::Key(item(KEY, key.as_bytes())),
    // A string may be the value of a key, or an element.
    value: |_, value| GinQuery::some(vec![scalar_item(value, KEY), scalar_item(value, STRING)]),
    below: path_below,
};

const PATHS: Entries = Entries {
    key: |_| GinQuery::ALL,
    value: |path, value| path.map_or(GinQuery::ALL, |path| GinQuery::Key(path_item(path, value))),
    below: path_below,
};

/// A key that is not the beginning of another: a string has no NUL.
fn item(kind: u8, text: &[u8]) -> GinKey {
    GinKey::Key([&[kind][..], text, &[0]].concat())
}

fn items(json: Json<'_>) -> Result<Vec<GinKey>> {
    let mut out = Vec::new();
    // A scalar alone is like the element of an array.
    collect_items(json, KEY, &mut out)?;
    Ok(out)
}

/// `string`: the kind of a string here.
fn collect_items(json: Json<'_>, string: u8, out: &mut Vec<GinKey>) -> Result<()> {
    limits::check_stack()?;
    limits::tick()?;
    match json.view() {
        View::Object(object) => object.iter().try_for_each(|(key, value)| {
            out.push(item(KEY, key.as_bytes()));
            collect_items(value, STRING, out)
        }),
        View::Array(array) => array.iter().try_for_each(|element| collect_items(element, KEY, out)),
        scalar => {
            out.push(scalar_item(&scalar, string));
            Ok(())
        }
    }
}

fn scalar_item(scalar: &View<'_>, string: u8) -> GinKey {
    match scalar {
        View::Bool(value) => item(BOOL, &[u8::from(*value)]),
        View::Number(number) => {
            let column = KeyColumn { ty: KeyType::Plain(Kind::Numeric), descending: false, nulls_first: false };
            let mut key = Vec::new();
            encode(&column, &Datum::Numeric(number.clone()), &mut key);
            item(NUMBER, &key)
        }
        View::String(text) => item(string, text.as_bytes()),
        _ => item(NULL, &[]),
    }
}

fn paths(json: Json<'_>) -> Result<Vec<GinKey>> {
    let mut out = Vec::new();
    collect_paths(json, 0, &mut out)?;
    Ok(out)
}

/// `path`: the hash of the keys around.
fn collect_paths(json: Json<'_>, path: u64, out: &mut Vec<GinKey>) -> Result<()> {
    limits::check_stack()?;
    limits::tick()?;
    match json.view() {
        View::Object(object) => object.iter().try_for_each(|(key, value)| collect_paths(value, path_below(path, key), out)),
        View::Array(array) => array.iter().try_for_each(|element| collect_paths(element, path, out)),
        scalar => {
            out.push(path_item(path, &scalar));
            Ok(())
        }
    }
}

fn path_below(path: u64, key: &str) -> u64 {
    xxh3_64_with_seed(key.as_bytes(), path)
}

fn path_item(path: u64, scalar: &View<'_>) -> GinKey {
    let GinKey::Key(value) = scalar_item(scalar, STRING) else { return GinKey::None };
    GinKey::Key(xxh3_64_with_seed(&value, path).to_be_bytes().to_vec())
}
