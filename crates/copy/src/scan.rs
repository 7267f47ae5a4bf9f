//! Rows of text and CSV files, as foreign tables have them: read as by COPY FROM, with the columns that are needed.

use std::sync::Arc;

use melba_encoding::{Encoding, utf8};
use melba_fmgr::{Session, io, lookup};
use melba_types::{Batch, Column, Datum, DbError, Kind, Result, Severity, SqlState, err, limits};

use super::csv::Records;
use super::from::{check_present, match_header, shown, split};
use super::long_line::LongLine;
use super::options::{CopyFormat, CopyOptions, Header};
use super::plain::PlainLines;
use super::text::{Line, Lines};
use super::values::{InputColumn, push_fields, push_value};
use super::{FieldKind, Fields};

/// Bytes read at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of input after which a batch ends, however few rows it has.
const BATCH_BYTES: usize = 4 << 20;

/// Gives bytes of a file; none at its end.
pub type ReadBytes<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<usize>;

/// A column that is returned.
struct Needed {
    /// Among the columns of the file.
    at: usize,
    kind: Kind,
    is_domain: bool,
}

/// Finds rows in the input.
enum LineFinder {
    /// Plain lines are taken many at a time, where the options allow it.
    Text(Lines, Option<PlainLines>),
    Csv(Records, Option<PlainLines>),
}

/// A file being read.
pub struct CopyScan {
    session: Arc<dyn Session>,
    /// The name of the foreign table, for messages.
    table: Arc<str>,
    options: CopyOptions,
    /// The columns of the file.
    sources: Vec<InputColumn>,
    needed: Vec<Needed>,
    /// No column is returned. Then all are read, so that rows are what they are to a query of all columns, as in PostgreSQL.
    discards: bool,
    force_null: Vec<bool>,
    force_not_null: Vec<bool>,
    finder: LineFinder,
    /// The input from `start` on is not read yet.
    buffer: Vec<u8>,
    start: usize,
    long_line: LongLine,
    chunk: Vec<u8>,
    at_end: bool,
    fields: Fields,
    line: u64,
    header_pending: bool,
    done: bool,
    skipped: u64,
    encoding: Encoding,
    /// The start of a character that the last chunk ended in.
    partial: Vec<u8>,
    /// Why the input that follows the buffer cannot be decoded.
    failure: Option<DbError>,
    batch_bytes: usize,
}

impl CopyScan {
    /// `needed`: the columns to return, by their places in `sources`, which are all columns of the file.
    pub fn new(
        session: Arc<dyn Session>,
        table: Arc<str>,
        options: CopyOptions,
        sources: Vec<InputColumn>,
        needed: &[usize],
    ) -> CopyScan {
        let discards = needed.is_empty();
        let described = |at: usize| {
            let ty = sources[at].ty;
            let kind = lookup::kind(&*session, ty).unwrap_or(Kind::Text);
            Needed { at, kind, is_domain: lookup::domain(&*session, ty).is_some() }
        };
        let needed: Vec<Needed> = match discards {
            true => (0..sources.len()).map(described).collect(),
            false => needed.iter().copied().map(described).collect(),
        };
        // Nulls of a domain may be refused, bad values skipped: the general path does that.
        let is_plain = !sources.is_empty() && !options.ignore_errors && !needed.iter().any(|n| n.is_domain);
        let plain = is_plain.then_some(sources.len());
        let force_null: Vec<bool> = sources.iter().map(|s| options.force_null.contains(&s.name)).collect();
        let force_not_null: Vec<bool> = sources.iter().map(|s| options.force_not_null.contains(&s.name)).collect();
        let keeps_text = force_null.iter().chain(&force_not_null).any(|forced| *forced);
        let of_text = |fields| PlainLines::of_text(options.delimiter, &options.null, fields);
        let of_csv = |fields| PlainLines::of_csv(options.delimiter, (options.quote, options.escape), &options.null, fields);
        CopyScan {
            finder: match options.format {
                CopyFormat::Csv => LineFinder::Csv(Records::new(), plain.filter(|_| !keeps_text).map(of_csv)),
                _ => LineFinder::Text(Lines::new(), plain.map(of_text)),
            },
            encoding: options.text_encoding(&*session),
            header_pending: options.header != Header::Absent,
            session,
            table,
            options,
            sources,
            needed,
            discards,
            force_null,
            force_not_null,
            buffer: Vec::new(),
            start: 0,
            long_line: LongLine::default(),
            chunk: vec![0; CHUNK_BYTES],
            at_end: false,
            fields: Fields::default(),
            line: 0,
            done: false,
            skipped: 0,
            partial: Vec::new(),
            failure: None,
            batch_bytes: 0,
        }
    }

    /// The rows that files before were skipped of, by ON_ERROR ignore: REJECT_LIMIT is of all.
    pub fn after(mut self, skipped: u64) -> CopyScan {
        self.skipped = skipped;
        self
    }

    /// Rows left out so far, as their data could not be read.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next rows, `limit` at most; `None` at the end.
    ///
    /// # Errors
    /// Those of COPY FROM, with the table's name and the line.
    pub fn next(&mut self, read: ReadBytes<'_>, limit: usize) -> Result<Option<Batch>> {
        let mut out: Vec<Column> = self.needed.iter().map(|needed| Column::with_capacity(needed.kind, limit)).collect();
        let mut rows = 0;
        self.batch_bytes = 0;
        while rows < limit && self.batch_bytes < BATCH_BYTES && !self.done {
            let input = std::mem::take(&mut self.buffer);
            let found = self.take_rows(&input[self.start..], limit - rows, rows, &mut out);
            self.buffer = input;
            match found? {
                Some((more, bytes)) => {
                    rows += more;
                    self.start += bytes;
                    self.batch_bytes += bytes;
                }
                None if self.failure.is_some() => {
                    let error = self.failure.take().map(|e| self.at_line(e, self.line + 1, None));
                    return Err(error.unwrap_or_else(|| DbError::internal("no failure")));
                }
                None if self.at_end => {
                    self.done = true;
                    if self.header_pending {
                        self.read_header(b"", 1)?;
                    }
                }
                None => self.fill(read)?,
            }
        }
        if self.discards {
            out.clear();
        }
        Ok((rows > 0).then(|| Batch::new(out, rows)))
    }

    pub fn memory_bytes(&self) -> usize {
        self.buffer.capacity() + self.chunk.len() + 2 * self.batch_bytes
    }

    /// Reads more of the file.
    fn fill(&mut self, read: ReadBytes<'_>) -> Result<()> {
        limits::check()?;
        if self.start > 0 {
            self.buffer.drain(..self.start);
            (self.start, self.long_line) = (0, LongLine::default());
        }
        self.long_line.check(&self.buffer).map_err(|e| self.at_line(e, self.line + 1, None))?;
        let bytes = read(&mut self.chunk)?;
        self.at_end = bytes == 0;
        if self.encoding.is_plain() {
            self.buffer.extend_from_slice(&self.chunk[..bytes]);
            return Ok(());
        }
        self.partial.extend_from_slice(&self.chunk[..bytes]);
        let whole = if self.at_end { self.partial.len() } else { self.encoding.whole(&self.partial) };
        let rest = self.partial.split_off(whole);
        let piece = std::mem::replace(&mut self.partial, rest);
        let mut text = String::new();
        // Rows before invalid bytes come first.
        self.failure = self.encoding.decode_to(&piece, &mut text).err();
        self.buffer.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// Rows from the start of the input, and the bytes they take; `None` when there is no whole row. `before`: rows that are there.
    fn take_rows(&mut self, input: &[u8], rows_max: usize, before: usize, out: &mut [Column]) -> Result<Option<(usize, usize)>> {
        let (rows, bytes) = self.plain_rows(input, rows_max, before, out);
        if rows > 0 { Ok(Some((rows, bytes))) } else { self.next_row(input, before, out) }
    }

    /// As many rows as the fast path takes.
    fn plain_rows(&mut self, input: &[u8], rows_max: usize, before: usize, out: &mut [Column]) -> (usize, usize) {
        if self.header_pending {
            return (0, 0);
        }
        let (plain, mut rows) = match &mut self.finder {
            LineFinder::Text(lines, Some(plain)) => {
                let rows = plain.find(input, rows_max);
                if rows == 0 || lines.take_plain().is_err() {
                    return (0, 0);
                }
                (plain, rows)
            }
            LineFinder::Csv(records, Some(plain)) if records.is_at_start() => {
                let rows = plain.find(input, rows_max);
                if rows == 0 || records.take_plain().is_err() {
                    return (0, 0);
                }
                (plain, rows)
            }
            _ => return (0, 0),
        };
        for (needed, column) in self.needed.iter().zip(&mut *out) {
            // A value that its type does not take ends the fast path before its row.
            let source = &self.sources[needed.at];
            rows = push_fields(&*self.session, source, rows, input, |row| plain.field(input, row, needed.at), column);
        }
        out.iter_mut().for_each(|column| column.truncate(before + rows));
        self.line += rows as u64;
        (rows, plain.bytes(rows))
    }

    fn next_row(&mut self, input: &[u8], before: usize, out: &mut [Column]) -> Result<Option<(usize, usize)>> {
        let at_end = self.at_end && self.failure.is_none();
        let found = match &mut self.finder {
            LineFinder::Text(lines, _) => lines.next(input, at_end),
            LineFinder::Csv(records, _) => records.next(input, &self.options, at_end),
        };
        let Some(Line { len, taken }) = found.map_err(|e| self.at_line(e, self.line + 1, None))? else { return Ok(None) };
        let line = &input[..len];
        let first_line = self.line + 1;
        self.line += 1 + memchr::memchr_iter(b'\n', line).count() as u64;
        if !self.header_pending && line == b"\\." && self.options.format == CopyFormat::Text {
            (self.done, self.start) = (true, self.start + taken);
            return Ok(Some((0, 0)));
        }
        let checked = limits::check_length(len).and_then(|()| utf8(line));
        checked.map_err(|e| self.at_line(e, first_line, None))?;
        if self.header_pending {
            self.read_header(line, first_line)?;
            return Ok(Some((0, taken)));
        }
        split(&self.options, line, &self.force_null, &self.force_not_null, &mut self.fields)
            .map_err(|e| self.at_line(e, first_line, Some(line)))?;
        if self.fields.escaped {
            // The line is UTF-8; only escapes may have spoilt it.
            for i in 0..self.fields.len() {
                utf8(self.fields.get(i).1).map_err(|e| self.at_line(e, first_line, Some(line)))?;
            }
        }
        // A table without columns has empty lines.
        let no_columns = self.sources.is_empty() && line.is_empty();
        if !no_columns && self.fields.len() > self.sources.len() {
            let error = err!(BAD_COPY_FILE_FORMAT, "extra data after last expected column");
            return Err(self.at_line(error, first_line, Some(line)));
        }
        for (needed, column) in self.needed.iter().zip(&mut *out) {
            // An unreadable field is reported before a missing one after it.
            check_present(&self.fields, &self.sources[..=needed.at]).map_err(|e| self.at_line(e, first_line, Some(line)))?;
            match self.push_field(needed, column) {
                Ok(()) => {}
                Err(e) if self.options.ignore_errors && is_of_data(&e) => {
                    let at = needed.at;
                    out.iter_mut().for_each(|column| column.truncate(before));
                    self.skip_row(first_line, at)?;
                    return Ok(Some((0, taken)));
                }
                Err(e) => return Err(self.at_field(e, needed.at)),
            }
        }
        check_present(&self.fields, &self.sources).map_err(|e| self.at_line(e, first_line, Some(line)))?;
        Ok(Some((1, taken)))
    }

    /// Takes the first line; an empty file has an empty one.
    fn read_header(&mut self, line: &[u8], number: u64) -> Result<()> {
        self.header_pending = false;
        if self.options.header == Header::Match {
            split(&self.options, line, &self.force_null, &self.force_not_null, &mut self.fields)
                .and_then(|()| match_header(&self.fields, &self.sources, &self.options.null))
                .map_err(|e| self.at_line(e, number, Some(line)))?;
        }
        Ok(())
    }

    /// Appends a field of the row to its column.
    fn push_field(&self, needed: &Needed, column: &mut Column) -> Result<()> {
        let source = &self.sources[needed.at];
        match self.fields.get(needed.at) {
            (FieldKind::Value, bytes) => push_value(&*self.session, source, bytes, column)?,
            _ if needed.is_domain => column.push(io::check_domain(&*self.session, source.ty, Datum::Null)?),
            _ => column.push_null(),
        }
        Ok(())
    }

    /// ON_ERROR ignore.
    fn skip_row(&mut self, line: u64, field: usize) -> Result<()> {
        self.skipped += 1;
        if self.options.verbose {
            let shown = match self.fields.get(field) {
                (FieldKind::Null, _) => "null input".to_owned(),
                (_, bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
            };
            let name = &self.sources[field].name;
            let message = format!("skipping row due to data type incompatibility at line {line} for column \"{name}\": {shown}");
            self.notice(message, Some(format!("COPY {}", self.table)));
        }
        match self.options.reject_limit {
            Some(limit) if self.skipped > limit => {
                let message = format!("skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility");
                Err(self.at_field(err!(INVALID_TEXT_REPRESENTATION, "{message}"), field))
            }
            _ => Ok(()),
        }
    }

    /// Tells the client how many rows were skipped, after the last file.
    pub fn report_skipped(&self) {
        if self.skipped > 0 && !self.options.silent {
            let rows = if self.skipped == 1 { "row was" } else { "rows were" };
            self.notice(format!("{} {rows} skipped due to data type incompatibility", self.skipped), None);
        }
    }

    fn notice(&self, message: String, context: Option<String>) {
        let notice = DbError::new(SqlState::SUCCESSFUL_COMPLETION, message).severity(Severity::Notice);
        self.session.notice(match context {
            Some(context) => notice.context(context),
            None => notice,
        });
    }

    fn with_context(&self, error: DbError, place: &str) -> DbError {
        error.context(format!("COPY {}, {place}", self.table))
    }

    fn at_line(&self, error: DbError, line: u64, text: Option<&[u8]>) -> DbError {
        match text {
            Some(text) => self.with_context(error, &format!("line {line}: \"{}\"", shown(text))),
            None => self.with_context(error, &format!("line {line}")),
        }
    }

    fn at_field(&self, error: DbError, i: usize) -> DbError {
        let name = &self.sources[i].name;
        match self.fields.get(i) {
            (FieldKind::Null, _) => self.with_context(error, &format!("line {}, column {name}: null input", self.line)),
            (_, bytes) => self.with_context(error, &format!("line {}, column {name}: \"{}\"", self.line, shown(bytes))),
        }
    }
}

/// Whether ON_ERROR ignore skips a row for an error of a value: not one of the system.
fn is_of_data(error: &DbError) -> bool {
    !matches!(&error.sqlstate().as_str()[..2], "0A" | "XX" | "53" | "57")
}
