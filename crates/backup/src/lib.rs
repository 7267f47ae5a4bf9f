//! `melba backup` and `melba restore`: copy a running server's database to a folder or an object store, and create databases from
//! such copies.
//!
//! ```text
//! DATABASE/segments/FILE-CHECKSUM    a segment, as it is in the database
//! DATABASE/log/FROM-TO               records of the log
//! DATABASE/backups/TIME.json         what a backup consists of
//! DATABASE/backups/TIME.manifest     its manifest
//! DATABASE/backups/TIME/TO.json      what a backup that is followed has got more: see `record`
//! ```
//!
//! DATABASE is the database's number; all numbers are hexadecimal with 16 digits, checksums with 8.
//!
//! Invariants:
//! 1. An object is written as a whole or not at all, and never changed. An object that names others is written after them: an
//!    interrupted backup is no backup, and a restore never sees half of one.
//! 2. A segment is identified by its number and its footer's checksum. A segment that the backup already has is not sent again.
//! 3. Restored data has been compared with the checksum that was computed when it was read from the server.

#![allow(clippy::disallowed_methods, reason = "a client: its clock and files are not the database's")]

mod catalog;
mod record;
mod repository;
mod restore;
mod server;
mod take;

use std::time::Duration;

pub use catalog::{Look, look};
pub use repository::is_repository;
pub use restore::{Point, restore};
pub use take::{Options, backup};

/// A failure in words for the person at the terminal.
pub type Result<T> = std::result::Result<T, String>;

/// A length of time: 30s, 5min, 12h, 7d.
fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is no length of time such as 30s, 5min, 12h or 7d"))?;
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(format!("{text:?} is no length of time such as 30s, 5min, 12h or 7d")),
    };
    Ok(Duration::from_secs(number.saturating_mul(unit)))
}

/// A position in the log, as pg_current_wal_lsn() prints it.
fn shown(lsn: u64) -> String {
    format!("{:X}/{:X}", lsn >> 32, lsn & 0xffff_ffff)
}

/// The position of such a text.
fn lsn(text: &str) -> Result<u64> {
    let parsed = text.split_once('/').and_then(|(high, low)| {
        let part = |digits: &str| u32::from_str_radix(digits, 16).ok();
        Some(u64::from(part(high)?) << 32 | u64::from(part(low)?))
    });
    parsed.ok_or_else(|| format!("{text:?} is no position in the log such as 0/1A2B3C"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_and_positions_are_read() {
        assert_eq!(duration("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(duration("5min"), Ok(Duration::from_secs(300)));
        assert!(duration("7").is_err() && duration("d").is_err() && duration("7w").is_err());
        assert_eq!(lsn(&shown(0x1_0000_00ff)), Ok(0x1_0000_00ff));
        assert!(lsn("1A").is_err() && lsn("0/x").is_err());
    }
}
