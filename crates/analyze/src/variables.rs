//! Variables of a procedural language: what names in its pieces of SQL mean when no column has them.

use std::sync::Arc;

use melba_types::{Oid, Result, err};
use pg_query::NodeEnum;
use pg_query::protobuf as pb;

use super::coerce::How;
use super::context::Context;
use super::{Analyzer, Params, collate};
use melba_tree::*;

/// A variable's value, or a field's: a parameter of the statement.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Of the parameter, counted from 1.
    pub number: usize,
    pub ty: Oid,
    pub typmod: i32,
    pub collation: Oid,
}

/// What a name means that a column has as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameConflict {
    Error,
    Variable,
    Column,
}

/// The variables that a piece of SQL sees. Each one that is found becomes a parameter.
pub trait Variables {
    fn find(&self, names: &[&str]) -> Result<Option<Variable>>;
    /// The fields of the row that the names mean.
    fn fields(&self, names: &[&str]) -> Result<Option<Vec<(Variable, Arc<str>)>>>;
    /// `$n`
    fn argument(&self, number: i32) -> Option<Variable>;
    fn conflict(&self) -> NameConflict;
}

fn parameter(v: Variable, location: i32) -> Expr {
    Expr::Param(Param {
        kind: ParamKind::External,
        number: v.number,
        ty: v.ty,
        typmod: v.typmod,
        collation: v.collation,
        location,
    })
}

/// Analyzes a query over variables.
pub fn analyze_with_variables(cx: &Context<'_>, node: &NodeEnum, variables: &dyn Variables) -> Result<Query> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    analyzer.variables = Some(variables);
    analyzer.statement(node)
}

/// Analyzes `variable path := query`: the query gives the variable's whole new value.
pub fn analyze_part_assignment(
    cx: &Context<'_>,
    value: &NodeEnum,
    (variable, name): (Variable, &str),
    path: &[pb::Node],
    variables: &dyn Variables,
) -> Result<Query> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    analyzer.variables = Some(variables);
    let mut query = analyzer.statement(value)?;
    let Some(target) = query.targets.iter().position(|t| !t.junk) else { return Ok(query) };
    let value = query.targets[target].expr.clone();
    let mut whole = analyzer.with_level(|a| {
        let container = parameter(variable, -1);
        a.assign_into(container, variable.ty, variable.typmod, path, value, name, -1)
    })?;
    collate::assign(cx, &mut whole)?;
    query.targets[target].expr = whole;
    Ok(query)
}

/// How a value of one type becomes a variable's of another: by assignment, or else through its text.
pub fn coerce_for_variable(cx: &Context<'_>, e: Expr, ty: Oid, typmod: i32) -> Result<Expr> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    if let Some(coerced) = analyzer.coerce_to_target(e.clone(), ty, typmod, How::assignment())? {
        return Ok(coerced);
    }
    let through = Expr::CoerceViaIo {
        arg: Box::new(e),
        ty,
        collation: cx.collation_of_type(ty),
        form: CoercionForm::ImplicitCast,
    };
    let coerced = analyzer.coerce_to_target(through.clone(), ty, typmod, How::assignment())?;
    Ok(coerced.unwrap_or(through))
}

impl Analyzer<'_, '_> {
    /// A variable that the names mean.
    pub fn variable_reference(&self, names: &[&str], location: i32) -> Result<Option<Expr>> {
        let Some(variables) = self.variables else { return Ok(None) };
        let found = variables.find(names).map_err(|e| e.at(location))?;
        Ok(found.map(|v| parameter(v, location)))
    }

    /// `$n` of a function with variables.
    pub fn variable_argument(&self, node: &pb::ParamRef) -> Option<Result<Expr>> {
        let found = self.variables?.argument(node.number);
        let missing = || err!(UNDEFINED_PARAMETER, "there is no parameter ${}", node.number).at(node.location);
        Some(found.map(|v| parameter(v, node.location)).ok_or_else(missing))
    }

    /// `variable.*` in a select list.
    pub fn variable_star(&self, names: &[&str], location: i32) -> Result<Option<Vec<(Expr, Arc<str>)>>> {
        let Some(variables) = self.variables else { return Ok(None) };
        let fields = variables.fields(names).map_err(|e| e.at(location))?;
        Ok(fields.map(|fields| fields.into_iter().map(|(v, name)| (parameter(v, location), name)).collect()))
    }

    /// Whether a variable is preferred to what a column may be called.
    pub fn prefers_variables(&self) -> bool {
        self.variables.is_some_and(|v| v.conflict() == NameConflict::Variable)
    }

    /// # Errors
    /// 42702 when a name that a column has is a variable's too.
    pub fn check_not_variable(&self, names: &[&str], location: i32) -> Result<()> {
        let Some(variables) = self.variables.filter(|v| v.conflict() == NameConflict::Error) else { return Ok(()) };
        // Whether a row without such a field is meant is not the question here.
        if variables.find(names).is_ok_and(|found| found.is_some()) {
            return Err(err!(AMBIGUOUS_COLUMN, "column reference \"{}\" is ambiguous", names.join("."))
                .detail("It could refer to either a PL/pgSQL variable or a table column.")
                .at(location));
        }
        Ok(())
    }
}
