//! Conditions on a subquery that move into it.

use melba_tree::{Distinct, Expr, Query};

use super::volatility;
use crate::planner::Planner;

/// Moves a condition on a subquery's columns into the subquery, where that changes nothing but speed.
pub fn push_into_subquery(planner: &Planner<'_>, query: &mut Query, entry: usize, condition: &Expr) -> bool {
    let plain = query.limit.is_none()
        && query.offset.is_none()
        && !query.has_windows
        && !query.has_set_returning
        && query.set_operation.is_none()
        && query.grouping_sets.is_none()
        && matches!(query.distinct, Distinct::None)
        && query.locking.is_empty()
        && query.command == melba_tree::Command::Select;
    if !plain || volatility::has_volatile(planner, condition) || crate::rels::contains_sublink(condition) {
        return false;
    }
    // With grouping, only conditions on the grouped columns may move below it.
    let grouped = query.has_aggregates || !query.group_by.is_empty() || query.having.is_some();
    let mut fits = !(grouped && volatility::tells_equal_apart(planner, condition));
    condition.visit_vars(&mut |v| {
        let target = usize::try_from(v.column).ok().and_then(|c| query.targets.get(c.wrapping_sub(1)));
        fits &= v.entry == entry
            && target.is_some_and(|t| {
                !t.junk
                    && !volatility::has_volatile(planner, &t.expr)
                    && !crate::rels::contains_sublink(&t.expr)
                    && (!grouped || query.group_by.iter().any(|g| g.reference == t.reference && t.reference != 0))
            });
    });
    let mut outer = false;
    condition.visit(0, &mut |e, level| {
        outer |= matches!(e, Expr::Var(v) if v.levels_up > level);
        true
    });
    if !fits || outer {
        return false;
    }
    let mut moved = condition.clone();
    let targets = &query.targets;
    moved.visit_mut(0, &mut |e, _| {
        if let Expr::Var(v) = e
            && let Some(target) = targets.get((v.column as usize).wrapping_sub(1))
        {
            *e = target.expr.clone();
            return false;
        }
        true
    });
    query.add_conditions([moved]);
    true
}
