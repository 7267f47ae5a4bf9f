//! SQL/JSON: constructors, query functions, IS JSON.

use std::sync::Arc;

use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::coerce::How;
use super::scope::NsItem;
use super::{Analyzer, CoercionContext, nodes};
use melba_tree::*;

impl<'p> Analyzer<'_, 'p> {
    pub fn json_expression(&mut self, node: &'p NodeEnum) -> Result<Expr> {
        match node {
            NodeEnum::JsonIsPredicate(n) => self.is_json(n),
            NodeEnum::JsonParseExpr(n) => {
                let arg = self.json_value(n.expr.as_deref())?;
                let arg = self.json_text_argument(arg, "JSON()")?;
                let (ty, typmod) = self.json_output(n.output.as_ref(), oids::JSON)?;
                Ok(json(JsonOperation::Parse, vec![arg], ty, typmod, n.location, |j| j.unique_keys = n.unique_keys))
            }
            NodeEnum::JsonScalarExpr(n) => {
                let arg = self.boxed(&n.expr)?;
                let arg = self.resolve_unknown(arg)?;
                let (ty, typmod) = self.json_output(n.output.as_ref(), oids::JSON)?;
                Ok(json(JsonOperation::Scalar, vec![arg], ty, typmod, n.location, |_| {}))
            }
            NodeEnum::JsonSerializeExpr(n) => {
                let arg = self.json_value(n.expr.as_deref())?;
                let arg = self.json_text_argument(arg, "JSON_SERIALIZE()")?;
                let (ty, typmod) = self.json_output(n.output.as_ref(), oids::TEXT)?;
                if self.cx.category(ty).0 != b'S' && ty != oids::BYTEA {
                    let name = self.cx.type_name(ty);
                    return Err(err!(DATATYPE_MISMATCH, "cannot use type {name} in RETURNING clause of JSON_SERIALIZE()")
                        .hint("Try returning a string type or bytea."));
                }
                Ok(json(JsonOperation::Serialize, vec![arg], ty, typmod, n.location, |_| {}))
            }
            NodeEnum::JsonObjectConstructor(n) => self.json_object(n),
            NodeEnum::JsonArrayConstructor(n) => {
                let mut args = Vec::with_capacity(n.exprs.len());
                for e in &n.exprs {
                    let Some(NodeEnum::JsonValueExpr(v)) = &e.node else { continue };
                    args.push(self.json_value(Some(v))?);
                }
                let (ty, typmod) = self.json_output(n.output.as_ref(), oids::JSON)?;
                Ok(json(JsonOperation::Array, args, ty, typmod, n.location, |j| j.absent_on_null = n.absent_on_null))
            }
            NodeEnum::JsonFuncExpr(n) => self.json_function(n),
            NodeEnum::JsonArrayQueryConstructor(n) => Err(DbError::unsupported("JSON_ARRAY over a query").at(n.location)),
            other => Err(DbError::unsupported("SQL/JSON aggregate").at(nodes::location_of(other))),
        }
    }

    /// A value with an optional FORMAT JSON.
    fn json_value(&mut self, v: Option<&'p pb::JsonValueExpr>) -> Result<Expr> {
        let v = v.ok_or_else(|| DbError::internal("JSON value missing"))?;
        let e = self.boxed(&v.raw_expr)?;
        let e = self.resolve_unknown(e)?;
        let is_json = v.format.as_ref().is_some_and(|f| f.format_type == pb::JsonFormatType::JsFormatJson as i32);
        if is_json && e.ty() != oids::JSON && e.ty() != oids::JSONB {
            let how = How { context: CoercionContext::Explicit, form: CoercionForm::ImplicitCast, location: -1 };
            let location = e.location();
            return self.coerce_to_target(e, oids::JSON, -1, how)?.ok_or_else(|| {
                err!(DATATYPE_MISMATCH, "cannot use non-string types with explicit FORMAT JSON clause").at(location)
            });
        }
        Ok(e)
    }

    fn json_text_argument(&mut self, e: Expr, construct: &str) -> Result<Expr> {
        let ty = self.cx.base_type(e.ty());
        let fits = matches!(ty, oids::JSON | oids::JSONB | oids::BYTEA) || self.cx.category(ty).0 == b'S';
        if fits {
            return Ok(e);
        }
        let name = self.cx.type_name(e.ty());
        Err(err!(DATATYPE_MISMATCH, "cannot cast type {name} to json in {construct}").at(e.location()))
    }

    fn json_output(&mut self, output: Option<&'p pb::JsonOutput>, default: Oid) -> Result<(Oid, i32)> {
        match output.and_then(|o| o.type_name.as_ref()) {
            Some(name) => self.cx.transform_type_name(name),
            None => Ok((default, -1)),
        }
    }

    fn is_json(&mut self, n: &'p pb::JsonIsPredicate) -> Result<Expr> {
        let e = self.boxed(&n.expr)?;
        let e = self.resolve_unknown(e)?;
        let ty = self.cx.base_type(e.ty());
        if !matches!(ty, oids::JSON | oids::JSONB | oids::BYTEA) && self.cx.category(ty).0 != b'S' {
            let name = self.cx.type_name(e.ty());
            return Err(err!(DATATYPE_MISMATCH, "cannot use type {name} in IS JSON predicate"));
        }
        let operation = match pb::JsonValueType::try_from(n.item_type) {
            Ok(pb::JsonValueType::JsTypeObject) => JsonOperation::IsJsonObject,
            Ok(pb::JsonValueType::JsTypeArray) => JsonOperation::IsJsonArray,
            Ok(pb::JsonValueType::JsTypeScalar) => JsonOperation::IsJsonScalar,
            _ => JsonOperation::IsJson,
        };
        Ok(json(operation, vec![e], oids::BOOL, -1, n.location, |j| j.unique_keys = n.unique_keys))
    }

    fn json_object(&mut self, n: &'p pb::JsonObjectConstructor) -> Result<Expr> {
        let mut args = Vec::with_capacity(n.exprs.len() * 2);
        for e in &n.exprs {
            let Some(NodeEnum::JsonKeyValue(pair)) = &e.node else { continue };
            let key = self.boxed(&pair.key)?;
            args.push(self.resolve_unknown(key)?);
            args.push(self.json_value(pair.value.as_deref())?);
        }
        let (ty, typmod) = self.json_output(n.output.as_ref(), oids::JSON)?;
        Ok(json(JsonOperation::Object, args, ty, typmod, n.location, |j| {
            j.absent_on_null = n.absent_on_null;
            j.unique_keys = n.unique;
        }))
    }

    fn json_function(&mut self, n: &'p pb::JsonFuncExpr) -> Result<Expr> {
        let (operation, name, default) = match pb::JsonExprOp::try_from(n.op) {
            Ok(pb::JsonExprOp::JsonExistsOp) => (JsonOperation::Exists, "JSON_EXISTS()", oids::BOOL),
            Ok(pb::JsonExprOp::JsonQueryOp) => (JsonOperation::Query, "JSON_QUERY()", oids::JSONB),
            Ok(pb::JsonExprOp::JsonValueOp) => (JsonOperation::Value, "JSON_VALUE()", oids::TEXT),
            _ => return Err(DbError::internal("unrecognized JSON function")),
        };
        let item = self.json_value(n.context_item.as_deref())?;
        let (from, at) = (item.ty(), item.location());
        let how = How { context: CoercionContext::Explicit, form: CoercionForm::ImplicitCast, location: -1 };
        let item = self.coerce_to_target(item, oids::JSONB, -1, how)?.ok_or_else(|| {
            let from = self.cx.type_name(from);
            err!(DATATYPE_MISMATCH, "cannot cast type {from} to jsonb in {name}").at(at)
        })?;
        let path = self.boxed(&n.pathspec)?;
        let (from, at) = (path.ty(), path.location());
        let path =
            self.coerce_to_target(path, oids::JSONPATH, -1, How { context: CoercionContext::Explicit, ..How::implicit() })?;
        let path = path.ok_or_else(|| {
            let from = self.cx.type_name(from);
            err!(DATATYPE_MISMATCH, "JSON path expression must be of type jsonpath, not of type {from}").at(at)
        })?;
        let mut passing: Vec<(Arc<str>, Expr)> = Vec::with_capacity(n.passing.len());
        for arg in &n.passing {
            let Some(NodeEnum::JsonArgument(arg)) = &arg.node else { continue };
            passing.push((arg.name.as_str().into(), self.json_value(arg.val.as_deref())?));
        }
        let (ty, typmod) = self.json_output(n.output.as_ref(), default)?;
        let on_empty = self.json_behavior(n.on_empty.as_deref(), ty, typmod)?;
        let on_error = self.json_behavior(n.on_error.as_deref(), ty, typmod)?;
        Ok(json(operation, vec![item], ty, typmod, n.location, |j| {
            j.path = Some(path);
            j.passing = passing;
            j.on_empty = on_empty;
            j.on_error = on_error;
            j.wrapper = match pb::JsonWrapper::try_from(n.wrapper) {
                Ok(pb::JsonWrapper::JswConditional) => 1,
                Ok(pb::JsonWrapper::JswUnconditional) => 2,
                _ => 0,
            };
            j.omit_quotes = n.quotes == pb::JsonQuotes::JsQuotesOmit as i32;
        }))
    }

    fn json_behavior(&mut self, b: Option<&'p pb::JsonBehavior>, ty: Oid, typmod: i32) -> Result<Option<JsonBehavior>> {
        use pb::JsonBehaviorType as T;
        let Some(b) = b else { return Ok(None) };
        Ok(Some(match T::try_from(b.btype).unwrap_or(T::Undefined) {
            T::JsonBehaviorNull | T::Undefined => JsonBehavior::Null,
            T::JsonBehaviorError => JsonBehavior::Error,
            T::JsonBehaviorEmpty => JsonBehavior::Empty,
            T::JsonBehaviorTrue => JsonBehavior::True,
            T::JsonBehaviorFalse => JsonBehavior::False,
            T::JsonBehaviorUnknown => JsonBehavior::Unknown,
            T::JsonBehaviorEmptyArray => JsonBehavior::EmptyArray,
            T::JsonBehaviorEmptyObject => JsonBehavior::EmptyObject,
            T::JsonBehaviorDefault => {
                let e = self.boxed(&b.expr)?;
                let (from, location) = (e.ty(), e.location());
                let how = How { context: CoercionContext::Assignment, form: CoercionForm::ImplicitCast, location };
                let coerced = self.coerce_to_target(e, ty, typmod, how)?;
                JsonBehavior::Default(Box::new(coerced.ok_or_else(|| {
                    let (from, to) = (self.cx.type_name(from), self.cx.type_name(ty));
                    err!(CANNOT_COERCE, "cannot cast behavior expression of type {from} to {to}").at(location)
                })?))
            }
        }))
    }

    pub fn json_table(&mut self, n: &'p pb::JsonTable) -> Result<NsItem> {
        Err(DbError::unsupported("JSON_TABLE").at(n.location))
    }
}

fn json(
    operation: JsonOperation,
    args: Vec<Expr>,
    ty: Oid,
    typmod: i32,
    location: i32,
    fill: impl FnOnce(&mut JsonExpr),
) -> Expr {
    let mut e = JsonExpr {
        operation,
        args,
        path: None,
        passing: Vec::new(),
        ty,
        typmod,
        collation: Oid::INVALID,
        on_empty: None,
        on_error: None,
        wrapper: 0,
        omit_quotes: false,
        absent_on_null: false,
        unique_keys: false,
        location,
    };
    fill(&mut e);
    Expr::Json(Box::new(e))
}
