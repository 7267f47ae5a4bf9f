//! Select lists: `*`, names of output columns, origins.

use std::sync::Arc;

use melba_types::{Oid, Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::nodes::is_star;
use super::scope::ExprKind;
use super::{coerce, columns, items, missing, nodes, routine_names, subscript};
use melba_tree::*;

/// A select list or RETURNING list.
pub fn target_list<'p>(analyzer: &mut Analyzer<'_, 'p>, list: &'p [pb::Node], kind: ExprKind) -> Result<Vec<Target>> {
    analyzer.with_kind(kind, |a| {
        let mut targets = Vec::with_capacity(list.len());
        for node in list {
            let Some(NodeEnum::ResTarget(item)) = &node.node else { continue };
            let Some(value) = item.val.as_deref() else { continue };
            match &value.node {
                Some(NodeEnum::ColumnRef(c)) if is_star(c.fields.last()) => {
                    let expanded = expand_star(a, c)?;
                    targets.extend(expanded.into_iter().map(|(e, name)| target(e, name)));
                }
                Some(NodeEnum::AIndirection(i)) if is_star(i.indirection.last()) => {
                    let expanded = subscript::expand_indirection_star(a, i)?;
                    targets.extend(expanded.into_iter().map(|(e, name)| target(e, name)));
                }
                _ => {
                    let e = a.expr(value)?;
                    let name = if item.name.is_empty() { target_name(value, &e) } else { item.name.as_str().into() };
                    targets.push(target(e, name));
                }
            }
        }
        const TARGETS_MAX: usize = 1664;
        if targets.len() > TARGETS_MAX {
            return Err(err!(TOO_MANY_COLUMNS, "target lists can have at most {TARGETS_MAX} entries"));
        }
        Ok(targets)
    })
}

fn target_name(node: &pb::Node, e: &Expr) -> Arc<str> {
    // A scalar subquery's column lends its name.
    if let (Some(NodeEnum::SubLink(_)), Expr::Sublink(s)) = (&node.node, e)
        && s.kind == SublinkKind::Expr
        && let Some(t) = s.query.targets.first()
    {
        return t.name.clone();
    }
    figure_name(node)
}

/// `*`, `t.*` and `s.t.*`.
pub fn expand_star<'p>(analyzer: &mut Analyzer<'_, 'p>, c: &'p pb::ColumnRef) -> Result<Vec<(Expr, Arc<str>)>> {
    let names = nodes::strings(&c.fields);
    if names.is_empty() {
        return expand_all(analyzer, c.location);
    }
    let (schema, relation) = match names[..] {
        [relation] => (None, relation),
        [schema, relation] => (Some(schema), relation),
        [database, schema, relation] => {
            analyzer.cx().check_database(database, &names).map_err(|e| e.at(c.location))?;
            (Some(schema), relation)
        }
        _ => {
            let shown = names.join(".");
            return Err(err!(SYNTAX_ERROR, "improper qualified name (too many dotted names): {shown}").at(c.location));
        }
    };
    let Some((up, item)) = items::find_item(analyzer, schema, relation, c.location)? else {
        if let Some(fields) = routine_names::routine_star(analyzer, &names, c.location)?
            .or(routine_names::variable_star(analyzer, &names, c.location)?)
        {
            return Ok(fields);
        }
        return Err(missing::missing_range(analyzer, schema, relation, c.location));
    };
    note_table_read(analyzer, up, item.entry);
    columns::item_vars(analyzer, up, &item, c.location)
}

fn note_table_read(analyzer: &mut Analyzer<'_, '_>, up: usize, entry: usize) {
    analyzer.level_up_mut(up).range_table[entry].required.select = true;
}

fn expand_all(analyzer: &mut Analyzer<'_, '_>, location: i32) -> Result<Vec<(Expr, Arc<str>)>> {
    let items: Vec<_> = analyzer.level().namespace.iter().filter(|i| i.columns_visible && !i.lateral_only).cloned().collect();
    if items.is_empty() {
        return Err(err!(SYNTAX_ERROR, "SELECT * with no tables specified is not valid").at(location));
    }
    let mut all = Vec::new();
    for item in items {
        note_table_read(analyzer, 0, item.entry);
        all.extend(columns::item_vars(analyzer, 0, &item, location)?);
    }
    Ok(all)
}

/// Fills in where output columns come from.
pub fn mark_origins(analyzer: &Analyzer<'_, '_>, targets: &mut [Target]) {
    let table = &analyzer.level().range_table;
    for target in targets {
        if let Expr::Var(v) = &target.expr
            && v.levels_up == 0
        {
            target.origin = origin(analyzer, table, v.entry, v.column);
        }
    }
}

fn origin(analyzer: &Analyzer<'_, '_>, table: &[RangeEntry], entry: usize, column: i16) -> (Oid, i16) {
    if column <= 0 {
        return (Oid::INVALID, 0);
    }
    let index = column as usize - 1;
    match &table[entry].kind {
        RangeKind::Relation { oid, .. } => (*oid, column),
        RangeKind::Subquery { view, .. } if view.is_valid() => (*view, column),
        RangeKind::Subquery { query, .. } => {
            query.output().iter().filter(|t| !t.junk).nth(index).map_or((Oid::INVALID, 0), |t| t.origin)
        }
        RangeKind::Join { merged, .. } => match merged.get(index) {
            Some(Expr::Var(v)) => origin(analyzer, table, v.entry, v.column),
            _ => (Oid::INVALID, 0),
        },
        RangeKind::Cte { name, levels, self_reference: false } => {
            let Some(level) = analyzer.levels().nth(*levels) else { return (Oid::INVALID, 0) };
            let cte = level.ctes.iter().find(|c| c.name == *name);
            let target = cte.and_then(|c| c.query.output().iter().filter(|t| !t.junk).nth(index));
            target.map_or((Oid::INVALID, 0), |t| t.origin)
        }
        _ => (Oid::INVALID, 0),
    }
}

pub fn target(expr: Expr, name: Arc<str>) -> Target {
    Target { expr, name, junk: false, reference: 0, column: 0, origin: (Oid::INVALID, 0) }
}

/// The name an expression suggests for its column, if any.
pub fn suggested_name(node: &pb::Node) -> Option<String> {
    let mut name = None;
    figure(node, &mut name);
    name
}

/// The name an expression suggests for its column, and how strongly (0 not at all).
pub fn figure(node: &pb::Node, name: &mut Option<String>) -> u8 {
    let Some(node) = &node.node else { return 0 };
    let mut set = |text: &str, strength: u8| {
        *name = Some(text.to_owned());
        strength
    };
    match node {
        NodeEnum::ColumnRef(c) => match c.fields.iter().rev().find_map(nodes::string) {
            Some(field) => set(field, 2),
            None => 0,
        },
        NodeEnum::AIndirection(i) => match i.indirection.iter().rev().find_map(nodes::string) {
            Some(field) => set(field, 2),
            None => i.arg.as_deref().map_or(0, |a| figure(a, name)),
        },
        NodeEnum::FuncCall(f) => match f.funcname.iter().rev().find_map(nodes::string) {
            Some(function) => set(function, 2),
            None => 0,
        },
        NodeEnum::AExpr(e) if e.kind == pb::AExprKind::AexprNullif as i32 => set("nullif", 2),
        NodeEnum::TypeCast(c) => {
            let strength = c.arg.as_deref().map_or(0, |a| figure(a, name));
            if strength > 1 {
                return strength;
            }
            let ty = c.type_name.as_ref().and_then(|t| t.names.iter().rev().find_map(nodes::string));
            match ty {
                Some(ty) => {
                    *name = Some(ty.to_owned());
                    1
                }
                None => strength,
            }
        }
        NodeEnum::CollateClause(c) => c.arg.as_deref().map_or(0, |a| figure(a, name)),
        NodeEnum::GroupingFunc(_) => set("grouping", 2),
        NodeEnum::MergeSupportFunc(_) => set("merge_action", 2),
        NodeEnum::SubLink(s) => figure_sublink(s, name),
        NodeEnum::CaseExpr(c) => {
            let strength = c.defresult.as_deref().map_or(0, |d| figure(d, name));
            if strength > 1 {
                return strength;
            }
            *name = Some("case".to_owned());
            1
        }
        NodeEnum::AArrayExpr(_) => set("array", 2),
        NodeEnum::RowExpr(_) => set("row", 2),
        NodeEnum::CoalesceExpr(_) => set("coalesce", 2),
        NodeEnum::MinMaxExpr(m) => set(if m.op == pb::MinMaxOp::IsGreatest as i32 { "greatest" } else { "least" }, 2),
        NodeEnum::SqlvalueFunction(f) => set(sql_value_name(f.op), 2),
        NodeEnum::JsonParseExpr(_) => set("json", 2),
        NodeEnum::JsonScalarExpr(_) => set("json_scalar", 2),
        NodeEnum::JsonSerializeExpr(_) => set("json_serialize", 2),
        NodeEnum::JsonObjectConstructor(_) => set("json_object", 2),
        NodeEnum::JsonArrayConstructor(_) | NodeEnum::JsonArrayQueryConstructor(_) => set("json_array", 2),
        NodeEnum::JsonObjectAgg(_) => set("json_objectagg", 2),
        NodeEnum::JsonArrayAgg(_) => set("json_arrayagg", 2),
        NodeEnum::JsonFuncExpr(f) => match pb::JsonExprOp::try_from(f.op) {
            Ok(pb::JsonExprOp::JsonExistsOp) => set("json_exists", 2),
            Ok(pb::JsonExprOp::JsonQueryOp) => set("json_query", 2),
            Ok(pb::JsonExprOp::JsonValueOp) => set("json_value", 2),
            _ => 0,
        },
        _ => 0,
    }
}

fn figure_sublink(s: &pb::SubLink, name: &mut Option<String>) -> u8 {
    use pb::SubLinkType as T;
    match T::try_from(s.sub_link_type).unwrap_or(T::Undefined) {
        T::ExistsSublink => *name = Some("exists".into()),
        T::ArraySublink => *name = Some("array".into()),
        T::ExprSublink => {
            let select = match s.subselect.as_deref().and_then(|n| n.node.as_ref()) {
                Some(NodeEnum::SelectStmt(select)) => select,
                _ => return 0,
            };
            *name = Some(select_column_name(select));
        }
        _ => return 0,
    }
    2
}

fn select_column_name(select: &pb::SelectStmt) -> String {
    if let Some(left) = &select.larg {
        return select_column_name(left);
    }
    if !select.values_lists.is_empty() {
        return "column1".into();
    }
    let Some(NodeEnum::ResTarget(t)) = select.target_list.first().and_then(|t| t.node.as_ref()) else {
        return "?column?".into();
    };
    if !t.name.is_empty() {
        return t.name.clone();
    }
    let mut name = None;
    if let Some(value) = t.val.as_deref() {
        figure(value, &mut name);
    }
    name.unwrap_or_else(|| "?column?".into())
}

fn sql_value_name(op: i32) -> &'static str {
    use pb::SqlValueFunctionOp as Op;
    match Op::try_from(op).unwrap_or(Op::SqlvalueFunctionOpUndefined) {
        Op::SvfopCurrentDate => "current_date",
        Op::SvfopCurrentTime | Op::SvfopCurrentTimeN => "current_time",
        Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN => "current_timestamp",
        Op::SvfopLocaltime | Op::SvfopLocaltimeN => "localtime",
        Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN => "localtimestamp",
        Op::SvfopCurrentRole => "current_role",
        Op::SvfopCurrentUser => "current_user",
        Op::SvfopUser => "user",
        Op::SvfopSessionUser => "session_user",
        Op::SvfopCurrentCatalog => "current_catalog",
        Op::SvfopCurrentSchema => "current_schema",
        Op::SqlvalueFunctionOpUndefined => "?column?",
    }
}

pub fn resolve_unknown_target(analyzer: &mut Analyzer<'_, '_>, target: &mut Target) -> Result<()> {
    if target.expr.ty() == oids::UNKNOWN {
        let e = std::mem::replace(&mut target.expr, Expr::MergeAction);
        target.expr = coerce::resolve_unknown(analyzer, e)?;
    }
    Ok(())
}

/// The name that an expression without AS gets in a select list.
pub fn figure_name(node: &pb::Node) -> Arc<str> {
    let mut name = None;
    super::targets::figure(node, &mut name);
    name.map_or_else(|| "?column?".into(), Into::into)
}

/// Literals without a type are text.
pub fn resolve_unknown_targets(analyzer: &mut Analyzer<'_, '_>, targets: &mut [Target]) -> Result<()> {
    for target in targets {
        if target.expr.ty() == melba_types::oids::UNKNOWN {
            let e = std::mem::replace(&mut target.expr, Expr::MergeAction);
            target.expr = coerce::resolve_unknown(analyzer, e)?;
        }
    }
    Ok(())
}
