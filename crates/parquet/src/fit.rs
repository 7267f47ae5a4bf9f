//! Columns of the type next to a file's as columns of the table's type.
//!
//! The same type and wider numbers go over as they are, all else by the text forms of the two types: exactly the values that a COPY of
//! text would give. `may` says which pairs are let through at all.

use std::borrow::Cow;

use melba_fmgr::{Session, io, lookup};
use melba_types::{Column, ColumnData, Datum, Kind, Numeric, Oid, Result, err, limits, oids};

use crate::decode::RowError;

/// What values of a file are read into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// No domain.
    pub ty: Oid,
    pub typmod: i32,
}

/// Whether values of a type, next to a file's, may become values of another.
pub(crate) fn may(session: &dyn Session, from: Oid, to: Oid) -> bool {
    const NUMBERS: [Oid; 6] = [oids::INT2, oids::INT4, oids::INT8, oids::FLOAT4, oids::FLOAT8, oids::NUMERIC];
    let is_text = lookup::kind(session, to) == Some(Kind::Text);
    match from {
        _ if from == to => true,
        // Strings are read as COPY reads them.
        oids::TEXT => true,
        oids::JSON => is_text || to == oids::JSONB,
        oids::BYTEA => is_text,
        _ if is_text => true,
        _ if NUMBERS.contains(&from) => {
            NUMBERS.contains(&to) || to == oids::OID && matches!(from, oids::INT2 | oids::INT4 | oids::INT8)
        }
        oids::DATE => matches!(to, oids::TIMESTAMP | oids::TIMESTAMPTZ),
        oids::TIMESTAMP | oids::TIMESTAMPTZ => matches!(to, oids::TIMESTAMP | oids::TIMESTAMPTZ | oids::DATE),
        oids::TIME => to == oids::INTERVAL,
        _ => false,
    }
}

/// The values as values of the target's type.
///
/// # Errors
/// The row of a value that the type does not have, and why.
pub(crate) fn fit(session: &dyn Session, column: Column, from: (Oid, i32), to: Target) -> Result<Column, RowError> {
    // A file may call json what is none.
    let same = from.0 == to.ty && (to.typmod < 0 || to.typmod == from.1) && to.ty != oids::JSON;
    match (&column.data, to.ty) {
        _ if same => return Ok(column),
        (ColumnData::Text(_), _) if to.typmod < 0 && matches!(to.ty, oids::TEXT | oids::VARCHAR) => return Ok(column),
        (ColumnData::Int2(v), oids::INT4) => return Ok(Column::new(ColumnData::Int4(v.iter().map(|v| i32::from(*v)).collect()))),
        (ColumnData::Int2(v), oids::INT8) => return Ok(Column::new(ColumnData::Int8(v.iter().map(|v| i64::from(*v)).collect()))),
        (ColumnData::Int4(v), oids::INT8) if from.0 == oids::INT4 => {
            return Ok(Column::new(ColumnData::Int8(v.iter().map(|v| i64::from(*v)).collect())));
        }
        (ColumnData::Float4(v), oids::FLOAT8) => {
            return Ok(Column::new(ColumnData::Float8(v.iter().map(|v| f64::from(*v)).collect())));
        }
        _ => {}
    }
    let mut out = Column::with_capacity(lookup::kind(session, to.ty).unwrap_or(Kind::Text), column.len());
    let (mut text, mut ticker) = (Vec::new(), limits::Ticker::new());
    for row in 0..column.len() {
        ticker.step().map_err(|e| (row, e))?;
        out.push(value(session, &column, row, from.0, to, &mut text).map_err(|e| (row, e))?);
    }
    Ok(out)
}

fn value(session: &dyn Session, column: &Column, row: usize, from: Oid, to: Target, text: &mut Vec<u8>) -> Result<Datum> {
    let value = match (&column.data, to.ty) {
        (ColumnData::Text(strings), _) => {
            let text = String::from_utf8_lossy(strings.get(row));
            return io::text_in(session, to.ty, to.typmod, &text);
        }
        // Writers that mark no texts.
        (ColumnData::Bytes(strings), _) if from == oids::BYTEA && to.ty != oids::BYTEA => {
            return io::text_in(session, to.ty, to.typmod, utf8(strings.get(row))?);
        }
        _ => column.get(row),
    };
    // Not by the type's output function, whose digits are those of extra_float_digits.
    let float = match &value {
        Datum::Float4(v) if v.is_finite() => Some(v.to_string()),
        Datum::Float8(v) if v.is_finite() => Some(v.to_string()),
        _ => None,
    };
    match (&value, to.ty) {
        (Datum::Numeric(number), oids::NUMERIC) => return number.apply_typmod(to.typmod).map(Datum::Numeric),
        (Datum::Numeric(number), oids::INT2 | oids::INT4 | oids::INT8) if is_whole(number)? => return integer(number, to.ty),
        (Datum::Float4(_) | Datum::Float8(_), oids::INT2 | oids::INT4 | oids::INT8) => {
            // Whole ones: pandas has no integers in columns with nulls.
            if let Some(number) = float.as_deref().map(Numeric::parse).transpose()?
                && is_whole(&number)?
            {
                return integer(&number, to.ty);
            }
        }
        _ => {}
    }
    if let Some(float) = float
        && matches!(to.ty, oids::INT2 | oids::INT4 | oids::INT8 | oids::FLOAT4 | oids::FLOAT8 | oids::NUMERIC)
    {
        return io::text_in(session, to.ty, to.typmod, &float);
    }
    text.clear();
    io::text_out(session, from, &value, text)?;
    let text: Cow<'_, str> = String::from_utf8_lossy(text);
    io::text_in(session, to.ty, to.typmod, &text)
}

fn is_whole(number: &Numeric) -> Result<bool> {
    Ok(number.is_finite() && number.round(0)? == *number)
}

fn integer(number: &Numeric, ty: Oid) -> Result<Datum> {
    match ty {
        oids::INT2 => number.to_i16().map(Datum::Int2),
        oids::INT4 => number.to_i32().map(Datum::Int4),
        _ => number.to_i64().map(Datum::Int8),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&0) => Ok(text),
        _ => Err(err!(CHARACTER_NOT_IN_REPERTOIRE, "invalid byte sequence for encoding \"UTF8\"")),
    }
}
