//! Conditions that zone maps answer.

use melba_catalog::Relation;
use melba_engine::ZoneOp;
use melba_expression::Expression;
use melba_fmgr::order;
use melba_tree::{Expr, ScalarArrayExpr};
use melba_types::key::KeyType;
use melba_types::{Oid, Result, oids};

use super::index;
use crate::layout::Layout;
use crate::planner::Planner;
use crate::rels::plain_column;
use crate::volatility;
use crate::zone_filter::{ZoneFilter, ZoneForm};

/// Zone predicates of a sequential scan.
pub fn zones(planner: &mut Planner<'_>, entry: usize, relation: &Relation, filter: &[Expr]) -> Result<Vec<ZoneFilter>> {
    // A virtual column is stored as null.
    zones_of(planner, entry, &|at| relation.columns.get(at).filter(|c| c.generated != b'v').map(|c| c.ty), filter)
}

/// The type of a column that has a zone map.
type ColumnTypes<'a> = &'a dyn Fn(usize) -> Option<Oid>;

/// The same where the columns are no table's.
pub fn zones_of(planner: &mut Planner<'_>, entry: usize, types: ColumnTypes<'_>, filter: &[Expr]) -> Result<Vec<ZoneFilter>> {
    let mut out = Vec::new();
    for (number, condition) in filter.iter().enumerate() {
        let found = zone_of(planner, entry, types, condition)?;
        out.extend(found.map(|(column, op, value, form)| ZoneFilter { column, op, value, form, condition: number }));
    }
    Ok(out)
}

/// The column, the comparison, the value and what it is.
type Zone = (usize, ZoneOp, Expression, ZoneForm);

/// That of a condition.
fn zone_of(planner: &mut Planner<'_>, entry: usize, types: ColumnTypes<'_>, condition: &Expr) -> Result<Option<Zone>> {
    match condition {
        Expr::Operator(op) => {
            let [a, b] = &op.args[..] else { return Ok(None) };
            if let Some(regex) = index::pattern_operator(planner, op.function) {
                return zone_of_pattern(planner, entry, types, (a, b), (regex, op.input_collation));
            }
            match zone_of_value(planner, entry, types, (op.operator, op.input_collation), (a, b), false)? {
                None => zone_of_value(planner, entry, types, (op.operator, op.input_collation), (b, a), true),
                found => Ok(found),
            }
        }
        Expr::ScalarArray(list) if list.any => zone_of_list(planner, entry, types, list),
        _ => Ok(None),
    }
}

/// That of `column op value`, or of `value op column` when `flipped`.
fn zone_of_value(
    planner: &mut Planner<'_>,
    entry: usize,
    types: ColumnTypes<'_>,
    operator: (Oid, Oid),
    (side, value): (&Expr, &Expr),
    flipped: bool,
) -> Result<Option<Zone>> {
    let Some(column) = plain_column(side, entry) else { return Ok(None) };
    let Some(op) = zone_op(planner, types, column, operator, value.ty(), flipped) else { return Ok(None) };
    let is_known = matches!(value, Expr::Var(v) if v.entry != entry || v.levels_up > 0) || volatility::is_fixed(planner, value)?;
    if !is_known {
        return Ok(None);
    }
    Ok(Some((column, op, planner.compile(value, &Layout::default())?, ZoneForm::Value)))
}

/// That of `column op ANY (array)`.
fn zone_of_list(planner: &mut Planner<'_>, entry: usize, types: ColumnTypes<'_>, list: &ScalarArrayExpr) -> Result<Option<Zone>> {
    let Some(column) = plain_column(&list.scalar, entry) else { return Ok(None) };
    let element = planner.catalog().type_(planner.catalog().base_type(list.array.ty())).map(|array| array.element);
    let op = element.and_then(|element| zone_op(planner, types, column, (list.operator, list.input_collation), element, false));
    match op {
        Some(op) if volatility::is_fixed(planner, &list.array)? => {
            let value = planner.compile(&list.array, &Layout::default())?;
            Ok(Some((column, op, value, ZoneForm::Array)))
        }
        _ => Ok(None),
    }
}

/// That of `column LIKE pattern` or `column ~ pattern`.
fn zone_of_pattern(
    planner: &mut Planner<'_>,
    entry: usize,
    types: ColumnTypes<'_>,
    (side, pattern): (&Expr, &Expr),
    (regex, collation): (bool, Oid),
) -> Result<Option<Zone>> {
    let Some(column) = plain_column(side, entry) else { return Ok(None) };
    let is_text = matches!(types(column), Some(oids::TEXT | oids::VARCHAR)) && matches!(pattern.ty(), oids::TEXT | oids::UNKNOWN);
    // Where different texts are equal, a match may start with others.
    let by_bytes = order::is_same_equality(planner.catalog(), collation, Oid::INVALID);
    if !is_text || !by_bytes || !volatility::is_fixed(planner, pattern)? {
        return Ok(None);
    }
    let value = planner.compile(pattern, &Layout::default())?;
    Ok(Some((column, ZoneOp::StartsWith, value, ZoneForm::Pattern { regex })))
}

/// The zone map test for an operator between a column and a value of some type, if zone maps can answer it.
fn zone_op(
    planner: &Planner<'_>,
    types: ColumnTypes<'_>,
    column: usize,
    (operator, collation): (Oid, Oid),
    value: Oid,
    flipped: bool,
) -> Option<ZoneOp> {
    let ty = types(column)?;
    let same = ty == value
        || [&[oids::INT2, oids::INT4, oids::INT8][..], &[oids::FLOAT4, oids::FLOAT8], &[oids::TEXT, oids::VARCHAR]]
            .iter()
            .any(|types| types.contains(&ty) && types.contains(&value));
    let (family, strategy) = planner.catalog().btree_strategy(operator)?;
    if !same || !is_zoned(planner, ty) || family != planner.catalog().type_operators(ty).btree_family {
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
