//! Join order and join methods.
//!
//! Paths are costed and compared; the best becomes plan nodes. A path may need columns of other relations as parameters: it
//! can only stand on the right of a nested loop that has them.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::Storage;
use melba_expression::Expression;
use melba_expression::key::KeyPart;
use melba_tree::{Expr, RangeKind};
use melba_types::{DbError, Oid, Result, limits};

use super::access::leaf;
use super::join_tree::{Tree, TreeJoin, flatten};
use super::membership::ClassMembership;
use super::node::*;
use super::path::{Goal, Path, PathKind};
use super::plain_path::{CPU, effort};
use super::planner::{Planner, Stage};
use super::rels::{Rels, has, rels_of};
use super::{
    comparison, equivalence, join_filter, member, parallel, plain_path, selectivity, sort, stage, table_sample, volatility,
};

/// Inner joins of more items than this are ordered greedily.
const EXHAUSTIVE_ITEMS_MAX: usize = 10;
/// Entering a row into the table of a hash join.
const HASH_BUILD: f64 = 0.02;
/// A left row without a partner, where the join needs none: mostly the scan leaves it out (`join_filter`).
const LEFT_OUT: f64 = 0.003;
/// Starting the right side of a loop for one left row.
const LOOP: f64 = 0.1;
/// A nested loop may compare up to this many pairs of rows although a hash join is possible.
const PAIRS_MAX: f64 = 100.0;

/// A condition between items of an inner join.
struct Joining {
    /// Relations of the items. Other relations to which it refers, in a lateral subquery, are joined above and come as parameters.
    rels: Rels,
    condition: Rc<Expr>,
    membership: Option<ClassMembership>,
}

impl Planner<'_> {
    /// Turns a path into nodes.
    pub fn create(&mut self, path: &Path) -> Result<Stage> {
        limits::check_stack()?;
        limits::check_interrupt()?;
        let estimate = Estimate { startup: path.startup, total: path.total, rows: path.rows };
        match &path.kind {
            PathKind::Nothing => {
                let op = Op::Result(Arc::new(ResultNode { input: None, conditions: vec![] }));
                Ok(Stage { node: self.node(op, Arc::from([]), estimate), layout: Default::default() })
            }
            PathKind::Leaf(leaf) => leaf::create_leaf(self, leaf, estimate),
            PathKind::Filter { input, conditions } => {
                let stage = self.create(input)?;
                stage::filtered(self, stage, conditions)
            }
            PathKind::Join { join, hash, left, right, conditions, is_hash: true } => {
                create_hash_join(self, *join, hash, left, right, conditions, estimate)
            }
            PathKind::Join { join, left, right, conditions, .. } => create_loop(self, *join, left, right, conditions, estimate),
        }
    }
}

/// The best plan for a join tree.
pub fn plan_joins(planner: &mut Planner<'_>, tree: &Tree, goal: &Goal) -> Result<(Rc<Path>, Vec<Expr>)> {
    let Tree::Inner { items, conditions } = tree else {
        let paths = tree_paths(planner, tree, &[], &[], goal)?;
        return Ok((cheapest(paths, goal)?, table_sample::checks(planner)));
    };
    // Conditions that depend on no row are checked once.
    let mut gates = Vec::new();
    let mut rest = Vec::new();
    for condition in conditions {
        if rels_of(condition) == 0 && !volatility::has_volatile(planner, condition) {
            gates.push(condition.clone());
        } else {
            rest.push(condition.clone());
        }
    }
    let tree = Tree::Inner { items: items.clone(), conditions: rest };
    let mut paths = tree_paths(planner, &tree, &[], &[], goal)?;
    if let Some(tree) = lifted(&tree)
        && is_of_tables(planner, tree.rels())
    {
        paths.extend(tree_paths(planner, &tree, &[], &[], goal)?);
    }
    let path = cheapest(paths, goal)?;
    gates.extend(table_sample::checks(planner));
    Ok((path, gates))
}

/// Whether relations are tables without children: making paths for them twice leaves nothing behind.
fn is_of_tables(planner: &Planner<'_>, rels: Rels) -> bool {
    let is_table = |entry: usize| match planner.level().entries[entry].kind {
        RangeKind::Relation { oid, inherit, .. } => planner
            .catalog()
            .relation(oid)
            .is_some_and(|r| matches!(r.storage, Storage::Tree(_)) && !member::is_family(planner.catalog(), r, inherit)),
        _ => false,
    };
    (0..planner.level().entries.len()).filter(|entry| has(rels, *entry)).all(is_table)
}

fn cheapest(paths: Vec<Rc<Path>>, goal: &Goal) -> Result<Rc<Path>> {
    let complete = paths.into_iter().filter(|p| p.params == 0);
    complete
        .min_by(|a, b| a.sorted_cost(goal).total_cmp(&b.sorted_cost(goal)))
        .ok_or_else(|| DbError::internal("no way to join the relations of the query"))
}

/// Paths for a tree: `own` are further conditions on it, `across` conditions that also refer to relations outside.
fn tree_paths(planner: &mut Planner<'_>, tree: &Tree, own: &[Expr], across: &[Rc<Expr>], goal: &Goal) -> Result<Vec<Rc<Path>>> {
    match tree {
        Tree::Leaf(entry) => planner.leaf_paths(*entry, own, across, goal),
        Tree::Inner { items, conditions } => {
            let all: Vec<Rc<Expr>> = conditions.iter().chain(own).map(|c| Rc::new(c.clone())).collect();
            inner_paths(planner, items, &all, across, goal)
        }
        Tree::Join { join, left, right, conditions } => join_paths(planner, *join, left, right, conditions, own, across, goal),
    }
}

/// Outer, semi and anti joins.
#[allow(clippy::too_many_arguments)]
fn join_paths(
    planner: &mut Planner<'_>,
    join: TreeJoin,
    left: &Tree,
    right: &Tree,
    conditions: &[Expr],
    own: &[Expr],
    across: &[Rc<Expr>],
    goal: &Goal,
) -> Result<Vec<Rc<Path>>> {
    let (left_rels, right_rels) = (left.rels(), right.rels());
    let mut left_own = Vec::new();
    let mut above = Vec::new();
    for condition in own {
        let rels = rels_of(condition);
        let pushable = join != TreeJoin::Full && rels & !left_rels == 0 && rels != 0;
        if pushable { left_own.push(condition.clone()) } else { above.push(condition.clone()) }
    }
    let mut right_own = Vec::new();
    let mut joining = Vec::new();
    for condition in conditions {
        let rels = rels_of(condition);
        if join != TreeJoin::Full && rels & !right_rels == 0 && rels != 0 {
            right_own.push(condition.clone());
        } else if matches!(join, TreeJoin::Semi | TreeJoin::SemiPair) && rels & !left_rels == 0 && rels != 0 {
            left_own.push(condition.clone());
        } else {
            joining.push(Rc::new(condition.clone()));
        }
    }
    let outer: Vec<Rc<Expr>> = across.iter().filter(|c| rels_of(c) & right_rels == 0).cloned().collect();
    let lefts = tree_paths(planner, left, &left_own, if join == TreeJoin::Full { &[] } else { &outer }, goal)?;
    // A full join is no lookup, and NOT IN needs the NULLs as well.
    let looks_up = !matches!(join, TreeJoin::Full | TreeJoin::NotIn);
    let rights = tree_paths(planner, right, &right_own, if looks_up { &joining } else { &[] }, goal)?;
    let join_type = type_of(join);
    let mut out = Vec::new();
    for l in &lefts {
        for r in &rights {
            let (lr, rr) = (l.rows.max(1.0), r.rows.max(1.0));
            let all: Vec<&Expr> = joining.iter().map(|c| &**c).collect();
            let matching: Vec<&Expr> =
                joining.iter().filter(|c| !r.used.iter().any(|u| Rc::ptr_eq(u, c))).map(|c| &**c).collect();
            let sel = selectivity::join_selectivity(planner, &matching, lr.max(rr));
            let partners = selectivity::match_share(planner, &all, left_rels, rights.first().map_or(rr, |_| rows_of(&rights)));
            let rows = match join_type {
                JoinType::Semi | JoinType::SemiPair => (lr * partners).max(1.0),
                JoinType::Anti | JoinType::NotIn => (lr * (1.0 - partners)).max(1.0),
                JoinType::Full => (lr * rr * sel).max(lr + rr),
                _ => (lr * rr * sel).max(lr),
            };
            combine(planner, join_type, l, r, &joining, rows, &mut out);
        }
    }
    if out.is_empty() {
        if join == TreeJoin::Full {
            return Err(melba_types::err!(
                FEATURE_NOT_SUPPORTED,
                "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions"
            ));
        }
        return Err(DbError::internal("no way to join the sides of an outer join"));
    }
    if !above.is_empty() {
        out = out.into_iter().map(|p| plain_path::filter_path(planner, p, above.clone())).collect();
    }
    Ok(prune(out, goal))
}

/// The order of an inner join's items.
fn inner_paths(
    planner: &mut Planner<'_>,
    items: &[Tree],
    conditions: &[Rc<Expr>],
    across: &[Rc<Expr>],
    goal: &Goal,
) -> Result<Vec<Rc<Path>>> {
    if items.is_empty() {
        let nothing = Rc::new(Path {
            kind: PathKind::Nothing,
            rels: 0,
            params: 0,
            rows: 1.0,
            startup: 0.0,
            total: 0.01,
            ordered: usize::MAX,
            used: vec![],
        });
        let own: Vec<Expr> = conditions.iter().map(|c| (**c).clone()).collect();
        return Ok(vec![if own.is_empty() { nothing } else { plain_path::filter_path(planner, nothing, own) }]);
    }
    let all = items.iter().fold(0, |all, i| all | i.rels());
    let mut singles = Vec::with_capacity(items.len());
    let mut placed = vec![false; conditions.len()];
    for item in items {
        let rels = item.rels();
        let mut own = Vec::new();
        let mut joining: Vec<Rc<Expr>> = across.to_vec();
        for (i, condition) in conditions.iter().enumerate() {
            let refers = rels_of(condition);
            // A condition that refers to outer relations only as parameters counts as the item's own.
            if refers & all & !rels == 0 && refers & rels != 0 {
                own.push((**condition).clone());
                placed[i] = true;
            } else if refers & rels != 0 {
                joining.push(condition.clone());
            }
        }
        singles.push(tree_paths(planner, item, &own, &joining, goal)?);
    }
    let joining = |(condition, membership): (&Rc<Expr>, _)| Joining {
        rels: rels_of(condition) & all,
        condition: condition.clone(),
        membership,
    };
    let memberships = if items.len() > 1 { equivalence::memberships(planner, conditions) } else { vec![None; conditions.len()] };
    let left = conditions.iter().zip(memberships).zip(&placed).filter(|(_, placed)| !**placed).map(|(c, _)| joining(c));
    let (loose, joining): (Vec<_>, Vec<_>) = left.partition(|c| c.rels == 0);
    let mut paths = if items.len() == 1 {
        singles.swap_remove(0)
    } else if items.len() <= EXHAUSTIVE_ITEMS_MAX {
        search(planner, singles, &joining, goal)?
    } else {
        greedy(planner, singles, &joining, goal)?
    };
    if !loose.is_empty() {
        let loose: Vec<Expr> = loose.iter().map(|c| (*c.condition).clone()).collect();
        paths = paths.into_iter().map(|p| plain_path::filter_path(planner, p, loose.clone())).collect();
    }
    Ok(paths)
}

/// All orders, by dynamic programming over subsets.
fn search(planner: &mut Planner<'_>, singles: Vec<Vec<Rc<Path>>>, conditions: &[Joining], goal: &Goal) -> Result<Vec<Rc<Path>>> {
    let n = singles.len();
    let item_rels: Vec<Rels> = singles.iter().map(|p| p.first().map_or(0, |p| p.rels)).collect();
    let item_rows: Vec<f64> = singles.iter().map(|p| rows_of(p)).collect();
    let all = item_rels.iter().fold(0, |all, rels| all | rels);
    let items_of = |rels: Rels| (0..n).filter(|i| item_rels[*i] & rels != 0).fold(0_u32, |items, i| items | 1 << i);
    // Items that conditions are about, and items with those whose columns they need.
    let mut links: Vec<u32> = conditions.iter().map(|c| items_of(c.rels)).collect();
    links.extend(singles.iter().flatten().map(|path| items_of(path.rels | path.params)));
    let mut best: HashMap<u32, Vec<Rc<Path>>> = HashMap::new();
    for (i, paths) in singles.into_iter().enumerate() {
        best.insert(1 << i, paths);
    }
    for set in 1u32..1 << n {
        if set.count_ones() < 2 {
            continue;
        }
        let rels = (0..n).filter(|i| set >> i & 1 != 0).fold(0, |all, i| all | item_rels[i]);
        let rows = set_rows(planner, set, rels, &item_rows, &item_rels, conditions);
        let mut out = Vec::new();
        for are_linked in [true, false] {
            // Pairs without a condition are many, and of use only where there are no others.
            if !are_linked && out.iter().any(|p: &Rc<Path>| p.params & all == 0) {
                break;
            }
            // Of several ways at the same cost the first is taken, which begins with the items that are written first.
            let splits = std::iter::successors(Some(set & set.wrapping_neg()), |left| Some(left.wrapping_sub(set) & set));
            for left in splits.take_while(|left| *left != set) {
                let right = set & !left;
                if links.iter().any(|link| link & left != 0 && link & right != 0) == are_linked
                    && let (Some(lefts), Some(rights)) = (best.get(&left), best.get(&right))
                {
                    pairs(planner, lefts, rights, conditions, rows, &mut out);
                }
            }
        }
        // One that needs other items as parameters does nothing that joining these first would not.
        if out.iter().any(|p| p.params & all == 0) {
            out.retain(|p| p.params & all == 0);
        }
        best.insert(set, prune(out, goal));
    }
    best.remove(&((1 << n) - 1)).ok_or_else(|| DbError::internal("join search found nothing"))
}

fn set_rows(planner: &Planner<'_>, set: u32, rels: Rels, item_rows: &[f64], item_rels: &[Rels], conditions: &[Joining]) -> f64 {
    let members = (0..item_rows.len()).filter(|i| set >> i & 1 != 0);
    let mut rows: f64 = members.map(|i| item_rows[i]).product();
    let inside = independent(conditions.iter().filter(|c| c.rels & !rels == 0));
    let largest = item_rels.iter().zip(item_rows).filter(|(r, _)| *r & rels != 0).map(|(_, rows)| *rows).fold(1.0, f64::max);
    rows *= selectivity::join_selectivity(planner, &inside, largest);
    rows.max(1.0)
}

/// Joins the pair that results in the fewest rows, again and again.
fn greedy(planner: &mut Planner<'_>, singles: Vec<Vec<Rc<Path>>>, conditions: &[Joining], goal: &Goal) -> Result<Vec<Rc<Path>>> {
    let mut parts: Vec<Vec<Rc<Path>>> = singles;
    while parts.len() > 1 {
        let mut choice: Option<(f64, usize, usize, Vec<Rc<Path>>)> = None;
        for i in 0..parts.len() {
            for j in 0..parts.len() {
                if i == j {
                    continue;
                }
                let rels = parts[i][0].rels | parts[j][0].rels;
                let (lr, rr) = (rows_of(&parts[i]), rows_of(&parts[j]));
                let joins =
                    |refers: Rels| refers & !rels == 0 && refers & !parts[i][0].rels != 0 && refers & !parts[j][0].rels != 0;
                let between = independent(conditions.iter().filter(|c| joins(c.rels)));
                let rows = lr * rr * selectivity::join_selectivity(planner, &between, lr.max(rr));
                let rank = if between.is_empty() { rows * 1e6 + 1e6 } else { rows };
                if choice.as_ref().is_some_and(|c| c.0 <= rank) {
                    continue;
                }
                let mut out = Vec::new();
                let (lefts, rights) = (parts[i].clone(), parts[j].clone());
                pairs(planner, &lefts, &rights, conditions, rows.max(1.0), &mut out);
                pairs(planner, &rights, &lefts, conditions, rows.max(1.0), &mut out);
                if !out.is_empty() {
                    choice = Some((rank, i, j, prune(out, goal)));
                }
            }
        }
        let Some((_, i, j, joined)) = choice else { return Err(DbError::internal("join search found nothing")) };
        parts[i] = joined;
        parts.swap_remove(j);
    }
    Ok(parts.swap_remove(0))
}

fn pairs(
    planner: &Planner<'_>,
    lefts: &[Rc<Path>],
    rights: &[Rc<Path>],
    conditions: &[Joining],
    rows: f64,
    out: &mut Vec<Rc<Path>>,
) {
    for l in lefts {
        for r in rights {
            combine(planner, JoinType::Inner, l, r, &decided(l, r, conditions), rows, out);
        }
    }
}

/// The joins of two paths.
fn combine(
    planner: &Planner<'_>,
    join: JoinType,
    l: &Rc<Path>,
    r: &Rc<Path>,
    conditions: &[Rc<Expr>],
    rows: f64,
    out: &mut Vec<Rc<Path>>,
) {
    if l.params & r.rels != 0 {
        return;
    }
    // Conditions of an outer join in a lateral subquery may be about relations that are joined above.
    let refers = conditions.iter().fold(l.params | r.params, |all, c| all | rels_of(c));
    let mut paths = Paths { params: refers & !l.rels & !r.rels, rows, out };
    let left_conditions: Vec<&Rc<Expr>> = conditions.iter().filter(|c| !r.used.iter().any(|u| Rc::ptr_eq(u, c))).collect();
    let dependent = r.params & l.rels != 0;
    // The one row without columns is in every order, but its join partner need not be. Unmatched rows of the right side come
    // last.
    let in_order = if l.rels != 0 && !join.gives_right_last() { l.ordered } else { 0 };
    if !dependent {
        let (hash, residual) = hash_keys(planner, join, &left_conditions, l.rels, r.rels);
        if !hash.is_empty() {
            // The other conditions are evaluated on all pairs with equal keys.
            let pairs =
                (rows / selectivity::join_selectivity(planner, &residual, l.rows.max(r.rows))).min(l.rows * r.rows).max(rows);
            let checks = rows * CPU + pairs * effort(residual.iter().copied());
            let startup = l.startup + r.total + r.rows * HASH_BUILD;
            let probes = |rows: f64, probed: f64| probed * CPU + (rows - probed) * LEFT_OUT;
            let probed = if join.keeps_unmatched_left() { l.rows } else { l.rows.min(pairs) };
            let total = startup + (l.total - l.startup) + probes(l.rows, probed) + checks;
            // A table that does not fit is read in parts, and the rows of the left side with it.
            paths.add(join, (l, r), Some(&hash), &residual, (startup, total), 0);
            // The join may build on the left side instead, when that has less than half of the right side's rows.
            if let Some(join) = join.built_on_left()
                && l.rows * 2.0 < r.rows
                && r.params == 0
                && l.params == 0
            {
                let swapped: Vec<_> = hash.into_iter().map(|(a, b)| (b, a)).collect();
                let startup = r.startup + l.total + l.rows * HASH_BUILD;
                let total = startup + (r.total - r.startup) + probes(r.rows, r.rows.min(pairs)) + checks;
                paths.add(join, (r, l), Some(&swapped), &residual, (startup, total), 0);
            }
            // A loop without an index compares all pairs: where the estimate of a side is wrong, it takes far too long.
            if join == JoinType::NotIn || join == JoinType::Full || l.rows * r.rows > PAIRS_MAX {
                return;
            }
        }
    }
    if join == JoinType::NotIn || join == JoinType::Full && (dependent || left_conditions.iter().any(|c| rels_of(c) != 0)) {
        return;
    }
    let rest: Vec<&Expr> = left_conditions.iter().map(|c| &***c).collect();
    let per_row = effort(rest.iter().copied()) + CPU;
    let inner = if dependent { r.total } else { 0.0 };
    let once = if dependent { 0.0 } else { r.total };
    let total = l.total + once + l.rows * (LOOP + inner) + l.rows * r.rows * per_row;
    let startup = l.startup + if dependent { r.startup } else { r.total };
    paths.add(join, (l, r), None, &rest, (startup, total), in_order);
}

/// Equalities between the sides that hashing decides, as (left, right) operands; and the other conditions.
fn hash_keys<'c>(
    planner: &Planner<'_>,
    join: JoinType,
    conditions: &[&'c Rc<Expr>],
    left: Rels,
    right: Rels,
) -> (Vec<(&'c Expr, &'c Expr)>, Vec<&'c Expr>) {
    let mut keys = Vec::new();
    let mut rest = Vec::new();
    for &condition in conditions {
        match hash_key(planner, join, condition, left, right) {
            Some(key) => keys.push(key),
            None => rest.push(&**condition),
        }
    }
    (keys, rest)
}

fn hash_key<'c>(
    planner: &Planner<'_>,
    join: JoinType,
    condition: &'c Expr,
    left: Rels,
    right: Rels,
) -> Option<(&'c Expr, &'c Expr)> {
    let Expr::Operator(op) = condition else { return None };
    let [a, b] = &op.args[..] else { return None };
    let sides = ((a.ty(), a.collation()), (b.ty(), b.collation()));
    // A full join is never a loop.
    let has_labels = join == JoinType::Full && comparison::labels_alike(planner, op, sides.0, sides.1);
    if !has_labels && !comparison::hashes_alike(planner, op, sides.0, sides.1) || volatility::has_volatile(planner, condition) {
        return None;
    }
    let (ra, rb) = (rels_of(a), rels_of(b));
    if ra == 0 || rb == 0 {
        return None;
    }
    if ra & right == 0 && rb & left == 0 {
        Some((a, b))
    } else if ra & left == 0 && rb & right == 0 {
        Some((b, a))
    } else {
        None
    }
}

fn create_hash_join(
    planner: &mut Planner<'_>,
    join: JoinType,
    keys: &[(Expr, Expr)],
    left: &Path,
    right: &Path,
    conditions: &[Expr],
    estimate: Estimate,
) -> Result<Stage> {
    let mut left = planner.create(left)?;
    let right = planner.create(right)?;
    let mut left_keys = planner.compile_all(keys.iter().map(|k| &k.0), &left.layout)?;
    let mut right_keys = planner.compile_all(keys.iter().map(|k| &k.1), &right.layout)?;
    let mut parts = Vec::with_capacity(keys.len());
    for (at, (a, _)) in keys.iter().enumerate() {
        let of = (a.ty(), a.collation());
        parts.push(match sort::value_order(planner, Oid::INVALID, of)? {
            // Both sides have the labels of one order.
            Some(order) => {
                for side in [&mut left_keys, &mut right_keys] {
                    side[at] = sort::labelled(side[at].clone(), order.clone());
                }
                KeyPart::of_labels(false, false)
            }
            None => KeyPart::equality(planner.catalog(), of),
        });
    }
    let both = left.layout.clone().joined(&right.layout);
    let residual = planner.compile_all(conditions, &both)?;
    let (kinds, layout) = joined(join, &left, &right);
    let filters = join_filter::offer_filters(planner, join, &mut left.node, &left_keys, &right_keys);
    let is_safe = right_keys.iter().all(Expression::is_parallel_safe);
    let workers = if is_safe { parallel::workers_for(planner, &right.node) } else { 0 };
    let (left, right) = (left.node, right.node);
    let node = HashJoinNode { join, left, right, left_keys, right_keys, parts, residual, filters, workers, coded: vec![] };
    let mut node = planner.node(Op::HashJoin(Arc::new(node)), kinds, estimate);
    planner.detail(&mut node, "Hash Cond", || super::explain::equalities(planner, keys));
    if !conditions.is_empty() {
        planner.detail(&mut node, "Join Filter", || planner.show_all(conditions));
    }
    Ok(Stage { node, layout })
}

fn create_loop(
    planner: &mut Planner<'_>,
    join: JoinType,
    left: &Path,
    right: &Path,
    conditions: &[Expr],
    estimate: Estimate,
) -> Result<Stage> {
    let left = planner.create(left)?;
    let (right, used) = planner.collecting(|p| p.create(right))?;
    let parameters = planner.settable(&used, &left.layout);
    // They are set here, so nodes above need not know them.
    for (parameter, _) in &parameters {
        planner.used.remove(parameter);
    }
    let both = left.layout.clone().joined(&right.layout);
    let compiled = planner.compile_all(conditions, &both)?;
    let (kinds, layout) = joined(join, &left, &right);
    let node = NestedLoopNode { join, left: left.node, right: right.node, parameters, conditions: compiled };
    let mut node = planner.node(Op::NestedLoop(Arc::new(node)), kinds, estimate);
    if !conditions.is_empty() {
        planner.detail(&mut node, "Join Filter", || planner.show_all(conditions));
    }
    Ok(Stage { node, layout })
}

/// The tree whose semi and anti joins come after the inner joins; `None` when they do already. They test each row of one item, so
/// that their order among inner joins is free: early they exclude rows, late they test fewer.
fn lifted(tree: &Tree) -> Option<Tree> {
    let Tree::Inner { items, conditions } = tree else { return None };
    let (mut items, mut joins) = (items.clone(), Vec::new());
    for item in &mut items {
        while let Tree::Join { join: join @ (TreeJoin::Semi | TreeJoin::Anti | TreeJoin::NotIn), left, right, conditions } = item
        {
            joins.push((*join, right.clone(), std::mem::take(conditions)));
            *item = std::mem::replace(left, Tree::Leaf(0));
        }
    }
    if items.len() < 2 || joins.is_empty() {
        return None;
    }
    let inner = flatten(Tree::Inner { items, conditions: conditions.clone() });
    let attach = |left, (join, right, conditions)| Tree::Join { join, left: Box::new(left), right, conditions };
    Some(joins.into_iter().rev().fold(inner, attach))
}

/// The conditions that a join of two paths checks: of a class one, since each side has its columns equal already.
fn decided(l: &Path, r: &Path, conditions: &[Joining]) -> Vec<Rc<Expr>> {
    let both = l.rels | r.rels;
    let is_across = |c: &&Joining| c.rels & !both == 0 && c.rels & !l.rels != 0 && c.rels & !r.rels != 0;
    // The condition by which the right side was found.
    let is_used = |c: &&Joining| r.used.iter().any(|u| Rc::ptr_eq(u, &c.condition));
    let found_by = conditions.iter().filter(is_across).filter(is_used);
    let mut classes: Vec<usize> = found_by.filter_map(|c| c.membership.map(|m| m.class)).collect();
    let mut is_open = |c: &Joining| match c.membership {
        Some(m) if m.is_decided || classes.contains(&m.class) => false,
        Some(m) => {
            classes.push(m.class);
            true
        }
        None => true,
    };
    let open = conditions.iter().filter(is_across).filter(|c| is_open(c));
    open.map(|c| c.condition.clone()).collect()
}

/// The conditions of which none follows from the others. Written conditions come before implied ones.
fn independent<'c>(conditions: impl Iterator<Item = &'c Joining>) -> Vec<&'c Expr> {
    // By class, the relations whose columns are known to be equal.
    let mut equal: Vec<(usize, Rels)> = Vec::new();
    let mut is_new = |c: &Joining| {
        let Some(ClassMembership { class, is_decided }) = c.membership else { return true };
        let (joined, others): (Vec<_>, Vec<_>) = equal.iter().partition(|(of, rels)| *of == class && rels & c.rels != 0);
        let follows = is_decided || joined.iter().any(|(_, rels)| rels & c.rels == c.rels);
        equal = others;
        equal.push((class, joined.iter().fold(c.rels, |all, (_, rels)| all | rels)));
        !follows
    };
    conditions.filter(|c| is_new(c)).map(|c| &*c.condition).collect()
}

/// The joins of two sides, as they are found.
struct Paths<'o> {
    params: Rels,
    rows: f64,
    out: &'o mut Vec<Rc<Path>>,
}

impl Paths<'_> {
    /// Adds a join, `hash` being its keys, unless an existing path is better: most are rejected, and copy no expressions.
    fn add(
        &mut self,
        join: JoinType,
        (left, right): (&Rc<Path>, &Rc<Path>),
        hash: Option<&[(&Expr, &Expr)]>,
        conditions: &[&Expr],
        (startup, total): (f64, f64),
        ordered: usize,
    ) {
        let beats =
            |k: &Rc<Path>| k.params & !self.params == 0 && k.startup <= startup && k.total <= total && k.ordered >= ordered;
        if self.out.iter().any(beats) {
            return;
        }
        let kind = PathKind::Join {
            join,
            hash: hash.unwrap_or_default().iter().map(|(a, b)| ((*a).clone(), (*b).clone())).collect(),
            left: left.clone(),
            right: right.clone(),
            conditions: conditions.iter().map(|c| (*c).clone()).collect(),
            is_hash: hash.is_some(),
        };
        let used = left.used.iter().chain(&right.used).cloned().collect();
        let (rels, params, rows) = (left.rels | right.rels, self.params, self.rows);
        self.out.push(Rc::new(Path { kind, rels, params, rows, startup, total, ordered, used }));
    }
}

fn joined(join: JoinType, left: &Stage, right: &Stage) -> (Arc<[melba_types::Kind]>, super::layout::Layout) {
    if !join.keeps_right() {
        return (left.node.kinds.clone(), left.layout.clone());
    }
    if !join.keeps_left() {
        return (right.node.kinds.clone(), right.layout.clone());
    }
    let kinds = left.node.kinds.iter().chain(right.node.kinds.iter()).copied().collect();
    (kinds, left.layout.clone().joined(&right.layout))
}

fn type_of(join: TreeJoin) -> JoinType {
    match join {
        TreeJoin::Left => JoinType::Left,
        TreeJoin::Full => JoinType::Full,
        TreeJoin::Semi => JoinType::Semi,
        TreeJoin::SemiPair => JoinType::SemiPair,
        TreeJoin::Anti => JoinType::Anti,
        TreeJoin::NotIn => JoinType::NotIn,
    }
}

/// Rows of an item without parameters.
fn rows_of(paths: &[Rc<Path>]) -> f64 {
    paths
        .iter()
        .filter(|p| p.params == 0)
        .map(|p| p.rows)
        .fold(None, |m: Option<f64>, r| Some(m.map_or(r, |m| m.max(r))))
        .unwrap_or_else(|| paths.first().map_or(1.0, |p| p.rows))
}

/// Keeps, for each set of parameters, the cheapest path and the cheapest ordered one.
fn prune(paths: Vec<Rc<Path>>, goal: &Goal) -> Vec<Rc<Path>> {
    let mut kept: Vec<Rc<Path>> = Vec::new();
    for path in paths {
        let better = |k: &Rc<Path>| {
            // A path is not kept for 1 % of the total cost.
            k.params & !path.params == 0
                && k.cost(goal) <= path.cost(goal)
                && k.total <= path.total * 1.01
                && (k.ordered >= path.ordered || goal.order.is_empty())
        };
        if kept.iter().any(better) {
            continue;
        }
        kept.retain(|k| {
            !(path.params & !k.params == 0
                && path.cost(goal) <= k.cost(goal)
                && path.total <= k.total
                && (path.ordered >= k.ordered || goal.order.is_empty()))
        });
        kept.push(path);
    }
    kept
}
