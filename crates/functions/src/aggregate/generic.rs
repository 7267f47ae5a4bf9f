//! Aggregates that run on their transition and final functions, as pg_aggregate describes them.

use melba_fmgr::{Aggregate, CallInfo, ScalarFn};
use melba_types::{Datum, DbError, Result};

use super::{any, same};

/// State of an aggregate that is a datum.
struct Generic {
    transition: ScalarFn,
    strict: bool,
    final_function: Option<ScalarFn>,
    state: Datum,
    /// A strict transition without an initial value takes its first input as the state.
    started: bool,
}

/// The state of an aggregate from its parts; `strict` is the transition function's.
pub fn generic(transition: ScalarFn, strict: bool, final_function: Option<ScalarFn>, initial: Datum) -> Box<dyn Aggregate> {
    let started = !initial.is_null() || !strict;
    Box::new(Generic { transition, strict, final_function, state: initial, started })
}

impl Aggregate for Generic {
    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if self.strict && args.iter().any(Datum::is_null) {
            return Ok(());
        }
        if !self.started {
            self.state = args.first().cloned().unwrap_or_default();
            self.started = true;
            return Ok(());
        }
        if self.strict && self.state.is_null() {
            return Ok(());
        }
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(std::mem::take(&mut self.state));
        all.extend_from_slice(args);
        self.state = (self.transition)(call, &all)?;
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn Aggregate>) -> Result<()> {
        let other = same::<Generic>(other)?;
        if !other.started || other.state.is_null() {
            return Ok(());
        }
        if !self.started || self.state.is_null() {
            self.state = other.state;
            self.started = true;
            return Ok(());
        }
        Err(DbError::internal("aggregate state cannot be merged"))
    }

    fn finish(&self, call: &CallInfo<'_>) -> Result<Datum> {
        match self.final_function {
            Some(f) => f(call, std::slice::from_ref(&self.state)),
            None => Ok(self.state.clone()),
        }
    }

    any!();
}
