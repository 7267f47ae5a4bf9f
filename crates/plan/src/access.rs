//! How one relation is read: sequentially, by an index, by a function, or as a subquery.

mod index;
pub mod json_table;
mod leaf;
mod members;
mod prune;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use melba_catalog::{Catalog, Relation, Storage, classes, relations};
use melba_engine::{RelationLockMode, ZoneOp};
use melba_types::key::KeyType;
use melba_types::{Datum, DbError, Kind, Oid, Result, TreeId, bail, oids};

use super::layout::Layout;
use super::node::*;
use super::path::{Access, FamilyPath, Goal, LeafPath, Path, PathKind};
use super::planner::Planner;
use super::rels::{Rels, contains_sublink, plain_column, rels_of};
use melba_expression::{Compiler, Expression, Resolved, Scope};
use melba_largeobject::Trees;
use melba_table::TargetBuilder;
use melba_tree::{Const, Expr, RangeKind, ScalarArray, Var};

/// A row that is read by its ctid.
enum WantedRow {
    /// The row on which a cursor is positioned.
    Cursor(Expr),
    Value(Expr),
}

/// More than finding a row by an index: a plan that is made while a table is empty stays good when it grows.
const SCAN_START: f64 = 2.0;
const SEQUENTIAL_ROW: f64 = 0.008;
/// A row of the row store takes more than twice as long as one of a segment. The number of rows there is not known; the first
/// ROW_STORE_ROWS of a table count as such.
const ROW_STORE_ROW: f64 = 0.03;
const ROW_STORE_ROWS: f64 = 10_000.0;
/// Cost of making a row of a system relation, and of beginning a scan by a value: some 20 times as long, as measured over 10^4
/// tables.
const SYSTEM_ROW: f64 = 0.025;
const SYSTEM_LOOKUP: f64 = 0.5;
/// A plan serves statements that change few rows and those that change many; it is made once.
const TRANSITION_ROWS: f64 = 100.0;
/// PostgreSQL's estimate for a table function.
const JSON_TABLE_ROWS: f64 = 100.0;
/// Calling a function for its rows takes about as long as such a lookup.
const FUNCTION_SCAN: f64 = 0.5;

impl Planner<'_> {
    /// Paths for a range table entry. `own` are conditions on it alone (or with parameters), `across` may be satisfied by an
    /// index with parameters.
    pub fn leaf_paths(&mut self, entry: usize, own: &[Expr], across: &[Rc<Expr>], goal: &Goal) -> Result<Vec<Rc<Path>>> {
        let security = self.level().entries[entry].security.clone();
        if security.is_empty() {
            return self.plain_leaf_paths(entry, own, across, goal);
        }
        // Conditions that may leak are evaluated on the remaining rows; rows are not found by them.
        let catalog = self.catalog();
        let (above, below): (Vec<Expr>, Vec<Expr>) = own.iter().cloned().partition(|c| c.may_leak(catalog));
        let own: Vec<Expr> = security.into_iter().chain(below).collect();
        let across: Vec<Rc<Expr>> = across.iter().filter(|c| !c.may_leak(catalog)).cloned().collect();
        let paths = self.plain_leaf_paths(entry, &own, &across, goal)?;
        if above.is_empty() {
            return Ok(paths);
        }
        Ok(paths.into_iter().map(|path| self.filter_path(path, above.clone())).collect())
    }

    fn plain_leaf_paths(&mut self, entry: usize, own: &[Expr], across: &[Rc<Expr>], goal: &Goal) -> Result<Vec<Rc<Path>>> {
        let own_params = self.parameters_of(own, entry);
        match &self.level().entries[entry].kind {
            RangeKind::Relation { oid, inherit, .. } => {
                let (oid, inherit) = (*oid, *inherit);
                self.relation_paths(entry, oid, inherit, own, across, goal)
            }
            RangeKind::Subquery { .. } => self.subquery_paths(entry, own),
            RangeKind::Function { functions, .. } => {
                let mut params = own_params;
                functions.iter().for_each(|f| params |= rels_of(&f.expr));
                let rows = functions.iter().map(|f| self.function_rows(&f.expr)).fold(1.0, f64::max);
                Ok(vec![self.simple_path(entry, Access::Function, own, params, rows)])
            }
            RangeKind::Values { rows } => {
                let params = rows.iter().flatten().fold(own_params, |all, e| all | rels_of(e));
                let count = rows.len() as f64;
                Ok(vec![self.simple_path(entry, Access::Values, own, params, count)])
            }
            RangeKind::Cte { name, levels, .. } => {
                let binding = self.cte_binding(name, *levels)?;
                Ok(vec![self.simple_path(entry, Access::Cte, own, own_params, binding.rows)])
            }
            RangeKind::Transition { .. } => {
                Ok(vec![self.simple_path(entry, Access::Transition, own, own_params, TRANSITION_ROWS)])
            }
            RangeKind::Result => Ok(vec![self.simple_path(entry, Access::Result, own, own_params, 1.0)]),
            RangeKind::Join { .. } => Err(DbError::internal("a join is no relation")),
            RangeKind::JsonTable(table) => {
                let params = json_table::inputs(table).fold(own_params, |all, e| all | rels_of(e));
                Ok(vec![self.simple_path(entry, Access::JsonTable, own, params, JSON_TABLE_ROWS)])
            }
        }
    }

    /// Other entries of this level that conditions on an entry refer to.
    fn parameters_of(&self, conditions: &[Expr], entry: usize) -> Rels {
        conditions.iter().fold(0, |all, c| all | rels_of(c)) & !(1 << entry)
    }

    fn simple_path(&self, entry: usize, access: Access, own: &[Expr], params: Rels, rows: f64) -> Rc<Path> {
        let sel = self.conjunction(own);
        let startup = if matches!(access, Access::Function | Access::JsonTable) { FUNCTION_SCAN } else { 0.01 };
        Rc::new(Path {
            rels: 1 << entry,
            params: params & !(1 << entry),
            rows: (rows * sel).max(1.0),
            startup: 0.0,
            total: rows * SEQUENTIAL_ROW + startup,
            ordered: false,
            used: vec![],
            kind: PathKind::Leaf(LeafPath { entry, access, filter: own.to_vec() }),
        })
    }

    fn function_rows(&self, expr: &Expr) -> f64 {
        match expr {
            Expr::Function(f) if f.returns_set => {
                let function = self.catalog().function(f.function);
                let known = match function.map(|f| &*f.source) {
                    Some("array_unnest") => f.args.first().map(|array| self.elements(array)),
                    Some(source) if source.starts_with("generate_series_int") => self.series_rows(&f.args),
                    _ => None,
                };
                known.unwrap_or_else(|| function.map_or(100.0, |f| f64::from(f.rows).max(1.0)))
            }
            _ => 1.0,
        }
    }

    /// How many numbers a series of integers has, when its ends and its step are known.
    fn series_rows(&self, args: &[Expr]) -> Option<f64> {
        let number = |arg: &Expr| match self.constant(arg)? {
            Datum::Int4(n) => Some(f64::from(n)),
            Datum::Int8(n) => Some(n as f64),
            _ => None,
        };
        let step = args.get(2).map_or(Some(1.0), number).filter(|step| *step != 0.0)?;
        Some(((number(args.get(1)?)? - number(args.first()?)?) / step).floor().max(0.0) + 1.0)
    }

    fn subquery_paths(&mut self, entry: usize, own: &[Expr]) -> Result<Vec<Rc<Path>>> {
        let kind = std::mem::replace(&mut self.level_mut().entries[entry].kind, RangeKind::Result);
        let RangeKind::Subquery { mut query, view } = kind else {
            return Err(DbError::internal("subquery entry expected"));
        };
        let mut filter = Vec::new();
        let is_barrier = self.is_barrier(view);
        for condition in own {
            let stays = is_barrier && condition.may_leak(self.catalog());
            if stays || !self.push_into_subquery(&mut query, entry, condition) {
                filter.push(condition.clone());
            }
        }
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
        let outer = std::mem::take(&mut self.used);
        let planned = self.query((*query).clone(), None);
        let used = std::mem::replace(&mut self.used, outer);
        let stage = planned?;
        self.level_mut().entries[entry].kind = RangeKind::Subquery { query, view };
        let params = (params | self.parameters_of(&filter, entry)) & !(1 << entry);
        let estimate = stage.node.estimate;
        let sel = self.conjunction(&filter);
        Ok(vec![Rc::new(Path {
            rels: 1 << entry,
            params,
            rows: (estimate.rows * sel).max(1.0),
            startup: estimate.startup,
            total: estimate.total,
            ordered: false,
            used: vec![],
            kind: PathKind::Leaf(LeafPath { entry, access: Access::Subquery(RefCell::new(Some((stage, used)))), filter }),
        })])
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
        let params = self.parameters_of(own, entry);
        if inherit && self.is_family(&relation, inherit) {
            return self.family_paths(entry, &relation, own, across, goal);
        }
        if relation.is_partitioned() {
            // ONLY: it has no rows in its own tree.
            let family = FamilyPath { members: vec![], pruner: None };
            return Ok(vec![self.simple_path(entry, Access::Family(family), own, params, 0.0)]);
        }
        match relation.storage {
            Storage::Tree(_) => {}
            Storage::System(_) | Storage::Sequence(_) | Storage::Toast(_) => {
                return self.system_paths(entry, &relation, own, across);
            }
            _ => return Err(DbError::unsupported(format!("reading relation \"{}\"", relation.name))),
        }
        let raw = if own.iter().any(|c| self.wanted_row(entry, c).is_some()) { 1.0 } else { self.table_rows(&relation) };
        let sel = self.conjunction(own);
        let rows = (raw * sel).max(1.0);
        // Of the rows, the first ROW_STORE_ROWS count as in memory; each condition costs PostgreSQL's cpu_operator_cost, 0.0025, a row.
        let read = raw * SEQUENTIAL_ROW + raw.min(ROW_STORE_ROWS) * (ROW_STORE_ROW - SEQUENTIAL_ROW);
        let mut out = vec![Rc::new(Path {
            rels: 1 << entry,
            params,
            rows,
            startup: 0.0,
            total: SCAN_START + read + raw * own.len() as f64 * 0.0025,
            ordered: false,
            used: vec![],
            kind: PathKind::Leaf(LeafPath { entry, access: Access::Table, filter: own.to_vec() }),
        })];
        out.extend(self.index_paths(entry, &relation, raw, own, across, goal)?);
        Ok(out)
    }

    /// The one row that a condition lets through.
    fn wanted_row(&self, entry: usize, condition: &Expr) -> Option<WantedRow> {
        let op = match condition {
            Expr::CurrentOf { args } => return args.first().cloned().map(WantedRow::Cursor),
            Expr::Operator(op) if self.catalog().is_equality(op.operator) => op,
            _ => return None,
        };
        let [a, b] = &op.args[..] else { return None };
        let is_row = |e: &Expr| matches!(e, Expr::Var(v) if v.entry == entry && v.levels_up == 0 && v.column == -1);
        let other = if is_row(a) { b } else { Some(a).filter(|_| is_row(b))? };
        let is_fixed = is_parameter(other) || matches!(other, Expr::Const(_));
        is_fixed.then(|| WantedRow::Value(other.clone()))
    }

    pub fn table_rows(&self, relation: &Relation) -> f64 {
        match relation.storage {
            Storage::Tree(tree) => self.context.statistics.rows(tree).max(1.0),
            _ => relations::rows_estimate(relation, self.catalog()),
        }
    }

    fn system_paths(&mut self, entry: usize, relation: &Relation, own: &[Expr], across: &[Rc<Expr>]) -> Result<Vec<Rc<Path>>> {
        let large_objects = large_object_tree(relation, self.catalog());
        let raw = match large_objects {
            Some(tree) => self.context.statistics.rows(tree).max(1.0),
            None => relations::rows_estimate(relation, self.catalog()),
        };
        let catalog = self.context.catalog;
        // How many rows have one value of a column, where they are found without making all rows; ten pages or chunks are assumed.
        let rows_of_value = |column: usize| match relation.storage {
            _ if large_objects.is_some() => (column == 0).then_some(10.0),
            Storage::Toast(_) => (column == 0).then_some(10.0),
            _ => relations::rows_per_value(relation, column, catalog),
        };
        let (mut out, mut fewest) = (Vec::new(), raw);
        let (mut equal, mut any_of, mut filter) = (Vec::new(), Vec::new(), Vec::new());
        for condition in own {
            match self.system_equality(entry, relation, condition) {
                Some(found) => equal.push(found),
                None => {
                    equal.extend(self.exact_pattern(entry, relation, condition));
                    if let Some((column, list, values)) = self.system_list(entry, relation, condition)
                        && let Some(found) = rows_of_value(column)
                    {
                        any_of.push((column, list));
                        fewest = fewest.min(values * found);
                    }
                    filter.push(condition.clone());
                }
            }
        }
        let path = |equal: Vec<(usize, Expr)>, used: Vec<Rc<Expr>>, params: Rels, rows: f64, total: f64| {
            let access = Access::System { equal, any_of: any_of.clone() };
            Rc::new(Path {
                rels: 1 << entry,
                params: params & !(1 << entry),
                rows,
                startup: 0.0,
                total,
                ordered: false,
                used,
                kind: PathKind::Leaf(LeafPath { entry, access, filter: filter.clone() }),
            })
        };
        let cost_of_found = |rows: f64| SYSTEM_LOOKUP + rows * SYSTEM_ROW;
        let sel = self.conjunction(own);
        let fewest = equal.iter().filter_map(|(c, _)| rows_of_value(*c)).fold(fewest, f64::min);
        let is_found = fewest < raw;
        let rows = (raw * sel).min(fewest).max(1.0);
        let params = self.parameters_of(own, entry);
        let total = if is_found { cost_of_found(fewest) } else { raw * SYSTEM_ROW };
        out.push(path(equal.clone(), vec![], params, rows, total));
        let joined = across.iter().filter_map(|c| Some((c, self.system_equality(entry, relation, c)?)));
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
                let passed = (passed * self.share_of_value(entry, *column)).max(1.0);
                let used = vec![(*condition).clone(), (*filter).clone()];
                out.push(path(with, used, params | rels_of(value), passed, cost_of_found(found)));
            }
        }
        Ok(out)
    }

    /// `column = value` that a generator of system rows can use.
    fn system_equality(&self, entry: usize, relation: &Relation, condition: &Expr) -> Option<(usize, Expr)> {
        let Expr::Operator(op) = condition else { return None };
        let [a, b] = &op.args[..] else { return None };
        if !self.catalog().is_equality(op.operator) {
            return None;
        }
        for (side, other) in [(a, b), (b, a)] {
            let Some(column) = plain_column(side, entry) else { continue };
            let described = relation.columns.get(column)?;
            if rels_of(other) & (1 << entry) == 0
                && relations::can_filter(described.kind)
                && self.kind(other.ty()) == described.kind
                && self.comparable(described.ty, other.ty())
                && !self.has_volatile(other)
                && !super::rels::contains_sublink(other)
            {
                return Some((column, other.clone()));
            }
        }
        None
    }

    /// `column = ANY (array)`: the column, the array, and about how many elements that has.
    fn system_list(&self, entry: usize, relation: &Relation, condition: &Expr) -> Option<(usize, Expr, f64)> {
        let Expr::ScalarArray(list) = condition else { return None };
        let column = plain_column(&list.scalar, entry)?;
        let kind = relation.columns.get(column)?.kind;
        let element = self.catalog().type_(self.catalog().base_type(list.array.ty()))?.element;
        let fits = list.any
            && self.catalog().is_equality(list.operator)
            && matches!(kind, Kind::Oid | Kind::Text)
            && self.kind(element) == kind
            && rels_of(&list.array) & (1 << entry) == 0
            && !self.has_volatile(&list.array)
            && !contains_sublink(&list.array);
        fits.then(|| (column, list.array.clone(), self.elements(&list.array)))
    }

    /// The one text that a pattern lets through. The pattern is still checked.
    fn exact_pattern(&self, entry: usize, relation: &Relation, condition: &Expr) -> Option<(usize, Expr)> {
        let Expr::Operator(op) = condition else { return None };
        let column = plain_column(op.args.first()?, entry)?;
        let value = Datum::text(self.exact_match(op)?);
        let described = relation.columns.get(column).filter(|c| c.kind == Kind::Text)?;
        let text = Const { value, ty: described.ty, typmod: -1, collation: described.collation, location: -1 };
        Some((column, Expr::Const(text)))
    }

    /// Zone predicates of a sequential scan.
    fn zones(&mut self, entry: usize, relation: &Relation, filter: &[Expr]) -> Result<Vec<Zone>> {
        let mut out = Vec::new();
        for condition in filter {
            match condition {
                Expr::Operator(op) => {
                    let [a, b] = &op.args[..] else { continue };
                    let zone = match self.zone(entry, relation, op.operator, (a, b), false)? {
                        None => self.zone(entry, relation, op.operator, (b, a), true)?,
                        found => found,
                    };
                    out.extend(zone);
                }
                Expr::ScalarArray(list) if list.any => out.extend(self.zone_of_list(entry, relation, list)?),
                _ => {}
            }
        }
        Ok(out)
    }

    /// That of `column op value`, or of `value op column` when `flipped`.
    fn zone(
        &mut self,
        entry: usize,
        relation: &Relation,
        operator: Oid,
        (side, value): (&Expr, &Expr),
        flipped: bool,
    ) -> Result<Option<Zone>> {
        let Some(column) = plain_column(side, entry) else { return Ok(None) };
        let Some(op) = self.zone_op(relation, column, operator, value.ty(), flipped) else { return Ok(None) };
        let is_known = matches!(value, Expr::Var(v) if v.entry != entry || v.levels_up > 0) || self.is_fixed(value)?;
        if !is_known {
            return Ok(None);
        }
        Ok(Some(Zone { column, op, value: self.compile(value, &Layout::default())?, any: false }))
    }

    /// That of `column op ANY (array)`.
    fn zone_of_list(&mut self, entry: usize, relation: &Relation, list: &ScalarArray) -> Result<Option<Zone>> {
        let Some(column) = plain_column(&list.scalar, entry) else { return Ok(None) };
        let element = self.catalog().type_(self.catalog().base_type(list.array.ty())).map(|array| array.element);
        let op = element.and_then(|element| self.zone_op(relation, column, list.operator, element, false));
        match op {
            Some(op) if self.is_fixed(&list.array)? => {
                Ok(Some(Zone { column, op, value: self.compile(&list.array, &Layout::default())?, any: true }))
            }
            _ => Ok(None),
        }
    }

    /// The zone map test for an operator between a column and a value of some type, if zone maps can answer it.
    fn zone_op(&self, relation: &Relation, column: usize, operator: Oid, value: Oid, flipped: bool) -> Option<ZoneOp> {
        // A virtual column is stored as null.
        let described = relation.columns.get(column).filter(|c| c.generated != b'v')?;
        let same = described.ty == value
            || [&[oids::INT2, oids::INT4, oids::INT8][..], &[oids::FLOAT4, oids::FLOAT8], &[oids::TEXT, oids::VARCHAR]]
                .iter()
                .any(|types| types.contains(&described.ty) && types.contains(&value));
        let (family, strategy) = self.catalog().btree_strategy(operator)?;
        if !same || !self.is_zoned(described.ty) || family != self.catalog().type_operators(described.ty).btree_family {
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

    /// Whether an expression has one value for a whole scan, which is known when it begins.
    fn is_fixed(&mut self, expr: &Expr) -> Result<bool> {
        match expr {
            _ if is_parameter(expr) => Ok(true),
            Expr::Array(array) => array.elements.iter().try_fold(true, |all, element| Ok(all && self.is_fixed(element)?)),
            _ => self.is_constant(expr),
        }
    }

    /// Whether zone maps know a type's order: that of its stored form, which for jsonb, inet or bit strings is another one.
    pub(super) fn is_zoned(&self, ty: Oid) -> bool {
        match melba_fmgr::order::key_type(self.context.session, ty) {
            Ok(KeyType::Plain(_)) => true,
            // Labels that were added between others have greater OIDs than some that follow.
            Ok(KeyType::Enum(labels)) => labels.is_sorted(),
            _ => false,
        }
    }

    /// Whether an expression is constant before anything runs: a literal of another type, for example.
    fn is_constant(&mut self, expr: &Expr) -> Result<bool> {
        Ok(rels_of(expr) == 0 && !contains_sublink(expr) && self.compile(expr, &Layout::default())?.as_const().is_some())
    }

    /// The columns of a relation that the query reads apart from conditions that the way to its rows makes sure of.
    pub(super) fn needed(&self, entry: usize, decided: &[Expr]) -> BTreeSet<i16> {
        let mut needed = self.level().needed[entry].clone();
        // All members of a family return the same columns.
        if !self.level().rechecks && self.level().member.is_none() {
            for condition in decided {
                condition.visit_vars(&mut |v| {
                    if v.entry == entry
                        && let Some(places) = needed.get_mut(&v.column)
                    {
                        *places = places.saturating_sub(1);
                    }
                });
            }
        }
        needed.into_iter().filter(|(_, places)| *places > 0).map(|(column, _)| column).collect()
    }

    /// The columns of a stored table that the query reads; `decided` as for `needed`.
    pub fn table_source(&mut self, entry: usize, relation: &Arc<Relation>, decided: &[Expr]) -> Result<(TableSource, Layout)> {
        let Storage::Tree(tree) = relation.storage else {
            return Err(DbError::internal("relation has no table tree"));
        };
        let needed = self.needed(entry, decided);
        let alias = self.level().entries[entry].name.clone();
        let ScanColumns { outputs, projection, virtuals, kinds, layout } = self.scan_outputs(entry, relation, &needed)?;
        let in_order = outputs.iter().enumerate().all(|(i, o)| matches!(o, ScanOutput::Column(c) if *c == i));
        let plain = in_order && virtuals.is_empty();
        let source = TableSource {
            relation: relation.oid,
            name: relation.name.clone(),
            alias,
            tree,
            projection,
            missing: relation.columns.iter().map(|c| c.missing.clone()).collect(),
            outputs,
            kinds,
            virtuals,
            plain,
        };
        Ok((source, layout))
    }

    fn scan_outputs(&mut self, entry: usize, relation: &Arc<Relation>, needed: &BTreeSet<i16>) -> Result<ScanColumns> {
        let mut projection: Vec<usize> = needed.iter().filter(|c| **c > 0).map(|c| *c as usize - 1).collect();
        if needed.contains(&0) {
            projection = (0..relation.columns.len()).filter(|&c| !relation.columns[c].dropped).collect();
        }
        let (computed, virtuals) = self.virtual_columns(relation, &mut projection)?;
        // The projection is sorted; columns that are computed follow it.
        let place = |column: usize| match projection.binary_search(&column) {
            Ok(at) => Some(at),
            Err(_) => computed.iter().position(|p| *p == column).map(|at| projection.len() + at),
        };
        let mut outputs = Vec::with_capacity(needed.len());
        let mut kinds = Vec::with_capacity(needed.len());
        let mut layout = Layout::default();
        for &column in needed {
            let (output, kind) = match column {
                -1 => (ScanOutput::RowId, Kind::Int8),
                -6 => (ScanOutput::Const(Datum::Oid(relation.oid.0)), Kind::Oid),
                // Every visible row counts as written by the frozen transaction.
                -2 => (ScanOutput::Const(Datum::Oid(2)), Kind::Oid),
                c if c < 0 => (ScanOutput::Const(Datum::Oid(0)), Kind::Oid),
                0 => {
                    // A member's row is shown as one of its parent.
                    let member = self.level().member.clone();
                    let shown = member.as_ref().map_or(relation, |m| &m.parent);
                    let live = shown.columns.iter().filter(|c| !c.dropped);
                    let columns = match &member {
                        Some(member) => member.live().map(place).collect(),
                        None => (0..relation.columns.len()).filter(|&c| !relation.columns[c].dropped).map(place).collect(),
                    };
                    let output = ScanOutput::WholeRow {
                        ty: shown.row_type,
                        columns,
                        types: live.clone().map(|c| c.ty).collect(),
                        names: live.map(|c| c.name.clone()).collect(),
                    };
                    (output, Kind::Record)
                }
                c => {
                    let c = c as usize - 1;
                    match (place(c), relation.columns.get(c)) {
                        (Some(at), Some(described)) => (ScanOutput::Column(at), described.kind),
                        _ => (ScanOutput::Const(Datum::Null), Kind::Text),
                    }
                }
            };
            outputs.push(output);
            kinds.push(kind);
            layout.0.push((entry, column));
        }
        Ok(ScanColumns { outputs, projection, virtuals, kinds: kinds.into(), layout })
    }

    /// Takes the virtual columns out of a projection, and adds the columns from which they are computed; returns the virtual ones
    /// and their expressions.
    fn virtual_columns(
        &mut self,
        relation: &Arc<Relation>,
        projection: &mut Vec<usize>,
    ) -> Result<(Vec<usize>, Vec<Expression>)> {
        let is_virtual = |column: &usize| relation.columns.get(*column).is_some_and(|c| c.generated == b'v');
        let computed: Vec<usize> = projection.iter().copied().filter(is_virtual).collect();
        if computed.is_empty() {
            return Ok((computed, Vec::new()));
        }
        let builder = TargetBuilder { catalog: self.context.catalog, session: self.context.session };
        let exprs = computed.iter().map(|c| builder.generation(relation, *c)).collect::<Result<Vec<Expr>>>()?;
        projection.retain(|column| !is_virtual(column));
        for expr in &exprs {
            expr.visit_vars(&mut |v| projection.extend(usize::try_from(v.column - 1)));
        }
        projection.sort_unstable();
        projection.dedup();
        let mut scope = Projected(projection);
        let mut compiler = Compiler::new(self.context.catalog, Some(self.context.session), &mut scope);
        let virtuals = exprs.iter().map(|e| compiler.compile(e)).collect::<Result<_>>()?;
        Ok((computed, virtuals))
    }
}

/// The columns that a scan reads and returns.
struct ScanColumns {
    outputs: Vec<ScanOutput>,
    projection: Vec<usize>,
    virtuals: Vec<Expression>,
    kinds: Arc<[Kind]>,
    layout: Layout,
}

/// The tree from which the rows of a relation of large objects are made.
fn large_object_tree(relation: &Relation, catalog: &Catalog) -> Option<TreeId> {
    match relation.oid {
        classes::PG_LARGEOBJECT_METADATA => Some(Trees::of(catalog).metadata),
        classes::PG_LARGEOBJECT => Some(Trees::of(catalog).data),
        _ => None,
    }
}

/// The columns of a table that a scan reads, by position.
struct Projected<'a>(&'a [usize]);

impl Scope for Projected<'_> {
    fn var(&mut self, var: &Var) -> Result<Resolved> {
        let column = usize::try_from(var.column - 1).ok();
        let at = column.and_then(|column| self.0.iter().position(|p| *p == column));
        at.map(Resolved::Column).ok_or_else(|| DbError::internal("a virtual column of a column that is not read"))
    }
}

/// Whether an expression is a parameter, which literals often are, through binary-compatible casts.
fn is_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Param(_) => true,
        Expr::Relabel { arg, .. } => is_parameter(arg),
        _ => false,
    }
}
