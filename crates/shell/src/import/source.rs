//! A file to import: its format, and its rows with values as COPY takes them. Parquet goes to the server as it is.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use melba_parquet::{FileReader, SourceFile};

use super::csv::{self, Dialect, Record};
use super::guess::Guess;
use super::json::{self, Value};
use super::names;
use crate::Result;

/// Bytes of the file's beginning, by which its format is recognised.
const BEGINNING_BYTES: u64 = 256 << 10;
const BUFFER_BYTES: usize = 1 << 20;
const PARQUET_MAGIC: &[u8] = b"PAR1";
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// The command line's options for the format of files.
pub struct Dialects {
    pub is_json: Option<bool>,
    pub delimiter: Option<u8>,
    pub quote: Option<u8>,
    pub escape: Option<u8>,
    pub has_header: Option<bool>,
}

pub struct Source {
    pub path: PathBuf,
    pub bytes: u64,
    kind: FileKind,
    /// Before the first record: a mark of the encoding.
    skipped: u64,
    /// Of its columns, and their names in the table, once it has been surveyed.
    pub titles: Vec<(String, String)>,
}

enum FileKind {
    Csv { dialect: Dialect, has_header: bool },
    Json,
    Parquet,
}

/// A column of a file.
pub struct Column {
    /// In the file.
    pub title: String,
    /// In the table.
    pub name: String,
    pub guess: Guess,
    /// That the file itself says.
    pub type_name: Option<String>,
}

/// How a column's values become fields of COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An empty string in quotes is one.
    Text,
    /// JSON as it is written.
    Json,
    /// An empty value is null.
    Other,
}

impl Form {
    pub fn of(type_name: &str) -> Form {
        match type_name {
            "json" | "jsonb" => Form::Json,
            name if name.starts_with("char") || matches!(name, "text" | "varchar" | "bpchar" | "name" | "citext") => Form::Text,
            _ => Form::Other,
        }
    }
}

/// Called with the names of a file's columns, and with each record.
type EachRecord<'a> = dyn FnMut(&[String], Option<&Record>) -> Result<()> + 'a;

impl Source {
    /// # Errors
    /// It cannot be read, or is nothing that can be imported.
    pub fn open(path: &Path, dialects: &Dialects) -> Result<Source> {
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(format!("{}: it is no file, which is read twice", path.display()));
        }
        let beginning = csv::beginning(&mut file, BEGINNING_BYTES).map_err(failed)?;
        let (path, bytes) = (path.to_owned(), metadata.len());
        if beginning.starts_with(PARQUET_MAGIC) {
            return Ok(Source { path, bytes, kind: FileKind::Parquet, skipped: 0, titles: Vec::new() });
        }
        if let Some(refusal) = refusal(&beginning) {
            return Err(format!("{}: {refusal}", path.display()));
        }
        let skipped = if beginning.starts_with(UTF8_MARK) { UTF8_MARK.len() } else { 0 };
        let text = &beginning[skipped..];
        let kind =
            if dialects.is_json.unwrap_or_else(|| is_json(&path, text)) { FileKind::Json } else { csv_kind(text, dialects) };
        Ok(Source { path, bytes, kind, skipped: skipped as u64, titles: Vec::new() })
    }

    /// The recognised format, in words.
    pub fn description(&self) -> String {
        match &self.kind {
            FileKind::Json => "JSON".to_owned(),
            FileKind::Parquet => "Parquet".to_owned(),
            FileKind::Csv { dialect, has_header } => {
                let delimiter = match dialect.delimiter {
                    b'\t' => "tabs".to_owned(),
                    delimiter => format!("'{}'", char::from(delimiter)),
                };
                format!("CSV with {delimiter} and {}", if *has_header { "a header" } else { "no header" })
            }
        }
    }

    pub fn is_parquet(&self) -> bool {
        matches!(self.kind, FileKind::Parquet)
    }

    /// The columns of a Parquet file, by its end.
    fn parquet_columns(&mut self) -> Result<Vec<Column>> {
        let file = File::open(&self.path).map_err(|e| e.to_string())?;
        let said = |e: melba_parquet::DbError| {
            e.fields().detail.as_ref().map_or_else(|| e.to_string(), |detail| format!("{e}: {detail}"))
        };
        let reader = FileReader::open(Arc::new(SourceFile { file, bytes: self.bytes })).map_err(said)?;
        let types = reader.type_names().map_err(said)?;
        let column = |(name, type_name): (String, String)| Column {
            title: name.clone(),
            name,
            guess: Guess::default(),
            type_name: Some(type_name),
        };
        let names = reader.columns().iter().map(|c| c.name.clone());
        let columns: Vec<Column> = names.zip(types).map(column).collect();
        self.titles = columns.iter().map(|c| (c.title.clone(), c.name.clone())).collect();
        Ok(columns)
    }

    /// All columns with their possible types.
    ///
    /// # Errors
    /// A record that is wrong, with its line.
    pub fn survey(&mut self, read: &mut dyn FnMut(u64)) -> Result<Vec<Column>> {
        let mut columns = Vec::new();
        if self.is_parquet() {
            read(self.bytes);
            return self.parquet_columns().map_err(|e| format!("{}: {e}", self.path.display()));
        }
        let result = match &self.kind {
            FileKind::Parquet => Ok(()),
            FileKind::Csv { .. } => self.csv_records(read, &mut |names, record| {
                if columns.is_empty() {
                    columns.extend(names.iter().map(|title| Column {
                        title: title.clone(),
                        name: String::new(),
                        guess: Guess::default(),
                        type_name: None,
                    }));
                }
                let Some(record) = record else { return Ok(()) };
                for ((field, _), column) in record.fields().zip(&mut columns) {
                    if std::str::from_utf8(field).is_err() {
                        return Err(format!("line {}: \"{}\" is not UTF-8", record.line, String::from_utf8_lossy(field)));
                    }
                    // Of numbers and dates an empty one is null, also in quotes.
                    if !field.is_empty() {
                        column.guess.add_text(field);
                    }
                }
                Ok(())
            }),
            FileKind::Json => json::rows(self.reader(read)?, &mut |_, object| {
                for (title, value) in &object.0 {
                    let at = columns.iter().position(|column: &Column| column.title == *title).unwrap_or_else(|| {
                        columns.push(Column {
                            title: title.to_string(),
                            name: String::new(),
                            guess: Guess::default(),
                            type_name: None,
                        });
                        columns.len() - 1
                    });
                    match Value::of(value)? {
                        Value::Null => {}
                        Value::String(text) => columns[at].guess.add_string(&text),
                        Value::Other(text) => columns[at].guess.add_json(text),
                    }
                }
                Ok(())
            }),
        };
        result.map_err(|e| format!("{}: {e}", self.path.display()))?;
        let names = names::columns(columns.iter().map(|column| column.title.as_str()));
        columns.iter_mut().zip(names).for_each(|(column, name)| column.name = name);
        self.titles = columns.iter().map(|column| (column.title.clone(), column.name.clone())).collect();
        Ok(columns)
    }

    /// Rows as lines of COPY's text format; `titles` are the file's columns in the table's order with the forms of their values.
    ///
    /// # Errors
    /// An invalid record, with its line, and errors of `send`.
    pub fn rows(
        &self,
        columns: &[(String, Form)],
        read: &mut dyn FnMut(u64),
        send: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut line = Vec::new();
        match &self.kind {
            FileKind::Parquet => {
                let mut reader = self.reader(read)?;
                loop {
                    let piece = reader.fill_buf().map_err(|e| e.to_string())?;
                    if piece.is_empty() {
                        return Ok(());
                    }
                    send(0, piece)?;
                    let bytes = piece.len();
                    reader.consume(bytes);
                }
            }
            FileKind::Csv { .. } => self.csv_records(read, &mut |_, record| {
                let Some(record) = record else { return Ok(()) };
                line.clear();
                for ((field, is_quoted), (_, form)) in record.fields().zip(columns) {
                    let is_null = field.is_empty() && !(is_quoted && *form == Form::Text);
                    put(&mut line, (!is_null).then_some(field));
                }
                end(&mut line);
                send(record.line, &line)
            }),
            FileKind::Json => json::rows(self.reader(read)?, &mut |number, object| {
                line.clear();
                for (title, form) in columns {
                    let raw = object.0.iter().find(|(name, _)| name == title);
                    match raw.map(|(_, raw)| Value::of(raw)).transpose()? {
                        None | Some(Value::Null) => put(&mut line, None),
                        Some(_) if *form == Form::Json => put(&mut line, raw.map(|(_, raw)| raw.get().as_bytes())),
                        Some(Value::String(text)) => put(&mut line, Some(text.as_bytes())),
                        Some(Value::Other(text)) => put(&mut line, Some(text.as_bytes())),
                    }
                }
                end(&mut line);
                send(number, &line)
            }),
        }
    }

    /// Names and records; once without a record, so that a file with a header alone has its names.
    fn csv_records(&self, read: &mut dyn FnMut(u64), each: &mut EachRecord<'_>) -> Result<()> {
        let FileKind::Csv { dialect, has_header } = &self.kind else { return Ok(()) };
        let mut reader = csv::CsvReader::new(self.reader(read)?, *dialect);
        let mut record = Record::default();
        if !reader.read(&mut record)? {
            return Err("the file is empty".to_owned());
        }
        let numbered = |at: usize| format!("column{}", at + 1);
        let names: Vec<String> = match has_header {
            true => record.fields().map(|(field, _)| String::from_utf8_lossy(field).trim().to_owned()).collect(),
            false => (0..record.len()).map(numbered).collect(),
        };
        each(&names, None)?;
        if *has_header && !reader.read(&mut record)? {
            return Ok(());
        }
        loop {
            if record.len() != names.len() {
                let (line, fields, expected) = (record.line, record.len(), names.len());
                return Err(format!("line {line}: it has {fields} fields, but the first record has {expected}"));
            }
            each(&names, Some(&record))?;
            if !reader.read(&mut record)? {
                return Ok(());
            }
        }
    }

    fn reader<'r>(&self, read: &'r mut dyn FnMut(u64)) -> Result<BufReader<Counted<'r>>> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.path.display());
        let mut file = File::open(&self.path).map_err(failed)?;
        file.seek(SeekFrom::Start(self.skipped)).map_err(failed)?;
        Ok(BufReader::with_capacity(BUFFER_BYTES, Counted { file, read }))
    }
}

/// Reports the bytes that it reads.
struct Counted<'r> {
    file: File,
    read: &'r mut dyn FnMut(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        (self.read)(read as u64);
        Ok(read)
    }
}

/// Why a file cannot be imported.
fn refusal(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [] => Some("the file is empty"),
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("it is compressed; unpack it first"),
        [b'P', b'K', 3, 4, ..] => Some("it is an archive or a spreadsheet; CSV and JSON lines can be imported"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("it is UTF-16; convert it to UTF-8 first"),
        text if text.contains(&0) => Some("it is no text: it has zero bytes"),
        _ => None,
    }
}

fn is_json(path: &Path, text: &[u8]) -> bool {
    let extension = path.extension().map(|e| e.to_ascii_lowercase());
    match extension.as_deref().and_then(|e| e.to_str()) {
        Some("json" | "jsonl" | "ndjson") => true,
        Some("csv" | "tsv") => false,
        _ => matches!(text.trim_ascii_start(), [b'{', ..] | [b'[', b'{' | b'\n' | b' ', ..]),
    }
}

fn csv_kind(text: &[u8], dialects: &Dialects) -> FileKind {
    let quote = dialects.quote.unwrap_or(b'"');
    let escape = dialects.escape.unwrap_or(quote);
    let delimiter = dialects.delimiter.unwrap_or_else(|| csv::detect(text, quote, escape));
    let dialect = Dialect { delimiter, quote, escape };
    let has_header = dialects.has_header.unwrap_or_else(|| {
        let mut first = Record::default();
        csv::CsvReader::new(text, dialect).read(&mut first).is_ok_and(|read| read) && csv::is_header(&first)
    });
    FileKind::Csv { dialect, has_header }
}

/// A field of COPY's text format and its separator.
fn put(line: &mut Vec<u8>, value: Option<&[u8]>) {
    let Some(value) = value else { return line.extend_from_slice(b"\\N\t") };
    let mut start = 0;
    for (at, byte) in value.iter().enumerate() {
        let escape = match byte {
            b'\\' => b'\\',
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            _ => continue,
        };
        line.extend_from_slice(&value[start..at]);
        line.extend_from_slice(&[b'\\', escape]);
        start = at + 1;
    }
    line.extend_from_slice(&value[start..]);
    line.push(b'\t');
}

/// The last separator becomes the line's end.
fn end(line: &mut Vec<u8>) {
    line.pop();
    line.push(b'\n');
}
