//! Columns of batches as the values that Parquet's encoders take.

use bytes::Bytes;
use parquet::data_type::{ByteArray, FixedLenByteArray};

use melba_fmgr::{Session, io};
use melba_types::datetime::{
    DATE_INFINITY, DATE_NEGATIVE_INFINITY, IntervalStyle, TIMESTAMP_INFINITY, TIMESTAMP_NEGATIVE_INFINITY, UNIX_EPOCH_DATE,
    UNIX_EPOCH_MICROS,
};
use melba_types::{ByteStrings, Column, ColumnData, Datum, DbError, Numeric, Result, bail, err, interval};

use crate::mapping::Form;

/// Values without nulls.
pub(crate) enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl Values {
    /// Room for the values of a form.
    pub fn new(form: Form, rows: usize) -> Values {
        use parquet::basic::Type;
        match form.physical() {
            Type::BOOLEAN => Values::Bool(Vec::with_capacity(rows)),
            Type::INT32 => Values::Int32(Vec::with_capacity(rows)),
            Type::INT64 => Values::Int64(Vec::with_capacity(rows)),
            Type::FLOAT => Values::Float(Vec::with_capacity(rows)),
            Type::DOUBLE => Values::Double(Vec::with_capacity(rows)),
            Type::FIXED_LEN_BYTE_ARRAY => Values::Fixed(Vec::with_capacity(rows)),
            _ => Values::Bytes(Vec::with_capacity(rows)),
        }
    }

    /// The values of a column, which may have nulls.
    ///
    /// # Errors
    /// The row of a value that the form cannot hold, and why.
    pub fn of(session: &dyn Session, form: Form, column: Column) -> Result<Values, (usize, DbError)> {
        if let Some(values) = whole_column(form, &column).map_err(|row| (row, out_of_range(form)))? {
            return Ok(values);
        }
        if let (Form::Text | Form::Json | Form::Bytes, ColumnData::Text(_) | ColumnData::Bytes(_)) = (form, &column.data) {
            return Ok(Values::Bytes(strings(column)));
        }
        let mut values = Values::new(form, column.len());
        for row in 0..column.len() {
            if !column.is_null(row) {
                values.push(session, form, &column.get(row)).map_err(|e| (row, e))?;
            }
        }
        Ok(values)
    }

    /// Appends a value that is not null.
    pub fn push(&mut self, session: &dyn Session, form: Form, value: &Datum) -> Result<()> {
        match self {
            Values::Bool(out) => out.push(value.as_bool()),
            Values::Float(out) => out.push(value.as_f32()),
            Values::Double(out) => out.push(value.as_f64()),
            Values::Int32(out) => out.push(match (form, value) {
                (Form::Int2, Datum::Int2(v)) => i32::from(*v),
                (Form::Oid, Datum::Oid(v)) => *v as i32,
                (Form::Date, Datum::Int4(v)) => unix_date(*v).ok_or_else(|| out_of_range(form))?,
                (Form::Decimal { .. }, _) => mantissa(form, value)?.try_into().map_err(|_| out_of_range(form))?,
                _ => value.as_i32(),
            }),
            Values::Int64(out) => out.push(match form {
                Form::Timestamp { .. } => unix_micros(value.as_i64()).ok_or_else(|| out_of_range(form))?,
                Form::Decimal { .. } => mantissa(form, value)?.try_into().map_err(|_| out_of_range(form))?,
                _ => value.as_i64(),
            }),
            Values::Fixed(out) => {
                let bytes = match form {
                    Form::Decimal { .. } => {
                        let width = form.fixed_bytes() as usize;
                        mantissa(form, value)?.to_be_bytes()[16 - width..].to_vec()
                    }
                    _ => value.as_uuid().to_vec(),
                };
                out.push(FixedLenByteArray::from(bytes));
            }
            Values::Bytes(out) => out.push(ByteArray::from(bytes_of(session, form, value)?)),
        }
        Ok(())
    }
}

fn bytes_of(session: &dyn Session, form: Form, value: &Datum) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match (form, value) {
        (Form::Text | Form::Json, Datum::Text(text)) => out.extend_from_slice(text.as_bytes()),
        (Form::Bytes, Datum::Bytes(bytes)) => out.extend_from_slice(bytes),
        (Form::Interval, Datum::Interval(interval)) => interval::write(interval, IntervalStyle::Postgres, &mut out),
        (Form::Output(ty) | Form::JsonOutput(ty), _) => io::text_out(session, ty, value, &mut out)?,
        _ => bail!(INTERNAL_ERROR, "a value of another type than its column's"),
    }
    Ok(out)
}

/// A decimal's digits as a whole number.
fn mantissa(form: Form, value: &Datum) -> Result<i128> {
    let Form::Decimal { precision, scale } = form else { bail!(INTERNAL_ERROR, "a decimal without a scale") };
    let mantissa = match value {
        Datum::Numeric(value) => digits(value, scale),
        _ => None,
    };
    mantissa.filter(|mantissa| mantissa.unsigned_abs() < 10u128.pow(precision as u32)).ok_or_else(|| out_of_range(form))
}

fn digits(value: &Numeric, scale: u16) -> Option<i128> {
    match value.small_parts() {
        Some((mantissa, own)) if own == scale => Some(i128::from(mantissa)),
        _ => value.mantissa_at(scale),
    }
}

/// Columns of the usual types as a whole; otherwise `None`.
///
/// # Errors
/// The row of a value out of range.
fn whole_column(form: Form, column: &Column) -> Result<Option<Values>, usize> {
    Ok(Some(match (form, &column.data) {
        (Form::Bool, ColumnData::Bool(v)) => Values::Bool(valid(column, v)),
        (Form::Int2, ColumnData::Int2(v)) => Values::Int32(mapped(column, v, |v| Some(i32::from(v)))?),
        (Form::Int4, ColumnData::Int4(v)) => Values::Int32(valid(column, v)),
        (Form::Oid, ColumnData::Oid(v)) => Values::Int32(mapped(column, v, |v| Some(v as i32))?),
        (Form::Date, ColumnData::Int4(v)) => Values::Int32(mapped(column, v, unix_date)?),
        (Form::Int8 | Form::Time, ColumnData::Int8(v)) => Values::Int64(valid(column, v)),
        (Form::Timestamp { .. }, ColumnData::Int8(v)) => Values::Int64(mapped(column, v, unix_micros)?),
        (Form::Float4, ColumnData::Float4(v)) => Values::Float(valid(column, v)),
        (Form::Float8, ColumnData::Float8(v)) => Values::Double(valid(column, v)),
        (Form::Decimal { precision: precision @ ..=18, scale }, ColumnData::Numeric(v)) if v.scale == scale => {
            let limit = 10i64.pow(precision as u32);
            let fits = |v: i64| (-limit < v && v < limit).then_some(v);
            match precision {
                ..=9 => Values::Int32(mapped(column, &v.values, |v| fits(v).map(|v| v as i32))?),
                _ => Values::Int64(mapped(column, &v.values, fits)?),
            }
        }
        _ => return Ok(None),
    }))
}

fn valid<T: Copy>(column: &Column, values: &[T]) -> Vec<T> {
    match &column.validity {
        None => values.to_vec(),
        Some(validity) => values.iter().enumerate().filter(|(row, _)| validity.get(*row)).map(|(_, v)| *v).collect(),
    }
}

fn mapped<T: Copy, U>(column: &Column, values: &[T], map: impl Fn(T) -> Option<U>) -> Result<Vec<U>, usize> {
    let rows = values.iter().enumerate().filter(|(row, _)| column.validity.as_ref().is_none_or(|validity| validity.get(*row)));
    rows.map(|(row, value)| map(*value).ok_or(row)).collect()
}

/// Strings that share the column's bytes.
fn strings(column: Column) -> Vec<ByteArray> {
    let Column { data, validity } = column;
    let (ColumnData::Text(ByteStrings { ends, bytes }) | ColumnData::Bytes(ByteStrings { ends, bytes })) = data else {
        return Vec::new();
    };
    let bytes = Bytes::from(bytes);
    let mut start = 0;
    let mut out = Vec::with_capacity(ends.len());
    for (row, end) in ends.into_iter().enumerate() {
        if validity.as_ref().is_none_or(|validity| validity.get(row)) {
            out.push(ByteArray::from(bytes.slice(start..end as usize)));
        }
        start = end as usize;
    }
    out
}

/// Days since 1970-01-01.
fn unix_date(date: i32) -> Option<i32> {
    match date {
        DATE_INFINITY => Some(i32::MAX),
        DATE_NEGATIVE_INFINITY => Some(-i32::MAX),
        date => date.checked_sub(UNIX_EPOCH_DATE).filter(|days| *days != i32::MAX),
    }
}

/// Microseconds since 1970-01-01.
fn unix_micros(timestamp: i64) -> Option<i64> {
    match timestamp {
        TIMESTAMP_INFINITY => Some(i64::MAX),
        TIMESTAMP_NEGATIVE_INFINITY => Some(-i64::MAX),
        timestamp => timestamp.checked_sub(UNIX_EPOCH_MICROS).filter(|micros| *micros != i64::MAX),
    }
}

fn out_of_range(form: Form) -> DbError {
    match form {
        Form::Decimal { precision, scale } => err!(NUMERIC_VALUE_OUT_OF_RANGE, "value is no decimal of Parquet")
            .detail(format!("A DECIMAL({precision},{scale}) holds neither NaN nor more digits."))
            .hint("Cast the column to numeric without a scale, which is written as text, or to double precision."),
        Form::Date => err!(DATETIME_FIELD_OVERFLOW, "date out of range for Parquet"),
        _ => err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range for Parquet"),
    }
}
