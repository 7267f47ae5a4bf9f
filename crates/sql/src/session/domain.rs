//! Whether a value satisfies its domain: what `melba_functions::io::check_domain` asks the session.

use hashbrown::HashMap;
use std::sync::Arc;

use melba_functions::Session;
use melba_types::{Datum, DbError, Oid, Result, err};

use super::context::StatementContext;
use super::pipeline::analysis;
use melba_analyze::analyze_stored_domain_check;
use melba_expression::compile_domain_check;
use melba_expression::{Evaluation, Expression};

impl StatementContext {
    /// Returns the value when it satisfies the domain and the domains under it, innermost first.
    ///
    /// # Errors
    /// 23502 and 23514, as PostgreSQL words them; whatever a check raises.
    pub(super) fn domain_check(&self, domain: Oid, value: &Datum) -> Result<Datum> {
        let mut chain = Vec::new();
        let mut next = domain;
        while let Some(ty) = self.catalog.type_(next).filter(|t| t.domain.is_some()) {
            next = ty.domain.as_ref().map_or(Oid::INVALID, |d| d.base);
            chain.push(ty);
        }
        // Errors name the domain that was asked for, whichever of those under it has the constraint.
        let Some(asked) = chain.first().copied() else { return Ok(value.clone()) };
        let name = || self.catalog.type_name(asked.oid, &self.path.path);
        let schema = || self.catalog.namespace(asked.namespace).map_or("", |n| &n.name);
        for ty in chain.into_iter().rev() {
            let Some(info) = &ty.domain else { continue };
            if info.not_null && value.is_null() {
                return Err(err!(NOT_NULL_VIOLATION, "domain {} does not allow null values", name())
                    .schema(schema())
                    .data_type(&*asked.name));
            }
            for constraint in info.constraints.iter().filter_map(|oid| self.catalog.constraint(*oid)) {
                let Some(text) = &constraint.expression else { continue };
                let (base, typmod) = self.catalog.base_type_and_typmod(info.base, info.typmod);
                let check = self.compiled_check(constraint.oid, text, base, typmod)?;
                if !self.satisfies(&check, value)? {
                    let message = format!("value for domain {} violates check constraint \"{}\"", name(), constraint.name);
                    let error = DbError::new(melba_types::SqlState::CHECK_VIOLATION, message);
                    return Err(error.schema(schema()).data_type(&*asked.name).constraint(&*constraint.name));
                }
            }
        }
        Ok(value.clone())
    }

    /// A check is satisfied by true and by null.
    fn satisfies(&self, check: &Expression, value: &Datum) -> Result<bool> {
        let tx = self.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
        let session: Arc<dyn Session> = Arc::new(self.clone());
        let ctx = Evaluation::plain(session, &tx.engine);
        let result = ctx.with_local(value.clone(), || check.eval_row(&ctx, &[]))?;
        Ok(!matches!(result, Datum::Bool(false)))
    }

    /// A check, kept for the next value as long as the catalog stays what it is.
    fn compiled_check(&self, constraint: Oid, text: &str, base: Oid, typmod: i32) -> Result<Arc<Expression>> {
        {
            let mut checks = self.session.domain_checks.lock();
            if !checks.0.as_ref().is_some_and(|catalog| Arc::ptr_eq(catalog, &self.catalog)) {
                *checks = (Some(self.catalog.clone()), HashMap::new());
            }
            if let Some(check) = checks.1.get(&constraint) {
                return Ok(check.clone());
            }
        }
        // Analysis may check values of domains itself.
        let expression = analyze_stored_domain_check(&analysis(self), text, base, typmod)?;
        let check = Arc::new(compile_domain_check(&self.catalog, Some(self), &expression)?);
        let mut checks = self.session.domain_checks.lock();
        if checks.0.as_ref().is_some_and(|catalog| Arc::ptr_eq(catalog, &self.catalog)) {
            checks.1.insert(constraint, check.clone());
        }
        Ok(check)
    }
}
