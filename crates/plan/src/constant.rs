//! Constants that cannot be computed. PostgreSQL computes constants when it plans and raises their errors there; here an error is raised
//! when the constant is reached, which may never happen. The client sees a difference only in the RowDescription before the error.

use super::PlanInputs;
use super::planner::Nothing;
use melba_expression::{Compiler, Node};
use melba_tree::{Expr, Query};

/// Whether PostgreSQL would have raised an error of execution when it planned: some immutable call has constants only and still
/// no value.
pub fn fails(query: &Query, inputs: &PlanInputs<'_>) -> bool {
    let mut found = false;
    query.visit(0, &mut |expr, _| {
        let function = match expr {
            Expr::Function(call) => call.function,
            Expr::Operator(call) => call.function,
            _ => return !found,
        };
        let immutable = inputs.catalog.function(function).is_some_and(|f| f.volatility == b'i');
        let compiled = Compiler::new(inputs.catalog, Some(inputs.session), &mut Nothing).compile(expr);
        if let Ok(compiled) = compiled
            && let Node::Call(call) = &compiled.node
        {
            found |= immutable && call.args.iter().all(|arg| arg.as_const().is_some());
        }
        !found
    });
    found
}
