//! Whether the functions that an expression calls are immutable.

use melba_catalog::{Type, classes};
use melba_fmgr::{CallInfo, registry};
use melba_types::{Datum, Oid, oids};

use super::context::Context;
use melba_tree::*;

/// Whether the expression calls anything that is not immutable.
pub fn is_mutable(cx: &Context<'_>, e: &Expr) -> bool {
    let mutable = |oid: Oid| cx.catalog.function(oid).is_some_and(|f| f.volatility != b'i');
    let io = |ty: Oid, name: fn(&Type) -> &str| {
        let function = cx.catalog.type_(ty).and_then(|t| cx.catalog.type_function(t, name(t)));
        function.is_some_and(|f| f.volatility != b'i')
    };
    let output = |ty: Oid| io(ty, |t| &t.output);
    // text || anything writes the other as text, which is as mutable as that.
    let concatenates = |oid: Oid| {
        let name = cx.catalog.function(oid).filter(|f| f.namespace == classes::PG_CATALOG).map(|f| &*f.name);
        matches!(name, Some("textanycat" | "anytextcat"))
    };
    let called = |oid: Oid, args: &[Expr]| match concatenates(oid) {
        true => args.iter().any(|a| output(a.ty())),
        false => mutable(oid),
    };
    e.any(&mut |e| match e {
        Expr::Function(f) => called(f.function, &f.args),
        Expr::Operator(o) | Expr::Distinct(o) | Expr::NullIf(o) => called(o.function, &o.args),
        Expr::ScalarArray(s) => mutable(s.function),
        Expr::SqlValue { .. } | Expr::NextValue { .. } => true,
        Expr::RowCompare(r) => r.operators.iter().any(|o| cx.catalog.operator(*o).is_some_and(|o| mutable(o.function))),
        Expr::CoerceViaIo { arg, ty, .. } => output(arg.ty()) || io(*ty, |t| &t.input),
        Expr::JsonConstructor(c) => c.args.iter().any(|a| is_json_mutable(cx, a.ty())),
        Expr::Json(j) => is_path_mutable(cx, j),
        _ => false,
    })
}

/// Whether the JSON of a type's values may depend on the session, as PostgreSQL sees it, which does not look into arrays and rows.
fn is_json_mutable(cx: &Context<'_>, ty: Oid) -> bool {
    let base = cx.base_type(ty);
    if matches!(base, oids::JSON | oids::JSONB | oids::BOOL | oids::UNKNOWN) {
        return false;
    }
    let has_parts = cx.catalog.array_element(base).is_some() || cx.is_complex(base) || base == oids::RECORD;
    if has_parts || matches!(base, oids::DATE | oids::TIMESTAMP | oids::TIMESTAMPTZ) {
        return true;
    }
    let output = cx.catalog.type_(base).and_then(|t| cx.function_with(&t.output, &[base]));
    output.is_none_or(|f| f.volatility != b'i')
}

/// Whether a path may select other items under another time zone. One that is no constant may.
fn is_path_mutable(cx: &Context<'_>, j: &JsonExpr) -> bool {
    let Expr::Const(path) = &j.path else { return true };
    if path.value.is_null() {
        return false;
    }
    let mut args = vec![path.value.clone()];
    for (name, value) in &j.passing {
        args.extend([Datum::Text(name.clone()), Datum::Oid(value.ty().0)]);
    }
    let context = CallInfo {
        session: cx.session,
        arg_types: &[],
        return_type: oids::BOOL,
        collation: Oid::INVALID,
        variadic: false,
        columns: None,
        view: CallInfo::NO_VIEW,
    };
    let asks = registry::scalar("sqljson_path_is_mutable");
    asks.is_none_or(|asks| !matches!(asks(&context, &args), Ok(Datum::Bool(false))))
}
