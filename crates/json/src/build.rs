//! JSON from SQL values.

use std::sync::Arc;

use melba_catalog::TypeKind;
use melba_catalog::classes::FIRST_USER_OID;
use melba_fmgr::{CallInfo, ScalarFn, Session, io, lookup, registry};
use melba_functions::datetime::session_zone;
use melba_functions::record::field_names;
use melba_types::datetime::{DateOrder, DateStyle, format};
use melba_types::json::write_string;
use melba_types::jsonb::{JsonbValue, write};
use melba_types::{Datum, DbError, Numeric, Oid, Record, Result, err, oids};

use super::{datum, root};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("to_json", |c, a| json_datum(c, &a[0], false)),
    ("array_to_json", |c, a| json_datum(c, &a[0], false)),
    ("array_to_json_pretty", |c, a| json_datum(c, &a[0], a[1].as_bool())),
    ("row_to_json", |c, a| json_datum(c, &a[0], false)),
    ("row_to_json_pretty", |c, a| json_datum(c, &a[0], a[1].as_bool())),
    ("to_jsonb", |c, a| datum(&to_value(c.session, argument_type(c, 0), &a[0])?)),
    ("json_build_array", build_array),
    ("json_build_array_noargs", |_, _| Ok(Datum::text("[]"))),
    ("json_build_object", build_object),
    ("json_build_object_noargs", |_, _| Ok(Datum::text("{}"))),
    ("jsonb_build_array", |c, a| {
        let args = arguments(c, a);
        let Some(args) = args else { return Ok(Datum::Null) };
        let elements = args.iter().map(|(ty, value)| to_value(c.session, *ty, value)).collect::<Result<_>>()?;
        datum(&JsonbValue::Array(elements))
    }),
    ("jsonb_build_array_noargs", |_, _| datum(&JsonbValue::Array(Vec::new()))),
    ("jsonb_build_object", |c, a| {
        let Some(args) = arguments(c, a) else { return Ok(Datum::Null) };
        check_even(&args, "jsonb_build_object()")?;
        let mut fields = Vec::with_capacity(args.len() / 2);
        for (i, pair) in args.chunks(2).enumerate() {
            if pair[0].1.is_null() {
                return Err(err!(INVALID_PARAMETER_VALUE, "argument {}: key must not be null", 2 * i + 1));
            }
            fields.push((key_text(c.session, pair[0].0, &pair[0].1)?, to_value(c.session, pair[1].0, &pair[1].1)?));
        }
        datum(&JsonbValue::object(fields)?)
    }),
    ("jsonb_build_object_noargs", |_, _| datum(&JsonbValue::Object(Vec::new()))),
    ("json_object", |_, a| object_text(&pairs_of_array(&a[0])?)),
    ("json_object_two_arg", |_, a| object_text(&pairs_of_arrays(&a[0], &a[1])?)),
    ("jsonb_object", |_, a| object_value(pairs_of_array(&a[0])?)),
    ("jsonb_object_two_arg", |_, a| object_value(pairs_of_arrays(&a[0], &a[1])?)),
];

/// Type of an argument; unknown literals are text.
pub fn argument_type(call: &CallInfo<'_>, at: usize) -> Oid {
    match call.arg_types.get(at).copied().unwrap_or(oids::TEXT) {
        oids::UNKNOWN => oids::TEXT,
        ty => ty,
    }
}

/// The arguments of a VARIADIC "any" call with their types; `None`: VARIADIC NULL.
fn arguments(call: &CallInfo<'_>, args: &[Datum]) -> Option<Vec<(Oid, Datum)>> {
    if call.variadic {
        if args.first()?.is_null() {
            return None;
        }
        let array = args[0].as_array();
        return Some(array.elements.iter().map(|value| (array.element_type, value.clone())).collect());
    }
    Some(args.iter().enumerate().map(|(i, value)| (argument_type(call, i), value.clone())).collect())
}

fn check_even(args: &[(Oid, Datum)], function: &str) -> Result<()> {
    if !args.len().is_multiple_of(2) {
        return Err(err!(INVALID_PARAMETER_VALUE, "argument list must have even number of elements")
            .hint(format!("The arguments of {function} must consist of alternating keys and values.")));
    }
    Ok(())
}

fn json_datum(call: &CallInfo<'_>, value: &Datum, pretty: bool) -> Result<Datum> {
    let mut out = Vec::new();
    append(call.session, argument_type(call, 0), value, pretty, &mut out)?;
    io::into_string(out).map(Datum::text)
}

fn build_array(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let Some(args) = arguments(call, args) else { return Ok(Datum::Null) };
    let mut out = vec![b'['];
    for (i, (ty, value)) in args.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        append_json(call.session, *ty, value, &mut out)?;
    }
    out.push(b']');
    io::into_string(out).map(Datum::text)
}

fn build_object(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let Some(args) = arguments(call, args) else { return Ok(Datum::Null) };
    check_even(&args, "json_build_object()")?;
    let mut out = vec![b'{'];
    for (i, pair) in args.chunks(2).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        if pair[0].1.is_null() {
            return Err(null_key());
        }
        write_string(&key_text(call.session, pair[0].0, &pair[0].1)?, &mut out)?;
        out.extend_from_slice(b" : ");
        append_json(call.session, pair[1].0, &pair[1].1, &mut out)?;
    }
    out.push(b'}');
    io::into_string(out).map(Datum::text)
}

pub fn null_key() -> DbError {
    err!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for object key")
}

/// How a type turns into JSON.
enum Category {
    Bool,
    Number,
    Date,
    Timestamp,
    Timestamptz,
    Json,
    Jsonb,
    Array(Oid),
    Record,
    /// By the function of a cast to json.
    Cast(ScalarFn),
    Other,
}

fn category(session: &dyn Session, ty: Oid) -> Category {
    match ty {
        oids::BOOL => Category::Bool,
        oids::INT2 | oids::INT4 | oids::INT8 | oids::FLOAT4 | oids::FLOAT8 | oids::NUMERIC => Category::Number,
        oids::DATE => Category::Date,
        oids::TIMESTAMP => Category::Timestamp,
        oids::TIMESTAMPTZ => Category::Timestamptz,
        oids::JSON => Category::Json,
        oids::JSONB => Category::Jsonb,
        oids::RECORD => Category::Record,
        _ => match lookup::array_element(session, ty) {
            Some(element) => Category::Array(element),
            None if lookup::type_kind(session, ty) == Some(TypeKind::Composite) => Category::Record,
            None => cast_to_json(session, ty).map_or(Category::Other, Category::Cast),
        },
    }
}

/// The function of a user's cast to json, of those that are found by their source.
fn cast_to_json(session: &dyn Session, ty: Oid) -> Option<ScalarFn> {
    if ty.0 < FIRST_USER_OID {
        return None;
    }
    let cast = session.catalog().cast(ty, oids::JSON)?;
    registry::scalar(&session.catalog().function(cast.function)?.source)
}

fn cast(session: &dyn Session, ty: Oid, function: ScalarFn, value: &Datum) -> Result<Datum> {
    let return_type = oids::JSON;
    let call = CallInfo {
        session,
        arg_types: &[ty],
        return_type,
        collation: Oid::INVALID,
        variadic: false,
        columns: None,
        view: CallInfo::NO_VIEW,
    };
    function(&call, std::slice::from_ref(value))
}

/// Whether values of the type span lines in aggregates.
pub fn is_structured(session: &dyn Session, ty: Oid) -> bool {
    matches!(category(session, lookup::base_type(session, ty)), Category::Array(_) | Category::Record)
}

/// Appends a value as JSON text.
pub fn append_json(session: &dyn Session, ty: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    append(session, ty, value, false, out)
}

fn append(session: &dyn Session, ty: Oid, value: &Datum, pretty: bool, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    let ty = lookup::base_type(session, ty);
    match category(session, ty) {
        Category::Bool => out.extend_from_slice(if value.as_bool() { b"true" } else { b"false" }),
        Category::Number => {
            let start = out.len();
            io::text_out(session, ty, value, out)?;
            // NaN and the infinities are no JSON numbers.
            if !matches!(out.get(start..), Some([b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..])) {
                out.insert(start, b'"');
                out.push(b'"');
            }
        }
        Category::Json => out.extend_from_slice(value.as_str().as_bytes()),
        Category::Jsonb => write(root(value), out)?,
        Category::Cast(function) => {
            let json = cast(session, ty, function, value)?;
            out.extend_from_slice(if json.is_null() { b"null" } else { json.as_str().as_bytes() });
        }
        Category::Array(element) => append_array(session, element, value, pretty, out)?,
        Category::Record => append_record(session, value.as_record(), pretty, out)?,
        _ => write_string(&scalar_text(session, ty, value)?, out)?,
    }
    Ok(())
}

/// The text of a scalar inside JSON: dates and times are ISO 8601 for any DateStyle.
fn scalar_text(session: &dyn Session, ty: Oid, value: &Datum) -> Result<String> {
    let mut out = Vec::new();
    match category(session, ty) {
        Category::Date => format::write_date(value.as_i32(), DateStyle::Iso, DateOrder::Mdy, &mut out),
        Category::Timestamp => format::write_timestamp_xsd(value.as_i64(), None, &mut out),
        Category::Timestamptz => format::write_timestamp_xsd(value.as_i64(), Some(&session_zone(session)), &mut out),
        _ => io::text_out(session, ty, value, &mut out)?,
    }
    io::into_string(out)
}

fn append_array(session: &dyn Session, element: Oid, value: &Datum, pretty: bool, out: &mut Vec<u8>) -> Result<()> {
    let array = value.as_array();
    let lengths: Vec<usize> = array.dims.iter().map(|dim| dim.length.max(0) as usize).collect();
    let mut elements = array.elements.iter();
    append_dimension(session, element, &lengths, &mut elements, pretty, out)
}

fn append_dimension(
    session: &dyn Session,
    element: Oid,
    lengths: &[usize],
    elements: &mut std::slice::Iter<'_, Datum>,
    pretty: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'[');
    if let Some((length, inner)) = lengths.split_first() {
        for i in 0..*length {
            if i > 0 {
                out.extend_from_slice(if pretty { b",\n " } else { b"," });
            }
            if inner.is_empty() {
                append(session, element, elements.next().unwrap_or(&Datum::Null), false, out)?;
            } else {
                append_dimension(session, element, inner, elements, false, out)?;
            }
        }
    }
    out.push(b']');
    Ok(())
}

fn append_record(session: &dyn Session, record: &Record, pretty: bool, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    let record = &*melba_functions::record::complete(session, record);
    let names = field_names(session, record);
    for (i, (name, value)) in names.iter().zip(&record.fields).enumerate() {
        if i > 0 {
            out.extend_from_slice(if pretty { b",\n " } else { b"," });
        }
        write_string(name, out)?;
        out.push(b':');
        append(session, field_type(record, i), value, false, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn field_type(record: &Record, i: usize) -> Oid {
    match record.field_types.get(i).copied().unwrap_or(oids::TEXT) {
        oids::UNKNOWN => oids::TEXT,
        ty => ty,
    }
}

/// A value as an object key.
pub fn key_text(session: &dyn Session, ty: Oid, value: &Datum) -> Result<String> {
    let ty = lookup::base_type(session, ty);
    match category(session, ty) {
        Category::Array(_) | Category::Record | Category::Json | Category::Jsonb | Category::Cast(_) => {
            Err(err!(INVALID_PARAMETER_VALUE, "key value must be scalar, not array, composite, or json"))
        }
        Category::Bool => Ok(if value.as_bool() { "true" } else { "false" }.into()),
        _ => scalar_text(session, ty, value),
    }
}

/// A value as a JSON tree.
pub fn to_value(session: &dyn Session, ty: Oid, value: &Datum) -> Result<JsonbValue> {
    if value.is_null() {
        return Ok(JsonbValue::Null);
    }
    let ty = lookup::base_type(session, ty);
    Ok(match category(session, ty) {
        Category::Bool => JsonbValue::Bool(value.as_bool()),
        Category::Number => {
            let text = io::text_of(session, ty, value)?;
            match Numeric::parse(&text) {
                Ok(number) if number.is_finite() => JsonbValue::Number(number),
                _ => JsonbValue::String(text),
            }
        }
        Category::Json => JsonbValue::parse(value.as_str())?,
        Category::Jsonb => JsonbValue::from_json(root(value)),
        Category::Cast(function) => match cast(session, ty, function, value)? {
            Datum::Null => JsonbValue::Null,
            json => JsonbValue::parse(json.as_str())?,
        },
        Category::Array(element) => {
            let array = value.as_array();
            let lengths: Vec<usize> = array.dims.iter().map(|dim| dim.length.max(0) as usize).collect();
            array_value(session, element, &lengths, &mut array.elements.iter())?
        }
        Category::Record => {
            let record = value.as_record();
            let names = field_names(session, record);
            let field = |(i, (name, value)): (usize, (&Arc<str>, &Datum))| {
                Ok((name.to_string(), to_value(session, field_type(record, i), value)?))
            };
            let fields = names.iter().zip(&record.fields).enumerate().map(field);
            JsonbValue::object(fields.collect::<Result<_>>()?)?
        }
        _ => JsonbValue::String(scalar_text(session, ty, value)?),
    })
}

fn array_value(
    session: &dyn Session,
    element: Oid,
    lengths: &[usize],
    elements: &mut std::slice::Iter<'_, Datum>,
) -> Result<JsonbValue> {
    let Some((length, inner)) = lengths.split_first() else { return Ok(JsonbValue::Array(Vec::new())) };
    let mut values = Vec::with_capacity(*length);
    for _ in 0..*length {
        values.push(if inner.is_empty() {
            to_value(session, element, elements.next().unwrap_or(&Datum::Null))?
        } else {
            array_value(session, element, inner, elements)?
        });
    }
    Ok(JsonbValue::Array(values))
}

type Pairs = Vec<(Arc<str>, Option<Arc<str>>)>;

fn pair(key: &Datum, value: &Datum) -> Result<(Arc<str>, Option<Arc<str>>)> {
    let text = |d: &Datum| match d {
        Datum::Text(text) => Some(text.clone()),
        _ => None,
    };
    Ok((text(key).ok_or_else(null_key)?, text(value)))
}

/// Keys and values alternating, or rows of two.
fn pairs_of_array(array: &Datum) -> Result<Pairs> {
    let array = array.as_array();
    match array.dims[..] {
        [] => {}
        [dim] if dim.length % 2 != 0 => {
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array must have even number of elements"));
        }
        [_] => {}
        [_, dim] if dim.length != 2 => return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array must have two columns")),
        [_, _] => {}
        _ => return Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")),
    }
    array.elements.chunks(2).map(|chunk| pair(&chunk[0], &chunk[1])).collect()
}

fn pairs_of_arrays(keys: &Datum, values: &Datum) -> Result<Pairs> {
    let (keys, values) = (keys.as_array(), values.as_array());
    if keys.dims.len() > 1 || keys.dims.len() != values.dims.len() {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"));
    }
    if keys.elements.len() != values.elements.len() {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "mismatched array dimensions"));
    }
    keys.elements.iter().zip(&values.elements).map(|(key, value)| pair(key, value)).collect()
}

fn object_text(pairs: &Pairs) -> Result<Datum> {
    let mut out = vec![b'{'];
    for (i, (key, value)) in pairs.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        write_string(key, &mut out)?;
        out.extend_from_slice(b" : ");
        match value {
            Some(value) => write_string(value, &mut out)?,
            None => out.extend_from_slice(b"null"),
        }
    }
    out.push(b'}');
    io::into_string(out).map(Datum::text)
}

fn object_value(pairs: Pairs) -> Result<Datum> {
    let value = |value: Option<Arc<str>>| value.map_or(JsonbValue::Null, |text| JsonbValue::String(text.to_string()));
    datum(&JsonbValue::object(pairs.into_iter().map(|(key, v)| (key.to_string(), value(v))).collect())?)
}
