//! Scalar subqueries that aggregate rows equal to a column of the outer query, as outer joins with one group per value:
//!
//! ```text
//! a.x < (SELECT avg(b.y) FROM b WHERE b.k = a.k)
//! a LEFT JOIN (SELECT b.k, avg(b.y) AS v, true AS m FROM b GROUP BY b.k) s ON s.k = a.k  and then  a.x < s.v
//! ```
//!
//! Without a partner the subquery's value is that of no rows: NULL, or the value of its expression over NULLs and counts of 0.
//!
//! The groups of values that no outer row has are computed too. To raise no error that the query would not raise, only subqueries
//! whose expressions cannot fail are unnested. Where an index finds the rows of a value and few values are needed, the subquery
//! stays as it is.

use melba_types::{Datum, Oid, Result, oids};

use super::failure::may_fail;
use super::join_tree::Tree;
use super::layout::{boolean, column};
use super::planner::Nothing;
use super::prepare::{Builder, is_of_joins, lower, refers_out, refers_up};
use super::rels::{Rels, bit, conjuncts, rels_of};
use super::{comparison, selectivity, volatility};
use melba_expression::Compiler;
use melba_tree::{
    BooleanTest, CaseExpr, Const, Expr, OutputColumn, Query, RangeEntry, RangeKind, SortGroup, Sublink, SublinkKind, Target,
};

/// A subquery stays when this many times its outer rows are fewer than its own: an index is used for each.
const LOOKUP_ROWS: f64 = 8.0;

/// A subquery as a range table entry: its leaf and the equalities that tie it to the outer query.
pub(super) struct Unnested {
    pub leaf: Tree,
    pub ties: Vec<Expr>,
}

/// An equality between the outer query and the subquery.
struct Tie {
    /// With the outer side lowered to the outer query's level.
    condition: Expr,
    /// Which operand is the subquery's.
    inner_side: usize,
}

impl Builder<'_, '_> {
    /// Replaces the scalar subqueries of a condition that can be joined; returns the subqueries to join.
    pub(super) fn unnest(&mut self, condition: &mut Expr, available: Rels, conditions: &[Expr]) -> Result<Vec<Unnested>> {
        let mut found = Vec::new();
        let mut failure = None;
        condition.visit_mut(0, &mut |e, level| {
            if level > 0 {
                return false;
            }
            let Expr::Sublink(sublink) = e else { return failure.is_none() };
            if sublink.kind == SublinkKind::Expr {
                match self.as_groups(sublink, available, conditions) {
                    Ok(Some((value, unnested))) => {
                        *e = value;
                        found.push(unnested);
                    }
                    Ok(None) => {}
                    Err(error) => failure = Some(error),
                }
            }
            false
        });
        failure.map_or(Ok(found), Err)
    }

    /// The value of a subquery as a column of its groups, and these.
    fn as_groups(&mut self, sublink: &Sublink, available: Rels, conditions: &[Expr]) -> Result<Option<(Expr, Unnested)>> {
        if !is_plain_aggregate(&sublink.query)
            || !refers_up(&sublink.query, 1)
            || volatility::query_is_volatile(self.planner, &sublink.query)
        {
            return Ok(None);
        }
        let mut query = sublink.query.clone();
        query.order_by.clear();
        let mut all = Vec::new();
        if let Some(filter) = query.filter.take() {
            conjuncts(filter, &mut all);
        }
        let (mut kept, mut ties) = (Vec::new(), Vec::new());
        for condition in all {
            if !refers_out(&condition) {
                kept.push(condition);
                continue;
            }
            match self.tie(condition, available) {
                Some(tie) => ties.push(tie),
                None => return Ok(None),
            }
        }
        query.filter = (!kept.is_empty()).then_some(Expr::And(kept));
        if ties.is_empty()
            || refers_up(&query, 1)
            || self.may_fail_query(&query)
            || self.prefers_lookups(&query, &ties, conditions)
        {
            return Ok(None);
        }
        let Some(of_nothing) = self.value_of_no_rows(&query.targets[0].expr) else { return Ok(None) };
        self.join_groups(sublink, query, ties, of_nothing).map(Some)
    }

    /// Groups the subquery by the columns that tie it to the outer query, and puts it into the range table.
    fn join_groups(&mut self, sublink: &Sublink, mut query: Query, ties: Vec<Tie>, of_nothing: Expr) -> Result<(Expr, Unnested)> {
        let entry = self.entries.len();
        bit(entry)?;
        let value = query.targets.swap_remove(0).expr;
        let mut columns = Vec::new();
        let mut conditions = Vec::new();
        for (i, tie) in ties.into_iter().enumerate() {
            let Expr::Operator(mut op) = tie.condition else { continue };
            let key = &mut op.args[tie.inner_side];
            let (ty, typmod, collation) = (key.ty(), key.typmod(), key.collation());
            let inner = std::mem::replace(key, column(entry, i as i16 + 1, ty, typmod, collation));
            let operators = self.planner.catalog().type_operators(ty);
            query.group_by.push(SortGroup {
                reference: i as u32 + 1,
                equal: operators.equal,
                sort: operators.less,
                descending: false,
                nulls_first: false,
                hashable: true,
                using: false,
            });
            columns.push(OutputColumn { name: "key".into(), ty, typmod, collation });
            query.targets.push(target(inner, i as u32 + 1));
            conditions.push(Expr::Operator(op));
        }
        let place = columns.len() as i16 + 1;
        columns.push(OutputColumn { name: "value".into(), ty: sublink.ty, typmod: sublink.typmod, collation: sublink.collation });
        columns.push(OutputColumn { name: "is_group".into(), ty: oids::BOOL, typmod: -1, collation: Oid::INVALID });
        query.targets.push(target(value, 0));
        query.targets.push(target(boolean(true), 0));
        self.entries.push(RangeEntry {
            kind: RangeKind::Subquery { query: Box::new(query), view: Oid::INVALID },
            alias: None,
            name: "expr_subquery".into(),
            columns,
            in_from: false,
            ..RangeEntry::default()
        });
        let found = column(entry, place, sublink.ty, sublink.typmod, sublink.collation);
        let is_group = column(entry, place + 1, oids::BOOL, -1, Oid::INVALID);
        let value = if self.is_null(&of_nothing) { found } else { choose(is_group, found, of_nothing, sublink) };
        Ok((value, Unnested { leaf: Tree::Leaf(entry), ties: conditions }))
    }

    /// An equality of an expression over the outer query's relations with one over the subquery's.
    fn tie(&self, condition: Expr, available: Rels) -> Option<Tie> {
        let Expr::Operator(mut op) = condition else { return None };
        let [a, b] = &op.args[..] else { return None };
        let inner_side = match (refers_out(a), refers_out(b)) {
            (true, false) if !a.has_vars() && b.has_vars() => 1,
            (false, true) if !b.has_vars() && a.has_vars() => 0,
            _ => return None,
        };
        if !comparison::hashes_alike(self.planner, &op, (a.ty(), a.collation()), (b.ty(), b.collation()))
            || op.args.iter().any(|e| may_fail(self.planner, e))
        {
            return None;
        }
        let outer = &mut op.args[1 - inner_side];
        lower(outer);
        let rels = rels_of(outer);
        (rels != 0 && rels & !available == 0).then_some(Tie { condition: Expr::Operator(op), inner_side })
    }

    /// Whether an index of the subquery's only table begins with a tied column, and few outer rows use it.
    fn prefers_lookups(&self, query: &Query, ties: &[Tie], conditions: &[Expr]) -> bool {
        let tables: Vec<_> = query.range_table.iter().filter_map(|e| self.table(e)).collect();
        let [inner] = &tables[..] else { return false };
        let tied = |column: i16| {
            ties.iter().any(|tie| match &tie.condition {
                Expr::Operator(op) => matches!(&op.args[tie.inner_side], Expr::Var(v) if v.column == column),
                _ => false,
            })
        };
        let keys = inner.indexes.iter().filter_map(|oid| self.planner.catalog().relation(*oid)?.index.as_ref());
        if !keys.filter(|index| index.predicate.is_none()).filter_map(|index| index.keys.first()).any(|key| tied(key.column)) {
            return false;
        }
        let outer = ties.iter().fold(0, |all: Rels, tie| match &tie.condition {
            Expr::Operator(op) => all | rels_of(&op.args[1 - tie.inner_side]),
            _ => all,
        });
        let rows_of = |i: usize, entry: &RangeEntry| -> Option<f64> {
            let raw = selectivity::table_rows(self.planner, self.table(entry)?);
            // Statistics belong to a level that is planned; here the form of the conditions must do.
            let own: Vec<Expr> = conditions.iter().filter(|c| rels_of(c) == 1 << i).cloned().collect();
            Some(raw * super::default_selectivity::default_of(&own))
        };
        let outer_rows =
            self.entries.iter().enumerate().filter(|(i, _)| outer >> (*i).min(127) & 1 != 0).filter_map(|(i, e)| rows_of(i, e));
        outer_rows.fold(1.0, f64::max) * LOOKUP_ROWS < selectivity::table_rows(self.planner, inner)
    }

    fn table(&self, entry: &RangeEntry) -> Option<&melba_catalog::Relation> {
        let RangeKind::Relation { oid, .. } = entry.kind else { return None };
        self.planner.catalog().relation(oid).map(|r| &**r)
    }

    /// The value of an expression over aggregates when they have no rows; `None` when some aggregate's value of no rows is not known.
    fn value_of_no_rows(&self, value: &Expr) -> Option<Expr> {
        let mut value = value.clone();
        let mut is_known = true;
        value.visit_mut(0, &mut |e, _| {
            let Expr::Aggregate(call) = e else { return true };
            let name = self.planner.catalog().function(call.function).map(|f| (f.namespace, f.name.clone()));
            let empty = match name {
                Some((namespace, name)) if namespace == melba_catalog::classes::PG_CATALOG => match &*name {
                    "count" => Datum::Int8(0),
                    "sum" | "avg" | "min" | "max" | "bool_and" | "bool_or" | "every" | "array_agg" | "string_agg" => Datum::Null,
                    _ => {
                        is_known = false;
                        return false;
                    }
                },
                _ => {
                    is_known = false;
                    return false;
                }
            };
            *e = Expr::Const(Const { value: empty, ty: call.ty, typmod: -1, collation: call.collation, location: -1 });
            false
        });
        is_known.then_some(value)
    }

    fn is_null(&self, expr: &Expr) -> bool {
        let inputs = &self.planner.inputs;
        let compiled = Compiler::new(inputs.catalog, Some(inputs.session), &mut Nothing).compile(expr);
        compiled.is_ok_and(|compiled| matches!(compiled.as_const(), Some(Datum::Null)))
    }

    /// Whether anything that a subquery computes for a group may raise an error.
    fn may_fail_query(&self, query: &Query) -> bool {
        let is_table = |e: &RangeEntry| matches!(e.kind, RangeKind::Relation { .. } | RangeKind::Join { .. });
        if !query.range_table.iter().all(is_table) {
            return true;
        }
        let mut fails = query.filter.iter().chain(query.targets.iter().map(|t| &t.expr)).any(|e| may_fail(self.planner, e));
        let mut of_join = |condition: &Expr| fails |= may_fail(self.planner, condition);
        query.from.iter().for_each(|item| visit_conditions(item, &mut of_join));
        fails
    }
}

/// `SELECT aggregates FROM ... WHERE ...` and nothing else.
fn is_plain_aggregate(q: &Query) -> bool {
    is_of_joins(q) && q.has_aggregates && q.targets.len() == 1 && !q.from.is_empty()
}

fn visit_conditions(item: &melba_tree::FromItem, f: &mut dyn FnMut(&Expr)) {
    if let melba_tree::FromItem::Join(join) = item {
        join.condition.iter().for_each(&mut *f);
        visit_conditions(&join.left, f);
        visit_conditions(&join.right, f);
    }
}

fn target(expr: Expr, reference: u32) -> Target {
    Target { expr, name: "?column?".into(), junk: false, reference, column: 0, origin: (Oid::INVALID, 0) }
}

/// `CASE WHEN is_group IS TRUE THEN found ELSE of_nothing END`
fn choose(is_group: Expr, found: Expr, of_nothing: Expr, sublink: &Sublink) -> Expr {
    let has_group = Expr::BooleanTest { arg: Box::new(is_group), test: BooleanTest::True };
    Expr::Case(Box::new(CaseExpr {
        arg: None,
        whens: vec![(has_group, found)],
        default: of_nothing,
        ty: sublink.ty,
        typmod: sublink.typmod,
        collation: sublink.collation,
        location: -1,
    }))
}
