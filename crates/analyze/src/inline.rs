//! Inlines calls of functions LANGUAGE sql: a body of one expression replaces the call, a body of one SELECT becomes a subquery
//! in FROM. PostgreSQL's rules decide where that changes only speed.

use melba_catalog::{Function, FunctionKind, classes};
use melba_types::{DbError, Oid, Result, oids};
use pg_query::NodeEnum;

use super::context::Context;
use super::routine;
use super::routine::{ResultForm, analyze_in_routine, routine_statements};
use super::routine_scope::RoutineScope;
use super::volatility::is_mutable;
use melba_tree::*;

/// The largest cost, in function calls, of an argument that a body uses more than once.
const REPEATED_COST_MAX: f32 = 10.0;

/// Inlines calls in a query and its subqueries where possible; whether any was.
///
/// # Errors
/// Those of a body that cannot be analyzed.
pub fn inline_routines(cx: &Context<'_>, query: &mut Query) -> Result<bool> {
    let mut inliner = Inliner { cx, active: Vec::new(), changed: false };
    inliner.query(query)?;
    Ok(inliner.changed)
}

/// The same for an expression outside of queries.
pub fn inline_in_expression(cx: &Context<'_>, e: &mut Expr) -> Result<()> {
    Inliner { cx, active: Vec::new(), changed: false }.expression(e)
}

struct Inliner<'a> {
    cx: &'a Context<'a>,
    /// Functions whose bodies are being inlined: these are not inlined again.
    active: Vec<Oid>,
    changed: bool,
}

impl Inliner<'_> {
    fn query(&mut self, query: &mut Query) -> Result<()> {
        let mut result = Ok(());
        query.expressions_mut(&mut |e| {
            if result.is_ok() {
                result = self.expression(e);
            }
        });
        result?;
        for entry in &mut query.range_table {
            self.entry(entry)?;
        }
        let mut result = Ok(());
        query.subqueries_mut(&mut |q| {
            if result.is_ok() {
                result = self.query(q);
            }
        });
        result
    }

    fn expression(&mut self, e: &mut Expr) -> Result<()> {
        let mut result = Ok(());
        e.children_mut(&mut |child| {
            if result.is_ok() {
                result = self.expression(child);
            }
        });
        result?;
        match e {
            Expr::Sublink(s) => self.query(&mut s.query)?,
            Expr::Function(call) if call.function.0 >= classes::FIRST_USER_OID && !call.returns_set => {
                let function = call.function;
                if let Some(mut by) = self.value(call)? {
                    self.changed = true;
                    self.active.push(function);
                    let result = self.expression(&mut by);
                    self.active.pop();
                    result?;
                    *e = by;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The function and its only statement, when nothing about it forbids inlining.
    fn candidate(&self, call: &FunctionCall) -> Option<&Function> {
        let f = self.cx.catalog.function(call.function)?;
        let plain = f.language == classes::SQL_LANGUAGE
            && f.kind == FunctionKind::Function
            && !f.security_definer
            && f.config.is_empty()
            && f.arg_types.len() == call.args.len()
            && !self.active.contains(&f.oid);
        plain.then_some(f)
    }

    /// The body's only statement, analyzed and coerced to the function's result.
    fn body(&self, f: &Function, call: &FunctionCall, columns: Option<Vec<OutputColumn>>) -> Result<Option<(Query, ResultForm)>> {
        let statements = routine_statements(f, self.cx.session)?;
        let [statement] = &statements[..] else { return Ok(None) };
        if !matches!(&statement.node, NodeEnum::SelectStmt(s) if s.into_clause.is_none()) {
            return Ok(None);
        }
        let actual: Vec<Oid> = call.args.iter().map(Expr::ty).collect();
        let scope = RoutineScope::of(f, &actual, call.input_collation);
        let cx = self.cx.of_body(f);
        let mut query = analyze_in_routine(&cx, &statement.node, &scope)?;
        let result = routine::routine_result(&cx, f, &scope.arg_types, call.ty, columns)?;
        let form = routine::fit_routine_result(&cx, &mut query, &result)?;
        query.clear_locations();
        Ok(Some((query, form)))
    }

    fn failed(&self, f: &Function, source: &str, e: DbError) -> DbError {
        e.in_query(source).within(format!("SQL function \"{}\" during inlining", f.name))
    }

    /// The expression of a call of a function with one value.
    fn value(&self, call: &FunctionCall) -> Result<Option<Expr>> {
        let Some(f) = self.candidate(call) else { return Ok(None) };
        if f.returns_set || matches!(f.return_type, oids::RECORD | oids::VOID) {
            return Ok(None);
        }
        let body = self.body(f, call, None).map_err(|e| self.failed(f, &f.source, e))?;
        let Some((query, ResultForm::Value)) = body else { return Ok(None) };
        if !is_expression(&query) {
            return Ok(None);
        }
        let Some(target) = query.targets.into_iter().next() else { return Ok(None) };
        let mut value = target.expr;
        let fits = value.ty() == call.ty
            && !value.any(&mut |e| matches!(e, Expr::Sublink(_)))
            && self.is_as_stable(f, &value)
            && (!f.strict || !self.has_lenient(&value))
            && self.may_repeat(f, &value, &call.args);
        if !fits {
            return Ok(None);
        }
        replace_arguments(&mut value, &call.args, 0);
        let own = value.collation();
        if call.collation.is_valid() && own.is_valid() && own != call.collation {
            value = Expr::Collate { arg: Box::new(value), collation: call.collation };
        }
        Ok(Some(value))
    }

    /// The body is no more volatile than the function is declared.
    fn is_as_stable(&self, f: &Function, value: &Expr) -> bool {
        match f.volatility {
            b'i' => !is_mutable(self.cx, value),
            b's' => !self.is_volatile(value),
            _ => true,
        }
    }

    fn is_volatile(&self, e: &Expr) -> bool {
        let volatile = |oid: Oid| self.cx.catalog.function(oid).is_some_and(|f| f.volatility == b'v');
        e.any(&mut |e| match e {
            Expr::Function(f) => volatile(f.function),
            Expr::Operator(o) => volatile(o.function),
            Expr::NextValue { .. } => true,
            _ => false,
        })
    }

    /// Whether a part may return a value for a NULL.
    fn has_lenient(&self, e: &Expr) -> bool {
        let lenient = |oid: Oid| self.cx.catalog.function(oid).is_none_or(|f| !f.strict);
        e.any(&mut |e| match e {
            Expr::Function(f) => lenient(f.function),
            Expr::Operator(o) => lenient(o.function),
            Expr::ScalarArray(s) => lenient(s.function),
            Expr::Const(_) | Expr::Var(_) | Expr::Param(_) | Expr::Not(_) | Expr::Relabel { .. } | Expr::CoerceViaIo { .. } => {
                false
            }
            Expr::ArrayCoerce { .. } | Expr::Collate { .. } | Expr::FieldSelect { .. } | Expr::ConvertRowtype { .. } => false,
            Expr::CaseTest { .. } => false,
            Expr::Subscript(s) => s.assign.is_some(),
            _ => true,
        })
    }

    /// Every argument may replace all of its mentions in the body.
    fn may_repeat(&self, f: &Function, value: &Expr, args: &[Expr]) -> bool {
        let mut uses = vec![0; args.len()];
        value.visit(0, &mut |e, _| {
            if let Expr::Param(p) = e
                && p.kind == ParamKind::External
                && let Some(count) = uses.get_mut(p.number - 1)
            {
                *count += 1;
            }
            true
        });
        uses.iter().zip(args).all(|(uses, arg)| match uses {
            0 => !f.strict,
            1 => true,
            _ => !has_sublink(arg) && !self.is_volatile(arg) && self.cost(arg) <= REPEATED_COST_MAX,
        })
    }

    fn cost(&self, e: &Expr) -> f32 {
        let of = |oid: Oid| self.cx.catalog.function(oid).map_or(0.0, |f| f.cost);
        let mut total = match e {
            Expr::Function(f) => of(f.function),
            Expr::Operator(o) | Expr::Distinct(o) | Expr::NullIf(o) => of(o.function),
            Expr::ScalarArray(s) => of(s.function),
            _ => 0.0,
        };
        e.children(&mut |child| total += self.cost(child));
        total
    }

    /// A function in FROM becomes its query.
    fn entry(&mut self, entry: &mut RangeEntry) -> Result<()> {
        let RangeKind::Function { functions, ordinality: false } = &entry.kind else { return Ok(()) };
        let [function] = &functions[..] else { return Ok(()) };
        let Expr::Function(call) = &function.expr else { return Ok(()) };
        if call.function.0 < classes::FIRST_USER_OID || !call.returns_set {
            return Ok(());
        }
        let Some(f) = self.candidate(call) else { return Ok(()) };
        let free = |arg: &Expr| !has_sublink(arg) && !self.is_volatile(arg);
        if f.strict || f.volatility == b'v' || f.return_type == oids::VOID || !call.args.iter().all(free) {
            return Ok(());
        }
        let definitions = function.column_definitions.then(|| function.columns.clone());
        let body = self.body(f, call, definitions).map_err(|e| self.failed(f, &f.source, e))?;
        let Some((mut query, form)) = body else { return Ok(()) };
        let is_row = self.cx.is_complex(call.ty) || call.ty == oids::RECORD;
        let output = query.output_columns();
        let same = output.len() == entry.columns.len() && output.iter().zip(&entry.columns).all(|(a, b)| a.ty == b.ty);
        if !same || is_row != (form == ResultForm::Row) || modifies(&query) {
            return Ok(());
        }
        replace_in_query(&mut query, &call.args);
        entry.lateral |= call.args.iter().any(Expr::has_vars);
        let oid = f.oid;
        self.changed = true;
        self.active.push(oid);
        let result = self.query(&mut query);
        self.active.pop();
        entry.kind = RangeKind::Subquery { query: Box::new(query), view: Oid::INVALID };
        result
    }
}

fn has_sublink(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::Sublink(_)))
}

fn modifies(query: &Query) -> bool {
    query.command != Command::Select || query.ctes.iter().any(|c| modifies(&c.query)) || !query.locking.is_empty()
}

/// A query that consists of one expression.
fn is_expression(q: &Query) -> bool {
    q.command == Command::Select
        && q.targets.len() == 1
        && !q.has_aggregates
        && !q.has_windows
        && !q.has_set_returning
        && q.ctes.is_empty()
        && q.range_table.is_empty()
        && q.from.is_empty()
        && q.filter.is_none()
        && q.group_by.is_empty()
        && q.grouping_sets.is_none()
        && q.having.is_none()
        && q.windows.is_empty()
        && matches!(q.distinct, Distinct::None)
        && q.order_by.is_empty()
        && q.limit.is_none()
        && q.offset.is_none()
        && q.set_operation.is_none()
}

/// Puts arguments in the places of parameters; `depth` is how many queries these are further in.
fn replace_arguments(e: &mut Expr, args: &[Expr], depth: usize) {
    e.visit_mut(depth, &mut |e, level| replace_argument(e, args, level));
}

fn replace_in_query(query: &mut Query, args: &[Expr]) {
    query.visit_mut(1, &mut |e, level| replace_argument(e, args, level));
}

fn replace_argument(e: &mut Expr, args: &[Expr], level: usize) -> bool {
    let Expr::Param(p) = e else { return true };
    let Some(arg) = args.get(p.number.wrapping_sub(1)).filter(|_| p.kind == ParamKind::External) else { return true };
    let mut by = arg.clone();
    by.shift_levels(level, 0);
    *e = by;
    // The argument's own parameters are the caller's.
    false
}
