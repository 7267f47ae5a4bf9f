//! Functions in FROM that read files: their columns are those of the files, found when a query is analyzed.

use melba_types::{Batch, Datum, Result};

use crate::RowColumn;

/// Whether pg_proc.prosrc names one.
pub fn reads_files(source: &str) -> bool {
    source == "read_parquet"
}

/// What a query wants of files.
pub struct FileRequest {
    /// pg_proc.prosrc.
    pub source: String,
    pub args: Vec<Datum>,
    pub columns: Vec<RowColumn>,
    /// The columns to be returned, by their places.
    pub needed: Vec<usize>,
    /// Rows outside of these may be left out.
    pub bounds: Vec<FileBound>,
}

/// Values of a column that a condition lets pass, both ends included.
#[derive(Clone, Debug)]
pub struct FileBound {
    pub column: usize,
    pub least: Option<Datum>,
    pub greatest: Option<Datum>,
}

/// Rows of files.
pub trait FileRows: Send {
    /// The next rows, `limit` at most; `None` at the end.
    fn next(&mut self, limit: usize) -> Result<Option<Batch>>;
    /// Bytes that reading holds meanwhile.
    fn memory_bytes(&self) -> usize;
}
