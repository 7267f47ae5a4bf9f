//! A text file: its format, and its columns with their types.

use std::io::BufRead;
use std::path::Path;

use crate::csv::{self, CsvReader, Dialect, Record};
use crate::guess::Guess;
use crate::json::{self, Value};
use crate::{Result, check_columns};

/// Bytes of the file's beginning, by which its format is recognised.
pub const BEGINNING_BYTES: u64 = 256 << 10;
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// What is said of the format of files.
#[derive(Clone, Debug, Default)]
pub struct Dialects {
    pub is_json: Option<bool>,
    pub delimiter: Option<u8>,
    pub quote: Option<u8>,
    pub escape: Option<u8>,
    pub has_header: Option<bool>,
    /// A field of CSV without quotes that is null, beside empty ones.
    pub null: Option<Vec<u8>>,
}

/// A file's format.
pub struct TextFile {
    pub kind: TextKind,
    /// Bytes before the first record: a mark of the encoding.
    pub skipped: u64,
    null: Option<Vec<u8>>,
}

pub enum TextKind {
    Csv { dialect: Dialect, has_header: bool },
    Json,
}

/// How a column's values are null or not.
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

impl TextFile {
    /// By a file's beginning and the end of its name.
    ///
    /// # Errors
    /// It is no text that can be read.
    pub fn recognize(path: &Path, beginning: &[u8], dialects: &Dialects) -> Result<TextFile> {
        // A file without lines of JSON has no rows; CSV needs a first record.
        let may_be_empty = dialects.is_json == Some(true);
        if let Some(refusal) = refusal(beginning).filter(|_| !(may_be_empty && beginning.is_empty())) {
            return Err(refusal.to_owned());
        }
        let skipped = if beginning.starts_with(UTF8_MARK) { UTF8_MARK.len() } else { 0 };
        let text = &beginning[skipped..];
        let is_json = dialects.is_json.unwrap_or_else(|| is_json(path, text));
        let kind = if is_json { TextKind::Json } else { csv_kind(text, dialects) };
        Ok(TextFile { kind, skipped: skipped as u64, null: dialects.null.clone() })
    }

    /// The titles of all columns with their possible types, from all values; the reader begins at the first record.
    ///
    /// # Errors
    /// A record that is wrong, with its line.
    pub fn survey(&self, reader: impl BufRead) -> Result<Vec<(String, Guess)>> {
        match &self.kind {
            TextKind::Csv { dialect, has_header } => self.survey_csv(CsvRows::open(reader, *dialect, *has_header)?),
            TextKind::Json => survey_json(reader),
        }
    }

    fn survey_csv(&self, mut rows: CsvRows<impl BufRead>) -> Result<Vec<(String, Guess)>> {
        let mut columns: Vec<(String, Guess)> = rows.titles().iter().map(|title| (title.clone(), Guess::default())).collect();
        while let Some(record) = rows.read()? {
            for ((field, is_quoted), (_, guess)) in record.fields().zip(&mut columns) {
                if std::str::from_utf8(field).is_err() {
                    return Err(format!("line {}: \"{}\" is not UTF-8", record.line, String::from_utf8_lossy(field)));
                }
                // Of numbers and dates an empty one is null, also in quotes.
                if !field.is_empty() && !self.is_null(field, is_quoted) {
                    guess.add_text(field);
                }
            }
        }
        Ok(columns)
    }

    fn is_null(&self, field: &[u8], is_quoted: bool) -> bool {
        !is_quoted && self.null.as_deref() == Some(field)
    }

    /// A field's value in a column of some form.
    pub fn value<'f>(&self, (field, is_quoted): (&'f [u8], bool), form: Form) -> Option<&'f [u8]> {
        let is_null = self.is_null(field, is_quoted) || field.is_empty() && !(is_quoted && form == Form::Text);
        (!is_null).then_some(field)
    }
}

fn survey_json(reader: impl BufRead) -> Result<Vec<(String, Guess)>> {
    let mut columns: Vec<(String, Guess)> = Vec::new();
    json::rows(reader, &mut |_, object| {
        for (title, value) in &object.0 {
            let at = columns.iter().position(|(known, _)| known == title).unwrap_or_else(|| {
                columns.push((title.to_string(), Guess::default()));
                columns.len() - 1
            });
            check_columns(columns.len())?;
            match Value::of(value)? {
                Value::Null => {}
                Value::String(text) => columns[at].1.add_string(&text),
                Value::Other(text) => columns[at].1.add_json(text),
            }
        }
        Ok(())
    })?;
    Ok(columns)
}

/// The records of a CSV file, of which each has as many fields as the first.
pub struct CsvRows<R> {
    reader: CsvReader<R>,
    titles: Vec<String>,
    record: Record,
    /// The first record is a row, which has not been returned yet.
    is_pending: bool,
}

impl<R: BufRead> CsvRows<R> {
    /// # Errors
    /// There is no record, or the first is wrong.
    pub fn open(reader: R, dialect: Dialect, has_header: bool) -> Result<CsvRows<R>> {
        let mut reader = CsvReader::new(reader, dialect);
        let mut record = Record::default();
        if !reader.read(&mut record)? {
            return Err("the file is empty".to_owned());
        }
        check_columns(record.len())?;
        let numbered = |at: usize| format!("column{}", at + 1);
        let titles = match has_header {
            true => record.fields().map(|(field, _)| String::from_utf8_lossy(field).trim().to_owned()).collect(),
            false => (0..record.len()).map(numbered).collect(),
        };
        Ok(CsvRows { reader, titles, record, is_pending: !has_header })
    }

    pub fn titles(&self) -> &[String] {
        &self.titles
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// It is wrong, or has another number of fields.
    pub fn read(&mut self) -> Result<Option<&Record>> {
        if !std::mem::take(&mut self.is_pending) && !self.reader.read(&mut self.record)? {
            return Ok(None);
        }
        let (line, fields, expected) = (self.record.line, self.record.len(), self.titles.len());
        if fields != expected {
            return Err(format!("line {line}: it has {fields} fields, but the first record has {expected}"));
        }
        Ok(Some(&self.record))
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

fn csv_kind(text: &[u8], dialects: &Dialects) -> TextKind {
    let quote = dialects.quote.unwrap_or(b'"');
    let escape = dialects.escape.unwrap_or(quote);
    let delimiter = dialects.delimiter.unwrap_or_else(|| csv::detect(text, quote, escape));
    let dialect = Dialect { delimiter, quote, escape };
    let has_header = dialects.has_header.unwrap_or_else(|| {
        let mut first = Record::default();
        CsvReader::new(text, dialect).read(&mut first).is_ok_and(|read| read) && csv::is_header(&first)
    });
    TextKind::Csv { dialect, has_header }
}
