//! CSV files: their separators, and records with the lines they begin at.
//!
//! A field may be quoted as a whole, with its quotes doubled or escaped within; other quotes are plain characters. Other readers
//! do not distinguish an empty field from an empty string in quotes, which are null and ''.

use std::io::{BufRead, ErrorKind, Read};

use crate::Result;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    pub delimiter: u8,
    pub quote: u8,
    /// Before a quote within quotes; the quote itself by default.
    pub escape: u8,
}

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// Records that are examined.
const RECORDS: usize = 200;

/// The delimiter by which the records of a file's beginning have the same number of fields, more than one; the more fields, the better.
pub fn detect(beginning: &[u8], quote: u8, escape: u8) -> u8 {
    let score = |delimiter: u8| {
        let mut reader = CsvReader::new(beginning, Dialect { delimiter, quote, escape });
        let mut record = Record::default();
        let mut counts = Vec::new();
        while counts.len() < RECORDS && reader.read(&mut record).is_ok_and(|read| read) {
            counts.push(record.len());
        }
        // The last one may be cut.
        if counts.len() > 1 {
            counts.pop();
        }
        let first = counts.first().copied().unwrap_or(0);
        let same = counts.iter().filter(|count| **count == first).count();
        if first < 2 { 0 } else { same * 1000 / counts.len() * 1000 + first.min(999) }
    };
    // Of equal ones the first.
    DELIMITERS.into_iter().rev().max_by_key(|delimiter| score(*delimiter)).unwrap_or(b',')
}

/// A record's fields, one after the other.
#[derive(Debug, Default)]
pub struct Record {
    bytes: Vec<u8>,
    /// Where each ends, and whether it was quoted.
    ends: Vec<(usize, bool)>,
    /// Of the file, from 1, at which it begins.
    pub line: u64,
}

impl Record {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Texts, and whether they were quoted.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], bool)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts.zip(&self.ends).map(|(start, (end, is_quoted))| (&self.bytes[start..*end], *is_quoted))
    }

    /// The text of a field, and whether it was quoted.
    pub fn field(&self, at: usize) -> Option<(&[u8], bool)> {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |(end, _)| *end);
        self.ends.get(at).map(|(end, is_quoted)| (&self.bytes[start..*end], *is_quoted))
    }

    /// Bytes of all fields.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn end(&mut self, is_quoted: bool) {
        self.ends.push((self.bytes.len(), is_quoted));
    }
}

pub struct CsvReader<R> {
    reader: R,
    dialect: Dialect,
    /// Lines that have been read.
    lines: u64,
    line: Vec<u8>,
}

enum In {
    /// The beginning of a field.
    Start,
    Bare,
    Quotes,
    /// After the closing quote.
    After,
}

impl<R: BufRead> CsvReader<R> {
    pub fn new(reader: R, dialect: Dialect) -> CsvReader<R> {
        CsvReader { reader, dialect, lines: 0, line: Vec::new() }
    }

    /// The next record that is no empty line; `false` at the end.
    ///
    /// # Errors
    /// Invalid quotes, with the line they begin at, and errors of the system.
    pub fn read(&mut self, record: &mut Record) -> Result<bool> {
        record.bytes.clear();
        record.ends.clear();
        loop {
            if !self.next_line()? {
                return Ok(false);
            }
            if !without_end(&self.line).is_empty() {
                break;
            }
        }
        record.line = self.lines;
        if memchr::memchr(self.dialect.quote, &self.line).is_none() {
            let line = without_end(&self.line);
            let mut start = 0;
            for end in memchr::memchr_iter(self.dialect.delimiter, line).chain([line.len()]) {
                record.bytes.extend_from_slice(&line[start..end]);
                record.end(false);
                start = end + 1;
            }
            return Ok(true);
        }
        self.read_quoted(record)?;
        Ok(true)
    }

    /// A record with quotes, which may continue over lines.
    fn read_quoted(&mut self, record: &mut Record) -> Result<()> {
        let Dialect { delimiter, quote, escape } = self.dialect;
        let mut state = In::Start;
        loop {
            let mut at = 0;
            // The end of a line belongs to a value in quotes.
            let length = without_end(&self.line).len();
            while at < self.line.len() {
                let byte = self.line[at];
                let next = self.line.get(at + 1).copied();
                match state {
                    In::Quotes if byte == escape && next == Some(quote) => {
                        record.bytes.push(quote);
                        at += 1;
                    }
                    In::Quotes if byte == escape && escape != quote && next == Some(escape) => {
                        record.bytes.push(escape);
                        at += 1;
                    }
                    In::Quotes if byte == quote => state = In::After,
                    In::Quotes => record.bytes.push(byte),
                    _ if at >= length => {}
                    In::Start if byte == quote => state = In::Quotes,
                    In::Start | In::Bare if byte == delimiter => {
                        record.end(false);
                        state = In::Start;
                    }
                    In::Start | In::Bare => {
                        record.bytes.push(byte);
                        state = In::Bare;
                    }
                    In::After if byte == delimiter => {
                        record.end(true);
                        state = In::Start;
                    }
                    In::After => {
                        let column = record.len() + 1;
                        return Err(format!("line {}: field {column} goes on after its closing quote", self.lines));
                    }
                }
                at += 1;
            }
            if !matches!(state, In::Quotes) {
                record.end(matches!(state, In::After));
                return Ok(());
            }
            if !self.next_line()? {
                let field = record.len() + 1;
                return Err(format!(
                    "line {}: field {field} of this record begins with a quote, and no quote ends it",
                    record.line
                ));
            }
        }
    }

    fn next_line(&mut self) -> Result<bool> {
        self.line.clear();
        loop {
            match self.reader.read_until(b'\n', &mut self.line) {
                Ok(0) if self.line.is_empty() => return Ok(false),
                Ok(_) => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e.to_string()),
            }
        }
        self.lines += 1;
        Ok(true)
    }
}

/// A line without its line feed, and a carriage return before it.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Whether a first record names the columns: texts that differ, none of them a value of another type.
pub fn is_header(first: &Record) -> bool {
    let names: Vec<&[u8]> = first.fields().map(|(field, _)| field).collect();
    let is_name = |name: &&[u8]| {
        let mut guess = crate::guess::Guess::default();
        guess.add_text(name);
        !name.trim_ascii().is_empty() && guess.is_text() && !name[0].is_ascii_digit()
    };
    let differ = names.iter().enumerate().all(|(at, name)| !names[..at].contains(name));
    differ && names.iter().all(is_name)
}

/// A file's beginning, without the mark that some programs write first.
///
/// # Errors
/// The system's.
pub fn beginning(reader: &mut impl Read, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut beginning = Vec::new();
    reader.take(bytes).read_to_end(&mut beginning)?;
    Ok(beginning)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAS: Dialect = Dialect { delimiter: b',', quote: b'"', escape: b'"' };

    fn read(text: &str, dialect: Dialect) -> Result<Vec<(u64, Vec<String>)>> {
        let mut reader = CsvReader::new(text.as_bytes(), dialect);
        let (mut record, mut all) = (Record::default(), Vec::new());
        while reader.read(&mut record)? {
            let shown = |(field, is_quoted): (&[u8], bool)| {
                format!("{}{}", String::from_utf8_lossy(field), if is_quoted { "'" } else { "" })
            };
            all.push((record.line, record.fields().map(shown).collect()));
        }
        Ok(all)
    }

    #[test]
    fn records_know_their_lines_and_quotes() {
        let text = "a,b\r\n\n1,\"x, \"\"y\"\"\r\nz\"\n,\"\"\n5\" pipe,say \"hi\"\nlast,";
        let fields = |fields: [&str; 2]| fields.map(str::to_owned).to_vec();
        let expected = [
            (1, fields(["a", "b"])),
            (3, fields(["1", "x, \"y\"\r\nz'"])),
            (5, fields(["", "'"])),
            (6, fields(["5\" pipe", "say \"hi\""])),
            (7, fields(["last", ""])),
        ];
        assert_eq!(read(text, COMMAS), Ok(expected.to_vec()));
        let escaped = Dialect { delimiter: b';', quote: b'\'', escape: b'\\' };
        assert_eq!(read("'it\\'s \\\\';2", escaped), Ok(vec![(1, fields(["it's \\'", "2"]))]));
    }

    #[test]
    fn wrong_quotes_are_errors_with_their_line() {
        assert_eq!(
            read("a\n\"b\nc", COMMAS),
            Err("line 2: field 1 of this record begins with a quote, and no quote ends it".to_owned())
        );
        assert_eq!(read("a,b\n1,\"b\"c", COMMAS), Err("line 2: field 2 goes on after its closing quote".to_owned()));
    }

    #[test]
    fn delimiters_and_headers_are_found() {
        assert_eq!(detect(b"a;b,c;d\n1;2,5;3\n4;5,5;6\n", b'"', b'"'), b';');
        assert_eq!(detect(b"a\tb\n1,5\t2\n", b'"', b'"'), b'\t');
        assert_eq!(detect(b"id,\"a|b\"\n1,\"x|y|z\"\n", b'"', b'"'), b',');
        assert_eq!(detect(b"one\ntwo\n", b'"', b'"'), b',');
        let header = |line: &str| {
            let mut record = Record::default();
            CsvReader::new(line.as_bytes(), COMMAS).read(&mut record).expect("it is right");
            is_header(&record)
        };
        assert!(header("id,Name of it,created_at"));
        assert!(!header("1,name") && !header("id,id") && !header("id,") && !header("2024-01-01,x") && !header("007,x"));
    }
}
