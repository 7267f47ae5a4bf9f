//! The triggers of a table: selects those that fire for a change, and the rows that they see.
//!
//! Invariants:
//! 1. Triggers fire in the order of their names.
//! 2. Whether a trigger fires is decided when the change is made, also where it fires later.

use std::sync::Arc;

use melba_analyze::{NEW_ENTRY, TABLE_OID};
use melba_catalog::trigger_events::{BEFORE, INSERT, INSTEAD, ROW, UPDATE};
use melba_catalog::{Catalog, Relation, Trigger};
use melba_expression::compile::{Compiler, Resolved, Scope};
use melba_expression::{Evaluation, Expression};
use melba_fmgr::{PureTrigger, Session, TransitionTable, TriggerCall};
use melba_tree::{Const, Expr, RowExpr, Var};
use melba_types::{Batch, Column, Datum, DbError, Kind, Oid, Record, Result};

use super::transition::{ChangedRows, Transitions};

/// The moments and events of triggers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    BeforeRow,
    AfterRow,
    BeforeStatement,
    AfterStatement,
    InsteadOf,
}

impl Moment {
    fn of(trigger: &Trigger) -> Moment {
        match (trigger.has(INSTEAD), trigger.has(BEFORE), trigger.has(ROW)) {
            (true, ..) => Moment::InsteadOf,
            (_, true, true) => Moment::BeforeRow,
            (_, false, true) => Moment::AfterRow,
            (_, true, false) => Moment::BeforeStatement,
            (_, false, false) => Moment::AfterStatement,
        }
    }
}

/// The triggers of a table, compiled.
#[derive(Debug)]
pub struct Triggers {
    pub table: Arc<Relation>,
    /// By name.
    all: Vec<TriggerTarget>,
    row_type: Oid,
    field_types: Arc<[Oid]>,
    field_names: Arc<[Arc<str>]>,
    /// Columns that are not dropped.
    live: Vec<usize>,
    generated: Vec<usize>,
    kinds: Vec<Kind>,
}

#[derive(Debug)]
struct TriggerTarget {
    trigger: Arc<Trigger>,
    moment: Moment,
    /// Over the columns of the old row and those of the new one.
    when: Option<Expression>,
}

/// A row before and after a change, with all the table's columns.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    pub event: i16,
    pub old: Option<&'a [Datum]>,
    pub new: Option<&'a [Datum]>,
    /// Attribute numbers of the columns that an UPDATE assigns.
    pub updated: &'a [i16],
    pub replica: bool,
}

/// Columns of the old row come first, those of the new one then.
struct ConditionScope {
    width: usize,
}

impl Scope for ConditionScope {
    fn var(&mut self, var: &Var) -> Result<Resolved> {
        let first = if var.entry == NEW_ENTRY { self.width } else { 0 };
        match usize::try_from(var.column) {
            Ok(n) if n > 0 => Ok(Resolved::Column(first + n - 1)),
            _ => Err(DbError::unsupported("a system column in a trigger's WHEN condition")),
        }
    }
}

impl Triggers {
    /// Of a table with these triggers and their conditions.
    pub fn new(table: &Arc<Relation>, triggers: Vec<(Arc<Trigger>, Option<Expression>)>) -> Triggers {
        let target = |(trigger, when): (Arc<Trigger>, _)| TriggerTarget { moment: Moment::of(&trigger), trigger, when };
        let mut all: Vec<TriggerTarget> = triggers.into_iter().map(target).collect();
        all.sort_by(|a, b| a.trigger.name.cmp(&b.trigger.name));
        let live: Vec<usize> = (0..table.columns.len()).filter(|at| !table.columns[*at].dropped).collect();
        Triggers {
            table: table.clone(),
            all,
            row_type: table.row_type,
            field_types: live.iter().map(|at| table.columns[*at].ty).collect(),
            field_names: live.iter().map(|at| table.columns[*at].name.clone()).collect(),
            generated: live.iter().copied().filter(|at| table.columns[*at].generated != 0).collect(),
            live,
            kinds: table.columns.iter().map(|c| c.kind).collect(),
        }
    }

    /// Whether there is a trigger for the event, enabled or not.
    pub fn has(&self, moment: Moment, event: i16) -> bool {
        self.all.iter().any(|t| t.moment == moment && t.trigger.has(event))
    }

    pub fn trigger(&self, at: usize) -> &Arc<Trigger> {
        &self.all[at].trigger
    }

    /// The triggers that fire for a change, by place.
    pub fn firing(&self, ctx: &Evaluation, moment: Moment, change: &Change<'_>) -> Result<Vec<usize>> {
        let mut firing = Vec::new();
        for at in 0..self.all.len() {
            if self.fires(ctx, at, moment, change)? {
                firing.push(at);
            }
        }
        Ok(firing)
    }

    fn fires(&self, ctx: &Evaluation, at: usize, moment: Moment, change: &Change<'_>) -> Result<bool> {
        let TriggerTarget { trigger, moment: own, when } = &self.all[at];
        if *own != moment || !trigger.has(change.event) || !melba_catalog::fires(trigger.enabled, change.replica) {
            return Ok(false);
        }
        if change.event == UPDATE && !trigger.columns.is_empty() && !trigger.columns.iter().any(|c| change.updated.contains(c)) {
            return Ok(false);
        }
        let Some(when) = when else { return Ok(true) };
        let width = self.kinds.len();
        let mut row = Vec::with_capacity(2 * width);
        for side in [change.old, change.new] {
            match side {
                Some(values) => row.extend_from_slice(values),
                None => row.extend(std::iter::repeat_n(Datum::Null, width)),
            }
        }
        when.holds(ctx, &row)
    }

    /// A row as a value of the table's row type.
    pub fn record(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        let field = |at: &usize| ctx.expand(row[*at].clone(), self.kinds[*at]);
        let fields = self.live.iter().map(field).collect::<Result<Vec<_>>>()?;
        Ok(self.record_of(fields))
    }

    /// The same of the values of the columns that are not dropped.
    pub fn record_of(&self, fields: Vec<Datum>) -> Datum {
        Datum::Record(Arc::new(Record {
            type_oid: self.row_type,
            field_types: self.field_types.clone(),
            field_names: Some(self.field_names.clone()),
            fields,
        }))
    }

    /// A new row before its generated columns are known.
    fn proposed(&self, ctx: &Evaluation, row: &[Datum]) -> Result<Datum> {
        if self.generated.is_empty() {
            return self.record(ctx, row);
        }
        let mut row = row.to_vec();
        self.generated.iter().for_each(|at| row[*at] = Datum::Null);
        self.record(ctx, &row)
    }

    /// Whether a trigger that may fire reads all rows that a statement changes, after the change or before it.
    pub fn reads_changes(&self, event: i16, new: bool, replica: bool) -> bool {
        let reads = |t: &TriggerTarget| {
            let name = if new { &t.trigger.new_table } else { &t.trigger.old_table };
            name.is_some() && t.trigger.has(event) && melba_catalog::fires(t.trigger.enabled, replica)
        };
        self.all.iter().any(reads)
    }

    /// Runs the function of the trigger at a place, as the role that made the change.
    pub fn call(
        &self,
        ctx: &Evaluation,
        at: usize,
        (event, updated): (i16, &[i16]),
        (old, new): (Option<&Datum>, Option<&Datum>),
        transitions: Option<&Transitions>,
        role: Oid,
    ) -> Result<Datum> {
        let trigger = &self.all[at].trigger;
        let view = ctx.view();
        let (before, after) = transitions.map_or((None, None), |t| t.tables(event));
        let named = |rows: Option<&Arc<ChangedRows>>, name: &Option<Arc<str>>| {
            let rows = rows.filter(|_| name.is_some())?;
            rows.close();
            Some(rows.clone() as Arc<dyn TransitionTable>)
        };
        let call = TriggerCall {
            trigger,
            table: &self.table,
            event,
            updated,
            old,
            new,
            old_table: named(before, &trigger.old_table),
            new_table: named(after, &trigger.new_table),
            view: (view.csn, view.command),
            role,
        };
        ctx.nesting(|| ctx.session.call_trigger(&call)).0
    }

    /// The triggers before the insertion of rows, if all of them are pure.
    pub fn pure_before_insert(&self, ctx: &Evaluation, replica: bool) -> Result<Option<PureTriggers<'_>>> {
        let mut functions = Vec::new();
        for TriggerTarget { trigger, moment, when } in &self.all {
            let is_of_rows = *moment == Moment::BeforeRow && trigger.has(INSERT);
            if !is_of_rows || !melba_catalog::fires(trigger.enabled, replica) {
                continue;
            }
            let view = ctx.view();
            let call = TriggerCall {
                trigger,
                table: &self.table,
                event: INSERT,
                updated: &[],
                old: None,
                new: None,
                old_table: None,
                new_table: None,
                view: (view.csn, view.command),
                role: ctx.session.user(),
            };
            match ctx.session.pure_trigger(&call)? {
                Some(function) if when.is_none() => functions.push(function),
                _ => return Ok(None),
            }
        }
        // Functions do not see generated columns, and their changes of them do not count.
        Ok(self.generated.is_empty().then_some(PureTriggers { of: self, functions }))
    }

    /// Fires triggers for a row that they may change one after the other. False: one of them has returned none.
    pub fn on_row(&self, ctx: &Evaluation, moment: Moment, change: &Change<'_>, mut new: Option<&mut [Datum]>) -> Result<bool> {
        let (mut old_record, mut new_record) = (None, None);
        for at in 0..self.all.len() {
            if !self.fires(ctx, at, moment, &Change { new: new.as_deref(), ..*change })? {
                continue;
            }
            if let (Some(old), None) = (change.old, &old_record) {
                old_record = Some(self.record(ctx, old)?);
            }
            if let (Some(new), None) = (&new, &new_record) {
                new_record = Some(self.proposed(ctx, new)?);
            }
            let (event, rows) = ((change.event, change.updated), (old_record.as_ref(), new_record.as_ref()));
            let Datum::Record(given) = self.call(ctx, at, event, rows, None, ctx.session.user())? else {
                return Ok(false);
            };
            let Some(row) = &mut new else { continue };
            match &new_record {
                Some(Datum::Record(shown)) if Arc::ptr_eq(shown, &given) => {}
                Some(Datum::Record(shown)) => {
                    self.take_over(row, &shown.fields, &given.fields);
                    new_record = Some(Datum::Record(given));
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Puts a trigger's changes into the row; values that it did not change keep their stored form.
    fn take_over(&self, row: &mut [Datum], shown: &[Datum], given: &[Datum]) {
        for ((at, shown), given) in self.live.iter().zip(shown).zip(given) {
            let is_left = matches!(row[*at], Datum::Stored(_)) && same_long_value(shown, given);
            if !is_left && !self.generated.contains(at) {
                row[*at] = given.clone();
            }
        }
    }
}

/// Pure triggers before the insertion of rows, of a table without generated columns.
pub struct PureTriggers<'t> {
    of: &'t Triggers,
    functions: Vec<Box<dyn PureTrigger>>,
}

impl PureTriggers<'_> {
    /// Fires the triggers for a row of a batch without stored values, and adds what they make of it to `out`. False: one of them has
    /// returned none.
    pub fn fire(&mut self, batch: &Batch, i: usize, out: &mut [Column]) -> Result<bool> {
        let fields = self.of.live.iter().map(|at| batch.columns[*at].get(i)).collect();
        let mut row = self.of.record_of(fields);
        for function in &mut self.functions {
            row = function.run(row)?;
            if row.is_null() {
                return Ok(false);
            }
        }
        let Datum::Record(row) = row else { return Err(DbError::internal("a trigger's row that is none")) };
        let fields = Arc::try_unwrap(row).map_or_else(|shared| shared.fields.clone(), |own| own.fields);
        let mut fields = self.of.live.iter().zip(fields).peekable();
        for (at, column) in out.iter_mut().enumerate() {
            column.push(fields.next_if(|(live, _)| **live == at).map_or(Datum::Null, |(_, value)| value));
        }
        Ok(true)
    }
}

/// Whether a value that a row has in stored form is the same as another.
fn same_long_value(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Text(a), Datum::Text(b)) => a == b,
        (Datum::Bytes(a), Datum::Bytes(b)) => a == b,
        _ => false,
    }
}

/// A trigger's condition, over the columns of the old row and those of the new one.
pub fn compile_condition(catalog: &Catalog, session: &dyn Session, mut condition: Expr, table: &Relation) -> Result<Expression> {
    condition.visit_mut(0, &mut |e, _| spell_out(e, table, table.oid));
    let mut scope = ConditionScope { width: table.columns.len() };
    Compiler::new(catalog, Some(session), &mut scope).compile(&condition)
}

/// Whole rows become rows of their columns, and the table its OID, which is `oid`.
pub(super) fn spell_out(e: &mut Expr, table: &Relation, oid: Oid) -> bool {
    let Expr::Var(v) = e else { return true };
    if v.column == TABLE_OID {
        let value = Datum::Oid(oid.0);
        *e = Expr::Const(Const { value, ty: v.ty, typmod: -1, collation: Oid::INVALID, location: -1 });
    } else if v.column == 0 {
        let live = || table.columns.iter().zip(1..).filter(|(c, _)| !c.dropped);
        let field = |(c, number): (&melba_catalog::Column, i16)| {
            Expr::Var(Var { column: number, ty: c.ty, typmod: c.typmod, collation: c.collation, ..v.clone() })
        };
        let fields = live().map(field).collect();
        let names = live().map(|(c, _)| c.name.clone()).collect();
        *e = Expr::Row(Box::new(RowExpr { fields, names, ty: v.ty, explicit: false, location: -1 }));
    }
    true
}
