//! JOIN: ON, USING, NATURAL, merged columns.

use std::sync::Arc;

use melba_types::{DbError, Oid, Result, err};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::operators::OperatorName;
use super::range_columns::apply_aliases;
use super::scope::{ExprKind, FromResult, NsColumn, NsItem, set_lateral};
use super::{coerce, items, nodes, operators};
use melba_tree::*;

/// A side's columns: names and where they come from.
struct SideColumns {
    names: Vec<Arc<str>>,
    columns: Vec<NsColumn>,
    used: Vec<bool>,
}

pub fn join_item<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JoinExpr) -> Result<FromResult> {
    let kind = match pb::JoinType::try_from(n.jointype) {
        Ok(pb::JoinType::JoinInner) => JoinKind::Inner,
        Ok(pb::JoinType::JoinLeft) => JoinKind::Left,
        Ok(pb::JoinType::JoinFull) => JoinKind::Full,
        Ok(pb::JoinType::JoinRight) => JoinKind::Right,
        _ => return Err(DbError::internal("unrecognized join type")),
    };
    let (Some(left), Some(right)) = (n.larg.as_deref(), n.rarg.as_deref()) else {
        return Err(DbError::internal("join without operands"));
    };
    let mut l = analyzer.from_item(left)?;
    set_lateral(&mut l.namespace, true, matches!(kind, JoinKind::Inner | JoinKind::Left));
    let depth = analyzer.level().namespace.len();
    analyzer.level_mut().namespace.extend(l.namespace.iter().cloned());
    let r = analyzer.from_item(right);
    analyzer.level_mut().namespace.truncate(depth);
    let r = r?;
    items::check_name_conflicts(analyzer, &l.namespace, &r.namespace)?;

    let mut left_columns = side_columns(analyzer, &l.own);
    let mut right_columns = side_columns(analyzer, &r.own);
    let using: Vec<Arc<str>> = if n.is_natural {
        natural_columns(&left_columns, &right_columns)
    } else {
        nodes::strings(&n.using_clause).into_iter().map(Into::into).collect()
    };
    let mut namespace = l.namespace;
    namespace.extend(r.namespace);
    let (merged, mut condition) = using_columns(analyzer, &using, kind, &mut left_columns, &mut right_columns)?;
    if n.quals.is_some() {
        condition = join_condition(analyzer, n, &mut namespace)?;
    }
    finish_join(analyzer, n, kind, l.item, r.item, using, merged, condition, left_columns, right_columns, namespace)
}

fn side_columns(analyzer: &Analyzer<'_, '_>, item: &NsItem) -> SideColumns {
    let entry = &analyzer.level().range_table[item.entry];
    let mut side = SideColumns { names: Vec::new(), columns: Vec::new(), used: Vec::new() };
    for (i, c) in entry.columns.iter().enumerate() {
        if !c.ty.is_valid() {
            continue;
        }
        let column = match &item.columns {
            Some(columns) => columns[i].clone(),
            None => NsColumn {
                entry: item.entry,
                column: i as i16 + 1,
                ty: c.ty,
                typmod: c.typmod,
                collation: c.collation,
                merged_away: false,
            },
        };
        side.names.push(c.name.clone());
        side.columns.push(column);
        side.used.push(false);
    }
    side
}

fn join_condition<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JoinExpr, namespace: &mut [NsItem]) -> Result<Option<Expr>> {
    set_lateral(namespace, false, true);
    let saved = std::mem::replace(&mut analyzer.level_mut().namespace, namespace.to_vec());
    let result = analyzer.condition(&n.quals, ExprKind::JoinOn, "JOIN/ON");
    analyzer.level_mut().namespace = saved;
    result
}

/// The merged columns of USING and the condition they make.
fn using_columns(
    analyzer: &mut Analyzer<'_, '_>,
    using: &[Arc<str>],
    kind: JoinKind,
    left: &mut SideColumns,
    right: &mut SideColumns,
) -> Result<(Vec<Expr>, Option<Expr>)> {
    let mut pairs = Vec::with_capacity(using.len());
    for (i, name) in using.iter().enumerate() {
        if using[..i].contains(name) {
            return Err(err!(DUPLICATE_COLUMN, "column name \"{name}\" appears more than once in USING clause"));
        }
        let l = find_using(left, name, "left")?;
        let r = find_using(right, name, "right")?;
        left.used[l] = true;
        right.used[r] = true;
        pairs.push((side_var(analyzer, &left.columns[l])?, side_var(analyzer, &right.columns[r])?));
    }
    let mut conditions = Vec::with_capacity(using.len());
    // All names are found before the first operator is, and all operators before the first common type: errors come in
    // PostgreSQL's order.
    for (l, r) in &pairs {
        let equality = operators::make_operator(analyzer, OperatorName::plain("="), Some(l.clone()), r.clone(), -1)?;
        conditions.push(coerce::to_boolean(analyzer, equality, "JOIN/USING")?);
    }
    let merged = pairs.into_iter().map(|(l, r)| merge_columns(analyzer, kind, l, r)).collect::<Result<Vec<_>>>()?;
    let condition = match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(Expr::And(conditions)),
    };
    Ok((merged, condition))
}

fn side_var(analyzer: &mut Analyzer<'_, '_>, c: &NsColumn) -> Result<Expr> {
    super::scope::note_selected(&mut analyzer.level_mut().range_table[c.entry], c.column);
    Ok(plain_var(c))
}

fn merge_columns(analyzer: &mut Analyzer<'_, '_>, kind: JoinKind, l: Expr, r: Expr) -> Result<Expr> {
    let ty = coerce::select_common_type(analyzer.cx(), &[&l, &r], "JOIN/USING")?;
    let typmod = if l.ty() == ty && r.ty() == ty && l.typmod() == r.typmod() { l.typmod() } else { -1 };
    let coerce = |a: &mut Analyzer<'_, '_>, e: Expr| -> Result<Expr> {
        if e.ty() != ty {
            return coerce::to_common(a, e, ty, "JOIN/USING");
        }
        if e.typmod() != typmod {
            return Ok(super::coerce::relabel(e, ty, typmod, CoercionForm::ImplicitCast));
        }
        Ok(e)
    };
    let l = coerce(analyzer, l)?;
    let r = coerce(analyzer, r)?;
    let mut chosen = match kind {
        JoinKind::Inner => {
            if !matches!(l, Expr::Var(_)) && matches!(r, Expr::Var(_)) {
                r
            } else {
                l
            }
        }
        JoinKind::Left => l,
        JoinKind::Right => r,
        JoinKind::Full => Expr::Coalesce { args: vec![l, r], ty, collation: Oid::INVALID, location: -1 },
    };
    super::collate::assign(analyzer.cx(), &mut chosen)?;
    Ok(chosen)
}

#[allow(clippy::too_many_arguments)]
fn finish_join<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    n: &'p pb::JoinExpr,
    kind: JoinKind,
    left: FromItem,
    right: FromItem,
    using: Vec<Arc<str>>,
    merged: Vec<Expr>,
    condition: Option<Expr>,
    left_columns: SideColumns,
    right_columns: SideColumns,
    mut namespace: Vec<NsItem>,
) -> Result<FromResult> {
    let entry = analyzer.level().range_table.len();
    let using_columns = merged.len();
    let mut columns = Vec::new();
    let mut ns_columns = Vec::new();
    let mut expressions = merged;
    for (i, (e, name)) in expressions.iter().zip(&using).enumerate() {
        columns.push(OutputColumn { name: name.clone(), ty: e.ty(), typmod: e.typmod(), collation: e.collation() });
        ns_columns.push(match e {
            Expr::Var(v) => ns_column(v.entry, v.column, e),
            _ => ns_column(entry, i as i16 + 1, e),
        });
    }
    for side in [left_columns, right_columns] {
        let rest = side.names.into_iter().zip(side.columns).zip(side.used).filter(|(_, used)| !used);
        for ((name, column), _) in rest {
            let var = plain_var(&column);
            columns.push(OutputColumn { name, ty: column.ty, typmod: column.typmod, collation: column.collation });
            ns_columns.push(column);
            expressions.push(var);
        }
    }
    let alias: Option<Arc<str>> = n.alias.as_ref().map(|a| a.aliasname.as_str().into());
    if alias.is_some() {
        ns_columns = own_columns(entry, &expressions);
    }
    let name = alias.clone().unwrap_or_else(|| "unnamed_join".into());
    let using_names: Vec<OutputColumn> = columns[..using_columns].to_vec();
    if let Some(a) = &n.alias {
        apply_aliases(&mut columns, &a.colnames, &name)?;
    }
    let using_alias: Option<Arc<str>> = n.join_using_alias.as_ref().map(|a| a.aliasname.as_str().into());
    analyzer.add_entry(RangeEntry {
        kind: RangeKind::Join { kind, merged: expressions, using_columns, using_alias: using_alias.clone() },
        alias: alias.clone(),
        name: name.clone(),
        columns,
        ..RangeEntry::default()
    });
    let ns_columns: Arc<[NsColumn]> = ns_columns.into();
    if let Some(using_alias) = using_alias {
        let item = using_alias_item(using_alias, entry, &using_names, &ns_columns);
        items::check_name_conflicts(analyzer, &namespace, std::slice::from_ref(&item))?;
        namespace.push(item);
    }
    // An alias of the whole join hides the names in it, that of USING too.
    if alias.is_some() {
        namespace.clear();
    } else {
        namespace.iter_mut().for_each(|i| i.columns_visible = false);
    }
    let mut own = NsItem::new(entry, name);
    own.columns = Some(ns_columns);
    own.relation_visible = alias.is_some();
    namespace.push(own.clone());
    let join = Join { kind, left, right, condition, using, natural: n.is_natural, alias, entry };
    Ok(FromResult { item: FromItem::Join(Box::new(join)), own, namespace })
}

/// `JOIN ... USING (...) AS x`: x has the merged columns only.
fn using_alias_item(name: Arc<str>, entry: usize, columns: &[OutputColumn], ns_columns: &Arc<[NsColumn]>) -> NsItem {
    let mut item = NsItem::new(entry, name);
    item.columns = Some(ns_columns.clone());
    item.visible_columns = Some(columns.len());
    item.columns_visible = false;
    item
}

fn plain_var(c: &NsColumn) -> Expr {
    Expr::Var(Var::new(c.entry, c.column, c.ty, c.typmod, c.collation))
}

/// The columns of a join with an alias: they are qualified by it, also in a view's text.
fn own_columns(entry: usize, expressions: &[Expr]) -> Vec<NsColumn> {
    expressions.iter().enumerate().map(|(i, e)| ns_column(entry, i as i16 + 1, e)).collect()
}

fn ns_column(entry: usize, column: i16, e: &Expr) -> NsColumn {
    NsColumn { entry, column, ty: e.ty(), typmod: e.typmod(), collation: e.collation(), merged_away: false }
}

fn natural_columns(left: &SideColumns, right: &SideColumns) -> Vec<Arc<str>> {
    left.names.iter().filter(|n| right.names.contains(n)).cloned().collect()
}

fn find_using(side: &SideColumns, name: &Arc<str>, which: &str) -> Result<usize> {
    let mut found = side.names.iter().enumerate().filter(|(_, n)| *n == name).map(|(i, _)| i);
    match (found.next(), found.next()) {
        (Some(i), None) => Ok(i),
        (Some(_), Some(_)) => {
            Err(err!(AMBIGUOUS_COLUMN, "common column name \"{name}\" appears more than once in {which} table"))
        }
        _ => Err(err!(UNDEFINED_COLUMN, "column \"{name}\" specified in USING clause does not exist in {which} table")),
    }
}
