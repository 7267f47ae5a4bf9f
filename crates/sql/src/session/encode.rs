//! Rows to DataRow messages: the one place where values are written for clients.

use melba_functions::FormatSettings;
use melba_protocol::{Format, Output};
use melba_types::{Batch, Column, ColumnData, Datum, Oid, Result, oids};

use super::client::Client;
use super::pipeline::ValueIo;
use super::portal::ResultColumn;

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
    pub fn new(columns: &[ResultColumn], formats: &[Format], io: &'a ValueIo<'a>) -> RowEncoder<'a> {
        let columns = columns.iter().enumerate().map(|(i, column)| {
            let format = formats.get(i).copied().unwrap_or(Format::Text);
            (column.ty, format, path(column.ty, format, io.format()))
        });
        RowEncoder { columns: columns.collect(), io }
    }

    /// Sends rows `range` of `batch`.
    pub fn send(&self, batch: &Batch, range: std::ops::Range<usize>, client: &mut dyn Client) -> Result<()> {
        for row in range {
            let long = self.encode(batch, row, client.output())?;
            if long.is_empty() { client.flush_when_large() } else { client.flush_around(&long) }?;
        }
        Ok(())
    }

    /// Appends a row; gives its long values, which are to be sent from where they are.
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
                    Format::Text => self.io.output(ty, &datum, bytes),
                    Format::Binary => self.io.send(ty, &datum, bytes),
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
        oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::NAME | oids::JSON | oids::UNKNOWN | oids::CSTRING => Path::Text,
        oids::BYTEA if format == Format::Binary => Path::Bytes,
        _ => Path::General,
    }
}

/// The bytes of a value that is sent as it is.
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
            return out.value_with(|b| float_text(f64::from(v[row]), ryu::Buffer::new().format(v[row]), 6, b));
        }
        ColumnData::Float8(v) => return out.value_with(|b| float_text(v[row], ryu::Buffer::new().format(v[row]), 15, b)),
        other => panic!("a column of numbers holds {other:?}"),
    }
    Ok(())
}

/// PostgreSQL's shortest form from Ryu's: the same digits, another exponent notation.
fn float_text(value: f64, shortest: &str, plain_digits: i32, out: &mut Vec<u8>) -> Result<()> {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return Ok(());
    }
    if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
        return Ok(());
    }
    let (negative, shortest) = shortest.strip_prefix('-').map_or((false, shortest), |s| (true, s));
    if negative {
        out.push(b'-');
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((shortest, "0"));
    let exponent: i32 = exponent.parse().expect("ryu prints a number");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [0u8; 40];
    let mut n = 0;
    for b in whole.bytes().chain(fraction.bytes()) {
        digits[n] = b;
        n += 1;
    }
    // digits × 10^point, the decimal point standing after `point` digits.
    let mut point = whole.len() as i32 + exponent;
    let leading = digits[..n].iter().take_while(|d| **d == b'0').count().min(n - 1);
    let mut end = n;
    while end > leading + 1 && digits[end - 1] == b'0' {
        end -= 1;
    }
    let digits = &digits[leading..end];
    if digits == b"0" {
        out.push(b'0');
        return Ok(());
    }
    point -= leading as i32;
    write_decimal(digits, point, plain_digits, out);
    Ok(())
}

/// `0.digits × 10^point` in the notation PostgreSQL chooses: scientific below -4 and from `plain_digits` on
/// (6 for float4, 15 for float8).
fn write_decimal(digits: &[u8], point: i32, plain_digits: i32, out: &mut Vec<u8>) {
    let exponent = point - 1;
    if !(-4..plain_digits).contains(&exponent) {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        out.push(if exponent < 0 { b'-' } else { b'+' });
        let absolute = exponent.unsigned_abs();
        if absolute < 10 {
            out.push(b'0');
        }
        out.extend_from_slice(itoa::Buffer::new().format(absolute).as_bytes());
    } else if point <= 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(b'0', (-point) as usize));
        out.extend_from_slice(digits);
    } else if digits.len() <= point as usize {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', point as usize - digits.len()));
    } else {
        out.extend_from_slice(&digits[..point as usize]);
        out.push(b'.');
        out.extend_from_slice(&digits[point as usize..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_postgresql_prints_them() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-300, "-2.5e-300"),
            (f64::INFINITY, "Infinity"),
            (0.1 + 0.2, "0.30000000000000004"),
            (12345.678, "12345.678"),
        ] {
            let mut out = Vec::new();
            float_text(value, ryu::Buffer::new().format(value), 15, &mut out).unwrap();
            assert_eq!(std::str::from_utf8(&out).unwrap(), text);
        }
    }
}
