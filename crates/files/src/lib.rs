//! Text files that become tables: CSV, and JSON in lines or in an array. Their dialects, records with the lines they begin at, names of columns,
//! and types that keep each value as it is written.
//!
//! ```text
//! beginning -> TextFile::recognize -> survey       titles and types of the columns, from all values
//!                                  -> CsvRows      records
//!                                  -> json         objects
//! ```
//!
//! The crate opens no file: it reads from `BufRead`. Errors are texts, which begin with a line's number as far as there is one.

pub mod csv;
mod guess;
pub mod json;
pub mod names;
mod text_file;

pub use guess::Guess;
pub use text_file::{BEGINNING_BYTES, CsvRows, Dialects, Form, TextFile, TextKind};

/// Errors are texts.
pub type Result<T> = std::result::Result<T, String>;

/// Columns of a file at most, as of a table: the time that names and keys take grows with the square of their number.
const COLUMNS_MAX: usize = 1600;

/// # Errors
/// There are more.
pub fn check_columns(columns: usize) -> Result<()> {
    if columns <= COLUMNS_MAX {
        return Ok(());
    }
    Err(format!("it has more than {COLUMNS_MAX} columns"))
}
