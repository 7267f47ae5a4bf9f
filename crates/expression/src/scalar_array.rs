//! `scalar op ANY/ALL (array)`, and IN with a list.

use hashbrown::HashSet;
use melba_fmgr::Operand;
use melba_types::{Batch, ColumnData, Datum, Result};

use super::ScalarArray;
use super::batch::{Vector, booleans};
use crate::key::KeyPart;
use crate::{Evaluation, key};

/// Members of a constant list, for hashed lookup.
#[derive(Debug, Default)]
pub struct Members {
    keys: HashSet<Vec<u8>>,
    has_null: bool,
}

impl Members {
    pub fn new(values: &[Datum]) -> Members {
        let mut members = Members::default();
        for value in values {
            if value.is_null() {
                members.has_null = true;
                continue;
            }
            let mut bytes = Vec::new();
            key::equality_key(value, &mut bytes);
            members.keys.insert(bytes);
        }
        members
    }

    /// The result of `= ANY` (`<> ALL` when not `any`) for a value with a key; members are made for no other comparison.
    fn test(&self, key: &[u8], any: bool) -> Option<bool> {
        match (self.keys.contains(key), self.has_null) {
            (true, _) => Some(any),
            (false, true) => None,
            (false, false) => Some(!any),
        }
    }
}

/// `scalar op ANY (array)`: true if any comparison is, else NULL if any is NULL, else false; ALL is its dual.
pub(super) fn eval_row(s: &ScalarArray, ctx: &Evaluation, scalar: Datum, array: Datum) -> Result<Datum> {
    let mut info = None;
    value(s, |args| s.call.invoke(info.get_or_insert_with(|| s.call.info(ctx)), args), scalar, array)
}

/// The same by a comparison of two values.
pub(super) fn value(
    s: &ScalarArray,
    mut compare: impl FnMut(&[Datum]) -> Result<Datum>,
    scalar: Datum,
    array: Datum,
) -> Result<Datum> {
    let Datum::Array(array) = &array else { return Ok(Datum::Null) };
    if array.elements.is_empty() {
        return Ok(Datum::Bool(!s.any));
    }
    if scalar.is_null() && s.call.strict {
        return Ok(Datum::Null);
    }
    if let Some(members) = &s.members {
        let mut bytes = Vec::with_capacity(16);
        key::equality_key(&scalar, &mut bytes);
        return Ok(members.test(&bytes, s.any).map_or(Datum::Null, Datum::Bool));
    }
    let mut unknown = false;
    let mut args = [scalar, Datum::Null];
    for element in &array.elements {
        args[1] = element.clone();
        match compare(&args)? {
            Datum::Bool(v) if v == s.any => return Ok(Datum::Bool(s.any)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!s.any) })
}

/// The same for every row of a batch and a constant array; `None` when rows must be evaluated one by one: also when a comparison
/// fails, because an element before may decide a row.
pub(super) fn eval_batch<'a>(s: &ScalarArray, ctx: &Evaluation, batch: &Batch) -> Result<Option<Vector<'a>>> {
    let Some(Datum::Array(array)) = s.call.args[1].as_const() else { return Ok(None) };
    if array.elements.is_empty() || !s.call.strict || s.call.volatile {
        return Ok(None);
    }
    let scalars = s.call.args[0].eval_vector(ctx, batch)?;
    if matches!(scalars, Vector::Scalar(_)) {
        return Ok(None);
    }
    if let Some(members) = &s.members {
        let (part, mut bytes) = (KeyPart::default(), Vec::new());
        return Ok(Some(booleans(batch.rows, |i| {
            if scalars.is_null(i) {
                return None;
            }
            bytes.clear();
            scalars.encode_key(&part, i, &mut bytes);
            members.test(&bytes, s.any)
        })));
    }
    let Some(kernel) = s.call.vector else { return Ok(None) };
    let info = s.call.info(ctx);
    let mut decided = vec![false; batch.rows];
    for element in array.elements.iter().filter(|element| !element.is_null()) {
        let Ok(tested) = kernel(&info, &[scalars.operand(), Operand::Scalar(element)], batch.rows) else { return Ok(None) };
        let ColumnData::Bool(holds) = &tested.data else { return Ok(None) };
        decided.iter_mut().zip(holds).for_each(|(decided, holds)| *decided |= *holds == s.any);
    }
    let has_null = array.elements.iter().any(Datum::is_null);
    Ok(Some(booleans(batch.rows, |i| match decided[i] {
        _ if scalars.is_null(i) => None,
        true => Some(s.any),
        false if has_null => None,
        false => Some(!s.any),
    })))
}
