//! Numerics of one scale as words.

use std::borrow::Borrow;

use crate::column::{Column, ColumnData};
use crate::numeric::{Numeric, SMALL_SCALE_MAX};

/// Numerics of one scale: value `i` is `values[i] / 10^scale`.
///
/// Invariant: `scale` is at most `SMALL_SCALE_MAX`, so that every word is the mantissa of a numeric that is held inline.
#[derive(Clone, Debug, PartialEq)]
pub struct Mantissas {
    pub values: Vec<i64>,
    pub scale: u16,
}

impl Mantissas {
    /// `None` for a scale at which numerics are not held inline.
    pub fn new(values: Vec<i64>, scale: u16) -> Option<Mantissas> {
        (scale <= SMALL_SCALE_MAX).then_some(Mantissas { values, scale })
    }

    #[inline]
    pub fn get(&self, i: usize) -> Numeric {
        Numeric::small(self.values[i], self.scale)
    }

    /// Appends a value; false when it is of another scale, or too long. The first value decides which scale it is.
    pub fn push(&mut self, value: &Numeric) -> bool {
        let Some((mantissa, scale)) = value.small_parts() else { return false };
        if self.values.is_empty() {
            self.scale = scale;
        }
        let fits = scale == self.scale;
        if fits {
            self.values.push(mantissa);
        }
        fits
    }

    /// Rows of several columns, when all that are picked are words of one scale: `picks` are (which column, which row of it).
    pub(crate) fn gather<C: Borrow<Column>>(columns: &[C], picks: &[(u32, u32)]) -> Option<Mantissas> {
        let words =
            |column: u32| if let ColumnData::Numeric(v) = &columns[column as usize].borrow().data { Some(v) } else { None };
        let scale = words(picks.first()?.0)?.scale;
        let value = |&(column, row): &(u32, u32)| words(column).filter(|v| v.scale == scale).map(|v| v.values[row as usize]);
        Some(Mantissas { values: picks.iter().map(value).collect::<Option<_>>()?, scale })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datum, Kind};

    fn numeric(text: &str) -> Datum {
        Datum::Numeric(Numeric::parse(text).unwrap())
    }

    fn words(values: &[i64], scale: u16) -> Column {
        Column::new(ColumnData::Numeric(Mantissas::new(values.to_vec(), scale).unwrap()))
    }

    fn shown(column: &Column) -> Vec<String> {
        (0..column.len())
            .map(|i| if column.is_null(i) { "null".into() } else { format!("{:?}", column.get(i).as_numeric()) })
            .collect()
    }

    #[test]
    fn values_of_another_scale_or_too_long_make_datums_of_the_column() {
        let mut column = words(&[150, -7], 2);
        column.push(numeric("3.25"));
        column.push_null();
        assert!(matches!(column.data, ColumnData::Numeric(_)));
        for other in ["1.5", "NaN", "Infinity", "123456789012345678901.25"] {
            let mut column = column.clone();
            column.push(numeric(other));
            column.push_null();
            assert_eq!(shown(&column), ["1.50", "-0.07", "3.25", "null", other, "null"]);
            assert!(matches!(column.data, ColumnData::Datum(_)));
        }
    }

    #[test]
    fn rows_move_between_columns_of_words_and_of_datums() {
        let (two, one) = (words(&[150, -7], 2), words(&[3], 1));
        let mut datums = Column::with_capacity(Kind::Numeric, 0);
        datums.push(numeric("NaN"));
        datums.push_null();
        assert_eq!(shown(&Column::gather(&[&two, &two], &[(1, 0), (0, 1)])), ["1.50", "-0.07"]);
        assert_eq!(
            shown(&Column::gather(&[&two, &one, &datums], &[(1, 0), (2, 1), (0, 1), (2, 0)])),
            ["0.3", "null", "-0.07", "NaN"]
        );
        assert_eq!(shown(&two.take_or_null(&[Some(1), None])), ["-0.07", "null"]);
        assert_eq!(shown(&two.slice(1..2)), ["-0.07"]);
        for (mut to, from, expected) in [
            (two.clone(), &two, vec!["1.50", "-0.07", "1.50", "-0.07"]),
            (two.clone(), &one, vec!["1.50", "-0.07", "0.3"]),
            (two.clone(), &datums, vec!["1.50", "-0.07", "NaN", "null"]),
            (datums.clone(), &one, vec!["NaN", "null", "0.3"]),
        ] {
            to.append(from);
            assert_eq!(shown(&to), expected);
        }
    }

    #[test]
    fn scales_beyond_the_inline_ones_are_no_words() {
        assert!(Mantissas::new(vec![1], SMALL_SCALE_MAX).is_some() && Mantissas::new(vec![1], SMALL_SCALE_MAX + 1).is_none());
    }
}
