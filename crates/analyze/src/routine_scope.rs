//! A function as the statements of its body see it: its name and its arguments.

use std::sync::Arc;

use melba_catalog::Function;
use melba_types::Oid;

use super::polymorphic::is_polymorphic;

/// A function as the statements of its body see it.
#[derive(Clone, Debug, Default)]
pub struct RoutineScope {
    pub name: Arc<str>,
    /// Of the input arguments, with the actual types of polymorphic ones.
    pub arg_types: Vec<Oid>,
    /// Of the input arguments; empty for those without a name.
    pub arg_names: Vec<Arc<str>>,
    /// The collation of the call by its arguments, or 0.
    pub collation: Oid,
}

impl RoutineScope {
    /// A function's arguments, called with values of these types.
    pub fn of(function: &Function, actual: &[Oid], collation: Oid) -> RoutineScope {
        let resolved = |(declared, actual): (&Oid, &Oid)| if is_polymorphic(*declared) { *actual } else { *declared };
        let arg_types = function.arg_types.iter().zip(actual).map(resolved).collect();
        // A body that was analyzed when the function was created keeps the collations of the types.
        let collation = if function.sql_body.is_some() { Oid::INVALID } else { collation };
        RoutineScope { name: function.name.clone(), arg_names: input_names(function), arg_types, collation }
    }
}

/// The names of a function's input arguments, empty where there is none.
pub fn input_names(function: &Function) -> Vec<Arc<str>> {
    let is_input = |i: &usize| function.arg_modes.get(*i).is_none_or(|m| matches!(m, b'i' | b'b' | b'v'));
    let all = if function.all_arg_types.is_empty() { function.arg_types.len() } else { function.all_arg_types.len() };
    let name = |i| function.arg_names.get(i).cloned().unwrap_or_default();
    (0..all).filter(is_input).map(name).collect()
}
