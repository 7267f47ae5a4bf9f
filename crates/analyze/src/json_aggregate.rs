//! JSON_OBJECTAGG, JSON_ARRAYAGG, and JSON_ARRAY of a query, which is the latter over a subquery.

use std::sync::Arc;

use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::context::Context;
use super::json::WantedJson;
use super::scope::ExprKind;
use super::sublink::scalar_sublink;
use super::values::column_var;
use super::{aggregate, json, select, sublink, window};
use melba_tree::*;

/// An aggregate's call before FILTER, ORDER BY and OVER are analyzed.
struct JsonAggregate<'p> {
    kind: JsonConstructorKind,
    name: String,
    args: Vec<Expr>,
    returning: JsonReturning,
    syntax: &'p pb::JsonAggConstructor,
    absent_on_null: bool,
    unique_keys: bool,
}

pub fn json_object_aggregate<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonObjectAgg) -> Result<Expr> {
    let lacks = || DbError::internal("JSON_OBJECTAGG without its parts");
    let syntax = n.constructor.as_deref().ok_or_else(lacks)?;
    let pair = n.arg.as_deref().ok_or_else(lacks)?;
    let key = analyzer.boxed(&pair.key)?;
    let args = vec![key, json::value(analyzer, pair.value.as_deref(), WantedJson::ARGUMENT)?];
    let returning = json::constructor_returning(analyzer.cx(), syntax.output.as_ref(), &args)?;
    let mut name = format!("{}_object_agg", prefix(returning));
    if n.unique {
        name += "_unique";
    }
    if n.absent_on_null {
        name += "_strict";
    }
    json_aggregate(
        analyzer,
        JsonAggregate {
            kind: JsonConstructorKind::ObjectAggregate,
            name,
            args,
            returning,
            syntax,
            absent_on_null: n.absent_on_null,
            unique_keys: n.unique,
        },
    )
}

pub fn json_array_aggregate<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonArrayAgg) -> Result<Expr> {
    let lacks = || DbError::internal("JSON_ARRAYAGG without its parts");
    let syntax = n.constructor.as_deref().ok_or_else(lacks)?;
    let args = vec![json::value(analyzer, n.arg.as_deref(), WantedJson::ARGUMENT)?];
    let returning = json::constructor_returning(analyzer.cx(), syntax.output.as_ref(), &args)?;
    json_aggregate(
        analyzer,
        JsonAggregate {
            kind: JsonConstructorKind::ArrayAggregate,
            name: array_aggregate(returning, n.absent_on_null),
            args,
            returning,
            syntax,
            absent_on_null: n.absent_on_null,
            unique_keys: false,
        },
    )
}

fn json_aggregate<'p>(analyzer: &mut Analyzer<'_, 'p>, a: JsonAggregate<'p>) -> Result<Expr> {
    let syntax = a.syntax;
    let filter = analyzer.condition(&syntax.agg_filter, ExprKind::Filter, "FILTER")?;
    let function = json_aggregate_function(analyzer.cx(), &a.name, a.args.len())?;
    let ty = if a.returning.format.kind == JsonFormatKind::Jsonb { oids::JSONB } else { oids::JSON };
    let call = match syntax.over.as_deref() {
        Some(over) => {
            if !syntax.agg_order.is_empty() {
                let error = err!(FEATURE_NOT_SUPPORTED, "aggregate ORDER BY is not implemented for window functions");
                return Err(error.at(syntax.location));
            }
            let call = WindowCall {
                function,
                args: a.args,
                star: false,
                filter,
                window: 0,
                aggregate: true,
                ignore_nulls: false,
                ty,
                collation: Oid::INVALID,
                input_collation: Oid::INVALID,
                location: syntax.location,
            };
            window::finish(analyzer, call, over)?
        }
        None => {
            let mut call = plain_aggregate(function, a.args, ty, syntax.location);
            call.filter = filter;
            call.order_by = aggregate::aggregate_order_by(analyzer, &syntax.agg_order, &call.args, false)?;
            aggregate::finish(analyzer, call)?
        }
    };
    let mut made = json::constructor(analyzer, a.kind, Vec::new(), Some(call), a.returning, syntax.location)?;
    made.absent_on_null = a.absent_on_null;
    made.unique_keys = a.unique_keys;
    Ok(Expr::JsonConstructor(Box::new(made)))
}

fn json_aggregate_function(cx: &Context<'_>, name: &str, args: usize) -> Result<Oid> {
    let types: &[Oid] = match args {
        1 => &[oids::ANYELEMENT],
        _ => &[oids::ANY, oids::ANY],
    };
    let function = cx.function_with(name, types);
    function.map(|f| f.oid).ok_or_else(|| DbError::internal(format!("no aggregate {name}")))
}

/// `(SELECT JSON_ARRAYAGG(q.a) FROM (query) q(a))`.
pub fn json_array_of_query<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonArrayQueryConstructor) -> Result<Expr> {
    sublink::check_place(analyzer, n.location)?;
    analyzer.level_mut().has_sublinks = true;
    let query = analyzer.with_level(|a| array_query(a, n))?;
    scalar_sublink(query, n.location)
}

/// The query around the one that was written, at the level just opened.
fn array_query<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonArrayQueryConstructor) -> Result<Query> {
    let node = n.query.as_deref().and_then(|q| q.node.as_ref());
    let node = node.ok_or_else(|| DbError::internal("JSON_ARRAY without a query"))?;
    let query = analyzer.with_kind(ExprKind::FromSubselect, |a| a.statement(node))?;
    let mut columns = query.output_columns();
    let [column] = &mut columns[..] else {
        return Err(err!(SYNTAX_ERROR, "subquery must return only one column").at(n.location));
    };
    column.name = "a".into();
    let arg = column_var(0, 0, column);
    let name: Arc<str> = "q".into();
    let entry = analyzer.add_entry(RangeEntry {
        kind: RangeKind::Subquery { query: Box::new(query), view: Oid::INVALID },
        alias: Some(name.clone()),
        name,
        columns,
        lateral: false,
        in_from: true,
        required: Privileges::default(),
        security: Vec::new(),
    });
    let aggregate = analyzer.with_kind(ExprKind::SelectTarget, |a| {
        let args = vec![json::formatted_value(a, arg, n.format.as_ref(), WantedJson::ARGUMENT)?];
        let returning = json::constructor_returning(a.cx(), n.output.as_ref(), &args)?;
        let function = json_aggregate_function(a.cx(), &array_aggregate(returning, n.absent_on_null), 1)?;
        let ty = if returning.format.kind == JsonFormatKind::Jsonb { oids::JSONB } else { oids::JSON };
        let call = aggregate::finish(a, plain_aggregate(function, args, ty, n.location))?;
        let kind = JsonConstructorKind::ArrayAggregate;
        let mut made = json::constructor(a, kind, Vec::new(), Some(call), returning, n.location)?;
        made.absent_on_null = n.absent_on_null;
        Ok(Expr::JsonConstructor(Box::new(made)))
    })?;
    let mut outer = Query::new(Command::Select);
    outer.from = vec![FromItem::Range(entry)];
    outer.targets = vec![Target {
        expr: aggregate,
        name: "json_arrayagg".into(),
        junk: false,
        reference: 0,
        column: 0,
        origin: (Oid::INVALID, 0),
    }];
    select::finish_select(analyzer, &mut outer)?;
    analyzer.take_level(&mut outer);
    Ok(outer)
}

fn prefix(returning: JsonReturning) -> &'static str {
    if returning.format.kind == JsonFormatKind::Jsonb { "jsonb" } else { "json" }
}

fn array_aggregate(returning: JsonReturning, absent_on_null: bool) -> String {
    format!("{}_agg{}", prefix(returning), if absent_on_null { "_strict" } else { "" })
}

fn plain_aggregate(function: Oid, args: Vec<Expr>, ty: Oid, location: i32) -> AggregateCall {
    AggregateCall {
        function,
        args,
        direct_args: Vec::new(),
        star: false,
        distinct: false,
        order_by: Vec::new(),
        filter: None,
        ordered_set: false,
        variadic: false,
        ty,
        collation: Oid::INVALID,
        input_collation: Oid::INVALID,
        levels_up: 0,
        location,
    }
}
