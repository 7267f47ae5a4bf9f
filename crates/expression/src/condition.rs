//! Three-valued logic.

use melba_types::{Datum, Result};

use super::Expression;
use crate::Evaluation;
use melba_tree::BooleanTest;

pub(super) fn and(args: &[Expression], ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
    let mut unknown = false;
    for arg in args {
        match arg.eval_row(ctx, row)? {
            Datum::Bool(true) => {}
            Datum::Bool(false) => return Ok(Datum::Bool(false)),
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(true) })
}

pub(super) fn or(args: &[Expression], ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
    let mut unknown = false;
    for arg in args {
        match arg.eval_row(ctx, row)? {
            Datum::Bool(false) => {}
            Datum::Bool(true) => return Ok(Datum::Bool(true)),
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(false) })
}

pub(super) fn not(value: Datum) -> Datum {
    match value {
        Datum::Bool(v) => Datum::Bool(!v),
        other => other,
    }
}

/// IS [NOT] NULL. A composite value is null when all its fields are, and not null when none is.
pub(super) fn null_test(value: &Datum, is_null: bool, of_row: bool) -> Datum {
    match value {
        Datum::Record(record) if of_row => Datum::Bool(record.fields.iter().all(|f| f.is_null() == is_null)),
        value => Datum::Bool(value.is_null() == is_null),
    }
}

pub(super) fn boolean_test(value: &Datum, test: BooleanTest) -> Datum {
    let value = match value {
        Datum::Bool(v) => Some(*v),
        _ => None,
    };
    Datum::Bool(match test {
        BooleanTest::True => value == Some(true),
        BooleanTest::NotTrue => value != Some(true),
        BooleanTest::False => value == Some(false),
        BooleanTest::NotFalse => value != Some(false),
        BooleanTest::Unknown => value.is_none(),
        BooleanTest::NotUnknown => value.is_some(),
    })
}
