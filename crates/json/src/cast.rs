//! Casts of jsonb scalars to SQL types.

use melba_fmgr::ScalarFn;
use melba_types::jsonb::View;
use melba_types::{Datum, Numeric, Result, err};

use super::root;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("jsonb_bool", |_, a| match root(&a[0]).view() {
        View::Null => Ok(Datum::Null),
        View::Bool(v) => Ok(Datum::Bool(v)),
        _ => Err(cannot_cast(&a[0], "boolean")),
    }),
    ("jsonb_numeric", |_, a| number(&a[0], "numeric", |v| Ok(Datum::Numeric(v.clone())))),
    ("jsonb_int2", |_, a| number(&a[0], "smallint", |v| v.to_i16().map(Datum::Int2))),
    ("jsonb_int4", |_, a| number(&a[0], "integer", |v| v.to_i32().map(Datum::Int4))),
    ("jsonb_int8", |_, a| number(&a[0], "bigint", |v| v.to_i64().map(Datum::Int8))),
    ("jsonb_float4", |_, a| number(&a[0], "real", |v| through_float(v, f32::MAX.into()).map(|v| Datum::Float4(v as f32)))),
    ("jsonb_float8", |_, a| number(&a[0], "double precision", |v| through_float(v, f64::MAX).map(Datum::Float8))),
];

fn cannot_cast(value: &Datum, type_name: &str) -> melba_types::DbError {
    let kind = match root(value).type_name() {
        "number" => "numeric",
        other => other,
    };
    err!(INVALID_PARAMETER_VALUE, "cannot cast jsonb {kind} to type {type_name}")
}

fn number(value: &Datum, type_name: &str, convert: impl Fn(&Numeric) -> Result<Datum>) -> Result<Datum> {
    match root(value).view() {
        View::Null => Ok(Datum::Null),
        View::Number(v) => convert(&v),
        _ => Err(cannot_cast(value, type_name)),
    }
}

fn through_float(v: &Numeric, max: f64) -> Result<f64> {
    let value = v.to_f64();
    if value.is_infinite() || value.abs() > max {
        let name = if max < f64::MAX { "real" } else { "double precision" };
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "\"{v}\" is out of range for type {name}"));
    }
    Ok(value)
}
