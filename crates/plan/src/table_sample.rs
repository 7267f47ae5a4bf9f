//! TABLESAMPLE's arguments are checked once, before any row: the table may have none.

use melba_tree::{Const, Expr, RangeKind, TableSample};
use melba_types::{Datum, Oid, oids};

use super::planner::Planner;
use super::rels::contains_sublink;
use super::selectivity::constant;

/// Conditions that hold unless an argument is wrong. Arguments that are computed from other rows are checked with the table's.
pub fn checks(planner: &Planner<'_>) -> Vec<Expr> {
    let samples = planner.level().entries.iter().filter_map(|entry| match &entry.kind {
        RangeKind::Relation { sample: Some(sample), .. } => check(planner, sample),
        _ => None,
    });
    samples.collect()
}

/// None where it would hold.
fn check(planner: &Planner<'_>, sample: &TableSample) -> Option<Expr> {
    let percent = sample.args.first()?;
    let seed = sample.repeatable.clone().unwrap_or_else(|| value(Datum::Float8(0.0), oids::FLOAT8));
    if [percent, &seed].into_iter().any(|e| e.has_vars() || contains_sublink(e)) {
        return None;
    }
    let is_percentage = matches!(constant(planner, percent), Some(Datum::Float4(p)) if (0.0..=100.0).contains(&p));
    if is_percentage && matches!(constant(planner, &seed), Some(Datum::Float8(_))) {
        return None;
    }
    let any_row = value(Datum::Int8(0), oids::TID);
    let sampled = Expr::Sampled { system: &*sample.method == "system", args: vec![any_row, percent.clone(), seed] };
    Some(Expr::NullTest { arg: Box::new(sampled), is_null: false, row: false })
}

fn value(value: Datum, ty: Oid) -> Expr {
    Expr::Const(Const { value, ty, typmod: -1, collation: Oid::INVALID, location: -1 })
}
