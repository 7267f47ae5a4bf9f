//! tsvector_update_trigger and tsvector_update_trigger_column: they keep a column with the tsvector of other columns.

use std::sync::Arc;

use melba_catalog::trigger_events::{BEFORE, INSERT, ROW, UPDATE};
use melba_catalog::{Column, regs};
use melba_fmgr::{Session, TriggerCall};
use melba_functions::regs::object_named;
use melba_types::{Datum, DbError, Oid, Record, Result, bail, err, oids};

use crate::conversion::config;
use crate::document::Document;

/// A column and its place among the columns that are not dropped.
struct NamedColumn<'a> {
    column: &'a Column,
    number: i16,
    place: usize,
}

/// Runs the function of a trigger: its arguments are the tsvector column, the configuration or (`by_column`) the column with it, and
/// the text columns. An UPDATE that sets none of these leaves the row as it is.
///
/// # Errors
/// XX000 for a trigger that is none before a row, 42703 and 42804 for its arguments.
pub fn run(session: &dyn Session, call: &TriggerCall<'_>, by_column: bool) -> Result<Datum> {
    check_trigger(call)?;
    let (Some(Datum::Record(row)), [vector, config_name, texts @ ..]) = (call.new, &call.trigger.arguments[..]) else {
        return Err(internal("arguments must be tsvector_field, ts_config, text_field1, ...)"));
    };
    let target = column(call, vector).ok_or_else(|| err!(UNDEFINED_COLUMN, "tsvector column \"{vector}\" does not exist"))?;
    check_type(session, &target, oids::TSVECTOR, vector, "of tsvector type")?;
    let of = if by_column { config_in(session, call, row, config_name)? } else { config_named(session, config_name)? };
    let config = config(session, of)?;
    let (mut document, mut is_needed) = (Document::default(), call.event == INSERT);
    for name in texts {
        let found = column(call, name).ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist"))?;
        check_type(session, &found, oids::TEXT, name, "of a character type")?;
        is_needed |= call.updated.contains(&found.number);
        if let Datum::Text(text) = &row.fields[found.place] {
            document.add(session, &config, text)?;
        }
    }
    let Some(new) = call.new.filter(|_| !is_needed) else {
        let mut fields = row.fields.clone();
        fields[target.place] = document.into_vector()?;
        return Ok(Datum::Record(Arc::new(Record { fields, ..(**row).clone() })));
    };
    Ok(new.clone())
}

fn internal(what: &str) -> DbError {
    DbError::internal(format!("tsvector_update_trigger: {what}"))
}

fn check_trigger(call: &TriggerCall<'_>) -> Result<()> {
    if !call.trigger.has(ROW) {
        return Err(internal("must be fired for row"));
    }
    if !call.trigger.has(BEFORE) {
        return Err(internal("must be fired BEFORE event"));
    }
    if call.event != INSERT && call.event != UPDATE {
        return Err(internal("must be fired for INSERT or UPDATE"));
    }
    if call.trigger.arguments.len() < 3 {
        return Err(internal("arguments must be tsvector_field, ts_config, text_field1, ...)"));
    }
    Ok(())
}

fn column<'a>(call: &TriggerCall<'a>, name: &str) -> Option<NamedColumn<'a>> {
    let live = call.table.columns.iter().zip(1..).filter(|(column, _)| !column.dropped);
    let mut found = live.enumerate().filter(|(_, (column, _))| *column.name == *name);
    found.next().map(|(place, (column, number))| NamedColumn { column, number, place })
}

fn check_type(session: &dyn Session, found: &NamedColumn<'_>, ty: Oid, name: &str, what: &str) -> Result<()> {
    if !session.catalog().is_binary_coercible(found.column.ty, ty) {
        bail!(DATATYPE_MISMATCH, "column \"{name}\" is not {what}");
    }
    Ok(())
}

/// The configuration that a column of the row has.
fn config_in(session: &dyn Session, call: &TriggerCall<'_>, row: &Record, name: &str) -> Result<Oid> {
    let found = column(call, name).ok_or_else(|| err!(UNDEFINED_COLUMN, "configuration column \"{name}\" does not exist"))?;
    check_type(session, &found, oids::REGCONFIG, name, "of regconfig type")?;
    match row.fields[found.place] {
        Datum::Oid(oid) => Ok(Oid(oid)),
        _ => Err(err!(NULL_VALUE_NOT_ALLOWED, "configuration column \"{name}\" must not be null")),
    }
}

/// The configuration of a name, which must not depend on the search path.
fn config_named(session: &dyn Session, name: &str) -> Result<Oid> {
    if regs::parse_qualified_name(name)?.len() < 2 {
        bail!(INVALID_PARAMETER_VALUE, "text search configuration name \"{name}\" must be schema-qualified");
    }
    object_named(session, oids::REGCONFIG, name)
}
