//! Parts of texts by characters: substr and left with constant positions.

use std::ops::Range;

use melba_fmgr::{CallInfo, Operand, VectorFn};
use melba_types::{ByteStrings, Column, ColumnData, Datum, Kind, Result};

use super::fallback;
use crate::bytea::substring_range;
use crate::text::functions::slice;

pub const VECTORS: &[(&str, VectorFn)] = &[
    ("text_substr", |call, operands, rows| match operands {
        [Operand::Column(column), Operand::Scalar(Datum::Int4(from)), Operand::Scalar(Datum::Int4(count))] if *count >= 0 => {
            part(call, "text_substr", column, operands, rows, |bytes| substring_range(*from, Some(*count), bytes))
        }
        _ => fallback(call, "text_substr", operands, rows, Kind::Text),
    }),
    ("text_substr_no_len", |call, operands, rows| match operands {
        [Operand::Column(column), Operand::Scalar(Datum::Int4(from))] => {
            part(call, "text_substr_no_len", column, operands, rows, |bytes| substring_range(*from, None, bytes))
        }
        _ => fallback(call, "text_substr_no_len", operands, rows, Kind::Text),
    }),
    ("text_left", |call, operands, rows| match operands {
        [Operand::Column(column), Operand::Scalar(Datum::Int4(count))] if *count >= 0 => {
            part(call, "text_left", column, operands, rows, |bytes| Ok(0..bytes.min(*count as usize)))
        }
        _ => fallback(call, "text_left", operands, rows, Kind::Text),
    }),
];

/// The characters of each value in a range that `range` computes from its length in bytes, which is at least that in characters.
fn part(
    call: &CallInfo<'_>,
    name: &str,
    column: &Column,
    operands: &[Operand<'_>],
    rows: usize,
    range: impl Fn(usize) -> Result<Range<usize>>,
) -> Result<Column> {
    let ColumnData::Text(values) = &column.data else { return fallback(call, name, operands, rows, Kind::Text) };
    let mut out = ByteStrings { ends: Vec::with_capacity(rows), bytes: Vec::new() };
    if values.bytes.is_ascii() {
        let whole = range(usize::MAX >> 1)?;
        let part = |row| {
            let Range { start, end } = values.range(row);
            end.min(start.saturating_add(whole.start))..end.min(start.saturating_add(whole.end))
        };
        out.push_parts(&values.bytes, (0..rows).map(part));
    } else {
        for row in 0..rows {
            // Text in columns is UTF-8, except in a damaged file.
            let value = String::from_utf8_lossy(values.get(row));
            out.push(slice(&value, range(value.len())?).as_bytes());
        }
    }
    Ok(Column { data: ColumnData::Text(out), validity: column.validity.clone() })
}
