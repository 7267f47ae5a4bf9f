//! Arithmetic and comparisons of numeric: on words where a column holds mantissas of one scale, and by value elsewhere.

use std::borrow::Cow;
use std::cmp::Ordering;

use melba_fmgr::{Operand, VectorFn};
use melba_types::{Bitmap, Column, ColumnData, Datum, Kind, Mantissas, Numeric, Result};

use super::{Values, fallback, validity, zip};

/// Numerics of an operand; a row without one is null.
#[derive(Clone, Copy)]
enum Numbers<'a> {
    Many(&'a [Datum]),
    Words(&'a Mantissas, Option<&'a Bitmap>),
    One(&'a Numeric),
}

impl<'a> Numbers<'a> {
    /// `None` for a null constant, and for columns that are not of numerics.
    fn of(operand: &'a Operand<'a>) -> Option<Numbers<'a>> {
        match operand {
            Operand::Column(Column { data: ColumnData::Datum(values), validity: None }) => Some(Numbers::Many(values)),
            Operand::Column(Column { data: ColumnData::Numeric(values), validity }) => {
                Some(Numbers::Words(values, validity.as_ref()))
            }
            Operand::Scalar(Datum::Numeric(value)) => Some(Numbers::One(value)),
            _ => None,
        }
    }

    #[inline]
    fn get(self, row: usize) -> Option<Cow<'a, Numeric>> {
        match self {
            Numbers::One(value) => Some(Cow::Borrowed(value)),
            Numbers::Words(values, validity) => validity.is_none_or(|v| v.get(row)).then(|| Cow::Owned(values.get(row))),
            Numbers::Many(values) => match &values[row] {
                Datum::Numeric(value) => Some(Cow::Borrowed(value)),
                _ => None,
            },
        }
    }

    /// Mantissas and their scale, of a constant too.
    fn words(self) -> Option<(Values<'a, i64>, u16)> {
        match self {
            Numbers::Words(values, _) => Some((Values::Many(&values.values), values.scale)),
            Numbers::One(value) => value.small_parts().map(|(mantissa, scale)| (Values::One(mantissa), scale)),
            Numbers::Many(_) => None,
        }
    }
}

/// The factor that turns a mantissa into that of the same number at a scale that is larger by `by`.
fn lift(by: u16) -> i64 {
    10i64.pow(u32::from(by))
}

/// Converts a constant to the other side's scale, if that is larger: once, and not for each row.
fn lift_constant(constant: &mut (Values<'_, i64>, u16), scale: u16) {
    if let (Values::One(mantissa), of) = *constant
        && let Some(lifted) = scale.checked_sub(of).and_then(|by| mantissa.checked_mul(lift(by)))
    {
        *constant = (Values::One(lifted), scale);
    }
}

/// An operation on words.
#[derive(Clone, Copy)]
enum Operation {
    Add,
    Sub,
    Mul,
}

impl Operation {
    fn by_value(self) -> fn(&Numeric, &Numeric) -> Result<Numeric> {
        match self {
            Operation::Add => Numeric::add,
            Operation::Sub => Numeric::sub,
            Operation::Mul => Numeric::mul,
        }
    }

    /// The results at the scale that the values have one by one; `None` where one of them does not fit a word.
    fn on_words(self, left: Numbers<'_>, right: Numbers<'_>, rows: usize) -> Option<Mantissas> {
        let (mut left, mut right) = (left.words()?, right.words()?);
        if !matches!(self, Operation::Mul) {
            lift_constant(&mut left, right.1);
            lift_constant(&mut right, left.1);
        }
        let ((a, s), (b, t)) = (left, right);
        let top = s.max(t);
        let (up, other_up) = (lift(top - s), lift(top - t));
        let (values, scale) = match self {
            Operation::Mul => (zip_checked(a, b, rows, i64::overflowing_mul)?, s + t),
            Operation::Add if s == t => (zip_checked(a, b, rows, i64::overflowing_add)?, top),
            Operation::Sub if s == t => (zip_checked(a, b, rows, i64::overflowing_sub)?, top),
            Operation::Add | Operation::Sub => {
                let minus = matches!(self, Operation::Sub);
                let lifted = |a: i64, b: i64| {
                    let ((a, is_over), (b, other_is_over)) = (a.overflowing_mul(up), b.overflowing_mul(other_up));
                    let (value, overflow) = if minus { a.overflowing_sub(b) } else { a.overflowing_add(b) };
                    (value, overflow | is_over | other_is_over)
                };
                (zip_checked(a, b, rows, lifted)?, top)
            }
        };
        Mantissas::new(values, scale)
    }
}

/// As `zip`, of what may overflow; `None` when a row does.
#[inline]
fn zip_checked(
    left: Values<'_, i64>,
    right: Values<'_, i64>,
    rows: usize,
    f: impl Fn(i64, i64) -> (i64, bool),
) -> Option<Vec<i64>> {
    let mut out = vec![0; rows];
    // Not in a closure that a collecting iterator calls, which would write it to memory for every row.
    let mut is_over = false;
    match (left, right) {
        (Values::Many(l), Values::Many(r)) => {
            for ((out, a), b) in out.iter_mut().zip(&l[..rows]).zip(&r[..rows]) {
                let (value, overflow) = f(*a, *b);
                *out = value;
                is_over |= overflow;
            }
        }
        (Values::Many(l), Values::One(b)) => {
            for (out, a) in out.iter_mut().zip(&l[..rows]) {
                let (value, overflow) = f(*a, b);
                *out = value;
                is_over |= overflow;
            }
        }
        (Values::One(a), Values::Many(r)) => {
            for (out, b) in out.iter_mut().zip(&r[..rows]) {
                let (value, overflow) = f(a, *b);
                *out = value;
                is_over |= overflow;
            }
        }
        (Values::One(a), Values::One(b)) => {
            let (value, overflow) = f(a, b);
            out.fill(value);
            is_over = overflow;
        }
    }
    (!is_over).then_some(out)
}

fn arithmetic(
    operands: &[Operand<'_>],
    left: Numbers<'_>,
    right: Numbers<'_>,
    rows: usize,
    operation: Operation,
) -> Result<Column> {
    if let Some(words) = operation.on_words(left, right, rows) {
        return Ok(Column { data: ColumnData::Numeric(words), validity: validity(operands, rows) });
    }
    let by_value = operation.by_value();
    let mut out = Vec::with_capacity(rows);
    for row in 0..rows {
        out.push(match (left.get(row), right.get(row)) {
            (Some(a), Some(b)) => Datum::Numeric(by_value(&a, &b)?),
            _ => Datum::Null,
        });
    }
    Ok(Column::new(ColumnData::Datum(out)))
}

/// Compares words. Those of different scales are lifted to the larger one, where they fit 128 bits.
fn compare_words(left: Numbers<'_>, right: Numbers<'_>, rows: usize, test: impl Fn(Ordering) -> bool) -> Option<Vec<bool>> {
    let ((a, s), (b, t)) = (left.words()?, right.words()?);
    let up = |value: i64, by: u16| value.checked_mul(lift(by));
    Some(match (a, b) {
        _ if s == t => zip(a, b, rows, |a, b| test(a.cmp(&b))),
        (Values::Many(_), Values::One(b)) if let Some(b) = s.checked_sub(t).and_then(|by| up(b, by)) => {
            zip(a, Values::One(b), rows, |a, b| test(a.cmp(&b)))
        }
        _ => {
            let top = s.max(t);
            let (left_up, right_up) = (i128::from(lift(top - s)), i128::from(lift(top - t)));
            zip(a, b, rows, |a, b| test((i128::from(a) * left_up).cmp(&(i128::from(b) * right_up))))
        }
    })
}

fn comparison(
    operands: &[Operand<'_>],
    left: Numbers<'_>,
    right: Numbers<'_>,
    rows: usize,
    test: impl Fn(Ordering) -> bool,
) -> Column {
    if let Some(holds) = compare_words(left, right, rows, &test) {
        return Column { data: ColumnData::Bool(holds), validity: validity(operands, rows) };
    }
    let mut out = vec![false; rows];
    let mut validity: Option<Bitmap> = None;
    for (row, holds) in out.iter_mut().enumerate() {
        match (left.get(row), right.get(row)) {
            (Some(a), Some(b)) => *holds = test(a.cmp(&b)),
            _ => validity.get_or_insert_with(|| Bitmap::filled(rows, true)).set(row, false),
        }
    }
    Column { data: ColumnData::Bool(out), validity }
}

macro_rules! arithmetic {
    ($name:literal, $operation:expr) => {
        ($name, |call, operands, rows| match (Numbers::of(&operands[0]), Numbers::of(&operands[1])) {
            (Some(left), Some(right)) => arithmetic(operands, left, right, rows, $operation),
            _ => fallback(call, $name, operands, rows, Kind::Numeric),
        })
    };
}

macro_rules! comparison {
    ($name:literal, $test:path) => {
        ($name, |call, operands, rows| match (Numbers::of(&operands[0]), Numbers::of(&operands[1])) {
            (Some(left), Some(right)) => Ok(comparison(operands, left, right, rows, $test)),
            _ => fallback(call, $name, operands, rows, Kind::Bool),
        })
    };
}

pub const VECTORS: &[(&str, VectorFn)] = &[
    arithmetic!("numeric_add", Operation::Add),
    arithmetic!("numeric_sub", Operation::Sub),
    arithmetic!("numeric_mul", Operation::Mul),
    comparison!("numeric_eq", Ordering::is_eq),
    comparison!("numeric_ne", Ordering::is_ne),
    comparison!("numeric_lt", Ordering::is_lt),
    comparison!("numeric_le", Ordering::is_le),
    comparison!("numeric_gt", Ordering::is_gt),
    comparison!("numeric_ge", Ordering::is_ge),
];
