//! jsonb: JSON in a binary form that is read without being decoded.
//!
//! ```text
//! jsonb    u8 version (1), node
//! node     u8 kind + 8 * width, payload
//! kinds    0 null   1 false   2 true                    no payload
//!          3 number                                     storage format of a numeric, to the end
//!          4 string                                     UTF-8, to the end
//!          5 array   count, count x end                 nodes end to end
//!          6 object  count, count x key end, count x end   keys end to end, nodes end to end
//! width    bytes of a count or end: 0: 1, 1: 2, 2: 4; little-endian
//! end      where the element ends, counted from the start of the first key or node
//! ```
//!
//! Invariants:
//! 1. The keys of an object differ and are sorted by length, then by bytes, as PostgreSQL has them.
//! 2. Element `i` is found in constant time, a key by binary search; neither touches other values.
//! 3. Malformed bytes read as null, or as an empty container: they come from storage that has checksums, and a reader
//!    cannot be made to panic by them.

mod compare;
mod text;
mod value;

pub use compare::{contains, sort_key};
pub use text::{write, write_pretty};
pub use value::{JsonbValue, compare_keys};

use crate::Numeric;

pub(crate) const VERSION: u8 = 1;
const KIND_NULL: u8 = 0;
const KIND_FALSE: u8 = 1;
const KIND_TRUE: u8 = 2;
const KIND_NUMBER: u8 = 3;
const KIND_STRING: u8 = 4;
const KIND_ARRAY: u8 = 5;
const KIND_OBJECT: u8 = 6;
const WIDTH_STEP: u8 = 8;

/// A value inside a jsonb.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(&'a [u8]);

/// A value, one level decoded.
#[derive(Clone, Debug)]
pub enum View<'a> {
    Null,
    Bool(bool),
    Number(Numeric),
    String(&'a str),
    Array(JsonbArray<'a>),
    Object(JsonbObject<'a>),
}

#[derive(Clone, Copy, Debug)]
pub struct JsonbArray<'a> {
    count: usize,
    width: usize,
    ends: &'a [u8],
    data: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub struct JsonbObject<'a> {
    count: usize,
    width: usize,
    key_ends: &'a [u8],
    ends: &'a [u8],
    keys: &'a [u8],
    data: &'a [u8],
}

/// The `i`-th number of a table of them.
fn entry(table: &[u8], width: usize, i: usize) -> usize {
    let mut bytes = [0; 8];
    match table.get(i * width..(i + 1) * width) {
        Some(entry) => bytes[..width].copy_from_slice(entry),
        None => return 0,
    }
    u64::from_le_bytes(bytes) as usize
}

fn element<'a>(ends: &[u8], width: usize, data: &'a [u8], i: usize) -> &'a [u8] {
    let start = if i == 0 { 0 } else { entry(ends, width, i - 1) };
    data.get(start..entry(ends, width, i)).unwrap_or(&[])
}

impl<'a> Json<'a> {
    /// The root of a stored jsonb.
    pub fn root(bytes: &'a [u8]) -> Json<'a> {
        match bytes.split_first() {
            Some((&VERSION, node)) => Json(node),
            _ => Json(&[]),
        }
    }

    /// A separate jsonb with this value.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() + 1);
        out.push(VERSION);
        out.extend_from_slice(if self.0.is_empty() { &[KIND_NULL] } else { self.0 });
        out
    }

    pub fn view(self) -> View<'a> {
        let Some((&tag, payload)) = self.0.split_first() else { return View::Null };
        match tag % WIDTH_STEP {
            KIND_FALSE => View::Bool(false),
            KIND_TRUE => View::Bool(true),
            KIND_NUMBER => Numeric::decode(payload).map_or(View::Null, View::Number),
            KIND_STRING => View::String(std::str::from_utf8(payload).unwrap_or("")),
            KIND_ARRAY => {
                View::Array(JsonbArray::read(tag, payload).unwrap_or(JsonbArray { count: 0, width: 1, ends: &[], data: &[] }))
            }
            KIND_OBJECT => View::Object(JsonbObject::read(tag, payload).unwrap_or(JsonbObject {
                count: 0,
                width: 1,
                key_ends: &[],
                ends: &[],
                keys: &[],
                data: &[],
            })),
            _ => View::Null,
        }
    }

    fn kind(self) -> u8 {
        self.0.first().map_or(KIND_NULL, |tag| tag % WIDTH_STEP)
    }

    pub fn is_null(self) -> bool {
        self.kind() == KIND_NULL
    }

    pub fn is_array(self) -> bool {
        self.kind() == KIND_ARRAY
    }

    pub fn is_object(self) -> bool {
        self.kind() == KIND_OBJECT
    }

    pub fn is_scalar(self) -> bool {
        self.kind() < KIND_ARRAY
    }

    /// The result of jsonb_typeof.
    pub fn type_name(self) -> &'static str {
        ["null", "boolean", "boolean", "number", "string", "array", "object", "null"][usize::from(self.kind())]
    }

    /// The field of an object; `None` also for values that are no objects.
    pub fn field(self, key: &str) -> Option<Json<'a>> {
        match self.view() {
            View::Object(object) => object.get(key),
            _ => None,
        }
    }

    /// The element of an array, from the end when negative; `None` also for values that are no arrays.
    pub fn index(self, index: i64) -> Option<Json<'a>> {
        match self.view() {
            View::Array(array) => array.at(index),
            _ => None,
        }
    }
}

fn width_of(tag: u8) -> usize {
    1 << (tag / WIDTH_STEP).min(3)
}

impl<'a> JsonbArray<'a> {
    fn read(tag: u8, payload: &'a [u8]) -> Option<JsonbArray<'a>> {
        let width = width_of(tag);
        let (count, rest) = payload.split_at_checked(width)?;
        let count = entry(count, width, 0);
        let (ends, data) = rest.split_at_checked(count.checked_mul(width)?)?;
        Some(JsonbArray { count, width, ends, data })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn get(&self, i: usize) -> Option<Json<'a>> {
        (i < self.count).then(|| Json(element(self.ends, self.width, self.data, i)))
    }

    /// By index, from the end when negative.
    pub fn at(&self, index: i64) -> Option<Json<'a>> {
        let i = if index < 0 { self.count as i64 + index } else { index };
        usize::try_from(i).ok().and_then(|i| self.get(i))
    }

    pub fn iter(self) -> impl Iterator<Item = Json<'a>> {
        (0..self.count).map(move |i| Json(element(self.ends, self.width, self.data, i)))
    }
}

impl<'a> JsonbObject<'a> {
    fn read(tag: u8, payload: &'a [u8]) -> Option<JsonbObject<'a>> {
        let width = width_of(tag);
        let (count, rest) = payload.split_at_checked(width)?;
        let count = entry(count, width, 0);
        let table = count.checked_mul(width)?;
        let (key_ends, rest) = rest.split_at_checked(table)?;
        let (ends, rest) = rest.split_at_checked(table)?;
        let keys_length = if count == 0 { 0 } else { entry(key_ends, width, count - 1) };
        let (keys, data) = rest.split_at_checked(keys_length)?;
        Some(JsonbObject { count, width, key_ends, ends, keys, data })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn key(&self, i: usize) -> &'a str {
        std::str::from_utf8(element(self.key_ends, self.width, self.keys, i)).unwrap_or("")
    }

    pub fn value(&self, i: usize) -> Json<'a> {
        Json(element(self.ends, self.width, self.data, i))
    }

    pub fn get(&self, key: &str) -> Option<Json<'a>> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            let found = element(self.key_ends, self.width, self.keys, middle);
            match found.len().cmp(&key.len()).then_with(|| found.cmp(key.as_bytes())) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(self.value(middle)),
            }
        }
        None
    }

    pub fn iter(self) -> impl Iterator<Item = (&'a str, Json<'a>)> {
        (0..self.count).map(move |i| (self.key(i), self.value(i)))
    }
}

#[cfg(test)]
mod tests;
