//! Which rows of a table differ between two views.

use melba_store::{Held, Result, TableLevels, TableRun};
use melba_threads::Guard;
use melba_types::{Csn, RowId, TreeId};

use crate::txn::Transaction;
use crate::view::ReadView;

/// Versions looked at between two checks for interrupts.
const PIECE_ROWS: usize = 1 << 14;

/// Rows that commits between two views have written, in the order of their ids.
pub struct DifferingRows {
    pub ids: Vec<RowId>,
    held: Held,
}

impl DifferingRows {
    /// The rows of a table that others have inserted, updated or deleted since an earlier view, and that a later view shows so. Rows that
    /// were both inserted and deleted in between may be among them. Both views must be pinned: so no version that tells them apart is
    /// forgotten.
    ///
    /// # Errors
    /// 53200 when the memory for the ids is not there; 57014.
    pub fn find(txn: &Transaction, tree: TreeId, since: ReadView, until: ReadView) -> Result<DifferingRows> {
        let tree = txn.tree(tree)?;
        let levels = Guard::into_inner(tree.require_table()?.levels.read());
        let mut found = DifferingRows { ids: Vec::new(), held: Held::new(&txn.session().query_memory()) };
        found.add_memory(&levels, since.csn, until.csn)?;
        for run in levels.runs.iter().filter(|run| run.reader.meta().csn_max > since.csn) {
            found.add_run(txn, run, since.csn, until.csn)?;
        }
        found.ids.sort_unstable();
        found.ids.dedup();
        Ok(found)
    }

    fn add_memory(&mut self, levels: &TableLevels, since: Csn, until: Csn) -> Result<()> {
        for table in levels.used_memory() {
            for (id, chain) in table.map.read().iter() {
                if chain.visible(until).is_some_and(|version| version.csn > since) {
                    self.ids.push(*id);
                }
            }
            self.hold()?;
        }
        Ok(())
    }

    fn add_run(&mut self, txn: &Transaction, run: &TableRun, since: Csn, until: Csn) -> Result<()> {
        for (number, group) in run.reader.row_groups().iter().enumerate() {
            if group.csn_max <= since || group.csn_min > until {
                continue;
            }
            let mut reader = run.reader.group(number, &[]);
            for from in (0..group.rows).step_by(PIECE_ROWS) {
                txn.session().interrupt().check()?;
                let range = from..(from + PIECE_ROWS).min(group.rows);
                let csns = reader.csns(range.clone())?;
                let ids = reader.row_ids(range)?;
                let between = |row: &usize| csns.get(*row) > since && csns.get(*row) <= until;
                self.ids.extend((0..ids.len()).filter(between).map(|row| ids[row]));
                self.hold()?;
            }
        }
        Ok(())
    }

    fn hold(&mut self) -> Result<()> {
        self.held.set(self.ids.capacity() * size_of::<RowId>())
    }
}
