//! `$n`: given types, and types inferred from the places of parameters.

use melba_types::{Oid, Result, err, oids};

use super::context::Context;
use super::routine_scope::RoutineScope;
use melba_tree::*;

/// The types of a statement's parameters.
#[derive(Debug, Default)]
pub struct Params {
    /// By number - 1: 0 not seen yet, UNKNOWN seen but not inferred yet.
    types: Vec<Oid>,
    /// Types may be inferred and new parameters appear.
    variable: bool,
    /// Of a function's arguments, if it was called with one.
    collation: Oid,
}

impl Params {
    /// No parameters at all.
    pub fn none() -> Params {
        Params::default()
    }

    /// As in a client's Parse message: 0 is to be inferred.
    pub fn inferred(types: &[Oid]) -> Params {
        Params { types: types.to_vec(), variable: true, collation: Oid::INVALID }
    }

    /// A function's arguments: all types known, nothing inferred.
    pub fn of_routine(scope: &RoutineScope) -> Params {
        Params { types: scope.arg_types.clone(), variable: false, collation: scope.collation }
    }

    pub(super) fn reference(&mut self, cx: &Context<'_>, number: i32, location: i32) -> Result<Expr> {
        let missing = || err!(UNDEFINED_PARAMETER, "there is no parameter ${number}").at(location);
        // More than a Bind message can have: PostgreSQL lets them pass here.
        const NUMBER_MAX: i32 = 1 << 20;
        if number <= 0 || self.variable && number > NUMBER_MAX {
            return Err(missing());
        }
        let index = number as usize - 1;
        if index >= self.types.len() {
            if !self.variable {
                return Err(missing());
            }
            self.types.resize(index + 1, Oid::INVALID);
        }
        if !self.types[index].is_valid() {
            if !self.variable {
                return Err(missing());
            }
            self.types[index] = oids::UNKNOWN;
        }
        let ty = self.types[index];
        Ok(Expr::Param(Param {
            kind: ParamKind::External,
            number: number as usize,
            ty,
            typmod: -1,
            collation: match cx.collation_of_type(ty) {
                own if own.is_valid() && self.collation.is_valid() => self.collation,
                own => own,
            },
            location,
        }))
    }

    /// A parameter with the declared type void gets one from its place.
    pub(super) fn infer_void(&mut self, number: i32) {
        let given = usize::try_from(number - 1).ok().and_then(|at| self.types.get_mut(at));
        if let Some(ty) = given.filter(|ty| self.variable && **ty == oids::VOID) {
            *ty = Oid::INVALID;
        }
    }

    /// Places give types to parameters that have none.
    pub(super) fn infers(&self) -> bool {
        self.variable
    }

    /// The types as far as they are known.
    pub fn known(&self) -> Vec<Oid> {
        self.types.clone()
    }

    /// A parameter of unknown type is used where `target` is expected.
    pub(super) fn resolve(&mut self, cx: &Context<'_>, number: usize, target: Oid, location: i32) -> Result<()> {
        let slot = &mut self.types[number - 1];
        if *slot == oids::UNKNOWN {
            *slot = target;
        } else if *slot != target {
            let (old, new) = (cx.type_name(*slot), cx.type_name(target));
            return Err(err!(AMBIGUOUS_PARAMETER, "inconsistent types deduced for parameter ${number}")
                .detail(format!("{old} versus {new}"))
                .at(location));
        }
        Ok(())
    }

    /// Sets the type of a reference to the one that the parameter has got elsewhere.
    pub(super) fn set_type(&self, cx: &Context<'_>, param: &mut Param) {
        if self.variable && param.kind == ParamKind::External && param.ty == oids::UNKNOWN {
            param.ty = self.types[param.number - 1];
            param.collation = cx.collation_of_type(param.ty);
        }
    }

    /// The final types; 42P18 for one that nothing determined.
    pub(super) fn finish(&self, query: &Query) -> Result<Vec<Oid>> {
        if !self.variable || self.types.iter().all(|t| t.is_valid() && *t != oids::UNKNOWN) && self.types.is_empty() {
            return Ok(self.types.clone());
        }
        let mut wrong = None;
        query.visit(0, &mut |e, _| {
            if let Expr::Param(p) = e
                && p.kind == ParamKind::External
                && wrong.is_none()
            {
                let known = self.types[p.number - 1];
                if known == oids::UNKNOWN {
                    wrong = Some(
                        err!(INDETERMINATE_DATATYPE, "could not determine data type of parameter ${}", p.number).at(p.location),
                    );
                } else if known != p.ty {
                    wrong = Some(
                        err!(AMBIGUOUS_PARAMETER, "could not determine data type of parameter ${}", p.number).at(p.location),
                    );
                }
            }
            true
        });
        if let Some(e) = wrong {
            return Err(e);
        }
        if let Some(i) = self.types.iter().position(|t| !t.is_valid() || *t == oids::UNKNOWN) {
            return Err(err!(INDETERMINATE_DATATYPE, "could not determine data type of parameter ${}", i + 1));
        }
        Ok(self.types.clone())
    }
}
