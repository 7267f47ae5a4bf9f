//! Runs events, and the events of the changes that referential actions make.

use std::sync::Arc;

use hashbrown::HashMap;
use melba_catalog::Constraint;
use melba_engine::Transaction;
use melba_types::{Datum, Oid, Result, RowId};

use super::super::changes::{StatementChanges, Turn};
use super::super::error;
use super::super::excluding;
use super::super::foreign_key::{self, Action};
use super::super::reference::{self, CheckedKeys};
use super::super::target::{TableTarget, TargetBuilder};
use super::super::transition::Transitions;
use super::super::writer::TableWriter;
use super::deferred::DeferredEvents;
use super::log::{EventChange, EventLog, Fired, RowRange, Subject};
use melba_expression::Evaluation;

/// Runs the events of a log; those of deferred constraints move to the transaction.
pub fn run(
    ctx: &Evaluation,
    txn: &Arc<Transaction>,
    log: &mut EventLog,
    deferred: Option<&DeferredEvents>,
    changes: &Arc<StatementChanges>,
) -> Result<()> {
    if log.is_empty() {
        return Ok(());
    }
    // Makes the command's changes readable, and long values of them.
    let view = ctx.view();
    ctx.set_view(txn.current_view(view));
    // Functions of triggers take new views.
    let _pin = txn.pin_view(ctx.view());
    let result = Runner::new(ctx, txn, changes.clone()).run(log, deferred);
    ctx.set_view(view);
    result
}

pub struct Runner<'a> {
    pub ctx: &'a Evaluation,
    pub txn: &'a Arc<Transaction>,
    targets: HashMap<Oid, Arc<TableTarget>>,
    /// References found present in this run.
    pub present: CheckedKeys,
    changes: Arc<StatementChanges>,
    /// Tables that actions change, and the kinds of change, since the last triggers after them were noted.
    begun: Vec<Begun>,
    replica: Option<bool>,
}

/// The statement that all actions of one kind on a table are.
struct Begun {
    target: Arc<TableTarget>,
    event: i16,
    columns: Vec<i16>,
    transitions: Option<Arc<Transitions>>,
    turn: Turn,
}

impl<'a> Runner<'a> {
    pub fn new(ctx: &'a Evaluation, txn: &'a Arc<Transaction>, changes: Arc<StatementChanges>) -> Runner<'a> {
        let (targets, present) = (HashMap::new(), CheckedKeys::default());
        Runner { ctx, txn, targets, present, changes, begun: Vec::new(), replica: None }
    }

    /// An action is to change a table: fires the triggers before the statement, which all of them are.
    pub fn begin(&mut self, target: &Arc<TableTarget>, event: i16, columns: &[i16]) -> Result<()> {
        if target.triggers.is_none() {
            return Ok(());
        }
        let mut writer = TableWriter::new(target.clone(), self.txn.clone());
        (writer.updated, writer.changes) = (columns.to_vec(), Some(self.changes.clone()));
        writer.begin(self.ctx, event)?;
        // Triggers noted at the end of earlier parts wait for the end of this one.
        let turn = self.changes.end(target.relation.oid, event);
        self.begun.retain(|begun| begun.turn.is_last());
        let (columns, transitions) = (columns.to_vec(), writer.transitions);
        self.begun.push(Begun { target: target.clone(), event, columns, transitions, turn });
        Ok(())
    }

    fn begun(&self, target: &TableTarget, event: i16) -> Option<&Begun> {
        self.begun.iter().rev().find(|b| b.target.relation.oid == target.relation.oid && b.event == event)
    }

    /// The row stores that triggers need for rows that actions change.
    pub fn transitions(&self, target: &TableTarget, event: i16) -> Option<Arc<Transitions>> {
        self.begun(target, event).and_then(|begun| begun.transitions.clone())
    }

    /// Notes the triggers after the statements that actions were.
    fn end(&mut self, log: &mut EventLog) -> Result<()> {
        for Begun { target, event, columns, transitions, turn } in std::mem::take(&mut self.begun) {
            let mut writer = TableWriter::new(target, self.txn.clone());
            (writer.updated, writer.transitions) = (columns, transitions);
            writer.note_end(self.ctx, event, turn)?;
            log.append(self.ctx, std::mem::take(&mut writer.events).log)?;
        }
        Ok(())
    }

    /// Whether a constraint is checked or followed, which ALTER TABLE ... DISABLE TRIGGER ALL and session_replication_role say.
    fn fires(&mut self, enabled: u8) -> bool {
        let ctx = self.ctx;
        melba_catalog::fires(enabled, *self.replica.get_or_insert_with(|| ctx.session.is_replica()))
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
                self.end(&mut made)?;
                return Ok(made);
            }
            while let Some(event) = events.next() {
                match event.change {
                    EventChange::Rows(rows) => {
                        let mut all = vec![rows];
                        while let Some(next) = events.next_if(|next| next.subject == event.subject) {
                            if let EventChange::Rows(rows) = next.change {
                                all.push(rows);
                            }
                        }
                        self.check(&log.subject(&event).clone(), &all, deferred)?;
                    }
                    EventChange::Change { ref old, ref new } => {
                        let Subject::Triggers(fired) = log.subject(&event).clone() else { continue };
                        self.fire(&fired, (old.as_ref(), new.as_ref()), deferred)?;
                    }
                    EventChange::Key { .. } => {
                        let Subject::Referenced(target, constraint) = log.subject(&event) else { continue };
                        self.referenced(target, constraint, event.change, deferred, &mut made)?;
                    }
                }
            }
        }
    }

    /// Checks rows that were written.
    fn check(&mut self, subject: &Subject, rows: &[RowRange], deferred: Option<&DeferredEvents>) -> Result<()> {
        let ctx = self.ctx;
        let defers = |constraint: &Constraint| deferred.is_some_and(|deferred| deferred.defers(constraint));
        let defer = |subject: &Subject| match deferred {
            Some(deferred) => rows.iter().try_for_each(|rows| deferred.push(ctx, subject, EventChange::Rows(*rows))),
            None => Ok(()),
        };
        match subject {
            Subject::References(target, which) => {
                let mut which = which.clone().unwrap_or_else(|| (0..target.references.len()).collect());
                which.retain(|at| self.is_there(&target.references[*at]));
                if deferred.is_some() {
                    which.retain(|at| self.fires(target.references[*at].check_enabled));
                }
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
            Subject::Referenced(..) | Subject::Triggers(..) => Ok(()),
        }
    }

    /// Fires triggers after a change; those of deferred constraints later.
    fn fire(
        &mut self,
        fired: &Fired,
        (old, new): (Option<&Datum>, Option<&Datum>),
        deferred: Option<&DeferredEvents>,
    ) -> Result<()> {
        let Fired { triggers, event, which, transitions, turn, role } = fired;
        if turn.as_ref().is_some_and(|turn| !turn.is_last()) {
            return Ok(());
        }
        for &at in which {
            let constraint = self.ctx.catalog().constraint(triggers.trigger(at).constraint);
            if let (Some(deferred), Some(constraint)) = (deferred, constraint)
                && deferred.defers(constraint)
            {
                let what = EventChange::Change { old: old.cloned(), new: new.cloned() };
                deferred.push(self.ctx, &Subject::Triggers(Fired { which: vec![at], ..fired.clone() }), what)?;
                continue;
            }
            // It may change a key that was found.
            self.present.clear();
            triggers.call(self.ctx, at, (*event, &[]), (old, new), transitions.as_deref(), *role)?;
        }
        Ok(())
    }

    /// Follows a key that was deleted or changed.
    fn referenced(
        &mut self,
        target: &Arc<TableTarget>,
        constraint: &Arc<Constraint>,
        what: EventChange,
        deferred: Option<&DeferredEvents>,
        made: &mut EventLog,
    ) -> Result<()> {
        let EventChange::Key { old, new } = &what else { return Ok(()) };
        if !self.is_there(constraint) || deferred.is_some() && !self.fires(constraint.action_enabled) {
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

    /// A foreign key is dropped with the table that it refers to, also while its checks wait.
    fn is_there(&self, constraint: &Constraint) -> bool {
        self.ctx.catalog().constraint(constraint.oid).is_some()
    }

    fn check_unique(&self, target: &TableTarget, index: Oid, row: RowId) -> Result<()> {
        let Some(index) = target.indexes.iter().find(|i| i.oid == index) else { return Ok(()) };
        // The row may have changed again since, or been deleted.
        let Some(bytes) = self.txn.get_latest(target.tree, row)?.row else { return Ok(()) };
        let values = target.decode(&bytes);
        let values = target.with_plain_keys(self.ctx, &values)?;
        if index.exclusion.is_some() {
            return match excluding::check(self.ctx, self.txn, (target, index), &values, row)? {
                Some(excluding::ExcludedRow { values, existing }) => {
                    Err(error::exclusion(&*self.ctx.session, target, index, &values, existing.as_deref()))
                }
                None => Ok(()),
            };
        }
        let mut key = Vec::new();
        if !index.key(self.ctx, &values, &mut key)? || !index.must_be_unique(self.ctx, &values)? {
            return Ok(());
        }
        if self.txn.index(index.tree).probe_latest(&key, Some(row))?.is_none() {
            return Ok(());
        }
        Err(error::unique(&*self.ctx.session, target, index, &index.values(self.ctx, &values)?))
    }
}
