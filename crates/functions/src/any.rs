//! Functions that take values of any type and read only their type, their collation, or whether they are null.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::{Datum, Oid, Result, err, oids};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_typeof", |call, _| Ok(call.arg_types.first().map_or(Datum::Null, |ty| Datum::Oid(ty.0)))),
    ("pg_collation_for", collation_for),
    ("pg_num_nulls", |call, a| Ok(count(call, a, true))),
    ("pg_num_nonnulls", |call, a| Ok(count(call, a, false))),
];

/// # Errors
/// 42804 for a type without collations.
fn collation_for(call: &CallInfo<'_>, _: &[Datum]) -> Result<Datum> {
    let (catalog, ty) = (call.session.catalog(), call.arg_types.first().copied().unwrap_or_default());
    let has_collations = catalog.type_(ty).is_some_and(|t| t.collation.is_valid());
    if !has_collations && ty != oids::UNKNOWN {
        let name = catalog.type_name(ty, &call.session.search_path());
        return Err(err!(DATATYPE_MISMATCH, "collations are not supported by type {name}"));
    }
    let name = |oid: Oid| catalog.reg_output(oids::REGCOLLATION, oid, &call.session.search_path());
    Ok(if call.collation.is_valid() { Datum::text(name(call.collation)) } else { Datum::Null })
}

/// NULL when the arguments are passed as one array and that is null.
fn count(call: &CallInfo<'_>, args: &[Datum], nulls: bool) -> Datum {
    let values = match args {
        [Datum::Null] if call.variadic => return Datum::Null,
        [Datum::Array(array)] if call.variadic => &array.elements,
        values => values,
    };
    Datum::Int4(values.iter().filter(|v| v.is_null() == nulls).count() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_counted() {
        let session = crate::testing::session();
        let mut call = session.call(&[oids::INT4], oids::INT4);
        let args = [Datum::Null, Datum::Int4(1), Datum::Null];
        assert_eq!(count(&call, &args, true).as_i32(), 2);
        assert_eq!(count(&call, &args, false).as_i32(), 1);
        call.variadic = true;
        assert!(count(&call, &args[..1], true).is_null());
    }
}
