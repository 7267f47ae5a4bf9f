//! Calls of functions, by registered implementation or by name through the session.

use std::sync::Arc;

use melba_fmgr::{CallInfo, QuickFn, RoutineCall, RowColumn, ScalarFn, Session, VectorFn};
use melba_types::{Datum, Oid, Result, limits};

use super::stored::StoredFunction;
use super::{Expression, Node};
use crate::Evaluation;

/// The implementation that a call runs.
#[derive(Clone)]
pub enum CallTarget {
    /// A built-in.
    Scalar(ScalarFn),
    /// By pg_proc.prosrc: the session knows.
    System(Arc<str>),
    /// One that a user wrote, which the session runs.
    Routine(Oid),
}

/// A function with its operands.
#[derive(Clone)]
pub struct Call {
    pub target: CallTarget,
    pub vector: Option<VectorFn>,
    /// Of its two operands, tried first.
    pub quick: Option<QuickFn>,
    /// Its function on a column whose values are in stored form.
    pub stored: Option<StoredFunction>,
    /// It is array_append.
    pub appends: bool,
    /// A NULL operand makes the result NULL without a call.
    pub strict: bool,
    pub args: Vec<Expression>,
    pub arg_types: Arc<[Oid]>,
    pub return_type: Oid,
    pub collation: Oid,
    pub variadic: bool,
    /// The column definition list, for a function in FROM.
    pub columns: Option<Arc<[RowColumn]>>,
    /// May return another value for the same operands.
    pub volatile: bool,
    /// Several threads of a statement may call it (proparallel).
    pub parallel_safe: bool,
    /// Byte offset in the statement, for errors that point at it; -1 unknown.
    pub location: i32,
}

impl Call {
    /// What the function learns while a statement is planned: nothing of rows, and it sees no table.
    pub fn planned_info<'a>(&'a self, session: &'a dyn Session) -> CallInfo<'a> {
        CallInfo {
            session,
            arg_types: &self.arg_types,
            return_type: self.return_type,
            collation: self.collation,
            variadic: self.variadic,
            columns: None,
            view: CallInfo::NO_VIEW,
        }
    }

    /// A call without special forms of its function: not strict, not volatile, parallel safe, without a collation.
    pub fn plain(target: CallTarget, args: Vec<Expression>, return_type: Oid, location: i32) -> Call {
        Call {
            target,
            vector: None,
            quick: None,
            stored: None,
            appends: false,
            strict: false,
            arg_types: args.iter().map(|a| a.ty).collect(),
            args,
            return_type,
            collation: Oid::INVALID,
            variadic: false,
            columns: None,
            volatile: false,
            parallel_safe: true,
            location,
        }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("args", &self.args).field("return_type", &self.return_type).finish_non_exhaustive()
    }
}

/// Runs a function that a user wrote.
pub(crate) fn run_routine(function: Oid, call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
    let CallInfo { arg_types, return_type, collation, view, .. } = *call;
    call.session.call_routine(&RoutineCall { function, args, arg_types, return_type, collation, columns: None, view })
}

impl Call {
    pub fn info<'a>(&'a self, ctx: &'a Evaluation) -> CallInfo<'a> {
        // Its statements take new views, and the calling one continues with its own.
        if self.volatile && matches!(self.target, CallTarget::Routine(_)) {
            ctx.keep_view();
        }
        let view = ctx.view();
        CallInfo {
            session: &*ctx.session,
            arg_types: &self.arg_types,
            return_type: self.return_type,
            collation: self.collation,
            variadic: self.variadic,
            columns: self.columns.as_deref(),
            view: (view.csn, view.command),
        }
    }

    /// Calls with evaluated operands.
    #[inline]
    pub fn invoke(&self, context: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
        if self.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let value = match &self.target {
            CallTarget::Scalar(function) => function(context, args)?,
            CallTarget::System(source) => context.session.system_function(source, context, args)?,
            CallTarget::Routine(function) => run_routine(*function, context, args)?,
        };
        match &value {
            Datum::Text(v) => limits::check_value(v.len())?,
            Datum::Bytes(v) => limits::check_value(v.len())?,
            _ => {}
        }
        Ok(value)
    }

    /// Evaluates the operands on a row and calls.
    #[inline]
    pub fn eval(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        if let Some(function) = self.stored {
            return self.eval_of_stored(function, ctx, row);
        }
        let info = self.info(ctx);
        match &self.args[..] {
            [a] => {
                let args = [a.eval_row(ctx, row)?];
                self.invoke(&info, &args)
            }
            [a, b] => {
                let a = a.eval_row(ctx, row)?;
                if self.strict && a.is_null() {
                    return Ok(Datum::Null);
                }
                let args = [a, b.eval_row(ctx, row)?];
                self.invoke(&info, &args)
            }
            args => {
                let mut values = Vec::with_capacity(args.len());
                for arg in args {
                    values.push(arg.eval_row(ctx, row)?);
                }
                self.invoke(&info, &values)
            }
        }
    }

    /// The same of two operands, by a quick function first.
    #[inline]
    pub(super) fn eval_quickly(&self, quick: QuickFn, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        let (of_a, of_b);
        let a = match operand(&self.args[0], row) {
            Some(a) => a,
            None => {
                of_a = self.args[0].eval_row(ctx, row)?;
                &of_a
            }
        };
        if a.is_null() {
            return Ok(Datum::Null);
        }
        let b = match operand(&self.args[1], row) {
            Some(b) => b,
            None => {
                of_b = self.args[1].eval_row(ctx, row)?;
                &of_b
            }
        };
        match quick.value(a, b) {
            Some(value) => Ok(value),
            None => self.invoke(&self.info(ctx), &[a.clone(), b.clone()]),
        }
    }

    /// The same of two variables or constants, put where the row has a number of its type; false where it must be evaluated.
    #[inline]
    pub(super) fn put_quickly(&self, row: &mut [Datum], to: usize) -> bool {
        let (Some(quick), [a, b]) = (self.quick, &self.args[..]) else { return false };
        let (Some(a), Some(b)) = (operand(a, row), operand(b, row)) else { return false };
        match quick {
            QuickFn::Bool(function) => match (function(a, b), &mut row[to]) {
                (Some(value), Datum::Bool(slot)) => put(slot, value),
                _ => false,
            },
            QuickFn::Int4(function) => match (function(a, b), &mut row[to]) {
                (Some(value), Datum::Int4(slot)) => put(slot, value),
                _ => false,
            },
            QuickFn::Int8(function) => match (function(a, b), &mut row[to]) {
                (Some(value), Datum::Int8(slot)) => put(slot, value),
                _ => false,
            },
            QuickFn::Float8(function) => match (function(a, b), &mut row[to]) {
                (Some(value), Datum::Float8(slot)) => put(slot, value),
                _ => false,
            },
        }
    }

    /// IS DISTINCT FROM, of which this is the equality.
    pub fn is_distinct(&self, info: &CallInfo<'_>, args: &[Datum]) -> Result<bool> {
        Ok(match args.iter().filter(|arg| arg.is_null()).count() {
            0 => !matches!(self.invoke(info, args)?, Datum::Bool(true)),
            nulls => nulls < args.len(),
        })
    }

    /// A comparison of two values: true, false or NULL.
    pub fn compare(&self, ctx: &Evaluation, a: Datum, b: Datum) -> Result<Option<bool>> {
        Ok(match self.invoke(&self.info(ctx), &[a, b])? {
            Datum::Bool(v) => Some(v),
            _ => None,
        })
    }
}

#[inline]
fn put<T>(slot: &mut T, value: T) -> bool {
    *slot = value;
    true
}

/// A number where it is, unless it must be computed. Numbers have no stored form.
#[inline]
fn operand<'a>(e: &'a Expression, row: &'a [Datum]) -> Option<&'a Datum> {
    match &e.node {
        Node::Column(i) => Some(&row[*i]),
        Node::Const(value) => Some(value),
        _ => None,
    }
}
