//! Functions that return sets: series, subscripts, elements of arrays, parts of strings.

use melba_collation::Occurrences;
use melba_fmgr::{CallInfo, SetFn};
use melba_types::collate::Collate;
use melba_types::limits::Ticker;
use melba_types::{Datum, Numeric, Result, err};

use crate::text::collation::{self, fields_between};

type Rows = Box<dyn Iterator<Item = Result<Vec<Datum>>> + Send>;

/// A set of one column.
pub fn rows(values: impl Iterator<Item = Datum> + Send + 'static) -> Rows {
    Box::new(values.map(|v| Ok(vec![v])))
}

pub const SETS: &[(&str, SetFn)] = &[
    ("generate_series_int4", |_, a| integers(a[0].as_i32().into(), a[1].as_i32().into(), 1, |v| Datum::Int4(v as i32))),
    ("generate_series_step_int4", |_, a| {
        integers(a[0].as_i32().into(), a[1].as_i32().into(), a[2].as_i32().into(), |v| Datum::Int4(v as i32))
    }),
    ("generate_series_int8", |_, a| integers(a[0].as_i64(), a[1].as_i64(), 1, Datum::Int8)),
    ("generate_series_step_int8", |_, a| integers(a[0].as_i64(), a[1].as_i64(), a[2].as_i64(), Datum::Int8)),
    ("generate_series_numeric", |_, a| numerics(a[0].as_numeric(), a[1].as_numeric(), &Numeric::ONE)),
    ("generate_series_step_numeric", |_, a| numerics(a[0].as_numeric(), a[1].as_numeric(), a[2].as_numeric())),
    ("generate_subscripts_nodir", |_, a| subscripts(a, false)),
    ("generate_subscripts", |_, a| subscripts(a, a[2].as_bool())),
    ("array_unnest", |_, a| {
        let array = match &a[0] {
            Datum::Array(array) => array.clone(),
            _ => return Ok(rows(std::iter::empty())),
        };
        Ok(rows((0..array.elements.len()).map(move |i| array.elements[i].clone())))
    }),
    // information_schema._pg_expandarray: elements with their places, from 1.
    ("_pg_expandarray_13329", |_, a| {
        let array = match &a[0] {
            Datum::Array(array) => array.clone(),
            _ => return Ok(rows(std::iter::empty())),
        };
        let row = move |i: usize| Ok(vec![array.elements[i].clone(), Datum::Int4(i as i32 + 1)]);
        let count = a[0].as_array().elements.len();
        Ok(Box::new((0..count).map(row)))
    }),
    ("text_to_table", |c, a| split_rows(c, a, None)),
    ("text_to_table_null", |c, a| split_rows(c, a, a.get(2))),
];

fn integers(start: i64, stop: i64, step: i64, make: fn(i64) -> Datum) -> Result<Rows> {
    if step == 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "step size cannot equal zero"));
    }
    let within = move |v: &i64| if step > 0 { *v <= stop } else { *v >= stop };
    Ok(rows(std::iter::successors(Some(start), move |v| v.checked_add(step)).take_while(within).map(make)))
}

fn numerics(start: &Numeric, stop: &Numeric, step: &Numeric) -> Result<Rows> {
    for (value, name) in [(start, "start value"), (stop, "stop value"), (step, "step size")] {
        if value.is_nan() {
            return Err(err!(INVALID_PARAMETER_VALUE, "{name} cannot be NaN"));
        }
        if value.is_infinite() {
            return Err(err!(INVALID_PARAMETER_VALUE, "{name} cannot be infinity"));
        }
    }
    if step.is_zero() {
        return Err(err!(INVALID_PARAMETER_VALUE, "step size cannot equal zero"));
    }
    let (stop, step, up) = (stop.clone(), step.clone(), step.signum() > 0);
    // The first has the start's scale, those after it the larger of the start's and the step's.
    let mut next = Some(start.clone());
    Ok(Box::new(std::iter::from_fn(move || {
        let value = next.take()?;
        if if up { value > stop } else { value < stop } {
            return None;
        }
        match value.add(&step) {
            Ok(following) => next = Some(following),
            Err(e) => return Some(Err(e)),
        }
        Some(Ok(vec![Datum::Numeric(value)]))
    })))
}

fn subscripts(a: &[Datum], reverse: bool) -> Result<Rows> {
    let dims = &a[0].as_array().dims;
    let at = usize::try_from(a[1].as_i32()).ok().and_then(|n| n.checked_sub(1));
    let Some(d) = at.and_then(|at| dims.get(at)) else { return Ok(rows(std::iter::empty())) };
    let (lower, length) = (d.lower_bound, d.length);
    let place = move |i: i32| Datum::Int4(if reverse { lower + length - 1 - i } else { lower + i });
    Ok(rows((0..length).map(place)))
}

fn split_rows(call: &CallInfo<'_>, a: &[Datum], null: Option<&Datum>) -> Result<Rows> {
    Ok(rows(split(call, &a[0], &a[1], null)?.unwrap_or_default().into_iter()))
}

/// The fields of a text: by a separator, by characters when it is NULL, the whole when it is empty. Fields equal to `null`
/// become NULL. `None` for a NULL text.
pub fn split(call: &CallInfo<'_>, text: &Datum, separator: &Datum, null: Option<&Datum>) -> Result<Option<Vec<Datum>>> {
    let Datum::Text(text) = text else { return Ok(None) };
    let null = null.and_then(|n| if n.is_null() { None } else { Some(n.as_str()) });
    let collation = collation::nondeterministic(call);
    let mut ticker = Ticker::new();
    let mut field = |part: &str| {
        ticker.step()?;
        let is_null = match (null, collation) {
            (Some(null), Some(collation)) => collation.compare(part, null).is_eq(),
            (null, _) => Some(part) == null,
        };
        Ok(if is_null { Datum::Null } else { Datum::text(part) })
    };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let fields: Result<Vec<Datum>> = match separator {
        Datum::Text(separator) if separator.is_empty() => field(text).map(|all| vec![all]),
        Datum::Text(separator) if let Some(collation) = collation => {
            let fields = fields_between(Occurrences::new(collation, text, separator, true), text)?;
            fields.into_iter().map(field).collect()
        }
        Datum::Text(separator) => text.split(&**separator).map(field).collect(),
        _ => text.chars().map(|c| field(c.encode_utf8(&mut [0; 4]))).collect(),
    };
    fields.map(Some)
}

/// string_to_array.
pub fn text_to_array(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let fields = split(call, &a[0], &a[1], a.get(2))?;
    Ok(fields.map_or(Datum::Null, |f| crate::array::functions::one_dimensional(melba_types::oids::TEXT, f)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use melba_fmgr::registry::set_returning;

    fn shown(name: &str, args: &[Datum]) -> String {
        let session = crate::testing::session();
        let f = set_returning(name).expect("registered");
        let call = session.call(&[], melba_types::oids::INT4);
        let rows: Vec<String> = f(&call, args).expect("set").map(|r| format!("{:?}", r.expect("row")[0])).collect();
        rows.join(" ")
    }

    #[test]
    fn series_end_at_their_bounds() {
        let i = Datum::Int4;
        assert_eq!(shown("generate_series_step_int4", &[i(5), i(1), i(-2)]), "Int4(5) Int4(3) Int4(1)");
        assert_eq!(shown("generate_series_int4", &[i(3), i(1)]), "");
        let near_max = i64::MAX - 1;
        assert_eq!(
            shown("generate_series_step_int8", &[Datum::Int8(near_max), Datum::Int8(i64::MAX), Datum::Int8(3)]),
            format!("Int8({near_max})")
        );
        let n = |t: &str| Datum::Numeric(Numeric::parse(t).expect("numeric"));
        assert_eq!(shown("generate_series_step_numeric", &[n("1"), n("2"), n("0.5")]), "Numeric(1) Numeric(1.5) Numeric(2.0)");
    }
}
