//! ORDER BY, GROUP BY with its grouping sets, DISTINCT.

use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::operators::OperatorName;
use super::scope::ExprKind;
use super::{Analyzer, nodes};
use melba_tree::*;

/// How an ORDER BY item compares.
#[derive(Clone, Copy, Debug, Default)]
pub struct SortKey {
    pub equal: Oid,
    pub sort: Oid,
    pub descending: bool,
    pub nulls_first: bool,
    pub hashable: bool,
    pub using: bool,
}

impl SortKey {
    fn into_group(self, reference: u32) -> SortGroup {
        SortGroup {
            reference,
            equal: self.equal,
            sort: self.sort,
            descending: self.descending,
            nulls_first: self.nulls_first,
            hashable: self.hashable,
            using: self.using,
        }
    }
}

/// The parts of GROUP BY.
#[derive(Default)]
pub struct GroupClause {
    pub groups: Vec<SortGroup>,
    pub sets: Option<Vec<Vec<usize>>>,
    pub text: Option<Vec<GroupingNode>>,
}

const SETS_MAX: usize = 4096;

impl<'p> Analyzer<'_, 'p> {
    /// The operators that order a type as an ORDER BY item says.
    pub fn sort_key(&self, ty: Oid, sort: &pb::SortBy, location: i32) -> Result<SortKey> {
        let ty = if ty == oids::UNKNOWN { oids::TEXT } else { ty };
        let operators = self.type_operators(ty);
        let mut key = SortKey { equal: operators.equal, ..SortKey::default() };
        match pb::SortByDir::try_from(sort.sortby_dir).unwrap_or(pb::SortByDir::SortbyDefault) {
            pb::SortByDir::SortbyDesc => {
                key.sort = operators.greater;
                key.descending = true;
            }
            pb::SortByDir::SortbyUsing => {
                let name = OperatorName::from_nodes(&sort.use_op);
                let operator = self.cx.binary_operator(name, ty, ty, sort.location)?;
                let invalid = || {
                    err!(WRONG_OBJECT_TYPE, "operator {} is not a valid ordering operator", name.name)
                        .hint("Ordering operators must be \"<\" or \">\" members of btree operator families.")
                        .at(sort.location)
                };
                let (family, strategy) = self.cx.catalog.btree_strategy(operator.oid).ok_or_else(invalid)?;
                if strategy != 1 && strategy != 5 {
                    return Err(invalid());
                }
                key.sort = operator.oid;
                key.descending = strategy == 5;
                key.using = true;
                let access = self.cx.catalog.access_methods();
                key.equal = access.operator(family, operator.left, operator.right, 3).unwrap_or(key.equal);
            }
            _ => key.sort = operators.less,
        }
        if !key.sort.is_valid() {
            let name = self.cx.type_name(ty);
            return Err(err!(UNDEFINED_FUNCTION, "could not identify an ordering operator for type {name}")
                .hint("Use an explicit ordering operator or modify the query.")
                .at(location));
        }
        key.hashable = operators.hash.is_valid();
        key.nulls_first = match pb::SortByNulls::try_from(sort.sortby_nulls) {
            Ok(pb::SortByNulls::SortbyNullsFirst) => true,
            Ok(pb::SortByNulls::SortbyNullsLast) => false,
            _ => key.descending,
        };
        Ok(key)
    }

    /// The operators of a type; arrays have them when their elements do.
    pub fn type_operators(&self, ty: Oid) -> melba_catalog::TypeOperators {
        let own = self.cx.catalog.type_operators(ty);
        if own.input_type == oids::ANYARRAY
            && let Some(element) = self.cx.catalog.array_element(ty)
        {
            let inner = self.type_operators(element);
            let mut own = own;
            if !inner.less.is_valid() {
                (own.less, own.greater) = (Oid::INVALID, Oid::INVALID);
            }
            if !inner.equal.is_valid() {
                own.equal = Oid::INVALID;
            }
            if !inner.hash.is_valid() {
                own.hash = Oid::INVALID;
            }
            return own;
        }
        if own.input_type == oids::RECORD
            && let Some(relation) = self.cx.row_relation(ty)
        {
            let mut own = own;
            for column in relation.columns.iter().filter(|c| !c.dropped) {
                let inner = self.type_operators(column.ty);
                if !inner.less.is_valid() {
                    (own.less, own.greater) = (Oid::INVALID, Oid::INVALID);
                }
                if !inner.equal.is_valid() {
                    own.equal = Oid::INVALID;
                }
                if !inner.hash.is_valid() {
                    own.hash = Oid::INVALID;
                }
            }
            return own;
        }
        own
    }

    /// Equality (and if there is one the order) of a type, for grouping.
    pub fn group_key(&self, ty: Oid, location: i32) -> Result<SortKey> {
        let ty = if ty == oids::UNKNOWN { oids::TEXT } else { ty };
        let operators = self.type_operators(ty);
        if !operators.equal.is_valid() {
            let name = self.cx.type_name(ty);
            return Err(err!(UNDEFINED_FUNCTION, "could not identify an equality operator for type {name}").at(location));
        }
        Ok(SortKey { equal: operators.equal, sort: operators.less, hashable: operators.hash.is_valid(), ..SortKey::default() })
    }

    /// The target of an ORDER BY, GROUP BY or DISTINCT ON item, by the rules of SQL-92 (names and positions of output columns) or
    /// else of SQL-99 (any expression); new expressions become junk targets.
    fn find_target(&mut self, node: &'p pb::Node, targets: &mut Vec<Target>, kind: ExprKind) -> Result<usize> {
        match &node.node {
            Some(NodeEnum::ColumnRef(c)) if c.fields.len() == 1 => {
                let name = c.fields.first().and_then(nodes::string);
                if let Some(name) = name
                    && let Some(found) = self.find_target_by_name(name, c.location, targets, kind)?
                {
                    return Ok(found);
                }
            }
            Some(NodeEnum::AConst(c)) => {
                let clause = kind.name();
                let Some(pb::a_const::Val::Ival(position)) = c.val.as_ref().filter(|_| !c.isnull) else {
                    return Err(err!(SYNTAX_ERROR, "non-integer constant in {clause}").at(c.location));
                };
                let visible = targets.iter().enumerate().filter(|(_, t)| !t.junk);
                let place = (position.ival as usize).checked_sub(1).filter(|_| position.ival > 0);
                let found = place.and_then(|p| visible.map(|(i, _)| i).nth(p));
                return found.ok_or_else(|| {
                    err!(INVALID_COLUMN_REFERENCE, "{clause} position {} is not in select list", position.ival).at(c.location)
                });
            }
            _ => {}
        }
        self.find_target_by_expression(node, targets, kind)
    }

    fn find_target_by_name(&mut self, name: &str, location: i32, targets: &[Target], kind: ExprKind) -> Result<Option<usize>> {
        if kind == ExprKind::GroupBy {
            // A column of FROM takes precedence over an output column.
            let saved = self.levels.len();
            let levels = std::mem::take(&mut self.levels);
            let (outer, own) = split_last(levels, saved);
            self.levels = own;
            let found = self.find_column(name, location);
            let own = std::mem::replace(&mut self.levels, outer);
            self.levels.extend(own);
            if found?.is_some() {
                return Ok(None);
            }
        }
        let mut found: Option<usize> = None;
        for (i, target) in targets.iter().enumerate().filter(|(_, t)| !t.junk && &*t.name == name) {
            match found {
                Some(f) if !equal(&targets[f].expr, &target.expr) => {
                    let clause = kind.name();
                    return Err(err!(AMBIGUOUS_COLUMN, "{clause} \"{name}\" is ambiguous").at(location));
                }
                Some(_) => {}
                None => found = Some(i),
            }
        }
        Ok(found)
    }

    fn find_target_by_expression(&mut self, node: &'p pb::Node, targets: &mut Vec<Target>, kind: ExprKind) -> Result<usize> {
        let expr = self.expression(node, kind)?;
        // Equal literals are different parameters, so that the intended target would not be found.
        if expr.any(&mut |e| matches!(e, Expr::Param(_))) {
            self.literals.refuse();
        }
        let same = |t: &Target| equal(&expr, &t.expr) || equal(&expr, strip_implicit(&t.expr));
        if let Some(found) = targets.iter().position(same) {
            return Ok(found);
        }
        let name = self.figure_name(node);
        targets.push(Target { expr, name, junk: true, reference: 0, column: 0, origin: (Oid::INVALID, 0) });
        Ok(targets.len() - 1)
    }

    fn target_reference(&mut self, target: &mut Target) -> u32 {
        if target.reference == 0 {
            target.reference = self.new_reference();
        }
        target.reference
    }

    fn resolve_unknown_target(&mut self, target: &mut Target) -> Result<()> {
        if target.expr.ty() == oids::UNKNOWN {
            let e = std::mem::replace(&mut target.expr, Expr::MergeAction);
            target.expr = self.resolve_unknown(e)?;
        }
        Ok(())
    }

    pub fn sort_list(&mut self, list: &'p [pb::Node], targets: &mut Vec<Target>, kind: ExprKind) -> Result<Vec<SortGroup>> {
        let mut out: Vec<SortGroup> = Vec::with_capacity(list.len());
        for item in list {
            let Some(NodeEnum::SortBy(sort)) = &item.node else { continue };
            let node = sort.node.as_deref().ok_or_else(|| DbError::internal("ORDER BY without an expression"))?;
            let i = if kind == ExprKind::WindowOrder {
                self.find_target_by_expression(node, targets, kind)?
            } else {
                self.find_target(node, targets, kind)?
            };
            self.resolve_unknown_target(&mut targets[i])?;
            let key = self.sort_key(targets[i].expr.ty(), sort, nodes::location(node))?;
            let reference = self.target_reference(&mut targets[i]);
            if !out.iter().any(|o| o.reference == reference) {
                out.push(key.into_group(reference));
            }
        }
        Ok(out)
    }

    /// PARTITION BY: expressions only.
    pub fn group_list(&mut self, list: &'p [pb::Node], targets: &mut Vec<Target>, kind: ExprKind) -> Result<Vec<SortGroup>> {
        let mut groups = Vec::new();
        for node in list {
            self.group_item(node, targets, kind, &[], &mut groups)?;
        }
        Ok(groups)
    }

    /// Adds one grouping expression; returns its index in `groups`.
    fn group_item(
        &mut self,
        node: &'p pb::Node,
        targets: &mut Vec<Target>,
        kind: ExprKind,
        order_by: &[SortGroup],
        groups: &mut Vec<SortGroup>,
    ) -> Result<usize> {
        let i = if kind == ExprKind::WindowPartition {
            self.find_target_by_expression(node, targets, kind)?
        } else {
            self.find_target(node, targets, kind)?
        };
        if targets[i].reference != 0
            && let Some(found) = groups.iter().position(|g| g.reference == targets[i].reference)
        {
            return Ok(found);
        }
        self.resolve_unknown_target(&mut targets[i])?;
        let location = nodes::location(node);
        let reference = self.target_reference(&mut targets[i]);
        let group = match order_by.iter().find(|o| o.reference == reference) {
            Some(order) => order.clone(),
            None => self.group_key(targets[i].expr.ty(), location)?.into_group(reference),
        };
        groups.push(group);
        Ok(groups.len() - 1)
    }

    pub fn group_clause(
        &mut self,
        list: &'p [pb::Node],
        targets: &mut Vec<Target>,
        order_by: &[SortGroup],
    ) -> Result<GroupClause> {
        let mut clause = GroupClause::default();
        if list.is_empty() {
            return Ok(clause);
        }
        let mut tree = Vec::with_capacity(list.len());
        for node in list {
            tree.push(self.grouping_node(node, targets, order_by, &mut clause.groups, true)?);
        }
        let plain = tree.iter().all(|n| matches!(n, GroupingNode::Simple(_)));
        if !plain {
            let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
            for node in &tree {
                sets = cross(&sets, &expand(node)?)?;
            }
            clause.sets = Some(sets);
            clause.text = Some(tree);
        }
        Ok(clause)
    }

    fn grouping_node(
        &mut self,
        node: &'p pb::Node,
        targets: &mut Vec<Target>,
        order_by: &[SortGroup],
        groups: &mut Vec<SortGroup>,
        top: bool,
    ) -> Result<GroupingNode> {
        use pb::GroupingSetKind as K;
        if let Some(NodeEnum::RowExpr(row)) = &node.node
            && row.row_format == pb::CoercionForm::CoerceImplicitCast as i32
        {
            // Rows within it are no values either.
            let mut all = Vec::with_capacity(row.args.len());
            for arg in &row.args {
                all.extend(members(&self.grouping_node(arg, targets, order_by, groups, false)?));
            }
            return Ok(GroupingNode::Simple(all));
        }
        let Some(NodeEnum::GroupingSet(set)) = &node.node else {
            let i = self.group_item(node, targets, ExprKind::GroupBy, order_by, groups)?;
            return Ok(GroupingNode::Simple(vec![i]));
        };
        let mut content = Vec::with_capacity(set.content.len());
        for item in &set.content {
            content.push(self.grouping_node(item, targets, order_by, groups, false)?);
        }
        const CUBE_MAX: usize = 12;
        Ok(match K::try_from(set.kind).unwrap_or(K::Undefined) {
            K::GroupingSetRollup => GroupingNode::Rollup(content),
            K::GroupingSetCube => {
                if content.len() > CUBE_MAX {
                    return Err(err!(TOO_MANY_COLUMNS, "CUBE is limited to {CUBE_MAX} elements").at(set.location));
                }
                GroupingNode::Cube(content)
            }
            K::GroupingSetSets => GroupingNode::Sets(content),
            K::GroupingSetSimple => {
                let mut all = Vec::new();
                for node in content {
                    if let GroupingNode::Simple(s) = node {
                        all.extend(s);
                    }
                }
                GroupingNode::Simple(all)
            }
            _ => {
                let _ = top;
                GroupingNode::Empty
            }
        })
    }

    pub fn distinct_clause(
        &mut self,
        list: &'p [pb::Node],
        targets: &mut Vec<Target>,
        order_by: &[SortGroup],
    ) -> Result<Distinct> {
        let all = match list {
            [] => return Ok(Distinct::None),
            [one] => one.node.is_none() || matches!(&one.node, Some(NodeEnum::List(l)) if l.items.is_empty()),
            _ => false,
        };
        if all { self.distinct_all(targets, order_by).map(Distinct::All) } else { self.distinct_on(list, targets, order_by) }
    }

    fn distinct_all(&mut self, targets: &mut [Target], order_by: &[SortGroup]) -> Result<Vec<SortGroup>> {
        let mut keys: Vec<SortGroup> = Vec::new();
        for order in order_by {
            if let Some(target) = targets.iter().find(|t| t.reference == order.reference)
                && target.junk
            {
                return Err(err!(
                    INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
                )
                .at(target.expr.location()));
            }
            keys.push(order.clone());
        }
        for target in targets.iter_mut().filter(|t| !t.junk) {
            self.resolve_unknown_target(target)?;
            let reference = self.target_reference(target);
            if keys.iter().any(|k| k.reference == reference) {
                continue;
            }
            let key = self.group_key(target.expr.ty(), target.expr.location())?;
            keys.push(key.into_group(reference));
        }
        if keys.is_empty() {
            return Err(err!(SYNTAX_ERROR, "SELECT DISTINCT must have at least one column"));
        }
        Ok(keys)
    }

    fn distinct_on(&mut self, list: &'p [pb::Node], targets: &mut Vec<Target>, order_by: &[SortGroup]) -> Result<Distinct> {
        let mut wanted: Vec<(u32, usize, i32)> = Vec::with_capacity(list.len());
        for node in list {
            let i = self.find_target(node, targets, ExprKind::DistinctOn)?;
            self.resolve_unknown_target(&mut targets[i])?;
            let reference = self.target_reference(&mut targets[i]);
            if !wanted.iter().any(|w| w.0 == reference) {
                wanted.push((reference, i, nodes::location(node)));
            }
        }
        let mut keys: Vec<SortGroup> = Vec::new();
        let mut skipped = false;
        let mismatch = |location: i32| {
            err!(INVALID_COLUMN_REFERENCE, "SELECT DISTINCT ON expressions must match initial ORDER BY expressions").at(location)
        };
        for order in order_by {
            match wanted.iter().find(|w| w.0 == order.reference) {
                Some(w) if skipped => return Err(mismatch(w.2)),
                Some(_) => keys.push(order.clone()),
                None => skipped = true,
            }
        }
        for (reference, i, location) in wanted {
            if keys.iter().any(|k| k.reference == reference) {
                continue;
            }
            if skipped {
                return Err(mismatch(location));
            }
            let key = self.group_key(targets[i].expr.ty(), location)?;
            keys.push(key.into_group(reference));
        }
        Ok(Distinct::On(keys))
    }
}

/// The innermost level apart from the others.
fn split_last<T>(mut levels: Vec<T>, count: usize) -> (Vec<T>, Vec<T>) {
    let own = levels.split_off(count - 1);
    (levels, own)
}

/// The expression under implicit casts at its top.
pub fn strip_implicit(e: &Expr) -> &Expr {
    match e {
        Expr::Function(f) if f.form == CoercionForm::ImplicitCast => f.args.first().map_or(e, strip_implicit),
        Expr::Relabel { arg, form, .. }
        | Expr::CoerceViaIo { arg, form, .. }
        | Expr::ArrayCoerce { arg, form, .. }
        | Expr::ConvertRowtype { arg, form, .. }
        | Expr::CoerceToDomain { arg, form, .. }
            if *form == CoercionForm::ImplicitCast =>
        {
            strip_implicit(arg)
        }
        _ => e,
    }
}

/// The grouping sets that a node stands for.
fn expand(node: &GroupingNode) -> Result<Vec<Vec<usize>>> {
    Ok(match node {
        GroupingNode::Empty => vec![Vec::new()],
        GroupingNode::Simple(all) => vec![all.clone()],
        GroupingNode::Rollup(content) => {
            let simple: Vec<Vec<usize>> = content.iter().map(members).collect();
            (0..=simple.len()).rev().map(|n| union(&simple[..n])).collect()
        }
        GroupingNode::Cube(content) => {
            let simple: Vec<Vec<usize>> = content.iter().map(members).collect();
            let all = 1usize << simple.len();
            let pick = |bits: usize| {
                let chosen: Vec<Vec<usize>> =
                    simple.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0).map(|(_, s)| s.clone()).collect();
                union(&chosen)
            };
            (0..all).rev().map(pick).collect()
        }
        GroupingNode::Sets(content) => {
            let mut sets = Vec::new();
            for node in content {
                sets.extend(expand(node)?);
                if sets.len() > SETS_MAX {
                    return Err(too_many_sets());
                }
            }
            sets
        }
    })
}

fn too_many_sets() -> DbError {
    err!(STATEMENT_TOO_COMPLEX, "too many grouping sets present (maximum {SETS_MAX})")
}

fn members(node: &GroupingNode) -> Vec<usize> {
    match node {
        GroupingNode::Simple(all) => all.clone(),
        _ => Vec::new(),
    }
}

fn union(parts: &[Vec<usize>]) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    for i in parts.iter().flatten() {
        if !out.contains(i) {
            out.push(*i);
        }
    }
    out
}

fn cross(left: &[Vec<usize>], right: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
    if left.len() * right.len() > SETS_MAX {
        return Err(too_many_sets());
    }
    Ok(left.iter().flat_map(|l| right.iter().map(|r| union(&[l.clone(), r.clone()]))).collect())
}
