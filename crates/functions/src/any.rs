//! Functions that take values of any type and read only their type or whether they are null.

use melba_fmgr::{CallInfo, ScalarFn};
use melba_types::Datum;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_typeof", |call, _| Ok(call.arg_types.first().map_or(Datum::Null, |ty| Datum::Oid(ty.0)))),
    ("pg_num_nulls", |call, a| Ok(count(call, a, true))),
    ("pg_num_nonnulls", |call, a| Ok(count(call, a, false))),
];

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
    use melba_types::oids;

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
