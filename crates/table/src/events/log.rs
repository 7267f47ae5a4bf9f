//! Events in order of arrival: a few as they are, more of them as rows of a `Store`, which counts and spills them.
//!
//! Invariant: consecutive rows with the same checks are one event; but an event after `seal` is never joined with one before it.

use std::sync::Arc;

use melba_catalog::Constraint;
use melba_types::{Batch, Column, Datum, DbError, Kind, Oid, Record, Result, RowId};

use super::super::changes::Turn;
use super::super::target::TableTarget;
use super::super::transition::Transitions;
use super::super::trigger::Triggers;

use melba_expression::Evaluation;
use melba_spill::Store;
use melba_types::BATCH_ROWS;

/// Bytes of events that are not kept as they are, however few events they are.
const RECENT_BYTES_MAX: usize = 256 << 10;

/// The subject of events.
#[derive(Clone)]
pub enum Subject {
    /// Rows of a referencing table were written. Which of its foreign keys are to be checked, by their positions; all of them.
    References(Arc<TableTarget>, Option<Vec<usize>>),
    /// Rows were written whose key in a deferrable unique index was taken.
    Unique(Arc<TableTarget>, Oid),
    /// Keys of a referenced table were deleted or changed.
    Referenced(Arc<TableTarget>, Arc<Constraint>),
    /// Triggers fire for an event, by their places.
    Triggers(Fired),
}

#[derive(Clone)]
pub struct Fired {
    pub triggers: Arc<Triggers>,
    pub event: i16,
    /// By place.
    pub which: Vec<usize>,
    /// Of the statement.
    pub transitions: Option<Arc<Transitions>>,
    /// Of triggers after a statement.
    pub turn: Option<Turn>,
    /// The role that made the change.
    pub role: Oid,
}

impl Fired {
    fn is(&self, other: &Fired) -> bool {
        let same_rows = match (&self.transitions, &other.transitions) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        let same_turn = match (&self.turn, &other.turn) {
            (None, None) => true,
            (Some(a), Some(b)) => a.is(b),
            _ => false,
        };
        let same_cause = same_rows && same_turn && self.role == other.role;
        same_cause && Arc::ptr_eq(&self.triggers, &other.triggers) && self.event == other.event && self.which == other.which
    }
}

/// Rows with ids that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct RowRange {
    pub first: RowId,
    pub count: u64,
}

#[derive(Clone)]
pub enum EventChange {
    Rows(RowRange),
    /// A key; `new` is `None` when its row was deleted.
    Key {
        old: Vec<Datum>,
        new: Option<Vec<Datum>>,
    },
    /// A row before and after its change, as values of its table's row type; neither: the change of a whole statement.
    Change {
        old: Option<Datum>,
        new: Option<Datum>,
    },
}

#[derive(Clone)]
pub struct Event {
    /// Position among the log's subjects.
    pub subject: usize,
    pub change: EventChange,
}

/// Events to check or do later.
#[derive(Default)]
pub struct EventLog {
    subjects: Vec<Subject>,
    older: Option<Store>,
    recent: Vec<Event>,
    recent_bytes: usize,
    sealed: bool,
}

impl Subject {
    /// Each statement compiles its target: targets of the same table, as long as it is not altered, are equivalent.
    fn is(&self, other: &Subject) -> bool {
        let is_same = |a: &TableTarget, b: &TableTarget| Arc::ptr_eq(&a.relation, &b.relation);
        match (self, other) {
            (Subject::References(a, x), Subject::References(b, y)) => is_same(a, b) && x == y,
            (Subject::Unique(a, x), Subject::Unique(b, y)) => is_same(a, b) && x == y,
            (Subject::Referenced(a, x), Subject::Referenced(b, y)) => is_same(a, b) && (x.oid, x.relation) == (y.oid, y.relation),
            (Subject::Triggers(a), Subject::Triggers(b)) => a.is(b),
            _ => false,
        }
    }

    fn table(&self) -> Oid {
        match self {
            Subject::References(target, _) | Subject::Unique(target, _) | Subject::Referenced(target, _) => target.relation.oid,
            Subject::Triggers(fired) => fired.triggers.table.oid,
        }
    }
}

impl EventChange {
    pub fn row(id: RowId) -> EventChange {
        EventChange::Rows(RowRange { first: id, count: 1 })
    }

    fn bytes(&self) -> usize {
        let values = match self {
            EventChange::Rows(_) => 0,
            EventChange::Key { old, new } => {
                old.iter().chain(new.iter().flatten()).map(|v| size_of::<Datum>() + v.heap_bytes()).sum()
            }
            EventChange::Change { old, new } => old.iter().chain(new).map(Datum::heap_bytes).sum(),
        };
        size_of::<Event>() + values
    }
}

impl EventLog {
    /// How many events there are.
    pub fn len(&self) -> u64 {
        self.older_rows() + self.recent.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn older_rows(&self) -> u64 {
        self.older.as_ref().map_or(0, Store::rows)
    }

    /// An event's subject.
    pub fn subject(&self, event: &Event) -> &Subject {
        &self.subjects[event.subject]
    }

    pub fn push(&mut self, ctx: &Evaluation, subject: &Subject, what: EventChange) -> Result<()> {
        let subject = match self.subjects.iter().rposition(|known| known.is(subject)) {
            Some(at) => at,
            None => {
                self.subjects.push(subject.clone());
                self.subjects.len() - 1
            }
        };
        if let EventChange::Rows(rows) = what
            && !self.sealed
            && let Some(Event { subject: last, change: EventChange::Rows(before) }) = self.recent.last_mut()
            && *last == subject
            && before.first.0 + before.count == rows.first.0
        {
            before.count += rows.count;
            return Ok(());
        }
        self.sealed = false;
        self.recent_bytes += what.bytes();
        self.recent.push(Event { subject, change: what });
        if self.recent.len() >= BATCH_ROWS || self.recent_bytes >= RECENT_BYTES_MAX {
            self.put_away(ctx)?;
        }
        Ok(())
    }

    /// Takes over the events of another log.
    pub fn append(&mut self, ctx: &Evaluation, mut other: EventLog) -> Result<()> {
        if self.is_empty() {
            *self = other;
            return Ok(());
        }
        let mut at = 0;
        loop {
            let events = other.read(&mut at)?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                self.push(ctx, &other.subjects[event.subject], event.change)?;
            }
        }
    }

    /// Events from a place on, and the place after them; none at the end.
    pub fn read(&mut self, at: &mut u64) -> Result<Vec<Event>> {
        let older = self.older_rows();
        let batch = self.older.as_mut().map(|store| store.read(at, BATCH_ROWS)).transpose()?.flatten();
        if let Some(batch) = batch {
            return (0..batch.rows).map(|i| self.decode(&batch, i)).collect();
        }
        let events = self.recent[(*at - older) as usize..].to_vec();
        *at += events.len() as u64;
        Ok(events)
    }

    /// Whether there are events of a table.
    pub fn mentions(&mut self, table: Oid) -> Result<bool> {
        let is_of = |subject: &Subject| subject.table() == table;
        let mut at = 0;
        while at < self.len() && self.subjects.iter().any(is_of) {
            if self.read(&mut at)?.iter().any(|event| is_of(self.subject(event))) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps the events so far as they are.
    pub fn seal(&mut self) {
        self.sealed = true;
    }

    /// Forgets the events after the first `len`, where the log was sealed.
    pub fn truncate(&mut self, len: u64) -> Result<()> {
        let older = self.older_rows();
        self.recent.truncate(len.saturating_sub(older) as usize);
        self.recent_bytes = self.recent.iter().map(|event| event.change.bytes()).sum();
        self.sealed = true;
        match &mut self.older {
            Some(store) if len < older => store.truncate(len),
            _ => Ok(()),
        }
    }

    /// Moves the recent events to the store.
    fn put_away(&mut self, ctx: &Evaluation) -> Result<()> {
        let batch = encode(std::mem::take(&mut self.recent));
        self.recent_bytes = 0;
        self.older.get_or_insert_with(|| Store::new(ctx.resources())).push(batch)
    }
}

/// In place of a number of rows: the change of a row or statement.
const CHANGE: u64 = u64::MAX;

/// Columns: subject, first row, number of rows, old key, new key.
const KINDS: [Kind; 5] = [Kind::Int8, Kind::Int8, Kind::Int8, Kind::Record, Kind::Record];

fn encode(events: Vec<Event>) -> Batch {
    let rows = events.len();
    let mut columns = KINDS.map(|kind| Column::with_capacity(kind, rows));
    for event in events {
        let (range, old, new) = match event.change {
            EventChange::Rows(rows) => (rows, Datum::Null, Datum::Null),
            EventChange::Key { old, new } => {
                (RowRange { first: RowId(0), count: 0 }, record(old), new.map_or(Datum::Null, record))
            }
            EventChange::Change { old, new } => {
                (RowRange { first: RowId(0), count: CHANGE }, old.unwrap_or_default(), new.unwrap_or_default())
            }
        };
        let numbers = [event.subject as i64, range.first.0 as i64, range.count as i64];
        let values = numbers.map(Datum::Int8).into_iter().chain([old, new]);
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }
    Batch::new(columns.into(), rows)
}

fn record(fields: Vec<Datum>) -> Datum {
    let field_types = vec![Oid::INVALID; fields.len()].into();
    Datum::Record(Arc::new(Record { type_oid: Oid::INVALID, field_types, field_names: None, fields }))
}

impl EventLog {
    fn decode(&self, batch: &Batch, i: usize) -> Result<Event> {
        let number = |at: usize| match batch.columns[at].get(i) {
            Datum::Int8(n) => Ok(n as u64),
            _ => Err(DbError::internal("an event without its numbers")),
        };
        let key = |at: usize| match batch.columns[at].get(i) {
            Datum::Record(record) => Some(record.fields.clone()),
            _ => None,
        };
        let subject = number(0)? as usize;
        let what = match (number(2)?, &self.subjects[subject]) {
            (CHANGE, Subject::Triggers(fired)) => {
                let row = |at| key(at).map(|fields| fired.triggers.record_of(fields));
                EventChange::Change { old: row(3), new: row(4) }
            }
            (count, _) => match key(3) {
                Some(old) => EventChange::Key { old, new: key(4) },
                None => EventChange::Rows(RowRange { first: RowId(number(1)?), count }),
            },
        };
        Ok(Event { subject, change: what })
    }
}
