//! The operator trait; the operators, one module per family.

mod aggregate;
mod bitmap_scan;
mod build;
mod cte;
mod dedup;
mod entries;
mod file_scan;
mod function_scan;
mod hash_join;
mod incremental_sort;
mod index_scan;
mod integers;
mod json_table;
mod limit;
mod lock_rows;
mod long_keys;
mod merge_append;
mod nested_loop;
mod partial;
mod passed;
mod pending;
mod project;
mod set_op;
mod simple;
mod sort;
mod synthesized_scan;
mod system_scan;
mod table_scan;
mod unique_scan;
mod window;

use melba_engine::ScanCounts;
use melba_types::{Batch, Datum, Result, TreeId};

pub(crate) use build::build;
pub(crate) use lock_rows::{Purpose, Relock, lock_and_recheck, replace, still_holds};
pub(crate) use pending::{Pending, give};

use crate::ExecContext;
use crate::team::BuiltTables;

/// Counts scans of a tree, and the rows that they returned, for pg_stat_user_tables and similar views.
#[inline]
fn note_scan(ctx: &ExecContext, tree: TreeId, scans: u64, rows: usize) {
    ctx.transaction().session().note_scans(tree, ScanCounts { scans, rows: rows as u64, ..ScanCounts::default() });
}

/// A running plan node.
pub(crate) trait Operator: Send {
    /// The next rows: at least one and at most `limit`, `None` when there are no more.
    fn next(&mut self, ctx: &ExecContext, limit: usize) -> Result<Option<Batch>>;
    /// The next single row, from operators that find one row rather than many; `None`: ask for batches.
    fn next_row(&mut self, _ctx: &ExecContext) -> Option<Result<Option<Vec<Datum>>>> {
        None
    }
    /// Skips at most `limit` rows that no operator will read, as far as that is possible without making them; returns how many.
    /// 0: no more can be skipped this way.
    fn skip(&mut self, _ctx: &ExecContext, _limit: usize) -> Result<usize> {
        Ok(0)
    }
    /// Builds the tables of the hash joins between this and the scan whose table a team divides, and adds them; false when the
    /// team cannot use them, or there can be none.
    fn share(&mut self, _ctx: &ExecContext, _tables: &mut BuiltTables) -> Result<bool> {
        Ok(false)
    }
    /// Starts over, with the parameters as they are now. Also called before the first `next` of a sub-plan.
    fn rescan(&mut self, ctx: &ExecContext) -> Result<()>;
}
