//! Values of expressions that stand alone: arguments of EXECUTE and CALL, a function that the client calls.

use std::sync::Arc;

use melba_catalog::Function;
use melba_tree::{Const, Expr, Query};
use melba_types::{Datum, DbError, Oid, Result};
use pg_query::protobuf::{AConst, ResTarget, SelectStmt};
use pg_query::{Node, NodeEnum};

use super::context::StatementContext;
use super::execution::start;
use super::outcome::Outcome;
use super::planning::{analysis, plan_within};

/// The values of EXECUTE's arguments, as the parameters' types.
pub fn evaluate(context: &StatementContext, args: &[Node], types: &[Oid]) -> Result<Vec<Datum>> {
    let mut values = Vec::with_capacity(args.len());
    for (i, (arg, ty)) in args.iter().zip(types).enumerate() {
        values.push(evaluate_one(context, arg, *ty, &format!("${}", i + 1))?);
    }
    Ok(values)
}

/// One argument, as the only column of a SELECT without FROM.
fn evaluate_one(context: &StatementContext, arg: &Node, ty: Oid, name: &str) -> Result<Datum> {
    let expected = melba_analyze::Expected { ty, typmod: -1, column: name };
    let kind = melba_analyze::ExprKind::ExecuteParameter;
    let value = melba_analyze::analyze_expression(&analysis(context), arg, None, kind, Some(expected))?;
    first_value(context, select_one(context, value)?, &Arc::from([]))
}

/// The value of an analyzed expression without columns.
pub(super) fn value_of(context: &StatementContext, value: Expr, parameters: &Arc<[Datum]>) -> Result<Datum> {
    first_value(context, select_one(context, value)?, parameters)
}

/// Calls a function with values for its arguments.
pub fn call_function(context: &StatementContext, function: &Function, arguments: Vec<Datum>) -> Result<Datum> {
    let constant = |(value, ty): (Datum, &Oid)| {
        let collation = context.catalog.type_(*ty).map_or(Oid::INVALID, |t| t.collation);
        Expr::Const(Const { value, ty: *ty, typmod: -1, collation, location: -1 })
    };
    let collation = context.catalog.type_(function.return_type).map_or(Oid::INVALID, |t| t.collation);
    let call = melba_tree::FunctionCall {
        function: function.oid,
        args: arguments.into_iter().zip(&function.arg_types).map(constant).collect(),
        defaulted: 0,
        ty: function.return_type,
        collation,
        input_collation: melba_tree::DEFAULT_COLLATION,
        returns_set: false,
        variadic: function.variadic.is_valid(),
        form: melba_tree::CoercionForm::Call,
        typmod: -1,
        location: -1,
    };
    value_of(context, Expr::Function(Box::new(call)), &Arc::from([]))
}

/// `SELECT value`, analyzed.
fn select_one(context: &StatementContext, value: Expr) -> Result<Query> {
    let null = Node { node: Some(NodeEnum::AConst(AConst { isnull: true, ..AConst::default() })) };
    let target = ResTarget { val: Some(Box::new(null)), ..ResTarget::default() };
    let target = Node { node: Some(NodeEnum::ResTarget(Box::new(target))) };
    let select = NodeEnum::SelectStmt(Box::new(SelectStmt { target_list: vec![target], ..SelectStmt::default() }));
    let mut query = melba_analyze::analyze(&analysis(context), &select, Some(&[]))?.query;
    match query.targets.first_mut() {
        Some(target) => target.expr = value,
        None => return Err(DbError::internal("the value is gone")),
    }
    Ok(query)
}

/// Runs a query of one column and one row.
fn first_value(context: &StatementContext, query: Query, parameters: &Arc<[Datum]>) -> Result<Datum> {
    let tx = context.tx.as_ref().ok_or_else(|| DbError::internal("no transaction is open"))?;
    let planned = plan_within(context, query)?;
    let Outcome::Rows { mut source, .. } = start(&Arc::new(context.clone()), tx, &planned, parameters.clone())? else {
        return Err(DbError::internal("the expression gave no row"));
    };
    while let Some(batch) = source.next(1)? {
        if batch.rows > 0 {
            return Ok(batch.columns[0].get(0));
        }
    }
    Ok(Datum::Null)
}
