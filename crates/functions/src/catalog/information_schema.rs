//! The helpers of information_schema that clients call, too (jOOQ for one): the parts of a type modifier.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, DbError, Oid, Result, err, oids};

use super::oid_argument;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("_pg_index_position_13330", index_position),
    ("_pg_truetypid_13331", |c, a| true_type(c, a, "typbasetype", "atttypid")),
    ("_pg_truetypmod_13332", |c, a| true_type(c, a, "typtypmod", "atttypmod")),
    ("_pg_char_max_length_13333", |_, a| Ok(number(char_max_length(oid_argument(a, 0), a[1].as_i32())))),
    ("_pg_char_octet_length_13334", |_, a| char_octet_length(oid_argument(a, 0), a[1].as_i32()).map(number)),
    ("_pg_numeric_precision_13336", |_, a| Ok(number(numeric_precision(oid_argument(a, 0), a[1].as_i32())))),
    ("_pg_numeric_precision_radix_13337", |_, a| Ok(number(numeric_precision_radix(oid_argument(a, 0))))),
    ("_pg_numeric_scale_13338", |_, a| Ok(number(numeric_scale(oid_argument(a, 0), a[1].as_i32())))),
    ("_pg_datetime_precision_13339", |_, a| Ok(number(datetime_precision(oid_argument(a, 0), a[1].as_i32())))),
    ("_pg_interval_type_13340", interval_type),
];

/// Of a type without a modifier.
const NO_TYPMOD: i32 = -1;
/// Bytes that a modifier of numeric, char and varchar counts beside its value.
const HEADER: i32 = 4;
/// Bytes of a character in UTF-8.
const CHARACTER_BYTES_MAX: i32 = 4;
/// The value reported for a text of any length.
const OCTETS_MAX: i32 = 1 << 30;

fn number(value: Option<i32>) -> Datum {
    value.map_or(Datum::Null, Datum::Int4)
}

/// The place of a column among an index's own.
fn index_position(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let Datum::Int2(wanted) = args[1] else { return Ok(Datum::Null) };
    let catalog = call.session.catalog();
    let Some(index) = catalog.relation(oid_argument(args, 0)).and_then(|r| r.index.as_ref()) else { return Ok(Datum::Null) };
    let columns = index.keys.iter().map(|key| key.column).chain(index.include.iter().copied());
    Ok(number(columns.into_iter().position(|column| column == wanted).map(|at| at as i32 + 1)))
}

/// A domain's base type and modifier, or those of the column: rows of pg_attribute and pg_type.
fn true_type(call: &CallInfo<'_>, args: &[Datum], of_domain: &str, of_column: &str) -> Result<Datum> {
    match field(call, &args[1], "typtype")? {
        Datum::Char(b'd') => field(call, &args[1], of_domain),
        _ => field(call, &args[0], of_column),
    }
}

fn field(call: &CallInfo<'_>, row: &Datum, name: &str) -> Result<Datum> {
    let Datum::Record(record) = row else { return Err(DbError::internal("a row is no record")) };
    let catalog = call.session.catalog();
    let relation = catalog.type_(record.type_oid).and_then(|t| catalog.relation(t.relation));
    let at = relation.and_then(|r| r.columns.iter().position(|c| *c.name == *name));
    let value = at.and_then(|at| record.fields.get(at)).cloned();
    value.ok_or_else(|| err!(UNDEFINED_COLUMN, "column \"{name}\" does not exist"))
}

fn char_max_length(ty: Oid, typmod: i32) -> Option<i32> {
    match ty {
        _ if typmod == NO_TYPMOD => None,
        oids::BPCHAR | oids::VARCHAR => Some(typmod.wrapping_sub(HEADER)),
        oids::BIT | oids::VARBIT => Some(typmod),
        _ => None,
    }
}

fn char_octet_length(ty: Oid, typmod: i32) -> Result<Option<i32>> {
    let length = match ty {
        oids::TEXT | oids::BPCHAR | oids::VARCHAR if typmod == NO_TYPMOD => return Ok(Some(OCTETS_MAX)),
        oids::BPCHAR | oids::VARCHAR => char_max_length(ty, typmod),
        _ => None,
    };
    let octets = |length: i32| length.checked_mul(CHARACTER_BYTES_MAX);
    length.map(|l| octets(l).ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))).transpose()
}

fn numeric_precision(ty: Oid, typmod: i32) -> Option<i32> {
    match ty {
        oids::INT2 => Some(16),
        oids::INT4 => Some(32),
        oids::INT8 => Some(64),
        oids::NUMERIC if typmod != NO_TYPMOD => Some((typmod.wrapping_sub(HEADER) >> 16) & 0xFFFF),
        oids::FLOAT4 => Some(24),
        oids::FLOAT8 => Some(53),
        _ => None,
    }
}

fn numeric_precision_radix(ty: Oid) -> Option<i32> {
    match ty {
        oids::INT2 | oids::INT4 | oids::INT8 | oids::FLOAT4 | oids::FLOAT8 => Some(2),
        oids::NUMERIC => Some(10),
        _ => None,
    }
}

fn numeric_scale(ty: Oid, typmod: i32) -> Option<i32> {
    match ty {
        oids::INT2 | oids::INT4 | oids::INT8 => Some(0),
        oids::NUMERIC if typmod != NO_TYPMOD => Some(typmod.wrapping_sub(HEADER) & 0xFFFF),
        _ => None,
    }
}

fn datetime_precision(ty: Oid, typmod: i32) -> Option<i32> {
    match ty {
        oids::DATE => Some(0),
        oids::TIME | oids::TIMESTAMP | oids::TIMESTAMPTZ | oids::TIMETZ => Some(if typmod < 0 { 6 } else { typmod }),
        oids::INTERVAL if typmod < 0 || typmod & 0xFFFF == 0xFFFF => Some(6),
        oids::INTERVAL => Some(typmod & 0xFFFF),
        _ => None,
    }
}

/// The fields that an interval is restricted to.
fn interval_type(call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    if oid_argument(args, 0) != oids::INTERVAL {
        return Ok(Datum::Null);
    }
    let text = call.session.catalog().format_type(oids::INTERVAL, Some(args[1].as_i32()), &call.session.search_path());
    let fields = text.strip_prefix("interval").map(|rest| rest.trim_start_matches(|c: char| matches!(c, '(' | ')' | '0'..='9')));
    Ok(fields.and_then(|rest| rest.strip_prefix(' ')).map_or(Datum::Null, |fields| Datum::text(fields.to_uppercase())))
}
