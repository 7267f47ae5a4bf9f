//! Names that no column has: arguments of the function whose body is analyzed, and variables of a procedural function.

use std::sync::Arc;

use melba_types::{Result, err};
use pg_query::protobuf as pb;

use super::analyzer::Analyzer;
use super::field::{self, field_select};
use super::variables::{NameConflict, Variable};
use melba_tree::*;

/// The fields of a row, and their names.
type NamedFields = Vec<(Expr, Arc<str>)>;

/// The meaning, in a function's body, of a name that no column has: `argument`, `argument.field`, `function.argument` or
/// `function.argument.field`.
pub fn routine_reference(analyzer: &mut Analyzer<'_, '_>, names: &[&str], location: i32) -> Result<Option<Expr>> {
    let Some(scope) = analyzer.routine() else { return Ok(None) };
    let argument = |name: &str| scope.arg_names.iter().position(|n| !n.is_empty() && **n == *name);
    let (place, field) = match *names {
        [name] => (argument(name), None),
        [first, second] => match argument(second).filter(|_| *first == *scope.name) {
            Some(place) => (Some(place), None),
            None => (argument(first), Some(second)),
        },
        [first, second, third] if *first == *scope.name => (argument(second), Some(third)),
        _ => (None, None),
    };
    let Some(place) = place else { return Ok(None) };
    let number = place as i32 + 1;
    let value = analyzer.parameter(number, location)?;
    match field {
        None => Ok(Some(value)),
        Some(field) => analyzer.functional_notation(field, value, location),
    }
}

/// `argument.*` in a select list.
pub fn routine_star(analyzer: &mut Analyzer<'_, '_>, names: &[&str], location: i32) -> Result<Option<NamedFields>> {
    let Some(value) = routine_reference(analyzer, names, location)? else { return Ok(None) };
    let Some(columns) = field::record_columns(analyzer, &value)? else { return Ok(None) };
    let live = columns.iter().enumerate().filter(|(_, c)| c.ty.is_valid());
    Ok(Some(live.map(|(i, c)| (field_select(value.clone(), i, c), c.name.clone())).collect()))
}

/// A variable of these names.
pub fn variable_reference(analyzer: &Analyzer<'_, '_>, names: &[&str], location: i32) -> Result<Option<Expr>> {
    let Some(variables) = analyzer.variables() else { return Ok(None) };
    let found = variables.find(names)?;
    Ok(found.map(|v| parameter(v, location)))
}

/// `$n` of a function with variables.
pub fn variable_argument(analyzer: &Analyzer<'_, '_>, node: &pb::ParamRef) -> Option<Result<Expr>> {
    let found = analyzer.variables()?.argument(node.number);
    let missing = || err!(UNDEFINED_PARAMETER, "there is no parameter ${}", node.number).at(node.location);
    Some(found.map(|v| parameter(v, node.location)).ok_or_else(missing))
}

/// `variable.*` in a select list.
pub fn variable_star(analyzer: &Analyzer<'_, '_>, names: &[&str], location: i32) -> Result<Option<NamedFields>> {
    let Some(variables) = analyzer.variables() else { return Ok(None) };
    let fields = variables.fields(names)?;
    Ok(fields.map(|fields| fields.into_iter().map(|(v, name)| (parameter(v, location), name)).collect()))
}

/// Whether a variable is preferred to a column of the same name.
pub fn prefers_variables(analyzer: &Analyzer<'_, '_>) -> bool {
    analyzer.variables().is_some_and(|v| v.conflict() == NameConflict::Variable)
}

/// # Errors
/// 42702 when a name that a column has is a variable's too.
pub fn check_not_variable(analyzer: &Analyzer<'_, '_>, names: &[&str], location: i32) -> Result<()> {
    let Some(variables) = analyzer.variables().filter(|v| v.conflict() == NameConflict::Error) else { return Ok(()) };
    // Whether a row without such a field is meant is not the question here.
    if variables.find(names).is_ok_and(|found| found.is_some()) {
        return Err(err!(AMBIGUOUS_COLUMN, "column reference \"{}\" is ambiguous", names.join("."))
            .detail("It could refer to either a PL/pgSQL variable or a table column.")
            .at(location));
    }
    Ok(())
}

pub fn parameter(v: Variable, location: i32) -> Expr {
    Expr::Param(Param {
        kind: ParamKind::External,
        number: v.number,
        ty: v.ty,
        typmod: v.typmod,
        collation: v.collation,
        location,
    })
}
