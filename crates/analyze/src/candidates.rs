//! Overload resolution: finds the function or operator of a name that fits the arguments best.
//!
//! The algorithm is the one the PostgreSQL manual describes in "Type Conversion" (chapters 10.2 and 10.3).

use melba_types::{Oid, oids};

use super::coerce::CoercionContext;
use super::context::Context;

/// Anything chosen by the types of its arguments.
pub trait Candidate {
    fn args(&self) -> &[Oid];
}

/// The candidates that accept the argument types, perhaps after implicit casts.
pub fn matching<C: Candidate + Clone>(cx: &Context<'_>, inputs: &[Oid], candidates: &[C]) -> Vec<C> {
    let fits = |c: &&C| cx.can_coerce(inputs, c.args(), CoercionContext::Implicit);
    candidates.iter().filter(fits).cloned().collect()
}

/// The best of several candidates that all match; none when the choice is ambiguous.
pub fn select_candidate<C: Candidate + Clone>(cx: &Context<'_>, inputs: &[Oid], candidates: Vec<C>) -> Option<C> {
    let mut candidates = candidates;
    let base: Vec<Oid> = inputs.iter().map(|t| if *t == oids::UNKNOWN { *t } else { cx.base_type(*t) }).collect();
    let unknowns = base.iter().filter(|t| **t == oids::UNKNOWN).count();

    // Most exact matches.
    let exact = |c: &C| c.args().iter().zip(&base).filter(|(a, b)| **b != oids::UNKNOWN && a == b).count();
    candidates = keep_best(candidates, exact);
    if candidates.len() == 1 {
        return candidates.pop();
    }

    // Most arguments that need no cast or match the preferred type of their category.
    let categories: Vec<u8> = base.iter().map(|t| cx.category(*t).0).collect();
    let preferred = |c: &C| {
        let slots = c.args().iter().zip(&base).zip(&categories);
        let fits =
            |((a, b), category): &((&Oid, &Oid), &u8)| **b != oids::UNKNOWN && (a == b || cx.category(**a) == (**category, true));
        slots.filter(fits).count()
    };
    candidates = keep_best(candidates, preferred);
    if candidates.len() == 1 {
        return candidates.pop();
    }
    if unknowns == 0 {
        return None;
    }

    // Unknown literals: string category if any candidate takes it, else the category all agree on.
    if let Some(slots) = unknown_slots(cx, &base, &candidates) {
        let keep = |c: &C| {
            slots.iter().all(|&(i, category, needs_preferred)| {
                let (own, preferred) = cx.category(c.args()[i]);
                own == category && (!needs_preferred || preferred)
            })
        };
        if candidates.iter().any(keep) {
            candidates.retain(keep);
        }
        if candidates.len() == 1 {
            return candidates.pop();
        }
    }

    // Finally: take the unknowns to be of the one known type.
    let mut known = base.iter().filter(|t| **t != oids::UNKNOWN);
    let first = *known.next()?;
    if known.any(|t| *t != first) {
        return None;
    }
    let assumed: Vec<Oid> = vec![first; inputs.len()];
    let mut fitting = candidates.into_iter().filter(|c| cx.can_coerce(&assumed, c.args(), CoercionContext::Implicit));
    let chosen = fitting.next()?;
    if fitting.next().is_some() { None } else { Some(chosen) }
}

/// For every unknown argument the category to assume and whether only preferred types match; none when the
/// candidates disagree.
fn unknown_slots<C: Candidate>(cx: &Context<'_>, base: &[Oid], candidates: &[C]) -> Option<Vec<(usize, u8, bool)>> {
    let mut slots = Vec::new();
    for (i, _) in base.iter().enumerate().filter(|(_, t)| **t == oids::UNKNOWN) {
        let mut slot: Option<(u8, bool)> = None;
        let mut conflict = false;
        for candidate in candidates {
            let (category, preferred) = cx.category(candidate.args()[i]);
            slot = match slot {
                None => Some((category, preferred)),
                Some((c, p)) if c == category => Some((c, p || preferred)),
                Some(_) if category == b'S' => Some((category, preferred)),
                Some(other) => {
                    conflict = true;
                    Some(other)
                }
            };
        }
        let (category, preferred) = slot?;
        if conflict && category != b'S' {
            return None;
        }
        slots.push((i, category, preferred));
    }
    Some(slots)
}

fn keep_best<C>(candidates: Vec<C>, score: impl Fn(&C) -> usize) -> Vec<C> {
    let best = candidates.iter().map(&score).max().unwrap_or(0);
    candidates.into_iter().filter(|c| score(c) == best).collect()
}
