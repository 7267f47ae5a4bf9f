//! Paths for the system relations.

use std::rc::Rc;

use crate::path::{Access, LeafPath, Path, PathKind};
use crate::planner::Planner;
use crate::rels::{Rels, contains_sublink, plain_column, rels_of};
use crate::{comparison, plain_path, selectivity, volatility};
use melba_catalog::{Catalog, Relation, Storage, classes, relations};
use melba_largeobject::Trees;
use melba_tree::{Const, Expr};
use melba_types::{Datum, Kind, Result, TreeId};

/// Cost of making a row of a system relation, and of beginning a scan by a value: some 20 times as long, as measured over 10^4
/// tables.
const SYSTEM_ROW: f64 = 0.025;
const SYSTEM_LOOKUP: f64 = 0.5;

pub fn system_paths(
    planner: &mut Planner<'_>,
    entry: usize,
    relation: &Relation,
    own: &[Expr],
    across: &[Rc<Expr>],
) -> Result<Vec<Rc<Path>>> {
    let large_objects = large_object_tree(relation, planner.catalog());
    let raw = match large_objects {
        Some(tree) => planner.inputs.statistics.rows(tree).max(1.0),
        None => relations::rows_estimate(relation, planner.catalog()),
    };
    let catalog = planner.inputs.catalog;
    // How many rows have one value of a column, where they are found without making all rows; ten pages or chunks are assumed.
    let rows_of_value = |column: usize| match relation.storage {
        _ if large_objects.is_some() => (column == 0).then_some(10.0),
        Storage::Toast(_) => (column == 0).then_some(10.0),
        _ => relations::rows_per_value(relation, column, catalog),
    };
    let Searched { equal, any_of, filter, fewest } = searched(planner, entry, relation, own, raw, &rows_of_value);
    let path = |equal: Vec<(usize, Expr)>, used: Vec<Rc<Expr>>, params: Rels, rows: f64, total: f64| {
        let access = Access::System { equal, any_of: any_of.clone() };
        Rc::new(Path {
            rels: 1 << entry,
            params: params & !(1 << entry),
            rows,
            startup: 0.0,
            total,
            ordered: 0,
            used,
            kind: PathKind::Leaf(LeafPath { entry, access, filter: filter.clone() }),
        })
    };
    let cost_of_found = |rows: f64| SYSTEM_LOOKUP + rows * SYSTEM_ROW;
    let sel = selectivity::conjunction(planner, own);
    let fewest = equal.iter().filter_map(|(c, _)| rows_of_value(*c)).fold(fewest, f64::min);
    let is_found = fewest < raw;
    let rows = (raw * sel).min(fewest).max(1.0);
    let params = plain_path::parameters_of(own, entry);
    let total = if is_found { cost_of_found(fewest) } else { raw * SYSTEM_ROW };
    let mut out = vec![path(equal.clone(), vec![], params, rows, total)];
    let joined = across.iter().filter_map(|c| Some((c, system_equality(planner, entry, relation, c)?)));
    let (lookups, filters): (Vec<_>, Vec<_>) = joined.partition(|(_, (column, _))| rows_of_value(*column).is_some());
    for (condition, (column, value)) in &lookups {
        let mut with = equal.clone();
        let params = params | rels_of(value);
        with.push((*column, value.clone()));
        let found = rows_of_value(*column).unwrap_or(raw).min(fewest);
        let passed = (found * sel).clamp(1.0, rows);
        out.push(path(with.clone(), vec![(*condition).clone()], params, passed, cost_of_found(found)));
        // Of the rows found, those with a value of another column, which are not made for all.
        for (filter, (column, value)) in &filters {
            let with = [&with[..], &[(*column, value.clone())]].concat();
            let passed = (passed * selectivity::share_of_value(planner, entry, *column)).max(1.0);
            let used = vec![(*condition).clone(), (*filter).clone()];
            out.push(path(with, used, params | rels_of(value), passed, cost_of_found(found)));
        }
    }
    Ok(out)
}

/// The values by which a relation's own conditions find its rows.
struct Searched {
    equal: Vec<(usize, Expr)>,
    any_of: Vec<(usize, Expr)>,
    /// The conditions that are still checked.
    filter: Vec<Expr>,
    /// As many rows as the most selective list finds; `raw` without one.
    fewest: f64,
}

fn searched(
    planner: &Planner<'_>,
    entry: usize,
    relation: &Relation,
    own: &[Expr],
    raw: f64,
    rows_of_value: &dyn Fn(usize) -> Option<f64>,
) -> Searched {
    let mut all = Searched { equal: Vec::new(), any_of: Vec::new(), filter: Vec::new(), fewest: raw };
    for condition in own {
        if let Some(found) = system_equality(planner, entry, relation, condition) {
            all.equal.push(found);
            continue;
        }
        all.equal.extend(exact_pattern(planner, entry, relation, condition));
        if let Some((column, list, values)) = system_list(planner, entry, relation, condition)
            && let Some(found) = rows_of_value(column)
        {
            all.any_of.push((column, list));
            all.fewest = all.fewest.min(values * found);
        }
        all.filter.push(condition.clone());
    }
    all
}

/// `column = value` that a generator of system rows can use.
fn system_equality(planner: &Planner<'_>, entry: usize, relation: &Relation, condition: &Expr) -> Option<(usize, Expr)> {
    let Expr::Operator(op) = condition else { return None };
    let [a, b] = &op.args[..] else { return None };
    // The generator compares bytes.
    if !planner.catalog().is_equality(op.operator)
        || !melba_fmgr::order::is_same_equality(planner.catalog(), op.input_collation, melba_types::Oid::INVALID)
    {
        return None;
    }
    for (side, other) in [(a, b), (b, a)] {
        let Some(column) = plain_column(side, entry) else { continue };
        let described = relation.columns.get(column)?;
        if rels_of(other) & (1 << entry) == 0
            && relations::can_filter(described.kind)
            && planner.kind(other.ty()) == described.kind
            && comparison::comparable(planner, described.ty, other.ty())
            && !volatility::has_volatile(planner, other)
            && !contains_sublink(other)
        {
            return Some((column, other.clone()));
        }
    }
    None
}

/// `column = ANY (array)`: the column, the array, and about how many elements that has.
fn system_list(planner: &Planner<'_>, entry: usize, relation: &Relation, condition: &Expr) -> Option<(usize, Expr, f64)> {
    let Expr::ScalarArray(list) = condition else { return None };
    let column = plain_column(&list.scalar, entry)?;
    let kind = relation.columns.get(column)?.kind;
    let element = planner.catalog().type_(planner.catalog().base_type(list.array.ty()))?.element;
    let fits = list.any
        && planner.catalog().is_equality(list.operator)
        && matches!(kind, Kind::Oid | Kind::Text)
        && planner.kind(element) == kind
        && rels_of(&list.array) & (1 << entry) == 0
        && !volatility::has_volatile(planner, &list.array)
        && !contains_sublink(&list.array);
    fits.then(|| (column, list.array.clone(), selectivity::elements(planner, &list.array)))
}

/// The one text that a pattern lets through. The pattern is still checked.
fn exact_pattern(planner: &Planner<'_>, entry: usize, relation: &Relation, condition: &Expr) -> Option<(usize, Expr)> {
    let Expr::Operator(op) = condition else { return None };
    let column = plain_column(op.args.first()?, entry)?;
    let value = Datum::text(selectivity::exact_match(planner, op)?);
    let described = relation.columns.get(column).filter(|c| c.kind == Kind::Text)?;
    let text = Const { value, ty: described.ty, typmod: -1, collation: described.collation, location: -1 };
    Some((column, Expr::Const(text)))
}

/// The tree from which the rows of a relation of large objects are made.
pub fn large_object_tree(relation: &Relation, catalog: &Catalog) -> Option<TreeId> {
    match relation.oid {
        classes::PG_LARGEOBJECT_METADATA => Some(Trees::of(catalog).metadata),
        classes::PG_LARGEOBJECT => Some(Trees::of(catalog).data),
        _ => None,
    }
}
