//! What a document must have in a GIN index for a jsonpath to select something, or to be true.
//!
//! Only what is certain is demanded: a path without keys and comparisons by `==` demands nothing.

use melba_fmgr::gin::GinQuery;
use melba_types::jsonb::View;
use melba_types::{Result, limits};

use super::ast::{Accessor, Expr, Path, PathOperator};

/// An operator class: what it has for keys and values.
pub struct Entries {
    /// A key of an object somewhere.
    pub key: fn(&str) -> GinQuery,
    /// A value behind a path, whose hash is known or not.
    pub value: fn(Option<u64>, &View<'_>) -> GinQuery,
    /// The hash of a path, and a key below it.
    pub below: fn(u64, &str) -> u64,
}

/// Demands of the operator `@?`.
pub fn of_exists(entries: &Entries, path: &Path) -> Result<GinQuery> {
    // The value of a predicate always exists.
    match path.expr.is_predicate() {
        true => Ok(GinQuery::ALL),
        false => needs(entries, &path.expr, &Place::root()),
    }
}

/// Demands of the operator `@@`.
pub fn of_match(entries: &Entries, path: &Path) -> Result<GinQuery> {
    predicate(entries, &path.expr, &Place::root())
}

/// Where a path has come to.
#[derive(Clone)]
struct Place {
    needs: Vec<GinQuery>,
    /// Of the keys to it; `None` when they are not known.
    hash: Option<u64>,
    /// A method has made another value.
    is_computed: bool,
}

impl Place {
    fn root() -> Place {
        Place { needs: Vec::new(), hash: Some(0), is_computed: false }
    }

    fn step(&mut self, entries: &Entries, accessor: &Accessor) -> Result<()> {
        if self.is_computed {
            return Ok(());
        }
        match accessor {
            Accessor::Key(key) => {
                self.needs.push((entries.key)(key));
                self.hash = self.hash.map(|hash| (entries.below)(hash, key));
            }
            Accessor::AnyKey | Accessor::AnyLevel(..) => self.hash = None,
            // Arrays are no part of a path.
            Accessor::AnyElement | Accessor::Elements(_) => {}
            Accessor::Filter(condition) => {
                let current = Place { needs: Vec::new(), ..self.clone() };
                self.needs.push(predicate(entries, condition, &current)?);
            }
            Accessor::Method(..) => self.is_computed = true,
        }
        Ok(())
    }
}

/// Where an expression leads, from the place of `@`; `None` when it is no path over the document.
fn place(entries: &Entries, expr: &Expr, current: &Place) -> Result<Option<Place>> {
    limits::check_stack()?;
    Ok(match expr {
        Expr::Root => Some(Place::root()),
        Expr::Current => Some(current.clone()),
        Expr::Chain(base, accessors) => match place(entries, base, current)? {
            Some(mut place) => {
                accessors.iter().try_for_each(|accessor| place.step(entries, accessor))?;
                Some(place)
            }
            None => None,
        },
        _ => None,
    })
}

/// What must be there for an expression to select something.
fn needs(entries: &Entries, expr: &Expr, current: &Place) -> Result<GinQuery> {
    Ok(place(entries, expr, current)?.map_or(GinQuery::ALL, |place| every(place.needs)))
}

fn predicate(entries: &Entries, expr: &Expr, current: &Place) -> Result<GinQuery> {
    limits::check_stack()?;
    Ok(match expr {
        Expr::Binary(PathOperator::And, left, right) => {
            every(vec![predicate(entries, left, current)?, predicate(entries, right, current)?])
        }
        Expr::Binary(PathOperator::Or, left, right) => {
            let parts = vec![predicate(entries, left, current)?, predicate(entries, right, current)?];
            if parts.contains(&GinQuery::ALL) { GinQuery::ALL } else { GinQuery::Or(parts) }
        }
        Expr::Binary(operator, left, right) if expr.is_predicate() => {
            let mut parts = vec![needs(entries, left, current)?, needs(entries, right, current)?];
            if *operator == PathOperator::Equal {
                parts.push(equality(entries, left, right, current)?);
                parts.push(equality(entries, right, left, current)?);
            }
            every(parts)
        }
        Expr::Exists(path) | Expr::StartsWith(path, _) | Expr::LikeRegex(path, ..) => needs(entries, path, current)?,
        _ => GinQuery::ALL,
    })
}

/// A value that is equal to a literal.
fn equality(entries: &Entries, path: &Expr, literal: &Expr, current: &Place) -> Result<GinQuery> {
    let literal = match literal {
        Expr::Null => View::Null,
        Expr::Bool(value) => View::Bool(*value),
        Expr::Number(value) => View::Number(value.clone()),
        Expr::String(text) => View::String(text),
        _ => return Ok(GinQuery::ALL),
    };
    let place = place(entries, path, current)?.filter(|place| !place.is_computed);
    Ok(place.map_or(GinQuery::ALL, |place| (entries.value)(place.hash, &literal)))
}

/// All of them, without those that demand nothing.
fn every(mut parts: Vec<GinQuery>) -> GinQuery {
    parts.retain(|part| *part != GinQuery::ALL);
    match parts.len() {
        1 => parts.remove(0),
        _ => GinQuery::And(parts),
    }
}
