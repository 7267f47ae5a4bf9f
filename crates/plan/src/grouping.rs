//! GROUP BY, aggregates, GROUPING SETS, HAVING.

use std::collections::HashMap;
use std::sync::Arc;

use melba_catalog::{AggregateInfo, Function, classes};
use melba_fmgr::value_order::ValueOrder;
use melba_fmgr::{MakeAggregate, order, registry};
use melba_types::{DbError, Kind, Oid, Result, oids};

use super::access::zone;
use super::coded::ask_for_codes;
use super::common::compute_common;
use super::dependency::Dependencies;
use super::layout::{AGGREGATE, GROUP, GROUPING, Layout, computed, same, signature};
use super::node::*;
use super::planner::{Planner, Stage};
use super::prepare::{entry_names, joined_columns, substitute};
use super::project_set::{has_set, project_set};
use super::sort::without_target;
use super::{explain_output, groups, parallel, selectivity, sort, volatility};
use melba_expression::key::KeyPart;
use melba_expression::{Call, CallTarget, Expression, Node, user_aggregate};
use melba_tree::{AggregateCall, Expr, Query, Target, equal, places_of_targets, shape};

/// The expressions that the aggregation computes, in the order of its output.
struct Computed {
    groups: Vec<Group>,
    aggregates: Vec<Expr>,
    /// The places of the aggregates, by their text.
    known: HashMap<String, usize>,
    groupings: Vec<(Expr, Vec<usize>)>,
}

/// A grouping expression.
struct Group {
    expr: Expr,
    /// The operator that orders its values, whose equality groups them; 0: that of the type.
    sort: Oid,
    shape: String,
}

/// A grouped query's clauses above its aggregation, while those below it are planned.
pub(super) struct Grouped {
    all: Computed,
    /// How many of the groups are those of GROUP BY.
    written: usize,
    targets: Vec<Target>,
    having: Vec<Expr>,
}

/// Divides a query at its aggregation: its remaining targets are the inputs of the aggregation, the others refer to its
/// results. This is the first step of all: once columns of subqueries have been replaced by their expressions, a grouped
/// column that is a constant, or NULL in some grouping set, cannot be distinguished from any other.
pub fn split_grouping(query: &mut Query) -> Result<Grouped> {
    let (joined, names) = (joined_columns(&query.range_table), entry_names(&query.range_table));
    query.visit_mut(0, &mut |e, level| substitute(e, level, &joined, &names));
    let mut groups = Vec::with_capacity(query.group_by.len());
    for (group, place) in places_of_targets(&query.group_by, &query.targets) {
        let target = &query.targets[place.ok_or_else(without_target)?];
        groups.push(Group { expr: target.expr.clone(), sort: group.sort, shape: shape(&target.expr) });
    }
    let written = groups.len();
    let mut all = Computed { groups, aggregates: vec![], known: HashMap::new(), groupings: vec![] };
    let mut targets = std::mem::take(&mut query.targets);
    let places: HashMap<u32, usize> = query.group_by.iter().enumerate().rev().map(|(at, group)| (group.reference, at)).collect();
    for target in &mut targets {
        // Of equal grouping expressions, a target that is one of them is that one.
        match places.get(&target.reference).copied() {
            Some(at) => target.expr = computed(GROUP, at, &target.expr),
            None => replace(&mut target.expr, 0, &mut all, written),
        }
    }
    let mut having = Vec::new();
    if let Some(mut condition) = query.having.take() {
        // As a whole, for it may be a grouping expression.
        replace(&mut condition, 0, &mut all, written);
        super::rels::conjuncts(condition, &mut having);
    }
    for window in &mut query.windows {
        use melba_tree::FrameBound::{Following, Preceding};
        for bound in [&mut window.frame.start, &mut window.frame.end] {
            if let Preceding(e) | Following(e) = bound {
                replace(e, 0, &mut all, written);
            }
        }
    }
    let read = all.groups.iter().map(|g| g.expr.clone()).chain(all.aggregates.iter().cloned());
    query.targets = read.map(junk).collect();
    Ok(Grouped { all, written, targets, having })
}

/// Aggregates the rows of `stage`, and restores the query's targets.
pub fn group(
    planner: &mut Planner<'_>,
    query: &mut Query,
    grouped: Grouped,
    mut stage: Stage,
    dependencies: &Dependencies,
) -> Result<Stage> {
    let Grouped { mut all, written, targets, having } = grouped;
    // The expressions after preparation.
    let mut read = std::mem::replace(&mut query.targets, targets).into_iter().map(|t| t.expr);
    all.groups.iter_mut().zip(&mut read).for_each(|(group, now)| group.expr = now);
    all.aggregates.iter_mut().zip(&mut read).for_each(|(aggregate, now)| *aggregate = now);
    // Columns that depend on the grouped ones follow them in every set.
    let dependent = written..all.groups.len();
    let mut sets = query.grouping_sets.clone().unwrap_or_else(|| vec![(0..written).collect()]);
    sets.iter_mut().for_each(|set| set.extend(dependent.clone()));
    if all.groups.iter().any(|group| has_set(&group.expr)) {
        stage = project_set(planner, stage, all.groups.iter_mut().map(|group| &mut group.expr))?;
    }
    aggregate(planner, all, sets, having, stage, dependencies)
}

fn aggregate(
    planner: &mut Planner<'_>,
    mut all: Computed,
    sets: Vec<Vec<usize>>,
    having: Vec<Expr>,
    mut stage: Stage,
    dependencies: &Dependencies,
) -> Result<Stage> {
    stage = compute_common(planner, &mut all.aggregates, stage)?;
    let (exprs, sorts): (Vec<Expr>, Vec<Oid>) = all.groups.into_iter().map(|g| (g.expr, g.sort)).unzip();
    let input = stage.layout;
    let mut groups = planner.compile_all(&exprs, &input)?;
    let mut aggregates = aggregate_specs(planner, &all.aggregates, &input, groups.len())?;
    let orders = group_orders(planner, &sorts, &exprs)?;
    let sorted = aggregates.iter().any(|a: &AggregateSpec| a.distinct.is_some() || !a.order.is_empty());
    if let (1, Some(args)) = (sets.len(), common_distinct(planner, &orders, &all.aggregates, &aggregates)) {
        stage.node = distinct_rows(planner, stage.node, &exprs, args, &mut groups, &mut aggregates, dependencies);
    }
    let held: Vec<Kind> = groups.iter().map(|g| g.kind).collect();
    let keys: Vec<Vec<usize>> = sets.iter().map(|set| dependencies.determining(&exprs, &held, set)).collect();
    let is_key = |at: &usize| keys.iter().any(|keys| keys.contains(at));
    let key_exprs: Vec<Expr> = keys_of(&exprs, is_key).into_iter().cloned().collect();
    let mut parts: Vec<KeyPart> = exprs.iter().map(|g| KeyPart::equality(planner.catalog(), (g.ty(), g.collation()))).collect();
    let labels = add_labels(&orders, &mut groups, &mut parts);
    let mut kinds: Vec<Kind> = groups.iter().map(|g| g.kind).collect();
    kinds.extend(aggregates.iter().map(|a: &AggregateSpec| a.kind));
    kinds.extend(all.groupings.iter().map(|_| Kind::Int4));
    let computed = Layout::of(AGGREGATE, aggregates.len()).joined(&Layout::of(GROUPING, all.groupings.len()));
    let layout = Layout::of(GROUP, groups.len()).joined(&computed);
    let compiled = planner.compile_all(&having, &layout)?;
    planner.note_computed(GROUP, &exprs);
    planner.note_computed(AGGREGATE, &all.aggregates);
    let below = stage.node.estimate;
    let of_input = if groups.is_empty() { 1.0 } else { groups::groups_of(planner, &key_exprs, below.rows) };
    let scatters = scatters(planner, &key_exprs, &keys_of(&groups, is_key), of_input, below.rows);
    let (sets, keys) = with_labels(&labels, sets, keys);
    let rows = (of_input * super::default_selectivity::default_of(&having)).max(1.0);
    // For each row, finding its group costs as much as each aggregate; a returned group costs as much as a row.
    let total = below.total + below.rows * 0.01 * (1 + aggregates.len()) as f64;
    let estimate = Estimate { startup: total, total: total + rows * 0.01, rows };
    if groups.is_empty() && sets.len() == 1 {
        ask_for_extremes(planner, &mut stage.node, &aggregates);
    }
    ask_for_codes(&mut stage.node, &groups, &aggregates, scatters > 0);
    let workers = parallel::workers_for_aggregate(planner, &stage.node, sets.len(), &groups, &aggregates);
    let (shown_groupings, groupings): (Vec<Expr>, Vec<Vec<usize>>) = all.groupings.into_iter().unzip();
    let node = AggregateNode {
        input: stage.node,
        groups,
        parts,
        sets,
        keys,
        labels,
        aggregates,
        groupings,
        having: compiled,
        sorted,
        workers,
        scatters,
    };
    let mut node = planner.node(Op::Aggregate(Arc::new(node)), kinds.into(), estimate);
    explain_output::outputs(planner, &mut node, exprs.iter().chain(&all.aggregates).chain(&shown_groupings));
    if !exprs.is_empty() {
        planner.detail(&mut node, "Group Key", || super::explain::list(planner, &key_exprs));
    }
    if !having.is_empty() {
        planner.detail(&mut node, "Filter", || planner.show_all(&having));
    }
    Ok(Stage { node, layout })
}

/// Adds the labels of groups: the places of both.
fn add_labels(
    orders: &[(usize, Arc<ValueOrder>)],
    groups: &mut Vec<Expression>,
    parts: &mut Vec<KeyPart>,
) -> Vec<(usize, usize)> {
    let mut labels = Vec::with_capacity(orders.len());
    for (of, order) in orders {
        labels.push((*of, groups.len()));
        groups.push(sort::labelled(groups[*of].clone(), order.clone()));
        parts.push(KeyPart::of_labels(false, false));
    }
    labels
}

/// Grouping sets, and their keys, with the labels of groups: a group's value is that of its first row, and its label is its key.
fn with_labels(
    labels: &[(usize, usize)],
    mut sets: Vec<Vec<usize>>,
    mut keys: Vec<Vec<usize>>,
) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    for (of, label) in labels {
        sets.iter_mut().filter(|set| set.contains(of)).for_each(|set| set.push(*label));
        keys.iter_mut().flatten().filter(|at| *at == of).for_each(|at| *at = *label);
    }
    (sets, keys)
}

/// The orders of the grouping expressions that functions of users order.
fn group_orders(planner: &Planner<'_>, sorts: &[Oid], exprs: &[Expr]) -> Result<Vec<(usize, Arc<ValueOrder>)>> {
    let mut orders = Vec::new();
    for (at, (sort, expr)) in sorts.iter().zip(exprs).enumerate() {
        let Some(order) = sort::value_order(planner, *sort, (expr.ty(), expr.collation()))? else { continue };
        if volatility::has_volatile(planner, expr) {
            // It is computed twice: as the group's value, and for its label.
            return Err(DbError::unsupported("grouping by a volatile value that a function of users orders"));
        }
        orders.push((at, order));
    }
    Ok(orders)
}

/// The argument whose DISTINCT values all aggregates take, if they take them in any order: then the rows can be grouped by it
/// first, by several threads, and need no sort.
fn common_distinct<'a>(
    planner: &Planner<'_>,
    orders: &[(usize, Arc<ValueOrder>)],
    calls: &'a [Expr],
    aggregates: &[AggregateSpec],
) -> Option<&'a [Expr]> {
    let call = |e: &'a Expr| if let Expr::Aggregate(call) = e { Some(call) } else { None };
    let first = call(calls.first()?)?;
    let is_same = |e: &'a Expr| call(e).is_some_and(|c| same_list(&c.args, &first.args));
    let takes_any_order = |aggregate: &AggregateSpec| {
        aggregate.distinct.is_some() && parallel::combines(planner, &AggregateSpec { distinct: None, ..aggregate.clone() })
    };
    let is_plain = |a: &AggregateSpec| a.filter.is_none() && !a.call.args.iter().any(Expression::is_volatile);
    let by_keys = |e: &Expr| !planner.catalog().may_be_ordered_by_function(e.ty());
    let has_keys = orders.is_empty() && first.args.iter().all(by_keys);
    let suits = has_keys && calls.iter().all(is_same) && aggregates.iter().all(|a| is_plain(a) && takes_any_order(a));
    suits.then_some(&first.args[..])
}

/// The rows that differ in the groups and the arguments of aggregates over DISTINCT values, which read those rows then.
fn distinct_rows(
    planner: &mut Planner<'_>,
    mut input: PlanNode,
    exprs: &[Expr],
    args: &[Expr],
    groups: &mut [Expression],
    aggregates: &mut [AggregateSpec],
    dependencies: &Dependencies,
) -> PlanNode {
    let all: Vec<Expr> = exprs.iter().chain(args).cloned().collect();
    let own: Vec<Expression> = groups.iter().chain(&aggregates[0].call.args).cloned().collect();
    let kinds: Vec<Kind> = own.iter().map(|group| group.kind).collect();
    let set: Vec<usize> = (0..own.len()).collect();
    let keys = dependencies.determining(&all, &kinds, &set);
    let key_exprs: Vec<Expr> = keys.iter().map(|at| all[*at].clone()).collect();
    let below = input.estimate;
    let rows = groups::groups_of(planner, &key_exprs, below.rows).max(1.0);
    let total = below.total + below.rows * 0.01;
    let scatters = scatters(planner, &key_exprs, &keys.iter().map(|at| &own[*at]).collect::<Vec<_>>(), rows, below.rows);
    ask_for_codes(&mut input, &own, &[], scatters > 0);
    let node = AggregateNode {
        parts: all.iter().map(|e| KeyPart::equality(planner.catalog(), (e.ty(), e.collation()))).collect(),
        scatters,
        sets: vec![set],
        keys: vec![keys],
        labels: vec![],
        aggregates: vec![],
        groupings: vec![],
        having: vec![],
        sorted: false,
        workers: parallel::workers_for_aggregate(planner, &input, 1, &own, &[]),
        groups: own,
        input,
    };
    let column = |at: usize, e: &mut Expression| e.node = Node::Column(at);
    groups.iter_mut().enumerate().for_each(|(at, group)| column(at, group));
    for aggregate in aggregates {
        aggregate.distinct = None;
        aggregate.call.args.iter_mut().enumerate().for_each(|(at, arg)| column(exprs.len() + at, arg));
    }
    let estimate = Estimate { startup: total, total: total + rows * 0.01, rows };
    let mut node = planner.node(Op::Aggregate(Arc::new(node)), kinds.into(), estimate);
    explain_output::outputs(planner, &mut node, &all);
    planner.detail(&mut node, "Group Key", || super::explain::list(planner, &key_exprs));
    node
}

/// Tells a scan that only the least and greatest values of columns are needed, which bounds may have.
fn ask_for_extremes(planner: &Planner<'_>, input: &mut PlanNode, aggregates: &[AggregateSpec]) {
    let is_extreme = |aggregate: &AggregateSpec| {
        let name = if let CallTarget::System(name) = &aggregate.call.target { &**name } else { "" };
        let is_plain = aggregate.filter.is_none() && aggregate.distinct.is_none() && aggregate.order.is_empty();
        let is_column =
            matches!(&aggregate.call.args[..], [arg] if matches!(arg.node, Node::Column(_)) && zone::is_zoned(planner, arg.ty));
        let by_bytes = order::is_same_order(planner.catalog(), aggregate.call.collation, Oid::INVALID);
        (name == "min" || name == "max") && is_plain && is_column && by_bytes
    };
    if !aggregates.is_empty() && aggregates.iter().all(is_extreme) {
        ask_scans_for_extremes(input);
    }
}

/// Down through the members of a family, and projections of plain columns.
fn ask_scans_for_extremes(node: &mut PlanNode) {
    match &mut node.op {
        Op::TableScan(scan) => {
            if let Some(scan) = Arc::get_mut(scan) {
                scan.extremes = scan.filter.is_empty() && scan.join_filters.is_empty() && scan.source.plain;
            }
        }
        Op::Append(n) => {
            if let Some(n) = Arc::get_mut(n) {
                n.inputs.iter_mut().for_each(ask_scans_for_extremes);
            }
        }
        Op::Project(n) => {
            if let Some(n) = Arc::get_mut(n)
                && n.expressions.iter().all(|e| matches!(e.node, Node::Column(_)))
            {
                ask_scans_for_extremes(&mut n.input);
            }
        }
        _ => {}
    }
}

/// Into how many parts a team is to split the rows by their keys first; 0: not at all. With many groups of few rows each, members
/// would collect most groups more than once, in tables that fit no cache.
fn scatters(planner: &Planner<'_>, exprs: &[Expr], groups: &[&Expression], count: f64, rows: f64) -> usize {
    // The larger a member's table, the longer it takes to find a group in it.
    let rows_a_group_max = SCATTERED_ROWS_A_GROUP_MAX * (count / SCATTERED_LARGE_TABLE).clamp(1.0, SCATTERED_MORE_ROWS_MAX);
    if count < SCATTERED_GROUPS_MIN || rows > count * rows_a_group_max || !may_scatter(planner, exprs, groups) {
        return 0;
    }
    ((count / SCATTERED_GROUPS_A_PART) as usize).next_power_of_two().clamp(SCATTERED_PARTS_MIN, SCATTERED_PARTS_MAX)
}

/// Keys that are computed may be long, or differ when they are computed again; the beginning of a column's value does neither. A single
/// integer is often in the table's order, where the members' groups hardly meet, or close to others, which makes it an array's index.
fn may_scatter(planner: &Planner<'_>, exprs: &[Expr], groups: &[&Expression]) -> bool {
    let is_short =
        |(expr, group): (&Expr, &&Expression)| !group.makes_values() || selectivity::beginning_of(planner, expr).is_some();
    let suits = !groups.iter().any(|group| group.is_volatile()) && exprs.iter().zip(groups).all(is_short);
    match (exprs, groups) {
        ([expr], [group]) if matches!(group.kind, Kind::Int2 | Kind::Int4 | Kind::Int8) => {
            suits && selectivity::is_sparse(planner, expr)
        }
        _ => suits,
    }
}

/// All aggregates, over the rows of `input` and `groups` groups.
fn aggregate_specs(planner: &mut Planner<'_>, calls: &[Expr], input: &Layout, groups: usize) -> Result<Vec<AggregateSpec>> {
    let mut specs = Vec::with_capacity(calls.len());
    for call in calls {
        if let Expr::Aggregate(call) = call {
            specs.push(aggregate_spec(planner, call, input, &Layout::of(GROUP, groups))?);
        }
    }
    Ok(specs)
}

/// Rows of `input` are aggregated; direct arguments read the values of the group.
fn aggregate_spec(planner: &mut Planner<'_>, call: &AggregateCall, input: &Layout, group: &Layout) -> Result<AggregateSpec> {
    let Some(function) = planner.catalog().function(call.function).cloned() else {
        return Err(DbError::internal(format!("aggregate {} does not exist", call.function)));
    };
    let (make, strict) = aggregate_function(planner, &function, &call.direct_args, &call.args, call.ty)?;
    let hypothetical = function.aggregate.as_ref().is_some_and(|a| a.kind == b'h' && is_known(planner, &function, a));
    let mut direct = planner.compile_all(&call.direct_args, group)?;
    let args = planner.compile_all(&call.args, input)?;
    let mut order = Vec::with_capacity(call.order_by.len());
    for key in &call.order_by {
        let of = (key.expr.ty(), key.expr.collation());
        let part = KeyPart::new(planner.catalog(), of, key.descending, key.nulls_first);
        let expression = planner.compile(&key.expr, input)?;
        order.push(sort::ordered(planner, key.sort, of, (expression, part))?);
    }
    if hypothetical {
        // The row is only compared.
        for (value, (key, _)) in direct.iter_mut().zip(&order) {
            if let Node::OrderLabel(label) = &key.node {
                *value = sort::labelled(value.clone(), label.order.clone());
            }
        }
    }
    let distinct = match call.distinct {
        true => Some(distinct_parts(planner, call, &args, &mut order)?),
        false => None,
    };
    let filter = call.filter.as_ref().map(|f| planner.compile(f, input)).transpose()?;
    let name = if is_builtin(&function) { function.name.clone() } else { "".into() };
    Ok(AggregateSpec {
        make,
        kind: planner.kind(call.ty),
        strict,
        call: Call {
            strict,
            parallel_safe: function.parallel == b's',
            collation: call.input_collation,
            variadic: call.variadic,
            ..Call::plain(CallTarget::System(name), args, call.ty, call.location)
        },
        filter,
        distinct,
        order,
        direct,
        hypothetical,
    })
}

/// The equality keys of the arguments of DISTINCT; none where functions of users order some of them: then they are sort keys, too.
fn distinct_parts(
    planner: &Planner<'_>,
    call: &AggregateCall,
    args: &[Expression],
    order: &mut Vec<SortKey>,
) -> Result<Vec<KeyPart>> {
    let mut keys = Vec::with_capacity(args.len());
    for (expr, arg) in call.args.iter().zip(args) {
        // ORDER BY among the arguments says by which operators they are equal.
        let sort = call.order_by.iter().find(|key| equal(&key.expr, expr)).map_or(Oid::INVALID, |key| key.sort);
        keys.push(sort::equality(planner, sort, (expr.ty(), expr.collation()), arg.clone())?);
    }
    if !keys.iter().any(|(key, _)| matches!(key.node, Node::OrderLabel(_))) {
        return Ok(keys.into_iter().map(|(_, part)| part).collect());
    }
    if call.args.iter().any(|expr| volatility::has_volatile(planner, expr)) {
        return Err(DbError::unsupported("DISTINCT volatile values that a function of users orders"));
    }
    order.extend(keys);
    Ok(Vec::new())
}

/// The constructor of an aggregate's states, and whether its transition function is strict.
pub fn aggregate_function(
    planner: &Planner<'_>,
    function: &Function,
    direct: &[Expr],
    args: &[Expr],
    ty: Oid,
) -> Result<(MakeAggregate, bool)> {
    let unsupported = || DbError::unsupported(format!("aggregate function {}", function.name));
    let info = function.aggregate.as_ref().ok_or_else(unsupported)?;
    let source = |oid: Oid| planner.catalog().function(oid).map(|f| f.source.clone()).unwrap_or_default();
    let transition = planner.catalog().function(info.transition);
    let strict = transition.is_some_and(|f| f.strict);
    let known = || registry::aggregate(&source(info.transition), &source(info.final_function));
    if is_known(planner, function, info) {
        let make = known().ok_or_else(unsupported)?;
        return Ok((Arc::new(make), strict));
    }
    if info.transition_type == oids::INTERNAL {
        return Err(unsupported());
    }
    let types: Vec<Oid> = direct.iter().chain(args).map(Expr::ty).collect();
    let (catalog, session) = (planner.catalog(), planner.inputs.session);
    let state = melba_analyze::actual_type(catalog, session, &types, &function.arg_types, info.transition_type)?;
    Ok((user_aggregate(catalog, info, state, types.split_at(direct.len()), ty)?, strict))
}

/// Whether an aggregate has states of its own, not those that its functions make.
fn is_known(planner: &Planner<'_>, function: &Function, info: &AggregateInfo) -> bool {
    is_builtin(function) || is_renamed(planner, info)
}

/// Whether a user's aggregate is a built-in one by another name.
fn is_renamed(planner: &Planner<'_>, info: &AggregateInfo) -> bool {
    let is = |other: &Arc<AggregateInfo>| {
        let same = (other.transition, other.final_function) == (info.transition, info.final_function);
        same && other.initial_value == info.initial_value && other.transition_type == info.transition_type
    };
    info.transition.0 < classes::FIRST_USER_OID
        && planner.catalog().functions().any(|f| is_builtin(f) && f.aggregate.as_ref().is_some_and(is))
}

/// Built in, or an extension's.
fn is_builtin(function: &Function) -> bool {
    !(classes::FIRST_USER_OID..classes::FIRST_EXTENSION_OID).contains(&function.oid.0)
}

/// Those that are part of a group's key.
fn keys_of<T>(all: &[T], is_key: impl Fn(&usize) -> bool) -> Vec<&T> {
    (0..all.len()).filter(is_key).map(|at| &all[at]).collect()
}

/// With fewer groups each member's fit a processor's cache.
const SCATTERED_GROUPS_MIN: f64 = 100_000.0;
/// Groups of a part that fit it: some 100 bytes each.
const SCATTERED_GROUPS_A_PART: f64 = 20_000.0;
const SCATTERED_PARTS_MIN: usize = 32;
const SCATTERED_PARTS_MAX: usize = 256;
/// With more rows a group, most rows find a group that their member has already.
const SCATTERED_ROWS_A_GROUP_MAX: f64 = 3.0;
/// Groups from which tables fit no level of the caches. With 10^6 groups of 100 rows it took half as long again to split the rows first, with
/// 10^7 groups of 10 rows 0.4 times as long.
const SCATTERED_LARGE_TABLE: f64 = 1e6;
const SCATTERED_MORE_ROWS_MAX: f64 = 10.0;

fn same_list(a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
}

fn junk(expr: Expr) -> Target {
    Target { expr, name: "".into(), junk: true, reference: 0, column: 0, origin: (Oid::INVALID, 0) }
}

/// Replaces grouped expressions, aggregates and GROUPING of this level by references to the results of the aggregation. The first
/// `written` groups are those of GROUP BY.
fn replace(e: &mut Expr, level: usize, all: &mut Computed, written: usize) {
    e.visit_mut(level, &mut |e, level| {
        let by = match e {
            Expr::Aggregate(a) if a.levels_up == level => all.aggregate(e, level, written),
            Expr::Grouping { references, levels_up, .. } if *levels_up == level => {
                let references = references.clone();
                all.groupings.push((e.clone(), references));
                computed(GROUPING, all.groupings.len() - 1, e)
            }
            // Constants and columns of outer queries may be grouped as well, and are NULL in sets without them.
            _ => match (all.group_of(e, level, written), &*e) {
                (Some(at), _) => computed(GROUP, at, e),
                (None, Expr::Var(v)) if v.levels_up == level => computed(GROUP, all.dependent(e, written), e),
                _ => return true,
            },
        };
        *e = at_level(by, level);
        false
    });
}

impl Grouped {
    /// Whether some of the grouping expressions may determine others.
    pub fn has_several_groups(&self) -> bool {
        self.all.groups.len() + self.all.aggregates.len() > 1 && !self.all.groups.is_empty()
    }
}

impl Computed {
    /// An aggregate of this query, which stands `level` queries further in.
    fn aggregate(&mut self, e: &Expr, level: usize, written: usize) -> Expr {
        let mut own = e.clone();
        if level > 0 {
            lower(&mut own, level);
        }
        if let Expr::Aggregate(a) = &mut own {
            a.levels_up = 0;
            // Direct arguments refer to the group, where GROUPING SETS may make columns NULL.
            a.direct_args.iter_mut().for_each(|arg| replace(arg, 0, self, written));
        }
        let at = *self.known.entry(signature(&own)).or_insert(self.aggregates.len());
        if at == self.aggregates.len() {
            self.aggregates.push(own);
        }
        computed(AGGREGATE, at, e)
    }

    /// The grouping expression that equals `e`. In a subquery only columns are compared.
    fn group_of(&self, e: &Expr, level: usize, written: usize) -> Option<usize> {
        let groups = &self.groups[..written];
        if level > 0 {
            let Expr::Var(v) = e else { return None };
            let is =
                |g: &Group| matches!(&g.expr, Expr::Var(x) if x.levels_up == 0 && x.entry == v.entry && x.column == v.column);
            return groups.iter().position(is).filter(|_| v.levels_up == level);
        }
        let kind = std::mem::discriminant(e);
        if !groups.iter().any(|g| std::mem::discriminant(&g.expr) == kind) {
            return None;
        }
        match e {
            Expr::Var(_) | Expr::Const(_) | Expr::Param(_) => groups.iter().position(|g| equal(&g.expr, e)),
            _ => {
                let shape = shape(e);
                groups.iter().position(|g| std::mem::discriminant(&g.expr) == kind && g.shape == shape)
            }
        }
    }

    /// A column that is not grouped: the grouped ones hold a key of its table, and to group by it as well changes no group.
    fn dependent(&mut self, e: &Expr, written: usize) -> usize {
        let own = at_level(e.clone(), 0);
        let known = self.groups[written..].iter().position(|g| same(&g.expr, &own));
        written
            + known.unwrap_or_else(|| {
                self.groups.push(Group { expr: own, sort: Oid::INVALID, shape: String::new() });
                self.groups.len() - 1 - written
            })
    }
}

fn at_level(mut e: Expr, level: usize) -> Expr {
    if let Expr::Var(v) = &mut e {
        v.levels_up = level;
    }
    e
}

/// An expression that moves `by` levels outwards.
fn lower(e: &mut Expr, by: usize) {
    e.visit_mut(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up >= level + by
        {
            v.levels_up -= by;
        }
        true
    });
}
