//! Calls of trigger functions.

use std::sync::Arc;

use melba_catalog::{Relation, Trigger};
use melba_types::{Csn, Datum, Oid, Result};

use super::call::RoutineRows;

/// A trigger that fires.
pub struct TriggerCall<'a> {
    pub trigger: &'a Arc<Trigger>,
    pub table: &'a Arc<Relation>,
    /// Which of `melba_catalog::trigger_events` has happened.
    pub event: i16,
    /// Of an UPDATE: the numbers of the columns that the statement sets. Only triggers before a row know them.
    pub updated: &'a [i16],
    /// The row before and after, as values of the table's row type.
    pub old: Option<&'a Datum>,
    pub new: Option<&'a Datum>,
    /// All rows of the statement before and after their changes, where the trigger has names for them.
    pub old_table: Option<Arc<dyn TransitionTable>>,
    pub new_table: Option<Arc<dyn TransitionTable>>,
    /// As `RoutineCall::view`.
    pub view: (Csn, u32),
    /// The role that made the change: the function runs with its privileges.
    pub role: Oid,
}

/// The function of a row trigger that neither reads nor changes the database, and tells the client nothing: it may run for many rows
/// before the first of them is written.
pub trait PureTrigger: Send {
    /// The row that it makes of a new one, or NULL.
    fn run(&mut self, new: Datum) -> Result<Datum>;
}

/// Rows that a statement has changed, as a trigger's function reads them.
pub trait TransitionTable: Send + Sync {
    /// The table whose columns they have.
    fn table(&self) -> &Arc<Relation>;
    /// The rows, each as one value.
    fn rows(self: Arc<Self>) -> Result<RoutineRows>;
}
