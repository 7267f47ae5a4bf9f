//! Functions by name and argument types.

use std::sync::Arc;

use melba_catalog::Function;
use melba_tree::Expr;
use melba_types::{DbError, Oid, Result, err, oids};

use super::candidates;
use super::candidates::Candidate;
use super::coerce::{CoercionContext, Pathway};
use super::context::Context;

/// A function as a call with a number of arguments sees it.
#[derive(Clone)]
pub struct FunctionCandidate<'a> {
    pub function: &'a Arc<Function>,
    /// Types of the arguments after VARIADIC's expansion, in call order.
    pub args: Vec<Oid>,
    /// Number of arguments that VARIADIC's array was expanded to; 0 when it was not.
    pub variadic: usize,
    /// Number of defaults used.
    pub defaults: usize,
    /// Named notation: call position to argument number, the defaulted ones last.
    pub order: Option<Vec<usize>>,
    path_position: usize,
    ambiguous: bool,
}

impl Candidate for FunctionCandidate<'_> {
    fn args(&self) -> &[Oid] {
        &self.args
    }
}

/// The meaning of a name with arguments.
pub enum Resolved<'a> {
    Function(FunctionCandidate<'a>),
    /// A cast written as a call, `text(x)`.
    Coercion(Oid),
    NotFound,
    Multiple,
}

/// The wanted function of a call.
pub struct WantedFunction<'n> {
    pub schema: Option<&'n str>,
    pub name: &'n str,
    pub args: &'n [Oid],
    pub arg_names: &'n [&'n str],
    /// VARIADIC was not written, so that a variadic array may be expanded.
    pub expand_variadic: bool,
    pub expand_defaults: bool,
    /// Match OUT arguments as well (CALL).
    pub include_out: bool,
}

impl<'a> Context<'a> {
    /// The candidate functions of a call.
    pub fn function_candidates(&self, wanted: &WantedFunction<'_>) -> Result<Vec<FunctionCandidate<'a>>> {
        let mut all: Vec<FunctionCandidate<'a>> = Vec::new();
        let single;
        let namespaces: &[Oid] = match wanted.schema {
            Some(schema) => {
                single = [self.namespace(schema)?];
                &single
            }
            None => self.search_path,
        };
        for (position, namespace) in namespaces.iter().enumerate() {
            if wanted.schema.is_none() && *namespace == self.temp_namespace && namespace.is_valid() {
                continue;
            }
            for function in self.catalog.functions_by_name(*namespace, wanted.name) {
                let Some(function) = self.catalog.function(function.oid) else { continue };
                if let Some(mut candidate) = self.candidate(function, wanted) {
                    candidate.path_position = position;
                    add_candidate(&mut all, candidate);
                }
            }
        }
        Ok(all)
    }

    fn candidate(&self, function: &'a Arc<Function>, wanted: &WantedFunction<'_>) -> Option<FunctionCandidate<'a>> {
        let given = wanted.args.len();
        let declared: &[Oid] =
            if wanted.include_out && !function.all_arg_types.is_empty() { &function.all_arg_types } else { &function.arg_types };
        let arity = declared.len();
        let mut candidate = FunctionCandidate {
            function,
            args: Vec::new(),
            variadic: 0,
            defaults: 0,
            order: None,
            path_position: 0,
            ambiguous: false,
        };
        if !wanted.arg_names.is_empty() {
            return self.named_candidate(candidate, declared, wanted);
        }
        let variadic = wanted.expand_variadic && function.variadic.is_valid() && given >= arity;
        if variadic {
            candidate.variadic = given - arity + 1;
            candidate.args.extend_from_slice(&declared[..arity - 1]);
            candidate.args.resize(given, function.variadic);
            return Some(candidate);
        }
        if arity == given {
            candidate.args = declared.to_vec();
            return Some(candidate);
        }
        if wanted.expand_defaults && arity > given && given + function.arg_defaults.len() >= arity {
            candidate.defaults = arity - given;
            candidate.args = declared[..given].to_vec();
            return Some(candidate);
        }
        None
    }

    /// Named and mixed notation: positional arguments first, then names.
    fn named_candidate(
        &self,
        mut candidate: FunctionCandidate<'a>,
        declared: &[Oid],
        wanted: &WantedFunction<'_>,
    ) -> Option<FunctionCandidate<'a>> {
        let function = candidate.function;
        let arity = declared.len();
        let given = wanted.args.len();
        if function.arg_names.is_empty() || given > arity || wanted.expand_variadic && function.variadic.is_valid() {
            return None;
        }
        let positional = given - wanted.arg_names.len();
        let mut order: Vec<usize> = (0..positional).collect();
        for name in wanted.arg_names {
            let place = if wanted.include_out && declared.len() == function.arg_names.len() {
                function.arg_names.iter().position(|n| **n == **name)?
            } else {
                input_names(function).position(|n| n == *name)?
            };
            if place >= arity || order.contains(&place) {
                return None;
            }
            order.push(place);
        }
        let mut missing = (0..arity).filter(|i| !order.contains(i)).collect::<Vec<_>>();
        let first_default = arity - function.arg_defaults.len();
        if !missing.is_empty() && (!wanted.expand_defaults || missing.iter().any(|i| *i < first_default)) {
            return None;
        }
        candidate.args = order.iter().map(|i| declared[*i]).collect();
        candidate.defaults = missing.len();
        order.append(&mut missing);
        candidate.order = Some(order);
        Some(candidate)
    }

    /// Resolves a call (PostgreSQL's func_get_detail).
    pub fn resolve_function(&self, wanted: &WantedFunction<'_>, arg: Option<&Expr>) -> Result<Resolved<'a>> {
        let candidates = self.function_candidates(wanted)?;
        if let Some(exact) = candidates.iter().find(|c| c.args == wanted.args) {
            return Ok(if exact.ambiguous { Resolved::Multiple } else { Resolved::Function(exact.clone()) });
        }
        if wanted.args.len() == 1
            && wanted.arg_names.is_empty()
            && arg.is_some()
            && let Some(target) = self.function_as_type(wanted)
            && self.call_is_coercion(wanted.args[0], target)
        {
            return Ok(Resolved::Coercion(target));
        }
        let mut matching = candidates::matching(self, wanted.args, &candidates);
        let chosen = match matching.len() {
            0 => return Ok(Resolved::NotFound),
            1 => matching.pop(),
            _ => candidates::select_candidate(self, wanted.args, matching),
        };
        Ok(match chosen {
            Some(c) if !c.ambiguous => Resolved::Function(c),
            _ => Resolved::Multiple,
        })
    }

    fn function_as_type(&self, wanted: &WantedFunction<'_>) -> Option<Oid> {
        let ty = self.find_type(wanted.schema, wanted.name).ok()??;
        (ty.defined && !ty.relation.is_valid()).then_some(ty.oid)
    }

    fn call_is_coercion(&self, source: Oid, target: Oid) -> bool {
        if source == oids::UNKNOWN {
            return true;
        }
        match self.coercion_pathway(target, source, CoercionContext::Explicit) {
            Some(Pathway::Relabel) => true,
            Some(Pathway::ViaIo) => !((source == oids::RECORD || self.is_complex(source)) && self.category(target).0 == b'S'),
            _ => false,
        }
    }

    /// `name(integer, text)` for messages.
    pub fn function_signature(&self, name: &str, args: &[Oid], arg_names: &[&str]) -> String {
        let positional = args.len() - arg_names.len();
        let shown: Vec<String> = args
            .iter()
            .enumerate()
            .map(|(i, t)| {
                let ty = self.type_name(*t);
                if i >= positional { format!("{} => {ty}", arg_names[i - positional]) } else { ty }
            })
            .collect();
        format!("{name}({})", shown.join(", "))
    }

    /// The function with exactly these argument types, for names written by DDL or by ourselves.
    pub fn function_with(&self, name: &str, args: &[Oid]) -> Option<&'a Arc<Function>> {
        self.search_path.iter().find_map(|n| {
            let found = self.catalog.functions_by_name(*n, name).find(|f| f.arg_types == args)?;
            self.catalog.function(found.oid)
        })
    }
}

/// Names of a function's input arguments.
fn input_names(function: &Function) -> impl Iterator<Item = &str> {
    let modes = &function.arg_modes;
    function
        .arg_names
        .iter()
        .enumerate()
        .filter(move |(i, _)| modes.is_empty() || matches!(modes.get(*i), Some(b'i' | b'b' | b'v')))
        .map(|(_, n)| &**n)
}

/// Adds a candidate unless one with the same arguments is better: nearer in the path, not variadic, fewer defaults.
fn add_candidate<'a>(all: &mut Vec<FunctionCandidate<'a>>, new: FunctionCandidate<'a>) {
    let Some(old) = all.iter_mut().find(|c| c.args == new.args) else {
        all.push(new);
        return;
    };
    if old.path_position != new.path_position {
        // The search starts at the front of the path.
        return;
    }
    match (old.variadic > 0, new.variadic > 0) {
        (true, false) => *old = new,
        (false, true) => {}
        (true, true) => {
            // More declared arguments is the more specific one.
            if old.variadic > new.variadic {
                *old = new;
            } else if old.variadic == new.variadic {
                old.ambiguous = true;
            }
        }
        (false, false) => {
            if new.defaults > 0 && old.defaults > 0 {
                old.ambiguous = true;
            } else if old.defaults > 0 {
                *old = new;
            }
        }
    }
}

/// 42883 and 42725 of a call.
pub fn call_error(signature: &str, procedure: bool, ambiguous: bool, location: i32) -> DbError {
    let what = if procedure { "procedure" } else { "function" };
    let e = if ambiguous {
        err!(AMBIGUOUS_FUNCTION, "{what} {signature} is not unique")
            .hint(format!("Could not choose a best candidate {what}. You might need to add explicit type casts."))
    } else {
        err!(UNDEFINED_FUNCTION, "{what} {signature} does not exist")
            .hint(format!("No {what} matches the given name and argument types. You might need to add explicit type casts."))
    };
    e.at(location)
}
