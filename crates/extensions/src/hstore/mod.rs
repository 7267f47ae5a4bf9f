//! hstore: texts by keys (`types::hstore`). Functions that look many keys up do so by halving, never by walking.

mod convert;
mod gin;
mod io;
mod record;

use std::collections::HashSet;
use std::sync::Arc;

use melba_fmgr::{ScalarFn, SetFn, type_functions};
use melba_functions::array::functions::one_dimensional;
use melba_functions::hash::{hash_bytes, hash_bytes_extended};
use melba_types::hstore::{self, Pair};
use melba_types::jsonb::compare_keys;
use melba_types::{Array, Datum, DbError, Result, err, oids};

pub use convert::FUNCTIONS as CONVERSIONS;
pub use gin::CLASSES as GIN_CLASSES;
pub use io::TYPES;
pub use record::FUNCTIONS as RECORDS;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("hstore_in", type_functions::input),
    ("hstore_out", type_functions::output),
    ("hstore_send", type_functions::send),
    ("hstore_version_diag", |_, _| Ok(Datum::Int4(FORM_VERSION))),
    ("hstore_fetchval", |_, a| {
        let key = a[1].as_str();
        Ok(text(hstore::pairs(a[0].as_bytes()).find(|pair| pair.0 == key).and_then(|pair| pair.1)))
    }),
    ("hstore_slice_to_array", |_, a| {
        let (pairs, keys) = (pairs(&a[0]), a[1].as_array());
        let value = |key: Option<&str>| text(key.and_then(|key| find(&pairs, key)).flatten());
        let elements = texts(keys).map(value).collect();
        Ok(Datum::Array(Arc::new(Array { element_type: oids::TEXT, dims: keys.dims.clone(), elements })))
    }),
    ("hstore_slice_to_hstore", |_, a| {
        let pairs = pairs(&a[0]);
        datum(texts(a[1].as_array()).flatten().filter_map(|key| Some((key, find(&pairs, key)?))).collect())
    }),
    ("hstore_exists", |_, a| Ok(Datum::Bool(find(&pairs(&a[0]), a[1].as_str()).is_some()))),
    ("hstore_exists_any", |_, a| {
        let pairs = pairs(&a[0]);
        Ok(Datum::Bool(texts(a[1].as_array()).flatten().any(|key| find(&pairs, key).is_some())))
    }),
    ("hstore_exists_all", |_, a| {
        let pairs = pairs(&a[0]);
        Ok(Datum::Bool(texts(a[1].as_array()).flatten().all(|key| find(&pairs, key).is_some())))
    }),
    ("hstore_defined", |_, a| Ok(Datum::Bool(find(&pairs(&a[0]), a[1].as_str()).flatten().is_some()))),
    ("hstore_delete", |_, a| without(&a[0], |pair| pair.0 == a[1].as_str())),
    ("hstore_delete_array", |_, a| {
        let keys: HashSet<&str> = texts(a[1].as_array()).flatten().collect();
        without(&a[0], |pair| keys.contains(pair.0))
    }),
    ("hstore_delete_hstore", |_, a| {
        let others = pairs(&a[1]);
        without(&a[0], |pair| find(&others, pair.0) == Some(pair.1))
    }),
    // The first of equal keys counts.
    ("hstore_concat", |_, a| datum([pairs(&a[1]), pairs(&a[0])].concat())),
    ("hstore_contains", |_, a| Ok(Datum::Bool(contains(&a[0], &a[1])))),
    ("hstore_contained", |_, a| Ok(Datum::Bool(contains(&a[1], &a[0])))),
];

pub const COMPARISONS: &[(&str, ScalarFn)] = &[
    ("hstore_eq", |_, a| Ok(Datum::Bool(a[0].as_bytes() == a[1].as_bytes()))),
    ("hstore_ne", |_, a| Ok(Datum::Bool(a[0].as_bytes() != a[1].as_bytes()))),
    ("hstore_lt", |_, a| Ok(Datum::Bool(key(&a[0]) < key(&a[1])))),
    ("hstore_le", |_, a| Ok(Datum::Bool(key(&a[0]) <= key(&a[1])))),
    ("hstore_gt", |_, a| Ok(Datum::Bool(key(&a[0]) > key(&a[1])))),
    ("hstore_ge", |_, a| Ok(Datum::Bool(key(&a[0]) >= key(&a[1])))),
    ("hstore_cmp", |_, a| Ok(Datum::Int4(key(&a[0]).cmp(&key(&a[1])) as i32))),
    ("hstore_hash", |_, a| Ok(Datum::Int4(hash_bytes(&hashed(&a[0])) as i32))),
    ("hstore_hash_extended", |_, a| Ok(Datum::Int8(hash_bytes_extended(&hashed(&a[0]), a[1].as_i64() as u64) as i64))),
];

pub const SETS: &[(&str, SetFn)] = &[
    ("hstore_skeys", |_, a| Ok(rows(&a[0], |pair| vec![Datum::text(pair.0)]))),
    ("hstore_svals", |_, a| Ok(rows(&a[0], |pair| vec![text(pair.1)]))),
    ("hstore_each", |_, a| Ok(rows(&a[0], |pair| vec![Datum::text(pair.0), text(pair.1)]))),
];

/// PostgreSQL's number for the form that values have had since its version 9.0.
const FORM_VERSION: i32 = 2;

fn pairs(value: &Datum) -> Vec<Pair<'_>> {
    hstore::pairs(value.as_bytes()).collect()
}

/// The value of a key.
fn find<'a>(pairs: &[Pair<'a>], key: &str) -> Option<Option<&'a str>> {
    pairs.binary_search_by(|pair| compare_keys(pair.0, key)).ok().map(|at| pairs[at].1)
}

fn datum(pairs: Vec<Pair<'_>>) -> Result<Datum> {
    Ok(Datum::bytes(hstore::encode(pairs)?))
}

fn without(value: &Datum, drops: impl Fn(&Pair<'_>) -> bool) -> Result<Datum> {
    datum(hstore::pairs(value.as_bytes()).filter(|pair| !drops(pair)).collect())
}

fn text(value: Option<&str>) -> Datum {
    value.map_or(Datum::Null, Datum::text)
}

/// The elements of a text[].
fn texts(array: &Array) -> impl Iterator<Item = Option<&str>> {
    array.elements.iter().map(|element| (!element.is_null()).then(|| element.as_str()))
}

fn text_array(elements: Vec<Datum>) -> Datum {
    one_dimensional(oids::TEXT, elements)
}

fn null_key() -> DbError {
    err!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for hstore key")
}

fn contains(value: &Datum, part: &Datum) -> bool {
    let pairs = pairs(value);
    hstore::pairs(part.as_bytes()).all(|pair| find(&pairs, pair.0) == Some(pair.1))
}

fn key(value: &Datum) -> Vec<u8> {
    let mut key = Vec::new();
    hstore::sort_key(value.as_bytes(), &mut key);
    key
}

fn rows(value: &Datum, row: impl Fn(Pair<'_>) -> Vec<Datum>) -> Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send> {
    let rows: Vec<Vec<Datum>> = hstore::pairs(value.as_bytes()).map(row).collect();
    Box::new(rows.into_iter().map(Ok))
}

/// The bytes that PostgreSQL holds and hashes, so that hashes are the same numbers: the count, the end of each part, and the texts.
fn hashed(value: &Datum) -> Vec<u8> {
    const NEW_FORM: u32 = 1 << 31;
    const FIRST: u32 = 1 << 31;
    const IS_NULL: u32 = 1 << 30;
    let pairs = pairs(value);
    let (mut ends, mut texts) = (Vec::new(), Vec::new());
    for part in pairs.iter().flat_map(|(key, value)| [Some(*key), *value]) {
        texts.extend_from_slice(part.unwrap_or_default().as_bytes());
        let flags = if ends.is_empty() { FIRST } else { 0 } | if part.is_none() { IS_NULL } else { 0 };
        ends.extend_from_slice(&(texts.len() as u32 | flags).to_le_bytes());
    }
    [&(pairs.len() as u32 | NEW_FORM).to_le_bytes()[..], &ends, &texts].concat()
}
