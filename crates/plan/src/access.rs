//! How one relation is read: sequentially, by an index, by a function, or as a subquery.

mod bounds_order;
mod ctid;
mod files;
mod foreign;
mod gin;
mod index;
mod indexed;
pub mod json_table;
pub mod leaf;
pub mod members;
mod prune;
pub mod source;
mod system;
mod unread;
pub mod zone;

use std::cell::RefCell;
use std::rc::Rc;

pub use self::source::FROZEN_XMIN;
use super::path::{Access, FamilyPath, Goal, LeafPath, Path, PathKind};
use super::plain_path::SEQUENTIAL_ROW;
use super::planner::Planner;
use super::rels::{Rels, rels_of};
use super::{member, plain_path, prepare, pushdown, selectivity, union_order};
use melba_catalog::Storage;
use melba_engine::RelationLockMode;
use melba_tree::{Expr, RangeKind};
use melba_types::{Datum, DbError, Result, bail};

/// More than finding a row by an index: a plan that is made while a table is empty stays good when it grows.
const SCAN_START: f64 = 2.0;
/// A way that the session has disabled is taken only where no other is, as in PostgreSQL.
const DISABLED: f64 = 1e10;
/// A row of the row store takes more than twice as long as one of a segment. The number of rows there is not known; the first
/// ROW_STORE_ROWS of a table count as such.
const ROW_STORE_ROW: f64 = 0.03;
const ROW_STORE_ROWS: f64 = 10_000.0;
/// A plan serves statements that change few rows and those that change many; it is made once.
const TRANSITION_ROWS: f64 = 100.0;
/// As many as functions that read files are expected to return.
const FOREIGN_ROWS: f64 = 100_000.0;
/// PostgreSQL's estimate for a table function.
const JSON_TABLE_ROWS: f64 = 100.0;

impl Planner<'_> {
    /// Paths for a range table entry. `own` are conditions on it alone (or with parameters), `across` may be satisfied by an
    /// index with parameters.
    pub fn leaf_paths(&mut self, entry: usize, own: &[Expr], across: &[Rc<Expr>], goal: &Goal) -> Result<Vec<Rc<Path>>> {
        let security = self.level().entries[entry].security.clone();
        if security.is_empty() {
            return plain_leaf_paths(self, entry, own, across, goal);
        }
        // Conditions that may leak are evaluated on the remaining rows; rows are not found by them.
        let catalog = self.catalog();
        let (above, below): (Vec<Expr>, Vec<Expr>) = own.iter().cloned().partition(|c| c.may_leak(catalog));
        let own: Vec<Expr> = security.into_iter().chain(below).collect();
        let across: Vec<Rc<Expr>> = across.iter().filter(|c| !c.may_leak(catalog)).cloned().collect();
        let paths = plain_leaf_paths(self, entry, &own, &across, goal)?;
        if above.is_empty() {
            return Ok(paths);
        }
        Ok(paths.into_iter().map(|path| plain_path::filter_path(self, path, above.clone())).collect())
    }

    fn relation_paths(
        &mut self,
        entry: usize,
        oid: melba_types::Oid,
        inherit: bool,
        own: &[Expr],
        across: &[Rc<Expr>],
        goal: &Goal,
    ) -> Result<Vec<Rc<Path>>> {
        let Some(relation) = self.catalog().relation(oid).cloned() else {
            bail!(UNDEFINED_TABLE, "relation with OID {oid} does not exist");
        };
        // The rows of a toast table come from its table.
        for oid in [oid.without_toast(), oid] {
            self.relations.add(oid, RelationLockMode::AccessShare);
        }
        let params = plain_path::parameters_of(own, entry);
        if inherit && member::is_family(self.catalog(), &relation, inherit) {
            return members::family_paths(self, entry, &relation, own, across, goal);
        }
        if relation.is_partitioned() {
            // ONLY: it has no rows in its own tree.
            let family = FamilyPath::default();
            return Ok(vec![plain_path::simple_path(self, entry, Access::Family(family), own, params, 0.0)]);
        }
        if relation.foreign.is_some() {
            return Ok(vec![plain_path::simple_path(self, entry, Access::Foreign, own, params, FOREIGN_ROWS)]);
        }
        match relation.storage {
            Storage::Tree(_) => {}
            Storage::System(_) | Storage::Sequence(_) | Storage::Toast(_) => {
                return system::system_paths(self, entry, &relation, own, across);
            }
            _ => return Err(DbError::unsupported(format!("reading relation \"{}\"", relation.name))),
        }
        let raw = if own.iter().any(|c| ctid::wanted_row(self, entry, c).is_some()) {
            1.0
        } else {
            selectivity::table_rows(self, &relation)
        };
        let (between, others) = ctid::rows_between(self, entry, own)?;
        let in_range = raw.min(between);
        let rows = (in_range * selectivity::conjunction(self, others)).max(1.0);
        let mut by_index = index::index_paths(self, entry, &relation, raw, own, across, goal)?;
        if self.inputs.is_enabled("enable_bitmapscan") {
            by_index.extend(gin::gin_paths(self, entry, &relation, raw, own, across)?);
        }
        let is_disabled = !by_index.is_empty() && !self.inputs.is_enabled("enable_seqscan");
        // Of the rows, the first ROW_STORE_ROWS count as in memory; each condition costs PostgreSQL's cpu_operator_cost, 0.0025, a row.
        let read = in_range * SEQUENTIAL_ROW + in_range.min(ROW_STORE_ROWS) * (ROW_STORE_ROW - SEQUENTIAL_ROW);
        let mut out = vec![Rc::new(Path {
            rels: 1 << entry,
            params,
            rows,
            startup: 0.0,
            total: SCAN_START + read + in_range * own.len() as f64 * 0.0025 + if is_disabled { DISABLED } else { 0.0 },
            ordered: 0,
            used: vec![],
            kind: PathKind::Leaf(LeafPath { entry, access: Access::Table, filter: own.to_vec() }),
        })];
        out.extend(by_index);
        Ok(out)
    }
}

fn plain_leaf_paths(
    planner: &mut Planner<'_>,
    entry: usize,
    own: &[Expr],
    across: &[Rc<Expr>],
    goal: &Goal,
) -> Result<Vec<Rc<Path>>> {
    let own_params = plain_path::parameters_of(own, entry);
    match &planner.level().entries[entry].kind {
        RangeKind::Relation { oid, inherit, .. } => {
            let (oid, inherit) = (*oid, *inherit);
            planner.relation_paths(entry, oid, inherit, own, across, goal)
        }
        RangeKind::Subquery { .. } => subquery_paths(planner, entry, own, goal),
        RangeKind::Function { functions, .. } => {
            let mut params = own_params;
            functions.iter().for_each(|f| params |= rels_of(&f.expr));
            let rows = functions.iter().map(|f| function_rows(planner, &f.expr)).fold(1.0, f64::max);
            Ok(vec![plain_path::simple_path(planner, entry, Access::Function, own, params, rows)])
        }
        RangeKind::Values { rows } => {
            let params = rows.iter().flatten().fold(own_params, |all, e| all | rels_of(e));
            let count = rows.len() as f64;
            Ok(vec![plain_path::simple_path(planner, entry, Access::Values, own, params, count)])
        }
        RangeKind::Cte { name, levels, .. } => {
            let binding = planner.cte_binding(name, *levels)?;
            Ok(vec![plain_path::simple_path(planner, entry, Access::Cte, own, own_params, binding.rows)])
        }
        RangeKind::Transition { .. } => {
            Ok(vec![plain_path::simple_path(planner, entry, Access::Transition, own, own_params, TRANSITION_ROWS)])
        }
        RangeKind::Result => Ok(vec![plain_path::simple_path(planner, entry, Access::Result, own, own_params, 1.0)]),
        RangeKind::Join { .. } => Err(DbError::internal("a join is no relation")),
        RangeKind::JsonTable(table) => {
            let params = json_table::inputs(table).fold(own_params, |all, e| all | rels_of(e));
            Ok(vec![plain_path::simple_path(planner, entry, Access::JsonTable, own, params, JSON_TABLE_ROWS)])
        }
    }
}

fn function_rows(planner: &Planner<'_>, expr: &Expr) -> f64 {
    match expr {
        Expr::Function(f) if f.returns_set => {
            let function = planner.catalog().function(f.function);
            let known = match function.map(|f| &*f.source) {
                Some("array_unnest") => f.args.first().map(|array| selectivity::elements(planner, array)),
                Some(source) if source.starts_with("generate_series_int") => series_rows(planner, &f.args),
                _ => None,
            };
            known.unwrap_or_else(|| function.map_or(100.0, |f| f64::from(f.rows).max(1.0)))
        }
        _ => 1.0,
    }
}

/// How many numbers a series of integers has, when its ends and its step are known.
fn series_rows(planner: &Planner<'_>, args: &[Expr]) -> Option<f64> {
    let number = |arg: &Expr| match selectivity::constant(planner, arg)? {
        Datum::Int4(n) => Some(f64::from(n)),
        Datum::Int8(n) => Some(n as f64),
        _ => None,
    };
    let step = args.get(2).map_or(Some(1.0), number).filter(|step| *step != 0.0)?;
    Some(((number(args.get(1)?)? - number(args.first()?)?) / step).floor().max(0.0) + 1.0)
}

fn subquery_paths(planner: &mut Planner<'_>, entry: usize, own: &[Expr], goal: &Goal) -> Result<Vec<Rc<Path>>> {
    let kind = std::mem::replace(&mut planner.level_mut().entries[entry].kind, RangeKind::Result);
    let RangeKind::Subquery { mut query, view } = kind else {
        return Err(DbError::internal("subquery entry expected"));
    };
    let mut filter = Vec::new();
    let is_barrier = prepare::is_barrier(planner, view);
    for condition in own {
        let stays = is_barrier && condition.may_leak(planner.catalog());
        if stays || !pushdown::push_into_subquery(planner, &mut query, entry, condition) {
            filter.push(condition.clone());
        }
    }
    unread::drop_unread(planner, entry, &mut query, &filter);
    let mut params: Rels = 0;
    query.visit(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up == level + 1
        {
            params |= 1 << v.entry.min(127);
        }
        true
    });
    // Parameters of the planned node are reported where it is placed.
    let outer = std::mem::take(&mut planner.used);
    let planned = match union_order::wished_union(planner, &query, entry, &goal.order) {
        Some(wished) => planner.query_in_order(wished, goal.wanted),
        None => planner.query((*query).clone(), None).map(|stage| (stage, false)),
    };
    let used = std::mem::replace(&mut planner.used, outer);
    let (stage, ordered) = planned?;
    planner.level_mut().entries[entry].kind = RangeKind::Subquery { query, view };
    let params = (params | plain_path::parameters_of(&filter, entry)) & !(1 << entry);
    let estimate = stage.node.estimate;
    let sel = selectivity::conjunction(planner, &filter);
    Ok(vec![Rc::new(Path {
        rels: 1 << entry,
        params,
        rows: (estimate.rows * sel).max(1.0),
        startup: estimate.startup,
        total: estimate.total,
        ordered: if ordered { goal.order.len() } else { 0 },
        used: vec![],
        kind: PathKind::Leaf(LeafPath { entry, access: Access::Subquery(RefCell::new(Some((stage, used)))), filter }),
    })])
}
