//! Aggregates that users define with functions: CREATE AGGREGATE.
//!
//! The transition function computes the next state from the state and a row's arguments. The final function of an ordered-set aggregate gets the
//! direct arguments behind the state.

use std::sync::Arc;

use melba_catalog::{AggregateInfo, Catalog, Function};
use melba_fmgr::{Aggregate, CallInfo, MakeAggregate, io};
use melba_types::{Datum, DbError, Oid, Result};

use crate::CallTarget;
use crate::call::run_routine;
use crate::compile::target_of;

/// A function of an aggregate, with the types that it is called with.
struct Step {
    function: Arc<Function>,
    target: CallTarget,
    arg_types: Vec<Oid>,
    return_type: Oid,
}

struct UserAggregate {
    transition: Step,
    last: Option<Step>,
    /// How many NULLs follow the state and direct arguments in the call of the final function.
    extra: usize,
    state_type: Oid,
    initial: Option<Arc<str>>,
}

struct CallState {
    of: Arc<UserAggregate>,
    value: Datum,
    direct: Vec<Datum>,
    /// The state has a value, and is not to be taken from the first row.
    begun: bool,
}

impl Step {
    fn new(catalog: &Catalog, function: Oid, arg_types: Vec<Oid>, return_type: Oid) -> Result<Step> {
        let missing = || DbError::internal(format!("cache lookup failed for function {function}"));
        let function = catalog.function(function).ok_or_else(missing)?.clone();
        Ok(Step { target: target_of(&function), function, arg_types, return_type })
    }

    fn call(&self, call: &CallInfo<'_>, args: &[Datum]) -> Result<Datum> {
        if self.function.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        let context = CallInfo {
            session: call.session,
            arg_types: &self.arg_types,
            return_type: self.return_type,
            collation: call.collation,
            variadic: call.variadic,
            columns: None,
            view: call.view,
        };
        match &self.target {
            CallTarget::Scalar(f) => f(&context, args),
            CallTarget::System(source) => call.session.system_function(source, &context, args),
            CallTarget::Routine(function) => run_routine(*function, &context, args),
        }
    }
}

/// Makes the states of a user's aggregate. `state_type`, `arg_types` (direct and aggregated ones) and `return_type`: the actual types of
/// polymorphic ones.
///
/// # Errors
/// XX000 when one of its functions no longer exists.
pub fn user_aggregate(
    catalog: &Catalog,
    info: &AggregateInfo,
    state_type: Oid,
    (direct_types, arg_types): (&[Oid], &[Oid]),
    return_type: Oid,
) -> Result<MakeAggregate> {
    let with_state = |args: &[Oid]| [&[state_type], args].concat();
    let transition = Step::new(catalog, info.transition, with_state(arg_types), state_type)?;
    let extra = if info.final_extra { arg_types.len() } else { 0 };
    let last = match info.final_function.is_valid() {
        true => {
            Some(Step::new(catalog, info.final_function, with_state(&[direct_types, &arg_types[..extra]].concat()), return_type)?)
        }
        false => None,
    };
    let of = Arc::new(UserAggregate { transition, last, extra, state_type, initial: info.initial_value.clone() });
    Ok(Arc::new(move |call: &CallInfo<'_>| {
        let value = match &of.initial {
            Some(text) => io::text_in(call.session, of.state_type, -1, text)?,
            None => Datum::Null,
        };
        let begun = of.initial.is_some() || !of.transition.function.strict;
        Ok(Box::new(CallState { of: of.clone(), value, direct: Vec::new(), begun }) as Box<dyn Aggregate>)
    }))
}

impl Aggregate for CallState {
    fn begin(&mut self, _: &CallInfo<'_>, direct: &[Datum]) -> Result<()> {
        self.direct = direct.to_vec();
        Ok(())
    }

    fn add(&mut self, call: &CallInfo<'_>, args: &[Datum]) -> Result<()> {
        if !self.begun {
            self.value = args.first().cloned().unwrap_or(Datum::Null);
            self.begun = true;
            return Ok(());
        }
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(std::mem::replace(&mut self.value, Datum::Null));
        all.extend_from_slice(args);
        self.value = self.of.transition.call(call, &all)?;
        Ok(())
    }

    fn merge(&mut self, _other: Box<dyn Aggregate>) -> Result<()> {
        Err(DbError::internal("a user's aggregate in parts"))
    }

    fn finish(&self, call: &CallInfo<'_>) -> Result<Datum> {
        let Some(last) = &self.of.last else { return Ok(self.value.clone()) };
        let mut args = vec![self.value.clone()];
        args.extend_from_slice(&self.direct);
        args.resize(args.len() + self.of.extra, Datum::Null);
        last.call(call, &args)
    }

    fn as_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }

    fn grows(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        size_of::<CallState>() + self.value.heap_bytes()
    }
}
