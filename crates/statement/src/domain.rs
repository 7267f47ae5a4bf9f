//! Checks a value against its domain, for `melba_fmgr::io::check_domain`.

use hashbrown::HashMap;
use std::sync::Arc;

use melba_analyze::analyze_stored_domain_check;
use melba_catalog::{Constraint, DomainInfo, Type};
use melba_expression::{Evaluation, Expression, NoSubPlans, compile_domain_check};
use melba_fmgr::Session;
use melba_types::{Batch, Datum, DbError, Oid, Result, err};

use super::context::StatementContext;
use super::planning::analysis;

/// Returns the value when it satisfies the domain and the domains under it, innermost first.
///
/// # Errors
/// 23502 and 23514, in PostgreSQL's wording; any error of a check.
pub(super) fn domain_check(context: &StatementContext, domain: Oid, value: &Datum) -> Result<Datum> {
    let chain = domains_from(context, domain);
    // Errors name the given domain, whichever of those under it has the constraint.
    let Some(asked) = chain.first().copied() else { return Ok(value.clone()) };
    let name = || context.catalog.type_name(asked.oid, &context.path.path);
    let schema = || context.catalog.namespace(asked.namespace).map_or("", |n| &n.name);
    for ty in chain.into_iter().rev() {
        let Some(info) = &ty.domain else { continue };
        if info.not_null && value.is_null() {
            return Err(err!(NOT_NULL_VIOLATION, "domain {} does not allow null values", name())
                .schema(schema())
                .data_type(&*asked.name));
        }
        for constraint in info.constraints.iter().filter_map(|oid| context.catalog.constraint(*oid)) {
            let Some(check) = compiled_check(context, constraint, info)? else { continue };
            if is_violated(&check.eval_row(&evaluation(context)?, std::slice::from_ref(value))?) {
                let message = format!("value for domain {} violates check constraint \"{}\"", name(), constraint.name);
                let error = DbError::new(melba_types::SqlState::CHECK_VIOLATION, message);
                return Err(error.schema(schema()).data_type(&*asked.name).constraint(&*constraint.name));
            }
        }
    }
    Ok(value.clone())
}

/// Checks the one column of a batch.
///
/// # Errors
/// Those of `domain_check` for the first value that has one.
pub(super) fn domain_check_batch(context: &StatementContext, domain: Oid, values: &Batch) -> Result<()> {
    if all_satisfy(context, domain, values).unwrap_or(false) {
        return Ok(());
    }
    // One by one, so that the error is that of the first value.
    (0..values.rows).try_for_each(|row| domain_check(context, domain, &values.columns[0].get(row)).map(drop))
}

/// Whether all values are known to satisfy the domain. False as well when a check must see the values one by one.
fn all_satisfy(context: &StatementContext, domain: Oid, values: &Batch) -> Result<bool> {
    let ctx = evaluation(context)?;
    for ty in domains_from(context, domain) {
        let Some(info) = &ty.domain else { continue };
        if info.not_null && (0..values.rows).any(|row| values.columns[0].is_null(row)) {
            return Ok(false);
        }
        for constraint in info.constraints.iter().filter_map(|oid| context.catalog.constraint(*oid)) {
            let Some(check) = compiled_check(context, constraint, info)? else { continue };
            if check.is_volatile() {
                return Ok(false);
            }
            let results = check.eval_vector(&ctx, values)?;
            if (0..values.rows).any(|row| is_violated(&results.get(row))) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The domain and those under it, outermost first.
fn domains_from(context: &StatementContext, domain: Oid) -> Vec<&Type> {
    let domain_of = |oid: Oid| context.catalog.type_(oid).filter(|ty| ty.domain.is_some()).map(|ty| &**ty);
    std::iter::successors(domain_of(domain), |ty| domain_of(ty.domain.as_ref()?.base)).collect()
}

fn evaluation(context: &StatementContext) -> Result<Evaluation<NoSubPlans>> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let session: Arc<dyn Session> = Arc::new(context.clone());
    Ok(Evaluation::plain(session, &tx.engine))
}

/// A check, which reads the value as its column 0. It is kept for the next value as long as the catalog does not change.
fn compiled_check(context: &StatementContext, constraint: &Constraint, info: &DomainInfo) -> Result<Option<Arc<Expression>>> {
    let Some(text) = &constraint.expression else { return Ok(None) };
    {
        let mut checks = context.session.domain_checks.lock();
        if !checks.0.as_ref().is_some_and(|catalog| Arc::ptr_eq(catalog, &context.catalog)) {
            *checks = (Some(context.catalog.clone()), HashMap::new());
        }
        if let Some(check) = checks.1.get(&constraint.oid) {
            return Ok(Some(check.clone()));
        }
    }
    let (base, typmod) = context.catalog.base_type_and_typmod(info.base, info.typmod);
    // Analysis may check values of domains itself.
    let expression = analyze_stored_domain_check(&analysis(context), text, base, typmod)?;
    let check = Arc::new(compile_domain_check(&context.catalog, Some(context), &expression, base)?);
    let mut checks = context.session.domain_checks.lock();
    if checks.0.as_ref().is_some_and(|catalog| Arc::ptr_eq(catalog, &context.catalog)) {
        checks.1.insert(constraint.oid, check.clone());
    }
    Ok(Some(check))
}

/// A check is satisfied by true and by null.
fn is_violated(result: &Datum) -> bool {
    matches!(result, Datum::Bool(false))
}
