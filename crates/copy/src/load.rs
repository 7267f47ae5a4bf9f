//! COPY FROM a whole Parquet file.

use std::sync::Arc;

use melba_parquet::{ColumnMatch, FileBytes, FileReader, Scan, Wanted, check_all_wanted, match_columns};
use melba_types::{DbError, Result};

use super::from::{BATCH_ROWS, CopyFrom};

impl CopyFrom {
    /// Reads a file's rows.
    ///
    /// # Errors
    /// 22P04 for what is no Parquet file or has other columns, 42804 for a column of another type, and those of values and rows.
    pub fn load(&mut self, source: Arc<dyn FileBytes>) -> Result<()> {
        self.read_file(source).map_err(|e| self.earlier(e))
    }

    /// The same; rows before an error may have others, which come first.
    pub(crate) fn read_file(&mut self, source: Arc<dyn FileBytes>) -> Result<()> {
        self.begin()?;
        self.done = true;
        let mut scan = self.open(source).map_err(|e| self.in_file(e))?;
        let mut held = self.ctx.resources().held();
        while let Some((rows, columns)) = scan.next(BATCH_ROWS).map_err(|e| self.in_file(e))? {
            held.set(scan.memory_bytes() + columns.iter().map(|column| column.memory_bytes()).sum::<usize>())?;
            for (source, column) in self.sources.iter().zip(columns) {
                self.batch[source.at] = column;
            }
            if !self.defaults.is_empty() {
                (0..rows).try_for_each(|_| self.push_defaults())?;
            }
            self.lines.extend(self.line + 1..=self.line + rows as u64);
            self.line += rows as u64;
            self.flush()?;
        }
        Ok(())
    }

    fn open(&self, source: Arc<dyn FileBytes>) -> Result<Scan> {
        let file = FileReader::open(source)?;
        let wanted = self.sources.iter().map(|s| Wanted { at: 0, name: Arc::clone(&s.name), ty: s.ty, typmod: s.typmod });
        let mut wanted: Vec<Wanted> = wanted.collect();
        let matched = match_columns(&file, &mut wanted, ColumnMatch::NameOrPosition);
        matched
            .and_then(|_| if self.all_columns { check_all_wanted(&file, &wanted) } else { Ok(()) })
            .map_err(|e| e.hint("List the columns to be read in the COPY statement."))?;
        file.scan(Arc::clone(&self.ctx.session), &wanted)
    }

    /// An error with the row and the column that the reader knew.
    fn in_file(&self, error: DbError) -> DbError {
        match error.fields().context.clone() {
            Some(place) => self.with_context(error, &place),
            None => error.context(format!("COPY {}", self.writer.target.relation.name)),
        }
    }
}
