//! When VACUUM and ANALYZE ran last on tables, how often, and for how long, since the server's start.

use std::collections::HashMap;

use melba_catalog::{Relation, Storage};
use melba_engine::RowCounts;
use melba_types::{Oid, TreeId};
use parking_lot::Mutex;

/// Tables that are remembered: more than anybody names in statements.
const TABLES_MAX: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaintenanceCommand {
    Vacuum,
    Analyze,
}

/// The runs of one command on one table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MaintenanceRuns {
    pub count: u64,
    /// When the last one ended, in microseconds since 2000-01-01; 0: never.
    pub last: i64,
    /// Microseconds of all.
    pub took: i64,
    /// The table's counts when the last one ended.
    pub rows: RowCounts,
}

/// A table whose runs are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaintainedTable {
    Tree(TreeId),
    /// Has no rows of its own.
    Partitioned {
        database: Oid,
        table: Oid,
    },
}

impl MaintainedTable {
    pub fn of(database: Oid, relation: &Relation) -> Option<MaintainedTable> {
        match relation.storage {
            Storage::Tree(tree) => Some(MaintainedTable::Tree(tree)),
            _ if relation.is_partitioned() => Some(MaintainedTable::Partitioned { database, table: relation.oid }),
            _ => None,
        }
    }
}

/// Those of a server.
#[derive(Debug, Default)]
pub struct Maintained(Mutex<HashMap<MaintainedTable, [MaintenanceRuns; 2]>>);

impl Maintained {
    pub fn of(&self, table: MaintainedTable, command: MaintenanceCommand) -> MaintenanceRuns {
        self.0.lock().get(&table).copied().unwrap_or_default()[command as usize]
    }

    /// A command has ended `now`.
    pub fn note(&self, table: MaintainedTable, command: MaintenanceCommand, started: i64, now: i64, rows: RowCounts) {
        let mut all = self.0.lock();
        if all.len() >= TABLES_MAX && !all.contains_key(&table) {
            all.clear();
        }
        let runs = &mut all.entry(table).or_default()[command as usize];
        *runs = MaintenanceRuns { count: runs.count + 1, last: now, took: runs.took + (now - started).max(0), rows };
    }

    pub fn forget(&self, tables: &[MaintainedTable]) {
        let mut all = self.0.lock();
        tables.iter().for_each(|table| _ = all.remove(table));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_table_and_command() {
        let (maintained, rows) = (Maintained::default(), RowCounts { inserted: 5, updated: 0, deleted: 0 });
        maintained.note(MaintainedTable::Tree(TreeId(7)), MaintenanceCommand::Vacuum, 100, 150, RowCounts::default());
        maintained.note(MaintainedTable::Tree(TreeId(7)), MaintenanceCommand::Vacuum, 200, 220, rows);
        assert_eq!(
            maintained.of(MaintainedTable::Tree(TreeId(7)), MaintenanceCommand::Vacuum),
            MaintenanceRuns { count: 2, last: 220, took: 70, rows }
        );
        assert_eq!(maintained.of(MaintainedTable::Tree(TreeId(7)), MaintenanceCommand::Analyze), MaintenanceRuns::default());
        assert_eq!(maintained.of(MaintainedTable::Tree(TreeId(8)), MaintenanceCommand::Vacuum), MaintenanceRuns::default());
        maintained.forget(&[MaintainedTable::Tree(TreeId(7))]);
        assert_eq!(maintained.of(MaintainedTable::Tree(TreeId(7)), MaintenanceCommand::Vacuum).count, 0);
    }
}
