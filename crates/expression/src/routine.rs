//! Calls of functions that users wrote: the session runs their bodies.

use std::sync::Arc;

use melba_catalog::{Catalog, Function, classes};
use melba_fmgr::{RoutineCall, RoutineRows, RowColumn};
use melba_types::{Datum, Oid, Result};

use super::Expression;
use crate::Evaluation;

/// A function that a user wrote, with its operands.
#[derive(Clone, Debug)]
pub struct Routine {
    function: Oid,
    strict: bool,
    pub volatile: bool,
    pub args: Vec<Expression>,
    arg_types: Arc<[Oid]>,
    return_type: Oid,
    /// The column definition list, for a function in FROM.
    columns: Option<Arc<[RowColumn]>>,
}

/// Whether a user wrote a function, in SQL or another language.
pub fn is_routine(function: &Function) -> bool {
    classes::is_written_language(function.language) && function.oid.0 >= classes::FIRST_USER_OID
}

impl Routine {
    /// The function of that OID, if a user wrote it.
    pub fn find(catalog: &Catalog, function: Oid) -> Option<&Arc<Function>> {
        catalog.function(function).filter(|f| is_routine(f))
    }

    pub fn new(function: &Function, args: Vec<Expression>, return_type: Oid, columns: Option<Arc<[RowColumn]>>) -> Routine {
        Routine {
            function: function.oid,
            strict: function.strict,
            volatile: function.volatility == b'v',
            arg_types: args.iter().map(|a| a.ty).collect(),
            args,
            return_type,
            columns,
        }
    }

    pub fn eval(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        match self.arguments(ctx, row)? {
            Some(args) if self.volatile => ctx.nesting_changes(|| ctx.session.call_routine(&self.call(ctx, &args))),
            Some(args) => ctx.session.call_routine(&self.call(ctx, &args)),
            None => Ok(Datum::Null),
        }
    }

    /// The rows of a set-returning function, each as one value.
    pub fn rows(&self, ctx: &Evaluation, row: &[Datum]) -> Result<RoutineRows> {
        match self.arguments(ctx, row)? {
            Some(args) => ctx.session.routine_rows(&self.call(ctx, &args)),
            None => Ok(Box::new(std::iter::empty())),
        }
    }

    /// The operands' values; `None` when one is NULL and the function is strict.
    fn arguments(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Option<Vec<Datum>>> {
        let args = self.args.iter().map(|a| a.eval_row(ctx, row)).collect::<Result<Vec<_>>>()?;
        Ok(if self.strict && args.iter().any(Datum::is_null) { None } else { Some(args) })
    }

    fn call<'a>(&'a self, ctx: &Evaluation, args: &'a [Datum]) -> RoutineCall<'a> {
        // Its statements take new views, and the calling one continues with its own.
        if self.volatile {
            ctx.keep_view();
        }
        let view = ctx.view();
        RoutineCall {
            function: self.function,
            args,
            arg_types: &self.arg_types,
            return_type: self.return_type,
            columns: self.columns.as_deref(),
            view: (view.csn, view.command),
        }
    }
}
