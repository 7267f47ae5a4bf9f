//! The events that a transaction defers to its end, and which constraints it defers.
//!
//! Invariant: a rollback to a savepoint restores the events of that time, also those that SET CONSTRAINTS has run since.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::Constraint;
use melba_engine::Transaction;
use melba_types::{Oid, Result};

use super::log::{EventChange, EventLog, Subject};
use super::runner;
use melba_expression::Evaluation;
use melba_types::RarelyUsed;

#[derive(Default)]
pub struct DeferredEvents {
    state: RarelyUsed<Deferred>,
}

#[derive(Default)]
struct Deferred {
    log: EventLog,
    /// The log before each time that SET CONSTRAINTS ran events.
    past: Vec<EventLog>,
    modes: Modes,
}

#[derive(Clone, Default)]
struct Modes {
    /// SET CONSTRAINTS ALL.
    all: Option<bool>,
    /// SET CONSTRAINTS name.
    each: HashMap<Oid, bool>,
}

/// The position to which a rollback to a savepoint returns.
pub struct DeferredPosition {
    past: usize,
    len: u64,
    modes: Modes,
}

impl DeferredEvents {
    pub fn is_empty(&self) -> bool {
        self.state.used().is_none_or(|state| state.log.is_empty())
    }

    /// Whether events of a table wait: it must not be altered until they have been run.
    pub fn mentions(&self, table: Oid) -> Result<bool> {
        self.state.lock().log.mentions(table)
    }

    pub fn position(&self) -> DeferredPosition {
        let mut state = self.state.lock();
        state.log.seal();
        DeferredPosition { past: state.past.len(), len: state.log.len(), modes: state.modes.clone() }
    }

    /// Undoes changes since a savepoint.
    pub fn roll_back_to(&self, position: &DeferredPosition) -> Result<()> {
        let mut state = self.state.lock();
        state.modes = position.modes.clone();
        let then = state.past.drain(position.past..).next();
        if let Some(log) = then {
            state.log = log;
        }
        state.log.truncate(position.len)
    }

    /// SET CONSTRAINTS: empty `constraints` stand for ALL.
    pub fn set(&self, constraints: &[Oid], deferred: bool) {
        let modes = &mut self.state.lock().modes;
        if constraints.is_empty() {
            modes.all = Some(deferred);
            modes.each.clear();
        }
        modes.each.extend(constraints.iter().map(|c| (*c, deferred)));
    }

    pub(super) fn defers(&self, constraint: &Constraint) -> bool {
        if !constraint.deferrable {
            return false;
        }
        let modes = &self.state.lock().modes;
        modes.each.get(&constraint.oid).copied().or(modes.all).unwrap_or(constraint.initially_deferred)
    }

    pub(super) fn push(&self, ctx: &Evaluation, subject: &Subject, what: EventChange) -> Result<()> {
        self.state.lock().log.push(ctx, subject, what)
    }

    /// Runs events that are no longer deferred: at commit (`all`) and after SET CONSTRAINTS IMMEDIATE.
    pub fn run(&self, ctx: &Evaluation, txn: &Arc<Transaction>, all: bool) -> Result<()> {
        loop {
            let mut log = std::mem::take(&mut self.state.lock().log);
            if log.is_empty() {
                return Ok(());
            }
            let result = runner::run(ctx, txn, &mut log, if all { None } else { Some(self) }, &Arc::default());
            if !all {
                self.state.lock().past.push(log);
                return result;
            }
            // Statements of triggers may have left further events.
            result?;
        }
    }
}
