//! SQL values of given types from JSON: json_populate_record and similar functions.

use std::sync::Arc;

use melba_fmgr::{CallInfo, RowColumn, ScalarFn, Session, SetFn, io, lookup};
use melba_functions::record::columns;
use melba_types::json::{JsonKind, JsonNode, parse, unescape};
use melba_types::jsonb::{JsonbValue, write};
use melba_types::{Array, ArrayDim, Datum, DbError, Oid, Record, Result, err, oids};

use super::access::not_applicable;
use super::expand::{Rows, rows};
use super::{datum, root};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("json_populate_record", |c, a| record(c, a, "json_populate_record")),
    ("jsonb_populate_record", |c, a| record(c, a, "jsonb_populate_record")),
    ("jsonb_populate_record_valid", |c, a| match record(c, a, "jsonb_populate_record_valid") {
        Ok(_) => Ok(Datum::Bool(true)),
        Err(e) if matches!(e.sqlstate().class(), "22" | "23") => Ok(Datum::Bool(false)),
        Err(e) => Err(e),
    }),
    ("json_to_record", |c, a| record(c, &[Datum::Null, a[0].clone()], "json_to_record")),
    ("jsonb_to_record", |c, a| record(c, &[Datum::Null, a[0].clone()], "jsonb_to_record")),
];

pub const SETS: &[(&str, SetFn)] = &[
    ("json_populate_recordset", |c, a| record_set(c, a, "json_populate_recordset")),
    ("jsonb_populate_recordset", |c, a| record_set(c, a, "jsonb_populate_recordset")),
    ("json_to_recordset", |c, a| record_set(c, &[Datum::Null, a[0].clone()], "json_to_recordset")),
    ("jsonb_to_recordset", |c, a| record_set(c, &[Datum::Null, a[0].clone()], "jsonb_to_recordset")),
];

/// JSON in either form.
enum Source<'a> {
    Text(&'a JsonNode<'a>),
    Tree(&'a JsonbValue),
}

impl Source<'_> {
    fn is_null(&self) -> bool {
        matches!(self, Source::Text(JsonNode { kind: JsonKind::Null, .. }) | Source::Tree(JsonbValue::Null))
    }

    /// Strings without quotes, everything else as JSON.
    fn text(&self) -> Result<String> {
        match self {
            Source::Text(node) if matches!(node.kind, JsonKind::String) => unescape(node.raw),
            Source::Text(node) => Ok(node.raw.to_string()),
            Source::Tree(JsonbValue::String(text)) => Ok(text.clone()),
            Source::Tree(value) => {
                let bytes = value.to_bytes()?;
                let mut out = Vec::new();
                write(melba_types::jsonb::Json::root(&bytes), &mut out)?;
                io::into_string(out)
            }
        }
    }

    fn elements(&self) -> Option<Vec<Source<'_>>> {
        match self {
            Source::Text(JsonNode { kind: JsonKind::Array(elements), .. }) => Some(elements.iter().map(Source::Text).collect()),
            Source::Tree(JsonbValue::Array(elements)) => Some(elements.iter().map(Source::Tree).collect()),
            _ => None,
        }
    }

    fn is_object(&self) -> bool {
        matches!(self, Source::Text(JsonNode { kind: JsonKind::Object(_), .. }) | Source::Tree(JsonbValue::Object(_)))
    }

    fn is_string(&self) -> bool {
        matches!(self, Source::Text(JsonNode { kind: JsonKind::String, .. }) | Source::Tree(JsonbValue::String(_)))
    }

    fn field(&self, name: &str) -> Result<Option<Source<'_>>> {
        match self {
            Source::Text(JsonNode { kind: JsonKind::Object(fields), .. }) => {
                for (key, node) in fields.iter().rev() {
                    if unescape(key)? == name {
                        return Ok(Some(Source::Text(node)));
                    }
                }
                Ok(None)
            }
            Source::Tree(JsonbValue::Object(fields)) => {
                Ok(fields.iter().find(|(key, _)| key == name).map(|(_, value)| Source::Tree(value)))
            }
            _ => Ok(None),
        }
    }
}

/// The functions that take a record, of any type, take nothing else.
fn check_base(call: &CallInfo<'_>, function: &str) -> Result<()> {
    let takes_record = call.arg_types.len() > 1;
    let ty = call.arg_types.first().copied().unwrap_or(oids::RECORD);
    if takes_record && ty != oids::RECORD && columns(call.session, ty).is_none() {
        return Err(err!(DATATYPE_MISMATCH, "first argument of {function} must be a row type"));
    }
    Ok(())
}

/// The row type of the call: the base record's, the call's return type, or that of its column definition list.
fn row_type(call: &CallInfo<'_>, base: &Datum, function: &str) -> Result<(Oid, Vec<RowColumn>)> {
    let of_base = match base {
        Datum::Record(record) => Some(record.type_oid),
        _ => None,
    };
    // A domain is checked, so the call's type is preferred to the value's.
    let candidates = [Some(call.return_type), call.arg_types.first().copied(), of_base];
    for ty in candidates.into_iter().flatten() {
        if let Some(columns) = columns(call.session, ty) {
            return Ok((ty, columns));
        }
    }
    if let Datum::Record(record) = base {
        let names = record.field_names.clone();
        let targets = record.field_types.iter().enumerate().map(|(i, ty)| {
            let name = names.as_ref().and_then(|n| n.get(i).cloned()).unwrap_or_else(|| format!("f{}", i + 1).into());
            RowColumn { name, ty: *ty, typmod: -1 }
        });
        return Ok((oids::RECORD, targets.collect()));
    }
    if let Some(columns) = call.columns {
        return Ok((oids::RECORD, columns.to_vec()));
    }
    Err(err!(FEATURE_NOT_SUPPORTED, "could not determine row type for result of {function}")
        .hint("Provide a non-null record argument, or call the function in the FROM clause using a column definition list."))
}

fn record(call: &CallInfo<'_>, a: &[Datum], function: &str) -> Result<Datum> {
    check_base(call, function)?;
    let (ty, targets) = row_type(call, &a[0], function)?;
    if a[1].is_null() {
        return Ok(a[0].clone());
    }
    let base = match &a[0] {
        Datum::Record(record) => Some(&**record),
        _ => None,
    };
    with_source(&a[1], |source| match source.is_object() {
        true => fill_checked(call.session, ty, &targets, base, source),
        false => Err(not_a_row(source)),
    })
}

fn not_a_row(source: &Source<'_>) -> DbError {
    let what = if source.elements().is_some() { "an array" } else { "a scalar" };
    not_applicable(&format!("call populate_composite on {what}"))
}

fn with_source<T>(json: &Datum, run: impl FnOnce(&Source<'_>) -> Result<T>) -> Result<T> {
    match json {
        Datum::Text(text) => run(&Source::Text(&parse(text, true)?)),
        _ => run(&Source::Tree(&JsonbValue::from_json(root(json)))),
    }
}

fn record_set(call: &CallInfo<'_>, a: &[Datum], function: &str) -> Result<Rows> {
    check_base(call, function)?;
    let (ty, targets) = row_type(call, &a[0], function)?;
    if a[1].is_null() {
        return Ok(rows(Vec::new()));
    }
    let base = match &a[0] {
        Datum::Record(record) => Some(&**record),
        _ => None,
    };
    with_source(&a[1], |source| {
        let Some(elements) = source.elements() else {
            let what = match source {
                Source::Tree(_) => "a non-array",
                Source::Text(_) if source.is_object() => "an object",
                Source::Text(_) => "a scalar",
            };
            return Err(not_applicable(&format!("call {function} on {what}")));
        };
        let mut out = Vec::with_capacity(elements.len());
        for element in &elements {
            if !element.is_object() {
                return Err(err!(INVALID_PARAMETER_VALUE, "argument of {function} must be an array of objects"));
            }
            out.push(vec![fill_checked(call.session, ty, &targets, base, element)?]);
        }
        Ok(rows(out))
    })
}

/// As `fill`; `ty` may be a domain.
fn fill_checked(
    session: &dyn Session,
    ty: Oid,
    targets: &[RowColumn],
    base: Option<&Record>,
    source: &Source<'_>,
) -> Result<Datum> {
    let row_type = lookup::base_type(session, ty);
    let filled = fill(session, row_type, targets, base, source)?;
    if row_type == ty { Ok(filled) } else { io::check_domain(session, ty, filled) }
}

fn fill(session: &dyn Session, ty: Oid, targets: &[RowColumn], base: Option<&Record>, source: &Source<'_>) -> Result<Datum> {
    let mut fields = Vec::with_capacity(targets.len());
    for (i, target) in targets.iter().enumerate() {
        fields.push(match source.field(&target.name)? {
            Some(value) => convert(session, target, &value, &target.name, base.and_then(|record| record.fields.get(i)))?,
            None => match base.and_then(|record| record.fields.get(i)) {
                Some(value) => value.clone(),
                // A domain may refuse it.
                None => convert(session, target, &Source::Tree(&JsonbValue::Null), &target.name, None)?,
            },
        });
    }
    let field_types = targets.iter().map(|target| target.ty).collect();
    let field_names = (ty == oids::RECORD).then(|| targets.iter().map(|target| target.name.clone()).collect());
    Ok(Datum::Record(Arc::new(Record { type_oid: ty, field_types, field_names, fields })))
}

/// The value of a type that a whole jsonb stands for. Its strings keep their quotes where the type reads text.
pub fn populate(session: &dyn Session, ty: Oid, typmod: i32, value: &JsonbValue) -> Result<Datum> {
    let target = RowColumn { name: "".into(), ty, typmod };
    let base = lookup::base_type(session, ty);
    if base == oids::JSONB {
        let value = datum(value)?;
        return if base == ty { Ok(value) } else { io::check_domain(session, ty, value) };
    }
    let is_composite = lookup::array_element(session, base).is_some() || columns(session, base).is_some();
    match value {
        JsonbValue::String(_) if columns(session, base).is_some() => Err(not_a_row(&Source::Tree(value))),
        JsonbValue::String(_) if is_composite => Err(expected_array("")),
        _ if is_composite => convert(session, &target, &Source::Tree(value), "", None),
        _ => io::text_in(session, ty, typmod, &io::text_of(session, oids::JSONB, &datum(value)?)?),
    }
}

/// The SQL value of a JSON value; `path` names it in messages. Fields that an object lacks are those of `before`.
fn convert(session: &dyn Session, target: &RowColumn, source: &Source<'_>, path: &str, before: Option<&Datum>) -> Result<Datum> {
    let (ty, typmod) = (target.ty, target.typmod);
    let base = lookup::base_type(session, ty);
    let value = if source.is_null() {
        Datum::Null
    } else if base == oids::JSON {
        Datum::text(match source {
            Source::Text(node) => node.raw.to_string(),
            Source::Tree(value) => io::text_of(session, oids::JSONB, &datum(value)?)?,
        })
    } else if base == oids::JSONB {
        match source {
            Source::Text(node) => datum(&JsonbValue::from_node(node)?)?,
            Source::Tree(value) => datum(value)?,
        }
    } else if let Some(element) = lookup::array_element(session, base) {
        let typmod = if base == ty { typmod } else { lookup::base_typmod(session, ty) };
        array(session, base, element, typmod, source, path)?
    } else if let (true, Some(targets)) = (source.is_object(), columns(session, base)) {
        let before = match before {
            Some(Datum::Record(record)) => Some(&**record),
            _ => None,
        };
        fill(session, base, &targets, before, source)?
    } else if !source.is_string() && columns(session, base).is_some() {
        return Err(not_a_row(source));
    } else {
        return io::text_in(session, ty, typmod, &source.text()?);
    };
    if base == ty { Ok(value) } else { io::check_domain(session, ty, value) }
}

fn array(session: &dyn Session, ty: Oid, element: Oid, typmod: i32, source: &Source<'_>, path: &str) -> Result<Datum> {
    if source.is_string() {
        return io::text_in(session, ty, typmod, &source.text()?);
    }
    let elements = source.elements().ok_or_else(|| expected_array(path))?;
    let mut dims = Vec::new();
    let mut values = Vec::new();
    collect(session, element, typmod, &elements, 0, &mut dims, &mut values, path)?;
    let dims = match values.is_empty() {
        true => Vec::new(),
        false => dims.into_iter().map(|length| ArrayDim { length, lower_bound: 1 }).collect(),
    };
    Ok(Datum::Array(Arc::new(Array { element_type: element, dims, elements: values })))
}

fn expected_array(path: &str) -> DbError {
    let error = err!(INVALID_TEXT_REPRESENTATION, "expected JSON array");
    if path.is_empty() { error } else { error.hint(format!("See the value of key \"{path}\".")) }
}

#[expect(clippy::too_many_arguments, reason = "one step of a recursion that fills two accumulators")]
fn collect(
    session: &dyn Session,
    element: Oid,
    typmod: i32,
    sources: &[Source<'_>],
    depth: usize,
    dims: &mut Vec<i32>,
    values: &mut Vec<Datum>,
    path: &str,
) -> Result<()> {
    let malformed = || -> DbError {
        err!(INVALID_TEXT_REPRESENTATION, "malformed JSON array")
            .detail("Multidimensional arrays must have sub-arrays with matching dimensions.")
    };
    match dims.get(depth) {
        Some(length) if *length != sources.len() as i32 => return Err(malformed()),
        Some(_) => {}
        None if values.is_empty() => dims.push(sources.len() as i32),
        None => return Err(malformed()),
    }
    for source in sources {
        let nests = lookup::array_element(session, element).is_none()
            && !matches!(lookup::base_type(session, element), oids::JSON | oids::JSONB);
        match source.elements().filter(|_| nests) {
            Some(inner) => collect(session, element, typmod, &inner, depth + 1, dims, values, path)?,
            None if dims.len() > depth + 1 => return Err(malformed()),
            None => {
                let target = RowColumn { name: "".into(), ty: element, typmod };
                values.push(convert(session, &target, source, path, None)?);
            }
        }
    }
    Ok(())
}
