//! `min` and `max` over one table as the first row in the order of an index: each aggregate becomes a subquery `SELECT x ... WHERE x IS NOT
//! NULL ORDER BY x LIMIT 1`, where all of them together cost less than reading the rows. (PostgreSQL's planagg.c.)

use melba_catalog::IndexKey;
use melba_tree::{AggregateCall, Const, Distinct, Expr, FromItem, Query, RangeKind, SortGroup, Sublink, SublinkKind, Target};
use melba_types::{Datum, Oid, Result, oids};

use super::implication::{GREATER, LESS};
use super::planner::{Level, Planner, Purpose, Stage};
use super::prepare::query_refers_out;
use super::query::select_as_is;
use super::rels::{contains_sublink, plain_column};
use super::volatility::has_volatile;

/// Plans a query in the cheaper way of the two, if there are two.
pub(super) fn select(planner: &mut Planner<'_>, query: &mut Query, purpose: Option<Purpose>) -> Result<Stage> {
    let Some(mut by_index) = by_first_rows(planner, query) else { return select_as_is(planner, query, purpose) };
    let before = planner.scans_tables;
    let usual = select_as_is(planner, query, purpose)?;
    let usual_scans = std::mem::replace(&mut planner.scans_tables, before);
    let level = std::mem::take(planner.level_mut());
    *planner.level_mut() = Level { ctes: level.ctes, ..Level::default() };
    let subplans = planner.subplans.len();
    let stage = select_as_is(planner, &mut by_index, None)?;
    let cost: f64 = planner.subplans[subplans..].iter().map(|subplan| subplan.node.estimate.total).sum();
    if cost < usual.node.estimate.total {
        return Ok(stage);
    }
    planner.subplans.truncate(subplans);
    planner.scans_tables = usual_scans;
    Ok(usual)
}

/// The query with subqueries in the place of its aggregates.
fn by_first_rows(planner: &Planner<'_>, query: &Query) -> Option<Query> {
    let is_plain = query.has_aggregates
        && query.ctes.is_empty()
        && query.group_by.is_empty()
        && query.grouping_sets.is_none()
        && query.having.is_none()
        && !query.has_windows
        && !query.has_set_returning
        && matches!(query.distinct, Distinct::None)
        && query.locking.is_empty()
        && !query.targets.iter().any(|target| contains_sublink(&target.expr));
    let [FromItem::Range(entry)] = query.from[..] else { return None };
    let is_fixed = |e: &Expr| !contains_sublink(e) && !has_volatile(planner, e);
    // Of a subquery that depends on an outer row, the new ones would depend on it, too.
    if !is_plain || query.range_table.len() != 1 || query_refers_out(query) || !query.filter.as_ref().is_none_or(is_fixed) {
        return None;
    }
    let RangeKind::Relation { oid, sample: None, .. } = &query.range_table[entry].kind else { return None };
    let relation = planner.catalog().relation(*oid)?;
    let indexes: Vec<_> = relation.indexes.iter().filter_map(|oid| planner.catalog().relation(*oid)?.index.clone()).collect();
    let has_index = |column: usize| {
        let is_key = |key: &IndexKey| usize::try_from(key.column).is_ok_and(|at| at == column + 1);
        indexes.iter().any(|index| index.keys.iter().any(is_key))
    };
    let mut outer = query.clone();
    let mut all_found = true;
    for target in &mut outer.targets {
        target.expr.visit_mut(0, &mut |e, _| {
            let Expr::Aggregate(call) = e else { return true };
            let sublink = match &call.args[..] {
                [arg] if plain_column(arg, entry).is_some_and(has_index) => first_row(planner, query, call, arg),
                _ => None,
            };
            match sublink {
                Some(sublink) => *e = Expr::Sublink(Box::new(sublink)),
                None => all_found = false,
            }
            false
        });
    }
    if !all_found {
        return None;
    }
    outer.has_aggregates = false;
    outer.from.clear();
    outer.range_table.clear();
    outer.filter = None;
    Some(outer)
}

/// The subquery whose value an aggregate is.
fn first_row(planner: &Planner<'_>, query: &Query, call: &AggregateCall, arg: &Expr) -> Option<Sublink> {
    let catalog = planner.catalog();
    let sort = catalog.function(call.function)?.aggregate.as_ref()?.sort_operator;
    if !sort.is_valid() || call.levels_up != 0 || call.filter.is_some() || call.input_collation != arg.collation() {
        return None;
    }
    // The lesser strategies order ascending, the greater ones descending.
    let descending = match catalog.btree_strategy(sort)?.1 {
        LESS => false,
        GREATER => true,
        _ => return None,
    };
    let expr = arg.clone();
    let target = Target { expr, name: "?column?".into(), junk: false, reference: 1, column: 0, origin: (Oid::INVALID, 0) };
    let equal = catalog.type_operators(arg.ty()).equal;
    let mut first = query.clone();
    first.has_aggregates = false;
    first.targets = vec![target];
    first.add_conditions([Expr::NullTest { arg: Box::new(arg.clone()), is_null: false, row: false }]);
    // There are no NULLs: they are said to be where an index has them that is read backwards.
    first.order_by =
        vec![SortGroup { reference: 1, equal, sort, descending, nulls_first: descending, hashable: false, using: false }];
    let one = Const { value: Datum::Int8(1), ty: oids::INT8, typmod: -1, collation: Oid::INVALID, location: -1 };
    first.limit = Some(Expr::Const(one));
    first.offset = None;
    first.with_ties = false;
    Some(Sublink {
        kind: SublinkKind::Expr,
        query: first,
        test: None,
        operator: None,
        view: Oid::INVALID,
        ty: call.ty,
        typmod: -1,
        collation: call.collation,
        location: -1,
    })
}
