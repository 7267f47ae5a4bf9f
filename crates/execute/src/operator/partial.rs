//! The rows before an error. Batches are evaluated a column at a time, so a row that fails hides the rows before it; clients of
//! PostgreSQL get those, so they are evaluated again without it.

use std::ops::Range;

use melba_types::{Batch, DbError, Result};

use crate::ExecContext;
use melba_expression::Expression;
use melba_expression::filter;

/// The results of the rows before the first failing one, if there are any, and its error. `evaluate` takes a range of the `rows`;
/// `error` is the error of all of them. Errors that no row causes are returned unchanged.
pub(super) fn rows_before<T>(
    rows: usize,
    error: DbError,
    mut evaluate: impl FnMut(Range<usize>) -> Result<T>,
) -> (Option<T>, DbError) {
    if !["21", "22", "23"].iter().any(|class| error.sqlstate().as_str().starts_with(class)) {
        return (None, error);
    }
    // Rows before `good` do not fail, one before `bad` does.
    let (mut good, mut bad) = (0, rows);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match evaluate(good..middle) {
            Ok(_) => good = middle,
            Err(_) => bad = middle,
        }
    }
    let first = match evaluate(good..bad) {
        Ok(_) => error,
        Err(first) => first,
    };
    let before = if good > 0 { evaluate(0..good).ok() } else { None };
    (before, first)
}

/// The rows of a batch that pass conditions. When one of the rows fails: the rows before it that pass, and the error, which is to follow.
pub(super) fn passing(conditions: &[Expression], ctx: &ExecContext, batch: Batch) -> Result<(Option<Batch>, Option<DbError>)> {
    let (kept, failed) = passing_rows(conditions, ctx, &batch)?;
    let batch = match kept {
        None => Some(batch).filter(|batch| batch.rows > 0),
        Some(rows) if rows.is_empty() => None,
        Some(rows) => Some(batch.take(&rows)),
    };
    Ok((batch, failed))
}

/// The same as the numbers of the rows; `None`: all.
pub(super) fn passing_rows(
    conditions: &[Expression],
    ctx: &ExecContext,
    batch: &Batch,
) -> Result<(Option<Vec<u32>>, Option<DbError>)> {
    match filter(conditions, ctx, batch) {
        Ok(kept) => Ok((kept, None)),
        Err(error) if !conditions.iter().all(Expression::is_repeatable) => Err(error),
        Err(error) => {
            let mut needed = Vec::new();
            conditions.iter().for_each(|condition| condition.columns(&mut needed));
            let part = |range: Range<usize>| {
                let part = batch.slice(range.clone(), Some(&needed));
                filter(conditions, ctx, &part).map(|kept| kept.unwrap_or_else(|| indices(0..range.len())))
            };
            match rows_before(batch.rows, error, part) {
                (Some(kept), error) if !kept.is_empty() => Ok((Some(kept), Some(error))),
                (_, error) => Err(error),
            }
        }
    }
}

/// The indices of a range of rows.
pub(super) fn indices(range: Range<usize>) -> Vec<u32> {
    range.map(|i| i as u32).collect()
}

#[cfg(test)]
mod tests {
    use melba_types::err;

    use super::*;

    #[test]
    fn rows_before_the_first_that_fails_are_kept() {
        let evaluate = |range: Range<usize>| match range.clone().find(|row| [5, 7].contains(row)) {
            Some(row) => Err(err!(DIVISION_BY_ZERO, "row {row}")),
            None => Ok(range),
        };
        let (before, error) = rows_before(10, err!(DIVISION_BY_ZERO, "row 7"), evaluate);
        assert_eq!((before, error.message()), (Some(0..5), "row 5"));
        let (before, error) = rows_before(1, err!(DIVISION_BY_ZERO, "x"), |_| Err::<(), _>(err!(DIVISION_BY_ZERO, "row 0")));
        assert_eq!((before, error.message()), (None, "row 0"));
        let (before, error) = rows_before(10, err!(QUERY_CANCELED, "stop"), evaluate);
        assert_eq!((before, error.message()), (None, "stop"));
    }
}
