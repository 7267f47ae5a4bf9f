//! Collation derivation: which collation every expression has and every function compares with.
//!
//! The rules are those of the PostgreSQL manual, chapter 23.2 "Collation Support": explicit beats implicit, two different
//! implicit ones conflict unless one is the default.

use melba_types::{DbError, Oid, Result, err};

use super::context::Context;
use melba_tree::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    None,
    Implicit,
    Conflict,
    Explicit,
}

#[derive(Clone, Copy)]
pub(super) struct CollationState {
    collation: Oid,
    strength: Strength,
    location: i32,
    /// The first two that conflict.
    conflict: [Oid; 2],
}

impl CollationState {
    pub(super) fn new(collation: Oid, strength: Strength, location: i32) -> CollationState {
        CollationState { collation, strength, location, conflict: [Oid::INVALID; 2] }
    }
}

const NOTHING: CollationState =
    CollationState { collation: Oid::INVALID, strength: Strength::None, location: -1, conflict: [Oid::INVALID; 2] };

/// Derives collations for all expressions directly in the query.
pub fn assign_query(cx: &Context<'_>, q: &mut Query) -> Result<()> {
    let mut result = Ok(());
    q.expressions_mut(&mut |e| {
        if result.is_ok() {
            result = assign(cx, e);
        }
    });
    result?;
    q.targets.iter_mut().filter(|target| target.reference != 0).try_for_each(|target| refuse_conflict(cx, &mut target.expr))
}

/// # Errors
/// 42P21 for an expression to order or group by whose inputs have different collations.
fn refuse_conflict(cx: &Context<'_>, expr: &mut Expr) -> Result<()> {
    if expr.collation().is_valid() || !cx.collation_of_type(expr.ty()).is_valid() {
        return Ok(());
    }
    let state = derive(cx, expr)?;
    if state.strength == Strength::Conflict { Err(conflicting(cx, &state)) } else { Ok(()) }
}

fn conflicting(cx: &Context<'_>, state: &CollationState) -> DbError {
    let name = |oid: Oid| cx.catalog.collation(oid).map_or_else(String::new, |c| c.name.to_string());
    let [a, b] = state.conflict.map(name);
    err!(COLLATION_MISMATCH, "collation mismatch between implicit collations \"{a}\" and \"{b}\"")
        .hint("You can choose the collation by applying the COLLATE clause to one or both expressions.")
        .at(state.location)
}

/// The collation of an expression, and how it has got it.
pub(super) fn state_of(cx: &Context<'_>, e: &Expr) -> Result<CollationState> {
    derive(cx, &mut e.clone())
}

/// The collation of a set operation's column, 0 for none. `may_conflict`: its values are not compared.
///
/// # Errors
/// 42P21 for two explicit collations, and for two implicit ones of values that are compared.
pub(super) fn of_set(cx: &Context<'_>, left: CollationState, right: CollationState, may_conflict: bool) -> Result<Oid> {
    let mut state = left;
    merge(cx, &mut state, right)?;
    match state.strength {
        Strength::Conflict if may_conflict => Ok(Oid::INVALID),
        Strength::Conflict => Err(conflicting(cx, &state)),
        _ => Ok(state.collation),
    }
}

/// Derives the collations of an expression and everything in it.
pub fn assign(cx: &Context<'_>, e: &mut Expr) -> Result<()> {
    derive(cx, e).map(|_| ())
}

/// The common collation of expressions that have theirs; 0 when they conflict.
pub fn common(cx: &Context<'_>, exprs: &[Expr]) -> Result<Oid> {
    let mut state = NOTHING;
    for e in exprs {
        let collation = e.collation();
        let strength = match e {
            Expr::Collate { .. } => Strength::Explicit,
            _ if collation.is_valid() => Strength::Implicit,
            _ => Strength::None,
        };
        merge(cx, &mut state, CollationState::new(collation, strength, e.location()))?;
    }
    Ok(if state.strength == Strength::Conflict { Oid::INVALID } else { state.collation })
}

fn assign_children(cx: &Context<'_>, e: &mut Expr) -> Result<()> {
    let mut result = Ok(());
    e.children_mut(&mut |child| {
        if result.is_ok() {
            result = assign(cx, child);
        }
    });
    result
}

/// Derives expressions that do not influence each other.
pub fn assign_list(cx: &Context<'_>, exprs: &mut [Expr]) -> Result<()> {
    exprs.iter_mut().try_for_each(|e| assign(cx, e))
}

fn merge(cx: &Context<'_>, into: &mut CollationState, child: CollationState) -> Result<()> {
    if child.strength > into.strength {
        *into = child;
        return Ok(());
    }
    if child.strength < into.strength || child.collation == into.collation {
        return Ok(());
    }
    match child.strength {
        Strength::None | Strength::Conflict => {}
        Strength::Implicit => {
            if into.collation == DEFAULT_COLLATION {
                *into = child;
            } else if child.collation != DEFAULT_COLLATION {
                into.strength = Strength::Conflict;
                into.conflict = [into.collation, child.collation];
                into.collation = Oid::INVALID;
                into.location = child.location;
            }
        }
        Strength::Explicit => {
            let name = |oid: Oid| cx.catalog.collation(oid).map_or_else(String::new, |c| c.name.to_string());
            return Err(err!(
                COLLATION_MISMATCH,
                "collation mismatch between explicit collations \"{}\" and \"{}\"",
                name(into.collation),
                name(child.collation)
            )
            .at(child.location));
        }
    }
    Ok(())
}

fn own(e: &Expr) -> CollationState {
    let collation = e.collation();
    let strength = if collation.is_valid() { Strength::Implicit } else { Strength::None };
    CollationState::new(collation, strength, -1)
}

fn derive(cx: &Context<'_>, e: &mut Expr) -> Result<CollationState> {
    match e {
        Expr::Const(c) => {
            if !c.collation.is_valid() {
                c.collation = cx.collation_of_type(c.ty);
            }
            let strength = if c.collation.is_valid() { Strength::Implicit } else { Strength::None };
            return Ok(CollationState::new(c.collation, strength, c.location));
        }
        Expr::Var(_)
        | Expr::Param(_)
        | Expr::SqlValue { .. }
        | Expr::CaseTest { .. }
        | Expr::DomainValue { .. }
        | Expr::Default { .. }
        | Expr::CurrentOf { .. }
        | Expr::MergeAction
        | Expr::NextValue { .. } => {
            let mut state = own(e);
            if state.strength != Strength::None {
                state.location = e.location();
            }
            return Ok(state);
        }
        Expr::Collate { arg, collation } => {
            derive(cx, arg)?;
            return Ok(CollationState::new(*collation, Strength::Explicit, arg.location()));
        }
        // That of its type, whatever collation its inputs have.
        Expr::FieldSelect { .. } | Expr::Json(_) => return assign_children(cx, e).map(|()| own(e)),
        Expr::Row(row) => {
            assign_list(cx, &mut row.fields)?;
            return Ok(NOTHING);
        }
        Expr::RowCompare(row) => {
            row.input_collations.clear();
            for (l, r) in row.left.iter_mut().zip(&mut row.right) {
                let mut state = derive(cx, l)?;
                let right = derive(cx, r)?;
                merge(cx, &mut state, right)?;
                row.input_collations.push(state.collation);
            }
            return Ok(NOTHING);
        }
        Expr::Sublink(s) => {
            if let Some(test) = &mut s.test {
                assign(cx, test)?;
            }
            return Ok(own(e));
        }
        Expr::Case(c) => {
            let mut state = NOTHING;
            for (when, then) in &mut c.whens {
                assign(cx, when)?;
                let child = derive(cx, then)?;
                merge(cx, &mut state, child)?;
            }
            let child = derive(cx, &mut c.default)?;
            merge(cx, &mut state, child)?;
            return finish(cx, e, state);
        }
        Expr::Subscript(s) => {
            for index in s.upper.iter_mut().chain(&mut s.lower).flatten() {
                assign(cx, index)?;
            }
            let mut state = derive(cx, &mut s.container)?;
            if let Some(assigned) = &mut s.assign {
                let child = derive(cx, assigned)?;
                merge(cx, &mut state, child)?;
            }
            return finish(cx, e, state);
        }
        Expr::Aggregate(a) => {
            let state = derive_aggregate(cx, a)?;
            return finish(cx, e, state);
        }
        Expr::Window(w) => {
            if let Some(filter) = &mut w.filter {
                assign(cx, filter)?;
            }
            let mut state = NOTHING;
            for arg in &mut w.args {
                let child = derive(cx, arg)?;
                merge(cx, &mut state, child)?;
            }
            return finish(cx, e, state);
        }
        Expr::CoerceToDomain { .. } => return derive_domain(cx, e),
        Expr::ArrayCoerce { arg, element, .. } => {
            assign(cx, element)?;
            let state = derive(cx, arg)?;
            return finish(cx, e, state);
        }
        _ => {}
    }
    // Defaults of arguments have no part in it.
    let given = if let Expr::Function(f) = &*e { f.args.len() - f.defaulted } else { usize::MAX };
    let (mut state, mut seen, mut result) = (NOTHING, 0, Ok(()));
    e.children_mut(&mut |child| {
        if result.is_ok() {
            seen += 1;
            result = derive(cx, child).and_then(|child| if seen > given { Ok(()) } else { merge(cx, &mut state, child) });
        }
    });
    result?;
    finish(cx, e, state)
}

/// A domain that declares a collation has it; others have that of the value.
fn derive_domain(cx: &Context<'_>, e: &mut Expr) -> Result<CollationState> {
    let declared = cx.collation_of_type(e.ty());
    let Expr::CoerceToDomain { arg, .. } = e else { return Ok(NOTHING) };
    let value = derive(cx, arg)?;
    if !declared.is_valid() || declared == DEFAULT_COLLATION {
        return finish(cx, e, value);
    }
    store(e, declared, Oid::INVALID);
    Ok(CollationState::new(declared, Strength::Implicit, e.location()))
}

/// The collation of an aggregate's arguments; its other parts are derived separately.
fn derive_aggregate(cx: &Context<'_>, a: &mut AggregateCall) -> Result<CollationState> {
    if let Some(filter) = &mut a.filter {
        assign(cx, filter)?;
    }
    for key in &mut a.order_by {
        assign(cx, &mut key.expr)?;
        refuse_conflict(cx, &mut key.expr)?;
    }
    let mut state = NOTHING;
    for arg in a.direct_args.iter_mut().chain(&mut a.args) {
        let child = derive(cx, arg)?;
        merge(cx, &mut state, child)?;
    }
    Ok(state)
}

/// Stores the children's collation as the node's input collation, and the node's own.
fn finish(cx: &Context<'_>, e: &mut Expr, children: CollationState) -> Result<CollationState> {
    let input = if children.strength == Strength::Conflict { Oid::INVALID } else { children.collation };
    let ty_collation = cx.collation_of_type(e.ty());
    let state = if !ty_collation.is_valid() {
        NOTHING
    } else if children.strength == Strength::None {
        CollationState::new(ty_collation, Strength::Implicit, e.location())
    } else {
        children
    };
    store(e, state.collation, input);
    Ok(state)
}

fn store(e: &mut Expr, own: Oid, input: Oid) {
    match e {
        Expr::Function(f) => (f.collation, f.input_collation) = (own, input),
        Expr::Operator(o) | Expr::Distinct(o) | Expr::NullIf(o) => (o.collation, o.input_collation) = (own, input),
        Expr::ScalarArray(s) => s.input_collation = input,
        Expr::Case(c) => c.collation = own,
        Expr::Array(a) => a.collation = own,
        Expr::Subscript(s) => s.collation = own,
        Expr::Aggregate(a) => (a.collation, a.input_collation) = (own, input),
        Expr::Window(w) => (w.collation, w.input_collation) = (own, input),
        Expr::JsonConstructor(c) => c.collation = own,
        Expr::Coalesce { collation, .. }
        | Expr::MinMax { collation, .. }
        | Expr::Relabel { collation, .. }
        | Expr::CoerceViaIo { collation, .. }
        | Expr::ArrayCoerce { collation, .. }
        | Expr::CoerceToDomain { collation, .. } => *collation = own,
        _ => {}
    }
}
