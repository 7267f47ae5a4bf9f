//! Whether what an expression calls is immutable.

use melba_catalog::classes;
use melba_types::{Oid, oids};

use super::context::Context;
use melba_tree::*;

/// Whether the expression calls anything that is not immutable.
pub fn is_mutable(cx: &Context<'_>, e: &Expr) -> bool {
    let mutable = |oid: Oid| cx.catalog.function(oid).is_some_and(|f| f.volatility != b'i');
    let function = |name: &str, args: &[Oid]| cx.function_with(name, args).map_or(Oid::INVALID, |f| f.oid);
    let io = |ty: Oid| cx.catalog.type_(ty).map(|t| (t.input.clone(), t.output.clone()));
    let output = |ty: Oid| io(ty).is_some_and(|(_, out)| mutable(function(&out, &[ty])));
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
        Expr::CoerceViaIo { arg, ty, .. } => {
            let out = output(arg.ty());
            let input = io(*ty).is_some_and(|(input, _)| {
                mutable(function(&input, &[oids::CSTRING])) || mutable(function(&input, &[oids::CSTRING, oids::OID, oids::INT4]))
            });
            out || input
        }
        _ => false,
    })
}
