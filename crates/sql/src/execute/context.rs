//! What operators and expressions share while a statement runs.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use melba_catalog::Catalog;
use melba_engine::{ReadView, Transaction, ViewPin};
use melba_functions::Session;
use melba_types::{Datum, Result, err};

use super::instrument::NodeTiming;
use super::runtime::Runtime;
use super::spill::Resources;
use crate::table::Events;
use crate::transaction::Tx;

/// One statement's surroundings. Belongs to one thread at a time; operators hold no reference to it but get it with
/// every call.
pub struct ExecContext {
    pub session: Arc<dyn Session>,
    pub tx: Arc<Tx>,
    view: Cell<ReadView>,
    /// Checks for the end of the statement.
    events: RefCell<Vec<Events>>,
    /// `$1` first.
    pub parameters: Arc<[Datum]>,
    /// Parameters of each row of the VALUES list whose second row stands for further ones; 0: there is none.
    pub(crate) row_parameters: usize,
    /// It was met.
    pub(crate) rows_repeated: Cell<bool>,
    /// What is added to the number of a parameter while such a row is computed.
    parameter_offset: Cell<usize>,
    executor: RefCell<ExecutorParameters>,
    /// Values of enclosing CASEs, array casts and domain checks, innermost last.
    locals: RefCell<Vec<Datum>>,
    merge_action: Cell<Option<&'static str>>,
    rows_affected: Cell<u64>,
    /// EXPLAIN ANALYZE: by plan node.
    timings: Option<RefCell<Vec<NodeTiming>>>,
    pub(crate) runtime: Runtime,
    /// Made when the first operator keeps rows.
    resources: OnceCell<Arc<Resources>>,
    /// Keeps the view usable while functions that the statement calls take views of their own.
    kept_view: OnceCell<ViewPin>,
}

#[derive(Default)]
struct ExecutorParameters {
    values: Vec<Datum>,
    /// Counts the assignments to each, so that results that depend on them know when they are stale.
    versions: Vec<u64>,
}

impl ExecContext {
    pub fn new(session: Arc<dyn Session>, tx: Arc<Tx>, view: ReadView, parameters: Arc<[Datum]>) -> ExecContext {
        ExecContext {
            session,
            tx,
            view: Cell::new(view),
            events: RefCell::default(),
            parameters,
            row_parameters: 0,
            rows_repeated: Cell::new(false),
            parameter_offset: Cell::new(0),
            executor: RefCell::default(),
            locals: RefCell::default(),
            merge_action: Cell::new(None),
            rows_affected: Cell::new(0),
            timings: None,
            runtime: Runtime::default(),
            resources: OnceCell::new(),
            kept_view: OnceCell::new(),
        }
    }

    /// For expressions that stand in no statement with parameters: over what the transaction sees now.
    pub fn plain(session: Arc<dyn Session>, tx: &Arc<Tx>) -> ExecContext {
        ExecContext::new(session, tx.clone(), tx.engine.statement_view(), Arc::from([]))
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        self.session.catalog()
    }

    pub fn transaction(&self) -> &Arc<Transaction> {
        &self.tx.engine
    }

    /// What the statement sees.
    pub fn view(&self) -> ReadView {
        self.view.get()
    }

    /// Replaces the view: statements that must see their own earlier changes (constraint triggers, row re-checks).
    pub fn set_view(&self, view: ReadView) {
        self.view.set(view);
    }

    /// Keeps the view usable to the end of the statement, whatever views are taken meanwhile.
    pub(crate) fn keep_view(&self) {
        self.kept_view.get_or_init(|| self.transaction().pin_view(self.view()));
    }

    /// Measures every operator (EXPLAIN ANALYZE).
    pub fn instrument(&mut self) {
        self.timings = Some(RefCell::default());
    }

    pub(crate) fn instrumented(&self) -> bool {
        self.timings.is_some()
    }

    pub(crate) fn record_timing(&self, node: usize, f: impl FnOnce(&mut NodeTiming)) {
        if let Some(timings) = &self.timings {
            let mut timings = timings.borrow_mut();
            if timings.len() <= node {
                timings.resize(node + 1, NodeTiming::default());
            }
            f(&mut timings[node]);
        }
    }

    /// What was measured, by plan node.
    pub fn timings(&self) -> Vec<NodeTiming> {
        self.timings.as_ref().map(|t| t.borrow().clone()).unwrap_or_default()
    }

    pub fn check_interrupt(&self) -> Result<()> {
        self.session.check_interrupt()
    }

    /// What operators that keep rows may use.
    pub(crate) fn resources(&self) -> &Arc<Resources> {
        self.resources.get_or_init(|| Arc::new(Resources::new(&*self.session, self.transaction().session())))
    }

    pub(crate) fn parameter(&self, i: usize) -> Result<Datum> {
        match self.parameters.get(i + self.parameter_offset.get()) {
            Some(value) => Ok(value.clone()),
            None => Err(err!(UNDEFINED_OBJECT, "no value found for parameter {}", i + 1)),
        }
    }

    /// Lets parameters be those of another row.
    pub(crate) fn set_parameter_offset(&self, offset: usize) {
        self.parameter_offset.set(offset);
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

    pub(crate) fn add_events(&self, events: Events) {
        self.events.borrow_mut().push(events);
    }

    /// What constraints ask for after the statement's own changes.
    pub(crate) fn finish_events(&self) -> Result<()> {
        let events = std::mem::take(&mut *self.events.borrow_mut());
        for mut events in events {
            events.finish(self, self.transaction(), &self.tx.deferred)?;
        }
        Ok(())
    }

    pub(crate) fn add_rows_affected(&self, rows: u64) {
        self.rows_affected.set(self.rows_affected.get() + rows);
    }

    pub(crate) fn rows_affected(&self) -> u64 {
        self.rows_affected.get()
    }

    pub(crate) fn merge_action(&self) -> Datum {
        self.merge_action.get().map_or(Datum::Null, Datum::text)
    }
}
