//! The items that a path passes from step to step: parts of the document, and values that steps make.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use melba_types::datetime::{DateOrder, DateStyle, format};
use melba_types::jsonb::JsonbValue;
use melba_types::timezone::Zone;
use melba_types::{Datum, Numeric, Oid, Result, limits, oids};

/// A date or time: `ty` is one of the five types.
#[derive(Clone, Debug)]
pub struct DateTime {
    pub(super) ty: Oid,
    pub(super) value: Datum,
    /// The offset (seconds east) in which a timestamptz is shown.
    pub(super) offset: i32,
}

impl DateTime {
    /// As in JSON: ISO 8601.
    pub fn to_text(&self) -> String {
        let mut out = Vec::new();
        match self.ty {
            oids::DATE => format::write_date(self.value.as_i32(), DateStyle::Iso, DateOrder::Mdy, &mut out),
            oids::TIME => format::write_time(self.value.as_i64(), &mut out),
            oids::TIMETZ => format::write_timetz_xsd(self.value.as_timetz(), &mut out),
            oids::TIMESTAMP => format::write_timestamp_xsd(self.value.as_i64(), None, &mut out),
            _ => format::write_timestamp_xsd(self.value.as_i64(), Some(&Zone::fixed(self.offset)), &mut out),
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The result of type().
    pub fn type_name(&self) -> &'static str {
        match self.ty {
            oids::DATE => "date",
            oids::TIME => "time without time zone",
            oids::TIMETZ => "time with time zone",
            oids::TIMESTAMP => "timestamp without time zone",
            _ => "timestamp with time zone",
        }
    }
}

#[derive(Clone)]
pub enum Item<'a> {
    /// A part of the document, or of the variables.
    Part(&'a JsonbValue, Rc<Base<'a>>),
    /// A number, string, boolean or null of the path itself, or made by a step.
    Made(JsonbValue),
    /// An object made by keyvalue().
    Pair(Rc<Pair<'a>>),
    DateTime(DateTime),
}

/// The result of keyvalue() for one field.
pub struct Pair<'a> {
    id: Numeric,
    key: JsonbValue,
    value: Item<'a>,
    /// The number of the object among those that the path makes.
    number: i64,
}

/// A document, by which keyvalue() distinguishes objects: the number of the document times 10^10, and the object's place in
/// PostgreSQL's binary form of it.
pub struct Base<'a> {
    number: i64,
    tree: &'a JsonbValue,
    /// Where the tree lies in the document.
    start: usize,
    /// Places of the containers, by address; computed on demand.
    places: OnceCell<HashMap<*const JsonbValue, usize>>,
}

const ID_STEP: i64 = 10_000_000_000;

impl<'a> Base<'a> {
    pub fn new(number: i64, tree: &'a JsonbValue, start: usize) -> Rc<Base<'a>> {
        Rc::new(Base { number, tree, start, places: OnceCell::new() })
    }

    fn id(&self, object: &JsonbValue) -> Result<i64> {
        let places = match self.places.get() {
            Some(places) => places,
            None => {
                let mut places = HashMap::new();
                place(self.tree, self.start, &mut places)?;
                self.places.get_or_init(|| places)
            }
        };
        let place = places.get(&std::ptr::from_ref(object)).copied().unwrap_or(0);
        Ok(self.number * ID_STEP + place as i64)
    }
}

impl<'a> Item<'a> {
    pub fn number(value: Numeric) -> Item<'a> {
        Item::Made(JsonbValue::Number(value))
    }

    pub fn integer(value: i64) -> Item<'a> {
        Item::number(Numeric::from_parts(i128::from(value), 0))
    }

    pub fn string(text: impl Into<String>) -> Item<'a> {
        Item::Made(JsonbValue::String(text.into()))
    }

    /// The JSON value, of items that are held as one.
    pub fn value(&self) -> Option<&JsonbValue> {
        match self {
            Item::Part(value, _) => Some(value),
            Item::Made(value) => Some(value),
            Item::Pair(_) | Item::DateTime(_) => None,
        }
    }

    pub fn to_value(&self) -> JsonbValue {
        match self {
            Item::Part(value, _) => (*value).clone(),
            Item::Made(value) => value.clone(),
            Item::Pair(pair) => JsonbValue::Object(pair.fields().map(|(name, item)| (name.to_owned(), item.to_value())).into()),
            Item::DateTime(value) => JsonbValue::String(value.to_text()),
        }
    }

    pub fn is_container(&self) -> bool {
        matches!(self, Item::Pair(_)) || matches!(self, Item::Part(JsonbValue::Array(_) | JsonbValue::Object(_), _))
    }

    /// The elements of an array; `None` for other items.
    pub fn elements(&self) -> Option<impl ExactSizeIterator<Item = Item<'a>> + use<'a>> {
        let Item::Part(JsonbValue::Array(elements), base) = self else { return None };
        let (elements, base): (&'a [JsonbValue], _) = (elements, base.clone());
        Some(elements.iter().map(move |element| Item::Part(element, base.clone())))
    }

    /// The fields of an object.
    pub fn fields(&self) -> Option<Vec<(&'a str, Item<'a>)>> {
        match self {
            Item::Part(JsonbValue::Object(fields), base) => {
                Some(fields.iter().map(|(name, value)| (name.as_str(), Item::Part(value, base.clone()))).collect())
            }
            Item::Pair(pair) => Some(pair.fields().into()),
            _ => None,
        }
    }

    /// A field of an object, if it has one of that name; `None` for other items.
    pub fn field(&self, key: &str) -> Option<Option<Item<'a>>> {
        match self {
            Item::Part(JsonbValue::Object(fields), base) => {
                let found = fields.binary_search_by(|(name, _)| melba_types::jsonb::compare_keys(name, key));
                Some(found.ok().map(|i| Item::Part(&fields[i].1, base.clone())))
            }
            Item::Pair(pair) => Some(pair.fields().into_iter().find(|(name, _)| *name == key).map(|(_, item)| item)),
            _ => None,
        }
    }

    /// The result of keyvalue() for an object, each pair numbered by `next_number` when it is made; `None` for other items.
    pub fn pairs(&self, next_number: impl Fn() -> i64) -> Result<Option<impl Iterator<Item = Item<'a>>>> {
        let id = match self {
            Item::Part(object @ JsonbValue::Object(_), base) => base.id(object)?,
            Item::Pair(pair) => pair.number * ID_STEP,
            _ => return Ok(None),
        };
        let id = Numeric::from_parts(i128::from(id), 0);
        let pair = move |(key, value): (&str, Item<'a>)| {
            let number = next_number();
            let value = match value {
                Item::Part(value, _) => Item::Part(value, Base::new(number, value, place_in_pair(&id, key))),
                other => other,
            };
            Item::Pair(Rc::new(Pair { id: id.clone(), key: JsonbValue::String(key.to_owned()), value, number }))
        };
        Ok(self.fields().map(|fields| fields.into_iter().map(pair)))
    }
}

impl<'a> Pair<'a> {
    fn fields(&self) -> [(&'static str, Item<'a>); 3] {
        [("id", Item::number(self.id.clone())), ("key", Item::Made(self.key.clone())), ("value", self.value.clone())]
    }
}

fn aligned(place: usize) -> usize {
    place.next_multiple_of(4)
}

/// Where PostgreSQL's form of an object with fields id, key and value has the value.
fn place_in_pair(id: &Numeric, key: &str) -> usize {
    let keys = 4 + 6 * 4 + "idkeyvalue".len();
    aligned(aligned(keys) + id.postgres_bytes() + key.len())
}

/// Notes the places of the containers in a value that begins at `start` in PostgreSQL's form; returns where it ends.
///
/// A container is a word that counts, a word for each key and value, the keys, and the values; numbers and containers begin at
/// multiples of four. null, true and false take no room.
fn place(value: &JsonbValue, start: usize, places: &mut HashMap<*const JsonbValue, usize>) -> Result<usize> {
    limits::check_stack()?;
    limits::tick()?;
    match value {
        JsonbValue::Null | JsonbValue::Bool(_) => Ok(start),
        JsonbValue::Number(number) => Ok(aligned(start) + number.postgres_bytes()),
        JsonbValue::String(text) => Ok(start + text.len()),
        JsonbValue::Array(elements) => {
            let start = aligned(start);
            places.insert(value, start);
            elements.iter().try_fold(start + 4 + 4 * elements.len(), |end, element| place(element, end, places))
        }
        JsonbValue::Object(fields) => {
            let start = aligned(start);
            places.insert(value, start);
            let keys: usize = fields.iter().map(|(key, _)| key.len()).sum();
            fields.iter().try_fold(start + 4 + 8 * fields.len() + keys, |end, (_, value)| place(value, end, places))
        }
    }
}
