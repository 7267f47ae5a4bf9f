//! Comparisons and LIKE of text.

use melba_fmgr::{CallInfo, Operand, VectorFn};
use melba_types::{ByteStrings, Column, ColumnData, Datum, Kind, Result};
use memchr::memmem::Finder;

use super::{fallback, validity};
use crate::text::like::{PrefixKind, fixed_prefix, matches};

/// An operand's bytes by row.
enum Bytes<'a> {
    Many(&'a ByteStrings),
    One(&'a [u8]),
}

impl<'a> Bytes<'a> {
    fn of(operand: &'a Operand<'_>) -> Option<Bytes<'a>> {
        match operand {
            Operand::Column(column) => match &column.data {
                ColumnData::Text(v) | ColumnData::Bytes(v) => Some(Bytes::Many(v)),
                _ => None,
            },
            Operand::Scalar(Datum::Text(v)) => Some(Bytes::One(v.as_bytes())),
            Operand::Scalar(Datum::Bytes(v)) => Some(Bytes::One(v)),
            Operand::Scalar(_) => None,
        }
    }

    #[inline]
    fn get(&self, row: usize) -> &'a [u8] {
        match self {
            Bytes::Many(v) => v.get(row),
            Bytes::One(v) => v,
        }
    }
}

/// Without the blanks at the end, which do not count.
#[inline]
fn unpadded(value: &[u8]) -> &[u8] {
    &value[..value.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1)]
}

macro_rules! comparisons {
    ($($name:literal |$a:ident, $b:ident| $test:expr;)+) => {
        &[
            $(($name, |call, operands, rows| match (Bytes::of(&operands[0]), Bytes::of(&operands[1])) {
                (Some(left), Some(right)) => {
                    let test = |row| {
                        let ($a, $b) = (left.get(row), right.get(row));
                        $test
                    };
                    let data = ColumnData::Bool((0..rows).map(test).collect());
                    Ok(Column { data, validity: validity(operands, rows) })
                }
                _ => fallback(call, $name, operands, rows, Kind::Bool),
            }),)+
            ("textlike", |call, operands, rows| like(call, operands, rows, "textlike", false)),
            ("textnlike", |call, operands, rows| like(call, operands, rows, "textnlike", true)),
            ("text_starts_with", |call, operands, rows| match (Bytes::of(&operands[0]), Bytes::of(&operands[1])) {
                (Some(left), Some(right)) => {
                    let data = ColumnData::Bool((0..rows).map(|row| left.get(row).starts_with(right.get(row))).collect());
                    Ok(Column { data, validity: validity(operands, rows) })
                }
                _ => fallback(call, "text_starts_with", operands, rows, Kind::Bool),
            }),
        ]
    };
}

pub const VECTORS: &[(&str, VectorFn)] = comparisons! {
    "texteq" |a, b| a == b;
    "textne" |a, b| a != b;
    "text_lt" |a, b| a < b;
    "text_le" |a, b| a <= b;
    "text_gt" |a, b| a > b;
    "text_ge" |a, b| a >= b;
    "bpchareq" |a, b| unpadded(a) == unpadded(b);
    "bpcharne" |a, b| unpadded(a) != unpadded(b);
    "bpcharlt" |a, b| unpadded(a) < unpadded(b);
    "bpcharle" |a, b| unpadded(a) <= unpadded(b);
    "bpchargt" |a, b| unpadded(a) > unpadded(b);
    "bpcharge" |a, b| unpadded(a) >= unpadded(b);
    "byteaeq" |a, b| a == b;
    "byteane" |a, b| a != b;
    "bytealt" |a, b| a < b;
    "byteale" |a, b| a <= b;
    "byteagt" |a, b| a > b;
    "byteage" |a, b| a >= b;
};

/// The test of a constant pattern, when it is simple.
enum Simple<'a> {
    Exact(String),
    Prefix(String),
    Contains(Box<Finder<'a>>),
    Pieces(Pieces<'a>),
}

/// Literals with a `%` between any two: the first begins the value, the last ends it, and the others follow each other between.
struct Pieces<'a> {
    first: &'a [u8],
    between: Vec<Finder<'a>>,
    last: &'a [u8],
}

impl<'a> Pieces<'a> {
    /// Of a pattern that has a `%`, and nothing else that is not literal.
    fn new(pattern: &'a str) -> Option<Pieces<'a>> {
        let (first, rest) = pattern.split_once('%')?;
        let (between, last) = rest.rsplit_once('%').unwrap_or(("", rest));
        let between = between.split('%').filter(|piece| !piece.is_empty()).map(Finder::new).collect();
        Some(Pieces { first: first.as_bytes(), between, last: last.as_bytes() })
    }

    /// The first place where each piece is found leaves most to those behind it.
    fn matches(&self, value: &[u8]) -> bool {
        let Some(mut rest) = value.strip_prefix(self.first).and_then(|rest| rest.strip_suffix(self.last)) else { return false };
        self.between.iter().all(|piece| match piece.find(rest) {
            Some(at) => {
                rest = &rest[at + piece.needle().len()..];
                true
            }
            None => false,
        })
    }
}

fn simple(pattern: &str) -> Option<Simple<'_>> {
    let (prefix, kind) = fixed_prefix(pattern);
    match kind {
        PrefixKind::Exact => return Some(Simple::Exact(prefix)),
        PrefixKind::PrefixOnly => return Some(Simple::Prefix(prefix)),
        PrefixKind::Partial => {}
    }
    if pattern.contains(['_', '\\']) {
        return None;
    }
    let mut pieces = Pieces::new(pattern)?;
    Some(match &mut pieces {
        Pieces { first: b"", between, last: b"" } if between.len() == 1 => Simple::Contains(Box::new(between.swap_remove(0))),
        _ => Simple::Pieces(pieces),
    })
}

fn like(call: &CallInfo<'_>, operands: &[Operand<'_>], rows: usize, name: &str, negate: bool) -> Result<Column> {
    let (Operand::Column(column), Operand::Scalar(Datum::Text(pattern))) = (&operands[0], &operands[1]) else {
        return fallback(call, name, operands, rows, Kind::Bool);
    };
    let ColumnData::Text(values) = &column.data else {
        return fallback(call, name, operands, rows, Kind::Bool);
    };
    let test = |f: &dyn Fn(&[u8]) -> bool| (0..rows).map(|row| f(values.get(row)) != negate).collect::<Vec<bool>>();
    let data = match simple(pattern) {
        Some(Simple::Exact(text)) => test(&|v| v == text.as_bytes()),
        Some(Simple::Prefix(prefix)) => test(&|v| v.starts_with(prefix.as_bytes())),
        Some(Simple::Contains(finder)) => test(&|v| finder.find(v).is_some()),
        Some(Simple::Pieces(pieces)) => test(&|v| pieces.matches(v)),
        None => {
            let mut out = Vec::with_capacity(rows);
            for row in 0..rows {
                let matched = if column.is_null(row) { false } else { matches(values.get(row), pattern.as_bytes(), true)? };
                out.push(matched != negate);
            }
            out
        }
    };
    Ok(Column { data: ColumnData::Bool(data), validity: column.validity.clone() })
}
