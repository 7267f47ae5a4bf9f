//! CSV and JSON lines as tables. Columns and types are guessed from all values, as `melba import` does (crate `files`); rows are read
//! one record after the other.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use hashbrown::HashMap;
use melba_copy::{InputColumn, push_value};
use melba_encoding::utf8;
use melba_files::json::{JsonLines, Value};
use melba_files::{BEGINNING_BYTES, CsvRows, Dialects, Form, Guess, TextFile, TextKind, check_columns, names};
use melba_fmgr::{FileRequest, FileRows, RowColumn, Session, io as values, lookup};
use melba_parquet::{ColumnMatch, SourceReader};
use melba_types::{Batch, Column, Datum, DbError, Kind, Oid, Result, err, limits, oids};
use parking_lot::Mutex;

use super::super::context::StatementContext;
use super::super::planning;
use super::{expand, no_file, open_bytes, pattern, within};

const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of fields after which a batch ends, however few rows it has.
const BATCH_BYTES: usize = 4 << 20;
/// Keys of objects whose columns are remembered.
const KEYS_MAX: usize = 10_000;

/// The columns of the files: of CSV those of the first, of JSON those of all.
pub(super) fn columns(context: &StatementContext, source: &str, args: &[Datum]) -> Result<Vec<RowColumn>> {
    let dialects = dialects(source, args)?;
    let pattern = pattern(args)?;
    let mut columns: Vec<(String, Guess)> = Vec::new();
    let mut is_first = true;
    for name in expand(context, pattern)? {
        let input = Input::open(context, &name, &dialects)?;
        let surveyed = input.file.survey(input.reader).map_err(|e| input.failure.said(&name, e))?;
        for (title, guess) in surveyed {
            // Two columns of CSV may have the same title.
            let known = columns.iter_mut().find(|(known, _)| !is_first && *known == title);
            match known {
                Some((_, all)) => all.merge(guess),
                None if is_first || dialects.is_json == Some(true) => columns.push((title, guess)),
                None => {}
            }
        }
        check_columns(columns.len()).map_err(|e| input.failure.said(&name, e))?;
        is_first = false;
    }
    if is_first {
        return Err(no_file(pattern));
    }
    let titles: Vec<&str> = columns.iter().map(|(title, _)| title.as_str()).collect();
    let named = match dialects.is_json {
        Some(true) => names::keys(&titles),
        _ => names::columns(titles.iter().copied()),
    };
    let mut out = Vec::with_capacity(columns.len());
    for (name, (_, guess)) in named.into_iter().zip(&columns) {
        let ty = planning::analysis(context).transform_type_name(&melba_parse::parse_type_name(guess.type_name())?)?;
        out.push(RowColumn { name: name.into(), ty: ty.0, typmod: ty.1 });
    }
    if out.is_empty() {
        return Err(err!(BAD_COPY_FILE_FORMAT, "\"{pattern}\" has no columns")
            .hint("A column definition list, AS t(a integer, b text), names them."));
    }
    Ok(out)
}

/// The rows of all files.
pub(super) fn open(
    session: Arc<dyn Session>,
    dialects: Dialects,
    names: VecDeque<String>,
    request: FileRequest,
) -> Result<Box<dyn FileRows>> {
    let is_domain = |ty: Oid| lookup::domain(&*session, ty).is_some();
    let described = |at: &usize| {
        let c = &request.columns[*at];
        let form = match session.catalog().base_type(c.ty) {
            oids::JSON | oids::JSONB => Form::Json,
            oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::NAME => Form::Text,
            _ => Form::Other,
        };
        let kind = lookup::kind(&*session, c.ty).unwrap_or(Kind::Text);
        let input = InputColumn { at: *at, name: Arc::clone(&c.name), ty: c.ty, typmod: c.typmod };
        NeededColumn { input, form, kind, is_domain: is_domain(c.ty) }
    };
    let needed = request.needed.iter().map(described).collect();
    Ok(Box::new(TextRows {
        session,
        dialects,
        names,
        columns: request.columns,
        needed,
        open: None,
        keys: HashMap::new(),
        how: ColumnMatch::NameOrPosition,
        bytes: 0,
    }))
}

/// What the arguments say of the files.
pub(super) fn dialects(source: &str, args: &[Datum]) -> Result<Dialects> {
    if source == "read_json" {
        return Ok(Dialects { is_json: Some(true), ..Dialects::default() });
    }
    let text = |at: usize| match args.get(at) {
        Some(Datum::Text(text)) => Some(text.as_bytes()),
        _ => None,
    };
    let one = |at: usize, what: &str| match text(at) {
        None => Ok(None),
        Some([b'\n' | b'\r']) => Err(err!(INVALID_PARAMETER_VALUE, "{source} {what} cannot be newline or carriage return")),
        Some([byte]) => Ok(Some(*byte)),
        Some(_) => Err(err!(FEATURE_NOT_SUPPORTED, "{source} {what} must be a single one-byte character")),
    };
    let has_header = match args.get(1) {
        Some(Datum::Bool(header)) => Some(*header),
        _ => None,
    };
    let (delimiter, quote) = (one(2, "delimiter")?, one(3, "quote")?);
    if delimiter.is_some() && delimiter == quote.or(Some(b'"')) {
        return Err(err!(INVALID_PARAMETER_VALUE, "{source} delimiter and quote must be different"));
    }
    Ok(Dialects { is_json: Some(false), delimiter, quote, escape: None, has_header, null: text(4).map(<[u8]>::to_vec) })
}

/// A file that was opened, at its first record.
struct Input {
    file: TextFile,
    reader: BufReader<WatchedReader>,
    failure: Failure,
}

impl Input {
    fn open(session: &dyn Session, name: &str, dialects: &Dialects) -> Result<Input> {
        let failure = Failure::default();
        let bytes = open_bytes(session, name)?;
        let watched = |start| WatchedReader { reader: SourceReader::new(Arc::clone(&bytes), start), failure: failure.clone() };
        let mut beginning = Vec::new();
        watched(0).take(BEGINNING_BYTES).read_to_end(&mut beginning).map_err(|e| failure.said(name, e.to_string()))?;
        let file = TextFile::recognize(Path::new(name), &beginning, dialects).map_err(|e| failure.said(name, e))?;
        let is_array =
            matches!(file.kind, TextKind::Json) && beginning[file.skipped as usize..].trim_ascii_start().starts_with(b"[");
        if is_array {
            return Err(within(DbError::unsupported("reading an array of JSON as a table"), name)
                .hint("read_json reads an object in each line."));
        }
        Ok(Input { reader: BufReader::with_capacity(BUFFER_BYTES, watched(file.skipped)), file, failure })
    }
}

/// Reads a file's bytes. A record may be as long as memory lasts, and reading it can be cancelled.
struct WatchedReader {
    reader: SourceReader,
    failure: Failure,
}

impl Read for WatchedReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let checked = limits::check().map_err(io::Error::other);
        checked.and_then(|()| self.reader.read(out)).inspect_err(|e| self.failure.note(e))
    }
}

/// The error of reading, which the texts of the crate `files` do not carry.
#[derive(Clone, Default)]
struct Failure(Arc<Mutex<Option<DbError>>>);

impl Failure {
    fn note(&self, error: &io::Error) {
        let ours = error.get_ref().and_then(|inner| inner.downcast_ref::<DbError>()).cloned();
        *self.0.lock() = Some(ours.unwrap_or_else(|| err!(IO_ERROR, "could not read file: {error}")));
    }

    /// The error of a file of which `text` is said.
    fn said(&self, name: &str, text: String) -> DbError {
        match self.0.lock().take() {
            Some(error) => within(error, name),
            None => err!(BAD_COPY_FILE_FORMAT, "invalid file \"{name}\": {text}"),
        }
    }
}

/// A column that is read.
struct NeededColumn {
    input: InputColumn,
    form: Form,
    kind: Kind,
    is_domain: bool,
}

impl NeededColumn {
    fn push(&self, session: &dyn Session, value: Option<&[u8]>, out: &mut Column) -> Result<()> {
        match value {
            Some(bytes) => push_value(session, &self.input, utf8(bytes)?.as_bytes(), out),
            None if self.is_domain => {
                out.push(values::check_domain(session, self.input.ty, Datum::Null)?);
                Ok(())
            }
            None => {
                out.push_null();
                Ok(())
            }
        }
    }
}

/// Rows of text files, one after the other.
struct TextRows {
    session: Arc<dyn Session>,
    dialects: Dialects,
    /// Files to come.
    names: VecDeque<String>,
    columns: Vec<RowColumn>,
    needed: Vec<NeededColumn>,
    open: Option<OpenFile>,
    /// Places among the needed columns, by the keys of objects.
    keys: HashMap<String, Option<usize>>,
    /// How the columns of the next file of CSV are found.
    how: ColumnMatch,
    /// Of the last batch.
    bytes: usize,
}

struct OpenFile {
    name: String,
    file: TextFile,
    rows: Rows,
    failure: Failure,
}

enum Rows {
    /// With the places of the needed columns.
    Csv(CsvRows<BufReader<WatchedReader>>, Vec<usize>),
    Json(JsonLines<BufReader<WatchedReader>>),
}

impl TextRows {
    fn begin(&mut self, name: String) -> Result<OpenFile> {
        let Input { file, reader, failure } = Input::open(&*self.session, &name, &self.dialects)?;
        let rows = match &file.kind {
            TextKind::Json => Rows::Json(JsonLines::new(reader)),
            TextKind::Csv { dialect, has_header } => {
                let rows = CsvRows::open(reader, *dialect, *has_header).map_err(|e| failure.said(&name, e))?;
                let places = self.places(rows.titles()).map_err(|e| within(e, &name))?;
                Rows::Csv(rows, places)
            }
        };
        Ok(OpenFile { name, file, rows, failure })
    }

    /// Where the needed columns are in a file, by their names; by position when it has none of the names, and as many columns, unless
    /// an earlier file had names.
    fn places(&mut self, titles: &[String]) -> Result<Vec<usize>> {
        let named = names::columns(titles.iter().map(String::as_str));
        let place =
            |name: &str| named.iter().position(|known| known == name).or_else(|| titles.iter().position(|title| title == name));
        let places: Vec<Option<usize>> = self.columns.iter().map(|c| place(&c.name)).collect();
        let may_be = self.how == ColumnMatch::NameOrPosition && places.len() == titles.len();
        let by_position = may_be && places.iter().all(Option::is_none);
        if !by_position {
            self.how = ColumnMatch::Name;
        }
        let of = |needed: &NeededColumn| match places[needed.input.at] {
            _ if by_position => Ok(needed.input.at),
            Some(place) => Ok(place),
            None => Err(err!(BAD_COPY_FILE_FORMAT, "the file has no column \"{}\"", needed.input.name)),
        };
        self.needed.iter().map(of).collect()
    }

    /// Appends the next row; its bytes, `None` at the end of the file.
    fn read_row(&mut self, out: &mut [Column]) -> Result<Option<usize>> {
        let Some(OpenFile { name, file, rows, failure }) = &mut self.open else { return Ok(None) };
        let (name, file, failure) = (&*name, &*file, &*failure);
        let placed = |e: DbError, line: u64, column: &NeededColumn| {
            within(e.context(format!("line {line}, column {}", column.input.name)), name)
        };
        match rows {
            Rows::Csv(rows, places) => {
                let Some(record) = rows.read().map_err(|e| failure.said(name, e))? else { return Ok(None) };
                for ((column, place), out) in self.needed.iter().zip(&*places).zip(out) {
                    let value = record.field(*place).and_then(|field| file.value(field, column.form));
                    column.push(&*self.session, value, out).map_err(|e| placed(e, record.line, column))?;
                }
                Ok(Some(record.bytes()))
            }
            Rows::Json(rows) => {
                let Some((line, object)) = rows.read().map_err(|e| failure.said(name, e))? else { return Ok(None) };
                let mut found = vec![None; self.needed.len()];
                let mut bytes = 0;
                for (key, value) in &object.0 {
                    bytes += value.get().len();
                    let place = match self.keys.get(&**key) {
                        Some(place) => *place,
                        None => {
                            let at = names::column_of_key(key, self.columns.iter().map(|c| &*c.name));
                            let place = at.and_then(|at| self.needed.iter().position(|needed| needed.input.at == at));
                            if self.keys.len() < KEYS_MAX {
                                self.keys.insert(key.to_string(), place);
                            }
                            place
                        }
                    };
                    if let Some(place) = place {
                        found[place] = Some(value);
                    }
                }
                for ((column, raw), out) in self.needed.iter().zip(found).zip(out) {
                    let value =
                        raw.map(|raw| Value::of(raw)).transpose().map_err(|e| failure.said(name, format!("line {line}: {e}")))?;
                    let pushed = match (&value, raw) {
                        (None | Some(Value::Null), _) => column.push(&*self.session, None, out),
                        (Some(_), Some(raw)) if column.form == Form::Json => {
                            column.push(&*self.session, Some(raw.get().as_bytes()), out)
                        }
                        (Some(Value::String(text)), _) => column.push(&*self.session, Some(text.as_bytes()), out),
                        (Some(Value::Other(text)), _) => column.push(&*self.session, Some(text.as_bytes()), out),
                    };
                    pushed.map_err(|e| placed(e, line, column))?;
                }
                Ok(Some(bytes))
            }
        }
    }
}

impl FileRows for TextRows {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>> {
        let mut out: Vec<Column> = self.needed.iter().map(|column| Column::with_capacity(column.kind, limit)).collect();
        let (mut rows, mut bytes) = (0, 0);
        while rows < limit && bytes < BATCH_BYTES {
            match self.read_row(&mut out)? {
                Some(more) => (rows, bytes) = (rows + 1, bytes + more),
                None => {
                    self.open = None;
                    let Some(name) = self.names.pop_front() else { break };
                    self.open = Some(self.begin(name)?);
                }
            }
        }
        self.bytes = 2 * bytes;
        Ok((rows > 0).then(|| Batch::new(out, rows)))
    }

    fn memory_bytes(&self) -> usize {
        self.bytes + 2 * BUFFER_BYTES
    }
}
