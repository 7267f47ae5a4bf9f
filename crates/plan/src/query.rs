//! One query: joins, then grouping, windows, DISTINCT, ORDER BY, LIMIT, targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use melba_engine::RelationLockMode;
use melba_types::{Datum, DbError, Result, bail, limits};

use super::dependency::{Dependencies, dependencies};
use super::layout::{Layout, TARGET, same};
use super::node::*;
use super::path::{Goal, OrderKey};
use super::planner::{CteBinding, Level, Planner, Stage};
use super::prepare::{inline_cte, referenced_ctes};
use super::rels::{Rels, has};
use melba_expression::key::KeyPart;
use melba_tree::{Command, Cte, Distinct, Expr, Locking, Query, RangeEntry, RangeKind, SortGroup, Target};

/// The consumer of a query that is no ordinary SELECT: an INSERT's source already removes junk columns.
pub(super) struct Purpose {
    /// Columns of entries that the consumer reads besides the targets.
    pub needed: Vec<(usize, i16)>,
}

impl<'a> Planner<'a> {
    /// Plans a query at a new level. The result's columns are its visible targets (or RETURNING's).
    pub fn query(&mut self, mut query: Query, purpose: Option<Purpose>) -> Result<Stage> {
        limits::check_stack()?;
        // Trees are as large as the text, except for nested queries, which may be planned several times.
        if self.levels.is_empty() {
            limits::check_interrupt()?
        } else {
            limits::check()?
        }
        self.levels.push(Level::default());
        let result = self.query_at_level(&mut query, purpose);
        self.levels.pop();
        result
    }

    fn query_at_level(&mut self, query: &mut Query, purpose: Option<Purpose>) -> Result<Stage> {
        self.plan_ctes(query)?;
        if query.command != Command::Select {
            return self.modify(query);
        }
        if query.set_operation.is_some() {
            return self.set_operation(query);
        }
        self.select(query, purpose)
    }

    /// WITH queries: inlined, or planned to be shared.
    fn plan_ctes(&mut self, query: &mut Query) -> Result<()> {
        let mut ctes = std::mem::take(&mut query.ctes);
        let mut i = 0;
        while i < ctes.len() {
            let cte = ctes[i].clone();
            if self.can_inline(&cte) {
                // One reference stands in one of them.
                let mut is_done = inline_cte(query, &cte) && cte.references == 1;
                for later in &mut ctes[i + 1..] {
                    if is_done {
                        break;
                    }
                    limits::check_interrupt()?;
                    // A later WITH query is one level inside this one.
                    let mut holder = Query::new(Command::Select);
                    holder.ctes.push(later.clone());
                    is_done = inline_cte(&mut holder, &cte) && cte.references == 1;
                    *later = holder.ctes.swap_remove(0);
                }
                ctes.remove(i);
            } else {
                i += 1;
            }
        }
        let mut holder = Query::new(Command::Select);
        for (i, cte) in ctes.iter().enumerate() {
            holder.ctes = ctes[i + 1..].to_vec();
            let used = referenced_ctes(query).contains(&*cte.name) || referenced_ctes(&mut holder).contains(&*cte.name);
            if used || cte.query.command != Command::Select {
                self.plan_cte(cte)?;
            }
        }
        Ok(())
    }

    fn can_inline(&self, cte: &Cte) -> bool {
        cte.query.command == Command::Select
            && !cte.recursive
            && cte.materialized != Some(true)
            && (cte.materialized == Some(false) || cte.references == 1)
            && !self.query_is_volatile(&cte.query)
            && cte.query.locking.is_empty()
    }

    fn plan_cte(&mut self, cte: &Cte) -> Result<()> {
        let expanded;
        let cte = match cte.search.is_some() || cte.cycle.is_some() {
            true => {
                expanded = super::search_cycle::expand(cte, self.catalog())?;
                &expanded
            }
            false => cte,
        };
        let index = self.ctes.len();
        self.ctes.push(None);
        let columns = if cte.columns.is_empty() { cte.query.output_columns() } else { cte.columns.clone() };
        let kinds = self.kinds_of(&columns);
        let outer = std::mem::take(&mut self.used);
        let planned =
            if cte.recursive { self.recursive_cte(cte, index, kinds.clone()) } else { self.query((*cte.query).clone(), None) };
        let used = std::mem::replace(&mut self.used, outer);
        let node = planned?.node;
        let depth = self.levels.len() - 1;
        // The WITH query may depend on outer queries' rows only.
        let parameters: Vec<usize> =
            used.iter().copied().filter(|p| self.parameters[*p].is_some_and(|(level, ..)| level < depth)).collect();
        self.used.extend(parameters.iter().copied());
        let rows = node.estimate.rows;
        let modifying = cte.query.command != Command::Select;
        self.ctes[index] = Some(CteNode { name: cte.name.clone(), node, parameters, modifying });
        let binding = CteBinding { index, kinds, rows, work_table: None };
        let level = self.level_mut();
        level.ctes.retain(|(name, _)| *name != cte.name);
        level.ctes.push((cte.name.clone(), binding));
        Ok(())
    }

    /// base UNION [ALL] recursive.
    fn recursive_cte(&mut self, cte: &Cte, index: usize, kinds: Arc<[melba_types::Kind]>) -> Result<Stage> {
        let query = &cte.query;
        let Some(set) = &query.set_operation else { return self.query((**query).clone(), None) };
        if !query.order_by.is_empty() || query.limit.is_some() || query.offset.is_some() {
            return Err(DbError::unsupported("ORDER BY, OFFSET or LIMIT in a recursive query"));
        }
        if !set.all && set.keys.iter().any(|k| !k.hashable) {
            return Err(melba_types::err!(FEATURE_NOT_SUPPORTED, "could not implement recursive UNION")
                .detail("All column datatypes must be hashable."));
        }
        let table = self.work_tables;
        self.work_tables += 1;
        let depth = self.levels.len() - 1;
        let parameter = self.new_parameter(Some((depth, super::layout::WORK, 0)));
        // The rows of a round are not known: 100 are assumed.
        let binding = CteBinding { index, kinds: kinds.clone(), rows: 100.0, work_table: Some((table, parameter)) };
        self.level_mut().ctes.push((cte.name.clone(), binding));
        // The arms are two levels inside the query with the WITH: the set operation is the level between.
        self.levels.push(Level::default());
        let mut inner = (**query).clone();
        let result = (|| -> Result<(PlanNode, PlanNode)> {
            self.plan_ctes(&mut inner)?;
            self.level_mut().entries = std::mem::take(&mut inner.range_table);
            let base = self.set_input(&set.left, &set.columns)?;
            let recursive = self.set_input(&set.right, &set.columns)?;
            Ok((base.node, recursive.node))
        })();
        self.levels.pop();
        let (base, recursive) = result?;
        let distinct = (!set.all).then(|| {
            let types = query.output_columns();
            types.iter().map(|c| KeyPart::equality(self.catalog(), c.ty)).collect()
        });
        // As in PostgreSQL, ten rounds are assumed.
        let rows = base.estimate.rows * 10.0;
        let estimate = Estimate { startup: 0.0, total: base.estimate.total + recursive.estimate.total * 10.0, rows };
        let op = Op::RecursiveUnion(Arc::new(RecursiveUnionNode { base, recursive, table, parameter, distinct }));
        let node = self.node(op, kinds.clone(), estimate);
        Ok(Stage { node, layout: Layout::of(TARGET, kinds.len()) })
    }

    fn select(&mut self, query: &mut Query, purpose: Option<Purpose>) -> Result<Stage> {
        let grouped =
            query.has_aggregates || !query.group_by.is_empty() || query.grouping_sets.is_some() || query.having.is_some();
        if grouped {
            self.lower_having(query);
        }
        let upper = if grouped { Some(self.split_grouping(query)?) } else { None };
        let mut tree = self.prepare(query)?;
        if !query.locking.is_empty() {
            refuse_nullable(&query.locking, &tree)?;
            tree.keep_partners();
        }
        self.level_mut().entries = std::mem::take(&mut query.range_table);
        self.gather_needed(query, &tree, purpose.as_ref().map_or(&[][..], |p| &p.needed));
        let order = if grouped || query.has_windows || query.has_set_returning { vec![] } else { self.order_keys(query) };
        let distinct = !matches!(query.distinct, Distinct::None);
        let fraction =
            if query.limit.is_some() && !grouped && !distinct && !query.has_windows { self.limit_fraction(query) } else { 1.0 };
        let goal = Goal { order, fraction };
        let (path, gates) = self.plan_joins(&tree, &goal)?;
        let ordered = path.ordered && !goal.order.is_empty();
        let mut stage = self.create(&path)?;
        if !gates.is_empty() {
            let conditions = self.compile_all(&gates, &Layout::default())?;
            if conditions.iter().any(|c| !matches!(c.as_const(), Some(Datum::Bool(true)))) {
                let (kinds, estimate) = (stage.node.kinds.clone(), stage.node.estimate);
                let op = Op::Result(Arc::new(ResultNode { input: Some(stage.node), conditions }));
                let mut node = self.node(op, kinds, estimate);
                self.detail(&mut node, "One-Time Filter", || self.show_all(&gates));
                stage = Stage { node, layout: stage.layout };
            }
        }
        if let Some(upper) = upper {
            let dependencies = if upper.has_several_groups() { dependencies(self, &tree) } else { Dependencies::default() };
            stage = self.group(query, upper, stage, &dependencies)?;
        }
        if query.has_windows {
            stage = self.windows(query, stage)?;
        }
        let recheck = rechecks(&tree, &self.level().entries);
        self.finish(query, stage, ordered, recheck)
    }

    /// Which columns of which entries anything in the query reads.
    pub fn gather_needed(&mut self, query: &Query, tree: &super::prepare::Tree, extra: &[(usize, i16)]) {
        let mut needed: Vec<BTreeMap<i16, usize>> = vec![BTreeMap::new(); self.level().entries.len()];
        let mut note = |e: &Expr, level: usize| {
            if let Expr::Var(v) = e
                && v.levels_up == level
                && v.entry < needed.len()
            {
                *needed[v.entry].entry(v.column).or_default() += 1;
            }
            true
        };
        query.visit(0, &mut note);
        visit_tree(tree, &mut |e| e.visit(0, &mut note));
        // Subqueries and functions in FROM may refer to their siblings.
        for entry in &self.level().entries {
            entry.security.iter().for_each(|e| e.visit(0, &mut note));
            match &entry.kind {
                RangeKind::Subquery { query, .. } => query.visit(1, &mut note),
                RangeKind::Function { functions, .. } => functions.iter().for_each(|f| f.expr.visit(0, &mut note)),
                RangeKind::Values { rows } => rows.iter().flatten().for_each(|e| e.visit(0, &mut note)),
                RangeKind::JsonTable(table) => super::access::json_table::inputs(table).for_each(|e| e.visit(0, &mut note)),
                _ => {}
            }
        }
        for &(entry, column) in extra {
            *needed[entry].entry(column).or_default() += 1;
        }
        for lock in &query.locking {
            // A locked row is found again by its ctid (-1); in a family also by its tableoid (-6).
            *needed[lock.entry].entry(-1).or_default() += 1;
            if let RangeKind::Relation { oid, inherit, .. } = self.level().entries[lock.entry].kind
                && self.catalog().relation(oid).is_some_and(|r| self.is_family(r, inherit))
            {
                *needed[lock.entry].entry(-6).or_default() += 1;
            }
        }
        let level = self.level_mut();
        level.needed = needed;
        level.rechecks = query.command != Command::Select || !query.locking.is_empty();
    }

    /// The share of its rows that a query is assumed to return, by the size of LIMIT; one that is not constant counts as a tenth.
    fn limit_fraction(&self, query: &Query) -> f64 {
        match &query.limit {
            Some(Expr::Const(c)) => match c.value {
                Datum::Int8(n) if n < 100 => 0.01,
                Datum::Int8(n) if n < 10_000 => 0.1,
                _ => 1.0,
            },
            Some(_) => 0.1,
            None => 1.0,
        }
    }

    pub fn order_keys(&self, query: &Query) -> Vec<OrderKey> {
        let mut keys: Vec<OrderKey> = Vec::new();
        for group in &query.order_by {
            let Some(target) = target_of(&query.targets, group) else { return vec![] };
            if !keys.iter().any(|k| same(&k.expr, &target.expr)) {
                keys.push(OrderKey { expr: target.expr.clone(), descending: group.descending, nulls_first: group.nulls_first });
            }
        }
        keys
    }

    /// The key part for a sort or group column.
    pub fn key_part(&self, group: &SortGroup, ty: melba_types::Oid) -> KeyPart {
        KeyPart::new(self.catalog(), ty, group.descending, group.nulls_first)
    }

    /// A query's own `key_part`s, with compiled expressions.
    pub fn sort_keys(
        &mut self,
        groups: &[SortGroup],
        targets: &[Target],
        layout: &Layout,
    ) -> Result<Vec<(melba_expression::Expression, KeyPart)>> {
        let mut keys = Vec::with_capacity(groups.len());
        for group in groups {
            let Some(target) = target_of(targets, group) else {
                return Err(DbError::internal("sort column is no target"));
            };
            let expr = target.expr.clone();
            let part = self.key_part(group, expr.ty());
            keys.push((self.compile(&expr, layout)?, part));
        }
        Ok(keys)
    }

    pub fn sorted(
        &mut self,
        mut stage: Stage,
        keys: Vec<SortKey>,
        bound: Option<(Option<melba_expression::Expression>, Option<melba_expression::Expression>)>,
        shown: String,
    ) -> Stage {
        let mut estimate = stage.node.estimate;
        // 0.005 a comparison: twice cpu_operator_cost, as in PostgreSQL.
        estimate.total += estimate.rows * estimate.rows.max(2.0).log2() * 0.005;
        estimate.startup = estimate.total;
        let kinds = stage.node.kinds.clone();
        let top_filter = match (&bound, keys.first()) {
            (Some(_), Some(first)) => self.offer_top_filter(&mut stage.node, first),
            _ => None,
        };
        let is_safe = keys.iter().all(|(key, _)| key.is_parallel_safe());
        let workers = if is_safe { self.workers_for(&stage.node) } else { 0 };
        let sort = SortNode { input: stage.node, keys, bound, top_filter, workers };
        let mut node = self.node(Op::Sort(Arc::new(sort)), kinds, estimate);
        self.detail(&mut node, "Sort Key", || shown);
        Stage { node, layout: stage.layout }
    }

    /// Targets, DISTINCT, ORDER BY, locks, LIMIT; junk is dropped.
    fn finish(&mut self, query: &Query, stage: Stage, ordered: bool, recheck: Vec<RecheckExpr>) -> Result<Stage> {
        let limit = query.limit.as_ref().map(|e| self.compile(e, &Layout::default())).transpose()?;
        let offset = query.offset.as_ref().map(|e| self.compile(e, &Layout::default())).transpose()?;
        let distinct = !matches!(query.distinct, Distinct::None);
        let sorts_set = query.order_by.iter().filter_map(|g| target_of(&query.targets, g)).any(|t| has_set(&t.expr));
        let volatile_key = query.order_by.iter().filter_map(|g| target_of(&query.targets, g)).any(|t| self.has_volatile(&t.expr));
        let early = distinct || volatile_key || sorts_set || (query.has_set_returning && query.order_by.is_empty());
        let bound = match (&limit, query.with_ties) {
            (Some(limit), false) if !query.has_set_returning => Some((Some(limit.clone()), offset.clone())),
            _ => None,
        };
        let visible = query.targets.iter().filter(|t| !t.junk).count();
        let shown = super::explain::sort_key(self, &query.order_by, &query.targets);
        if !early {
            let mut stage = stage;
            let mut ties = None;
            if !query.order_by.is_empty() {
                let keys = self.sort_keys(&query.order_by, &query.targets, &stage.layout)?;
                ties = query.with_ties.then(|| keys.clone());
                if !ordered {
                    // Rows that are locked or changed by others fall out above the sort: LIMIT counts those that stay.
                    let bound = bound.filter(|_| query.locking.is_empty());
                    stage = self.sorted(stage, keys, bound, shown);
                }
            }
            stage = self.locked(query, stage, recheck)?;
            if query.has_set_returning {
                stage = self.targets(query, stage)?;
                stage = self.limited(stage, limit, offset, None);
                return self.strip(stage, visible);
            }
            stage = self.limited(stage, limit, offset, ties);
            let exprs: Vec<Expr> = query.targets.iter().filter(|t| !t.junk).map(|t| t.expr.clone()).collect();
            return self.projected(stage, &exprs, TARGET);
        }
        let stage = self.locked(query, stage, recheck)?;
        let mut stage = self.targets(query, stage)?;
        stage = self.distinct(query, stage)?;
        let mut ties = None;
        if !query.order_by.is_empty() {
            let keys = self.output_keys(&query.order_by, &query.targets, &stage)?;
            ties = query.with_ties.then(|| keys.clone());
            stage = self.sorted(stage, keys, bound, shown);
        }
        stage = self.limited(stage, limit, offset, ties);
        self.strip(stage, visible)
    }

    /// Sort keys over computed targets.
    pub fn output_keys(
        &mut self,
        groups: &[SortGroup],
        targets: &[Target],
        stage: &Stage,
    ) -> Result<Vec<(melba_expression::Expression, KeyPart)>> {
        let mut keys = Vec::with_capacity(groups.len());
        for group in groups {
            let Some(at) = targets.iter().position(|t| t.reference == group.reference) else {
                return Err(DbError::internal("sort column is no target"));
            };
            let kind = stage.node.kinds[at];
            let ty = targets[at].expr.ty();
            let column = melba_expression::Expression::new(melba_expression::Node::Column(at), ty, kind);
            keys.push((column, self.key_part(group, ty)));
        }
        Ok(keys)
    }

    /// All targets, junk included; set-returning functions are run.
    fn targets(&mut self, query: &Query, stage: Stage) -> Result<Stage> {
        let exprs: Vec<Expr> = query.targets.iter().map(|t| t.expr.clone()).collect();
        if query.has_set_returning && exprs.iter().any(has_set) {
            return self.project_set(stage, exprs);
        }
        self.projected(stage, &exprs, TARGET)
    }

    /// Innermost set-returning functions first; functions over their results in further rounds.
    fn project_set(&mut self, mut stage: Stage, mut exprs: Vec<Expr>) -> Result<Stage> {
        let mut round = 0;
        loop {
            let mut calls: Vec<Expr> = Vec::new();
            for e in &mut exprs {
                take_sets(e, round, &mut calls);
            }
            if calls.is_empty() {
                return self.projected(stage, &exprs, TARGET);
            }
            let mut functions = Vec::with_capacity(calls.len());
            for call in &calls {
                let (kinds, types) = (vec![self.kind(call.ty())], vec![call.ty()]);
                let row = self.row_shape(call)?;
                functions.push(SetCall { source: self.set_source(call, None, &stage.layout)?, kinds, types, spread: false, row });
            }
            let mut layout = stage.layout.clone();
            let mut kinds = stage.node.kinds.to_vec();
            for (i, call) in calls.iter().enumerate() {
                layout.0.push((SET_BASE - round, i as i16 + 1));
                kinds.push(self.kind(call.ty()));
            }
            let mut estimate = stage.node.estimate;
            // A set-returning target is assumed to return ten rows for each.
            estimate.rows *= 10.0;
            let op = Op::ProjectSet(Arc::new(ProjectSetNode { input: stage.node, functions }));
            let node = self.node(op, kinds.into(), estimate);
            stage = Stage { node, layout };
            round += 1;
        }
    }

    fn distinct(&mut self, query: &Query, stage: Stage) -> Result<Stage> {
        let (groups, on) = match &query.distinct {
            Distinct::None => return Ok(stage),
            Distinct::All(groups) => (groups, false),
            Distinct::On(groups) => (groups, true),
        };
        let mut stage = stage;
        let mut columns = Vec::with_capacity(groups.len());
        let mut parts = Vec::with_capacity(groups.len());
        for group in groups {
            let Some(at) = query.targets.iter().position(|t| t.reference == group.reference) else {
                return Err(DbError::internal("DISTINCT column is no target"));
            };
            columns.push(at);
            parts.push(KeyPart::equality(self.catalog(), query.targets[at].expr.ty()));
        }
        // The first row of each set of equals is the one ORDER BY puts first.
        if on && !query.order_by.is_empty() {
            let keys = self.output_keys(&query.order_by, &query.targets, &stage)?;
            stage = self.sorted(stage, keys, None, super::explain::sort_key(self, &query.order_by, &query.targets));
        }
        let mut estimate = stage.node.estimate;
        // Assumed: three rows in ten are distinct.
        estimate.rows = (estimate.rows * 0.3).max(1.0);
        let kinds = stage.node.kinds.clone();
        let node = DistinctNode { input: stage.node, columns, parts, sorted: on && !query.order_by.is_empty() };
        let node = self.node(Op::Distinct(Arc::new(node)), kinds, estimate);
        Ok(Stage { node, layout: stage.layout })
    }

    pub fn limited(
        &mut self,
        stage: Stage,
        limit: Option<melba_expression::Expression>,
        offset: Option<melba_expression::Expression>,
        ties: Option<Vec<(melba_expression::Expression, KeyPart)>>,
    ) -> Stage {
        if limit.is_none() && offset.is_none() {
            return stage;
        }
        let mut estimate = stage.node.estimate;
        if let Some(Datum::Int8(n)) = limit.as_ref().and_then(|l| l.as_const()) {
            let share = (*n as f64 / estimate.rows.max(1.0)).clamp(0.0, 1.0);
            estimate.total = estimate.startup + (estimate.total - estimate.startup) * share;
            estimate.rows = estimate.rows.min(*n as f64).max(1.0);
        }
        let kinds = stage.node.kinds.clone();
        let op = Op::Limit(Arc::new(LimitNode { input: stage.node, limit, offset, ties }));
        Stage { node: self.node(op, kinds, estimate), layout: stage.layout }
    }

    /// Only the visible targets. Junk stands last or among them.
    pub fn strip(&mut self, stage: Stage, visible: usize) -> Result<Stage> {
        if stage.node.kinds.len() == visible {
            return Ok(stage);
        }
        let expressions = stage.node.kinds[..visible]
            .iter()
            .enumerate()
            .map(|(i, kind)| {
                melba_expression::Expression::new(melba_expression::Node::Column(i), melba_types::Oid::INVALID, *kind)
            })
            .collect();
        Ok(self.projected_compiled(stage, expressions, TARGET))
    }

    /// The columns, by position, of the keys that a foreign key may refer to.
    fn key_columns(&self, relation: &melba_catalog::Relation) -> Vec<usize> {
        let indexes = relation.indexes.iter().filter_map(|i| self.catalog().relation(*i)?.index.as_ref());
        let keys = indexes.filter(|i| i.unique && i.predicate.is_none() && i.keys.iter().all(|k| k.column != 0));
        let mut columns: Vec<usize> = keys.flat_map(|i| i.keys.iter().map(|k| k.column as usize - 1)).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    fn locked_members(&mut self, entry: usize, parent: &Arc<melba_catalog::Relation>) -> Result<(Vec<LockedTable>, Layout)> {
        let layout = Layout(self.needed(entry, &[]).iter().map(|c| (entry, *c)).collect());
        let sources = self.member_sources(entry, parent)?;
        for (member, _) in &sources {
            self.relations.add(member.oid, RelationLockMode::RowShare);
        }
        let tables = sources.into_iter().map(|(r, source)| LockedTable { source, keys: self.key_columns(&r) }).collect();
        Ok((tables, layout))
    }

    /// FOR UPDATE and similar clauses.
    fn locked(&mut self, query: &Query, stage: Stage, recheck: Vec<RecheckExpr>) -> Result<Stage> {
        if query.locking.is_empty() {
            return Ok(stage);
        }
        let mut locks = Vec::new();
        for locking in &query.locking {
            let RangeKind::Relation { oid, inherit, .. } = self.level().entries[locking.entry].kind else { continue };
            let Some(relation) = self.catalog().relation(oid).cloned() else { continue };
            if matches!(relation.storage, melba_catalog::Storage::System(_)) {
                return Err(DbError::unsupported("locking rows of a system relation"));
            }
            self.relations.add(oid, RelationLockMode::RowShare);
            let Some(row_id) = stage.layout.position(locking.entry, -1) else { continue };
            let mut table = None;
            let (tables, layout) = if self.is_family(&relation, inherit) {
                table = stage.layout.position(locking.entry, -6);
                self.locked_members(locking.entry, &relation)?
            } else {
                let (source, layout) = self.table_source(locking.entry, &relation, &[])?;
                (vec![LockedTable { source, keys: self.key_columns(&relation) }], layout)
            };
            let columns = row_columns(&stage.layout, &layout);
            locks.push(RowLock { tables, table, strength: locking.strength, wait: locking.wait, row_id, columns });
        }
        let recheck = self.compile_rechecks(recheck, &stage.layout)?;
        let (kinds, estimate) = (stage.node.kinds.clone(), stage.node.estimate);
        let op = Op::LockRows(Arc::new(LockRowsNode { input: stage.node, locks, recheck }));
        Ok(Stage { node: self.node(op, kinds, estimate), layout: stage.layout })
    }

    pub fn compile_rechecks(&mut self, steps: Vec<RecheckExpr>, layout: &Layout) -> Result<Vec<Recheck>> {
        let mut out = Vec::new();
        for step in steps {
            match step {
                RecheckExpr::Condition(condition) => {
                    out.extend(self.compile_present(vec![condition], layout)?.into_iter().map(Recheck::Condition));
                }
                RecheckExpr::Outer { conditions, rels } => {
                    let is_right = |entry: usize| has(rels, entry);
                    let columns = layout.0.iter().enumerate().filter(|(_, c)| is_right(c.0)).map(|(i, _)| i).collect();
                    let conditions = self.compile_present(conditions, layout)?;
                    out.push(Recheck::Outer { conditions, columns });
                }
            }
        }
        Ok(out)
    }

    /// The conditions whose columns are all in the row.
    pub fn compile_present(&mut self, conditions: Vec<Expr>, layout: &Layout) -> Result<Vec<melba_expression::Expression>> {
        let mut out = Vec::new();
        for condition in conditions {
            let mut there = true;
            condition.visit_vars(&mut |v| there &= layout.position(v.entry, v.column).is_some());
            if there {
                out.push(self.compile(&condition, layout)?);
            }
        }
        Ok(out)
    }
}

/// `Recheck` before it is compiled.
pub(super) enum RecheckExpr {
    Condition(Expr),
    Outer { conditions: Vec<Expr>, rels: Rels },
}

/// A null-extended row of an outer join cannot be locked.
fn refuse_nullable(locking: &[Locking], tree: &super::prepare::Tree) -> Result<()> {
    let nullable = tree.nullable();
    match locking.iter().find(|l| has(nullable, l.entry)) {
        Some(lock) => {
            bail!(FEATURE_NOT_SUPPORTED, "{} cannot be applied to the nullable side of an outer join", lock.strength.clause())
        }
        None => Ok(()),
    }
}

/// The steps of rechecking a joined row of which a part has changed, innermost joins first.
pub(super) fn rechecks(tree: &super::prepare::Tree, entries: &[RangeEntry]) -> Vec<RecheckExpr> {
    use super::prepare::{Tree, TreeJoin};
    let must = |conditions: &[Expr]| conditions.iter().cloned().map(RecheckExpr::Condition).collect::<Vec<_>>();
    match tree {
        Tree::Leaf(entry) => must(&entries[*entry].security),
        Tree::Inner { items, conditions } => {
            items.iter().flat_map(|item| rechecks(item, entries)).chain(must(conditions)).collect()
        }
        Tree::Join { join, left, right, conditions } => {
            let mut steps = rechecks(left, entries);
            match join {
                TreeJoin::SemiPair => steps.extend(must(conditions)),
                TreeJoin::Left => steps.push(RecheckExpr::Outer { conditions: conditions.clone(), rels: right.rels() }),
                // A side without matches is not searched again, and rows of a full join cannot be locked.
                TreeJoin::Anti | TreeJoin::NotIn | TreeJoin::Semi | TreeJoin::Full => {}
            }
            steps
        }
    }
}

/// Entries for the results of set-returning functions, one a round.
const SET_BASE: usize = usize::MAX - 100;

/// Replaces the innermost set-returning calls.
fn take_sets(e: &mut Expr, round: usize, calls: &mut Vec<Expr>) {
    if let Expr::Function(f) = e
        && f.returns_set
        && !f.args.iter().any(has_set)
    {
        calls.push(e.clone());
        *e = super::layout::computed(SET_BASE - round, calls.len() - 1, e);
        return;
    }
    e.children_mut(&mut |child| take_sets(child, round, calls));
}

pub(super) fn has_set(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::Function(f) if f.returns_set) || matches!(e, Expr::Operator(o) if o.returns_set))
}

pub(super) fn target_of<'t>(targets: &'t [Target], group: &SortGroup) -> Option<&'t Target> {
    targets.iter().find(|t| t.reference == group.reference)
}

/// Places in a row of the columns of a scan: (column of the row, index into the scan's outputs).
pub(super) fn row_columns(row: &Layout, scan: &Layout) -> Vec<(usize, usize)> {
    scan.0.iter().enumerate().filter_map(|(i, (entry, column))| Some((row.position(*entry, *column)?, i))).collect()
}

pub(super) fn visit_tree(tree: &super::prepare::Tree, f: &mut dyn FnMut(&Expr)) {
    use super::prepare::Tree;
    match tree {
        Tree::Leaf(_) => {}
        Tree::Inner { items, conditions } => {
            conditions.iter().for_each(&mut *f);
            items.iter().for_each(|i| visit_tree(i, f));
        }
        Tree::Join { left, right, conditions, .. } => {
            conditions.iter().for_each(&mut *f);
            visit_tree(left, f);
            visit_tree(right, f);
        }
    }
}
