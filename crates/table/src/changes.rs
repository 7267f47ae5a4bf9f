//! State for triggers that all changes of one statement share, whichever of its parts makes them: WITH queries that change the
//! same table, and the actions of foreign keys.
//!
//! 1. The triggers before a statement fire once for a table and event, those after it once, when the last part has ended.
//! 2. Rows that triggers read (REFERENCING) are those of all parts, up to the first trigger that reads them. Later changes count
//!    as a separate statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use melba_expression::Evaluation;
use melba_types::Oid;
use parking_lot::Mutex;

use super::transition::ChangedRows;
use super::trigger::Triggers;

/// See the module.
#[derive(Default)]
pub struct StatementChanges {
    all: Mutex<Vec<TableChanges>>,
}

/// Rows before and after, where triggers read them.
pub type BeforeAndAfter = (Option<Arc<ChangedRows>>, Option<Arc<ChangedRows>>);

/// The changes of one kind to a table.
struct TableChanges {
    table: Oid,
    event: i16,
    rows: BeforeAndAfter,
    /// A trigger has read the rows.
    is_read: Arc<AtomicBool>,
    begun: bool,
    /// How many parts have ended.
    turns: Arc<AtomicU64>,
}

/// The end of one part: its triggers fire if no other part ends after it.
#[derive(Clone)]
pub struct Turn {
    turns: Arc<AtomicU64>,
    number: u64,
}

impl Turn {
    pub fn is_last(&self) -> bool {
        self.turns.load(Ordering::Relaxed) == self.number
    }

    pub fn is(&self, other: &Turn) -> bool {
        Arc::ptr_eq(&self.turns, &other.turns) && self.number == other.number
    }
}

impl StatementChanges {
    fn of<T>(&self, table: Oid, event: i16, f: impl FnOnce(&mut TableChanges) -> T) -> T {
        let mut all = self.all.lock();
        let at = all.iter().position(|c| (c.table, c.event) == (table, event)).unwrap_or_else(|| {
            all.push(TableChanges::new(table, event));
            all.len() - 1
        });
        if all[at].is_read.load(Ordering::Relaxed) {
            all[at] = TableChanges::new(table, event);
        }
        f(&mut all[at])
    }

    /// A part begins: whether the triggers before the statement are to fire.
    pub(super) fn begin(&self, table: Oid, event: i16) -> bool {
        self.of(table, event, |changes| !std::mem::replace(&mut changes.begun, true))
    }

    /// The store for changed rows; `wanted`: before, after.
    pub(super) fn rows(&self, ctx: &Evaluation, triggers: &Arc<Triggers>, event: i16, wanted: (bool, bool)) -> BeforeAndAfter {
        self.of(triggers.table.oid, event, |changes| {
            let TableChanges { rows, is_read, .. } = changes;
            for (rows, wanted) in [(&mut rows.0, wanted.0), (&mut rows.1, wanted.1)] {
                if wanted && rows.is_none() {
                    *rows = Some(Arc::new(ChangedRows::new(ctx, triggers, is_read)));
                }
            }
            rows.clone()
        })
    }

    /// A part ends.
    pub(super) fn end(&self, table: Oid, event: i16) -> Turn {
        self.of(table, event, |changes| {
            let number = changes.turns.fetch_add(1, Ordering::Relaxed) + 1;
            Turn { turns: changes.turns.clone(), number }
        })
    }
}

impl TableChanges {
    fn new(table: Oid, event: i16) -> TableChanges {
        let (is_read, turns) = Default::default();
        TableChanges { table, event, rows: (None, None), is_read, begun: false, turns }
    }
}
