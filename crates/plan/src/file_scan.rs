//! The node of a function in FROM that reads files, and of a foreign table that does.

use std::sync::Arc;

use melba_engine::ZoneOp;
use melba_expression::Expression;
use melba_fmgr::{FileTable, RowColumn};
use melba_types::Oid;

#[derive(Debug)]
pub struct FileScanNode {
    pub files: ScannedFiles,
    pub columns: Vec<RowColumn>,
    /// The columns that are returned.
    pub needed: Vec<usize>,
    /// A column that follows them.
    pub last: Option<LastColumn>,
    /// Comparisons of a column with a value: they are checked above, and let files leave out row groups.
    pub conditions: Vec<(usize, ZoneOp, Expression)>,
}

/// Who names the files.
#[derive(Debug)]
pub enum ScannedFiles {
    /// A function, by pg_proc.prosrc.
    Function { source: Arc<str>, args: Vec<Expression> },
    /// A foreign table.
    Table(Arc<FileTable>),
}

/// A column that is not in the files.
#[derive(Clone, Copy, Debug)]
pub enum LastColumn {
    /// WITH ORDINALITY: the row's number.
    Number,
    /// The foreign table's tableoid.
    TableOid(Oid),
}
