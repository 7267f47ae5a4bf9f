//! Names of folders, files and tables.

use melba_types::Oid;

/// A name that is a folder everywhere: those with other characters than letters, digits and `_` have the object's OID behind.
pub fn folder(name: &str, oid: Oid) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("{}_{oid}", name.replace(|c| !is_plain(c), "_")),
    }
}

/// A UUID of random bits.
pub fn uuid(high: u64, low: u64) -> String {
    let (high, low) = (high & !0xf000 | 0x4000, low & !(3 << 62) | 2 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// A time as text in UTC. Microseconds since 1970.
pub fn time_text(micros: i64) -> String {
    const DAY: i64 = 86_400_000_000;
    let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    // Days since 0000-03-01, in cycles of 400 years.
    let day = days + 719_468;
    let (cycle, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (of_month, month) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year + 400 * cycle + i64::from(month <= 2);
    let seconds = rest / 1_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{of_month:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", rest % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert_eq!((folder("Orders_2", Oid(5)), folder("a b/../c", Oid(5))), ("Orders_2".to_owned(), "a_b____c_5".to_owned()));
        assert_eq!(uuid(u64::MAX, u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(time_text(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(time_text(951_782_400_000_000 + 86_399_000_001), "2000-02-29T23:59:59.000001Z");
        assert_eq!(time_text(1_798_761_599_999_999), "2026-12-31T23:59:59.999999Z");
        assert_eq!(uuid(0, 1), "00000000-0000-4000-8000-000000000001");
    }
}
