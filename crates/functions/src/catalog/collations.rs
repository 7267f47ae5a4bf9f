//! Versions of the orders of collations.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Result, err};

use super::oid_argument;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_collation_actual_version", actual_version),
    // The order of bytes has none.
    ("pg_database_collation_actual_version", |_, _| Ok(Datum::Null)),
    ("icu_unicode_version", |_, _| Ok(Datum::text(melba_collation::UNICODE_VERSION))),
];

fn actual_version(call: &CallInfo<'_>, a: &[Datum]) -> Result<Datum> {
    let oid = oid_argument(a, 0);
    let collation = call.session.catalog().collation(oid);
    let collation = collation.ok_or_else(|| err!(UNDEFINED_OBJECT, "collation with OID {oid} does not exist"))?;
    Ok(collation.actual_version().map_or(Datum::Null, Datum::text))
}
