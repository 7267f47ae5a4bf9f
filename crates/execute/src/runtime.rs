//! The changing state of a running plan that expressions and several operators share: sub-plans and shared CTEs.

use std::cell::RefCell;
use std::sync::Arc;

use melba_types::{Batch, Datum, DbError, Kind, Result};

use super::context::ExecContext;
use super::join_filter::{JoinFilter, JoinFilters};
use super::operator::Operator;
use super::subplan_rows::SubPlanRows;
use super::top_filter::TopFilter;
use melba_plan::Plan;
use melba_spill::{Place, Store};
use melba_types::BATCH_ROWS;

#[derive(Default)]
pub(crate) struct Runtime {
    plan: Option<Arc<Plan>>,
    subplans: Vec<RefCell<SubPlanState>>,
    ctes: Vec<RefCell<CteState>>,
    work_tables: Vec<RefCell<Option<Store>>>,
    pub join_filters: JoinFilters,
    /// Those of running sorts, by number.
    top_filters: Vec<RefCell<Option<Arc<TopFilter>>>>,
}

#[derive(Default)]
struct SubPlanState {
    /// Taken out while it runs, so that a sub-plan may hold sub-plans.
    operator: Option<Box<dyn Operator>>,
    /// The last value, and the version of the parameters it was computed with.
    value: Option<(u64, Datum)>,
    rows: Option<(u64, Arc<SubPlanRows>)>,
}

/// A WITH query's rows so far.
#[derive(Default)]
struct CteState {
    operator: Option<Box<dyn Operator>>,
    rows: Option<Store>,
    version: u64,
    started: bool,
    done: bool,
}

impl Runtime {
    /// The state of a plan that has not run yet.
    pub fn of(plan: &Arc<Plan>) -> Runtime {
        let join_filters = (0..plan.join_filters).map(|_| RefCell::default()).collect();
        let top_filters = (0..plan.top_filters).map(|_| RefCell::default()).collect();
        if plan.subplans.is_empty() && plan.ctes.is_empty() && plan.work_tables == 0 {
            return Runtime { join_filters, top_filters, ..Runtime::default() };
        }
        Runtime {
            plan: Some(plan.clone()),
            subplans: plan.subplans.iter().map(|_| RefCell::default()).collect(),
            ctes: plan.ctes.iter().map(|_| RefCell::default()).collect(),
            work_tables: (0..plan.work_tables).map(|_| RefCell::default()).collect(),
            join_filters,
            top_filters,
        }
    }

    /// For a member of a team, which runs no sub-plans.
    pub fn member(&self) -> Runtime {
        Runtime { join_filters: self.join_filters.clone(), top_filters: self.top_filters.clone(), ..Runtime::default() }
    }
}

impl ExecContext<'_> {
    pub(crate) fn join_filter(&self, number: usize) -> Option<Arc<JoinFilter>> {
        self.runtime().join_filters[number].borrow().clone()
    }

    pub(crate) fn set_join_filter(&self, number: usize, filter: Option<JoinFilter>) {
        *self.runtime().join_filters[number].borrow_mut() = filter.map(Arc::new);
    }

    pub(crate) fn top_filter(&self, number: usize) -> Option<Arc<TopFilter>> {
        self.runtime().top_filters[number].borrow().clone()
    }

    pub(crate) fn set_top_filter(&self, number: usize, filter: Option<Arc<TopFilter>>) {
        *self.runtime().top_filters[number].borrow_mut() = filter;
    }

    fn subplan_version(&self, index: usize) -> u64 {
        self.runtime().plan.as_ref().map_or(0, |plan| self.executor_version(&plan.subplans[index].parameters))
    }

    /// How the sub-plan's columns are held.
    pub(crate) fn subplan_kinds(&self, index: usize) -> Arc<[Kind]> {
        self.runtime().plan.as_ref().map(|p| p.subplans[index].node.kinds.clone()).unwrap_or_else(|| Arc::from([]))
    }

    /// Runs `f` with the sub-plan's operator.
    pub(crate) fn with_subplan<T>(&self, index: usize, f: impl FnOnce(&mut dyn Operator) -> Result<T>) -> Result<T> {
        let Some(plan) = &self.runtime().plan else {
            return Err(DbError::internal("subquery outside a plan"));
        };
        let taken = self.runtime().subplans[index].borrow_mut().operator.take();
        let mut operator = match taken {
            Some(operator) => operator,
            None => self.build(&plan.subplans[index].node)?,
        };
        let result = f(&mut *operator);
        self.runtime().subplans[index].borrow_mut().operator = Some(operator);
        result
    }

    /// The sub-plan's value for the present parameters; computed only when they were assigned since.
    pub(crate) fn subplan_value(&self, index: usize, compute: impl FnOnce() -> Result<Datum>) -> Result<Datum> {
        let version = self.subplan_version(index);
        if let Some((at, value)) = &self.runtime().subplans[index].borrow().value
            && *at == version
        {
            return Ok(value.clone());
        }
        let value = compute()?;
        self.runtime().subplans[index].borrow_mut().value = Some((version, value.clone()));
        Ok(value)
    }

    /// All the sub-plan's rows for the present parameters.
    pub(crate) fn subplan_rows(&self, index: usize) -> Result<Arc<SubPlanRows>> {
        let version = self.subplan_version(index);
        if let Some((at, rows)) = &self.runtime().subplans[index].borrow().rows
            && *at == version
        {
            return Ok(rows.clone());
        }
        let parts = self.runtime().plan.as_ref().map(|p| p.subplans[index].probe_keys.clone()).unwrap_or_default();
        let kinds = self.subplan_kinds(index);
        let rows = self.with_subplan(index, |operator| {
            operator.rescan(self)?;
            let mut rows = SubPlanRows::new(self, parts);
            while let Some(batch) = operator.next(self, BATCH_ROWS)? {
                rows.push(self.expand_batch(batch, &kinds)?)?;
            }
            Ok(rows)
        })?;
        let rows = Arc::new(rows);
        self.runtime().subplans[index].borrow_mut().rows = Some((version, rows.clone()));
        Ok(rows)
    }
}

impl ExecContext<'_> {
    /// Rows of a WITH query from a place on, computed if no reader came so far yet.
    pub(crate) fn cte_rows(&self, cte: usize, place: &mut Place, limit: usize) -> Result<Option<Batch>> {
        let Some(plan) = &self.runtime().plan else {
            return Err(DbError::internal("WITH query outside a plan"));
        };
        let node = &plan.ctes[cte];
        let version = self.executor_version(&node.parameters);
        let state = &self.runtime().ctes[cte];
        {
            let mut state = state.borrow_mut();
            if state.version != version && *place == 0 {
                state.version = version;
                state.rows = None;
                state.done = false;
                state.started = false;
            }
            if let Some(batch) = state.rows.as_mut().map(|rows| rows.read(place, limit)).transpose()?.flatten() {
                return Ok(Some(batch));
            }
            if state.done {
                return Ok(None);
            }
        }
        let (taken, started) = {
            let mut state = state.borrow_mut();
            (state.operator.take(), std::mem::replace(&mut state.started, true))
        };
        let mut operator = match taken {
            Some(operator) => operator,
            None => self.build(&node.node)?,
        };
        if !started {
            operator.rescan(self)?;
        }
        let next = operator.next(self, limit);
        let mut state = state.borrow_mut();
        state.operator = Some(operator);
        let Some(batch) = next? else {
            state.done = true;
            return Ok(None);
        };
        let rows = state.rows.get_or_insert_with(|| Store::new(self.resources()));
        rows.push(batch)?;
        rows.read(place, limit)
    }

    /// Whether WITH queries change data, too.
    pub(crate) fn has_modifying_ctes(&self) -> bool {
        self.runtime().plan.as_ref().is_some_and(|plan| plan.ctes.iter().any(|cte| cte.modifying))
    }

    /// The size of a WITH query's rows: bytes in memory, and in a file.
    pub(crate) fn cte_usage(&self, cte: usize) -> (usize, u64) {
        self.runtime().ctes[cte].borrow().rows.as_ref().map_or((0, 0), Store::usage)
    }

    /// Runs data-modifying WITH queries to their end: the last first, as PostgreSQL does. Of several that change one row the first to
    /// run has its way, so the order shows.
    pub(crate) fn finish_modifying_ctes(&self) -> Result<()> {
        let Some(plan) = &self.runtime().plan else { return Ok(()) };
        for cte in (0..plan.ctes.len()).rev() {
            if plan.ctes[cte].modifying {
                let mut place = self.runtime().ctes[cte].borrow().rows.as_ref().map_or(0, Store::rows);
                while self.cte_rows(cte, &mut place, BATCH_ROWS)?.is_some() {}
            }
        }
        Ok(())
    }

    /// Rows of a working table from a place on.
    pub(crate) fn work_rows(&self, table: usize, place: &mut Place, limit: usize) -> Result<Option<Batch>> {
        match &mut *self.runtime().work_tables[table].borrow_mut() {
            Some(rows) => rows.read(place, limit),
            None => Ok(None),
        }
    }

    pub(crate) fn set_work_table(&self, table: usize, rows: Option<Store>) {
        *self.runtime().work_tables[table].borrow_mut() = rows;
    }
}
