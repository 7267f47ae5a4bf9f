//! Conditions derived from an OR: conjuncts that all its arms share, and conditions on each relation alone.
//!
//! `(a = b AND x) OR (a = b AND y)` is `a = b AND (x OR y)`: a join may use `a = b`. `(a.n = 1 AND b.n = 2) OR (a.n = 2 AND b.n =
//! 1)` implies `a.n = 1 OR a.n = 2`: fewer rows of `a` are joined.
//!
//! With three-valued logic both sides of the first rule are equal, and the second is implied by its OR: a row for which it is not true
//! has no arm that is true.

use super::join_tree::{Tree, TreeJoin};
use super::layout::same;
use super::planner::Planner;
use super::rels::{Rels, conjuncts, contains_sublink, rels_of};
use super::volatility;
use melba_tree::Expr;

/// Factors the ORs of all joins' conditions, and adds the conditions that they imply.
pub fn split_disjunctions(planner: &Planner<'_>, tree: &mut Tree) {
    match tree {
        Tree::Leaf(_) => {}
        Tree::Inner { items, conditions } => {
            items.iter_mut().for_each(|item| split_disjunctions(planner, item));
            factor_all(planner, conditions);
            let implied: Vec<Expr> = conditions.iter().flat_map(|c| implied_by(planner, c)).collect();
            conditions.extend(implied);
        }
        Tree::Join { join, left, right, conditions } => {
            split_disjunctions(planner, left);
            split_disjunctions(planner, right);
            // A full join needs its equalities most of all, but conditions on one side do not filter it.
            factor_all(planner, conditions);
            if *join != TreeJoin::Full {
                let implied = conditions.iter().flat_map(|c| implied_by(planner, c));
                // The left side's rows stay, matched or not.
                let stays = if *join == TreeJoin::Semi { 0 } else { left.rels() };
                let implied: Vec<Expr> = implied.filter(|c| rels_of(c) & stays == 0).collect();
                conditions.extend(implied);
            }
        }
    }
}

fn factor_all(planner: &Planner<'_>, conditions: &mut Vec<Expr>) {
    if conditions.iter().any(|c| matches!(c, Expr::Or(_))) {
        *conditions = std::mem::take(conditions).into_iter().flat_map(|c| factored(planner, c)).collect();
    }
}

/// The conjuncts that all arms of an OR share, and the OR of the rest.
fn factored(planner: &Planner<'_>, condition: Expr) -> Vec<Expr> {
    let Expr::Or(args) = condition else { return vec![condition] };
    if args.iter().any(|a| volatility::has_volatile(planner, a) || contains_sublink(a)) {
        return vec![Expr::Or(args)];
    }
    let mut arms: Vec<Vec<Expr>> = args.into_iter().map(arm).collect();
    let (first, others) = arms.split_first().map(|(first, others)| (first.clone(), others.to_vec())).unwrap_or_default();
    let mut shared: Vec<Expr> = Vec::new();
    for conjunct in first {
        let is_shared = others.iter().all(|arm| arm.iter().any(|c| is_same(planner, c, &conjunct)));
        if is_shared && !shared.iter().any(|s| is_same(planner, s, &conjunct)) {
            shared.push(conjunct);
        }
    }
    if shared.is_empty() {
        return vec![Expr::Or(arms.into_iter().map(and).collect())];
    }
    arms.iter_mut().for_each(|arm| arm.retain(|c| !shared.iter().any(|s| is_same(planner, s, c))));
    // An arm that has only the shared conjuncts makes the others superfluous.
    if arms.iter().all(|arm| !arm.is_empty()) {
        shared.push(Expr::Or(arms.into_iter().map(and).collect()));
    }
    shared
}

/// The conditions on single relations that an OR over several relations implies.
fn implied_by(planner: &Planner<'_>, condition: &Expr) -> Vec<Expr> {
    let Expr::Or(args) = condition else { return vec![] };
    let rels = rels_of(condition);
    if rels.count_ones() < 2 || volatility::has_volatile(planner, condition) || contains_sublink(condition) {
        return vec![];
    }
    let arms: Vec<Vec<Expr>> = args.iter().cloned().map(arm).collect();
    let of_one = |rel: Rels| -> Option<Expr> {
        let alone = arms.iter().map(|arm| {
            let alone: Vec<Expr> = arm.iter().filter(|c| rels_of(c) == rel).cloned().collect();
            (!alone.is_empty()).then(|| and(alone))
        });
        Some(Expr::Or(alone.collect::<Option<Vec<Expr>>>()?))
    };
    (0..Rels::BITS).map(|i| 1 << i).filter(|rel| rels & rel != 0).filter_map(of_one).collect()
}

/// Equal, or with exchanged sides where that makes no difference.
fn is_same(planner: &Planner<'_>, a: &Expr, b: &Expr) -> bool {
    if same(a, b) {
        return true;
    }
    let (Expr::Operator(x), Expr::Operator(y)) = (a, b) else { return false };
    let commutes = || planner.catalog().operator(x.operator).is_some_and(|o| o.commutator == x.operator);
    x.operator == y.operator && commutes() && matches!((&x.args[..], &y.args[..]), ([a, b], [c, d]) if same(a, d) && same(b, c))
}

fn arm(expr: Expr) -> Vec<Expr> {
    let mut out = Vec::new();
    conjuncts(expr, &mut out);
    out
}

fn and(mut conjuncts: Vec<Expr>) -> Expr {
    if conjuncts.len() == 1 { conjuncts.swap_remove(0) } else { Expr::And(conjuncts) }
}
