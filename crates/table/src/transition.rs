//! The rows that one statement changes, before and after, for triggers that name them (REFERENCING).
//!
//! Rows have the columns of the table that the statement names, also rows of its partitions and children. Inserted, updated and
//! deleted rows of one statement are kept separately.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use melba_catalog::Relation;
use melba_catalog::trigger_events::{DELETE, INSERT, UPDATE};
use melba_expression::Evaluation;
use melba_fmgr::{RoutineRows, TransitionTable};
use melba_spill::{Place, Store};
use melba_types::{BATCH_ROWS, Batch, Column, Datum, Kind, Result};
use parking_lot::Mutex;

use super::changes::{BeforeAndAfter, StatementChanges};
use super::trigger::Triggers;

/// The rows of one kind.
pub struct ChangedRows {
    triggers: Arc<Triggers>,
    rows: Mutex<TransitionRows>,
    /// A trigger has got them, or others of the same changes.
    is_read: Arc<AtomicBool>,
}

struct TransitionRows {
    store: Store,
    waiting: Vec<Datum>,
}

/// The row stores that a statement's triggers need.
pub struct Transitions {
    inserted: Option<Arc<ChangedRows>>,
    /// Before and after.
    updated: BeforeAndAfter,
    deleted: Option<Arc<ChangedRows>>,
    /// An UPDATE moves a row to another partition.
    moving: AtomicBool,
}

impl Transitions {
    /// `None`: no trigger needs them.
    pub fn of(
        ctx: &Evaluation,
        changes: &StatementChanges,
        triggers: &Arc<Triggers>,
        events: i16,
        replica: bool,
    ) -> Option<Arc<Transitions>> {
        let rows = |event: i16| {
            let wanted = |new| events & event != 0 && triggers.reads_changes(event, new, replica);
            match (wanted(false), wanted(true)) {
                (false, false) => (None, None),
                wanted => changes.rows(ctx, triggers, event, wanted),
            }
        };
        let all = Transitions {
            inserted: rows(INSERT).1,
            updated: rows(UPDATE),
            deleted: rows(DELETE).0,
            moving: AtomicBool::new(false),
        };
        let is_any = all.inserted.is_some() || all.updated.0.is_some() || all.updated.1.is_some() || all.deleted.is_some();
        is_any.then(|| Arc::new(all))
    }

    /// Sets whether later deletions and insertions are part of an UPDATE.
    pub fn set_moving(&self, moving: bool) {
        self.moving.store(moving, Ordering::Relaxed);
    }

    /// The rows before and after the changes of an event.
    pub fn tables(&self, event: i16) -> (Option<&Arc<ChangedRows>>, Option<&Arc<ChangedRows>>) {
        match event {
            DELETE if self.moving.load(Ordering::Relaxed) => (self.updated.0.as_ref(), None),
            INSERT if self.moving.load(Ordering::Relaxed) => (None, self.updated.1.as_ref()),
            INSERT => (None, self.inserted.as_ref()),
            UPDATE => (self.updated.0.as_ref(), self.updated.1.as_ref()),
            _ => (self.deleted.as_ref(), None),
        }
    }
}

impl ChangedRows {
    pub fn new(ctx: &Evaluation, triggers: &Arc<Triggers>, is_read: &Arc<AtomicBool>) -> ChangedRows {
        let rows = Mutex::new(TransitionRows { store: Store::new(ctx.resources()), waiting: Vec::new() });
        ChangedRows { triggers: triggers.clone(), rows, is_read: is_read.clone() }
    }

    /// A trigger gets them: rows that change from now on are others.
    pub fn close(&self) {
        self.is_read.store(true, Ordering::Relaxed);
    }

    /// Adds a row with all columns of the statement's table.
    pub fn push(&self, ctx: &Evaluation, row: &[Datum]) -> Result<()> {
        let record = self.triggers.record(ctx, row)?;
        let mut rows = self.rows.lock();
        rows.waiting.push(record);
        if rows.waiting.len() >= BATCH_ROWS { rows.put_away() } else { Ok(()) }
    }
}

impl TransitionRows {
    fn put_away(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let values = std::mem::take(&mut self.waiting);
        let rows = values.len();
        let mut column = Column::with_capacity(Kind::Record, rows);
        values.into_iter().for_each(|value| column.push(value));
        self.store.push(Batch::new(vec![column], rows))
    }
}

impl TransitionTable for ChangedRows {
    fn table(&self) -> &Arc<Relation> {
        &self.triggers.table
    }

    fn rows(self: Arc<Self>) -> Result<RoutineRows> {
        self.rows.lock().put_away()?;
        Ok(Box::new(TransitionReader { all: self, place: 0, batch: None }))
    }
}

struct TransitionReader {
    all: Arc<ChangedRows>,
    place: Place,
    batch: Option<(Batch, usize)>,
}

impl Iterator for TransitionReader {
    type Item = Result<Datum>;

    fn next(&mut self) -> Option<Result<Datum>> {
        loop {
            if let Some((batch, at)) = &mut self.batch
                && *at < batch.rows
            {
                *at += 1;
                return Some(Ok(match batch.columns[0].get(*at - 1) {
                    // The store forgets names.
                    Datum::Record(record) => self.all.triggers.record_of(record.fields.clone()),
                    value => value,
                }));
            }
            match self.all.rows.lock().store.read(&mut self.place, BATCH_ROWS) {
                Ok(Some(batch)) => self.batch = Some((batch, 0)),
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}
