//! Whether two expressions are equal: a clause finds its targets and groups by that.

use melba_types::Datum;

use crate::Expr;

/// Whether two expressions are the same, their places in the text apart.
pub fn equal(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        (Expr::Var(x), Expr::Var(y)) => {
            x.entry == y.entry && x.column == y.column && x.levels_up == y.levels_up && x.version == y.version
        }
        (Expr::Const(x), Expr::Const(y)) => x.ty == y.ty && x.typmod == y.typmod && same_datum(&x.value, &y.value),
        (Expr::Param(x), Expr::Param(y)) => x.kind == y.kind && x.number == y.number && x.ty == y.ty,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && shape(a) == shape(b),
    }
}

fn same_datum(a: &Datum, b: &Datum) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

/// The expression's debug form without the parts that `equal` ignores.
pub fn shape(e: &Expr) -> String {
    let mut copy = e.clone();
    copy.visit_mut(0, &mut |e, _| {
        match e {
            Expr::Const(c) => {
                c.location = -1;
                c.collation = Default::default();
            }
            Expr::Var(v) => v.location = -1,
            Expr::Param(p) => p.location = -1,
            Expr::Function(f) => {
                f.location = -1;
                f.collation = Default::default();
                f.input_collation = Default::default();
            }
            Expr::Operator(o) | Expr::Distinct(o) | Expr::NullIf(o) => {
                o.location = -1;
                o.collation = Default::default();
                o.input_collation = Default::default();
            }
            Expr::ScalarArray(s) => {
                s.location = -1;
                s.input_collation = Default::default();
            }
            Expr::Aggregate(a) => {
                a.location = -1;
                a.collation = Default::default();
                a.input_collation = Default::default();
            }
            Expr::Window(w) => {
                w.location = -1;
                w.collation = Default::default();
                w.input_collation = Default::default();
            }
            Expr::Sublink(s) => s.location = -1,
            Expr::IsJson(p) => p.location = -1,
            Expr::JsonConstructor(c) => (c.location, c.collation) = (-1, Default::default()),
            Expr::Json(j) => (j.location, j.collation) = (-1, Default::default()),
            Expr::Relabel { collation, .. }
            | Expr::CoerceViaIo { collation, .. }
            | Expr::MinMax { collation, .. }
            | Expr::ArrayCoerce { collation, .. }
            | Expr::CaseTest { collation, .. }
            | Expr::CoerceToDomain { collation, .. } => *collation = Default::default(),
            Expr::Case(c) => {
                c.location = -1;
                c.collation = Default::default();
            }
            Expr::Array(a) => {
                a.location = -1;
                a.collation = Default::default();
            }
            Expr::Row(r) => r.location = -1,
            Expr::Grouping { location, .. } => *location = -1,
            Expr::Coalesce { collation, location, .. } => {
                *location = -1;
                *collation = Default::default();
            }
            Expr::Subscript(s) => s.collation = Default::default(),
            Expr::RowCompare(r) => r.input_collations.clear(),
            _ => {}
        }
        true
    });
    format!("{copy:?}")
}
