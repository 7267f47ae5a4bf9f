//! Columns of a subquery that nothing reads: they are not computed (as in PostgreSQL's remove_unused_subquery_outputs).

use melba_tree::{Command, Distinct, Expr, Query};

use crate::planner::Planner;
use crate::{project_set, volatility};

/// Replaces the targets that the query around a subquery does not read by nulls of their types. `filter` is evaluated on the
/// subquery's rows. Targets stay that the subquery itself refers to, that return sets, and that call volatile functions.
pub fn drop_unread(planner: &Planner<'_>, entry: usize, query: &mut Query, filter: &[Expr]) {
    let needed = &planner.level().needed[entry];
    let compares_rows = query.set_operation.is_some() || matches!(query.distinct, Distinct::All(_));
    // Column 0 is the whole row.
    if compares_rows || query.command != Command::Select || needed.contains_key(&0) {
        return;
    }
    let mut is_read: Vec<bool> = (1..=query.targets.len()).map(|column| needed.contains_key(&(column as i16))).collect();
    for condition in filter {
        condition.visit_vars(&mut |v| {
            if v.entry == entry
                && let Some(read) = usize::try_from(v.column - 1).ok().and_then(|at| is_read.get_mut(at))
            {
                *read = true;
            }
        });
    }
    for (target, is_read) in query.targets.iter_mut().zip(is_read) {
        let stays = is_read || target.junk || target.reference != 0 || project_set::has_set(&target.expr);
        if !stays && !volatility::has_volatile(planner, &target.expr) {
            target.expr = Expr::null(target.expr.ty(), target.expr.typmod(), target.expr.collation());
        }
    }
}
