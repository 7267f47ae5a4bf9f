//! CURRENT_DATE, CURRENT_USER and the like, and nextval of identity columns.

use melba_fmgr::{CallInfo, registry};
use melba_types::{Datum, Oid, Result, oids};

use crate::Evaluation;
use melba_tree::SqlValueFunction;

/// Calls a built-in by pg_proc.prosrc, or the session's function of that name.
pub(super) fn by_source(source: &str, ctx: &Evaluation, args: &[Datum], arg_types: &[Oid], return_type: Oid) -> Result<Datum> {
    let context = CallInfo {
        session: &*ctx.session,
        arg_types,
        return_type,
        collation: Oid::INVALID,
        variadic: false,
        columns: None,
        view: CallInfo::NO_VIEW,
    };
    match registry::scalar(source) {
        Some(function) => function(&context, args),
        None => ctx.session.system_function(source, &context, args),
    }
}

pub(super) fn eval(function: SqlValueFunction, ty: Oid, typmod: i32, ctx: &Evaluation) -> Result<Datum> {
    let now = || Datum::Int8(ctx.session.transaction_timestamp());
    let convert = |source: &str| by_source(source, ctx, &[now()], &[oids::TIMESTAMPTZ], ty);
    let (value, scale) = match function {
        SqlValueFunction::CurrentDate => return convert("timestamptz_date"),
        SqlValueFunction::CurrentTime => (convert("timestamptz_timetz")?, "timetz_scale"),
        SqlValueFunction::CurrentTimestamp => (now(), "timestamptz_scale"),
        SqlValueFunction::LocalTime => (convert("timestamptz_time")?, "time_scale"),
        SqlValueFunction::LocalTimestamp => (convert("timestamptz_timestamp")?, "timestamp_scale"),
        SqlValueFunction::CurrentRole | SqlValueFunction::CurrentUser | SqlValueFunction::User => {
            return by_source("current_user", ctx, &[], &[], ty);
        }
        SqlValueFunction::SessionUser => return by_source("session_user", ctx, &[], &[], ty),
        SqlValueFunction::CurrentCatalog => return by_source("current_database", ctx, &[], &[], ty),
        SqlValueFunction::CurrentSchema => return by_source("current_schema", ctx, &[], &[], ty),
    };
    if typmod < 0 {
        return Ok(value);
    }
    by_source(scale, ctx, &[value, Datum::Int4(typmod)], &[ty, oids::INT4], ty)
}

pub(super) fn next_value(sequence: Oid, ty: Oid, ctx: &Evaluation) -> Result<Datum> {
    let value = by_source("nextval_identity", ctx, &[Datum::Oid(sequence.0)], &[oids::REGCLASS], oids::INT8)?;
    let Datum::Int8(value) = value else { return Ok(value) };
    let out_of_range = |name: &str| melba_types::err!(NUMERIC_VALUE_OUT_OF_RANGE, "{name} out of range");
    Ok(match ty {
        oids::INT4 => Datum::Int4(i32::try_from(value).map_err(|_| out_of_range("integer"))?),
        oids::INT2 => Datum::Int2(i16::try_from(value).map_err(|_| out_of_range("smallint"))?),
        _ => Datum::Int8(value),
    })
}
