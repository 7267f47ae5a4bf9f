//! SQL/JSON: values with FORMAT, RETURNING, constructors, IS JSON.

use melba_catalog::TypeKind;
use melba_types::{Datum, DbError, Oid, Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::coerce::How;
use super::context::Context;
use super::{CoercionContext, coerce};
use melba_tree::*;

/// The purpose of a value with an optional FORMAT.
#[derive(Clone, Copy)]
pub struct WantedJson {
    /// The format of a value without one.
    pub format: JsonFormatKind,
    /// The type that it must become, by a cast.
    pub ty: Option<Oid>,
    /// In PASSING: paths take values of most types as they are.
    pub passing: bool,
}

impl WantedJson {
    /// An argument of a constructor: any value.
    pub const ARGUMENT: WantedJson = WantedJson { format: JsonFormatKind::Default, ty: None, passing: false };
}

/// A value with an optional FORMAT JSON, as JSON where that is wanted.
pub fn value<'p>(analyzer: &mut Analyzer<'_, 'p>, v: Option<&'p pb::JsonValueExpr>, wanted: WantedJson) -> Result<Expr> {
    let v = v.ok_or_else(|| DbError::internal("JSON value missing"))?;
    let e = analyzer.boxed(&v.raw_expr)?;
    formatted_value(analyzer, e, v.format.as_ref(), wanted)
}

pub fn formatted_value(
    analyzer: &mut Analyzer<'_, '_>,
    e: Expr,
    written: Option<&pb::JsonFormat>,
    wanted: WantedJson,
) -> Result<Expr> {
    let e = coerce::resolve_unknown(analyzer, e)?;
    let (ty, location) = (e.ty(), e.location());
    let format = json_format(written);
    let at = written.map_or(-1, |f| f.location);
    let is_string = analyzer.cx().category(ty).0 == b'S';
    let is_json = matches!(ty, oids::JSON | oids::JSONB);
    if format.kind != JsonFormatKind::Default && format.encoding != JsonEncoding::Default && ty != oids::BYTEA {
        return Err(err!(DATATYPE_MISMATCH, "JSON ENCODING clause is only allowed for bytea input type").at(at));
    }
    let kind = match format.kind {
        JsonFormatKind::Default if wanted.passing && (is_string || is_path_value(ty)) => return Ok(e),
        JsonFormatKind::Default if wanted.passing => wanted.format,
        _ if is_json => JsonFormatKind::Default,
        JsonFormatKind::Default => wanted.format,
        written => written,
    };
    let target = match wanted.ty {
        Some(target) => target,
        None if kind == JsonFormatKind::Default => return Ok(e),
        None if kind == JsonFormatKind::Jsonb => oids::JSONB,
        None => oids::JSON,
    };
    if ty == target {
        return Ok(e);
    }
    if !wanted.passing && wanted.ty.is_none() && ty != oids::BYTEA && !is_string {
        let how = if format.kind == JsonFormatKind::Default { "implicit" } else { "explicit" };
        let error = err!(DATATYPE_MISMATCH, "cannot use non-string types with {how} FORMAT JSON clause");
        return Err(error.at(if at >= 0 { at } else { location }));
    }
    let mut formatting = case_test(&e);
    if kind == JsonFormatKind::Json && ty == oids::BYTEA {
        formatting = decode_json(analyzer.cx(), formatting, format, location)?;
    }
    let formatting = to_json_type(analyzer, formatting, target, wanted.ty.is_some(), location)?;
    Ok(Expr::JsonValue(Box::new(JsonValue { arg: e, formatting, format })))
}

/// A cast, or the result of to_json and to_jsonb for a value without a cast.
fn to_json_type(analyzer: &mut Analyzer<'_, '_>, e: Expr, target: Oid, only_cast: bool, location: i32) -> Result<Expr> {
    let from = e.ty();
    let how = How { context: CoercionContext::Explicit, form: CoercionForm::ExplicitCast, location };
    if let Some(cast) = coerce::to_target(analyzer, e.clone(), target, -1, how)? {
        return Ok(cast);
    }
    if only_cast {
        let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(target));
        return Err(err!(CANNOT_COERCE, "cannot cast type {from} to {to}").at(location));
    }
    let name = if target == oids::JSON { "to_json" } else { "to_jsonb" };
    built_in_call(analyzer.cx(), name, &[oids::ANYELEMENT], vec![e], location)
}

/// bytea in the encoding of its FORMAT to text.
fn decode_json(cx: &Context<'_>, e: Expr, format: JsonFormat, location: i32) -> Result<Expr> {
    let encoding = encoding_name(format);
    built_in_call(cx, "convert_from", &[oids::BYTEA, oids::NAME], vec![e, encoding], location)
}

/// A call of a built-in function of exactly these types.
pub fn built_in_call(cx: &Context<'_>, name: &str, types: &[Oid], args: Vec<Expr>, location: i32) -> Result<Expr> {
    let function = cx.function_with(name, types).ok_or_else(|| DbError::internal(format!("no function {name}")))?;
    Ok(Expr::Function(Box::new(FunctionCall {
        function: function.oid,
        args,
        defaulted: 0,
        ty: function.return_type,
        collation: Oid::INVALID,
        input_collation: Oid::INVALID,
        returns_set: false,
        variadic: false,
        form: CoercionForm::Call,
        typmod: -1,
        location,
    })))
}

/// RETURNING as it was written; `None` without it.
pub fn returning(cx: &Context<'_>, output: Option<&pb::JsonOutput>, any_type: bool) -> Result<Option<JsonReturning>> {
    let Some(output) = output else { return Ok(None) };
    let Some(name) = output.type_name.as_ref() else { return Ok(None) };
    returning_of(cx, name, output.returning.as_ref().and_then(|r| r.format.as_ref()), any_type).map(Some)
}

/// A type and its FORMAT; `any_type`: FORMAT may be written for types that are no strings.
pub fn returning_of(
    cx: &Context<'_>,
    name: &pb::TypeName,
    written: Option<&pb::JsonFormat>,
    any_type: bool,
) -> Result<JsonReturning> {
    let (ty, typmod) = cx.transform_type_name(name)?;
    if name.setof {
        return Err(err!(FEATURE_NOT_SUPPORTED, "returning SETOF types is not supported in SQL/JSON functions"));
    }
    if cx.ty(ty)?.type_kind == TypeKind::Pseudo {
        return Err(err!(FEATURE_NOT_SUPPORTED, "returning pseudo-types is not supported in SQL/JSON functions"));
    }
    let mut format = json_format(written);
    match format.kind {
        JsonFormatKind::Default if ty == oids::JSONB => format.kind = JsonFormatKind::Jsonb,
        JsonFormatKind::Default => format.kind = JsonFormatKind::Json,
        _ => check_output_format(cx, format, written.map_or(-1, |f| f.location), ty, any_type)?,
    }
    Ok(JsonReturning { ty, typmod, format })
}

fn check_output_format(cx: &Context<'_>, format: JsonFormat, at: i32, ty: Oid, any_type: bool) -> Result<()> {
    let of_json = matches!(ty, oids::BYTEA | oids::JSON | oids::JSONB) || cx.category(ty).0 == b'S';
    if !any_type && !of_json {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot use JSON format with non-string output types").at(at));
    }
    if format.kind != JsonFormatKind::Json {
        return Ok(());
    }
    if ty != oids::BYTEA && format.encoding != JsonEncoding::Default {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot set JSON encoding for non-bytea output types").at(at));
    }
    if matches!(format.encoding, JsonEncoding::Utf16 | JsonEncoding::Utf32) {
        return Err(err!(FEATURE_NOT_SUPPORTED, "unsupported JSON encoding")
            .hint("Only UTF8 JSON encoding is supported.")
            .at(at));
    }
    Ok(())
}

/// RETURNING of a constructor: by default jsonb when an argument is, else json.
pub fn constructor_returning(cx: &Context<'_>, output: Option<&pb::JsonOutput>, args: &[Expr]) -> Result<JsonReturning> {
    if let Some(returning) = returning(cx, output, true)? {
        return Ok(returning);
    }
    let jsonb = args.iter().any(|a| a.ty() == oids::JSONB);
    Ok(plain_returning(if jsonb { oids::JSONB } else { oids::JSON }))
}

/// RETURNING where it can only be json or jsonb.
pub fn json_or_jsonb(cx: &Context<'_>, output: Option<&pb::JsonOutput>, construct: &str) -> Result<JsonReturning> {
    let Some(returning) = returning(cx, output, false)? else { return Ok(plain_returning(oids::JSON)) };
    if !matches!(returning.ty, oids::JSON | oids::JSONB) {
        let name = cx.type_name(returning.ty);
        let at = output.and_then(|o| o.type_name.as_ref()).map_or(-1, |n| n.location);
        return Err(err!(DATATYPE_MISMATCH, "cannot use type {name} in RETURNING clause of {construct}")
            .hint("Try returning json or jsonb.")
            .at(at));
    }
    Ok(returning)
}

/// A constructor whose value becomes one of the RETURNING type.
pub fn constructor(
    analyzer: &mut Analyzer<'_, '_>,
    kind: JsonConstructorKind,
    args: Vec<Expr>,
    function: Option<Expr>,
    returning: JsonReturning,
    location: i32,
) -> Result<JsonConstructor> {
    let mut made = JsonConstructor {
        kind,
        args,
        function,
        coercion: None,
        returning,
        collation: Oid::INVALID,
        absent_on_null: false,
        unique_keys: false,
        location,
    };
    let from = made.constructed_type();
    if from != returning.ty {
        let value = Expr::CaseTest { ty: from, typmod: -1, collation: Oid::INVALID };
        made.coercion = Some(coerce_constructed(analyzer, value, returning)?);
    }
    Ok(made)
}

pub fn json_constructor(
    analyzer: &mut Analyzer<'_, '_>,
    kind: JsonConstructorKind,
    args: Vec<Expr>,
    returning: JsonReturning,
    location: i32,
) -> Result<Expr> {
    Ok(Expr::JsonConstructor(Box::new(constructor(analyzer, kind, args, None, returning, location)?)))
}

/// json or jsonb that a constructor made to its RETURNING type.
fn coerce_constructed(analyzer: &mut Analyzer<'_, '_>, value: Expr, returning: JsonReturning) -> Result<Expr> {
    if returning.format.kind == JsonFormatKind::Json && returning.ty == oids::BYTEA {
        let text = coerce::to_specific(analyzer, value, oids::TEXT, "JSON_FUNCTION")?;
        let encoding = encoding_name(returning.format);
        return built_in_call(analyzer.cx(), "convert_to", &[oids::TEXT, oids::NAME], vec![text, encoding], -1);
    }
    let from = value.ty();
    let coerced = coerce::to_target(analyzer, value, returning.ty, returning.typmod, How::assignment())?;
    coerced.ok_or_else(|| {
        let (from, to) = (analyzer.cx().type_name(from), analyzer.cx().type_name(returning.ty));
        err!(CANNOT_COERCE, "cannot cast type {from} to {to}")
    })
}

pub fn json_parse<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonParseExpr) -> Result<Expr> {
    let returning = json_or_jsonb(analyzer.cx(), n.output.as_ref(), "JSON()")?;
    let v = n.expr.as_deref();
    let arg = if n.unique_keys {
        let raw = v.map(|v| &v.raw_expr).ok_or_else(|| DbError::internal("JSON value missing"))?;
        let arg = json_text(analyzer, raw, v.and_then(|v| v.format.as_ref()))?;
        if arg.ty() != oids::TEXT {
            return Err(err!(DATATYPE_MISMATCH, "cannot use non-string types with WITH UNIQUE KEYS clause").at(n.location));
        }
        arg
    } else {
        value(analyzer, v, WantedJson { format: JsonFormatKind::Json, ty: Some(returning.ty), passing: false })?
    };
    let mut made = constructor(analyzer, JsonConstructorKind::Parse, vec![arg], None, returning, n.location)?;
    made.unique_keys = n.unique_keys;
    Ok(Expr::JsonConstructor(Box::new(made)))
}

pub fn json_serialize<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonSerializeExpr) -> Result<Expr> {
    let arg = value(analyzer, n.expr.as_deref(), WantedJson { format: JsonFormatKind::Json, ty: None, passing: false })?;
    let text =
        JsonReturning { format: JsonFormat { kind: JsonFormatKind::Json, ..JsonFormat::default() }, ty: oids::TEXT, typmod: -1 };
    let returning = returning(analyzer.cx(), n.output.as_ref(), true)?.unwrap_or(text);
    if returning.ty != oids::BYTEA && analyzer.cx().category(returning.ty).0 != b'S' {
        let name = analyzer.cx().type_name(returning.ty);
        return Err(err!(DATATYPE_MISMATCH, "cannot use type {name} in RETURNING clause of JSON_SERIALIZE()")
            .hint("Try returning a string type or bytea."));
    }
    let value = case_test(&arg);
    let mut made = constructor(analyzer, JsonConstructorKind::Serialize, vec![arg], None, returning, n.location)?;
    made.coercion = Some(coerce_constructed(analyzer, value, returning)?);
    Ok(Expr::JsonConstructor(Box::new(made)))
}

/// Text that is to be JSON: a string, or bytea in the encoding of its FORMAT. Other types come back as they are.
fn json_text<'p>(
    analyzer: &mut Analyzer<'_, 'p>,
    node: &'p Option<Box<pb::Node>>,
    written: Option<&pb::JsonFormat>,
) -> Result<Expr> {
    let e = analyzer.boxed(node)?;
    let format = json_format(written);
    let ty = e.ty();
    if ty == oids::BYTEA {
        let formatting = decode_json(analyzer.cx(), case_test(&e), format, e.location())?;
        return Ok(Expr::JsonValue(Box::new(JsonValue { arg: e, formatting, format })));
    }
    let mut e = e;
    if ty == oids::UNKNOWN || analyzer.cx().category(ty).0 == b'S' {
        let location = e.location();
        let coerced = coerce::to_target(analyzer, e, oids::TEXT, -1, How::implicit())?;
        e = coerced.ok_or_else(|| {
            let (from, to) = (analyzer.cx().type_name(ty), analyzer.cx().type_name(oids::TEXT));
            err!(CANNOT_COERCE, "cannot cast type {from} to {to}").at(location)
        })?;
    }
    if format.encoding != JsonEncoding::Default {
        let at = written.map_or(-1, |f| f.location);
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot use JSON FORMAT ENCODING clause for non-bytea input types").at(at));
    }
    Ok(e)
}

pub fn is_json<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonIsPredicate) -> Result<Expr> {
    let arg = json_text(analyzer, &n.expr, n.format.as_ref())?;
    let ty = arg.ty();
    if !matches!(ty, oids::TEXT | oids::JSON | oids::JSONB) {
        let name = analyzer.cx().type_name(ty);
        return Err(err!(DATATYPE_MISMATCH, "cannot use type {name} in IS JSON predicate"));
    }
    let item = match pb::JsonValueType::try_from(n.item_type) {
        Ok(pb::JsonValueType::JsTypeObject) => JsonItemType::Object,
        Ok(pb::JsonValueType::JsTypeArray) => JsonItemType::Array,
        Ok(pb::JsonValueType::JsTypeScalar) => JsonItemType::Scalar,
        _ => JsonItemType::Any,
    };
    Ok(Expr::IsJson(Box::new(IsJson { arg, item, unique_keys: n.unique_keys, location: n.location })))
}

pub fn json_object<'p>(analyzer: &mut Analyzer<'_, 'p>, n: &'p pb::JsonObjectConstructor) -> Result<Expr> {
    let mut args = Vec::with_capacity(n.exprs.len() * 2);
    for e in &n.exprs {
        let Some(NodeEnum::JsonKeyValue(pair)) = &e.node else { continue };
        args.push(analyzer.boxed(&pair.key)?);
        args.push(value(analyzer, pair.value.as_deref(), WantedJson::ARGUMENT)?);
    }
    let returning = constructor_returning(analyzer.cx(), n.output.as_ref(), &args)?;
    let mut made = constructor(analyzer, JsonConstructorKind::Object, args, None, returning, n.location)?;
    made.absent_on_null = n.absent_on_null;
    made.unique_keys = n.unique;
    Ok(Expr::JsonConstructor(Box::new(made)))
}

/// The placeholder of a value that is computed before.
pub fn case_test(e: &Expr) -> Expr {
    Expr::CaseTest { ty: e.ty(), typmod: e.typmod(), collation: Oid::INVALID }
}

/// json or jsonb in its own format.
fn plain_returning(ty: Oid) -> JsonReturning {
    let kind = if ty == oids::JSONB { JsonFormatKind::Jsonb } else { JsonFormatKind::Json };
    JsonReturning { ty, typmod: -1, format: JsonFormat { kind, ..JsonFormat::default() } }
}

pub fn json_format(written: Option<&pb::JsonFormat>) -> JsonFormat {
    let Some(written) = written else { return JsonFormat::default() };
    let kind = match pb::JsonFormatType::try_from(written.format_type) {
        Ok(pb::JsonFormatType::JsFormatJson) => JsonFormatKind::Json,
        Ok(pb::JsonFormatType::JsFormatJsonb) => JsonFormatKind::Jsonb,
        _ => JsonFormatKind::Default,
    };
    let encoding = match pb::JsonEncoding::try_from(written.encoding) {
        Ok(pb::JsonEncoding::JsEncUtf8) => JsonEncoding::Utf8,
        Ok(pb::JsonEncoding::JsEncUtf16) => JsonEncoding::Utf16,
        Ok(pb::JsonEncoding::JsEncUtf32) => JsonEncoding::Utf32,
        _ => JsonEncoding::Default,
    };
    JsonFormat { kind, encoding }
}

fn encoding_name(format: JsonFormat) -> Expr {
    let name = match format.encoding {
        JsonEncoding::Utf16 => "UTF16",
        JsonEncoding::Utf32 => "UTF32",
        _ => "UTF8",
    };
    Expr::Const(Const { value: Datum::text(name), ty: oids::NAME, typmod: -1, collation: Oid::INVALID, location: -1 })
}

/// Whether a path takes values of the type without their being JSON.
fn is_path_value(ty: Oid) -> bool {
    matches!(ty, oids::BOOL | oids::NUMERIC | oids::INT2 | oids::INT4 | oids::INT8 | oids::FLOAT4 | oids::FLOAT8)
        || matches!(ty, oids::TEXT | oids::VARCHAR)
        || matches!(ty, oids::DATE | oids::TIME | oids::TIMETZ | oids::TIMESTAMP | oids::TIMESTAMPTZ)
}
