//! Rows to DataRow messages: the only place where values are written for clients.

use melba_fmgr::FormatSettings;
use melba_protocol::{Format, Output};
use melba_statement::client::Client;
use melba_statement::outcome::ResultColumn;
use melba_statement::value_io::{ValueIo, unknown_format};
use melba_types::{Batch, Column, ColumnData, Datum, Oid, Result, float, oids};

/// Longer values are not copied into the output.
const LONG_BYTES_MIN: usize = 64 << 10;

/// How one column is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    /// Fixed-width kinds whose binary form is the big-endian number.
    Number,
    Bool,
    /// The bytes of the text are both its forms.
    Text,
    /// The bytes are the binary form.
    Bytes,
    /// Through the type's output or send function.
    General,
}

/// Writes the rows of one result.
pub struct RowEncoder<'a> {
    columns: Vec<(Oid, Format, Path)>,
    io: &'a ValueIo<'a>,
}

impl<'a> RowEncoder<'a> {
    /// # Errors
    /// 22023 for a format that does not exist.
    pub fn new(columns: &[ResultColumn], formats: &[Format], io: &'a ValueIo<'a>) -> Result<RowEncoder<'a>> {
        let columns = columns.iter().enumerate().map(|(i, column)| match formats.get(i).copied().unwrap_or(Format::Text) {
            Format::Unknown(code) => Err(unknown_format(code)),
            format => Ok((column.ty, format, path(column.ty, format, io.format()))),
        });
        Ok(RowEncoder { columns: columns.collect::<Result<_>>()?, io })
    }

    /// Sends rows `range` of `batch`.
    pub fn send(&self, batch: &Batch, range: std::ops::Range<usize>, client: &mut dyn Client) -> Result<()> {
        for row in range {
            let long = self.encode(batch, row, client.output())?;
            if long.is_empty() { client.flush_when_large() } else { client.flush_around(&long) }?;
        }
        Ok(())
    }

    /// Appends a row; returns its long values, which are sent from their place.
    fn encode<'b>(&self, batch: &'b Batch, row: usize, out: &mut Output) -> Result<Vec<(usize, &'b [u8])>> {
        let mut long = Vec::new();
        out.begin_data_row(self.columns.len());
        for ((ty, format, path), column) in self.columns.iter().zip(&batch.columns) {
            if column.is_null(row) {
                out.null();
            } else if let Some(bytes) = string(*path, column, row) {
                if bytes.len() < LONG_BYTES_MIN {
                    out.value(bytes);
                } else {
                    long.push((out.value_elsewhere(bytes.len()), bytes));
                }
            } else {
                self.encode_value(*ty, *format, *path, column, row, out)?;
            }
        }
        out.end();
        Ok(long)
    }

    fn encode_value(&self, ty: Oid, format: Format, path: Path, column: &Column, row: usize, out: &mut Output) -> Result<()> {
        let binary = format == Format::Binary;
        match (path, &column.data) {
            (Path::Number, data) => return encode_number(data, row, binary, out),
            (Path::Bool, ColumnData::Bool(v)) if binary => out.value(&[u8::from(v[row])]),
            (Path::Bool, ColumnData::Bool(v)) => out.value(if v[row] { b"t" } else { b"f" }),
            _ => {
                let datum = column.get(row);
                return out.value_with(|bytes| match format {
                    Format::Binary => self.io.send(ty, &datum, bytes),
                    _ => self.io.output(ty, &datum, bytes),
                });
            }
        }
        Ok(())
    }
}

fn path(ty: Oid, format: Format, settings: &FormatSettings) -> Path {
    match ty {
        oids::BOOL => Path::Bool,
        oids::INT2 | oids::INT4 | oids::INT8 | oids::OID | oids::XID | oids::CID => Path::Number,
        oids::FLOAT4 | oids::FLOAT8 if format == Format::Binary || settings.extra_float_digits > 0 => Path::Number,
        oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::NAME | oids::JSON | oids::UNKNOWN | oids::CSTRING
            if settings.client_encoding.is_plain() =>
        {
            Path::Text
        }
        oids::BYTEA if format == Format::Binary => Path::Bytes,
        _ => Path::General,
    }
}

/// The bytes of a value that is sent unchanged.
fn string(path: Path, column: &Column, row: usize) -> Option<&[u8]> {
    match (path, &column.data) {
        (Path::Text, ColumnData::Text(v)) | (Path::Bytes, ColumnData::Bytes(v)) => Some(v.get(row)),
        (Path::Text, ColumnData::Datum(v)) => match &v[row] {
            Datum::Text(text) => Some(text.as_bytes()),
            _ => None,
        },
        (Path::Bytes, ColumnData::Datum(v)) => match &v[row] {
            Datum::Bytes(bytes) => Some(bytes),
            _ => None,
        },
        _ => None,
    }
}

fn encode_number(data: &ColumnData, row: usize, binary: bool, out: &mut Output) -> Result<()> {
    let mut buffer = itoa::Buffer::new();
    match data {
        ColumnData::Int2(v) if binary => out.value(&v[row].to_be_bytes()),
        ColumnData::Int4(v) if binary => out.value(&v[row].to_be_bytes()),
        ColumnData::Int8(v) if binary => out.value(&v[row].to_be_bytes()),
        ColumnData::Oid(v) if binary => out.value(&v[row].to_be_bytes()),
        ColumnData::Float4(v) if binary => out.value(&v[row].to_be_bytes()),
        ColumnData::Float8(v) if binary => out.value(&v[row].to_be_bytes()),
        ColumnData::Int2(v) => out.value(buffer.format(v[row]).as_bytes()),
        ColumnData::Int4(v) => out.value(buffer.format(v[row]).as_bytes()),
        ColumnData::Int8(v) => out.value(buffer.format(v[row]).as_bytes()),
        ColumnData::Oid(v) => out.value(buffer.format(v[row]).as_bytes()),
        ColumnData::Float4(v) => {
            return out.value_with(|b| {
                float::write_f32(b, v[row]);
                Ok(())
            });
        }
        ColumnData::Float8(v) => {
            return out.value_with(|b| {
                float::write_f64(b, v[row]);
                Ok(())
            });
        }
        other => panic!("a column of numbers holds {other:?}"),
    }
    Ok(())
}
