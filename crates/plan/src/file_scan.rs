//! The node of a function in FROM that reads files.

use std::sync::Arc;

use melba_engine::ZoneOp;
use melba_expression::Expression;
use melba_fmgr::RowColumn;

#[derive(Debug)]
pub struct FileScanNode {
    /// pg_proc.prosrc.
    pub source: Arc<str>,
    pub args: Vec<Expression>,
    pub columns: Vec<RowColumn>,
    /// The columns that are returned.
    pub needed: Vec<usize>,
    /// WITH ORDINALITY: a column with the row's number follows.
    pub is_numbered: bool,
    /// Comparisons of a column with a value: they are checked above, and let files leave out row groups.
    pub conditions: Vec<(usize, ZoneOp, Expression)>,
}
