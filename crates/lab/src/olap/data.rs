//! The rows of the three tables: each follows from the seed and its number, so that files are written row by row.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use crate::Result;
use crate::random::Random;

/// Phones are "13" and nine digits, all equally likely.
pub const PHONES: u64 = 1_000_000_000;
/// Times of change of records lie within this many days from the first day of [`FIRST_YEAR`].
const DAYS: u64 = 10 * 365;
pub const FIRST_YEAR: u64 = 2014;
const DAYS_OF_MONTHS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const STATUSES: u64 = 8;

/// A column's type, under any database's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    Number,
    Text,
    Time,
}

/// A table of the experiment.
#[derive(Clone, Copy, Debug)]
pub struct OlapTable {
    pub name: &'static str,
    pub columns: &'static [(&'static str, ColumnKind)],
    /// Its first column is the primary key.
    pub has_key: bool,
}

pub const TMP: OlapTable = OlapTable {
    name: "melba_lab_tmp",
    columns: &[("uid", ColumnKind::Number), ("phone", ColumnKind::Text), ("nickname", ColumnKind::Text)],
    has_key: false,
};
pub const ACCOUNT: OlapTable = OlapTable {
    name: "melba_lab_account",
    columns: &[
        ("id", ColumnKind::Number),
        ("nickname", ColumnKind::Text),
        ("former_name", ColumnKind::Text),
        ("status", ColumnKind::Number),
    ],
    has_key: true,
};
pub const RECORD: OlapTable = OlapTable {
    name: "melba_lab_record",
    columns: &[
        ("id", ColumnKind::Number),
        ("nickname", ColumnKind::Text),
        ("update_time", ColumnKind::Time),
        ("status", ColumnKind::Number),
        ("raw", ColumnKind::Text),
    ],
    has_key: true,
};

/// Statements that leave nothing behind.
pub fn drop_tables() -> Vec<String> {
    [TMP, ACCOUNT, RECORD].map(|table| format!("DROP TABLE IF EXISTS {}", table.name)).to_vec()
}

/// The numbers of rows.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub seed: u64,
    pub rows: u64,
    pub accounts: u64,
    pub records: u64,
}

impl Data {
    pub fn rows_of(&self, table: &OlapTable) -> u64 {
        match table.name {
            name if name == TMP.name => self.rows,
            name if name == ACCOUNT.name => self.accounts,
            _ => self.records,
        }
    }

    /// Writes a table's rows: a line each, tabs between the values. Returns the bytes.
    pub fn write(&self, table: &OlapTable, path: &Path) -> Result<u64> {
        let shown = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(shown)?);
        for number in 0..self.rows_of(table) {
            let row = match table.name {
                name if name == TMP.name => self.tmp(number),
                name if name == ACCOUNT.name => self.account(number),
                _ => self.record(number),
            };
            writeln!(file, "{row}").map_err(shown)?;
        }
        file.into_inner().map_err(|e| shown(e.into_error()))?.metadata().map(|m| m.len()).map_err(shown)
    }

    fn tmp(&self, number: u64) -> String {
        let mut own = Random::new(&[self.seed, 1, number]);
        let uid = own.below(PHONES * 10);
        let phone = phone(own.below(PHONES));
        format!("{uid}\t{phone}\t{}", nickname(&mut own))
    }

    /// The phone of a row of the large table.
    pub fn phone_of(&self, number: u64) -> String {
        self.tmp(number).split('\t').nth(1).unwrap_or_default().to_owned()
    }

    fn account(&self, number: u64) -> String {
        let former = nickname(&mut Random::new(&[self.seed, 3, number]));
        let status = Random::new(&[self.seed, 4, number]).below(STATUSES);
        format!("{number}\t{}\t{former}\t{status}", self.nickname_of(number))
    }

    /// An account's nickname.
    pub fn nickname_of(&self, account: u64) -> String {
        nickname(&mut Random::new(&[self.seed, 2, account]))
    }

    /// The nickname of a record: of one of the accounts.
    pub fn nickname_of_record(&self, number: u64) -> String {
        self.nickname_of(Random::new(&[self.seed, 5, number]).below(self.accounts))
    }

    fn record(&self, number: u64) -> String {
        let mut own = Random::new(&[self.seed, 6, number]);
        let time = time(own.below(DAYS), own.below(86_400));
        let (status, words) = (own.below(STATUSES), 6 + own.below(24));
        format!("{number}\t{}\t{time}\t{status}\t{}", self.nickname_of_record(number), own.text(&WORDS, words))
    }
}

const WORDS: [&str; 16] = [
    "opened", "closed", "moved", "renamed", "paid", "asked", "answered", "waiting", "north", "south", "first", "second", "blue",
    "green", "note", "letter",
];

/// A phone by its place among all: their order is that of the numbers.
pub fn phone(number: u64) -> String {
    format!("13{number:09}")
}

/// Six to twelve letters.
fn nickname(random: &mut Random) -> String {
    (0..6 + random.below(7)).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
}

/// Years have 365 days here: the last day of a leap year has no records.
fn time(day: u64, second: u64) -> String {
    let (year, mut day) = (FIRST_YEAR + day / 365, day % 365);
    let mut month = 0;
    while day >= DAYS_OF_MONTHS[month] {
        day -= DAYS_OF_MONTHS[month];
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{:02}-{:02} {hour:02}:{minute:02}:{:02}", month + 1, day + 1, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_repeat_and_have_their_columns() {
        let data = Data { seed: 1, rows: 50, accounts: 20, records: 30 };
        let folder = tempfile::tempdir().unwrap();
        for table in [TMP, ACCOUNT, RECORD] {
            let paths = ["one", "two"].map(|name| folder.path().join(name));
            let bytes = paths.each_ref().map(|path| data.write(&table, path).unwrap());
            let [one, two] = paths.map(|path| std::fs::read_to_string(path).unwrap());
            assert_eq!((one.len() as u64, &one), (bytes[0], &two), "the same rows again");
            assert_eq!(one.lines().count() as u64, data.rows_of(&table));
            assert!(one.lines().all(|line| line.split('\t').count() == table.columns.len()), "{}", table.name);
            let other = Data { seed: 2, ..data };
            other.write(&table, &folder.path().join("one")).unwrap();
            assert_ne!(std::fs::read_to_string(folder.path().join("one")).unwrap(), two, "another seed");
        }
    }

    #[test]
    fn times_are_of_the_calendar() {
        assert_eq!(time(0, 0), "2014-01-01 00:00:00");
        assert_eq!(time(365 + 59, 86_399), "2015-03-01 23:59:59");
        assert_eq!(time(DAYS - 1, 61), "2023-12-31 00:01:01");
    }
}
