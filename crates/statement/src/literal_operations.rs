//! Operations over a statement's literals alone, as in `x = 70000::smallint`.
//!
//! PostgreSQL computes them when it plans, so their errors are raised even if no row needs the value. A plan that is shared by texts
//! that differ in their literals has parameters there: the operations are computed when the plan is bound to a text's literals.

use std::sync::Arc;

use melba_catalog::Catalog;
use melba_expression::{Compiler, Expression, Resolved, Routine, Scope, is_io_immutable};
use melba_tree::{Expr, ParamKind, Query, Var};
use melba_types::{Datum, DbError, Result};

use super::context::StatementContext;
use super::planned::Compiled;

/// The largest immutable operations of a query whose operands are parameters and constants.
pub(super) fn literal_operations(context: &StatementContext, query: &Query) -> Result<Vec<Expression>> {
    let mut operations = Ok(Vec::new());
    query.visit(0, &mut |expr, _| {
        let Ok(found) = &mut operations else { return false };
        if !is_operation(expr) || !is_fixed(&context.catalog, expr) || !expr.any(&mut is_parameter) {
            return true;
        }
        match Compiler::new(&context.catalog, Some(context), &mut Literals).compile(expr) {
            Ok(operation) => found.push(operation),
            Err(error) => operations = Err(error),
        }
        false
    });
    operations
}

/// Computes what a shared plan has of a text's literals alone.
///
/// # Errors
/// Those that PostgreSQL raises when it plans the text.
pub fn check_literals(context: &Arc<StatementContext>, compiled: &Compiled, literals: &Arc<[Datum]>) -> Result<()> {
    let operations = compiled.planned.as_ref().map_or(&[][..], |planned| &planned.literal_operations);
    if operations.is_empty() {
        return Ok(());
    }
    let evaluation = context.clone().evaluation_without_rows(literals.clone());
    let evaluation = evaluation.ok_or_else(|| DbError::internal("no transaction is open"))?;
    operations.iter().try_for_each(|operation| operation.eval_row(&evaluation, &[]).map(drop))
}

fn is_operation(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Function(_)
            | Expr::Operator(_)
            | Expr::CoerceViaIo { .. }
            | Expr::Case(_)
            | Expr::Coalesce { .. }
            | Expr::NullIf(_)
    )
}

fn is_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Param(p) if p.kind == ParamKind::External)
}

/// Whether an expression has one value for given literals, by immutable functions of ours. (A value under test is that of a CASE, which is
/// looked at first.)
fn is_fixed(catalog: &Catalog, expr: &Expr) -> bool {
    let is_immutable =
        |function| Routine::find(catalog, function).is_none() && catalog.function(function).is_some_and(|f| f.volatility == b'i');
    match expr {
        Expr::Const(_) | Expr::CaseTest { .. } => true,
        Expr::Param(_) => is_parameter(expr),
        Expr::Function(call) => {
            !call.returns_set && is_immutable(call.function) && call.args.iter().all(|arg| is_fixed(catalog, arg))
        }
        Expr::Operator(call) | Expr::NullIf(call) | Expr::Distinct(call) => {
            is_immutable(call.function) && call.args.iter().all(|arg| is_fixed(catalog, arg))
        }
        Expr::Case(case) => {
            let whens = case.whens.iter().all(|(when, then)| is_fixed(catalog, when) && is_fixed(catalog, then));
            whens && case.arg.as_ref().is_none_or(|arg| is_fixed(catalog, arg)) && is_fixed(catalog, &case.default)
        }
        Expr::Coalesce { args, .. } | Expr::And(args) | Expr::Or(args) => args.iter().all(|arg| is_fixed(catalog, arg)),
        Expr::Not(arg) | Expr::NullTest { arg, .. } | Expr::BooleanTest { arg, .. } => is_fixed(catalog, arg),
        Expr::CoerceViaIo { arg, ty, .. } => is_io_immutable(catalog, arg.ty(), *ty) && is_fixed(catalog, arg),
        Expr::Relabel { arg, .. } | Expr::Collate { arg, .. } => is_fixed(catalog, arg),
        _ => false,
    }
}

/// The scope of expressions that refer to parameters only.
struct Literals;

impl Scope for Literals {
    fn var(&mut self, _: &Var) -> Result<Resolved> {
        Err(DbError::internal("a column among literals"))
    }
}
