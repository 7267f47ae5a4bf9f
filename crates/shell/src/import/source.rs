//! A file to import: its format, and its rows with values as COPY takes them. Parquet goes to the server as it is.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use melba_files::json::{self, Value};
use melba_files::{BEGINNING_BYTES, CsvRows, Dialects, Form, Guess, TextFile, TextKind, csv, names};
use melba_parquet::{FileReader, SourceFile};

use crate::Result;

const BUFFER_BYTES: usize = 1 << 20;
const PARQUET_MAGIC: &[u8] = b"PAR1";

pub struct Source {
    pub path: PathBuf,
    pub bytes: u64,
    kind: FileKind,
    /// Of its columns, and their names in the table, once it has been surveyed.
    pub titles: Vec<(String, String)>,
}

enum FileKind {
    Text(TextFile),
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
            return Ok(Source { path, bytes, kind: FileKind::Parquet, titles: Vec::new() });
        }
        let file = TextFile::recognize(&path, &beginning, dialects).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Source { path, bytes, kind: FileKind::Text(file), titles: Vec::new() })
    }

    /// The recognised format, in words.
    pub fn description(&self) -> String {
        let FileKind::Text(file) = &self.kind else { return "Parquet".to_owned() };
        let TextKind::Csv { dialect, has_header } = &file.kind else { return "JSON".to_owned() };
        let delimiter = match dialect.delimiter {
            b'\t' => "tabs".to_owned(),
            delimiter => format!("'{}'", char::from(delimiter)),
        };
        format!("CSV with {delimiter} and {}", if *has_header { "a header" } else { "no header" })
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
        let FileKind::Text(file) = &self.kind else {
            read(self.bytes);
            return self.parquet_columns().map_err(|e| format!("{}: {e}", self.path.display()));
        };
        let surveyed = self.reader(file.skipped, read).and_then(|reader| file.survey(reader));
        let surveyed = surveyed.map_err(|e| format!("{}: {e}", self.path.display()))?;
        let column = |(title, guess): (String, Guess)| Column { title, name: String::new(), guess, type_name: None };
        let mut columns: Vec<Column> = surveyed.into_iter().map(column).collect();
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
        let FileKind::Text(file) = &self.kind else {
            let mut reader = self.reader(0, read)?;
            loop {
                let piece = reader.fill_buf().map_err(|e| e.to_string())?;
                if piece.is_empty() {
                    return Ok(());
                }
                send(0, piece)?;
                let bytes = piece.len();
                reader.consume(bytes);
            }
        };
        let reader = self.reader(file.skipped, read)?;
        match &file.kind {
            TextKind::Csv { dialect, has_header } => {
                let mut rows = CsvRows::open(reader, *dialect, *has_header)?;
                while let Some(record) = rows.read()? {
                    line.clear();
                    record.fields().zip(columns).for_each(|(field, (_, form))| put(&mut line, file.value(field, *form)));
                    end(&mut line);
                    send(record.line, &line)?;
                }
                Ok(())
            }
            TextKind::Json => json::rows(reader, &mut |number, object| {
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

    fn reader<'r>(&self, skipped: u64, read: &'r mut dyn FnMut(u64)) -> Result<BufReader<Counted<'r>>> {
        let failed = |e: std::io::Error| format!("{}: {e}", self.path.display());
        let mut file = File::open(&self.path).map_err(failed)?;
        file.seek(SeekFrom::Start(skipped)).map_err(failed)?;
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
