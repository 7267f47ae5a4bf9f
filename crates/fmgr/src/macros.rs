//! Macros that write the repetitive tables of operators.

/// Rows for `=`, `<>`, `<`, `<=`, `>`, `>=` and the btree comparison, by the names given in that order; `$compare` takes
/// two datums and returns an `Ordering`.
#[macro_export]
macro_rules! comparison_table {
    ($(#[$doc:meta])* $table:ident: $($compare:expr => $eq:expr, $ne:expr, $lt:expr, $le:expr, $gt:expr, $ge:expr, $cmp:expr;)+) => {
        $(#[$doc])*
        pub const $table: &[(&str, $crate::ScalarFn)] = &[$(
            ($eq, |_, a| Ok(melba_types::Datum::Bool($compare(&a[0], &a[1]).is_eq()))),
            ($ne, |_, a| Ok(melba_types::Datum::Bool($compare(&a[0], &a[1]).is_ne()))),
            ($lt, |_, a| Ok(melba_types::Datum::Bool($compare(&a[0], &a[1]).is_lt()))),
            ($le, |_, a| Ok(melba_types::Datum::Bool($compare(&a[0], &a[1]).is_le()))),
            ($gt, |_, a| Ok(melba_types::Datum::Bool($compare(&a[0], &a[1]).is_gt()))),
            ($ge, |_, a| Ok(melba_types::Datum::Bool($compare(&a[0], &a[1]).is_ge()))),
            ($cmp, |_, a| Ok(melba_types::Datum::Int4($compare(&a[0], &a[1]) as i32))),
        )+];
    };
}
