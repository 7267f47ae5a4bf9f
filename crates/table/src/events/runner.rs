//! Runs events, and the events of the changes that referential actions make.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::Constraint;
use melba_engine::Transaction;
use melba_types::{Oid, Result, RowId};

use super::super::error;
use super::super::foreign_key::{self, Action};
use super::super::reference::{self, CheckedKeys};
use super::super::target::{TableTarget, TargetBuilder};
use super::deferred::DeferredEvents;
use super::log::{EventLog, Rows, Subject, What};
use melba_expression::Evaluation;

/// Runs the events of a log; those of deferred constraints move to the transaction.
pub fn run(ctx: &Evaluation, txn: &Arc<Transaction>, log: &mut EventLog, deferred: Option<&DeferredEvents>) -> Result<()> {
    if log.is_empty() {
        return Ok(());
    }
    // What the command has written becomes readable, and long values of it.
    let view = ctx.view();
    ctx.set_view(txn.current_view(view));
    let result = Runner::new(ctx, txn).run(log, deferred);
    ctx.set_view(view);
    result
}

pub struct Runner<'a> {
    pub ctx: &'a Evaluation,
    pub txn: &'a Arc<Transaction>,
    targets: HashMap<Oid, Arc<TableTarget>>,
    /// References found present in this run.
    pub present: CheckedKeys,
}

impl<'a> Runner<'a> {
    fn new(ctx: &'a Evaluation, txn: &'a Arc<Transaction>) -> Runner<'a> {
        Runner { ctx, txn, targets: HashMap::new(), present: CheckedKeys::default() }
    }

    /// The target for a table, compiled once a run.
    pub fn target(&mut self, table: Oid) -> Result<Arc<TableTarget>> {
        if let Some(target) = self.targets.get(&table) {
            return Ok(target.clone());
        }
        let builder = TargetBuilder { catalog: self.ctx.catalog(), session: &*self.ctx.session };
        let target = Arc::new(builder.table(table)?);
        self.targets.insert(table, target.clone());
        Ok(target)
    }

    fn run(&mut self, log: &mut EventLog, deferred: Option<&DeferredEvents>) -> Result<()> {
        let mut made = self.run_once(log, deferred)?;
        while !made.is_empty() {
            made = self.run_once(&mut made, deferred)?;
        }
        Ok(())
    }

    /// Runs the events of a log: the events of the changes made.
    fn run_once(&mut self, log: &mut EventLog, deferred: Option<&DeferredEvents>) -> Result<EventLog> {
        let mut made = EventLog::default();
        let mut at = 0;
        loop {
            let mut events = log.read(&mut at)?.into_iter().peekable();
            if events.peek().is_none() {
                return Ok(made);
            }
            while let Some(event) = events.next() {
                match event.what {
                    What::Rows(rows) => {
                        let mut all = vec![rows];
                        while let Some(next) = events.next_if(|next| next.subject == event.subject) {
                            if let What::Rows(rows) = next.what {
                                all.push(rows);
                            }
                        }
                        self.check(&log.subject(&event).clone(), &all, deferred)?;
                    }
                    What::Key { .. } => {
                        let Subject::Referenced(target, constraint) = log.subject(&event) else { continue };
                        self.referenced(target, constraint, event.what, deferred, &mut made)?;
                    }
                }
            }
        }
    }

    /// Checks rows that were written.
    fn check(&mut self, subject: &Subject, rows: &[Rows], deferred: Option<&DeferredEvents>) -> Result<()> {
        let defers = |constraint: &Constraint| deferred.is_some_and(|deferred| deferred.defers(constraint));
        let defer = |subject: &Subject| match deferred {
            Some(deferred) => rows.iter().try_for_each(|rows| deferred.push(self.ctx, subject, What::Rows(*rows))),
            None => Ok(()),
        };
        match subject {
            Subject::References(target, which) => {
                let mut which = which.clone().unwrap_or_else(|| (0..target.references.len()).collect());
                which.retain(|at| self.is_there(&target.references[*at]));
                let (later, now): (Vec<usize>, Vec<usize>) = which.into_iter().partition(|at| defers(&target.references[*at]));
                if !later.is_empty() {
                    defer(&Subject::References(target.clone(), Some(later)))?;
                }
                if now.is_empty() {
                    return Ok(());
                }
                let now: Vec<_> = now.into_iter().map(|at| target.references[at].clone()).collect();
                reference::check_rows(self, target, &now, rows)
            }
            Subject::Unique(target, index) => {
                let found = target.indexes.iter().find(|i| i.oid == *index);
                let constraint = found.and_then(|index| self.ctx.catalog().constraint(index.constraint_oid));
                if constraint.is_some_and(|constraint| defers(constraint)) {
                    return defer(subject);
                }
                let ids = rows.iter().flat_map(|rows| (0..rows.count).map(|i| RowId(rows.first.0 + i)));
                ids.into_iter().try_for_each(|id| self.check_unique(target, *index, id))
            }
            Subject::Referenced(..) => Ok(()),
        }
    }

    /// Follows a key that was deleted or changed.
    fn referenced(
        &mut self,
        target: &Arc<TableTarget>,
        constraint: &Arc<Constraint>,
        what: What,
        deferred: Option<&DeferredEvents>,
        made: &mut EventLog,
    ) -> Result<()> {
        let What::Key { old, new } = &what else { return Ok(()) };
        if !self.is_there(constraint) {
            return Ok(());
        }
        // Actions other than NO ACTION are never deferred.
        if let Some(deferred) = deferred.filter(|deferred| deferred.defers(constraint))
            && Action::of(constraint, new.is_none()) == Action::Check
        {
            return deferred.push(self.ctx, &Subject::Referenced(target.clone(), constraint.clone()), what);
        }
        self.present.clear();
        let events = foreign_key::follow(self, target, constraint, old, new.as_deref())?;
        made.append(self.ctx, events.log)
    }

    /// A foreign key goes with the table that it refers to, also while its checks wait.
    fn is_there(&self, constraint: &Constraint) -> bool {
        self.ctx.catalog().constraint(constraint.oid).is_some()
    }

    fn check_unique(&self, target: &TableTarget, index: Oid, row: RowId) -> Result<()> {
        let Some(index) = target.indexes.iter().find(|i| i.oid == index) else { return Ok(()) };
        // The row may have changed again since, or gone.
        let Some(bytes) = self.txn.get_latest(target.tree, row)?.row else { return Ok(()) };
        let values = target.decode(&bytes);
        let values = target.with_plain_keys(self.ctx, &values)?;
        let mut key = Vec::new();
        if !index.key(self.ctx, &values, &mut key)? || !index.must_be_unique(self.ctx, &values)? {
            return Ok(());
        }
        if self.txn.index_probe_latest(index.tree, &key, Some(row))?.is_none() {
            return Ok(());
        }
        Err(error::unique(&*self.ctx.session, target, index, &index.values(self.ctx, &values)?))
    }
}
