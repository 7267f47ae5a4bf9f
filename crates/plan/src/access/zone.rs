//! Conditions that zone maps answer.

use melba_catalog::Relation;
use melba_engine::ZoneOp;
use melba_fmgr::order;
use melba_tree::{Expr, ScalarArrayExpr};
use melba_types::key::KeyType;
use melba_types::{Oid, Result, oids};

use crate::layout::Layout;
use crate::node::*;
use crate::planner::Planner;
use crate::rels::plain_column;
use crate::volatility;

/// Zone predicates of a sequential scan.
pub fn zones(planner: &mut Planner<'_>, entry: usize, relation: &Relation, filter: &[Expr]) -> Result<Vec<ZoneFilter>> {
    let mut out = Vec::new();
    for condition in filter {
        match condition {
            Expr::Operator(op) => {
                let [a, b] = &op.args[..] else { continue };
                let zone = match zone(planner, entry, relation, (op.operator, op.input_collation), (a, b), false)? {
                    None => zone(planner, entry, relation, (op.operator, op.input_collation), (b, a), true)?,
                    found => found,
                };
                out.extend(zone);
            }
            Expr::ScalarArray(list) if list.any => out.extend(zone_of_list(planner, entry, relation, list)?),
            _ => {}
        }
    }
    Ok(out)
}

/// That of `column op value`, or of `value op column` when `flipped`.
fn zone(
    planner: &mut Planner<'_>,
    entry: usize,
    relation: &Relation,
    operator: (Oid, Oid),
    (side, value): (&Expr, &Expr),
    flipped: bool,
) -> Result<Option<ZoneFilter>> {
    let Some(column) = plain_column(side, entry) else { return Ok(None) };
    let Some(op) = zone_op(planner, relation, column, operator, value.ty(), flipped) else { return Ok(None) };
    let is_known = matches!(value, Expr::Var(v) if v.entry != entry || v.levels_up > 0) || volatility::is_fixed(planner, value)?;
    if !is_known {
        return Ok(None);
    }
    Ok(Some(ZoneFilter { column, op, value: planner.compile(value, &Layout::default())?, any: false }))
}

/// That of `column op ANY (array)`.
fn zone_of_list(
    planner: &mut Planner<'_>,
    entry: usize,
    relation: &Relation,
    list: &ScalarArrayExpr,
) -> Result<Option<ZoneFilter>> {
    let Some(column) = plain_column(&list.scalar, entry) else { return Ok(None) };
    let element = planner.catalog().type_(planner.catalog().base_type(list.array.ty())).map(|array| array.element);
    let op =
        element.and_then(|element| zone_op(planner, relation, column, (list.operator, list.input_collation), element, false));
    match op {
        Some(op) if volatility::is_fixed(planner, &list.array)? => {
            Ok(Some(ZoneFilter { column, op, value: planner.compile(&list.array, &Layout::default())?, any: true }))
        }
        _ => Ok(None),
    }
}

/// The zone map test for an operator between a column and a value of some type, if zone maps can answer it.
fn zone_op(
    planner: &Planner<'_>,
    relation: &Relation,
    column: usize,
    (operator, collation): (Oid, Oid),
    value: Oid,
    flipped: bool,
) -> Option<ZoneOp> {
    // A virtual column is stored as null.
    let described = relation.columns.get(column).filter(|c| c.generated != b'v')?;
    let same = described.ty == value
        || [&[oids::INT2, oids::INT4, oids::INT8][..], &[oids::FLOAT4, oids::FLOAT8], &[oids::TEXT, oids::VARCHAR]]
            .iter()
            .any(|types| types.contains(&described.ty) && types.contains(&value));
    let (family, strategy) = planner.catalog().btree_strategy(operator)?;
    if !same || !is_zoned(planner, described.ty) || family != planner.catalog().type_operators(described.ty).btree_family {
        return None;
    }
    let suits = if strategy == 3 { order::is_same_equality } else { order::is_same_order };
    if !suits(planner.catalog(), collation, Oid::INVALID) {
        return None;
    }
    match (strategy, flipped) {
        (3, _) => Some(ZoneOp::Equal),
        (1, false) | (5, true) => Some(ZoneOp::Less),
        (2, false) | (4, true) => Some(ZoneOp::LessOrEqual),
        (4, false) | (2, true) => Some(ZoneOp::GreaterOrEqual),
        (5, false) | (1, true) => Some(ZoneOp::Greater),
        _ => None,
    }
}

/// Whether zone maps know a type's order: that of its stored form, which for jsonb, inet or bit strings is another one.
pub fn is_zoned(planner: &Planner<'_>, ty: Oid) -> bool {
    match order::key_type(planner.inputs.session, ty, Oid::INVALID) {
        Ok(KeyType::Plain(_)) => true,
        // Labels that were added between others have greater OIDs than some that follow.
        Ok(KeyType::Enum(labels)) => labels.is_sorted(),
        _ => false,
    }
}
