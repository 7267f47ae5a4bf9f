//! COPY TO: batches as text, CSV or binary, or in row groups of a Parquet file.

use std::sync::Arc;

use melba_encoding::{Encoding, utf8};
use melba_engine::Held;
use melba_fmgr::{Session, io};
use melba_parquet::Written;
use melba_types::{Batch, Oid, Result};

use super::binary::SIGNATURE;
use super::options::{CopyFormat, CopyOptions, Header};
use super::parquet_out::ParquetOut;

/// A column of the rows.
pub type CopiedColumn = Written;

/// Where the rows come from.
pub type Source = Box<dyn FnMut() -> Result<Option<Batch>> + Send>;

/// A COPY TO in progress.
pub struct CopyTo {
    session: Arc<dyn Session>,
    source: Source,
    options: CopyOptions,
    names: Vec<Arc<str>>,
    types: Vec<Oid>,
    force_quote: Vec<bool>,
    batch: Batch,
    at: usize,
    state: CopyState,
    rows: u64,
    value: Vec<u8>,
    /// Of rows as text.
    encoding: Encoding,
    /// Takes all rows where the format is Parquet.
    parquet: Option<ParquetOut>,
}

#[derive(Clone, Copy, PartialEq)]
enum CopyState {
    Start,
    Rows,
    Done,
}

impl CopyTo {
    /// `held`: where rows are announced that wait to be written.
    pub fn new(
        session: Arc<dyn Session>,
        source: Source,
        columns: Vec<CopiedColumn>,
        options: CopyOptions,
        held: Held,
    ) -> CopyTo {
        let names: Vec<Arc<str>> = columns.iter().map(|c| Arc::clone(&c.name)).collect();
        let types = columns.iter().map(|c| c.ty).collect();
        let is_parquet = options.format == CopyFormat::Parquet;
        CopyTo {
            parquet: is_parquet.then(|| ParquetOut::new(Arc::clone(&session), columns, &options, held)),
            encoding: options.text_encoding(&*session),
            session,
            source,
            force_quote: names.iter().map(|n| options.force_quote.contains(n)).collect(),
            options,
            names,
            types,
            batch: Batch::default(),
            at: 0,
            state: CopyState::Start,
            rows: 0,
            value: Vec::new(),
        }
    }

    /// Appends the next row, header or trailer; false at the end.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if let Some(parquet) = &mut self.parquet {
            let more = parquet.next(&mut *self.source, out)?;
            self.rows = parquet.rows();
            return Ok(more);
        }
        if self.encoding.is_plain() {
            return self.next_plain(out);
        }
        let start = out.len();
        let more = self.next_plain(out)?;
        let text = utf8(&out[start..])?;
        let encoded = self.encoding.encode(text)?.into_owned();
        out.truncate(start);
        out.extend_from_slice(&encoded);
        Ok(more)
    }

    /// The same in UTF-8.
    fn next_plain(&mut self, out: &mut Vec<u8>) -> Result<bool> {
        if self.state == CopyState::Start {
            self.state = CopyState::Rows;
            if self.options.format == CopyFormat::Binary {
                out.extend_from_slice(SIGNATURE);
                out.extend_from_slice(&[0; 8]);
                // The header is sent with the first row, as in PostgreSQL.
            } else if self.options.header != Header::Absent {
                self.put_header(out);
                return Ok(true);
            }
        }
        loop {
            if self.state == CopyState::Done {
                return Ok(false);
            }
            if self.at < self.batch.rows {
                self.put_row(self.at, out)?;
                self.at += 1;
                self.rows += 1;
                return Ok(true);
            }
            match (self.source)()? {
                Some(batch) => {
                    self.batch = batch;
                    self.at = 0;
                }
                None => {
                    self.state = CopyState::Done;
                    if self.options.format == CopyFormat::Binary {
                        out.extend_from_slice(&(-1i16).to_be_bytes());
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Rows given so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn put_header(&mut self, out: &mut Vec<u8>) {
        for (i, name) in self.names.iter().enumerate() {
            if i > 0 {
                out.push(self.options.delimiter);
            }
            match self.options.format {
                CopyFormat::Csv => put_csv(name.as_bytes(), &self.options, false, self.names.len() == 1, out),
                _ => put_text(name.as_bytes(), self.options.delimiter, out),
            }
        }
        out.push(b'\n');
    }

    fn put_row(&mut self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let binary = self.options.format == CopyFormat::Binary;
        if binary {
            out.extend_from_slice(&(self.types.len() as i16).to_be_bytes());
        }
        for (i, ty) in self.types.iter().enumerate() {
            let column = &self.batch.columns[i];
            if i > 0 && !binary {
                out.push(self.options.delimiter);
            }
            if column.is_null(row) {
                match binary {
                    true => out.extend_from_slice(&(-1i32).to_be_bytes()),
                    false => out.extend_from_slice(self.options.null.as_bytes()),
                }
                continue;
            }
            self.value.clear();
            let value = column.get(row);
            if binary {
                io::binary_out(&*self.session, *ty, &value, &mut self.value)?;
                out.extend_from_slice(&(self.value.len() as i32).to_be_bytes());
                out.extend_from_slice(&self.value);
                continue;
            }
            io::text_out(&*self.session, *ty, &value, &mut self.value)?;
            match self.options.format {
                CopyFormat::Csv => put_csv(&self.value, &self.options, self.force_quote[i], self.types.len() == 1, out),
                _ => put_text(&self.value, self.options.delimiter, out),
            }
        }
        if !binary {
            out.push(b'\n');
        }
        Ok(())
    }
}

fn put_text(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    for &c in value {
        let letter = match c {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            c if c == delimiter => c,
            c => {
                out.push(c);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

fn put_csv(value: &[u8], options: &CopyOptions, force: bool, single: bool, out: &mut Vec<u8>) {
    let special = |c: &u8| *c == options.delimiter || *c == options.quote || matches!(*c, b'\n' | b'\r');
    // A lone \. would end the data.
    let quoted = force || value == options.null.as_bytes() || value.iter().any(special) || single && value == b"\\.";
    if !quoted {
        out.extend_from_slice(value);
        return;
    }
    out.push(options.quote);
    for &c in value {
        if c == options.quote || c == options.escape {
            out.push(options.escape);
        }
        out.push(c);
    }
    out.push(options.quote);
}
