//! What operators and expressions share while a statement runs.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use melba_catalog::Catalog;
use melba_functions::Session;
use melba_types::{Datum, Result, err};

use super::runtime::Runtime;

/// One statement's surroundings. Belongs to one thread at a time; operators hold no reference to it but get it with
/// every call.
pub struct ExecContext {
    pub session: Arc<dyn Session>,
    pub catalog: Arc<Catalog>,
    /// `$1` first.
    pub parameters: Arc<[Datum]>,
    executor: RefCell<ExecutorParameters>,
    /// Values of enclosing CASEs, array casts and domain checks, innermost last.
    locals: RefCell<Vec<Datum>>,
    merge_action: Cell<Option<&'static str>>,
    pub(crate) runtime: Runtime,
}

#[derive(Default)]
struct ExecutorParameters {
    values: Vec<Datum>,
    /// Counts the assignments to each, so that results that depend on them know when they are stale.
    versions: Vec<u64>,
}

impl ExecContext {
    pub fn new(session: Arc<dyn Session>, catalog: Arc<Catalog>, parameters: Arc<[Datum]>) -> ExecContext {
        ExecContext {
            session,
            catalog,
            parameters,
            executor: RefCell::default(),
            locals: RefCell::default(),
            merge_action: Cell::new(None),
            runtime: Runtime::default(),
        }
    }

    pub fn check_interrupt(&self) -> Result<()> {
        self.session.check_interrupt()
    }

    pub(crate) fn parameter(&self, i: usize) -> Result<Datum> {
        match self.parameters.get(i) {
            Some(value) => Ok(value.clone()),
            None => Err(err!(UNDEFINED_OBJECT, "no value found for parameter {}", i + 1)),
        }
    }

    pub(crate) fn executor_parameter(&self, i: usize) -> Datum {
        self.executor.borrow().values.get(i).cloned().unwrap_or(Datum::Null)
    }

    pub(crate) fn set_executor_parameter(&self, i: usize, value: Datum) {
        let mut executor = self.executor.borrow_mut();
        if executor.values.len() <= i {
            executor.values.resize(i + 1, Datum::Null);
            executor.versions.resize(i + 1, 0);
        }
        executor.values[i] = value;
        executor.versions[i] += 1;
    }

    /// A number that changes whenever one of the parameters is assigned.
    pub(crate) fn executor_version(&self, parameters: &[usize]) -> u64 {
        let executor = self.executor.borrow();
        parameters.iter().map(|&i| executor.versions.get(i).copied().unwrap_or(0)).sum()
    }

    /// Runs `f` with `value` as the innermost local.
    pub fn with_local<T>(&self, value: Datum, f: impl FnOnce() -> T) -> T {
        let depth = {
            let mut locals = self.locals.borrow_mut();
            locals.push(value);
            locals.len() - 1
        };
        let result = f();
        self.locals.borrow_mut().truncate(depth);
        result
    }

    pub(crate) fn local(&self, i: usize) -> Datum {
        let locals = self.locals.borrow();
        locals.len().checked_sub(i + 1).map_or(Datum::Null, |at| locals[at].clone())
    }

    pub(crate) fn set_merge_action(&self, action: Option<&'static str>) {
        self.merge_action.set(action);
    }

    pub(crate) fn merge_action(&self) -> Datum {
        self.merge_action.get().map_or(Datum::Null, Datum::text)
    }
}
