//! Enums. A value is the OID of its label; the labels' order is the catalog's.

use std::cmp::Ordering;
use std::sync::Arc;

use melba_catalog::Type;
use melba_fmgr::type_io::{received, send_text};
use melba_fmgr::{CallInfo, ScalarFn, Session, TypeContext, TypeIo, lookup};
use melba_types::{Datum, Oid, Result, err, oids};

use crate::array::functions::one_dimensional;

pub const TYPES: &[(Oid, TypeIo)] =
    &[(oids::ANYENUM, TypeIo { input, output, receive: |c, b| input(c, &received(c, b)?), send })];

fn enum_type(session: &dyn Session, ty: Oid) -> Result<&Arc<Type>> {
    let found = session.catalog().type_(lookup::base_type(session, ty)).filter(|t| !t.labels.is_empty());
    found.ok_or_else(|| err!(FEATURE_NOT_SUPPORTED, "could not determine actual enum type"))
}

fn input(context: &TypeContext<'_>, text: &str) -> Result<Datum> {
    let ty = context.session.catalog().type_(context.type_oid);
    let label = ty.and_then(|t| t.labels.iter().find(|l| &*l.2 == text));
    let (Some(ty), Some(label)) = (ty, label) else {
        let name = lookup::type_name(context.session, context.type_oid);
        return Err(err!(INVALID_TEXT_REPRESENTATION, "invalid input value for enum {name}: \"{text}\""));
    };
    usable(context.session, ty, label)
}

/// A label's value.
///
/// # Errors
/// 55P04 when the label was added by the running transaction: after a rollback an index would have it still.
fn usable(session: &dyn Session, ty: &Type, (label, _, text): &(Oid, f32, Arc<str>)) -> Result<Datum> {
    if session.is_uncommitted_label(ty.oid, *label) {
        let name = lookup::type_name(session, ty.oid);
        return Err(err!(UNSAFE_NEW_ENUM_VALUE_USAGE, "unsafe use of new value \"{text}\" of enum type {name}")
            .hint("New enum values must be committed before they can be used."));
    }
    Ok(Datum::Oid(label.0))
}

fn label<'a>(context: &TypeContext<'a>, value: &Datum) -> Result<&'a str> {
    let ty = enum_type(context.session, context.type_oid)?;
    let label = ty.labels.iter().find(|l| l.0.0 == value.as_oid());
    let label =
        label.ok_or_else(|| err!(INVALID_BINARY_REPRESENTATION, "invalid internal value for enum: {}", value.as_oid()))?;
    Ok(&label.2)
}

fn output(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(label(context, value)?.as_bytes());
    Ok(())
}

fn send(context: &TypeContext<'_>, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    send_text(context, label(context, value)?, out)
}

fn place(ty: &Type, value: &Datum) -> usize {
    ty.labels.iter().position(|l| l.0.0 == value.as_oid()).unwrap_or(usize::MAX)
}

fn compare(call: &CallInfo<'_>, a: &[Datum]) -> Result<Ordering> {
    if a[0].as_oid() == a[1].as_oid() {
        return Ok(Ordering::Equal);
    }
    let ty = enum_type(call.session, call.arg_types.first().copied().unwrap_or(call.return_type))?;
    Ok(place(ty, &a[0]).cmp(&place(ty, &a[1])))
}

/// The labels from one value to another, both included; a null is the end.
fn range(call: &CallInfo<'_>, from: &Datum, to: &Datum) -> Result<Datum> {
    let named = call.arg_types.iter().find_map(|&ty| enum_type(call.session, ty).ok());
    let ty = named.ok_or_else(|| err!(FEATURE_NOT_SUPPORTED, "could not determine actual enum type"))?;
    let first = if from.is_null() { 0 } else { place(ty, from) };
    let last = if to.is_null() { ty.labels.len() - 1 } else { place(ty, to) };
    let labels = if first <= last { &ty.labels[first..=last] } else { &[] };
    let values = labels.iter().map(|l| usable(call.session, ty, l)).collect::<Result<Vec<_>>>()?;
    Ok(one_dimensional(ty.oid, values))
}

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("enum_eq", |_, a| Ok(Datum::Bool(a[0].as_oid() == a[1].as_oid()))),
    ("enum_ne", |_, a| Ok(Datum::Bool(a[0].as_oid() != a[1].as_oid()))),
    ("enum_lt", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_lt()))),
    ("enum_le", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_le()))),
    ("enum_gt", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_gt()))),
    ("enum_ge", |c, a| compare(c, a).map(|o| Datum::Bool(o.is_ge()))),
    ("enum_cmp", |c, a| compare(c, a).map(|o| Datum::Int4(o as i32))),
    ("enum_larger", |c, a| Ok(a[usize::from(compare(c, a)?.is_le())].clone())),
    ("enum_smaller", |c, a| Ok(a[usize::from(compare(c, a)?.is_ge())].clone())),
    ("enum_first", |c, _| {
        let ty = enum_type(c.session, c.arg_types.first().copied().unwrap_or(c.return_type))?;
        ty.labels.first().map_or(Ok(Datum::Null), |l| usable(c.session, ty, l))
    }),
    ("enum_last", |c, _| {
        let ty = enum_type(c.session, c.arg_types.first().copied().unwrap_or(c.return_type))?;
        ty.labels.last().map_or(Ok(Datum::Null), |l| usable(c.session, ty, l))
    }),
    ("enum_range_all", |c, _| range(c, &Datum::Null, &Datum::Null)),
    ("enum_range_bounds", |c, a| range(c, &a[0], &a[1])),
];
