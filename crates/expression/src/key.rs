//! Keys by type OID, which indexes store, and sorting, grouping and hashing compare. The bytes are `types::key`'s.

use melba_catalog::{Catalog, IndexKey};
use melba_fmgr::order;
use melba_types::key::{self, KeyColumn, KeyType};
use melba_types::key_words::KeyWords;
use melba_types::{Column, Datum, Kind, Oid};

/// Byte before a value that is not null, and the first byte after all of those.
const VALUE: u8 = 1;
const AFTER_VALUES: u8 = 2;

/// One column of a key.
#[derive(Clone, Debug)]
pub struct KeyPart {
    column: KeyColumn,
}

impl Default for KeyPart {
    /// The natural order of a kind of value.
    fn default() -> KeyPart {
        KeyPart { column: KeyColumn { ty: KeyType::Plain(Kind::Text), descending: false, nulls_first: false } }
    }
}

impl KeyPart {
    /// The type of the values, and the collation by which they are compared (0: none).
    pub fn new(catalog: &Catalog, (ty, collation): (Oid, Oid), descending: bool, nulls_first: bool) -> KeyPart {
        // A type without an order, or with one of functions of users, is refused by analysis wherever one is needed.
        let ty = order::own_key_type(catalog, ty, collation).unwrap_or(KeyType::Plain(Kind::Text));
        KeyPart { column: KeyColumn { ty, descending, nulls_first } }
    }

    /// For grouping and hashing: the direction does not matter.
    pub fn equality(catalog: &Catalog, (ty, collation): (Oid, Oid)) -> KeyPart {
        KeyPart::new(catalog, (ty, order::equality_collation(catalog, collation)), false, false)
    }

    /// Of an index's column.
    pub fn of_index(catalog: &Catalog, key: &IndexKey) -> KeyPart {
        let class = catalog.access_methods().class(key.opclass);
        let ty = class.map_or(key.ty, |class| catalog.key_type_of_class(class, key.ty));
        KeyPart::new(catalog, (ty, order::index_collation(catalog, key)), key.descending, key.nulls_first)
    }

    /// Of labels of values that functions order.
    pub fn of_labels(descending: bool, nulls_first: bool) -> KeyPart {
        KeyPart { column: KeyColumn { ty: KeyType::Plain(Kind::Bytes), descending, nulls_first } }
    }

    /// Values of the type are compared only by their bytes.
    pub fn is_plain(&self) -> bool {
        matches!(self.column.ty, KeyType::Plain(_))
    }

    /// Whether no change of the catalog can change the keys.
    pub fn is_fixed(&self) -> bool {
        self.column.ty.is_fixed()
    }

    pub fn descending(&self) -> bool {
        self.column.descending
    }

    pub fn nulls_first(&self) -> bool {
        self.column.nulls_first
    }

    pub fn encode(&self, datum: &Datum, out: &mut Vec<u8>) {
        key::encode(&self.column, datum, out);
    }

    /// The same for row `i` of a column.
    #[inline]
    pub fn encode_at(&self, values: &Column, i: usize, out: &mut Vec<u8>) {
        key::encode_at(&self.column, values, i, out);
    }

    /// Appends the keys of a column to those of its rows.
    pub fn append_column(&self, values: &Column, words: &mut KeyWords) {
        words.append_column(&self.column, values);
    }

    /// Appends the key of one value to those of all rows.
    pub fn append_value(&self, value: &Datum, words: &mut KeyWords) {
        words.append_value(&self.column, value);
    }

    /// Whether keys give the values exactly, so that these need not be fetched from their rows.
    pub fn gives_values(&self) -> bool {
        use Kind::*;
        matches!(self.column.ty, KeyType::Plain(Bool | Int2 | Int4 | Int8 | Oid | Char | Text | Bytes | Uuid))
    }

    /// Reads the part's value from the front of a key: the value, and the rest. `None` when the bytes are no such key.
    pub fn decode<'k>(&self, key: &'k [u8]) -> Option<(Datum, &'k [u8])> {
        let (value, length) = key::decode(&self.column, key)?;
        Some((value, key.get(length..)?))
    }

    /// Bounds of all non-null values of the part, given the key before it: `[prefix, 1]` to `[prefix, 2)`.
    pub fn not_null_marker() -> (u8, u8) {
        (VALUE, AFTER_VALUES)
    }
}

/// Appends the equality key of a plain value.
pub fn equality_key(datum: &Datum, out: &mut Vec<u8>) {
    KeyPart::default().encode(datum, out);
}

/// Whether values are identical, two by two: 1.0 and 1.00 are not.
pub fn identical(a: &[Datum], b: &[Datum]) -> bool {
    let image = |value: &Datum| {
        let mut out = Vec::new();
        melba_types::codec::encode(value, &mut out);
        out
    };
    same(a, b) && a.iter().zip(b).all(|(v, w)| v.is_null() || image(v) == image(w))
}

/// Whether values are the same, two by two, as keys are: null is itself.
pub fn same(a: &[Datum], b: &[Datum]) -> bool {
    let key = |values: &[Datum]| {
        let mut out = Vec::new();
        values.iter().for_each(|v| equality_key(v, &mut out));
        out
    };
    key(a) == key(b)
}
