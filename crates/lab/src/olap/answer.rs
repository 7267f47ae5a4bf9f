//! A query's answer, reduced to a form that can be compared between databases while its rows stream by.

use crate::Result;
use crate::random::hash;

/// The part of the rows on which every database must agree.
#[derive(Clone, Debug)]
pub enum Compare {
    /// All rows, in any order.
    Rows,
    /// One column, in its order: rows that are equal in it may come in any order.
    Ordered { column: usize },
    /// The number of rows, which any of many may be; a column's values lie in a range, both ends included.
    Number { column: usize, low: String, high: String },
}

/// A reduced answer: two are equal if the rows are, except for collisions of 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub rows: u64,
    checksum: u64,
}

/// Takes in rows: values as text with tabs between them.
pub struct Reducer<'a> {
    compare: &'a Compare,
    answer: Answer,
    /// A row that cannot be right.
    wrong: Option<String>,
}

impl Reducer<'_> {
    pub fn new(compare: &Compare) -> Reducer<'_> {
        Reducer { compare, answer: Answer::default(), wrong: None }
    }

    pub fn row(&mut self, row: &[u8]) {
        self.answer.rows += 1;
        match self.compare {
            Compare::Rows => self.answer.checksum = self.answer.checksum.wrapping_add(digest(row)),
            Compare::Ordered { column } => {
                self.answer.checksum = hash(&[self.answer.checksum, digest(value(row, *column))]);
            }
            Compare::Number { column, low, high } => {
                let value = value(row, *column);
                if self.wrong.is_none() && (value < low.as_bytes() || value > high.as_bytes()) {
                    self.wrong = Some(String::from_utf8_lossy(row).into_owned());
                }
            }
        }
    }

    /// The answer, unless a row was not requested.
    pub fn finish(self) -> Result<Answer> {
        match self.wrong {
            Some(row) => Err(format!("a row that was not asked for: {row}")),
            None => Ok(self.answer),
        }
    }
}

fn value(row: &[u8], column: usize) -> &[u8] {
    row.split(|byte| *byte == b'\t').nth(column).unwrap_or_default()
}

/// FNV-1a, with the bits mixed at the end so that sums of it do not cancel.
fn digest(bytes: &[u8]) -> u64 {
    let each = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    hash(&[bytes.iter().fold(0xCBF2_9CE4_8422_2325, each)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(compare: &Compare, rows: &[&str]) -> Result<Answer> {
        let mut reducer = Reducer::new(compare);
        rows.iter().for_each(|row| reducer.row(row.as_bytes()));
        reducer.finish()
    }

    #[test]
    fn rows_are_compared_in_any_order_and_orders_by_their_column() {
        let rows = |rows: &[&str]| reduced(&Compare::Rows, rows).unwrap();
        assert_eq!(rows(&["1\ta", "2\tb"]), rows(&["2\tb", "1\ta"]));
        assert_ne!(rows(&["1\ta", "2\tb"]), rows(&["1\tb", "2\ta"]));
        assert_ne!(rows(&["1\ta", "1\ta"]), rows(&["2\tb", "2\tb"]), "pairs do not cancel");
        let ordered = |rows: &[&str]| reduced(&Compare::Ordered { column: 1 }, rows).unwrap();
        assert_eq!(ordered(&["1\ta", "2\tb"]), ordered(&["9\ta", "9\tb"]));
        assert_ne!(ordered(&["1\ta", "2\tb"]), ordered(&["2\tb", "1\ta"]));
    }

    #[test]
    fn any_rows_must_be_of_the_range() {
        let compare = Compare::Number { column: 0, low: "b".into(), high: "d".into() };
        assert_eq!(reduced(&compare, &["b", "d"]), reduced(&compare, &["c", "c"]));
        assert!(reduced(&compare, &["b", "e"]).unwrap_err().contains('e'));
    }
}
