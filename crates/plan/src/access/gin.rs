//! Chooses GIN indexes for conditions, and turns the choice into a node.
//!
//! The rows that such an index finds may satisfy its conditions or not: they are always checked again.

use std::rc::Rc;
use std::sync::Arc;

use melba_catalog::classes::UNICODE_FAST_COLLATION;
use melba_catalog::{IndexInfo, Relation, Storage};
use melba_fmgr::gin::GinQuery;
use melba_fmgr::{GinColumn, order};
use melba_types::{DbError, Oid, Result};

use super::index::{INDEX_START, found_row, suppliers};
use super::indexed::{IndexedTerm, has_all, is_value, predicate};
use super::source::{relation_of, table_source};
use crate::comparison::comparable;
use crate::explain_output;
use crate::index_path::{BitmapChoice, BitmapMatch};
use crate::layout::Layout;
use crate::node::*;
use crate::path::{Access, LeafPath, Path, PathKind};
use crate::planner::{Planner, Stage};
use crate::rels::{Rels, rels_of};
use crate::selectivity;
use melba_tree::{Expr, OperatorCall};

/// Gathering and sorting the row id of an entry.
const ENTRY: f64 = 0.02;

/// Paths by the GIN indexes of a relation of `raw` rows.
pub(super) fn gin_paths(
    planner: &mut Planner<'_>,
    entry: usize,
    relation: &Arc<Relation>,
    raw: f64,
    own: &[Expr],
    across: &[Rc<Expr>],
) -> Result<Vec<Rc<Path>>> {
    let mut out = Vec::new();
    for oid in &relation.indexes {
        let Some(index) = planner.catalog().relation(*oid).cloned() else { continue };
        let (Some(info), Storage::Tree(_)) = (&index.index, &index.storage) else { continue };
        if !info.is_inverted(index.access_method) || !info.valid {
            continue;
        }
        if has_all(planner, &predicate(planner, info, relation, entry)?, own) {
            paths_by(planner, entry, (relation, &index, info), raw, own, across, &mut out)?;
        }
    }
    Ok(out)
}

fn paths_by(
    planner: &mut Planner<'_>,
    entry: usize,
    (relation, index, info): (&Arc<Relation>, &Arc<Relation>, &IndexInfo),
    raw: f64,
    own: &[Expr],
    across: &[Rc<Expr>],
    out: &mut Vec<Rc<Path>>,
) -> Result<()> {
    let own_rels = own.iter().fold(0, |all: Rels, c| all | rels_of(c));
    let columns = GinColumn::of_index(planner.catalog(), info)?;
    let keys = IndexedTerm::of_index(planner, info, relation, entry)?;
    for supplier in suppliers(entry, across) {
        let is_supplied = |c: &&Rc<Expr>| {
            let others = rels_of(c) & !(1 << entry);
            others != 0 && others & !supplier == 0
        };
        let helping: Vec<&Rc<Expr>> = across.iter().filter(is_supplied).collect();
        let mut matches = Vec::new();
        let mut helped: Rels = 0;
        for condition in own.iter().chain(helping.iter().map(|c| &***c)) {
            let Some(found) = match_of(planner, entry, (info, &keys, &columns), condition) else { continue };
            helped |= rels_of(condition) & supplier;
            matches.push(found);
        }
        if matches.is_empty() || supplier != 0 && helped == 0 {
            continue;
        }
        let rows = (raw * selectivity::conjunction(planner, matches.iter().map(|m| &m.shown))).max(1.0);
        let others = own.iter().filter(|c| !matches.iter().any(|m| melba_tree::equal(&m.shown, c)));
        let startup = INDEX_START * matches.len() as f64 + rows * ENTRY;
        let kept = selectivity::conjunction(planner, others);
        let choice = BitmapChoice { index: index.clone(), columns: columns.clone(), matches };
        out.push(Rc::new(Path {
            rels: 1 << entry,
            params: (own_rels | helped) & !(1 << entry),
            rows: (rows * kept).max(1.0).min(raw),
            startup,
            total: startup + rows * found_row(planner, relation),
            ordered: 0,
            used: vec![],
            kind: PathKind::Leaf(LeafPath { entry, access: Access::Bitmap(choice), filter: own.to_vec() }),
        }));
    }
    Ok(())
}

/// The column of an index that answers a condition, if one does.
fn match_of(
    planner: &Planner<'_>,
    entry: usize,
    (info, keys, columns): (&IndexInfo, &[IndexedTerm], &[GinColumn]),
    condition: &Expr,
) -> Option<BitmapMatch> {
    let Expr::Operator(op) = condition else { return None };
    let [a, b] = &op.args[..] else { return None };
    let catalog = planner.catalog();
    // The keys of different texts are different.
    if order::equality_collation(catalog, op.input_collation).is_valid() || !folds_by_character(planner, op) {
        return None;
    }
    let access = catalog.access_methods();
    let commutator = catalog.operator(op.operator).map(|o| o.commutator).filter(|c| c.is_valid());
    for (at, (key, column)) in keys.iter().zip(columns).enumerate() {
        let family = access.class(info.keys[at].opclass)?.family;
        let sides = [(a, b, Some(op.operator)), (b, a, commutator)];
        for (side, value, operator) in sides {
            let Some(strategy) = operator.and_then(|operator| catalog.operator_strategy(operator, family)) else { continue };
            if key.is(side, entry)
                && is_value(planner, entry, value)
                && has_keys_of(planner, info.keys[at].ty, side.ty())
                && !is_everything(planner, column, strategy, value)
            {
                return Some(BitmapMatch { column: at, strategy, value: value.clone(), shown: condition.clone() });
            }
        }
    }
    None
}

/// Whether an operator that ignores case maps one character to one, as keys are folded: ILIKE by some collations does not.
fn folds_by_character(planner: &Planner<'_>, op: &OperatorCall) -> bool {
    let catalog = planner.catalog();
    let is_ilike = catalog.function(op.function).is_some_and(|f| matches!(&*f.source, "texticlike" | "nameiclike"));
    !is_ilike || catalog.collator(op.input_collation).is_none() && op.input_collation != UNICODE_FAST_COLLATION
}

/// Whether a value of an index's column, relabeled to another type, has the same keys: arrays of text and of citext have not.
fn has_keys_of(planner: &Planner<'_>, indexed: Oid, compared: Oid) -> bool {
    let element = |ty| planner.catalog().array_element(ty);
    match (element(indexed), element(compared)) {
        (Some(a), Some(b)) => comparable(planner, a, b),
        (None, None) => true,
        _ => false,
    }
}

/// Whether a condition is known to be satisfied by more rows than an index would exclude: `@> '{}'`.
fn is_everything(planner: &Planner<'_>, column: &GinColumn, strategy: i16, value: &Expr) -> bool {
    let known = selectivity::constant(planner, value).filter(|value| !value.is_null());
    known.is_some_and(|value| column.query(strategy, &value, planner.inputs.session).is_ok_and(|query| query == GinQuery::ALL))
}

/// The scan of a chosen index.
pub(super) fn create_bitmap_scan(
    planner: &mut Planner<'_>,
    entry: usize,
    choice: &BitmapChoice,
    filter: &[Expr],
    estimate: Estimate,
) -> Result<Stage> {
    let relation = relation_of(planner, entry)?;
    let (source, layout) = table_source(planner, entry, &relation, &[])?;
    let Storage::Tree(tree) = choice.index.storage else {
        return Err(DbError::internal("an index without a tree"));
    };
    let none = Layout::default();
    let mut conditions = Vec::with_capacity(choice.matches.len());
    for found in &choice.matches {
        let value = planner.compile(&found.value, &none)?;
        conditions.push(BitmapCondition { column: choice.columns[found.column].clone(), strategy: found.strategy, value });
    }
    let compiled = planner.compile_all(filter, &layout)?;
    let kinds = source.kinds.clone();
    let alias = source.alias.clone();
    let name = choice.index.name.clone();
    let op = Op::BitmapScan(Arc::new(BitmapScanNode { source, name, tree, conditions, filter: compiled }));
    let mut node = planner.node(op, kinds, estimate);
    explain_output::scanned(planner, &mut node, Some(relation.namespace), Some(&relation.name), &alias);
    let is_found = |c: &&Expr| choice.matches.iter().any(|m| melba_tree::equal(&m.shown, c));
    let others: Vec<Expr> = filter.iter().filter(|c| !is_found(c)).cloned().collect();
    let conditions: Vec<Expr> = choice.matches.iter().map(|m| m.shown.clone()).collect();
    planner.detail(&mut node, "Index Cond", || planner.show_all(&conditions));
    // Those of a join are checked by the join.
    planner.detail(&mut node, "Recheck Cond", || planner.show_all(&conditions));
    if !others.is_empty() {
        planner.detail(&mut node, "Filter", || planner.show_all(&others));
    }
    Ok(explain_output::scan_stage(planner, node, layout))
}
