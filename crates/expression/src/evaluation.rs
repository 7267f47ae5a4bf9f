//! The context in which expressions are evaluated: the session, the statement's view, and the values of its parameters.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use melba_catalog::Catalog;
use melba_engine::{ReadView, Transaction, ViewPin};
use melba_fmgr::Session;
use melba_spill::Resources;
use melba_types::{Datum, Result, err};

use super::SubPlan;
use super::members::FixedArrays;
use super::order_label::OrderLabels;

/// Runs the sub-plans of the plan that an expression belongs to.
pub trait SubPlans {
    /// The sub-plan's value for an input row.
    ///
    /// # Errors
    /// The error of the sub-plan; 21000 when it returns more than one row for a single value.
    fn eval(&self, evaluation: &Evaluation, plan: &SubPlan, row: &[Datum]) -> Result<Datum>;
}

/// Of expressions outside of plans, which have none.
pub struct NoSubPlans;

impl SubPlans for NoSubPlans {
    fn eval(&self, _evaluation: &Evaluation, _plan: &SubPlan, _row: &[Datum]) -> Result<Datum> {
        Err(melba_types::DbError::internal("subquery outside a plan"))
    }
}

/// One statement's context, as far as expressions need it. Belongs to one thread at a time.
///
/// Expressions take an `&Evaluation`, whatever runs their sub-plans; its owner knows the type.
pub struct Evaluation<S: ?Sized = dyn SubPlans> {
    pub session: Arc<dyn Session>,
    transaction: Arc<Transaction>,
    view: Cell<ReadView>,
    /// Keeps the view usable while functions that the statement calls take new views.
    kept_view: OnceCell<ViewPin>,
    /// `$1` first.
    pub parameters: Arc<[Datum]>,
    /// Added to the number of a parameter while the expressions of the second row of a VALUES list compute a further row.
    parameter_offset: Cell<usize>,
    executor: RefCell<ExecutorParameters>,
    /// Values of enclosing CASEs, array casts and domain checks, innermost last.
    locals: RefCell<Vec<Datum>>,
    merge_action: Cell<Option<&'static str>>,
    /// Commands of this transaction that ran within the statement, each from the first to the last of several, ascending.
    nested: RefCell<Vec<(u32, u32)>>,
    /// Made when the first rows are kept.
    resources: OnceCell<Arc<Resources>>,
    pub(crate) order_labels: OrderLabels,
    pub(crate) fixed_arrays: FixedArrays,
    pub subplans: S,
}

#[derive(Default)]
struct ExecutorParameters {
    values: Vec<Datum>,
    /// Counts the assignments to each, so that results that depend on them know when they are stale.
    versions: Vec<u64>,
}

impl Evaluation<NoSubPlans> {
    /// For expressions that stand in no statement with parameters: over the transaction's current view.
    pub fn plain(session: Arc<dyn Session>, transaction: &Arc<Transaction>) -> Evaluation<NoSubPlans> {
        Evaluation::new(session, transaction.clone(), transaction.statement_view(), Arc::from([]), NoSubPlans)
    }
}

impl<S> Evaluation<S> {
    /// Over `view`, with the values of `$1` and so on.
    pub fn new(
        session: Arc<dyn Session>,
        transaction: Arc<Transaction>,
        view: ReadView,
        parameters: Arc<[Datum]>,
        subplans: S,
    ) -> Evaluation<S> {
        Evaluation {
            session,
            transaction,
            view: Cell::new(view),
            kept_view: OnceCell::new(),
            parameters,
            parameter_offset: Cell::new(0),
            executor: RefCell::default(),
            locals: RefCell::default(),
            merge_action: Cell::new(None),
            nested: RefCell::default(),
            resources: OnceCell::new(),
            order_labels: OrderLabels::default(),
            fixed_arrays: FixedArrays::default(),
            subplans,
        }
    }
}

impl<S: ?Sized> Evaluation<S> {
    /// For another thread of the same statement, as long as this one lives.
    pub fn member<T>(&self, subplans: T) -> Evaluation<T> {
        let executor = self.executor.borrow();
        let executor = ExecutorParameters { values: executor.values.clone(), versions: executor.versions.clone() };
        Evaluation {
            session: self.session.clone(),
            transaction: self.transaction.clone(),
            view: self.view.clone(),
            kept_view: OnceCell::new(),
            parameters: self.parameters.clone(),
            parameter_offset: self.parameter_offset.clone(),
            executor: RefCell::new(executor),
            locals: self.locals.clone(),
            merge_action: self.merge_action.clone(),
            nested: RefCell::default(),
            resources: OnceCell::from(self.resources().clone()),
            // Only the statement's own thread orders values by functions.
            order_labels: OrderLabels::default(),
            fixed_arrays: FixedArrays::default(),
            subplans,
        }
    }

    pub fn catalog(&self) -> &Arc<Catalog> {
        self.session.catalog()
    }

    pub fn transaction(&self) -> &Arc<Transaction> {
        &self.transaction
    }

    /// The statement's view.
    pub fn view(&self) -> ReadView {
        self.view.get()
    }

    /// Replaces the view: statements that must see their own earlier changes (constraint triggers, row re-checks).
    pub fn set_view(&self, view: ReadView) {
        self.view.set(view);
    }

    /// Keeps the view usable to the end of the statement, whatever views are taken meanwhile.
    pub fn keep_view(&self) {
        self.kept_view.get_or_init(|| self.transaction().pin_view(self.view()));
    }

    /// Runs a function whose statements may change rows, and notes their commands; whether there were any.
    ///
    /// Later changes of this statement belong to a new command again.
    pub fn nesting<T>(&self, f: impl FnOnce() -> T) -> (T, bool) {
        // Its statements take new views, and this one continues with its own.
        self.keep_view();
        let before = self.transaction.command();
        let result = f();
        let after = self.transaction.command();
        if after > before {
            self.transaction.current_view(self.view());
            self.nested.borrow_mut().push((before + 1, after));
        }
        (result, after > before)
    }

    /// The same for a function of a query, which is called often and seldom changes rows: commands without changes are not noted.
    pub fn nesting_changes<T>(&self, f: impl FnOnce() -> T) -> T {
        self.keep_view();
        let (before, bytes) = self.transaction.progress();
        let result = f();
        let (after, bytes_after) = self.transaction.progress();
        if bytes_after != bytes {
            self.transaction.current_view(self.view());
            self.nested.borrow_mut().push((before + 1, after));
        }
        result
    }

    /// Whether a command of this transaction ran within the statement (`nesting`).
    pub fn is_nested(&self, command: u32) -> bool {
        let nested = self.nested.borrow();
        let at = nested.partition_point(|(_, last)| *last < command);
        nested.get(at).is_some_and(|(first, _)| *first <= command)
    }

    /// Releases a kept view, and forgets what was kept of values: the next one is another statement's.
    pub fn release_view(&mut self) {
        self.kept_view.take();
        self.order_labels.clear();
    }

    pub fn check_interrupt(&self) -> Result<()> {
        self.session.check_interrupt()
    }

    /// The resources in which the statement may keep rows.
    pub fn resources(&self) -> &Arc<Resources> {
        self.resources.get_or_init(|| Arc::new(Resources::new(&*self.session, self.transaction().session())))
    }

    pub fn parameters(&self) -> &Arc<[Datum]> {
        &self.parameters
    }

    /// The value of a parameter, counted from 0.
    pub(crate) fn parameter(&self, i: usize) -> Result<Datum> {
        match self.parameters.get(i + self.parameter_offset.get()) {
            Some(value) => Ok(value.clone()),
            None => Err(err!(UNDEFINED_OBJECT, "no value found for parameter {}", i + 1)),
        }
    }

    /// Whether parameters are those of another row than the statement's first.
    pub(crate) fn has_parameter_offset(&self) -> bool {
        self.parameter_offset.get() != 0
    }

    /// Lets parameters be those of another row.
    pub fn set_parameter_offset(&self, offset: usize) {
        self.parameter_offset.set(offset);
    }

    pub fn executor_parameter(&self, i: usize) -> Datum {
        self.executor.borrow().values.get(i).cloned().unwrap_or(Datum::Null)
    }

    pub fn set_executor_parameter(&self, i: usize, value: Datum) {
        let mut executor = self.executor.borrow_mut();
        if executor.values.len() <= i {
            executor.values.resize(i + 1, Datum::Null);
            executor.versions.resize(i + 1, 0);
        }
        executor.values[i] = value;
        executor.versions[i] += 1;
    }

    /// A number that changes whenever one of the parameters is assigned.
    pub fn executor_version(&self, parameters: &[usize]) -> u64 {
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

    /// The result of MERGE_ACTION() until the next call.
    pub fn set_merge_action(&self, action: Option<&'static str>) {
        self.merge_action.set(action);
    }

    pub(crate) fn merge_action(&self) -> Datum {
        self.merge_action.get().map_or(Datum::Null, Datum::text)
    }
}
