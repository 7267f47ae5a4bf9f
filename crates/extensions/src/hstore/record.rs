//! hstore from the fields of a record, and records with fields from an hstore.

use std::sync::Arc;

use melba_fmgr::{CallInfo, RowColumn, ScalarFn, io, lookup};
use melba_functions::record::{columns, complete, field_names};
use melba_types::{Datum, DbError, Oid, Record, Result, err, oids};

use super::{datum, find, pairs};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[("hstore_from_record", from_record), ("hstore_populate_record", populate)];

fn unregistered() -> DbError {
    err!(WRONG_OBJECT_TYPE, "record type has not been registered")
}

fn from_record(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let Datum::Record(record) = &a[0] else {
        let ty = call.arg_types.first().copied().unwrap_or(oids::RECORD);
        let columns = columns(call.session, ty).ok_or_else(unregistered)?;
        return datum(columns.iter().map(|column| (&*column.name, None)).collect());
    };
    let record = complete(call.session, record);
    let names = field_names(call.session, &record);
    let mut values = Vec::with_capacity(names.len());
    for (field, ty) in record.fields.iter().zip(record.field_types.iter()) {
        values.push(if field.is_null() { None } else { Some(io::text_of(call.session, *ty, field)?) });
    }
    datum(names.iter().zip(&values).map(|(name, value)| (&**name, value.as_deref())).collect())
}

/// The row type of a call: a domain over it if the argument is of one.
fn row_type(call: &CallInfo<'_>, base: Option<&Record>) -> Result<(Oid, Vec<RowColumn>)> {
    let ty = call.arg_types.first().copied().unwrap_or(oids::RECORD);
    if let Some(columns) = columns(call.session, ty) {
        return Ok((ty, columns));
    }
    if ty != oids::RECORD {
        return Err(err!(DATATYPE_MISMATCH, "first argument must be a rowtype"));
    }
    let base = base.ok_or_else(unregistered)?;
    if let Some(columns) = columns(call.session, base.type_oid) {
        return Ok((base.type_oid, columns));
    }
    let names = field_names(call.session, base);
    let column = |(name, ty): (Arc<str>, &Oid)| RowColumn { name, ty: *ty, typmod: -1 };
    Ok((oids::RECORD, names.into_iter().zip(base.field_types.iter()).map(column).collect()))
}

fn populate(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let base = match &a[0] {
        Datum::Record(record) => Some(complete(call.session, record)),
        _ => None,
    };
    let (ty, targets) = row_type(call, base.as_deref())?;
    if a[1].is_null() {
        return Ok(a[0].clone());
    }
    let pairs = pairs(&a[1]);
    if pairs.is_empty() && base.is_some() {
        return Ok(a[0].clone());
    }
    let mut fields = Vec::with_capacity(targets.len());
    for (i, target) in targets.iter().enumerate() {
        fields.push(match (find(&pairs, &target.name), &base) {
            (Some(Some(text)), _) => io::text_in(call.session, target.ty, target.typmod, text)?,
            (None, Some(base)) => base.fields.get(i).cloned().unwrap_or(Datum::Null),
            // A domain may forbid NULL.
            _ if lookup::domain(call.session, target.ty).is_some() => io::check_domain(call.session, target.ty, Datum::Null)?,
            _ => Datum::Null,
        });
    }
    let row_type = lookup::base_type(call.session, ty);
    let field_types = targets.iter().map(|target| target.ty).collect();
    let field_names = (row_type == oids::RECORD).then(|| targets.iter().map(|target| target.name.clone()).collect());
    let filled = Datum::Record(Arc::new(Record { type_oid: row_type, field_types, field_names, fields }));
    if row_type == ty { Ok(filled) } else { io::check_domain(call.session, ty, filled) }
}
