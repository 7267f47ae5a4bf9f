//! PostgreSQL's storage size of a value: pg_column_size and similar functions.

use melba_fmgr::varlena::{HEADER_BYTES, data_bytes};
use melba_fmgr::{CallInfo, ScalarFn, lookup};
use melba_types::Datum;

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_column_size", |call, args| Ok(Datum::Int4(column_size(call, &args[0]) as i32))),
    // Values that reach a function are neither compressed nor out of line; columns are checked before they are expanded.
    ("pg_column_compression", |_, _| Ok(Datum::Null)),
    ("pg_column_toast_chunk_id", |_, _| Ok(Datum::Null)),
];

fn column_size(call: &CallInfo<'_>, value: &Datum) -> usize {
    let length = lookup::type_length(call.session, call.arg_types.first().copied().unwrap_or_default());
    match length {
        -1 => data_bytes(value) + HEADER_BYTES,
        -2 => data_bytes(value) + 1,
        fixed => fixed as usize,
    }
}
