//! Functions in FROM: ROWS FROM, WITH ORDINALITY, column definition lists.

use std::sync::Arc;

use melba_fmgr::{RowColumn, files};
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::context::Context;
use super::range_columns::apply_aliases;
use super::scope::{ExprKind, NsItem};
use super::{nodes, out_arguments, targets};
use melba_tree::*;

pub fn function_item<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::RangeFunction) -> Result<NsItem> {
    let saved = std::mem::replace(&mut analyzer.level_mut().lateral_active, true);
    let result = range_functions(analyzer, n);
    analyzer.level_mut().lateral_active = saved;
    let (functions, names) = result?;
    let alias = n.alias.as_ref();
    let name: Arc<str> = match alias {
        Some(a) => a.aliasname.as_str().into(),
        None => names.first().cloned().unwrap_or_else(|| "?column?".into()),
    };
    let mut columns: Vec<OutputColumn> = functions.iter().flat_map(|f| f.columns.clone()).collect();
    if n.ordinality {
        columns.push(OutputColumn { name: "ordinality".into(), ty: oids::INT8, typmod: -1, collation: Oid::INVALID });
    }
    if let Some(a) = alias {
        // A lone scalar function's column is called by the alias.
        if functions.len() == 1
            && functions[0].columns.len() == 1
            && a.colnames.is_empty()
            && is_scalar(analyzer.cx(), &functions[0])
        {
            columns[0].name = name.clone();
        }
        apply_aliases(&mut columns, &a.colnames, &name)?;
    }
    let lateral = n.lateral || functions.iter().any(|f| f.expr.has_vars());
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Function { functions, ordinality: n.ordinality },
        alias: alias.map(|_| name.clone()),
        name: name.clone(),
        columns,
        lateral,
        in_from: true,
        required: Privileges::default(),
        security: Vec::new(),
    });
    Ok(NsItem::new(entry, name))
}

/// Whether the function returns a plain value rather than a row.
fn is_scalar(cx: &Context<'_>, f: &RangeFunction) -> bool {
    let ty = f.expr.ty();
    !f.column_definitions && ty != oids::RECORD && !cx.is_complex(ty) && {
        match &f.expr {
            // A single OUT argument has a name.
            Expr::Function(call) => out_name(cx, call).is_none(),
            _ => true,
        }
    }
}

fn range_functions<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::RangeFunction) -> Result<(Vec<RangeFunction>, Vec<Arc<str>>)> {
    let mut functions = Vec::new();
    let mut names = Vec::new();
    for pair in &n.functions {
        let items = nodes::list(pair);
        let Some(call) = items.first() else { continue };
        let definitions: &'p [pb::Node] = items.get(1).map_or(&[], |d| match &d.node {
            Some(NodeEnum::List(l)) => &l.items,
            _ => &[],
        });
        // unnest with several arrays unnests them side by side.
        if let Some(NodeEnum::FuncCall(f)) = &call.node
            && f.args.len() > 1
            && definitions.is_empty()
            && n.coldeflist.is_empty()
            && nodes::dotted(&f.funcname) == "unnest"
            && f.agg_order.is_empty()
            && f.agg_filter.is_none()
            && f.over.is_none()
            && !f.agg_star
            && !f.agg_distinct
            && !f.func_variadic
        {
            for arg in &f.args {
                let e = unnest_one(analyzer, f, arg)?;
                let (function, name) = finish_range_function(analyzer.cx(), e, &[], "unnest".into())?;
                functions.push(function);
                names.push(name);
            }
            continue;
        }
        let srf_before = analyzer.level().last_srf;
        let e = analyzer.expression(call, ExprKind::FromFunction)?;
        let last = analyzer.level().last_srf;
        let top_is_srf = matches!(&e, Expr::Function(f) if f.returns_set && f.location == last);
        if last != srf_before && !top_is_srf {
            return Err(err!(FEATURE_NOT_SUPPORTED, "set-returning functions must appear at top level of FROM").at(last));
        }
        let definitions = if definitions.is_empty() { &n.coldeflist[..] } else { definitions };
        if !n.coldeflist.is_empty() && (n.functions.len() > 1 || n.ordinality) {
            return Err(misplaced_definitions(n, call));
        }
        let name = targets::figure_name(call);
        if definitions.is_empty()
            && let Some(columns) = file_columns(analyzer.cx(), &e)?
        {
            functions.push(RangeFunction { expr: e, columns, column_definitions: true });
            names.push(name);
            continue;
        }
        let (function, name) = finish_range_function(analyzer.cx(), e, definitions, name)?;
        functions.push(function);
        names.push(name);
    }
    for f in &mut functions {
        super::collate::assign(analyzer.cx(), &mut f.expr)?;
    }
    Ok((functions, names))
}

/// The columns of the files that a function reads; `None` for other functions.
fn file_columns(cx: &Context<'_>, e: &Expr) -> Result<Option<Vec<OutputColumn>>> {
    let Expr::Function(call) = e else { return Ok(None) };
    let function = cx.function(call.function)?;
    if !files::reads_files(function) {
        return Ok(None);
    }
    let source = &function.source;
    let constant = |arg: &Expr| match arg {
        Expr::Const(c) => Ok(c.value.clone()),
        other => Err(err!(FEATURE_NOT_SUPPORTED, "the name of a file and its options must be constants")
            .hint("A column definition list, AS t(a integer, b text), lets them be any expressions.")
            .at(other.location())),
    };
    let args = call.args.iter().map(constant).collect::<Result<Vec<_>>>()?;
    let columns = cx.session.file_columns(source, &args).map_err(|e| e.at(call.location))?;
    let described =
        |c: RowColumn| OutputColumn { collation: cx.collation_of_type(c.ty), name: c.name, ty: c.ty, typmod: c.typmod };
    Ok(Some(columns.into_iter().map(described).collect()))
}

fn misplaced_definitions(n: &pb::RangeFunction, call: &pb::Node) -> DbError {
    if n.functions.len() > 1 {
        let at = n.coldeflist.first().map_or(-1, nodes::location);
        return err!(SYNTAX_ERROR, "ROWS FROM() with multiple functions cannot have a column definition list")
            .hint("Put a separate column definition list for each function inside ROWS FROM().")
            .at(at);
    }
    let _ = call;
    let at = n.coldeflist.first().map_or(-1, nodes::location);
    err!(SYNTAX_ERROR, "WITH ORDINALITY cannot be used with a column definition list")
        .hint("Put the column definition list inside ROWS FROM().")
        .at(at)
}

fn unnest_one<'p>(analyzer: &mut Analyzer<'_, 'p>, f: &'p pb::FuncCall, arg: &'p pb::Node) -> Result<Expr> {
    let e = analyzer.expression(arg, ExprKind::FromFunction)?;
    let found = analyzer.functional_notation("unnest", e.clone(), f.location)?;
    found.ok_or_else(|| {
        let signature = analyzer.cx().function_signature("unnest", &[e.ty()], &[]);
        super::functions::call_error(&signature, false, false, f.location)
    })
}

fn finish_range_function(
    cx: &Context<'_>,
    expr: Expr,
    definitions: &[pb::Node],
    name: Arc<str>,
) -> Result<(RangeFunction, Arc<str>)> {
    let location = expr.location();
    let ty = expr.ty();
    let out = match &expr {
        Expr::Function(call) => out_arguments::columns(cx, call)?,
        _ => None,
    };
    if !definitions.is_empty() {
        if ty != oids::RECORD {
            let message = if cx.is_complex(ty) {
                "a column definition list is redundant for a function returning a named composite type"
            } else {
                "a column definition list is only allowed for functions returning \"record\""
            };
            return Err(err!(SYNTAX_ERROR, "{message}").at(definitions.first().map_or(-1, nodes::location)));
        }
        if out.is_some() {
            return Err(err!(SYNTAX_ERROR, "a column definition list is redundant for a function with OUT parameters")
                .at(definitions.first().map_or(-1, nodes::location)));
        }
        let columns = column_definitions(cx, definitions)?;
        return Ok((RangeFunction { expr, columns, column_definitions: true }, name));
    }
    let columns = match out {
        Some(columns) => columns,
        None if ty == oids::RECORD => {
            return Err(
                err!(SYNTAX_ERROR, "a column definition list is required for functions returning \"record\"").at(location)
            );
        }
        None => match cx.row_relation(ty) {
            Some(relation) => super::range_columns::relation_columns(relation).into_iter().filter(|c| c.ty.is_valid()).collect(),
            None => {
                let column_name = match &expr {
                    Expr::Function(call) => out_name(cx, call).unwrap_or_else(|| name.clone()),
                    _ => name.clone(),
                };
                let mut derived = expr.clone();
                super::collate::assign(cx, &mut derived)?;
                let collation = if cx.collation_of_type(ty).is_valid() { derived.collation() } else { Oid::INVALID };
                vec![OutputColumn { name: column_name, ty, typmod: expr.typmod(), collation }]
            }
        },
    };
    Ok((RangeFunction { expr, columns, column_definitions: false }, name))
}

/// The name of a function's only OUT argument.
fn out_name(cx: &Context<'_>, call: &FunctionCall) -> Option<Arc<str>> {
    let function = cx.function(call.function).ok()?;
    let mut outs = function.arg_modes.iter().enumerate().filter(|(_, m)| matches!(m, b'o' | b'b' | b't'));
    let (i, _) = outs.next()?;
    if outs.next().is_some() {
        return None;
    }
    function.arg_names.get(i).filter(|n| !n.is_empty()).cloned()
}

fn column_definitions(cx: &Context<'_>, definitions: &[pb::Node]) -> Result<Vec<OutputColumn>> {
    let mut columns: Vec<OutputColumn> = Vec::with_capacity(definitions.len());
    for node in definitions {
        let Some(NodeEnum::ColumnDef(d)) = &node.node else { continue };
        if columns.iter().any(|c| *c.name == *d.colname) {
            return Err(err!(DUPLICATE_COLUMN, "column name \"{}\" specified more than once", d.colname).at(d.location));
        }
        let name = d.type_name.as_ref().ok_or_else(|| DbError::internal("column definition without a type"))?;
        if name.setof {
            return Err(err!(INVALID_TABLE_DEFINITION, "column \"{}\" cannot be declared SETOF", d.colname).at(d.location));
        }
        let (ty, typmod) = cx.transform_type_name(name)?;
        let collation = match &d.coll_clause {
            Some(c) => cx.find_collation(&nodes::strings(&c.collname), c.location)?.oid,
            None => cx.collation_of_type(ty),
        };
        columns.push(OutputColumn { name: d.colname.as_str().into(), ty, typmod, collation });
    }
    Ok(columns)
}
