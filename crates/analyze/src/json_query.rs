//! JSON_EXISTS, JSON_QUERY, JSON_VALUE, and their ON EMPTY and ON ERROR.

use std::sync::Arc;

use melba_types::{Datum, DbError, Oid, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::coerce::{CoercionContext, How, is_domain, returns_set};
use super::context::Context;
use super::json::WantedJson;
use super::{coerce, json};
use melba_tree::*;

/// A query function as it was written, or a column of JSON_TABLE, which is one.
pub struct PathCall<'p> {
    pub operation: JsonOperation,
    pub column: Option<&'p str>,
    /// jsonb.
    pub item: Expr,
    /// jsonpath.
    pub path: Expr,
    pub passing: &'p [pb::Node],
    pub returning: Option<JsonReturning>,
    pub wrapper: i32,
    pub quotes: i32,
    pub on_empty: Option<&'p pb::JsonBehavior>,
    pub on_error: Option<&'p pb::JsonBehavior>,
    pub location: i32,
}

pub fn json_function<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonFuncExpr) -> Result<Expr> {
    let operation = match pb::JsonExprOp::try_from(n.op) {
        Ok(pb::JsonExprOp::JsonExistsOp) => JsonOperation::Exists,
        Ok(pb::JsonExprOp::JsonQueryOp) => JsonOperation::Query,
        Ok(pb::JsonExprOp::JsonValueOp) => JsonOperation::Value,
        _ => return Err(DbError::internal("unrecognized JSON function")),
    };
    let written = n.output.as_ref().and_then(|o| o.returning.as_ref()).and_then(|r| r.format.as_ref());
    let has_format = super::json::json_format(written) != JsonFormat::default();
    if has_format && operation != JsonOperation::Query {
        let name = function_name(operation);
        let at = written.map_or(-1, |f| f.location);
        return Err(err!(SYNTAX_ERROR, "cannot specify FORMAT JSON in RETURNING clause of {name}").at(at));
    }
    check_behaviors(operation, None, n.on_empty.as_deref(), n.on_error.as_deref())?;
    check_quotes(operation, n.wrapper, n.quotes, n.location)?;
    let format = if operation == JsonOperation::Query { JsonFormatKind::Jsonb } else { JsonFormatKind::Default };
    let item = json::value(analyzer, n.context_item.as_deref(), WantedJson { format, ty: Some(oids::JSONB), passing: false })?;
    let path = analyzer.boxed(&n.pathspec)?;
    let path = json_path(analyzer, path)?;
    let passing = json_passing(analyzer, &n.passing)?;
    let returning = json::returning(analyzer.cx(), n.output.as_ref(), false)?;
    let call = PathCall {
        operation,
        column: None,
        item,
        path,
        passing: &[],
        returning,
        wrapper: n.wrapper,
        quotes: n.quotes,
        on_empty: n.on_empty.as_deref(),
        on_error: n.on_error.as_deref(),
        location: n.location,
    };
    path_call(analyzer, call, passing)
}

pub fn json_path(analyzer: &mut Analyzer<'_, '_>, path: Expr) -> Result<Expr> {
    let (from, location) = (path.ty(), path.location());
    let how = How { context: CoercionContext::Explicit, form: CoercionForm::ImplicitCast, location };
    let coerced = coerce::to_target(analyzer, path, oids::JSONPATH, -1, how)?;
    coerced.ok_or_else(|| {
        let from = analyzer.cx().type_name(from);
        err!(DATATYPE_MISMATCH, "JSON path expression must be of type jsonpath, not of type {from}").at(location)
    })
}

pub fn json_passing<'p>(analyzer: &mut Analyzer<'_, 'p>, list: &'p [pb::Node]) -> Result<Vec<(Arc<str>, Expr)>> {
    let mut passing = Vec::with_capacity(list.len());
    for arg in list {
        let Some(NodeEnum::JsonArgument(arg)) = &arg.node else { continue };
        let wanted = WantedJson { format: JsonFormatKind::Jsonb, ty: None, passing: true };
        passing.push((arg.name.as_str().into(), json::value(analyzer, arg.val.as_deref(), wanted)?));
    }
    Ok(passing)
}

/// A column of JSON_TABLE.
pub fn column_call<'p>(analyzer: &mut Analyzer<'_, 'p>, call: PathCall<'p>) -> Result<Expr> {
    check_behaviors(call.operation, call.column, call.on_empty, call.on_error)?;
    check_quotes(call.operation, call.wrapper, call.quotes, call.location)?;
    let passing = json_passing(analyzer, call.passing)?;
    path_call(analyzer, call, passing)
}

fn path_call<'p>(analyzer: &mut Analyzer<'_, 'p>, call: PathCall<'p>, passing: Vec<(Arc<str>, Expr)>) -> Result<Expr> {
    let default = match call.operation {
        JsonOperation::Exists => oids::BOOL,
        JsonOperation::Query => oids::JSONB,
        JsonOperation::Value => oids::TEXT,
    };
    let mut returning = call.returning.unwrap_or(JsonReturning { ty: default, typmod: -1, format: JsonFormat::default() });
    if call.operation == JsonOperation::Value {
        returning.format = JsonFormat::default();
    }
    let is_other = returning.ty != default;
    let omit_quotes = match call.operation {
        JsonOperation::Exists => false,
        JsonOperation::Query => call.quotes == pb::JsonQuotes::JsQuotesOmit as i32,
        JsonOperation::Value => true,
    };
    let coercion = match call.operation {
        JsonOperation::Query if is_other || omit_quotes => JsonCoercion::Populate,
        _ if !is_other => JsonCoercion::None,
        JsonOperation::Value if !is_checked_domain(analyzer.cx(), returning.ty) => JsonCoercion::ByText,
        _ => JsonCoercion::Populate,
    };
    let collation = match call.operation {
        JsonOperation::Exists => Oid::INVALID,
        _ => analyzer.cx().collation_of_type(returning.ty),
    };
    let (on_empty, default_on_error) = match call.operation {
        JsonOperation::Exists => (None, JsonBehaviorKind::False),
        _ => {
            (Some(json_behavior(analyzer, call.on_empty, JsonBehaviorKind::Null, returning, collation)?), JsonBehaviorKind::Null)
        }
    };
    let on_error = json_behavior(analyzer, call.on_error, default_on_error, returning, collation)?;
    Ok(Expr::Json(Box::new(JsonExpr {
        operation: call.operation,
        column: call.column.map(Into::into),
        item: call.item,
        path: call.path,
        passing,
        returning,
        collation,
        coercion,
        wrapper: match pb::JsonWrapper::try_from(call.wrapper) {
            Ok(pb::JsonWrapper::JswConditional) => JsonWrapper::Conditional,
            Ok(pb::JsonWrapper::JswUnconditional) => JsonWrapper::Unconditional,
            _ => JsonWrapper::None,
        },
        omit_quotes,
        on_empty,
        on_error,
        location: call.location,
    })))
}

/// Whether values of the type are checked: a domain with constraints, or over one.
fn is_checked_domain(cx: &Context<'_>, ty: Oid) -> bool {
    let mut ty = ty;
    while is_domain(cx, ty) {
        let Some(domain) = cx.catalog.type_(ty).and_then(|t| t.domain.as_ref()) else { return false };
        if domain.not_null || !domain.constraints.is_empty() {
            return true;
        }
        ty = domain.base;
    }
    false
}

fn json_behavior<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    written: Option<&'p pb::JsonBehavior>,
    default: JsonBehaviorKind,
    returning: JsonReturning,
    collation: Oid,
) -> Result<JsonBehavior> {
    let kind = written.map_or(default, behavior_kind);
    let location = written.map_or(-1, |b| b.location);
    let value = match (kind, written) {
        (JsonBehaviorKind::Error, _) => return Ok(JsonBehavior { kind, value: None, populate: false }),
        (JsonBehaviorKind::Default, Some(b)) => behavior_default(analyzer, b, collation)?,
        _ => behavior_constant(analyzer.cx(), kind, location)?,
    };
    let is_null = value.is_null_const();
    let ty = value.ty();
    if ty == returning.ty && (returning.typmod < 0 || is_null) {
        return Ok(JsonBehavior { kind, value: Some(value), populate: false });
    }
    let is_bool = ty == oids::BOOL && analyzer.cx().base_type(returning.ty) != oids::INT4;
    if is_null || ty == oids::JSONB || is_bool {
        let value = if ty == oids::BOOL && !is_null {
            let text = if kind == JsonBehaviorKind::True { "true" } else { "false" };
            jsonb_constant(analyzer.cx(), text, location)?
        } else {
            value
        };
        return Ok(JsonBehavior { kind, value: Some(value), populate: true });
    }
    let value = coerce_behavior(analyzer, value, kind, returning, location)?;
    Ok(JsonBehavior { kind, value: Some(value), populate: false })
}

fn behavior_default<'p>(analyzer: &mut Analyzer<'_, 'p>, b: &'p pb::JsonBehavior, collation: Oid) -> Result<Expr> {
    let mut e = analyzer.boxed(&b.expr)?;
    let location = e.location();
    if !may_be_default(&e) {
        let what = "can only specify a constant, non-aggregate function, or operator expression for DEFAULT";
        return Err(err!(DATATYPE_MISMATCH, "{what}").at(location));
    }
    if e.has_vars() {
        return Err(err!(DATATYPE_MISMATCH, "DEFAULT expression must not contain column references").at(location));
    }
    if returns_set(&e) {
        return Err(err!(DATATYPE_MISMATCH, "DEFAULT expression must not return a set").at(location));
    }
    super::collate::assign(analyzer.cx(), &mut e)?;
    let own = e.collation();
    if collation.is_valid() && own.is_valid() && own != collation {
        let name = |oid: Oid| analyzer.cx().catalog.collation(oid).map_or_else(String::new, |c| c.name.to_string());
        return Err(err!(COLLATION_MISMATCH, "collation of DEFAULT expression conflicts with RETURNING clause")
            .detail(format!("\"{}\" versus \"{}\"", name(own), name(collation)))
            .at(location));
    }
    Ok(e)
}

fn behavior_constant(cx: &Context<'_>, kind: JsonBehaviorKind, location: i32) -> Result<Expr> {
    let constant = |value, ty| Ok(Expr::Const(Const { value, ty, typmod: -1, collation: Oid::INVALID, location }));
    match kind {
        JsonBehaviorKind::EmptyArray => jsonb_constant(cx, "[]", location),
        JsonBehaviorKind::EmptyObject => jsonb_constant(cx, "{}", location),
        JsonBehaviorKind::True => constant(Datum::Bool(true), oids::BOOL),
        JsonBehaviorKind::False => constant(Datum::Bool(false), oids::BOOL),
        _ => constant(Datum::Null, oids::INT4),
    }
}

fn jsonb_constant(cx: &Context<'_>, text: &str, location: i32) -> Result<Expr> {
    let value = cx.input(oids::JSONB, -1, text)?;
    Ok(Expr::Const(Const { value, ty: oids::JSONB, typmod: -1, collation: Oid::INVALID, location }))
}

fn coerce_behavior(
    analyzer: &mut Analyzer<'_, '_>,
    value: Expr,
    kind: JsonBehaviorKind,
    returning: JsonReturning,
    at: i32,
) -> Result<Expr> {
    let (from, location) = (value.ty(), value.location());
    // Strings that are too long are errors, as in an assignment.
    let context = match analyzer.cx().category(returning.ty).0 {
        b'S' | b'V' => CoercionContext::Assignment,
        _ => CoercionContext::Explicit,
    };
    let how = How { context, form: CoercionForm::ExplicitCast, location: at };
    let coerced = coerce::to_target(analyzer, value, returning.ty, returning.typmod, how)?;
    coerced.ok_or_else(|| {
        let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(returning.ty));
        let error = err!(CANNOT_COERCE, "cannot cast behavior expression of type {from} to {to}").at(location);
        match kind {
            JsonBehaviorKind::Default => error.hint(format!("You will need to explicitly cast the expression to type {to}.")),
            _ => error,
        }
    })
}

pub fn behavior_kind(b: &pb::JsonBehavior) -> JsonBehaviorKind {
    use pb::JsonBehaviorType as T;
    match T::try_from(b.btype).unwrap_or(T::Undefined) {
        T::JsonBehaviorNull | T::Undefined => JsonBehaviorKind::Null,
        T::JsonBehaviorError => JsonBehaviorKind::Error,
        T::JsonBehaviorEmpty => JsonBehaviorKind::Empty,
        T::JsonBehaviorTrue => JsonBehaviorKind::True,
        T::JsonBehaviorFalse => JsonBehaviorKind::False,
        T::JsonBehaviorUnknown => JsonBehaviorKind::Unknown,
        T::JsonBehaviorEmptyArray => JsonBehaviorKind::EmptyArray,
        T::JsonBehaviorEmptyObject => JsonBehaviorKind::EmptyObject,
        T::JsonBehaviorDefault => JsonBehaviorKind::Default,
    }
}

fn function_name(operation: JsonOperation) -> &'static str {
    match operation {
        JsonOperation::Exists => "JSON_EXISTS()",
        JsonOperation::Query => "JSON_QUERY()",
        JsonOperation::Value => "JSON_VALUE()",
    }
}

fn check_quotes(operation: JsonOperation, wrapper: i32, quotes: i32, location: i32) -> Result<()> {
    let wraps = [pb::JsonWrapper::JswConditional as i32, pb::JsonWrapper::JswUnconditional as i32].contains(&wrapper);
    if operation == JsonOperation::Query && quotes == pb::JsonQuotes::JsQuotesOmit as i32 && wraps {
        let what = "SQL/JSON QUOTES behavior must not be specified when WITH WRAPPER is used";
        return Err(err!(SYNTAX_ERROR, "{what}").at(location));
    }
    Ok(())
}

/// Which behaviors a function has; `column` names one of JSON_TABLE.
fn check_behaviors(
    operation: JsonOperation,
    column: Option<&str>,
    on_empty: Option<&pb::JsonBehavior>,
    on_error: Option<&pb::JsonBehavior>,
) -> Result<()> {
    use JsonBehaviorKind::*;
    let (allowed, list, columns): (&[JsonBehaviorKind], _, _) = match operation {
        JsonOperation::Query => (
            &[Error, Null, Empty, EmptyArray, EmptyObject, Default],
            "ERROR, NULL, EMPTY ARRAY, EMPTY OBJECT, or DEFAULT expression",
            "formatted columns",
        ),
        JsonOperation::Exists => (&[Error, True, False, Unknown], "ERROR, TRUE, FALSE, or UNKNOWN", "EXISTS columns"),
        JsonOperation::Value => (&[Error, Null, Default], "ERROR, NULL, or DEFAULT expression", "scalar columns"),
    };
    let on_empty = on_empty.filter(|_| operation != JsonOperation::Exists);
    for (behavior, clause) in [(on_empty, "ON EMPTY"), (on_error, "ON ERROR")] {
        let Some(behavior) = behavior.filter(|b| !allowed.contains(&behavior_kind(b))) else { continue };
        let (of, place) = match column {
            None => (String::new(), function_name(operation)),
            Some(column) => (format!(" for column \"{column}\""), columns),
        };
        return Err(err!(SYNTAX_ERROR, "invalid {clause} behavior{of}")
            .detail(format!("Only {list} is allowed in {clause} for {place}."))
            .at(behavior.location));
    }
    Ok(())
}

/// A constant, a call of a function or an operator, or a cast of one.
fn may_be_default(e: &Expr) -> bool {
    match e {
        Expr::Const(_) | Expr::Function(_) | Expr::Operator(_) => true,
        Expr::CoerceViaIo { arg, .. }
        | Expr::CoerceToDomain { arg, .. }
        | Expr::ArrayCoerce { arg, .. }
        | Expr::ConvertRowtype { arg, .. }
        | Expr::Relabel { arg, .. }
        | Expr::Collate { arg, .. } => may_be_default(arg),
        _ => false,
    }
}
