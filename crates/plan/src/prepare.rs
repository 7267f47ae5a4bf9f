//! Preparation: WITH queries are inlined, simple subqueries and views pulled up, sublinks turned into semi and anti joins, outer
//! joins reduced. The result is a tree of joins over range table entries.

use hashbrown::{HashMap, HashSet};
use melba_tree::{
    CaseExpr, Command, Cte, Distinct, Expr, FromItem, JoinKind, Param, ParamKind, Query, RangeEntry, RangeKind, RowExpr,
    RowVersion, Sublink, SublinkKind, Var,
};
use melba_types::{DbError, Oid, Result, oids};

use super::join_tree::{Tree, TreeJoin, flatten};
use super::layout::column;
use super::never_null::{ConsideredRows, is_output_never_null};
use super::nullability;
use super::planner::Planner;
use super::rels::{Rels, bit, conjuncts, contains_sublink, rels_of};
use super::unnest::Unnested;
use super::{comparison, disjunction, equivalence, fold, volatility};

/// The join tree under construction.
pub(super) struct Builder<'p, 'a> {
    pub planner: &'p mut Planner<'a>,
    pub entries: Vec<RangeEntry>,
    /// The expressions of columns of vanished entries (pulled-up subqueries, join aliases).
    replaced: HashMap<usize, Vec<Expr>>,
    /// How often a column of an entry is read. Column 0 is the whole row, which of a null-extended entry is NULL, not a row of its
    /// columns' expressions.
    reads: HashMap<(usize, i16), usize>,
    /// Rows may be checked again when they have changed meanwhile: subqueries in conditions stay there.
    rechecks: bool,
    /// The entry that is changed.
    target: Option<usize>,
}

/// Knowledge about the rows on which a condition is evaluated.
struct Known<'a> {
    /// Relations that outer joins may have extended with NULLs.
    extended: Rels,
    /// Conditions that hold for all of them.
    conditions: &'a [Expr],
}

/// Splits the query's FROM and WHERE into a tree of joins. The query keeps its other clauses, their variables adjusted.
pub fn prepare(planner: &mut Planner<'_>, query: &mut Query) -> Result<Tree> {
    let mut reads = HashMap::new();
    note_reads(query, &mut reads);
    let from = std::mem::take(&mut query.from);
    let filter = query.filter.take();
    let rechecks = query.command != Command::Select || !query.locking.is_empty();
    let target = query.result;
    let mut builder = Builder { planner, entries: Vec::new(), replaced: HashMap::new(), reads, rechecks, target };
    builder.entries = std::mem::take(&mut query.range_table);
    let mut items = Vec::new();
    for item in from {
        items.push(builder.item(item, false)?);
    }
    let mut conditions = Vec::new();
    if let Some(filter) = filter {
        conjuncts(filter, &mut conditions);
    }
    let conditions = fold::without_undecided(builder.planner, conditions);
    let mut tree = Tree::Inner { items, conditions };
    builder.note_joins();
    builder.substitute_tree(&mut tree)?;
    // Sublinks that become joins add entries, whose columns may be replaced in turn.
    tree = builder.pull_sublinks(flatten(tree))?;
    builder.substitute_tree(&mut tree)?;
    let replaced = std::mem::take(&mut builder.replaced);
    query.range_table = std::mem::take(&mut builder.entries);
    let names = entry_names(&query.range_table);
    query.visit_mut(0, &mut |e, level| substitute(e, level, &replaced, &names));
    let mut tree = flatten(tree);
    reduce_outer_joins(planner, &mut tree, 0);
    disjunction::split_disjunctions(planner, &mut tree);
    tree = flatten(tree);
    equivalence::imply_equalities(planner, &mut tree);
    Ok(tree)
}

/// An outer join whose null-extended rows some condition above rejects is an inner join. `not_null`: relations whose columns
/// are not all NULL in any row that passes the conditions above (`nullability` says which those reject).
fn reduce_outer_joins(planner: &mut Planner<'_>, tree: &mut Tree, not_null: Rels) {
    match tree {
        Tree::Leaf(_) => {}
        Tree::Inner { items, conditions } => {
            let not_null = not_null | rejected_nulls(planner, conditions);
            items.iter_mut().for_each(|item| reduce_outer_joins(planner, item, not_null));
        }
        Tree::Join { join, left, right, conditions } => {
            let own = rejected_nulls(planner, conditions);
            if *join == TreeJoin::Left && not_null & right.rels() != 0 {
                let (left, right) =
                    (std::mem::replace(&mut **left, Tree::Leaf(0)), std::mem::replace(&mut **right, Tree::Leaf(0)));
                *tree = Tree::Inner { items: vec![left, right], conditions: std::mem::take(conditions) };
                return reduce_outer_joins(planner, tree, not_null);
            }
            if *join == TreeJoin::Full {
                let (l, r) = (not_null & left.rels() != 0, not_null & right.rels() != 0);
                if l || r {
                    if r && !l {
                        std::mem::swap(left, right);
                    }
                    *join = TreeJoin::Left;
                    return reduce_outer_joins(planner, tree, not_null);
                }
                reduce_outer_joins(planner, left, 0);
                reduce_outer_joins(planner, right, 0);
                return;
            }
            reduce_outer_joins(planner, left, if *join == TreeJoin::Semi { not_null | own } else { not_null });
            reduce_outer_joins(planner, right, if matches!(join, TreeJoin::Anti | TreeJoin::NotIn) { 0 } else { own });
        }
    }
}

fn rejected_nulls(planner: &Planner<'_>, conditions: &[Expr]) -> Rels {
    conditions.iter().fold(0, |all, c| all | nullability::rejected_nulls(planner.catalog(), c))
}

/// Whether a range entry is a view whose rows only leakproof conditions may see before its own conditions have left some out.
pub fn is_barrier(planner: &Planner<'_>, view: melba_types::Oid) -> bool {
    planner.catalog().relation(view).is_some_and(|v| v.has_option("security_barrier"))
}

/// Column names of entries, for whole-row references to vanished ones.
pub(super) fn entry_names(entries: &[RangeEntry]) -> Vec<Vec<std::sync::Arc<str>>> {
    entries.iter().map(|e| e.columns.iter().map(|c| c.name.clone()).collect()).collect()
}

/// The expressions of the columns of joins, by entry.
pub(super) fn joined_columns(entries: &[RangeEntry]) -> HashMap<usize, Vec<Expr>> {
    let joins = entries.iter().enumerate().filter_map(|(i, entry)| match &entry.kind {
        RangeKind::Join { merged, .. } => Some((i, merged.clone())),
        _ => None,
    });
    joins.collect()
}

/// Replaces references to columns of vanished entries.
pub(super) fn substitute(
    e: &mut Expr,
    level: usize,
    replaced: &HashMap<usize, Vec<Expr>>,
    names: &[Vec<std::sync::Arc<str>>],
) -> bool {
    while let Expr::Var(v) = e
        && v.levels_up == level
        && let Some(columns) = replaced.get(&v.entry)
    {
        let mut by = match usize::try_from(v.column) {
            Ok(0) => Expr::Row(Box::new(RowExpr {
                location: -1,
                fields: columns.clone(),
                names: names.get(v.entry).cloned().unwrap_or_default(),
                ty: v.ty,
                explicit: false,
            })),
            Ok(c) if c <= columns.len() => columns[c - 1].clone(),
            _ => return true,
        };
        if v.version != RowVersion::Default {
            by = of_version(by, v);
        }
        by.shift_levels(level, 0);
        *e = by;
    }
    true
}

/// What a column of a view's target is, in the old or the new row of its table, whose entry is the one before. There may be none.
fn of_version(mut e: Expr, column: &Var) -> Expr {
    e.visit_mut(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up == level
            && v.entry + 1 == column.entry
        {
            v.version = column.version;
        }
        true
    });
    if matches!(e, Expr::Var(_)) {
        return e;
    }
    let row = Var { version: column.version, ..Var::new(column.entry - 1, 0, oids::RECORD, -1, Oid::INVALID) };
    let exists = Expr::NullTest { arg: Box::new(Expr::Var(row)), is_null: false, row: false };
    let (ty, typmod, collation) = (e.ty(), e.typmod(), e.collation());
    Expr::Case(Box::new(CaseExpr {
        arg: None,
        whens: vec![(exists, e)],
        default: Expr::null(ty, typmod, collation),
        ty,
        typmod,
        collation,
        location: -1,
    }))
}

impl Builder<'_, '_> {
    fn substitute_tree(&self, tree: &mut Tree) -> Result<()> {
        let names = entry_names(&self.entries);
        self.substitute_in(tree, &names);
        Ok(())
    }

    fn substitute_in(&self, tree: &mut Tree, names: &[Vec<std::sync::Arc<str>>]) {
        match tree {
            Tree::Leaf(_) => {}
            Tree::Inner { items, conditions } => {
                conditions.iter_mut().for_each(|c| c.visit_mut(0, &mut |e, l| substitute(e, l, &self.replaced, names)));
                items.iter_mut().for_each(|i| self.substitute_in(i, names));
            }
            Tree::Join { left, right, conditions, .. } => {
                conditions.iter_mut().for_each(|c| c.visit_mut(0, &mut |e, l| substitute(e, l, &self.replaced, names)));
                self.substitute_in(left, names);
                self.substitute_in(right, names);
            }
        }
    }

    /// Columns of joins stand for columns of their sides.
    fn note_joins(&mut self) {
        self.replaced.extend(joined_columns(&self.entries));
    }

    fn item(&mut self, item: FromItem, nullable: bool) -> Result<Tree> {
        match item {
            FromItem::Range(entry) => {
                bit(entry)?;
                self.leaf(entry, nullable)
            }
            FromItem::Join(join) => {
                let mut conditions = Vec::new();
                if let Some(condition) = join.condition {
                    conjuncts(condition, &mut conditions);
                }
                let (join, left, right) = match join.kind {
                    JoinKind::Inner => {
                        let items = vec![self.item(join.left, nullable)?, self.item(join.right, nullable)?];
                        return Ok(Tree::Inner { items, conditions });
                    }
                    JoinKind::Left => (TreeJoin::Left, self.item(join.left, nullable)?, self.item(join.right, true)?),
                    // The sides change places; the order of the columns is by name anyway.
                    JoinKind::Right => {
                        let left = self.item(join.left, true)?;
                        (TreeJoin::Left, self.item(join.right, nullable)?, left)
                    }
                    JoinKind::Full => (TreeJoin::Full, self.item(join.left, true)?, self.item(join.right, true)?),
                };
                Ok(Tree::Join { join, left: Box::new(left), right: Box::new(right), conditions })
            }
        }
    }

    /// A range entry, or the tree of a simple subquery.
    fn leaf(&mut self, entry: usize, nullable: bool) -> Result<Tree> {
        let RangeKind::Subquery { query, view } = &self.entries[entry].kind else { return Ok(Tree::Leaf(entry)) };
        // Triggers see a view's rows unchanged.
        if !self.has_simple_clauses(query)
            || !self.are_movable(query, entry)
            || is_barrier(self.planner, *view)
            || self.target == Some(entry)
        {
            return Ok(Tree::Leaf(entry));
        }
        // A computed column of a null-extended side must become NULL, which an expression in its place would not.
        if nullable
            && (query.from.is_empty() || query.targets.iter().any(|t| !matches!(&t.expr, Expr::Var(v) if v.levels_up == 0)))
        {
            return Ok(Tree::Leaf(entry));
        }
        if nullable && (self.entries[entry].lateral || self.reads.contains_key(&(entry, 0))) {
            return Ok(Tree::Leaf(entry));
        }
        let kind = std::mem::replace(&mut self.entries[entry].kind, RangeKind::Result);
        let RangeKind::Subquery { query, .. } = kind else { return Ok(Tree::Leaf(entry)) };
        let (tree, targets) = self.merge(*query, nullable)?;
        self.replaced.insert(entry, targets);
        Ok(tree)
    }

    /// Moves a subquery's range table, FROM and WHERE to this level.
    fn merge(&mut self, mut query: Query, nullable: bool) -> Result<(Tree, Vec<Expr>)> {
        let offset = self.entries.len();
        query.visit_mut(0, &mut |e, level| {
            if let Expr::Var(v) = e {
                if v.levels_up == level {
                    v.entry += offset;
                } else if v.levels_up > level {
                    v.levels_up -= 1;
                }
            }
            if let Expr::Aggregate(a) = e
                && a.levels_up > level
            {
                a.levels_up -= 1;
            }
            true
        });
        lift_cte_references(&mut query, 0);
        note_reads(&query, &mut self.reads);
        shift_entries(&mut query.from, offset);
        self.entries.append(&mut query.range_table);
        let mut items = Vec::new();
        for item in query.from {
            items.push(self.item(item, nullable)?);
        }
        let mut conditions = Vec::new();
        if let Some(filter) = query.filter {
            conjuncts(filter, &mut conditions);
        }
        let targets = query.targets.into_iter().filter(|t| !t.junk).map(|t| t.expr).collect();
        Ok((Tree::Inner { items, conditions }, targets))
    }

    /// A SELECT with only joins, conditions and expressions.
    fn is_simple(&self, q: &Query) -> bool {
        self.has_simple_clauses(q) && !q.targets.iter().any(|t| contains_sublink(&t.expr))
    }

    /// Its expressions may have subqueries.
    fn has_simple_clauses(&self, q: &Query) -> bool {
        is_of_joins(q)
            && !q.has_aggregates
            && q.order_by.is_empty()
            && !q.targets.iter().any(|t| volatility::has_volatile(self.planner, &t.expr))
    }

    /// Whether the subqueries among a subquery's expressions may move to where the columns are read: they are then computed only for rows
    /// that the joins and conditions there leave. Where a column is read twice they would be computed twice.
    fn are_movable(&self, q: &Query, entry: usize) -> bool {
        let reads = |column: i16| self.reads.get(&(entry, column)).copied().unwrap_or(0);
        let outputs = q.targets.iter().filter(|t| !t.junk);
        (1..).zip(outputs).all(|(column, t)| !contains_sublink(&t.expr) || !self.rechecks && reads(column) + reads(0) <= 1)
    }

    /// Conjuncts that are EXISTS, NOT EXISTS or IN become joins.
    fn pull_sublinks(&mut self, tree: Tree) -> Result<Tree> {
        match tree {
            Tree::Leaf(_) => Ok(tree),
            Tree::Join { join, left, right, conditions } => Ok(Tree::Join {
                join,
                left: Box::new(self.pull_sublinks(*left)?),
                right: Box::new(self.pull_sublinks(*right)?),
                conditions,
            }),
            Tree::Inner { items, conditions } => {
                let mut pulled = Vec::new();
                for item in items {
                    pulled.push(self.pull_sublinks(item)?);
                }
                let mut rest = Vec::new();
                let mut joins = Vec::new();
                let available = pulled.iter().fold(0, |all, i| all | i.rels());
                let extended = pulled.iter().fold(0, |all, item| all | item.extended());
                for condition in &conditions {
                    match self.as_join(condition, available, &Known { extended, conditions: &conditions })? {
                        Some(found) => joins.push(found),
                        None => rest.push(condition.clone()),
                    }
                }
                let mut groups = Vec::new();
                if !self.rechecks {
                    for i in 0..rest.len() {
                        let mut condition = std::mem::replace(&mut rest[i], Expr::And(vec![]));
                        groups.extend(self.unnest(&mut condition, available, &rest)?);
                        rest[i] = condition;
                    }
                }
                let mut tree = Tree::Inner { items: pulled, conditions: vec![] };
                for Unnested { leaf, ties } in groups {
                    tree = attach(tree, TreeJoin::Left, leaf, ties);
                }
                // They refer to entries that were joined just now.
                let mut tree = match tree {
                    Tree::Inner { items, .. } => Tree::Inner { items, conditions: rest },
                    joined => Tree::Inner { items: vec![joined], conditions: rest },
                };
                for (join, right, conditions) in joins {
                    tree = attach(tree, join, self.pull_sublinks(right)?, conditions);
                }
                Ok(tree)
            }
        }
    }

    /// The join that a conjunct stands for.
    fn as_join(&mut self, condition: &Expr, available: Rels, known: &Known<'_>) -> Result<Option<(TreeJoin, Tree, Vec<Expr>)>> {
        // Of a lateral subquery, it may be about relations that are joined elsewhere.
        if rels_of(condition) & !available != 0 {
            return Ok(None);
        }
        match condition {
            Expr::Sublink(s) if s.kind == SublinkKind::Exists => self.exists(s, TreeJoin::Semi, available),
            Expr::Sublink(s) if s.kind == SublinkKind::Any => {
                let found = self.any(s, available)?;
                Ok(found.map(|(tree, conditions)| (TreeJoin::Semi, tree, conditions)))
            }
            Expr::Not(arg) => match &**arg {
                Expr::Sublink(s) if s.kind == SublinkKind::Exists => self.exists(s, TreeJoin::Anti, available),
                Expr::Sublink(s) if s.kind == SublinkKind::Any => self.not_in(s, available, known),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// `x <> ALL (SELECT ...)`: an anti join with the subquery. A comparison with a NULL is NULL, so that a NULL on either side may
    /// keep the condition from being true though no values are equal. Where neither side has any, the equalities are true or false, as
    /// equality of values always is, and the condition is true if none is true. Otherwise the join counts the NULLs of its one key: over
    /// a side without rows the condition is true, a NULL among them leaves it NULL or false for all, and a NULL of `x` for that row. Of
    /// several keys a NULL decides only where the others are equal, which no table by the keys says.
    fn not_in(&mut self, s: &Sublink, available: Rels, known: &Known<'_>) -> Result<Option<(TreeJoin, Tree, Vec<Expr>)>> {
        // The whole condition is evaluated again on rows that have changed meanwhile.
        let (false, Some(test)) = (self.rechecks, &s.test) else { return Ok(None) };
        let mut tests = Vec::new();
        conjuncts(test.clone(), &mut tests);
        let rows = ConsideredRows {
            catalog: self.planner.catalog(),
            entries: &self.entries,
            extended: known.extended,
            conditions: known.conditions,
        };
        let mut has_nulls = false;
        for (place, test) in tests.iter().enumerate() {
            let Expr::Operator(op) = test else { return Ok(None) };
            let [left, Expr::Param(Param { kind: ParamKind::Executor, number, ty, collation, .. })] = &op.args[..] else {
                return Ok(None);
            };
            if *number != place || !comparison::hashes_alike(self.planner, op, (left.ty(), left.collation()), (*ty, *collation)) {
                return Ok(None);
            }
            has_nulls |= !rows.are_never_null(left) || !is_output_never_null(rows.catalog, &s.query, place);
        }
        if !has_nulls {
            return Ok(self.any(s, available)?.map(|(tree, conditions)| (TreeJoin::Anti, tree, conditions)));
        }
        // A key is of columns of its side.
        let is_of_columns = s.query.targets.iter().all(|target| rels_of(&target.expr) != 0);
        if tests.len() > 1 || !is_of_columns || refers_up(&s.query, 1) {
            return Ok(None);
        }
        Ok(self.any(s, available)?.map(|(tree, conditions)| (TreeJoin::NotIn, tree, conditions)))
    }

    fn exists(&mut self, s: &Sublink, join: TreeJoin, available: Rels) -> Result<Option<(TreeJoin, Tree, Vec<Expr>)>> {
        if !refers_up(&s.query, 1) {
            return Ok(None);
        }
        Ok(self.tied(&s.query, None, available)?.map(|(tree, conditions)| (join, tree, conditions)))
    }

    /// A simple subquery, for whose rows `test` is wanted to be true, and the conditions that join it.
    fn tied(&mut self, query: &Query, test: Option<&Expr>, available: Rels) -> Result<Option<(Tree, Vec<Expr>)>> {
        if !self.is_simple(query) || query.from.is_empty() || volatility::query_is_volatile(self.planner, query) {
            return Ok(None);
        }
        let mut query = query.clone();
        // Only WHERE and the outputs may refer to this query: expressions on which FROM depends cannot move into a join condition.
        let (filter, targets) = (query.filter.take(), std::mem::take(&mut query.targets));
        if refers_up(&query, 1) {
            return Ok(None);
        }
        (query.filter, query.targets) = (filter, targets);
        let before = self.entries.len();
        let (mut tree, targets) = self.merge(query, true)?;
        self.note_joins_from(before);
        if let (Tree::Inner { conditions, .. }, Some(test)) = (&mut tree, test) {
            conjuncts(with_outputs(test, &targets), conditions);
        }
        self.substitute_tree(&mut tree)?;
        let Tree::Inner { items, conditions } = tree else { return Ok(None) };
        let own = items.iter().fold(0, |all, i| all | i.rels());
        let (inside, across): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(|c| rels_of(c) & !own == 0);
        if across.iter().any(|c| rels_of(c) & !(own | available) != 0) {
            return Err(DbError::internal("subquery refers to an unknown relation"));
        }
        Ok(Some((Tree::Inner { items, conditions: inside }, across)))
    }

    fn note_joins_from(&mut self, from: usize) {
        for i in from..self.entries.len() {
            if let RangeKind::Join { merged, .. } = &self.entries[i].kind {
                self.replaced.insert(i, merged.clone());
            }
        }
    }

    /// `x = ANY (SELECT ...)`: the subquery, and the conditions that join it.
    fn any(&mut self, s: &Sublink, available: Rels) -> Result<Option<(Tree, Vec<Expr>)>> {
        let Some(test) = &s.test else { return Ok(None) };
        if volatility::has_volatile(self.planner, test) {
            return Ok(None);
        }
        let mut left_only = true;
        test.visit(0, &mut |e, _| {
            left_only &= !matches!(e, Expr::Sublink(_));
            true
        });
        if !left_only || !matches!(test, Expr::Operator(_) | Expr::And(_)) {
            return Ok(None);
        }
        let is_correlated = refers_up(&s.query, 1);
        if !is_correlated && rels_of(test) & available == 0 {
            return Ok(None);
        }
        if let Some(tied) = self.tied(&s.query, Some(test), available)? {
            return Ok(Some(tied));
        }
        if is_correlated || volatility::query_is_volatile(self.planner, &s.query) {
            return Ok(None);
        }
        let columns = s.query.output_columns();
        let entry = self.entries.len();
        bit(entry)?;
        self.entries.push(RangeEntry {
            kind: RangeKind::Subquery { query: Box::new(s.query.clone()), view: melba_types::Oid::INVALID },
            alias: None,
            name: "ANY_subquery".into(),
            columns: columns.clone(),
            in_from: false,
            ..RangeEntry::default()
        });
        let vars: Vec<Expr> =
            columns.iter().enumerate().map(|(i, c)| column(entry, i as i16 + 1, c.ty, c.typmod, c.collation)).collect();
        let mut conditions = Vec::new();
        conjuncts(with_outputs(test, &vars), &mut conditions);
        Ok(Some((Tree::Leaf(entry), conditions)))
    }
}

/// The test of a sublink on the outputs of its subquery.
fn with_outputs(test: &Expr, outputs: &[Expr]) -> Expr {
    let mut test = test.clone();
    test.visit_mut(0, &mut |e, _| {
        if let Expr::Param(Param { kind: ParamKind::Executor, number, .. }) = e
            && let Some(output) = outputs.get(*number)
        {
            *e = output.clone();
            return false;
        }
        true
    });
    test
}

/// Joins as deep on the left as the conditions allow.
fn attach(tree: Tree, join: TreeJoin, right: Tree, conditions: Vec<Expr>) -> Tree {
    let inside = right.rels();
    let wanted = conditions.iter().fold(0, |all, c| all | rels_of(c)) & !inside;
    match tree {
        Tree::Inner { mut items, conditions: outer } if items.len() > 1 && wanted != 0 => {
            if let Some(at) = items.iter().position(|i| wanted & !i.rels() == 0) {
                let item = items.swap_remove(at);
                items.push(Tree::Join { join, left: Box::new(item), right: Box::new(right), conditions });
                return Tree::Inner { items, conditions: outer };
            }
            let left = Tree::Inner { items, conditions: outer };
            Tree::Join { join, left: Box::new(left), right: Box::new(right), conditions }
        }
        tree => Tree::Join { join, left: Box::new(tree), right: Box::new(right), conditions },
    }
}

fn note_reads(query: &Query, reads: &mut HashMap<(usize, i16), usize>) {
    query.visit(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up == level
        {
            *reads.entry((v.entry, v.column)).or_default() += 1;
        }
        true
    });
}

/// A SELECT without clauses that group, number, restrict or lock its rows.
pub(super) fn is_of_joins(q: &Query) -> bool {
    q.command == Command::Select
        && q.set_operation.is_none()
        && q.ctes.is_empty()
        && !q.has_windows
        && !q.has_set_returning
        && q.group_by.is_empty()
        && q.grouping_sets.is_none()
        && q.having.is_none()
        && matches!(q.distinct, Distinct::None)
        && q.limit.is_none()
        && q.offset.is_none()
        && q.locking.is_empty()
}

/// The query, of those around it, that a column or an aggregate is of.
fn levels_up(e: &Expr) -> Option<usize> {
    match e {
        Expr::Var(v) => Some(v.levels_up),
        Expr::Aggregate(a) => Some(a.levels_up),
        _ => None,
    }
}

/// Whether a subquery's expression refers to any query around it.
pub(super) fn refers_out(e: &Expr) -> bool {
    let mut found = false;
    e.visit(0, &mut |e, level| {
        found |= levels_up(e).is_some_and(|up| up > level);
        !found
    });
    found
}

/// The same of anything in a query.
pub(super) fn query_refers_out(query: &Query) -> bool {
    let mut found = false;
    query.visit(0, &mut |e, level| {
        found |= levels_up(e).is_some_and(|up| up > level);
        !found
    });
    found
}

/// An expression of a subquery, about the query around it only, as one of that query.
pub(super) fn lower(e: &mut Expr) {
    e.visit_mut(0, &mut |e, level| {
        if let Expr::Var(v) = e
            && v.levels_up > level
        {
            v.levels_up -= 1;
        }
        true
    });
}

/// Whether anything in a query refers to the query `up` levels outside it.
pub(super) fn refers_up(query: &Query, up: usize) -> bool {
    let mut found = false;
    query.visit(0, &mut |e, level| {
        found |= levels_up(e) == Some(level + up);
        !found
    });
    found
}

fn shift_entries(from: &mut [FromItem], offset: usize) {
    for item in from {
        shift_item(item, offset);
    }
}

fn shift_item(item: &mut FromItem, offset: usize) {
    match item {
        FromItem::Range(entry) => *entry += offset,
        FromItem::Join(join) => {
            join.entry += offset;
            shift_item(&mut join.left, offset);
            shift_item(&mut join.right, offset);
        }
    }
}

/// Visits the range entries of a query and of the queries in it, with their depth.
pub(super) fn visit_entries(query: &mut Query, depth: usize, f: &mut dyn FnMut(&mut RangeEntry, usize)) {
    query.range_table.iter_mut().for_each(|e| f(e, depth));
    query.subqueries_mut(&mut |q| visit_entries(q, depth + 1, f));
    query.expressions_mut(&mut |e| {
        e.visit_mut(0, &mut |e, _| {
            if let Expr::Sublink(s) = e {
                if let Some(test) = &mut s.test {
                    visit_tests(test, depth, f);
                }
                visit_entries(&mut s.query, depth + 1, f);
                return false;
            }
            true
        });
    });
}

fn visit_tests(test: &mut Expr, depth: usize, f: &mut dyn FnMut(&mut RangeEntry, usize)) {
    test.visit_mut(0, &mut |e, _| {
        if let Expr::Sublink(s) = e {
            visit_entries(&mut s.query, depth + 1, f);
            return false;
        }
        true
    });
}

/// A query that moves one level out is one level nearer to the WITH queries it refers to.
fn lift_cte_references(query: &mut Query, depth: usize) {
    visit_entries(query, depth, &mut |entry, depth| {
        if let RangeKind::Cte { levels, .. } = &mut entry.kind
            && *levels > depth
        {
            *levels -= 1;
        }
    });
}

/// Replaces the references of a WITH query by it, and returns whether there was one.
pub(super) fn inline_cte(query: &mut Query, cte: &Cte) -> bool {
    let mut found = false;
    visit_entries(query, 0, &mut |entry, depth| {
        if let RangeKind::Cte { name, levels, .. } = &entry.kind
            && *name == cte.name
            && *levels == depth
        {
            let mut body = (*cte.query).clone();
            body.shift_levels(depth);
            entry.kind = RangeKind::Subquery { query: Box::new(body), view: melba_types::Oid::INVALID };
            found = true;
        }
    });
    found
}

/// Names of the WITH queries of this level that are referred to anywhere in the query.
pub(super) fn referenced_ctes(query: &mut Query) -> HashSet<String> {
    let mut out = HashSet::new();
    visit_entries(query, 0, &mut |entry, depth| {
        if let RangeKind::Cte { name, levels, .. } = &entry.kind
            && *levels == depth
        {
            out.insert(name.to_string());
        }
    });
    out
}
