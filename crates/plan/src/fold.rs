//! Decides constant conditions before a query is planned: conditions that no row can pass.
//!
//! PostgreSQL's eval_const_expressions does the same, and users see it: conditions decided here are not computed, and raise no errors.

use melba_types::{Datum, Oid};

use super::layout::boolean;
use super::planner::Planner;
use super::rels::{conjuncts, contains_sublink, rels_of};
use super::selectivity::constant;
use super::volatility;
use melba_tree::{Command, Distinct, Expr, Query, SublinkKind};

/// When a conjunct is true for no row, the others are not evaluated, except those that depend on no row.
///
/// Expressions behind a constant false are not even computed.
pub fn without_undecided(planner: &Planner<'_>, mut conditions: Vec<Expr>) -> Vec<Expr> {
    let is_false = |c: &Expr| matches!(constant(planner, c), Some(Datum::Bool(false)));
    if let Some(at) = conditions.iter().position(is_false) {
        conditions.truncate(at + 1);
    }
    if !conditions.iter().any(|c| rels_of(c) != 0 && is_never_true(planner, c)) {
        return conditions;
    }
    let decided = |c: Expr| match rels_of(&c) {
        0 => Some(c),
        _ => is_never_true(planner, &c).then(|| boolean(false)),
    };
    conditions.into_iter().filter_map(decided).collect()
}

/// What is said of expressions before anything is planned. Casts to domains without constraints check nothing, so that an index
/// finds the uncast value: most of all for the columns of information_schema. EXISTS asks for rows alone. PostgreSQL does the same.
pub fn simplify(planner: &Planner<'_>, query: &mut Query) {
    query.visit_mut(0, &mut |e, _| {
        match e {
            Expr::CoerceToDomain { ty, .. } if is_unchecked(planner, *ty) => relabel(e),
            Expr::Sublink(s) if s.kind == SublinkKind::Exists => drop_values(planner, &mut s.query),
            _ => {}
        }
        true
    });
}

fn relabel(cast: &mut Expr) {
    if let Expr::CoerceToDomain { arg, ty, typmod, collation, form } = std::mem::replace(cast, boolean(false)) {
        *cast = Expr::Relabel { arg, ty, typmod, collation, form };
    }
}

/// Leaves out of the subquery of EXISTS what decides about values and order, but not whether there is a row: of which outer rows it
/// then depends is seen by FROM and WHERE alone. (PostgreSQL's simplify_EXISTS_query. ORMs write `EXISTS (SELECT ... LIMIT 1)`.)
fn drop_values(planner: &Planner<'_>, query: &mut Query) {
    // A limit that is not known yet may be 0.
    let lets_a_row_pass = |limit: &Expr| match constant(planner, limit) {
        Some(Datum::Int8(n)) => n > 0,
        Some(value) => value.is_null(),
        None => false,
    };
    if makes_rows(query) || !query.limit.as_ref().is_none_or(lets_a_row_pass) {
        return;
    }
    query.limit = None;
    query.with_ties = false;
    query.targets.clear();
    query.group_by.clear();
    query.grouping_text = None;
    query.windows.clear();
    query.distinct = Distinct::None;
    query.order_by.clear();
}

/// Whether more than FROM, WHERE and LIMIT decides if a query returns a row, or it does more than return rows.
pub fn makes_rows(query: &Query) -> bool {
    query.command != Command::Select
        || query.ctes.iter().any(|cte| cte.query.command != Command::Select)
        || query.set_operation.is_some()
        || query.has_aggregates
        || query.has_windows
        || query.has_set_returning
        || query.grouping_sets.is_some()
        || query.having.is_some()
        || query.offset.is_some()
        || !query.locking.is_empty()
}

/// Whether every value of the base type is one of the domain.
fn is_unchecked(planner: &Planner<'_>, domain: Oid) -> bool {
    let Some(ty) = planner.catalog().type_(domain) else { return false };
    ty.domain.as_ref().is_none_or(|d| !d.not_null && d.constraints.is_empty() && is_unchecked(planner, d.base))
}

/// Moves conditions of HAVING without aggregates to WHERE: groups fail them as a whole.
pub fn lower_having(planner: &Planner<'_>, query: &mut Query) {
    if query.group_by.is_empty() || query.grouping_sets.is_some() {
        return;
    }
    let Some(having) = query.having.take() else { return };
    let mut all = Vec::new();
    conjuncts(having, &mut all);
    let of_groups = |e: &Expr| matches!(e, Expr::Aggregate(_) | Expr::Grouping { .. });
    let stays = |c: &Expr| {
        c.any(&mut |e| of_groups(e))
            || contains_sublink(c)
            || volatility::has_volatile(planner, c)
            || volatility::tells_equal_apart(planner, c)
    };
    let (having, filter): (Vec<Expr>, Vec<Expr>) = all.into_iter().partition(stays);
    query.having = (!having.is_empty()).then_some(Expr::And(having));
    query.add_conditions(filter);
}

/// Whether a condition is false or NULL for all rows.
fn is_never_true(planner: &Planner<'_>, condition: &Expr) -> bool {
    match condition {
        Expr::And(args) => args.iter().any(|a| is_never_true(planner, a)),
        Expr::Or(args) => args.iter().all(|a| is_never_true(planner, a)),
        Expr::Not(arg) => is_never_false(planner, arg),
        Expr::Const(c) => matches!(c.value, Datum::Null | Datum::Bool(false)),
        _ => is_always_null(planner, condition),
    }
}

/// Whether a condition is true or NULL for all rows.
fn is_never_false(planner: &Planner<'_>, condition: &Expr) -> bool {
    match condition {
        Expr::And(args) => args.iter().all(|a| is_never_false(planner, a)),
        Expr::Or(args) => args.iter().any(|a| is_never_false(planner, a)),
        Expr::Not(arg) => is_never_true(planner, arg),
        Expr::Const(c) => matches!(c.value, Datum::Null | Datum::Bool(true)),
        _ => is_always_null(planner, condition),
    }
}

/// Strict operators make NULL of a NULL.
fn is_always_null(planner: &Planner<'_>, e: &Expr) -> bool {
    match e {
        Expr::Const(c) => c.value.is_null(),
        Expr::Relabel { arg, .. } => is_always_null(planner, arg),
        Expr::Operator(op) => is_strict(planner, op.function) && op.args.iter().any(|a| is_always_null(planner, a)),
        Expr::Function(f) => {
            !f.returns_set && is_strict(planner, f.function) && f.args.iter().any(|a| is_always_null(planner, a))
        }
        _ => false,
    }
}

fn is_strict(planner: &Planner<'_>, function: Oid) -> bool {
    // Of a volatile function, even the call counts.
    planner.catalog().function(function).is_some_and(|f| f.strict && f.volatility != b'v')
}
