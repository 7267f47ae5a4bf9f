//! The columns of GIN indexes, and their entries.
//!
//! An entry of a GIN index is a key and a row id; a row has an entry for each of its keys:
//!
//! ```text
//! u8 number of the index's column, from 1
//! u8 category
//!    0 a key          its bytes, as the operator class makes them
//!    1 a long key     the hash of its bytes, 16 bytes
//!    2 a NULL key     (an element that is NULL)
//!    3 no keys        (an empty array)
//!    4 a NULL value
//! ```
//!
//! Invariants:
//! 1. A row has at least one entry for each column of an index.
//! 2. A row that satisfies a condition has the entries that `GinQuery` demands; others may have them too, so conditions are checked
//!    for the rows found.

use std::ops::Range;

use melba_catalog::{Catalog, IndexInfo, classes};
use melba_types::key::{KeyColumn, KeyType};
use melba_types::{Datum, DbError, Kind, Oid, Result, bail};
use xxhash_rust::xxh3::xxh3_128;

use crate::gin::{GinKey, GinQuery, GinSupport};
use crate::{Session, order, registry};

/// Longer keys are hashed, as those of jsonb_ops are in PostgreSQL (JGIN_MAXLENGTH).
const KEY_BYTES_MAX: usize = 125;
/// The numbers of the support functions in pg_amproc.
const EXTRACT_VALUE: i16 = 2;
const EXTRACT_QUERY: i16 = 3;
/// That of gist's compress, which makes an index's keys of a value.
const COMPRESS: i16 = 3;

const KEY: u8 = 0;
const LONG_KEY: u8 = 1;
const NULL_KEY: u8 = 2;
const NO_KEYS: u8 = 3;
const NULL_VALUE: u8 = 4;

/// A column of a GIN index.
#[derive(Clone, Debug)]
pub struct GinColumn {
    number: u8,
    support: GinSupport,
    element: KeyColumn,
}

impl GinColumn {
    /// The columns of an index.
    ///
    /// # Errors
    /// 0A000 for an operator class without functions, 42883 when the elements of a type cannot be compared.
    pub fn of_index(catalog: &Catalog, index: &IndexInfo) -> Result<Vec<GinColumn>> {
        (1..).zip(&index.keys).map(|(number, key)| GinColumn::new(catalog, number, key.opclass, key.ty)).collect()
    }

    /// Column `number` of an index, from 1, with values of a type in an operator class.
    fn new(catalog: &Catalog, number: usize, opclass: Oid, ty: Oid) -> Result<GinColumn> {
        let access = catalog.access_methods();
        let class = access.class(opclass).ok_or_else(|| DbError::internal(format!("could not find operator class {opclass}")))?;
        let (method, support) = if class.method == classes::GIST { ("gist", COMPRESS) } else { ("gin", EXTRACT_VALUE) };
        let function = |number| access.function(class.family, class.input_type, class.input_type, number);
        let found = |number| registry::gin(&catalog.function(function(number)?)?.source);
        // Classes may share the function that makes the keys of a value.
        let support = found(EXTRACT_QUERY).or_else(|| found(support));
        let support = support.ok_or_else(|| DbError::unsupported(format!("operator class \"{}\" of {method}", class.name)))?;
        let element = catalog.array_element(ty);
        let key_type = element.map_or(Ok(KeyType::Plain(Kind::Text)), |ty| compared_type(catalog, ty))?;
        let element = KeyColumn { ty: by_equality(key_type), descending: false, nulls_first: false };
        Ok(GinColumn { number: number as u8, support, element })
    }

    /// The entries of a value.
    pub fn entries(&self, value: &Datum, out: &mut Vec<Vec<u8>>) -> Result<()> {
        if value.is_null() {
            out.push(vec![self.number, NULL_VALUE]);
            return Ok(());
        }
        let keys = (self.support.extract_value)(&self.element, value)?;
        if keys.is_empty() {
            out.push(self.entry(&GinKey::None));
        }
        out.extend(keys.iter().map(|key| self.entry(key)));
        Ok(())
    }

    /// What a row must have that satisfies a condition with a value on the right.
    pub fn query(&self, strategy: i16, value: &Datum, session: &dyn Session) -> Result<GinQuery> {
        (self.support.extract_query)(&self.element, strategy, value, session)
    }

    /// The entry of a key.
    pub fn entry(&self, key: &GinKey) -> Vec<u8> {
        match key {
            GinKey::Key(bytes) if bytes.len() > KEY_BYTES_MAX => {
                [&[self.number, LONG_KEY][..], &xxh3_128(bytes).to_be_bytes()].concat()
            }
            GinKey::Key(bytes) => [&[self.number, KEY][..], bytes].concat(),
            GinKey::Null => vec![self.number, NULL_KEY],
            GinKey::None => vec![self.number, NO_KEYS],
        }
    }

    /// The entries of keys that begin with some bytes, and of all long keys, of which that is not known.
    pub fn with_prefix(&self, prefix: &[u8]) -> [Range<Vec<u8>>; 2] {
        let start = [&[self.number, KEY][..], prefix].concat();
        let mut end = start.clone();
        // The category, before the bytes, has a successor.
        while end.pop_if(|last| *last == u8::MAX).is_some() {}
        end.iter_mut().next_back().into_iter().for_each(|last| *last += 1);
        [start..end, vec![self.number, LONG_KEY]..vec![self.number, NULL_KEY]]
    }

    /// The entries of rows with a value.
    pub fn all(&self) -> Range<Vec<u8>> {
        vec![self.number, KEY]..vec![self.number, NULL_VALUE]
    }
}

fn compared_type(catalog: &Catalog, ty: Oid) -> Result<KeyType> {
    if !catalog.type_operators(ty).compare.is_valid() {
        let name = catalog.type_name(ty, &[melba_catalog::classes::PG_CATALOG]);
        bail!(UNDEFINED_FUNCTION, "could not identify a comparison function for type {name}");
    }
    order::catalog_key_type(catalog, ty, Oid::INVALID)
}

/// Labels of an enum by their OIDs: their places may change.
fn by_equality(ty: KeyType) -> KeyType {
    match ty {
        KeyType::Enum(_) => KeyType::Plain(Kind::Oid),
        KeyType::Array(oid, of) => KeyType::Array(oid, Box::new(by_equality(*of))),
        KeyType::Range(oid, of) => KeyType::Range(oid, Box::new(by_equality(*of))),
        KeyType::Multirange(oid, of) => KeyType::Multirange(oid, Box::new(by_equality(*of))),
        KeyType::Record(oid, fields) => {
            KeyType::Record(oid, fields.iter().map(|(ty, of)| (*ty, by_equality(of.clone()))).collect())
        }
        other => other,
    }
}
