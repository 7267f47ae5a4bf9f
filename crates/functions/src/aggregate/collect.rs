//! string_agg, array_agg, any_value.

use std::sync::Arc;

use melba_fmgr::{Aggregate, AggregateFn, CallInfo, lookup};
use melba_types::limits::{self, VALUE_BYTES_MAX};
use melba_types::{Array, ArrayDim, Datum, Oid, Result, err};

use super::{any, same};

pub const AGGREGATES: &[(&str, &str, AggregateFn)] = &[
    ("string_agg_transfn", "string_agg_finalfn", |_| Ok(Box::new(Joined { bytes: None, text: true }))),
    ("bytea_string_agg_transfn", "bytea_string_agg_finalfn", |_| Ok(Box::new(Joined { bytes: None, text: false }))),
    ("array_agg_transfn", "array_agg_finalfn", |_| Ok(Box::new(Collected { elements: Vec::new(), memory: 0 }))),
    ("array_agg_array_transfn", "array_agg_array_finalfn", |_| {
        Ok(Box::new(Stacked { count: 0, dims: Vec::new(), element_type: Oid::INVALID, elements: Vec::new(), memory: 0 }))
    }),
    ("any_value_transfn", "", |_| Ok(Box::new(AnyValue { value: Datum::Null }))),
];

/// Values end to end, each but the first after its delimiter.
struct Joined {
    bytes: Option<Vec<u8>>,
    text: bool,
}

fn bytes_of(v: &Datum) -> &[u8] {
    match v {
        Datum::Text(v) => v.as_bytes(),
        Datum::Null => &[],
        v => v.as_bytes(),
    }
}

impl Aggregate for Joined {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        match &mut self.bytes {
            None => self.bytes = Some(bytes_of(&args[0]).to_vec()),
            Some(bytes) => {
                bytes.extend_from_slice(args.get(1).map_or(&[], bytes_of));
                bytes.extend_from_slice(bytes_of(&args[0]));
            }
        }
        // Before the buffer doubles.
        match &self.bytes {
            Some(bytes) if bytes.capacity() - bytes.len() < bytes.len() / 16 => limits::check_length(bytes.len()),
            Some(bytes) if bytes.len() > VALUE_BYTES_MAX => limits::check_length(bytes.len()),
            _ => Ok(()),
        }
    }

    fn merge(&mut self, _: Box<dyn Aggregate>) -> Result<()> {
        // The delimiter of the other's first value was not kept.
        Err(melba_types::DbError::internal("string_agg is not merged"))
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        limits::check_length(self.bytes.as_ref().map_or(0, Vec::len))?;
        match &self.bytes {
            None => Ok(Datum::Null),
            Some(bytes) if self.text => Ok(Datum::text(melba_fmgr::io::into_string(bytes.clone())?)),
            Some(bytes) => Ok(Datum::bytes(bytes.as_slice())),
        }
    }

    any!();

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        64 + self.bytes.as_ref().map_or(0, Vec::capacity)
    }
}

/// PostgreSQL's overhead for each value of an array that it collects.
const POINTER_BYTES: usize = 8;

/// Before the memory of collected values doubles.
fn check_doubling(elements: &[Datum]) -> Result<()> {
    limits::check_request(2 * elements.len() * POINTER_BYTES)?;
    limits::check_memory(2 * size_of_val(elements))
}

/// An array of all values, nulls included.
struct Collected {
    elements: Vec<Datum>,
    memory: usize,
}

impl Aggregate for Collected {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        self.memory += args[0].heap_bytes();
        if self.elements.len() == self.elements.capacity() {
            check_doubling(&self.elements)?;
        }
        self.elements.push(args[0].clone());
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<Collected>(other)?;
        self.memory += other.memory;
        self.elements.extend(other.elements);
        Ok(())
    }

    fn finish(&self, call: &CallInfo<'_>) -> Result<Datum> {
        if self.elements.is_empty() {
            return Ok(Datum::Null);
        }
        limits::check_request(self.elements.len() * POINTER_BYTES)?;
        let from_result = lookup::array_element(call.session, call.return_type);
        let element_type = from_result.or(call.arg_types.first().copied()).unwrap_or(Oid::INVALID);
        let dims = vec![ArrayDim { length: self.elements.len() as i32, lower_bound: 1 }];
        Ok(Datum::Array(Arc::new(Array { element_type, dims, elements: self.elements.clone() })))
    }

    any!();

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        64 + self.elements.capacity() * 24 + self.memory
    }
}

/// An array of arrays of equal shape, one dimension more.
struct Stacked {
    count: i32,
    dims: Vec<ArrayDim>,
    element_type: Oid,
    elements: Vec<Datum>,
    memory: usize,
}

impl Aggregate for Stacked {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        let Datum::Array(array) = &args[0] else {
            return Err(err!(NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays"));
        };
        if array.elements.is_empty() {
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays"));
        }
        if self.count == 0 {
            if array.dims.len() >= melba_types::array::DIMENSIONS_MAX {
                return Err(crate::array::io::too_many_dimensions());
            }
            (self.dims, self.element_type) = (array.dims.clone(), array.element_type);
        } else if self.dims != array.dims {
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate arrays of different dimensionality"));
        }
        self.count += 1;
        self.memory += args[0].heap_bytes();
        if self.elements.capacity() - self.elements.len() < array.elements.len() {
            check_doubling(&self.elements)?;
        }
        self.elements.extend_from_slice(&array.elements);
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<Stacked>(other)?;
        if self.count == 0 {
            *self = *other;
            return Ok(());
        }
        if other.count > 0 && self.dims != other.dims {
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate arrays of different dimensionality"));
        }
        self.count += other.count;
        self.memory += other.memory;
        self.elements.extend(other.elements);
        Ok(())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let mut dims = vec![ArrayDim { length: self.count, lower_bound: 1 }];
        dims.extend_from_slice(&self.dims);
        Ok(Datum::Array(Arc::new(Array { element_type: self.element_type, dims, elements: self.elements.clone() })))
    }

    any!();

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        64 + self.elements.capacity() * 24 + self.memory
    }
}

/// The first value that is not null.
struct AnyValue {
    value: Datum,
}

impl Aggregate for AnyValue {
    fn add(&mut self, _: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if self.value.is_null() {
            self.value = args[0].clone();
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<AnyValue>(other)?;
        if self.value.is_null() {
            self.value = other.value;
        }
        Ok(())
    }

    fn finish(&self, _: &CallInfo<'_>) -> Result<Datum> {
        Ok(self.value.clone())
    }

    any!();
}
