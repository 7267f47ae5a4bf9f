//! Collation derivation: which collation every expression has and every function compares with.
//!
//! The rules are those of the PostgreSQL manual, chapter 23.2 "Collation Support": explicit beats implicit, two different
//! implicit ones conflict unless one is the default.
//!
//! ICU's orders are not known here: an operation that would order by them is refused. Their equality is that of bytes, because
//! they are deterministic.

use melba_types::{DbError, Oid, Result, err};

use super::context::Context;
use melba_tree::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    None,
    Implicit,
    Conflict,
    Explicit,
}

#[derive(Clone, Copy)]
struct CollationState {
    collation: Oid,
    strength: Strength,
    location: i32,
}

const NOTHING: CollationState = CollationState { collation: Oid::INVALID, strength: Strength::None, location: -1 };

/// Derives collations for all expressions directly in the query.
pub fn assign_query(cx: &Context<'_>, q: &mut Query) -> Result<()> {
    let mut result = Ok(());
    q.expressions_mut(&mut |e| {
        if result.is_ok() {
            result = assign(cx, e);
        }
    });
    result?;
    let keys = q.order_by.iter().chain(q.windows.iter().flat_map(|w| &w.order_by));
    for at in places_of_targets(keys, &q.targets).filter_map(|(_, place)| place) {
        let expr = &q.targets[at].expr;
        refuse_order(cx, expr.collation(), expr.location())?;
    }
    Ok(())
}

/// # Errors
/// 0A000 where an order is needed of a collation that does not order by bytes.
fn refuse_order(cx: &Context<'_>, collation: Oid, location: i32) -> Result<()> {
    match cx.catalog.collation(collation) {
        Some(c) if c.provider == b'i' => {
            Err(DbError::unsupported(format!("ordering by the ICU collation \"{}\"", c.name)).at(location))
        }
        _ => Ok(()),
    }
}

/// The same for the operation of an expression on its inputs.
fn refuse_unknown_order(cx: &Context<'_>, e: &Expr, input: Oid) -> Result<()> {
    // min, max and similar ones.
    let is_extreme = |function: Oid| {
        let aggregate = cx.catalog.function(function).and_then(|f| f.aggregate.as_ref());
        aggregate.is_some_and(|a| a.sort_operator.is_valid())
    };
    let orders = match e {
        Expr::Operator(o) => cx.catalog.is_ordering(o.operator),
        Expr::ScalarArray(s) => cx.catalog.is_ordering(s.operator),
        Expr::Aggregate(a) => is_extreme(a.function),
        Expr::Window(w) => is_extreme(w.function),
        Expr::MinMax { .. } => true,
        _ => false,
    };
    if orders { refuse_order(cx, input, e.location()) } else { Ok(()) }
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
        merge(cx, &mut state, CollationState { collation, strength, location: e.location() })?;
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
    CollationState { collation, strength, location: -1 }
}

fn derive(cx: &Context<'_>, e: &mut Expr) -> Result<CollationState> {
    match e {
        Expr::Const(c) => {
            if !c.collation.is_valid() {
                c.collation = cx.collation_of_type(c.ty);
            }
            let strength = if c.collation.is_valid() { Strength::Implicit } else { Strength::None };
            return Ok(CollationState { collation: c.collation, strength, location: c.location });
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
            return Ok(CollationState { collation: *collation, strength: Strength::Explicit, location: arg.location() });
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
                if !matches!(row.comparison, Comparison::Equal | Comparison::NotEqual) {
                    refuse_order(cx, state.collation, state.location)?;
                }
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
        Expr::ArrayCoerce { arg, element, .. } => {
            assign(cx, element)?;
            let state = derive(cx, arg)?;
            return finish(cx, e, state);
        }
        _ => {}
    }
    let mut state = NOTHING;
    let mut result = Ok(());
    e.children_mut(&mut |child| {
        if result.is_ok() {
            result = derive(cx, child).and_then(|child| merge(cx, &mut state, child));
        }
    });
    result?;
    finish(cx, e, state)
}

/// The collation of an aggregate's arguments; its other parts are derived separately.
fn derive_aggregate(cx: &Context<'_>, a: &mut AggregateCall) -> Result<CollationState> {
    if let Some(filter) = &mut a.filter {
        assign(cx, filter)?;
    }
    for key in &mut a.order_by {
        assign(cx, &mut key.expr)?;
        refuse_order(cx, key.expr.collation(), key.expr.location())?;
    }
    let mut state = NOTHING;
    for arg in a.direct_args.iter_mut().chain(&mut a.args) {
        let child = derive(cx, arg)?;
        merge(cx, &mut state, child)?;
    }
    Ok(state)
}

/// Stores the children's collation as the node's input collation, and the node's own.
///
/// # Errors
/// 0A000 for an order that is not known.
fn finish(cx: &Context<'_>, e: &mut Expr, children: CollationState) -> Result<CollationState> {
    let input = if children.strength == Strength::Conflict { Oid::INVALID } else { children.collation };
    let ty_collation = cx.collation_of_type(e.ty());
    let state = if !ty_collation.is_valid() {
        NOTHING
    } else if children.strength == Strength::None {
        CollationState { collation: ty_collation, strength: Strength::Implicit, location: e.location() }
    } else {
        children
    };
    refuse_unknown_order(cx, e, input)?;
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
