//! What a statement must check or do after its own changes: foreign keys, and unique keys of deferrable constraints.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use melba_catalog::Constraint;
use melba_engine::Transaction;
use melba_types::{Datum, Oid, Result, RowId};
use parking_lot::Mutex;

use super::error;
use super::foreign_key::{self, Action};
use super::target::{IndexTarget, TableTarget, TargetBuilder};
use crate::execute::ExecContext;
use crate::execute::key::same;

/// Something to check or do later.
pub(super) enum Event {
    /// A key of a deferrable unique constraint.
    Unique { target: Arc<TableTarget>, index: Oid, key: Vec<u8>, values: Vec<Datum>, row: RowId },
    /// A referencing row was written.
    Reference { target: Arc<TableTarget>, constraint: Arc<Constraint>, values: Vec<Datum> },
    /// A referenced row was deleted (`new` is none) or its key changed.
    Referenced { target: Arc<TableTarget>, constraint: Arc<Constraint>, old: Vec<Datum>, new: Option<Vec<Datum>> },
}

/// The events of one statement, in order.
#[derive(Default)]
pub struct Events {
    queue: VecDeque<Event>,
    shared: Option<Arc<TableTarget>>,
}

/// The events that a transaction keeps for its end, and which constraints it defers.
#[derive(Default)]
pub struct DeferredEvents {
    state: Mutex<Deferred>,
}

#[derive(Default)]
struct Deferred {
    queue: Vec<Event>,
    /// SET CONSTRAINTS ALL.
    all: Option<bool>,
    /// SET CONSTRAINTS name.
    each: HashMap<Oid, bool>,
}

impl DeferredEvents {
    /// Position for `truncate`.
    pub fn len(&self) -> usize {
        self.state.lock().queue.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the events after a savepoint.
    pub fn truncate(&self, len: usize) {
        self.state.lock().queue.truncate(len);
    }

    /// SET CONSTRAINTS: `constraints` empty means ALL.
    pub fn set(&self, constraints: &[Oid], deferred: bool) {
        let mut state = self.state.lock();
        if constraints.is_empty() {
            state.all = Some(deferred);
            state.each.clear();
        }
        state.each.extend(constraints.iter().map(|c| (*c, deferred)));
    }

    fn defers(&self, constraint: &Constraint) -> bool {
        if !constraint.deferrable {
            return false;
        }
        let state = self.state.lock();
        state.each.get(&constraint.oid).copied().or(state.all).unwrap_or(constraint.initially_deferred)
    }

    /// Runs what is no longer deferred: at commit (`all`) and after SET CONSTRAINTS IMMEDIATE.
    pub fn run(&self, ctx: &ExecContext, txn: &Arc<Transaction>, all: bool) -> Result<()> {
        loop {
            let queue = std::mem::take(&mut self.state.lock().queue);
            if queue.is_empty() {
                return Ok(());
            }
            let (now, later): (Vec<Event>, Vec<Event>) =
                queue.into_iter().partition(|e| all || !event_constraint(ctx, e).is_some_and(|c| self.defers(&c)));
            let nothing_to_do = now.is_empty();
            self.state.lock().queue.extend(later);
            if nothing_to_do {
                return Ok(());
            }
            Runner::new(ctx, txn).run(now.into(), if all { None } else { Some(self) })?;
        }
    }
}

fn event_constraint(ctx: &ExecContext, event: &Event) -> Option<Arc<Constraint>> {
    match event {
        Event::Unique { target, index, .. } => {
            let index = target.indexes.iter().find(|i| i.oid == *index)?;
            ctx.catalog.constraint(index.constraint_oid).cloned()
        }
        Event::Reference { constraint, .. } | Event::Referenced { constraint, .. } => Some(constraint.clone()),
    }
}

fn values_of(columns: &[i16], row: &[Datum]) -> Vec<Datum> {
    columns.iter().map(|c| row[*c as usize - 1].clone()).collect()
}

impl Events {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes over what another writer of the statement has left.
    pub(super) fn append(&mut self, other: Events) {
        self.queue.extend(other.queue);
    }

    pub(super) fn inserted(&mut self, target: &Arc<TableTarget>, row: &[Datum]) {
        for constraint in &target.references {
            self.reference(target, constraint, row);
        }
    }

    pub(super) fn updated(&mut self, target: &Arc<TableTarget>, old: &[Datum], new: &[Datum]) {
        for constraint in &target.references {
            if !same(&values_of(&constraint.columns, old), &values_of(&constraint.columns, new)) {
                self.reference(target, constraint, new);
            }
        }
        for constraint in &target.referenced_by {
            let Some(key) = &constraint.foreign_key else { continue };
            let (old, new) = (values_of(&key.referenced_columns, old), values_of(&key.referenced_columns, new));
            if !same(&old, &new) {
                self.referenced(target, constraint, old, Some(new));
            }
        }
    }

    pub(super) fn deleted(&mut self, target: &Arc<TableTarget>, old: &[Datum]) {
        for constraint in &target.referenced_by {
            let Some(key) = &constraint.foreign_key else { continue };
            self.referenced(target, constraint, values_of(&key.referenced_columns, old), None);
        }
    }

    pub(super) fn unique_later(
        &mut self,
        target: &Arc<TableTarget>,
        index: &IndexTarget,
        key: &[u8],
        values: Vec<Datum>,
        row: RowId,
    ) {
        let event = Event::Unique { target: target.clone(), index: index.oid, key: key.to_vec(), values, row };
        self.queue.push_back(event);
    }

    /// Queues the check of a referencing row.
    pub(crate) fn reference(&mut self, target: &Arc<TableTarget>, constraint: &Arc<Constraint>, row: &[Datum]) {
        let values = values_of(&constraint.columns, row);
        let nulls = values.iter().filter(|v| v.is_null()).count();
        let full = constraint.foreign_key.as_ref().is_some_and(|f| f.match_type == b'f');
        if nulls == values.len() || (nulls > 0 && !full) {
            return;
        }
        let target = self.shared.get_or_insert_with(|| target.clone()).clone();
        self.queue.push_back(Event::Reference { target, constraint: constraint.clone(), values });
    }

    fn referenced(&mut self, target: &Arc<TableTarget>, constraint: &Arc<Constraint>, old: Vec<Datum>, new: Option<Vec<Datum>>) {
        if old.iter().any(Datum::is_null) {
            return;
        }
        self.queue.push_back(Event::Referenced { target: target.clone(), constraint: constraint.clone(), old, new });
    }

    /// Runs the events at the end of the statement; those of deferred constraints move to the transaction.
    pub fn finish(&mut self, ctx: &ExecContext, txn: &Arc<Transaction>, deferred: &DeferredEvents) -> Result<()> {
        if self.queue.is_empty() {
            return Ok(());
        }
        Runner::new(ctx, txn).run(std::mem::take(&mut self.queue), Some(deferred))
    }
}

/// Runs events, and the events of the changes that referential actions make.
pub(super) struct Runner<'a> {
    pub ctx: &'a ExecContext,
    pub txn: &'a Arc<Transaction>,
    targets: HashMap<Oid, Arc<TableTarget>>,
    /// References found present in this run: constraint and key.
    present: HashSet<(Oid, Vec<u8>)>,
}

impl<'a> Runner<'a> {
    fn new(ctx: &'a ExecContext, txn: &'a Arc<Transaction>) -> Runner<'a> {
        Runner { ctx, txn, targets: HashMap::new(), present: HashSet::new() }
    }

    /// The target for a table, compiled once a run.
    pub(super) fn target(&mut self, table: Oid) -> Result<Arc<TableTarget>> {
        if let Some(target) = self.targets.get(&table) {
            return Ok(target.clone());
        }
        let builder = TargetBuilder { catalog: &self.ctx.catalog, session: &*self.ctx.session };
        let target = Arc::new(builder.table(table)?);
        self.targets.insert(table, target.clone());
        Ok(target)
    }

    fn run(&mut self, mut queue: VecDeque<Event>, deferred: Option<&DeferredEvents>) -> Result<()> {
        while let Some(event) = queue.pop_front() {
            if let Some(deferred) = deferred
                && let Some(constraint) = event_constraint(self.ctx, &event)
                && deferred.defers(&constraint)
                // Actions other than NO ACTION are never deferred.
                && Action::of(&event) == Action::Check
            {
                deferred.state.lock().queue.push(event);
                continue;
            }
            match event {
                Event::Unique { target, index, key, values, row } => self.check_unique(&target, index, &key, &values, row)?,
                Event::Reference { target, constraint, values } => {
                    let mut key = Vec::new();
                    values.iter().for_each(|v| crate::execute::key::KeyPart::default().encode(v, &mut key));
                    let key = (constraint.oid, key);
                    if !self.present.contains(&key) {
                        foreign_key::check_reference(self, &target, &constraint, &values)?;
                        self.present.insert(key);
                    }
                }
                Event::Referenced { target, constraint, old, new } => {
                    self.present.clear();
                    let mut made = foreign_key::follow(self, &target, &constraint, &old, new.as_deref())?;
                    queue.append(&mut made.queue);
                }
            }
        }
        Ok(())
    }

    fn check_unique(&self, target: &TableTarget, index: Oid, key: &[u8], values: &[Datum], row: RowId) -> Result<()> {
        let Some(index) = target.indexes.iter().find(|i| i.oid == index) else { return Ok(()) };
        // The row may have changed again since.
        let latest = self.txn.index_probe_latest(index.tree, key, Some(row))?;
        let own = self.txn.index_probe_latest(index.tree, key, latest)?;
        if latest.is_some() && own == Some(row) {
            return Err(error::unique(&*self.ctx.session, target, index, values));
        }
        Ok(())
    }
}
