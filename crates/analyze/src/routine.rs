//! Bodies of functions and procedures LANGUAGE sql: the names of their arguments in it, and whether the last statement returns
//! the declared result.

use std::sync::Arc;

use melba_catalog::{Function, FunctionKind};
use melba_fmgr::Session;
use melba_parse::{Statement, Strings, command};
use melba_types::{DbError, Oid, Result, err, oids};
use pg_query::{NodeEnum, protobuf as pb};

use super::analyzer::Analyzer;
use super::coerce::How;
use super::context::Context;
use super::polymorphic::is_polymorphic;
use super::routine_names::parameter;
use super::routine_scope::RoutineScope;
use super::scope::ExprKind;
use super::variables::{Variable, Variables};
use super::{Params, assignment, call, coerce, collate, polymorphic};
use melba_tree::*;

/// A function's result in one call.
#[derive(Clone, Debug)]
pub struct RoutineResult {
    pub ty: Oid,
    /// The fields, when it returns rows of a known shape.
    pub columns: Option<Vec<OutputColumn>>,
    /// Of a procedure: even a single value is a row.
    pub always_row: bool,
}

/// How the last statement's rows become the function's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultForm {
    /// There are none.
    Void,
    /// The first column.
    Value,
    /// All columns are the fields of a row.
    Row,
}

/// The statements of a body: of a text, or of one that was parsed with its CREATE FUNCTION.
pub fn routine_statements(function: &Function, session: &dyn Session) -> Result<Vec<Arc<Statement>>> {
    match &function.sql_body {
        Some(body) => melba_parse::parse_sql_body(body),
        None => Ok(melba_parse::parse_as(&function.source, Strings::of(session))?.statements),
    }
}

/// Analyzes a statement of a body.
pub fn analyze_in_routine(cx: &Context<'_>, node: &NodeEnum, scope: &RoutineScope) -> Result<Query> {
    let mut analyzer = Analyzer::new(cx, Params::of_routine(scope)).in_routine(scope);
    analyzer.statement(node)
}

/// A function's result with arguments of these types. `given` is the type of the call, or 0 to determine it; `columns` come
/// from a column definition list.
pub fn routine_result(
    cx: &Context<'_>,
    function: &Function,
    arg_types: &[Oid],
    given: Oid,
    columns: Option<Vec<OutputColumn>>,
) -> Result<RoutineResult> {
    let resolved = |ty: Oid| {
        if !is_polymorphic(ty) {
            return Ok(ty);
        }
        let mut declared = function.arg_types.clone();
        polymorphic::enforce_generic_consistency(cx, arg_types, &mut declared, ty)
    };
    let ty = if given.is_valid() { given } else { resolved(function.return_type)? };
    if is_polymorphic(ty) {
        let name = cx.type_name(ty);
        return Err(err!(INVALID_FUNCTION_DEFINITION, "return type {name} is not supported for SQL functions"));
    }
    let always_row = function.kind == FunctionKind::Procedure && ty == oids::RECORD;
    let result = |columns| Ok(RoutineResult { ty, columns, always_row });
    if columns.is_some() {
        return result(columns);
    }
    if let Some(relation) = cx.row_relation(ty) {
        let live = super::range_columns::relation_columns(relation).into_iter().filter(|c| c.ty.is_valid());
        return result(Some(live.collect()));
    }
    if ty != oids::RECORD || function.arg_modes.is_empty() {
        return result(None);
    }
    let mut out = Vec::new();
    for (i, mode) in function.arg_modes.iter().enumerate() {
        if matches!(mode, b'o' | b'b' | b't') {
            let ty = resolved(function.all_arg_types[i])?;
            let name = function.arg_names.get(i).filter(|n| !n.is_empty()).cloned();
            let name = name.unwrap_or_else(|| format!("column{}", out.len() + 1).into());
            out.push(OutputColumn { name, ty, typmod: -1, collation: cx.collation_of_type(ty) });
        }
    }
    result((!out.is_empty()).then_some(out))
}

/// 42P13 for a body that does not end with a query although the function returns something.
pub fn no_final_query(cx: &Context<'_>, ty: Oid) -> DbError {
    mismatch(cx, ty, "Function's final statement must be SELECT or INSERT/UPDATE/DELETE/MERGE RETURNING.")
}

fn mismatch(cx: &Context<'_>, ty: Oid, detail: impl Into<String>) -> DbError {
    let name = cx.type_name(ty);
    err!(INVALID_FUNCTION_DEFINITION, "return type mismatch in function declared to return {name}").detail(detail)
}

/// Coerces the last query of a body to its function's result.
pub fn fit_routine_result(cx: &Context<'_>, query: &mut Query, result: &RoutineResult) -> Result<ResultForm> {
    if result.ty == oids::VOID {
        return Ok(ResultForm::Void);
    }
    let given: Vec<Oid> = match query.command {
        Command::Select => query.targets.iter().filter(|t| !t.junk).map(|t| t.expr.ty()).collect(),
        _ => query.returning.iter().map(|t| t.expr.ty()).collect(),
    };
    if query.command != Command::Select && given.is_empty() {
        return Err(no_final_query(cx, result.ty));
    }
    let is_row = result.ty == oids::RECORD || cx.is_complex(result.ty);
    if !is_row {
        let [one] = given[..] else {
            return Err(mismatch(cx, result.ty, "Final statement must return exactly one column."));
        };
        if !fit_column(cx, query, 0, result.ty, -1)? {
            return Err(mismatch(cx, result.ty, format!("Actual return type is {}.", cx.type_name(one))));
        }
        return Ok(ResultForm::Value);
    }
    if given.len() == 1 && !result.always_row && fit_column(cx, query, 0, result.ty, -1)? {
        return Ok(ResultForm::Value);
    }
    let Some(columns) = &result.columns else { return Ok(ResultForm::Row) };
    for (i, ty) in given.iter().enumerate() {
        let Some(column) = columns.get(i) else {
            return Err(mismatch(cx, result.ty, "Final statement returns too many columns."));
        };
        if !fit_column(cx, query, i, column.ty, column.typmod)? {
            let (is, wanted) = (cx.type_name(*ty), cx.type_name(column.ty));
            let detail = format!("Final statement returns {is} instead of {wanted} at column {}.", i + 1);
            return Err(mismatch(cx, result.ty, detail));
        }
    }
    if given.len() < columns.len() {
        return Err(mismatch(cx, result.ty, "Final statement returns too few columns."));
    }
    Ok(ResultForm::Row)
}

/// Converts an output column by assignment; false when there is no such conversion.
fn fit_column(cx: &Context<'_>, query: &mut Query, column: usize, ty: Oid, typmod: i32) -> Result<bool> {
    let targets = if query.command == Command::Select { &query.targets } else { &query.returning };
    let Some(target) = targets.iter().filter(|t| !t.junk).nth(column) else { return Ok(false) };
    let old = &target.expr;
    if old.ty() == ty && (typmod < 0 || old.typmod() == typmod) {
        return Ok(true);
    }
    // Expressions to which other parts of the query refer must stay unchanged.
    let is_referred_to = target.reference != 0 || !matches!(query.distinct, Distinct::None) || query.set_operation.is_some();
    let wrap = query.command == Command::Select && is_referred_to;
    let source = if wrap { column_of_subquery(target, column) } else { old.clone() };
    let mut analyzer = Analyzer::new(cx, Params::none());
    let Some(mut expr) = coerce::to_target(&mut analyzer, source, ty, typmod, How::assignment())? else { return Ok(false) };
    collate::assign(cx, &mut expr)?;
    if wrap {
        wrap_query(query);
    }
    let targets = if query.command == Command::Select { &mut query.targets } else { &mut query.returning };
    if let Some(target) = targets.iter_mut().filter(|t| !t.junk).nth(column) {
        target.expr = expr;
    }
    Ok(true)
}

fn column_of_subquery(target: &Target, column: usize) -> Expr {
    Expr::Var(Var::holding(&target.expr, 0, column as i16 + 1))
}

/// Makes the query a subquery of one that returns the same columns.
fn wrap_query(query: &mut Query) {
    let inner = std::mem::replace(query, Query::new(Command::Select));
    let visible: Vec<Target> = inner.targets.iter().filter(|t| !t.junk).cloned().collect();
    query.targets = visible
        .iter()
        .enumerate()
        .map(|(i, t)| Target {
            expr: column_of_subquery(t, i),
            name: t.name.clone(),
            junk: false,
            reference: 0,
            column: 0,
            origin: t.origin,
        })
        .collect();
    let columns = inner.output_columns();
    query.from = vec![FromItem::Range(0)];
    query.range_table = vec![RangeEntry {
        kind: RangeKind::Subquery { query: Box::new(inner), view: Oid::INVALID },
        alias: None,
        name: "*SELECT*".into(),
        columns,
        ..RangeEntry::default()
    }];
}

/// The place of a CALL.
#[derive(Clone, Copy)]
pub enum CallPlace<'a> {
    /// A client's statement, with the types of its parameters as far as they are known.
    Client(&'a [Oid]),
    /// The body of a function LANGUAGE sql.
    Body(&'a RoutineScope),
    /// A procedural function.
    Variables(&'a dyn Variables),
}

/// CALL's call of a procedure, analyzed.
pub struct AnalyzedCall {
    /// With its input arguments.
    pub call: FunctionCall,
    pub parameter_types: Vec<Oid>,
    /// For each output argument, the number of the parameter that stands there, if one does.
    pub outputs: Vec<Option<usize>>,
}

/// Analyzes CALL's call of a procedure.
pub fn analyze_call(cx: &Context<'_>, node: &pb::FuncCall, place: CallPlace<'_>) -> Result<AnalyzedCall> {
    let params = match place {
        CallPlace::Client(parameters) => Params::inferred(parameters),
        CallPlace::Body(scope) => Params::of_routine(scope),
        CallPlace::Variables(_) => Params::none(),
    };
    let analyzer = Analyzer::new(cx, params);
    let mut analyzer = match place {
        CallPlace::Client(_) => analyzer,
        CallPlace::Body(scope) => analyzer.in_routine(scope),
        CallPlace::Variables(variables) => analyzer.with_variables(variables),
    };
    let mut e = analyzer.with_level(|a| a.with_kind(ExprKind::CallArgument, |a| call::routine_call(a, node, true)))?;
    collate::assign(cx, &mut e)?;
    let Expr::Function(mut call) = e else { return Err(DbError::internal("CALL of something that is no procedure")) };
    let modes = &cx.function(call.function)?.arg_modes;
    let mut outputs = Vec::new();
    if modes.len() == call.args.len() {
        let written = call.args.iter().zip(modes).filter(|(_, m)| matches!(m, b'o' | b'b'));
        outputs.extend(written.map(|(arg, _)| parameter_number(arg)));
        let mut at = modes.iter();
        call.args.retain(|_| at.next().is_some_and(|m| *m != b'o'));
    }
    Ok(AnalyzedCall { call: *call, parameter_types: analyzer.params().known(), outputs })
}

/// The parameter that an argument is. One that is converted cannot be written to.
fn parameter_number(arg: &Expr) -> Option<usize> {
    match arg {
        Expr::Param(p) => Some(p.number),
        _ => None,
    }
}

/// # Errors
/// 0A000 for statements that are not allowed in a function.
pub fn check_routine_statement(node: &NodeEnum) -> Result<()> {
    match node {
        NodeEnum::CopyStmt(s) if s.filename.is_empty() => {
            Err(err!(FEATURE_NOT_SUPPORTED, "cannot COPY to/from client in an SQL function"))
        }
        NodeEnum::TransactionStmt(_) => {
            let name = command::tag(node);
            Err(err!(FEATURE_NOT_SUPPORTED, "{name} is not allowed in an SQL function"))
        }
        NodeEnum::VariableSetStmt(_) => Ok(()),
        node if command::is_session_statement(node) => {
            Err(DbError::unsupported("a statement about the session in an SQL function"))
        }
        _ => Ok(()),
    }
}

/// Analyzes a query over variables.
pub fn analyze_with_variables(cx: &Context<'_>, node: &NodeEnum, variables: &dyn Variables) -> Result<Query> {
    let mut analyzer = Analyzer::new(cx, Params::none()).with_variables(variables);
    analyzer.statement(node)
}

/// Analyzes `variable path := query`: the query returns the variable's whole new value.
pub fn analyze_part_assignment(
    cx: &Context<'_>,
    value: &NodeEnum,
    (variable, name): (Variable, &str),
    path: &[pb::Node],
    variables: &dyn Variables,
) -> Result<Query> {
    let mut analyzer = Analyzer::new(cx, Params::none()).with_variables(variables);
    let mut query = analyzer.statement(value)?;
    let Some(target) = query.targets.iter().position(|t| !t.junk) else { return Ok(query) };
    let value = query.targets[target].expr.clone();
    analyzer.assign_through_text();
    let mut whole = analyzer.with_level(|a| {
        let container = parameter(variable, -1);
        assignment::assign_into(a, container, variable.ty, variable.typmod, path, value, name, -1)
    })?;
    collate::assign(cx, &mut whole)?;
    query.targets[target].expr = whole;
    Ok(query)
}

/// How a value of one type becomes a variable's of another: by assignment, or else through its text.
pub fn coerce_for_variable(cx: &Context<'_>, e: Expr, ty: Oid, typmod: i32) -> Result<Expr> {
    let mut analyzer = Analyzer::new(cx, Params::none());
    // Only the text gives the type of values without a type, and of rows without a named one.
    let has_type = !matches!(e, Expr::Param(_) | Expr::Var(_)) || !matches!(e.ty(), oids::UNKNOWN | oids::RECORD);
    if has_type && let Some(coerced) = coerce::to_target(&mut analyzer, e.clone(), ty, typmod, How::assignment())? {
        return Ok(coerced);
    }
    assignment::through_text(&mut analyzer, e, ty, typmod)
}
