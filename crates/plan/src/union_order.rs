//! UNION ALL in a required order: arms whose rows an index gives in this order are merged.

use melba_expression::key::KeyPart;
use melba_expression::{Expression, Node};
use melba_fmgr::order::is_same_order;
use melba_tree::{
    Command, Distinct, Expr, OutputColumn, Query, RangeKind, SetInput, SetOperation, SetTree, SortGroup, places_of_targets,
};
use melba_types::{Kind, Oid};

use super::node::*;
use super::path::{OrderKey, Wanted};
use super::planner::Planner;
use super::{explain, sort, volatility};

/// The order of a UNION ALL.
pub(super) struct UnionOrder {
    keys: Vec<UnionKey>,
    pub wanted: Wanted,
    /// For EXPLAIN.
    pub shown: String,
}

struct UnionKey {
    /// Position of the column.
    column: usize,
    group: SortGroup,
    collation: Oid,
}

impl UnionOrder {
    /// The order that a query over a set operation wants; `None` where its arms cannot have it. Rows are read ahead of each arm, which
    /// shows where they are volatile.
    pub fn of(planner: &Planner<'_>, query: &Query, tree: &SetTree, wanted: Wanted) -> Option<UnionOrder> {
        let is_union = tree.operation == SetOperation::Union && tree.all;
        if !is_union || query.order_by.is_empty() || sort::order_keys(planner, query).is_empty() {
            return None;
        }
        let may_read_ahead = planner.level().entries.iter().all(|entry| match &entry.kind {
            RangeKind::Subquery { query, .. } => !volatility::query_is_volatile(planner, query),
            _ => true,
        });
        let mut keys = Vec::new();
        for (group, place) in places_of_targets(&query.order_by, &query.targets) {
            let Expr::Var(v) = &query.targets[place?].expr else { return None };
            let column = usize::try_from(v.column).ok()?.checked_sub(1).filter(|_| v.levels_up == 0)?;
            keys.push(UnionKey { column, group: group.clone(), collation: v.collation });
        }
        let shown = |key: &UnionKey| {
            let name = melba_catalog::quote_ident(&tree.columns[key.column].name).to_string();
            explain::with_direction(name, key.group.descending, key.group.nulls_first)
        };
        let shown = keys.iter().map(shown).collect::<Vec<_>>().join(", ");
        may_read_ahead.then_some(UnionOrder { keys, wanted, shown })
    }

    /// An arm with this ORDER BY; `None`: it has to be sorted.
    pub fn asked(&self, planner: &Planner<'_>, tree: &SetTree, arm: &Query) -> Option<Query> {
        let is_plain = arm.command == Command::Select
            && arm.set_operation.is_none()
            && arm.order_by.is_empty()
            && arm.limit.is_none()
            && arm.offset.is_none()
            && matches!(arm.distinct, Distinct::None)
            && arm.group_by.is_empty()
            && arm.grouping_sets.is_none()
            && arm.having.is_none()
            && !(arm.has_aggregates || arm.has_windows || arm.has_set_returning)
            && arm.locking.is_empty();
        let has_types = arm.output_columns().iter().zip(&tree.columns).all(|(own, wanted)| own.ty == wanted.ty);
        if !is_plain || !has_types {
            return None;
        }
        let mut arm = arm.clone();
        for key in &self.keys {
            let reference = reference_of(planner, &mut arm, key.column, key.collation)?;
            arm.order_by.push(SortGroup { reference, ..key.group.clone() });
        }
        Some(arm)
    }

    pub fn sort_keys(&self, planner: &Planner<'_>, tree: &SetTree, kinds: &[Kind]) -> Vec<SortKey> {
        let key = |key: &UnionKey| {
            let ty = tree.columns[key.column].ty;
            let part = KeyPart::new(planner.catalog(), (ty, key.collation), key.group.descending, key.group.nulls_first);
            (Expression::new(Node::Column(key.column), ty, kinds[key.column]), part)
        };
        self.keys.iter().map(key).collect()
    }
}

/// The number by which ORDER BY names a target; `None` where that has not the order of a collation.
fn reference_of(planner: &Planner<'_>, query: &mut Query, target: usize, collation: Oid) -> Option<u32> {
    let last = query.targets.iter().map(|t| t.reference).max().unwrap_or(0);
    let target = query.targets.get_mut(target)?;
    if !is_same_order(planner.catalog(), target.expr.collation(), collation) {
        return None;
    }
    if target.reference == 0 {
        target.reference = last + 1;
    }
    Some(target.reference)
}

/// A UNION ALL in FROM with the order that the query around it wants, if it wants one of columns of this subquery alone.
pub(super) fn wished_union(planner: &Planner<'_>, query: &Query, entry: usize, order: &[OrderKey]) -> Option<Query> {
    let is_union = query.set_operation.as_ref().is_some_and(|tree| tree.operation == SetOperation::Union && tree.all);
    let is_alone = planner.level().needed.iter().filter(|needed| !needed.is_empty()).count() <= 1;
    let is_plain = query.order_by.is_empty() && query.limit.is_none() && query.offset.is_none();
    if order.is_empty() || !is_union || !is_alone || !is_plain {
        return None;
    }
    let mut wished = query.clone();
    for key in order {
        let Expr::Var(v) = &key.expr else { return None };
        let at = usize::try_from(v.column).ok()?.checked_sub(1).filter(|_| v.entry == entry && v.levels_up == 0)?;
        let reference = reference_of(planner, &mut wished, at, v.collation)?;
        let operators = planner.catalog().type_operators(v.ty);
        wished.order_by.push(SortGroup {
            reference,
            equal: operators.equal,
            sort: if key.descending { operators.greater } else { operators.less },
            descending: key.descending,
            nulls_first: key.nulls_first,
            hashable: false,
            using: false,
        });
    }
    Some(wished)
}

/// The arms of nested unions with the same column types, flattened where the duplicates come out the same.
pub fn union_arms<'t>(tree: &'t SetTree, columns: &[OutputColumn]) -> Vec<&'t SetInput> {
    let mut out = Vec::new();
    for input in [&tree.left, &tree.right] {
        match input {
            // Duplicates that an inner UNION ALL keeps, an outer UNION drops; the other way round nothing is merged.
            SetInput::Tree(inner)
                if inner.operation == SetOperation::Union
                    && (inner.all || !tree.all)
                    && inner.columns.iter().zip(columns).all(|(a, b)| a.ty == b.ty) =>
            {
                out.extend(union_arms(inner, columns));
            }
            input => out.push(input),
        }
    }
    out
}
