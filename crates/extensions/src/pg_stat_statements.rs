//! pg_stat_statements: the costs of statements. The session counts them and returns the rows.

use melba_fmgr::{ScalarFn, SetFn};

pub const FUNCTIONS: &[(&str, ScalarFn)] = &[
    ("pg_stat_statements_info", |call, args| call.session.system_function("pg_stat_statements_info", call, args)),
    ("pg_stat_statements_reset_1_11", |call, args| call.session.system_function("pg_stat_statements_reset_1_11", call, args)),
];

pub const SETS: &[(&str, SetFn)] = &[("pg_stat_statements_1_12", |call, args| {
    Ok(Box::new(call.session.system_rows("pg_stat_statements_1_12", call, args)?.into_iter().map(Ok)))
})];
