//! Calls of functions that users wrote: the session runs their bodies.

use std::sync::Arc;

use melba_catalog::{Catalog, Function, classes};
use melba_fmgr::{PureRoutine, RoutineCall, RoutineRows, RowColumn};
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
    collation: Oid,
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

    /// `collation`: that of the call, 0 when none.
    pub fn new(
        function: &Function,
        args: Vec<Expression>,
        return_type: Oid,
        collation: Oid,
        columns: Option<Arc<[RowColumn]>>,
    ) -> Routine {
        Routine {
            function: function.oid,
            strict: function.strict,
            volatile: function.volatility == b'v',
            arg_types: args.iter().map(|a| a.ty).collect(),
            args,
            return_type,
            collation,
            columns,
        }
    }

    pub fn eval(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        // Most functions have one argument, which needs no list.
        if let [arg] = &self.args[..] {
            return self.eval_with(ctx, &[arg.eval_row(ctx, row)?]);
        }
        self.eval_with(ctx, &self.arguments(ctx, row)?)
    }

    fn eval_with(&self, ctx: &Evaluation, args: &[Datum]) -> Result<Datum> {
        if self.is_null_of(args) {
            return Ok(Datum::Null);
        }
        let call = self.call(ctx, args);
        match self.volatile {
            true => ctx.nesting_changes(|| ctx.session.call_routine(&call)),
            false => ctx.session.call_routine(&call),
        }
    }

    /// The function for rows in turn, if it is pure: its arguments do not change what it was looked up by either.
    pub fn pure(&self, ctx: &Evaluation) -> Result<Option<Box<dyn PureRoutine>>> {
        if !self.args.iter().all(Expression::is_parallel_safe) {
            return Ok(None);
        }
        ctx.session.pure_routine(&self.call(ctx, &[]))
    }

    /// `eval` by the pure function.
    pub fn eval_pure(&self, function: &mut dyn PureRoutine, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        let mut run = |args: &[Datum]| if self.is_null_of(args) { Ok(Datum::Null) } else { function.run(args) };
        match &self.args[..] {
            [arg] => run(&[arg.eval_row(ctx, row)?]),
            _ => run(&self.arguments(ctx, row)?),
        }
    }

    /// The rows of a set-returning function, each as one value.
    pub fn rows(&self, ctx: &Evaluation, row: &[Datum]) -> Result<RoutineRows> {
        let args = self.arguments(ctx, row)?;
        match self.is_null_of(&args) {
            true => Ok(Box::new(std::iter::empty())),
            false => ctx.session.routine_rows(&self.call(ctx, &args)),
        }
    }

    fn arguments(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Vec<Datum>> {
        self.args.iter().map(|a| a.eval_row(ctx, row)).collect()
    }

    /// One is NULL, and the function is strict.
    fn is_null_of(&self, args: &[Datum]) -> bool {
        self.strict && args.iter().any(Datum::is_null)
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
            collation: self.collation,
            columns: self.columns.as_deref(),
            view: (view.csn, view.command),
        }
    }
}
