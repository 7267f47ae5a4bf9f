//! ORDER BY, GROUP BY with its grouping sets, DISTINCT.

use melba_types::{DbError, Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::coerce::strip_implicit;
use super::scope::ExprKind;
use super::{columns, nodes, sort_key, targets};
use melba_tree::*;

/// The parts of GROUP BY.
#[derive(Default)]
pub struct GroupClause {
    pub groups: Vec<SortGroup>,
    pub sets: Option<Vec<Vec<usize>>>,
    pub text: Option<Vec<GroupingNode>>,
}

const SETS_MAX: usize = 4096;

/// The target of an ORDER BY, GROUP BY or DISTINCT ON item, by the rules of SQL-92 (names and positions of output columns) or
/// else of SQL-99 (any expression); new expressions become junk targets.
fn find_target<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    node: &'p pb::Node,
    targets: &mut Vec<Target>,
    kind: ExprKind,
) -> Result<usize> {
    match &node.node {
        Some(NodeEnum::ColumnRef(c)) if c.fields.len() == 1 => {
            let name = c.fields.first().and_then(nodes::string);
            if let Some(name) = name
                && let Some(found) = find_target_by_name(analyzer, name, c.location, targets, kind)?
            {
                return Ok(found);
            }
        }
        Some(NodeEnum::AConst(c)) => {
            let clause = kind.name();
            let Some(pb::a_const::Val::Ival(position)) = c.val.as_ref().filter(|_| !c.isnull) else {
                return Err(err!(SYNTAX_ERROR, "non-integer constant in {clause}").at(c.location));
            };
            let visible = targets.iter().enumerate().filter(|(_, t)| !t.junk);
            let place = (position.ival as usize).checked_sub(1).filter(|_| position.ival > 0);
            let found = place.and_then(|p| visible.map(|(i, _)| i).nth(p));
            return found.ok_or_else(|| {
                err!(INVALID_COLUMN_REFERENCE, "{clause} position {} is not in select list", position.ival).at(c.location)
            });
        }
        _ => {}
    }
    find_target_by_expression(analyzer, node, targets, kind)
}

fn find_target_by_name(
    analyzer: &mut Analyzer<'_, '_>,
    name: &str,
    location: i32,
    targets: &[Target],
    kind: ExprKind,
) -> Result<Option<usize>> {
    if kind == ExprKind::GroupBy {
        // A column of FROM takes precedence over an output column.
        if columns::find_own_column(analyzer, name, location)?.is_some() {
            return Ok(None);
        }
    }
    let mut found: Option<usize> = None;
    for (i, target) in targets.iter().enumerate().filter(|(_, t)| !t.junk && &*t.name == name) {
        match found {
            Some(f) if !equal(&targets[f].expr, &target.expr) => {
                let clause = kind.name();
                return Err(err!(AMBIGUOUS_COLUMN, "{clause} \"{name}\" is ambiguous").at(location));
            }
            Some(_) => {}
            None => found = Some(i),
        }
    }
    Ok(found)
}

fn find_target_by_expression<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    node: &'p pb::Node,
    targets: &mut Vec<Target>,
    kind: ExprKind,
) -> Result<usize> {
    let expr = analyzer.expression(node, kind)?;
    // Equal literals are different parameters, so that the intended target would not be found.
    if expr.any(&mut |e| matches!(e, Expr::Param(_))) {
        analyzer.literals().refuse();
    }
    let same = |t: &Target| equal(&expr, &t.expr) || equal(&expr, strip_implicit(&t.expr));
    if let Some(found) = targets.iter().position(same) {
        return Ok(found);
    }
    let name = targets::figure_name(node);
    targets.push(Target { expr, name, junk: true, reference: 0, column: 0, origin: (Oid::INVALID, 0) });
    Ok(targets.len() - 1)
}

/// A target that GROUP BY names may be computed of groups.
fn check_groupable(target: &Expr) -> Result<()> {
    let mut result = Ok(());
    target.visit(0, &mut |expr, level| {
        let error = match expr {
            Expr::Aggregate(a) if a.levels_up == level => {
                err!(GROUPING_ERROR, "aggregate functions are not allowed in GROUP BY").at(a.location)
            }
            Expr::Window(w) if level == 0 => err!(WINDOWING_ERROR, "window functions are not allowed in GROUP BY").at(w.location),
            _ => return result.is_ok(),
        };
        if result.is_ok() {
            result = Err(error);
        }
        false
    });
    result
}

fn target_reference(analyzer: &mut Analyzer<'_, '_>, target: &mut Target) -> u32 {
    if target.reference == 0 {
        target.reference = analyzer.new_reference();
    }
    target.reference
}

pub fn sort_list<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    list: &'p [pb::Node],
    targets: &mut Vec<Target>,
    kind: ExprKind,
) -> Result<Vec<SortGroup>> {
    let mut out: Vec<SortGroup> = Vec::with_capacity(list.len());
    for item in list {
        let Some(NodeEnum::SortBy(sort)) = &item.node else { continue };
        let node = sort.node.as_deref().ok_or_else(|| DbError::internal("ORDER BY without an expression"))?;
        let i = if kind == ExprKind::WindowOrder {
            find_target_by_expression(analyzer, node, targets, kind)?
        } else {
            find_target(analyzer, node, targets, kind)?
        };
        targets::resolve_unknown_target(analyzer, &mut targets[i])?;
        let key = sort_key::sort_key(analyzer.cx(), targets[i].expr.ty(), sort, nodes::location(node))?;
        let reference = target_reference(analyzer, &mut targets[i]);
        // Behind an order of the same values, by its operator or the opposite one, nothing is left to order.
        let commutator = analyzer.cx().catalog.operator(key.sort).map_or(Oid::INVALID, |o| o.commutator);
        let decides = |o: &SortGroup| o.reference == reference && (o.sort == key.sort || o.sort == commutator);
        if !out.iter().any(decides) {
            out.push(key.into_group(reference));
        }
    }
    Ok(out)
}

/// PARTITION BY: expressions only.
pub fn group_list<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    list: &'p [pb::Node],
    targets: &mut Vec<Target>,
    kind: ExprKind,
) -> Result<Vec<SortGroup>> {
    let mut groups = Vec::new();
    for node in list {
        group_item(analyzer, node, targets, kind, &[], &mut groups)?;
    }
    Ok(groups)
}

/// Adds one grouping expression; returns its index in `groups`.
fn group_item<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    node: &'p pb::Node,
    targets: &mut Vec<Target>,
    kind: ExprKind,
    order_by: &[SortGroup],
    groups: &mut Vec<SortGroup>,
) -> Result<usize> {
    let i = if kind == ExprKind::WindowPartition {
        find_target_by_expression(analyzer, node, targets, kind)?
    } else {
        find_target(analyzer, node, targets, kind)?
    };
    if kind == ExprKind::GroupBy {
        check_groupable(&targets[i].expr)?;
    }
    if targets[i].reference != 0
        && let Some(found) = groups.iter().position(|g| g.reference == targets[i].reference)
    {
        return Ok(found);
    }
    targets::resolve_unknown_target(analyzer, &mut targets[i])?;
    let location = nodes::location(node);
    let reference = target_reference(analyzer, &mut targets[i]);
    let group = match order_by.iter().find(|o| o.reference == reference) {
        Some(order) => order.clone(),
        None => sort_key::group_key(analyzer.cx(), targets[i].expr.ty(), location)?.into_group(reference),
    };
    groups.push(group);
    Ok(groups.len() - 1)
}

pub fn group_clause<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    list: &'p [pb::Node],
    targets: &mut Vec<Target>,
    order_by: &[SortGroup],
) -> Result<GroupClause> {
    let mut clause = GroupClause::default();
    if list.is_empty() {
        return Ok(clause);
    }
    let mut tree = Vec::with_capacity(list.len());
    for node in list {
        tree.push(grouping_node(analyzer, node, targets, order_by, &mut clause.groups, true)?);
    }
    let plain = tree.iter().all(|n| matches!(n, GroupingNode::Simple(_)));
    if !plain {
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        for node in &tree {
            sets = cross(&sets, &expand(node)?)?;
        }
        clause.sets = Some(sets);
        clause.text = Some(tree);
    }
    Ok(clause)
}

fn grouping_node<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    node: &'p pb::Node,
    targets: &mut Vec<Target>,
    order_by: &[SortGroup],
    groups: &mut Vec<SortGroup>,
    top: bool,
) -> Result<GroupingNode> {
    use pb::GroupingSetKind as K;
    if let Some(NodeEnum::RowExpr(row)) = &node.node
        && row.row_format == pb::CoercionForm::CoerceImplicitCast as i32
    {
        // Rows within it are no values either.
        let mut all = Vec::with_capacity(row.args.len());
        for arg in &row.args {
            all.extend(members(&grouping_node(analyzer, arg, targets, order_by, groups, false)?));
        }
        return Ok(GroupingNode::Simple(all));
    }
    let Some(NodeEnum::GroupingSet(set)) = &node.node else {
        let i = group_item(analyzer, node, targets, ExprKind::GroupBy, order_by, groups)?;
        return Ok(GroupingNode::Simple(vec![i]));
    };
    let mut content = Vec::with_capacity(set.content.len());
    for item in &set.content {
        content.push(grouping_node(analyzer, item, targets, order_by, groups, false)?);
    }
    const CUBE_MAX: usize = 12;
    Ok(match K::try_from(set.kind).unwrap_or(K::Undefined) {
        K::GroupingSetRollup => GroupingNode::Rollup(content),
        K::GroupingSetCube => {
            if content.len() > CUBE_MAX {
                return Err(err!(TOO_MANY_COLUMNS, "CUBE is limited to {CUBE_MAX} elements").at(set.location));
            }
            GroupingNode::Cube(content)
        }
        K::GroupingSetSets => GroupingNode::Sets(content),
        K::GroupingSetSimple => {
            let mut all = Vec::new();
            for node in content {
                if let GroupingNode::Simple(s) = node {
                    all.extend(s);
                }
            }
            GroupingNode::Simple(all)
        }
        _ => {
            let _ = top;
            GroupingNode::Empty
        }
    })
}

pub fn distinct_clause<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    list: &'p [pb::Node],
    targets: &mut Vec<Target>,
    order_by: &[SortGroup],
) -> Result<Distinct> {
    let all = match list {
        [] => return Ok(Distinct::None),
        [one] => one.node.is_none() || matches!(&one.node, Some(NodeEnum::List(l)) if l.items.is_empty()),
        _ => false,
    };
    if all {
        distinct_all(analyzer, targets, order_by).map(Distinct::All)
    } else {
        distinct_on(analyzer, list, targets, order_by)
    }
}

fn distinct_all(analyzer: &mut Analyzer<'_, '_>, targets: &mut [Target], order_by: &[SortGroup]) -> Result<Vec<SortGroup>> {
    let mut keys: Vec<SortGroup> = Vec::new();
    for order in order_by {
        if let Some(target) = targets.iter().find(|t| t.reference == order.reference)
            && target.junk
        {
            return Err(err!(INVALID_COLUMN_REFERENCE, "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
                .at(target.expr.location()));
        }
        keys.push(order.clone());
    }
    for target in targets.iter_mut().filter(|t| !t.junk) {
        targets::resolve_unknown_target(analyzer, target)?;
        let reference = target_reference(analyzer, target);
        if keys.iter().any(|k| k.reference == reference) {
            continue;
        }
        let key = sort_key::group_key(analyzer.cx(), target.expr.ty(), target.expr.location())?;
        keys.push(key.into_group(reference));
    }
    if keys.is_empty() {
        return Err(err!(SYNTAX_ERROR, "SELECT DISTINCT must have at least one column"));
    }
    Ok(keys)
}

fn distinct_on<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    list: &'p [pb::Node],
    targets: &mut Vec<Target>,
    order_by: &[SortGroup],
) -> Result<Distinct> {
    let mut wanted: Vec<(u32, usize, i32)> = Vec::with_capacity(list.len());
    for node in list {
        let i = find_target(analyzer, node, targets, ExprKind::DistinctOn)?;
        targets::resolve_unknown_target(analyzer, &mut targets[i])?;
        let reference = target_reference(analyzer, &mut targets[i]);
        if !wanted.iter().any(|w| w.0 == reference) {
            wanted.push((reference, i, nodes::location(node)));
        }
    }
    let mut keys: Vec<SortGroup> = Vec::new();
    let mut skipped = false;
    let mismatch = |location: i32| {
        err!(INVALID_COLUMN_REFERENCE, "SELECT DISTINCT ON expressions must match initial ORDER BY expressions").at(location)
    };
    for order in order_by {
        match wanted.iter().find(|w| w.0 == order.reference) {
            Some(w) if skipped => return Err(mismatch(w.2)),
            Some(_) => keys.push(order.clone()),
            None => skipped = true,
        }
    }
    for (reference, i, location) in wanted {
        if keys.iter().any(|k| k.reference == reference) {
            continue;
        }
        if skipped {
            return Err(mismatch(location));
        }
        let key = sort_key::group_key(analyzer.cx(), targets[i].expr.ty(), location)?;
        keys.push(key.into_group(reference));
    }
    Ok(Distinct::On(keys))
}

/// The grouping sets that a node stands for.
fn expand(node: &GroupingNode) -> Result<Vec<Vec<usize>>> {
    Ok(match node {
        GroupingNode::Empty => vec![Vec::new()],
        GroupingNode::Simple(all) => vec![all.clone()],
        GroupingNode::Rollup(content) => {
            let simple: Vec<Vec<usize>> = content.iter().map(members).collect();
            (0..=simple.len()).rev().map(|n| union(&simple[..n])).collect()
        }
        GroupingNode::Cube(content) => {
            let simple: Vec<Vec<usize>> = content.iter().map(members).collect();
            let all = 1usize << simple.len();
            let pick = |bits: usize| {
                let chosen: Vec<Vec<usize>> =
                    simple.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0).map(|(_, s)| s.clone()).collect();
                union(&chosen)
            };
            (0..all).rev().map(pick).collect()
        }
        GroupingNode::Sets(content) => {
            let mut sets = Vec::new();
            for node in content {
                sets.extend(expand(node)?);
                if sets.len() > SETS_MAX {
                    return Err(too_many_sets());
                }
            }
            sets
        }
    })
}

fn too_many_sets() -> DbError {
    err!(STATEMENT_TOO_COMPLEX, "too many grouping sets present (maximum {SETS_MAX})")
}

fn members(node: &GroupingNode) -> Vec<usize> {
    match node {
        GroupingNode::Simple(all) => all.clone(),
        _ => Vec::new(),
    }
}

fn union(parts: &[Vec<usize>]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for i in parts.iter().flatten() {
        if !out.contains(i) {
            out.push(*i);
        }
    }
    out
}

fn cross(left: &[Vec<usize>], right: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
    if left.len() * right.len() > SETS_MAX {
        return Err(too_many_sets());
    }
    Ok(left.iter().flat_map(|l| right.iter().map(|r| union(&[l.clone(), r.clone()]))).collect())
}
