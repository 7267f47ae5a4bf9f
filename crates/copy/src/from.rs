//! COPY FROM: input in pieces, rows in batches.

use std::sync::Arc;

use melba_catalog::trigger_events::INSERT;
use melba_encoding::{Encoding, utf8};
use melba_engine::Transaction;
use melba_fmgr::io;
use melba_types::{Batch, Column, Datum, DbError, Oid, Result, SqlState, bail, err, limits};

use super::binary::{self, Step};
use super::csv::{self, Records};
use super::long_line::LongLine;
use super::options::{CopyFormat, CopyOptions, Header};
use super::plain::PlainLines;
use super::spool::Spool;
use super::text::{self, Line, Lines};
use super::values::{InputColumn, push_fields, push_value};
use super::{FieldKind, Fields};
use melba_expression::Expression;
use melba_expression::{Evaluation, NoSubPlans};
use melba_table::TableWriter;
use melba_transaction::Tx;

/// Rows gathered before they are written.
pub(crate) const BATCH_ROWS: usize = 4096;
/// Input bytes after which a batch is written however few rows it has.
const BATCH_BYTES: usize = 4 << 20;
/// Longest piece of input that an error's context shows.
const SHOWN_BYTES_MAX: usize = 100;

/// Finds rows in the input.
enum Framing {
    /// Plain lines are taken many at a time, where the options allow it, as in CSV.
    Text(Lines, Option<PlainLines>),
    Csv(Records, Option<PlainLines>),
    Binary {
        header_read: bool,
    },
    /// Read when the input is whole.
    Parquet(Spool),
}

/// A COPY FROM in progress.
pub struct CopyFrom {
    pub(crate) ctx: Evaluation<NoSubPlans>,
    tx: Arc<Tx>,
    pub(crate) writer: TableWriter,
    options: CopyOptions,
    pub(crate) sources: Vec<InputColumn>,
    /// The statement lists no columns: a file must not have others.
    pub all_columns: bool,
    /// Columns that the input lacks, and for DEFAULT markers those it has: position and default.
    pub(crate) defaults: Vec<(usize, Option<Expression>)>,
    filter: Option<Expression>,
    framing: Framing,
    buffer: Vec<u8>,
    long_line: LongLine,
    fields: Fields,
    force_null: Vec<bool>,
    force_not_null: Vec<bool>,
    pub(crate) batch: Vec<Column>,
    batch_bytes: usize,
    /// What each row takes beside its input, at most: char(n) is filled up.
    padding_bytes: usize,
    /// Line of each row in the batch, and of those written.
    pub(crate) lines: Vec<u64>,
    row_lines: RowLines,
    pub(crate) line: u64,
    header_pending: bool,
    pub(crate) done: bool,
    begun: bool,
    rows: u64,
    skipped: u64,
    /// Of input as text, and the start of a character that the last piece ended in.
    encoding: Encoding,
    partial: Vec<u8>,
}

impl CopyFrom {
    /// `columns`: positions of the input's columns in the table. `defaults`: for every column, its default if it has one.
    pub fn new(
        ctx: Evaluation<NoSubPlans>,
        tx: Arc<Tx>,
        writer: TableWriter,
        columns: Vec<usize>,
        mut defaults: Vec<Option<Expression>>,
        filter: Option<Expression>,
        options: CopyOptions,
    ) -> CopyFrom {
        let relation = writer.target.relation.clone();
        let encoding = options.text_encoding(&*ctx.session);
        let source = |at: &usize| {
            let c = &relation.columns[*at];
            InputColumn { at: *at, name: c.name.clone(), ty: c.ty, typmod: c.typmod }
        };
        let sources: Vec<InputColumn> = columns.iter().map(source).collect();
        let padding_bytes = sources.iter().filter_map(InputColumn::padded_to).sum();
        let keeps = |at: &usize| !columns.contains(at) || options.default.is_some();
        let defaults = (0..relation.columns.len()).filter(keeps).map(|at| (at, defaults[at].take())).collect();
        // Nulls of a domain may be refused, bad values skipped, defaults used: the general path does that.
        let any_domain = sources.iter().any(|s| source_is_domain(&ctx, s.ty));
        let plain = !any_domain && !sources.is_empty() && options.default.is_none() && !options.ignore_errors;
        let plain = plain.then_some(sources.len());
        let keeps_text = sources.iter().any(|s| options.force_not_null.contains(&s.name) || options.force_null.contains(&s.name));
        let of_text = |fields| PlainLines::of_text(options.delimiter, &options.null, fields);
        let of_csv = |fields| PlainLines::of_csv(options.delimiter, (options.quote, options.escape), &options.null, fields);
        CopyFrom {
            ctx,
            tx,
            force_null: sources.iter().map(|s| options.force_null.contains(&s.name)).collect(),
            force_not_null: sources.iter().map(|s| options.force_not_null.contains(&s.name)).collect(),
            framing: match options.format {
                CopyFormat::Text => Framing::Text(Lines::new(), plain.map(of_text)),
                // A null marker may be a value by FORCE_NOT_NULL, also in quotes by FORCE_NULL.
                CopyFormat::Csv => Framing::Csv(Records::new(), plain.filter(|_| !keeps_text).map(of_csv)),
                CopyFormat::Binary => Framing::Binary { header_read: false },
                CopyFormat::Parquet => Framing::Parquet(Spool::default()),
            },
            all_columns: false,
            header_pending: options.header != Header::Absent,
            sources,
            defaults,
            filter,
            options,
            buffer: Vec::new(),
            long_line: LongLine::default(),
            fields: Fields::default(),
            batch: empty_batch(&writer),
            writer,
            batch_bytes: 0,
            padding_bytes,
            lines: Vec::new(),
            row_lines: RowLines::default(),
            line: 0,
            done: false,
            begun: false,
            rows: 0,
            skipped: 0,
            encoding,
            partial: Vec::new(),
        }
    }

    /// Fires the triggers before the statement, once: the client knows by then that its rows are awaited.
    pub(crate) fn begin(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.begun, true) {
            true => Ok(()),
            false => self.writer.begin(&self.ctx, INSERT),
        }
    }

    /// Takes a piece of input; pieces end anywhere.
    pub fn feed(&mut self, data: &[u8]) -> Result<()> {
        self.begin()?;
        if self.done {
            return self.check_ended(data);
        }
        if let Framing::Parquet(spool) = &mut self.framing {
            return spool.feed(self.ctx.resources(), data);
        }
        let result = if self.encoding.is_plain() { self.take(data) } else { self.take_encoded(data) };
        result.map_err(|e| self.earlier(e))
    }

    /// Takes a piece in another encoding.
    fn take_encoded(&mut self, data: &[u8]) -> Result<()> {
        self.partial.extend_from_slice(data);
        let whole = self.encoding.whole(&self.partial);
        let rest = self.partial.split_off(whole);
        let piece = std::mem::replace(&mut self.partial, rest);
        let mut text = String::new();
        // Rows before invalid bytes are processed first.
        let decoded = self.encoding.decode_to(&piece, &mut text);
        self.take(text.as_bytes())?;
        decoded.map_err(|e| self.at_line(e, self.line + 1, None))
    }

    /// Writes the rows parsed so far.
    pub fn catch_up(&mut self) -> Result<()> {
        self.flush().map_err(|e| self.earlier(e))
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows.saturating_sub(self.writer.skipped)
    }

    /// Rows left out so far, as their data could not be read.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The line that comes next.
    pub fn place(&self) -> String {
        format!("COPY {}, {} {}", self.writer.target.relation.name, self.unit(), self.line + 1)
    }

    /// A row's name in the input.
    fn unit(&self) -> &'static str {
        if matches!(self.framing, Framing::Parquet(_)) { "row" } else { "line" }
    }

    /// The error of an earlier row, or the given one.
    pub(crate) fn earlier(&mut self, error: DbError) -> DbError {
        match self.writer.earlier(&self.ctx, error) {
            (Some(row), e) => self.at_row(row, e),
            (None, e) => e,
        }
    }

    fn take(&mut self, data: &[u8]) -> Result<()> {
        if self.buffer.is_empty() {
            // Most clients send whole lines.
            let taken = self.consume(data, false)?;
            self.buffer.extend_from_slice(&data[taken..]);
            return Ok(());
        }
        self.check_growth()?;
        // The rest of a line, so that the bytes after it need not be copied.
        let rest = memchr::memchr(b'\n', data).map_or(data.len(), |at| at + 1);
        self.buffer.extend_from_slice(&data[..rest]);
        self.consume_buffer(false)?;
        match rest < data.len() {
            true if self.buffer.is_empty() => self.take(&data[rest..]),
            true => {
                self.buffer.extend_from_slice(&data[rest..]);
                self.consume_buffer(false)
            }
            false => Ok(()),
        }
    }

    /// The buffer has the start of a row, and more comes.
    fn check_growth(&mut self) -> Result<()> {
        match self.framing {
            Framing::Text(..) | Framing::Csv(..) => {
                self.long_line.check(&self.buffer).map_err(|e| self.at_line(e, self.line + 1, None))
            }
            Framing::Binary { .. } | Framing::Parquet(_) => limits::check_memory(self.buffer.len()),
        }
    }

    /// The input has ended: writes the rest and runs the checks at the end of the statement.
    pub fn finish(&mut self) -> Result<u64> {
        self.begin()?;
        self.end_rows().map_err(|e| self.earlier(e))?;
        self.writer.end(&self.ctx, INSERT)?;
        let txn: &Arc<Transaction> = &self.tx.engine;
        let changes = self.writer.changes();
        self.writer.events.finish(&self.ctx, txn, &self.tx.deferred, &changes)?;
        if self.skipped > 0 && !self.options.silent {
            let rows = if self.skipped == 1 { "row was" } else { "rows were" };
            let message = format!("{} {rows} skipped due to data type incompatibility", self.skipped);
            let notice = DbError::new(SqlState::SUCCESSFUL_COMPLETION, message);
            self.ctx.session.notice(notice.severity(melba_types::Severity::Notice));
        }
        Ok(self.rows - self.writer.skipped)
    }

    fn end_rows(&mut self) -> Result<()> {
        if !self.done {
            if !self.partial.is_empty() {
                self.encoding.decode(&self.partial).map_err(|e| self.at_line(e, self.line + 1, None))?;
            }
            match &mut self.framing {
                Framing::Parquet(spool) => {
                    let source = std::mem::take(spool).finish();
                    self.read_file(source)?;
                }
                _ => self.consume_buffer(true)?,
            }
            let has_lines = matches!(self.framing, Framing::Text(..) | Framing::Csv(..));
            if has_lines && self.header_pending && !self.done {
                self.read_header(b"", 1)?;
            }
        }
        self.flush()?;
        self.writer.finish(&self.ctx).map_err(|(row, e)| self.at_row(row, e))
    }

    fn consume_buffer(&mut self, at_end: bool) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let result = self.consume(&buffer, at_end);
        self.buffer = buffer;
        let taken = result?;
        if taken > 0 {
            self.buffer.drain(..taken);
            self.long_line = LongLine::default();
        }
        Ok(())
    }

    /// Reads the rows at the start of the input; bytes taken.
    fn consume(&mut self, input: &[u8], at_end: bool) -> Result<usize> {
        let mut at = 0;
        while !self.done {
            let plain = self.plain_rows(&input[at..])?;
            at += plain;
            match self.next_row(&input[at..], at_end)? {
                Some(taken) => at += taken,
                None if plain > 0 => {}
                None => break,
            }
        }
        Ok(at)
    }

    /// Reads as many rows as the fast path takes, up to a batch; bytes taken.
    fn plain_rows(&mut self, input: &[u8]) -> Result<usize> {
        if self.header_pending {
            return Ok(0);
        }
        let before = self.lines.len();
        let rows_max = (BATCH_ROWS - before).min(BATCH_BYTES / self.padding_bytes.max(1)).max(1);
        let (plain, mut rows) = match &mut self.framing {
            Framing::Text(lines, Some(plain)) => {
                let rows = plain.find(input, rows_max);
                if rows == 0 || lines.take_plain().is_err() {
                    return Ok(0);
                }
                (plain, rows)
            }
            Framing::Csv(records, Some(plain)) if records.is_at_start() => {
                let rows = plain.find(input, rows_max);
                if rows == 0 || records.take_plain().is_err() {
                    return Ok(0);
                }
                (plain, rows)
            }
            _ => return Ok(0),
        };
        if rows == 0 {
            return Ok(0);
        }
        for (i, source) in self.sources.iter().enumerate() {
            // A value that its type does not take ends the fast path before its row.
            let column = &mut self.batch[source.at];
            rows = push_fields(&*self.ctx.session, source, rows, input, |row| plain.field(input, row, i), column);
        }
        self.sources.iter().for_each(|source| self.batch[source.at].truncate(before + rows));
        let bytes = plain.bytes(rows);
        if !self.defaults.is_empty() {
            (0..rows).try_for_each(|_| self.push_defaults())?;
        }
        self.lines.extend(self.line + 1..=self.line + rows as u64);
        self.line += rows as u64;
        self.batch_bytes += bytes + rows * self.padding_bytes;
        self.flush_full()?;
        Ok(bytes)
    }

    /// Reads one row from the start of the input; bytes taken, `None` when there is no whole row.
    fn next_row(&mut self, input: &[u8], at_end: bool) -> Result<Option<usize>> {
        let found = match &mut self.framing {
            Framing::Text(lines, _) => lines.next(input, at_end),
            Framing::Csv(records, _) => records.next(input, &self.options, at_end),
            Framing::Binary { .. } | Framing::Parquet(_) => return self.next_tuple(input, at_end),
        };
        let Some(Line { len, taken }) = found.map_err(|e| self.at_line(e, self.line + 1, None))? else { return Ok(None) };
        let line = &input[..len];
        let first_line = self.line + 1;
        self.line += 1 + memchr::memchr_iter(b'\n', line).count() as u64;
        limits::check_length(len).and_then(|()| utf8(line)).map_err(|e| self.at_line(e, first_line, None))?;
        if self.header_pending {
            self.read_header(line, first_line)?;
            return Ok(Some(taken));
        }
        if line == b"\\." && self.options.format == CopyFormat::Text {
            self.done = true;
            return Ok(Some(taken));
        }
        self.split(line).map_err(|e| self.at_line(e, first_line, Some(line)))?;
        if self.fields.escaped {
            // The line is UTF-8; only escapes may have spoilt it.
            for i in 0..self.fields.len() {
                utf8(self.fields.get(i).1).map_err(|e| self.at_line(e, first_line, Some(line)))?;
            }
        }
        // A table without columns is copied as empty lines.
        let no_columns = self.sources.is_empty() && line.is_empty();
        if !no_columns && self.fields.len() > self.sources.len() {
            let error = err!(BAD_COPY_FILE_FORMAT, "extra data after last expected column");
            return Err(self.at_line(error, first_line, Some(line)));
        }
        if self.options.ignore_errors {
            self.push_row_softly(first_line, line)?;
        } else {
            for i in 0..self.sources.len() {
                // As in PostgreSQL: an unreadable field is reported before a missing one after it.
                check_present(&self.fields, &self.sources[..=i]).map_err(|e| self.at_line(e, first_line, Some(line)))?;
                self.push_field(i).map_err(|e| self.at_field(e, i))?;
            }
            self.push_defaults()?;
            self.end_row(first_line);
        }
        self.batch_bytes += taken + self.padding_bytes;
        self.flush_full()?;
        Ok(Some(taken))
    }

    /// Takes the first line; an empty input has an empty one.
    fn read_header(&mut self, line: &[u8], number: u64) -> Result<()> {
        self.header_pending = false;
        if self.options.header == Header::Match {
            self.split(line)
                .and_then(|()| match_header(&self.fields, &self.sources, &self.options.null))
                .map_err(|e| self.at_line(e, number, Some(line)))?;
        }
        Ok(())
    }

    fn split(&mut self, line: &[u8]) -> Result<()> {
        split(&self.options, line, &self.force_null, &self.force_not_null, &mut self.fields)
    }

    /// Appends field `i` to its column.
    fn push_field(&mut self, i: usize) -> Result<()> {
        let source = &self.sources[i];
        let (kind, bytes) = self.fields.get(i);
        let column = &mut self.batch[source.at];
        match kind {
            FieldKind::Null if source_is_domain(&self.ctx, source.ty) => {
                let value = io::check_domain(&*self.ctx.session, source.ty, Datum::Null)?;
                column.push(value);
            }
            FieldKind::Null => column.push_null(),
            FieldKind::Default => {
                let value = self.default_of(source.at)?;
                self.batch[self.sources[i].at].push(value);
            }
            FieldKind::Value => {
                push_value(&*self.ctx.session, source, bytes, column)?;
            }
        }
        Ok(())
    }

    /// ON_ERROR ignore: the row is inserted whole or not at all.
    fn push_row_softly(&mut self, line: u64, row: &[u8]) -> Result<()> {
        let mut values = Vec::with_capacity(self.sources.len());
        for (i, source) in self.sources.iter().enumerate() {
            // A row with an unreadable field before is skipped.
            check_present(&self.fields, &self.sources[..=i]).map_err(|e| self.at_line(e, line, Some(row)))?;
            let (kind, bytes) = self.fields.get(i);
            let value = match kind {
                FieldKind::Null if source_is_domain(&self.ctx, source.ty) => {
                    match io::check_domain(&*self.ctx.session, source.ty, Datum::Null) {
                        Err(e) if matches!(e.sqlstate(), SqlState::NOT_NULL_VIOLATION | SqlState::CHECK_VIOLATION) => {
                            return self.skip_row(line, i);
                        }
                        value => value,
                    }
                }
                FieldKind::Null => Ok(Datum::Null),
                FieldKind::Default => self.default_of(source.at),
                FieldKind::Value => {
                    let text = utf8(bytes)?;
                    match io::soft_text_in(&*self.ctx.session, source.ty, source.typmod, text)? {
                        Ok(value) => Ok(value),
                        Err(_) => return self.skip_row(line, i),
                    }
                }
            }?;
            values.push((source.at, value));
        }
        for (at, value) in values {
            self.batch[at].push(value);
        }
        self.push_defaults()?;
        self.end_row(line);
        Ok(())
    }

    fn skip_row(&mut self, line: u64, field: usize) -> Result<()> {
        self.skipped += 1;
        let name = &self.sources[field].name;
        if self.options.verbose {
            let shown = match self.fields.get(field) {
                (FieldKind::Null, _) => "null input".to_owned(),
                (_, bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
            };
            let message = format!("skipping row due to data type incompatibility at line {line} for column \"{name}\": {shown}");
            let notice = DbError::new(SqlState::SUCCESSFUL_COMPLETION, message).severity(melba_types::Severity::Notice);
            self.ctx.session.notice(notice.context(format!("COPY {}", self.writer.target.relation.name)));
        }
        if let Some(limit) = self.options.reject_limit
            && self.skipped > limit
        {
            let error = err!(
                INVALID_TEXT_REPRESENTATION,
                "skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility"
            );
            return Err(self.at_field(error, field));
        }
        Ok(())
    }

    fn default_of(&self, at: usize) -> Result<Datum> {
        match self.defaults.iter().find(|(column, _)| *column == at) {
            Some((_, Some(default))) => default.eval_row(&self.ctx, &[]),
            _ => Ok(Datum::Null),
        }
    }

    /// Fills the columns that the input lacks.
    pub(crate) fn push_defaults(&mut self) -> Result<()> {
        for (at, default) in &self.defaults {
            if self.sources.iter().any(|s| s.at == *at) {
                continue;
            }
            match default {
                Some(default) => self.batch[*at].push(default.eval_row(&self.ctx, &[])?),
                None => self.batch[*at].push_null(),
            }
        }
        Ok(())
    }

    fn end_row(&mut self, line: u64) {
        self.lines.push(line);
    }

    fn next_tuple(&mut self, input: &[u8], at_end: bool) -> Result<Option<usize>> {
        if let Framing::Binary { header_read: header_read @ false } = &mut self.framing {
            let length = binary::header(input, at_end)?;
            *header_read = length.is_some();
            return Ok(length);
        }
        match binary::step(input, self.sources.len(), at_end).map_err(|e| self.at_line(e, self.line + 1, None))? {
            Step::Wait => Ok(None),
            Step::End => {
                self.done = true;
                self.check_ended(&input[2..])?;
                Ok(Some(2))
            }
            Step::Tuple(length) => {
                self.line += 1;
                let mut at = binary::FIELDS;
                for source in &self.sources {
                    let value = self
                        .binary_value(&input[..length], &mut at, source)
                        .map_err(|e| self.with_context(e, &format!("line {}, column {}", self.line, source.name)))?;
                    self.batch[source.at].push(value);
                }
                self.push_defaults()?;
                self.end_row(self.line);
                self.batch_bytes += length + self.padding_bytes;
                self.flush_full()?;
                Ok(Some(length))
            }
        }
    }

    /// The value of the field at `at` of a tuple.
    fn binary_value(&self, tuple: &[u8], at: &mut usize, source: &InputColumn) -> Result<Datum> {
        match binary::field(tuple, at)? {
            None if source_is_domain(&self.ctx, source.ty) => io::check_domain(&*self.ctx.session, source.ty, Datum::Null),
            None => Ok(Datum::Null),
            Some(bytes) => io::binary_in(&*self.ctx.session, source.ty, source.typmod, bytes),
        }
    }

    /// The input's end has been read: nothing may follow the trailer of the binary format.
    fn check_ended(&self, rest: &[u8]) -> Result<()> {
        if rest.is_empty() || self.options.format != CopyFormat::Binary {
            return Ok(());
        }
        Err(self.at_line(err!(BAD_COPY_FILE_FORMAT, "received copy data after EOF marker"), self.line + 1, None))
    }

    /// Writes the gathered rows when they are a batch.
    fn flush_full(&mut self) -> Result<()> {
        if self.lines.len() >= BATCH_ROWS || self.batch_bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the gathered rows.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.ctx.check_interrupt()?;
        let columns = std::mem::replace(&mut self.batch, empty_batch(&self.writer));
        let mut batch = Batch::new(columns, self.lines.len());
        let mut lines = std::mem::take(&mut self.lines);
        self.batch_bytes = 0;
        if let Some(filter) = &self.filter {
            let mut kept = Vec::new();
            for i in 0..batch.rows {
                if filter.holds(&self.ctx, &batch.row(i))? {
                    kept.push(i as u32);
                }
            }
            lines = kept.iter().map(|i| lines[*i as usize]).collect();
            batch = batch.take(&kept);
        }
        self.row_lines.note(self.rows, &lines);
        self.rows += batch.rows as u64;
        if batch.rows == 0 {
            return Ok(());
        }
        let result = self.writer.insert_batch(&self.ctx, batch);
        result.map_err(|(row, e)| self.at_row(row, e))
    }

    /// The error of a row, by its number among those written.
    fn at_row(&self, row: u64, error: DbError) -> DbError {
        match self.row_lines.of(row) {
            Some(line) => self.with_context(error, &format!("{} {line}", self.unit())),
            None => error.context(format!("COPY {}", self.writer.target.relation.name)),
        }
    }

    pub(crate) fn with_context(&self, error: DbError, place: &str) -> DbError {
        error.context(format!("COPY {}, {place}", self.writer.target.relation.name))
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

/// Splits a line into fields.
pub(crate) fn split(
    options: &CopyOptions,
    line: &[u8],
    force_null: &[bool],
    force_not_null: &[bool],
    fields: &mut Fields,
) -> Result<()> {
    match options.format {
        CopyFormat::Csv => csv::split(line, options, force_null, force_not_null, fields),
        _ => {
            let default = options.default.as_deref().map(str::as_bytes);
            text::split(line, options.delimiter, options.null.as_bytes(), default, fields);
            Ok(())
        }
    }
}

/// HEADER match: the fields of the first line are the names of the columns.
pub(crate) fn match_header(fields: &Fields, sources: &[InputColumn], null: &str) -> Result<()> {
    if fields.len() != sources.len() {
        bail!(BAD_COPY_FILE_FORMAT, "wrong number of fields in header line: got {}, expected {}", fields.len(), sources.len());
    }
    for (i, source) in sources.iter().enumerate() {
        let (kind, bytes) = fields.get(i);
        let text = String::from_utf8_lossy(bytes);
        let expected = &source.name;
        if kind != FieldKind::Value {
            bail!(
                BAD_COPY_FILE_FORMAT,
                "column name mismatch in header line field {}: got null value (\"{null}\"), expected \"{expected}\"",
                i + 1
            );
        }
        if text != **expected {
            bail!(
                BAD_COPY_FILE_FORMAT,
                "column name mismatch in header line field {}: got \"{text}\", expected \"{expected}\"",
                i + 1
            );
        }
    }
    Ok(())
}

/// Whether a row has fields for the first columns.
pub(crate) fn check_present(fields: &Fields, first: &[InputColumn]) -> Result<()> {
    if let Some(missing) = first.get(fields.len()) {
        bail!(BAD_COPY_FILE_FORMAT, "missing data for column \"{}\"", missing.name);
    }
    Ok(())
}

/// Lines of rows, as long as they take no more memory than this in runs of rows on lines that follow one another.
const ROW_LINES_MAX: usize = 1 << 16;

#[derive(Default)]
struct RowLines {
    /// The first row of each run, and its line.
    runs: Vec<(u64, u64)>,
    /// Rows from here on are not known.
    end: u64,
}

impl RowLines {
    /// Notes the lines of the next rows.
    fn note(&mut self, row: u64, lines: &[u64]) {
        for run in lines.chunk_by(|a, b| a + 1 == *b) {
            let follows = self.runs.last().is_some_and(|(first, line)| self.end - first == run[0] - line);
            if self.end < row || !follows && self.runs.len() == ROW_LINES_MAX {
                return;
            }
            if !follows {
                self.runs.push((self.end, run[0]));
            }
            self.end += run.len() as u64;
        }
    }

    fn of(&self, row: u64) -> Option<u64> {
        let (first, line) = *self.runs[..self.runs.partition_point(|(first, _)| *first <= row)].last()?;
        (row < self.end).then(|| line + row - first)
    }
}

fn empty_batch(writer: &TableWriter) -> Vec<Column> {
    writer.target.relation.columns.iter().map(|c| Column::with_capacity(c.kind, BATCH_ROWS)).collect()
}

fn source_is_domain(ctx: &Evaluation, ty: Oid) -> bool {
    ty.0 >= melba_catalog::classes::FIRST_USER_OID && ctx.catalog().type_(ty).is_some_and(|t| t.domain.is_some())
}

/// A piece of input as contexts show it.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= SHOWN_BYTES_MAX {
        return text.into_owned();
    }
    let mut end = SHOWN_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}
