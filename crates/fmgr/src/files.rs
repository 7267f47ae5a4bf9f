//! Functions in FROM that read files: their columns are those of the files, found when a query is analyzed.

use std::sync::Arc;

use melba_catalog::{Function, classes};
use melba_types::{Batch, Datum, Result};

use crate::RowColumn;

/// Whether a function is one. The source of a user's function is the user's, whatever it says.
pub fn reads_files(function: &Function) -> bool {
    let is_built_in = function.language == classes::INTERNAL_LANGUAGE && function.oid.0 < classes::FIRST_USER_OID;
    is_built_in && matches!(&*function.source, "read_parquet" | "read_csv" | "read_json")
}

/// Who names files.
pub enum NamedFiles {
    /// A function in FROM, by pg_proc.prosrc, and its arguments. The role that asks must be allowed to read files.
    Function { source: String, args: Vec<Datum> },
    /// A foreign table: who set its options was allowed to.
    Table(Arc<FileTable>),
}

/// A foreign table of files.
#[derive(Clone, Debug)]
pub struct FileTable {
    pub name: Arc<str>,
    /// pg_foreign_table.ftoptions.
    pub options: Vec<Arc<str>>,
    /// pg_attribute.attfdwoptions of each column.
    pub column_options: Vec<Vec<Arc<str>>>,
}

/// What a query wants of files.
pub struct FileRequest {
    pub files: NamedFiles,
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
