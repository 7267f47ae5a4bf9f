//! INSERT ... ON CONFLICT (...) WHERE with parameters: the parameters' values decide which partial index has such rows. So these
//! statements are planned with the values, each time.

use std::sync::Arc;

use melba_analyze::Analyzed;
use melba_parse::Statement;
use melba_tree::{Const, Expr, ParamKind, Query};
use melba_types::{Datum, Result};

use super::context::StatementContext;
use super::planned::Planned;
use super::planning::{Purpose, analysis, plan_analyzed};

/// The arbiters cannot be known before the parameters are.
pub(super) fn are_asked_of(query: &Query) -> bool {
    let filter = query
        .insert
        .as_ref()
        .and_then(|insert| insert.on_conflict.as_ref())
        .and_then(|conflict| conflict.inference_filter.as_ref());
    filter.is_some_and(|filter| filter.any(&mut |e| is_parameter(e)))
}

/// The plan for some values of the parameters, which have the types given.
pub(super) fn plan(
    context: &Arc<StatementContext>,
    statement: &Statement,
    types: &[melba_types::Oid],
    values: &[Datum],
) -> Result<Planned> {
    let Analyzed { mut query, params } = melba_analyze::analyze(&analysis(context), &statement.node, Some(types))?;
    if let Some(filter) = query
        .insert
        .as_mut()
        .and_then(|insert| insert.on_conflict.as_mut())
        .and_then(|conflict| conflict.inference_filter.as_mut())
    {
        give(filter, values);
    }
    plan_analyzed(context, Analyzed { query, params }, Vec::new(), Purpose::Run)
}

fn is_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Param(p) if p.kind == ParamKind::External)
}

/// Puts values in the parameters' places. A constant that is only called another type is one of that type.
fn give(expr: &mut Expr, values: &[Datum]) {
    expr.children_mut(&mut |child| give(child, values));
    let constant = match expr {
        Expr::Param(p) if p.kind == ParamKind::External => {
            let Some(value) = p.number.checked_sub(1).and_then(|at| values.get(at)) else { return };
            Const { value: value.clone(), ty: p.ty, typmod: p.typmod, collation: p.collation, location: p.location }
        }
        Expr::Relabel { arg, ty, typmod, collation, .. } => match &mut **arg {
            Expr::Const(c) => Const { ty: *ty, typmod: *typmod, collation: *collation, ..c.clone() },
            _ => return,
        },
        _ => return,
    };
    *expr = Expr::Const(constant);
}
