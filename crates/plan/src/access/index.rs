//! Chooses the indexes that can serve conditions and orders.

use std::rc::Rc;
use std::sync::Arc;

use melba_catalog::{Catalog, IndexInfo, IndexKey, Relation, Storage, classes};
use melba_fmgr::order;
use melba_types::{Oid, Result, TreeId, oids};

use super::indexed::{IndexedTerm, has_all, is_value, predicate};
use crate::implication::{EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, implies};
use crate::index_path::{ArmChoice, BoundChoice, IndexChoice, Match, RangeChoice};
use crate::layout::boolean;
use crate::path::{Access, Goal, LeafPath, Path, PathKind};
use crate::planner::Planner;
use crate::rels::{Rels, rels_of};
use crate::{comparison, needed, selectivity};
use melba_expression::key::KeyPart;
use melba_tree::{Comparison, Expr, RowCompareExpr};

/// Finding the first row by a key: as long as reading more than 100 rows of segments, as measured with TPC-H.
pub const INDEX_START: f64 = 1.5;
/// Another row of a table whose column has no statistics.
const INDEX_ROW: f64 = 0.03;
/// Another row of a segment, whose columns are decoded for it.
const SEGMENT_ROW: f64 = 0.1;
/// Of an index that has all columns.
const INDEX_ONLY_ROW: f64 = 0.012;

/// A condition's bound for one index column.
enum Bound {
    Match(Match),
    Lower(BoundChoice),
    Upper(BoundChoice),
    /// By a comparison of rows, which must still be checked; true: the upper one.
    Rows(bool, BoundChoice),
    /// Helps to find rows, but must still be checked.
    Prefix(Expr, bool),
    NotNull,
}

/// An index with one key a row, in order.
struct OrderedIndex {
    info: Arc<IndexInfo>,
    terms: Vec<IndexedTerm>,
    predicate: Option<Expr>,
    /// Without bounds.
    arm: ArmChoice,
}

/// An index matched with conditions.
struct Matched {
    arm: ArmChoice,
    /// Positions in the candidates of the conditions that the bounds decide, or that the index's predicate implies.
    decided: Vec<usize>,
    /// Of those, and of others, the ones that lessen the rows found.
    uses: Vec<usize>,
    rows: f64,
}

pub fn index_paths(
    planner: &mut Planner<'_>,
    entry: usize,
    relation: &Arc<Relation>,
    raw: f64,
    own: &[Expr],
    across: &[Rc<Expr>],
    goal: &Goal,
) -> Result<Vec<Rc<Path>>> {
    let mut out = Vec::new();
    let own_rels = own.iter().fold(0, |all: Rels, c| all | rels_of(c)) & !(1 << entry);
    let indexes = ordered_indexes(planner, entry, relation)?;
    for index in indexes.iter().filter(|index| has_all(planner, &index.predicate, own)) {
        for supplier in suppliers(entry, across) {
            let helping: Vec<Rc<Expr>> = across
                .iter()
                .filter(|c| {
                    let others = rels_of(c) & !(1 << entry);
                    supplier != 0 && others != 0 && others & !supplier == 0
                })
                .cloned()
                .collect();
            let candidates: Vec<&Expr> = own.iter().chain(helping.iter().map(|c| &**c)).collect();
            let matched = match_index(planner, entry, index, &candidates, raw);
            let helped: Vec<Rc<Expr>> =
                matched.uses.iter().filter(|i| **i >= own.len()).map(|i| helping[*i - own.len()].clone()).collect();
            if supplier != 0 && helped.is_empty() {
                continue;
            }
            let order = index_order(planner, entry, relation, index, &matched.arm, goal);
            if matched.uses.is_empty() && order.is_none() && index.predicate.is_none() {
                continue;
            }
            let filter: Vec<Expr> =
                own.iter().enumerate().filter(|(i, _)| !matched.decided.contains(i)).map(|(_, c)| c.clone()).collect();
            let used = matched.decided.iter().filter(|i| **i >= own.len()).map(|i| helping[*i - own.len()].clone()).collect();
            let params = (own_rels | helped.iter().fold(0, |all, c| all | rels_of(c))) & !(1 << entry);
            // The row estimate of an index already counts the conditions that it uses, whether or not the filter checks them again.
            let others = own.iter().enumerate().filter(|(i, _)| !matched.uses.contains(i)).map(|(_, c)| c);
            let sel = selectivity::conjunction(planner, others);
            let decided: Vec<Expr> = matched.decided.iter().filter_map(|i| own.get(*i)).cloned().collect();
            let row = if covers(planner, entry, &index.info, &decided) { INDEX_ONLY_ROW } else { found_row(planner, relation) };
            let choice = IndexChoice { arms: vec![matched.arm], reverse: order.is_some_and(|(reverse, _)| reverse), decided };
            out.push(Rc::new(Path {
                rels: 1 << entry,
                params,
                rows: (matched.rows * sel).max(1.0).min(raw),
                startup: 0.0,
                total: INDEX_START + matched.rows * row,
                ordered: order.map_or(0, |(_, keys)| keys),
                used,
                kind: PathKind::Leaf(LeafPath { entry, access: Access::Index(choice), filter }),
            }));
        }
    }
    if planner.inputs.is_enabled("enable_bitmapscan") {
        out.extend(union_path(planner, entry, (relation, &indexes), raw, own, own_rels));
    }
    Ok(out)
}

fn ordered_indexes(planner: &Planner<'_>, entry: usize, relation: &Arc<Relation>) -> Result<Vec<OrderedIndex>> {
    let mut out = Vec::new();
    for index in relation.indexes.iter().filter_map(|oid| planner.catalog().relation(*oid)) {
        let (Some(info), Storage::Tree(tree)) = (&index.index, &index.storage) else { continue };
        if info.valid && is_ordered_tree(index) {
            out.push(OrderedIndex {
                info: Arc::clone(info),
                terms: IndexedTerm::of_index(planner, info, relation, entry)?,
                predicate: predicate(planner, info, relation, entry)?,
                arm: arm_of(planner, index, info, *tree),
            });
        }
    }
    Ok(out)
}

/// Whether an index has one key a row, in order: a hash index is kept as one, too.
fn is_ordered_tree(index: &Relation) -> bool {
    [classes::BTREE, classes::HASH].contains(&index.access_method)
}

/// The B-tree's number of an operator in an operator class.
fn strategy(catalog: &Catalog, operator: Oid, opclass: Oid) -> Option<i16> {
    let class = catalog.access_methods().class(opclass)?;
    let found = catalog.operator_strategy(operator, class.family)?;
    match class.method {
        classes::HASH => Some(EQUAL).filter(|_| found == 1),
        _ => Some(found),
    }
}

/// The cost of a row that an index has found.
pub fn found_row(planner: &Planner<'_>, relation: &Relation) -> f64 {
    match relation.storage {
        Storage::Tree(tree) if planner.inputs.statistics.has_segments(tree) => SEGMENT_ROW,
        _ => INDEX_ROW,
    }
}

/// Whether an index has all columns that are read of the entry.
fn covers(planner: &Planner<'_>, entry: usize, info: &IndexInfo, decided: &[Expr]) -> bool {
    let has = |column: i16| info.keys.iter().any(|key| key.column == column);
    // System columns need no row; a whole row (0) is never covered, nor is a row that is checked again.
    !planner.level().rechecks
        && needed::needed(planner, entry, decided).into_iter().all(|column| column < 0 || column > 0 && has(column))
}

/// Whether arms are of one index, which has all columns that are read.
fn is_covered_union(planner: &Planner<'_>, entry: usize, arms: &[ArmChoice], decided: &[Expr]) -> bool {
    let Some((first, others)) = arms.split_first() else { return false };
    let index = planner.catalog().relation(first.index).and_then(|index| index.index.clone());
    others.iter().all(|arm| arm.index == first.index) && index.is_some_and(|info| covers(planner, entry, &info, decided))
}

fn arm_of(planner: &Planner<'_>, index: &Relation, info: &IndexInfo, tree: TreeId) -> ArmChoice {
    let part = |key: &IndexKey| KeyPart::of_index(planner.catalog(), key);
    ArmChoice {
        index: index.oid,
        name: index.name.clone(),
        tree,
        parts: info.keys.iter().map(part).collect(),
        matches: vec![],
        range: None,
        unique: false,
        shown: vec![],
    }
}

/// Matches the leading keys of an index.
fn match_index(planner: &Planner<'_>, entry: usize, index: &OrderedIndex, candidates: &[&Expr], raw: f64) -> Matched {
    let (info, mut arm) = (&index.info, index.arm.clone());
    let (mut decided, mut uses) = (Vec::new(), Vec::new());
    for at in 0..info.keys.len() {
        let bounds: Vec<(usize, Bound)> =
            candidates.iter().enumerate().filter_map(|(i, c)| Some((i, bound(planner, entry, (index, at), c)?))).collect();
        let best = bounds
            .iter()
            .find(|(_, b)| matches!(b, Bound::Match(Match::Equal(_) | Match::IsNull)))
            .or_else(|| bounds.iter().find(|(_, b)| matches!(b, Bound::Match(_))));
        if let Some((i, Bound::Match(found))) = best {
            arm.matches.push(found.clone());
            // An index may have a column twice.
            if !decided.contains(i) {
                arm.shown.push(candidates[*i].clone());
                decided.push(*i);
                uses.push(*i);
            }
            continue;
        }
        let mut lower = None;
        let mut upper = None;
        let mut prefix = None;
        let mut not_null = false;
        for (i, bound) in bounds {
            match bound {
                Bound::Lower(bound) if lower.is_none() => {
                    lower = Some(bound);
                    decided.push(i);
                }
                Bound::Upper(bound) if upper.is_none() => {
                    upper = Some(bound);
                    decided.push(i);
                }
                Bound::Rows(true, bound) if upper.is_none() => upper = Some(bound),
                Bound::Rows(false, bound) if lower.is_none() => lower = Some(bound),
                Bound::Prefix(pattern, regex) if prefix.is_none() => prefix = Some((pattern, regex)),
                Bound::NotNull => not_null = true,
                _ => continue,
            }
            uses.push(i);
            arm.shown.push(candidates[i].clone());
        }
        if lower.is_some() || upper.is_some() {
            arm.range = Some(RangeChoice::Between { lower, upper });
        } else if let Some((pattern, regex)) = prefix {
            arm.range = Some(RangeChoice::Prefix { pattern, regex });
        } else if not_null {
            arm.range = Some(RangeChoice::NotNull);
        }
        break;
    }
    let unique = info.unique && arm.matches.len() == info.keys.len() && arm.matches.iter().all(|m| matches!(m, Match::Equal(_)));
    arm.unique = unique && !info.deferrable;
    let implied = implied_by(planner, &index.predicate, candidates, &uses);
    decided.extend(&implied);
    uses.extend(implied);
    let used = || uses.iter().map(|i| candidates[*i]);
    let all_used = || Expr::And(used().cloned().collect());
    let narrowing = index.predicate.as_ref().filter(|p| !implies(planner, &all_used(), p));
    let rows = if unique { 1.0 } else { (raw * selectivity::conjunction(planner, used().chain(narrowing))).max(1.0) };
    Matched { arm, decided, uses, rows }
}

/// The conditions, apart from those already used, that all rows of an index satisfy.
fn implied_by(planner: &Planner<'_>, predicate: &Option<Expr>, candidates: &[&Expr], uses: &[usize]) -> Vec<usize> {
    let Some(predicate) = predicate else { return Vec::new() };
    let others = (0..candidates.len()).filter(|i| !uses.contains(i));
    others.filter(|i| implies(planner, predicate, candidates[*i])).collect()
}

/// The bound that a condition gives for a key of an index.
fn bound(planner: &Planner<'_>, entry: usize, (index, at): (&OrderedIndex, usize), condition: &Expr) -> Option<Bound> {
    let (key, term) = (&index.info.keys[at], &index.terms[at]);
    let (ty, opclass) = (key.ty, key.opclass);
    let catalog = planner.catalog();
    let collation = order::index_collation(catalog, key);
    // Whether an operator by a collation finds what it compares in the index.
    let suits = |strategy: i16, by: Oid| match strategy {
        EQUAL => order::is_same_equality(catalog, collation, by),
        _ => order::is_same_order(catalog, collation, by),
    };
    let is_key = |e: &Expr| term.is(e, entry);
    let is_value = |e: &Expr| is_value(planner, entry, e);
    match condition {
        _ if ty == oids::BOOL && is_key(condition) => Some(Bound::Match(Match::Equal(boolean(true)))),
        Expr::Operator(op) => {
            let [a, b] = &op.args[..] else { return None };
            let (value, flipped) = match (is_key(a), is_key(b)) {
                (true, false) => (b, false),
                (false, true) => (a, true),
                _ => return None,
            };
            if !is_value(value) {
                return None;
            }
            if !flipped && let Some(regex) = pattern_operator(planner, op.function) {
                let by_bytes = catalog.collator(collation).is_none();
                let suits = by_bytes && order::is_same_equality(catalog, op.input_collation, Oid::INVALID);
                return (suits && text_like(ty)).then(|| Bound::Prefix(value.clone(), regex));
            }
            if !comparison::comparable(planner, ty, value.ty()) {
                return None;
            }
            let strategy = strategy(catalog, op.operator, opclass).filter(|strategy| suits(*strategy, op.input_collation))?;
            let value = value.clone();
            Some(match (strategy, flipped) {
                (EQUAL, _) => Bound::Match(Match::Equal(value)),
                (LESS, false) | (GREATER, true) => Bound::Upper(BoundChoice { values: vec![value], inclusive: false }),
                (LESS_EQUAL, false) | (GREATER_EQUAL, true) => Bound::Upper(BoundChoice { values: vec![value], inclusive: true }),
                (GREATER_EQUAL, false) | (LESS_EQUAL, true) => Bound::Lower(BoundChoice { values: vec![value], inclusive: true }),
                (GREATER, false) | (LESS, true) => Bound::Lower(BoundChoice { values: vec![value], inclusive: false }),
                _ => return None,
            })
        }
        Expr::ScalarArray(s) if s.any && is_key(&s.scalar) && is_value(&s.array) => {
            let strategy = strategy(catalog, s.operator, opclass).filter(|strategy| suits(*strategy, s.input_collation))?;
            let element = planner.catalog().array_element(s.array.ty())?;
            (strategy == EQUAL && comparison::comparable(planner, ty, element))
                .then(|| Bound::Match(Match::AnyOf(s.array.clone())))
        }
        Expr::RowCompare(row) => row_bound(planner, entry, (index, at), row),
        Expr::NullTest { arg, is_null, row: false } if is_key(arg) => {
            Some(if *is_null { Bound::Match(Match::IsNull) } else { Bound::NotNull })
        }
        Expr::Not(arg) if ty == oids::BOOL && is_key(arg) => Some(Bound::Match(Match::Equal(boolean(false)))),
        _ => None,
    }
}

/// The bound that a comparison of rows gives for the keys of an index from the `at`-th on. It must still be checked: keys may be NULL,
/// and columns behind the index's are not compared.
fn row_bound(planner: &Planner<'_>, entry: usize, (index, at): (&OrderedIndex, usize), row: &RowCompareExpr) -> Option<Bound> {
    let flipped = !index.terms[at].is(&row.left[0], entry);
    let (own, others) = if flipped { (&row.right, &row.left) } else { (&row.left, &row.right) };
    let (wanted, is_less, inclusive) = match row.comparison {
        Comparison::Less => (LESS, true, false),
        Comparison::LessEqual => (LESS_EQUAL, true, true),
        Comparison::GreaterEqual => (GREATER_EQUAL, false, true),
        Comparison::Greater => (GREATER, false, false),
        Comparison::Equal | Comparison::NotEqual => return None,
    };
    let catalog = planner.catalog();
    let keys = index.info.keys[at..].iter().zip(&index.terms[at..]);
    let fits = |i: usize, (key, term): (&IndexKey, &IndexedTerm)| {
        term.is(&own[i], entry)
            && key.descending == index.info.keys[at].descending
            && is_value(planner, entry, &others[i])
            && comparison::comparable(planner, key.ty, others[i].ty())
            && strategy(catalog, row.operators[i], key.opclass) == Some(wanted)
            && order::is_same_order(catalog, order::index_collation(catalog, key), row.input_collations[i])
    };
    let count = keys.zip(0..own.len()).take_while(|(key, i)| fits(*i, *key)).count();
    let values = others[..count].to_vec();
    (count > 0).then_some(Bound::Rows(is_less != flipped, BoundChoice { values, inclusive: inclusive || count < own.len() }))
}

/// LIKE (false) and ~ (true) on text.
pub fn pattern_operator(planner: &Planner<'_>, function: Oid) -> Option<bool> {
    match &*planner.catalog().function(function)?.source {
        "textlike" | "namelike" | "bpcharlike" => Some(false),
        "textregexeq" | "nameregexeq" | "bpcharregexeq" => Some(true),
        _ => None,
    }
}

/// Whether the index must be read backward for the required order, and how many of its keys the rows then come in the order of.
fn index_order(
    planner: &Planner<'_>,
    entry: usize,
    relation: &Relation,
    OrderedIndex { info, terms, .. }: &OrderedIndex,
    arm: &ArmChoice,
    goal: &Goal,
) -> Option<(bool, usize)> {
    if goal.order.is_empty() || arm.matches.iter().any(|m| matches!(m, Match::AnyOf(_))) {
        return None;
    }
    let catalog = planner.catalog();
    let mut at = arm.matches.len();
    let fixed = &terms[..at];
    let mut reverse = None;
    let mut keys = 0;
    for key in &goal.order {
        if fixed.iter().any(|term| term.is(&key.expr, entry)) {
            keys += 1;
            continue;
        }
        let (Some(part), Some(term)) = (info.keys.get(at), terms.get(at)) else { break };
        let has_order = order::is_same_order(catalog, order::index_collation(catalog, part), key.expr.collation());
        let backwards = part.descending != key.descending;
        let is_never_null = || matches!(term, IndexedTerm::Column(column) if catalog.is_never_null(relation, *column));
        let nulls_fit = (part.nulls_first != backwards) == key.nulls_first || is_never_null();
        if !term.is(&key.expr, entry) || !has_order || !nulls_fit || *reverse.get_or_insert(backwards) != backwards {
            break;
        }
        at += 1;
        keys += 1;
    }
    // A part of the order is worth something where not all rows are wanted; keys that have one value each are none.
    let is_part = at > fixed.len() && !goal.groups.is_empty();
    (keys == goal.order.len() || is_part).then(|| (reverse.unwrap_or(false), keys))
}

/// An OR whose every arm an index serves: the union of their rows.
fn union_path(
    planner: &Planner<'_>,
    entry: usize,
    (relation, indexes): (&Relation, &[OrderedIndex]),
    raw: f64,
    own: &[Expr],
    params: Rels,
) -> Option<Rc<Path>> {
    let (at, arms, rows, decides) = own.iter().enumerate().find_map(|(at, condition)| {
        let Expr::Or(args) = condition else { return None };
        let mut arms = Vec::new();
        let mut decides = true;
        let mut rows = 0.0;
        for arg in args {
            let mut parts = Vec::new();
            crate::rels::conjuncts(arg.clone(), &mut parts);
            let candidates: Vec<&Expr> = parts.iter().collect();
            let mut best: Option<Matched> = None;
            let known: Vec<Expr> = own.iter().chain(&parts).cloned().collect();
            for index in indexes.iter().filter(|index| has_all(planner, &index.predicate, &known)) {
                let matched = match_index(planner, entry, index, &candidates, raw);
                if !matched.uses.is_empty() && best.as_ref().is_none_or(|b| matched.rows < b.rows) {
                    best = Some(matched);
                }
            }
            let best = best?;
            rows += best.rows;
            decides &= best.decided.len() == parts.len();
            arms.push(best.arm);
        }
        Some((at, arms, rows, decides))
    })?;
    let mut filter = own.to_vec();
    let decided: Vec<Expr> = if decides { vec![filter.remove(at)] } else { vec![] };
    let row = if is_covered_union(planner, entry, &arms, &decided) { INDEX_ONLY_ROW } else { found_row(planner, relation) };
    let sel = selectivity::conjunction(planner, own);
    // The row ids of all arms are gathered and sorted before the first row is fetched.
    let startup = INDEX_START * arms.len() as f64 + rows * 0.02;
    Some(Rc::new(Path {
        rels: 1 << entry,
        params,
        rows: (raw * sel).max(1.0).min(rows),
        startup,
        total: startup + rows * row,
        ordered: 0,
        used: vec![],
        kind: PathKind::Leaf(LeafPath { entry, access: Access::Index(IndexChoice { arms, reverse: false, decided }), filter }),
    }))
}

/// With own conditions alone, then helped by each set of conditions that another relation would supply.
pub fn suppliers(entry: usize, across: &[Rc<Expr>]) -> Vec<Rels> {
    let mut suppliers: Vec<Rels> = vec![0];
    for condition in across {
        let others = rels_of(condition) & !(1 << entry);
        if others != 0 && !suppliers.contains(&others) {
            suppliers.push(others);
        }
    }
    if suppliers.len() > 3 {
        suppliers.push(suppliers.iter().fold(0, |a, b| a | b));
    }
    suppliers
}

fn text_like(ty: Oid) -> bool {
    matches!(ty, oids::TEXT | oids::VARCHAR | oids::NAME)
}
