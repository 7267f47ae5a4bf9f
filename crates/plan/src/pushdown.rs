//! Conditions on a subquery that move into it, by PostgreSQL's rules (`subquery_is_pushdown_safe`): the subquery would have computed
//! rows that they leave out again.

use melba_tree::{Distinct, Expr, Query, RangeKind, SetInput, SetOperation, SetTree, SortGroup, Target};

use super::project_set::has_set;
use super::volatility;
use crate::planner::Planner;
use crate::rels::contains_sublink;

/// Moves a condition on a subquery's columns into the subquery, where that changes nothing but speed.
pub fn push_into_subquery(planner: &Planner<'_>, query: &mut Query, entry: usize, condition: &Expr) -> bool {
    let of_level = |e: &Expr| matches!(e, Expr::Aggregate(_) | Expr::Grouping { .. } | Expr::Window(_));
    if volatility::has_volatile(planner, condition) || contains_sublink(condition) || condition.any(&mut |e| of_level(e)) {
        return false;
    }
    let fits = fits(planner, query, entry, condition);
    if fits {
        push(query, entry, condition);
    }
    fits
}

/// Whether a condition may be checked within a query as well as on its rows.
fn fits(planner: &Planner<'_>, query: &Query, entry: usize, condition: &Expr) -> bool {
    if query.limit.is_some()
        || query.offset.is_some()
        || query.grouping_sets.is_some()
        || !query.locking.is_empty()
        || query.command != melba_tree::Command::Select
    {
        return false;
    }
    if let Some(tree) = &query.set_operation {
        let is_compared = !is_union_all(tree);
        return !(is_compared && volatility::tells_equal_apart(planner, condition))
            && arm_columns(&query.targets, entry, condition).is_some_and(|moved| fits_arms(planner, query, tree, entry, &moved));
    }
    let is_compared = is_grouped(query) || query.has_windows || !matches!(query.distinct, Distinct::None);
    if is_compared && volatility::tells_equal_apart(planner, condition) {
        return false;
    }
    let mut fits = true;
    condition.visit_vars(&mut |v| {
        let target = target_of(&query.targets, v.column);
        fits &= v.entry == entry && target.is_some_and(|target| column_fits(planner, query, target));
    });
    fits
}

/// Whether a condition on an output leaves out only rows on which no other output row depends.
fn column_fits(planner: &Planner<'_>, query: &Query, target: &Target) -> bool {
    let is_among = |groups: &[SortGroup]| target.reference != 0 && groups.iter().any(|g| g.reference == target.reference);
    !target.junk
        && !volatility::has_volatile(planner, &target.expr)
        && !contains_sublink(&target.expr)
        && !has_set(&target.expr)
        && match &query.distinct {
            Distinct::On(groups) => is_among(groups),
            Distinct::None | Distinct::All(_) => true,
        }
        // Whole partitions of every window are left out.
        && (!query.has_windows || query.windows.iter().all(|window| is_among(&window.partition_by)))
}

/// Whether all arms of a set operation may check a condition on their columns. The right side of EXCEPT takes rows away.
fn fits_arms(planner: &Planner<'_>, query: &Query, tree: &SetTree, entry: usize, condition: &Expr) -> bool {
    if tree.operation == SetOperation::Except {
        return false;
    }
    [&tree.left, &tree.right].into_iter().all(|input| match input {
        SetInput::Tree(inner) => {
            has_types(condition, inner.columns.iter().map(|c| c.ty)) && fits_arms(planner, query, inner, entry, condition)
        }
        SetInput::Leaf(at) => match &query.range_table[*at].kind {
            RangeKind::Subquery { query: arm, .. } => {
                has_types(condition, arm.output_columns().iter().map(|c| c.ty)) && fits(planner, arm, entry, condition)
            }
            _ => false,
        },
    })
}

/// Whether columns have the types that a condition expects: the arms of a set operation may be cast.
fn has_types(condition: &Expr, types: impl Iterator<Item = melba_types::Oid>) -> bool {
    let types: Vec<_> = types.collect();
    let mut same = true;
    condition.visit_vars(&mut |v| {
        let ty = usize::try_from(v.column).ok().and_then(|column| types.get(column.checked_sub(1)?));
        same &= ty == Some(&v.ty);
    });
    same
}

/// A condition on a set operation's outputs as one on the columns of its arms, whose numbers are the same in all.
fn arm_columns(targets: &[Target], entry: usize, condition: &Expr) -> Option<Expr> {
    let mut fits = true;
    let mut moved = condition.clone();
    moved.visit_mut(0, &mut |e, _| {
        if let Expr::Var(v) = e {
            if v.levels_up > 0 {
                v.levels_up += 1;
            } else {
                let target = target_of(targets, v.column).map(|t| &t.expr);
                match target {
                    Some(Expr::Var(arm)) if v.entry == entry && arm.levels_up == 0 => v.column = arm.column,
                    _ => fits = false,
                }
            }
        }
        true
    });
    fits.then_some(moved)
}

/// Moves a condition that fits.
fn push(query: &mut Query, entry: usize, condition: &Expr) {
    if let Some(tree) = query.set_operation.clone() {
        if let Some(moved) = arm_columns(&query.targets, entry, condition) {
            push_into_arms(query, &tree, entry, &moved);
        }
        return;
    }
    let mut moved = condition.clone();
    let mut of_groups = !query.group_by.is_empty();
    moved.visit_mut(0, &mut |e, _| {
        let Expr::Var(v) = e else { return true };
        if v.levels_up > 0 {
            v.levels_up += 1;
        } else if let Some(target) = target_of(&query.targets, v.column) {
            of_groups &= query.group_by.iter().any(|g| g.reference == target.reference && target.reference != 0);
            *e = target.expr.clone();
        }
        false
    });
    // With grouping, conditions on the grouped columns alone are checked before the rows are grouped.
    if is_grouped(query) && !of_groups {
        let mut all = Vec::new();
        query.having.take().into_iter().for_each(|having| crate::rels::conjuncts(having, &mut all));
        all.push(moved);
        query.having = Some(Expr::And(all));
    } else {
        query.add_conditions([moved]);
    }
}

fn push_into_arms(query: &mut Query, tree: &SetTree, entry: usize, condition: &Expr) {
    for input in [&tree.left, &tree.right] {
        match input {
            SetInput::Tree(inner) => push_into_arms(query, inner, entry, condition),
            SetInput::Leaf(at) => {
                if let RangeKind::Subquery { query: arm, .. } = &mut query.range_table[*at].kind {
                    push(arm, entry, condition);
                }
            }
        }
    }
}

fn is_grouped(query: &Query) -> bool {
    query.has_aggregates || !query.group_by.is_empty() || query.having.is_some()
}

fn is_union_all(tree: &SetTree) -> bool {
    let is_all = |input: &SetInput| if let SetInput::Tree(inner) = input { is_union_all(inner) } else { true };
    tree.operation == SetOperation::Union && tree.all && is_all(&tree.left) && is_all(&tree.right)
}

fn target_of(targets: &[Target], column: i16) -> Option<&Target> {
    targets.get(usize::try_from(column).ok()?.checked_sub(1)?)
}
