//! When VACUUM and ANALYZE ran last on tables, how often, and for how long, since the server's start.

use std::collections::HashMap;

use melba_engine::RowCounts;
use melba_types::TreeId;
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

/// Those of a server.
#[derive(Debug, Default)]
pub struct Maintained(Mutex<HashMap<TreeId, [MaintenanceRuns; 2]>>);

impl Maintained {
    pub fn of(&self, tree: TreeId, command: MaintenanceCommand) -> MaintenanceRuns {
        self.0.lock().get(&tree).copied().unwrap_or_default()[command as usize]
    }

    /// A command has ended `now`.
    pub fn note(&self, tree: TreeId, command: MaintenanceCommand, started: i64, now: i64, rows: RowCounts) {
        let mut all = self.0.lock();
        if all.len() >= TABLES_MAX && !all.contains_key(&tree) {
            all.clear();
        }
        let runs = &mut all.entry(tree).or_default()[command as usize];
        *runs = MaintenanceRuns { count: runs.count + 1, last: now, took: runs.took + (now - started).max(0), rows };
    }

    pub fn forget(&self, trees: &[TreeId]) {
        let mut all = self.0.lock();
        trees.iter().for_each(|tree| _ = all.remove(tree));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_by_table_and_command() {
        let (maintained, rows) = (Maintained::default(), RowCounts { inserted: 5, updated: 0, deleted: 0 });
        maintained.note(TreeId(7), MaintenanceCommand::Vacuum, 100, 150, RowCounts::default());
        maintained.note(TreeId(7), MaintenanceCommand::Vacuum, 200, 220, rows);
        assert_eq!(maintained.of(TreeId(7), MaintenanceCommand::Vacuum), MaintenanceRuns { count: 2, last: 220, took: 70, rows });
        assert_eq!(maintained.of(TreeId(7), MaintenanceCommand::Analyze), MaintenanceRuns::default());
        assert_eq!(maintained.of(TreeId(8), MaintenanceCommand::Vacuum), MaintenanceRuns::default());
        maintained.forget(&[TreeId(7)]);
        assert_eq!(maintained.of(TreeId(7), MaintenanceCommand::Vacuum).count, 0);
    }
}
