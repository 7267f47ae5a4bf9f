//! Evaluates conditions on a row whose columns of some relation are all NULL.
//!
//! An outer join returns such rows, and rewrites depend on them: a LEFT JOIN is an inner join if no condition above can be true
//! for its null-extended rows. Only this module decides which expressions are strict. `Outcome::of` visits an expression once and
//! keeps, for every relation, which of TRUE, FALSE and NULL are ruled out when its columns are NULL:
//!
//! 1. `null`: the expression is NULL. Of a boolean, that is `not_true` and `not_false`.
//! 2. `not_true`: it is FALSE or NULL. A conjunct of WHERE with this "rejects NULLs" of the relation.
//! 3. `not_false`: it is TRUE or NULL. NOT turns it into `not_true`; that is why both are kept: `a > 0 AND b > 0` is not TRUE
//!    when a is NULL, but it may be FALSE, so that its negation may be TRUE.
//!
//! Expressions that the table lacks have no outcome ruled out, which is always right.

use melba_catalog::Catalog;
use melba_types::{Datum, Oid};

use super::rels::Rels;
use melba_tree::{BooleanTest, Expr, ScalarArrayExpr, Sublink, SublinkKind};

const ALL: Rels = Rels::MAX;

/// For each relation, the outcomes that its columns being NULL rule out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    null: Rels,
    not_true: Rels,
    not_false: Rels,
}

/// Relations of which a row of NULLs cannot satisfy the condition.
pub(super) fn rejected_nulls(catalog: &Catalog, condition: &Expr) -> Rels {
    Outcome::of(catalog, condition).not_true
}

impl Outcome {
    fn null(rels: Rels) -> Outcome {
        Outcome { null: rels, not_true: rels, not_false: rels }
    }

    fn of(catalog: &Catalog, expr: &Expr) -> Outcome {
        let of = |e: &Expr| Outcome::of(catalog, e);
        match expr {
            // A whole row is left alone: whether a row of NULLs is NULL depends on the context.
            Expr::Var(v) if v.levels_up == 0 && v.column != 0 => Outcome::null(1 << v.entry.min(127)),
            Expr::Const(c) => match c.value {
                Datum::Null => Outcome::null(ALL),
                Datum::Bool(value) => {
                    let (not_true, not_false) = if value { (0, ALL) } else { (ALL, 0) };
                    Outcome { null: 0, not_true, not_false }
                }
                _ => Outcome::default(),
            },
            // A strict function is NULL as soon as one argument is.
            Expr::Function(f) if !f.returns_set && is_strict(catalog, f.function) => any_null(f.args.iter().map(of)),
            Expr::Operator(o) if !o.returns_set && is_strict(catalog, o.function) => any_null(o.args.iter().map(of)),
            // Casts and parts of NULL are NULL. A domain's checks may decide otherwise.
            Expr::Relabel { arg, .. }
            | Expr::CoerceViaIo { arg, .. }
            | Expr::ArrayCoerce { arg, .. }
            | Expr::ConvertRowtype { arg, .. }
            | Expr::Collate { arg, .. }
            | Expr::FieldSelect { arg, .. } => Outcome::null(of(arg).null),
            Expr::Subscript(s) if s.assign.is_none() => Outcome::null(of(&s.container).null),
            Expr::ScalarArray(s) => Outcome::of_scalar_array(catalog, s),
            Expr::Not(arg) => {
                let Outcome { null, not_true, not_false } = of(arg);
                Outcome { null, not_true: not_false, not_false: not_true }
            }
            Expr::And(args) => conjunction(args.iter().map(of)),
            Expr::Or(args) => {
                let swapped = conjunction(args.iter().map(|a| of(a).swapped()));
                swapped.swapped()
            }
            Expr::NullTest { arg, is_null, row: false } => {
                let null = of(arg).null;
                if *is_null { never(0, null) } else { never(null, 0) }
            }
            Expr::BooleanTest { arg, test } => {
                let arg = of(arg);
                match test {
                    BooleanTest::True => never(arg.not_true, 0),
                    BooleanTest::NotTrue => never(0, arg.not_true),
                    BooleanTest::False => never(arg.not_false, 0),
                    BooleanTest::NotFalse => never(0, arg.not_false),
                    BooleanTest::Unknown => never(0, arg.null),
                    BooleanTest::NotUnknown => never(arg.null, 0),
                }
            }
            // One of the arguments, or NULL.
            Expr::Coalesce { args, .. } => one_of(args.iter().map(of)),
            Expr::MinMax { args, .. } => Outcome::null(one_of(args.iter().map(of)).null),
            Expr::Case(c) => one_of(c.whens.iter().map(|(_, then)| then).chain([&c.default]).map(of)),
            Expr::Sublink(s) => Outcome::of_sublink(catalog, s),
            _ => Outcome::default(),
        }
    }

    fn swapped(self) -> Outcome {
        Outcome { null: self.null, not_true: self.not_false, not_false: self.not_true }
    }

    /// Over an empty array ANY is FALSE and ALL is TRUE for every scalar; over a NULL array both are NULL.
    fn of_scalar_array(catalog: &Catalog, s: &ScalarArrayExpr) -> Outcome {
        let array = Outcome::of(catalog, &s.array).null;
        let scalar = if is_strict(catalog, s.function) { Outcome::of(catalog, &s.scalar).null } else { 0 };
        if has_elements(&s.array) {
            return Outcome::null(array | scalar);
        }
        match s.any {
            true => Outcome { null: array, not_true: array | scalar, not_false: array },
            false => Outcome { null: array, not_true: array, not_false: array | scalar },
        }
    }

    /// ANY is TRUE, and ALL FALSE, only if the test is for some row. Over no rows they are the contrary; a row comparison is NULL.
    fn of_sublink(catalog: &Catalog, s: &Sublink) -> Outcome {
        let Some(test) = &s.test else { return Outcome::default() };
        let test = Outcome::of(catalog, test);
        match s.kind {
            SublinkKind::Any => never(test.not_true, 0),
            SublinkKind::All => never(0, test.not_false),
            SublinkKind::RowCompare => test,
            _ => Outcome::default(),
        }
    }
}

fn never(not_true: Rels, not_false: Rels) -> Outcome {
    Outcome { null: not_true & not_false, not_true, not_false }
}

fn any_null(args: impl Iterator<Item = Outcome>) -> Outcome {
    Outcome::null(args.fold(0, |all, arg| all | arg.null))
}

/// AND is TRUE if all are, FALSE if one is, NULL if none is FALSE and one is NULL.
fn conjunction(args: impl Iterator<Item = Outcome>) -> Outcome {
    let (mut some_null, mut not_true, mut not_false) = (0, 0, ALL);
    for arg in args {
        some_null |= arg.null;
        not_true |= arg.not_true;
        not_false &= arg.not_false;
    }
    Outcome { null: some_null & not_false, not_true, not_false }
}

fn one_of(args: impl Iterator<Item = Outcome>) -> Outcome {
    args.fold(Outcome::null(ALL), |all, arg| Outcome {
        null: all.null & arg.null,
        not_true: all.not_true & arg.not_true,
        not_false: all.not_false & arg.not_false,
    })
}

pub fn is_strict(catalog: &Catalog, function: Oid) -> bool {
    catalog.function(function).is_some_and(|f| f.strict)
}

fn has_elements(array: &Expr) -> bool {
    match array {
        Expr::Const(c) => matches!(&c.value, Datum::Array(a) if !a.elements.is_empty()),
        Expr::Array(a) => !a.multidimensional && !a.elements.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
