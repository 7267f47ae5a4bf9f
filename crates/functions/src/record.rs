//! Composite values: input and output, comparisons.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use melba_catalog::Relation;
use melba_fmgr::io::{binary_in, binary_out, check_domain, text_in, text_out};
use melba_fmgr::type_io::{append_quoted, data_behind, in_part, insufficient_data, is_other_type, is_space};
use melba_fmgr::value_order::Comparison;
use melba_fmgr::{CallInfo, RowColumn, ScalarFn, Session, TypeContext, TypeIo, lookup};
use melba_types::{Datum, DbError, Oid, Record, Result, err, limits, oids};

pub const TYPES: &[(Oid, TypeIo)] = &[(oids::RECORD, TypeIo { input, output, receive, send })];

/// A live column of a composite type.
struct Attribute {
    name: Arc<str>,
    ty: Oid,
    typmod: i32,
}

fn fields(session: &dyn Session, ty: Oid) -> Result<Vec<Attribute>> {
    if ty == oids::RECORD {
        return Err(err!(FEATURE_NOT_SUPPORTED, "input of anonymous composite types is not implemented"));
    }
    let catalog = session.catalog();
    let relation = catalog.type_(ty).and_then(|t| catalog.relation(t.relation));
    let relation = relation.ok_or_else(|| err!(WRONG_OBJECT_TYPE, "type {} is not composite", lookup::type_name(session, ty)))?;
    let live = relation.columns.iter().filter(|c| !c.dropped);
    Ok(live.map(|c| Attribute { name: c.name.clone(), ty: c.ty, typmod: c.typmod }).collect())
}

fn record(ty: Oid, fields: &[Attribute], values: Vec<Datum>) -> Datum {
    Datum::Record(Arc::new(Record {
        type_oid: ty,
        field_types: fields.iter().map(|f| f.ty).collect(),
        field_names: Some(fields.iter().map(|f| f.name.clone()).collect()),
        fields: values,
    }))
}

fn input(context: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let fields = fields(context.session, context.type_oid)?;
    let malformed =
        |detail: &str| -> DbError { err!(INVALID_TEXT_REPRESENTATION, "malformed record literal: \"{text}\"").detail(detail) };
    let bytes = text.as_bytes();
    let skip_space = |mut at: usize| {
        while bytes.get(at).is_some_and(|c| is_space(*c)) {
            at += 1;
        }
        at
    };
    let mut at = skip_space(0);
    if bytes.get(at) != Some(&b'(') {
        return Err(malformed("Missing left parenthesis."));
    }
    at += 1;
    let mut values = Vec::with_capacity(fields.len());
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            if bytes.get(at) != Some(&b',') {
                return Err(malformed("Too few columns."));
            }
            at += 1;
        }
        if matches!(bytes.get(at), Some(b',' | b')')) {
            values.push(if lookup::domain(context.session, field.ty).is_some() {
                melba_fmgr::io::check_domain(context.session, field.ty, Datum::Null)?
            } else {
                Datum::Null
            });
            continue;
        }
        let value = read_field(bytes, &mut at).ok_or_else(|| malformed("Unexpected end of input."))?;
        let value = String::from_utf8(value).map_err(|_| malformed("Unexpected end of input."))?;
        values.push(text_in(context.session, field.ty, field.typmod, &value)?);
    }
    if bytes.get(at) != Some(&b')') {
        return Err(malformed("Too many columns."));
    }
    if skip_space(at + 1) != bytes.len() {
        return Err(malformed("Junk after right parenthesis."));
    }
    Ok(record(context.type_oid, &fields, values))
}

/// The text of a field up to a comma or parenthesis outside quotes; `None` when the text ends before.
fn read_field(bytes: &[u8], at: &mut usize) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let mut quoted = false;
    loop {
        match *bytes.get(*at)? {
            b',' | b')' if !quoted => return Some(value),
            b'\\' => {
                *at += 1;
                value.push(*bytes.get(*at)?);
            }
            b'"' if quoted && bytes.get(*at + 1) == Some(&b'"') => {
                *at += 1;
                value.push(b'"');
            }
            b'"' => quoted = !quoted,
            c => value.push(c),
        }
        *at += 1;
    }
}

/// The record with the columns that its type has got since it was stored: they are NULL.
pub fn complete<'a>(session: &dyn Session, record: &'a Record) -> Cow<'a, Record> {
    if record.type_oid == oids::RECORD {
        return Cow::Borrowed(record);
    }
    let catalog = session.catalog();
    let relation = catalog.type_(record.type_oid).and_then(|t| catalog.relation(t.relation));
    let live = || relation.iter().flat_map(|r| r.columns.iter()).filter(|c| !c.dropped);
    if live().count() <= record.fields.len() {
        return Cow::Borrowed(record);
    }
    let mut record = record.clone();
    record.fields.resize(live().count(), Datum::Null);
    record.field_types = live().map(|c| c.ty).collect();
    record.field_names = record.field_names.map(|_| live().map(|c| c.name.clone()).collect());
    Cow::Owned(record)
}

/// The columns of a composite type, or of a domain over one.
pub fn columns(session: &dyn Session, ty: Oid) -> Option<Vec<RowColumn>> {
    let entry = session.catalog().type_(lookup::base_type(session, ty))?;
    let relation = session.catalog().relation(entry.relation)?;
    let live = relation.columns.iter().filter(|c| !c.dropped);
    Some(live.map(|c| RowColumn { name: c.name.clone(), ty: c.ty, typmod: c.typmod }).collect())
}

/// The names of a record's fields, from the record or from its type.
pub fn field_names(session: &dyn Session, record: &Record) -> Vec<Arc<str>> {
    if let Some(names) = &record.field_names {
        return names.to_vec();
    }
    match columns(session, record.type_oid) {
        Some(columns) => columns.into_iter().map(|c| c.name).collect(),
        None => (1..=record.fields.len()).map(|i| Arc::from(format!("f{i}"))).collect(),
    }
}

fn output(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    limits::check_stack()?;
    let record = complete(context.session, value.as_record());
    out.push(b'(');
    for (i, (field, ty)) in record.fields.iter().zip(record.field_types.iter()).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if field.is_null() {
            continue;
        }
        let start = out.len();
        text_out(context.session, *ty, field, out)?;
        let special = |c: &u8| matches!(c, b'"' | b'\\' | b'(' | b')' | b',') || is_space(*c);
        if out.len() == start || out[start..].iter().any(special) {
            // Quotes and backslashes double: of rows in rows in each of them.
            limits::check_length(2 * out.len() - start)?;
            let text = out.split_off(start);
            append_quoted(&text, None, out)?;
        }
    }
    out.push(b')');
    Ok(())
}

/// Binary: number of columns; for each its type, length (-1: null) and value.
fn receive(context: &TypeContext<'_>, bytes: &[u8]) -> Result<Datum> {
    let fields = fields(context.session, context.type_oid)?;
    let improper = || err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message");
    let mut rest = bytes;
    let next = |rest: &mut &[u8]| -> Result<i32> {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(insufficient_data)?;
        *rest = tail;
        Ok(i32::from_be_bytes(*head))
    };
    let count = next(&mut rest)?;
    if count as usize != fields.len() {
        return Err(err!(DATATYPE_MISMATCH, "wrong number of columns: {count}, expected {}", fields.len()));
    }
    let mut values = Vec::with_capacity(fields.len());
    for (i, field) in fields.iter().enumerate() {
        let ty = Oid(next(&mut rest)? as u32);
        if is_other_type(ty, field.ty) {
            let name = |ty| lookup::type_name(context.session, ty);
            return Err(err!(
                DATATYPE_MISMATCH,
                "binary data has type {} ({}) instead of expected {} ({}) in record column {}",
                ty,
                name(ty),
                field.ty,
                name(field.ty),
                i + 1
            ));
        }
        let length = next(&mut rest)?;
        if length == -1 {
            values.push(check_domain(context.session, field.ty, Datum::Null)?);
            continue;
        }
        let (value, tail) = usize::try_from(length).ok().and_then(|n| rest.split_at_checked(n)).ok_or_else(improper)?;
        rest = tail;
        let value = binary_in(context.session, field.ty, field.typmod, value);
        values.push(value.map_err(|e| in_part(e, || format!("record column {}", i + 1)))?);
    }
    match rest.is_empty() {
        true => Ok(record(context.type_oid, &fields, values)),
        false => Err(data_behind()),
    }
}

fn send(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let record = complete(context.session, value.as_record());
    out.extend_from_slice(&(record.fields.len() as i32).to_be_bytes());
    for (field, ty) in record.fields.iter().zip(record.field_types.iter()) {
        out.extend_from_slice(&ty.0.to_be_bytes());
        if field.is_null() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        binary_out(context.session, *ty, field, out)?;
        let length = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

fn compare(call: &CallInfo<'_>, a: &[Datum]) -> Result<Ordering> {
    let (mut x, mut y) = (Cow::Borrowed(a[0].as_record()), Cow::Borrowed(a[1].as_record()));
    if x.fields.len() != y.fields.len() {
        (x, y) = (complete(call.session, a[0].as_record()), complete(call.session, a[1].as_record()));
    }
    let relation = (x.type_oid == y.type_oid).then(|| relation_of(call, x.type_oid)).flatten();
    let mut columns = relation.iter().flat_map(|relation| relation.columns.iter().filter(|c| !c.dropped));
    for (i, (s, t)) in x.field_types.iter().zip(y.field_types.iter()).enumerate() {
        // As in the keys of the type's values. Of rows without a named type nothing is known but their bytes.
        let collation = columns.next().map_or(Oid::INVALID, |c| c.collation);
        if s != t {
            let (s, t) = (lookup::type_name(call.session, *s), lookup::type_name(call.session, *t));
            let message = format!("cannot compare dissimilar column types {s} and {t} at record column {}", i + 1);
            return Err(err!(DATATYPE_MISMATCH, "{message}"));
        }
        let (v, w) = (&x.fields[i], &y.fields[i]);
        let ordering = match (v.is_null(), w.is_null()) {
            (false, false) => field_order(call, v, *s, collation)?.compare(v, w)?,
            (v, w) => v.cmp(&w),
        };
        if ordering.is_ne() {
            return Ok(ordering);
        }
    }
    if x.fields.len() != y.fields.len() {
        return Err(err!(DATATYPE_MISMATCH, "cannot compare record types with different numbers of columns"));
    }
    Ok(Ordering::Equal)
}

/// The relation of a named row type.
fn relation_of<'c>(call: &'c CallInfo<'_>, ty: Oid) -> Option<&'c Arc<Relation>> {
    let catalog = call.session.catalog();
    catalog.relation(catalog.type_(catalog.base_type(ty))?.relation)
}

/// The order of a field; rows without a named type within records have their own types.
fn field_order<'a>(call: &'a CallInfo<'_>, value: &Datum, ty: Oid, collation: Oid) -> Result<Comparison<'a>> {
    match value {
        Datum::Record(record) if relation_of(call, ty).is_none() => Comparison::of_record(call, &record.field_types),
        Datum::Text(_) if ty == oids::UNKNOWN => Comparison::of_type(call, oids::TEXT, Oid::INVALID),
        _ => Comparison::of_type(call, ty, collation),
    }
}

/// Comparison of the values' bytes: `record_image_*`. Differences that comparison overlooks count.
fn compare_image(_: &CallInfo<'_>, a: &[Datum]) -> Result<Ordering> {
    image_order(a[0].as_record(), a[1].as_record())
}

/// The same for two records; equal only if they are identical.
pub fn image_order(x: &Record, y: &Record) -> Result<Ordering> {
    if x.fields.len() != y.fields.len() {
        return Err(err!(DATATYPE_MISMATCH, "cannot compare record types with different numbers of columns"));
    }
    for (v, w) in x.fields.iter().zip(&y.fields) {
        let ordering = match (v.is_null(), w.is_null()) {
            (false, false) => {
                let (mut p, mut q) = (Vec::new(), Vec::new());
                melba_types::codec::encode(v, &mut p);
                melba_types::codec::encode(w, &mut q);
                p.cmp(&q)
            }
            (v, w) => v.cmp(&w),
        };
        if ordering.is_ne() {
            return Ok(ordering);
        }
    }
    Ok(Ordering::Equal)
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("record_eq", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_eq()))),
    ("record_ne", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_ne()))),
    ("record_lt", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_lt()))),
    ("record_le", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_le()))),
    ("record_gt", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_gt()))),
    ("record_ge", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_ge()))),
    ("btrecordcmp", |c, a| compare(c, a).map(|o| Datum::Int4(o as i32))),
    ("record_larger", |c, a| Ok(a[usize::from(compare(c, a)?.is_le())].clone())),
    ("record_smaller", |c, a| Ok(a[usize::from(compare(c, a)?.is_ge())].clone())),
    ("record_image_eq", |c, a| compare_image(c, a).map(|o| Datum::Bool(o.is_eq()))),
    ("record_image_ne", |c, a| compare_image(c, a).map(|o| Datum::Bool(o.is_ne()))),
    ("record_image_lt", |c, a| compare_image(c, a).map(|o| Datum::Bool(o.is_lt()))),
    ("record_image_le", |c, a| compare_image(c, a).map(|o| Datum::Bool(o.is_le()))),
    ("record_image_gt", |c, a| compare_image(c, a).map(|o| Datum::Bool(o.is_gt()))),
    ("record_image_ge", |c, a| compare_image(c, a).map(|o| Datum::Bool(o.is_ge()))),
    ("btrecordimagecmp", |c, a| compare_image(c, a).map(|o| Datum::Int4(o as i32))),
];

#[cfg(test)]
mod tests {
    use super::*;
    use melba_fmgr::io::text_of;

    fn of(fields: &[(Oid, Datum)]) -> Datum {
        Datum::Record(Arc::new(Record {
            type_oid: oids::RECORD,
            field_types: fields.iter().map(|f| f.0).collect(),
            field_names: None,
            fields: fields.iter().map(|f| f.1.clone()).collect(),
        }))
    }

    #[test]
    fn records_print_and_compare_by_fields() {
        let session = crate::testing::session();
        let t = |v: &str| (oids::TEXT, Datum::text(v));
        let a = of(&[(oids::INT4, Datum::Int4(1)), t("a b"), t(""), (oids::INT4, Datum::Null), t("q\"\\")]);
        assert_eq!(text_of(&session, oids::RECORD, &a).expect("output"), "(1,\"a b\",\"\",,\"q\"\"\\\\\")");
        let call = session.call(&[], oids::BOOL);
        let (x, y) =
            (of(&[(oids::INT4, Datum::Int4(1)), t("b")]), of(&[(oids::INT4, Datum::Int4(1)), (oids::TEXT, Datum::Null)]));
        assert_eq!(compare(&call, &[x.clone(), y]).expect("comparable"), Ordering::Less);
        let e = compare(&call, &[x, of(&[(oids::INT8, Datum::Int8(1))])]).expect_err("types");
        assert_eq!(e.message(), "cannot compare dissimilar column types integer and bigint at record column 1");
    }

    #[test]
    fn fields_are_read_with_quotes_and_escapes() {
        let bytes = b"a\"b,\"\"\"c\\),d)";
        let mut at = 0;
        assert_eq!(read_field(bytes, &mut at).expect("field"), b"ab,\"c)");
        assert_eq!(bytes[at], b',');
    }
}
