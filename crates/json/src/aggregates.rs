//! json_agg, json_object_agg and their jsonb and strict and unique forms.

use std::any::Any;
use std::collections::HashSet;

use melba_fmgr::{Aggregate, AggregateFn, CallInfo, io};
use melba_types::json::write_string;
use melba_types::jsonb::JsonbValue;
use melba_types::{Datum, DbError, Result, err, limits};

use super::build::{append_json, argument_type, is_structured, key_text, null_key, to_value};
use super::datum;

pub const AGGREGATES: &[(&str, &str, AggregateFn)] = &[
    ("json_agg_transfn", "json_agg_finalfn", |_| Ok(Box::new(TextArray::new(false)))),
    ("json_agg_strict_transfn", "json_agg_finalfn", |_| Ok(Box::new(TextArray::new(true)))),
    ("jsonb_agg_transfn", "jsonb_agg_finalfn", |_| Ok(Box::new(ValueArray { elements: None, skip_nulls: false, memory: 0 }))),
    ("jsonb_agg_strict_transfn", "jsonb_agg_finalfn", |_| {
        Ok(Box::new(ValueArray { elements: None, skip_nulls: true, memory: 0 }))
    }),
    ("json_object_agg_transfn", "json_object_agg_finalfn", |_| Ok(Box::new(TextObject::new(false, false)))),
    ("json_object_agg_strict_transfn", "json_object_agg_finalfn", |_| Ok(Box::new(TextObject::new(true, false)))),
    ("json_object_agg_unique_transfn", "json_object_agg_finalfn", |_| Ok(Box::new(TextObject::new(false, true)))),
    ("json_object_agg_unique_strict_transfn", "json_object_agg_finalfn", |_| Ok(Box::new(TextObject::new(true, true)))),
    ("jsonb_object_agg_transfn", "jsonb_object_agg_finalfn", |_| Ok(Box::new(ValueObject::new(false, false)))),
    ("jsonb_object_agg_strict_transfn", "jsonb_object_agg_finalfn", |_| Ok(Box::new(ValueObject::new(true, false)))),
    ("jsonb_object_agg_unique_transfn", "jsonb_object_agg_finalfn", |_| Ok(Box::new(ValueObject::new(false, true)))),
    ("jsonb_object_agg_unique_strict_transfn", "jsonb_object_agg_finalfn", |_| Ok(Box::new(ValueObject::new(true, true)))),
];

fn not_merged() -> DbError {
    DbError::internal("JSON aggregates depend on the order of their input and are not merged")
}

/// json_agg: the text so far, without the closing bracket.
struct TextArray {
    text: Option<Vec<u8>>,
    skip_nulls: bool,
}

impl TextArray {
    fn new(skip_nulls: bool) -> TextArray {
        TextArray { text: None, skip_nulls }
    }
}

impl Aggregate for TextArray {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        let text = self.text.get_or_insert_with(|| vec![b'[']);
        if args[0].is_null() && self.skip_nulls {
            return Ok(());
        }
        let ty = argument_type(call, 0);
        if text.len() > 1 {
            text.extend_from_slice(b", ");
            if !args[0].is_null() && is_structured(call.session, ty) {
                text.extend_from_slice(b"\n ");
            }
        }
        append_json(call.session, ty, &args[0], text)?;
        limits::check_length(text.len())
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        Err(not_merged())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        let Some(text) = &self.text else { return Ok(Datum::Null) };
        let mut text = text.clone();
        text.push(b']');
        io::into_string(text).map(Datum::text)
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        self.text.as_ref().map_or(64, |text| text.capacity() + 64)
    }
}

/// jsonb_agg.
struct ValueArray {
    elements: Option<Vec<JsonbValue>>,
    skip_nulls: bool,
    /// Bytes that the arguments pointed to.
    memory: usize,
}

impl Aggregate for ValueArray {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        let elements = self.elements.get_or_insert_default();
        if !(args[0].is_null() && self.skip_nulls) {
            self.memory += args[0].heap_bytes();
            elements.push(to_value(call.session, argument_type(call, 0), &args[0])?);
        }
        Ok(())
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        Err(not_merged())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        self.elements.as_ref().map_or(Ok(Datum::Null), |elements| datum(&JsonbValue::Array(elements.clone())))
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        64 + self.elements.as_ref().map_or(0, |elements| elements.len() * 64 + self.memory)
    }
}

fn duplicate_key(key: &str) -> DbError {
    err!(DUPLICATE_JSON_OBJECT_KEY_VALUE, "duplicate JSON object key value: {key}")
}

/// json_object_agg.
struct TextObject {
    text: Option<Vec<u8>>,
    skip_nulls: bool,
    /// Keys seen, when they must differ.
    keys: Option<HashSet<String>>,
}

impl TextObject {
    fn new(skip_nulls: bool, unique: bool) -> TextObject {
        TextObject { text: None, skip_nulls, keys: unique.then(HashSet::new) }
    }
}

impl Aggregate for TextObject {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        let text = self.text.get_or_insert_with(|| b"{ ".to_vec());
        if args[0].is_null() {
            return Err(null_key());
        }
        if self.skip_nulls && args[1].is_null() && self.keys.is_none() {
            return Ok(());
        }
        let key = key_text(call.session, argument_type(call, 0), &args[0])?;
        if let Some(keys) = &mut self.keys {
            if !keys.insert(key.clone()) {
                let mut shown = Vec::new();
                write_string(&key, &mut shown)?;
                return Err(duplicate_key(&String::from_utf8_lossy(&shown)));
            }
            if self.skip_nulls && args[1].is_null() {
                return Ok(());
            }
        }
        if text.len() > 2 {
            text.extend_from_slice(b", ");
        }
        write_string(&key, text)?;
        text.extend_from_slice(b" : ");
        append_json(call.session, argument_type(call, 1), &args[1], text)?;
        limits::check_length(text.len())
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        Err(not_merged())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        let Some(text) = &self.text else { return Ok(Datum::Null) };
        let mut text = text.clone();
        text.extend_from_slice(b" }");
        io::into_string(text).map(Datum::text)
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        self.text.as_ref().map_or(64, |text| text.capacity() + 64)
    }
}

/// jsonb_object_agg.
struct ValueObject {
    fields: Option<Vec<(String, JsonbValue)>>,
    skip_nulls: bool,
    keys: Option<HashSet<String>>,
    /// Bytes that the arguments pointed to.
    memory: usize,
}

impl ValueObject {
    fn new(skip_nulls: bool, unique: bool) -> ValueObject {
        ValueObject { fields: None, skip_nulls, keys: unique.then(HashSet::new), memory: 0 }
    }
}

impl Aggregate for ValueObject {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        let fields = self.fields.get_or_insert_default();
        if args[0].is_null() {
            return Err(err!(INVALID_PARAMETER_VALUE, "field name must not be null"));
        }
        if self.skip_nulls && args[1].is_null() && self.keys.is_none() {
            return Ok(());
        }
        let key = key_text(call.session, argument_type(call, 0), &args[0])?;
        if let Some(keys) = &mut self.keys {
            if !keys.insert(key.clone()) {
                return Err(err!(DUPLICATE_JSON_OBJECT_KEY_VALUE, "duplicate JSON object key value"));
            }
            if self.skip_nulls && args[1].is_null() {
                return Ok(());
            }
        }
        self.memory += key.len() + args[1].heap_bytes();
        fields.push((key, to_value(call.session, argument_type(call, 1), &args[1])?));
        Ok(())
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        Err(not_merged())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        self.fields.as_ref().map_or(Ok(Datum::Null), |fields| datum(&JsonbValue::object(fields.clone())?))
    }

    fn as_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        64 + self.fields.as_ref().map_or(0, |fields| fields.len() * 96 + self.memory)
    }
}
