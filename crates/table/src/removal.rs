//! A partition may stop being one only when no row refers to its rows by a foreign key to the whole table.

use std::sync::Arc;

use melba_catalog::Constraint;
use melba_engine::Transaction;
use melba_expression::Evaluation;
use melba_types::{Datum, DbError, Result};

use super::error;
use super::events::Runner;
use super::foreign_key::{as_referenced, periods};
use super::referenced_key::{key_of, place_of};
use super::referencing::keys_of_leaves;

/// `part`: of a foreign key, for the partition.
///
/// # Errors
/// 23503.
pub fn check_removal(ctx: &Evaluation, txn: &Arc<Transaction>, part: &Constraint) -> Result<()> {
    let partition = part.foreign_key.as_ref().ok_or_else(|| DbError::internal("foreign key without a definition"))?;
    let keys = keys_of_leaves(ctx.catalog(), partition.referenced_table);
    let mut runner = Runner::new(ctx, txn, Arc::default());
    keys.iter().filter(|key| key.oid == part.oid).try_for_each(|key| check_leaf(&mut runner, part, key))
}

fn check_leaf(runner: &mut Runner<'_>, part: &Constraint, key: &Constraint) -> Result<()> {
    let leaf = runner.target(key.relation)?;
    let projection: Vec<usize> = key.columns.iter().map(|c| *c as usize - 1).collect();
    let (view, _pin) = runner.txn.latest_view();
    let mut scan = runner.txn.scan(view, leaf.tree, &projection, &leaf.missing, &[], None)?;
    while let Some(batch) = scan.next()? {
        runner.ctx.check_interrupt()?;
        for i in 0..batch.row_ids.len() {
            let stored = batch.columns.iter().zip(&projection);
            let values = stored.map(|(c, at)| runner.ctx.expand(c.get(i), leaf.relation.columns[*at].kind));
            let values: Vec<Datum> = values.collect::<Result<_>>()?;
            if !values.iter().any(Datum::is_null) && is_there(runner, &leaf, key, &values)? {
                let whole = runner.ctx.catalog().relation(part.relation).unwrap_or(&leaf.relation);
                return Err(error::removed(&*runner.ctx.session, part, whole, &values));
            }
        }
    }
    Ok(())
}

fn is_there(runner: &mut Runner<'_>, leaf: &super::TableTarget, key: &Constraint, values: &[Datum]) -> Result<bool> {
    let Some(values) = as_referenced(runner, leaf, key, values)? else { return Ok(false) };
    if key_of(key)?.has_period() {
        return periods(runner, key, &values)?.overlap();
    }
    let Some(place) = place_of(runner.ctx, |table| runner.target(table), key, &values)? else { return Ok(false) };
    Ok(runner.txn.index(place.index).find_latest(&place.bytes)?.is_some())
}
