//! Whether one condition implies another: which indexes with a predicate have all rows that a condition asks for.
//!
//! PostgreSQL's rules (predtest.c), as far as predicates of indexes need them: a condition that is true proves the predicate true. What
//! is not proved may hold all the same. Parameters prove nothing: a plan must hold for all their values.

use melba_catalog::AccessMethods;
use melba_catalog::classes::BTREE;
use melba_tree::{BooleanTest, CoercionForm, Const, Expr, OperatorCall, ScalarArrayExpr, equal};
use melba_types::{Datum, Oid, oids};

use crate::nullability::is_strict;
use crate::planner::Planner;
use crate::selectivity::constant;

/// Longer lists of values are not looked into.
const LIST_VALUES_MAX: usize = 100;

/// Strategies of B-tree families.
pub const LESS: i16 = 1;
pub const LESS_EQUAL: i16 = 2;
pub const EQUAL: i16 = 3;
pub const GREATER_EQUAL: i16 = 4;
pub const GREATER: i16 = 5;
/// Not one of them: the negator of EQUAL.
const NOT_EQUAL: i16 = 6;

/// Whether a condition surely implies a predicate.
pub fn implies(planner: &Planner<'_>, condition: &Expr, predicate: &Expr) -> bool {
    let prover = Prover { planner };
    prover.implies(&prover.normal(condition), &prover.normal(predicate))
}

/// Whether two expressions are equal, with or without explicit casts: in stored texts casts are explicit.
pub fn is_same(a: &Expr, b: &Expr) -> bool {
    equal(&with_casts_alike(a), &with_casts_alike(b))
}

fn with_casts_alike(e: &Expr) -> Expr {
    let mut copy = e.clone();
    copy.visit_mut(0, &mut |e, _| {
        match e {
            Expr::Relabel { form, .. }
            | Expr::CoerceViaIo { form, .. }
            | Expr::ArrayCoerce { form, .. }
            | Expr::ConvertRowtype { form, .. }
            | Expr::CoerceToDomain { form, .. } => *form = CoercionForm::ImplicitCast,
            Expr::Function(f) => f.form = CoercionForm::Call,
            _ => {}
        }
        true
    });
    copy
}

struct Prover<'p, 'a> {
    planner: &'p Planner<'a>,
}

/// A comparison with the side of one expression first.
struct SidedComparison<'e> {
    operator: Oid,
    side: &'e Expr,
    other: &'e Expr,
    collation: Oid,
}

impl Prover<'_, '_> {
    /// The condition with what is true exactly when it is: ANDs and ORs, conditions without tests for true and false.
    fn normal(&self, e: &Expr) -> Expr {
        match e {
            Expr::And(args) => Expr::And(args.iter().map(|a| self.normal(a)).collect()),
            Expr::Or(args) => Expr::Or(args.iter().map(|a| self.normal(a)).collect()),
            Expr::BooleanTest { arg, test: BooleanTest::True } => self.normal(arg),
            Expr::BooleanTest { arg, test: BooleanTest::False } => self.negated(arg),
            Expr::Not(arg) => self.negated(arg),
            Expr::Operator(o) if self.planner.catalog().type_operators(oids::BOOL).equal == o.operator => {
                self.compared_boolean(e, o)
            }
            Expr::ScalarArray(list) => self.spelled_out(list).unwrap_or_else(|| e.clone()),
            _ => e.clone(),
        }
    }

    fn negated(&self, arg: &Expr) -> Expr {
        match arg {
            Expr::NullTest { arg, is_null, row: false } => Expr::NullTest { arg: arg.clone(), is_null: !is_null, row: false },
            Expr::Not(arg) => self.normal(arg),
            _ => Expr::Not(Box::new(arg.clone())),
        }
    }

    /// `a = true` is `a`.
    fn compared_boolean(&self, e: &Expr, o: &OperatorCall) -> Expr {
        let [a, b] = &o.args[..] else { return e.clone() };
        match (constant(self.planner, a), constant(self.planner, b)) {
            (None, Some(Datum::Bool(true))) => self.normal(a),
            (None, Some(Datum::Bool(false))) => self.negated(a),
            (Some(Datum::Bool(true)), None) => self.normal(b),
            (Some(Datum::Bool(false)), None) => self.negated(b),
            _ => e.clone(),
        }
    }

    /// `a = ANY (list)` as an OR, `a <> ALL (list)` as an AND.
    fn spelled_out(&self, list: &ScalarArrayExpr) -> Option<Expr> {
        let Datum::Array(array) = constant(self.planner, &list.array)? else { return None };
        let catalog = self.planner.catalog();
        let ty = catalog.type_(catalog.base_type(list.array.ty())).map(|array| array.element)?;
        if array.elements.len() > LIST_VALUES_MAX || array.elements.is_empty() {
            return None;
        }
        let comparison = |value: &Datum| {
            let value = Const { value: value.clone(), ty, typmod: -1, collation: list.array.collation(), location: -1 };
            Expr::Operator(Box::new(OperatorCall {
                operator: list.operator,
                function: list.function,
                args: vec![list.scalar.clone(), Expr::Const(value)],
                ty: oids::BOOL,
                collation: Oid::INVALID,
                input_collation: list.input_collation,
                returns_set: false,
                location: -1,
            }))
        };
        let comparisons = array.elements.iter().map(comparison).collect();
        Some(if list.any { Expr::Or(comparisons) } else { Expr::And(comparisons) })
    }

    fn implies(&self, condition: &Expr, predicate: &Expr) -> bool {
        match (condition, predicate) {
            (_, Expr::And(parts)) => parts.iter().all(|p| self.implies(condition, p)),
            (Expr::Or(arms), _) => arms.iter().all(|arm| self.implies(arm, predicate)),
            (Expr::And(parts), Expr::Or(arms)) => {
                arms.iter().any(|arm| self.implies(condition, arm)) || parts.iter().any(|part| self.implies(part, predicate))
            }
            (Expr::And(parts), _) => parts.iter().any(|part| self.implies(part, predicate)),
            (_, Expr::Or(arms)) => arms.iter().any(|arm| self.implies(condition, arm)),
            _ => self.implies_simply(condition, predicate),
        }
    }

    fn implies_simply(&self, condition: &Expr, predicate: &Expr) -> bool {
        if is_same(condition, predicate) {
            return true;
        }
        match (condition, predicate) {
            (_, Expr::NullTest { arg, is_null: false, row: false }) => self.needs(condition, arg),
            (Expr::Operator(a), Expr::Operator(b)) => self.comparison_implies(a, b),
            _ => false,
        }
    }

    /// Whether a condition is true only if a value is not NULL.
    fn needs(&self, condition: &Expr, value: &Expr) -> bool {
        if is_same(condition, value) {
            return true;
        }
        let catalog = self.planner.catalog();
        let any = |args: &[Expr]| args.iter().any(|arg| self.needs(arg, value));
        match condition {
            Expr::Operator(o) => !o.returns_set && is_strict(catalog, o.function) && any(&o.args),
            Expr::Function(f) => !f.returns_set && is_strict(catalog, f.function) && any(&f.args),
            Expr::Not(arg) | Expr::Relabel { arg, .. } => self.needs(arg, value),
            _ => false,
        }
    }

    fn comparison_implies(&self, a: &OperatorCall, b: &OperatorCall) -> bool {
        self.ways(a).iter().any(|a| {
            let suits =
                |b: &SidedComparison<'_>| a.collation == b.collation && is_same(a.side, b.side) && self.bound_implies(a, b);
            self.ways(b).iter().any(suits)
        })
    }

    /// A comparison, as written and with its sides exchanged.
    fn ways<'e>(&self, o: &'e OperatorCall) -> Vec<SidedComparison<'e>> {
        let [left, right] = &o.args[..] else { return vec![] };
        let of = |operator, side, other| SidedComparison { operator, side, other, collation: o.input_collation };
        let commutator = self.planner.catalog().operator(o.operator).map_or(Oid::INVALID, |o| o.commutator);
        let mut ways = vec![of(o.operator, left, right)];
        if commutator.is_valid() {
            ways.push(of(commutator, right, left));
        }
        ways
    }

    /// Whether `side a.operator a.other` implies `side b.operator b.other`.
    fn bound_implies(&self, a: &SidedComparison<'_>, b: &SidedComparison<'_>) -> bool {
        let access = self.planner.catalog().access_methods();
        let places = self.places(b.operator);
        self.places(a.operator).into_iter().any(|(family, of_a)| {
            places.iter().filter(|place| place.0 == family).any(|(_, of_b)| {
                let Some(test) = deciding_test(of_a, *of_b) else { return false };
                match is_same(a.other, b.other) {
                    true => matches!(test, LESS_EQUAL | EQUAL | GREATER_EQUAL),
                    false => self.holds(access, family, test, b, a),
                }
            })
        })
    }

    /// Whether the constant of `b` compares with that of `a` as `test` says.
    fn holds(&self, access: &AccessMethods, family: Oid, test: i16, b: &SidedComparison<'_>, a: &SidedComparison<'_>) -> bool {
        let known = |e: &Expr| constant(self.planner, e).is_some_and(|value| !value.is_null());
        if !known(a.other) || !known(b.other) {
            return false;
        }
        let operand = |c: &SidedComparison<'_>| self.planner.catalog().operator(c.operator).map(|o| o.right);
        let (Some(left), Some(right)) = (operand(b), operand(a)) else { return false };
        let strategy = if test == NOT_EQUAL { EQUAL } else { test };
        let Some(operator) = access.operator(family, left, right, strategy) else { return false };
        let Some(function) = self.planner.catalog().operator(operator).map(|o| o.function) else { return false };
        let compared = Expr::Operator(Box::new(OperatorCall {
            operator,
            function,
            args: vec![b.other.clone(), a.other.clone()],
            ty: oids::BOOL,
            collation: Oid::INVALID,
            input_collation: a.collation,
            returns_set: false,
            location: -1,
        }));
        matches!(constant(self.planner, &compared), Some(Datum::Bool(holds)) if holds == (test != NOT_EQUAL))
    }

    /// The B-tree families of an operator, with its strategies; of `<>` those of its negator.
    fn places(&self, operator: Oid) -> Vec<(Oid, i16)> {
        let catalog = self.planner.catalog();
        let ordered = |operator: Oid| catalog.operator_members(operator).filter(|m| m.method == BTREE && !m.ordering);
        let mut places: Vec<(Oid, i16)> = ordered(operator).map(|m| (m.family, m.strategy)).collect();
        if let Some(negator) = catalog.operator(operator).map(|o| o.negator).filter(|negator| negator.is_valid()) {
            places.extend(ordered(negator).filter(|m| m.strategy == EQUAL).map(|m| (m.family, NOT_EQUAL)));
        }
        places
    }
}

/// `x a c` implies `x b d` if `d test c`.
fn deciding_test(a: i16, b: i16) -> Option<i16> {
    match (a, b) {
        (LESS, LESS | LESS_EQUAL | NOT_EQUAL) => Some(GREATER_EQUAL),
        (LESS_EQUAL, LESS_EQUAL) => Some(GREATER_EQUAL),
        (LESS_EQUAL, LESS | NOT_EQUAL) => Some(GREATER),
        (EQUAL, LESS) => Some(GREATER),
        (EQUAL, LESS_EQUAL) => Some(GREATER_EQUAL),
        (EQUAL, GREATER_EQUAL) => Some(LESS_EQUAL),
        (EQUAL, GREATER) => Some(LESS),
        (EQUAL, EQUAL | NOT_EQUAL) => Some(b),
        (GREATER_EQUAL, GREATER_EQUAL) => Some(LESS_EQUAL),
        (GREATER_EQUAL, GREATER | NOT_EQUAL) => Some(LESS),
        (GREATER, GREATER_EQUAL | GREATER | NOT_EQUAL) => Some(LESS_EQUAL),
        (NOT_EQUAL, NOT_EQUAL) => Some(EQUAL),
        _ => None,
    }
}
