//! The sources of statements and of COPY's data: the terminal, a file, standard input.

use std::io::{BufRead, Result};

use crate::complete::Names;
use crate::scan::Scanner;
use crate::variables::Variables;

pub enum Line {
    /// Without its end.
    Text(String),
    End,
    /// Ctrl-C: the typed text is discarded.
    Interrupted,
}

/// The prompt before a typed line.
pub struct Prompt<'a> {
    /// The database; without one there is no connection.
    pub database: Option<&'a str>,
    pub is_superuser: bool,
    /// `I`, `T` or `E`, as the server says.
    pub transaction: u8,
    pub scanner: &'a Scanner,
    pub variables: &'a Variables,
}

impl Prompt<'_> {
    /// As psql's: `postgres=# `, `postgres-# ` for a continued statement, `postgres=*# ` in a transaction, `postgres=!# ` in a failed one.
    pub fn text(&self) -> String {
        let Some(database) = self.database else { return "!> ".to_owned() };
        let transaction = match self.transaction {
            b'T' => "*",
            b'E' => "!",
            _ => "",
        };
        let end = if self.is_superuser { '#' } else { '>' };
        format!("{database}{}{transaction}{end} ", self.scanner.prompt())
    }
}

pub trait Input {
    /// Sets the names that Tab completes from now on.
    fn set_names(&mut self, _: Names) {}

    /// Whether there is a Tab.
    fn completes(&self) -> bool {
        false
    }

    /// The next line of statements.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    fn line(&mut self, prompt: &Prompt) -> Result<Line>;

    /// The next line of data with its end, for COPY; `false` at the end, an error of `Interrupted` by Ctrl-C.
    fn data(&mut self, line: &mut Vec<u8>) -> Result<bool>;

    /// Lines read so far.
    fn number(&self) -> u64;
}

/// A file, or standard input that is no terminal.
pub struct Stream<R> {
    reader: R,
    number: u64,
}

impl<R: BufRead> Stream<R> {
    pub fn new(reader: R) -> Stream<R> {
        Stream { reader, number: 0 }
    }
}

impl<R: BufRead> Input for Stream<R> {
    fn line(&mut self, _: &Prompt) -> Result<Line> {
        let mut line = Vec::new();
        if !self.data(&mut line)? {
            return Ok(Line::End);
        }
        let text = String::from_utf8(line).map_err(|_| std::io::Error::other("the line is not UTF-8"))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        // Some editors begin files with a mark.
        let text = if self.number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        Ok(Line::Text(text.to_owned()))
    }

    fn data(&mut self, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let read = self.reader.read_until(b'\n', line)?;
        self.number += 1;
        Ok(read > 0)
    }

    fn number(&self) -> u64 {
        self.number
    }
}
